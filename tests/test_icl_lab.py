"""`import icl_lab`: the library's face does what the commands do, and leaves the process that calls as it was."""

import ast
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import icl_lab
from icl_lab.analysis.llc import PUBLIC
from icl_lab.analysis.run import Run
from icl_lab.families.own_arrays import batch_from_arrays
from icl_lab.lab.guest import as_guest
from icl_lab.runners import from_python
from icl_lab.runners.from_python import request_of
from icl_lab.src.checks import ConfigError, UsageError, UserError
from icl_lab.store import layout
from icl_lab.store.readers import StoreError
from icl_lab.store.weights import read_given, weights_of
from icl_lab.sweeps.sweep import _grid
from tests.runners.tiny import EVERY, INTERRUPTED, PAIRS, TASKS, Workshop, lsa1_run, results, workshop
from tests.test_recipes import in_a_folder_of_a_user

__all__ = ["lsa1_run", "workshop"]

DECODER = "tiny --steps 20 --eval_every 10 --batch_size 8 --config.eval_tasks=16 --config.test_tasks=20".split()
SETTINGS = f"""
SETTINGS = dict(steps=100, eval_every={EVERY}, batch_size=64, eval_tasks={TASKS}, dim=4, num_pairs={PAIRS},
                test_tasks=200, step_size_tasks=256, attention_batch=16, save_attention=True, quiet=True)
"""


@pytest.fixture(scope="module")
def decoder_run(workshop: Workshop) -> Path:
    """A finished run of a decoder. Read only."""
    return workshop.finished("library_tiny", "runners.run", sizes=[*DECODER, "--config.snapshots=true"])


def script(folder: Path, variables: dict[str, str], text: str, **more: str) -> subprocess.CompletedProcess[str]:
    """A user's script in a folder of the user's."""
    (folder / "mine.py").write_text(text)
    line = [sys.executable, "mine.py"]
    return subprocess.run(line, cwd=folder, env=variables | more, capture_output=True, text=True, timeout=300)


def test_the_face_is_short_and_its_functions_are_documented(root: Path) -> None:
    text = (root / "icl_lab/__init__.py").read_text()
    assert len(text.splitlines()) <= 300
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    functions = [node for node in functions if node.name != "__getattr__"]
    assert sorted([*(node.name for node in functions), *PUBLIC]) == sorted(icl_lab.__all__)
    for name in PUBLIC:
        assert getattr(icl_lab, name).__doc__
    with pytest.raises(AttributeError, match="has no attribute 'no_such'"):
        _ = icl_lab.no_such
    assert all(ast.get_docstring(node) and node.returns for node in functions)


def test_importing_it_brings_nothing_heavy(tmp_path: Path) -> None:
    folder, variables = in_a_folder_of_a_user(tmp_path)
    text = "import sys, icl_lab\nprint([n for n in ('numpy', 'pandas', 'jax', 'icl_lab.lab') if n in sys.modules])"
    done = script(folder, variables, text)
    assert (done.stdout, done.stderr) == ("[]\n", "")


# --- a guest ---

STATE = """
import os, signal, sys
import jax, matplotlib, numpy as np, icl_lab
from icl_lab.src.checks import UserError

def state():
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM, signal.SIGCHLD)]
    hooks = [sys.excepthook, sys.unraisablehook, signal.set_wakeup_fd(-1), os.getcwd(), np.geterr()]
    drawing = dict(matplotlib.rcParams)
    return dict(os.environ), dict(jax.config.values), handlers, hooks, drawing, np.random.get_state()[2]

def unchanged(function, *words, refused=False, **more):
    before = state()
    failed = False
    try:
        result = function(*words, **more)
    except UserError as error:
        result, failed = None, str(error)
    after = state()
    for one, other in zip(before, after):
        assert one == other, (function, [name for name in one if one[name] != other[name]])
    assert bool(failed) == refused, (function, failed)
    return result
"""
CALLS = """
run = unchanged(icl_lab.train, "lsa1", out="run", **SETTINGS)
unchanged(icl_lab.train, "lsa1", out="run", refused=True, **SETTINGS | {"steps": 7})
unchanged(icl_lab.train, "lsa1", refused=True, stps=3)
unchanged(icl_lab.load_run, "run")
unchanged(icl_lab.load_run, "nowhere", refused=True)
unchanged(icl_lab.runs, ".")
unchanged(icl_lab.table, ".")
unchanged(icl_lab.presets)
unchanged(icl_lab.presets, "lsa1")
batch = unchanged(icl_lab.sample, run, 4)
assert batch.x.dtype == np.float32
unchanged(icl_lab.batch_from_arrays, batch.x, batch.y)
assert unchanged(run.predict, *batch[:3]).dtype == np.float32
unchanged(run.predict, batch.x[:, :3], *batch[1:3], refused=True)
for attribute in ("config", "params", "model", "batch", "metrics", "summary", "status"):
    unchanged(lambda: getattr(run, attribute))
unchanged(repr, run)
mean = lambda x, y, x_query: y.mean(axis=1)
shown = unchanged(icl_lab.evaluate, mean, *batch[:4], estimate=True)
assert shown.table.loc["ridge", "loss"] < shown.table.loc["model", "loss"]
unchanged(icl_lab.evaluate, mean, batch.x[:1], batch.y[:1], refused=True)
unchanged(icl_lab.sweep, "lsa1", {"stps": [1]}, refused=True)
unchanged(run._repr_html_)
"""


def test_nothing_of_the_process_is_changed_and_the_run_is_the_commands(tmp_path: Path, lsa1_run: Path) -> None:
    """Of a user whose JAX computes in float64; the run is the command's to the byte."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    own = "jax.config.update('jax_enable_x64', True)\n"
    done = script(folder, variables, STATE + own + SETTINGS + CALLS, UNUSED="", JAX_PLATFORMS="")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert results(folder / "run") == results(lsa1_run)


def test_an_unusable_environment_is_an_exception(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "none")
    with pytest.raises(UserError, match="NPROC is 'none'"), as_guest():
        pass
    assert os.environ["NPROC"] == "none"


@pytest.mark.robust
def test_an_interrupted_call_leaves_a_run_that_the_same_call_ends(tmp_path: Path, lsa1_run: Path) -> None:
    """Ctrl-C after a checkpoint is the user's `KeyboardInterrupt`, once the state is on disk."""
    folder, variables = in_a_folder_of_a_user(tmp_path)
    text = f"""
import icl_lab
{SETTINGS}
try:
    icl_lab.train("lsa1", checkpoint_seconds=0, **SETTINGS)
except KeyboardInterrupt:
    print(icl_lab.load_run("runs/lsa1").status)
print(icl_lab.train("lsa1", **SETTINGS).path)
print(icl_lab.train("lsa1", **SETTINGS).path)
"""
    path = f"{INTERRUPTED}{os.pathsep}{variables['PYTHONPATH']}"
    done = script(folder, variables, text, INTERRUPT="after:step_*.safetensors:SIGINT:2", PYTHONPATH=path)
    assert done.returncode == 0, done.stderr
    stopped, status, *paths = done.stdout.splitlines()
    assert "is stopped at step " in stopped
    assert (status, paths) == ("stopped", ["runs/lsa1"] * 2)
    assert results(folder / "runs/lsa1") == results(lsa1_run)


def test_a_signal_that_was_noted_reaches_the_users_own_handler(tmp_path: Path) -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with pytest.raises(KeyboardInterrupt):
            from_python._pass_on(signal.SIGTERM, tmp_path)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert seen == [signal.SIGTERM]


# --- settings ---


def test_keyword_arguments_are_the_commands_flags() -> None:
    settings: dict[str, Any] = {"steps": np.int64(7), "lr": 1e-05, "attention": ["softmax", "linear"], "num_layers": 2}
    request = from_python.request_of("lsa1", settings | {"snapshots": True, "overwrite": True, "out": Path("a")})
    config = request.config
    assert (config.training.steps, config.training.lr, config.snapshots) == (7, 1e-05, True)
    assert (config.model.attention, config.model.num_layers) == (("softmax", "linear"), 2)
    assert (request.out, request.overwrite, request.quiet) == ("a", True, False)


def test_a_config_is_trained_again_with_some_of_its_fields_changed() -> None:
    config = from_python.request_of("twolayer", {"preset": "paper", "lr": 1 / 3, "noise_mode": "label_noise"}).config
    assert from_python.request_of(config, {}).config == config
    changed = from_python.request_of(config, {"seed": 3, "train_noise_p": 0.25}).config
    assert (changed.data_seed, changed.train.noise_p, changed.training.lr) == (3, 0.25, 1 / 3)


def test_a_setting_changes_what_a_config_had_changed_before() -> None:
    """Under the name of its flag, of its field in short or in full; what has followed it follows it again."""
    first = {"steps": 100, "keep_best": True, "eval_tasks": 64, "noise_mode": "label_noise", "noise_p": 0.5}
    config = from_python.request_of("lsa1", first | {"data_seed": 1, "init_seed": 2, "eval_noise_p": 0.1}).config
    second = {"steps": 200, "keep_best": False, "eval_tasks": 32, "noise_p": 0.25, "seed": 3}
    changed = from_python.request_of(config, second).config
    assert (changed.training.steps, changed.keep_best, changed.eval_tasks) == (200, False, 32)
    assert (changed.base.noise_p, changed.train.noise_p, changed.eval.noise_p) == (0.25, 0.25, 0.1)
    assert (changed.data_seed, changed.init_seed) == (3, 3)
    assert from_python.request_of(config, {"training.steps": 300}).config.training.steps == 300


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"stps": 3}, "unknown config key 'stps' of the family regression, did you mean steps?"),
        ({"steps": "many"}, "argument --steps: 'many' is not a whole number"),
        ({"lr": -1.0}, "lr is -1.0"),
        ({"noise_p": 2}, "noise_p is 2"),
        ({"help": True}, "help is a flag of commands"),
        ({"config_help": True}, "icl_lab.presets"),
        ({"plugin": "a.py"}, "icl_lab.lab.plugins.load"),
    ],
)
def test_a_wrong_setting_is_the_commands_sentence(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UserError, match=sentence):
        from_python.request_of("lsa1", settings)


def test_an_unknown_model_names_the_nearest() -> None:
    with pytest.raises(UserError, match="did you mean lsa1"):
        from_python.request_of("lsa1e", {})
    with pytest.raises(ConfigError, match="did you mean twolayer"):
        icl_lab.presets("twolayr")


def test_presets_have_the_values_that_a_run_would_have() -> None:
    values = icl_lab.presets("twolayer")
    for name in values.columns:
        config = from_python.request_of("twolayer", {"preset": name}).config
        assert values.loc["training.lr", name] == config.training.lr
    assert icl_lab.presets().loc["tiny", "family"] == "diversity"


# --- a run ---


def test_a_runs_predictions_are_those_that_it_left(lsa1_run: Path) -> None:
    run, stored = icl_lab.load_run(lsa1_run), np.load(lsa1_run / layout.PREDICTIONS)
    found = run.predict(run.batch.x, run.batch.y, run.batch.x_query)
    np.testing.assert_allclose(found, stored["tf"], rtol=1e-5, atol=1e-7)  # float32, another program
    held_out = np.concatenate([run.batch.x, run.batch.x_query[:, None]], axis=1)
    labels = np.concatenate([run.batch.y, run.batch.y_query[:, None]], axis=1)
    np.testing.assert_array_equal(run.predict(held_out, labels), found)
    one = run.predict(run.batch.x[3], run.batch.y[3], run.batch.x_query[3])
    np.testing.assert_allclose(one, found[3], rtol=1e-5, atol=1e-7)


def test_a_run_has_its_files_as_tables(lsa1_run: Path) -> None:
    run = icl_lab.load_run(str(lsa1_run))
    assert list(run.metrics.index) == [0, 30, 60, 90, 100]
    assert run.summary["headline.tf_loss"] > 0
    assert run.config.name == "lsa1"
    assert {*run.params} == {*run._loaded.params}
    for text in (repr(run), run._repr_html_()):
        assert str(lsa1_run) in text
        assert "runners.run lsa1" in text
    assert icl_lab.table(run).loc[0, "headline.tf_loss"] == run.summary["headline.tf_loss"]
    assert [found.path for found in icl_lab.runs(lsa1_run)] == [lsa1_run]
    assert os.fspath(run) == str(lsa1_run)


def test_weights_of_ones_own_take_the_place_of_the_runs(lsa1_run: Path) -> None:
    """No layer with weights of zero predicts anything; a misshapen one is refused."""
    run = icl_lab.load_run(lsa1_run)
    none = {module: {name: np.zeros_like(array) for name, array in leaf.items()} for module, leaf in run.params.items()}
    assert (run.with_params(none).predict(*run.batch[:3]) == 0).all()
    assert icl_lab.load_run(run.with_params(none)).params is none
    assert (run.predict(*run.batch[:3]) != 0).all()
    with pytest.raises(StoreError, match="these parameters"):
        run.with_params({module: {name: array[:1] for name, array in leaf.items()} for module, leaf in none.items()})


def test_a_run_starts_from_the_weights_that_another_has_and_not_from_its_directorys(lsa1_run: Path) -> None:
    """Weights of one's own in the run's place are read as they would be without it, by a run and by a sweep."""
    run = icl_lab.load_run(lsa1_run)
    half = {module: {name: 0.5 * array for name, array in leaf.items()} for module, leaf in run.params.items()}
    source = request_of("lsa1", {"init_from": half}).config.init_from
    assert request_of("lsa1", {"init_from": run.with_params(half)}).config.init_from == source
    assert request_of("lsa1", {"init_from": run}).config.init_from != source
    grid, _ = _grid(["lsa1"], {"init_from": [run, run.with_params(half)]}, [0], {}, "default")
    assert grid.axes["init_from"] == [weights_of(run.path).source, source]


def test_a_checkpoint_is_the_same_source_whether_it_is_named_or_given(tmp_path: Path) -> None:
    kept = icl_lab.train(
        "lsa1", steps=4, batch_size=8, eval_every=2, keep_best=True, snapshots=True, out=tmp_path / "k"
    )
    given = [(kept.best, "best"), *((then, str(step)) for step, then in kept.checkpoints())]
    assert len(given) > 2
    for weights, name in given:
        found = request_of("lsa1", {"init_from": weights}).config.init_from
        assert found == request_of("lsa1", {"init_from": f"{kept.path}@{name}"}).config.init_from
        assert not found.startswith("weights:")


def test_parameters_of_another_source_are_not_taken_for_those_that_a_run_started_from(tmp_path: Path) -> None:
    """A file that was copied over them has another hash than the config's source says."""
    small = {"steps": 2, "batch_size": 8}
    one, other = (icl_lab.train("lsa1", seed=seed, out=tmp_path / str(seed), **small) for seed in (0, 1))
    tuned, again = (
        icl_lab.train("lsa1", init_from=of, out=tmp_path / f"from{of.path.name}", **small) for of in (one, other)
    )
    shutil.copy(again.path / layout.INITIAL_PARAMS, tuned.path / layout.INITIAL_PARAMS)
    with pytest.raises(StoreError, match="has other parameters than"):
        read_given(tuned.path)
    assert read_given(again.path)


def test_a_decoder_predicts_at_every_position_or_one_query(decoder_run: Path) -> None:
    """Each prediction is of the pairs before it: a context cut short, or with a query, gives the same one."""
    run = icl_lab.load_run(decoder_run)
    x, y = np.asarray(run.batch.x), np.asarray(run.batch.y)
    all_at_once = run.predict(x, y)
    np.testing.assert_allclose(all_at_once, np.load(decoder_run / layout.PREDICTIONS)["id_tf"], rtol=1e-4, atol=1e-6)
    close = {"rtol": 1e-4, "atol": 1e-6}  # float32
    np.testing.assert_allclose(run.predict(x[:, :3], y[:, :3]), all_at_once[:, :3], **close)
    np.testing.assert_allclose(run.predict(x[:, :3], y[:, :3], x[:, 3]), all_at_once[:, 3], **close)
    with pytest.raises(ConfigError, match="at most"):
        run.predict(x, y, x[:, 0])


def test_checkpoints_are_the_run_with_the_parameters_of_then(decoder_run: Path) -> None:
    run = icl_lab.load_run(decoder_run)
    then = dict(run.checkpoints())
    assert [*then] == run.config.record_steps
    x, y = run.batch.x[:2], run.batch.y[:2]
    np.testing.assert_array_equal(then[20].predict(x, y), run.predict(x, y))
    assert (then[0].predict(x, y) != run.predict(x, y)).all()
    assert "step" in repr(then[10])


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        (((2, 5, 4), (2, 5), (2, 4)), "have 5 pairs before the last query, but .* takes 6"),
        (((2, 6, 3), (2, 6), (2, 3)), "x has 3 dimensions, but .* on 4"),
        (((2, 6, 4), (2, 6, 2), (2, 4)), "several labels a pair"),
        (((2, 6, 4), (2, 5), (2, 4)), r"y of shape \[2, 5\]"),
        (((2, 6, 4), (2, 6), (4,)), "x_query of shape"),
        (((6,), (6,), None), "x of shape"),
        (((2, 0, 4), (2, 0), (2, 4)), "which holds no pair"),
    ],
)
def test_contexts_of_other_shapes_are_refused(arrays: Any, sentence: str, lsa1_run: Path) -> None:
    with pytest.raises(ConfigError, match=sentence):
        icl_lab.load_run(lsa1_run).predict(*(None if shape is None else np.ones(shape) for shape in arrays))


# --- contexts ---


def test_samples_are_a_function_of_distribution_and_seed(lsa1_run: Path) -> None:
    run = icl_lab.load_run(lsa1_run)
    batch, other = icl_lab.sample(run, 300), icl_lab.sample(run, 300, seed=1)
    np.testing.assert_array_equal(batch.x, icl_lab.sample(lsa1_run, 300).x)
    for drawn in (other, run.batch):
        assert not {*map(tuple, batch.w)} & {*map(tuple, np.asarray(drawn.w))}
    np.testing.assert_allclose(np.einsum("bnd,bd->bn", batch.x, batch.w), batch.y, atol=1e-5)
    assert abs(batch.w.std() - 1) < 4 / np.sqrt(2 * batch.w.size)  # w ~ N(0, 1): four standard errors
    for tasks, seed in ((0, 0), (2, -1)):
        with pytest.raises(ConfigError):
            icl_lab.sample(run, tasks, seed)


def test_samples_of_a_decoder_are_of_its_pool(decoder_run: Path) -> None:
    from icl_lab.families.diversity.task import pool_of

    run = icl_lab.load_run(decoder_run)
    pool = np.asarray(pool_of(run.config))
    assert {*map(tuple, icl_lab.sample(run, 200, seed=2).w)} == {*map(tuple, pool)}


def test_a_batch_of_arrays_holds_them_out_or_takes_the_query() -> None:
    x, y = np.arange(24.0).reshape(2, 4, 3), np.arange(8).reshape(2, 4)
    batch = batch_from_arrays(x, y)
    np.testing.assert_array_equal(batch.x, x[:, :3])
    np.testing.assert_array_equal(batch.x_query, x[:, 3])
    np.testing.assert_array_equal(batch.y_query, y[:, 3])
    given = icl_lab.batch_from_arrays(x, y, x[:, 0], w=x[:, 1])
    np.testing.assert_array_equal(given.y, y)
    assert np.isnan(given.y_query).all()
    np.testing.assert_array_equal(given.w, x[:, 1])
    np.testing.assert_array_equal(batch_from_arrays(x, y, sequences=True).y_query, y)
    longer = batch_from_arrays(x, y, x[:, 0], sequences=True)
    np.testing.assert_array_equal(longer.x[:, 4], x[:, 0])
    np.testing.assert_array_equal(np.isnan(longer.y_query), [[False] * 4 + [True]] * 2)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"x": np.full((2, 4, 3), np.nan)}, "has nan in x"),
        ({"y": np.full((2, 4), 1e39)}, "float32 must hold"),
        ({"x": np.full((2, 4, 3), "a")}, "has x of type <U1"),
        ({"y": np.ones((2, 4)) * 1j}, "has y of type complex128"),
        ({"x": np.ones((2, 1, 3)), "y": np.ones((2, 1))}, "only one pair"),
        ({"y_query": np.ones(2)}, "has y_query alone"),
    ],
)
def test_arrays_that_cannot_be_used_are_named(change: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        batch_from_arrays(**{"x": np.ones((2, 4, 3)), "y": np.ones((2, 4)), **change})


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    for function in (icl_lab.load_run, icl_lab.runs, icl_lab.table):
        with pytest.raises(StoreError):
            function(tmp_path / "nowhere")
    assert isinstance(Run(tmp_path), Run)
    with pytest.raises(UsageError):
        icl_lab.train("lsa1", stps=1)
