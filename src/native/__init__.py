"""Loss and gradient of attention stacks, and random bits, by compiled C++: see README.md. Chosen by the caller alone."""
