"""Walk-throughs of the papers' experiments, to read and to run."""

from icl_lab.lab import environment
from icl_lab.src import namespace

namespace.check(__name__)
environment.check_variables()  # before the first walk-through imports JAX
