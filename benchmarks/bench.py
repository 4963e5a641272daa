"""Times training, evaluation and commands against a plain training loop.

python -m benchmarks.bench [--only NAME,NAME] [--repeats 5] [--quick] [--out FILE]
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.benchmarks.cases import FULL, NAMES, QUICK, Settings
from icl_lab.lab import cli
from icl_lab.lab.environment import check_devices
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.progress import ConsoleLogger, Logger
from icl_lab.src.words import did_you_mean
from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.store.outputs import out_file
from icl_lab.store.readers import StoreError, expecting, read_json
from icl_lab.store.rundir import now

WRITER = "benchmarks.bench"
ESTIMATED = "llc_run"  # the measurement with an LLC
RESULTS = Path("benchmarks/results")


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("benchmarks.bench", "Times training, evaluation and commands against a plain training loop.")
    cli.add_list(built, "--only", str, [], f"measure only these and keep other results in the file: {', '.join(NAMES)}")
    built.add_argument(
        "--repeats",
        type=Whole(1, 1000, "more take days"),
        help=f"repetitions of each measurement; default: {FULL.repeats}",
    )
    built.add_argument("--quick", action="store_true", help="a few steps of each, to check that it works")
    built.add_argument("--out", type=out_file, help=f"file of the results; default: {RESULTS}/<machine>.json")
    cli.add_quiet(built)
    return built


def main(argv: list[str]) -> int:
    """The command line."""
    flags = parser().parse(argv)
    for name in flags.only:
        if name not in NAMES:
            raise cli.UsageError(f"unknown measurement {name}{did_you_mean(name, NAMES)}")
    settings = QUICK if flags.quick else FULL
    if flags.repeats is not None:
        settings = settings._replace(repeats=flags.repeats)
    if flags.quick and flags.out is None:
        raise cli.UsageError("--quick needs --out FILE, so that it replaces no real measurements")
    return measure(flags.only or NAMES, settings, flags.out, not flags.only, ConsoleLogger(flags.quiet))


def measure(names: Sequence[str], settings: Settings, out: Path | None, fresh: bool, logger: Logger) -> int:
    """Measures, and writes the file after each measurement; returns 0 if both loops reach the same loss.

    Other results in the file stay, unless `fresh`.
    """
    check_devices()
    import jax

    from icl_lab.benchmarks import machine, table
    from icl_lab.benchmarks.measurements import MEASUREMENTS
    from icl_lab.src.precision import use_highest_precision

    use_highest_precision()
    facts = machine.describe()
    logger.line(f"{facts['machine']}, load average {facts['load_average']:.2f}")
    if facts["load_average"] > machine.BUSY:
        print("warning: the machine is busy, so these measurements are unreliable", flush=True)
    path = out or RESULTS / f"{machine.slug()}.json"
    outputs.check([path], WRITER)
    facts["settings"] = settings._asdict()
    results = {} if fresh or not path.exists() else _earlier(path, facts)
    for name in (name for name in NAMES if name in names):
        load = os.getloadavg()[0]
        entry = MEASUREMENTS[name](settings)
        results[name] = entry | {"date": now(), "git_hash": facts["git_hash"], "load_average": load}
        results = {known: results[known] for known in NAMES if known in results}
        outputs.write({path: json_bytes(facts | {"results": results})}, WRITER)
        logger.line(f"measured {name}")
        jax.clear_caches()
    print(f"\n{table.text(results)}\n\n{path}")
    return 0 if results.get("same_loss", {"same": True})["same"] else 1


def _earlier(path: Path, facts: dict[str, Any]) -> dict[str, Any]:
    """The results in a file; `StoreError` if machine or settings differ, or if they are none of a benchmark."""
    from icl_lab.benchmarks import table

    earlier = read_json(path)
    for name in ("machine", "settings"):
        if earlier.get(name) != facts[name]:
            raise StoreError(f"{path} holds results of another {name.rstrip('s')}; choose another --out")
    with expecting(path, "results of the benchmark"):
        results = dict(earlier["results"])
        table.text(results)  # as it is shown with the new ones
        return results


if __name__ == "__main__":
    cli.launch(main)
