"""What the ledger's claims measure: pure functions of a trained run, or of a seed where nothing is trained."""
