"""What checkpoints of the family `tokens` are measured by: the parts of their rows, each with its nulls as columns.

Sequences are those of the run's evaluation set, whose losses are of all of them; every symbol's log-probabilities are
of as many as fit. Heads are scored on random symbols, which no statistic of a source predicts.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import jax
import numpy as np
from jax import Array

from icl_lab.analysis.development import heads, previous_token_head, token_metrics
from icl_lab.analysis.development.attention_patterns import are_distributions
from icl_lab.analysis.development.part import Measure, Part
from icl_lab.analysis.loaded_run import LoadedRun
from icl_lab.families.tokens import task, text
from icl_lab.families.tokens.config import TokensConfig
from icl_lab.families.tokens.data import TokenData
from icl_lab.families.tokens.shared import language_of
from icl_lab.families.tokens.sources import Predictor, source_of
from icl_lab.src import patching
from icl_lab.src.batch import TokenBatch
from icl_lab.src.model import Model, Params
from icl_lab.src.statistics import means_and_errors

AT_ONCE = 2**21  # log-probabilities of every symbol in memory, and those that divergences from predictors are of
OF_BIGRAMS = 2**23  # those that the bigram divergence is of
WINDOWS = 32  # random sequences
LATER = 128  # sequences of which match mass and the loss on later occurrences are
RANDOM, REPEATED, OTHERS = range(3)  # seeds of random sequences: of scores, of copies, of the ablation
NGRAMS = (2, 3, 4)
COMPARED = {"markov": "bayes", "triggers": "bayes", "text": "kneser_ney_4"}  # whose ICL score is subtracted
PATTERNS = "blocks.*.attn.pattern"
LAYERS = "the model has one layer"


class Sized(NamedTuple):
    """A run with its sequences x [B, T], and its predictors."""

    loaded: LoadedRun
    x: np.ndarray
    predictors: Mapping[str, Predictor]

    @property
    def config(self) -> TokensConfig:
        """The run's config."""
        config: TokensConfig = self.loaded.config
        return config

    @property
    def data(self) -> TokenData:
        """The config of its sequences."""
        return self.config.data

    def first(self, numbers: int) -> np.ndarray:
        """The first sequences, of which so many log-probabilities are."""
        return self.x[: max(2, numbers // (self.data.num_symbols * self.data.num_tokens))]


def parts_of(loaded: LoadedRun) -> list[Part]:
    """The parts of a run of tokens, in the order of their columns; of a run of another family none."""
    config = loaded.config
    if not isinstance(config, TokensConfig):
        return []
    run = Sized(loaded, task.sequences_of(loaded.batch, config.data), source_of(config.data).predictors(config))
    made = (_phases, _bigrams, _of_losses, _heads, _copies, _matches, _composition, _ablation)
    return [part(run) for part in made]


def said(rows: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """What a table of checkpoints comes to, in words, of what it has."""
    last, found = rows[-1], dict[str, str]()
    if "phase" in last:
        changes = [row for before, row in zip([{}, *rows], rows, strict=False) if before.get("phase") != row["phase"]]
        found["phases"] = ", ".join(f"{row['phase']} from step {row['step']}" for row in changes)
    if "bigram_divergence" in last:
        value, step = token_metrics.least([row["step"] for row in rows], [row["bigram_divergence"] for row in rows])
        found["bigram divergence"] = f"least at step {step}: {value:.4g}"
    if "ablation_previous_token_head" in last:
        others = last.get("ablation_other_heads")
        beside = "" if others is None else f", without another head of its layer by {others:+.3g}"
        loss = "copy loss" if "copy_loss" in last else "loss on later occurrences"
        change = last["ablation_previous_token_head"]
        found["ablation"] = f"without the previous-token head the {loss} changes by {change:+.3g}{beside}"
    return found


# --- statistics of the source ---


def _phases(run: Sized) -> Part:
    """kl_NAME from each predictor, null_kl_unigram of chains, the nearest predictor and the phase."""
    x, data = run.first(AT_ONCE), run.data
    references = {name: predictor.of_all(x) for name, predictor in run.predictors.items()}
    phases = token_metrics.phases_of(data.source, data.chain_order, [*references])
    nulls = dict[str, float]()
    if data.source == "markov":
        least = token_metrics.tempered_divergence(references["unigram"], references["bayes"])
        nulls["null_kl_unigram"] = least
    batch = task.as_batch(x, data)

    def measure(then: LoadedRun) -> dict[str, Any]:
        log_p = task.of_all(then.model, then.params, batch)
        far = {f"kl_{name}": task.divergence(of, log_p) for name, of in references.items()}
        nearest = min(references, key=lambda name: far[f"kl_{name}"])
        return far | nulls | {"nearest": nearest, "phase": token_metrics.phase(far | nulls, phases)}

    return Part(measure)


BIGRAMS: Mapping[str, Callable[[TokenData], np.ndarray]] = {
    "triggers": lambda data: np.asarray(language_of(data).bigrams, float),
    "text": lambda data: token_metrics.bigrams_of(text.text_of(data.file, data.num_symbols).train, data.num_symbols),
}


def _bigrams(run: Sized) -> Part:
    """bigram_divergence."""
    data = run.data
    if data.source not in BIGRAMS:
        return Part(missing=("no bigram divergence: every chain has bigrams of its own",))
    q, x = BIGRAMS[data.source](data), run.first(OF_BIGRAMS)
    each = max(1, AT_ONCE // (data.num_symbols * data.num_tokens))
    parts = [x[begin : begin + each] for begin in range(0, len(x), each)]

    def measure(then: LoadedRun) -> dict[str, float]:
        found = [
            token_metrics.bigram_divergences(q, task.of_all(then.model, then.params, task.as_batch(part, data)), part)
            for part in parts
        ]
        return {"bigram_divergence": float(np.concatenate(found).mean())}

    return Part(measure)


# --- losses by position ---

OfLosses = Callable[[LoadedRun, np.ndarray], Mapping[str, float]]  # of a checkpoint and its losses [B, T - 1]


class LossPart(NamedTuple):
    """A part of which the losses are computed already."""

    measure: OfLosses = lambda checkpoint, losses: {}
    missing: tuple[str, ...] = ()


def _losses(then: LoadedRun, batch: TokenBatch) -> np.ndarray:
    return -task.of_next(then.model, then.params, batch, then.config.data.num_symbols)


def _of_losses(run: Sized) -> Part:
    """What follows from the losses at each position, which are computed once."""
    parts = [part(run) for part in (_in_context, _ngrams, _positions)]

    def measure(then: LoadedRun) -> dict[str, float]:
        losses = _losses(then, then.batch)
        return {name: value for part in parts for name, value in part.measure(then, losses).items()}

    return Part(measure, tuple(sentence for part in parts for sentence in part.missing))


def _in_context(run: Sized) -> LossPart:
    """icl_score, and icl_score_minus_NAME of a predictor on the same sequences, with standard errors."""
    positions, name = run.data.num_tokens - 1, COMPARED[run.data.source]
    if positions < token_metrics.FEWEST_POSITIONS:
        few = f"{positions} positions are fewer than {token_metrics.FEWEST_POSITIONS}"
        return LossPart(missing=(f"no ICL score: {few}",))
    null = token_metrics.icl_scores(-run.predictors[name].of_next(run.x))

    def measure(then: LoadedRun, losses: np.ndarray) -> dict[str, float]:
        scores = token_metrics.icl_scores(losses)
        numbers = means_and_errors({"icl_score": scores, f"icl_score_minus_{name}": scores - null})
        return {**numbers, f"null_icl_score_{name}": float(null.mean())}

    return LossPart(measure)


def _ngrams(run: Sized) -> LossPart:
    """ngram_score_n, by the same decoder of as many rows as n-grams have."""
    config, data = run.config, run.data
    if data.source != "text":
        return LossPart(missing=("no n-gram scores: they are measured only for text",))
    train, k = text.text_of(data.file, data.num_symbols).train, data.num_symbols
    lengths = [length for length in NGRAMS if length <= data.num_tokens]
    shortened = replace(data, num_tokens=lengths[-1], repeated_share=0.0, shortest_repeat=0)  # nothing is drawn
    short = replace(config, data=shortened)
    model = task.make_model(short)
    grams = [token_metrics.frequent(train, length, k) for length in lengths]
    padded = [np.pad(own, ((0, 0), (0, lengths[-1] - own.shape[1]))) for own in grams]
    batch, ends = task.as_batch(np.concatenate(padded).astype(np.int32), short.data), np.cumsum([*map(len, grams)])

    def measure(then: LoadedRun, losses: np.ndarray) -> dict[str, float]:
        params = previous_token_head.shortened(then.params, short.data.rows)
        alone = np.split(-task.of_next(model, params, batch, k), ends[:-1])
        found = zip(lengths, alone, strict=True)
        return {f"ngram_score_{n}": token_metrics.ngram_score(losses, own[:, n - 2], n) for n, own in found}

    return LossPart(measure)


def _positions(run: Sized) -> LossPart:
    """positional_ablation: the loss with learned positions 0, less the loss."""
    if not previous_token_head.has_positions(run.loaded.params):
        kind = run.config.model.positions
        return LossPart(missing=(f"no positional ablation: positions are {kind!r}, so none are learned",))

    def measure(then: LoadedRun, losses: np.ndarray) -> dict[str, float]:
        without = replace(then, params=previous_token_head.without_positions(then.params))
        return {"positional_ablation": float((_losses(without, then.batch) - losses).mean())}

    return LossPart(measure)


# --- heads ---


@partial(jax.jit, static_argnums=0)
def _maps(model: Model, params: Params, batch: TokenBatch) -> dict[str, Array]:
    return patching.capture(model, params, batch, PATTERNS)


@partial(jax.jit, static_argnums=0)
def _maps_and_predictions(model: Model, params: Params, batch: TokenBatch) -> tuple[Array, dict[str, Array]]:
    logits, maps = patching.run(model, params, batch, PATTERNS)
    return jax.nn.log_softmax(logits), maps


def _random(run: Sized, seed: int) -> TokenBatch:
    shape = (WINDOWS, run.data.num_tokens)
    x = np.random.default_rng(seed).integers(run.data.num_symbols, size=shape, dtype=np.int32)
    return task.as_batch(x, run.data)


def _attending(run: Sized) -> list[int]:
    """The layers whose weights are distributions, as the trained model shows them."""
    maps = _maps(run.loaded.model, run.loaded.params, _random(run, RANDOM))
    return [layer for layer in range(run.config.model.num_layers) if are_distributions(_of(maps, layer))]


def _of(maps: Mapping[str, Array], layer: int) -> np.ndarray:
    return np.asarray(maps[f"blocks.{layer}.attn.pattern"])


def _named(name: str, by_layer: Mapping[int, np.ndarray]) -> Iterator[tuple[str, float]]:
    """layer_L_head_H_NAME of scores [H] by layer."""
    for layer, values in by_layer.items():
        yield from ((f"layer_{layer}_head_{head}_{name}", float(value)) for head, value in enumerate(values))


def _heads(run: Sized) -> Part:
    """Of each head previous_token and, with a start symbol, start_attention, on random symbols."""
    start, batch, layers = int(run.data.start_token), _random(run, RANDOM), _attending(run)
    if not layers:
        return Part(missing=("no scores of heads: their weights are no distributions",))
    even = heads.uniform(run.data.rows)
    scores: dict[str, Callable[[np.ndarray], np.ndarray]] = {
        "previous_token": partial(heads.previous_token, start=start)
    }
    if start:
        scores["start_attention"] = heads.start_attention
    nulls = {f"null_{name}": float(score(even)[0]) for name, score in scores.items()}

    def measure(then: LoadedRun) -> dict[str, float]:
        maps = _maps(then.model, then.params, batch)
        found = {name: {layer: score(_of(maps, layer)) for layer in layers} for name, score in scores.items()}
        return {column: value for name, own in found.items() for column, value in _named(name, own)} | nulls

    return Part(measure, () if start else ("no attention to a start symbol: sequences have none",))


def _without_repeats(data: TokenData) -> str | None:
    """Why there is no r r of distinct symbols."""
    few = min(data.num_symbols, data.num_tokens // 2)
    needed = token_metrics.FEWEST_DISTINCT
    return None if few >= needed else f"no {needed} distinct symbols can come twice in a sequence"


def _copies(run: Sized) -> Part:
    """copy_loss and copy_accuracy on r r, and of each head prefix_matching."""
    data, lacking = run.data, _without_repeats(run.data)
    if lacking:
        return Part(missing=(f"no copy loss and no prefix matching: {lacking}",))
    layers, start = _attending(run), int(data.start_token)
    x, half = token_metrics.distinct_repeats(REPEATED, WINDOWS, data.num_symbols, data.num_tokens)
    batch, score = task.as_batch(x, data), partial(heads.prefix_matching, half=half, start=start)
    nulls = {"null_copy_accuracy": 1 / data.num_symbols}
    if layers:
        nulls["null_prefix_matching"] = float(score(heads.uniform(data.rows))[0])

    def measure(then: LoadedRun) -> dict[str, float]:
        log_p, maps = _maps_and_predictions(then.model, then.params, batch)
        found = _named("prefix_matching", {layer: score(_of(maps, layer)) for layer in layers})
        return token_metrics.copy_scores(np.asarray(log_p), x, half) | dict(found) | nulls

    return Part(measure)


def _matches(run: Sized) -> Part:
    """match_mass of each head above the first layer, of chains by as many symbols as they depend on."""
    data, layers = run.data, [layer for layer in _attending(run) if layer > 0]
    if data.source == "text":
        return Part(missing=("no match mass: it is measured only for chains and triggers; text has prefix matching",))
    if run.config.model.num_layers == 1:
        return Part(missing=(f"no match mass: {LAYERS}",))
    x, start = run.x[:LATER], int(data.start_token)
    batch, matching = task.as_batch(x, data), heads.matches(x[:, :-1], data.chain_order)
    null = heads.uniform_match_mass(matching, start)

    def measure(then: LoadedRun) -> dict[str, float]:
        maps = _maps(then.model, then.params, batch)
        found = {layer: heads.match_mass(_of(maps, layer), matching, start) for layer in layers}
        return {**dict(_named("match_mass", found)), "null_match_mass": null}

    return Part(measure)


def _composition(run: Sized) -> Part:
    """k_composition_h of each head above the first layer, with head h of the layer below."""
    model = run.config.model
    if model.num_layers == 1:
        return Part(missing=(f"no K-composition: {LAYERS}",))
    null = heads.random_k_composition(model.d_model, model.num_heads)

    def measure(then: LoadedRun) -> dict[str, float]:
        layers = [heads.circuits(then.params, layer, model.num_heads) for layer in range(model.num_layers)]
        found = dict[str, float]()
        for layer in range(1, model.num_layers):
            with_each = heads.k_composition(layers[layer - 1].ov, layers[layer].qk).T
            for below, values in enumerate(with_each):
                found |= dict(_named(f"k_composition_{below}", {layer: values}))
        return found | {"null_k_composition": null}

    return Part(measure)


# --- ablation ---


def _ablation(run: Sized) -> Part:
    """The change of a loss without each head of the layer below the last: of that with the highest previous_token.

    Heads are scored on random sequences, and the loss is that of others.
    """
    model, layer = run.config.model, run.config.model.num_layers - 2
    if layer < 0:
        return Part(missing=(f"no ablation of the previous-token head: {LAYERS}",))
    if layer not in _attending(run):
        return Part(missing=(f"no ablation of the previous-token head: layer {layer} has no distributions",))
    scored, start = _random(run, OTHERS), int(run.data.start_token)
    batch, weights = _later(run)

    def measure(then: LoadedRun) -> dict[str, float]:
        scores = heads.previous_token(_of(_maps(then.model, then.params, scored), layer), start)
        found = previous_token_head.ablation(then.model, then.params, layer, scores, batch, weights)
        values = {"previous_token_head": found.chosen, "ablation_previous_token_head": found.changes[found.chosen]}
        others = {} if found.others is None else {"ablation_other_heads": found.others}
        return {**values, **others, **dict(_named("ablation", {layer: found.changes}))}

    alone = f"no ablation of other heads: layer {layer} has one head"
    return Part(_as_numbers(measure), (alone,) if model.num_heads == 1 else ())


def _as_numbers(measure: Callable[[LoadedRun], Mapping[str, Any]]) -> Measure:
    return lambda then: {name: float(value) for name, value in measure(then).items()}


def _later(run: Sized) -> tuple[TokenBatch, np.ndarray]:
    """Sequences, and weights [B, P] of their losses whose sum is the loss of what is copied.

    The copy loss on r r. Of chains of few symbols the mean where those that the next one depends on have come before.
    """
    data = run.data
    if _without_repeats(data):
        x = run.x[:LATER]
        where = heads.matches(x[:, :-1], data.chain_order).any(axis=-1)
        return task.as_batch(x, data), where / max(where.sum(), 1)
    x, half = token_metrics.distinct_repeats(OTHERS, WINDOWS, data.num_symbols, data.num_tokens)
    weights = token_metrics.copy_weights(half, data.num_tokens - 1)
    return task.as_batch(x, data), np.tile(weights / len(x), (len(x), 1))
