"""sine: an MLP followed by one linear layer, on sines; with --control, by one step of gradient descent."""

from icl_lab.runners import command

MODEL, PROG = "sine", "runners.run_sine"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
