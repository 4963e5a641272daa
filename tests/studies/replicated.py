"""A study of small runs whose measures give seeds, so that a test knows what every value has to be."""

import json
from pathlib import Path

from icl_lab.store import layout
from icl_lab.studies.claim import OURS, Claim, Rival, Without
from icl_lab.studies.runs import Runs
from icl_lab.studies.study import Study

SMALL = {"dim": 4, "num_pairs": 6, "steps": 20, "eval_every": 10, "batch_size": 16}
SMALL |= {"eval_tasks": 32, "test_tasks": 64, "step_size_tasks": 64}
ONE, OTHER = Runs("lsa1", SMALL, (0, 1, 2)), Runs("lsa1", SMALL | {"steps": 10}, (0, 1, 2))
SEVERAL = Runs("lsa1", SMALL, (0, 1, 2), {"ordering": ("random", "easy2hard")})
NOTHING = Without("a test of seeds")


def study() -> Study:
    """The study, which other processes make by this function."""
    runs = {"one": ONE, "next": ONE.of_next_seeds(), "other": OTHER, "several": SEVERAL, "beside": ONE.beside_others()}
    return Study(
        "reproduction",
        runs,
        [
            _claim("own", seed_of, "one", control=Rival("the other runs", runs=("other",))),
            _claim("weak", seed_of, "one"),
            _claim("shifted", lambda run, other: 100 * seed_of(run) + seed_of(other), "one", paired="next"),
            _claim("even", seed_of, "one", among=lambda run: float(seed_of(run) % 2 == 0)),
            _claim("several", lambda runs: sum(map(seed_of, runs)), "several"),
            _claim("beside", _beside, "beside"),
            _claim("drawn", lambda seed: 2.0 * seed, ""),
        ],
        analyses={"one": _analysed_once},
        file=Path(__file__),  # not of the house, whose ranges are in its history
        again=study,
    )


def _beside(runs: tuple[Path, ...]) -> float:
    """The seed of a run, and behind it the sum of the others' less 40: of 41, 42 and 44 4146 for the first."""
    return 100 * seed_of(runs[0]) + sum(map(seed_of, runs[1:])) - 40


def seed_of(run: Path) -> float:
    """The seed of a run, as it was trained."""
    return float(json.loads((run / layout.CONFIG).read_text())["init_seed"])


def _analysed_once(run):
    if not (run / "analysed").exists():
        (run / "analysed").touch()


def _claim(name, measure, runs, **given):
    given = {"control": NOTHING} | given if name != "weak" else given
    return Claim(name, "", f"what {name} says", 1.0, 0.5, 2e4, "derived", measure, runs, paper=OURS, **given)
