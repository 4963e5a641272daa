"""Trains a decoder on prompts of functions of a class, and compares it with Bayes and other methods.

--function names the class, whose fields are flags too, as in --function decision_tree --depth 3. functions_tiny,
functions_small and functions_standard are GPT-2's blocks of 3, 6 and 12 layers.
"""

from icl_lab.runners import command

MODELS, PROG = ("functions_tiny", "functions_small", "functions_standard"), "runners.run_functions"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
