"""What a run of the family leaves: the columns of its table, its curves, and its summary."""

from icl_lab.families.summary import losses
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Curve, NamedLoss, Outputs, Panel

LOSS = columns.at("headline", "loss")
CURVES = (
    Curve("train_loss", "train batch", "train"),
    Curve("eval_loss", "model", "model"),
    Curve("eval_uniform_loss", "log V", "other"),
)

OUTPUTS = Outputs(
    loss_convention="loss: mean over sequences of the cross-entropy of a token, in nats",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        columns.fields("data.length", "model.channels", "model.base_seed"),
        {"test_loss_se": columns.at("headline", "loss_se"), "chain_loss": columns.at("headline", "chain_loss")},
        {"test_loss": LOSS},
    ),
    panels=(Panel("cross-entropy of a token (nats)", CURVES),),
    summary=losses("cross-entropy, nats", {"trained reader": "loss", "its chain": "chain_loss"}),
)
