"""Linear probes: what can be read off the activations of a run.

    python -m analysis.probes --run RUN

`question`: what is asked, and its checks. `features`: activations at rows of tokens. `targets`: what is looked for.
`scores`: cross-validated fits. `table`: a row for each score, beside its controls.
"""
