"""Which fields of a config have no meaning for a family of experiments: setting them is refused, not ignored."""

from __future__ import annotations

from typing import Any

from cli import UsageError
from src.config import RunConfig, to_dict

# family -> fields, or sections of them, that nothing of it reads
WITHOUT_MEANING: dict[str, tuple[str, ...]] = {
    "regression": (
        *("data.num_queries", "model.embed_size"),
        "training.deep_supervision",
    ),
    "layerwise": (
        *("base", "train", "eval", "step_size_tasks"),
        *("data.num_distractors", "model.tokens", "model.pos_enc_size"),
    ),
}


def refuse_without_meaning(config: RunConfig) -> None:
    """`UsageError` where a field that has no meaning for the config's family differs from its default."""
    values, defaults = to_dict(config), to_dict(RunConfig())
    for name in WITHOUT_MEANING.get(config.family, ()):
        found, default = _at(values, name), _at(defaults, name)
        differing = [field for field in found if found[field] != default[field]]
        if differing:
            field = differing[0]
            raise UsageError(f"{field} is {found[field]}, but has no meaning for the family {config.family}")


def _at(values: dict[str, Any], name: str) -> dict[str, Any]:
    """A section, or a field alone by its last name."""
    section, _, field = name.rpartition(".")
    owner = values[section] if section else values
    return owner[field] if isinstance(owner[field], dict) else {field: owner[field]}
