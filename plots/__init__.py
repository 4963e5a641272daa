"""Figures from files. Reads run directories through `store` and imports no JAX."""
