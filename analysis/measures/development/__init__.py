"""How a model develops: metrics at each checkpoint of its training, stages, and the nulls of these."""
