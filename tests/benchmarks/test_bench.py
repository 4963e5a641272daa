"""The command: what it refuses, what it writes, and that the page says what the files of results say."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from icl_lab.benchmarks import bench, cases, measurements, report, table
from icl_lab.benchmarks.processes import measure
from icl_lab.src.checks import UsageError
from icl_lab.store.readers import StoreError


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--only lsa_1", "unknown measurement lsa_1, did you mean lsa1_1?"),
        ("--only lsa1_1,grwoth_dim", "unknown measurement grwoth_dim, did you mean growth_dim?"),
        ("--repeats 0", "argument --repeats: '0' is not a whole number from 1 to 1000"),
        ("--repeats many", "argument --repeats: 'many' is not a whole number"),
        ("--onyl lsa1_1", "unknown argument --onyl, did you mean --only?"),
        ("--out .", "argument --out: . is a folder, not a file"),
        ("--quick", "--quick needs --out FILE"),
    ],
)
def test_bench_refuses(words: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=re.escape(sentence)):
        bench.main(words.split())


def test_a_wrong_name_is_told_before_anything_heavy_is_imported(root: Path) -> None:
    line = [sys.executable, "-X", "importtime", "-m", "benchmarks.bench", "--only", "nothing"]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True)
    imported = {row.rpartition("|")[2].strip().partition(".")[0] for row in done.stderr.splitlines()}
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines()[-1].startswith("error: unknown measurement nothing")
    assert "argparse" in imported
    assert not imported & {"jax", "jaxlib", "haiku", "optax", "pandas", "matplotlib", "scipy"}


def test_every_name_has_its_measurement() -> None:
    assert tuple(measurements.MEASUREMENTS) == cases.NAMES


def run(root: Path, out: Path, repeats: int, *names: str) -> subprocess.CompletedProcess[str]:
    words = ["--quick", "--out", str(out), "--repeats", str(repeats), "--only", ",".join(names)]
    line = [sys.executable, "-m", "benchmarks.bench", *words]
    environment = {name: value for name, value in os.environ.items() if name != "XLA_FLAGS"}  # read with jaxlib's help
    return subprocess.run(line, cwd=root, capture_output=True, text=True, env=environment)


@pytest.mark.slow
def test_quick_measurements_end_to_end(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "quick.json"
    done = run(root, out, 2, "lsa1_1")
    assert done.returncode == 0, done.stderr
    first = json.loads(out.read_text())
    entry = first["results"]["lsa1_1"]
    assert set(first["results"]) == {"lsa1_1"}
    assert entry["flops"] > 0
    assert all(len(spread["values"]) == 2 for spread in entry["seconds"].values())
    ours, plain = (entry["seconds"][who]["values"] for who in ("ours", "plain"))
    assert entry["times_faster"]["ours"]["values"] == [b / a for a, b in zip(ours, plain, strict=True)]
    assert {"machine", "versions", "git_hash", "load_average", "date"} <= set(first)
    assert table.text(first["results"]) in done.stdout
    assert run(root, out, 2, "help").returncode == 0
    second = json.loads(out.read_text())["results"]
    assert second.pop("help")["peak_mib"]["ours"]["median"] < 100
    assert second == first["results"]
    other = run(root, out, 3, "help")
    assert (other.returncode, other.stderr.count("\n")) == (2, 1)
    assert "holds results of another setting; choose another --out" in other.stderr


@pytest.mark.slow
def test_a_bench_fills_a_page(root: Path, tmp_path: Path) -> None:
    """One measurement of each kind, then the report."""
    out, page = tmp_path / "quick.json", tmp_path / "page.md"
    names = ("peak", "same_loss", "lsa1_1", "pack_8", "evaluation", "compile_lsa1_1", "run", *cases.SWEEPS)
    done = run(root, out, 1, *names[::-1])
    assert done.returncode == 0, done.stderr
    assert tuple(json.loads(out.read_text())["results"]) == names
    page.write_text(f"before\n{report.BEGIN}\nold\n{report.END}\nafter\n")
    line = [sys.executable, "-m", "benchmarks.report", "--results", str(out), "--page", str(page)]
    done = subprocess.run(line, cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert page.read_text().startswith("before\n")
    assert page.read_text().endswith("after\n")
    assert "old" not in page.read_text()
    assert "a step of lsa1" in page.read_text()
    assert (tmp_path / "figures" / "cost.png").stat().st_size > 10_000


def test_commands_are_measured_in_small_processes(root: Path) -> None:
    """A process that fills 200 MiB for half a second costs that, however much this one holds."""
    here = bytearray(300 * 2**20)
    small = measure([sys.executable, "-c", "pass"])
    large = measure([sys.executable, "-c", "import time; held = b'x' * (200 * 2**20); time.sleep(.5)"])
    assert small["peak_mib"] < 100 < 200 < large["peak_mib"] < 300 == len(here) / 2**20
    assert large["seconds"] > 0.5
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        measure([sys.executable, "-c", "1 / 0"])


# The page


def test_the_page_shows_the_results_in_the_repository(root: Path) -> None:
    page = (root / "benchmarks/performance.md").read_text()
    assert report.filled(page, sorted((root / report.RESULTS).glob("*.json"))) == page


def test_a_page_without_its_place_is_refused() -> None:
    with pytest.raises(StoreError, match="no place for the tables"):
        report.filled(f"{report.END} {report.BEGIN}", [])


def spread(*values: float) -> dict[str, object]:
    return {"median": values[1], "low": values[0], "high": values[2], "values": values}


@pytest.mark.parametrize(
    ("value", "text"), [(0.0123456, "0.0123"), (1.0, "1.00"), (99.96, "100"), (918.4, "918"), (1111.0, "1111")]
)
def test_numbers_have_three_digits_and_no_exponent(value: float, text: str) -> None:
    assert table.between(spread(value, value, value)) == f"{text} ({text} to {text})"


def test_the_table() -> None:
    results = {
        "peak": {"text": "of size 9, the best of 2", "gflops": 100.0},
        "same_loss": {
            "text": "loss after 9 steps",
            "loss": {"ours": 0.2, "plain": 0.201},
            "difference": -0.005,
            "tolerance": 0.02,
            "same": True,
        },
        "lsa1_1": {
            "text": "a step",
            "seconds": {"ours": spread(9e-4, 1e-3, 1.5e-3), "plain": spread(0.01, 0.02, 0.03)},
            "times_faster": {"ours": spread(19.0, 20.0, 20.5)},
            "flops": 5_000_000,
        },
        "run": {
            "text": "a run",
            "seconds": {"ours": spread(4, 5, 6), "cached": spread(3, 4, 4.5)},
            "times_faster": {},
            "peak_mib": {"ours": spread(1, 512.4, 600)},
        },
    }
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table.text(results).splitlines()]
    assert rows[2] == ["a step", "1.00 (0.900 to 1.50) ms", "20.0 (10.0 to 30.0) ms", "20.0 (19.0 to 20.5)"] + [
        "5.00 (5% of peak)"
    ]
    assert rows[3] == ["a run", "5.00 (4.00 to 6.00) s", "", "", ""]
    assert rows[4] == ["a run, programs kept", "4.00 (3.00 to 4.50) s", "", "", ""]
    assert rows[5] == ["peak memory of a run", "512 MiB", "", "", ""]
    assert table.text(results).splitlines()[-1] == (
        "The loss after 9 steps: ours 0.2000, plain 0.2010, apart by 0.50%, within 2%."
    )
