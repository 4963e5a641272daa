"""What predicts the label of the next input of a function from the pairs before it: a file for each method.

Shapes: B prompts of N pairs, x [B, N, D] and y [B, N]. Entry k of a result [B, N] predicts y[:, k] from x[:, :k],
y[:, :k] and x[:, k]; entry 0 is the prior's prediction. All is computed in float64 NumPy unless a module says so.

`prefixes`: methods that are fitted anew at each position. `posterior`: what exact methods give, the mean and the
evidence.
"""
