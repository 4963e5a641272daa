"""What is done to the pairs of a context: corruption, order, placement; and their composition."""
