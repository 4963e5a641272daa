"""Trains a decoder that predicts the next symbol, and compares it with exact predictors.

markov: Markov chains whose transitions must be inferred from the context; markov_plateau: the same from a small initial
embedding, so that the loss first stays on a plateau; triggers: a bigram language whose triggers must be inferred from
the context; text: a text, with --corpus a file or folder of your own; text_control: text with half of the training
windows replaced by repeated random symbols.
"""

from icl_lab.runners import command

MODELS, PROG = ("markov", "markov_plateau", "triggers", "text", "text_control"), "runners.run_tokens"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
