"""What order, noise and placement of the pairs do to in-context linear regression."""
