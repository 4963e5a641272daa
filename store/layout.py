"""The names of the files in a run directory."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path

MANIFEST = "manifest.jsonl"
CONFIG = "config.json"
META = "meta.json"
METRICS = "metrics.jsonl"
SUMMARY = "metrics_summary.json"
PARAMS = "params.safetensors"
PARAMS_PICKLE = "params.pkl"
INITIAL_PARAMS = "initial_params.safetensors"
BEST_PARAMS = "best_params.safetensors"
ORDERING_INDEX = "ordering_idx.npy"
NOISE_MASK = "noise_mask.npy"
SNAPSHOTS = "snapshots.safetensors"
CHECKPOINTS = "checkpoints"
GROWING_SNAPSHOTS = "checkpoints/snapshots.f32"
SNAPSHOTS_INDEX = "checkpoints/snapshots.json"
ATTENTION = "attn"
ATTENTION_SUMMARY = "attn/summary.json"
FIGURES = "figs"
ANALYSIS = "analysis"
LLC_TRACES = "llc"
DEVELOPMENT = "analysis/develop"
ANALYSIS_BATCH = "analysis/analysis_batch.npz"
LATENT_BATCH = "analysis/latent_batch.npz"
PREDICTIONS = "analysis/predictions.npz"
ANALYSIS_METADATA = "analysis/analysis_metadata.json"
ALIGNMENT = "analysis/alignment.json"
ALIGNMENT_CURVE = "analysis/alignment.csv"
OVER_TRAINING = "analysis/over_training.csv"
ALGORITHM_DISTANCE = "analysis/algorithm_distance.csv"
LOSSES = "analysis/losses.csv"
OOD = "analysis/ood.csv"
SHIFTS = "analysis/shifts.csv"
FUNCTIONS = "analysis/functions.csv"
FUNCTION_SHIFTS = "analysis/function_shifts.csv"
NEAREST_ALGORITHM = "analysis/nearest_algorithm.csv"
NEAREST_ALGORITHM_FIGURE = "figs/nearest_algorithm.png"
WEIGHTS = "analysis/weights.npz"
LAYERWISE = "analysis/layerwise_metrics.json"
COPYING = "analysis/copying.json"
SOLUTIONS = "analysis/solutions.json"
SINE_FUNCTIONS = "analysis/sine_functions.csv"
SINE_FUNCTIONS_FACTS = "analysis/sine_functions.json"
SINE_COMPARISON = "analysis/sine_comparison.json"
SINE_COMPARISON_FUNCTIONS = "analysis/sine_comparison.csv"
POSITION_STEPS = "analysis/position_steps.json"
LLC = "analysis/llc.csv"
LLC_FIGURE = "figs/llc.png"
LLC_CURVE = "analysis/llc_curve.csv"
LLC_CURVE_FIGURE = "figs/llc_curve.png"
CURVATURE = "analysis/curvature.csv"
LLC_CALIBRATION = "analysis/llc_calibration.csv"
LLC_ADVICE = "analysis/llc_calibration.json"
LLC_CALIBRATION_FIGURE = "figs/llc_calibration.png"
LLC_SATURATION_FIGURE = "figs/llc_saturation.png"
ESSENTIAL_DYNAMICS = "analysis/essential_dynamics.csv"
ESSENTIAL_DYNAMICS_FACTS = "analysis/essential_dynamics.json"
ESSENTIAL_DYNAMICS_FIGURE = "figs/essential_dynamics.png"
DEVELOPMENTAL_METRICS = "analysis/developmental_metrics.csv"
IMPLIED_PRIOR = "analysis/implied_prior.json"
DEVELOPMENTAL_METRICS_FIGURE = "figs/developmental_metrics.png"
STAGES = "analysis/stages.csv"
STAGES_FACTS = "analysis/stages.json"
STAGES_FIGURE = "figs/stages.png"
DEVELOP = "analysis/develop/develop.json"
DEVELOP_TABLE = "analysis/develop/development.csv"
DEVELOP_STAGES = "analysis/develop/stages.csv"
DEVELOP_FIGURE = "figs/develop.png"
EVALUATION = "analysis/evaluate.json"
EVALUATED_CONTEXTS = "analysis/evaluate.csv"
VOCABULARY = "analysis/vocabulary.json"
PROBES = "analysis/probes.csv"
PROBES_FACTS = "analysis/probes.json"
PROBES_FIGURE = "figs/probes.png"
INTERVENTIONS = "analysis/interventions.csv"
ABLATIONS = "analysis/ablations.csv"
INTERVENTIONS_FIGURE = "figs/interventions.png"
COMPARATORS = "analysis/comparators.json"
ATTENTION_STATS = "analysis/attention_stats.json"
ATTENTION_STATS_FIGURE = "analysis/attention_stats.png"
LOCK = ".lock"
LOCKS = (LOCK, f"{LOCK}.next")  # the second for an instant, while the owner changes
LOCK_NAME = re.compile(r"\.lock(\.next|\.[0-9a-f]{16}\.(claim|shared))?")  # these, and of who wants it or shares it
DRAFT = ".icl-lab.tmp"
DRAFT_NAME = re.compile(rf"\.(.+?)(\.[0-9a-f]{{8}}-[0-9]+-[0-9a-z]*)?{re.escape(DRAFT)}")

FIXED_NAMES = {value for name, value in vars().items() if name.isupper() and isinstance(value, str)}

# Files at the top of a run directory, and its folders. Nothing here is written through links.
TOP_FILES = (
    *(MANIFEST, CONFIG, META, METRICS, SUMMARY, PARAMS, PARAMS_PICKLE, INITIAL_PARAMS, BEST_PARAMS, SNAPSHOTS),
    *(ORDERING_INDEX, NOISE_MASK),
)
RUN_FOLDERS = (CHECKPOINTS, ATTENTION, FIGURES, ANALYSIS, DEVELOPMENT, LLC_TRACES)

CHECKPOINT_GLOB = "checkpoints/step_*.safetensors"  # one manifest entry for all checkpoints: they come and go
DAMAGED = ".damaged"  # at the end of the name of a checkpoint that was set aside
CHECKPOINT_NAME = re.compile(rf"checkpoints/step_([0-9]{{8,10}})\.safetensors({re.escape(DAMAGED)})?")
NAME_PATTERNS = tuple(
    re.compile(pattern)
    for pattern in (
        CHECKPOINT_NAME.pattern,
        r"attn/layer\d+(_head\d+\.npy|\.npz)",
        r"figs/(attention_layer\d+_head\d+|loss|alignment|weights|layerwise|algorithm_distance|algorithms_over_training|sine_functions|sine_comparison)\.png",
        r"llc/[0-9a-f]{8}_step_\d{8,10}\.npz",
        r"analysis/(train_)?(ordering_idx|noise_mask)\.npy",
    )
)


def is_run_file(name: str) -> bool:
    """Whether a run may have a file of this name (relative to the run directory)."""
    not_files = {MANIFEST, LOCK, DRAFT, *RUN_FOLDERS}
    return name in FIXED_NAMES - not_files or any(pattern.fullmatch(name) for pattern in NAME_PATTERNS)


def manifest_name(name: str) -> str:
    """The manifest entry of a file: its name, or the pattern for all checkpoints."""
    return CHECKPOINT_GLOB if CHECKPOINT_NAME.fullmatch(name) else name


def is_lock(name: str) -> bool:
    """Whether this is the run's lock, or a file beside it while its owner changes, which a kill may leave."""
    return LOCK_NAME.fullmatch(name) is not None


def draft(path: Path, writer: str) -> Path:
    """Where a process writes a file before it is renamed; nobody else uses such a name."""
    return path.with_name(f".{path.name}{draft_end(writer)}")


def draft_end(writer: str) -> str:
    """The end of the names of a process's drafts."""
    return f".{writer}{DRAFT}"


def draft_parts(name: str) -> tuple[str, str]:
    """Of which file this is a draft, and by which process, "" in earlier versions; two "" if it is not a draft."""
    match = DRAFT_NAME.fullmatch(name)
    return (match[1], (match[2] or "").removeprefix(".")) if match else ("", "")


def not_copied(folder: str, names: Iterable[str]) -> set[str]:
    """For `shutil.copytree`: the locks and drafts of other processes, which may be gone before they are copied."""
    return {name for name in names if is_lock(name) or draft_parts(name)[0]}


def draft_target(name: str) -> str:
    """The manifest entry of the file that this is a draft of; "" if it is not a draft."""
    folder, _, last = name.rpartition("/")
    target, _ = draft_parts(last)
    return target and manifest_name(f"{folder}/{target}" if folder else target)


def attention_layer(run: Path, layer: int) -> Path:
    """Attention maps of all heads of a layer: `data` [B', heads, rows, cols]."""
    return run / ATTENTION / f"layer{layer}.npz"


def attention_head(run: Path, layer: int, head: int) -> Path:
    """The batch mean of one head's maps [rows, cols]."""
    return run / ATTENTION / f"layer{layer}_head{head}.npy"


def figure(run: Path, name: str) -> Path:
    """A figure of a run."""
    return run / FIGURES / f"{name}.png"


def head_figure(layer: int, head: int) -> str:
    """The file name of the figure of a head's maps."""
    return f"attention_layer{layer}_head{head}.png"


def llc_aside(run: Path) -> Path:
    """Where the traces of a run that another process has locked are kept until it has ended: next to the run."""
    place = run.resolve()
    return place.with_name(f".{place.name}.{LLC_TRACES}")


def checkpoint(run: Path, step: int) -> Path:
    """The training state after a step."""
    return run / CHECKPOINTS / f"step_{step:08d}.safetensors"
