"""What a run on functions leaves: its analyses, the columns of its table, when it has trained, its summary."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from icl_lab.families.functions.config import FunctionsConfig
from icl_lab.families.functions.function_class import NUMBER, FunctionClass
from icl_lab.families.summary import counted
from icl_lab.lab.configs import columns
from icl_lab.lab.configs.outputs import (
    Analysis,
    Columns,
    Criterion,
    Curve,
    NamedLoss,
    Outputs,
    Panel,
    Results,
    Summary,
)
from icl_lab.src.fields import every_kind
from icl_lab.src.registries import MODEL

LEARNT = 0.5  # of what the reference gains from the context
SHOWN = 5  # positions in a printed table
SAME = " = "  # between the names of predictors that predict the same
LABELS = {
    MODEL: "trained transformer",
    "bayes": "Bayes (exact)",
    "pool": "the pool's posterior (exact)",
    "prior": "the best constant",
    "least_squares": "least squares",
    "ridge": "ridge regression",
    "averaging": "averaging",
    "least_squares_on_squares": "least squares on squares",
    "arc_cosine_regression": "arc-cosine kernel regression",
    "nearest_neighbours": "3 nearest neighbours",
    "lasso": "lasso",
    "greedy_tree": "greedy tree",
    "greedy_tree_on_signs": "greedy tree on signs",
    "boosted_trees": "boosted trees",
    "boosted_trees_on_signs": "boosted trees on signs",
    "adam_network": "network by Adam",
    "oracle": "Bayes that is told the class",
    "likelier": "Bayes of the likelier class",
}
WHERE = {"id": "prompts as in training", "ood": "prompts outside of the pool"}

# --- columns of a table ---


class FieldsOfClasses(Mapping[str, Callable[[FunctionsConfig], Any]]):
    """A column for each field of a function class, as they are now; empty for classes without it."""

    def __init__(self, own: Mapping[str, Callable[[FunctionsConfig], Any]]):
        self._own = own

    def __getitem__(self, name: str) -> Callable[[FunctionsConfig], Any]:
        if name in self._own:
            return self._own[name]
        if name not in every_kind(FunctionClass):
            raise KeyError(name)
        return lambda config: getattr(config.function, name, None)

    def __iter__(self) -> Iterator[str]:
        yield from self._own
        yield from (name for name in every_kind(FunctionClass) if name not in self._own)

    def __len__(self) -> int:
        return sum(1 for _ in self)


ASKED = FieldsOfClasses(
    {
        "function": lambda config: config.function.kind,
        **columns.fields("data.dim", "data.num_pairs", "data.num_functions", "data.num_prompts"),
        **columns.fields("curriculum.start_dims", "curriculum.dims_every"),
        **columns.fields("curriculum.start_points", "curriculum.points_every"),
        **columns.fields("model.num_layers", "model.num_heads", "model.d_model", "training.lr", "training.steps"),
    }
)


def _on_test_set(name: str) -> Callable[[Results], Any]:
    return lambda results: results["headline"].get(name)


MEASURED: dict[str, Callable[[Results], Any]] = {
    "trained": columns.trained,
    **{
        f"test_{prefix}_{name}{se}": _on_test_set(f"{prefix}_{name}{se}")
        for prefix in WHERE
        for name in (*(f"{who}_loss" for who in (MODEL, "prior", "bayes", "pool")), "scale")
        for se in ("", "_se")
    },
}
MEANINGS_OF_COLUMNS = {
    "*_se": columns.MEANINGS["*_se"],
    "function": "the class of the functions",
    "dim": "inputs, D",
    "num_pairs": "pairs of a prompt, K",
    "num_functions": "functions in the pool, M; inf: a fresh one for each prompt",
    "num_prompts": "whole prompts in the training set; inf: all are fresh",
    "test_id_*_loss": "loss on prompts as in training (`tf`: the model), mean over positions",
    "test_ood_*_loss": "loss on prompts of functions outside of the pool (`tf`: the model), mean over positions",
    "*_scale": "gain of the model / gain of the reference: (L_prior - L_model) / (L_prior - L_reference)",
}

# --- when it has trained ---


def learnt(config: FunctionsConfig, summary: Summary) -> float | None:
    """The model's gain over the reference's on prompts as in training: 0 is the best constant, 1 the reference."""
    value = summary["headline"].get("id_scale")
    return None if value is None else float(value)


def without_scale(config: FunctionsConfig, summary: Summary) -> str | None:
    """Why nothing tells whether a run has trained, or None."""
    if summary["headline"].get("id_scale") is None:
        return "no predictor is known for the class that a model could at best be as good as"
    return None


# --- the printed summary ---


def unit(config: FunctionsConfig) -> str:
    """What losses are measured in."""
    return _of_targets(config, "squared error / variance", "log loss in nats")


def distance_unit(config: FunctionsConfig) -> str:
    """What distances of predictors are measured in."""
    return _of_targets(config, "squared difference / variance", "Jensen-Shannon divergence in nats")


def _of_targets(config: FunctionsConfig, of_numbers: str, of_others: str) -> str:
    targets = {member.target == NUMBER for member in config.function.members}
    return " or ".join(words for holds, words in {True: of_numbers, False: of_others}.items() if holds in targets)


def summary_lines(summary: Mapping[str, Any], run: Path, config: FunctionsConfig) -> list[str]:
    """The losses by position of the model, the reference and the baselines; the model's gain over the reference's."""
    numbers = summary["headline"]
    at = shown_positions(config.data.num_pairs)
    lines = [f"{unit(config)} on {numbers['tasks']} test prompts, after k pairs, ± s.e."]
    for prefix in (prefix for prefix in WHERE if f"{prefix}_{MODEL}_loss" in numbers):
        rows = _rows(numbers, prefix, at, config)
        width = max(map(len, rows)) + 2
        lines.append(f"  {WHERE[prefix]:<{width + 2}}" + "".join(f"{f'k = {k}':>14}" for k in at) + f"{'all k':>14}")
        lines += [f"    {label:<{width}}" + "".join(f"{cell:>14}" for cell in cells) for label, cells in rows.items()]
        reasons = {name: numbers.get(f"{prefix}_{name}_loss_reason") for name in LABELS}
        lines += [f"    {LABELS[name]:<{width}}  not defined: {reason}" for name, reason in reasons.items() if reason]
        if f"{prefix}_bayes_sampling_loss" in numbers:
            lines.append(
                f"    sampling adds about {numbers[f'{prefix}_bayes_sampling_loss']:.1g} nats to the loss of Bayes"
            )
    return lines


def _rows(
    numbers: Mapping[str, Any], prefix: str, at: Sequence[int], config: FunctionsConfig
) -> dict[str, tuple[str, ...]]:
    """The losses of all predictors on a set, and the model's gain over the reference's, by what a row is called."""
    rows = {}
    for name in predictors_of(numbers, prefix):
        losses, errors = numbers[f"{prefix}_{name}_losses"], numbers[f"{prefix}_{name}_losses_se"]
        mean = _cell(numbers[f"{prefix}_{name}_loss"], numbers[f"{prefix}_{name}_loss_se"])
        rows[label_of(config, name)] = (*(_cell(losses[k], errors[k]) for k in at), mean)
    if f"{prefix}_scale" in numbers:
        known = [_number(numbers[f"{prefix}_scales"][k]) for k in at]
        mean = _cell(numbers[f"{prefix}_scale"], numbers[f"{prefix}_scale_se"])
        label = f"gain / gain of {label_of(config, numbers[f'{prefix}_reference'])}"
        rows[label] = (*("" if math.isnan(value) else f"{value:.3f}" for value in known), mean)
    return rows


def label_of(config: FunctionsConfig, names: str) -> str:
    """What a predictor is called in a table, or several that predict the same."""
    return SAME.join(_label(config, name) for name in names.split(SAME))


def _label(config: FunctionsConfig, name: str) -> str:
    if name == "bayes" and config.function.is_sampled:
        return "Bayes (sampled)"
    member = name.removeprefix("member_")
    if member == name:
        return LABELS.get(name, name)
    return f"Bayes of member {int(member) + 1}, {config.function.members[int(member)].kind}"


def predictors_of(numbers: Mapping[str, Any], prefix: str) -> list[str]:
    """The predictors whose losses on a set a headline has, the model first."""
    ending = "_losses"
    return [
        name[len(prefix) + 1 : -len(ending)]
        for name in numbers
        if name.startswith(f"{prefix}_") and name.endswith(ending)
    ]


def shown_positions(num_pairs: int) -> list[int]:
    """The first position, the last, and some that are evenly spaced between them."""
    count = min(SHOWN, num_pairs)
    return sorted({round(index * (num_pairs - 1) / max(count - 1, 1)) for index in range(count)})


def _cell(loss: float | None, error: float | None) -> str:
    return "" if loss is None or math.isnan(loss) else f"{loss:.3f} ±{_number(error):.3f}"


def _number(value: float | None) -> float:
    return math.nan if value is None else float(value)


def meaning(summary: Mapping[str, Any], run: Path, config: FunctionsConfig) -> str:
    """What the decoder learnt of its class: how much of what the reference gains it gains."""
    numbers, data = summary["headline"], config.data
    pool = "" if data.num_functions == math.inf else f", pool of {counted(int(data.num_functions), 'function')}"
    layers = counted(config.model.num_layers, "layer")
    who = f"a decoder of {layers} on functions of the class {config.function.kind}{pool}, seed {config.data_seed}"
    told = [
        f"gains {_number(numbers[f'{prefix}_scale']):.1%} of what {label_of(config, best)} gains on {WHERE[prefix]}"
        for prefix in WHERE
        if (best := numbers.get(f"{prefix}_reference"))
    ]
    return f"{who}: {', '.join(told)}" if told else ""


PANELS = (
    Panel("training loss", (Curve("train_loss", "train batch", "train"), Curve("eval_loss", WHERE["id"], "model"))),
    Panel("loss over variance, or in nats", (Curve("eval_id_loss", WHERE["id"], "model"),)),
)

OUTPUTS = Outputs(
    loss_convention="loss: the mean over positions of squared error / variance, or of the log loss in nats",
    test_loss=NamedLoss("test_id_loss", columns.at("headline", "id_tf_loss")),
    columns=Columns(ASKED, MEASURED, meanings=MEANINGS_OF_COLUMNS),
    panels=PANELS,
    summary=summary_lines,
    analyses=(Analysis("functions", ("headline",)),),
    commands=("functions", "function_shifts", "nearest_algorithm"),
    criteria=(Criterion("gain from the context over that of the reference", learnt, LEARNT, at_least=True),),
    undefined=without_scale,
    meaning=meaning,
    label=label_of,
)
