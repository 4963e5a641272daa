"""lsa1: one linear self-attention layer on tokens (x, y), compared with one step of gradient descent."""

from icl_lab.runners import command

MODEL, PROG = "lsa1", "runners.run_concat_inputs_targets"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
