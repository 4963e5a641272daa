"""How does a model develop? Everything that is measured over a run's checkpoints, on one table and one figure.

python -m analysis.develop --run DIR, of a run trained with --config.snapshots=true

The LLC at the published setting and at unsaturated ones, its stages with their nulls, behaviour, structure and
essential dynamics: analysis/develop/ and figs/develop.png. If it is killed, the same command resumes and
at most one checkpoint is lost. A stage is claimed where the LLC's change differs from its nulls at all unsaturated
settings.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from icl_lab.analysis.command import Command
from icl_lab.analysis.llc import SELECTIONS, selection
from icl_lab.analysis.measures.llc_settings import TYPES, Settings
from icl_lab.lab import cli
from icl_lab.lab.flag_types import SEED, shown
from icl_lab.src.checks import require
from icl_lab.store import layout
from icl_lab.store.readers import expecting

CHAINS = {"chains": 4, "burn_in": 200, "draws": 400, "tasks": 2048}
PARTS = ("eps", "nbeta", "gamma")
PUBLISHED = "published"
# the default; one of another gamma / nbeta, on which a quadratic's LLC depends; the published one, mostly saturated
SETTINGS: dict[str, dict[str, Any]] = {
    "default": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 667.0},
    "tight": {"eps": 3.5e-5, "nbeta": 133.3, "gamma": 2000.0},
    "published": {"eps": 3e-4, "nbeta": 133.3, "gamma": 6.67},
}


def measure(run: Path, flags: argparse.Namespace) -> dict[str, Any]:
    """Measures all of it, and draws the figure."""
    from icl_lab.analysis.measures.development.develop import Recipe, check_stages, develop
    from icl_lab.plots.develop import draw_development

    check_stages(run, flags.checkpoints)
    facts = develop(run, Recipe(settings_of(flags), flags.checkpoints, seed=flags.seed, hessian=flags.hessian))
    draw_development(run)
    with expecting(run / layout.DEVELOP, "the development of a run"):  # it may be of an earlier command
        return _summary(facts)


def _summary(facts: Mapping[str, Any]) -> dict[str, Any]:
    lines = {f"LLC, {name}": _line(facts["lines"].get(name)) for name in facts["settings"]}
    explained = zip(facts["dynamics"]["explained"], facts["dynamics"]["null"]["explained"], strict=True)
    stages = facts["stages"]
    count = sum(stage["claimed"] for stage in stages)
    return {
        **lines,
        "variance explained": ", ".join(f"{share:.3f} (walks {walk:.3f})" for share, walk in explained),
        "stages": f"{len(stages)}, of which {count} differ from their nulls at all unsaturated settings",
    }


def settings_of(flags: argparse.Namespace) -> dict[str, Settings]:
    """The settings of the flags by name, the published one last; `ConfigError` for invalid values."""
    chains = {name: getattr(flags, name) for name in CHAINS}
    unsaturated = dict(flags.settings) or {name: SETTINGS[name] for name in ("default", "tight")}
    return {
        name: Settings(**values, **chains) for name, values in (unsaturated | {PUBLISHED: SETTINGS[PUBLISHED]}).items()
    }


def _setting(word: str) -> tuple[str, dict[str, Any]]:
    """NAME=EPS:NBETA:GAMMA."""
    name, _, values = word.partition("=")
    parts = values.split(":")
    if not (name.isidentifier() and name != PUBLISHED and len(parts) == len(PARTS)):
        raise argparse.ArgumentTypeError(
            f"{shown(word)} is no setting, NAME=EPS:NBETA:GAMMA, as in tight=3.5e-5:133:2000"
        )
    return name, {part: TYPES[part](text) for part, text in zip(PARTS, parts, strict=True)}


def _line(line: Mapping[str, Any] | None) -> str:
    if line is None:
        return "no line in the loss: chains diverge at all checkpoints but two or fewer"
    return (
        f"slope / -nbeta {line['slope_over_minus_nbeta']:.2f}, correlation with the loss {line['correlation']:.2f}, "
        f"{line['healthy']} of {line['checkpoints']} checkpoints healthy"
    )


def _add(parser: cli.Parser) -> None:
    parser.needs("blackjax")
    parser.add_argument(
        "--checkpoints", type=selection, default="all", metavar="WHICH", help=f"which: {SELECTIONS} (default: all)"
    )
    cli.add_list(
        parser, "--settings", _setting, (), "unsaturated settings, NAME=EPS:NBETA:GAMMA (default: default and tight)"
    )
    parser.add_argument("--hessian", action="store_true", help="also the Hessian's trace and top eigenvalue")
    parser.add_argument("--seed", type=SEED, default=0, help="of random walks and probes")
    for name, value in CHAINS.items():
        parser.add_argument(
            f"--{name}", type=TYPES[name], default=value, help=f"of the LLC's chains (default: {value})"
        )


def _check(flags: argparse.Namespace) -> None:
    require(flags.checkpoints != "last", "checkpoints is 'last'; a development needs six checkpoints or more")
    settings_of(flags)


COMMAND = Command(
    "develop",
    "Measures how a model develops: LLC, stages with their nulls, behaviour, structure, essential dynamics.",
    measure,
    _add,
    _check,
)

if __name__ == "__main__":
    COMMAND.launch()
