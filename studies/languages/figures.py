"""The figures of languages: which runs each is of, and what of them it shows. Some have the published deck's names."""

from __future__ import annotations

from icl_lab.studies.dot_figure import Dots
from icl_lab.studies.figure import AnyFigure, Figure
from icl_lab.studies.languages import curves
from icl_lab.studies.languages.runs import CODES as CODES_OF_GRID
from icl_lab.studies.languages.runs import PAIRS
from icl_lab.studies.matrix_figure import Matrix

STEP, LANGUAGES = "training step", "languages trained on, M"
FLAWS = {
    "published": "the project's",
    "without_index": "whitened one-hot codes",
    "without_hash": "no padding inside non-members",
    "without_query": "query not among keys",
    "without_swing": "one cosine schedule",
    "with_context": "non-members of other languages",
    "sound": "ours",
}
FEW_FLAWS = {name: FLAWS[name] for name in ("published", "sound")} | {"hash": "ours, the project's non-members"}
CODES = {
    "sound": "whitened one-hot",
    "autoencoder": "autoencoder, whitened",
    "states": "states of automata",
    "learned": "learned with the layer",
    "softmax": "softmax transformer",
}
GRID = {f"grid_{code}_{pairs}": f"{code}, N = {pairs}" for code in CODES_OF_GRID for pairs in PAIRS}
ARMS = {"random_linear": "one linear layer", "random_softmax": "softmax transformer"}
ACCURACIES = {"eval_accuracy": "unseen strings", "eval_unseen_accuracy": "unseen languages"}
LOSSES = {
    "eval_loss": "Trained Transformer",
    "eval_gd_loss": "Gradient descent",
    "eval_optimum_loss": "optimum of one layer",
}
DISTANCES = {
    "eval_gd_preds_mse": "from gradient descent",
    "eval_optimum_preds_mse": "from the optimum of one layer",
}
OF_SETTING = {"accuracy": "fraction", "cosine of sensitivities": "fisher"}

# fmt: off
FIGURES: tuple[AnyFigure, ...] = (
    Dots("answer", "One linear layer agrees with the optimum of one layer, not with a step of gradient descent", FEW_FLAWS, curves.of_setting, scale=OF_SETTING),
    Figure("val_acc", "One linear layer, negatives of other languages: accuracy", ("sound",), curves.over_training(ACCURACIES), STEP, "accuracy", scale="fraction"),
    Figure("val_loss", "One linear layer, negatives of other languages: loss (half MSE) on unseen strings", ("sound",), curves.over_training(LOSSES), STEP, "loss", log_y=True, means=False, by_seed=True),
    Figure("preds_mse", "One linear layer, negatives of other languages: mean squared difference of predictions", ("sound",), curves.over_training(DISTANCES), STEP, "mean squared difference", log_y=True, means=False, by_seed=True),
    Figure("singular_values", "Two directions matter: singular values of Σ^½ A Σ^½", ("sound",), curves.singular_values, "rank", "singular value"),
    Matrix("learned_kq", "W_K^T W_Q of the trained layer, over the mean of its input diagonal", ("sound",), curves.product("rescaled_kq"), curves.product("construction_kq")),
    Matrix("constructed_kq", "W_K^T W_Q of one step of gradient descent", ("sound",), curves.product("construction_kq"), curves.product("rescaled_kq")),
    Matrix("learned_pv", "P W_V of the trained layer, times that mean", ("sound",), curves.product("rescaled_pv"), curves.product("construction_pv")),
    Matrix("constructed_pv", "P W_V of one step of gradient descent", ("sound",), curves.product("construction_pv"), curves.product("rescaled_pv")),
    Dots("flaws", "The student project's setting, and variants that change one of its choices", FLAWS, curves.of_setting, "full", scale=OF_SETTING),
    Figure("autoencoder_val_loss", "Autoencoder: cross-entropy of a symbol of unseen strings", ("autoencoder_itself",), curves.over_training({"eval_loss": "unseen strings", "train_loss": "training strings"}), STEP, "loss (nats)", log_y=True, means=False, by_seed=True),
    Dots("codes", "Other encodings and another model", CODES, curves.of_setting, "full", scale=OF_SETTING),
    Dots("grid", "Codes of 8 channels, numbers of pairs and kinds of negatives: accuracy", GRID, curves.of_grid, "full", scale="fraction"),
    Figure("number_of_languages", "Trained on few random languages, models do worse on others (strings encoded by bigrams)", tuple(ARMS), curves.of_numbers(ARMS), LANGUAGES, "loss (half MSE)", log_x=True, profile="full"),
)
# fmt: on
