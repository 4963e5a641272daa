"""Trains the runs that the pages explorer and orders show, and writes their data: python -m scripts.site.explorer_data.

Two to three minutes of one core. docs/static/explorer/runs.js and models.js assign one global each, because a page that
is opened from a file may not fetch.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from icl_lab.lab import cli
from icl_lab.scripts.export_explorer import DIGITS, export
from icl_lab.store.outputs import out_folder

if TYPE_CHECKING:
    from icl_lab.analysis.loaded_run import LoadedRun

WRITER = "scripts.site.explorer_data"
OUT = Path("docs/static/explorer")
RECORDS = 40  # checkpoints of a run, at steps whose logarithms are evenly spaced


class Shown(NamedTuple):
    """A run that a page shows: its name there, its model, and what its config has."""

    name: str
    model: str
    settings: Mapping[str, Any]


SMALL = {"batch_size": 512, "eval_every": 1000, "num_pairs": 10}
LONG = SMALL | {"steps": 15_000}  # the plateau of rank one lasts for thousands of steps
RUNS = (
    *(Shown(f"d2_seed{seed}", "lsa1", LONG | {"dim": 2, "seed": seed}) for seed in range(8)),
    Shown("d2_shared", "lsa1", SMALL | {"dim": 2, "seed": 2, "num_layers": 2, "recurrent": True, "steps": 15_000}),
    Shown("d2_own", "lsa1", SMALL | {"dim": 2, "seed": 2, "num_layers": 2, "steps": 30_000}),
    *(Shown(f"d1_seed{seed}", "lsa1", LONG | {"dim": 1, "seed": seed, "steps": 5000}) for seed in (0, 3)),
    Shown("d10_seed0", "lsa1", {"eval_every": 1000, "steps": 5000}),
)
MODELS = (
    Shown("lsa1", "lsa1", LONG | {"dim": 2, "seed": 2}),
    Shown("twolayer_random", "twolayer", SMALL | {"dim": 2, "steps": 10_000}),
    Shown("twolayer_easy", "twolayer", SMALL | {"dim": 2, "steps": 10_000, "ordering": "easy2hard"}),
)


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.site.explorer_data", "Trains what the pages explorer and orders show.")
    built.add_argument("--out", type=out_folder, default=OUT, help="folder of the two files")
    built.add_argument("--runs", type=out_folder, default=None, help="folder that keeps the runs (default: none)")
    return built


def main(argv: Sequence[str]) -> None:
    """The command line."""
    from icl_lab.store.atomic import write_bytes

    flags = parser().parse(argv)
    with tempfile.TemporaryDirectory() as folder:
        place = Path(flags.runs or folder)
        made = {
            "runs.js": script("EXPLORER_RUNS", list(exported(RUNS, place))),
            "models.js": script("ORDER_MODELS", [as_model(_trained(each, place), each.name) for each in MODELS]),
        }
    for name, text in made.items():
        write_bytes(Path(flags.out, name), text.encode())
        print(Path(flags.out, name))


def script(name: str, values: Sequence[Mapping[str, Any]]) -> str:
    """A script that assigns the values to a global, one a line."""
    lines = ",\n".join(json.dumps(each, separators=(",", ":")) for each in values)
    return f"// Made by python -m {WRITER}: not edited by hand.\nwindow.{name} = [\n{lines}\n];\n"


def exported(runs: Sequence[Shown], folder: Path) -> Iterator[dict[str, Any]]:
    """What `scripts.export_explorer` makes of each run."""
    for each in runs:
        yield export(_trained(each, folder, snapshots=True, log_records=RECORDS), each.name)


def as_model(loaded: LoadedRun, name: str) -> dict[str, Any]:
    """The layers of a model of any attention, one head each, as products [W, W] by rows."""
    from icl_lab.src.attn import merged_of

    model, seen = loaded.config.model, loaded.config.architecture
    layers = []
    for number, layer in enumerate(model.layer_names):
        merged = merged_of(loaded.params[f"{layer}/attention"])
        products = {part: [float(f"{each:.{DIGITS}g}") for each in merged[part][0].ravel()] for part in merged}
        layers.append({"attention": model.kind(number), "key_size": model.key_size or seen.width, **products})
    return {
        "name": name,
        "tokens": model.tokens,
        "dim": seen.dim,
        "pairs": seen.num_pairs,
        "encoding": model.pos_enc_size,
        "ordering": loaded.config.train.ordering,
        "layers": layers,
    }


def _trained(each: Shown, folder: Path, **more: Any) -> LoadedRun:
    import icl_lab
    from icl_lab.analysis.loaded_run import load_run

    run = icl_lab.train(each.model, out=folder / each.name, quiet=True, **each.settings, **more)
    return load_run(run.path)


if __name__ == "__main__":
    cli.launch(main)
