"""Losses and gradients of attention stacks, and random bits, by compiled C++: see README.md."""
