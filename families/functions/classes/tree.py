"""Decision trees. Garg et al. 2022, Sec. 5."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from icl_lab.families.functions.classes.linear import COSTLY, OF_NUMBERS
from icl_lab.families.functions.function_class import FunctionClass
from icl_lab.src.checks import require
from icl_lab.src.fields import field
from icl_lab.src.lazy import jax, jnp

if TYPE_CHECKING:
    import numpy as np
    from jax import Array

    from icl_lab.baselines.functions.posterior import Posterior

MOST_DEPTH = 12  # 4096 leaves


@dataclass(frozen=True)
class DecisionTree(FunctionClass):
    """A full binary tree: a node looks at a random input and goes right if it is above 0; leaves are N(0, 1)."""

    kind: str = "decision_tree"
    depth: int = field(3, "depth of a tree, which has 2^depth leaves", least=1)
    baselines = (*OF_NUMBERS, "greedy_tree", "greedy_tree_on_signs", "boosted_trees", "boosted_trees_on_signs")
    posterior_prompts = COSTLY

    def check(self, dim: int, num_pairs: int) -> None:
        """The leaves are held in memory."""
        require(self.depth <= MOST_DEPTH, f"depth is {self.depth}; it must be at most {MOST_DEPTH}")

    def points(self, dim: int) -> int:
        """5 D + 1."""
        return 5 * dim + 1

    def sample(self, key: Array, active: Array) -> tuple[Array, Array]:
        """The inputs that nodes look at [2^depth - 1], level by level, and the leaves' values [2^depth]."""
        node_key, leaf_key = jax.random.split(key)
        odds = jnp.where(active, 0.0, -jnp.inf)
        nodes = jax.random.categorical(node_key, odds, shape=(2**self.depth - 1,))
        return nodes, jax.random.normal(leaf_key, (2**self.depth,))

    def label(self, parameters: tuple[Array, Array], x: Array) -> Array:
        """The value of the leaf that each input comes to."""
        nodes, leaves = parameters
        place = jnp.zeros(len(x), jnp.int32)  # of the tree's nodes, level by level
        for _ in range(self.depth):
            seen = jnp.take_along_axis(x, nodes[place][:, None], axis=1)[:, 0]
            place = 2 * place + 1 + (seen > 0)
        return leaves[place - (2**self.depth - 1)]

    def posterior(self, x: np.ndarray, y: np.ndarray) -> Posterior:
        """By recursion over sub-cubes."""
        from icl_lab.baselines.functions.decision_trees import tree_posterior

        return tree_posterior(x, y, self.depth)
