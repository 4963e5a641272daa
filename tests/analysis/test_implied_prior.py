"""The prior that predictions imply: that of the exact rule is found again, and a model's positions are continued."""

import json
from dataclasses import replace
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from icl_lab.analysis import implied_prior
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.tokens import markov
from icl_lab.families.tokens.config import TokenModel, TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.task import make_model
from icl_lab.lab.configs.run import RunConfig
from icl_lab.src.batch import TokenBatch
from icl_lab.src.checks import ConfigError
from icl_lab.src.model import Model
from icl_lab.src.prng import key

K, LENGTH = 3, 24
DATA = TokenData(num_symbols=K, num_tokens=LENGTH)
MODEL = TokenModel(num_layers=2, num_heads=1, d_model=8, mlp_width=0, block="plain", positions="relative")
CONFIG = TokensConfig(data=DATA, model=MODEL)


class Rule:
    """A model that says what the exact rule of a prior says."""

    def __init__(self, alpha: float):
        self.alpha = alpha

    def predict(self, params: object, batch: TokenBatch) -> jax.Array:
        x = jnp.concatenate([batch.x, batch.y_query[:, -1:]], axis=1)
        return markov.bayes(x, K, 1, self.alpha)


def loaded(alpha: float, config: RunConfig = CONFIG) -> LoadedRun:
    rule: Model = Rule(alpha)  # type: ignore[assignment]  # it has what is used of a model
    return LoadedRun(Path("run"), config, rule, {}, None)


@pytest.mark.parametrize("alpha", [0.3, 1.0, 4.0])
def test_the_rules_own_prior_is_found(alpha: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implied_prior, "on_longer", lambda run, config: {})
    found = implied_prior.implied_prior(loaded(alpha))
    assert found["alpha"] == pytest.approx(alpha, rel=2e-3)  # the search ends within 1e-4 of the logarithm
    assert found["kl"] == pytest.approx(0, abs=1e-6)
    assert found["kl_trained"] == pytest.approx(0, abs=1e-6) if alpha == 1 else found["kl_trained"] > 1e-3


def test_on_chains_of_other_priors_the_rule_of_theirs_is_better(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(implied_prior, "on_longer", lambda run, config: {})
    for prior, numbers in implied_prior.implied_prior(loaded(1.0))["priors"].items():
        assert numbers["over_own_prior"] == pytest.approx(0, abs=1e-6)
        gain = numbers["over_their_prior"]
        assert gain == pytest.approx(0, abs=1e-6) if prior == "1" else gain > 2 * numbers["over_their_prior_se"]


@pytest.mark.parametrize("positions", ["relative", "none"])
def test_on_more_rows_a_model_says_the_same_of_the_first(positions: str) -> None:
    config = replace(CONFIG, model=replace(MODEL, positions=positions))
    model, longer = make_model(config), replace(config, data=replace(DATA, num_tokens=2 * LENGTH))
    params = jax.tree.map(lambda leaf: leaf + 0.1, model.init(key(0)))
    continued = implied_prior.with_rows(params, config, longer.data.rows)
    assert continued is not None
    x = jax.random.randint(jax.random.key(1), (4, 2 * LENGTH), 0, K)
    short = model.predict(params, TokenBatch(x[:, : LENGTH - 1], x[:, 1:LENGTH]))
    long = make_model(longer).predict(continued, TokenBatch(x[:, :-1], x[:, 1:]))
    np.testing.assert_allclose(long[:, : LENGTH - 1], short, atol=1e-5)


def test_a_table_of_positions_is_not_continued() -> None:
    config = replace(CONFIG, model=replace(MODEL, positions="query_key"))
    assert implied_prior.with_rows({}, config, 2 * LENGTH) is None


def test_it_is_of_markov_chains_alone() -> None:
    config = replace(CONFIG, data=TokenData(source="triggers", num_symbols=16, num_tokens=LENGTH))
    with pytest.raises(ConfigError, match="this analysis is only for Markov chains"):
        implied_prior.implied_prior(loaded(1.0, config))


def test_what_it_finds_is_json() -> None:
    found = implied_prior.on_chains_of(loaded(1.0), CONFIG, 0.3)
    assert json.loads(json.dumps(found)) == found
