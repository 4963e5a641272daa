"""The reproduction of "Transformers Learn In-Context by Gradient Descent" (von Oswald et al. 2023)."""
