"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

REMARKS: dict[str, str] = {
    "markov_few_chains": "Six of eight runs are nearer to the pool's posterior and two to Bayes: four chains are few, but "
    "near the turn.",
    "markov_llc_phases": "No estimate of the eight runs is on a plateau, so that no change of an LLC can be compared.",
    "control_prefix": "The head copies by distance. In training the 65 random symbols always came again 65 places later, "
    "and prefix matching is measured at 64: in seed 1700 the weight is .92 at 65 and .001 at 64, and the copied symbol "
    "is the most likely in 98 % and in none. The later control varies the distance.",
    "text_bigrams": "The least divergence is .524 to .580 nats. Bigrams are not learnt alone here: positions matter soon after.",
    "long_icl": "Three seeds: -.129 to -.143. They ended after 10 500, 16 000 and 10 500 steps, where the held-out loss had risen twice.",
    "text_icl": "Decoders gain .13 nats more from the context than counts of four symbols do, without a head that matches "
    "prefixes.",
}
