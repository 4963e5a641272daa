"""The study theory: what the theory of in-context learning predicts of trained transformers, and what is measured."""
