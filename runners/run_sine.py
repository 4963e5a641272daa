"""sine: an MLP below one linear layer, on sines; with --control, an MLP below one step of descent."""

from icl_lab.runners import command

MODEL, PROG = "sine", "runners.run_sine"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
