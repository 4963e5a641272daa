"""Measures on decoders trained on pools of M tasks, one run for each M, and on the exact predictors alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from icl_lab.analysis import paths, transience
from icl_lab.analysis import transience as threshold
from icl_lab.analysis.development import trajectory_pca
from icl_lab.analysis.loaded_run import LoadedRun, load_run
from icl_lab.families.diversity.config import DiversityConfig
from icl_lab.families.diversity.task import latent_sequences, make_eval_set, predictions_of, root_sequences
from icl_lab.src.data_config import PoolData
from icl_lab.store.metrics import read_metrics
from icl_lab.store.rundir import read_config
from icl_lab.studies.runs import summary_part
from icl_lab.studies.task_diversity.pool_losses import exact_losses, smoothed

INFINITE = float("inf")
ROOT_SEQUENCES = 512
FEWER = 1024  # sequences, where dMMSE is expensive
NULL_DRAWS = 3

OfSeed = Sequence[Path]
Measure = Callable[..., float]


def data_of(dim: int) -> PoolData:
    """Sequences of 2 D pairs at the signal-to-noise ratio that all dimensions share."""
    return PoolData(dim=dim, num_pairs=2 * dim, input_distribution="gaussian", noise_std=(dim / 32) ** 0.5)


@lru_cache(maxsize=512)
def config_of(run: Path) -> DiversityConfig:
    """A run's config."""
    config: DiversityConfig = read_config(run)
    return config


def tasks_of(run: Path) -> float:
    """M."""
    return config_of(run).data.num_tasks


def at(runs: OfSeed, num_tasks: float) -> Path:
    """The run of so many tasks."""
    return next(run for run in runs if tasks_of(run) == num_tasks)


def test_set_of(run: Path) -> Mapping[str, Any]:
    """The losses on the test set and the distances, of the final checkpoint."""
    return summary_part(run, "headline")


@lru_cache(maxsize=512)
def history(run: Path, name: str) -> np.ndarray:
    """A value at every record of the training."""
    return np.array([record[name] for record in read_metrics(run, [name])], float)


@lru_cache(maxsize=64)
def decoder_of(run: Path) -> LoadedRun:
    """A finished run, loaded once."""
    return load_run(run)


# at the end of training


def from_dmmse(num_tasks: float) -> Measure:
    """Delta_id(PT, dMMSE) over Delta_id(ridge, dMMSE): .1 and below is on dMMSE."""
    return lambda runs: _share(at(runs, num_tasks), "id_delta_dmmse", "id_apart")


def from_ridge(num_tasks: float) -> Measure:
    """Delta_ood(PT, ridge) over Delta_ood(dMMSE, ridge): 1/4 and below is on ridge. Of infinite M Delta itself."""
    if num_tasks == INFINITE:
        return lambda runs: float(test_set_of(at(runs, num_tasks))["ood_delta_ridge"])
    return lambda runs: _share(at(runs, num_tasks), "ood_delta_ridge", "ood_apart")


def end_of(where: str) -> Measure:
    """What the predictor at the other end of the scale has: its distance over itself, in each of a seed's runs."""
    return lambda runs: max(_share(run, f"{where}_apart", f"{where}_apart") for run in runs)


def last_delta(run: Path) -> float:
    """Delta_ood(PT, ridge) of a run alone."""
    return float(test_set_of(run)["ood_delta_ridge"])


def _share(run: Path, distance: str, of: str) -> float:
    return float(test_set_of(run)[distance] / test_set_of(run)[of])


def over_infinite(num_tasks: float, name: str = "ood_tf_loss") -> Measure:
    """A run's loss over that of the run of infinitely many tasks, on the same fresh tasks."""
    return lambda runs: float(test_set_of(at(runs, num_tasks))[name] / test_set_of(at(runs, INFINITE))[name])


# with a larger budget


def moved_from_ridge(num_tasks: float) -> Measure:
    """Delta_ood(PT, ridge) after a large budget over that after a small one: above 1 it moves away from ridge."""

    def measure(large: OfSeed, small: OfSeed) -> float:
        ends = [test_set_of(at(runs, num_tasks))["ood_delta_ridge"] for runs in (large, small)]
        return float(ends[0] / ends[1])

    return measure


def finite(*of_budgets: OfSeed) -> list[float]:
    """The finite M that all budgets have, in order."""
    return sorted(set.intersection(*({tasks_of(run) for run in runs} for runs in of_budgets)) - {INFINITE})


def crossing_of(large: OfSeed, small: OfSeed) -> float:
    """The task-diversity threshold, log2 M, from two budgets; infinite if the curves do not cross."""
    tasks = finite(large, small)
    deltas = [np.array([[test_set_of(at(runs, m))["ood_delta_ridge"] for m in tasks]]) for runs in (small, large)]
    crossing = threshold.crossing(np.array(tasks), *deltas).per_seed[0]
    return float(crossing) if np.isfinite(crossing) else INFINITE


def reference_errors(run: Path) -> dict[str, np.ndarray]:
    """The exact predictors' errors [K] on the run's fresh sequences, by position."""
    config = config_of(run)
    eval_set = make_eval_set(config, latent_sequences(config))
    return {
        name: np.mean((values - eval_set.targets) ** 2, axis=0) / config.data.dim
        for name, values in eval_set.references.items()
    }


def ratio_at(num_tasks: float, name: str) -> Measure:
    """A number of a run's end over that of another's, for the same M."""

    def measure(runs: OfSeed, others: OfSeed) -> float:
        ends = [test_set_of(at(seed_runs, num_tasks))[name] for seed_runs in (runs, others)]
        return float(ends[0] / ends[1])

    return measure


def apart_at(num_tasks: float) -> Measure:
    """|log2| of the ratio of two runs' Delta_ood to ridge, for the same M."""
    ratio = ratio_at(num_tasks, "ood_delta_ridge")
    return lambda runs, others: abs(float(np.log2(ratio(runs, others))))


def nearer_to_laplace(runs: OfSeed) -> float:
    """Delta_ood to the Laplace prior's mean over that to ridge, of infinitely many tasks."""
    headline = test_set_of(at(runs, INFINITE))
    return float(headline["ood_delta_laplace"] / headline["ood_delta_ridge"])


# over training


def rise_of(num_tasks: float) -> Measure:
    """How far the loss on fresh tasks ends above its minimum over training."""
    return lambda runs: rise(at(runs, num_tasks))


@lru_cache(maxsize=512)
def rise(run: Path) -> float:
    """How far a run's loss on fresh tasks ends above its minimum.

    The minimum of a noisy curve lies below its mean; large pools, whose losses only fall, show the size of this effect.
    """
    return float(transience.rise(history(run, "eval_ood_loss")))


def smoothed_rise_of(num_tasks: float) -> Measure:
    """The same of means over three records around each; an untrained run has two, which are taken as they are."""
    return lambda runs: smoothed_rise(history(at(runs, num_tasks), "eval_ood_loss"))


def smoothed_rise(losses: np.ndarray) -> float:
    """How far means over three records end above the least of them; of fewer records, of these themselves."""
    return float(transience.rise(losses, window=3 if len(losses) >= 3 else 1))


def least_from_ridge(num_tasks: float) -> Measure:
    """The least Delta_ood(PT, ridge) over training, over Delta_ood(dMMSE, ridge): 1/4 and below is on ridge."""

    def measure(runs: OfSeed) -> float:
        run = at(runs, num_tasks)
        return float(history(run, "eval_ood_delta_ridge").min() / test_set_of(run)["ood_apart"])

    return measure


@lru_cache(maxsize=512)
def critical_step(run: Path) -> int:
    """t_crit: the step of the least loss on fresh tasks."""
    return transience.critical_step(history(run, "step"), history(run, "eval_ood_loss"))


@lru_cache(maxsize=512)
def nearest_to_ridge(run: Path) -> int:
    """t*: the step of the least Delta_ood to ridge."""
    return transience.critical_step(history(run, "step"), history(run, "eval_ood_delta_ridge"))


def least_loss(run: Path) -> float:
    """The least loss on fresh tasks over training."""
    return float(history(run, "eval_ood_loss").min())


def later_critical_step(small: float, large: float) -> Measure:
    """log2 of t_crit of the larger M over that of the smaller."""
    return lambda runs: float(np.log2(critical_step(at(runs, large)) / critical_step(at(runs, small))))


def deeper(small: float, large: float) -> Measure:
    """The least loss on fresh tasks of the larger M over the smaller's: deflection grows with M."""
    return lambda runs: least_loss(at(runs, large)) / least_loss(at(runs, small))


def exponent(*tasks: float) -> Measure:
    """The exponent of t* in M, over these M; infinite if one is never nearer to ridge than it began."""

    def measure(runs: OfSeed) -> float:
        times = np.array([[nearest_to_ridge(at(runs, m)) for m in tasks]], float)
        if not times.all():
            return INFINITE
        return float(transience.power_law(np.array(tasks, float), times).exponent)

    return measure


# paths and lines


def middle_of_paths(num_tasks: float) -> Measure:
    """Where the loss lies halfway between two tasks of the pool: 0 at ridge's, 1 at dMMSE's."""
    return lambda runs: paths.share_of_dmmse(paths_of(at(runs, num_tasks)))


def fall_of_paths(few: float, many: float) -> Measure:
    """How much nearer to ridge's the loss halfway is for the larger pool."""
    return lambda runs: middle_of_paths(few)(runs) - middle_of_paths(many)(runs)


@lru_cache(maxsize=64)
def paths_of(run: Path) -> dict[str, np.ndarray]:
    """Losses along the paths between tasks of the pool."""
    return paths.losses_on_paths(decoder_of(run))


def barrier_of(num_tasks: float) -> Measure:
    """The barrier between a run and a run of infinitely many tasks and other data, over that of two of these."""

    def measure(runs: OfSeed, twin: Path) -> float:
        return barrier(at(runs, num_tasks), twin) / barrier(at(runs, INFINITE), twin)

    return measure


def barrier(run: Path, other: Path) -> float:
    """The barrier on fresh tasks between two runs' parameters."""
    return paths.barrier(losses_on_line(run, other))


def weights_apart(run: Path, other: Path) -> float:
    """How far two runs' parameters are apart, over their norm."""
    return paths.weight_distance(decoder_of(run), decoder_of(other))


@lru_cache(maxsize=128)
def losses_on_line(run: Path, other: Path) -> np.ndarray:
    """Losses on fresh tasks along the line between two runs' parameters."""
    one, two = decoder_of(run), decoder_of(other)
    return paths.losses_between(one, two, make_eval_set(two.config, latent_sequences(two.config)))


# trajectories


@lru_cache(maxsize=128)
def trajectory(run: Path) -> tuple[np.ndarray, np.ndarray]:
    """The steps [T] of a run's snapshots and its predictions [T, 512 K] at each on sequences of the root task."""
    loaded = decoder_of(run)
    batch = root_sequences(loaded.config, ROOT_SEQUENCES)
    snapshots = [(step, predictions_of(at.model, at.params, batch).ravel()) for step, at in loaded.checkpoints()]
    return np.array([step for step, _ in snapshots]), np.stack([row for _, row in snapshots])


@lru_cache(maxsize=16)
def joint_pca(runs: tuple[Path, ...], components: int = 4) -> trajectory_pca.Joint:
    """The joint PCA of a seed's trajectories, all M together."""
    return trajectory_pca.fit(np.concatenate([trajectory(run)[1] for run in runs]), components)


def predictors_on_root(run: Path) -> dict[str, np.ndarray]:
    """The exact predictors' predictions [512 K] on the sequences of the root task."""
    config = config_of(run)
    eval_set = make_eval_set(config, root_sequences(config, ROOT_SEQUENCES))
    return {name: values.ravel() for name, values in eval_set.references.items()}


def explained(components: int) -> Measure:
    """The share of variance that the first components of the joint PCA explain."""
    return lambda runs: float(joint_pca(tuple(runs)).explained[:components].sum())


@lru_cache(maxsize=16)
def null_of(runs: tuple[Path, ...], components: int) -> np.ndarray:
    """The shares of variance [C] that the joint PCA of as many random walks of as many checkpoints explains."""
    lengths = [len(trajectory(run)[0]) for run in runs]
    rng = np.random.default_rng(config_of(runs[0]).data_seed)
    mean, _ = trajectory_pca.null_explained(lengths, trajectory(runs[0])[1].shape[1], components, NULL_DRAWS, rng)
    return mean


def explained_over_null(components: int) -> Measure:
    """That share over the one of random walks from one start."""
    return lambda runs: explained(components)(runs) / float(null_of(tuple(runs), components).sum())


def component_of_ood_loss(runs: OfSeed, others: OfSeed = ()) -> float:
    """The larger |correlation|, of the first two components, of scores with losses on fresh tasks, over checkpoints.

    With others: with their losses, those of another seed.
    """
    scores = joint_pca(tuple(runs)).scores[:, :2]
    losses = np.concatenate([history(run, "eval_ood_loss") for run in others or runs])
    return float(max(abs(np.corrcoef(column, losses)[0, 1]) for column in scores.T))


# the exact predictors alone


@lru_cache(maxsize=256)
def _exact_losses(data: PoolData, num_tasks: int, seed: int, count: int) -> Mapping[str, float]:
    return exact_losses(data, num_tasks, seed, count)


def exact(dim: int, num_tasks: int, name: str, count: int = 4096) -> Callable[[int], float]:
    """A loss, or the Delta, of the exact predictors."""
    return lambda seed: _exact_losses(data_of(dim), num_tasks, seed, count)[name]


def gain(dim: int, num_tasks: int, seed: int) -> float:
    """How much less than ridge dMMSE loses on its pool's tasks."""
    return exact(dim, num_tasks, "id_ridge")(seed) - exact(dim, num_tasks, "id_dmmse")(seed)


@lru_cache(maxsize=64)
def best_smoothed(dim: int, num_tasks: int, seed: int, count: int = FEWER) -> Mapping[str, float]:
    """The best smoothing and the loss it has."""
    return smoothed(data_of(dim), num_tasks, seed, count)


def over_smoothed(num_tasks: int) -> Measure:
    """A run's loss on fresh tasks over that of dMMSE with the smoothing that is best on fresh tasks, of its pool."""

    def measure(runs: OfSeed) -> float:
        run = at(runs, num_tasks)
        config = config_of(run)
        best = best_smoothed(config.data.dim, num_tasks, config.data_seed)
        return float(test_set_of(run)["ood_tf_loss"] / best["loss"])

    return measure
