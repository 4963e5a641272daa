"""What checkpoints of runs of symbols are measured by: models of each source, and a table in words."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from icl_lab.analysis.development import token_parts
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.task import model_of
from icl_lab.families.tokens import task
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.sources import source_of
from icl_lab.src.prng import Purpose, key
from icl_lab.store import layout
from icl_lab.store.readers import read_json_lines
from tests.runners.tiny import Workshop, copied

SIZES = (
    "--steps 40 --eval_every 20 --batch_size 8 --config.eval_tasks=64 --config.test_tasks=64 --config.d_model=12 "
    "--config.num_tokens=24"
).split()
PLAIN: dict[str, Any] = {"block": "plain", "num_layers": 2, "mlp_width": 0}


def untrained(data: TokenData, **model: Any) -> LoadedRun:
    """A model before training, with its evaluation batch."""
    config = TokensConfig(data=data, eval_tasks=24, test_tasks=24)
    config = replace(config, model=replace(config.model, **(PLAIN | model)))
    x = source_of(data).drawn(config, Purpose.EVAL, 24).x
    made = model_of(config)
    return LoadedRun(Path(), config, made, made.init(key(0)), task.as_batch(x, data))


def measured(loaded: LoadedRun) -> tuple[dict[str, Any], list[str]]:
    """The row of a model, and what it lacks."""
    parts = token_parts.parts_of(loaded)
    row = {name: value for part in parts for name, value in part.measure(loaded).items()}
    return row, [sentence for part in parts for sentence in part.missing]


@pytest.mark.slow
def test_a_run_of_chains_has_a_table_and_a_figure(workshop: Workshop, tmp_path: Path) -> None:
    run = copied(workshop.finished("tokens_markov", "runners.run_tokens", sizes=SIZES), tmp_path / "run")
    done = workshop.run("analysis.developmental_metrics", "--run", run)
    assert done.returncode == 0, done.stderr
    rows = pd.read_csv(run / layout.DEVELOPMENTAL_METRICS)
    assert rows.notna().all(axis=None)
    records = [record for record in read_json_lines(run / layout.METRICS) if record["step"] in {*rows["step"]}]
    for name in ("uniform", "unigram", "bayes"):
        np.testing.assert_allclose(rows[f"kl_{name}"], [record[f"eval_kl_{name}"] for record in records], rtol=1e-4)
    assert rows["positional_ablation"][0] == 0  # numbers by distance begin at 0
    assert rows["phase"][0] == "uniform"
    of_heads = {name for name in rows if name.startswith("layer_1_head_0")}
    assert {"layer_1_head_0_match_mass", "layer_1_head_0_start_attention", "layer_1_head_0_k_composition_0"} <= of_heads
    assert "phases                 uniform from step 0" in done.stdout
    for sentence in (
        "no bigram divergence: every chain has bigrams of its own",
        "no copy loss and no prefix matching: no 8 distinct symbols can come twice in a sequence",
        "no ablation of other heads: layer 0 has one head",
    ):
        assert sentence in done.stdout
    assert (run / layout.DEVELOPMENTAL_METRICS_FIGURE).read_bytes().startswith(b"\x89PNG")


def test_a_model_that_says_every_symbol_is_as_likely_has_all_nulls() -> None:
    """With a read-out of 0 losses are log k; with queries of 0 attention is uniform."""
    data = TokenData(source="text", num_symbols=1024, num_tokens=33, repeated_share=0.5, shortest_repeat=8)
    loaded = untrained(data, num_heads=2, d_model=16, positions="query_key")
    params = {module: {name: np.asarray(value) for name, value in own.items()} for module, own in loaded.params.items()}
    params["read_out"] = {"symbols": 0 * params["read_out"]["symbols"]}
    for layer in range(2):
        params[f"layer_{layer}/attention/query_key"] = {"w": 0 * params[f"layer_{layer}/attention/query_key"]["w"]}
    row, missing = measured(replace(loaded, params=params))
    for length in (2, 3, 4):
        assert row[f"ngram_score_{length}"] == pytest.approx(1, abs=1e-6)
    for name in ("icl_score", "copy_loss", "positional_ablation", "ablation_previous_token_head", "kl_uniform"):
        assert row[name] == pytest.approx(0, abs=1e-5)
    assert row["icl_score_minus_kneser_ney_4"] == pytest.approx(-row["null_icl_score_kneser_ney_4"], abs=1e-5)
    assert row["phase"] == "uniform"
    for head in ("layer_0_head_0", "layer_1_head_1"):
        for name in ("previous_token", "prefix_matching"):
            assert row[f"{head}_{name}"] == pytest.approx(row[f"null_{name}"], rel=1e-5)
    assert row["null_prefix_matching"] == pytest.approx(np.mean(1 / np.arange(17, 33)))
    assert row["null_copy_accuracy"] == 1 / 1024
    # log V less the mean entropy of bigrams, over positions
    assert 0 < row["bigram_divergence"] < np.log(1024)
    assert missing == [
        "no attention to a start symbol: sequences have none",
        "no match mass: it is measured only for chains and triggers; text has prefix matching",
    ]


def test_a_model_of_one_layer_says_what_it_lacks() -> None:
    data = TokenData(source="triggers", num_symbols=10, num_tokens=20, start_token=True)
    row, missing = measured(untrained(data, num_layers=1, positions="rotary", d_model=8))
    for sentence in (
        "no match mass: the model has one layer",
        "no K-composition: the model has one layer",
        "no ablation of the previous-token head: the model has one layer",
        "no positional ablation: positions are 'rotary', so none are learned",
    ):
        assert sentence in missing
    assert {"copy_loss", "layer_0_head_0_start_attention", "bigram_divergence", "icl_score_minus_bayes"} <= set(row)


def test_a_short_sequence_has_no_icl_score() -> None:
    _, missing = measured(untrained(TokenData(num_tokens=12), d_model=8, positions="none"))
    assert "no ICL score: 11 positions are fewer than 12" in missing


def test_a_table_in_words() -> None:
    rows = [
        {"step": 0, "phase": "uniform", "bigram_divergence": 3.0, "ablation_previous_token_head": 0.0},
        {"step": 50, "phase": "bigram", "bigram_divergence": 0.5, "ablation_previous_token_head": 0.1},
        {"step": 90, "phase": "bigram", "bigram_divergence": 1.0, "ablation_previous_token_head": 0.75},
    ]
    assert token_parts.said(rows) == {
        "phases": "uniform from step 0, bigram from step 50",
        "bigram divergence": "least at step 50: 0.5",
        "ablation": "without the previous-token head the loss on later occurrences changes by +0.75",
    }
    last = rows[-1] | {"ablation_other_heads": -0.01, "copy_loss": -2.0}
    expected = (
        "without the previous-token head the copy loss changes by +0.75, without another head of its layer by -0.01"
    )
    assert token_parts.said([last])["ablation"] == expected
    assert token_parts.said([{"step": 0}]) == {}
