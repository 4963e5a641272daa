"""The native kernel's object: compiled where it runs, checked, kept between processes. Imports no JAX."""
