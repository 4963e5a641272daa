"""Contrasts on tables whose answers are known."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from icl_lab.store.readers import StoreError
from icl_lab.studies.contrast import CLEAN, DECIDING, Cells, Condition, Context, Contrast, Ratio, judged, results

NOISY = Context(noise_mode="label_noise", p=0.25)
SEEDS = range(5)


def rows(model: str, train: Context, test: Context, losses: "np.ndarray") -> pd.DataFrame:
    """The table's rows of one condition."""
    columns = {}
    for prefix, setting in (("train_", train), ("eval_", test)):
        difficulty = setting.difficulty or ("gd_error" if setting.noise_mode == "clean" else "residual")
        columns |= {
            f"{prefix}{name}": value for name, value in setting._replace(difficulty=difficulty)._asdict().items()
        }
    names = [f"{model} {train} {test} {seed}" for seed in SEEDS]
    return pd.DataFrame(
        {"exp": names, "model": model, "seed": list(SEEDS), "test_loss": losses, "trained": "true", **columns}
    )


def table(effect: float = 0.1, spread: float = 0.01) -> pd.DataFrame:
    """Random order at 1, easy2hard above it by an effect that differs between seeds, the same under noise at 2."""
    rng = np.random.default_rng(0)
    base, own = 1 + rng.normal(0, 0.1, 5), effect + spread * np.array([-1.0, 1.0, 0.5, -0.5, 0.0])
    sorted_by = Context("easy2hard")
    return pd.concat(
        [
            rows("m", CLEAN, CLEAN, base),
            rows("m", CLEAN, sorted_by, base + own),
            rows("m", CLEAN, NOISY, base + 1),
            rows("m", CLEAN, NOISY._replace(ordering="easy2hard"), base + 1 + own),
            rows("m", CLEAN, NOISY._replace(ordering="easy2hard", difficulty="gd_error"), base + 5),
            rows("other", CLEAN, CLEAN, base + 9),
        ]
    )


def one(kind: str, effect: float = 0.1, spread: float = 0.01) -> dict[str, object]:
    contrast = Contrast("q", "m: easy2hard", kind, [Condition("m", CLEAN, Context("easy2hard"))], [Condition("m")])
    return results(table(effect, spread), [contrast])[0]


def test_a_condition_is_one_value_for_each_seed() -> None:
    found = Cells(table()).values(Condition("m", CLEAN, NOISY._replace(ordering="easy2hard", difficulty="gd_error")))
    np.testing.assert_array_equal(found.index, SEEDS)
    np.testing.assert_allclose(found, Cells(table()).values(Condition("m")) + 5)


def test_settings_without_effect_are_not_asked_for() -> None:
    """Of a clean context p and placement do not matter: they are the base's, whatever that was."""
    clean = table()
    clean["eval_p"] = clean["eval_p"].where(clean["eval_noise_mode"] != "clean", 0.7)
    assert len(Cells(clean).values(Condition("m"))) == len(SEEDS)


@pytest.mark.parametrize("condition", [Condition("none"), Condition("m", NOISY), Condition("m", CLEAN, Context("x"))])
def test_a_condition_that_is_not_there_is_named(condition: Condition) -> None:
    with pytest.raises(StoreError, match="one for each seed"):
        Cells(table()).values(condition)


def test_two_rows_of_one_seed_are_refused() -> None:
    twice = pd.concat([table(), rows("m", CLEAN, CLEAN, np.ones(5)).assign(exp="again")])
    with pytest.raises(StoreError, match="10 rows"):
        Cells(twice).values(Condition("m"))


def test_a_difference_is_the_paired_t_test() -> None:
    row, base = one("difference"), Cells(table()).values(Condition("m")).to_numpy()
    own = 0.1 + 0.01 * np.array([-1.0, 1.0, 0.5, -0.5, 0.0])
    expected = stats.ttest_rel(base + own, base)
    assert row["p"] == pytest.approx(expected.pvalue)
    assert (row["low"], row["high"]) == pytest.approx(expected.confidence_interval(0.95))
    assert row["d_z"] == pytest.approx(own.mean() / own.std(ddof=1))
    assert row["reading_says"] == "higher"
    assert one("difference", -0.1)["reading_says"] == "lower"
    assert one("difference", 0.001)["reading_says"] == "undecided"


def test_equivalence_needs_more_than_a_large_p() -> None:
    assert one("equivalence", 0.001, 0.001)["reading_says"] == "no effect"
    assert one("equivalence", 0.0, 0.1)["reading_says"] == "undecided"


@pytest.mark.parametrize("sign", [-1, 1])
def test_a_change_wholly_outside_the_margin_contradicts_equivalence(sign: int) -> None:
    """Its 90 % interval, by SciPy, lies beyond 1 % on one side; one that reaches into the margin does not."""
    base, own = Cells(table()).values(Condition("m")).to_numpy(), np.array([-1.0, 1.0, 0.5, -0.5, 0.0])
    for effect, expected in ((0.05, "contradicted"), (0.011, "undecided")):
        changes = (sign * effect + 0.005 * own) / base
        low, high = stats.t.interval(0.9, 4, changes.mean(), changes.std(ddof=1) / np.sqrt(5))
        assert (low > 0.01 or high < -0.01) == (expected == "contradicted")
        assert one("equivalence", sign * effect, 0.005)["reading_says"] == expected


def test_exact_is_rounding_and_no_more() -> None:
    assert one("exact", 1e-8, 1e-8)["reading_says"] == "no effect"
    assert one("exact", 0.0, 1e-3)["reading_says"] == "contradicted"


def test_below_eight_seeds_what_is_decided_is_provisional() -> None:
    assert one("difference")["verdict"] == one("equivalence", 0.001, 0.001)["verdict"] == "provisional"
    assert one("difference", 0.001)["verdict"] == "undecided"
    row = one("difference")
    assert [judged(row | {"n": n})["verdict"] for n in (7, 8)] == ["provisional", "higher"]


@pytest.mark.parametrize("kind", DECIDING)
def test_what_is_not_computed_is_undecided_and_says_which_number_it_lacks(kind: str) -> None:
    found = judged(one(kind) | {DECIDING[kind]: float("nan")})
    assert found == {
        "verdict": "undecided",
        "reading_says": "undecided",
        "because": f"{DECIDING[kind]} is not computed",
    }
    assert one(kind)["because"] == ""


def test_holm_counts_the_differences_of_a_question() -> None:
    pair = [Condition("m", CLEAN, Context("easy2hard"))], [Condition("m")]
    family = [Contrast("q", str(k), "difference", *pair) for k in range(3)]
    others = [Contrast("q", "same", "equivalence", *pair), Contrast("r", "alone", "difference", *pair)]
    found = results(table(0.01), [*family, *others])
    assert [row["p_holm"] for row in found[:3]] == pytest.approx([min(1.0, 3 * found[0]["p"])] * 3)
    assert found[3]["p_holm"] is None
    assert found[4]["p_holm"] == found[4]["p"]


def test_an_interaction_is_the_ratio_of_effects() -> None:
    """Twice as large an effect under noise: (noisy sorted / noisy random) / (clean sorted / clean random)."""
    noisy, sorted_by = NOISY._replace(ordering="easy2hard"), Context("easy2hard")
    effects = [
        Ratio(Condition("m", CLEAN, noisy), Condition("m", CLEAN, NOISY)),
        Ratio(Condition("m", CLEAN, sorted_by), Condition("m")),
    ]
    found = results(table(), [Contrast("q", "interaction", "difference", effects[:1], effects[1:])])[0]
    under, without = (Cells(table()).values(effect).to_numpy() for effect in effects)
    assert (found["treated"], found["control"]) == pytest.approx((under.mean(), without.mean()))
    assert found["difference"] == pytest.approx((under - without).mean())
    clean = Cells(table()).values(Condition("m")).to_numpy()
    np.testing.assert_allclose(without, 1 + (0.1 + 0.01 * np.array([-1.0, 1.0, 0.5, -0.5, 0.0])) / clean)


def test_an_auroc_is_equivalent_by_its_difference() -> None:
    """.004 apart is within .01 although it is a hundredth of .4; .4 apart is not."""
    near, pair = table(0.004, 0.0005), ([Condition("m", CLEAN, Context("easy2hard"))], [Condition("m")])
    near["test_loss"] -= 0.6
    contrast = Contrast("q", "m: score", "equivalence", *pair, "auroc")
    found = results(near, [contrast])[0]
    own = 0.004 + 0.0005 * np.array([-1.0, 1.0, 0.5, -0.5, 0.0])
    ends = stats.t.interval(0.9, 4, own.mean(), own.std(ddof=1) / np.sqrt(5))
    assert (found["equivalence_low"], found["equivalence_high"]) == pytest.approx(ends)
    assert found["reading_says"] == "no effect"
    assert results(table(0.4), [contrast])[0]["reading_says"] == "contradicted"


def test_one_seed_is_no_contrast() -> None:
    contrast = Contrast("q", "n", "difference", [Condition("m", CLEAN, Context("easy2hard"))], [Condition("m")])
    both = table()
    assert len(results(both, [contrast])) == 1
    assert results(both[both["seed"] == 0], [contrast]) == []


def test_intervals_of_changes_end_where_the_possible_does() -> None:
    """Differences of a standard deviation of .79 around -.5: the t interval goes from -1.48 to .48."""
    found = one("difference", effect=-0.5, spread=1.0)
    assert found["change_low"] == found["change_all_low"] == -1
    assert float(str(found["low"])) < -1  # of losses, which have no such bound
    contrast = Contrast(
        "q", "c", "difference", [Condition("m", CLEAN, Context("easy2hard"))], [Condition("m")], "auroc"
    )
    assert results(table(-0.5, 1.0), [contrast])[0]["low"] == -1
