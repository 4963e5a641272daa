"""What a run prints at its end: baselines that know of the corruption, labels, and whether it trained."""

import json
import re
from pathlib import Path

import pytest

from icl_lab.families.diversity import outputs as diversity
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.runners.summary import summary_text
from icl_lab.src.data_config import PoolData
from icl_lab.store import layout
from tests.runners.tiny import LSA1, Workshop, copied

NOISE = "--eval_noise_mode label_noise --eval-noise-p 0.5 --eval_noise_sigma 1 --eval_noise_placement noisy_first"
NUMBERS = re.compile(r"\s+(\S+)   (\S+)$")


@pytest.fixture(scope="module")
def noisy_run(workshop: Workshop) -> Path:
    """Evaluated on label noise; 6 pairs in 4 dimensions without observation noise, so masks have no posterior."""
    return workshop.finished("eval_noise", LSA1, "--eval_ordering", "easy2hard", *NOISE.split())


def table(text: str) -> list[str]:
    """The rows below the header of losses."""
    lines = text.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith(("loss (half MSE)", "MSE on"))) + 1
    rest = lines[start:]
    return rest[: next(number for number, line in enumerate(rest) if not line.startswith("  "))]


def test_what_knows_the_corruption_stands_before_what_does_not(noisy_run: Path) -> None:
    found = json.loads((noisy_run / layout.COMPARATORS).read_text())
    rows = table(summary_text(noisy_run))
    labels = [
        "trained transformer",
        "gradient descent, step size tuned on it",
        "linear MMSE, knows p and sigma",
        "Bayes over masks, knows p and sigma",
        "1 step, a step size for each position",
        "the same, fitted on the training's contexts",
        "gradient descent, 1 step (clean step size)",
        "least squares that ignores the corruption",
        "zero",
        "transformer / gradient descent, same tasks",
    ]
    assert [row.strip().startswith(label) for row, label in zip(rows, labels, strict=True)] == [True] * len(labels)
    for row, name in ((rows[1], "gd_tuned_step"), (rows[2], "linear_mmse")):
        numbers = NUMBERS.search(row)
        assert numbers
        assert numbers.groups() == (f"{found[name]['loss']:.4f}", f"{found[name]['loss_se']:.4f}")
    for row, name in ((rows[4], "gd_positions"), (rows[5], "gd_positions_trained")):
        numbers = NUMBERS.search(row)
        assert numbers
        assert numbers.groups() == (f"{found[name]['loss']:.4f}", f"{found[name]['loss_se']:.4f}")
    assert f"not defined: {found['mask_bayes']['reason']}" in rows[3]
    assert "Bayes on clean data" not in "\n".join(rows)
    headline = json.loads((noisy_run / layout.SUMMARY).read_text())["headline"]
    assert found["linear_mmse"]["loss"] < min(headline["gd_loss"], headline["zero_loss"], headline["ridge_loss"])


def test_without_the_file_the_summary_names_the_command_that_writes_it(
    noisy_run: Path, workshop: Workshop, tmp_path: Path
) -> None:
    run = copied(noisy_run, tmp_path / "run")
    (run / layout.COMPARATORS).unlink()
    (row,) = (row for row in table(summary_text(run)) if "baselines that know of the corruption" in row)
    done = workshop.run(*row.split("python -m ")[1].split())
    assert done.returncode == 0, done.stderr
    assert (run / layout.COMPARATORS).read_bytes() == (noisy_run / layout.COMPARATORS).read_bytes()
    assert "not defined: num_pairs is 6" in done.stdout
    assert summary_text(run).replace(str(run), "") == summary_text(noisy_run).replace(str(noisy_run), "")


def test_a_file_of_an_earlier_version_has_no_rows_by_position(noisy_run: Path, tmp_path: Path) -> None:
    run = copied(noisy_run, tmp_path / "run")
    found = json.loads((run / layout.COMPARATORS).read_text())
    earlier = {name: value for name, value in found.items() if not name.startswith("gd_positions")}
    (run / layout.COMPARATORS).write_text(json.dumps(earlier))
    rows, all_rows = (table(summary_text(path)) for path in (run, noisy_run))
    assert rows == [row for row in all_rows if "position" not in row and "fitted on the training" not in row]
    assert len(rows) == len(all_rows) - 2


@pytest.mark.slow
def test_a_clean_run_in_an_order_says_what_knows_the_order(workshop: Workshop, tmp_path: Path) -> None:
    """On contexts that are not corrupted, and nothing more than before where nothing is ordered."""
    run = workshop.finished("trained_easy2hard", LSA1, "--train_ordering", "easy2hard")
    rows = [row.strip() for row in table(summary_text(run))]
    assert [row[:20] for row in rows[1:3]] == ["1 step, a step size ", "the same, fitted on "]
    assert rows[3].startswith("gradient descent, 1 step ")
    assert "Bayes over masks" not in "".join(rows)
    found = json.loads((run / layout.COMPARATORS).read_text())
    assert found["gd_positions"]["loss"] < found["gd_positions_trained"]["loss"]
    copy = copied(run, tmp_path / "run")
    (copy / layout.COMPARATORS).unlink()
    assert "baselines that know of the order:" in summary_text(copy)


def test_the_averaged_loss_stands_directly_under_the_loss_that_it_averages(lsa1_run: Path, twolayer_run: Path) -> None:
    for run in (lsa1_run, twolayer_run):
        rows = table(summary_text(run))
        parent = next(number for number, row in enumerate(rows) if row.startswith("  gradient descent, 1 step"))
        assert rows[parent + 1].startswith("    expected loss over w and the query, exact")
        assert [row.startswith("    ") for row in rows].count(True) == 1
        assert rows[parent + 2].startswith("  ridge (Bayes on clean data)")


def test_a_closed_form_that_is_missing_is_said_to_be(lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    summary = json.loads((run / layout.SUMMARY).read_text())
    summary["headline"] |= {"gd_loss_averaged": None, "gd_loss_averaged_se": None, "gd_loss_averaged_reason": "no v"}
    (run / layout.SUMMARY).write_text(json.dumps(summary))
    row = next(row for row in table(summary_text(run)) if "expected loss" in row)
    assert row.endswith(" not defined: no v")


def test_a_run_of_an_earlier_version_is_told_whether_it_trained(lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    summary = json.loads((run / layout.SUMMARY).read_text())
    del summary["trained"], summary["one_step"]
    (run / layout.SUMMARY).write_text(json.dumps(summary))
    said = next(line for line in summary_text(run).splitlines() if "trained: " in line)
    assert said in summary_text(lsa1_run)
    assert said.startswith(f"NOT trained: cosine of sensitivities {summary['alignment']['align_cos']:.4f}")


def rows_of_pools(task_distribution: str, *names: str) -> list[str]:
    """The rows of a run of task diversity with these predictors' losses and distances."""
    keys = [f"{prefix}_{name}_loss" for prefix in ("id", "ood") for name in ("tf", *names, "zero")]
    keys += [f"{prefix}_delta_{name}" for prefix in ("id", "ood") for name in names]
    numbers = {"tasks": 8, "verdict": "between"} | dict.fromkeys(keys, 0.5) | {f"{key}_se": 0.1 for key in keys}
    config = DiversityConfig(data=PoolData(num_tasks=4, task_distribution=task_distribution))
    return [row.strip() for row in diversity.summary_lines({"headline": numbers}, Path("run"), config)]


@pytest.mark.parametrize(
    ("task_distribution", "label"),
    [
        ("gaussian", "ridge (Bayes for fresh tasks) "),
        ("laplace", "ridge (best linear) "),
        ("sphere", "ridge (best linear) "),
    ],
)
def test_ridge_is_called_bayes_only_where_it_is(task_distribution: str, label: str) -> None:
    rows = rows_of_pools(task_distribution, "dmmse", "ridge")
    assert [row for row in rows if row.startswith("ridge")] == [row for row in rows if row.startswith(label)]
    assert sum(row.startswith(label) for row in rows) == 2


def test_a_further_posterior_mean_has_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(diversity, "POSTERIOR_MEANS", ("laplace", "mystery"))
    rows = rows_of_pools("gaussian", "dmmse", "ridge", "mystery")
    for start in ("mystery prior's mean ", "Delta to mystery "):
        assert sum(row.startswith(start) for row in rows) == 2
    assert not any("aplace" in row for row in rows)


def test_ridge_on_contexts_with_distractors_is_not_called_bayes(lsa1_run: Path, tmp_path: Path) -> None:
    run = copied(lsa1_run, tmp_path / "run")
    config = json.loads((run / layout.CONFIG).read_text())
    config["data"]["num_distractors"] = 1
    (run / layout.CONFIG).write_text(json.dumps(config))
    (row,) = (row for row in table(summary_text(run)) if "ridge" in row)
    assert row.startswith("  ridge that ignores the distractors")
