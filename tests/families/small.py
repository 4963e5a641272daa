"""Two families that are no part of the tree, and runs of seconds of them."""

from pathlib import Path

from icl_lab.store import layout
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, ROOT, Workshop, results

LOGISTIC, READERS = (Path(__file__).parent / name for name in ("logistic", "readers"))
RUN, SWEEP = "runners.run", "sweeps.run"

STEPS, EVERY, TASKS = 40, 15, 32
RECORDED = (0, 15, 30, 40)
SIZES = ["--steps", STEPS, "--config.batch_size=16", f"--config.eval_every={EVERY}", f"--config.eval_tasks={TASKS}"]
SIZES = [*map(str, SIZES), "--config.test_tasks=64"]
KEPT = "--config.snapshots=true"
KILLS = ("during:metrics.jsonl:SIGKILL:2", "before:step_*.safetensors:SIGKILL:3", "during:params.safetensors:SIGKILL")

# Trains configs that are made of a run's, in a pack and then each alone at that width. Arguments: that run, a folder, a
# plugin, and code that makes a list of names and configs of `base`.
PACK = """
import sys, json
from dataclasses import replace
from pathlib import Path
import jax
from icl_lab.lab import plugins
plugins.load(sys.argv[3])
from icl_lab.lab.configs.identity import with_dependencies
from icl_lab.runners.loop import Pack, Run, run_pack
from icl_lab.runners.static_shape import with_values
from icl_lab.store import rundir
from icl_lab.lab.progress import NULL_LOGGER

base, folder = rundir.read_config(Path(sys.argv[1])), Path(sys.argv[2])
configs = [with_dependencies(with_values(base, values)) for values in json.loads(sys.argv[4])]
together = [Run(folder / f"together_{index}", config) for index, config in enumerate(configs)]
alone = [[Run(folder / f"alone_{index}", config)] for index, config in enumerate(configs)]
for runs in (together, *alone):
    for run in runs:
        run.directory.mkdir()
    assert run_pack(runs, NULL_LOGGER, width=len(configs)) == "done"
pack = Pack(together, len(configs))
print(json.dumps({"shared": {name: array.shape for name, array in pack.shared.items()},
                  "state": [leaf.shape for leaf in jax.tree.leaves(pack.state)],
                  "arguments": [list(leaf.shape) for leaf in jax.tree.leaves(pack._program.in_avals)]}))
"""


def trained(workshop: Workshop, model: str, folder: Path, name: str, *words: object) -> Path:
    """A finished run of a model, with snapshots. Read only."""
    return workshop.finished(name, RUN, *words, "--plugin", folder, sizes=[model, *SIZES, KEPT])


def killed_and_resumed(workshop: Workshop, to: Path, *words: object) -> dict[str, bytes]:
    """The results of a run that is killed at three places, and then left to finish."""
    line = [RUN, *words, *EVERY_CHUNK, "--out", to]
    for place in KILLS:
        killed = workshop.run(*line, INTERRUPT=place, PYTHONPATH=INTERRUPTED)
        assert killed.returncode == -9, f"{place}: {killed.stderr}"
        assert not (to / layout.SUMMARY).exists()
    done = workshop.run(*line)
    assert done.returncode == 0, done.stderr
    return results(to)


__all__ = ["ROOT"]
