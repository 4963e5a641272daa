"""The activations of a forward pass: their names, their axes, and the hook that sees and replaces them.

Names are those of TransformerLens without its prefix: `embed`, `blocks.0.attn.pattern`, `blocks.1.resid_post`. A model
shows its hook each activation that it has, in the order in which they are computed, so a hook lists, reads, replaces
and differentiates them. A plain pass has `no_hook`, computes the rows alone that are read, and costs nothing.

attn.scores are products of queries and keys, before the kind of attention scales and masks them; attn.q and attn.k are
what is multiplied, with rotary positions the turned ones.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from icl_lab.src.checks import ConfigError
from icl_lab.src.words import did_you_mean

if TYPE_CHECKING:
    from jax import Array

# (name, layer, value) -> the value to go on with; a layer is None where the name is one of the whole model's
Hook = Callable[[str, int | None, "Array"], "Array"]

CONTEXT, POSITION, HEAD, KEY, CHANNEL, QUERY = "context", "position", "head", "key", "channel", "query"
STREAM, MAP, PARTS = (
    (CONTEXT, POSITION, CHANNEL),
    (CONTEXT, HEAD, POSITION, KEY),
    (CONTEXT, POSITION, HEAD, CHANNEL),
)
OF_MODEL: Mapping[str, tuple[str, ...]] = {"embed": STREAM, "pos_embed": STREAM, "prediction": (CONTEXT, QUERY)}
OF_BLOCK: Mapping[str, tuple[str, ...]] = {
    "resid_pre": STREAM,
    "attn.q": PARTS,
    "attn.k": PARTS,
    "attn.v": PARTS,
    "attn.scores": MAP,
    "attn.pattern": MAP,
    "attn.z": PARTS,
    "attn.result": (CONTEXT, HEAD, POSITION, CHANNEL),
    "attn_out": STREAM,
    "resid_mid": STREAM,
    "mlp.pre": STREAM,
    "mlp.post": STREAM,
    "mlp_out": STREAM,
    "resid_post": STREAM,
    "prediction": (CONTEXT, QUERY),
}
_MERGED = "attention multiplies the merged matrices W_Q W_K^T and W_V P; it has attn.scores, attn.pattern, attn.result"
ABSENT: Mapping[str, str] = {
    "pos_embed": "positions are not added to its rows (rotary ones turn attn.q and attn.k)",
    **dict.fromkeys(("attn.q", "attn.k", "attn.v", "attn.z"), _MERGED),
    **dict.fromkeys(("resid_mid", "mlp.pre", "mlp.post", "mlp_out"), "its blocks have no MLP"),
}


def no_hook(name: str, layer: int | None, value: Array) -> Array:
    """The hook of a plain prediction: leaves everything as it is."""
    return value


@dataclass(frozen=True)
class Only:
    """A hook that sees activations of these names alone: a pass does no work for others, as for each head's result."""

    names: tuple[str, ...]
    see: Hook

    def __call__(self, name: str, layer: int | None, value: Array) -> Array:
        """What the hook makes of an activation of its names; others as they are."""
        return self.see(name, layer, value) if name in self.names else value


def is_seen(hook: Hook, name: str) -> bool:
    """Whether a hook looks at activations of this name."""
    return hook is not no_hook and (not isinstance(hook, Only) or name in hook.names)


def address(name: str, layer: int | None) -> str:
    """The address of an activation: its name, behind its block where it is one's."""
    return name if layer is None else f"blocks.{layer}.{name}"


def axes_of(at: str) -> tuple[str, ...]:
    """The names of the axes of the activation at an address."""
    block = at.startswith("blocks.")
    return OF_BLOCK[at.split(".", 2)[2]] if block else OF_MODEL[at]


def matching(patterns: str | list[str] | tuple[str, ...], present: list[str]) -> list[str]:
    """The addresses among these that one of the patterns matches, in the order of the pass.

    * stands for anything, dots too. `ConfigError` for a pattern that matches none: why there is none, or the nearest.
    """
    wanted = (patterns,) if isinstance(patterns, str) else tuple(patterns)
    for pattern in wanted:
        if not any(fnmatchcase(at, pattern) for at in present):
            raise ConfigError(f"no activation of this model is called {pattern!r}{_why_none(pattern, present)}")
    return [at for at in present if any(fnmatchcase(at, pattern) for pattern in wanted)]


def _why_none(pattern: str, present: list[str]) -> str:
    layers = sum(at.endswith(".resid_post") for at in present)
    name = pattern.split(".", 2)[2] if pattern.startswith("blocks.") and pattern.count(".") > 1 else pattern
    if name in OF_BLOCK and any(at.endswith(f".{name}") for at in present):
        return f"; it has {layers} blocks, from blocks.0, and an address is blocks.N.{name}"
    if name in ABSENT:
        return f": {ABSENT[name]}"
    return did_you_mean(pattern, present) or f"; the activations are {', '.join(present)}"
