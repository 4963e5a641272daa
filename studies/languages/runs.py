"""What is trained for the claims of languages: the published setting, without each of its flaws, and the sound one.

Runs share the strings of pool seed 0 unless an axis says otherwise; seeds differ in contexts and initialisation.
"""

from __future__ import annotations

from typing import Any

from icl_lab.families.languages.config import MODELS
from icl_lab.studies.runs import FEW_SEEDS, MANY_SEEDS, SOME_SEEDS, Runs, fresh

PUBLISHED: dict[str, Any] = dict(MODELS["languages"]["published"].values)
CODES = ("one_hot", "bigrams", "raw_index")
PAIRS, NEGATIVES, LAYERS = (10, 40), ("random_hash", "near_miss", "other_language"), (2, 3)
NUMBERS = (1, 3, 10, 30, 100, 300)  # of random languages
RANDOM = {"languages": ("random",), "unseen_languages": ("random",), "num_unseen": 64, "pool_size": 512}
RANDOM |= {"negatives": "random_abc", "code.kind": "bigrams", "code.dim": 11, "data.num_pairs": 20, "steps": 3000}


def _without(**changes: Any) -> Runs:
    """The published setting with one flaw switched off."""
    return Runs("languages", PUBLISHED | changes, SOME_SEEDS)


RUNS: dict[str, Runs] = {
    "sound": Runs("languages", {}, MANY_SEEDS),
    "sound_main": Runs("languages", {}, fresh(18, 40)),
    "hash": Runs("languages", {"negatives": "random_hash"}, MANY_SEEDS),
    "published": Runs("languages", PUBLISHED, SOME_SEEDS),
    "near_miss": Runs("languages", {"negatives": "near_miss"}, SOME_SEEDS),
    "autoencoder_itself": Runs("autoencoder", {}, FEW_SEEDS),
    # the published setting, one flaw at a time switched off
    "without_index": _without(**{"code.kind": "one_hot", "code.scale": "whitened"}),
    "without_hash": _without(negatives="random_abc"),
    "without_query": _without(query_in_keys=False),
    "without_swing": _without(schedule="cosine"),
    "with_context": _without(negatives="other_language"),
    # the sound setting with other strings, codes, contexts, depths and another model
    "pools": Runs("languages", {}, FEW_SEEDS, {"pool_seed": (1, 2, 3, 4)}),
    "autoencoder": Runs("languages", {"code.kind": "autoencoder"}, SOME_SEEDS),
    "states": Runs("languages", {"code.kind": "states", "code.dim": 5}, SOME_SEEDS),
    "learned": Runs("languages", {"code.kind": "learned", "features": 16, "steps": 2000}, FEW_SEEDS),
    "layers": Runs("languages", {}, SOME_SEEDS, {"num_layers": LAYERS}),
    "softmax": Runs("languages_softmax", {}, FEW_SEEDS),
    **{
        f"grid_{code}_{pairs}": Runs(
            "languages",
            {"code.kind": code, "code.dim": 8, "data.num_pairs": pairs, "training.steps": 3000},
            FEW_SEEDS,
            {"negatives": NEGATIVES},
        )
        for code in CODES
        for pairs in PAIRS
    },
    # how many languages are trained on
    "random_linear": Runs("languages", RANDOM, SOME_SEEDS, {"num_languages": NUMBERS}),
    "random_softmax": Runs("languages_softmax", RANDOM, FEW_SEEDS, {"num_languages": NUMBERS}),
}
