"""An autoencoder of strings: its config, its task, and what a run leaves."""
