"""languages: membership in regular languages, inferred from labelled strings of the context.

--languages takes regular expressions, tomita1 to tomita7, tomita, or random (with --num_languages).
"""

from icl_lab.runners import command

MODELS, PROG = ("languages", "languages_softmax"), "runners.run_languages"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
