"""What limits a claim that was not reproduced, by its name: a sentence or two, written after it was measured."""

from __future__ import annotations

# fmt: off
REMARKS: dict[str, str] = {
    "linear_llc": "The range is that of a pilot run of one seed, whose LLC is the lowest of eight; it falls slowly after step 1000 in all.",
    "linear_stage_any_health": "A milestone's nearest checkpoint is often one of those whose chains are still moving, by a test that one healthy checkpoint in twenty fails; see `linear_stage`.",
}
# fmt: on
