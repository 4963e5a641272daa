"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

REMARKS: dict[str, str] = {
    "markov_few_chains": "Six of eight runs are nearer to the pool's posterior and two to Bayes: four chains are few, but "
    "near the turn.",
}
