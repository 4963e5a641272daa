"""The door of every command: what is accepted, and how everything else is refused before anything is written."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli
from icl_lab.lab.flag_types import whole_number
from icl_lab.runners import flags
from icl_lab.src.checks import UserError
from icl_lab.src.words import did_you_mean, printable
from icl_lab.store import layout, rundir
from icl_lab.store.lock import locked
from tests import processes
from tests.doors import ANALYSES, COMMANDS, RUNNERS, SWEEPS, Refused, ran, refused

__all__ = ["ran", "refused"]


def parser() -> cli.Parser:
    built = cli.Parser("some.command", "Does something.")
    built.add_argument("--batch_size", type=whole_number, default=1)
    built.add_argument("--save_attention", action="store_true")
    cli.add_list(built, "--alphas", float, [1.0], "scales")
    return built


# What is accepted


@pytest.mark.parametrize("flag", ["--batch_size", "--batch-size"])
@pytest.mark.parametrize("joined", [True, False])
def test_dash_and_underscore_are_the_same(flag: str, joined: bool) -> None:
    words = [f"{flag}=7"] if joined else [flag, "7"]
    assert parser().parse([*words, "--save-attention"]).batch_size == 7


def test_dashes_in_values_stay() -> None:
    built = cli.Parser("some.command", "")
    built.add_argument("--out")
    assert built.parse(["--out=my-run_1"]).out == "my-run_1"
    assert built.parse(["--out", "my-run_1"]).out == "my-run_1"


NUMBERS = st.lists(st.floats(-1e6, 1e6).filter(lambda x: x >= 0), min_size=1, max_size=4)


@given(NUMBERS, st.lists(st.sampled_from([",", " ", ", "]), min_size=3, max_size=3))
def test_lists_come_with_commas_spaces_or_both(numbers: list[float], between: list[str]) -> None:
    text = "".join(str(number) + gap for number, gap in zip(numbers, [*between, ""], strict=False)).rstrip(", ")
    assert parser().parse(["--alphas", *text.split(" ")]).alphas == numbers
    assert parser().parse(["--alphas", text]).alphas == numbers


def test_a_list_has_its_default_and_a_second_one_replaces_the_first() -> None:
    assert parser().parse([]).alphas == [1.0]
    assert parser().parse(["--alphas", "2", "--alphas", "3", "4"]).alphas == [3.0, 4.0]
    assert parser().parse([]).alphas == [1.0]


@pytest.mark.parametrize(
    "words",
    [
        ["--config.lr=0.5", "--steps", "3"],
        ["--config.lr", "0.5", "--steps", "3"],
        ["--steps", "3", "--config.lr", "0.5"],
        ["--steps=3", "--config.lr=0.5"],
    ],
)
def test_config_flags_come_with_an_equals_sign_or_a_space(words: list[str]) -> None:
    rest, values = cli.split_config_flags(words)
    assert values == {"lr": "0.5"}
    assert " ".join(rest).replace("=", " ") == "--steps 3"


def test_config_flags_keep_equals_signs_and_take_dashes_in_names() -> None:
    assert cli.split_config_flags(["--config.model.num-layers=a=b"]) == ([], {"model.num_layers": "a=b"})


# What is refused


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--batch", "7"], "unknown argument --batch, did you mean --batch_size?"),
        (["--save"], "unknown argument --save"),
        (["--bach_size=7"], "unknown argument --bach_size, did you mean --batch_size?"),
        (["--xyzzy"], "unknown argument --xyzzy"),
        (["stray"], "unknown argument stray"),
        (["--batch_size", "many"], "argument --batch_size: 'many' is not a whole number"),
        (["--batch_size"], "argument --batch_size: expected one argument"),
        (["--batch_size=--"], "argument --batch_size: expected one argument"),
        (["--alphas"], "argument --alphas: expected at least one argument"),
        (["--alphas", ","], "--alphas needs at least one value"),
        (["--alphas", "1,two"], "argument --alphas: 'two' is not a number"),
    ],
)
def test_the_parser_refuses_in_a_sentence(words: list[str], sentence: str) -> None:
    with pytest.raises(cli.UsageError, match=f"^{re.escape(sentence)}"):
        parser().parse(words)


FLAGS = ("--quiet", "--slurm", "--help", "--noise_mode", "--batch_size", "--config.lr", "--config.schedule")


@pytest.mark.parametrize(
    ("word", "nearest"),
    [
        *(
            ("--eta", ""),
            ("--xyz", ""),
            ("--sluice", ""),
            ("--p", ""),
        ),  # what all flags begin with is nothing in common
        *(("--lr", "--config.lr"), ("--schedule", "--config.schedule"), ("--shedule", "--config.schedule")),
        *(("--noise_mod", "--noise_mode"), ("--nosie_mode", "--noise_mode"), ("--batch", "--batch_size")),
        *(("--config.lrr", "--config.lr"), ("--slurn", "--slurm")),
    ],
)
def test_only_a_near_word_is_suggested(word: str, nearest: str) -> None:
    assert did_you_mean(word, FLAGS) == (f", did you mean {nearest}?" if nearest else "")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("--eta 1", "unknown argument --eta\n"),
        ("--warmup_steps 1", "unknown argument --warmup_steps, did you mean --config.warmup_steps?\n"),
        ("--schedule cosine", "unknown argument --schedule, did you mean --config.schedule?\n"),
        ("--config.nois_mode=clean", "family regression, did you mean noise_mode?\n"),
        (
            "--config.noise_mode=clean",
            "config key 'noise_mode' is a field of several sections; name one of base.noise_mode, eval.noise_mode, "
            "train.noise_mode\n",
        ),
    ],
)
def test_a_suggestion_is_what_was_meant(words: str, said: str, refused: Refused) -> None:
    assert refused("eval_noise", *words.split()).endswith(said)


def test_flags_are_never_abbreviated() -> None:
    """Every proper beginning of a flag is unknown, so adding a flag never changes what a command line means."""
    for length in range(3, len("--batch_size")):
        with pytest.raises(cli.UsageError, match="unknown argument"):
            parser().parse(["--batch_size"[:length] + "=7"])


def test_a_config_flag_needs_a_value() -> None:
    for words in (["--config.lr"], ["--config.lr", ""]):
        with pytest.raises(cli.UsageError, match=r"--config\.lr needs a value"):
            cli.split_config_flags(words)


@pytest.mark.parametrize(
    ("error", "status", "message"),
    [
        (cli.UsageError("it is\n  wrong"), 2, "error: it is wrong\n"),
        (UserError("mine"), 2, "error: mine\n"),
        (FileNotFoundError(2, "whatever", "a/b.json"), 2, "error: a/b.json: No such file or directory\n"),
        (KeyboardInterrupt(), 130, ""),
        (MemoryError("bytes"), 2, f"error: {cli.OUT_OF_MEMORY}\n"),
        (RuntimeError("RESOURCE_EXHAUSTED: Out of memory allocating"), 2, f"error: {cli.OUT_OF_MEMORY}\n"),
        (UserError("\x1b[31m\u202e\x07\x9b"), 2, "error: \\x1b[31m\\u202e\\x07\\x9b\n"),
        (cli.UsageError("a\x1b[2Jb\u202ec\x00d\x85e\r\nf ü‖ g"), 2, "error: a\\x1b[2Jb\\u202ec\\x00d e f ü‖ g\n"),
        (FileNotFoundError(2, "whatever", "a\x1b]0;b"), 2, "error: a\\x1b]0;b: No such file or directory\n"),
    ],
)
def test_the_launcher_says_what_went_wrong(
    error: BaseException, status: int, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    def main(argv: list[str]) -> None:
        raise error

    with pytest.raises(SystemExit) as exited:
        cli.launch(main)
    assert (exited.value.code, capsys.readouterr().err) == (status, message)


def test_the_launcher_lets_bugs_through() -> None:
    def main(argv: list[str]) -> None:
        raise TypeError("a bug")

    with pytest.raises(TypeError, match="a bug"):
        cli.launch(main)


def test_the_launcher_lets_other_errors_of_xla_through() -> None:
    def main(argv: list[str]) -> None:
        raise RuntimeError("INTERNAL: a bug")

    with pytest.raises(RuntimeError, match="a bug"):
        cli.launch(main)


def test_memory_that_xla_does_not_get_is_one_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    import jax.numpy as jnp

    def main(argv: list[str]) -> None:
        jnp.zeros(2**55, jnp.int8).block_until_ready()

    with pytest.raises(SystemExit) as exited:
        cli.launch(main)
    assert (exited.value.code, capsys.readouterr().err) == (2, f"error: {cli.OUT_OF_MEMORY}\n")


@given(st.text())
def test_what_is_printable_is_one_line_and_stays(text: str) -> None:
    shown = printable(text)
    assert shown.isprintable()
    assert printable(shown) == shown
    assert shown == text or not text.isprintable()


@pytest.mark.parametrize(("given", "status"), [(None, 0), (0, 0), (1, 1)])
def test_the_launcher_exits_with_the_commands_status(given: int | None, status: int) -> None:
    with pytest.raises(SystemExit) as exited:
        cli.launch(lambda argv: given)
    assert exited.value.code == status


# Every command, through its own door


def run_folder(folder: Path) -> Path:
    """A folder that is a run as far as a command looks before it works."""
    rundir.begin(folder, RegressionConfig())
    return folder


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_names_the_nearest_flag(command: str, refused: Refused) -> None:
    makes_runs = command in (*RUNNERS, "scripts.demo_seeds")
    flag = "--outt" if makes_runs else "--helpp" if command == "analysis.compare" else "--runn"
    given = [] if makes_runs else ["x"] if command == "analysis.compare" else ["--run", "x"]
    assert f"unknown argument {flag}, did you mean {flag[:-1]}?" in refused(command, *given, f"{flag}=x")


@pytest.mark.parametrize("command", [*SWEEPS, "scripts.smoke_train"])
def test_sweeps_and_the_smoke_runs_name_the_nearest_flag(command: str, refused: Refused) -> None:
    flag = "--outt" if command == "scripts.smoke_train" else "--runs_dirr"
    needed = {"sweeps.status": ["--runs_dir", "x"], "sweeps.collect": ["--runs_dir", "x", "--out", "x"]}
    assert f"unknown argument {flag}, did you mean {flag[:-1]}?" in refused(
        command, *needed.get(command, []), f"{flag}=x"
    )


@pytest.mark.parametrize("command", RUNNERS)
@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--stepz 3", "unknown argument --stepz, did you mean --steps?"),
        ("--config.num_layer=3", "unknown config key 'num_layer' of the family regression, did you mean num_layers?"),
        ("--config.lr", "--config.lr needs a value"),
        ("--config.lr=fast", "lr is 'fast'; it must be a number"),
        ("--noise_p 1.5", "noise_p is 1.5; it must be between 0 and 1"),
        ("--noise_p=-0.1", "noise_p is -0.1; it must be between 0 and 1"),
        ("--train_noise_p nan", "noise_p is nan; it must be finite"),
        ("--noise_p half", "argument --noise_p: 'half' is not a number, nor auto"),
        ("--noise_sigma=-1", "noise_sigma is -1.0; it must be at least 0"),
        ("--eval_noise_sigma nan", "noise_sigma is nan; it must be finite"),
        ("--eval_noise_sigma inf", "noise_sigma is inf; it must be finite"),
        ("--noise_mode loud", "invalid choice: 'loud'"),
        ("--ordering sorted", "invalid choice: 'sorted'"),
        ("--noise_placement last", "invalid choice: 'last'"),
        ("--difficulty hard", "invalid choice: 'hard'"),
        ("--preset best", "invalid choice: 'best'"),
        ("--steps 0", "steps is 0; it must be a whole number of at least 1"),
        ("--steps=-5", "steps is -5; it must be a whole number of at least 1"),
        ("--steps 2.5", "argument --steps: '2.5' is not a whole number"),
        ("--eval_every 0", "eval_every is 0; it must be a whole number of at least 1"),
        ("--batch_size 0", "batch_size is 0; it must be a whole number of at least 1"),
        ("--num_layers 0", "num_layers is 0; it must be a whole number of at least 1"),
        ("--num_heads 0", "num_heads is 0; it must be a whole number of at least 1"),
        ("--num_heads 3 --config.key_size=10", "key_size is 10; it does not divide among 3 heads"),
        ("--pos_enc_size 3", "pos_enc_size is 3"),
        ("--pos_enc_size=-2", "pos_enc_size is -2; it must be a whole number of at least 0"),
        (
            "--attention_batch 0 --save_attention",
            "argument --attention_batch: '0' is not a whole number from 1 to 2^31 - 1",
        ),
        ("--attention_batch=-1", "argument --attention_batch: '-1' is not a whole number from 1 to 2^31 - 1"),
        ("--attention_batch few", "argument --attention_batch: 'few' is not a whole number"),
        ("--lr 0", "lr is 0.0; it must be above 0"),
        ("--lr nan", "lr is nan; it must be finite"),
        ("--lr=-inf", "lr is -inf; it must be finite"),
        ("--lr inf", "lr is inf; it must be finite"),
        ("--seed=-1", "argument --seed: '-1' is not a whole number from 0 to 2^32 - 1"),
        ("--config.dim=0", "dim is 0; it must be a whole number of at least 1"),
        ("--config.num_pairs=0", "num_pairs is 0; it must be a whole number of at least 1"),
        ("--config.eval_tasks=1", "eval_tasks is 1; it must be a whole number of at least 2"),
        ("--config.test_tasks=0", "test_tasks is 0; it must be a whole number of at least 2"),
        ("--config.num_distractors=11", "num_distractors is 11; a context has only 10 pairs"),
        ("--config.b2=1", "b2 is 1.0; it must be at least 0 and below 1"),
        ("--config.b1=nan", "b1 is nan; it must be finite"),
        ("--config.attention=cosine", "attention is 'cosine'; it must be one of linear, softmax"),
        ("--config.attention=", "attention is empty; it must name the kind of at least one layer"),
        ("--config.recurrent=perhaps", "recurrent is 'perhaps'; it must be true or false"),
        ("--config.input_distribution=cauchy", "input_distribution is 'cauchy'; it must be one of uniform, gaussian"),
        ("--config.base.noise_p=2", "noise_p is 2.0; it must be between 0 and 1"),
        ("--config.name=../x", "name is '../x'; it must be a plain file name"),
        ("--config.name=/x", "name is '/x'; it must be a plain file name"),
        ("--batch_size 1000000000", "batch_size is 1000000000; with"),
        ("--config.test_tasks=1000000000", "test_tasks is 1000000000; with"),
        ("--config.mlp_width=1000000000", "has 2^31 weights or more"),
        ("--steps 4294967296", "steps is 4294967296; it must be below 2^31 - 1"),
        ("--num_layers two", "argument --num_layers: 'two' is not a whole number"),
        ("--config.num_layers=two", "num_layers is 'two'; it must be a whole number"),
        ("now", "unknown argument now"),
    ],
)
def test_runners_refuse(command: str, words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(command, "--out", "fresh", *words.split())


@pytest.mark.parametrize("command", RUNNERS)
def test_runners_refuse_directories_that_are_not_theirs(command: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("some text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "thesis.tex").write_text("years of work")
    run_folder(tmp_path / "other")
    assert "file is a file, not a run directory" in refused(command, "--out", "file")
    assert "file" in refused(command, "--out", "file/run")
    assert "folder is not empty, so it is not a run directory" in refused(command, "--out", "folder")
    assert "folder is not empty, so it is not a run directory" in refused(command, "--out", "folder", "--overwrite")
    assert "other holds a run of another config" in refused(command, "--out", "other", "--seed", "1")


@pytest.mark.parametrize("command", RUNNERS)
def test_runners_refuse_a_directory_in_use(command: str, refused: Refused, tmp_path: Path) -> None:
    with locked(tmp_path / "run"):
        assert "run is in use by another process" in refused(command, "--out", "run")


@pytest.mark.parametrize("command", [*ANALYSES, "plots.attention_quick", "plots.run_figures"])
def test_commands_on_a_run_refuse_what_is_none(command: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").write_text("some text")
    run_folder(tmp_path / "broken")
    (tmp_path / "broken" / layout.CONFIG).write_text('{"schema_version": 2, "family": "regression", "seed": 3}')
    for name in ("missing", "folder", "file"):
        assert f"{name} is not a run directory" in refused(command, "--run", name)
    assert f"broken/{layout.CONFIG} cannot be used: unknown config fields: seed" in refused(command, "--run", "broken")


@pytest.mark.parametrize("command", [*ANALYSES, "plots.attention_quick"])
def test_commands_on_a_run_need_one(command: str, refused: Refused) -> None:
    assert "--run" in refused(command)


def test_runs_that_are_none_or_not_finished_are_not_compared(refused: Refused, tmp_path: Path) -> None:
    run_folder(tmp_path / "begun")
    assert "runs" in refused("analysis.compare")
    assert "missing is not a run directory" in refused("analysis.compare", "missing", "begun")
    assert "begun is not finished" in refused("analysis.compare", "begun")


def test_drawing_nothing_says_how_to_get_something(refused: Refused) -> None:
    assert "no run to draw: give --run DIR" in refused("plots.run_figures")


@pytest.mark.parametrize("eta", ["0", "-1", "nan", "inf"])
def test_alignment_refuses_step_sizes(eta: str, refused: Refused, tmp_path: Path) -> None:
    run_folder(tmp_path / "run")
    said = refused("analysis.alignment", "--run", "run", f"--eta={eta}")
    assert f"argument --eta: '{eta}' is not a number above 0, from 1.18e-38 to 3.4e+38" in said


@pytest.mark.parametrize("alphas", ["0", "1,-2", "nan", "1 inf", "one", ","])
def test_ood_eval_refuses_scales(alphas: str, refused: Refused, tmp_path: Path) -> None:
    run_folder(tmp_path / "run")
    assert "alphas" in refused("analysis.ood_eval", "--run", "run", "--alphas", *alphas.split())


def test_unfinished_runs_are_not_analysed(refused: Refused, tmp_path: Path) -> None:
    run_folder(tmp_path / "run")
    (tmp_path / "run" / layout.LOCK).touch()
    for command in ANALYSES:
        assert "does not exist" in refused(command, "--run", "run")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--seeds 1,1", "seeds must be at least two different ones"),
        ("--seeds 1 2 1", "seeds must be at least two different ones"),
        ("--seeds 3", "seeds must be at least two different ones"),
        ("--seeds 0,-1", "argument --seeds: '-1' is not a whole number from 0 to 2^32 - 1"),
        ("--seeds a,b", "--seeds: 'a' is not a whole number"),
        ("--seeds 0.5 1", "--seeds: '0.5' is not a whole number"),
        ("--steps 0", "argument --steps: '0' is not a whole number from 1 to 2^31 - 1"),
        ("--out file", "argument --out: file is a file, not a folder"),
    ],
)
def test_demo_seeds_refuses(words: str, sentence: str, refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("some text")
    assert sentence in refused("scripts.demo_seeds", *words.split())


def test_demo_seeds_refuses_a_folder_that_is_not_its_own(refused: Refused, tmp_path: Path) -> None:
    (tmp_path / "seed_1").mkdir()
    (tmp_path / "seed_1" / "notes").write_text("mine")
    assert "seed_1 is not empty, so it is not a run directory" in refused("scripts.demo_seeds", "--out", ".")


# The same in processes of their own: some wrong lines, and help


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("runners.run_concat_inputs_targets", "--stepz 3"),
        ("runners.run_concat_inputs_targets", "--noise_p 1.5 --out {}/run"),
        ("runners.run_softmax_copy", "--config.num_layer=3 --out {}/run"),
        ("runners.run_softmax_copy", "--out {}/file/run"),
        ("analysis.alignment", "--run {}/missing"),
        ("analysis.ood_eval", "--run {}/missing --alphas 0"),
        ("analysis.shifts", "--run {}/missing --shift nothing=1"),
        ("analysis.shifts", "--run {}/missing"),
        ("analysis.copying", "--run {}/missing"),
        ("analysis.attention_stats", "--run {}/missing"),
        ("analysis.compare", "{}/missing"),
        ("plots.attention_quick", "--run {}/missing"),
        ("plots.run_figures", "--run {}/missing"),
        ("plots.fig_templates", "--from {0}/missing.csv --out {0}/figs"),
        ("scripts.demo_seeds", "--seeds 1 1 --out {}/seeds"),
        ("scripts.smoke_train", "--out {}/missing --check_only"),
        ("eval_order", "--ordering sorted --runs_dir {0}/runs --out {0}/results.csv"),
        ("eval_noise", "--runs_dir {0}/runs --out {0}/file/results.csv"),
        ("studies.run", "order_noise --shard 3/2 --runs_dir {0}/runs --out {0}/results.csv"),
        ("sweeps.status", "--runs_dir {}/missing"),
        ("sweeps.collect", "--runs_dir {0}/missing --out {0}/results.csv"),
    ],
)
def test_a_wrong_command_line_is_one_sentence_and_status_2(command: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("some text")
    done = processes.command(command, *words.format(tmp_path).split())
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r"error: [^\n]+\n", done.stderr)
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_reader_that_has_had_enough_is_no_error(root: Path) -> None:
    """As `head`, which closes the pipe: status 141 is what a shell gives a process that SIGPIPE ended."""
    reader, writer = os.pipe()
    os.close(reader)
    line = [sys.executable, "-c", "from icl_lab.lab import cli; cli.launch(lambda argv: print('x' * 100_000))"]
    done = subprocess.run(line, cwd=root, stdout=writer, stderr=subprocess.PIPE, text=True)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.parametrize(
    ("script", "closed", "said"),
    [
        ("print('x')", ">&-", (0, "", "")),
        ("exit(cli.command_end.discard_output())", ">&-", (141, "", "")),
        ("cli.Parser('x', '').error('wrong')", ">&-", (2, "", "error: wrong\n")),
        ("cli.Parser('x', '').error('wrong')", "2>&-", (2, "", "")),
    ],
)
def test_streams_that_were_closed_before_the_start_take_nothing(
    script: str, closed: str, said: tuple[int, str, str], root: Path
) -> None:
    code = f"from icl_lab.lab import cli; cli.launch(lambda argv: {script})"
    line = ["sh", "-c", f'"$0" -c "$1" {closed}', sys.executable, code]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == said


@pytest.mark.parametrize(
    "terminal",
    [{"PYTHONIOENCODING": "ascii"}, {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}],
)
def test_what_a_terminal_has_no_characters_for_is_spelled_out(terminal: dict[str, str], root: Path) -> None:
    script = (
        "from icl_lab.lab import cli\n"
        "def main(argv):\n"
        "    print('.2096 \\xb1 .0033, mean \\u2016difference\\u2016, \\xfc')\n"
        "    raise cli.UsageError('no \\xb1 here')\n"
        "cli.launch(main)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=root, env=os.environ | terminal, capture_output=True)
    assert (done.returncode, done.stderr) == (2, b"error: no +- here\n")
    assert done.stdout == b".2096 +- .0033, mean ||difference||, \\xfc\n"


HELPED = [
    *COMMANDS,
    *SWEEPS,
    "runners.run_sine",
    "runners.run_layerwise",
    "analysis.compare_sine",
    "analysis.comparators",
    "analysis.layerwise",
    "analysis.position_steps",
    "analysis.task_diversity",
    "analysis.gd_curve",
    "plots.compare_depth",
    "plots.effects",
    "plots.sweep",
    "studies.run",
    "studies.remake",
    "studies.order_noise.predictions",
    "store.export",
    "store.prune",
    "store.runs",
    "scripts.smoke_train",
    "plots.fig_templates",
    "benchmarks.baseline_costs",
    "benchmarks.bench",
    "benchmarks.devinterp",
    "benchmarks.report",
    "lab.executors.worker",
]


# another name of a command -> the command
OLD_NAMES = {"baselines.gd_step": "analysis.gd_curve"}


def check_help(command: str, status: int, said: str) -> None:
    assert status == 0
    assert f"usage: python -m {OLD_NAMES.get(command, command)} " in said
    assert not re.search(r"default:\s+(None|False|\[|\(|==)", said)


@pytest.mark.parametrize("command", [name for name in HELPED if not name.startswith("analysis.")])
def test_help_needs_nothing_heavy_and_says_no_default_that_is_none(command: str, root: Path) -> None:
    line = [sys.executable, "-X", "importtime", "-m", command, "--help"]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True)
    imported = {row.rpartition("|")[2].strip().partition(".")[0] for row in done.stderr.splitlines()}
    check_help(command, done.returncode, done.stdout)
    assert "argparse" in imported
    assert not imported & {"jax", "jaxlib", "haiku", "optax", "pandas", "matplotlib", "scipy"}


@pytest.mark.parametrize("command", [*(name for name in HELPED if name.startswith("analysis.")), *OLD_NAMES])
def test_help_of_an_analysis_says_no_default_that_is_none(command: str) -> None:
    done = processes.command(command, "--help")
    check_help(command, done.returncode, done.stdout)


def test_defaults_are_shown_as_they_would_be_typed() -> None:
    built = parser()
    built.add_argument("--shard", default=(1, 2), help="which part")
    built.add_argument("--out", type=Path, default=Path("runs/100%"), help="where")
    built.add_argument("--width", type=int, help="trainings")
    cli.add_list(built, "--seeds", int, (0, 1, 2), "seeds")
    cli.add_list(built, "--only", str, (), "names")
    text = " ".join(built.format_help().split())
    for line in ("which part (default: 1/2)", "where (default: runs/100%)", "seeds (default: 0,1,2)"):
        assert line in text
    assert text.endswith("names")
    assert "trainings --seeds" in text


def test_help_shows_the_presets_values() -> None:
    text = " ".join(flags.parser("twolayer", "a", "b").format_help().split())
    assert "tasks in a training batch (preset: 512)" in text
    assert "size of the sinusoidal positional encoding concatenated to each token (preset: 10)" in text
