"""From a run to numbers: pure functions on (predictor, batch), and a thin command for each that writes its file."""
