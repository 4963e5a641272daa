"""What a run of the family leaves: the columns of its table, its curves, and its summary."""

from icl_lab.families.summary import header, row
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Columns, Curve, NamedLoss, Outputs, Panel

LOSS = columns.at("headline", "loss")
ASKED = {
    "length": lambda config: config.data.length,
    "channels": lambda config: config.model.channels,
    "base_seed": lambda config: config.model.base_seed,
}
CURVES = (
    Curve("train_loss", "train batch", "train"),
    Curve("eval_loss", "model", "model"),
    Curve("eval_uniform_loss", "log V", "other"),
)


def summary(summary, run, config):
    """The loss, and that of who knows the chains."""
    numbers = summary["headline"]
    rows = {"trained reader": "loss", "its chain": "chain_loss"}
    return [header(numbers, "cross-entropy, nats"), *(row(label, numbers, name) for label, name in rows.items())]


OUTPUTS = Outputs(
    loss_convention="loss: mean over sequences of the cross-entropy of a token, in nats",
    test_loss=NamedLoss("test_loss", LOSS),
    columns=Columns(
        ASKED,
        {"test_loss_se": columns.at("headline", "loss_se"), "chain_loss": columns.at("headline", "chain_loss")},
        {"test_loss": LOSS},
    ),
    panels=(Panel("cross-entropy of a token (nats)", CURVES),),
    summary=summary,
)
