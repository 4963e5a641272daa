"""What things cost, as ratios inside one run: this class of machine is noisy."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
