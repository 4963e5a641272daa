"""twolayer: interleaved tokens; a softmax layer copies, a linear one does gradient descent."""

from icl_lab.runners import command

MODEL, PROG = "twolayer", "runners.run_softmax_copy"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
