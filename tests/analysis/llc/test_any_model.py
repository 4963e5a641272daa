"""`icl_lab.llc` on least squares, whose posterior is Gaussian: values of all samplers, and what may be asked for."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.llc import kept
from icl_lab.analysis.llc.estimate import Estimate
from icl_lab.src.checks import ConfigError
from icl_lab.store.readers import StoreError

N, D, NBETA, GAMMA, BATCH = 200, 4, 100.0, 20.0, 50
RNG = np.random.default_rng(0)
H = np.array([1.0, 0.8, 0.7, 0.6])  # the Hessian's eigenvalues: columns of x are orthogonal
X = np.linalg.qr(RNG.standard_normal((N, D)))[0] * np.sqrt(N * H)
Y = X @ np.array([1.0, -2.0, 0.5, 3.0]) + 0.5 * RNG.standard_normal(N)
SOLUTION = np.linalg.lstsq(X, Y, rcond=None)[0]
DATA = {"x": X.astype(np.float32), "y": Y.astype(np.float32), "number": np.arange(N)}
CHAINS: dict[str, Any] = {"nbeta": NBETA, "gamma": GAMMA, "batch_size": BATCH, "chains": 64, "draws": 400}
ERRORS = 3.5  # standard errors of 64 chains: 1 in 1000 by chance, and seeds are fixed


def identity(x: Any) -> Any:
    """A leaf that is a function, as of an Equinox module."""
    return x


def parameters(w: np.ndarray = SOLUTION) -> dict[str, Any]:
    """A tree whose vector is w, with leaves that are none of it."""
    w = w.astype(np.float32)
    return {"a": {"w": w[:3]}, "b": [w[3], np.arange(3), identity, 2]}


def loss(params: Any, batch: Any) -> Any:
    """Half the squared error; the power, an integer leaf, is 2, and the function changes nothing."""
    assert not any(leaf.dtype == np.float64 for leaf in jax.tree.leaves((params, batch)) if hasattr(leaf, "dtype"))
    last, numbers, function, power = params["b"]
    w = jnp.concatenate([params["a"]["w"], last[None]])
    return 0.5 * function(batch["x"] @ w - batch["y"]) ** power + 0.0 * numbers.sum()


def estimated(*, at: np.ndarray = SOLUTION, data: Any = None, **settings: Any) -> Estimate:
    """An estimate; with eps auto the steps add 1 / 40."""
    found: Estimate = icl_lab.llc(loss, parameters(at), DATA if data is None else data, **CHAINS | settings)
    return found


def exact(estimate: Estimate, at: np.ndarray = SOLUTION, moves: Any = (0, 1, 2, 3)) -> dict[str, float]:
    """The four parts in NumPy, from the Hessian and the samples' gradients of what moves."""
    x, of = X[:, list(moves)], estimate.settings
    h, vectors = np.linalg.eigh(x.T @ x / N)
    along = ((X @ at - Y)[:, None] * x) @ vectors
    a, eps = of.nbeta * h + of.gamma, of.step_size if of.sampler in ("sgld", "sghmc") else 0.0
    friction = of.friction if of.sampler == "sghmc" else 1.0
    quadratic, room = 0.5 * of.nbeta * h / a, 1 - eps * a / (4 * (2 - friction))
    size = math.inf if of.data == "full" else of.batch_size
    noise = eps * of.nbeta**2 * along.var(axis=0) / (4 * size * friction)
    slope = -(of.nbeta**2) * along.mean(axis=0) ** 2 * (0.5 * of.nbeta * h + of.gamma) / a**2
    parts = {"curvature": quadratic, "step": quadratic / room - quadratic, "noise": quadratic / room * noise}
    return {name: float(part.sum()) for name, part in (parts | {"slope": slope}).items()}


@pytest.fixture(scope="module")
def plain() -> Estimate:
    """The default: SGLD on minibatches, eps chosen."""
    return estimated()


# --- values ---


def check_value(found: Estimate, **of: Any) -> None:
    parts = exact(found, **of)
    assert found.error < 0.03 * abs(sum(parts.values()))
    assert found.value == pytest.approx(sum(parts.values()), abs=ERRORS * found.error)
    assert found.prediction is not None
    for name, value in parts.items():
        assert getattr(found.prediction, name) == pytest.approx(value, rel=2e-3, abs=1e-4), name


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"batch_size": None},
        {"sampler": "sghmc"},
        {"sampler": "hmc", "draws": 100},
    ],
    ids=str,
)
def test_the_value_is_the_closed_form(settings: dict[str, Any]) -> None:
    """With step size and minibatch noise; of HMC without."""
    found = estimated(**settings)
    check_value(found)
    assert found.order == "quadratic"
    assert found.verdict == "curvature"  # the pull is a quarter of nbeta h
    assert found.reasons == ()
    assert found.degree == pytest.approx(2.0, abs=3 * found.slopes.degree_error + 0.01)


def test_rmsprop_has_the_variance_of_its_own_steps() -> None:
    """Each coordinate is scaled by G = 1 / (h sqrt(V) + .1), V its variance in steps of size eps G: a fixed point.

    Steps relax in about ten, and G in a hundred, so that it is constant within some percent; told is only what has a
    closed form, the curvature's part.
    """
    found = estimated(sampler="rmsprop", batch_size=None, eps=3e-4)
    assert found.prediction is not None
    assert np.isnan([found.prediction.step, found.prediction.noise]).all()
    assert found.prediction.total == pytest.approx(exact(found)["curvature"], rel=1e-3)
    a, variance = NBETA * H + GAMMA, 1 / (NBETA * H + GAMMA)
    for _ in range(50):
        variance = 1 / (a * (1 - 3e-4 * a / (H * np.sqrt(variance) + 0.1) / 4))
    own = 0.5 * NBETA * np.sum(H * variance)
    assert own > 1.02 * found.prediction.total
    assert found.value == pytest.approx(own, rel=0.03)


def test_at_a_strong_nbeta_it_is_half_the_parameters() -> None:
    """A plateau: nbeta h_min is 15 000 times gamma."""
    found = estimated(nbeta=1e5, gamma=4.0, batch_size=None, sampler="hmc", draws=100)
    assert found.value == pytest.approx(D / 2, rel=0.05)
    assert found.verdict == "LLC"
    assert found.pull == "plateau"


def test_eps_that_is_chosen_is_a_tenth_of_the_bound_and_stable(plain: Estimate) -> None:
    top = float(np.linalg.eigvalsh(X.T @ X / N)[-1])
    assert plain.top_eigenvalue == pytest.approx(top, rel=1e-4)
    assert plain.settings.step_size == pytest.approx(0.1 / (NBETA * top + GAMMA), rel=1e-4)
    assert plain.stability == pytest.approx(0.1, rel=1e-4)
    assert plain.acceptance > 0.5
    bare = estimated(predict=False)
    assert bare.settings.step_size == pytest.approx(plain.settings.step_size, rel=1e-3)  # by Lanczos
    assert bare.prediction is None
    assert bare.verdict == "undecided"
    assert bare.value == pytest.approx(plain.value, abs=4 * math.hypot(plain.error, bare.error))


# --- randomness ---


def test_the_same_call_is_the_same_numbers(plain: Estimate) -> None:
    again = estimated()
    assert repr(again) == repr(plain)  # nan is not nan
    np.testing.assert_array_equal(again.traces["excess"], plain.traces["excess"])


def test_seeds_and_settings_have_independent_chains(plain: Estimate) -> None:
    """Chain means of 64 chains: correlations are below .5 by chance (4 of their errors), of shared keys above .8."""
    eps = plain.settings.step_size
    means = [plain.excess.mean(axis=1)]
    for changed in ({"seed": 1}, {"gamma": 1.01 * GAMMA}, {"nbeta": 1.01 * NBETA}, {"eps": 1.01 * eps}):
        other = estimated(**{"eps": eps} | changed)
        assert other.value == pytest.approx(plain.value, abs=4 * math.hypot(plain.error, other.error))
        means.append(other.excess.mean(axis=1))
    correlations = np.corrcoef(means)[np.triu_indices(len(means), 1)]
    assert np.abs(correlations).max() < 0.5
    assert len({tuple(mean) for mean in means}) == len(means)


# --- what may be asked for ---


@pytest.fixture(scope="module")
def asked() -> Estimate:
    """All that may be kept of draws: the parameters, every loss, and the excess on a second data set."""
    second = {name: values[: N // 2] for name, values in DATA.items()}
    return estimated(
        draws=80, burn_in=40, measured_on=second, per_sample=True, observe=observe, mask="^a/", null_loss=10.0
    )


def observe(params: Any) -> Any:
    """The vector, and the integers."""
    return jnp.concatenate([params["a"]["w"], params["b"][0][None], params["b"][1].astype(np.float32)])


def test_what_a_mask_leaves_out_stays_bit_for_bit(asked: Estimate) -> None:
    drawn = asked.traces["observed"]
    assert drawn.shape == (64, 120, 7)
    assert set(drawn[..., 3].ravel()) == {float(np.float32(SOLUTION[3]))}
    np.testing.assert_array_equal(drawn[..., 4:], np.broadcast_to(np.arange(3.0), (64, 120, 3)))
    assert (np.ptp(drawn[..., :3], axis=(0, 1)) > 0).all()
    away = np.linalg.norm(drawn[..., :3] - SOLUTION[:3].astype(np.float32), axis=2)
    np.testing.assert_allclose(asked.traces["distance"], away, atol=1e-5)
    assert asked.norm == pytest.approx(np.linalg.norm(SOLUTION[:3]), rel=1e-5)
    assert asked.radius == pytest.approx(math.sqrt(3 / GAMMA))
    assert asked.settings.mask == "^a/"


def test_masks_of_booleans_are_those_of_names(asked: Estimate) -> None:
    """And the value is that of the moving part alone."""
    of_names, of_trees = (
        estimated(mask=mask) for mask in ("^a/", {"a": True, "b": [False, np.zeros(3, bool), False, False]})
    )
    check_value(of_names, moves=(0, 1, 2))
    assert of_trees.value == pytest.approx(of_names.value, abs=4 * math.hypot(of_names.error, of_trees.error))
    assert (of_trees.settings.mask, of_trees.norm) == ("", of_names.norm)


def test_the_losses_of_samples_are_those_of_the_draws(asked: Estimate) -> None:
    """In NumPy, of the parameters that were observed; a batch's excess is their mean with its noise."""
    w = asked.traces["observed"][..., :4]
    expected = 0.5 * (np.einsum("ctd,nd->ctn", w, X) - Y) ** 2
    losses = asked.traces["losses"]
    assert losses.shape == (64, 120, N)
    np.testing.assert_allclose(losses, expected, rtol=1e-3, atol=1e-4)
    at_center = 0.5 * (X @ SOLUTION - Y) ** 2
    assert asked.loss == pytest.approx(at_center.mean(), rel=1e-5)
    excess = (losses - at_center).mean(axis=2)
    found = NBETA * excess[:, 40:].mean()
    assert found == pytest.approx(asked.value, abs=4 * asked.error)
    assert np.corrcoef(excess.ravel(), asked.traces["excess"].ravel())[0, 1] > 0.5
    second = (losses - at_center)[..., : N // 2].mean(axis=2)[:, 40:]
    assert asked.measured is not None
    value, low, high = asked.measured
    assert low < value < high
    every = asked.settings.check_every
    assert value == pytest.approx(NBETA * second[:, ::every].mean(), rel=1e-3, abs=1e-3)
    assert asked.row()["measured_low"] == low


def test_saturation_is_of_the_null_loss_that_is_given(asked: Estimate, plain: Estimate) -> None:
    rise = asked.value / NBETA
    assert asked.saturation == pytest.approx(rise / (10.0 - asked.loss))
    assert math.isnan(plain.saturation)  # where none is given it is not asked for, and no reason
    assert plain.reasons == ()


def test_what_is_kept_fits_in_memory() -> None:
    with pytest.raises(ConfigError, match=r"keep the losses of 200 samples each, more than 2\^26 values"):
        estimated(per_sample=True, draws=6_000)


def test_off_a_minimum_descent_brings_it_there(plain: Estimate) -> None:
    """The distance and the gain are NumPy's; L-BFGS on a quadratic of four parameters needs ten steps or so."""
    off = SOLUTION + np.array([0.3, -0.2, 0.5, 0.4])
    away = estimated(at=off)
    assert any(reason.startswith("off minimum: the slope at w* adds -") for reason in away.reasons)
    assert exact(away, at=off)["slope"] == pytest.approx(away.prediction.slope, rel=1e-3)  # type: ignore[union-attr]
    assert away.value < 0
    back = estimated(at=off, descend=50)
    distance, gain = back.descent
    assert distance == pytest.approx(np.linalg.norm(off - SOLUTION), rel=1e-3)
    assert gain == pytest.approx(np.mean(0.5 * (X @ off - Y) ** 2 - 0.5 * (X @ SOLUTION - Y) ** 2), rel=1e-3)
    assert back.loss == pytest.approx(plain.loss, rel=1e-4)
    check_value(back)
    assert back.verdict == "curvature"
    assert (plain.descent, back.settings.descend) == ((0.0, 0.0), 50)


def test_descent_moves_what_the_mask_lets_move() -> None:
    off = SOLUTION + np.array([0.3, -0.2, 0.5, 0.4])
    back = estimated(at=off, descend=50, mask="^a/")
    x = X[:, :3]
    to = np.linalg.lstsq(x, Y - X[:, 3] * off[3], rcond=None)[0]
    assert back.descent[0] == pytest.approx(np.linalg.norm(to - off[:3]), rel=1e-3)


# --- bad input ---


def test_without_a_pull_a_flat_direction_is_refused_and_a_regular_minimum_is_not() -> None:
    flat = DATA | {"x": np.where(np.arange(D) == 2, 0.0, DATA["x"]).astype(np.float32)}
    for predict in (True, False):
        with pytest.raises(ConfigError, match="with gamma 0 nothing bounds the flat directions"):
            estimated(gamma=0.0, data=flat, predict=predict)
    found = estimated(gamma=0.0, batch_size=None, sampler="hmc", draws=100)
    assert found.value == pytest.approx(D / 2, abs=ERRORS * found.error)
    assert found.d_gamma == 0.0


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        (
            {"at": np.array([1.0, np.nan, 0.0, 0.0])},
            r"the loss of sample 0 is nan at w\*; of 200 samples 200 have no fi",
        ),
        ({"data": {name: values[:0] for name, values in DATA.items()}}, "data has no samples"),
        ({"data": DATA | {"y": DATA["y"][:7]}}, "data has arrays of 7, 200 samples"),
        ({"measured_on": {name: values[:0] for name, values in DATA.items()}}, "measured_on has no samples"),
        ({"mask": "embedding"}, "mask 'embedding' matches no floating-point parameter; choose from a/w, b/0"),
        ({"mask": [True]}, "the mask has the structure"),
        ({"sampler": "adam"}, "sampler is 'adam'; choose sgld, rmsprop, sghmc, hmc"),
        ({"batch_size": 0}, "batch_size is 0"),
        ({"nbeta": 0.0}, "nbeta is 0"),
        ({"nbeta": math.nan}, "nbeta is nan"),
        ({"gamma": -1.0}, "gamma is -1"),
        ({"eps": 0.0}, "eps is 0"),
        ({"chains": 1}, "chains is 1"),
        ({"friction": 2.0}, "friction is 2"),
    ],
)
def test_what_cannot_be_is_one_sentence(changed: dict[str, Any], said: str) -> None:
    with pytest.raises(ConfigError, match=said) as error:
        estimated(**changed)
    assert "\n" not in str(error.value)


def test_a_loss_of_one_number_is_refused() -> None:
    with pytest.raises(ConfigError, match="the loss gives a scalar for 200 samples"):
        icl_lab.llc(lambda params, batch: loss(params, batch).mean(), parameters(), DATA, **CHAINS)


def test_chains_that_diverge_say_so_and_have_no_number() -> None:
    found = estimated(eps=1.0)
    assert math.isnan(found.value)
    assert found.verdict == "none"
    assert found.reasons[0].startswith("cannot be computed: chain ")


# --- several checkpoints ---

TRACED: list[int] = []  # of the parameters' shape, at each trace of the loss
FEW: dict[str, Any] = CHAINS | {"chains": 3, "burn_in": 8, "draws": 16, "batch_size": 20}


def counted(params: Any, batch: Any) -> Any:
    TRACED.append(params["w"].shape[0])
    return 0.5 * (batch["x"] @ params["w"] - batch["y"]) ** 2


def checkpoints(*steps: int) -> Iterator[tuple[int, Any]]:
    for step in steps:
        yield step, {"w": (SOLUTION * (1 + 0.01 * step)).astype(np.float32)}


def test_checkpoints_share_one_compiled_program() -> None:
    TRACED.clear()
    data = {name: DATA[name] for name in ("x", "y")}
    first = icl_lab.llc_over_training(counted, checkpoints(0), data, **FEW)
    once = len(TRACED)
    more = icl_lab.llc_over_training(counted, checkpoints(1, 2, 3), data, **FEW)
    checks = 3  # the shape of the losses is looked at for each
    assert once > 0
    assert len(TRACED) == once + checks
    assert [round(found.norm / first[0].norm, 4) for found in more] == [1.01, 1.02, 1.03]
    alone = icl_lab.llc(counted, dict(checkpoints(2))[2], data, **FEW)
    assert repr(alone) == repr(more[1])


def test_a_killed_call_goes_on_where_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = {name: DATA[name] for name in ("x", "y")}
    whole = icl_lab.llc_over_training(counted, checkpoints(0, 1, 2, 3), data, **FEW)

    def dying() -> Iterator[tuple[int, Any]]:
        yield from checkpoints(0, 1)
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        icl_lab.llc_over_training(counted, dying(), data, keep=tmp_path / "kept", **FEW)
    before = {path.name: path.stat().st_ino for path in (tmp_path / "kept").iterdir()}
    assert sorted(before) == ["llc_step_00000000.npz", "llc_step_00000001.npz"]
    again = icl_lab.llc_over_training(counted, checkpoints(0, 1, 2, 3), data, keep=tmp_path / "kept", **FEW)
    assert repr(again) == repr(whole)
    after = {path.name: path.stat().st_ino for path in (tmp_path / "kept").iterdir()}
    assert len(after) == 4
    assert {name: after[name] for name in before} == before  # not made again
    for name in ("excess", "distance"):
        for one, other in zip(again, whole, strict=True):
            np.testing.assert_array_equal(one.traces[name], other.traces[name])
    monkeypatch.setattr("icl_lab.analysis.llc.any_model.llc", lambda *_, **__: pytest.fail("it is estimated again"))
    read = icl_lab.llc_over_training(counted, checkpoints(0, 3), data, keep=tmp_path / "kept", **FEW)
    assert repr(read) == repr(whole[::3])


def test_a_file_of_something_else_is_refused_and_stays(tmp_path: Path) -> None:
    data = {name: DATA[name] for name in ("x", "y")}
    icl_lab.llc_over_training(counted, checkpoints(2), data, keep=tmp_path, **FEW)
    path = kept.path_of(tmp_path, 2)
    written = path.read_bytes()
    said = "is an estimate of other parameters, data or settings; move it away, and the same call estimates it again"
    others: list[dict[str, Any]] = [
        {"checkpoints": [(2, {"w": SOLUTION.astype(np.float32)})]},
        {"data": {"x": data["x"], "y": data["y"] + np.float32(1)}},
        {"nbeta": 2 * NBETA},
        {"seed": 1},
        {"mask": "w"},
    ]
    for other in others:
        given = {"checkpoints": checkpoints(2), "data": data, "keep": tmp_path} | FEW | other
        with pytest.raises(StoreError, match=said):
            icl_lab.llc_over_training(counted, **given)
    path.write_bytes(b"mine")
    with pytest.raises(StoreError, match="is not a stored estimate; move it away"):
        icl_lab.llc_over_training(counted, checkpoints(2), data, keep=tmp_path, **FEW)
    assert path.read_bytes() == b"mine"
    path.write_bytes(written)
    (found,) = icl_lab.llc_over_training(counted, checkpoints(2), data, keep=tmp_path, **FEW)
    assert found.settings == replace(found.settings, nbeta=NBETA)


def test_the_row_and_the_frame_are_of_one_row(plain: Estimate) -> None:
    row, frame = plain.row(), plain.to_frame()
    assert len(frame) == 1
    assert [*frame.columns] == [*row]
    assert (row["llc"], row["verdict"], row["reasons"]) == (plain.value, "curvature", "")
    assert row["predicted"] == plain.prediction.total  # type: ignore[union-attr]
    assert (row["d_nbeta"], row["d_gamma"], row["degree"]) == (plain.d_nbeta, plain.d_gamma, plain.degree)
