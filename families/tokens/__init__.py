"""Tokens that are predicted from those before them: Markov chains, a language with triggers, and text."""
