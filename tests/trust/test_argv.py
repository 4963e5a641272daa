"""Any command line is a request or one of the user's errors: nothing else comes out of parsing and validating."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from icl_lab.analysis import (
    algorithm_distance,
    alignment,
    attention_stats,
    comparators,
    compare,
    copying,
    develop,
    developmental_metrics,
    essential_dynamics,
    layerwise,
    llc_calibrate,
    llc_saturation,
    losses,
    ood_eval,
    over_training,
    position_steps,
    stages,
    task_diversity,
)
from icl_lab.analysis.llc import __main__ as llc
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab import cli
from icl_lab.lab.configs.run import to_dict
from icl_lab.plots import attention_quick, run_figures
from icl_lab.runners import flags
from icl_lab.runners.run_concat_inputs_targets import MODEL as LSA1
from icl_lab.runners.run_softmax_copy import MODEL as TWOLAYER
from icl_lab.scripts import demo_seeds
from icl_lab.src.checks import ConfigError
from icl_lab.store import rundir
from icl_lab.store.readers import StoreError

pytestmark = pytest.mark.robust

USER_ERRORS = (cli.UsageError, ConfigError, StoreError)


class Valid(Exception):
    """Raised in the place of the work, where a command line is a request."""


def seeds_to_train(argv: list[str]) -> None:
    """What demo_seeds does before it looks for its directories."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rundir, "choose", lambda *_: (_ for _ in ()).throw(Valid))
        demo_seeds.main(argv)


ANALYSES = [
    module.COMMAND
    for module in (
        algorithm_distance,
        alignment,
        attention_stats,
        comparators,
        copying,
        develop,
        developmental_metrics,
        essential_dynamics,
        layerwise,
        llc,
        llc_calibrate,
        llc_saturation,
        losses,
        ood_eval,
        over_training,
        position_steps,
        stages,
        task_diversity,
    )
]

# command -> (its parser, parsing and validating)
DOORS: dict[str, tuple[argparse.ArgumentParser, Callable[[list[str]], Any]]] = {
    **{
        model: (flags.parser(model, "a", "b"), lambda argv, model=model: flags.read(model, "a", "b", argv))
        for model in (LSA1, TWOLAYER)
    },
    **{command.name: (command.parser(), command.read) for command in ANALYSES},
    "compare": (compare.parser(), lambda argv: compare.parser().parse(argv)),
    "attention_quick": (attention_quick.parser(), lambda argv: attention_quick.parser().parse(argv)),
    "run_figures": (run_figures.parser(), lambda argv: run_figures.parser().parse(argv)),
    "demo_seeds": (demo_seeds.parser(), seeds_to_train),
}

CONFIG = [
    f"--config.{section}{'.' if name else ''}{name or ''}"
    for section, value in to_dict(RegressionConfig()).items()
    for name in (value if isinstance(value, dict) else [None])
]
NUMBERS = st.one_of(
    st.integers(-3, 20).map(str),
    st.integers().map(str),
    st.sampled_from([2**31, 2**32, 2**63, 10**18, 10**300, 10**400]).map(str),
    st.floats().map(str),
    st.sampled_from(["nan", "inf", "-inf", "1e400", "-0", "1_000", "0x10", "9" * 5000, "٣", "1e-320", "True"]),
)
WORDS = st.one_of(
    st.sampled_from(
        ["", " ", ",", "../x", "/x", "a/b", "auto", "none", "true", "softmax", "linear,softmax", "--", "-"]
    ),
    st.sampled_from(["label_noise", "random_pairs", "easy2hard", "gaussian", "interleaved", "paper", "-x", "()", "%s"]),
    st.text(st.characters(exclude_characters="\0"), max_size=6),
)


def command_lines(parser: argparse.ArgumentParser, with_config: bool) -> st.SearchStrategy[list[str]]:
    """Flags of the parser's own, and of the config's, with values of all kinds, in either spelling."""
    known = [
        name for action in parser._actions for name in action.option_strings if "help" not in name and name != "-h"
    ]
    flag = st.sampled_from([*known, "--unknown", *(CONFIG if with_config else [])])
    value = (NUMBERS | WORDS).filter(lambda text: not text.startswith(("-h", "--h")))
    joined = st.builds(lambda name, text: [f"{name}={text}"], flag, value)
    apart = st.builds(lambda name, texts: [name, *texts], flag, st.lists(value, max_size=2))
    pieces = st.one_of(joined, joined, apart, value.map(lambda text: [text]))
    return st.lists(pieces, max_size=4).map(lambda parts: [word for part in parts for word in part])


def attempt(door: Callable[[list[str]], Any], argv: list[str]) -> Exception | None:
    """The user's error, if it is one; one line that a terminal shows as it is."""
    found: Exception | None = None
    try:
        door(argv)
    except Valid:
        pass
    except USER_ERRORS as error:
        found = error
    assert found is None or str(found).split(), f"{argv} is refused without a sentence"
    return found


@pytest.mark.parametrize("name", DOORS)
@given(data=st.data())
@settings(max_examples=30)
def test_a_command_line_is_a_request_or_a_users_error(name: str, data: st.DataObject) -> None:
    parser, door = DOORS[name]
    attempt(door, data.draw(command_lines(parser, with_config=name in (LSA1, TWOLAYER))))


@pytest.mark.slow
@pytest.mark.parametrize("name", DOORS)
@given(data=st.data())
@settings(max_examples=3000)
def test_many_command_lines_are_requests_or_users_errors(name: str, data: st.DataObject) -> None:
    parser, door = DOORS[name]
    attempt(door, data.draw(command_lines(parser, with_config=name in (LSA1, TWOLAYER))))


@given(st.sampled_from(CONFIG), NUMBERS | WORDS)
@example("--config.name", "../x")
@example("--config.model.num_layers", "9" * 4000)
@example("--config.model", "3")
@example("--config.", "3")
@settings(max_examples=100)
def test_any_value_of_any_field_is_a_request_or_a_users_error(flag: str, value: str) -> None:
    attempt(DOORS[LSA1][1], [f"{flag}={value}"])
    attempt(DOORS[TWOLAYER][1], ["--config.recurrent=true", "--config.attention=linear", flag, value])


@pytest.mark.parametrize("name", [LSA1, TWOLAYER])
@pytest.mark.parametrize("value", ["../x", "/tmp/x", "a/b", "..", "x\n", "\u202ex"])
def test_names_with_slashes_are_refused(name: str, value: str) -> None:
    error = attempt(DOORS[name][1], [f"--config.name={value}"])
    assert isinstance(error, ConfigError)
    assert "it must be a plain file name" in str(error)


def test_what_is_valid_is_not_refused(tmp_path: Path) -> None:
    """The doors open: without this, refusing everything would pass the tests above."""
    assert attempt(DOORS[LSA1][1], ["--steps=3", "--config.dim", "4", "--noise_p", "0.5"]) is None
    assert attempt(DOORS["ood_eval"][1], ["--run", str(tmp_path), "--alphas", "1,2", "--keep-labels"]) is None
    assert attempt(DOORS["alignment"][1], ["--run", "x", "--eta=0.5"]) is None
    assert attempt(DOORS["demo_seeds"][1], ["--seeds", "1", "2"]) is None
    assert isinstance(attempt(DOORS["demo_seeds"][1], ["--seeds", "1", "1"]), cli.UsageError)
