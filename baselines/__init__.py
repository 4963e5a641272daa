"""The algorithms a transformer is compared with. Every one takes a batch and gives predictions [B]."""
