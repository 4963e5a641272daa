"""Trains a decoder on a pool of M tasks, and compares it with ridge and dMMSE.

tiny, small, base and large are GPT-2's blocks; hoogland and carroll are the smaller regression transformers.
"""

from icl_lab.runners import command

MODELS, PROG = ("tiny", "small", "base", "large", "hoogland", "carroll"), "runners.run_task_diversity"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
