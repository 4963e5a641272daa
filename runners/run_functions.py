"""Function classes: a causal decoder trained on prompts x_1, f(x_1), x_2, ..., compared with Bayes and other methods.

--function names the class, whose fields are flags too, as in --function decision_tree --depth 3. functions_tiny,
functions_small and functions_standard are GPT-2's blocks of 3, 6 and 12 layers.
"""

from icl_lab.runners import command

MODELS, PROG = ("functions_tiny", "functions_small", "functions_standard"), "runners.run_functions"

if __name__ == "__main__":
    command.run(MODELS, PROG, __doc__)
