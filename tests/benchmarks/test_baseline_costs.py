"""What baselines cost: the page has each predictor, and the command writes it."""

import re
from pathlib import Path

import pytest

from icl_lab.benchmarks import baseline_costs
from icl_lab.benchmarks.cases import config_of
from icl_lab.families.functions.baselines import BASELINES
from icl_lab.families.functions.exact import has_posterior
from icl_lab.families.functions.outputs import LABELS
from icl_lab.src.checks import UsageError
from icl_lab.src.registries import FUNCTION_CLASSES

ROW = re.compile(r"^\| (.+?) +\| `(\w+)` +\| (\d+) x (\d+) +\| (below 0\.05|[\d.]+) +\|$", re.M)


def check(page: str) -> int:
    """Each baseline is measured once, and the posterior of each class that has one; returns the number of prompts."""
    rows = [match.groups() for match in ROW.finditer(page)]
    assert len(rows) == sum(line.startswith("|") for line in page.splitlines()) - 2
    predictors, classes = zip(*((row[0], row[1]) for row in rows), strict=True)
    bayes = [kind for name, kind in zip(predictors, classes, strict=True) if name.startswith("Bayes (")]
    configs = {kind: config_of("functions_tiny", **{"function.kind": kind, "dim": 5}) for kind in FUNCTION_CLASSES}
    assert bayes == [kind for kind, config in configs.items() if has_posterior(config.function, 5)]
    expected = {LABELS[name] for name in (*BASELINES, "prior", "pool", "oracle", "likelier")}
    others = [name for name in predictors if not name.startswith("Bayes (")]
    assert (set(others), len(others)) == (expected, len(expected))
    prompts = int(rows[0][2])
    assert {(int(row[2]), int(row[3])) for row in rows} == {(prompts, 40), (min(prompts, 200), 8)}
    return prompts


def test_the_page_has_each_predictor(root: Path) -> None:
    assert check((root / "docs/baseline_costs.md").read_text()) == 1000


@pytest.mark.slow
def test_the_command_writes_the_page(tmp_path: Path) -> None:
    baseline_costs.main(["--prompts", "2", "--out", str(tmp_path / "page.md"), "--quiet"])
    assert check((tmp_path / "page.md").read_text()) == 2


def test_it_refuses() -> None:
    with pytest.raises(UsageError, match="argument --prompts: '1' is not a whole number from 2"):
        baseline_costs.main(["--prompts", "1"])


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.049, "below 0.05"), (0.05, "0.050"), (1.25, "1.2"), (9.96, "10"), (31.4, "31")]
)
def test_seconds_have_two_digits(seconds: float, text: str) -> None:
    assert baseline_costs.in_words(seconds) == text
