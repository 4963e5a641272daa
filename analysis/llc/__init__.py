"""The local learning coefficient: settings, chains, diagnostics, traces, and how the estimator is validated."""
