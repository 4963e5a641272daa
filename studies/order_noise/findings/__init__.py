"""What the study finds: each a sentence with its numbers, and whether the contrasts bear it out."""

from __future__ import annotations

from typing import TYPE_CHECKING

from icl_lab.studies.order_noise.findings import attention, leading, noise, order, placement
from icl_lab.studies.order_noise.findings.wording import Finding, Rows

if TYPE_CHECKING:
    import pandas as pd

TOO_FEW = "Not measured: fewer than two seeds have trained in a condition that it needs."

FINDINGS: dict[str, Finding] = {
    finding.__name__: finding
    for finding in (
        leading.learns_the_order,
        leading.order_alone,
        leading.noise_like_descent,
        leading.shorter_steps,
        leading.no_detection,
        order.sanity,
        order.order_lsa1,
        order.order_lsa1_pe,
        order.order_twolayer,
        order.curriculum_linear,
        order.curriculum_twolayer,
        order.plateau,
        order.unsupported_curriculum,
        noise.noise_growth,
        noise.noise_is_gd,
        noise.noise_does_not_grow,
        noise.far_from_bayes,
        noise.noise_training,
        noise.noise_training_loss,
        noise.noise_training_pays,
        noise.noise_training_cost,
        noise.order_times_noise,
        attention.attention,
        attention.copying_layer,
        attention.attention_after_training,
        attention.position_artefact,
        attention.unsupported_attention,
        placement.placement_evaluation,
        placement.placement_trained,
    )
}


def stated(name: str, rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """A finding's sentence, and whether the numbers bear it out."""
    try:
        return FINDINGS[name](rows, table)
    except LookupError:
        return TOO_FEW, False
