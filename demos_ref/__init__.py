"""Walk-throughs of the papers' experiments, to read and to run."""

import environment

environment.check_variables()  # before the first walk-through imports JAX
