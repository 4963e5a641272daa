"""The study of sequences of symbols: Markov chains, a language with triggers, and text."""
