"""Is a change of the LLC more than a change of the loss, or of the weights' norm? Each change with its nulls.

Between two checkpoints, start and end, an LLC estimated at nbeta and gamma changes without any development by

    loss:  -nbeta (L(end) - L(start)), where draws have one loss whatever the checkpoint: nbeta (L_draw(init) - L(w_t));
    norm:  what the LLC at the start changes by when gamma is multiplied by (|w_end| / |w_start|)^2. The localisation
           has the radius sqrt(d / gamma), so larger weights of the same shape lie in a relatively smaller one.

Chains of usable estimates lie below a saturation of .3, so that for them the loss null says little; the norm null is of
falls where |w| grows, and of rises where it shrinks. Differences are tested by Welch's t over chains, at the two-sided
level of three standard errors of a normal, .0027; for four chains that is five standard errors or more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from icl_lab.analysis.development.llc_curve import standard_errors
from icl_lab.store.llc_rows import is_known, is_usable

LEVEL = 0.0026998  # two-sided, of three standard errors of a normal
SETTINGS = 2  # that a stage needs at least

Row = Mapping[str, Any]


class Change(NamedTuple):
    """A change of the LLC at one setting, with the loss's; what the nulls say it is, and the p of its differences.

    norm_null is nan, and p_norm None, where the weights' norm changes the LLC the other way; p_norm is 1 where the
    estimate of the null is not usable, or there are none, so that nothing is claimed against it.
    """

    setting: str
    delta_loss: float
    delta_llc: float
    delta_llc_se: float
    loss_null: float
    norm_null: float
    p_zero: float
    p_loss: float
    p_norm: float | None
    usable: bool

    @property
    def differs(self) -> bool:
        """Whether both ends are usable, and the change differs from 0 and from both nulls."""
        values = (self.p_zero, self.p_loss, *(() if self.p_norm is None else (self.p_norm,)))
        return self.usable and all(is_known(p) and p < LEVEL for p in values)


def change(setting: str, start: Row, end: Row, rescaled: Row | None) -> Change:
    """The change between two rows of an LLC table; `rescaled` is the start's with the end's relative radius.

    `rescaled` is None where `norm_null_applies` is false, or there is no such estimate.
    """
    delta = float(end["llc"] - start["llc"])
    delta_loss = float(end["loss"] - start["loss"])
    loss_null = float(-start["nbeta"] * delta_loss)
    norm_null, p_norm = math.nan, 1.0 if norm_null_applies(start, end) else None
    if rescaled is not None:
        norm_null = float(rescaled["llc"] - start["llc"])  # so the start's error cancels in delta - norm_null
        known = is_usable(rescaled)
        p_norm = p_value(float(end["llc"] - rescaled["llc"]), (end, rescaled)) if known else 1.0
    return Change(
        setting,
        delta_loss,
        delta,
        math.hypot(standard_error(start), standard_error(end)),
        loss_null,
        norm_null,
        p_value(delta, (start, end)),
        p_value(delta - loss_null, (start, end)),
        p_norm,
        is_usable(start) and is_usable(end),
    )


def standard_error(row: Row) -> float:
    """The standard error of a row's LLC."""
    return float(standard_errors(row["llc_low"], row["llc_high"], row["chains"]))


def p_value(difference: float, rows: Sequence[Row]) -> float:
    """The two-sided p of a difference of rows' LLCs by Welch's t; 1 where it is not defined."""
    from scipy.special import stdtr

    variances = [standard_error(row) ** 2 for row in rows]
    total = sum(variances)
    if not (math.isfinite(difference) and math.isfinite(total) and total > 0):
        return 1.0
    spread = sum(variance**2 / (int(row["chains"]) - 1) for variance, row in zip(variances, rows, strict=True))
    return float(2 * stdtr(total**2 / spread, -abs(difference) / math.sqrt(total)))


def norm_null_applies(start: Row, end: Row) -> bool:
    """Whether the change of |w| alone would change the LLC in the direction in which it has changed.

    It applies where a number is missing: the null is then not excluded.
    """
    known = all(map(is_known, (start["llc"], end["llc"], start["norm"], end["norm"])))
    return not known or bool((end["llc"] - start["llc"]) * (end["norm"] - start["norm"]) < 0)


def claimed(changes: Sequence[Change]) -> bool:
    """Whether a stage is claimed: at two settings or more, all of which differ from the nulls in one direction."""
    directions = {math.copysign(1, one.delta_llc) for one in changes}
    return len(changes) >= SETTINGS and all(one.differs for one in changes) and len(directions) == 1


def nearest(steps: Iterable[int], step: float) -> int:
    """The one of these steps that is nearest in log step."""
    return min(steps, key=lambda one: abs(math.log1p(one) - math.log1p(step)))


def usable_at_all(rows: Mapping[str, Sequence[Row]]) -> list[int]:
    """The steps of the checkpoints that are usable at all of these settings; none where there is no setting."""
    if not rows:
        return []
    usable = [{row["step"] for row in estimates if is_usable(row)} for estimates in rows.values()]
    return sorted(set.intersection(*usable))
