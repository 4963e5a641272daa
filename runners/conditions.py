"""The conditions of a training as it begins or goes on: its devices in words, and what has changed since it began."""

from __future__ import annotations

from typing import Any

import jax

from icl_lab.lab.environment import num_threads
from icl_lab.lab.progress import Logger
from icl_lab.runners import kernel
from icl_lab.runners.pack import Pack
from icl_lab.src.words import printable
from icl_lab.store import layout, provenance, rundir
from icl_lab.store.readers import expecting


def device_text() -> str:
    """The devices in words."""
    devices = jax.devices()
    count = f"{len(devices)} x " if len(devices) > 1 else ""
    threads = f", {num_threads()} threads" if devices[0].platform == "cpu" else ""
    return f"{count}{devices[0].device_kind}{threads}, jax {jax.__version__}"


def note_conditions(pack: Pack, logger: Logger) -> None:
    """Notes in meta.json what has changed since each run began, and its damaged checkpoints; logs what is new."""
    current = provenance.current_conditions(pack.width, device_text(), pack.kernel.described)
    changes: dict[int, list[provenance.Change]] = {}  # by training, whose state is that of its first run
    for place, (directory, _) in zip(pack.places, pack.runs, strict=True):
        history = provenance.history(directory, pack.step, current) if pack.step > 0 else []
        past = changes.setdefault(place, [])
        past += [change for change in history if change not in past]
        bitwise = provenance.verdict(past)
        damaged = [path for path in pack.damaged if path.is_relative_to(directory)]
        meta = rundir.read_meta(directory)
        with expecting(directory / layout.META, "a run's meta.json; --overwrite retrains the run"):
            names = [str(name) for name in meta.get("damaged_checkpoints", [])]
        names += [path.relative_to(directory).as_posix() for path in damaged]
        facts: dict[str, Any] = {
            "bitwise": bitwise,
            "resumed_elsewhere": past,
            **({"damaged_checkpoints": names} if names else {}),
        }
        new = [change for change in past if change["step"] == pack.step]
        if any(change["what"] == provenance.KERNEL for change in new):
            facts |= {kernel.WHY: pack.kernel.why}
        rundir.update_meta(directory, compile_seconds=pack.compile_seconds, **facts)
        for path in damaged:
            logger.line(f"{printable(path)}: a damaged checkpoint, set aside; the run goes on from step {pack.step}")
        if new:
            what = "not bitwise reproducible" if bitwise is False else "not known to be bitwise reproducible"
            logger.line(
                f"{printable(directory)} is resumed under other conditions and {what}: {provenance.describe(new)}"
            )
