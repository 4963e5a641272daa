"""Formal languages without JAX: automata, members and non-members of a length, pools of labelled strings, and codes."""
