"""A class of functions to learn in context: one frozen dataclass, whose fields are flags, axes and columns.

Shapes: N inputs of dimension D; `active` [D] says which coordinates a curriculum uses, the others of all inputs are 0.
Methods take one function and one prompt; the family maps them over prompts. Those that compute with JAX import it
late (`src.lazy`), since flags and help are made of the fields alone.

A class of one's own is registered by `plugins.function_class`: docs/extending.md.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from icl_lab.src.checks import one_of, require
from icl_lab.src.fields import OfKinds, check_fields, field
from icl_lab.src.lazy import jax, jnp
from icl_lab.src.registries import FUNCTION_CLASSES

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

    from icl_lab.baselines.functions.finite import Likelihood
    from icl_lab.baselines.functions.posterior import Posterior, Sampled

Parameters = Any  # of one function: a pytree of arrays
OWN = "class"  # the word that leaves a model's loss to the class
MOST_LISTED = 2**16  # functions of a class, of which all are listed
NUMBER, SIGN, CLASSES = "number", "sign", "classes"  # targets: a number, -1 or 1, one of C
# target -> the losses that fit it, its own first
LOSSES = {NUMBER: ("half_squared_error", "absolute_error"), SIGN: ("logistic_loss",), CLASSES: ("cross_entropy",)}
# the methods that a class may name, which `families.functions.baselines` has
BASELINES = (
    *("least_squares", "ridge", "averaging", "nearest_neighbours", "least_squares_on_squares", "arc_cosine_regression"),
    *("lasso", "greedy_tree", "greedy_tree_on_signs", "boosted_trees", "boosted_trees_on_signs", "adam_network"),
)


@dataclass(frozen=True)
class FunctionClass(OfKinds):
    """A class of functions.

    target: what a label is: a NUMBER; SIGN, -1 or 1, of which a model gives the logit; CLASSES, 0 to C - 1, of which
    it gives C logits. observed_target: a prediction's target is the label as observed, not the noise-free one.
    baselines: names of `families.functions.baselines` that are defined for it, besides its posterior.
    planted: inputs depend on the function, so that they tell of it (`log_density`). best_known: the baseline that
    stands for the posterior where there is none. has_pools: there may be a pool of its functions. posterior_prompts:
    the most prompts that the posterior is computed of, where it is costly. is_sampled: it has a sampling error.
    """

    kind: str = field("linear", "class of the functions that are learnt in context", names=FUNCTION_CLASSES)

    target: ClassVar[str] = NUMBER
    observed_target: ClassVar[bool] = False
    baselines: ClassVar[tuple[str, ...]] = ()
    planted: ClassVar[bool] = False
    best_known: ClassVar[str] = ""
    has_pools: ClassVar[bool] = True
    posterior_prompts: ClassVar[int] = 2**20
    is_sampled: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)
        for name in self.baselines:
            one_of("baselines", name, BASELINES)
        own = type(self).__name__
        require(type(self) is FUNCTION_CLASSES[self.kind], f"function is {self.kind!r}, which is not the class {own}")

    @classmethod
    def registered(cls) -> Mapping[str, type[Any]]:
        """All function classes."""
        return FUNCTION_CLASSES

    @property
    def num_classes(self) -> int:
        """C of labels that are CLASSES; else 0."""
        return 0

    @property
    def losses(self) -> tuple[str, ...]:
        """The training losses that fit its labels, its own first."""
        return LOSSES[self.target]

    @property
    def members(self) -> tuple[FunctionClass, ...]:
        """The classes that a prompt may be of: itself."""
        return (self,)

    def check(self, dim: int, num_pairs: int) -> None:
        """`ConfigError` if the class has no functions of D inputs, or prompts of N pairs."""

    @property
    def least_inputs(self) -> int:
        """How many active inputs a function needs."""
        return 1

    def points(self, dim: int) -> int:
        """Pairs of a prompt where nobody says how many."""
        return 2 * dim + 1

    # --- drawing ---

    def sample(self, key: Array, active: Array) -> Parameters:
        """The parameters of one function of the active inputs [D]."""
        raise NotImplementedError(f"{type(self).__name__} lacks sample")

    def inputs(self, key: Array, parameters: Parameters, shape: tuple[int, int]) -> Array:
        """Inputs x [N, D] of a function: N(0, I)."""
        return jax.random.normal(key, shape)

    def label(self, parameters: Parameters, x: Array) -> Array:
        """The noise-free labels y [N] of inputs x [N, D], which may depend on all of them.

        Of labels that are drawn they are what `observe` draws them by: logits [N], or [N, C] of C classes.
        """
        raise NotImplementedError(f"{type(self).__name__} lacks label")

    def observe(self, key: Array, y: Array) -> Array:
        """The labels as a context shows them, from the noise-free ones: the same."""
        return y

    def labels(self, key: Array, parameters: Parameters, x: Array) -> tuple[Array, Array]:
        """The labels [N] of a prompt's inputs as observed, and the targets [N] of predictions."""
        label = self.label(parameters, x)
        y = self.observe(key, label).astype(x.dtype)
        return y, y if self.observed_target else label.astype(x.dtype)

    def check_labels(self, dim: int, num_pairs: int) -> None:
        """`ConfigError` unless a label is one number. Nothing is computed."""

        def drawn() -> tuple[Array, Array]:
            key = jax.random.key(0)
            parameters = self.sample(key, jnp.ones(dim, bool))
            return self.labels(key, parameters, self.inputs(key, parameters, (num_pairs, dim)))

        for name, found in zip(("labels", "targets"), jax.eval_shape(drawn), strict=True):
            require(
                found.shape == (num_pairs,),
                f"{name} of {num_pairs} inputs have the shape {found.shape} in the class {self.kind}; a label is one "
                f"number, so it must be ({num_pairs},)",
            )

    def member_of(self, parameters: Parameters) -> Array:
        """The number of the member that a function is of: 0."""
        return jnp.zeros((), jnp.int32)

    # --- what is known of the class ---

    def variance(self, dim: int) -> float:
        """The variance of a noise-free label, by which squared errors are divided."""
        return 1.0

    def count(self, dim: int) -> float:
        """The number of functions."""
        return math.inf

    def is_listed(self, dim: int) -> bool:
        """Whether all functions can be listed."""
        return self.count(dim) <= MOST_LISTED

    def every(self, dim: int) -> Parameters:
        """The parameters of all functions, in NumPy with a leading axis [M]; of a class that is finite."""
        raise NotImplementedError(f"{type(self).__name__} lacks every")

    def log_prior(self, dim: int) -> np.ndarray:
        """The logarithm of the probability [M] of each of `every`."""
        import numpy as np

        count = int(self.count(dim))
        return np.full(count, -math.log(count))

    def likelihood(self, dim: int) -> Likelihood:
        """How observed labels follow from noise-free ones: they are the same, up to rounding."""
        from icl_lab.baselines.functions import finite, posterior

        return finite.gaussian(posterior.NOISE_FREE * self.variance(dim))

    def log_density(self, parameters: Parameters, x: Array) -> Array:
        """log p(x | function) [N] of inputs, up to what is the same for all functions: 0 unless they are planted."""
        return jnp.zeros(x.shape[0])

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior | Sampled | None:
        """The exact posterior of prompts x [B, N, D] and y [B, N], in NumPy; None where there is no closed form.

        Of a finite class it is that over `every`, and need not be given.
        """
        return None
