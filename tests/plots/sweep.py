"""Tables of sweeps that never ran: every column a sweep writes, with plausible numbers."""

import zlib
from collections.abc import Iterable, Mapping
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

COLUMNS = """
exp model ordering noise_mode p sigma placement seed test_mse align_cos align_l2 auroc ood_alpha3 status test_loss
gd_mse trained test_gain train_ordering train_noise_mode train_p train_sigma train_placement eval_ordering
eval_noise_mode eval_p eval_sigma eval_placement train_difficulty eval_difficulty steps test_gd_loss test_loss_ratio
test_loss_ratio_se test_ridge_loss test_gd_tuned_step_loss test_linear_mmse_loss test_mask_bayes_loss auroc_raw
auroc_position auroc_low auroc_high gd_auroc mask_bayes_auroc loo_gd_auroc auroc_attention auroc_abs_attention
auroc_contribution gd_auroc_attention gd_auroc_abs_attention gd_auroc_contribution ood_alpha1 ood_alpha1.5
ood_alpha2 gd_ood_alpha1 gd_ood_alpha1.5 gd_ood_alpha2 gd_ood_alpha3 results_version
""".split()
FIRST = COLUMNS[:13]  # all that the tables of an earlier study had
DEFAULTS = {"ordering": "random", "noise_mode": "clean", "p": 0.0, "sigma": 0.0, "placement": "mixed"}
FACTOR = {"lsa1": 1.003, "lsa1_pe": 1.02, "twolayer": 1.013}  # of GD's loss
NOT_MEASURED = ("p", "sigma", "seed", "train_p", "train_sigma", "eval_p", "eval_sigma", "steps", "results_version")


def row(model: str = "lsa1", seed: int = 0, status: str = "done", train: Mapping[str, Any] = {}, **given: Any) -> dict:
    """A cell of these settings; those of training are those of evaluation unless `train` says otherwise."""
    settings = DEFAULTS | given
    training = settings | train
    pairs = settings["noise_mode"] == "random_pairs"
    words = "-".join(str(value) for value in (model, *settings.values(), *train.values()))
    p = settings["p"] if settings["noise_mode"] != "clean" else 0.0
    told = {**settings, "sigma": 0} if pairs else settings  # cells that mean the same have the same result
    alike = f"{model}-{list(told.values())}-{train}" if p else f"{model}-{settings['ordering']}"
    noise = np.random.default_rng(zlib.crc32(alike.encode()) + seed).normal(size=10)
    tasks = 0.001 * np.random.default_rng(seed).normal()  # that all share
    gd = 0.2062 + (0.24 if pairs else 0.035) * p + tasks
    ratio = FACTOR.get(model, 1.1) + 0.003 * noise[0] - (0.1 * p if model == "twolayer" else 0)
    found = dict.fromkeys(COLUMNS, np.nan)
    found |= {"exp": f"{words}_seed{seed}", "model": model, **settings, "seed": seed, "status": status}
    found |= {f"train_{name}": value for name, value in training.items()}
    found |= {f"eval_{name}": value for name, value in settings.items()}
    found |= {"train_difficulty": "residual" if training["noise_mode"] != "clean" else "gd_error"}
    found |= {"eval_difficulty": "residual" if settings["noise_mode"] != "clean" else "gd_error"}
    found |= {"steps": 5000, "results_version": 2}
    loss = gd * ratio
    found |= {"test_loss": loss, "test_mse": 2 * loss, "test_gd_loss": gd, "gd_mse": 2 * gd, "test_loss_ratio": ratio}
    found |= {"trained": "true", "test_gain": 2 - ratio}
    found |= {"align_cos": 0.998 - 0.1 * abs(ratio - 1) - 0.0005 * abs(noise[1])}
    found |= {"align_l2": 0.025 + abs(ratio - 1) + 0.002 * noise[2]}
    if p:
        found |= {
            "test_gd_tuned_step_loss": gd - 0.008 * p**2,
            "test_linear_mmse_loss": 0.13 + (0.36 if pairs else 0) * p + tasks,
        }
        found |= {"test_mask_bayes_loss": 0.06 + 0.5 * p * (1 if pairs else 0.3) + tasks}
        found |= {"auroc": 0.5 + 0.05 * (model == "twolayer") + 0.01 * noise[3], "gd_auroc": 0.5 + 0.004 * noise[4]}
        found |= {"mask_bayes_auroc": 0.85 - 0.4 * p + 0.5 * tasks, "loo_gd_auroc": 0.65 - 0.15 * p + 0.5 * tasks}
        found |= {"auroc_position": 0.5 + 0.2 * (settings["placement"] != "mixed") + 0.005 * noise[5]}
    for number, alpha in enumerate((1.0, 1.5, 2.0, 3.0)):
        found |= {f"gd_ood_alpha{alpha:g}": 2 * gd * alpha**2 * (1 + (alpha - 1) ** 2)}
        found |= {
            f"ood_alpha{alpha:g}": 2 * loss * alpha**2 * (1 + (alpha - 1) ** 2 * (1.1 + 0.02 * noise[6 + number]))
        }
    if status != "done":
        numbers = [name for name, value in found.items() if isinstance(value, float) and name not in NOT_MEASURED]
        found |= dict.fromkeys(numbers, np.nan)
    return found


def grid(models: Iterable[str] = ("lsa1",), seeds: Iterable[int] = range(5), **lists: Iterable[Any]) -> list[dict]:
    """Every combination, seeds innermost."""
    names, values = list(lists), [list(those) for those in lists.values()]
    return [
        row(model, seed, **dict(zip(names, chosen, strict=True)))
        for model, *chosen in product(models, *values)
        for seed in seeds
    ]


def write(path: Path, rows: list[dict]) -> Path:
    """The table as a sweep writes it."""
    pd.DataFrame(rows, columns=COLUMNS).to_csv(path, index=False)
    return path
