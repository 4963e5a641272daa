"""No run is called trained by a number that could not be computed: plateaus of families, and layers."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import layerwise
from icl_lab.analysis.trained import with_verdict
from icl_lab.lab.registries import FAMILIES
from icl_lab.store.atomic import write_json
from icl_lab.store.readers import read_json
from tests.verdicts.values import NOT_COMPUTED, NOT_FINITE

# family -> a summary of a run that has trained, and the numbers of it that this follows from
SUMMARIES: dict[str, tuple[dict[str, Any], list[tuple[Any, ...]]]] = {
    "layerwise": (
        {
            "layerwise": {
                "rolled_out": False,
                "trimmed_mean": [30.0, 10.0],
                "references": {"zero": {"mse": [20.0]}},
            }
        },
        [("layerwise", "trimmed_mean", 1), ("layerwise", "references", "zero", "mse", 0)],
    ),
    "sine": ({"headline": {"loss": 0.01, "zero_loss": 0.05}}, [("headline", "loss"), ("headline", "zero_loss")]),
    "diversity": (
        {"eval_id_errors": [2.0, 1.0], "headline": {"id_tf_loss": 1.0, "id_zero_loss": 2.0, "id_ridge_loss": 1.5}},
        [("eval_id_errors", 0), ("eval_id_errors", 1), ("headline", "id_zero_loss"), ("headline", "id_ridge_loss")],
    ),
    "regression": (
        {
            "alignment": {"align_cos": 0.99},
            "headline": {"tf_loss": 0.21},
            "one_step": {"loss": 0.2, "zero_loss": 0.4, "align_cos": 1.0},
        },
        [
            ("alignment", "align_cos"),
            ("headline", "tf_loss"),
            *(("one_step", name) for name in ("loss", "zero_loss", "align_cos")),
        ],
    ),
    "autoencoder": ({"headline": {"symbol_accuracy": 0.99}}, [("headline", "symbol_accuracy")]),
    "languages": (
        {"headline": {"loss": 0.1, "no_context_loss": 0.5}},
        [("headline", "loss"), ("headline", "no_context_loss")],
    ),
    "functions": ({"headline": {"id_scale": 0.9}}, [("headline", "id_scale")]),
}


def replaced(summary: dict[str, Any], path: tuple[Any, ...], value: float | None) -> dict[str, Any]:
    changed = copy.deepcopy(summary)
    inside = changed
    for key in path[:-1]:
        inside = inside[key]
    inside[path[-1]] = value
    return changed


@pytest.mark.parametrize("value", NOT_COMPUTED)
@pytest.mark.parametrize("family", SUMMARIES)
def test_no_family_has_trained_by_a_number_that_is_not_computed(family: str, value: float | None) -> None:
    summary, paths = SUMMARIES[family]
    config = FAMILIES[family].config()
    assert with_verdict(config, summary)["trained"]["met"] is True
    for path in paths:
        assert with_verdict(config, replaced(summary, path, value))["trained"]["met"] is not True, path


@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_roll_out_overlaps_and_no_stack_is_trained_by_a_number_that_is_not_computed(value: float) -> None:
    near, losses = np.array([1.0, 1.01]), np.array([2.0, 1.0])
    assert layerwise.verdict(True, near, losses, 3.0) == "overlaps gradient descent"
    assert layerwise.verdict(True, np.array([value, 1.0]), losses, 3.0) != "overlaps gradient descent"
    assert layerwise.verdict(False, near, losses, 3.0) == "trained, decreasing with depth"
    assert layerwise.verdict(False, near, np.array([2.0, value]), 3.0) == "did not train"
    assert layerwise.verdict(False, near, np.array([value, 1.0]), 3.0) == "trained"
    assert layerwise.verdict(False, near, losses, value) == layerwise.NOT_COMPUTED


def test_no_layers_have_no_verdict_and_one_has_no_order() -> None:
    none = np.array([])
    assert layerwise.verdict(True, none, none, 3.0) == layerwise.NOT_COMPUTED
    assert layerwise.verdict(True, np.array([np.nan]), none, 3.0) == layerwise.NOT_COMPUTED
    assert layerwise.verdict(False, none, none, 3.0) == layerwise.NOT_COMPUTED
    assert layerwise.verdict(False, none, np.array([1.0]), 3.0) == "trained"


def test_a_summary_as_it_is_written_has_null_and_no_pass(tmp_path: Path) -> None:
    summary, paths = SUMMARIES["sine"]
    write_json(tmp_path / "summary.json", replaced(summary, paths[0], np.inf))
    read = read_json(tmp_path / "summary.json")
    assert read["headline"]["loss"] is None
    assert with_verdict(FAMILIES["sine"].config(), read)["trained"]["met"] is False
