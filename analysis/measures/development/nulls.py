"""Is a change of the LLC more than the loss, or the growth of the weights, turned over? Each change with its nulls.

Between two checkpoints, start and end, an LLC estimated at nbeta and gamma changes without any development by

    loss:  -nbeta (L(end) - L(start)), where draws have one loss whatever the checkpoint: nbeta (L_draw(init) - L(w_t));
    norm:  what the LLC at the start changes by when gamma is multiplied by (|w_end| / |w_start|)^2. The localisation
           has the radius sqrt(d / gamma), so larger weights of the same shape lie in a relatively tighter one.

A change is claimed where it differs from 0 and from both by three standard errors, with healthy chains at both ends, at
two settings or more, and in one direction.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from analysis.measures.development.llc_curve import standard_errors
from analysis.measures.llc_health import HEALTHY

SURE = 3.0  # standard errors
SETTINGS = 2  # at which a change is claimed

Row = Mapping[str, Any]


class Change(NamedTuple):
    """A change of the LLC at one setting, with its standard error, and what the nulls say it is.

    norm_null is nan where the LLC rises: a tighter localisation only lowers it.
    """

    setting: str
    delta_llc: float
    delta_llc_se: float
    loss_null: float
    norm_null: float
    norm_null_se: float
    healthy: bool

    @property
    def leaves(self) -> bool:
        """Whether it is of healthy chains, and leaves 0 and both nulls by three standard errors."""
        both = math.hypot(self.delta_llc_se, self.norm_null_se)
        norm = math.isnan(self.norm_null) or abs(self.delta_llc - self.norm_null) > SURE * both
        return (
            self.healthy
            and norm
            and min(abs(self.delta_llc), abs(self.delta_llc - self.loss_null)) > SURE * self.delta_llc_se
        )


def standard_error(row: Row) -> float:
    """The standard error of a row's LLC."""
    return float(standard_errors(row["llc_low"], row["llc_high"], row["chains"]))


def change(setting: str, start: Row, end: Row, tighter: Row | None) -> Change:
    """The change between two rows of an LLC table; `tighter` is the start's with gamma raised, None where it rises."""
    errors = [standard_error(row) for row in (start, end)]
    return Change(
        setting,
        float(end["llc"] - start["llc"]),
        math.hypot(*errors),
        float(-start["nbeta"] * (end["loss"] - start["loss"])),
        math.nan if tighter is None else float(tighter["llc"] - start["llc"]),
        0.0 if tighter is None else math.hypot(standard_error(tighter), errors[0]),
        all(row["health"] == HEALTHY for row in (start, end)),
    )


def raised_gamma(gamma: float, start: Row, end: Row) -> float:
    """gamma with which the radius at the start has the share of |w*| that it has at the end."""
    return float(gamma * (end["norm"] / start["norm"]) ** 2)


def claimed(changes: Sequence[Change]) -> bool:
    """Whether a stage is claimed: two settings or more whose changes leave the nulls, all in one direction."""
    leaving = [one.delta_llc for one in changes if one.leaves]
    return len(leaving) >= SETTINGS and len({math.copysign(1, rise) for rise in leaving}) == 1


def nearest(steps: Iterable[int], step: float) -> int:
    """The one of these steps that is nearest in log step."""
    return min(steps, key=lambda one: abs(math.log1p(one) - math.log1p(step)))


def usable(rows: Mapping[str, Sequence[Row]]) -> list[int]:
    """The checkpoints that are healthy at as many settings as a claim needs; all if there are none."""
    healthy = Counter(row["step"] for own in rows.values() for row in own if row["health"] == HEALTHY)
    chosen = sorted(step for step, count in healthy.items() if count >= SETTINGS)
    return chosen or [row["step"] for row in next(iter(rows.values()))]
