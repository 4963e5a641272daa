"""The core: data, attention, the stack, training. Imports nothing else of this repository and does no I/O."""
