"""The names of a run directory's files, and of those of them that hold arrays by name."""

from __future__ import annotations

from pathlib import Path

CONFIG = "config.json"
META = "meta.json"
METRICS = "metrics.jsonl"
SUMMARY = "metrics_summary.json"
PARAMS = "params.safetensors"
PARAMS_PICKLE = "params.pkl"
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
ANALYSIS_BATCH = "analysis/analysis_batch.npz"
LATENT_BATCH = "analysis/latent_batch.npz"
PREDICTIONS = "analysis/predictions.npz"
ANALYSIS_METADATA = "analysis/analysis_metadata.json"
ALIGNMENT = "analysis/alignment.json"
ALIGNMENT_CURVE = "analysis/alignment.csv"
OVER_TRAINING = "analysis/over_training.csv"
OOD = "analysis/ood.csv"
WEIGHTS = "analysis/weights.npz"
LAYERWISE = "analysis/layerwise_metrics.json"
COPYING = "analysis/copying.json"
SINE_FUNCTIONS = "analysis/sine_functions.csv"
SINE_FUNCTIONS_FACTS = "analysis/sine_functions.json"
SINE_COMPARISON = "analysis/sine_comparison.json"
SINE_COMPARISON_FUNCTIONS = "analysis/sine_comparison.csv"
COMPARATORS = "analysis/comparators.json"
ATTENTION_STATS = "analysis/attention_stats.json"
ATTENTION_STATS_FIGURE = "analysis/attention_stats.png"
LOCK = ".lock"

# Everything a run may have put into its directory; `--overwrite` removes these and nothing else.
OWN = (CONFIG, META, METRICS, SUMMARY, PARAMS, PARAMS_PICKLE, SNAPSHOTS, ORDERING_INDEX, NOISE_MASK)
OWN_FOLDERS = (CHECKPOINTS, ATTENTION, FIGURES, ANALYSIS)


def attention_layer(run: Path, layer: int) -> Path:
    """Attention maps of all heads of a layer: `data` [B', heads, rows, cols]."""
    return run / ATTENTION / f"layer{layer}.npz"


def attention_head(run: Path, layer: int, head: int) -> Path:
    """The batch mean of one head's maps [rows, cols]."""
    return run / ATTENTION / f"layer{layer}_head{head}.npy"


def figure(run: Path, name: str) -> Path:
    """A figure of a run."""
    return run / FIGURES / f"{name}.png"


def checkpoint(run: Path, step: int) -> Path:
    """The training state after a step."""
    return run / CHECKPOINTS / f"step_{step:08d}.safetensors"
