"""alignment.json of trained and of constructed runs, against closed forms in NumPy."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import alignment
from icl_lab.analysis.loaded_run import ComparedRun, load_compared
from icl_lab.families.regression.task import LOGGED
from icl_lab.src.batch import Batch
from icl_lab.store import StoreError, layout, readers
from icl_lab.store.params import write_params
from tests.doors import snapshot
from tests.runners.tiny import DIM, Workshop, copied, in_float64, tokens

ETA = 0.75


def layer_matrices(params: dict[str, dict[str, np.ndarray]]) -> tuple[np.ndarray, np.ndarray]:
    """M = W_Q W_K^T and the label column of W_V P: a linear layer without codes is nothing more."""
    part = params["layer_0/attention"]
    value = part["value"][:, 0] @ part["projection"][0]
    return part["query"][:, 0] @ part["key"][:, 0].T, value[:, DIM]


def layer_predictions(params: dict[str, dict[str, np.ndarray]], batch: Batch) -> tuple[np.ndarray, np.ndarray]:
    """Predictions [B] and sensitivities [B, D] of a linear layer in closed form.

    The query's label moves by sum_n (e_q M e_n)(e_n c), e_q = (x_q, 0), and the prediction is minus that, so it is
    linear in x_q: its sensitivity is -sum_n (M e_n)_x (e_n c).
    """
    matrix, column = layer_matrices(params)
    context = tokens(batch, "concatenated")[:, :-1]
    sensitivity = -np.einsum("du,bnu,bn->bd", matrix[:DIM], context, context @ column)
    return np.einsum("bd,bd->b", sensitivity, batch.x_query), sensitivity


def expected(run: Path, eta: float) -> dict[str, float]:
    """The alignment of a run of one linear layer with one step of gradient descent."""
    params, batch = in_float64(run)
    own, own_slope = layer_predictions(params, batch)
    slope = eta * np.einsum("bn,bnd->bd", batch.y, batch.x)
    descent = np.einsum("bd,bd->b", slope, batch.x_query)
    norms = np.linalg.norm(own_slope, axis=1) * np.linalg.norm(slope, axis=1)
    cosine = np.mean(np.sum(own_slope * slope, axis=1) / norms)
    return {
        "preds_diff": np.abs(own - descent).mean(),
        "l2_pred_diff": np.sqrt(np.mean((own - descent) ** 2)),
        "model_diff": np.linalg.norm(own_slope - slope, axis=1).mean(),
        "model_cos": cosine,
        "align_cos": cosine,
        "tf_loss": 0.5 * np.mean((own - batch.y_query) ** 2),
        "gd_loss": 0.5 * np.mean((descent - batch.y_query) ** 2),
    }


def stored(run: Path) -> dict[str, Any]:
    values: dict[str, Any] = json.loads((run / layout.ALIGNMENT).read_text())
    return values


def test_the_alignment_of_a_trained_layer_in_closed_form(lsa1_run: Path) -> None:
    found = stored(lsa1_run)
    for name, value in expected(lsa1_run, found["eta"]).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    assert (found["gd_steps"], found["tasks"]) == (1, 64)
    assert "256 separate" in found["eta_source"]
    assert 1.1 < found["eta"] < 1.6  # D = 4, N = 6: E tr S / E tr S^2 = 2 / 1.4833 = 1.348


def constructed(run: Path, to: Path, eta: float) -> Path:
    """A run whose layer is one step of gradient descent, in a basis that training would not find.

    W_K^T W_Q = diag(I, 0) and P W_V = diag(0, -eta) are all that matters: keys are turned by a rotation and queries by
    the same, and a factor moves from the products of one to those of the other.
    """
    rotation = np.linalg.qr(np.random.default_rng(0).normal(size=(DIM + 1, DIM + 1)))[0]
    inputs, label = np.diag([1.0] * DIM + [0.0]), np.diag([0.0] * DIM + [1.0])
    weights = {
        "query": (3 * inputs @ rotation)[:, None],
        "key": (inputs @ rotation)[:, None],
        "value": (-label @ rotation)[:, None],
        "projection": (rotation.T @ label * eta / 3)[None],
    }
    out = copied(run, to)
    write_params(out, {"layer_0/attention": {name: w.astype(np.float32) for name, w in weights.items()}}, {})
    return out


@pytest.fixture(scope="module")
def construction(lsa1_run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return constructed(lsa1_run, tmp_path_factory.mktemp("constructed") / "run", ETA)


def test_the_command_finds_that_the_construction_is_gradient_descent(construction: Path, workshop: Workshop) -> None:
    before = (construction / layout.SUMMARY).read_bytes()
    done = workshop.run("analysis.alignment", "--run", construction, "--eta", ETA)
    found = stored(construction)
    assert done.returncode == 0, done.stderr
    assert found["preds_diff"] < 1e-6
    assert found["l2_pred_diff"] < 1e-6
    assert found["model_diff"] < 1e-5
    assert abs(found["model_cos"] - 1) < 1e-6
    assert abs(found["tf_loss"] - found["gd_loss"]) < 1e-7
    assert (found["eta"], found["eta_source"]) == (ETA, "given")
    assert dict(line.split(maxsplit=1) for line in done.stdout.splitlines())["eta"] == str(ETA)
    assert (construction / layout.SUMMARY).read_bytes() == before


def test_at_another_step_size_it_is_a_multiple_of_gradient_descent(construction: Path, tmp_path: Path) -> None:
    run = copied(construction, tmp_path / "run")
    alignment.write(load_compared(run, 2 * ETA))
    found = stored(run)
    for name, value in expected(run, 2 * ETA).items():
        np.testing.assert_allclose(found[name], value, rtol=1e-4, atol=1e-6, err_msg=name)
    assert abs(found["model_cos"] - 1) < 1e-6
    assert found["preds_diff"] > 0.1


def test_the_curve_is_written_again_from_the_metrics(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.ALIGNMENT_CURVE).unlink()
    assert workshop.run("analysis.alignment", "--run", run).returncode == 0
    for name in (layout.ALIGNMENT_CURVE, layout.ALIGNMENT):
        assert (run / name).read_bytes() == (lsa1_run / name).read_bytes()


def written_curve(run: Path, count: int, loaded: ComparedRun) -> list[str]:
    """The lines of the curve of a run with so many records, more text than is read of a file at once."""
    fields = ", ".join(f'"{name}": 0.5' for name in ("train_loss", "eval_loss", *(f"eval_{name}" for name in LOGGED)))
    with open(run / layout.METRICS, "w") as file:
        file.writelines(f'{{"step": {step}, {fields}, "more": "{"x" * 200}"}}\n' for step in range(count))
    alignment.write(loaded, {})
    return (run / layout.ALIGNMENT_CURVE).read_text().splitlines()


@pytest.mark.parametrize(
    ("count", "largest"), [(2_000, 10_000), pytest.param(10**6, readers.LARGEST_TEXT, marks=pytest.mark.slow)]
)
def test_the_curve_has_every_record_however_many(
    count: int, largest: int, construction: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = copied(construction, tmp_path / "run")
    loaded = load_compared(run, ETA)
    monkeypatch.setattr(readers, "LARGEST_TEXT", largest)
    lines = written_curve(run, count, loaded)
    assert (run / layout.METRICS).stat().st_size > largest
    assert lines[0] == "step,preds_diff,model_diff,model_cos,tf_loss,gd_loss"
    assert lines[1:] == [f"{step},0.5,0.5,0.5,0.5,0.5" for step in range(count)]


@pytest.mark.parametrize("name", [layout.PARAMS, layout.ANALYSIS_BATCH])
def test_a_run_with_a_broken_file_is_refused_by_name(lsa1_run: Path, tmp_path: Path, name: str) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / name).write_bytes((run / name).read_bytes()[:200])
    with pytest.raises(StoreError, match=f"run/{name} cannot be read"):
        load_compared(run)
    (run / name).unlink()
    with pytest.raises(StoreError, match=f"run/{name} does not exist"):
        load_compared(run)


@pytest.mark.parametrize("eta", ["1e38", "1e39", "1e-300"])
def test_a_step_size_that_overflows_is_refused_and_the_files_stay(
    lsa1_run: Path, workshop: Workshop, tmp_path: Path, eta: str
) -> None:
    """1e-300 is 0 in float32, where the slope of predictions on zero is not a number."""
    run = copied(lsa1_run, tmp_path / "run")
    before = snapshot(run)
    done = workshop.run("analysis.alignment", "--run", run, "--eta", eta)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert f"eta is {float(eta)}" in done.stderr or f"argument --eta: '{eta}' is not a number" in done.stderr
    assert snapshot(run) == before
