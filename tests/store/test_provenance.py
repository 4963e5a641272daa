"""A config's id changes with everything that its numbers depend on; provenance says what a result came from."""

import json
import os
import subprocess
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from icl_lab.families.languages import data as of_languages
from icl_lab.families.regression.config import RegressionConfig
from icl_lab.lab.configs import identity
from icl_lab.lab.configs.identity import config_id
from icl_lab.lab.configs.presets import without_meaning
from icl_lab.lab.configs.registry import from_dict, named
from icl_lab.lab.configs.run import RunConfig, fields_of, to_dict
from icl_lab.lab.environment import processors
from icl_lab.lab.registries import FAMILIES
from icl_lab.src import config as known
from icl_lab.src import data_config, registries
from icl_lab.src import decoder_config as choices
from icl_lab.store import provenance

CHOICES = {
    "input_distribution": registries.INPUT_DISTRIBUTIONS,
    "tokens": ("interleaved", "interleaved_shared", "concatenated"),  # a decoder has the first two
    "positions": choices.POSITIONS,
    "norm": (),  # legal only with layer norms
    "mlp_ratio": (),  # legal only where it makes whole channels
    "activation": ("block", *choices.ACTIVATIONS[1:]),
    "read_out": ("block", *choices.READ_OUTS[1:]),
    "loss": tuple(choices.LOSSES),
    "prediction_channel": known.PREDICTION_CHANNELS,
    "ordering": registries.ORDERINGS,
    "difficulty": known.DIFFICULTIES,
    "noise_mode": registries.NOISE_MODES,
    "noise_placement": known.PLACEMENTS,
    "name": ("lsa1", "twolayer"),
    "preset": ("default", "paper"),
    "embedded": known.EMBEDDED,
    "task_distribution": registries.TASK_DISTRIBUTIONS,
    "block": tuple(choices.BLOCKS),
    "spectrum": ("isotropic", "power_law"),
    "eigenvalues": (),  # legal only with the spectrum `given`
    "axes": data_config.AXES,
    "query_covariance": data_config.QUERY_COVARIANCES,
    "task_covariance": data_config.TASK_COVARIANCES,
    "teacher": data_config.TEACHERS,
    "schedule": registries.SCHEDULES,
    "optimizer": known.OPTIMIZERS,
    "baselines": (),  # a list of names: tested where they are
    "plugins": (),  # they follow from the others
    "num_tasks": ("inf", 4),
    "num_chains": ("inf", 4),
    "source": ("markov", "triggers"),  # text has a larger vocabulary
    "stop_when": ("", "eval_loss < 0.1"),
    "init_from": ("", "a86cf033656ae0be@200:c55a1f6522bb74ea"),
    "train_only": ("", "layer"),
    "file": (),  # its content is in `shared`
    "standardize": (),  # legal only with a file, as the scales are
    "x_mean": (),
    "x_scale": (),
    "y_mean": (),
    "y_scale": (),
    "shared": (),  # so do these
    "alphabet": ("abc", ""),
    "negatives": of_languages.NEGATIVES,
    "alignment": of_languages.ALIGNMENTS,
    "kind": of_languages.CODES,
    "scale": of_languages.CODE_SCALES,
    "input": of_languages.AUTOENCODER_INPUTS,
    "autoencoder_input": of_languages.AUTOENCODER_INPUTS,
    "merged": (),  # legal only without biases and at the full key size
    # legal only with others: of random languages, and of the code `learned`
    "num_languages": (),
    "num_unseen": (),
    "features": (),
    # legal only with more steps
    "start_dims": (),
    "start_points": (),
    **dict.fromkeys(("num_functions", "num_prompts"), ("inf", 4)),
    "requires": (),
}


def leaves(family: str) -> list[tuple[str, str, str]]:
    """(family, section, field) of the fields that have another value that is legal."""
    config = named(family).config()
    values, idle = fields_of(config), {*without_meaning(config)}
    every = [(s, f) for s, value in values.items() for f in (value if isinstance(value, dict) else [""])]
    return [(family, s, f) for s, f in every if len(CHOICES.get(f or s, "12")) > 1 and f"{s}.{f}" not in idle]


LEAVES = [leaf for family in FAMILIES.built_in for leaf in leaves(family)]
REGRESSION = [leaf[1:] for leaf in leaves("regression")]


def another(name: str, value: Any) -> Any:
    """Another legal value of a field."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return 2 * value or 2
    if isinstance(value, float):
        return value / 2 + 0.3
    if name == "kind" and value in registries.FUNCTION_CLASSES:
        return "quadratic"
    if isinstance(value, list):
        return ["linear"] if value == ["softmax"] else ["softmax"]
    return next(choice for choice in CHOICES[name] if choice != value)


def changed(*leaves: tuple[str, str], family: str = "regression") -> RunConfig:
    """A family's default config with these fields changed."""
    values = to_dict(named(family).config())
    for section, name in leaves:
        owner, key = (values[section], name) if name else (values, section)
        owner[key] = another(key, owner[key])
    return from_dict(values)


@pytest.mark.parametrize("leaf", LEAVES, ids=".".join)
def test_every_field_but_the_presets_name_changes_the_id(leaf: tuple[str, str, str]) -> None:
    family, *field = leaf
    plain, other = changed(family=family), changed((field[0], field[1]), family=family)
    assert other != plain
    assert (config_id(other) == config_id(plain)) == (field[0] == "preset")


def test_every_family_has_ids_of_its_own() -> None:
    """Two families whose configs differ in nothing but their family would share runs otherwise."""
    assert len({config_id(changed(family=family)) for family in FAMILIES}) == len(FAMILIES)


@given(st.sets(st.sampled_from(REGRESSION), max_size=4), st.sets(st.sampled_from(REGRESSION), max_size=4))
def test_ids_are_equal_exactly_where_configs_are(a: set[tuple[str, str]], b: set[tuple[str, str]]) -> None:
    same = replace(changed(*a), preset="") == replace(changed(*b), preset="")
    assert (config_id(changed(*a)) == config_id(changed(*b))) == same


@given(st.sets(st.sampled_from(REGRESSION), max_size=4))
def test_an_id_survives_json(leaves: set[tuple[str, str]]) -> None:
    config = changed(*leaves)
    assert config_id(from_dict(json.loads(json.dumps(to_dict(config))))) == config_id(config)


def test_merged_matrices_are_another_id() -> None:
    plain = RegressionConfig()
    assert config_id(replace(plain, model=replace(plain.model, merged=True))) != config_id(plain)


def test_another_version_of_the_results_is_another_id(monkeypatch: pytest.MonkeyPatch) -> None:
    before = config_id(RegressionConfig())
    monkeypatch.setattr(identity, "RESULTS_VERSION", identity.RESULTS_VERSION + 1)
    assert config_id(RegressionConfig()) != before


def test_threads_are_those_asked_for_or_those_there_are(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    assert provenance.num_threads() == processors() <= len(os.sched_getaffinity(0))
    monkeypatch.setenv("NPROC", "7")
    assert provenance.num_threads() == 7


def test_provenance_says_what_a_result_came_from(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NPROC", "3")
    facts = provenance.provenance_of(RegressionConfig(data_seed=4, init_seed=5), "some device")
    expected = {"device": "some device", "threads": 3, "seeds": {"data_seed": 4, "init_seed": 5}}
    assert {name: facts[name] for name in expected} == expected
    assert facts["config_id"] == config_id(RegressionConfig(data_seed=4, init_seed=5))
    assert {facts["versions"][name] for name in ("jax", "numpy")} == {version("jax"), version("numpy")}
    needed = {"schema_version", "results_version", "command", "git_hash", "git_dirty", "platform", "prng", "precision"}
    assert needed <= set(facts)


def test_the_commit_is_gits(root: Path) -> None:
    asked = subprocess.run(["git", "rev-parse", "HEAD"], cwd=root, capture_output=True, text=True)
    expected = asked.stdout.strip() if asked.returncode == 0 else None
    assert provenance.provenance_of(RegressionConfig(), "")["git_hash"] == expected


def test_without_git_there_is_no_commit(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    facts = provenance.provenance_of(RegressionConfig(), "")
    assert (facts["git_hash"], facts["git_dirty"]) == (None, None)


EARLY, LATE, UNKNOWN = {"end": "2026-11-01T23:30:00+00:00"}, {"end": "2026-11-03T01:00:00+02:00"}, {"end": [7]}
AGAIN = "not trained again; --overwrite retrains"


@pytest.mark.parametrize(
    ("metas", "of", "line"),
    [
        ([], 3, ""),
        ([EARLY], 1, f"this run finished on 2026-11-01 at 23:30:00 UTC and was {AGAIN} it"),
        ([{}], 1, f"this run finished at a time that is not recorded and was {AGAIN} it"),
        ([EARLY], 3, f"1 of 3 runs finished earlier (2026-11-01) and were {AGAIN} them"),
        ([LATE, UNKNOWN, EARLY], 3, f"3 of 3 runs finished earlier (2026-11-01 to 2026-11-02) and were {AGAIN} them"),
        ([UNKNOWN, {}], 2, f"2 of 2 runs finished earlier (at times that are not recorded) and were {AGAIN} them"),
    ],
)
def test_runs_that_are_shown_have_their_dates(metas: list[dict], of: int, line: str) -> None:
    assert provenance.finished_notice(metas, of) == line
