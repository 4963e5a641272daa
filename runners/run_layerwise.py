"""The depth curve: a loss after every layer beside gradient descent's after as many steps.

lsa is one linear layer, trained once and applied many times; linear and softmax are stacks, read after every layer.
"""

from runners import command

MODELS, PROG = ("lsa", "linear", "softmax"), "runners.run_layerwise"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
