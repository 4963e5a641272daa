"""Trains four short runs and checks them.

python -m scripts.smoke_train
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from icl_lab.lab import cli
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.executors.signals import catch_signals
from icl_lab.runners.command import resume_command
from icl_lab.src.words import printable
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_metrics
from icl_lab.store.outputs import out_folder
from icl_lab.store.readers import expecting, read_npy, read_npz, reading

RATE = 0.25
STANDARD_ERRORS = 4.0  # tolerance of a mask's rate; seeds are fixed, so the check is deterministic
LOSS, STEP = 0.30, 2000  # lsa1's loss must be below LOSS at STEP
LEAST_SPREAD = 1.0  # standard deviation of a heat map's pixels (0 to 255); 0 for an empty image

Check = Callable[[Path], "str | None"]  # a sentence on what is wrong with a run, or None


def learns(run: Path) -> str | None:
    """Checks lsa1's test loss."""
    losses = {record["step"]: record["eval_loss"] for record in read_metrics(run)}
    with expecting(run / layout.METRICS, f"the metrics of a run of {STEP} steps"):
        loss = float(losses[STEP])
    return None if loss < LOSS else f"the loss at step {STEP} is {loss:.3f}, not below {LOSS}"


def is_in_order_drawn(run: Path) -> str | None:
    """Checks the index of a run in random order."""
    index = read_npy(run / layout.ORDERING_INDEX)
    same = index.size > 0 and (index == np.arange(index.shape[1])).all()
    return None if same else "random order is not the order drawn"


def is_sorted(run: Path) -> str | None:
    """Checks the index and the inputs of a run ordered by norm."""
    index = read_npy(run / layout.ORDERING_INDEX)
    norms = np.linalg.norm(read_npz(run / layout.ANALYSIS_BATCH, ["x"])["x"], axis=2)
    if (index == np.arange(index.shape[1])).all():  # also of no index
        return "smallnorm2largenorm changed no index"
    if (np.sort(index, axis=1) != np.arange(index.shape[1])).any():
        return "an ordering's index is not a permutation"
    ascend = norms.size > 0 and (np.diff(norms, axis=1) >= -1e-6).all()
    return None if ascend else "the inputs do not ascend by norm"


def has_its_rate(run: Path) -> str | None:
    """Checks the mask of corrupted pairs."""
    mask = read_npy(run / layout.NOISE_MASK)
    if not mask.size:
        return "the mask has no pairs"
    error = np.sqrt(RATE * (1 - RATE) / mask.size)
    near = abs(mask.mean() - RATE) <= STANDARD_ERRORS * error
    return None if near else f"the mask's rate is {mask.mean():.4f}, not {RATE} ± {STANDARD_ERRORS * error:.4f}"


def shows_attention(run: Path) -> str | None:
    """Checks the heat maps, one per layer and head."""
    from matplotlib.image import imread

    model = rundir.read_config(run).model
    for layer in range(model.num_layers):
        for head in range(model.num_heads):
            path = layout.figure(run, f"attention_layer{layer}_head{head}")
            if not path.exists():
                return f"{path} is missing"
            with reading(path):
                spread = 255 * float(imread(path)[..., :3].std())
            if not spread >= LEAST_SPREAD:  # nan of an image without pixels
                return f"{path} is empty"
            attention = read_npy(layout.attention_head(run, layer, head))
            if not (attention.size and np.ptp(attention) > 0):
                return f"the attention of layer {layer}, head {head} is the same everywhere"
    return None


# name -> (model, flags, checks)
RUNS: dict[str, tuple[str, Sequence[str], Sequence[Check]]] = {
    "lsa1": ("lsa1", ["--steps", str(STEP)], [learns, is_in_order_drawn, shows_attention]),
    "lsa1_ordered": ("lsa1", ["--steps", "300", "--ordering", "smallnorm2largenorm"], [is_sorted, shows_attention]),
    "lsa1_noisy": (
        "lsa1",
        ["--steps", "300", "--noise_mode", "label_noise", "--noise_p", str(RATE), "--noise_sigma", "0.5"],
        [has_its_rate, shows_attention],
    ),
    "twolayer": ("twolayer", ["--steps", "300"], [is_in_order_drawn, shows_attention]),
}
RUNNERS = {"lsa1": "runners.run_concat_inputs_targets", "twolayer": "runners.run_softmax_copy"}


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.smoke_train", "Trains four short runs and checks them.")
    built.add_argument("--out", type=out_folder, default=Path("runs/smoke"), help="folder of the run directories")
    built.add_argument("--check_only", action="store_true", help="check existing runs without training")
    cli.add_quiet(built)
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    if not flags.check_only and (number := _train(flags.out, flags.quiet)):
        print(f"stopped; the same command retrains the runs: {resume_command()}")
        return 128 + number
    wrong = []
    for name, (_, _, checks) in RUNS.items():
        errors = [error for check in checks if (error := check(flags.out / name))]
        print(f"{'FAILED' if errors else 'ok':7} {name}: {', '.join(check.__name__ for check in checks)}")
        wrong += [f"{printable(flags.out / name)}: {error}" for error in errors]
    for sentence in wrong:
        print(f"wrong: {sentence}")
    return 1 if wrong else 0


def _train(out: Path, quiet: bool) -> int:
    """Trains the runs; returns the number of the signal that stopped it, or 0."""
    from icl_lab.lab.progress import ConsoleLogger
    from icl_lab.runners import flags as runner_flags
    from icl_lab.runners.locks import locked_runs
    from icl_lab.runners.loop import OutputOptions, Run, run_pack  # imports JAX

    requests = {name: runner_flags.read(model, RUNNERS[model], "", words) for name, (model, words, _) in RUNS.items()}
    configs: list[tuple[Path, RunConfig]] = [(out / name, request.config) for name, request in requests.items()]
    for run, config in configs:
        rundir.choose(config, str(run), overwrite=True)
    with (
        locked_runs(configs, overwrite=True),
        ConsoleLogger(quiet) as logger,
        catch_signals("the same command retrains the runs") as signals,
    ):
        for run, config in configs:
            logger.line(f"{run.name}:")
            if (
                run_pack(
                    [Run(run, config)],
                    logger,
                    OutputOptions(options={"save_attention": True, "attention_batch": 64}),
                    signals=signals,
                )
                == "stopped"
            ):
                return signals.received[0]
    return 0


if __name__ == "__main__":
    cli.launch(main)
