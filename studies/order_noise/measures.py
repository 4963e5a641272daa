"""The contrasts of the order and noise study, by question: declared before any of its runs was inspected.

They were formulated on runs of other seeds, which are no part of the study. Holm's correction is over the
differences of one question. Where no effect is claimed, the test is one of equivalence.
"""

from __future__ import annotations

from collections.abc import Iterator

from icl_lab.src.config import PLACEMENTS
from icl_lab.studies.contrast import CLEAN, Condition, Context, Contrast, Ratio
from icl_lab.studies.order_noise.runs import MODELS, NOISE, RATE, RATES, SORTED

# column of the table -> the baseline's name, which says what it knows
BASELINES = {
    "test_gd_loss": "gd_clean_step",
    "test_gd_tuned_step_loss": "gd_tuned_step",
    "test_linear_mmse_loss": "linear_mmse",
    "test_mask_bayes_loss": "mask_bayes",
}
SHIFTED = tuple(placement for placement in PLACEMENTS if placement != "mixed")
GD_BASELINES = (
    "test_gd_loss",
    "test_gd_tuned_step_loss",
)  # the models are expected to be like them, not like the others
LABEL_NOISE = Context(noise_mode="label_noise", p=RATE)

# What theory says of a model's dependence on order: lsa1 sums over pairs; the optimum of lsa1_pe is gradient descent
# for every order; of twolayer it says nothing.
ORDER_KIND = {"lsa1": "exact", "lsa1_pe": "equivalence", "twolayer": "difference"}
TRAINED_KIND = {"lsa1": "equivalence", "lsa1_pe": "equivalence", "twolayer": "difference"}


def order_at_evaluation() -> Iterator[Contrast]:
    """Trained in random order, tested in another."""
    for model in MODELS:
        for ordering in SORTED:
            yield _against_clean(
                "order at evaluation", f"{model}: {ordering}", ORDER_KIND[model], model, CLEAN, ordering
            )


def order_in_training() -> Iterator[Contrast]:
    """Trained in another order, tested in that order or in random order."""
    for model in MODELS:
        for trained in SORTED:
            for tested in (trained, "random"):
                name = f"{model}: trained {trained}, tested {tested}"
                kind = TRAINED_KIND[model]
                yield _against_clean("order in training", name, kind, model, Context(trained), tested)


def _against_clean(question: str, name: str, kind: str, model: str, train: Context, ordering: str) -> Contrast:
    return Contrast(question, name, kind, [Condition(model, train, Context(ordering))], [Condition(model)])


def noise_at_evaluation() -> Iterator[Contrast]:
    """Trained clean, tested on corrupted contexts: the loss against each baseline's on the same contexts.

    And whether what lies above gradient descent grows with the noise: the ratio of losses against the clean one.
    """
    question = "noise at evaluation"
    for model in MODELS:
        for noise in _noises():
            for column, baseline in BASELINES.items():
                kind = "equivalence" if column in GD_BASELINES else "difference"
                name = f"{model}: {_words(noise)} / {baseline}"
                yield _against(question, name, kind, model, CLEAN, noise, column)
            noisy, clean = (_over_gd(model, test) for test in (noise, CLEAN))
            name = f"{model}: {_words(noise)} / gd_clean_step, against the same clean"
            yield Contrast(question, name, "equivalence", [noisy], [clean])


def noise_in_training() -> Iterator[Contrast]:
    """Trained on corrupted contexts: against training on clean ones, tested on either, and against the tuned step."""
    question = "noise in training"
    for model in MODELS:
        for noise in _noises():
            trained, untrained = Condition(model, noise, noise), Condition(model, CLEAN, noise)
            yield Contrast(question, f"{model}: {_words(noise)}, tested on it", "difference", [trained], [untrained])
            tested_clean = Condition(model, noise, CLEAN)
            name = f"{model}: {_words(noise)}, tested clean"
            yield Contrast(question, name, "difference", [tested_clean], [Condition(model)])
            name = f"{model}: {_words(noise)}, tested on it / gd_tuned_step"
            yield _against(question, name, "equivalence", model, noise, noise, "test_gd_tuned_step_loss")


def step_size() -> Iterator[Contrast]:
    """The step that a model takes, in steps of gradient descent on clean tasks: the slope of its predictions on those.

    Trained on noise against trained clean, and against the best step for that noise.
    """
    question = "the step a model takes"
    for model in MODELS:
        for noise in _noises():
            trained = Condition(model, noise, noise, "eval_slope")
            untrained = Condition(model, CLEAN, noise, "eval_slope")
            best = Condition(model, noise, noise, "gd_tuned_over_clean_step")
            name = f"{model}: {_words(noise)}, against trained clean"
            yield Contrast(question, name, "difference", [trained], [untrained], "step")
            name = f"{model}: {_words(noise)}, against the tuned step"
            yield Contrast(question, name, "equivalence", [trained], [best], "step")


def _against(question: str, name: str, kind: str, model: str, train: Context, test: Context, column: str) -> Contrast:
    model_loss, other = Condition(model, train, test), Condition(model, train, test, column)
    return Contrast(question, name, kind, [model_loss], [other])


def _over_gd(model: str, test: Context) -> Ratio:
    return Ratio(Condition(model, CLEAN, test), Condition(model, CLEAN, test, "test_gd_loss"))


# score -> the column of its AUROC, and gradient descent's own
SCORES = {
    "influence": ("auroc", "gd_auroc"),
    "contribution": ("auroc_abs_contribution", "gd_auroc_abs_contribution"),
    "attention": ("auroc_abs_attention", "gd_auroc_abs_attention"),
}
BY_SCORE = {score: f"noise and the size of {score}" for score in SCORES}  # the questions
COPYING = "noise and the copying layer"


def attention() -> Iterator[Contrast]:
    """Whether scores tell corrupted from clean pairs within positions as gradient descent's own do: AUROC.

    Of the layers that do gradient descent; of the copying one |contribution| alone: its attention is uninformative.
    """
    for score, columns in SCORES.items():
        for model in MODELS:
            yield from _against_own(BY_SCORE[score], "equivalence", model, *columns)
    yield from _against_own(
        COPYING, "difference", "twolayer", "auroc_first_abs_contribution", SCORES["contribution"][1]
    )


def _against_own(question: str, kind: str, model: str, column: str, descent: str) -> Iterator[Contrast]:
    for noise in _noises():
        for train, word in ((CLEAN, "clean"), (noise, "on it")):
            name = f"{model}: {_words(noise)}, trained {word}"
            yield _auroc(question, name, kind, model, train, noise, column, descent)


def attention_and_training() -> Iterator[Contrast]:
    """Whether training on the noise changes how scores tell corrupted from clean pairs."""
    for model in MODELS:
        for noise in _noises():
            for score in ("influence", "contribution"):
                name = f"{model}: |{score}|, {_words(noise)}"
                treated, control = ([Condition(model, train, noise, SCORES[score][0])] for train in (noise, CLEAN))
                yield Contrast("attention after training on noise", name, "equivalence", treated, control, "auroc")


def attention_and_placement() -> Iterator[Contrast]:
    """What is left of a raw AUROC, over pairs at all positions, when it is computed within positions.

    |influence|, trained under label noise in one place and tested with it in the same or the other, against gradient
    descent's own.
    """
    question = "attention and placement"
    for model in ("lsa1_pe", "twolayer"):
        for trained in ("mixed", *SHIFTED):
            for tested in SHIFTED:
                train, test = (LABEL_NOISE._replace(placement=place) for place in (trained, tested))
                name = f"{model}: trained {trained}, tested {tested}"
                yield _auroc(question, f"{name}, raw", "difference", model, train, test, "auroc_raw", "gd_auroc_raw")
                name = f"{name}, within positions"
                yield _auroc(question, name, "equivalence", model, train, test, "auroc", "gd_auroc")


def _auroc(
    question: str, name: str, kind: str, model: str, train: Context, test: Context, column: str, descent: str
) -> Contrast:
    condition, other = (Condition(model, train, test, which) for which in (column, descent))
    return Contrast(question, name, kind, [condition], [other], "auroc")


def placement() -> Iterator[Contrast]:
    """Where corrupted pairs stand: at evaluation alone; and whether training with a placement helps on it."""
    for model in MODELS:
        for mode in NOISE:
            for place in SHIFTED:
                noise, mixed = Context(noise_mode=mode, p=RATE, placement=place), Context(noise_mode=mode, p=RATE)
                name = f"{model}: {mode} {place}, at evaluation"
                treated, control = [Condition(model, CLEAN, noise)], [Condition(model, CLEAN, mixed)]
                yield Contrast("placement", name, ORDER_KIND[model], treated, control)
        for trained in SHIFTED:
            for tested in PLACEMENTS:
                train, test = LABEL_NOISE._replace(placement=trained), LABEL_NOISE._replace(placement=tested)
                name = f"{model}: trained {trained}, tested {tested}"
                treated, control = [Condition(model, train, test)], [Condition(model, LABEL_NOISE, test)]
                yield Contrast("placement", name, TRAINED_KIND[model], treated, control)
        same, crossed = (
            [Condition(model, LABEL_NOISE._replace(placement=a), LABEL_NOISE._replace(placement=b)) for a, b in pairs]
            for pairs in (zip(SHIFTED, SHIFTED, strict=True), zip(SHIFTED, SHIFTED[::-1], strict=True))
        )
        name = f"{model}: trained as tested / trained the other way"
        yield Contrast("placement", name, TRAINED_KIND[model], same, crossed)


def order_and_noise() -> Iterator[Contrast]:
    """Order under label noise, trained clean in random order; and whether it does something else there than without.

    By `residual` easy2hard puts the clean pairs first, by oracle: a placement. By `gd_error` it knows no more than
    the context.
    """
    for model in MODELS:
        for ordering, difficulty in (
            ("smallnorm2largenorm", None),
            ("easy2hard", "residual"),
            ("hard2easy", "residual"),
            ("easy2hard", "gd_error"),
            ("hard2easy", "gd_error"),
        ):
            noisy = LABEL_NOISE._replace(ordering=ordering, difficulty=difficulty)
            by = f" by {difficulty}" if difficulty else ""
            treated, control = Condition(model, CLEAN, noisy), Condition(model, CLEAN, LABEL_NOISE)
            name = f"{model}: {ordering}{by}"
            yield Contrast("order x noise", name, ORDER_KIND[model], [treated], [control])
            if difficulty != "residual":
                effect_clean = Ratio(Condition(model, CLEAN, Context(ordering)), Condition(model))
                name = f"{name}, effect under noise / effect without"
                yield Contrast("order x noise", name, ORDER_KIND[model], [Ratio(treated, control)], [effect_clean])


POSITIONS = "a step size for each position"


def step_sizes() -> Iterator[Contrast]:
    """Against one step with a step size for each position, which knows the order or placement that it is fitted on.

    Of models trained in an order or placement it is fitted on contexts of the training, whatever is tested; of models
    trained in random order, on contexts of the evaluation: what they leave by not knowing the order.
    """
    for model in MODELS:
        kind = "equivalence" if model == "twolayer" else "difference"
        for trained in SORTED:
            for tested in (trained, "random"):
                contexts = Context(trained), Context(tested)
                name = f"{model}: trained {trained}, tested {tested}"
                yield _against(POSITIONS, name, kind, model, *contexts, "test_gd_positions_trained_loss")
        for trained in SHIFTED:
            for tested in SHIFTED:
                train, test = (LABEL_NOISE._replace(placement=place) for place in (trained, tested))
                name = f"{model}: trained {trained}, tested {tested}"
                yield _against(POSITIONS, name, kind, model, train, test, "test_gd_positions_trained_loss")
        for tested in SORTED:
            name = f"{model}: trained random, tested {tested}"
            yield _against(POSITIONS, name, "difference", model, CLEAN, Context(tested), "test_gd_positions_loss")


def _noises() -> list[Context]:
    return [Context(noise_mode=mode, p=p) for mode in NOISE for p in RATES]


def _words(noise: Context) -> str:
    return f"{noise.noise_mode} {noise.p:g}"


CONTRASTS: tuple[Contrast, ...] = tuple(
    contrast
    for question in (
        order_at_evaluation,
        order_in_training,
        noise_at_evaluation,
        noise_in_training,
        step_size,
        attention,
        attention_and_training,
        attention_and_placement,
        placement,
        order_and_noise,
        step_sizes,
    )
    for contrast in question()
)
