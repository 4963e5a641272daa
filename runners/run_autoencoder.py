"""autoencoder: learns encodings of strings, for runs of languages with --code autoencoder."""

from icl_lab.runners import command

MODEL, PROG = "autoencoder", "runners.run_autoencoder"

if __name__ == "__main__":
    command.run(MODEL, PROG, __doc__)
