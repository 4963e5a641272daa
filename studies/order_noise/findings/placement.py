"""The effects of the placement of the noisy pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_lab.studies.order_noise.findings.wording import Rows, all_equivalent, contrasts_of, in_percent, widest
from icl_lab.studies.order_noise.runs import MODELS

if TYPE_CHECKING:
    import pandas as pd


def placement_evaluation(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """At evaluation alone."""
    linear, two = (contrasts_of(rows, "placement", f"{model}: ", "at evaluation") for model in ("lsa1_pe", "twolayer"))
    return (
        f"**Placement at evaluation alone**: lsa1_pe is equivalent to itself on mixed contexts in all {len(linear)} "
        f"contrasts ({widest(linear)}); so is twolayer, in all {len(two)} ({widest(two)}).",
        all_equivalent(linear) and all_equivalent(two),
    )


def placement_trained(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained with a placement, tested with each."""
    linear = [
        row
        for model in MODELS[:2]
        for row in contrasts_of(rows, "placement", f"{model}: ")
        if "at evaluation" not in row["contrast"]
    ]
    both = rows["placement", "twolayer: trained as tested / trained the other way"]
    return (
        "**Placement in training and test** (label noise): the linear layers are equivalent to themselves trained "
        f"mixed in all {len(linear)} contrasts ({widest(linear)}). twolayer trained as tested, compared with trained "
        f"the other way: {in_percent(both)}, {both['reading_says']}.",
        len(linear) == 14 and all_equivalent(linear) and both["reading_says"] == "lower",
    )
