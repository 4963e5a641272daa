"""A user's conjecture through `studies.run FILE`: verdicts that can fail, wrong files, kills, files of others."""

import csv
import json
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from scipy import stats

from icl_lab.lab.registries import Conjecture
from icl_lab.store import layout
from icl_lab.store.atomic import csv_bytes, write_csv
from icl_lab.store.readers import StoreError
from icl_lab.studies import conjecture
from icl_lab.studies.claim import Measurement
from icl_lab.studies.conjecture_page import _history, in_words, together
from icl_lab.studies.conjecture_seeds import by_seed, of_those_that_trained
from icl_lab.studies.verdict import judge
from icl_lab.studies.words import MEANINGS
from tests import processes
from tests.runners.tiny import ROOT

SMALL = {"dim": 4, "num_pairs": 12, "steps": 40, "eval_every": 20, "batch_size": 32}
SMALL |= {"eval_tasks": 32, "test_tasks": 200, "step_size_tasks": 256}
HEAD = """import jax
import jax.numpy as jnp
from icl_lab.lab import plugins


@plugins.input_distribution("stretched")
def stretched(key, input_range, shape):
    return jnp.array([1.0, 1.0, 0.5, 0.5]) * jax.random.normal(key, shape)


@plugins.baseline("best_step")
def best_step(batch, config):
    n, size = config.data.num_pairs, jnp.array([1.0, 1.0, 0.25, 0.25])
    step = 1 / ((1 + 1 / n) * size + size.sum() / n)
    return jnp.einsum("bn,bnd,d,bd->b", batch.y, batch.x, step, batch.x_query) / n


def constant(run):
    return 2.0


def broken(run):
    return 1 / 0


def words(run):
    return "many"


"""
LINE = HEAD.count("\n") + 1  # of what stands below it


def stated(algorithm: str = "best_step", says: str = "A small one", **given: object) -> str:
    """The text of a file with a conjecture; values in text are code."""
    values = {"settings": repr(SMALL), "seeds": "3", "cosine": "(0.9, 1.0)"} | given
    return (
        f"{HEAD}plugins.conjecture({says!r}, algorithm={algorithm!r}, "
        + ", ".join(f"{name}={value}" for name, value in values.items() if value is not None)
        + ")\n"
    )


def run(folder: Path, *words: str, text: str | None = None) -> processes.Done:
    """The command on mine.py in a folder, with results and runs beside it."""
    if text is not None:
        (folder / "mine.py").write_text(text)
    return processes.command(*line(folder, *words)[2:])


def line(folder: Path, *words: str) -> list[str]:
    where = [str(folder / "mine.py"), "--runs_dir", str(folder / "runs"), "--report", str(folder / "out")]
    return [sys.executable, "-m", "studies.run", *where, "--quiet", *words]


def rows(folder: Path, table: str = "claims") -> dict[str, dict[str, str]]:
    """A table of the results by its first column."""
    lines = csv.DictReader((folder / "out/mine" / f"{table}.csv").read_text().splitlines())
    return {next(iter(row.values())): row for row in lines}


WRONG = {
    "syntax": (HEAD + "def (:\n", rf"line {LINE}: SyntaxError"),
    "import": (HEAD + "1 / 0\n", rf"line {LINE}: ZeroDivisionError"),
    "none": (HEAD, "states no conjecture"),
    "two": (stated() + stated().removeprefix(HEAD), rf"line {LINE + 1}: a plugin states one conjecture"),
    "range": (stated(cosine="(1.0, 0.9)"), rf"line {LINE}: cosine is \(1.0, 0.9\), whose low end is above"),
    "no range": (stated(cosine=None), rf"line {LINE}: a conjecture needs an accepted range"),
    "seeds": (stated(seeds="2"), rf"line {LINE}: seeds is 2; it must be a whole number from 3 to 1000"),
    "many seeds": (stated(seeds="10**9"), rf"line {LINE}: seeds is 1000000000; it must be a whole number from 3"),
    "model": (stated(model="'lsa9'"), rf"line {LINE}: .*lsa9"),
    "queries": (
        stated(model="'autoencoder'", settings="{'steps': 2}"),
        rf"line {LINE}: autoencoder predicts no labels of queries",
    ),
    "other family": (
        stated("gd", model="'tiny'", settings="{'steps': 2}"),
        r"which runs of tiny are not compared with; .*ridge",
    ),
    "other tasks": (
        stated("dmmse", model="'tiny'", settings="{'num_tasks': float('inf'), 'steps': 2}"),
        "are not compared with",
    ),
    "other shape": (
        stated(model="'sine'", settings="{'steps': 2}").replace("batch.x_query) / n", "batch.x_query)[:, None] / n"),
        r"'best_step' gives predictions of shape \(\d+, 1\); it must give \(\d+,\)",
    ),
    "shape beside a measure": (
        stated("", cosine=None, measure="constant", accepted="(0, 3)", settings="{'dim': 4, 'steps': 2}").replace(
            "batch.x_query) / n", "batch.x_query)[:, None] / n"
        ),
        r"'best_step' gives predictions of shape \(\d+, 1\); it must give one for each task",
    ),
    "no algorithm": (stated(""), rf"line {LINE}: cosine need an algorithm"),
    "setting": (stated(settings="{'num_layer': 2}"), rf"line {LINE}: .*num_layer.* did you mean"),
    "algorithm": (stated("best_stap"), rf"line {LINE}: algorithm is 'best_stap', which.*did you mean best_step\?"),
    "undefined": (stated("gd_plus_plus"), rf"line {LINE}: 'gd_plus_plus' is not defined for these runs: GD\+\+"),
    "shape": (stated().replace("return jnp.einsum", "return batch.x + jnp.einsum"), r"line \d+: "),
    "measure": (stated(measure="3", accepted="(0, 1)"), rf"line {LINE}: measure is 3; it must be a function"),
    "no accepted": (stated(measure="constant"), rf"line {LINE}: measure and accepted go together"),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_file_is_one_sentence_with_its_line_and_leaves_nothing(name: str, tmp_path: Path) -> None:
    text, said = WRONG[name]
    done = run(tmp_path, text=text)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(rf"error: [^\n]*{said}[^\n]*\n", done.stderr)
    assert "mine.py" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.py"]


@pytest.mark.slow
@pytest.mark.parametrize(("measure", "said"), [("broken", "ZeroDivisionError"), ("words", "'many'.*no number")])
def test_a_measure_that_gives_no_number_costs_no_run_and_no_result(measure: str, said: str, tmp_path: Path) -> None:
    done = run(tmp_path, text=stated(measure=measure, accepted="(0, 1)"))
    assert done.returncode == 2
    assert re.search(rf"error: plugin \S*mine\.py, line \d+: [^\n]*{said}[^\n]*\n$", done.stderr)
    assert "Traceback" not in done.stderr
    assert len(list((tmp_path / "runs").glob("*/params.safetensors"))) == 6
    assert not (tmp_path / "out").exists()


# 300 steps, after which one of three seeds is stuck
SHORT = SMALL | {"input_distribution": "stretched", "steps": 300, "eval_every": 100, "batch_size": 64, "lr": 1e-2}


@pytest.mark.slow
def test_a_conjecture_has_a_page_tables_and_a_verdict_that_fails(tmp_path: Path) -> None:
    """Of the two runs that trained, cosines are not below 0; a measure that is always 2 is the control's too."""
    report = {path: path.stat().st_mtime_ns for path in (ROOT / "report").rglob("*")}
    text = stated(measure="constant", accepted="(1, 3)", settings=repr(SHORT), cosine="(-1.0, 0.0)")
    done = run(tmp_path, text=text)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    assert {name: row["verdict"] for name, row in found.items()}["constant"] == "uninformative"
    assert (found["cosine"]["verdict"], found["cosine"]["reading_says"]) == ("provisional", "contradicted")
    assert json.loads(found["cosine"]["trained"]) == [True, False, True]
    assert (found["cosine"]["n"], found["cosine"]["runs"]) == ("2", "3")
    assert "provisional (contradicted at n = 2), of the 2 of 3 runs that trained: A small one" in done.stdout
    distances = {}
    for cell in (found["cosine"]["cells"]).split():
        for row in csv.DictReader((tmp_path / "runs" / cell / layout.ALGORITHM_DISTANCE).read_text().splitlines()):
            if (row["step"], row["row"]) == ("final", "tf"):
                distances[cell, row["column"], row["measure"]] = float(row["value"] or "nan")
    trained = found["cosine"]["cells"].split()[:3]
    expected = [distances[cell, "best_step", "cosine"] for cell in trained]
    np.testing.assert_allclose(json.loads(found["cosine"]["values"]), expected)
    of_two = np.arctanh([expected[0], expected[2]]).mean()
    assert float(found["cosine"]["mean"]) == pytest.approx(np.tanh(of_two))
    others = ("gd", "conjugate_gradients", "newton_schulz", "ridge", "zero")
    expected = [
        distances[cell, "best_step", "difference"] / min(distances[cell, name, "difference"] for name in others)
        for cell in trained
    ]
    np.testing.assert_allclose(json.loads(found["nearest"]["values"]), expected)
    page = (tmp_path / "out/mine.md").read_text()
    assert page.startswith("# A small one\n\n**Provisional (contradicted at n = 2), of the 2 of 3 runs that trained**")
    for word in ("contradicted", "uninformative", "provisional"):
        assert f"\n| {word} | {MEANINGS[word]} |\n" in page
    assert f"| {MEANINGS['reproduced']} |" not in page
    assert "the same networks untrained" in page
    assert "2 of 3 runs trained (14 to 98 % of such runs do, at 90 %): cosine of sensitivities at least 0.6" in page
    for link in re.findall(r"\]\(([^)]+)\)", page):
        assert (tmp_path / "out" / link).exists(), link
    assert {"distances.png", "over_training.png"} <= {path.name for path in (tmp_path / "out/mine").iterdir()}
    for name, key in (("distances", ("tf", "gd")), ("over_training", ("gd", "300"))):
        table = list(csv.DictReader((tmp_path / "out/mine" / f"{name}.csv").read_text().splitlines()))
        measures = [row["measure"] for row in table if tuple(row.values())[:2] == key]
        assert measures == ["cosine", "difference", "loss_ratio"], name
        assert {row["seeds"] for row in table if tuple(row.values())[:2] == key} == {"2"}, name
    assert "not committed" in page
    assert {path: path.stat().st_mtime_ns for path in (ROOT / "report").rglob("*")} == report
    weights = {path: path.stat().st_mtime_ns for path in tmp_path.glob("runs/*/params.safetensors")}
    done = run(tmp_path, text=stated(cosine="(-1.0, 1.0)", settings=repr(SHORT)))
    assert len(weights) == 6
    assert done.returncode == 0, done.stderr
    assert weights == {path: path.stat().st_mtime_ns for path in weights}  # another range trains nothing again
    history = list(csv.DictReader((tmp_path / "out/mine/history.csv").read_text().splitlines()))
    assert len({row["file_hash"] for row in history}) == 2
    assert "## Earlier verdicts" in (tmp_path / "out/mine.md").read_text()
    (tmp_path / "out/mine.md").write_text("mine")
    done = run(tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert (tmp_path / "out/mine.md").read_text() == "mine"
    (tmp_path / "out/claims.csv").write_text("")
    assert "has the results of the studies" in run(tmp_path).stderr


@pytest.mark.slow
def test_killed_it_goes_on_and_ends_with_the_same_numbers(tmp_path: Path) -> None:
    text = stated(settings=repr(SMALL | {"steps": 4000}))
    for name in ("killed", "whole"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mine.py").write_text(text)
    folder = tmp_path / "killed"
    words = ("--checkpoint_seconds", "0")
    killed = subprocess.Popen(
        line(folder, *words), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True
    )
    deadline = time.monotonic() + 300
    while not list(folder.glob("runs/*/checkpoints/*.safetensors")) and time.monotonic() < deadline:
        time.sleep(0.02)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    assert not (folder / "out").exists()
    for name in ("killed", "whole"):
        done = run(tmp_path / name)
        assert done.returncode == 0, done.stderr
    found, expected = (
        {name: row["values"] for name, row in rows(tmp_path / name).items()} for name in ("killed", "whole")
    )
    assert found == expected


TRUE_SETTINGS = SMALL | {"input_distribution": "stretched", "steps": 2500, "batch_size": 256, "lr": 5e-3}


@pytest.mark.slow
def test_preconditioned_descent_is_found_and_plain_descent_contradicted(tmp_path: Path) -> None:
    """Two coordinates of variance 1 and two of 1/4; with one of 1 alone, some seeds stop at a layer of rank one."""
    settings = repr(TRUE_SETTINGS | {"schedule": "cosine", "test_tasks": 2000})
    verdicts = {}
    for algorithm in ("best_step", "gd"):
        shutil.rmtree(tmp_path / "out", ignore_errors=True)
        text = stated(algorithm, settings=settings, loss_ratio="(0.97, 1.03)", cosine="(0.99, 1.0)")
        done = run(tmp_path, text=text)
        assert done.returncode == 0, done.stderr
        assert {row["verdict"] for row in rows(tmp_path).values()} <= {"provisional", "undecided", "uninformative"}
        verdicts[algorithm] = {name: row["reading_says"] for name, row in rows(tmp_path).items()}
    assert set(verdicts["best_step"].values()) == {"as predicted"}
    assert verdicts["gd"]["nearest"] == "contradicted"
    assert verdicts["gd"]["cosine"] == "contradicted"


OTHERS = {  # of each other family: what is stated, and what is measured
    "tiny": ("algorithm='dmmse'", "loss_ratio=(0.5, 2)", {"num_tasks": 2}, {"loss_ratio", "nearest"}),
    "linear": ("algorithm='gd'", "cosine=(0.5, 1)", {"num_layers": 1, "num_queries": 3}, {"cosine", "nearest"}),
    "sine": ("algorithm='mean_label'", "loss_ratio=(0.5, 2)", {}, {"loss_ratio", "nearest"}),
    "languages": ("algorithm='optimum'", "cosine=(0.5, 1)", {"snapshots": True}, {"cosine", "nearest"}),
    "autoencoder": ("measure=steps", "accepted=(0, 100)", {}, {"steps"}),
}
OF_OTHERS = """import jax.numpy as jnp
from icl_lab.lab import plugins

@plugins.baseline("mean_label")
def mean_label(batch, config):
    return jnp.broadcast_to(batch.y.mean(axis=1).reshape(-1, *[1] * (batch.y_query.ndim - 1)), batch.y_query.shape)

def steps(run):
    return run.name.count("_")

plugins.conjecture("It does.", model={model!r}, settings={settings}, seeds=3, {algorithm}, {accepted})
"""


@pytest.mark.slow
@pytest.mark.parametrize("model", OTHERS)
def test_a_conjecture_of_another_family_is_tested(model: str, tmp_path: Path) -> None:
    """Two steps train nothing, which the verdict says; the values of each seed and distances of each run are there."""
    algorithm, accepted, settings, measured = OTHERS[model]
    sizes = {"steps": 2, "eval_every": 1, "batch_size": 16, "eval_tasks": 32}
    sizes |= {} if model == "autoencoder" else {"test_tasks": 40}
    text = OF_OTHERS.format(model=model, settings=sizes | settings, algorithm=algorithm, accepted=accepted)
    done = run(tmp_path, text=text)
    assert done.returncode == 0, done.stderr
    found = rows(tmp_path)
    assert {*found} == measured
    assert {row["verdict"] for row in found.values()} == {"undecided"}
    assert "as no run trained" in done.stdout
    for row in found.values():
        assert len([value for value in json.loads(row["values"]) if value is not None]) == 3
    page = (tmp_path / "out/mine.md").read_text()
    assert "0 of 3 runs trained (0 to 63 % of such runs do, at 90 %)" in page
    tables = [*(tmp_path / "runs").glob(f"*/{layout.ALGORITHM_DISTANCE}")]
    assert len(tables) == (0 if model == "autoencoder" else 6)


def test_words_that_are_no_study_and_no_file_are_said(tmp_path: Path) -> None:
    for words, said in (("stagez", "did you mean stages"), ("mine.py --claims a", "plugin mine.py: it does not exist")):
        done = processes.command("studies.run", *words.split())
        assert (done.returncode, done.stdout) == (2, "")
        assert said in done.stderr


@pytest.mark.slow
def test_the_example_of_the_page_runs_as_it_stands_there_but_for_its_size(tmp_path: Path) -> None:
    page = (ROOT / "docs/extending.md").read_text()
    (text,) = re.findall(r"```python my/anisotropic.py\n(.*?)```", page, re.S)
    assert len(text.splitlines()) <= 60
    assert "python -m studies.run my/anisotropic.py\n" in page
    for long, short in {
        '"steps": 2500': '"steps": 20',
        "seeds=8": "seeds=3",
        '"batch_size": 512': '"batch_size": 32',
    }.items():
        assert text.count(long) == 1
        text = text.replace(long, short)
    done = run(tmp_path, text=text)
    assert done.returncode == 0, done.stderr
    assert set(rows(tmp_path)) == {"loss_ratio", "cosine", "nearest"}
    assert rows(tmp_path)["cosine"]["because"] == "no run learnt"  # 20 steps are none


@pytest.mark.parametrize(("measure", "value"), [("cosine", 8.5), ("difference", -0.1), ("loss_ratio", -1.0)])
def test_a_distance_that_its_measure_cannot_have_is_refused(measure: str, value: float, tmp_path: Path) -> None:
    line = {"step": "final", "row": "tf", "column": "gd", "measure": measure, "value": value, "reason": ""}
    write_csv(tmp_path / layout.ALGORITHM_DISTANCE, [line])
    with pytest.raises(StoreError, match=f"has a {measure} that is not between"):
        conjecture.table_of(tmp_path)
    write_csv(tmp_path / layout.ALGORITHM_DISTANCE, [line | {"value": 0.5}])
    assert len(conjecture.table_of(tmp_path)) == 1


# --- verdicts ---

OF_COSINES = Conjecture(
    "A cosine of .9 or more", "gd", "lsa1", {}, 8, None, (0.9, 1.0), None, None, "linear", None, "mine.py", 1
)
ABOVE = (0.93, 0.931, 0.932, 0.933, 0.934, 0.935, 0.936, 0.937)


def judged(*values: float) -> dict[str, object]:
    """What is judged of these cosines, beside untrained networks near 0."""
    (cosine, _) = conjecture._claims(OF_COSINES, Path("mine.py"))
    seeds, control = tuple(range(len(values))), (0.01, -0.02, 0.03)
    found = judge(cosine, Measurement(values, seeds, 1.0, "", "", "", control_values=control))
    return {"verdict": found.verdict, "reading_says": found.says, "because": found.because, "n": len(values)}


def test_a_prediction_of_fewer_than_eight_seeds_is_provisional() -> None:
    assert judged(*ABOVE)["verdict"] == "as predicted"
    assert [judged(*ABOVE[:3])[name] for name in ("verdict", "reading_says")] == ["provisional", "as predicted"]


def test_a_prediction_is_judged_by_the_runs_that_trained() -> None:
    """Two of ten are stuck near 0: the share first, then the mean and t interval of the others."""
    values, seeds = (0.05, *ABOVE, -0.1), tuple(range(10))
    of_all = Measurement(values, seeds, 1.0, "", "", "", control_values=(0.01, -0.02, 0.03))
    met = {seed: 0 < seed < 9 for seed in seeds}
    (cosine, _) = conjecture._claims(OF_COSINES, Path("mine.py"))
    found = judge(cosine._replace(among=bool), of_those_that_trained(of_all, met))
    assert (found.verdict, found.n_all) == ("as predicted", 10)
    on_scale = np.arctanh(ABOVE)
    half = stats.t.ppf(0.95, 7) * on_scale.std(ddof=1) / math.sqrt(8)
    np.testing.assert_allclose(found.interval[:3], np.tanh(on_scale.mean() + np.array([0, -half, half])))
    assert judge(cosine, of_all).verdict != "as predicted"
    row = {"claim": "cosine", "seeds": json.dumps(seeds), "values": json.dumps(values)}
    seen = by_seed([row], met)
    assert (seen.num_trained, seen.defined, seen.values[9]) == (8, True, {"cosine": -0.1})
    np.testing.assert_allclose(
        [seen.share.low, seen.share.high], [stats.beta.ppf(0.05, 8, 3), stats.beta.ppf(0.95, 9, 2)]
    )


def test_where_no_criterion_can_say_all_runs_count_and_a_missing_value_is_not_left_out() -> None:
    of_all = Measurement((0.9, math.nan, None, 0.8), (0, 1, 2, 3), 1.0, "", "", "")
    assert of_those_that_trained(of_all, dict.fromkeys(range(4))).values == (0.9, None, None, 0.8)
    found = of_those_that_trained(of_all, {0: True, 1: False, 2: True, 3: None}).values
    assert (found[0], found[2], found[3]) == (0.9, None, 0.8)
    assert math.isnan(found[1] or 0)
    assert not by_seed([], dict.fromkeys(range(4))).defined


def test_of_runs_that_did_not_train_nothing_is_said() -> None:
    of_all = Measurement(ABOVE, tuple(range(8)), 1.0, "", "", "", control_values=(0.01, -0.02, 0.03))
    (cosine, _) = conjecture._claims(OF_COSINES, Path("mine.py"))
    found = judge(cosine._replace(among=bool), of_those_that_trained(of_all, dict.fromkeys(range(8), False)))
    assert (found.verdict, found.because) == ("undecided", "no run learnt")
    line = {"verdict": "undecided", "reading_says": "undecided", "n": 0, "runs": 8}
    assert in_words(line) == "undecided, as no run trained"
    assert in_words(line | {"n": 5}) == "undecided, of the 5 of 8 runs that trained"


def test_the_control_has_as_many_seeds_as_the_conjecture(monkeypatch: pytest.MonkeyPatch) -> None:
    stated_one = Conjecture("It does.", "gd", "lsa1", {}, 8, None, (0.9, 1.0), None, None, "linear", None, "mine.py", 1)
    for control, name in ((None, "trained_untrained"), ({"lr": 1e-9}, conjecture.CONTROL)):
        monkeypatch.setattr(conjecture, "CONJECTURES", {"mine": stated_one._replace(control=control)})
        study = conjecture.study_of("mine", Path("mine.py"), "quick")
        assert [*study.runs] == [conjecture.TRAINED, name]
        assert [len(runs.seeds) for runs in study.runs.values()] == [8, 8]


def test_a_prediction_of_two_kinds_of_runs_is_not_judged_by_their_mean() -> None:
    """Four runs above .93 and four above .98: all lie in the range, and none near their mean."""
    found = judged(*ABOVE[:4], *(value + 0.055 for value in ABOVE[4:]))
    assert found["verdict"] == "undecided"
    assert "its runs are of two kinds" in str(found["because"])


@pytest.mark.parametrize(
    ("words", "n", "verdict", "says"),
    [
        (("as predicted", "as predicted"), 8, "as predicted", "as predicted"),
        (("as predicted", "contradicted"), 8, "contradicted", "contradicted"),
        (("uninformative", "contradicted"), 8, "contradicted", "contradicted"),
        (("as predicted", "uninformative", "undecided"), 8, "uninformative", "uninformative"),
        (("as predicted", "undecided"), 8, "undecided", "undecided"),
        (("as predicted", "as predicted"), 3, "provisional", "as predicted"),
        (("as predicted", "contradicted"), 7, "provisional", "contradicted"),
        (("as predicted", "uninformative"), 3, "uninformative", "uninformative"),
    ],
)
def test_a_conjecture_is_contradicted_by_one_prediction_and_borne_out_by_all(
    words: tuple[str, ...], n: int, verdict: str, says: str
) -> None:
    decided = ("as predicted", "contradicted")
    rows = [
        {"verdict": "provisional" if n < 8 and word in decided else word, "reading_says": word, "n": n}
        for word in words
    ]
    assert together(rows) == {"verdict": verdict, "reading_says": says}


def test_the_history_of_an_earlier_version_is_read_with_its_words(tmp_path: Path) -> None:
    """Its file has no column for what the numbers say, and words that are used no more."""
    old = {"date": "2026-01-01", "file_commit": "", "profile": "quick", "accepted": "cosine 0.9 to 1", "n": 3}
    earlier = [old | {"file_hash": key, "verdict": key} for key in ("reproduced", "not counted")]
    (tmp_path / "history.csv").write_bytes(csv_bytes(earlier))
    new = old | {"file_hash": "new", "verdict": "provisional", "reading_says": "as predicted", "runs": 3}
    found = _history(tmp_path / "history.csv", new)
    assert [in_words(row) for row in found] == ["reproduced", "not counted", "provisional (as predicted at n = 3)"]
    (tmp_path / "history.csv").write_bytes(csv_bytes(found))
    assert _history(tmp_path / "history.csv", new) == found
