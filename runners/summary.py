"""The summary of a finished run, printed on the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from icl_lab.families.summary import shown
from icl_lab.lab.configs.presets import title_of
from icl_lab.lab.configs.registry import family_of, outputs_of
from icl_lab.lab.configs.run import RunConfig
from icl_lab.runners import kernel
from icl_lab.src.words import printable
from icl_lab.store import layout, rundir
from icl_lab.store.metrics import read_summary
from icl_lab.store.readers import expecting


def summary_text(run: Path) -> str:
    """The summary of a finished run: its family's lines, whether it trained, and times."""
    from icl_lab.analysis.trained import in_words  # imports JAX

    summary, config = read_summary(run), rundir.read_config(run)
    with expecting(run / layout.SUMMARY, "a run's summary"):
        values = shown(summary)
        outputs = outputs_of(family_of(config)).of(config)
        lines = [
            "",
            *filter(None, [printable(outputs.meaning(values, run, config))]),
            _title(config, steps := values.get("num_steps", config.training.steps)),
            *_ends(values, config),
            *outputs_of(family_of(config)).summary(values, run, config),
            *filter(None, [in_words(config, values, outputs.remedy(run, config))]),
        ]
    meta = rundir.read_meta(run)
    lines += filter(None, [kernel.in_words(run)])
    with expecting(run / layout.META, "a run's meta.json"):
        seconds, per_step = meta["run_seconds"], 1e3 * meta["run_seconds"] / steps
        times = f"run_seconds {seconds:.1f} ({per_step:.2f} ms a step), compile_seconds {meta['compile_seconds']:.1f}"
    return "\n".join([*lines, f"{times}; figures in {printable(run / layout.FIGURES)}"])


def _title(config: RunConfig, steps: int) -> str:
    return f"{title_of(config)}, seed {config.data_seed}: {steps} steps of {config.training.batch_size} tasks"


def _ends(values: Mapping[str, Any], config: RunConfig) -> Iterator[str]:
    """Why a run ended early, and which parameters the numbers are of if the best ones were kept too."""
    if "stopped_early" in values:
        steps = values.get("num_steps", config.training.steps)
        yield f"stopped early, after {steps} of {config.training.steps} steps: {values['stopped_early']['reason']}"
    if best := values.get("best"):
        there = f"is at step {best['step']}: {layout.BEST_PARAMS} (--init_from RUN@best)"
        yield f"all numbers are of the last parameters; the least eval_loss, {best['eval_loss']:.4g}, {there}"
