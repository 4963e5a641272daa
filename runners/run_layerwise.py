"""Measures the depth curve: the loss after every layer, beside gradient descent after as many steps.

lsa is one linear layer, trained once and applied many times; linear and softmax are stacks, read after every layer.
"""

from icl_lab.runners import command

MODELS, PROG = ("lsa", "linear", "softmax"), "runners.run_layerwise"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
