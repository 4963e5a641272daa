"""From a run to numbers: pure functions on (predictor, batch), and a thin command for each that writes its file."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
