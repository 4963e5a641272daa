"""The walk-throughs run as scripts and print what their text says."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest


def printed(root: Path, name: str) -> str:
    words = [sys.executable, "-W", "error", "-m", f"demos_ref.{name}"]
    done = subprocess.run(words, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
def test_one_layer_is_gradient_descent(root: Path) -> None:
    text = printed(root, "one_layer_is_gradient_descent")
    losses = dict(re.findall(r"loss, ([a-z ]+?) +([\d.]+)", text))
    trained, half_way, built = (float(losses[name]) for name in ("trained", "half way", "constructed"))
    assert trained == pytest.approx(built, rel=0.01)  # expected-values: trained within 1 % of one step
    assert half_way == pytest.approx(built, rel=0.01)  # the construction after interpolation keeps the loss within 1 %
    assert float(re.search(r"reversed: (\S+)", text)[1]) < 1e-5


@pytest.mark.slow
def test_learning_to_copy(root: Path) -> None:
    text = printed(root, "learning_to_copy")
    losses = [float(loss) for loss in re.findall(r"step +\d+ +loss ([\d.]+)", text)]
    assert max(losses[1:5]) > 0.4 > 0.23 > losses[-1]
    for ratio in re.findall(r"'next_over_other': ([\d.]+)", text):
        assert float(ratio) > 10


@pytest.mark.slow
def test_sine_waves(root: Path) -> None:
    text = printed(root, "sine_waves")
    assert float(re.search(r"gradient descent\| over \d+ tasks: (\S+)", text)[1]) < 1e-5
    losses = {name: float(re.search(rf"{name}_loss +([\d.]+)", text)[1]) for name in ("tf", "control")}
    zero = float(re.search(r"predicting 0: ([\d.]+)", text)[1])
    assert zero == pytest.approx(0.0258, rel=0.05)  # E a^2 / 4 = (.1^2 + .1 .5 + .5^2) / 12, for whole periods
    assert max(losses.values()) < 0.005


@pytest.mark.slow
def test_degeneracy(root: Path) -> None:
    """At the published setting the LLC is the loss times -nbeta, plus a constant; no end of a training is usable."""
    text = printed(root, "degeneracy")
    slopes = dict(re.findall(r"M = \d, (unsaturated|published) *: slope / -nbeta +(\S+),", text))
    assert float(slopes["published"]) == pytest.approx(1, abs=0.1)
    assert float(slopes["unsaturated"]) < 0.6
    ends = re.findall(r"(unsaturated|published) +M = (\d): LLC at the end (\S+), (.*)", text)
    told = {(name, tasks): said for name, tasks, _, said in ends}
    assert {said for (name, _), said in told.items() if name == "unsaturated"} == {"usable"}
    assert {said for (name, _), said in told.items() if name == "published"} == {"not usable"}
    llc = {(name, tasks): float(value) for name, tasks, value, _ in ends}
    assert 0 < llc["unsaturated", "1"] < llc["unsaturated", "2"] < 0.2 * llc["published", "2"]


@pytest.mark.slow
def test_looking_inside(root: Path, tmp_path: Path) -> None:
    """With two seeds of its eight: one head copies, the second layer steps, and w is held in part."""
    text = (root / "demos_ref/looking_inside.py").read_text()
    assert text.count("SEEDS, CONTEXTS = range(8), 400") == 1
    script = tmp_path / "looking_inside.py"
    script.write_text(text.replace("SEEDS, CONTEXTS = range(8), 400", "SEEDS, CONTEXTS = range(2), 400"))
    words = [sys.executable, "-W", "error", script]
    done = subprocess.run(
        words, cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "PYTHONPATH": str(root)}
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("2 of 2 runs trained") == 2
    means = {name.strip(): float(mean) for name, mean in re.findall(r"^(.+?) +(-?[\d.]+) \[", done.stdout, re.M)}
    assert means["restored by the copying head"] > 0.9 > 0.2 > means["restored by the other head"]
    assert means["restored by rows of inputs, after layer 0"] == pytest.approx(1, abs=0.02)
    assert means["restored by the query's row, after layer 0"] == pytest.approx(0, abs=0.02)
    assert means["R^2 of a label at its input, blocks.0.resid_post"] > 0.98
    without = [means[f"distance to one step without the {which} head"] for which in ("copying", "other")]
    assert without[0] > 10 * abs(without[1])
    trained, untrained = (
        means[f"R^2 of w at the row of the label, 7 seen, {kind}"] for kind in ("trained", "untrained")
    )
    assert 0.8 > trained > untrained + 0.15
    assert means["moved by the head that matters most"] > means["moved by the second"]
