"""Runs as earlier versions left them: every field of every family in config.json, no tag, and the ids of then."""

import json
from pathlib import Path
from typing import Any

from icl_lab.lab.configs.keys import first_fields
from icl_lab.lab.configs.registry import from_dict
from icl_lab.lab.configs.run import RunConfig
from icl_lab.lab.configs.schema_1 import DEFAULTS_1, INSTEAD_OF_DIM, earlier_id
from icl_lab.store import layout
from icl_lab.store.rundir import read_config

SCHEDULES = ("cosine", "triangle")  # which had a truth value each


def config_of(config: RunConfig) -> dict[str, Any]:
    """A config of today in the form of schema 1."""
    values = {**first_fields(config), "family": config.family}
    found: dict[str, Any] = json.loads(json.dumps(DEFAULTS_1))
    for name, default in DEFAULTS_1.items():
        given = values.get(name, default)
        found[name] = default | {k: v for k, v in given.items() if k in default} if isinstance(default, dict) else given
    found["training"] |= {name: values["training"]["schedule"] == name for name in SCHEDULES}
    found["data"]["dim"] = INSTEAD_OF_DIM.get(values["family"], found["data"]["dim"])
    return found


def put_back(run: Path) -> str:
    """Rewrites config.json and meta.json of a run into that form; the id of then."""
    config, meta = read_config(run), json.loads((run / layout.META).read_text())
    identity = earlier_id(config)
    old = config_of(config)
    assert from_dict(old) == config
    (run / layout.CONFIG).write_text(json.dumps(old))
    (run / layout.META).write_text(json.dumps(meta | {"schema_version": 1, "config_id": identity}))
    return identity
