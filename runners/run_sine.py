"""sine: an MLP below one linear attention layer, on sines; with --control, an MLP meta-learned through one GD step."""

from icl_lab.runners import command

MODEL, PROG = "sine", "runners.run_sine"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
