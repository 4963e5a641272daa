"""Several devices train what one trains, to rounding: runs, packs, and runs that change devices on their way.

The devices are virtual ones of the CPU. A run's batches are divided among them, and a pack's runs.
"""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from icl_lab.store import layout
from icl_lab.store.metrics import read_metrics
from tests.families.test_task import FIRST
from tests.runners.test_distributed import ROUNDING, params
from tests.runners.tiny import EVERY_CHUNK, INTERRUPTED, LSA1, RECORDED, SIZES, THREADS, Workshop

pytestmark = pytest.mark.robust

DEVICES, STEPS, WIDTH = 4, 12, 4

# Trains the first model of a family: alone, and four seeds together. Prints whether the programs sum across devices.
TRAIN = """
import json, sys
from dataclasses import replace
from pathlib import Path
import jax, numpy as np
sys.path.insert(0, ".")
from icl_lab.runners.loop import Run
from icl_lab.runners.pack import Pack
from icl_lab.src.precision import use_highest_precision
from tests.families.test_task import config_of

family, devices, out = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
assert len(jax.devices()) == devices
use_highest_precision()
base = config_of(family)
training = replace(base.training, batch_size=8, steps=int(sys.argv[4]), lr=1e-3)
base = replace(base, training=training, eval_tasks=8, test_tasks=8)
for name, count in (("alone", 1), ("together", int(sys.argv[5]))):
    runs = [Run(out / f"{name}{seed}", replace(base, init_seed=seed)) for seed in range(count)]
    pack = Pack(runs, count)
    print(name, "all-reduce" in pack._program.as_text())
    while pack.step < pack.num_steps:
        losses, _ = pack.advance()
    assert np.isfinite(losses).all()
    leaves = [leaf for place in range(count) for leaf in jax.tree.leaves(pack.params(place))]
    np.savez(out / f"{name}_{devices}.npz", *leaves)
"""


@pytest.mark.slow
@pytest.mark.parametrize("family", FIRST)
def test_a_family_trains_on_four_devices_as_on_one(family: str, workshop: Workshop, tmp_path: Path) -> None:
    """Alone a run's tasks are divided, and gradients summed. In a pack each device has a run, and waits for nobody."""
    for devices in (1, DEVICES):
        flags = f"--xla_force_host_platform_device_count={devices}"
        done = workshop.python("-c", TRAIN, family, devices, tmp_path, STEPS, WIDTH, XLA_FLAGS=flags)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["alone", str(devices > 1), "together", "False"]
    for name in ("alone", "together"):
        with np.load(tmp_path / f"{name}_1.npz") as one, np.load(tmp_path / f"{name}_{DEVICES}.npz") as four:
            assert one.files == four.files
            for leaf in one.files:
                np.testing.assert_allclose(four[leaf], one[leaf], atol=10 * ROUNDING, err_msg=f"{name} {leaf}")


@pytest.mark.slow
def test_a_run_that_was_stopped_goes_on_on_other_devices(workshop: Workshop, lsa1_run: Path, tmp_path: Path) -> None:
    """From its checkpoint, on four devices instead of one; meta.json says so."""
    run, words = tmp_path / "run", [LSA1, *SIZES, *EVERY_CHUNK, "--kernel", "xla", "--out", tmp_path / "run"]
    flags = f"--xla_force_host_platform_device_count={DEVICES}"
    killed = workshop.run(*words, INTERRUPT="after:step_00000060.safetensors:SIGKILL", PYTHONPATH=INTERRUPTED)
    assert killed.returncode == -9
    done = workshop.run(*words, XLA_FLAGS=flags)
    assert done.returncode == 0, done.stderr
    meta = json.loads((run / layout.META).read_text())
    assert not meta["bitwise"]
    assert [(change["what"], change["is"]) for change in meta["resumed_elsewhere"]] == [
        ("XLA_FLAGS", flags),
        ("device", f"{DEVICES} x cpu, {THREADS} threads, jax {jax.__version__}"),
    ]
    expected = params(lsa1_run)
    for name, value in params(run).items():
        np.testing.assert_allclose(value, expected[name], atol=ROUNDING, err_msg=name)
    assert [record["step"] for record in read_metrics(run)] == [*RECORDED]
