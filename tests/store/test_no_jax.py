"""What only reads files or checks flags starts without JAX, pandas and matplotlib."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PLOTS = [f"plots.{path.stem}" for path in sorted(ROOT.glob("plots/*.py")) if path.stem != "__init__"]
LIGHT = {
    "store": (
        "store",
        "store.lock",
        "store.params",
        "store.checkpoint",
        "store.provenance",
        "store.rundir",
        "store.llc_rows",
    ),
    "lists of runs": ("store.runs", "store.listing", "store.provenance"),
    "command lines": ("lab.cli", "lab.configs.presets", "runners.command", "runners.flags"),
    "analyses": ("analysis", "analysis.trained", "analysis.compare", "analysis.llc.settings", "analysis.llc.mixing"),
    "figures": ("plots", *PLOTS),
    "seeds": ("scripts.demo_seeds",),
}
HEAVY = ("jax", "haiku", "optax", "pandas", "matplotlib", "scipy")


@pytest.mark.parametrize("name", LIGHT)
def test_importing_it_imports_nothing_heavy(root: Path, name: str) -> None:
    modules = ", ".join(f"icl_lab.{module}" for module in LIGHT[name])
    code = f"import sys, {modules}; print(*({set(HEAVY)} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=root, capture_output=True, text=True)
    assert (done.returncode, done.stdout.split(), done.stderr) == (0, [], "")
