"""How models develop: stages of training, and what survives their nulls."""
