"""What a run of the family leaves: the columns of its table, its curves, when it has trained, and its summary."""

from icl_lab.families.summary import losses
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Criterion, Curve, NamedLoss, Outputs, Panel

LOSS = columns.at("headline", "loss")
ROWS = {"trained transformer": "loss", "teacher, who knows w": "teacher_loss", "1/2": "constant_loss"}
CURVES = (
    Curve("train_loss", "train batch", "train"),
    Curve("eval_loss", "model", "model"),
    Curve("eval_constant_loss", "log 2", "other"),
)

OUTPUTS = Outputs(
    loss_convention="loss: cross-entropy of a label of 0 or 1, in nats",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        columns.fields("data.dim", "data.weight_scale"),
        {"trained": columns.trained, **columns.headline("constant_loss", "teacher_loss", "accuracy")},
        {"test_loss": LOSS},
    ),
    panels=(Panel("cross-entropy (nats)", CURVES),),
    summary=losses("cross-entropy, nats", ROWS),
    criteria=(Criterion("cross-entropy over log 2", columns.over("headline", "loss", "constant_loss"), 0.95),),
)
