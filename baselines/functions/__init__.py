"""What predicts the label of the next input of a function from the pairs before it: a file for each method.

Shapes: B prompts of N pairs, x [B, N, D] and y [B, N]. Entry k of a result [B, N] predicts y[:, k] from x[:, :k],
y[:, :k] and x[:, k]; entry 0 is the prior's prediction. Methods that are fitted anew at each position (`prefixes`) take
the positions P that are wanted, and give [B, P]. Exact ones give a `Posterior`: the mean, and the evidence of all that
an entry has seen. All is in float64 NumPy, but for `lasso` and `adam_network`, which use JAX. No value is kept between
calls. Costs are of 1000 prompts of 40 pairs, in seconds of one core; at most 3 s where none is given.

    linear, nearest, lasso     least squares, on squares too; averaging; neighbours; the lasso
    trees, adam_network        a greedy tree and boosted trees; a two-layer network trained on the context
    gaussian, fourier          Bayes for linear functions, by ridge regression; the arc-cosine kernel; Fourier series
    sparse_linear              Bayes by enumeration of supports
    decision_trees             Bayes by recursion over sub-cubes
    prototypes                 Bayes for classes with a Gaussian prototype each
    logistic_sampling, sign_sampling   Bayes by sampling, with its error
    finite, mixture            the posterior over any pool of functions, so of finite classes too; over any classes
"""
