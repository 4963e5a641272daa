"""Developmental metrics: what a model does and how it is built, at each checkpoint of its training."""
