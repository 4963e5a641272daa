"""`python -m runners.run MODEL` is the runner of every model, whatever its family."""

from pathlib import Path

import pytest

from icl_lab.lab.configs.registry import models
from tests.doors import Ran, Refused, ran, refused
from tests.runners.tiny import SINE_SIZES, SIZES, Workshop, results

__all__ = ["ran", "refused"]

RUN = "runners.run"


@pytest.mark.parametrize(
    ("model", "run", "words"),
    [
        ("lsa1", "lsa1_run", [*SIZES, "--save_attention"]),
        pytest.param("sine", "sine_run", [*SINE_SIZES, "--config.key_size=6"], marks=pytest.mark.slow),
        pytest.param("sine_control", "control_run", SINE_SIZES, marks=pytest.mark.slow),
    ],
)
def test_it_leaves_what_the_models_own_runner_does(
    model: str, run: str, words: list[str], request: pytest.FixtureRequest, workshop: Workshop, tmp_path: Path
) -> None:
    expected = request.getfixturevalue(run)
    done = workshop.run(RUN, model, *words, "--out", tmp_path / "run")
    assert done.returncode == 0, done.stderr
    assert f"{model}, seed 0: 100 steps" in done.stdout
    assert results(tmp_path / "run") == results(expected)
    again = workshop.run(RUN, model, *words, "--out", expected)  # the same run: it is shown
    assert (again.returncode, again.stderr) == (0, "")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("", "which model? python -m runners.run MODEL, one of lsa1, lsa1_pe, twolayer, lsa, "),
        ("--steps 3", "which model? python -m runners.run MODEL, one of lsa1, "),
        ("lsa9", "unknown model 'lsa9'; known are lsa1, lsa1_pe, twolayer, lsa, "),
        ("sines", ", did you mean sine?"),
        ("sine --noise_p .5", "unknown argument --noise_p"),
        ("tiny --pos_enc_size 4", "unknown argument --pos_enc_size"),
        ("lsa1 --num_tasks 4", "unknown argument --num_tasks"),
        ("lsa1 --model lsa1_pe", "unknown argument --model"),
        ("lsa1 lsa1_pe", "unknown argument lsa1_pe"),
        ("lsa --config.tokens=interleaved", "unknown config key 'tokens' of the family layerwise"),
    ],
)
def test_what_names_no_model_or_is_not_its_own_is_refused(words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(RUN, *words.split())


def test_its_help_names_the_models_and_a_models_help_its_flags(ran: Ran) -> None:
    listed = ran(RUN, "--help")
    assert (listed.status, listed.err) == (0, "")
    lines = {line.split()[0]: line for line in listed.out.partition("MODEL is one of\n")[2].splitlines() if line}
    assert [*lines][:-1] == models()
    assert lines["twolayer"].endswith(
        "  interleaved tokens: a softmax layer copies, a linear one does gradient descent"
    )
    regression, sines = (ran(RUN, model, "--help").out for model in ("twolayer", "sine"))
    assert "--noise_placement" in regression
    assert "--control" not in regression
    assert "--control" in sines
    assert "--noise_placement" not in sines
