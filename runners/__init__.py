"""From flags to configs to runs to run directories."""
