"""Exports a run of linear layers for the explorer of the site: python -m scripts.export_explorer --run RUN.

The file is opened by dropping it on the page docs/explorer.html. It holds numbers and a name, and no code: the products
P W_V and W_K^T W_Q of each layer and head, at the end or at each snapshot of the training.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from icl_lab.lab import cli
from icl_lab.src.checks import ConfigError, require
from icl_lab.store import outputs
from icl_lab.store.outputs import in_path, out_file

if TYPE_CHECKING:
    from icl_lab.analysis.loaded_run import LoadedRun
    from icl_lab.src.data_config import DataConfig

WRITER = "scripts.export_explorer"
FORMAT, VERSION = "icl_lab explorer run", 1  # static/explorer/files.js reads these
OUT = "explorer_run.json"
MOST_DIM, MOST_LAYERS, MOST_CHECKPOINTS = 32, 20, 60
DEPTH = 12  # most layers, and steps of gradient descent, that the page shows
SEED, CONTEXTS, POINTS = 0, 1024, 256  # of rates: contexts whose eigenvalues are drawn, and points beyond these
BEYOND, WEIGHT = 1.3, 1e-4  # the grid's end over the largest eigenvalue, and its weight
DIGITS = 7  # of a weight: those of float32


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.export_explorer", "Exports a run of linear layers for the explorer of the site.")
    built.add_argument("--run", type=in_path, required=True, help="directory of a finished run")
    built.add_argument("--out", type=out_file, default=OUT, help="the file")
    return built


def main(argv: Sequence[str]) -> None:
    """The command line."""
    from icl_lab.analysis.loaded_run import load_run

    flags = parser().parse(argv)
    path = Path(flags.out)
    outputs.check_free(path, WRITER)
    exported = export(load_run(flags.run), flags.run.name)
    outputs.write({path: (as_text(exported) + "\n").encode()}, WRITER)
    print(f"{path}: drop it on the page explorer.html of the site")


def as_text(exported: Mapping[str, Any]) -> str:
    """An export as JSON, without spaces."""
    return json.dumps(exported, separators=(",", ":"))


def reason_against(config: Any) -> str:
    """Why the explorer cannot show a run; "" where it can.

    It shows a stack whose prediction is w.x for a w that the context alone makes, on contexts that it can draw itself.
    """
    if config.family != "regression":
        return f"it is of the family {config.family}"
    model, data = config.model, config.data
    attention = {model.kind(layer) for layer in range(model.num_layers)}
    reasons = {
        f"its attention is {', '.join(sorted(attention))}": attention != {"linear"},
        f"its tokens are {model.tokens}": model.tokens != "concatenated",
        "it has positional encodings": model.pos_enc_size > 0,
        "it has biases": model.bias,
        "it has layer norm": model.layer_norm,
        "it has an MLP": model.mlp_width > 0,
        f"its inputs have {data.dim} dimensions, more than {MOST_DIM}": data.dim > MOST_DIM,
        f"it has {model.num_layers} layers, more than {MOST_LAYERS}": model.num_layers > MOST_LAYERS,
        "its contexts come from a file": bool(data.file),
        f"its inputs are {data.input_distribution}": data.input_distribution not in ("uniform", "gaussian"),
        "its inputs or tasks are not isotropic": not (data.equal_inputs and data.equal_tasks),
        f"its tasks are {data.task_distribution}": data.task_distribution != "gaussian",
        f"its labels are of a {data.teacher} teacher": data.teacher != "linear",
    }
    return next((reason for reason, holds in reasons.items() if holds), "")


def export(loaded: LoadedRun, name: str, most: int = MOST_CHECKPOINTS) -> dict[str, Any]:
    """What the page needs to know of a run; `ConfigError` for one that it cannot show.

    weights[t] has the numbers of checkpoint t in one list: of each layer with weights of its own, of each head,
    W_K^T W_Q [W, W] and P W_V [W, W], by rows, for column vectors. solutions[t] names what one layer is then, or is "".
    """
    from icl_lab.analysis.solutions import solution
    from icl_lab.families.regression import solutions

    config, reason = loaded.config, reason_against(loaded.config)
    require(not reason, f"the explorer shows linear layers on linear regression, and this run differs: {reason}")
    model, data = config.model, config.data
    named = not solutions.reason_against(config)
    then = list(_checkpoints(loaded, most))
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": name,
        "dim": data.dim,
        "pairs": data.num_pairs,
        "inputs": data.input_distribution,
        "range": data.input_range,
        "scale": data.weight_scale,
        "noise": data.noise_std,
        "layers": model.num_layers,
        "recurrent": bool(model.recurrent and model.num_layers > 1),
        "heads": model.num_heads,
        "damping": model.damping,
        "clip": model.activation_clip,
        "steps": [step for step, _ in then],
        "weights": [weights(each) for _, each in then],
        "solutions": [solution(each).solution if named else "" for _, each in then],
        "rates": rates(data),
    }


def _checkpoints(loaded: LoadedRun, most: int) -> Iterator[tuple[int, LoadedRun]]:
    """(step, the run then), at most so many and the last among them; the end alone of a run without snapshots."""
    from icl_lab.store import layout, snapshots

    if not (loaded.run / layout.SNAPSHOTS).exists():
        yield loaded.config.training.steps, loaded
        return
    count = len(snapshots.steps(loaded.run))
    wanted = {*np.unique(np.linspace(0, count - 1, min(count, most)).round().astype(int)).tolist()}
    yield from (each for place, each in enumerate(loaded.checkpoints()) if place in wanted)


def weights(loaded: LoadedRun) -> list[float]:
    """The products of all layers and heads, as in `export`."""
    from icl_lab.src.attn import merged_of

    numbers: list[np.ndarray] = []
    for layer in loaded.config.model.layer_names:
        merged = merged_of(loaded.params[f"{layer}/attention"])
        for pair in zip(merged["key_query"], merged["projection_value"], strict=True):
            numbers += [np.ravel(matrix) for matrix in pair]
    flat = np.concatenate(numbers)
    if not np.isfinite(flat).all():
        raise ConfigError("the weights of this run are not finite")
    return [float(f"{number:.{DIGITS}g}") for number in flat]


@lru_cache(maxsize=16)
def rates(data: DataConfig) -> dict[str, list[float]]:
    """Of 1, ..., `DEPTH` steps on clean contexts of a run: gradient descent's best step size, GD++'s c and gamma.

    All steps share them. Each depth starts from the rates of one step less; from many starts,
    `baselines.gd_plus_plus.fit_gd_plus_plus` finds those of GD++ in minutes.
    """
    from dataclasses import replace

    import jax
    from scipy.optimize import minimize

    from icl_lab.baselines.gd_plus_plus import sampled_spectra
    from icl_lab.src.one_step import one_step_size

    clean = replace(data, noise_std=0.0)
    drawn = np.ravel(sampled_spectra(jax.random.key(SEED), clean, CONTEXTS))
    beyond = np.linspace(0, BEYOND * drawn.max(), POINTS)
    unit = one_step_size(clean)

    def best(start: np.ndarray, steps: int) -> np.ndarray:
        def loss(x: np.ndarray) -> float:
            c, gamma = (unit * float(each) for each in (x[0], x[1] if len(x) > 1 else 0.0))
            means = [float(np.mean(remainder(c, gamma, steps, values) ** 2)) for values in (drawn, beyond)]
            return float(np.log(means[0] + WEIGHT * means[1]))

        fit = minimize(loss, start, method="Nelder-Mead", options={"xatol": 1e-4, "fatol": 1e-6})
        return np.asarray(fit.x)

    descent, plus = [np.array([1.0])], [np.array([1.8, 0.25])]
    for steps in range(2, DEPTH + 1):
        descent.append(best(descent[-1], steps))
        plus.append(best(plus[-1], steps))
    c, gamma = np.array([[1.0, 0.0], *plus[1:]]).T
    found = {"gd": np.ravel(descent), "gdpp": c, "gamma": gamma}
    return {name: [float(f"{unit * rate:.{DIGITS}g}") for rate in found[name]] for name in found}


def remainder(c: float, gamma: float, steps: int, values: np.ndarray) -> np.ndarray:
    """What GD++ leaves of w in directions of these eigenvalues: r <- (1 - c l) r and l <- l (1 - gamma l)^2."""
    left, now = np.ones_like(values), values
    for _ in range(steps):
        left = left * (1 - c * now)
        now = now * (1 - gamma * now) ** 2
    return left


if __name__ == "__main__":
    cli.launch(main)
