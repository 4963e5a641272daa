"""Puts measured results into a page: the tables between its markers, and the figure beside it.

python -m benchmarks.report [--page docs/performance.md]
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cli
from benchmarks import table
from benchmarks.cases import SWEEPS
from store.atomic import write_bytes
from store.readers import StoreError, read_json

RESULTS = Path("benchmarks/results")
BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def section(files: Sequence[Path]) -> str:
    """What stands between the markers: for each file of results the machine, the conditions and the table."""
    return "\n\n".join(_one(path) for path in files) or "Not measured yet."


def _one(path: Path) -> str:
    found = read_json(path)
    versions = found["versions"]
    commits = ", ".join(sorted({str(entry["git_hash"])[:12] for entry in found["results"].values()}))
    title = (
        f"**{found['machine']}**, {found['memory_gib']:g} GiB, jax {versions['jax']}, Python {versions['python']}, "
        f"{found['date'][:10]}, commit {commits}, load average before {found['load_average']:.2f}; medians of "
        f"{found['settings']['repeats']} turns and their range (`benchmarks/results/{path.name}`)"
    )
    return f"{title}\n\n{table.text(found['results'])}"


def filled(page: str, files: Sequence[Path]) -> str:
    """The page with the section between its markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise StoreError(f"the page has no place for the tables: it needs {BEGIN} and {END}")
    return f"{before}{BEGIN}\n\n{section(files)}\n\n{END}{after}"


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("benchmarks.report", "Puts the results of benchmarks.bench into a page, and draws them.")
    cli.add_list(built, "--results", Path, [], f"files of results, the first is drawn; all of {RESULTS} if not given")
    built.add_argument("--page", type=Path, default=Path("docs/performance.md"), help="page with the markers")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    if not flags.page.is_file():
        raise cli.UsageError(f"{flags.page} is not a file")
    results = flags.results or sorted(RESULTS.glob("*.json"))
    if not results:
        raise cli.UsageError("no results to put into the page: python -m benchmarks.bench measures them")
    write_bytes(flags.page, filled(flags.page.read_text(encoding="utf-8"), results).encode())
    print(flags.page)
    first = read_json(results[0])
    if set(SWEEPS) <= set(first["results"]):
        from benchmarks.growth import draw_growth

        print(draw_growth(first, flags.page.parent / "figures" / "cost.png"))


if __name__ == "__main__":
    cli.launch(main, StoreError)
