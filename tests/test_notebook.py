"""The library in a headless notebook kernel: it shows itself, is interrupted as any cell, and changes nothing there."""

import os
from pathlib import Path
from typing import Any

import pytest

from tests.test_library import in_a_folder_of_a_user

pytestmark = pytest.mark.robust

SETTINGS = (
    "S = dict(steps=60, eval_every=20, batch_size=16, eval_tasks=32, test_tasks=50, step_size_tasks=256, quiet=True)"
)
STATE = "def state(): return matplotlib.get_backend(), [signal.getsignal(s) for s in (2, 15)], dict(os.environ)"
CELLS = {
    "begin": f"%matplotlib inline\nimport os, signal, sys, matplotlib, icl_lab\n{SETTINGS}\n{STATE}\nbefore = state()",
    "train": 'run = icl_lab.train("lsa1", out="first", **S)\nrun',
    "evaluate": "icl_lab.evaluate(lambda x, y, q: y.mean(axis=1), *icl_lab.sample(run, 20)[:4])",
    "table": 'icl_lab.table("first")[["path", "status"]]',
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


def test_in_a_headless_kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    folder, variables = in_a_folder_of_a_user(tmp_path)
    for name in ("PYTHONPATH", "PATH"):
        monkeypatch.setenv(name, variables[name])
    for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_RUNTIME_DIR", "JUPYTER_DATA_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name.lower()))
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(text) for text in CELLS.values()])
    resources = {"metadata": {"path": os.fspath(folder)}}
    nbclient.NotebookClient(notebook, timeout=300, kernel_name="python3", resources=resources).execute()
    said = {name: shown(cell) for name, cell in zip(CELLS, notebook["cells"], strict=True)}
    assert "<table>" in said["train"]
    assert "runners.run lsa1" in said["train"]
    assert "half the squared error" in said["evaluate"]
    assert "done" in said["table"]
    assert said["refused"] == "unknown config key 'stps' of the family regression, did you mean steps?\n"
    assert said["interrupt"].endswith("interrupted, stopped\n")
    assert said["go on"] == "done\n"
    assert said["end"] == ""
