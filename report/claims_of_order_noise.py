"""What the order and noise study's page claims: each a sentence with its numbers, and whether the numbers bear it out.

The page cannot be made with a claim that does not hold, and a test makes it from the committed table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from report.contrasts import EXACT
from report.study import MODELS, NOISE, RATE, RATES, SORTED
from src.config import PLACEMENTS
from src.statistics import ALPHA

if TYPE_CHECKING:
    import pandas as pd

Rows = Mapping[tuple[str, str], Mapping[str, Any]]
Claim = Callable[[Rows, "pd.DataFrame"], tuple[str, bool]]

PLATEAU = 1.5  # times gradient descent's loss: a model that has not begun to learn is at 2
NO_SEPARATION = 0.02  # of AUROC
CLEAN_LSA1, CLEAN_TWOLAYER = 1.01, 1.08  # the loss over gradient descent's that a clean run may have at most


def _of(rows: Rows, question: str, *words: str) -> list[Mapping[str, Any]]:
    """The contrasts of a question whose names hold all these words."""
    return [row for (asked, name), row in rows.items() if asked == question and all(word in name for word in words)]


def _percent(row: Mapping[str, Any]) -> str:
    return f"{100 * row['change']:+.2f} % [{100 * row['change_low']:+.2f}, {100 * row['change_high']:+.2f}]"


def _widest(rows: Sequence[Mapping[str, Any]]) -> float:
    """The end of a 90 % interval that is farthest from no change, in per cent."""
    return 100 * max(max(abs(row["equivalence_low"]), abs(row["equivalence_high"])) for row in rows)


def _equivalent(rows: Sequence[Mapping[str, Any]]) -> bool:
    return all(row["verdict"] == "equivalent" for row in rows)


def _counts(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> str:
    """In how many contrasts each model is equivalent."""
    counts = {model: sum(row["verdict"] == "equivalent" for row in own) for model, own in found.items()}
    return ", ".join(f"{model} in {counts[model]} of {len(own)}" for model, own in found.items())


def _ratios(table: pd.DataFrame, model: str, trained: str, tested: str) -> pd.Series:
    """The loss over gradient descent's, by seed, of a model trained clean in one order and tested clean in another."""
    clean = (table["train_noise_mode"] == "clean") & (table["eval_noise_mode"] == "clean")
    orders = (table["train_ordering"] == trained) & (table["eval_ordering"] == tested)
    found: pd.Series = table[clean & orders & (table["model"] == model)]["loss_ratio"]
    return found


def _list(rows: Sequence[Mapping[str, Any]]) -> str:
    """Contrasts with their changes and verdicts; for those that show no difference, whether they are equivalent."""
    words = []
    for row in rows:
        small = row["verdict"] == "no difference shown" and row["p_equivalence"] < ALPHA
        verdict = "no difference shown and within ±1 %" if small else row["verdict"]
        words.append(f"{row['contrast'].partition(': ')[2]} {_percent(row)}, {verdict}")
    return "; ".join(words)


def _ratio(rows: Rows, question: str, name: str) -> float:
    """Treated over control."""
    row = rows[question, name]
    return float(row["treated"] / row["control"])


def sanity(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Clean runs reach gradient descent."""
    one, codes, two = (_ratios(table, model, "random", "random") for model in MODELS)
    return (
        "Trained and tested clean in random order, the loss over gradient descent's on the same tasks is "
        f"{one.min():.4f} to {one.max():.4f} for lsa1, {codes.min():.4f} to {codes.max():.4f} for lsa1_pe and "
        f"{two.min():.4f} to {two.max():.4f} for twolayer, over {len(one)} seeds each.",
        bool(one.max() <= CLEAN_LSA1 and two.max() <= CLEAN_TWOLAYER and codes.max() <= CLEAN_TWOLAYER),
    )


def order_lsa1(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No effect at all."""
    exact = [row for row in rows.values() if row["kind"] == "exact"]
    largest = max(row["largest_change"] for row in exact)
    return (
        f"**lsa1: exactly none.** In {len(exact)} contrasts of order and placement, clean and noisy, the largest "
        f"change of any seed's loss is {largest:g} of it, at the table's seven digits. Without codes a linear layer "
        "sums over the pairs.",
        largest <= EXACT,
    )


def order_lsa1_pe(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    found = _of(rows, "order at evaluation", "lsa1_pe: ")
    return (
        f"**lsa1_pe: none beyond ±1 %.** All {len(found)} orders are equivalent to random order (90 % intervals within "
        f"±{_widest(found):.2f} %). Its optimum is gradient descent for every order, so what is left measures how far "
        "training stopped from the optimum.",
        len(found) == len(SORTED) and _equivalent(found),
    )


def order_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Measured."""
    found = _of(rows, "order at evaluation", "twolayer: ")
    return f"**twolayer, measured:** {_list(found)}.", len(found) == len(SORTED)


def curriculum_linear(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Equivalence."""
    found = [row for model in ("lsa1: ", "lsa1_pe: ") for row in _of(rows, "order in training", model)]
    return (
        f"**A curriculum in training does nothing to the linear layers**: in all {len(found)} contrasts lsa1 and "
        "lsa1_pe trained in another order are equivalent to themselves trained in random order, tested in either "
        f"(90 % intervals within ±{_widest(found):.2f} %).",
        len(found) == 4 * len(SORTED) and _equivalent(found),
    )


def curriculum_twolayer(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """It learns the order: better in it than gradient descent, worse than before in random order."""
    same = [rows["order in training", f"twolayer: trained {o}, tested {o}"] for o in SORTED]
    random = [rows["order in training", f"twolayer: trained {o}, tested random"] for o in SORTED]
    shown = [row for row in (*same, *random) if "hard2easy" not in row["contrast"]]
    easy = _ratios(table, "twolayer", "easy2hard", "easy2hard")
    return (
        f"**twolayer learns the order it is trained in.** Tested in the same order: {_list(same)}. Tested in random "
        f"order: {_list(random)}. Trained and tested in easy2hard it ends below gradient descent, at {easy.min():.3f} "
        f"to {easy.max():.3f} of its loss: the position says which pairs a step from the others finds easy, and codes "
        "let it be used.",
        easy.max() < 1 and {row["verdict"] for row in shown} == {"lower", "higher"} and same[1]["verdict"] == "lower",
    )


def plateau(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trainings that had not begun to learn."""
    stuck = table[table["loss_ratio"] > PLATEAU]
    stuck = stuck[(stuck["train_ordering"] == stuck["eval_ordering"]) & (stuck["train_noise_mode"] == "clean")]
    hard = _ratios(table, "twolayer", "hard2easy", "hard2easy")
    left = hard[hard < PLATEAU]
    return (
        f"{len(hard) - len(left)} of {len(hard)} twolayer trainings in hard2easy order is still on the plateau after "
        f"5000 steps, which is what makes its intervals wide; the others end at {left.min():.3f} to "
        f"{left.max():.3f} of gradient descent's loss, tested in that order. No other training on clean contexts is.",
        len(hard) - len(left) == 1 and set(stuck["train_ordering"]) == {"hard2easy"} and left.max() < 1,
    )


def unsupported_curriculum(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No order in training helps on random order."""
    found = [row for model in MODELS for row in _of(rows, "order in training", f"{model}: ", "tested random")]
    best = min(found, key=lambda row: row["change"])
    return (
        "That a curriculum in training makes a better in-context learner: tested in random order, no model trained in "
        f"another order beats itself trained in random order in any of {len(found)} contrasts (the best is "
        f"{best['contrast']}, {_percent(best)}).",
        all(row["verdict"] != "lower" and row["change_high"] >= 0 for row in found),
    )


def noise_growth(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Losses of clean-trained models by p."""
    parts, rising = [], True
    for mode in NOISE:
        losses = {
            model: [rows["noise at evaluation", f"{model}: {mode} {p:g} / gd_clean_step"]["treated"] for p in RATES]
            for model in MODELS
        }
        rising &= all(values == sorted(values) for values in losses.values())
        words = ", ".join(f"{model} {' '.join(f'{value:.3f}' for value in values)}" for model, values in losses.items())
        parts.append(f"{mode.replace('_', ' ')}: {words}")
    return f"**Noise.** Trained clean, the loss at p = .1, .25 and .5 is, under {'; under '.join(parts)}.", rising


def noise_is_gd(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent at the clean step."""
    found = {model: _of(rows, "noise at evaluation", f"{model}: ", "/ gd_clean_step") for model in MODELS}
    furthest = max((row for own in found.values() for row in own), key=lambda row: abs(row["change"]))
    return (
        "That is gradient descent at the step that is best on clean tasks, which knows nothing of the noise: "
        f"equivalent within ±1 % on the same contexts, {_counts(found)} corruptions; the furthest is "
        f"{furthest['contrast']}, {_percent(furthest)}.",
        _equivalent(found["lsa1"]) and _equivalent(found["lsa1_pe"]) and abs(furthest["change"]) < 0.02,
    )


def far_from_bayes(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against the linear MMSE predictor and the Bayesian."""
    found = [row for name in ("linear_mmse", "mask_bayes") for row in _of(rows, "noise at evaluation", f"/ {name}")]
    words = []
    for mode in NOISE:
        linear, bayes = (
            _ratio(rows, "noise at evaluation", f"lsa1: {mode} {RATE:g} / {name}")
            for name in ("linear_mmse", "mask_bayes")
        )
        words.append(f"{linear:.2f} and {bayes:.2f} times their loss under {mode.replace('_', ' ')}")
    return (
        "All stay above the linear MMSE predictor and the Bayesian over masks, in every one of "
        f"{len(found)} contrasts; lsa1 at p = {RATE:g}: {', '.join(words)}.",
        all(row["verdict"] == "higher" for row in found),
    )


def noise_training(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, against the tuned step."""
    found = {model: _of(rows, "noise in training", f"{model}: ", "/ gd_tuned_step") for model in MODELS}
    most = rows["noise in training", "lsa1: random_pairs 0.5, tested on it"]
    return (
        "**Training on noise** moves the linear layers' step and nothing else: tested on it they are equivalent to "
        f"gradient descent at the step tuned to that corruption; {_counts(found)} corruptions. Against training clean, "
        f"half the pairs random, that gains lsa1 {_percent(most)}.",
        _equivalent(found["lsa1"]) and _equivalent(found["lsa1_pe"]) and most["verdict"] == "lower",
    )


def noise_training_cost(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained on the noise, tested clean."""
    found = [rows["noise in training", f"lsa1: {mode} {RATES[-1]:g}, tested clean"] for mode in NOISE]
    words = (f"on {mode.replace('_', ' ')} {_percent(row)}" for mode, row in zip(NOISE, found, strict=True))
    return (
        f"It costs on clean contexts: lsa1 trained at p = {RATES[-1]:g} {', '.join(words)}.",
        all(row["low"] > 0 for row in found),
    )


def attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Against gradient descent's own."""
    found = _of(rows, "attention and noise")
    own, descent = ([row[side] for row in found] for side in ("treated", "control"))
    differing = [row for row in found if row["verdict"] != "no difference shown"]
    largest = max(found, key=lambda row: abs(row["difference"]))
    return (
        "**Attention.** Within positions, |influence| tells noisy pairs from clean ones with an AUROC of "
        f"{min(own):.3f} to {max(own):.3f} over models, corruptions and training; gradient descent's own is "
        f"{min(descent):.3f} to {max(descent):.3f}. {len(differing)} of {len(found)} contrasts differ from gradient "
        f"descent after Holm's correction, none by more than {abs(largest['difference']):.3f} ({largest['contrast']}).",
        all(abs(row["difference"]) <= abs(largest["difference"]) for row in differing),
    )


def position_artefact(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Raw against matched, trained and tested with the noisy pairs in place."""
    chosen = (table["train_noise_mode"] == "label_noise") & (table["train_placement"] != "mixed")
    chosen &= (table["train_placement"] == table["eval_placement"]) & (table["model"] == "twolayer")
    means = table[chosen].groupby("train_placement")[["auroc_raw", "auroc", "gd_auroc"]].mean()
    words = "; ".join(
        f"{name} raw {row['auroc_raw']:.3f}, within positions {row['auroc']:.3f}, gradient descent "
        f"{row['gd_auroc']:.3f}"
        for name, row in means.iterrows()
    )
    return (
        f"A raw AUROC tells where pairs stand: twolayer trained and tested with label noise in one place, {words}.",
        len(means) == 2 and all(abs(means["auroc_raw"] - 0.5) > abs(means["auroc"] - means["gd_auroc"])),
    )


def unsupported_attention(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """No separation to speak of."""
    largest = max(abs(row["difference"]) for row in _of(rows, "attention and noise"))
    return (
        "That attention finds noisy pairs: what is left once position is accounted for is gradient descent's own to "
        f"within {largest:.3f} of AUROC.",
        largest < NO_SEPARATION,
    )


def placement_evaluation(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """At evaluation alone."""
    linear, two = (_of(rows, "placement", f"{model}: ", "at evaluation") for model in ("lsa1_pe", "twolayer"))
    return (
        f"**Placement at evaluation alone**: lsa1_pe is equivalent to itself on mixed contexts in all {len(linear)} "
        f"contrasts (within ±{_widest(linear):.2f} %); so is twolayer, in all "
        f"{len(two)} (within ±{_widest(two):.2f} %).",
        _equivalent(linear) and all(row["p_equivalence"] < ALPHA for row in two),
    )


def placement_trained(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Trained with a placement, tested with each."""
    linear = [
        row
        for model in MODELS[:2]
        for row in _of(rows, "placement", f"{model}: ")
        if "at evaluation" not in row["contrast"]
    ]
    both = rows["placement", "twolayer: trained as tested / trained the other way (interaction)"]
    shown = [rows["placement", f"twolayer: trained clean_first, tested {where}"] for where in PLACEMENTS[1:]]
    return (
        "**Placement in training and test** (label noise): the linear layers are equivalent to themselves trained "
        f"mixed in all {len(linear)} contrasts. twolayer learns the placement it is trained with: {_list(shown)}; "
        f"trained as tested, against trained the other way, {_percent(both)}, {both['verdict']}.",
        len(linear) == 14 and _equivalent(linear) and both["verdict"] == "lower",
    )


def order_times_noise(rows: Rows, table: pd.DataFrame) -> tuple[str, bool]:
    """Order under label noise."""
    found = [row for model in ("lsa1_pe", "twolayer") for row in _of(rows, "order x noise", f"{model}: ")]
    differing = [row for row in found if row["verdict"] in ("higher", "lower")]
    return (
        f"**Order under label noise** (p = {RATE:g}, trained clean) does what it does without: all {len(found)} "
        f"contrasts of lsa1_pe and twolayer, interactions among them, are within ±{_widest(found):.2f} %, and "
        f"{len(differing)} differ after Holm's correction.",
        all(row["p_equivalence"] < ALPHA for row in found) and not differing,
    )


CLAIMS: dict[str, Claim] = {
    claim.__name__: claim
    for claim in (
        sanity,
        order_lsa1,
        order_lsa1_pe,
        order_twolayer,
        curriculum_linear,
        curriculum_twolayer,
        plateau,
        noise_growth,
        noise_is_gd,
        far_from_bayes,
        noise_training,
        noise_training_cost,
        attention,
        position_artefact,
        placement_evaluation,
        placement_trained,
        order_times_noise,
        unsupported_curriculum,
        unsupported_attention,
    )
}
