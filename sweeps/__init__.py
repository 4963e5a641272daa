"""A grid of settings becomes cells, cells become packs, an executor trains the packs, the cells become a CSV."""
