"""Which kernel a training has: chosen before its first step, told in meta.json, kept by a run that goes on."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.lab.native.kernel import AUTO, NATIVE, XLA, XLA_NAME, Kernel
from icl_lab.lab.progress import Logger
from icl_lab.runners import kernel as kernels
from icl_lab.runners.finish import DEFAULT_OUTPUTS
from icl_lab.runners.loop import Run, run_pack
from icl_lab.runners.resume import Persistence
from icl_lab.src.checks import ConfigError
from icl_lab.store import StoreError, rundir
from icl_lab.sweeps import collect
from tests.doors import snapshot
from tests.processes import command
from tests.runners.test_loop import EVERY_CHUNK, FakePack, runs, sending

__all__ = ["runs"]  # the fixture

OBJECT = Kernel(Path("native.so"), "0123456789abcdef", "native 12ab, g++ 12.2.0, 16 lanes")
NO_COMPILER = Kernel(why="no C++ compiler; install g++")
STRICT = Persistence(checkpoint_seconds=0, strict_resume=True)


class Machine:
    """What models and this machine allow; builds are counted."""

    reason, slower, kernel, loading, builds = "", "", OBJECT, "", 0

    def built(self) -> Kernel:
        self.builds += 1
        return self.kernel


@pytest.fixture
def machine(monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine()
    monkeypatch.setattr(kernels, "native_kernel", made.built)
    monkeypatch.setattr(kernels, "of_this_machine", lambda kernel: made.built()._replace(asked=kernel.asked))
    monkeypatch.setattr(kernels, "reason_of", lambda config: made.reason)
    monkeypatch.setattr(kernels, "slower_of", lambda config: made.slower)
    monkeypatch.setattr(kernels, "_loading_reason", lambda kernel: made.loading)
    return made


class Lines(Logger):
    """What is logged."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    def line(self, text: str) -> None:
        self.lines.append(text)


def train(some: list[Run], asked: str = AUTO, persistence: Persistence = EVERY_CHUNK) -> list[str]:
    logger = Lines()
    chosen = kernels.chosen(asked, some)
    run_pack(some, logger, DEFAULT_OUTPUTS, width=2, persistence=persistence, kernel=chosen)
    return [line for line in logger.lines if "kernel" in line]


def begun(some: list[Run], asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trains one step."""
    with monkeypatch.context() as patch:
        sending(patch, FakePack, "advance")
        train(some, asked)
    assert {rundir.read_status(run.directory) for run in some} == {"stopped"}


def metas(some: list[Run]) -> list[tuple[object, ...]]:
    read = [rundir.read_meta(run.directory) for run in some]
    return [(meta["kernel"], meta.get("kernel_why"), meta["bitwise"]) for meta in read]


def test_it_is_native_where_model_and_machine_have_it(runs: list[Run], machine: Machine) -> None:
    assert train(runs) == [f"kernel: {OBJECT.described}"]
    assert metas(runs) == [(OBJECT.described, None, True)] * 2
    assert kernels.in_words(runs[0].directory) == f"kernel: {OBJECT.described}"


def test_where_it_is_slower_only_those_who_ask_have_it(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.slower = "a batch has 8 tasks"
    assert train(runs[:1]) == ["kernel: xla (a batch has 8 tasks)"]
    begun(runs[1:], NATIVE, monkeypatch)
    assert train(runs[1:], AUTO, STRICT) == [f"kernel: {OBJECT.described}"]


def without(lacking: str, machine: Machine) -> str:
    """Takes something from a machine; gives why it has XLA."""
    if lacking == "the model's":
        machine.reason = "softmax in every layer"
        return machine.reason
    if lacking == "a compiler":
        machine.kernel = NO_COMPILER
        return NO_COMPILER.why
    machine.loading = "it cannot be loaded: noexec"
    return machine.loading


LACKING = pytest.mark.parametrize("lacking", ["the model's", "a compiler", "an object that can be loaded"])


@LACKING
def test_else_it_is_xla_and_says_why(lacking: str, runs: list[Run], machine: Machine) -> None:
    why = without(lacking, machine)
    assert train(runs) == [f"kernel: xla ({why})"]
    assert metas(runs) == [("xla", why, True)] * 2
    assert kernels.in_words(runs[0].directory) == f"kernel: xla ({why})"
    assert (machine.builds == 0) == (lacking == "the model's")


def test_xla_that_is_asked_for_needs_no_reason_and_no_build(runs: list[Run], machine: Machine) -> None:
    assert train(runs, XLA_NAME) == []
    assert metas(runs) == [("xla", None, True)] * 2
    assert machine.builds == 0


def test_nothing_is_built_for_runs_that_are_done(runs: list[Run], machine: Machine) -> None:
    train(runs, XLA_NAME)
    assert kernels.chosen(AUTO, runs) == Kernel()
    assert kernels.chosen(NATIVE, runs).path is None
    assert machine.builds == 0
    assert kernels.chosen(AUTO, runs, overwrite=True) == OBJECT


@LACKING
def test_native_that_cannot_be_is_refused_before_anything_is_written(
    lacking: str, runs: list[Run], machine: Machine
) -> None:
    why = without(lacking, machine)
    with pytest.raises(
        ConfigError, match=f"--kernel native.* is not possible: {re.escape(why)}; --kernel auto falls back to XLA"
    ):
        train(runs, NATIVE)
    assert not any(run.directory.exists() for run in runs)


def test_a_run_keeps_the_kernel_that_it_was_begun_with(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(runs[:1], XLA_NAME, monkeypatch)
    begun(runs[1:], AUTO, monkeypatch)
    assert train(runs[:1], persistence=STRICT) == ["kernel: xla (the run was begun with it)"]
    assert train(runs[1:], persistence=STRICT) == [f"kernel: {OBJECT.described}"]
    assert metas(runs) == [("xla", None, True), (OBJECT.described, None, True)]
    assert [rundir.read_meta(run.directory)["resumed_elsewhere"] for run in runs] == [[], []]


def resumed_with_xla(run: Run, why: str | None) -> None:
    meta = rundir.read_meta(run.directory)
    change = {"step": 1, "what": "kernel", "was": OBJECT.described, "is": "xla"}
    assert (meta["kernel"], meta["bitwise"], meta["resumed_elsewhere"]) == (OBJECT.described, False, [change])
    told = f" ({why})" if why else ""
    assert kernels.in_words(run.directory) == f"kernel: {OBJECT.described}, then xla from step 1{told}"


def test_without_its_kernel_it_goes_on_with_xla_and_says_so(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(runs[:1], AUTO, monkeypatch)
    machine.kernel = NO_COMPILER
    before = snapshot(runs[0].directory)
    with pytest.raises(StoreError, match=re.escape(f"was begun with kernel {OBJECT.described}, not xla")):
        train(runs[:1], persistence=STRICT)
    assert snapshot(runs[0].directory) == before
    change = f"kernel xla instead of {OBJECT.described} from step 1"
    elsewhere = f"is resumed under other conditions and not bitwise reproducible: {change}"
    assert train(runs[:1]) == [f"kernel: xla ({NO_COMPILER.why})", f"{runs[0].directory} {elsewhere}"]
    resumed_with_xla(runs[0], NO_COMPILER.why)


def test_another_kernel_that_is_asked_for_is_elsewhere_too(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(runs[:1], NATIVE, monkeypatch)
    train(runs[:1], XLA_NAME)
    resumed_with_xla(runs[0], None)
    begun(runs[1:], XLA_NAME, monkeypatch)
    with pytest.raises(StoreError, match="was begun with kernel xla, not native"):
        train(runs[1:], NATIVE, STRICT)
    train(runs[1:], NATIVE)
    (change,) = rundir.read_meta(runs[1].directory)["resumed_elsewhere"]
    assert (change["was"], change["is"]) == ("xla", OBJECT.described)


def test_a_run_of_a_version_without_a_choice_had_xla(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun(runs[:1], XLA_NAME, monkeypatch)
    path = runs[0].directory / "meta.json"
    path.write_text(path.read_text().replace('"kernel"', '"of_no_meaning"'))
    assert kernels.in_words(runs[0].directory) == ""
    assert train(runs[:1], persistence=STRICT) == ["kernel: xla (the run was begun with it)"]
    assert rundir.read_meta(runs[0].directory)["bitwise"] is True


def test_a_table_has_a_column_where_its_rows_differ(runs: list[Run], machine: Machine, tmp_path: Path) -> None:
    def lines(status: str = "done") -> list[dict[str, str]]:
        return [{"runs_dir": ".", "exp": run.directory.name, "status": status} for run in runs]

    out = tmp_path / "table.csv"
    train(runs[:1], XLA_NAME)
    train(runs[1:], XLA_NAME)
    assert collect.with_kernels(lines(), out) == lines()
    rundir.update_meta(runs[1].directory, kernel=OBJECT.described)
    both = collect.with_kernels(lines(), out)
    assert [row["kernel"] for row in both] == ["xla", OBJECT.described]
    assert collect.with_kernels(lines("planned"), out) == lines("planned")
    assert collect.with_kernels(lines()[:1], out) == lines()[:1]
    assert [row["kernel"] for row in collect.with_kernels(lines()[:1], out, others=lines()[1:])] == ["xla"]
    assert [row["kernel"] for row in collect.with_kernels(lines("planned"), out, present=both)] == [None, None]


@pytest.mark.parametrize("module", ["runners.run_concat_inputs_targets", "eval_noise", "scripts.demo_seeds"])
def test_every_command_that_trains_has_the_flag(module: str) -> None:
    done = command(module, "--kernel", "fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert "argument --kernel: invalid choice: 'fast' (choose from" in done.stderr


@pytest.mark.parametrize("choose", [kernels.of_processes, lambda asked: kernels.chosen(asked, [])])
def test_a_choice_of_xla_is_the_constant(choose: Callable[[str], Kernel]) -> None:
    assert choose(XLA_NAME) == XLA


@pytest.mark.parametrize(
    ("name", "values", "block"),
    [
        ("small", {}, 64),
        ("small", {"batch_size": 512, "micro_batches": 2}, 64),
        ("tiny", {"batch_size": 1024}, 256),
        ("hoogland", {"batch_size": 1024}, 256),
        ("tiny", {}, 0),
        ("hoogland", {"batch_size": 256}, 0),
        ("small", {"batch_size": 128}, 0),
        ("small", {"batch_size": 272}, 0),
        ("large", {}, 0),
        ("lsa1", {"batch_size": 2**16}, 0),
    ],
)
def test_a_large_batch_of_sequences_is_taken_in_blocks(name: str, values: dict[str, int], block: int) -> None:
    config = preset(name)
    set_values(config, values)
    assert kernels.block_of(resolve(config)) == block


IN_BLOCKS = "xla, 32 tasks at a time"


def test_blocks_are_a_condition_of_a_run_like_other_kernels(
    runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine.reason = "no stack"
    begun(runs[1:], AUTO, monkeypatch)
    monkeypatch.setattr(kernels, "block_of", lambda config: 32)
    begun(runs[:1], AUTO, monkeypatch)
    assert train(runs[:1], persistence=STRICT) == [f"kernel: {IN_BLOCKS} (no stack)"]
    assert train(runs[1:], persistence=STRICT) == ["kernel: xla (the run was begun with it)"]
    assert metas(runs) == [(IN_BLOCKS, "no stack", True), ("xla", "no stack", True)]


def test_who_asks_for_xla_has_whole_batches(runs: list[Run], machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "block_of", lambda config: 32)
    train(runs, XLA_NAME)
    assert metas(runs) == [("xla", None, True)] * 2


def test_several_processes_have_xla() -> None:
    assert kernels.of_processes(AUTO).line() == f"kernel: xla ({kernels.IN_PROCESSES})"
    with pytest.raises(ConfigError, match="--kernel native is not possible: training in several processes"):
        kernels.of_processes(NATIVE)
