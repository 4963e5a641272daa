"""From a run to numbers: commands, each a light module, over `analysis.measures`, which measures."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
