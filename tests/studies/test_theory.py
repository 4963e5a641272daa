"""The study of theory: the numbers that its claims name are those of closed forms."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from icl_lab.analysis.shifts import shifted
from icl_lab.baselines import preconditioned
from icl_lab.baselines.step_sizes import Spectrum, best_step_sizes, residual_polynomial
from icl_lab.src.covariance import fixed_eigenvalues
from icl_lab.studies.claim import UNBOUNDED, Claim
from icl_lab.studies.study import load
from icl_lab.studies.theory import higher_order
from icl_lab.studies.theory import preconditioned as of_preconditioned

STUDY = load("theory")
BY_NAME = {claim.name: claim for claim in STUDY.claims}


def data_of(name):
    return STUDY.runs[name].cells[0].config.data


def of_all_runs(name: str) -> Claim:
    return next(claim for claim in of_preconditioned.OF_ALL_RUNS if claim.name == name)


def test_of_settings_in_which_runs_are_stuck_nothing_is_claimed_of_a_mean_of_all() -> None:
    of_stuck = [claim for claim in STUDY.claims if claim.runs.removesuffix("_further") in of_preconditioned.STUCK]
    assert len(of_stuck) == 3 + 11
    for claim in of_stuck:
        assert claim.runs.endswith("_further")
        assert claim.among or claim.scale == "share"


def best(data):
    return preconditioned.loss(preconditioned.preconditioner(data), data)


@pytest.mark.parametrize("name", of_preconditioned.SPECTRA)
def test_one_gradient_step_is_as_far_as_the_claim_says(name: str) -> None:
    data = data_of(name)
    noise = data.noise_std**2 / 2
    gd = preconditioned.loss(preconditioned.scaled(np.ones(data.dim), data), data)
    ratio = (gd + noise) / (best(data) + noise)
    assert ratio == pytest.approx(of_preconditioned.SPECTRA[name][1], abs=1e-3)
    assert ratio - 1 > 10 * (of_all_runs(f"preconditioned_{name}_loss").high - 1)


@pytest.mark.parametrize("name", of_preconditioned.DISTANCES)
def test_the_identity_and_the_inverse_are_as_far_as_the_claim_says(name: str) -> None:
    from icl_lab.analysis.weights import relative_distance

    data = data_of(name)
    a, eigenvalues = preconditioned.preconditioner(data), fixed_eigenvalues(data)
    assert eigenvalues is not None
    found = [relative_distance(np.diag(other), np.diag(a)) for other in (np.ones(data.dim), 1 / eigenvalues)]
    assert found == pytest.approx(list(of_preconditioned.DISTANCES[name]), abs=1.5e-3)


@pytest.mark.parametrize("pairs", of_preconditioned.LENGTHS)
def test_losses_on_other_lengths_are_the_closed_forms(pairs: int) -> None:
    data = data_of("noisy")
    trained, tested = preconditioned.preconditioner(data), replace(data, num_pairs=pairs)
    assert (preconditioned.loss(trained, tested), best(tested)) == pytest.approx(
        of_preconditioned.LENGTHS[pairs], abs=1e-4
    )
    assert data.noise_std**2 / 2 == of_preconditioned.IRREDUCIBLE


def test_shifts_are_the_closed_forms() -> None:
    data = data_of("reciprocal")
    a = preconditioned.preconditioner(data)
    reverse = preconditioned.loss(a, shifted(data, of_preconditioned.REVERSED))
    assert reverse / best(data) == pytest.approx(of_all_runs("preconditioned_covariance_shift").expected, abs=0.01)
    assert preconditioned.loss(a, shifted(data, "query_covariance=isotropic")) == pytest.approx(2.1530, abs=1e-3)
    shares = [
        preconditioned.loss(a, one) / preconditioned.loss(0 * a, one) for one in (data, shifted(data, "task_mean=1"))
    ]
    assert shares[0] == pytest.approx(shares[1])


def left_by_gd_plus_plus(values: np.ndarray, steps: int) -> float:
    """The mean square that GD++ with the best rates leaves, by BFGS from random rates."""
    from scipy.optimize import minimize

    def left(rates: np.ndarray) -> float:
        remains, now = np.ones_like(values), values.copy()
        for step in range(steps):
            remains = remains * (1 - rates[step] * now)
            if step + 1 < steps:
                now = now * (1 - rates[steps + step] * now) ** 2
        return float(np.mean(remains**2))

    rng = np.random.default_rng(0)
    starts = [np.append(rng.uniform(1, 10, steps), rng.uniform(0, 1.2, steps - 1)) for _ in range(40)]
    return min(float(minimize(left, start, method="BFGS").fun) for start in starts)


@pytest.mark.parametrize("name", [name for name in higher_order.DEPTHS if name.startswith("exact")])
def test_what_gd_plus_plus_and_the_best_polynomial_leave_is_what_the_claim_says(name: str) -> None:
    values = fixed_eigenvalues(data_of(name))
    assert values is not None
    _, share, _, high, polynomial = higher_order.DEPTHS[name]
    step_sizes = best_step_sizes(Spectrum(values, np.ones(len(values))), 2)
    best_polynomial = np.mean(residual_polynomial(step_sizes, values) ** 2)
    assert left_by_gd_plus_plus(values, 2) == pytest.approx(share, rel=2e-3)
    assert best_polynomial / share == pytest.approx(polynomial, rel=5e-3)
    assert polynomial - 1 > 10 * (high - 1) or polynomial > 10  # ten margins, or ten times


def test_a_newton_schulz_step_leaves_what_the_claim_says() -> None:
    values = fixed_eigenvalues(data_of("exact_100_1"))
    assert values is not None
    step = 1 / best_step_sizes(Spectrum(values, np.ones(len(values))), 1)
    gd, newton_schulz = (np.mean((1 - a * values) ** (2 * power)) for a, power in ((1 / step, 1), (2 / 1.01, 2)))
    assert newton_schulz / gd == pytest.approx(0.85, abs=5e-3)


def test_there_are_at_least_twenty_claims_on_trained_networks() -> None:
    assert len([claim for claim in STUDY.claims if claim.runs]) >= 20
    assert all(claim.low < claim.high <= UNBOUNDED for claim in STUDY.claims)


def test_the_page_is_made_without_a_run(tmp_path: Path) -> None:
    from icl_lab.studies import index, ledger, page

    ledger.write(tmp_path, {})
    page.write(STUDY, "full", tmp_path)
    text = (tmp_path / "theory.md").read_text()
    assert text.startswith("# Do trained transformers do what theory predicts?")
    assert text.count("| not run |") >= len(STUDY.claims)
    assert "theory.md" in [entry["path"] for entry in index.index(tmp_path)["pages"]]
