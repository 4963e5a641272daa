"""The settings of an estimate of the local learning coefficient, checked without anything heavy."""

from __future__ import annotations

import argparse
import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

from icl_lab.analysis.llc.patterns import check_pattern
from icl_lab.lab import cli
from icl_lab.lab.flag_types import (
    COUNT,
    MOST_INDEX,
    NOT_NEGATIVE,
    POSITIVE,
    SEED,
    SMALLEST,
    TASKS,
    Either,
    Number,
    Whole,
    shown,
)
from icl_lab.src.checks import require

SAMPLERS = ("sgld", "rmsprop", "sghmc", "hmc")
AUTO = "auto"  # of eps: a tenth of the stability bound
DATA = ("fixed", "fresh", "full")  # a step's tasks: of a fixed set, such as no step has seen, or all of the fixed set
CHECKS = 40  # of the draws that are kept
MOST_KEPT = 2**26  # values of a trace, of all chains, which are in memory
TYPES: dict[str, Whole | Number] = {
    "nbeta": POSITIVE,
    "gamma": NOT_NEGATIVE,
    "batch_size": Whole(1, TASKS.most, TASKS.why),
    "tasks": Whole(1, TASKS.most, TASKS.why),
    "chains": Whole(2, 4096, "each is a copy of the parameters"),
    "burn_in": Whole(0, MOST_KEPT // 2, "all draws are in memory"),
    "draws": Whole(8, MOST_KEPT // 2, "all draws are in memory"),
    "thin": COUNT,
    "friction": Number(SMALLEST, 1),
    "descend": Whole(0, 1_000_000, "each takes all samples"),
    "seed": SEED,
}


@dataclass(frozen=True)
class Settings:
    """What an estimate depends on. nbeta and gamma have the unit of 1 / loss and 1 / weight^2, eps that of weight^2.

    The default nbeta is 66.67 of a mean squared error (Hoogland et al. 2024), of which losses here are half.
    tasks: of the fixed set, of which batch_size are a step's; mask: a regular expression of the parameters that move;
    eps: None takes a tenth of the stability bound 1 / (nbeta h_max + gamma); sampler: sgld, rmsprop (scales the step of
    each parameter), sghmc (keeps 1 - friction of the last step) or hmc (all samples, with accepted proposals; for small
    models); descend: steps of full-batch descent from w* before the chains begin; seed: of the chains.
    """

    eps: float | None = 3.5e-5
    nbeta: float = 133.3
    gamma: float = 667.0
    batch_size: int = 64
    tasks: int = 4096
    data: str = "fixed"
    chains: int = 8
    burn_in: int = 200
    draws: int = 400
    thin: int = 1
    mask: str = ""
    sampler: str = "sgld"
    friction: float = 0.1
    descend: int = 0
    seed: int = 0

    def __post_init__(self) -> None:
        for name, kind in TYPES.items():
            require(kind.has(value := getattr(self, name)), f"{name} is {value}; it must be {kind}")
        require(self.eps is None or POSITIVE.has(self.eps), f"eps is {self.eps}; it must be {POSITIVE}")
        draws = self.burn_in + self.draws
        require(
            self.chains * draws <= MOST_KEPT,
            f"{self.chains} chains of {draws} draws keep more than 2^26 values in memory; take fewer chains or draws",
        )
        require(
            draws * self.thin <= MOST_INDEX,
            f"{draws} draws of {self.thin} steps each are more than the 2^31 - 1 that can be counted; lower thin",
        )
        require(self.data in DATA, f"batches is {self.data!r}; choose {', '.join(DATA)}")
        require(
            self.data != "fixed" or self.batch_size <= self.tasks,
            f"batch_size is {self.batch_size}, more than the {self.tasks} tasks it is drawn from; raise tasks",
        )
        require(self.sampler in SAMPLERS, f"sampler is {self.sampler!r}; choose {', '.join(SAMPLERS)}")
        require(
            self.sampler != "hmc" or self.data == "full",
            f"batches is {self.data}; hmc takes all samples at each step, so it must be full",
        )
        check_pattern(self.mask)

    @property
    def step_size(self) -> float:
        """eps, where it is a number."""
        require(self.eps is not None, "eps is auto, but one value for all checkpoints is needed here; give a number")
        assert self.eps is not None
        return self.eps

    @property
    def program(self) -> Settings:
        """The settings that are compile-time constants; estimates that differ only in the others share a program."""
        friction = self.friction if self.sampler == "sghmc" else 1.0
        return replace(
            self, eps=1.0, nbeta=1.0, gamma=0.0, seed=0, mask="", tasks=TASKS.most, descend=0, friction=friction
        )

    @property
    def check_every(self) -> int:
        """Draws between two checks of a chain."""
        return max(1, self.draws // CHECKS)

    @property
    def name(self) -> str:
        """Eight hexadecimal digits of a hash of the settings."""
        return hashlib.sha256(json.dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:8]


# --- flags ---


EPS = Either((AUTO,), AUTO, POSITIVE)
# field of the settings -> what it is
FLAGS: Mapping[str, str] = {
    "eps": "step size, or auto",
    "nbeta": "n beta, the inverse temperature times the number of tasks",
    "gamma": "strength of the localisation, the pull towards w*",
    "batch_size": "tasks in the minibatch of a step",
    "tasks": "tasks in the fixed set, on which L(w*) is measured",
    "data": "a step's tasks: fixed (drawn from a fixed set), fresh (seen once) or full (all of the fixed set)",
    "chains": "number of chains, each started at w*",
    "burn_in": "burn-in draws, discarded at the beginning of each chain",
    "draws": "draws of a chain that are kept",
    "thin": "steps between two draws",
    "mask": "sample only parameters whose module/name matches this regular expression; the others stay at w*",
    "sampler": "sgld, rmsprop (scales the step of each parameter), sghmc (keeps a part of the last step) or hmc",
    "friction": "sghmc: the fraction of the last step that is dropped",
    "descend": "steps of full-batch descent from w* before the chains begin",
    "seed": "seed of the chains",
}
NAMES = {"data": "batches"}  # of flags that have another name than their field, which was the flag's once
FORMER = {"sampler": "preconditioner"}  # earlier names of flags


def add_flags(parser: argparse._ActionsContainer, prefix: str = "") -> None:
    """The flags of the settings; those that are not given have the defaults of `Settings`."""
    for name in FLAGS:
        add_flag(parser, name, help_of(name), prefix)


def add_flag(parser: argparse._ActionsContainer, name: str, text: str, prefix: str = "") -> None:
    """The flag of a setting."""
    flag, kind = prefix + NAMES.get(name, name), EPS if name == "eps" else TYPES.get(name, str)
    parser.add_argument(f"--{flag}", dest=prefix + name, type=kind, metavar="VALUE", help=text)
    if name in NAMES:
        cli.add_former_names(parser, flag, (prefix + name,))
    if name in FORMER:
        cli.add_former_names(parser, flag, (prefix + FORMER[name],))


def help_of(name: str, default: Any = None) -> str:
    """What a flag of the settings is, with its default: a given one, or that of the settings."""
    value = getattr(Settings, name) if default is None else default
    return f"{FLAGS[name]} (default: {value})" if value != "" else FLAGS[name]


def settings_of(flags: argparse.Namespace, prefix: str = "") -> Settings:
    """The settings of the flags; `ConfigError` for invalid values."""
    given = {name: getattr(flags, f"{prefix}{name}") for name in FLAGS}
    known = {name: value for name, value in given.items() if value is not None}
    return Settings(**known | ({"eps": None} if known.get("eps") == AUTO else {}))


# --- which checkpoints ---

SELECTIONS = "all, last, every:K, log:N[:FROM] or steps such as 100,500"
STEP = Whole(0)
# kind of selection -> how many numbers it may have, and their types
KINDS: Mapping[str, tuple[tuple[int, ...], tuple[Whole, ...]]] = {
    "all": ((0,), ()),
    "last": ((0,), ()),
    "every": ((1,), (COUNT,)),
    "log": ((1, 2), (Whole(2, 100_000, "all places are in memory"), STEP)),
}


def selection(text: str) -> str:
    """A selection of checkpoints, its numbers in figures; `argparse.ArgumentTypeError` for any other text."""
    kind, *numbers = text.split(":")
    counts, types = KINDS.get(kind, ((), ()))
    if len(numbers) in counts:
        return ":".join([kind, *(str(read(number)) for read, number in zip(types, numbers, strict=False))])
    if not re.fullmatch(r"[\d\s.,e+-]+", text):
        raise argparse.ArgumentTypeError(f"{shown(text)} is not one of {SELECTIONS}")
    return ",".join(str(STEP(word)) for word in text.split(","))


# --- settings with names ---

# the default; one of another gamma / nbeta, on which a quadratic's LLC depends; the published one, mostly saturated:
# Hoogland et al. 2024 have nbeta 66.67 of the mean squared error, which is 133.3 of half of it, this laboratory's loss
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 667.0},
    "tight": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 2000.0},
    "published": {"eps": 3e-4, "nbeta": 133.3, "gamma": 6.67},
}
