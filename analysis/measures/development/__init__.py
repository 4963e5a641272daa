"""How a model develops over its training."""
