"""What `make` runs besides the runners."""
