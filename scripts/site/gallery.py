"""Writes docs/gallery.md: 25 figures, each with the command that measures and draws it again.

python -m scripts.site.gallery [--check]
"""

from __future__ import annotations

import re
from pathlib import Path

from icl_lab.lab import cli
from icl_lab.lab.command_end import typed

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = ROOT / "docs" / "gallery.md"
HEAD = """# Gallery

<!-- Made by python -m scripts.site.gallery, which a test compares with this file: not edited by hand. -->

Each command trains what is missing, measures the claims that the figure shows, and draws it. The page behind each
title says what was found, and how sure it is. [A table](results_table.md) has all claims, with each seed.
[Tutorials](tutorials.md) train the models step by step; in [the explorer](explorer.md) you move the points yourself."""
# study -> the figures that are shown, in this order
FIGURES = {
    "reproduction": ("rollout", "two_layers_training", "five_layers_shifts", "interleaved_training"),
    "solutions": ("paths", "patterns", "shares"),
    "order_noise": ("steps_by_position",),
    "task_diversity": ("losses", "budgets", "ood_long", "ood_over_training"),
    "languages": ("answer", "singular_values", "number_of_languages"),
    "theory": ("preconditioned", "higher_order", "dual_modes", "escape_times"),
    "language_model": ("phases", "prior", "triggers", "text"),
    "stages": ("measured_linear", "unit_constant"),
    "functions": ("curves", "classes", "pools", "shifts"),
}
IMAGE = r"!\[([^]]*)\]\({}\)"


def parser() -> cli.Parser:
    """The flags."""
    built = cli.Parser("scripts.site.gallery", "Writes docs/gallery.md: figures with the commands that draw them.")
    built.add_argument("--check", action="store_true", help="change nothing; exit with 1 if the page would change")
    return built


def main(argv: list[str]) -> int:
    """The command line; the exit status."""
    flags = parser().parse(argv)
    from icl_lab.store.atomic import write_bytes

    made = text()
    same = PAGE.exists() and PAGE.read_text(encoding="utf-8") == made
    if flags.check and not same:
        print(f"docs/gallery.md is not what the report says: {typed('scripts.site.gallery')}")
        return 1
    if not same:
        write_bytes(PAGE, made.encode())
    return 0


def text() -> str:
    """The page."""
    parts = [HEAD]
    for study, names in FIGURES.items():
        page = (ROOT / "report" / f"{study}.md").read_text(encoding="utf-8")
        question = page.partition("\n")[0].removeprefix("# ")
        parts += [f"## [{question}](../report/{study}.md)"]
        for name in names:
            found = re.search(IMAGE.format(re.escape(f"{study}/{name}.png")), page)
            assert found is not None, f"report/{study}.md shows no {name}"
            parts += [f"![{found[1]}](../report/{study}/{name}.png)", f"```sh\n{command(study, name)}\n```"]
    return "\n\n".join(parts) + "\n"


def command(study: str, figure: str) -> str:
    """What trains all that a figure shows, and draws it: few claims whose runs these are, or else a profile."""
    from icl_lab.studies.run import figures_with
    from icl_lab.studies.study import load

    own = load(study)
    (drawn,) = (each for each in own.figures if each.name == figure)
    claims = sorted(own.claims, key=lambda claim: claim.figure != figure)
    chosen, lacking = [], {*drawn.run_names}
    while lacking and claims:
        best = max(claims, key=lambda claim: len(lacking.intersection(claim.trained)))
        chosen.append(best)
        claims.remove(best)
        lacking -= {*best.trained}
    if chosen and not lacking and drawn in figures_with(own, chosen):
        return f"python -m studies.run {study} --claims {' '.join(claim.name for claim in chosen)}"
    return f"python -m studies.run {study} --profile {drawn.profile}"


if __name__ == "__main__":
    cli.launch(main)
