"""The study solutions: which of its stationary points one layer of linear attention finds."""
