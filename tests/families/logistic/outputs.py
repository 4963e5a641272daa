"""What a run of the family leaves: the columns of its table, its curves, when it has trained, and its summary."""

from icl_lab.families.summary import header, row
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Criterion, Curve, NamedLoss, Outputs, Panel

LOSS = columns.at("headline", "loss")
ROWS = {"trained transformer": "loss", "teacher, who knows w": "teacher_loss", "1/2": "constant_loss"}
CURVES = (
    Curve("train_loss", "train batch", "train"),
    Curve("eval_loss", "model", "model"),
    Curve("eval_constant_loss", "log 2", "other"),
)


def summary(summary, run, config):
    """The losses of the model and of its baselines."""
    numbers = summary["headline"]
    rows = [row(label, numbers, name) for label, name in ROWS.items()]
    return [header(numbers, "cross-entropy, nats"), *rows, f"  labels that are right: {numbers['accuracy']:.3f}"]


OUTPUTS = Outputs(
    loss_convention="loss: cross-entropy of a label of 0 or 1, in nats",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        {"dim": lambda config: config.data.dim, "weight_scale": lambda config: config.data.weight_scale},
        {"trained": columns.trained}
        | {name: columns.at("headline", name) for name in ("constant_loss", "teacher_loss", "accuracy")},
        {"test_loss": LOSS},
    ),
    panels=(Panel("cross-entropy (nats)", CURVES),),
    summary=summary,
    criteria=(
        Criterion(
            "cross-entropy over log 2",
            lambda config, summary: columns.ratio(LOSS(summary), summary["headline"]["constant_loss"]),
            0.95,
        ),
    ),
)
