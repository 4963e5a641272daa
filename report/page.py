"""Pages from templates: what is missing in one is an error, not a gap."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from store.readers import StoreError


def rendered(template: Path, **values: Any) -> str:
    """The template with the values in it. `StoreError` where jinja2 is missing."""
    try:
        import jinja2
    except ModuleNotFoundError:
        raise StoreError("pages are made with jinja2, which is missing: pip install jinja2") from None
    environment = jinja2.Environment(
        undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    return environment.from_string(template.read_text(encoding="utf-8")).render(**values)
