"""Tokens in context: a causal decoder that predicts the next symbol, compared with exact predictors.

markov is a chain whose transitions the context tells; markov_plateau starts from small tables and waits.
"""

from icl_lab.runners import command

MODELS, PROG = ("markov", "markov_plateau"), "runners.run_tokens"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
