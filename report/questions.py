"""The questions of the order and noise study, as contrasts: the family that is declared before anything is looked at.

Holm's correction is over the differences of one question. Where no effect is claimed, the test is one of equivalence.
"""

from __future__ import annotations

from collections.abc import Iterator

from report.contrasts import CLEAN, Condition, Contrast, Setting
from report.study import MODELS, NOISE, RATE, RATES, SORTED
from src.config import PLACEMENTS

# column of the table -> the comparator's name, which says what it knows
COMPARATORS = {
    "gd_loss": "gd_clean_step",
    "gd_tuned_step_loss": "gd_tuned_step",
    "linear_mmse_loss": "linear_mmse",
    "mask_bayes_loss": "mask_bayes",
}
SHIFTED = tuple(placement for placement in PLACEMENTS if placement != "mixed")
LABEL_NOISE = Setting(noise_mode="label_noise", p=RATE)

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
                yield _against_clean("order in training", name, kind, model, Setting(trained), tested)


def _against_clean(question: str, name: str, kind: str, model: str, train: Setting, ordering: str) -> Contrast:
    return Contrast(question, name, kind, [Condition(model, train, Setting(ordering))], [Condition(model)])


def noise_at_evaluation() -> Iterator[Contrast]:
    """Trained clean, tested on corrupted contexts: the loss against each comparator's on the same contexts."""
    for model in MODELS:
        for noise in _noises():
            for comparator in COMPARATORS:
                kind = "equivalence" if comparator == "gd_loss" else "difference"
                name = f"{model}: {_words(noise)} / {COMPARATORS[comparator]}"
                yield _against(
                    question="noise at evaluation",
                    name=name,
                    kind=kind,
                    model=model,
                    train=CLEAN,
                    test=noise,
                    comparator=comparator,
                )


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
            yield _against(question, name, "equivalence", model, noise, noise, "gd_tuned_step_loss")


def _against(
    question: str, name: str, kind: str, model: str, train: Setting, test: Setting, comparator: str
) -> Contrast:
    model_loss, other = Condition(model, train, test), Condition(model, train, test, comparator)
    return Contrast(question, name, kind, [model_loss], [other])


def attention() -> Iterator[Contrast]:
    """Whether |influence| tells corrupted from clean pairs within positions: AUROC against gradient descent's own."""
    for model in MODELS:
        for noise in _noises():
            for train, word in ((CLEAN, "clean"), (noise, "on it")):
                name = f"{model}: {_words(noise)}, trained {word}"
                own, descent = (Condition(model, train, noise, column) for column in ("auroc", "gd_auroc"))
                yield Contrast("attention and noise", name, "difference", [own], [descent])


def placement() -> Iterator[Contrast]:
    """Where corrupted pairs stand: at evaluation alone; and whether training with a placement pays where it is met."""
    for model in MODELS:
        for mode in NOISE:
            for place in SHIFTED:
                noise, mixed = Setting(noise_mode=mode, p=RATE, placement=place), Setting(noise_mode=mode, p=RATE)
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
        name = f"{model}: trained as tested / trained the other way (interaction)"
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
                clean, random = Condition(model, CLEAN, Setting(ordering)), Condition(model)
                name = f"{name} (interaction)"
                yield Contrast("order x noise", name, ORDER_KIND[model], [treated, random], [control, clean])


def _noises() -> list[Setting]:
    return [Setting(noise_mode=mode, p=p) for mode in NOISE for p in RATES]


def _words(noise: Setting) -> str:
    return f"{noise.noise_mode} {noise.p:g}"


CONTRASTS: tuple[Contrast, ...] = tuple(
    contrast
    for question in (
        order_at_evaluation,
        order_in_training,
        noise_at_evaluation,
        noise_in_training,
        attention,
        placement,
        order_and_noise,
    )
    for contrast in question()
)
