"""Measures what baselines of function classes cost: CPU seconds of one core, by predictor and class.

python -m benchmarks.baseline_costs [--prompts 1000] [--out docs/baseline_costs.md]

Seconds are the process's own, so that other processes hardly change them. They are those of one thread, of a first call
with what it compiles; importing scikit-learn and SciPy is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.lab.environment import check_devices
from icl_lab.lab.flag_types import Whole
from icl_lab.lab.progress import ConsoleLogger, Logger
from icl_lab.store import outputs
from icl_lab.store.outputs import out_file

WRITER = "benchmarks.baseline_costs"
PAIRS, DIM, POOL_SIZE = 40, 5, 1024
IMPORTED = ("scipy.special", "sklearn.ensemble", "sklearn.tree")  # by methods at their first call
PAGE = """# What baselines cost

<!-- Made by python -m benchmarks.baseline_costs: not edited by hand. -->

The table has the seconds of one core that predictions on {prompts} prompts of {pairs} pairs take, by
[function class](functions.md). Inputs have dimension {dim}, the pool has {pool} functions, and other fields have their
defaults. Trees, boosting and the network by Adam are fitted anew for each prediction. Runs evaluate them on fewer
prompts, at {positions} positions; so does this table. Ridge regression and the lasso first choose their
penalties on other prompts, which takes most of their time. The oracle and the likelier class cost what the mixture's
posterior does. Costs are proportional
to the number of prompts, but for compilation.

{rows}

These are CPU seconds of one thread, with compilation: {machine}, {date}, load average {load:.1f} before the start.
Other processes do not count, but on a busy machine they slow down this one.
"""


class Cost(NamedTuple):
    """A row of the table: the predictor, a class with it, the prompts and positions predicted, and CPU seconds."""

    predictor: str
    function: str
    prompts: int
    positions: int
    seconds: float


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser(
        WRITER, "Measures what baselines of function classes cost: CPU seconds of one core, by predictor and class."
    )
    built.add_argument(
        "--prompts", type=Whole(2, 100_000, "more take days"), default=1000, help="prompts that are predicted"
    )
    built.add_argument("--out", type=out_file, default="docs/baseline_costs.md", help="page of the table")
    cli.add_quiet(built)
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    outputs.check([flags.out], WRITER)
    check_devices()
    from icl_lab.benchmarks import machine
    from icl_lab.families.functions.baselines import FITTED_POSITIONS

    facts, logger = machine.describe(), ConsoleLogger(flags.quiet)
    rows = table_of(measure(flags.prompts, logger))
    text = PAGE.format(
        prompts=flags.prompts,
        pairs=PAIRS,
        dim=DIM,
        pool=POOL_SIZE,
        positions=FITTED_POSITIONS,
        rows=rows,
        machine=facts["machine"].rpartition(", ")[0],
        date=facts["date"][:10],
        load=facts["load_average"],
    )
    outputs.write({flags.out: text.encode()}, WRITER)
    print(f"{rows}\n\n{flags.out}")


def measure(prompts: int, logger: Logger) -> Iterator[Cost]:
    """The cost of each predictor, of a posterior of each class, in the order of classes."""
    from threadpoolctl import threadpool_limits

    from icl_lab.benchmarks.cases import config_of
    from icl_lab.families.functions import baselines
    from icl_lab.src.registries import FUNCTION_CLASSES

    seen: set[str] = set()
    with threadpool_limits(1):
        for module in IMPORTED:
            import_module(module)
        for kind in FUNCTION_CLASSES:
            of_class: dict[str, Any] = {"function.kind": kind, "dim": DIM, "num_pairs": PAIRS, "test_tasks": prompts}
            config = config_of("functions_tiny", **of_class)
            found = [
                (config, name)
                for name in baselines.predictors(baselines.Asked(config))
                if not name.startswith("member_")
            ]
            if config.function.has_pools and baselines.POOL not in seen:
                found.append((config_of("functions_tiny", num_functions=POOL_SIZE, **of_class), baselines.POOL))
            for config, name in found:
                if name == baselines.BAYES or name not in seen:
                    seen.add(name)
                    cost = _cost(config, name, prompts)
                    logger.line(f"{cost.seconds:.2f} s: {cost.predictor}, {kind}")
                    yield cost


def _cost(config: Any, name: str, prompts: int) -> Cost:
    import time

    import numpy as np

    from icl_lab.families.functions import baselines, exact, task
    from icl_lab.families.functions.outputs import LABELS
    from icl_lab.src.prng import Purpose

    fitted = name in baselines.REFITTED and name != "lasso"
    count = min(prompts, config.fitted_prompts) if fitted else prompts
    batch = task.prompts(config, Purpose.TEST_SET, count)
    shown = exact.Shown(*(np.asarray(leaf) for leaf in (batch.x, batch.y, batch.member)))
    predict = baselines.predictors(baselines.Asked(config))[name].predict
    began = time.process_time()
    predict(shown)
    seconds = time.process_time() - began
    positions = len(baselines.fitted_positions(PAIRS)) if fitted else PAIRS
    label = "Bayes (by sampling)" if name == baselines.BAYES and config.function.is_sampled else LABELS[name]
    return Cost(label, config.function.kind, count, positions, seconds)


def table_of(costs: Iterator[Cost]) -> str:
    """The Markdown table of costs."""
    from icl_lab.benchmarks.table import aligned

    header = ("predictor", "class", "prompts x positions", "seconds")
    rows = [
        (cost.predictor, f"`{cost.function}`", f"{cost.prompts} x {cost.positions}", in_words(cost.seconds))
        for cost in costs
    ]
    return "\n".join(aligned([header, *rows]))


def in_words(seconds: float) -> str:
    """Seconds with two digits."""
    return "below 0.05" if seconds < 0.05 else f"{seconds:#.2g}" if seconds < 9.95 else f"{seconds:.0f}"


if __name__ == "__main__":
    cli.launch(main)
