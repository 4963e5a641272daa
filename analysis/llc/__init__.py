"""The local learning coefficient: settings, chains, diagnostics, traces, and how the estimator is validated."""

# what `icl_lab` has of it -> its module here; imported when it is asked for
PUBLIC = {"llc": "any_model", "llc_over_training": "any_model", "diagnose": "estimate"}
PUBLIC |= {"influence": "influence", "susceptibility": "influence"}
