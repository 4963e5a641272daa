"""Frozen configs of data: what contexts, sequences and functions are drawn from. Every value is checked here.

No JAX is imported. Shape letters are those of `src.config`.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from icl_lab.src.checks import LARGEST, TOO_MANY, ConfigError, finite, in_range, one_of, require
from icl_lab.src.fields import check_fields, field
from icl_lab.src.registries import INPUT_DISTRIBUTIONS, TASK_DISTRIBUTIONS

SPECTRA = ("isotropic", "power_law", "log_spaced", "log_uniform", "given")
AXES = ("coordinates", "rotated")
QUERY_COVARIANCES = ("inputs", "isotropic")
TASK_COVARIANCES = ("isotropic", "inputs", "inverse")
TEACHERS = ("linear", "relu", "tanh")
NO_MOMENTS = "the closed form holds only for inputs with independent coordinates of equal variance;"


def tasks_exist(distribution: str, dim: int) -> None:
    """Raises unless a distribution of tasks is registered and has tasks of this dimension."""
    one_of("task_distribution", distribution, TASK_DISTRIBUTIONS)
    least = TASK_DISTRIBUTIONS[distribution].least_dim
    require(dim >= least, f"dim is {dim}; {distribution!r} tasks have at least {least} dimensions")


@dataclass(frozen=True)
class LinearData:
    """Linear regression: y = w.x + noise_std * n, w ~ N(0, weight_scale^2 I).

    `input_distribution`: uniform is U(-input_range/2, input_range/2) in each coordinate (range 1 is what the published
    curves use, although the paper's text says U(-1, 1)); gaussian is N(0, input_range^2).
    """

    dim: int = field(10, "input dimension, D", least=1)
    num_pairs: int = field(10, "number of pairs in a context (N) or in a sequence (K)", least=1)
    input_distribution: str = field("uniform", "distribution of the inputs", names=INPUT_DISTRIBUTIONS)
    input_range: float = field(
        1.0, "width of uniform inputs, or standard deviation of Gaussian ones", scale=True, open_low=True
    )
    weight_scale: float = field(1.0, "standard deviation of a task's weights", scale=True, open_low=True)
    noise_std: float = field(0.0, "standard deviation of the labels' noise", scale=True)

    def __post_init__(self) -> None:
        check_fields(self)
        label = self.weight_scale * self.input_range * math.sqrt(self.dim)
        require(
            label * label <= LARGEST,
            f"weight_scale is {self.weight_scale:g} and input_range {self.input_range:g}, so labels are about "
            f"{label:.1g}; their squares exceed {LARGEST:g}, float32's largest number",
        )

    @property
    def input_variance(self) -> float:
        """Variance of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("variance", INPUT_DISTRIBUTIONS[self.input_distribution].variance)

    @property
    def input_fourth_moment(self) -> float:
        """Fourth moment of one input coordinate; `ConfigError` if none is registered."""
        return self._moment("fourth moment", INPUT_DISTRIBUTIONS[self.input_distribution].fourth)

    def _moment(self, name: str, of_range: Callable[[float], float] | None) -> float:
        if of_range is None:
            raise ConfigError(f"the input distribution {self.input_distribution!r} is registered without a {name}")
        return of_range(self.input_range)

    def check_moments(self, user: str) -> None:
        """`ConfigError` if the inputs lack a moment of the closed-form step of gradient descent, which `user` needs."""
        moments = INPUT_DISTRIBUTIONS[self.input_distribution]
        require(
            None not in (moments.variance, moments.fourth),
            f"input_distribution is {self.input_distribution!r}, which is registered without its variance or fourth "
            f"moment; {user} needs both, for the closed-form step of gradient descent",
        )

    @property
    def query_variance(self) -> float:
        """Variance of one coordinate of a query; `ConfigError` if none is registered."""
        return self.input_variance

    @property
    def task_variance(self) -> float:
        """Variance of one coordinate of a task."""
        return self.weight_scale**2

    @property
    def mean_task_variance(self) -> float:
        """Mean square of a coordinate of a task."""
        return self.task_variance


@dataclass(frozen=True)
class FileData(LinearData):
    """Contexts that are drawn or, with a `file`, one's own; then no other field says what they are but D and N.

    Nothing is known of the distribution of a file's contexts, so closed forms refuse them. With `standardize` a model
    sees (x - x_mean) / x_scale and (y - y_mean) / y_scale, and its predictions are taken back: `src.units`.
    """

    SCALING: ClassVar[tuple[str, ...]] = ("x_mean", "x_scale", "y_mean", "y_scale")  # fields that the file says

    file: str = field("", "NPZ or CSV file of your own contexts; empty: contexts are drawn")
    split_seed: int = field(0, "file: seed of the split into training, evaluation and test contexts", least=0)
    standardize: bool = field(False, "file: rescale inputs and labels to the mean and scale of generated ones")
    x_mean: tuple[float, ...] = field((), "standardize: mean of each input over the training contexts")
    x_scale: tuple[float, ...] = field((), "standardize: what each input is divided by")
    y_mean: float = field(0.0, "standardize: mean of the labels of the training contexts")
    y_scale: float = field(1.0, "standardize: what labels are divided by", low=0, open_low=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        for name, values in (("x_mean", self.x_mean), ("x_scale", self.x_scale), ("y_mean", (self.y_mean,))):
            for value in values:
                finite(name, value)
        require(
            bool(self.file) or not self.standardize, "standardize is only for contexts from a file; give --data FILE"
        )
        scales = len(self.x_mean) == len(self.x_scale) == self.dim
        require(scales or not self.standardize, f"x_mean and x_scale have no value for each of {self.dim} dimensions")
        drawn = {each.name for each in dataclasses.fields(self)} - {"dim", "num_pairs", *FileData.__annotations__}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            said = f"{each.name} is {value}, but has no meaning for a"
            if each.name in self.without_meaning and not self.standardize:
                require(value == each.default, f"{said} file that is not standardised")
            if each.name in drawn and self.file:
                require(value == each.default, f"{said} file, whose contexts are not drawn")

    @property
    def without_meaning(self) -> list[str]:
        """Fields that nobody sets: the file gives them their values."""
        return [*self.SCALING]

    def check_drawn(self, user: str) -> None:
        """`ConfigError` for contexts from a file, of whose distribution `user` would have to know."""
        require(not self.file, f"{user} needs the distribution of inputs, tasks and noise, which a file lacks")

    def _moment(self, name: str, of_range: Callable[[float], float] | None) -> float:
        self.check_drawn("a closed form")
        return super()._moment(name, of_range)

    def check_moments(self, user: str) -> None:
        """`ConfigError` where the closed-form step of gradient descent, which `user` needs, is not defined."""
        self.check_drawn(user)
        super().check_moments(user)


@dataclass(frozen=True)
class DataConfig(FileData):
    """Contexts with one query; `num_distractors` context labels are replaced by N(0, 1).

    Inputs x = U L^(1/2) z, z of the input distribution. L = diag(l): `isotropic`, the identity; `power_law`,
    l_i = i^-spectrum_exponent; `log_spaced` from 1 to 1 / condition_number; `given`, the `eigenvalues`; `log_uniform`,
    drawn for each context on [1 / condition_number, 1]. U: `coordinates`, the identity; `rotated`, Haar-distributed for
    each context. With `exact_covariance` a context's X^T X / N is its covariance itself, not on average alone. Queries
    have the inputs' covariance, or are `isotropic`.

    Tasks w = task_mean + weight_scale W^(1/2) v, v of the task distribution, W the identity, the `inputs`' covariance L
    or its `inverse`. Labels are y = f(w.x) + noise, f the `teacher`.
    """

    num_distractors: int = field(0, "number of labels in a context that are replaced by draws from N(0, 1)", least=0)
    spectrum: str = field("isotropic", "eigenvalues of the inputs' covariance", names=SPECTRA)
    spectrum_exponent: float = field(1.0, "power_law: exponent a; eigenvalue i is i^-a", low=0)
    condition_number: float = field(
        10.0, "log_spaced, log_uniform: the largest eigenvalue (1) divided by the smallest", low=1
    )
    eigenvalues: tuple[float, ...] = field((), "given: the eigenvalues, one for each dimension")
    axes: str = field(
        "coordinates", "eigenvectors of the inputs' covariance (rotated: drawn for each context)", names=AXES
    )
    exact_covariance: bool = field(False, "X^T X / N is the covariance in every context, not only on average")
    query_covariance: str = field("inputs", "covariance of the queries", names=QUERY_COVARIANCES)
    task_distribution: str = field("gaussian", "distribution of the tasks", names=TASK_DISTRIBUTIONS)
    task_covariance: str = field(
        "isotropic",
        "covariance of the tasks (inputs: equal to the inputs' covariance; inverse: its inverse)",
        names=TASK_COVARIANCES,
    )
    task_mean: float = field(0.0, "mean of each coordinate of a task")
    teacher: str = field("linear", "function f in the labels y = f(w.x) + noise", names=TEACHERS)

    def __post_init__(self) -> None:
        super().__post_init__()
        require(
            self.num_distractors <= self.num_pairs,
            f"num_distractors is {self.num_distractors}; a context has only {self.num_pairs} pairs",
        )
        tasks_exist(self.task_distribution, self.dim)
        finite("task_mean", self.task_mean)
        self._check_eigenvalues()
        if self.exact_covariance:
            self._check_exact()

    def _check_eigenvalues(self) -> None:
        given, count = self.spectrum == "given", len(self.eigenvalues)
        wanted = self.dim if given else 0
        require(
            count == wanted,
            f"eigenvalues has {count} values; the spectrum {self.spectrum!r} in {self.dim} dimensions takes {wanted}",
        )
        for value in self.eigenvalues:
            require(
                0 < value <= LARGEST,
                f"eigenvalues has {value}; a covariance is positive, so each must be a finite number above 0",
            )

    def _check_exact(self) -> None:
        require(
            self.num_pairs >= self.dim,
            f"exact_covariance needs at least as many pairs as dimensions; {self.num_pairs} pairs cannot span "
            f"{self.dim} dimensions",
        )
        _ = self.coordinate_variance  # by which the covariance is scaled

    @property
    def equal_inputs(self) -> bool:
        """Whether a context's inputs have independent coordinates of equal variance."""
        alike = self.spectrum == "isotropic" and self.axes == "coordinates" and not self.exact_covariance
        return alike and not self.file

    @property
    def equal_tasks(self) -> bool:
        """Whether tasks have mean 0 and uncorrelated coordinates of equal variance, and labels are linear in them."""
        alike = TASK_DISTRIBUTIONS[self.task_distribution].uncorrelated and not self.file
        return alike and self.task_covariance == "isotropic" and self.task_mean == 0 and self.teacher == "linear"

    @property
    def coordinate_variance(self) -> float:
        """Variance of a coordinate of z, an input before its covariance; `ConfigError` if none is registered."""
        return self._moment("variance", INPUT_DISTRIBUTIONS[self.input_distribution].variance)

    @property
    def coordinate_fourth_moment(self) -> float:
        """Fourth moment of a coordinate of z; `ConfigError` if none is registered."""
        return self._moment("fourth moment", INPUT_DISTRIBUTIONS[self.input_distribution].fourth)

    @property
    def input_variance(self) -> float:
        """Variance of one input coordinate of a context; `ConfigError` where they differ or none is registered."""
        require(self.equal_inputs, f"{NO_MOMENTS} these inputs have another covariance")
        return self.coordinate_variance

    @property
    def input_fourth_moment(self) -> float:
        """Fourth moment of one input coordinate; `ConfigError` where they differ or none is registered."""
        require(self.equal_inputs, f"{NO_MOMENTS} these inputs have another covariance")
        return self.coordinate_fourth_moment

    @property
    def query_variance(self) -> float:
        """Variance of one coordinate of a query; `ConfigError` where they differ or none is registered."""
        equal = self.spectrum == "isotropic" or self.query_covariance == "isotropic"
        require(equal, "the closed form needs queries whose coordinates have equal variance, and these do not")
        return self.coordinate_variance

    @property
    def task_variance(self) -> float:
        """Variance of one coordinate of a task; `ConfigError` where they differ, or labels are not linear in it."""
        require(
            self.equal_tasks,
            "the closed form holds only for linear labels and tasks of mean 0 with uncorrelated coordinates of equal "
            "variance",
        )
        return self.mean_task_variance

    @property
    def mean_task_variance(self) -> float:
        """Variance of a coordinate of a task before its covariance; `ConfigError` if none is registered."""
        self.check_drawn("a closed form")
        variance = TASK_DISTRIBUTIONS[self.task_distribution].variance
        if variance is None:
            raise ConfigError(f"the task distribution {self.task_distribution!r} is registered without a variance")
        return variance(self.weight_scale, self.dim)

    def check_isotropic_loss(self) -> None:
        """`ConfigError` unless a loss averaged over tasks and queries is one of eigenvalues alone."""
        _ = self.query_variance, self.task_variance

    def check_moments(self, user: str) -> None:
        """`ConfigError` where the closed-form step of gradient descent, which `user` needs, is not defined."""
        super().check_moments(user)
        require(
            self.equal_inputs and self.equal_tasks,
            f"{user} needs the closed-form step of gradient descent, which exists only for linear labels, isotropic "
            "inputs and isotropic tasks of mean 0",
        )


@dataclass(frozen=True)
class QueriesData(LinearData):
    """Contexts with `num_queries` queries each."""

    num_queries: int = field(1, "queries asked of each context", least=1)


@dataclass(frozen=True)
class PoolData(FileData):
    """Sequences of pairs whose task is one of a pool of `num_tasks`, or fresh (inf), from `task_distribution`."""

    num_tasks: float = field(math.inf, "tasks in the pool, M; inf draws a fresh one for each sequence")
    task_distribution: str = field("gaussian", "distribution of the tasks", names=TASK_DISTRIBUTIONS)

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.num_tasks == 0:  # what stood for infinity in earlier versions
            object.__setattr__(self, "num_tasks", math.inf)
        if self.num_tasks != math.inf:
            whole = isinstance(self.num_tasks, int) and self.num_tasks >= 1
            require(whole, f"num_tasks is {self.num_tasks}; it must be a whole number of at least 1, or inf")
            require(self.num_tasks < TOO_MANY, f"num_tasks is {self.num_tasks}; it must be below 2^31, or inf")
        require(
            self.num_pairs > 1,
            f"num_pairs is {self.num_pairs}; a sequence is at least 2 pairs long, because the first has no context",
        )
        tasks_exist(self.task_distribution, self.dim)

    @property
    def task_variance(self) -> float:
        """Mean variance of a coordinate of a task of the task distribution; `ConfigError` if none is registered."""
        self.check_drawn("a closed form")
        variance = TASK_DISTRIBUTIONS[self.task_distribution].variance
        if variance is None:
            raise ConfigError(f"the task distribution {self.task_distribution!r} is registered without a variance")
        return variance(self.weight_scale, self.dim)


@dataclass(frozen=True)
class SineData:
    """y = a sin(x + phi), a ~ U(amplitude_low, amplitude_high), phi ~ U(0, pi), x ~ U(-input_range/2, input_range/2).

    The published code has amplitudes up to .5, the paper's text up to 5. With `tied_phase` both follow one draw, as in
    the published code: phi = pi (a - amplitude_low) / (amplitude_high - amplitude_low), a family of one parameter.
    """

    num_pairs: int = field(10, "number of pairs in a context (N) or in a sequence (K)", least=1)
    input_range: float = field(
        1.0, "width of uniform inputs, or standard deviation of Gaussian ones", scale=True, open_low=True
    )
    amplitude_low: float = field(0.1, "smallest amplitude of a sine", low=0)
    amplitude_high: float = field(0.5, "largest amplitude of a sine")
    tied_phase: bool = field(False, "one random number sets both amplitude and phase of a sine")
    dim: ClassVar[int] = 1
    input_distribution: ClassVar[str] = "uniform"

    def __post_init__(self) -> None:
        check_fields(self)
        in_range("amplitude_high", self.amplitude_high, self.amplitude_low, open_low=True)
