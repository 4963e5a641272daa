"""What a run of languages leaves: its analyses, the columns of its table, when it has trained, and its summary."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.languages.config import LanguagesConfig
from icl_lab.families.languages.flags import strings_lines
from icl_lab.families.summary import counted, first_line
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import Analysis, Columns, Criterion, Curve, NamedLoss, Outputs, Panel, Results
from icl_lab.src import loss_conventions

NEEDS_CONTEXT = 0.95  # of the loss of the best linear predictor that sees the query alone
IN_WORDS = {
    "gd": "gradient descent, {steps}",
    "gd_own_steps": "gradient descent, a step size for each of {steps}",
    "gd_plus_plus": "GD++, {steps}, fitted rates",
    "ridge": "ridge regression, fitted penalty",
    "discriminants": "ridge with the languages' discriminants as prior",
    "optimum": "optimum of one linear layer",
    "optimum_biased": "optimum of one linear layer, context-free part included",
    "logit": "penalised logistic regression, fitted penalty",
    "nearest": "nearest neighbour",
    "majority": "majority of the labels",
    "no_context": "linear classifier without context",
    "version_space": "posterior over the training languages",
    "any_language": "member of any training language, no context",
}

ASKED: dict[str, Callable[[LanguagesConfig], Any]] = {
    **columns.fields("data.negatives", "data.num_pairs"),
    "code": lambda config: config.code.kind,
    "code_scale": lambda config: config.code.scale,
    "code_dim": lambda config: config.code.dim,
    "num_languages": lambda config: config.data.num_languages or len(config.data.languages),
    **columns.fields("model.num_layers", "data.alignment", "data.pool_seed", "training.steps"),
}
ON_TEST_SET = (
    *(f"{who}_loss" for who in ("gd", "ridge", "optimum", "optimum_biased", "no_context", "version_space")),
    *(f"{who}_accuracy" for who in ("gd", "ridge", "optimum", "optimum_biased", "no_context", "version_space")),
    *("shuffled_accuracy", "context_free", "contextual", "gd_preds_mse", "gd_cosine"),
    *("optimum_preds_mse", "optimum_cosine", "way_to_optimum"),
)


def _headline(name: str, part: str = "headline") -> Callable[[Results], Any]:
    return columns.if_there(part, name)


MEASURED: dict[str, Callable[[Results], Any]] = {
    "uses_context": columns.trained,
    "test_loss_se": _headline("loss_se"),
    "test_accuracy": _headline("accuracy"),
    "test_accuracy_se": _headline("accuracy_se"),
    **{f"test_{name}": _headline(name) for name in ON_TEST_SET},
    "test_unseen_loss": _headline("loss", "unseen"),
    "test_unseen_accuracy": _headline("accuracy", "unseen"),
    "test_unseen_ridge_accuracy": _headline("ridge_accuracy", "unseen"),
    "test_unseen_optimum_accuracy": _headline("optimum_accuracy", "unseen"),
}
MEANINGS_OF_COLUMNS = {
    "negatives": "how non-member strings are made",
    "code_scale": "scaling of the code's features",
    "code_dim": "channels of the code",
    "num_languages": "languages of training",
    "pool_seed": "seed of the strings",
    "uses_context": "whether the loss is below .95 times the best loss of a linear predictor that sees only the query",
    "test_loss": "half the mean squared error on unseen strings of the trained languages",
    "test_accuracy": "fraction of test strings whose prediction has the label's sign",
    "test_shuffled_accuracy": "test accuracy with the labels of each context shuffled",
    "test_context_free": "root mean square of the part of predictions that does not depend on the context",
    "test_contextual": "root mean square of the part of predictions that depends on the context",
    "*_preds_mse": "mean squared difference of the model's predictions from this predictor's",
    "*_cosine": "mean cosine of the model's sensitivities with this predictor's",
    "test_way_to_optimum": "fraction of the gap between GD's loss and the best single layer's that the model closes",
    "test_unseen_*": "the same on languages that were not trained on",
    "*_loss": "half the mean squared error of this predictor",
    "*_accuracy": "accuracy of this predictor",
}


def summary_lines(summary: Mapping[str, Any], run: Path, config: LanguagesConfig) -> list[str]:
    """Losses and accuracies on unseen strings and on unseen languages, and what the model takes from the context."""
    steps = config.model.num_layers
    words = {name: text.format(steps=f"{steps} step{'s' * (steps > 1)}") for name, text in IN_WORDS.items()}
    lines = []
    for part, title in (("headline", "unseen strings"), ("unseen", "unseen languages")):
        if part not in summary:
            continue
        numbers = summary[part]
        header = f"on {numbers['tasks']} tasks of {title}"
        lines.append(f"{header:<60}    loss   ± s.e.  accuracy   ± s.e.")
        lines.append(_row("trained model", numbers, ""))
        lines += [_row(text, numbers, f"{name}_") for name, text in words.items() if f"{name}_loss" in numbers]
    numbers = summary["headline"]
    return [
        *lines,
        *strings_lines(config, summary),
        f"with the context's labels in another order: accuracy {numbers['shuffled_accuracy']:.3f}; root mean square of "
        f"the context-free part of predictions {numbers['context_free']:.3f}, of the contextual "
        f"{numbers['contextual']:.3f}",
        f"cosine of sensitivities with gradient descent {numbers['gd_cosine']:.4f}, with the optimum "
        f"{numbers['optimum_cosine']:.4f}; share of the way from the former's loss to the latter's "
        f"{numbers['way_to_optimum']:.3f}",
    ]


def _row(text: str, numbers: Mapping[str, Any], prefix: str) -> str:
    loss, accuracy = f"{prefix}loss", f"{prefix}accuracy"
    if f"{loss}_reason" in numbers:
        return f"  {text:<58}not defined: {numbers[f'{loss}_reason']}"
    return (
        f"  {text:<58}{numbers[loss]:8.4f}   {numbers[f'{loss}_se']:.4f}  {numbers[accuracy]:8.4f}   "
        f"{numbers[f'{accuracy}_se']:.4f}"
    )


def meaning(summary: Mapping[str, Any], run: Path, config: LanguagesConfig) -> str:
    """The stack, and how its loss on unseen strings compares with those of ridge and of gradient descent."""
    numbers, steps = summary["headline"], counted(config.model.num_layers, "step")
    others = {"ridge": numbers.get("ridge_loss"), f"{steps} of gradient descent": numbers.get("gd_loss")}
    stack = f"{counted(config.model.num_layers, 'layer')} on strings"
    return first_line(stack, config.data_seed, numbers["loss"], others)


OUTPUTS = Outputs(
    loss_convention=loss_conventions.LOSS_AND_MSE,
    test_loss=NamedLoss("test_loss", columns.at("headline", "loss")),
    columns=Columns(ASKED, MEASURED, {"test_loss": columns.at("headline", "loss")}, meanings=MEANINGS_OF_COLUMNS),
    panels=(
        Panel(
            "loss (half MSE)",
            (
                Curve("train_loss", "train batch", "train"),
                Curve("eval_loss", "unseen strings", "model"),
                Curve("eval_gd_loss", "gradient descent", "descent"),
                Curve("eval_optimum_loss", "optimum of one layer", "other"),
            ),
        ),
        Panel("accuracy", (Curve("eval_accuracy", "unseen strings", "model"),)),
    ),
    summary=summary_lines,
    meaning=meaning,
    analyses=(
        Analysis("strings", ("strings",)),
        Analysis("languages", ("headline", "unseen")),
        Analysis("languages_layer", ("layer",)),
    ),
    criteria=(
        Criterion(
            "loss over that of the best linear predictor without context",
            columns.over("headline", "loss", "no_context_loss"),
            NEEDS_CONTEXT,
        ),
    ),
)
