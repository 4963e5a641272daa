"""Runs of schema 1 are the runs of the same flags: those that are done are shown, others go on."""

import signal
from pathlib import Path

import pytest

from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import preset, resolve
from icl_lab.lab.configs.schema_1 import earlier_id
from icl_lab.store import layout, rundir
from tests.doors import Ran, ran
from tests.runners.schema_1 import put_back
from tests.runners.tiny import INTERRUPTED, LSA1, SIZES, Workshop, copied, results

__all__ = ["ran"]

# model -> the id of its run without flags, as the last version that wrote schema 1 printed it
IDS = {
    **{"lsa1": "bff510262aa9940a", "lsa1_pe": "025a580eb9260a96", "twolayer": "fee2413dce94bae7"},
    **{"lsa": "f22bc825bb0ad5e7", "linear": "129fa1935e93254c", "softmax": "d28c1499d3effa8c"},
    **{"sine": "3d35b384f2b236cb", "sine_control": "552ca7d7576ce520"},
    **{"tiny": "da8156ab3dfaba39", "small": "68eac70f42e49d5d", "base": "601c66024cd2c444"},
    **{"large": "4659efdb0657ac2d", "hoogland": "a7af4fbb0f847b6a", "carroll": "502cb934bbe60f0d"},
}


@pytest.mark.parametrize("model", IDS)
def test_the_ids_of_then_are_known(model: str) -> None:
    config = resolve(preset(model))
    assert earlier_id(config) == IDS[model]
    assert config_id(config) != IDS[model]  # today's holds the family


def test_a_done_run_is_found_done_and_shown(root: Path, tmp_path: Path, ran: Ran) -> None:
    """The committed one, by its own flags; none of its files is touched."""
    run = copied(root / "demos_ref/lsa1", tmp_path / "run")
    before = results(run)
    words = "--save_attention --attention_batch 64 --eval_every 100".split()
    done = ran(LSA1, *words, "--out", run)
    assert (done.status, done.err) == (0, "")
    loss = rundir.read_json(run / layout.SUMMARY)["headline"]["tf_loss"]
    (line,) = (line for line in done.out.splitlines() if "trained transformer" in line)
    assert line.split()[2] == f"{loss:.4f}"
    assert results(run) == before
    other = ran(LSA1, *words, "--steps", 10, "--out", run)
    assert (other.status, "holds a run of another config" in other.err) == (2, True)


def test_it_is_found_without_out_too(root: Path, tmp_path: Path, ran: Ran) -> None:
    """What `--overwrite` redoes is the newest run of the config, whatever form it is in, and no other one."""
    copied(root / "demos_ref/lsa1", tmp_path / "runs" / "lsa1")
    config = resolve(preset("lsa1"))
    stored = rundir.read_config(tmp_path / "runs" / "lsa1")
    assert rundir.choose(stored, None, overwrite=True, runs=tmp_path / "runs") == tmp_path / "runs" / "lsa1"
    assert rundir.choose(config, None, overwrite=True, runs=tmp_path / "runs") == tmp_path / "runs" / "lsa1_1"


@pytest.mark.slow
def test_an_unfinished_run_goes_on_to_the_same_bytes(lsa1_run: Path, workshop: Workshop, tmp_path: Path) -> None:
    words = [LSA1, *SIZES, "--save_attention", "--checkpoint_seconds", "0", "--out", tmp_path / "run"]
    stopped = workshop.run(*words, INTERRUPT="after:step_00000030.safetensors:SIGTERM", PYTHONPATH=INTERRUPTED)
    assert stopped.returncode == 128 + signal.SIGTERM, stopped.stderr
    identity = put_back(tmp_path / "run")
    done = workshop.run(*words)
    assert done.returncode == 0, done.stderr
    found, expected = results(tmp_path / "run"), results(lsa1_run)
    assert found.keys() == expected.keys()
    assert {name for name in found if found[name] != expected[name]} == {layout.CONFIG}
    assert rundir.read_meta(tmp_path / "run")["config_id"] == identity
