"""An estimate of the local learning coefficient, made from the traces of chains, whoever drew them.

    LLC(w*) = nbeta (mean over draws of L(w) - L(w*)),    w ~ exp(-nbeta L(w) - gamma/2 |w - w*|^2)

(Lau et al. 2023, Eq. 15), with the 95 % t interval over the means of chains, its diagnostics, and a verdict: what the
number measures (`analysis.llc.verdict`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.analysis.llc import derivatives
from icl_lab.analysis.llc.mixing import NO_MOVEMENT, divergence, is_still, mixing, trend
from icl_lab.analysis.llc.prediction import How, Prediction, predict, relaxed
from icl_lab.analysis.llc.settings import Settings
from icl_lab.analysis.llc.spectrum import Spectrum
from icl_lab.analysis.llc.verdict import CHANCE, Evidence, judge
from icl_lab.src import intervals
from icl_lab.src.checks import require
from icl_lab.store.llc_rows import ABOVE_NULL, BETWEEN, is_known

if TYPE_CHECKING:
    import pandas as pd

LEVEL = 0.95  # of intervals over chains
NO_INTERVAL = intervals.Interval(np.nan, np.nan, np.nan, 0)
ENOUGH = 4  # checks of a chain after its burn-in, for R-hat


@dataclass(frozen=True)
class Estimate:
    """An LLC with its interval, its verdict and everything that the verdict is based on.

    value, low, high, error: the LLC, its 95 % t interval over chains and its standard error.
    verdict, pull, order, reasons: what it measures (`analysis.llc.verdict`).
    d_nbeta, d_gamma, degree: logarithmic derivatives and the degree, with standard errors (`analysis.llc.derivatives`).
    prediction: what a quadratic loss would give, in four parts.
    loss, null_loss, draw_loss: L(w*), the null predictor's loss and the mean loss of the draws.
    saturation: where draw_loss lies between loss (0) and null_loss (1).
    acceptance: the probability that a Metropolis step of size eps is accepted.
    stability: eps (nbeta h_max + gamma).
    trend: the last quarter's mean minus the first's, over its standard error.
    r_hat, ess: of the losses on fixed samples; below: the fraction of these that lie below L(w*).
    distance, radius, norm: mean |w - w*|; sqrt(d / gamma), the distance that the pull alone would give; |w*|. All three
    are of the sampled parameters.
    relaxation: the steps, 2 / (eps gamma), in which a flat direction forgets w*.
    relaxed: the fraction of the prediction that chains of this length show.
    descent: the distance and the drop in loss of the descent before the chains.
    measured: the LLC on the second data set, with low and high.
    traces: [C, T] and [C, K], burn-in included.
    """

    value: float
    low: float
    high: float
    error: float
    verdict: str
    pull: str
    order: str
    reasons: tuple[str, ...]
    slopes: derivatives.Slopes
    prediction: Prediction | None
    loss: float
    null_loss: float
    draw_loss: float
    saturation: float
    acceptance: float
    stability: float
    trend: float
    r_hat: float
    ess: float
    below: float
    distance: float
    radius: float
    norm: float
    relaxation: float
    relaxed: float
    top_eigenvalue: float
    settings: Settings
    descent: tuple[float, float] = (0.0, 0.0)
    measured: tuple[float, float, float] | None = None
    traces: Mapping[str, np.ndarray] = field(default_factory=dict, repr=False, compare=False)

    @property
    def d_nbeta(self) -> float:
        """d ln LLC / d ln nbeta."""
        return self.slopes.d_nbeta

    @property
    def d_gamma(self) -> float:
        """d ln LLC / d ln gamma."""
        return self.slopes.d_gamma

    @property
    def degree(self) -> float:
        """E[nbeta u.grad L] / E[nbeta (L - L(w*))]."""
        return self.slopes.degree

    @property
    def excess(self) -> np.ndarray:
        """The excess losses of the draws [C, T], without the burn-in."""
        return self.traces["excess"][:, self.settings.burn_in :]

    def row(self) -> dict[str, Any]:
        """The columns of a table, without the traces."""
        prediction = self.prediction or Prediction()
        numbers = {"llc": self.value, "llc_low": self.low, "llc_high": self.high, "loss": self.loss}
        said = {"verdict": self.verdict, "reasons": BETWEEN.join(self.reasons), "pull": self.pull, "order": self.order}
        parts = {
            "predicted": prediction.total,
            "predicted_error": prediction.error,
            "curvature": prediction.curvature,
            "step_part": prediction.step,
            "noise_part": prediction.noise,
            "slope_part": prediction.slope,
            "h_min": prediction.h_min,
        }
        second = {} if self.measured is None else dict(zip(MEASURED, self.measured, strict=True))
        moved = {"descent_distance": self.descent[0], "descent_gain": self.descent[1]}
        diagnostics = {name: getattr(self, name) for name in DIAGNOSTICS}
        return numbers | diagnostics | said | parts | self.slopes._asdict() | second | moved | asdict(self.settings)

    def to_frame(self) -> pd.DataFrame:
        """A table of one row."""
        import pandas as pd

        return pd.DataFrame([self.row()])

    def plot(self) -> Any:
        """A figure of the chains, the estimate and the prediction: a `matplotlib.figure.Figure`."""
        from icl_lab.plots.llc import estimate_figure

        return estimate_figure(self.row(), self.traces, str(self).replace("\n  ", "; "))

    def to_xarray(self) -> Any:
        """The draws after the burn-in as an `xarray.Dataset` with axes chain and draw (checks: chain and check)."""
        from icl_lab.analysis.llc.export import to_xarray

        return to_xarray(self.traces, self.settings.burn_in, self.row())

    def to_arviz(self) -> Any:
        """The draws as ArviZ's InferenceData, excess, distance and slope in its posterior."""
        from icl_lab.analysis.llc.export import to_arviz

        return to_arviz(self.traces, self.settings.burn_in)

    def __str__(self) -> str:
        reasons = "".join(f"\n  {reason}" for reason in self.reasons)
        predicted = "" if self.prediction is None else f", quadratic prediction {self.prediction.total:.4g}"
        at = f"nbeta {self.settings.nbeta:g}, gamma {self.settings.gamma:g}"
        return f"{self.value:.4g} [{self.low:.4g}, {self.high:.4g}] at {at}{predicted}: {self.verdict}{reasons}"


MEASURED = ("measured", "measured_low", "measured_high")
DIAGNOSTICS = (
    *("null_loss", "draw_loss", "saturation", "acceptance", "stability", "trend", "r_hat", "ess", "below"),
    *("distance", "radius", "norm", "relaxation", "relaxed", "top_eigenvalue"),
)


def of_traces(
    traces: Mapping[str, np.ndarray],
    settings: Settings,
    loss: float = math.nan,
    null_loss: float | None = None,
    norm: float | None = None,
    parameters: int | None = None,
    spectrum: Spectrum | None = None,
    top_eigenvalue: float = math.nan,
    descent: tuple[float, float] = (0.0, 0.0),
) -> Estimate:
    """The estimate from chains: excess [C, T] and the available fields of `sgld.Draws`, burn-in included.

    null_loss: None where no null predictor is known; saturation is then not measured.
    norm, parameters: |w*| and the number of sampled parameters.
    """
    kept = _kept(traces, settings.burn_in)
    excess, chains = kept["excess"], len(kept["excess"])
    is_finite = bool(np.isfinite(traces["excess"]).all())
    means = settings.nbeta * excess.mean(axis=1)
    interval = intervals.of(means, "linear", LEVEL) if is_finite else NO_INTERVAL
    error = float(means.std(ddof=1) / math.sqrt(chains)) if is_finite else math.nan
    with np.errstate(invalid="ignore", over="ignore"):  # of chains that diverged, which the reasons say
        rise, numbers = float(excess.mean()), _numbers(kept, traces)
    steps = _of_steps(settings, spectrum, top_eigenvalue)
    forgets = settings.sampler == "hmc" or steps["relaxation"] <= max(settings.burn_in * settings.thin, 1)
    slopes = _slopes(traces, kept, settings, forgets) if is_finite else derivatives.UNKNOWN
    prediction = None if spectrum is None else predict(spectrum, settings.nbeta, settings.gamma, how_of(settings))
    saturation, above = _saturation(loss, null_loss, rise)
    fixed = kept.get("fixed_loss")
    evidence = Evidence(
        value=interval.estimate,
        error=error,
        t=t_quantile(chains),
        slopes=slopes,
        prediction=prediction,
        distance=numbers["distance"],
        norm=norm,
        saturation=None if null_loss is None else saturation,
        saturation_cause=above,
        trend=trend(excess),
        r_hat=None if fixed is None or fixed.shape[1] < ENOUGH else numbers["r_hat"],
        r_hat_cause=NO_MOVEMENT if fixed is not None and is_still(fixed) else "",
        acceptance=numbers["acceptance"] if "acceptance" in kept and settings.sampler != "sghmc" else None,
        stability=steps["stability"] if is_known(steps["stability"]) else None,
        relaxed=steps["relaxed"] if is_known(steps["relaxed"]) else None,
        relaxation=steps["relaxation"],
        burn_in=settings.burn_in * settings.thin,
        divergence=divergence(traces["excess"]),
    )
    return Estimate(
        value=interval.estimate,
        low=interval.low,
        high=interval.high,
        error=error,
        **judge(evidence)._asdict(),
        slopes=slopes,
        prediction=prediction,
        loss=loss,
        null_loss=math.nan if null_loss is None else null_loss,
        draw_loss=loss + rise,
        saturation=saturation,
        trend=evidence.trend,
        radius=math.sqrt(parameters / settings.gamma) if parameters and settings.gamma > 0 else math.inf,
        norm=math.nan if norm is None else norm,
        settings=settings,
        descent=descent,
        measured=_measured(kept, settings.nbeta),
        traces=dict(traces),
        **numbers,
        **steps,
    )


def _of_steps(settings: Settings, spectrum: Spectrum | None, top_eigenvalue: float) -> dict[str, Any]:
    """What is known of the steps before any draw: relaxation, relaxed, stability and top_eigenvalue; nan if unknown."""
    eps, nbeta, gamma = settings.eps, settings.nbeta, settings.gamma
    top = spectrum.h_max if spectrum is not None else top_eigenvalue
    friction = settings.friction if settings.sampler == "sghmc" else 1.0
    found = {
        "relaxation": 2 * friction / (eps * gamma) if eps and gamma else math.inf,
        "relaxed": math.nan,
        "stability": math.nan,
        "top_eigenvalue": top,
    }
    if eps is None or settings.sampler == "hmc":
        return found
    if is_known(top):
        found["stability"] = eps * (nbeta * max(top, 0.0) + gamma)
    how = how_of(settings)
    if spectrum is not None and how is not None:
        lengths = settings.burn_in * settings.thin, settings.draws * settings.thin
        found["relaxed"] = relaxed(spectrum, nbeta, gamma, how, *lengths)
    return found


def _saturation(loss: float, null_loss: float | None, rise: float) -> tuple[float, str]:
    """(draws' loss - L(w*)) / (L_null - L(w*)), and why there is none where L(w*) is above the null predictor's."""
    if not (is_known(null_loss) and is_known(loss)):
        return math.nan, ""
    return (math.nan, ABOVE_NULL) if null_loss <= loss else (rise / (null_loss - loss), "")


def diagnose(
    traces: Mapping[str, Any],
    nbeta: float,
    gamma: float,
    *,
    eps: float | None = None,
    loss: float = math.nan,
    null_loss: float | None = None,
    norm: float | None = None,
    parameters: int | None = None,
    burn_in: int = 0,
    batch_size: int | None = None,
    spectrum: Spectrum | None = None,
    top_eigenvalue: float = math.nan,
) -> Estimate:
    """The estimate, interval and verdict from the traces of any sampler's chains.

    traces: excess [C, T], the loss of every draw less L(w*) (of its own batch, or of all data); and, if available,
    distance [C, T] |w - w*|, slope [C, T] (w - w*).grad L, fixed_loss [C, K] on fixed samples. eps: of the step w
    - eps/2 (nbeta g + gamma (w - w*)) + N(0, eps), None if not known; norm: |w*| (0 at the origin), needed to show a
    plateau; spectrum: of `analysis.llc.spectrum`, needed to show that an estimate is quadratic.

    If losses are of minibatches, their noise biases the derivative in nbeta, as there is no second, independent batch.
    `ConfigError` for traces of other shapes.
    """
    arrays = {name: np.asarray(values, np.float64) for name, values in traces.items()}
    require("excess" in arrays, f"traces has {', '.join(arrays) or 'nothing'}; it needs excess [chains, draws]")
    excess = arrays["excess"]
    require(excess.ndim == 2, f"excess has shape {excess.shape}; it must be [chains, draws]")
    chains, draws = excess.shape
    require(chains >= 2, "excess has only one chain; an interval needs two or more")
    require(0 <= burn_in <= draws - 8, f"burn_in is {burn_in} of {draws} draws; 8 or more must be left")
    for name, values in arrays.items():
        require(
            values.ndim >= 2 and len(values) == chains, f"{name} has shape {values.shape}; excess has {chains} chains"
        )
    size = 1 if batch_size is None else batch_size
    settings = Settings(
        eps=eps,
        nbeta=nbeta,
        gamma=gamma,
        batch_size=size,
        tasks=size,
        data="full" if batch_size is None else "fixed",
        chains=chains,
        burn_in=burn_in,
        draws=draws - burn_in,
    )
    return of_traces(arrays, settings, loss, null_loss, norm, parameters, spectrum, top_eigenvalue)


def t_quantile(chains: int) -> float:
    """The 97.5 % quantile of Student's t with chains - 1 degrees of freedom."""
    from scipy import special

    return float(special.stdtrit(chains - 1, 1 - CHANCE / 2))


def how_of(settings: Settings) -> How | None:
    """How a chain's steps are made; None without a closed form."""
    if settings.sampler == "rmsprop" or settings.eps is None:
        return None
    if settings.sampler == "hmc":
        return How()
    friction = settings.friction if settings.sampler == "sghmc" else 1.0
    return How(settings.eps, math.inf if settings.data == "full" else settings.batch_size, friction)


def _kept(traces: Mapping[str, np.ndarray], burn_in: int) -> dict[str, np.ndarray]:
    """Traces less their burn-in: one number a draw, or one a check, whose draws begin its block."""
    draws = traces["excess"].shape[1]
    every = {name: -(-draws // values.shape[1]) for name, values in traces.items()}
    return {name: values[:, -(-burn_in // every[name]) :] for name, values in traces.items()}


def _numbers(kept: Mapping[str, np.ndarray], traces: Mapping[str, np.ndarray]) -> dict[str, Any]:
    fixed = kept.get("fixed_loss")
    below = math.nan if fixed is None else float(np.mean(fixed < traces["fixed_loss"][:, :1]))
    return {
        "distance": float(kept["distance"].mean()) if "distance" in kept else math.nan,
        "acceptance": float(kept["acceptance"].mean()) if "acceptance" in kept else math.nan,
        "below": below,
        **({"r_hat": math.nan, "ess": math.nan} if fixed is None else mixing(fixed)),
    }


def _slopes(
    traces: Mapping[str, np.ndarray], kept: Mapping[str, np.ndarray], settings: Settings, forgets: bool
) -> derivatives.Slopes:
    """The derivatives, from the draws that are checked; on all data, whose losses have no noise, from every draw."""
    whole = settings.data == "full" or "second_excess" not in traces
    every = 1 if whole else -(-traces["excess"].shape[1] // traces.get("second_excess", traces["excess"]).shape[1])

    def at_checks(name: str) -> np.ndarray:
        return traces[name][:, ::every][:, -(-settings.burn_in // every) :]

    pairs = {"first": at_checks("excess")}
    pairs["second"] = pairs["first"] if whole else kept["second_excess"]
    if "distance" in kept:
        pairs["distance"] = at_checks("distance")
    if "slope" in kept:
        pairs["first_slope"] = at_checks("slope")
        pairs["second_slope"] = pairs["first_slope"] if whole else kept["second_slope"]
    return derivatives.slopes(pairs, kept, settings.nbeta, settings.gamma, forgets)


def _measured(kept: Mapping[str, np.ndarray], nbeta: float) -> tuple[float, float, float] | None:
    if "measured" not in kept:
        return None
    means = nbeta * kept["measured"].mean(axis=1)
    found = intervals.of(means, "linear", LEVEL) if np.isfinite(means).all() else NO_INTERVAL
    return found.estimate, found.low, found.high
