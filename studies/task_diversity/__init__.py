"""Task diversity and the transient ridge: Raventos et al. 2023 and Carroll et al. 2025."""
