"""What the order and noise study's page claims: each a sentence with its numbers, and whether they bear it out.

The page cannot be made with a claim that does not hold, and a test makes it from the committed table.
"""

from __future__ import annotations

from report.order_noise_claims import attention, noise, order, placement
from report.order_noise_claims.words import Claim

CLAIMS: dict[str, Claim] = {
    claim.__name__: claim
    for claim in (
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
        noise.far_from_bayes,
        noise.noise_training,
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
