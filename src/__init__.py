"""The core: data, attention, the stack, training, statistics. Imports nothing else of this repository, does no I/O."""

from icl_lab.src import namespace

namespace.check(__name__)
