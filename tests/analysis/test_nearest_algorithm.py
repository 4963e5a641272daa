"""The nearest algorithm of predictions that are known; distances against closed forms and SciPy."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon

from icl_lab.analysis.nearest_algorithm import Algorithms, algorithms_on, check_other, named_where, nearest, table
from icl_lab.families.functions import task
from icl_lab.families.functions.classes.linear import Linear, SparseLinear
from icl_lab.families.functions.classes.mixtures import RegressionOrClassification, TwoNoiseLevels
from icl_lab.families.functions.config import FunctionModel, FunctionsConfig, PromptData
from icl_lab.families.functions.distances import distances, jensen_shannon
from icl_lab.src.checks import ConfigError
from icl_lab.src.prng import Purpose

COUNT, DIM, PAIRS = 60, 4, 9
BASE = FunctionsConfig(
    function=SparseLinear(sparsity=2),
    data=PromptData(dim=DIM, num_pairs=PAIRS),
    model=FunctionModel(d_model=8, mlp_width=8),
    test_tasks=COUNT,
)
EVERY = {"prior", "bayes", "least_squares", "averaging", "nearest_neighbours"}


def on_prompts(config: FunctionsConfig = BASE) -> Algorithms:
    return algorithms_on(config, task.prompts(config, Purpose.TEST_SET, COUNT))


def test_bayes_is_named_and_least_squares_with_it_where_they_predict_the_same() -> None:
    """Without noise least squares finds the function at k >= D pairs; Bayes of a sparse one knows more before."""
    algorithms = on_prompts()
    bayes = algorithms.predictions["bayes"]
    rows = nearest(BASE, algorithms, bayes, bayes + 0.01)
    assert [row["position"] for row in rows] == [*range(PAIRS)]
    assert [row["named"] for row in rows[1:DIM]] == ["bayes"] * (DIM - 1)
    assert [row["named"] for row in rows[DIM:]] == ["bayes = least_squares"] * (PAIRS - DIM)
    assert all(row["nearest"] == row["named"] for row in rows[1:])
    assert all(row["distance"] == 0 for row in rows)
    runner_up = np.array([np.mean((algorithms.predictions[row["runner_up"]] - bayes) ** 2, axis=0) for row in rows[1:]])
    own = [runner_up[number, k] for number, k in enumerate(range(1, PAIRS))]
    np.testing.assert_allclose([row["runner_up_distance"] for row in rows[1:]], np.divide(own, 2), rtol=1e-9)
    np.testing.assert_allclose([row["between_seeds"] for row in rows], 0.01**2 / 2, rtol=1e-9)


def test_where_all_algorithms_predict_the_same_there_is_nothing_to_name() -> None:
    algorithms = on_prompts()
    zeros = np.zeros((COUNT, PAIRS))
    first = nearest(BASE, algorithms, zeros, zeros)[0]
    assert (first["nearest"], first["named"]) == ("prior", "")
    assert {first[name] for name in ("runner_up", "runner_up_distance", "runner_up_distance_se")} == {None}


def test_two_seeds_that_predict_the_same_name_every_nearest_algorithm() -> None:
    algorithms = on_prompts()
    model = 0.6 * algorithms.predictions["bayes"] + 0.4 * algorithms.predictions["averaging"]
    rows = nearest(BASE, algorithms, model, model)
    assert all(row["named"] == row["nearest"] for row in rows[1:])
    assert all((row["between_seeds"], row["between_seeds_se"]) == (0, 0) for row in rows)
    assert all(row["distance"] < row["runner_up_distance"] for row in rows[1:])


def test_seeds_as_far_from_one_another_as_the_runner_up_name_nothing() -> None:
    """The other seed predicts as the runner-up, so that both sides of the condition are the same number; half so far is
    a quarter of it."""
    algorithms = on_prompts()
    bayes = algorithms.predictions["bayes"]
    rows = nearest(BASE, algorithms, bayes, bayes)
    second = bayes.copy()
    for row in rows[1:]:
        second[:, row["position"]] = algorithms.predictions[row["runner_up"]][:, row["position"]]
    assert {row["named"] for row in nearest(BASE, algorithms, bayes, second)} == {""}
    nearer = nearest(BASE, algorithms, bayes, (bayes + second) / 2)
    assert [row["named"] for row in nearer] == [row["named"] for row in rows]


def test_all_are_compared_on_the_prompts_that_each_is_computed_of(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SparseLinear, "posterior_prompts", 40)
    algorithms = on_prompts()
    assert {len(values) for values in (*algorithms.predictions.values(), algorithms.batch.x)} == {40}
    zeros = np.zeros((40, PAIRS))
    assert {row["prompts"] for row in nearest(BASE, algorithms, zeros, zeros)} == {40}


def test_an_oracle_and_what_is_fitted_anew_are_no_algorithms_here() -> None:
    assert "lasso" in BASE.function.baselines
    assert {*on_prompts().predictions} == EVERY
    mixture = on_prompts(replace(BASE, function=TwoNoiseLevels()))
    assert "oracle" not in mixture.predictions
    assert {"likelier", "member_0", "member_1"} < {*mixture.predictions}


def test_the_printed_table_and_its_last_line_say_what_is_named() -> None:
    algorithms = on_prompts()
    bayes = algorithms.predictions["bayes"]
    rows = [{"step": 7} | row for row in nearest(BASE, algorithms, bayes, bayes)]
    lines = table(BASE, rows)
    assert lines[0].startswith("squared difference / variance between predictions on 60 test prompts at step 7")
    assert [line.split("  ")[-1].strip() for line in lines[2:]] == [
        *("-", "Bayes (exact)", "Bayes (exact) = least squares"),
        *["Bayes (exact) = least squares"] * 2,
    ]
    assert named_where(BASE, rows) == "of 9 steps and positions: Bayes (exact) at 3, Bayes (exact) = least squares at 5"


# Distances


def test_the_divergence_is_scipy_s_and_at_most_log_two() -> None:
    random = np.random.default_rng(0)
    p, q = random.dirichlet(np.ones(3), size=(2, 5))
    expected = [jensenshannon(one, other) ** 2 for one, other in zip(p, q, strict=True)]
    np.testing.assert_allclose(jensen_shannon(p, q), expected, rtol=1e-10)
    np.testing.assert_allclose(jensen_shannon(q, p), jensen_shannon(p, q), rtol=1e-12)
    assert jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])) == pytest.approx(np.log(2), rel=1e-15)
    assert jensen_shannon(p, p).max() == 0


def test_each_prompt_has_the_distance_of_its_member() -> None:
    """Numbers over the variance D; of signs the divergence of the probabilities that the logits stand for."""
    function = RegressionOrClassification()
    batch = task.prompts(replace(BASE, function=function), Purpose.TEST_SET, COUNT)
    random = np.random.default_rng(1)
    first, second = random.standard_normal((2, COUNT, PAIRS))
    found, of_signs = distances(function, first, second, batch), np.asarray(batch.member) == 1
    p, q = (1 / (1 + np.exp(-logits)) for logits in (first, second))
    divergence = jensenshannon(np.stack([p, 1 - p]), np.stack([q, 1 - q]), axis=0) ** 2
    assert 0 < of_signs.sum() < COUNT
    np.testing.assert_allclose(found[of_signs], divergence[of_signs], rtol=1e-8)
    np.testing.assert_allclose(found[~of_signs], ((first - second) ** 2 / DIM)[~of_signs], rtol=1e-12)


# The other run


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"init_seed": 1, "function": Linear()}, "b differs from a in function.kind, function.sparsity; it must be a"),
        ({"init_seed": 1, "test_tasks": 50, "eval_every": 9}, "b differs from a in eval_every, test_tasks; it must be"),
        ({"data_seed": 1}, r"b begins with the parameters that a begins with; it must have another initialisation \("),
    ],
)
def test_the_other_run_has_the_same_settings_and_another_initialisation(changes: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        check_other(Path("a"), BASE, Path("b"), replace(BASE, **changes))


def test_the_other_run_has_the_same_pool() -> None:
    check_other(Path("a"), BASE, Path("b"), replace(BASE, init_seed=1, data_seed=1, preset="other"))
    pool = replace(BASE, data=replace(BASE.data, num_functions=4))
    check_other(Path("a"), pool, Path("b"), replace(pool, init_seed=1))
    with pytest.raises(ConfigError, match=r"b has the pool of the data seed 2, and a that of 0; it must have the same"):
        check_other(Path("a"), pool, Path("b"), replace(pool, init_seed=1, data_seed=2))
