"""Distances between predictors: identities in float64, closed forms, and the command from a run to its table."""

from functools import partial
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pandas as pd
import pytest
from jax.tree_util import Partial
from scipy.stats import sem

from icl_lab.analysis.algorithm_distance import Response, distance, response
from icl_lab.analysis.loaded_run import ComparedRun, baselines_of
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gradient_descent import gd, gd_plus_plus
from icl_lab.baselines.step_sizes import best_step_sizes, guarded, spectrum_of
from icl_lab.families.regression.baselines import names_of, step_sizes_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import GradientDescent, make_model, step_size_batch
from icl_lab.src.batch import Batch
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.src.registries import ALGORITHM, ALWAYS, BASELINES, Baseline
from icl_lab.store import layout
from icl_lab.store.readers import read_json
from tests import reference
from tests.runners.tiny import LSA1, RECORDED, Workshop, copied

ALGORITHMS = names_of(ALWAYS, ALGORITHM)
DATA = DataConfig(dim=4, num_pairs=6)


def loaded_of(**model: Any) -> ComparedRun:
    """A run of a constructed stack: c = .05 and gamma = .01 in every layer."""
    config = RegressionConfig(data=DATA, model=ModelConfig(**model), step_size_tasks=256)
    params = gd_params(config.architecture, 0.05, 0.01)
    steps = GradientDescent(config.model.num_layers, 0.05, "given")
    return ComparedRun(Path("run"), config, make_model(config), params, batch_of(0), steps)


def batch_of(seed: int) -> Batch:
    return Batch(*map(jnp.asarray, reference.random_batch(seed, size=40)))


def is_at(one: Response, other: Response, targets: np.ndarray) -> bool:
    """Whether two responses have distance 0: cosine 1, no difference, ratio 1, and no standard errors."""
    values = distance(one, other, targets)
    expected = {"cosine": (1, 0), "difference": (0, 0), "loss_ratio": (1, 0)}
    return all(np.allclose(values[name], pair, rtol=1e-10, atol=1e-10) for name, pair in expected.items())


@pytest.mark.parametrize("recurrent", [False, True])
@pytest.mark.parametrize("gamma", [0.0, 0.02])
def test_a_constructed_stack_is_its_algorithm(recurrent: bool, gamma: float, x64: None) -> None:
    """Three layers are three steps of gradient descent or of GD++, and not of the other."""
    config = RegressionConfig(data=DATA, model=ModelConfig(num_layers=3, recurrent=recurrent))
    batch = batch_of(1)
    targets = np.asarray(batch.y_query)
    params = gd_params(config.architecture, 0.05, gamma)
    stack = response(Partial(make_model(config).predict, params), batch)
    descends = response(Partial(partial(gd, step_size=0.05, steps=3)), batch)
    plus_plus = response(Partial(partial(gd_plus_plus, step_sizes=0.05, gammas=0.02, steps=3)), batch)
    assert is_at(stack, plus_plus if gamma else descends, targets)
    assert not is_at(stack, descends if gamma else plus_plus, targets)


def test_a_stack_with_own_step_sizes_is_descent_with_them(x64: None) -> None:
    loaded = loaded_of(num_layers=3)
    sizes = step_sizes_of(loaded.config, 3)
    x = np.asarray(step_size_batch(loaded.config).x)
    np.testing.assert_allclose(sizes, best_step_sizes(guarded(spectrum_of(x)), 3), rtol=1e-10)
    params = gd_params(loaded.config.architecture, sizes.tolist())
    stack = response(Partial(loaded.model.predict, params), loaded.batch)
    found = response(baselines_of(loaded, ("gd_own_steps",))["gd_own_steps"], loaded.batch)
    assert is_at(stack, found, np.asarray(loaded.batch.y_query))


def test_as_many_conjugate_gradients_as_dimensions_are_ridge(x64: None) -> None:
    """Without noise, where there are more pairs than dimensions."""
    found = baselines_of(loaded_of(num_layers=4, recurrent=True), ("conjugate_gradients", "ridge", "newton_schulz"))
    batch = batch_of(2)
    ends = [response(found[name], batch).predictions for name in ("conjugate_gradients", "ridge")]
    np.testing.assert_allclose(*ends, rtol=1e-6)
    assert np.abs(response(found["newton_schulz"], batch).predictions - ends[1]).max() > 0.1


def test_a_scaled_predictor_in_closed_form() -> None:
    """Cosine sign s, differences |1 - s| |f|, a ratio of losses; standard errors are SciPy's and a bootstrap's."""
    rng = np.random.default_rng(0)
    f, sensitivities, targets = rng.normal(size=2000), rng.normal(size=(2000, 3)), rng.normal(size=2000)
    one, other = Response(f, sensitivities), Response(-0.5 * f, -0.5 * sensitivities)
    values = distance(one, other, targets)
    np.testing.assert_allclose(values["cosine"], (-1, 0), atol=1e-12)
    np.testing.assert_allclose(values["difference"], (np.abs(1.5 * f).mean(), sem(np.abs(1.5 * f))), rtol=1e-10)
    losses, others = (f - targets) ** 2, (-0.5 * f - targets) ** 2
    assert values["loss_ratio"][0] == pytest.approx(losses.mean() / others.mean())
    picks = rng.integers(0, 2000, (2000, 2000))
    assert values["loss_ratio"][1] == pytest.approx(np.std(losses[picks].mean(1) / others[picks].mean(1)), rel=0.1)


def test_what_has_no_direction_or_no_loss_has_no_distance() -> None:
    rng = np.random.default_rng(1)
    targets = rng.normal(size=100)
    some = Response(rng.normal(size=100), rng.normal(size=(100, 3)))
    nothing = Response(np.zeros(100), np.zeros((100, 3)))
    solved = Response(targets + 1e-4, some.sensitivities)
    assert np.isnan(distance(some, nothing, targets)["cosine"]).all()
    assert np.isnan(distance(nothing, nothing, targets)["cosine"]).all()
    assert np.isnan(distance(some, solved, targets)["loss_ratio"]).all()
    assert distance(solved, some, targets)["loss_ratio"][0] < 1e-6


@pytest.mark.parametrize(
    ("model", "missing"),
    [
        (
            {"num_layers": 1},
            {
                "gd_own_steps": "with one step",
                "gd_plus_plus_paper": "several",
                "gd_plus_plus": "several",
                "gd_plus_plus_own_rates": "several",
            },
        ),
        ({"num_layers": 2}, {"gd_plus_plus_own_rates": "untied weights"}),
        ({"num_layers": 2, "recurrent": True}, {}),
    ],
)
def test_what_is_not_defined_says_why(
    model: dict[str, Any], missing: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    from icl_lab.baselines import gd_plus_plus

    for name in ("trained_gd_plus_plus", "fitted_gd_plus_plus"):
        monkeypatch.setattr(gd_plus_plus, name, lambda *_: Partial(jnp.zeros_like))
    found = baselines_of(loaded_of(**model))
    assert [*found] == [*ALGORITHMS]
    reasons = {name: value for name, value in found.items() if isinstance(value, str)}
    assert reasons.keys() == missing.keys()
    for name, word in missing.items():
        assert word in reasons[name]


@pytest.mark.parametrize("name", ["momentum", "chebyshev", "newton_schulz_identity"])
def test_solvers_on_an_interval_have_the_eigenvalues_of_each_context(name: str, x64: None) -> None:
    """Three steps by NumPy, one context at a time: the residual polynomial of its own smallest and largest."""
    batch = batch_of(3)
    predictions = response(baselines_of(loaded_of(num_layers=3), (name,))[name], batch).predictions
    for x, y, query, found in zip(batch.x, batch.y, batch.x_query, predictions, strict=True):
        values, vectors = np.linalg.eigh(np.asarray(x).T @ np.asarray(x))
        low, high = values[0], values[-1]
        if name == "momentum":
            size, beta = 4 / (low**0.5 + high**0.5) ** 2, ((high**0.5 - low**0.5) / (high**0.5 + low**0.5)) ** 2
            left, before = np.ones(4), np.ones(4)
            for _ in range(3):
                left, before = (1 + beta - size * values) * left - beta * before, left
        elif name == "chebyshev":
            at, top = (low + high - 2 * values) / (high - low), (low + high) / (high - low)
            left = (4 * at**3 - 3 * at) / (4 * top**3 - 3 * top)
        else:
            left = (1 - 2 * values / (low + high)) ** 8
        weights = vectors @ ((1 - left) / values * (vectors.T @ (np.asarray(x).T @ np.asarray(y))))
        assert found == pytest.approx(float(query @ weights), rel=1e-8, abs=1e-10)


@pytest.mark.parametrize("name", ["conjugate_gradients", "newton_schulz", "chebyshev", "ridge"])
def test_runs_of_as_many_layers_share_a_program(name: str) -> None:
    """A predictor without numbers of its own is the same object for both, so that nothing is compiled again."""
    one, other, deeper = (baselines_of(loaded_of(num_layers=layers), (name,))[name] for layers in (2, 2, 3))
    assert one is other
    assert (one is deeper) == (name == "ridge")


def test_an_baseline_that_the_config_names_is_among_them(registered: Any) -> None:
    registered(BASELINES, "half", Baseline(predict=lambda batch, config: 0.5 * batch.y[:, 0]))
    loaded = loaded_of(num_layers=1)
    config = RegressionConfig(data=DATA, baselines=("half",))
    named = ComparedRun(loaded.run, config, loaded.model, loaded.params, loaded.batch, loaded.gd)
    found = response(baselines_of(named, ("half",))["half"], loaded.batch)
    np.testing.assert_allclose(found.predictions, 0.5 * np.asarray(loaded.batch.y[:, 0]), rtol=1e-6)


# The command


@pytest.fixture(scope="module")
def measured(workshop: Workshop, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """A run of two recurrent layers with snapshots, measured; and what the command said."""
    layers = ("--config.snapshots=true", "--num_layers=2", "--config.recurrent=true")
    run = copied(workshop.finished("snapshots", LSA1, *layers), tmp_path_factory.mktemp("distance") / "run")
    done = workshop.run("analysis.algorithm_distance", "--run", run, "--snapshots")
    assert done.returncode == 0, done.stderr
    return run, done.stdout


def table_of(run: Path) -> pd.DataFrame:
    return pd.read_csv(run / layout.ALGORITHM_DISTANCE, dtype={"step": str}, keep_default_na=True)


def test_the_matrix_has_the_losses_and_ratios_of_the_summary(measured: tuple[Path, str]) -> None:
    run, _ = measured
    table, headline = table_of(run), read_json(run / layout.SUMMARY)["headline"]
    final = table[table["step"] == "final"].fillna({"column": ""}).set_index(["row", "column", "measure"])
    for name in ("tf", "gd", "gd_plus_plus", "ridge", "zero"):
        for measure in ("loss", "loss_replaced_0"):
            row = final.loc[(name, "", measure)]
            assert row["value"] == pytest.approx(headline[f"{name}_loss"], rel=1e-4, abs=1e-6)
            assert row["value_se"] == pytest.approx(headline[f"{name}_loss_se"], rel=1e-3, abs=1e-6)
    for name, key in (("gd", "loss_ratio"), ("gd_plus_plus", "gd_plus_plus_ratio")):
        row = final.loc[("tf", name, "loss_ratio")]
        assert row["value"] == pytest.approx(headline[key], rel=1e-4)
        assert row["value_se"] == pytest.approx(headline[f"{key}_se"], rel=1e-3)
    assert final.loc[("gd_own_steps", "", "loss"), "value"] < final.loc[("gd", "", "loss"), "value"]


def test_the_matrix_is_symmetric_where_it_should_be(measured: tuple[Path, str]) -> None:
    table = table_of(measured[0])
    pairs = table[(table["step"] == "final") & table["column"].notna()]
    for measure in ("cosine", "difference", "loss_ratio"):
        values = pairs[pairs["measure"] == measure].pivot(index="row", columns="column", values="value")
        assert set(values.index) == {"tf", *ALGORITHMS}
        other = 1 / values.T if measure == "loss_ratio" else values.T
        both = values.notna() & other.notna()
        np.testing.assert_allclose(values[both], other[both], rtol=1e-8)
    assert pairs[(pairs["row"] == "zero") & (pairs["measure"] == "cosine")]["value"].isna().all()


def test_the_snapshots_end_where_the_matrix_begins(measured: tuple[Path, str]) -> None:
    table = table_of(measured[0])
    steps = [step for step in dict.fromkeys(table["step"]) if step != "final"]
    assert steps == [*map(str, RECORDED)]
    keys = ["row", "column", "measure"]
    last = table[table["step"] == steps[-1]].set_index(keys)["value"]
    final = table[table["step"] == "final"].set_index(keys)["value"]
    np.testing.assert_array_equal(last, final.reindex(last.index))
    first = table[(table["step"] == "0") & (table["measure"] == "loss")]["value"].item()
    assert first > last["tf"].xs("loss", level="measure").item()


def test_the_command_prints_a_line_for_each_and_draws(measured: tuple[Path, str]) -> None:
    run, said = measured
    lines = said.splitlines()
    names = [line.split()[1] for line in lines if line.startswith("algorithm ")]
    assert names == ["tf", *ALGORITHMS]
    assert all("loss_replaced_6 " in line and "loss_replaced_8" not in line for line in lines[: len(names)])
    assert "cosine not defined" in lines[names.index("zero")]
    for figure in ("algorithm_distance", "algorithms_over_training"):
        assert layout.figure(run, figure).stat().st_size > 10_000


@pytest.mark.slow
def test_one_layer_says_what_is_not_defined(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    done = workshop.run("analysis.algorithm_distance", "--run", run)
    assert done.returncode == 0, done.stderr
    assert "algorithm gd_own_steps  not defined with one step this baseline is the same as gd" in done.stdout
    assert not layout.figure(run, "algorithms_over_training").exists()
    table = table_of(run).set_index("row")
    assert "several linear layers" in table.loc["gd_plus_plus", "reason"]
    refused = workshop.run("analysis.algorithm_distance", "--run", run, "--snapshots")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert refused.stderr == f"error: {run} has no snapshots of its training; --config.snapshots=true keeps them\n"
    assert table_of(run).set_index("row").equals(table)
