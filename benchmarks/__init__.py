"""What things cost, as ratios inside one run: this class of machine is noisy."""
