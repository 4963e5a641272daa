"""What is measured of a finished run: pure functions of (loaded run, evaluation set), and what writes their numbers."""
