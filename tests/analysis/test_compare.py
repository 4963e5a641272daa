"""Runs side by side: the table is of the runs, and there is a mean only where one makes sense."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.compare import COLUMNS, compare
from icl_lab.store import StoreError, layout
from tests.runners.tiny import Workshop, copied


def changed(run: Path, to: Path, section: str = "", **values: object) -> Path:
    """A copy of a run with other values in its config and a cosine of its own."""
    out = copied(run, to)
    config, summary = (json.loads((out / name).read_text()) for name in (layout.CONFIG, layout.SUMMARY))
    (config[section] if section else config).update(values)
    summary["alignment"]["model_cos"] += 0.25
    (out / layout.CONFIG).write_text(json.dumps(config))
    (out / layout.SUMMARY).write_text(json.dumps(summary))
    return out


def rows(text: str) -> dict[str, list[float]]:
    """The table's rows of numbers, by name."""
    return {name: [float(cell) for cell in numbers] for name, (*numbers, _) in cells(text).items()}


def left(text: str) -> dict[str, str]:
    """What the table says of the plateau, by name."""
    return {name: last for name, (*_, last) in cells(text).items()}


def cells(text: str) -> dict[str, list[str]]:
    """The table's cells, each of 14 characters, by the name of the row."""
    width = 14 * (len(COLUMNS) + 1)
    lines = text.splitlines()[1:]
    return {
        line[:-width].strip(): [line[start - width :][:14].strip() for start in range(0, width, 14)] for line in lines
    }


def test_seeds_of_one_experiment_have_a_mean(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    other = changed(lsa1_run, tmp_path / "other", data_seed=5, init_seed=6)
    done = workshop.run("analysis.compare", lsa1_run, other)
    assert done.returncode == 0, done.stderr
    found = rows(done.stdout)
    assert list(found) == [str(lsa1_run), str(other), "mean", "± 95 %"]
    summary = json.loads((lsa1_run / layout.SUMMARY).read_text())
    headline, align = summary["headline"], summary["alignment"]
    losses = [headline[name] for name in ("loss_ratio", "tf_loss", "gd_loss")]
    expected = [*losses, *(align[name] for name in ("model_cos", "preds_diff", "model_diff"))]
    np.testing.assert_allclose(found[str(lsa1_run)], expected, atol=6e-5)
    differs = [name == "cosine" for name in COLUMNS]
    np.testing.assert_allclose(found[str(other)], np.array(expected) + 0.25 * np.array(differs), atol=6e-5)
    np.testing.assert_allclose(found["mean"], np.array(expected) + 0.125 * np.array(differs), atol=6e-5)
    half_width = 12.706 * 0.125  # t of one degree of freedom; the standard error of two values is half their distance
    told = left(done.stdout)
    assert [told[name] for name in (str(lsa1_run), str(other), "mean")] == ["NO", "NO", "0 of 2"]
    np.testing.assert_allclose(found["± 95 %"], half_width * np.array(differs), atol=1e-3)


def test_a_run_that_has_trained_is_told_apart(lsa1_run: Path, tmp_path: Path) -> None:
    """By the numbers of its summary, which an earlier version may have written without a word of it."""
    other = changed(lsa1_run, tmp_path / "other", data_seed=5, init_seed=6)
    summary = json.loads((other / layout.SUMMARY).read_text())
    del summary["trained"], summary["one_step"]
    summary["alignment"]["align_cos"] = 0.6
    summary["headline"]["tf_loss"] = 0.0
    (other / layout.SUMMARY).write_text(json.dumps(summary))
    assert list(left(compare([lsa1_run, other])).values()) == ["NO", "yes", "1 of 2", ""]


@pytest.mark.parametrize(("section", "values"), [("training", {"lr": 0.5}), ("", {"eval_tasks": 7})])
def test_runs_of_different_experiments_have_none(
    lsa1_run: Path, tmp_path: Path, section: str, values: dict[str, object]
) -> None:
    other = changed(lsa1_run, tmp_path / "other", section, **values)
    assert list(rows(compare([lsa1_run, other]))) == [str(lsa1_run), str(other)]
    assert list(rows(compare([lsa1_run]))) == [str(lsa1_run)]


@pytest.mark.parametrize("content", ["{}", '{"headline": 3}', "[1]", "{broken"])
def test_a_summary_of_another_schema_is_refused(lsa1_run: Path, tmp_path: Path, content: str) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    (run / layout.SUMMARY).write_text(content)
    with pytest.raises(StoreError, match=r"run/metrics_summary\.json"):
        compare([run])
