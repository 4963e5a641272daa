"""The installed library in a headless notebook kernel: it shows itself, is interrupted as any cell, changes nothing."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.test_packaging import install, tree, wheel

__all__ = ["install", "tree", "wheel"]

pytestmark = pytest.mark.robust

SETTINGS = (
    "S = dict(steps=60, eval_every=20, batch_size=16, eval_tasks=32, test_tasks=50, step_size_tasks=256, quiet=True)"
)
STATE = """
def state():
    settings = {name: jax.config.values[name] for name in jax.config.values}
    handlers = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    return matplotlib.get_backend(), dict(matplotlib.rcParams), handlers, dict(os.environ), settings
"""
CELLS = {
    "begin": f"%matplotlib inline\nimport os, signal, jax, matplotlib, icl_lab\n{SETTINGS}\n{STATE}\nbefore = state()",
    "train": 'run = icl_lab.train("lsa1", out="first", **S)\nrun',
    "predict": "x, y, x_query, *_ = icl_lab.sample(run, 3)\nrun.predict(x, y, x_query).shape",
    "evaluate": "icl_lab.evaluate(lambda x, y, q: y.mean(axis=1), *icl_lab.sample(run, 20)[:4])",
    "table": 'icl_lab.table("first")[["path", "status"]]',
    "figure": 'run.metrics[["train_loss", "eval_loss"]].plot();',
    "its figures": "from icl_lab.plots.run_figures import draw_run\ndraw_run(run.path)\nos.listdir('first/figs')",
    "refused": 'try:\n    icl_lab.train("lsa1", stps=1)\nexcept Exception as error:\n    print(error)',
    # Ctrl-C of a kernel is this signal, here once the second checkpoint has its name
    "interrupt": """
replace, seen = os.replace, []
def interrupting(source, target, **more):
    replace(source, target, **more)
    if os.path.basename(os.fspath(target)).startswith("step_"):
        seen.append(target)
        if len(seen) == 2:
            os.kill(os.getpid(), signal.SIGINT)
os.replace = interrupting
try:
    icl_lab.train("lsa1", seed=1, out="second", checkpoint_seconds=0, **S)
except KeyboardInterrupt:
    print("interrupted,", icl_lab.load_run("second").status)
os.replace = replace
""",
    "go on": 'print(icl_lab.train("lsa1", seed=1, out="second", **S).status)',
    "end": "assert state() == before",
}


def shown(cell: Any) -> str:
    """What a cell shows: its output as text, and as a page."""
    parts = [output.get("text", "") + str(output.get("data", "")) for output in cell["outputs"]]
    return "".join(parts)


def test_a_wheel_in_a_headless_kernel(
    wheel: Path, install: Callable[..., Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In an environment and a folder without the checkout."""
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    line = [os.fspath(install(wheel)), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    kernel, folder = tmp_path / "jupyter_data_dir/kernels/fresh/kernel.json", tmp_path / "mine"
    kernel.parent.mkdir(parents=True)
    kernel.write_text(json.dumps({"argv": line, "display_name": "fresh", "language": "python"}))
    folder.mkdir()
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
    resources = {"metadata": {"path": os.fspath(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="fresh", resources=resources).execute()
    said = {name: shown(cell) for name, cell in zip(CELLS, notebook["cells"], strict=True)}
    assert "<table>" in said["train"]
    assert "icl-lab runners.run lsa1" in said["train"]
    assert "(3,)" in said["predict"]
    assert "image/png" in said["figure"]
    assert "loss.png" in said["its figures"]
    assert "half the squared error" in said["evaluate"]
    assert "done" in said["table"]
    assert said["refused"] == "unknown config key 'stps' of the family regression, did you mean steps?\n"
    assert said["interrupt"].endswith("interrupted, stopped\n")
    assert said["go on"] == "done\n"
    assert said["end"] == ""
    assert {path.name for path in folder.iterdir()} == {"first", "second"}
