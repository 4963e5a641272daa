"""Trains decoders of symbols on Markov chains, and compares them with exact predictors.

python -m eval_tokens --num_chains 1,16,256,inf --seeds 0,1,2 --out results_tokens.csv
"""

from icl_lab.sweeps import command

DEFAULTS = {"num_chains": (1, 4, 16, 64, 256, 1024)}

if __name__ == "__main__":
    command.run("tokens", "eval_tokens", __doc__.splitlines()[0], DEFAULTS, "results_tokens.csv", "runs/eval_tokens")
