"""Writes measured results into a page, as tables between its markers, and draws the figure.

python -m benchmarks.report [--page benchmarks/performance.md]
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.benchmarks import table
from icl_lab.benchmarks.cases import SWEEPS
from icl_lab.lab import cli
from icl_lab.lab.command_end import typed
from icl_lab.store.atomic import write_bytes
from icl_lab.store.outputs import in_path, out_file
from icl_lab.store.readers import StoreError, expecting, read_json

RESULTS = Path("benchmarks/results")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def section(files: Sequence[Path]) -> str:
    """The text between the markers: machine, conditions and table for each file of results."""
    return "\n\n".join(_one(path) for path in files) or "Not measured yet."


def _one(path: Path) -> str:
    result = read_json(path)
    with expecting(path, "results of the benchmark"):
        return _in_words(path.name, result)


def _in_words(name: str, result: Mapping[str, Any]) -> str:
    versions = result["versions"]
    commits = ", ".join(sorted({str(entry["git_hash"])[:12] for entry in result["results"].values()}))
    title = (
        f"**{result['machine']}**, {result['memory_gib']:g} GiB, jax {versions['jax']}, Python {versions['python']}, "
        f"{result['date'][:10]}, commit {commits}, load average before {result['load_average']:.2f}; medians of "
        f"{result['settings']['repeats']} turns and their range (`benchmarks/results/{name}`)"
    )
    return f"{title}\n\n{table.text(result['results'])}"


def filled(page: str, files: Sequence[Path]) -> str:
    """The page with the section between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise StoreError(f"the page has no place for the tables: it needs {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(files)}\n\n{END}{after}"


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("benchmarks.report", "Writes the results of benchmarks.bench into a page, and draws them.")
    cli.add_list(
        built, "--results", in_path, [], f"files of results, of which the first is drawn; default: all of {RESULTS}"
    )
    built.add_argument(
        "--page", type=out_file, default="benchmarks/performance.md", help="page to fill in, between its bench markers"
    )
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    if not flags.page.is_file():
        raise cli.UsageError(f"{flags.page} is not a file")
    results = flags.results or sorted(RESULTS.glob("*.json"))
    if not results:
        raise cli.UsageError(f"there are no results yet; {typed('benchmarks.bench')} measures them")
    write_bytes(flags.page, filled(flags.page.read_text(encoding="utf-8"), results).encode())
    print(flags.page)
    first = read_json(results[0])
    if set(SWEEPS) <= set(first["results"]):
        from icl_lab.benchmarks.growth import draw_growth

        print(draw_growth(first, flags.page.parent / "figures" / "cost.png"))


if __name__ == "__main__":
    cli.launch(main)
