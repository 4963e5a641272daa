"""The distances of constructed stacks and the algorithms, by independent NumPy; their losses with labels replaced."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest
from scipy import stats

from icl_lab.analysis.loaded_run import ComparedRun
from icl_lab.analysis.shifts import shifted_batches
from icl_lab.baselines import gd_plus_plus
from icl_lab.baselines.construction import gd_params
from icl_lab.baselines.gd_plus_plus import Rates, gd_plus_plus_of
from icl_lab.families.regression import baselines
from icl_lab.families.regression.baselines import step_sizes_of
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.families.regression.task import find_gd, make_model, make_test_batch
from icl_lab.src.config import ModelConfig
from icl_lab.src.data_config import DataConfig
from icl_lab.studies import algorithm_distances as distances
from icl_lab.studies.distance_figure import SCALE_OF, Distances
from icl_lab.studies.reproduction.curves import replaced
from icl_lab.studies.reproduction.figures import FIGURES
from icl_lab.studies.study import load

RUN = Path("run")
DATA = DataConfig(dim=4, num_pairs=6)
LAYERS, C, GAMMA = 3, 0.875, 0.125  # rates that float32 has exactly
RATES = Rates(*(jnp.full(LAYERS, rate, jnp.float32) for rate in (C, GAMMA)))


def loaded_of(seed: int, params_of: Callable[[RegressionConfig], Any], **model: Any) -> ComparedRun:
    """A run of three layers with weights that are made for it."""
    config = RegressionConfig(
        data=DATA, model=ModelConfig(num_layers=LAYERS, **model), step_size_tasks=256, test_tasks=300, data_seed=seed
    )
    return ComparedRun(RUN, config, make_model(config), params_of(config), make_test_batch(config), find_gd(config))


def clear() -> None:
    for cached in (distances.distances, distances.over_training, distances.cosines, distances.replaced_losses):
        cached.cache_clear()


@pytest.fixture
def constructed(monkeypatch: pytest.MonkeyPatch) -> Callable[[dict[Path, ComparedRun]], None]:
    """Runs by path, in place of those on disk; GD++ has rates that are given."""
    for name in ("gd_plus_plus_paper", "gd_plus_plus_own_rates"):
        monkeypatch.setattr(baselines, name, lambda config, descent: gd_plus_plus_of(RATES))
    monkeypatch.setattr(gd_plus_plus, "fitted_gd_plus_plus", lambda *_: gd_plus_plus_of(RATES))
    clear()

    def give(runs: dict[Path, ComparedRun]) -> None:
        monkeypatch.setattr(distances, "compared_run", runs.__getitem__)

    return give


# Weights after three steps, one context at a time


def descent(x: np.ndarray, y: np.ndarray, step_sizes: Any) -> np.ndarray:
    w = np.zeros(x.shape[1])
    for size in step_sizes:
        w = w - size * x.T @ (x @ w - y)
    return w


def plus_plus(x: np.ndarray, y: np.ndarray, query: np.ndarray) -> float:
    """Tokens move: labels by the descent step on what is left of them, inputs by I - gamma X'X."""
    x, left, query, prediction = x.copy(), y.copy(), query.copy(), 0.0
    for _ in range(LAYERS):
        scatter, moment = x.T @ x, x.T @ left
        prediction += C * query @ moment
        left = left - C * x @ moment
        x, query = x - GAMMA * x @ scatter, query - GAMMA * scatter @ query
    return prediction


def sensitivities(loaded: ComparedRun, name: str) -> np.ndarray:
    """Those of an algorithm [B, D]: its weights, for its predictions are linear in the query."""
    batch = make_test_batch(loaded.config)
    x, y = (np.asarray(part, np.float64) for part in (batch.x, batch.y))
    if name == "gd":
        return np.stack([descent(*pair, [float(loaded.gd.step_size)] * LAYERS) for pair in zip(x, y, strict=True)])
    if name == "gd_own_steps":
        sizes = step_sizes_of(loaded.config, LAYERS)
        return np.stack([descent(*pair, sizes) for pair in zip(x, y, strict=True)])
    if name == "ridge":
        return np.stack([np.linalg.lstsq(*pair)[0] for pair in zip(x, y, strict=True)])
    return np.stack([[plus_plus(*pair, unit) for unit in np.eye(DATA.dim)] for pair in zip(x, y, strict=True)])


def mean_cosine(one: np.ndarray, other: np.ndarray) -> float:
    norms = np.linalg.norm(one, axis=1) * np.linalg.norm(other, axis=1)
    return float(np.mean(np.sum(one * other, axis=1) / norms))


def stack_of(whose: str) -> ComparedRun:
    """Weights that are gradient descent, with one step size or three, or GD++."""
    if whose == "gd":
        return loaded_of(0, lambda config: gd_params(config.architecture, float(find_gd(config).step_size)))
    if whose == "gd_own_steps":
        return loaded_of(0, lambda config: gd_params(config.architecture, step_sizes_of(config, LAYERS).tolist()))
    return loaded_of(0, lambda config: gd_params(config.architecture, C, GAMMA), recurrent=True)


@pytest.mark.parametrize("whose", ["gd", "gd_own_steps", "gd_plus_plus"])
def test_a_constructed_stack_has_distance_0_to_its_algorithm_and_numpys_to_the_others(
    whose: str, constructed: Any, x64: None
) -> None:
    loaded = stack_of(whose)
    constructed({RUN: loaded})
    found = distances.distances(RUN)
    assert found["tf", whose, "cosine"] == pytest.approx(1, abs=1e-9)
    assert found["tf", whose, "difference"] == pytest.approx(0, abs=1e-9)
    assert found["tf", whose, "loss_ratio"] == pytest.approx(1, abs=1e-9)
    own = sensitivities(loaded, whose)
    for name in ("gd", "gd_own_steps", "gd_plus_plus", "ridge"):
        theirs = sensitivities(loaded, name)
        assert found["tf", name, "cosine"] == pytest.approx(mean_cosine(own, theirs), abs=1e-5), name
        query = np.asarray(make_test_batch(loaded.config).x_query)
        difference = np.abs(np.sum((own - theirs) * query, axis=1)).mean()
        assert distances.between("difference", name)(RUN) == pytest.approx(difference, abs=1e-5), name


@pytest.mark.parametrize("layers", [{}, {"recurrent": True}])
def test_the_matrix_is_symmetric_with_ones_on_its_diagonal(layers: dict[str, bool], constructed: Any) -> None:
    constructed({RUN: loaded_of(1, lambda config: gd_params(config.architecture, 0.5, 0.05), **layers)})
    found = distances.distances(RUN)
    names = {row for row, _, _ in found}
    assert names == {"tf", *distances.WITH_DIRECTION}
    for name in names:
        assert found[name, name, "cosine"] == pytest.approx(1, abs=1e-12)
        assert all(found[name, other, "cosine"] == found[other, name, "cosine"] for other in names)


@pytest.mark.parametrize("whose", ["tf", "gd_own_steps"])
def test_losses_with_replaced_labels_are_numpys(whose: str, constructed: Any, x64: None) -> None:
    """Descent on the labels as they are given, less the teacher's target; none replaced is the test set itself."""
    loaded = stack_of("gd")
    constructed({RUN: loaded})
    sizes = [float(loaded.gd.step_size)] * LAYERS if whose == "tf" else step_sizes_of(loaded.config, LAYERS)
    batches = shifted_batches(loaded.config, "distractors", distances.REPLACED)
    for count, batch in zip(distances.REPLACED, batches, strict=True):
        x, y, query, target = (np.asarray(part) for part in (batch.x, batch.y, batch.x_query, batch.y_query))
        assert np.all(np.sum(~np.isclose(y, np.einsum("bnd,bd->bn", x, batch.w)), axis=1) == count)
        weights = np.stack([descent(*pair, sizes) for pair in zip(x, y, strict=True)])
        loss = 0.5 * np.mean((np.sum(weights * query, axis=1) - target) ** 2)
        assert distances.loss_with_replaced(count, whose)(RUN) == pytest.approx(loss, rel=1e-6)
    assert distances.replaced_losses(RUN)["tf"][0] == pytest.approx(distances.distances(RUN)["tf", "", "loss"])


# What claims measure, of values that are given


@pytest.fixture
def given(monkeypatch: pytest.MonkeyPatch) -> dict[str, np.ndarray]:
    matrix = {("tf", "gd_plus_plus", "cosine"): 0.998, ("tf", "gd_own_steps", "cosine"): 0.96}
    monkeypatch.setattr(distances, "distances", lambda run: matrix)
    cosines = {
        "step": np.array([0, 250, 500, 750]),
        "gd": np.array([0.5, 0.99, 0.95, 0.9]),
        "gd_own_steps": np.array([0.5, 0.99, 0.995, 0.9]),
        "gd_plus_plus": np.array([0.4, 0.9, 0.99, 0.999]),
    }
    monkeypatch.setattr(distances, "cosines", lambda run: cosines)
    return cosines


def test_nearer_is_a_ratio_of_distances_below_1(given: dict[str, np.ndarray]) -> None:
    assert distances.nearer_than("gd_plus_plus", "gd_own_steps")(RUN) == pytest.approx(0.002 / 0.04)
    assert distances.cosine_at("gd", 250)(RUN) == 0.99


def test_the_turn_from_own_step_sizes_is_a_later_one(given: dict[str, np.ndarray]) -> None:
    """Halfway between two records."""
    assert distances.turn_from("gd")(RUN) == 375
    assert distances.turn_from("gd_own_steps")(RUN) == 625
    given["gd_plus_plus"][-1] = 0.8
    assert distances.turn_from("gd")(RUN) == np.inf


# Figures


def test_a_matrix_over_seeds_has_means_on_the_scale_of_each_measure(constructed: Any) -> None:
    """Cosines on Fisher's, differences and ratios on the logarithmic one: of runs by hand, with SciPy's t interval."""
    runs = {
        Path(name): loaded_of(seed, lambda config: gd_params(config.architecture, 0.6))
        for seed, name in enumerate("abc")
    }
    constructed(runs)
    (figure,) = (figure for figure in FIGURES if figure.name == "distances_five_layers")
    rows = {(row["row"], row["column"], row["measure"]): row for row in figure.rows({"five_layers": [*runs]})}
    for measure, forward, inverse in (
        ("cosine", np.arctanh, np.tanh),
        ("difference", np.log, np.exp),
        ("loss_ratio", np.log, np.exp),
    ):
        each = forward([distances.distances(run)["tf", "gd", measure] for run in runs])
        ends = inverse(stats.t.interval(0.9, 2, each.mean(), stats.sem(each)))
        found = rows["tf", "gd", measure]
        assert (found["mean"], found["low"], found["high"]) == pytest.approx((inverse(each.mean()), *ends)), measure
        assert found["seeds"] == 3
    for measure, of_itself in (("cosine", 1.0), ("difference", 0.0), ("loss_ratio", 1.0)):
        assert rows["gd", "gd", measure]["mean"] == of_itself
    cosine, ratio = (rows["gd", "tf", measure] for measure in ("cosine", "loss_ratio"))
    assert cosine == rows["tf", "gd", "cosine"] | {"row": "gd", "column": "tf"}
    assert ratio["mean"] == pytest.approx(1 / rows["tf", "gd", "loss_ratio"]["mean"])
    assert ("tf", "ridge", "loss_ratio") not in rows  # ridge solves these tasks
    assert not any(np.isnan(row["mean"]) for row in rows.values())


def test_a_distance_that_a_seed_lacks_is_of_the_others() -> None:
    x, y = ("x", "cosine"), ("y", "cosine")
    values = {Path("a"): {x: 0.5}, Path("b"): {x: np.nan, y: np.nan}}
    figure = Distances("name", "Title", ("runs",), values.__getitem__, ("algorithm",), lambda table, title: [])
    (row,) = figure.rows({"runs": [*values]})
    assert row == {"algorithm": "x", "measure": "cosine", "mean": 0.5, "low": 0.5, "high": 0.5, "seeds": 1}


def test_curves_over_training_are_the_distances_at_snapshots(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of all three measures, and not the transformer's own loss."""
    loss = {"step": "250", "row": "tf", "column": "", "measure": "loss", "value": 0.3}
    given = [
        loss | {"column": name, "measure": measure, "value": 0.5} for name in ("gd", "ridge") for measure in SCALE_OF
    ]
    monkeypatch.setattr(distances, "compared_run", lambda run: None)
    monkeypatch.setattr(distances.algorithm_distance, "over_training", lambda loaded, names: iter([loss, *given]))
    clear()
    (figure,) = (figure for figure in FIGURES if figure.name == "nearest_two_layers")
    rows = figure.rows({"two_layers": [RUN, Path("other")]})
    assert [(row["algorithm"], row["step"], row["measure"]) for row in rows] == [
        (name, 250, measure) for name in ("gd", "ridge") for measure in SCALE_OF
    ]
    assert all(row["mean"] == pytest.approx(0.5) and row["seeds"] == 2 for row in rows)


def test_each_depth_has_its_matrices_and_its_curves() -> None:
    profiles = {figure.name: figure.profile for figure in FIGURES if isinstance(figure, Distances)}
    depths = {"one_layer", "two_layers", "three_layers", "five_layers", "ten_layers", "twelve_layers"}
    both = {f"{kind}_{depth}" for kind in ("distances", "nearest") for depth in depths}
    assert {*profiles} == both - {"nearest_twelve_layers"}
    quick = {name.split("_", 1)[1] for name, profile in profiles.items() if profile == "quick"}
    assert quick == {"one_layer", "two_layers"}


@pytest.mark.parametrize("name", [figure.run_names[0] for figure in FIGURES if figure.name.startswith("nearest_")])
def test_runs_whose_training_is_followed_keep_snapshots(name: str) -> None:
    assert all(cell.config.snapshots for cell in load("reproduction").runs_of(name).cells)


def test_a_panel_of_replaced_labels_has_the_losses_of_its_run(monkeypatch: pytest.MonkeyPatch) -> None:
    losses = {"tf": (0.1, 0.2, 0.3, 0.5), "gd_plus_plus": (0.1, 0.2, 0.25, 0.4)}
    monkeypatch.setattr(distances, "replaced_losses", lambda run: losses)
    found = replaced(RUN, "two_layers")
    assert {*found} == {(panel := "two recurrent layers, two steps", "Trained Transformer"), (panel, "GD++, best")}
    assert found[panel, "Trained Transformer"] == ((0, 1, 2, 4), losses["tf"])
