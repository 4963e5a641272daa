"""What an estimate is said to measure, from evidence that is made up: each verdict, each reason, and their bounds."""

import itertools
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from icl_lab.analysis.llc.derivatives import Slopes
from icl_lab.analysis.llc.estimate import Estimate, diagnose, of_traces, t_quantile
from icl_lab.analysis.llc.prediction import Prediction
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.spectrum import Nodes, Spectrum
from icl_lab.analysis.llc.verdict import HIGHER, LOCALISED, PLATEAU, QUADRATIC, Evidence, Judged, is_near, judge
from icl_lab.store.llc_rows import UNDECIDED, VERDICTS
from tests.verdicts.values import NOT_FINITE

FLAT = Slopes(0.01, 0.005, 0.01, 0.005, 2.0, 0.05)
STEEP = Slopes(0.6, 0.02, -0.6, 0.02, 2.0, 0.05)
UNKNOWN = Slopes(*[math.nan] * 6)
FLAT_PREDICTION = Prediction(5.0, 0.1, 0.05, -0.01, 0.0, 0.1, 0.02, -0.02)
PULLED_PREDICTION = FLAT_PREDICTION._replace(d_nbeta=0.7, d_gamma=-0.7)

PASSING = Evidence(
    value=5.1,
    error=0.05,
    t=2.36,
    slopes=FLAT,
    prediction=FLAT_PREDICTION,
    distance=1.0,
    norm=10.0,
    saturation=0.05,
    saturation_cause="",
    trend=0.3,
    r_hat=1.01,
    r_hat_cause="",
    acceptance=0.9,
    stability=0.1,
    relaxed=0.99,
    relaxation=100.0,
    burn_in=200,
    divergence="",
)


def judged(**changed: Any) -> Judged:
    return judge(PASSING._replace(**changed))


def reason(**changed: Any) -> str:
    """The only reason against evidence that differs in this."""
    found = judged(**changed)
    assert found.verdict == "none"
    (said,) = found.reasons
    return said


# --- verdicts ---


@pytest.mark.parametrize(
    ("changed", "verdict"),
    [
        ({}, "LLC"),
        ({"prediction": PULLED_PREDICTION}, "curvature"),
        ({"prediction": PULLED_PREDICTION, "slopes": UNKNOWN}, "curvature"),  # a quadratic has its own derivatives
        ({"value": 2.5}, "LLC at this nbeta"),
        ({"value": 2.5, "slopes": STEEP}, "undecided"),  # localised, and of higher order: no name
        ({"value": 2.5, "slopes": UNKNOWN}, "undecided"),
        ({"value": 2.5, "norm": None}, "undecided"),  # without |w*| no plateau is shown
        ({"value": 2.5, "distance": 3.4}, "undecided"),  # beyond a third of |w*|
        ({"distance": 3.4}, "undecided"),
        ({"value": 2.5, "distance": 3.4, "norm": 0.0}, "LLC at this nbeta"),  # at the origin it is not asked
        ({"prediction": None}, "undecided"),
        ({"error": 0.3}, "undecided"),  # too wide to tell
    ],
)
def test_verdicts(changed: dict[str, Any], verdict: str) -> None:
    found = judged(**changed)
    assert (found.verdict, found.reasons) == (verdict, ())


def test_every_verdict_is_one_of_the_tables() -> None:
    """Whatever the derivatives, the prediction and the place, the words are those that tables may have."""
    found = set()
    slopes, predictions = (FLAT, STEEP, UNKNOWN), (FLAT_PREDICTION, PULLED_PREDICTION, None)
    for slope, prediction, value, distance in itertools.product(slopes, predictions, (5.1, 2.5), (1.0, 20.0)):
        found.add(judged(slopes=slope, prediction=prediction, value=value, distance=distance).verdict)
    assert found == set(VERDICTS)


def test_an_estimate_is_quadratic_within_a_tenth_of_the_prediction_with_its_interval() -> None:
    """The total of the parts is 5.14, its margin .514, and the half width 2.36 * .05 = .118."""
    total, margin, half = 5.14, 0.514, 2.36 * 0.05
    for sign in (-1, 1):
        assert judged(value=total + sign * (margin - half - 1e-6)).order == QUADRATIC
        assert judged(value=total + sign * (margin - half + 1e-6)).order == UNDECIDED
        assert judged(value=total + sign * (margin + half - 1e-6)).order == UNDECIDED
        assert judged(value=total + sign * (margin + half + 1e-6)).order == HIGHER
    noisy = FLAT_PREDICTION._replace(error=0.5)  # an error of the prediction's own widens the interval
    assert judged(prediction=noisy).order == UNDECIDED


def test_below_a_half_the_margin_is_a_twentieth() -> None:
    small = Prediction(0.1, 0.0, 0.0, 0.0, 0.0, 0.1, 0.02, -0.02)
    assert judged(prediction=small, value=0.149, error=0.0).order == QUADRATIC
    assert judged(prediction=small, value=0.151, error=0.0).order == HIGHER


@pytest.mark.parametrize(
    ("slopes", "pull"),
    [
        (FLAT._replace(d_nbeta=0.08, d_gamma=-0.08), PLATEAU),  # .08 + 2.36 * .005 = .0918
        (FLAT._replace(d_nbeta=0.09), UNDECIDED),  # its interval reaches beyond .1
        (FLAT._replace(d_gamma=-0.09), UNDECIDED),
        (FLAT._replace(d_gamma_error=0.1), UNDECIDED),
        (FLAT._replace(d_gamma=-0.12), LOCALISED),  # .12 - .0118 is beyond .1
        (FLAT._replace(d_gamma=0.12), LOCALISED),  # either sign
        (FLAT._replace(d_gamma=-0.11), UNDECIDED),
        (FLAT._replace(d_nbeta=0.5), UNDECIDED),  # it depends on nbeta and not on gamma
        *((FLAT._replace(**{name: math.nan}), UNDECIDED) for name in ("d_nbeta", "d_gamma", "d_gamma_error")),
    ],
)
def test_the_pull_of_what_is_not_quadratic_is_from_the_draws(slopes: Slopes, pull: str) -> None:
    assert judged(value=2.5, slopes=slopes).pull == pull


def test_near_is_a_third_of_the_way_to_the_origin() -> None:
    assert is_near(0.33, 1.0)
    assert not is_near(0.34, 1.0)
    assert is_near(5.0, 0.0)
    assert not is_near(0.0, None)
    assert not is_near(math.nan, 1.0)


def test_no_plateau_is_told_of_what_there_are_reasons_against() -> None:
    """A saturated estimate is stable in gamma, and wrong."""
    assert judged(value=2.5).pull == PLATEAU
    assert judged(value=2.5, saturation=0.9).pull == UNDECIDED


# --- reasons ---


@pytest.mark.parametrize(
    ("within", "beyond", "said"),
    [
        ({"saturation": 0.3}, {"saturation": 0.91}, "saturated: draws are 0.91 of the way to the null predictor"),
        ({"stability": 0.99}, {"stability": 1.0}, "step too long: eps (nbeta h_max + gamma) is 1, not below 1"),
        ({"acceptance": 0.1}, {"acceptance": 0.04}, "step too long: acceptance is 0.04"),
        ({"r_hat": 1.2}, {"r_hat": 1.3}, "not mixed: R-hat is 1.300, above 1.2"),
        ({"trend": 2.36}, {"trend": 2.5}, "not mixed: +2.5 standard errors from the first to the last quarter"),
        ({"trend": -2.36}, {"trend": -2.5}, "not mixed: -2.5 standard errors"),
        ({"trend": 2.36}, {"trend": math.inf}, "not mixed: +inf standard errors"),
        ({"relaxed": 0.9}, {"relaxed": 0.5}, "not mixed: chains of this length reach 50% of the quadratic prediction"),
        ({"distance": 10.0}, {"distance": 10.1}, "escaped: draws are at distance 10.1 from a w* of length 10"),
        ({}, {"r_hat_cause": "nothing moved"}, "not mixed: nothing moved"),
        ({}, {"saturation_cause": "saturation, for x"}, "cannot be computed: saturation, for x"),
        ({}, {"divergence": "chain 3 diverged at draw 17"}, "cannot be computed: chain 3 diverged at draw 17"),
    ],
)
def test_each_reason_at_its_bound(within: dict[str, Any], beyond: dict[str, Any], said: str) -> None:
    assert judged(**within).reasons == ()
    assert reason(**beyond).startswith(said)


@pytest.mark.parametrize(
    ("part", "said"),
    [
        ("slope", "off minimum: the slope at w* adds {} to 5"),
        ("noise", "off minimum: minibatch noise adds {} to 5"),
        ("step", "step too long: the step size adds {} to 5"),
    ],
)
def test_a_part_of_the_prediction_above_a_tenth_is_a_reason(part: str, said: str) -> None:
    """A tenth of the larger of the curvature's part, 5, and the estimate."""
    for sign in (-1, 1):
        assert judged(prediction=FLAT_PREDICTION._replace(**{part: 0.5 * sign})).reasons == ()
        assert reason(prediction=FLAT_PREDICTION._replace(**{part: 0.52 * sign})) == said.format(f"{0.52 * sign:.3g}")
    assert judged(prediction=FLAT_PREDICTION._replace(**{part: 0.52}), value=5.3).reasons == ()


def test_parts_that_cancel_are_not_passed_by_their_sum() -> None:
    """Slope -12 and minibatch noise +12, as measured off a minimum: their sum is the curvature's part alone."""
    cancelling = FLAT_PREDICTION._replace(slope=-12.0, noise=12.0, step=0.0)
    assert cancelling.total == pytest.approx(5.0)
    found = judged(prediction=cancelling, value=5.0)
    assert found.order == QUADRATIC
    assert found.verdict == "none"
    assert [said.partition(":")[0] for said in found.reasons] == ["off minimum", "off minimum"]


def test_a_saddle_has_no_quadratic_value() -> None:
    saddle = Prediction(h_min=-0.146)
    found = judged(prediction=saddle)
    assert found.reasons == ("saddle: the Hessian has an eigenvalue of -0.146, so that nbeta h_min + gamma is below 0",)
    assert (found.verdict, found.order) == ("none", UNDECIDED)


def test_draws_clearly_below_w_star_are_off_a_minimum() -> None:
    none = {"prediction": None}
    assert judged(value=-0.1, error=0.05, **none).reasons == ()  # -.1 + 2.36 * .05 is above 0
    assert reason(value=-0.13, error=0.05, **none) == "off minimum: the draws lie below L(w*)"


def test_a_divergence_is_the_only_reason() -> None:
    assert reason(divergence="chain 3 diverged at draw 17", saturation=0.9, trend=9.0).endswith("at draw 17")


def test_all_reasons_are_said() -> None:
    beyond = {"saturation": 0.9, "stability": 1.0, "trend": -2.4, "acceptance": 0.0, "r_hat": 1.3, "distance": 11.0}
    assert [said.partition(":")[0] for said in judged(**beyond).reasons] == [
        *("escaped", "saturated", "step too long", "step too long", "not mixed", "not mixed"),
    ]


def test_what_is_not_asked_for_is_no_reason() -> None:
    """An estimate without a null predictor, checks, a known step or a Hessian is undecided, not refused."""
    bare = dict.fromkeys(("saturation", "r_hat", "acceptance", "stability", "relaxed", "norm", "prediction"))
    found = judged(**bare, slopes=UNKNOWN)
    assert (found.verdict, found.reasons) == (UNDECIDED, ())


# --- numbers that could not be computed ---


@given(st.sampled_from(["saturation", "acceptance", "r_hat"]), st.sampled_from(NOT_FINITE))
def test_no_diagnostic_passes_that_is_not_computed(name: str, value: float) -> None:
    assert reason(**{name: value}) == f"cannot be computed: {name} is {value}"


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize("name", ["value", "trend"])
def test_no_estimate_passes_that_is_not_computed(name: str, value: float) -> None:
    assert judged(**{name: value}).verdict == "none"
    assert reason(**{name: math.nan}).startswith("cannot be computed: ")


@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_step_is_short_and_no_chain_relaxed_that_is_not_known(value: float) -> None:
    for name in ("stability", "relaxed"):
        assert judged(**{name: value}).verdict == "none", name


@given(
    st.sampled_from(["error", "distance", "norm"]),
    st.sampled_from([math.nan, math.inf]),
    st.sampled_from([5.1, 2.5]),
)
def test_no_name_is_given_by_what_is_not_known(name: str, value: float, llc: float) -> None:
    """An error, a distance or |w*| that is no number shows neither order nor plateau."""
    found = judged(**{name: value, "value": llc})
    assert found.verdict in (UNDECIDED, "none"), found


@pytest.mark.parametrize("name", Prediction._fields)
@pytest.mark.parametrize("value", NOT_FINITE)
def test_no_estimate_is_quadratic_by_a_prediction_that_is_not_computed(name: str, value: float) -> None:
    """Parts of step and noise that are nan are of a sampler without a closed form; h_min is told and not judged by."""
    if name == "h_min" or (name in ("step", "noise") and math.isnan(value)):
        return
    assert judged(prediction=FLAT_PREDICTION._replace(**{name: value})).verdict != "LLC"


# --- estimates of traces ---

SETTINGS = Settings(eps=1e-3, nbeta=100.0, gamma=10.0, chains=8, burn_in=40, draws=400)
RNG = np.random.default_rng(0)


def traces(**changed: Any) -> dict[str, np.ndarray]:
    """Chains that stand still around an excess of .05, with a check every tenth draw."""
    draws, checks = SETTINGS.burn_in + SETTINGS.draws, 44
    return {
        "excess": 0.05 + 0.01 * RNG.standard_normal((8, draws)),
        "distance": np.full((8, draws), 0.3),
        "fixed_loss": 1.05 + 0.01 * np.concatenate([np.full((8, 1), -5.0), RNG.standard_normal((8, checks - 1))], 1),
        "acceptance": np.full((8, checks), 0.9),
    } | changed


def found(top: float = 1.0, null_loss: float | None = 2.0, loss: float = 1.0, **changed: Any) -> Estimate:
    return of_traces(traces(**changed), SETTINGS, loss, null_loss, 10.0, 25, top_eigenvalue=top)


def test_the_numbers_of_chains_without_a_reason_against_them() -> None:
    usable = found()
    assert (usable.verdict, usable.reasons) == (UNDECIDED, ())
    assert usable.draw_loss == pytest.approx(1.05, abs=1e-3)
    assert usable.saturation == pytest.approx(0.05, abs=1e-3)
    assert usable.stability == pytest.approx(1e-3 * (100.0 * 1.0 + 10.0))
    assert usable.relaxation == pytest.approx(2 / (1e-3 * 10.0))
    assert usable.radius == pytest.approx(np.sqrt(25 / 10))
    assert usable.norm == pytest.approx(10.0)
    assert usable.distance == pytest.approx(0.3)
    assert usable.acceptance == pytest.approx(0.9)
    assert usable.below == 0.0
    assert str(usable) == (
        f"{usable.value:.4g} [{usable.low:.4g}, {usable.high:.4g}] at nbeta 100, gamma 10: undecided"
    )


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"null_loss": 1.1}, "saturated: draws are 0.50 of the way to the null predictor"),
        ({"null_loss": 0.9}, "cannot be computed: saturation, for L(w*) is above the null predictor's loss"),
        ({"top": 9.9}, "step too long: eps (nbeta h_max + gamma) is 1, not below 1"),
        ({"acceptance": np.full((8, 44), 0.04)}, "step too long: acceptance is 0.04"),
        ({"excess": np.linspace(0, 0.1, 440) + 1e-3 * RNG.standard_normal((8, 440))}, "not mixed: +"),
        ({"excess": np.linspace(0.1, 0, 440) + 1e-3 * RNG.standard_normal((8, 440))}, "not mixed: -"),
        (
            {"fixed_loss": 1.05 + 0.01 * (RNG.standard_normal((8, 44)) + 2 * np.arange(8)[:, None])},
            "not mixed: R-hat is ",
        ),
        ({"fixed_loss": np.full((8, 44), 1.05)}, "not mixed: the losses of the draws differ by rounding alone"),
        ({"distance": np.full((8, 440), 11.0)}, "escaped: draws are at distance 11"),
    ],
)
def test_chains_with_reasons_against_them_say_them(changed: dict[str, Any], said: str) -> None:
    estimate = found(**changed)
    assert any(one.startswith(said) for one in estimate.reasons), estimate.reasons
    assert estimate.verdict == "none"


def test_saturation_is_not_asked_for_where_no_null_predictor_is_known() -> None:
    estimate = found(null_loss=None)
    assert (estimate.verdict, estimate.reasons) == (UNDECIDED, ())
    assert math.isnan(estimate.saturation)
    assert math.isnan(estimate.null_loss)


def test_a_chain_that_diverged_has_no_numbers() -> None:
    excess = traces()["excess"]
    excess[2, 350:] = np.nan
    estimate = found(excess=excess)
    assert estimate.reasons == (
        "cannot be computed: chain 2 diverged at draw 350, as eps is too large for these nbeta and gamma",
    )
    assert np.isnan([estimate.value, estimate.low, estimate.high, estimate.d_nbeta]).all()


def test_burn_in_is_left_out() -> None:
    excess, fixed = traces()["excess"], traces()["fixed_loss"]
    excess[:, :40], fixed[:, 1:4] = 1e6, 1e6
    changed = found(excess=excess, fixed_loss=fixed)
    assert changed.saturation == pytest.approx(0.05, abs=1e-3)
    assert changed.value == pytest.approx(5.0, rel=0.01)
    assert changed.r_hat < 1.1


def test_draws_below_w_star_are_counted() -> None:
    fixed = np.full((8, 44), 1.05)
    fixed[:, 30:] = 0.9
    fixed[:, 0] = 1.0
    assert found(fixed_loss=fixed).below == pytest.approx(14 / 40)


def spread(mean: float) -> np.ndarray:
    """Eight chains of 100 draws whose means spread by .1."""
    return mean + 0.1 * np.linspace(-1, 1, 8)[:, None] + np.sin(np.arange(100.0))[None]


def test_chains_clearly_below_are_off_a_minimum_and_others_are_not() -> None:
    """The standard error of the mean of eight such chains is .023, and the sine's mean .01."""
    said = "off minimum: the draws lie below L(w*)"
    assert said in diagnose({"excess": spread(-0.1)}, 1.0, 1.0).reasons
    for mean in (-0.03, 0.1):
        assert said not in diagnose({"excess": spread(mean)}, 1.0, 1.0).reasons
    below = diagnose({"excess": spread(-0.5)}, 1.0, 1.0, loss=1.0, null_loss=4.0)
    assert below.verdict == "none"
    assert below.saturation < 0


@pytest.mark.parametrize(("chains", "limit"), [(4, 3.18), (8, 2.36), (16, 2.13)])
def test_the_trends_limit_is_that_of_a_t_of_as_many_chains(chains: int, limit: float) -> None:
    """Of a table; and of still chains one in twenty is flagged, within three errors of 1000 repetitions, .021."""
    assert t_quantile(chains) == pytest.approx(limit, abs=5e-3)
    rng = np.random.default_rng(chains)
    found = stats.ttest_1samp(rng.standard_normal((1000, chains)), 0.0, axis=1).statistic
    assert np.mean(np.abs(found) > t_quantile(chains)) == pytest.approx(0.05, abs=0.021)
    at_limit = PASSING._replace(t=t_quantile(chains), trend=limit - 0.01)
    assert judge(at_limit).reasons == ()
    assert judge(at_limit._replace(trend=limit + 0.01)).reasons


# --- traces of other tools ---


def test_diagnose_gives_a_quadratic_its_name_from_exact_draws() -> None:
    """Draws of the posterior of h w^2 / 2 in ten dimensions, made in NumPy: a plateau at 5 h / (h + gamma / nbeta)."""
    h, nbeta, gamma, d = 2.0, 100.0, 1.0, 10
    u = np.random.default_rng(3).standard_normal((8, 4000, d)) / np.sqrt(nbeta * h + gamma)
    excess = 0.5 * h * np.sum(u**2, axis=2)
    ones, zeros = np.ones(d), np.zeros(d)
    spectrum = Spectrum((Nodes(h * ones, ones, zeros, zeros),), d, h, h, 0.0)
    drawn = {"excess": excess, "distance": np.linalg.norm(u, axis=2), "slope": 2 * excess}
    estimate = diagnose(drawn, nbeta, gamma, norm=5.0, spectrum=spectrum)
    exact = 5 * nbeta * h / (nbeta * h + gamma)
    assert estimate.value == pytest.approx(exact, abs=3 * estimate.error)
    assert estimate.verdict == "LLC"
    assert estimate.degree == pytest.approx(2.0, abs=1e-9)
    assert diagnose(drawn, nbeta, gamma, norm=5.0).order == UNDECIDED  # without a spectrum
    assert diagnose(drawn, nbeta, gamma, spectrum=spectrum).verdict == UNDECIDED  # without |w*|


@pytest.mark.parametrize(
    ("arrays", "burn_in", "said"),
    [
        ({}, 0, "traces has nothing; it needs excess"),
        ({"loss": np.ones((2, 9))}, 0, "traces has loss; it needs excess"),
        ({"excess": np.ones(9)}, 0, r"excess has shape \(9,\); it must be \[chains, draws\]"),
        ({"excess": np.ones((1, 9))}, 0, "excess has only one chain"),
        ({"excess": np.ones((2, 9))}, 2, "burn_in is 2 of 9 draws; 8 or more must be left"),
        ({"excess": np.ones((2, 9)), "distance": np.ones((3, 9))}, 0, r"distance has shape \(3, 9\); excess has 2 ch"),
    ],
)
def test_diagnose_refuses(arrays: dict[str, Any], burn_in: int, said: str) -> None:
    from icl_lab.src.checks import ConfigError

    with pytest.raises(ConfigError, match=said):
        diagnose(arrays, 1.0, 1.0, burn_in=burn_in)
