"""Definitions of loss and mse, as files state them in `loss_convention`. A family may have its own."""

LOSS_AND_MSE = "loss: half the mean squared error; mse: the mean squared error"
ABSOLUTE_AND_MSE = "loss: the mean absolute error; mse: the mean squared error"
LOSS = "half the mean squared error"
MSE_OF_QUERIES = (
    "mse: the mean squared error over a task's queries, noise in their labels included, averaged over tasks"
)
TRIMMED_MEAN = "mean without the largest .1 %"  # over tasks: of depth curves, printed and drawn
