"""Runs on contexts from a file: what the config takes from it, what the id depends on, which baselines are defined."""

import os
import shlex
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import jax.numpy as jnp
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.loaded_run import LoadedRun, load_compared, load_run
from icl_lab.analysis.ood_eval import scaled_batches
from icl_lab.analysis.paired_losses import measure_test_set
from icl_lab.analysis.position_steps import position_steps
from icl_lab.baselines.gradient_descent import gd
from icl_lab.families.own_batches import own_set, training_batch
from icl_lab.families.own_config import drawn_scale
from icl_lab.families.own_sets import facts_of, sets_of
from icl_lab.families.regression.baselines import defined, made_or_reason, names_of
from icl_lab.families.regression.task import clean_twin, evaluation_context, find_gd, make_model, make_test_batch
from icl_lab.families.task import shared_of, task_of
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import command_of, preset, resolve, set_values
from icl_lab.lab.configs.run import RunConfig, Seeds, with_seeds
from icl_lab.lab.progress import NULL_LOGGER
from icl_lab.runners import flags
from icl_lab.runners.loop import Run, run_one, run_pack
from icl_lab.runners.static_shape import static_shape
from icl_lab.src.checks import UserError
from icl_lab.src.prng import key
from icl_lab.src.registries import ALGORITHM, ALWAYS, CORRUPTED
from icl_lab.store import layout, params, rundir
from icl_lab.store.metrics import last_metrics, read_summary
from tests import processes

CONTEXTS, PAIRS, DIM = 60, 7, 3
SMALL = {"steps": 12, "eval_every": 6, "batch_size": 16}


def contexts(seed: int = 0) -> dict[str, np.ndarray]:
    """Linear contexts of the scale that lsa1's preset is made for."""
    draw = np.random.default_rng(seed)
    x, w = draw.uniform(-0.5, 0.5, (CONTEXTS, PAIRS, DIM)), draw.normal(size=(CONTEXTS, DIM))
    return {"x": x, "y": np.einsum("nkd,nd->nk", x, w)}


def saved(path: Path, **arrays: Any) -> Path:
    """An NPZ of these arrays."""
    np.savez(path, **arrays)
    return path


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An NPZ of contexts."""
    return saved(tmp_path_factory.mktemp("own") / "own.npz", **contexts())


@pytest.fixture(scope="module")
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A CSV of the same contexts, without the first pairs of some: 3, 4, 5, 6 or 7 are left."""
    own, lines = contexts(), ["context,a,b,c,y"]
    for number in range(CONTEXTS):
        for x, y in zip(own["x"][number][number % 5 :], own["y"][number][number % 5 :], strict=True):
            lines.append(",".join([f"c{number}", *(f"{value:.9g}" for value in (*x, y))]))
    path = tmp_path_factory.mktemp("own") / "own.csv"
    path.write_text("\n".join(lines))
    return path


def config_of(file: Path, model: str = "lsa1", **values: Any) -> Any:
    """The config of a short run on a file."""
    config = preset(model)
    set_values(config, {"data.file": str(file)}, SMALL, values)
    return resolve(config)


# --- what a config takes from its file ---


def test_a_stack_has_one_pair_less_than_a_decoder(file: Path) -> None:
    stack, decoder = config_of(file), config_of(file, "tiny")
    assert (stack.data.dim, stack.data.num_pairs) == (DIM, PAIRS - 1)
    assert (decoder.data.dim, decoder.data.num_pairs, decoder.data.noise_std) == (DIM, PAIRS, 0.0)
    assert (stack.eval_tasks, stack.test_tasks) == (6, 6)  # a tenth each
    assert config_of(file, eval_tasks=3).eval_tasks == 3


def test_the_sets_are_of_different_contexts_and_the_files_own_where_it_says(file: Path, tmp_path: Path) -> None:
    sets = sets_of(config_of(file))
    assert sorted(np.concatenate([sets.train, sets.eval, sets.test])) == [*range(CONTEXTS)]
    assert (sets.eval != sets_of(config_of(file, split_seed=1)).eval).any()
    split = np.random.default_rng(1).choice(["train", "eval", "test"], CONTEXTS)
    own = sets_of(config_of(saved(tmp_path / "split.npz", **contexts(), split=split)))
    for name in ("train", "eval", "test"):
        np.testing.assert_array_equal(getattr(own, name), np.flatnonzero(split == name))


def test_the_id_is_that_of_the_content_and_the_split_not_of_the_path(file: Path, tmp_path: Path) -> None:
    config = config_of(file)
    elsewhere = config_of(Path(shutil.copy(file, tmp_path / "copy.npz")))
    assert elsewhere.data.file != config.data.file
    assert config_id(elsewhere) == config_id(config)
    own = contexts()
    changed = saved(tmp_path / "changed.npz", x=own["x"], y=own["y"] + 1e-3)
    others = [config_of(changed), config_of(file, split_seed=1), config_of(file, eval_tasks=5)]
    assert len({config_id(each) for each in (config, *others)}) == 4
    same = saved(tmp_path / "same.npz", x=own["x"].astype(np.float32), y=own["y"].astype(np.float32))
    assert config_id(config_of(same)) == config_id(config)  # what is trained on is float32


def test_ids_of_configs_without_a_file_are_what_they_were() -> None:
    names = ("lsa1", "twolayer", "tiny", "hoogland")
    known = ["ad7438153448f986", "4553a40b5ae79c39", "f5038c2b49353bfc", "12e056621636655c"]
    assert [config_id(resolve(preset(name))) for name in names] == known


def test_runs_of_all_seeds_share_arrays_and_a_program(file: Path) -> None:
    config = config_of(file)
    others = [with_seeds(config, Seeds(seed, seed)) for seed in (1, 2)]
    assert len({static_shape(each) for each in (config, *others)}) == 1
    assert len({config_id(each) for each in (config, *others)}) == 3
    assert shared_of(others[0]).keys() == {"x", "y", "starts"}


def test_a_training_batch_has_training_contexts_alone(file: Path, table: Path) -> None:
    for config in (config_of(file), config_of(table, num_pairs=4), config_of(table, "tiny", num_pairs=5)):
        shared = {name: jnp.asarray(array) for name, array in shared_of(config).items()}
        batch = training_batch(key(0), config, 200, shared)
        assert {name: batch._asdict()[name].shape[1:] for name in ("x", "y_query")} == {
            name: shape[1:] for name, shape in config.batch_shapes().items() if name in ("x", "y_query")
        }
        sets = sets_of(config)
        of_label = {float(y): name for name in ("train", "eval", "test") for y in labels(sets, getattr(sets, name))}
        assert {of_label[float(y)] for y in np.asarray(batch.y).ravel()} == {"train"}
        assert {of_label[float(y)] for y in np.asarray(own_set(config, "test").y).ravel()} == {"test"}


def labels(sets: Any, chosen: np.ndarray) -> np.ndarray:
    """The labels of all pairs of contexts; no two of the file are alike."""
    data = sets.data
    return np.concatenate([data.y[data.starts[one] : data.starts[one] + data.lengths[one]] for one in chosen])


def test_noise_hits_pairs_of_the_file_and_an_order_sorts_them(file: Path) -> None:
    values = {"noise_mode": "label_noise", "noise_p": 0.5, "noise_sigma": 2.0, "noise_placement": "noisy_first"}
    config = config_of(
        file, **{"base.ordering": "smallnorm2largenorm"}, **{f"base.{name}": each for name, each in values.items()}
    )
    assert config.eval.noise_p == 0.5
    context, clean = evaluation_context(config), own_set(config, "eval")
    index, hit = np.asarray(context.index), np.asarray(context.hit)
    np.testing.assert_array_equal(context.batch.x, np.take_along_axis(np.asarray(clean.x), index[:, :, None], 1))
    changed = np.asarray(context.batch.y) != np.take_along_axis(np.asarray(clean.y), index, 1)
    np.testing.assert_array_equal(changed, hit)
    assert (np.sort(~hit, axis=1) == ~hit).all()  # hit pairs stand first, and in each group norms ascend
    norms = np.where(hit, -1e3, 0) + np.linalg.norm(np.asarray(context.batch.x), axis=2)
    np.testing.assert_array_equal(np.sort(norms, axis=1), norms)
    np.testing.assert_array_equal(clean_twin(config, context).y, np.take_along_axis(np.asarray(clean.y), index, 1))


# --- sentences ---


def asked(*words: str, model: str = "lsa1") -> RunConfig:
    """The config of a command line."""
    return flags.read(model, "runners.run", "", words).config


REFUSED = {
    "dim": ("--config.dim=10", "dim is 10, but with the data of .* it must be 3"),
    "pairs": ("--num_pairs=7", "num_pairs is 7, but with the data of .* it must be 6"),
    "the preset's pairs": ("--num_pairs=10", "num_pairs is 10, .* it must be 6"),
    "noise": ("--config.noise_std=0.5", "noise_std is 0.5, .* it must be 0"),
    "more for the evaluation": ("--config.eval_tasks=30", "eval_tasks is 30, .* it must be 6"),
    "random pairs": ("--noise_mode=random_pairs", "noise_mode random_pairs needs the distribution"),
    "an order by difficulty": ("--ordering=easy2hard", "easy2hard needs the distribution"),
    "a scale of one's own": ("--config.y_scale=2", "y_scale"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_a_file_contradicts_is_one_sentence(what: str, file: Path) -> None:
    word, said = REFUSED[what]
    with pytest.raises(UserError, match=said) as error:
        asked("--data", str(file), word)
    assert "\n" not in str(error.value)


def test_few_contexts_and_a_scale_without_a_file_are_one_sentence(tmp_path: Path, table: Path) -> None:
    own = contexts()
    one = saved(tmp_path / "one.npz", x=own["x"][:1], y=own["y"][:1])
    with pytest.raises(UserError, match=r"one.npz has 1 context of at least 7 pairs; training, evaluation and test"):
        asked("--data", str(one))
    with pytest.raises(UserError, match="has 0 contexts of at least 51 pairs"):
        asked("--data", str(table), "--num_pairs", "50")
    split = np.array(["train"] * (CONTEXTS - 1) + ["test"])
    with pytest.raises(UserError, match="0 contexts for eval"):
        asked("--data", str(saved(tmp_path / "split.npz", **own, split=split)))
    pair = saved(tmp_path / "pair.npz", x=own["x"][:, :1], y=own["y"][:, :1])
    with pytest.raises(UserError, match="contexts of one pair; a query needs another before it"):
        asked("--data", str(pair))
    with pytest.raises(UserError, match="standardize is only for contexts from a file"):
        asked("--standardize")
    with pytest.raises(UserError, match=r"no.npz does not exist"):
        asked("--data", "no.npz", model="tiny")


def test_what_is_left_out_and_a_scale_that_is_far_are_said(file: Path, table: Path, tmp_path: Path) -> None:
    assert [*config_of(file).notes()] == []
    left_out = f"{table}: 24 contexts have fewer than 5 pairs and are left out"
    assert [*config_of(table, num_pairs=4).notes()] == [left_out]
    own = contexts()
    far = saved(tmp_path / "far.npz", x=own["x"], y=100 * own["y"])
    (line,) = config_of(far).notes()
    assert line.startswith(f"{tmp_path / 'far.npz'}: y has a root mean square of ")
    assert "--standardize" in line
    assert [*config_of(far, standardize=True).notes()] == []


def test_a_command_trains_the_same_config(file: Path, table: Path) -> None:
    for config in (config_of(file, standardize=True), config_of(table, "tiny", num_pairs=5)):
        words = shlex.split(command_of(config))
        assert asked(*words[words.index(config.name) + 1 :], model=config.name) == config


def test_what_would_draw_other_contexts_is_refused(file: Path, tmp_path: Path) -> None:
    config = config_of(file)
    for draw in (config.as_evaluated, lambda: scaled_batches(config, [2.0], keep_labels=False)):
        with pytest.raises(UserError, match="file"):
            draw()
    loaded = LoadedRun(tmp_path, config, make_model(config), {}, None)
    with pytest.raises(UserError, match="position_steps needs the distribution"):
        position_steps(loaded)
    kept = scaled_batches(config, [2.0], keep_labels=True)[0]
    np.testing.assert_array_equal(kept.x, 2 * np.asarray(own_set(config, "test").x))


def test_an_input_that_never_changes_is_divided_by_one(tmp_path: Path) -> None:
    own = contexts()
    x = own["x"] + [0.1, 7.3, 1e6]
    x[:, :, 1] = 7.3  # whose mean over 336 pairs is rounded
    data = config_of(saved(tmp_path / "same.npz", x=x, y=own["y"]), standardize=True).data
    assert data.x_scale[1] == 1.0
    assert data.x_scale[0] == pytest.approx(1.0, rel=0.1)  # U(-1/2, 1/2), as drawn ones


@pytest.mark.parametrize("model", ["lsa1", "tiny"])
def test_a_command_is_refused_before_anything_is_written(model: str, file: Path, tmp_path: Path) -> None:
    own, out = contexts(), tmp_path / "run"
    own["y"][3, 2] = np.nan
    bad = saved(tmp_path / "nan.npz", **own)
    for words, said in (
        ([bad], "nan in y at [3, 2]"),
        ([""], "path is empty"),
        ([file, "--num_pairs", 5], "it must be "),
    ):
        done = processes.command("runners.run", model, "--data", *words, "--out", out)
        assert done.returncode == 2
        assert done.stderr.startswith("error: ")
        assert done.stderr.count("\n") == 1
        assert said in done.stderr
        assert not out.exists()


# --- baselines ---

KNOWS_NOTHING = {"gd", "zero", "conjugate_gradients", "momentum", "chebyshev", "newton_schulz"}
KNOWS_NOTHING |= {"newton_schulz_identity", "gd_clean_step", "gd_tuned_step", "gd_positions", "gd_positions_trained"}


def test_baselines_that_need_unknown_facts_say_so(file: Path) -> None:
    values = {"base.noise_mode": "label_noise", "base.noise_p": 0.5, "base.noise_sigma": 0.3}
    config = config_of(file, **values, num_layers=2, baselines=("gaussian_posterior", "preconditioned_gd"))
    batch = make_test_batch(config)
    names = [*names_of(ALWAYS, ALGORITHM, CORRUPTED), *config.baselines]
    found = {name: made_or_reason(name, config, find_gd(config), batch) for name in names}
    usable = dict[str, Any]()
    for name, predict in defined(found).items():
        try:
            usable[name] = np.asarray(predict(batch))
        except UserError as reason:
            found[name] = str(reason)
    assert {*usable} == KNOWS_NOTHING
    assert all(np.isfinite(values).all() for values in usable.values())


def test_the_step_of_gradient_descent_is_fitted_on_training_contexts(file: Path) -> None:
    config = config_of(file)
    train = own_set(config, "train")
    feature, target = (np.asarray(part, float) for part in (gd(train, 1.0), train.y_query))
    descent = find_gd(config)
    assert descent.step_size == pytest.approx(feature @ target / (feature @ feature), rel=1e-4)  # float32 sums
    assert descent.source == "line search on 48 training contexts"


@pytest.mark.parametrize("w", [None, "their", "another"])
def test_steps_by_position_are_fitted_to_the_labels_of_a_file_and_not_to_a_w(w: str | None, tmp_path: Path) -> None:
    """By NumPy's least squares of training contexts' labels on y_k x_k.x_query, whatever w the file has or lacks."""
    draw = np.random.default_rng(3)
    x, teacher = draw.normal(size=(CONTEXTS, PAIRS, DIM)), draw.normal(size=(CONTEXTS, DIM))
    more = {} if w is None else {"w": teacher if w == "their" else -teacher}
    config = config_of(saved(tmp_path / "own.npz", x=x, y=np.einsum("nkd,nd->nk", x, teacher), **more))
    train, test = own_set(config, "train"), make_test_batch(config)

    def features(batch: Any) -> np.ndarray:
        return np.asarray(batch.y, float) * np.einsum("bnd,bd->bn", batch.x, batch.x_query)

    steps, *_ = np.linalg.lstsq(features(train), np.asarray(train.y_query, float), rcond=None)
    without = saved(tmp_path / "without.npz", x=x, y=np.einsum("nkd,nd->nk", x, teacher))
    assert config_id(config_of(without)) == config_id(config)  # so no number of a run may depend on w
    for name in ("gd_positions", "gd_positions_trained"):
        predict: Any = made_or_reason(name, config, find_gd(config), test)
        np.testing.assert_allclose(np.asarray(predict(test)), features(test) @ steps, rtol=1e-3, atol=1e-4)  # float32


# --- runs ---


@pytest.fixture(scope="module")
def run(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run on standardised contexts, whose inputs and labels are far from zero and from one scale."""
    folder, own = tmp_path_factory.mktemp("runs"), contexts()
    far = saved(folder / "far.npz", x=30 + 7 * own["x"] * [1, 2, 30], y=500 - 40 * own["y"])
    assert run_one(config_of(far, standardize=True), folder / "run") == "done"
    return folder / "run"


def test_a_standardised_run_is_the_run_on_standardised_contexts_in_its_own_units(run: Path, tmp_path: Path) -> None:
    config: Any = load_run(run).config
    data, scale = config.data, drawn_scale({"input_distribution": "uniform", "input_range": 1, "weight_scale": 1}, DIM)
    own = sets_of(config)
    rows = own.stored["x"].astype(float)
    np.testing.assert_allclose(data.x_mean, rows.mean(axis=0), rtol=1e-12)
    np.testing.assert_allclose(data.x_scale, rows.std(axis=0) / scale[0], rtol=1e-12)
    x = (own.data.x.reshape(CONTEXTS, PAIRS, DIM) - np.array(data.x_mean)) / np.array(data.x_scale)
    y = (own.data.y.reshape(CONTEXTS, PAIRS) - data.y_mean) / data.y_scale
    assert y[own.train].std() == pytest.approx(scale[1], rel=1e-6)
    assert run_one(config_of(saved(tmp_path / "plain.npz", x=x, y=y)), tmp_path / "plain") == "done"
    one, other = (read_summary(path)["headline"] for path in (run, tmp_path / "plain"))
    unit = data.y_scale**2
    for name in ("tf_loss", "gd_loss", "zero_loss"):
        assert one[name] == pytest.approx(unit * other[name], rel=1e-3)  # labels near 500 have 1e-5 of their spread
    records = [last_metrics(path, 1)[0] for path in (run, tmp_path / "plain")]
    for name in ("train_loss", "eval_loss", "eval_gd_loss"):
        assert records[0][name] == pytest.approx(unit * records[1][name], rel=1e-3)
    predicted = [np.load(path / layout.PREDICTIONS)["gd"] for path in (run, tmp_path / "plain")]
    np.testing.assert_allclose(predicted[0], data.y_mean + data.y_scale * predicted[1], rtol=1e-4)
    assert one["ridge_loss"] is None
    assert "a file lacks" in one["ridge_loss_reason"]
    assert read_summary(run)["data"]["contexts"] == {"train": 48, "eval": 6, "test": 6}


def test_a_loaded_run_predicts_in_the_datas_units(run: Path) -> None:
    loaded = load_compared(run)
    stored = np.load(run / layout.ANALYSIS_BATCH)
    np.testing.assert_array_equal(stored["y_query"], np.asarray(evaluation_context(loaded.config).batch.y_query))
    assert 300 < np.mean(stored["y_query"]) < 700
    predicted = np.asarray(loaded.predict(loaded.batch))
    np.testing.assert_allclose(predicted, np.load(run / layout.PREDICTIONS)["tf"], rtol=1e-6)
    errors = np.asarray(loaded.batch.y_query) - predicted
    assert last_metrics(run, 1)[0]["eval_loss"] == pytest.approx(0.5 * np.mean(errors**2), rel=1e-4)
    assert measure_test_set(loaded) == read_summary(run)["headline"]


def test_a_file_that_changed_since_the_run_is_one_sentence(run: Path) -> None:
    config: Any = load_run(run).config
    with replaced(run) as kept:
        saved(kept, **contexts(3))
        with pytest.raises(UserError, match=r"far.npz has changed since the run began"):
            load_compared(run)
        other = config_of(kept, standardize=True)
        with pytest.raises(UserError, match=r"far.npz has changed since .*run began; restore it, or choose another"):
            rundir.check_usable(run, other, overwrite=False)
        kept.unlink()
        with pytest.raises(UserError, match=r"far.npz, which does not exist"):
            load_compared(run)
    assert facts_of(config)["left_out"] == 0
    with pytest.raises(UserError, match="holds a run of another config"):  # of the same file
        rundir.check_usable(run, config_of(Path(config.data.file), standardize=True, split_seed=1), overwrite=False)


@contextmanager
def replaced(run: Path) -> Iterator[Path]:
    """The data file of a run, which is afterwards what it was."""
    kept = Path(load_run(run).config.data.file)
    before, state = kept.read_bytes(), kept.stat()
    try:
        yield kept
    finally:
        kept.write_bytes(before)
        os.utime(kept, ns=(state.st_atime_ns, state.st_mtime_ns))


def test_a_finished_run_does_without_its_file(run: Path) -> None:
    """It predicts, in the data's units; what is fitted on training contexts is not defined, with the reason."""
    expected, stored = np.load(run / layout.PREDICTIONS)["tf"], np.load(run / layout.ANALYSIS_BATCH)
    arrays = [stored[name] for name in ("x", "y", "x_query", "y_query")]
    with replaced(run) as kept:
        kept.unlink()
        loaded = icl_lab.load_run(run)
        np.testing.assert_allclose(loaded.predict(*arrays[:3]), expected, rtol=1e-6)
        assert (len(loaded.metrics), loaded.config.data_file) == (3, str(kept))
        assert icl_lab.baseline("conjugate_gradients", run)(*arrays[:3]).shape == expected.shape
        with pytest.raises(UserError, match="a file lacks"):  # with the file too
            icl_lab.sample(run, 2)
        with pytest.raises(UserError, match=r"far.npz, which does not exist"):
            icl_lab.baseline("gd", run)(*arrays[:3])
        found = icl_lab.evaluate(run, *arrays)
        assert found.facts["step_size"] is None
        for name in ("gd", "gd_fitted", "gd_clean_step", "gd_positions"):
            assert found.table.loc[name, "reason"].endswith("far.npz, which does not exist"), name
        for name in ("model", "conjugate_gradients", "zero"):
            assert found.table.loc[name, "reason"] == "", name


def test_a_run_in_a_pack_is_the_run_alone(table: Path, tmp_path: Path) -> None:
    config = config_of(table, num_pairs=4)
    pack = [Run(tmp_path / f"pack{seed}", with_seeds(config, Seeds(seed, seed))) for seed in (0, 1)]
    for run in pack:
        run.directory.mkdir()
    assert run_pack(pack, NULL_LOGGER, width=2) == "done"
    (alone := tmp_path / "alone").mkdir()
    assert run_pack([Run(alone, pack[1].config)], NULL_LOGGER, width=2) == "done"
    assert (alone / layout.PARAMS).read_bytes() == (pack[1].directory / layout.PARAMS).read_bytes()
    assert (alone / layout.METRICS).read_bytes() == (pack[1].directory / layout.METRICS).read_bytes()
    one, other = (params.load(run.directory).batch.x_query for run in pack)
    assert (np.asarray(one) != np.asarray(other)).any()  # pairs of the same contexts, drawn by the data seed
    assert read_summary(alone)["data"]["left_out"] == 24


def test_a_decoder_predicts_the_files_labels_at_every_position(file: Path, tmp_path: Path) -> None:
    config = config_of(file, "tiny", d_model=8, num_heads=2, mlp_width=8, num_layers=1, snapshots=False)
    assert run_one(config, tmp_path / "run") == "done"
    loaded, headline = load_run(tmp_path / "run"), read_summary(tmp_path / "run")["headline"]
    batch = own_set(loaded.config, "test")
    np.testing.assert_array_equal(np.asarray(batch.y_query), np.asarray(batch.y))
    errors = (np.asarray(loaded.predict(batch)) - np.asarray(batch.y)) ** 2
    assert headline["id_tf_loss"] == pytest.approx(errors.mean() / DIM, rel=1e-5)
    assert headline["id_ridge_loss"] is None
    assert "ood_tf_loss" not in headline
    assert np.load(tmp_path / "run" / layout.PREDICTIONS)["id_tf"].shape == (6, PAIRS)
    assert task_of(config).loss_unit(replace(config)) == 1.0
