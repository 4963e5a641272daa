"""What the claims of dual modes say of decoders that are an exact predictor: the posterior passes, the others fail."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from icl_lab.analysis import dual_modes
from icl_lab.analysis.dual_modes import BAYES, DMMSE, RIDGE, TF, Compared
from icl_lab.baselines import bayes, mixture
from icl_lab.src.batch import Batch
from icl_lab.src.checks import ConfigError
from icl_lab.src.data_config import PoolData
from icl_lab.studies.theory import mixtures

DATA = mixtures.MIXTURE
NOISE = DATA.noise_std**2


@dataclass(frozen=True)
class Exact:
    """A model that is one of the exact predictors, but for a constant of .0001, so that no distance is 0."""

    name: str

    def predict(self, params: Any, batch: Batch) -> Any:
        return 1e-4 + self.exactly(batch)

    def exactly(self, batch: Batch) -> Any:
        if self.name == BAYES:
            return mixture.predict_sequence(batch, NOISE, DATA.weight_scale)
        if self.name == RIDGE:
            return bayes.ridge(batch, NOISE / DATA.task_variance)
        return bayes.dmmse(batch, mixture.prior(DATA.dim, DATA.weight_scale)[0], NOISE)


@lru_cache(maxsize=8)
def run_that_is(name: str, where: str) -> Compared:
    loaded: Any = SimpleNamespace(model=Exact(name), params={}, config=SimpleNamespace(data_seed=99))
    of = {mixtures.OF_MIXTURE: dual_modes.of_mixture, mixtures.OF_OUTSIDE: dual_modes.of_outside}[where]
    return of(loaded, DATA, 4096)


@pytest.fixture
def exact(monkeypatch: pytest.MonkeyPatch) -> None:
    """A run is the predictor that its directory is called after."""
    monkeypatch.setattr(mixtures, "compared", lambda run, where: run_that_is(run.name, where))


def passes(claim: Any, name: str) -> bool:
    value = claim.measure(Path(name))
    return bool(claim.low <= value <= claim.high)


def test_the_posterior_of_its_own_prior_passes_and_the_other_fails(exact: None) -> None:
    own = {"mixture": BAYES, "gaussian": RIDGE}
    for claim in mixtures.CLAIMS:
        for runs, name in own.items():
            assert passes(claim, name) == (claim.runs.removesuffix("_main") == runs), (claim.name, name)


def test_retrieval_alone_fails_where_many_pairs_are_seen(exact: None) -> None:
    failed = {claim.name for claim in mixtures.CLAIMS if not passes(claim, DMMSE)}
    assert {"prior_learns_outside", "prior_many_pairs", "prior_ascent_height", "prior_ascent_place"} <= failed


def test_alternatives_lie_ten_half_widths_away(exact: None) -> None:
    """Of a decoder that is the other prior's posterior; of pure retrieval where many pairs are seen."""
    for claim in mixtures.CLAIMS:
        other = BAYES if claim.runs == "gaussian" else RIDGE
        many = claim.name in ("prior_learns_outside", "prior_many_pairs")
        value = claim.measure(Path(DMMSE if many else other))
        beyond = max(claim.low - value, value - claim.high)
        assert beyond >= 10 * (claim.high - claim.low) / 2, claim.name


def test_losses_distances_and_slopes_by_hand() -> None:
    targets = np.array([[1.0, 2.0], [3.0, -2.0]])
    found = Compared({TF: targets + 1, RIDGE: 0.5 * targets, BAYES: targets}, targets)
    np.testing.assert_allclose(found.losses(TF), [0.5, 0.5])
    np.testing.assert_allclose(found.distances(BAYES), [0.5, 0.5])
    np.testing.assert_allclose(found.distances(RIDGE), [0.5 * (1.5**2 + 2.5**2) / 2, 0.5 * (2**2 + 0) / 2])
    np.testing.assert_allclose(found.learnt(RIDGE), [0.5, 0.5])
    assert dual_modes.ascent(np.array([2.0, 3.0, 1.0])) == 1.5
    assert dual_modes.ascent(np.array([2.0, 1.0])) == 1


def test_the_sequences_are_those_of_the_runs_seed() -> None:
    """The same for both networks of a seed; a task outside is orthogonal to all centres and as long."""
    one, other = (run_that_is(name, mixtures.OF_MIXTURE) for name in (BAYES, RIDGE))
    np.testing.assert_array_equal(one.targets, other.targets)
    np.testing.assert_array_equal(one.predictions[RIDGE], other.predictions[RIDGE])
    outside = run_that_is(BAYES, mixtures.OF_OUTSIDE)
    assert np.mean(outside.targets**2) == pytest.approx(4, rel=0.05)
    np.testing.assert_allclose(outside.predictions[DMMSE][:, 0], 0, atol=1e-5)


@pytest.mark.parametrize(
    ("values", "message"),
    [({"dim": 2, "task_distribution": "mixture"}, "third axis"), ({"dim": 4}, "'gaussian' tasks are no mixture")],
)
def test_what_has_no_such_task_is_refused(values: dict[str, Any], message: str) -> None:
    loaded: Any = SimpleNamespace(model=Exact(BAYES), params={}, config=SimpleNamespace(data_seed=0))
    with pytest.raises(ConfigError, match=message):
        dual_modes.of_outside(loaded, PoolData(num_pairs=3, noise_std=0.5, **values), 4)


def test_both_priors_have_the_same_variance_and_lengths() -> None:
    data = {name: runs.cells[0].config.data for name, runs in mixtures.RUNS.items()}
    assert data["gaussian"].task_variance == pytest.approx(data["mixture"].task_variance) == pytest.approx(1.0625)
    assert data["mixture"] == DATA
    assert data["gaussian"].num_pairs == DATA.num_pairs


def test_curves_are_of_every_number_of_pairs(exact: None) -> None:
    found = mixtures.loss_curves(Path(BAYES), "mixture")
    pairs, losses = found[mixtures.OF_OUTSIDE, "posterior of the mixture"]
    assert list(pairs) == [*range(17)]
    np.testing.assert_allclose(losses, found[mixtures.OF_OUTSIDE, "Trained Transformer"][1], rtol=1e-3)
    assert set(mixtures.loss_curves(Path(RIDGE), "gaussian")) == {
        (panel, "trained on Gaussian tasks") for panel in (mixtures.OF_MIXTURE, mixtures.OF_OUTSIDE)
    }
    (((panel, _), (_, slopes)),) = mixtures.learnt_curves(Path(RIDGE), "gaussian").items()
    assert panel == mixtures.OF_OUTSIDE
    assert slopes[0] == pytest.approx(0, abs=1e-4)
    assert slopes[16] > 0.95
