"""Commands that `make` runs besides the runners."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
