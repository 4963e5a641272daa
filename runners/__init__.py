"""From flags to configs to runs to run directories."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
