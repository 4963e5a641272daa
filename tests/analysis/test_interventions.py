"""Patching between contexts and ablation: shares in closed form, identities of programs, and the command."""

import csv
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis import interventions
from icl_lab.analysis.interventions import programs, tables
from icl_lab.analysis.interventions.metrics import metric_of
from icl_lab.analysis.interventions.pairs import Pairs, labels_of
from icl_lab.analysis.interventions.tables import share_of
from icl_lab.src.checks import ConfigError
from icl_lab.src.patching import Site
from icl_lab.store import layout
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import copied, lsa1_run, workshop
from tests.test_icl_lab import decoder_run

__all__ = ["decoder_run", "lsa1_run", "ran", "refused", "workshop"]

COUNT = 100


# --- shares ---


def test_a_share_is_a_slope_of_signed_gaps_and_a_ratio_of_others() -> None:
    """Moves that are .3 of the gap have share .3 with no spread; noise of known size gives NumPy's interval."""
    draw = np.random.default_rng(0)
    gap = draw.normal(size=400)
    found = share_of(0.3 * gap, 0.2 * gap, gap, signed=True, scale=1.0)
    assert [found[name] for name in ("share", "low", "high", "estimate")] == pytest.approx([0.3, 0.3, 0.3, 0.2])
    moved = 0.3 * gap + 0.1 * draw.normal(size=400)
    found = share_of(moved, moved, gap, signed=True, scale=1.0)
    slope = np.sum(moved * gap) / np.sum(gap**2)
    error = np.sqrt(np.sum((gap * (moved - slope * gap)) ** 2)) / np.sum(gap**2)  # of White
    assert found["share"] == pytest.approx(slope)
    assert found["high"] - found["share"] == pytest.approx(1.966 * error, rel=0.01)  # t of 399 degrees of freedom
    found = share_of(moved + 1, moved, gap + 2, signed=False, scale=1.0)
    assert found["share"] == pytest.approx((moved.mean() + 1) / (gap.mean() + 2))


def test_a_gap_within_its_error_has_no_share() -> None:
    draw = np.random.default_rng(1)
    gap = draw.normal(size=200)
    gap -= gap.mean()
    found = share_of(gap, gap, gap, signed=False, scale=1.0)
    assert found["share"] is None
    assert "the gap lies within its error" in found["reason"]
    same = share_of(gap, gap, 1e-9 * gap, signed=True, scale=1.0)
    assert (same["share"], same["reason"]) == (None, "the corruption does not change the metric")


# --- pairs ---


def test_pairs_have_the_labels_of_another_task_with_the_same_noise(decoder_run: Path) -> None:
    run = icl_lab.load_run(decoder_run)
    pairs = interventions.pairs_of(run, "labels", COUNT)
    label = labels_of(run)
    assert label is not None
    noises = [np.asarray(batch.y) - label(batch.x, batch.w) for batch in pairs]
    np.testing.assert_allclose(noises[0], noises[1], atol=1e-5)
    assert noises[0].std() > 0.05  # there is noise
    np.testing.assert_array_equal(pairs.clean.x, pairs.corrupted.x)
    assert np.abs(pairs.clean.w - pairs.corrupted.w).max() > 0.1
    query = interventions.pairs_of(run, "query", COUNT)
    np.testing.assert_array_equal(query.clean.x[:, :-1], query.corrupted.x[:, :-1])
    assert np.abs(query.clean.x[:, -1] - query.corrupted.x[:, -1]).min() > 0
    noise = interventions.pairs_of(run, "noise", COUNT, sigma=0.5)
    assert (noise.corrupted.y - noise.clean.y).std() == pytest.approx(0.5, rel=0.1)  # of some 400 draws


# --- tables ---


def test_a_stream_carries_all_and_a_table_is_a_trace(decoder_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of a layer's stream restores all: its passes are the source's. Two directions and metrics trace once."""
    run, traces = icl_lab.load_run(decoder_run), []
    pairs = interventions.pairs_of(run, "labels", COUNT)
    look = tables.watched(run, pairs.clean, -1)
    stream = look.names(("resid_post",))
    whole = Site(layer=np.arange(look.layers))
    found = programs.patched(run.model, run.params, pairs.corrupted, pairs.clean, whole, stream)
    clean = programs.predict(run.model, run.params, pairs.clean)
    for each in found:
        np.testing.assert_allclose(each, clean, rtol=1e-5, atol=1e-6)  # float32 of another program

    at_each = programs._at_each
    monkeypatch.setattr(programs, "_at_each", lambda *args: traces.append(1) or at_each(*args))
    jax.clear_caches()
    table = interventions.patching_table(run, pairs)
    interventions.patching_table(run, pairs, "squared_error")
    assert len(traces) == len(tables.PATCHED)
    last = table[(table["table"] == "position") & (table["layer"] == look.layers - 1)]
    row = 2 * pairs.clean.x.shape[1] - 2  # of the last pair's input, which is read
    np.testing.assert_allclose(last[last["position"] == row]["share"], 1, rtol=1e-4)
    np.testing.assert_allclose(last[last["position"] != row]["share"], 0, atol=1e-5)


def test_a_head_whose_matrix_is_zero_carries_nothing(decoder_run: Path) -> None:
    whole = icl_lab.load_run(decoder_run)
    params = {module: {name: np.array(leaf) for name, leaf in of.items()} for module, of in whole.params.items()}
    heads = whole.config.model.num_heads
    weight = params["layer_0/attention/output"]["w"]
    weight.reshape(heads, -1, weight.shape[-1])[0] = 0
    run = whole.with_params(params)
    pairs = interventions.pairs_of(run, "labels", COUNT)
    for table, value in (
        (interventions.patching_table(run, pairs), "share"),
        (interventions.ablation_table(run, pairs.clean), "change"),
    ):
        site = (table["table"] == "head") & (table["layer"] == 0)
        np.testing.assert_array_equal(table[site & (table["head"] == 0)][value], 0)
    others = table[(table["table"] == "block") & (table["layer"] == 0)]
    assert (others["change"] > 1e-8).all()


def test_the_estimate_is_the_first_order_of_patching(decoder_run: Path, x64: None) -> None:
    """At a tenth of the distance between contexts the difference is a hundredth, in float64."""
    run = icl_lab.load_run(decoder_run)
    drawn = interventions.pairs_of(run, "noise", COUNT, sigma=0.1)
    pairs = Pairs(*(jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), batch) for batch in drawn))
    params = jax.tree.map(lambda leaf: jnp.asarray(leaf, jnp.float64), dict(run.params))
    look = tables.watched(run, pairs.clean, -1)._replace(params=params)
    names, base = look.names(("attn.result",)), pairs.corrupted
    slopes = np.zeros(np.shape(base.y))
    slopes[:, -1] = 1
    errors = []
    for distance in (0.01, 0.001):
        y = base.y + distance * (pairs.clean.y - base.y)
        args = (run.model, params, base, base._replace(y=y, y_query=y))
        moved = programs.patched(*args, Site(layer=np.array([0]), head=np.array([0])), names)[0]
        exact = moved - programs.predict(run.model, params, base)
        near = programs.estimated_patches(*args, slopes, names)[names[0]][:, 0]
        assert np.abs(near).max() > 0
        errors.append(np.abs(exact[:, -1] - near).max())
    assert errors[0] / errors[1] == pytest.approx(100, rel=0.2)  # the next order is of a tenth's size


def test_a_metric_of_ones_own_is_any_function(lsa1_run: Path) -> None:
    """That of the squared error gives its numbers, and of another shape is a sentence."""
    run = icl_lab.load_run(lsa1_run)
    pairs = interventions.pairs_of(run, "query", COUNT)
    own = interventions.patching_table(run, pairs, lambda p, batch: (p - jnp.asarray(batch.y_query)) ** 2)
    named = interventions.patching_table(run, pairs, "squared_error")
    for column in ("share", "low", "high", "estimate"):
        np.testing.assert_allclose(own[column].astype(float), named[column].astype(float), rtol=1e-5, atol=1e-7)
    with pytest.raises(ConfigError, match="the metric gives an array of shape"):
        interventions.patching_table(run, pairs, lambda p, batch: p.sum())
    target = icl_lab.baseline("gd", run)(pairs.clean)
    distance = metric_of("gd", run, pairs.clean, -1).values(np.zeros(COUNT, np.float32))
    np.testing.assert_allclose(distance, target**2, rtol=1e-5)


# --- the command ---


def test_the_command_writes_tables_and_a_figure(lsa1_run: Path, tmp_path: Path, ran: Ran) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    done = ran("analysis.interventions", "--run", run, "--pairs", 100, "--metric", "gd")
    assert "head, clean into corrupted:" in done.out
    with (run / layout.INTERVENTIONS).open() as file:
        rows = list(csv.DictReader(file))
    assert set(rows[0]) == {*tables.PATCHING_COLUMNS, "corruption"}
    assert {row["n"] for row in rows} == {"100"}
    assert (run / layout.INTERVENTIONS_FIGURE).stat().st_size > 10_000
    with (run / layout.ABLATIONS).open() as file:
        assert tuple(next(csv.reader(file))) == tables.ABLATION_COLUMNS


def test_what_cannot_be_is_refused_before_work(lsa1_run: Path, refused: Refused) -> None:
    command = ("analysis.interventions", "--run", lsa1_run)
    assert "no metric is called 'squared_eror', did you mean squared_error?" in refused(
        *command, "--metric", "squared_eror"
    )
    assert "--clean and --corrupted must be given together" in refused(*command, "--clean", "a.npz")
    assert "'50' is not a whole number from 100" in refused(*command, "--pairs", "50")
    assert "position is 7; the contexts have 1 queries" in refused(*command, "--position", "7")


def test_pairs_of_other_lengths_are_refused(lsa1_run: Path, tmp_path: Path, refused: Refused) -> None:
    batch = icl_lab.sample(lsa1_run, 5)
    for name, pairs in (("clean", 6), ("short", 5)):
        np.savez(tmp_path / f"{name}.npz", x=batch.x[:, :pairs], y=batch.y[:, :pairs])
    files = ("--clean", tmp_path / "clean.npz", "--corrupted", tmp_path / "short.npz")
    assert "pairs have one shape" in refused("analysis.interventions", "--run", lsa1_run, *files)
