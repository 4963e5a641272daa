"""Files of a finished run that are damaged or another's: whoever reads one says which, and touches nothing."""

import io
import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load as load_safetensors
from safetensors.numpy import save as save_safetensors

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.runners.locks import restore_threads
from icl_lab.store import StoreError, checkpoint, layout, rundir
from icl_lab.store.atomic import write_safetensors
from icl_lab.store.provenance import provenance_of
from icl_lab.store.readers import is_number
from tests.doors import ANALYSES, Ran, snapshot
from tests.runners.tiny import SIZES, TWOLAYER, copied
from tests.sweeps.tiny_sweep import Paths
from tests.sweeps.tiny_sweep import copied as copied_sweep
from tests.thinned import thinned

pytestmark = pytest.mark.robust

READERS: dict[str, tuple[str, ...]] = {
    layout.CONFIG: (*ANALYSES, "analysis.compare", "plots.attention_quick", "plots.run_figures", TWOLAYER),
    layout.META: (TWOLAYER,),
    layout.SUMMARY: ("analysis.compare", TWOLAYER),
    layout.METRICS: ("analysis.alignment", "plots.run_figures"),
    layout.PARAMS: ANALYSES,
    layout.ANALYSIS_BATCH: ANALYSES,
    layout.ALIGNMENT_CURVE: ("plots.run_figures",),
    layout.WEIGHTS: ("plots.run_figures",),
    layout.ATTENTION_SUMMARY: ("plots.attention_quick", "plots.run_figures"),
    "attn/layer0.npz": ("plots.attention_quick", "plots.run_figures"),
}
FIRST = [(name, commands[0]) for name, commands in READERS.items()]
LATER = [(name, command) for name, commands in READERS.items() for command in commands[1:]]


def words(command: str, run: Path) -> list[object]:
    """A command on a run."""
    if command == TWOLAYER:
        return [*SIZES, "--out", run]
    return [run] if command == "analysis.compare" else ["--run", run]


def contents(folder: Path) -> dict[str, bytes]:
    """Every file's bytes; a command that draws several figures may have drawn the first again, the same."""
    return {name: content for name, (content, _) in snapshot(folder).items() if not name.endswith(layout.LOCK)}


# Files that are another's, by the ending of their name: content before -> contents


def other_json(content: bytes) -> Iterator[bytes]:
    yield from (b"", b"[]", b"3", b'"text"', content[: len(content) // 2], b"\xff\xfe", b"[" * 10_000)
    yield b'{"layers": 3, "headline": [], "status": {}, "alignment": "text"}'


def other_lines(content: bytes) -> Iterator[bytes]:
    first = json.loads(content.split(b"\n")[0])
    yield from (b"", b"[1]\n", b"{}\n", content.split(b"\n")[0])
    for value in ("text", [1.0], {}, True, 10**400):
        yield json.dumps(first | {"eval_gd_loss": value}).encode() + b"\n"
    for value in (-1, 0.5, None, 2**40):
        yield json.dumps(first | {"step": value}).encode() + b"\n"


def other_table(content: bytes) -> Iterator[bytes]:
    header, first = content.split(b"\n")[:2]
    yield from (b"", b"a,b\n1,2\n", header + b"\n", b"\x00\xff" * 50, header + b"\n1\n" + first + b",1,2,3\n")
    for value in (b"text", b"inf", b"1e300", b"True", b"1" * 400):
        yield header + b"\n" + b",".join([value] * header.count(b",") + [value]) + b"\n"


def changed(arrays: dict[str, np.ndarray]) -> Iterator[dict[str, np.ndarray]]:
    """Arrays of other names, shapes, types, and values that are not finite."""
    yield {}
    yield {f"{name}_": array for name, array in arrays.items()}
    yield {name: array[None] for name, array in arrays.items()}
    yield {name: array[:-1] for name, array in arrays.items()}
    yield {name: np.stack([array, array]) for name, array in arrays.items()}
    for kind in (np.float16, np.int32, bool):
        yield {name: array.astype(kind) for name, array in arrays.items()}
    for value in (np.nan, np.inf):
        yield {name: np.full_like(array, value) for name, array in arrays.items()}


def saved(save: Callable[..., None], *values: Any, **arrays: Any) -> bytes:
    buffer = io.BytesIO()
    save(buffer, *values, **arrays)
    return buffer.getvalue()


def other_npy(content: bytes) -> Iterator[bytes]:
    array = np.load(io.BytesIO(content))
    yield from (b"", content[:-3], content[:40], saved(np.savez, data=array))
    yield from (saved(np.save, other["a"]) for other in changed({"a": array}) if "a" in other)
    header = content[:128].replace(b"), }", b"0000000000), }").replace(b" " * 10 + b"\n", b"\n")
    assert len(header) == 128
    yield header + content[128:]


def other_npz(content: bytes) -> Iterator[bytes]:
    arrays = dict(np.load(io.BytesIO(content)))
    yield from (b"", content[:-30], b"PK\x05\x06" + bytes(18), saved(np.save, np.zeros(3)))
    yield from (saved(np.savez, **other) for other in changed(arrays))


def other_safetensors(content: bytes) -> Iterator[bytes]:
    arrays = load_safetensors(content)
    yield from (b"", content[:-3], content[:9], b"\xff" * 8 + b"{}")
    yield from (save_safetensors(other) for other in changed(arrays))
    yield save_safetensors({**arrays, "layer_7/attention/query": np.zeros(3, np.float32)})


OTHERS: dict[str, Callable[[bytes], Iterator[bytes]]] = {
    ".json": other_json,
    ".jsonl": other_lines,
    ".csv": other_table,
    ".npy": other_npy,
    ".npz": other_npz,
    ".safetensors": other_safetensors,
}


def check_refused(ran: Ran, command: str, run: Path, name: str) -> None:
    before = contents(run)
    done = ran(command, *words(command, run))
    assert done.status == 2, done
    assert done.err.startswith("error: ")
    assert str(run / name) in done.err
    assert done.err.count("\n") == 1
    assert contents(run) == before


@pytest.mark.parametrize(
    ("name", "command"), [*thinned(FIRST, 2), *(pytest.param(*pair, marks=pytest.mark.slow) for pair in LATER)]
)
def test_foreign_files_are_named_and_nothing_is_touched(
    name: str, command: str, twolayer_run: Path, tmp_path: Path, ran: Ran
) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    for content in OTHERS[Path(name).suffix]((twolayer_run / name).read_bytes()):
        (run / name).write_bytes(content)
        check_refused(ran, command, run, name)


@pytest.mark.parametrize(("name", "command"), FIRST)
def test_folders_and_pipes_in_place_of_files_are_named(
    name: str, command: str, twolayer_run: Path, tmp_path: Path, ran: Ran
) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    (run / name).unlink()
    (run / name).mkdir()
    before = sorted(str(path) for path in run.rglob("*"))
    done = ran(command, *words(command, run))
    assert (done.status, str(run / name) in done.err) == (2, True), done
    (run / name).rmdir()
    os.mkfifo(run / name)
    done = ran(command, *words(command, run))
    assert (done.status, str(run / name) in done.err) == (2, True), done
    assert sorted(str(path) for path in run.rglob("*")) == before


@pytest.mark.parametrize(("name", "command"), LATER)
def test_every_other_command_names_an_empty_file(
    name: str, command: str, twolayer_run: Path, tmp_path: Path, ran: Ran
) -> None:
    """What all can be wrong with a file is tried above, with the first command that reads it."""
    run = copied(twolayer_run, tmp_path / "run")
    (run / name).write_bytes(b"")
    check_refused(ran, command, run, name)


# Values of JSON, one at a time

VALUES = (None, True, -1, 0.5, 10**400, "text", "$x$ \x1b[31m\n", [], {}, [[]])


def places(value: Any, at: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Where every value in a JSON value stands; of a list, its first."""
    if at:
        yield at
    inside = value.items() if isinstance(value, dict) else list(enumerate(value))[:1] if isinstance(value, list) else ()
    for key, item in inside:
        yield from places(item, (*at, key))


def with_value(original: Any, place: tuple[Any, ...], value: Any) -> bytes:
    tree = json.loads(json.dumps(original))
    owner = tree
    for key in place[:-1]:
        owner = owner[key]
    owner[place[-1]] = value
    return json.dumps(tree).encode()


def check_survives(ran: Ran, command: str, run: Path, name: str) -> None:
    """Ends with 0, or with 2 and a sentence on something of this run, without escape sequences in what it says."""
    done = ran(command, *words(command, run))
    assert done.status in (0, 2), done
    assert done.status == 0 or str(run) in done.err
    assert "\x1b" not in done.out + done.err


JSON_READ = [(layout.ATTENTION_SUMMARY, "plots.attention_quick"), (layout.META, TWOLAYER)]
JSON_READ += [(layout.SUMMARY, command) for command in READERS[layout.SUMMARY]]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "command"), JSON_READ)
def test_no_value_in_a_json_file_ends_in_an_exception(
    name: str, command: str, twolayer_run: Path, tmp_path: Path, ran: Ran
) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    original = json.loads((run / name).read_bytes())
    for place in places(original):
        for value in VALUES:
            (run / name).write_bytes(with_value(original, place, value))
            check_survives(ran, command, run, name)


@pytest.mark.parametrize("value", ["text", {}, [[]], 10**400])
@pytest.mark.parametrize(
    ("name", "command", "place"),
    [
        (layout.SUMMARY, TWOLAYER, ("headline", "tf_loss")),
        (layout.SUMMARY, TWOLAYER, ("ood", 0, "alpha")),
        (layout.META, TWOLAYER, ("run_seconds",)),
        (layout.META, TWOLAYER, ("status",)),
        (layout.ATTENTION_SUMMARY, "plots.attention_quick", ("layers", 0, "heads", 0, "head")),
        (layout.ATTENTION_SUMMARY, "plots.attention_quick", ("layers", 0, "layer")),
    ],
)
def test_a_foreign_value_is_one_sentence(
    name: str, command: str, place: tuple[Any, ...], value: Any, twolayer_run: Path, tmp_path: Path, ran: Ran
) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    (run / name).write_bytes(with_value(json.loads((run / name).read_bytes()), place, value))
    check_refused(ran, command, run, name)


def test_attention_names_are_no_paths(twolayer_run: Path, tmp_path: Path, ran: Ran) -> None:
    run = copied(twolayer_run, tmp_path / "a" / "b" / "run")
    original = json.loads((run / layout.ATTENTION_SUMMARY).read_bytes())
    np.save(tmp_path / "a" / "x_head0.npy", np.zeros((13, 12), np.float32))
    for value in ("../../../x", "/../../../../x", 7, -1, True):
        (run / layout.ATTENTION_SUMMARY).write_bytes(with_value(original, ("layers", 0, "layer"), value))
        check_refused(ran, "plots.attention_quick", run, layout.ATTENTION_SUMMARY)
    assert not list(tmp_path.rglob("x_head0.png"))


@pytest.mark.parametrize("line", [b"a\n", b"a" + b"," * 100 + b"\n"])
def test_a_row_of_a_sweep_that_has_not_all_fields_is_named(line: bytes, swept: Paths, tmp_path: Path, ran: Ran) -> None:
    at = copied_sweep(swept, tmp_path / "sweep")
    at.out.write_bytes(at.out.read_bytes() + line)
    before = contents(tmp_path)
    done = ran("sweeps.collect", *at.flags(), "--append")
    assert (done.status, str(at.out) in done.err, done.err.count("\n")) == (2, True, 1), done
    assert contents(tmp_path) == before


def test_a_finished_run_without_a_status_is_not_trained_anew(twolayer_run: Path, tmp_path: Path, ran: Ran) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    (run / layout.META).write_text("{}")
    check_refused(ran, TWOLAYER, run, layout.META)
    (run / layout.META).unlink()
    check_refused(ran, TWOLAYER, run, layout.META)


def test_text_of_files_reaches_terminals_and_figures_as_it_is(twolayer_run: Path, tmp_path: Path, ran: Ran) -> None:
    run = copied(twolayer_run, tmp_path / "run")
    summary = json.loads((run / layout.SUMMARY).read_bytes())
    hostile = "\x1b[2J\u202e$\\frac{$\nerror"
    (run / layout.SUMMARY).write_bytes(with_value(summary, ("alignment", "eta_source"), hostile))
    done = ran(TWOLAYER, *SIZES, "--out", run)
    assert done.status == 0, done
    assert r"\x1b[2J\u202e$\frac{$\nerror" in done.out
    assert "\x1b" not in done.out

    from icl_lab.plots.style import caption, new_figure, save

    figure, _ = new_figure()
    caption(figure, hostile)
    save(figure, tmp_path / "figure.png")


# A run that has begun, and runs of several seeds


def begun(run: Path) -> dict[str, Any]:
    """A run directory with a checkpoint, begun under the conditions of now; its meta.json."""
    rundir.begin(run, RegressionConfig())
    rundir.update_meta(run, **provenance_of(RegressionConfig(), "cpu"), pack_width=1, run_seconds=0.5, status="running")
    write_safetensors(layout.checkpoint(run, 20), {"a": np.zeros(1)}, {})
    return rundir.read_meta(run)


def taken_up(run: Path) -> None:
    """What a runner does with a directory before it imports JAX."""
    rundir.choose(RegressionConfig(), str(run), False)
    restore_threads(run)


def may_be(place: tuple[str, ...], value: object) -> bool:
    """Whether a run may say so of itself and is gone on with: a time, another version, that nothing has changed."""
    texts = dict.fromkeys([("versions", "jax"), ("variables", "XLA_FLAGS")], isinstance(value, str))
    kinds = {("run_seconds",): is_number(value), **texts}
    return kinds.get(place, place == ("resumed_elsewhere",) and value == [])


NEEDED = [("versions",), ("versions", "jax"), ("pack_width",), ("threads",), ("run_seconds",), ("status",)]
NEEDED += [("resumed_elsewhere",), ("variables",), ("variables", "XLA_FLAGS")]


@pytest.mark.parametrize("place", NEEDED)
def test_conditions_that_are_none_are_not_restored(
    place: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    meta = begun(tmp_path)
    taken_up(tmp_path)
    for value in (None, -1, 0, "text", [], {"jax": []}, 10**30):
        (tmp_path / layout.META).write_bytes(with_value(meta, place, value))
        if not may_be(place, value):
            with pytest.raises(StoreError, match=re.escape(str(tmp_path))):
                taken_up(tmp_path)
    (tmp_path / layout.META).write_text("{}")
    with pytest.raises(StoreError, match=layout.META):
        restore_threads(tmp_path)


def test_files_that_are_no_checkpoints_are_left_alone(tmp_path: Path) -> None:
    begun(tmp_path)
    for name in ("step_x.safetensors", "step_.safetensors", "step_-0000001.safetensors", "step_٣.safetensors"):
        (tmp_path / layout.CHECKPOINTS / name).write_bytes(b"")
    assert checkpoint.steps(tmp_path) == [20]


@pytest.mark.slow
def test_runs_of_several_seeds_name_foreign_files(tmp_path: Path, ran: Ran) -> None:
    demo = ["scripts.demo_seeds", "--seeds", "0,1", "--steps", 1, "--out", tmp_path / "seeds"]
    assert ran(*demo).status == 1  # hardly trained
    run = tmp_path / "seeds" / "seed_1"
    for name in (layout.CONFIG, layout.META, layout.SUMMARY):
        original = (run / name).read_bytes()
        (run / name).write_bytes(b"[]")
        before = contents(tmp_path)
        done = ran(*demo)
        assert (done.status, str(run / name) in done.err, done.err.count("\n")) == (2, True, 1), done
        assert contents(tmp_path) == before
        (run / name).write_bytes(original)
    (run / layout.SUMMARY).write_bytes(with_value(json.loads(original), ("alignment", "eta"), "text"))
    assert ran(*demo).status in (1, 2)
