"""A transformer beside its control: the numbers are those of their predictions on common tasks."""

import json
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.compare_sine import measure
from icl_lab.analysis.loaded_run import load_run
from icl_lab.families.sine.task import make_test_batch
from icl_lab.plots.sines import draw_functions
from icl_lab.store import StoreError, layout
from tests.runners.tiny import Workshop, copied


@pytest.mark.slow
def test_the_command_compares_on_the_headline_tasks(
    sine_run: Path, control_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(sine_run, tmp_path / "run")
    done = workshop.run("analysis.compare_sine", run, control_run)
    assert done.returncode == 0, done.stderr
    found = json.loads((run / layout.SINE_COMPARISON).read_text())
    tf, control = load_run(run), load_run(control_run)
    batch = make_test_batch(tf.config)
    target = np.asarray(batch.y_query, np.float64)
    own, other = (np.asarray(each.model.predict(each.params, batch), np.float64) for each in (tf, control))
    errors = 0.5 * (own - target) ** 2, 0.5 * (other - target) ** 2
    np.testing.assert_allclose([found["tf_loss"], found["control_loss"]], [e.mean() for e in errors], rtol=1e-5)
    np.testing.assert_allclose(found["loss_difference"], (errors[0] - errors[1]).mean(), rtol=1e-5)
    error = (errors[0] - errors[1]).std(ddof=1) / np.sqrt(200)
    np.testing.assert_allclose(found["loss_difference_se"], error, rtol=1e-5)
    np.testing.assert_allclose(found["loss_ratio"], errors[0].mean() / errors[1].mean(), rtol=1e-5)
    np.testing.assert_allclose(found["preds_diff"], np.abs(own - other).mean(), rtol=1e-5)
    slopes = []  # by central differences
    for each in (tf, control):
        ahead, behind = (
            np.asarray(each.model.predict(each.params, batch._replace(x_query=batch.x_query + step)), np.float64)
            for step in (1e-2, -1e-2)
        )
        slopes.append((ahead - behind) / 2e-2)
    np.testing.assert_allclose(found["model_diff"], np.abs(slopes[0] - slopes[1]).mean(), rtol=1e-2)
    assert found["model_cos"] == pytest.approx(np.mean(np.sign(slopes[0]) * np.sign(slopes[1])), abs=0.03)
    assert f"tf_loss              {found['tf_loss']:.6g}\n" in done.stdout
    assert "half" in found["loss_convention"]
    assert (run / layout.FIGURES / "sine_comparison.png").exists()
    table = np.genfromtxt(run / layout.SINE_COMPARISON_FUNCTIONS, delimiter=",", names=True)
    for name, of in {"tf": run, "control": control_run}.items():
        functions = np.genfromtxt(of / layout.SINE_FUNCTIONS, delimiter=",", names=True)
        for when in ("before", "after"):
            np.testing.assert_array_equal(table[f"{name}_{when}"], functions[when])


def test_what_cannot_be_compared_is_refused(sine_run: Path, control_run: Path, lsa1_run: Path, tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="is a run of the family regression, not of sine"):
        measure(lsa1_run, control_run)
    with pytest.raises(StoreError, match="is a control; the transformer's run comes first"):
        measure(control_run, sine_run)
    with pytest.raises(StoreError, match="is no control"):
        measure(sine_run, sine_run)
    other = copied(control_run, tmp_path / "other")
    config = json.loads((other / layout.CONFIG).read_text())
    config["data"]["amplitude_high"] = 5.0
    (other / layout.CONFIG).write_text(json.dumps(config))
    with pytest.raises(StoreError, match="were trained on different distributions of sines"):
        measure(sine_run, other)
    assert not (sine_run / layout.SINE_COMPARISON).exists()


@pytest.mark.parametrize("content", ["{}", '{"amplitude": "text"}', "[1]", "{broken"])
def test_facts_of_another_schema_are_refused(sine_run: Path, tmp_path: Path, content: str) -> None:
    run = copied(sine_run, tmp_path / "run")
    (run / layout.SINE_FUNCTIONS_FACTS).write_text(content)
    with pytest.raises(StoreError, match=r"run/analysis/sine_functions\.json"):
        draw_functions(run)
