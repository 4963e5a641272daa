"""Estimates by devinterp, in a Python that has it and PyTorch; `benchmarks.devinterp` starts this file with it.

Nothing of this repository is imported here. A file NPZ holds weights, data and settings. Each line of JSON on standard
input asks for one thing, and a line of JSON on standard output answers. The models are written out in PyTorch: a
function from parameters, data and the model's fields to the loss of each sample [B]. The first two take NumPy's arrays
as well.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

TRIED = 30  # gradients by which the number of threads is chosen
BASELINES = 10**6  # first of the seeds of baselines, beyond those of chains
Answer = dict[str, Any]


# --- models ---


def linear_losses(params: Mapping[str, Any], inputs: Any, targets: Any, model: Any) -> Any:
    """Half the squared error of x A B, summed over the outputs. inputs [B, in], targets [B, out]."""
    return 0.5 * ((inputs @ params["net/first"] @ params["net/second"] - targets) ** 2).sum(-1)


def attention_losses(params: Mapping[str, Any], tokens: Any, targets: Any, model: Any) -> Any:
    """Half the squared error of one linear self-attention layer of one head. tokens [B, N + 1, W], targets [B].

    The query is the last token; its prediction is minus a channel of it, after the layer's update.
    """
    query, key, value = (params[f"{model.layer}/attention/{name}"][:, 0] for name in ("query", "key", "value"))
    context, last = tokens[..., :-1, :], tokens[..., -1, :]
    scores = context @ (last @ (query @ key.T))[..., None]
    pooled = (scores * context).sum(-2)
    update = pooled @ (value @ params[f"{model.layer}/attention/projection"][0])
    return 0.5 * (-(last + update)[..., model.channel] - targets) ** 2


def decoder_losses(params: Mapping[str, Any], tokens: Any, targets: Any, model: Any) -> Any:
    """Half the mean squared error of each sequence, of a causal decoder. tokens [B, 2K, D + 1], targets [B, K]."""
    import torch
    from torch.nn import functional

    activation = {"relu": torch.relu, "gelu": lambda x: functional.gelu(x, approximate="tanh")}[model.activation]

    def norm(x: Any, name: str) -> Any:
        return functional.layer_norm(x, x.shape[-1:], params[f"{name}/scale"], params[f"{name}/offset"])

    def linear(x: Any, name: str) -> Any:
        mapped = x @ params[f"{name}/w"]
        return mapped + params[f"{name}/b"] if f"{name}/b" in params else mapped

    stream = linear(tokens, "embed/linear") + params["embed/positions"]
    for layer in range(model.num_layers):
        block = f"layer_{layer}"
        stacked = linear(norm(stream, f"{block}/attention_norm"), f"{block}/attention/query_key_value")
        heads = (*stream.shape[:2], model.num_heads, -1)
        query, key, value = (part.reshape(heads).transpose(1, 2) for part in stacked.chunk(3, dim=-1))
        pooled = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        pooled = pooled.transpose(1, 2).reshape(stream.shape)
        added = stream + (linear(pooled, f"{block}/attention/output") if model.attention_output else pooled)
        hidden = activation(linear(norm(added, f"{block}/mlp_norm"), f"{block}/mlp_in"))
        added = added + linear(hidden, f"{block}/mlp_out")
        stream = stream + added if model.doubled_residual else added
    predictions = linear(norm(stream[:, ::2], "read_out/norm"), "read_out/linear")[:, :, 0]
    return 0.5 * ((predictions - targets) ** 2).mean(dim=1)


LOSSES: dict[str, Callable[[Mapping[str, Any], Any, Any, Any], Any]] = {
    "linear": linear_losses,
    "attention": attention_losses,
    "decoder": decoder_losses,
}


# --- a problem ---


class Problem(NamedTuple):
    """A file's content: settings, the model's losses(params, inputs, targets) -> [B], and tensors."""

    settings: Mapping[str, Any]
    losses: Callable[[Mapping[str, Any], Any, Any], Any]
    params: dict[str, Any]
    inputs: Any
    targets: Any


def read(path: str) -> Problem:
    """The problem of a file: "settings", JSON; "params:NAME"; "torch:inputs" and "torch:targets"."""
    import torch

    with np.load(path) as file:
        settings = json.loads(str(file["settings"]))
        tensors = {name: torch.from_numpy(file[name]) for name in file.files if name != "settings"}
    params = {name.removeprefix("params:"): value for name, value in tensors.items() if name.startswith("params:")}
    model, losses = SimpleNamespace(**settings["model"]), LOSSES[settings["kind"]]
    return Problem(
        settings,
        lambda params, inputs, targets: losses(params, inputs, targets, model),
        params,
        tensors["torch:inputs"],
        tensors["torch:targets"],
    )


# --- answers ---


def losses_at(problem: Problem) -> Answer:
    """The loss of each sample at w*."""
    import torch

    with torch.no_grad():
        losses = problem.losses(problem.params, problem.inputs, problem.targets)
    return {"losses": losses.double().tolist()}


def estimate(
    problem: Problem, seed: int, replacement: bool, burn_in: int = 0, init_loss: float | None = None
) -> Answer:
    """An estimate by devinterp, by default with its default baseline, and the losses of its draws [C, T].

    Without `burn_in` all steps are draws, the burn-in too, as is devinterp's default: the losses show what a burn-in
    changes. value, error: of these draws, with the standard error over chains.
    """
    import torch
    from devinterp.optim import SGMCMC
    from devinterp.slt.sampler import estimate_learning_coeff_with_summary
    from torch.utils.data import DataLoader, RandomSampler, TensorDataset

    settings = problem.settings
    data = TensorDataset(problem.inputs, problem.targets)
    order: dict[str, Any] = {"sampler": RandomSampler(data, replacement=True)} if replacement else {"shuffle": True}
    torch.manual_seed(BASELINES + seed)  # the batch of the default baseline, which devinterp's seed does not choose
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that settings were given, and of more draws than batches
        found = estimate_learning_coeff_with_summary(
            module_of(problem),
            DataLoader(data, batch_size=settings["batch_size"], **order),
            evaluate=lambda module, batch: module(*batch).mean(),
            sampling_method=SGMCMC.sgld,
            optimizer_kwargs={
                "lr": settings["eps"],
                "nbeta": settings["nbeta"],
                "localization": settings["gamma"],
            },
            num_draws=settings["burn_in"] + settings["draws"] - burn_in,
            num_burnin_steps=burn_in,
            num_chains=settings["chains"],
            init_loss=init_loss,
            seed=seed * settings["chains"],  # it adds the chain's number
            verbose=False,
        )
    return {
        "value": float(found["llc/mean"]),
        "error": float(found["llc/std"]) / settings["chains"] ** 0.5,
        "trace": np.asarray(found["loss/trace"], float).tolist(),
    }


def module_of(problem: Problem) -> Any:
    """The model as a module, whose call gives the losses [B] of a batch."""
    import torch

    class Module(torch.nn.Module):  # type: ignore[misc]  # PyTorch ships no types
        def __init__(self) -> None:
            super().__init__()
            for name, value in problem.params.items():
                self.register_parameter(name, torch.nn.Parameter(value.clone()))

        def forward(self, inputs: Any, targets: Any) -> Any:
            return problem.losses(self._parameters, inputs, targets)

    return Module()


def reference(problem: Problem, chains: int, burn_in: int, draws: int, seed: int = 0) -> Answer:
    """The LLC of long chains, written here in PyTorch apart from both libraries, and its standard error over chains.

    w' = w - eps/2 (nbeta grad L_B(w) + gamma (w - w*)) + sqrt(eps) xi on batches drawn with replacement; a draw is read
    on the batch of its next step less the same samples' losses at w*, which is L(w) - L(w*) on average.
    """
    import torch
    from torch.func import grad_and_value, vmap

    settings, count = problem.settings, len(problem.targets)
    eps, generator = settings["eps"], torch.Generator().manual_seed(seed)
    gradient_of = vmap(grad_and_value(lambda w, inputs, targets: problem.losses(w, inputs, targets).mean()))
    with torch.no_grad():
        baseline = problem.losses(problem.params, problem.inputs, problem.targets)
    w = {name: value.expand(chains, *value.shape).clone() for name, value in problem.params.items()}
    total = torch.zeros(chains, dtype=torch.float64)
    for step in range(burn_in + draws):
        chosen = torch.randint(count, (chains, settings["batch_size"]), generator=generator)
        gradient, loss = gradient_of(w, problem.inputs[chosen], problem.targets[chosen])
        if step >= burn_in:
            total += loss - baseline[chosen].mean(dim=1)
        for name, value in w.items():
            drift = settings["nbeta"] * gradient[name] + settings["gamma"] * (value - problem.params[name])
            noise = torch.randn(value.shape, generator=generator)
            value.add_(drift, alpha=-0.5 * eps).add_(noise, alpha=eps**0.5)
    means = settings["nbeta"] * total.numpy() / draws
    return {"value": float(means.mean()), "error": float(means.std(ddof=1) / chains**0.5)}


def fastest(problem: Problem, most: int) -> Answer:
    """The number of threads, 1 or all, at which a gradient of this model takes least time."""
    import torch

    module, size = module_of(problem), problem.settings["batch_size"]
    batch, seconds = (problem.inputs[:size], problem.targets[:size]), {}
    for threads in {1, most}:
        torch.set_num_threads(threads)
        for _repeat in range(2):  # the first warms up
            began = time.perf_counter()
            for _ in range(TRIED):
                module.zero_grad()
                module(*batch).mean().backward()
            seconds[threads] = time.perf_counter() - began
    best = min(seconds, key=lambda threads: seconds[threads])
    torch.set_num_threads(best)
    return {"threads": best}


ANSWERS: dict[str, Callable[..., Answer]] = {
    "losses": losses_at,
    "estimate": estimate,
    "reference": reference,
    "threads": fastest,
}


# --- asked and answered ---


def serve(answers: Mapping[str, Callable[..., Answer]], problem: Any) -> None:
    """Answers {"ask": name, ...} line by line, with the seconds that it took, and the CPU seconds since the start."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what libraries print is no answer
    for line in sys.stdin:
        asked = json.loads(line)
        began = time.perf_counter()
        with contextlib.redirect_stdout(sys.stderr):
            answer = answers[asked.pop("ask")](problem, **asked)
        print(json.dumps({**answer, "seconds": time.perf_counter() - began, "cpu": time.process_time()}), file=out)
        out.flush()


def main(path: str, threads: str) -> None:
    """Answers about the problem of a file, with so many threads."""
    import torch

    torch.set_num_threads(int(threads))
    serve(ANSWERS, read(path))
