"""What Sphinx builds the site with. `make site` copies the pages into a folder, and runs Sphinx there.

Nothing is loaded from elsewhere: no CDN, no fonts of the web. Formulas stand in the text, so that no page needs a
script to draw them, and the search works from `file://`.
"""

import os
from pathlib import Path
from typing import Any

ROOT = Path(os.environ["SITE_ROOT"])  # of the code, whose docstrings are read without an import
SOURCE = Path(os.environ["SITE_SOURCE"])

project = html_title = "In-context learning laboratory"
extensions = ["myst_nb", "autodoc2"]
root_doc = "docs/index"
smartquotes = False  # which would make a dash of the two in a flag
exclude_patterns = ["report/ledger/**"]
suppress_warnings = ["autodoc2.missing_module"]

myst_heading_anchors = 4  # as GitHub makes them
nb_execution_mode = "off"  # `make notebooks` executes them

html_theme = "furo"
html_show_copyright = html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
html_extra_path = ["start"]
html_static_path = ["static"]
html_css_files, html_js_files = ["site.css"], ["site.js"]
html_theme_options = {"navigation_with_keys": True}
highlight_language = "python"
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"


def documented(module: str) -> dict[str, str]:
    """A module of the API, whose path autodoc2 wants from the folder of the pages."""
    parts = module.split(".")[1:]
    file = Path(ROOT, *parts[:-1], f"{parts[-1]}.py") if parts else ROOT / "icl_lab" / "__init__.py"
    return {"path": os.path.relpath(file, SOURCE), "module": module}


# what users call: the package, the objects that its functions give, and what plugins register
API = (
    *("icl_lab", "icl_lab.analysis.run", "icl_lab.analysis.evaluate", "icl_lab.lab.plugins"),
    *(f"icl_lab.analysis.llc.{module}" for module in ("any_model", "estimate", "influence")),
)
autodoc2_packages = [documented(module) for module in API]
autodoc2_output_dir = "api"
autodoc2_render_plugin = "myst"
autodoc2_hidden_objects = {"private", "dunder", "inherited"}
autodoc2_sort_names = True

NOT_SEARCHED = ("CHANGELOG", "docs/contract")  # long pages that name everything, and answer few questions


def setup(app: Any) -> None:
    """Leaves long lists out of what the search finds."""
    app.connect("doctree-read", _leave_out_of_search)


def _leave_out_of_search(app: Any, doctree: Any) -> None:
    if app.env.docname in NOT_SEARCHED:
        app.env.metadata[app.env.docname]["nosearch"] = True
