"""Tokens in context: a causal decoder that predicts the next symbol, compared with exact predictors.

markov is a chain whose transitions the context tells; markov_plateau starts from small tables and waits; triggers is a
bigram language whose triggers the context tells; text is text, of a file or folder of your own with --corpus;
text_control is text with random symbols that come twice.
"""

from icl_lab.runners import command

MODELS, PROG = ("markov", "markov_plateau", "triggers", "text", "text_control"), "runners.run_tokens"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
