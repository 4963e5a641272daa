"""report/index.json: every claim, contrast, figure, table, page and group of runs, as a site or a script reads them.

Paths are relative to the index's folder; ids stay when numbers change; non-finite numbers are null.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from icl_lab.store import outputs
from icl_lab.store.atomic import json_bytes
from icl_lab.studies import history, ledger, main_results, page, template
from icl_lab.studies.claim import UNBOUNDED, Claim
from icl_lab.studies.contrast import change_of
from icl_lab.studies.drawing import as_drawn
from icl_lab.studies.study import Study, all_studies

SCHEMA_VERSION = 5
OWN_SEEDS = (201, 202, 203)  # which no study has used, for a reader's replication
JUDGED = ("verdict", "reading_says", "because")
OF_A_CONTRAST = ("question", "kind", "unit", "n", "largest_change", "p", "p_holm", "p_equivalence", *JUDGED)

Entry = dict[str, Any]


def write(out: Path) -> None:
    """Writes the index of what lies in a folder."""
    outputs.write({out / ledger.INDEX: json_bytes(index(out))}, ledger.WRITER)


def index(out: Path) -> Entry:
    """The index of what lies in a folder."""
    studies = all_studies()
    rows = [(study, row) for study in studies for row in ledger.rows_in(out, [study])]
    claims = {claim.name: claim for study in studies for claim in study.claims}
    drawn = [entry for study in studies for entry in _figures(study, out)]
    compared = [(study, profile) for study in studies for profile in _compared(study, out)]
    entries: dict[str, list[Entry]] = {
        "pages": _pages(studies, out),
        "claims": [_claim(study, row, claims[row["claim"]], drawn) for study, row in rows],
        "withdrawn": [_withdrawn(event) for event in history.withdrawn()],
        "runs": [entry for study in studies for entry in _runs(study)],
        "contrasts": [],
        "figures": drawn,
        "tables": _tables(out),
    }
    for study, profile in compared:
        for kind, condition_entries in _conditions(study, profile, out).items():
            entries[kind] += condition_entries
    return {"schema_version": SCHEMA_VERSION, **entries}


def _claim(study: Study, row: ledger.Row, claim: Claim, drawn: Sequence[Entry]) -> Entry:
    plain = ("reading", "tier", "fact", "about", "paper", "figure", "says", "expected", "source", "range", "scale")
    verdicts = (*JUDGED, "planned", "profile", "n", "n_needed", "control_kind")
    numbers = ("mean", "mean_low", "mean_high", "level", "control_mean", "control_low", "control_high")
    return {
        "id": row["claim"],
        "study": study.name,
        **{name: row[name] for name in (*plain, *verdicts, "runs", "remark", "command", "control", "smaller")},
        "paired": claim.paired,
        "replicate": f"{row['command']} --seeds {','.join(map(str, OWN_SEEDS))}",
        "in_words": _in_words(row),
        "shown_in": _shown_in(study, claim, drawn),
        "history": _history(row["claim"]),
        "earlier": _earlier(row),
        "low": _bounded(row["low"]),
        "high": _bounded(row["high"]),
        "no_effect": None if row["no_effect_low"] is None else [row["no_effect_low"], row["no_effect_high"]],
        **{name: _finite(row[name]) for name in numbers},
        "seeds": json.loads(row["seeds"]),
        "values": [_finite(value) for value in json.loads(row["values"])],
        "control_values": [_finite(value) for value in json.loads(row["control_values"])],
        "device": row["device"],
        "date": row["date"],
    }


def _in_words(row: ledger.Row) -> Entry:
    """What pages write of a claim, with the digits that its interval gives meaning."""
    words = ("place", "accepted", "measured", "control", "verdict")
    return {word: getattr(template, word)(row) for word in words}


def _shown_in(study: Study, claim: Claim, drawn: Sequence[Entry]) -> list[str]:
    """The figures of a page that show runs of a claim; of a main claim also the figure of main results."""
    runs_of = {figure.name: figure.run_names for figure in study.figures if figure.name in study.shown}
    names = [name for name, runs in runs_of.items() if set(runs) & set(claim.run_names)]
    if claim.tier == "main" and main_results.NAME in study.shown:
        names.append(main_results.NAME)
    there = {entry["id"] for entry in drawn if entry.get("image")}
    return [place for name in names if (place := f"{study.name}/{name}") in there]


def _history(claim: str) -> list[Entry]:
    """The events of a claim, each with what it has."""
    return [
        {
            name: _bounded(value) if name in ("low", "high") else value
            for name, value in event._asdict().items()
            if name != "claim" and value is not None and (value or name in ("low", "high"))
        }
        for event in history.events(claim)
    ]


def _withdrawn(event: history.Event) -> Entry:
    """A name that left the table, and the claims that replace it."""
    return {"id": event.claim, "replaced_by": event.says.split(), "history": _history(event.claim)}


def _runs(study: Study) -> list[Entry]:
    """What a study trains: settings that differ from the model's defaults, axes whose points a seed has runs of."""
    return [
        {
            "id": f"{study.name}/{name}",
            "study": study.name,
            "model": runs.model,
            "settings": {key: _setting(value) for key, value in runs.settings.items()},
            "axes": {key: _setting(values) for key, values in runs.axes.items()},
            "seeds": [*runs.seeds],
        }
        for name, runs in study.runs.items()
    ]


def _setting(value: Any) -> Any:
    """A setting as JSON has it; what is infinite, in a word."""
    if isinstance(value, (list, tuple)):
        return [_setting(one) for one in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _tables(out: Path) -> list[Entry]:
    """The ledger's, and how often its rules err."""
    rates = {"path": ledger.ERROR_RATES, "caption": "how often each rule wrongly reproduces or contradicts a claim"}
    tables = [{"id": "claims", "path": ledger.TABLE, "caption": "a row for each claim"}, {"id": "error_rates", **rates}]
    return [{"study": None, **table} for table in tables if (out / table["path"]).exists()]


def _earlier(row: ledger.Row) -> Entry | None:
    """The range before it was revised, and the verdict by it."""
    if row["range"] == "original":
        return None
    plain = {"verdict": row["earlier_verdict"], "revised_at": row["revised_at"], "because": row["revised_because"]}
    return {"low": _bounded(row["earlier_low"]), "high": _bounded(row["earlier_high"]), **plain}


def _bounded(end: float) -> float | None:
    return None if abs(end) >= UNBOUNDED else end


def _figures(study: Study, out: Path) -> list[Entry]:
    """Those whose tables are there; one that no page shows has no image, and its command draws it."""
    main = (out / study.name / f"{main_results.NAME}.csv").exists()
    return [_figure(study, study.name, main_results.NAME, main_results.TITLE, study.profiles[-1])] * main + [
        _figure(study, study.name, figure.name, figure.title, figure.profile)
        | ({} if figure.name in study.shown else {"image": None})
        | {"bundle": f"{study.name}/{figure.name}.json"}
        for figure in as_drawn(study, out / study.name)
    ]


def _figure(study: Study, folder: str, name: str, caption: str, profile: str) -> Entry:
    stem = f"{folder}/{name}"
    place = {"image": f"{stem}.png", "table": f"{stem}.csv"}
    return {
        "id": stem,
        "study": study.name,
        "caption": caption,
        "profile": profile,
        **place,
        **_command(study, profile),
    }


def _compared(study: Study, out: Path) -> list[str]:
    """The profiles of a study's conditions whose results are there."""
    if not study.conditions:
        return []
    return [name for name in study.profiles if (out / page.name_of(study, name)).exists()]


def _conditions(study: Study, profile: str, out: Path) -> dict[str, list[Entry]]:
    assert study.conditions is not None
    folder = study.results(profile)
    listed = study.conditions.listed(out / folder)
    origin = {"study": study.name, "profile": profile, **_command(study, profile)}
    return {
        "contrasts": [
            {
                "id": f"{folder}/{row['question']}/{row['contrast']}",
                **origin,
                **{name: _finite(row[name]) for name in OF_A_CONTRAST},
                **dict(zip(("change", "change_low", "change_high"), map(_finite, change_of(row)), strict=True)),
                "seeds": [*row["changes"]],
                "values": [_finite(value) for value in row["changes"].values()],
            }
            for row in listed["contrasts"]
        ],
        "figures": [
            _figure(study, folder, name, caption, profile) | ({} if name in study.shown else {"image": None})
            for name, caption in study.conditions.figures.items()
            if (out / folder / f"{name}.csv").exists()
        ],
        "tables": [
            {"id": f"{folder}/{Path(name).stem}", **origin, "path": f"{folder}/{name}", "caption": caption}
            for name, caption in listed["tables"].items()
        ],
    }


def _pages(studies: Sequence[Study], out: Path) -> list[Entry]:
    pages: list[Entry] = [{"id": "claims", "study": None, "path": ledger.PAGE, "title": _title(out / ledger.PAGE)}]
    for study in studies:
        for profile in study.profiles if study.conditions else study.profiles[-1:]:
            name = page.name_of(study, profile)
            if (out / name).exists():
                entry = {"id": Path(name).stem, "study": study.name, "path": name, "title": _title(out / name)}
                pages.append(entry | _command(study, profile if study.conditions else "full"))
        for name in study.notes:
            path = f"{page.NOTES}/{name}.md"
            if (out / path).exists():
                entry = {"id": f"notes/{name}", "study": study.name, "path": path, "title": _title(out / path)}
                pages.append(entry | _command(study, "full"))
    return pages


def _title(path: Path) -> str:
    return path.read_text(encoding="utf-8").partition("\n")[0].removeprefix("# ")


def _command(study: Study, profile: str) -> dict[str, str]:
    return {"command": f"python -m studies.run {study.name} --profile {profile}"}


def _finite(value: Any) -> Any:
    return None if isinstance(value, float) and not math.isfinite(value) else value
