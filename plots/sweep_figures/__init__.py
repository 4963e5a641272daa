"""The five figures of a sweep, from its table alone: what stands in one line, means over seeds, and how it looks."""
