"""Mixtures: a prompt's function is of one of several classes, each with its own loss. Bai et al. 2023, Sec. 4."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from icl_lab.families.functions.classes.labelled import SAMPLED, LogisticRegression
from icl_lab.families.functions.classes.linear import OF_NUMBERS, Linear, NoisyLinear
from icl_lab.families.functions.classes.smooth import Fourier
from icl_lab.families.functions.function_class import NUMBER, SIGN, FunctionClass, Parameters
from icl_lab.src.checks import require
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

    from icl_lab.baselines.functions.posterior import Posterior, Sampled


NEVER = -1e9  # the logarithm of a probability of 0


@dataclass(frozen=True)
class Mixture(FunctionClass):
    """A class whose function is of one of its `members`, all as likely; parameters are a number and those of each."""

    has_pools = False

    @property
    def losses(self) -> tuple[str, ...]:
        """Of the members, if one fits all; else only each member's own."""
        first, *others = (member.losses for member in self.members)
        return tuple(name for name in first if all(name in other for other in others))

    def check(self, dim: int, num_pairs: int) -> None:
        """What its members need."""
        for member in self.members:
            member.check(dim, num_pairs)

    @property
    def least_inputs(self) -> int:
        """The most that a member needs."""
        return max(member.least_inputs for member in self.members)

    def points(self, dim: int) -> int:
        """The most that a member has."""
        return max(member.points(dim) for member in self.members)

    def sample(self, key: Array, active: Array) -> Parameters:
        """The number of a member, and a function of each."""
        keys = jax.random.split(key, len(self.members) + 1)
        number = jax.random.randint(keys[0], (), 0, len(self.members))
        return number, tuple(member.sample(keys[1 + i], active) for i, member in enumerate(self.members))

    def _chosen(self, of_member: Callable[[FunctionClass, Any], Any], parameters: Parameters) -> Any:
        """What a function of (member, its parameters) gives for the member that is chosen."""
        number, own = parameters
        values = [of_member(member, one) for member, one in zip(self.members, own, strict=True)]
        return jax.tree.map(lambda *leaves: jnp.stack(leaves)[number], *values)

    def inputs(self, key: Array, parameters: Parameters, shape: tuple[int, int]) -> Array:
        """Of the member."""
        drawn: Array = self._chosen(lambda member, own: member.inputs(key, own, shape), parameters)
        return drawn

    def label(self, parameters: Parameters, x: Array) -> Array:
        """Of the member."""
        labels: Array = self._chosen(lambda member, own: member.label(own, x), parameters)
        return labels

    def labels(self, key: Array, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        """Of the member, as observed, and the targets."""
        pair: tuple[Array, Array] = self._chosen(lambda member, own: member.labels(key, own, x), parameters)
        return pair

    def member_of(self, parameters: Parameters) -> Array:
        """The number of the member."""
        number: Array = parameters[0].astype(jnp.int32)
        return number

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior | None:
        """The exact mixture of the members' posteriors, of labels of one kind."""
        from icl_lab.baselines.functions.mixture import mixture

        same = len({member.target for member in self.members}) == 1
        return mixture(members_posteriors(self.members, x, y)) if same else None


def members_posteriors(members: Sequence[FunctionClass], x: np.ndarray, y: np.ndarray) -> list[Posterior | Sampled]:
    """Each member's posterior. Labels that are all -1 or 1 are a class's whose labels are signs, if there is one."""
    import numpy as np

    targets = {member.target for member in members}
    found = []
    for member in members:
        shown = np.where(y < 0, -1.0, 1.0) if member.target == SIGN else y
        part = member.posterior(x, shown)
        assert part is not None
        if len(targets) > 1:
            are_signs = np.cumsum(np.abs(y) != 1, axis=1) == 0
            wrong = are_signs if member.target == NUMBER else ~are_signs
            wrong = np.concatenate([np.zeros_like(wrong[:, :1]), wrong[:, :-1]], axis=1)
            # densities of numbers and probabilities of signs are not compared: what is alone of its kind has 0
            is_alone = sum(other.target == member.target for other in members) == 1
            part = part._replace(log_evidence=np.where(wrong, NEVER, 0.0 if is_alone else part.log_evidence))
        found.append(part)
    return found


@dataclass(frozen=True)
class TwoNoiseLevels(Mixture):
    """y = w.x + noise, w ~ N(0, I), whose noise has one of two standard deviations. Bayes averages two ridges."""

    kind: str = "two_noise_levels"
    baselines = OF_NUMBERS
    low_noise: float = field(0.25, "the lower standard deviation of the labels' noise", low=0, high=1e3, open_low=True)
    high_noise: float = field(1.0, "the higher standard deviation of the labels' noise", low=0, high=1e3, open_low=True)

    @property
    def members(self) -> tuple[FunctionClass, ...]:
        """Noisy linear functions of each noise."""
        return NoisyLinear(noise_std=self.low_noise), NoisyLinear(noise_std=self.high_noise)

    def __post_init__(self) -> None:
        super().__post_init__()
        low, high = self.low_noise, self.high_noise
        require(low < high, f"low_noise is {low}; it must be below high_noise, {high}")


@dataclass(frozen=True)
class RegressionOrClassification(Mixture):
    """Half of the prompts are of linear functions, half of logistic regression: one channel is a number or a logit."""

    kind: str = "regression_or_classification"
    posterior_prompts = SAMPLED
    is_sampled = True

    @property
    def members(self) -> tuple[FunctionClass, ...]:
        """Linear functions, and logistic regression."""
        return Linear(), LogisticRegression()


@dataclass(frozen=True)
class FourierOrders(Mixture):
    """Fourier series of order 1 to K, all as likely. Bayes weighs all orders by their evidence."""

    kind: str = "fourier_orders"
    baselines = OF_NUMBERS
    most_waves: int = field(3, "the highest order of a Fourier series", low=2, high=100)

    @property
    def members(self) -> tuple[FunctionClass, ...]:
        """Series of each order."""
        return tuple(Fourier(order=order) for order in range(1, self.most_waves + 1))
