"""Makes figures, pages and the index of results again from their tables; trains and measures nothing.

python -m studies.remake
"""

from __future__ import annotations

from pathlib import Path

from icl_lab.lab import cli
from icl_lab.src.words import printable
from icl_lab.store.outputs import out_folder
from icl_lab.store.readers import StoreError
from icl_lab.studies.study import Study, all_studies


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("studies.remake", "Makes figures, pages and the index of results again from their tables.")
    built.needs("jinja2")
    built.add_argument("--report", type=out_folder, default="report", help="folder of the results")
    built.add_argument("--figures", action="store_true", help="draw the figures again too")
    return built


def main(argv: list[str]) -> None:
    """The command line."""
    flags = parser().parse(argv)
    from icl_lab.studies import index, ledger

    if not (flags.report / ledger.TABLE).exists():
        raise StoreError(f"{flags.report} has no {ledger.TABLE}; name the folder of the results with --report")
    ledger.write(flags.report, {})
    for study in all_studies():
        for name in _pages(study, flags.report, flags.figures):
            print(printable(flags.report / name))
    index.write(flags.report)
    print(printable(flags.report / ledger.INDEX))


def _pages(study: Study, out: Path, figures: bool) -> list[str]:
    """Makes the pages of a study whose tables are there, and gives their names."""
    from icl_lab.studies import main_results, page
    from icl_lab.studies.drawing import redraw

    profiles = [name for name in study.profiles if (out / study.results(name)).is_dir()] if study.conditions else []
    for profile in profiles:
        assert study.conditions is not None
        study.conditions.remake(out / study.results(profile), figures)
    if figures:
        redraw(study, out)
        main_results.draw(study, out)
    made = profiles if study.conditions else study.profiles[-1:]
    for profile in made:
        page.write(study, profile, out)
    return [page.name_of(study, profile) for profile in made]


if __name__ == "__main__":
    cli.launch(main)
