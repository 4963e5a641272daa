"""The activations of runs: what the command prints, and reading, replacing and ablating them from Python."""

from pathlib import Path

import jax
import numpy as np
import pytest

import icl_lab
from icl_lab.analysis import activations
from icl_lab.src.checks import ConfigError
from tests.doors import Ran, ran
from tests.runners.tiny import lsa1_run, workshop
from tests.test_icl_lab import decoder_run

__all__ = ["decoder_run", "lsa1_run", "ran", "workshop"]


def test_the_command_prints_names_shapes_and_why_others_are_absent(lsa1_run: Path, ran: Ran) -> None:
    lines = ran("analysis.activations", "--run", lsa1_run).out.splitlines()
    found = {line.split()[0]: line for line in lines}
    config = icl_lab.load_run(lsa1_run).config
    rows, width = config.architecture.num_rows, config.architecture.token_width
    assert f"[B, {rows}, {width}]  context, position, channel" in found["embed"]
    assert f"[B, 1, {rows}, {rows - 1}]  context, head, position, key" in found["blocks.0.attn.pattern"]
    assert found["prediction"].endswith("[B]  context")
    absent = [line for line in lines if line.startswith("none of ")]
    assert any("attn.q, attn.k, attn.v, attn.z" in line and "merged matrices" in line for line in absent)
    assert any("resid_mid, mlp.pre, mlp.post, mlp_out" in line and "no MLP" in line for line in absent)


@pytest.mark.parametrize("name", ["lsa1_run", "decoder_run"])
def test_own_activations_change_nothing_and_another_contexts_stream_is_its_prediction(
    name: str, request: pytest.FixtureRequest
) -> None:
    run = icl_lab.load_run(request.getfixturevalue(name))
    clean, other = (icl_lab.sample(run, 6, seed) for seed in (1, 2))
    mine, its = (icl_lab.capture(run, batch) for batch in (clean, other))
    own = {at: value for at, value in mine.items() if not at.endswith("prediction")}
    np.testing.assert_array_equal(icl_lab.patch(run, clean, own), mine["prediction"])
    last = [at for at in its if at.endswith("resid_post")][-1]
    np.testing.assert_array_equal(icl_lab.patch(run, clean, {last: its[last]}), its["prediction"])
    assert all(isinstance(value, np.ndarray) for value in mine.values())
    assert np.abs(mine["prediction"] - its["prediction"]).max() > 1e-4


def test_sites_and_values_are_data(decoder_run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Other arrays, heads and layers trace nothing again; the function is counted in its program."""
    run = icl_lab.load_run(decoder_run)
    batch, traces = icl_lab.sample(run, 5), []
    value = icl_lab.capture(run, batch, "*.attn.result")
    patch = activations.patching.patch

    def counted(*args: object) -> jax.Array:
        traces.append(1)
        return patch(*args)  # type: ignore[arg-type]  # as they come

    monkeypatch.setattr(activations.patching, "patch", counted)
    found = [
        icl_lab.patch(run, batch, {at: factor * each for at, each in value.items()}, layer=0, head=head)
        for factor in (0.0, 2.0)
        for head in (0, -1)
    ]
    assert len(traces) == 1
    alone = icl_lab.ablate(run, batch, "blocks.0.attn.result", head=0)
    np.testing.assert_allclose(found[0], alone, rtol=1e-5, atol=1e-6)  # float32, fused otherwise


def test_a_decoder_takes_a_context_with_a_query_as_its_last_pair(decoder_run: Path) -> None:
    run = icl_lab.load_run(decoder_run)
    whole = icl_lab.sample(run, 4)
    split = icl_lab.batch_from_arrays(whole.x[:, :-1], whole.y[:, :-1], whole.x[:, -1])
    seen = icl_lab.capture(run, split, "prediction")["prediction"]
    np.testing.assert_array_equal(seen, icl_lab.capture(run, whole, "prediction")["prediction"])


def test_what_does_not_fit_is_a_sentence(lsa1_run: Path) -> None:
    run = icl_lab.load_run(lsa1_run)
    batch = icl_lab.sample(run, 3)
    with pytest.raises(ConfigError, match=r"called 'blocks.0.attn.q': attention multiplies the merged matrices"):
        icl_lab.capture(run, batch, "blocks.0.attn.q")
    with pytest.raises(ConfigError, match="did you mean embed"):
        icl_lab.capture(run, batch, "embd")
    with pytest.raises(ConfigError, match=r"layer is 4, but the layers of blocks.0.attn.result are: 0"):
        icl_lab.ablate(run, batch, "*.attn.result", layer=4)
    with pytest.raises(ConfigError, match="has 1 heads, so there is no head 1"):
        icl_lab.patch(run, batch, {"*.attn.result": 0.0}, head=1)
    with pytest.raises(ConfigError, match="ablation is 'knock'; it must be one of zero, mean, resample"):
        icl_lab.ablate(run, batch, "*.attn.result", "knock")
    with pytest.raises(ConfigError, match=r"x has the shape \(3, 2, "):
        icl_lab.capture(run, batch._replace(x=batch.x[:, :2], y=batch.y[:, :2]))
