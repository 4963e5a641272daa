"""The algorithms a transformer is compared with. Every one takes a batch and gives predictions [B]."""

import environment  # noqa: F401 - it ends a process that lacks packages, before they are imported
