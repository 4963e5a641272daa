"""Every field is an axis: its names, its values, axes whose fields move together, and what follows a swept field."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab.configs.presets import preset, resolve, set_values
from icl_lab.runners.flags import keys_of
from icl_lab.sweeps import following
from icl_lab.sweeps.axes import Axes, of_words
from icl_lab.sweeps.grid import Grid
from icl_lab.sweeps.plan import plan
from tests.doors import Ran, Refused
from tests.families.small import LOGISTIC
from tests.runners.tiny import Workshop

RUN = "sweeps.run"


def alone(model: str, **settings: Any) -> Any:
    """The config of a single run with these fields, at the preset of its depth."""
    config = preset(model, num_layers=settings.get("num_layers"))
    set_values(config, settings)
    return resolve(config)


@pytest.mark.parametrize(
    ("model", "axes"),
    [
        ("lsa1", {"lr": [1e-3, 3e-3], "num_layers": [1, 2, 4]}),
        ("lsa1", {"training.lr": ["1e-3", "3e-3"], "model.attention": [("softmax", "linear"), ("linear",)]}),
        ("lsa1", {("lr", "steps"): [(1e-3, 10), (1e-4, 20)], "b1": [0.5]}),
        ("sine", {"num_heads": [1, 2], "snapshots": ["true", False]}),
        ("tiny", {"dim": [2, 4], "weight_decay": [0.0, 0.1]}),
        ("lsa", {"num_pairs": [5], ("num_layers", "lr"): [(1, 1e-3), (2, 1e-4)]}),
    ],
)
def test_a_point_of_a_grid_is_the_run_that_its_fields_give_alone(model: str, axes: Axes) -> None:
    """The grid against the product written out: the same configs, in the axes' order, the last varying fastest."""
    places = product(*([(axis, value) for value in values] for axis, values in axes.items()))
    expected = []
    for point in places:
        fields: dict[str, Any] = {}
        for axis, value in point:
            fields |= {axis: value} if isinstance(axis, str) else dict(zip(axis, value, strict=True))
        expected.append(alone(model, **fields))
    assert list(Grid((model,), axes).points()) == expected


def test_a_short_name_means_what_its_flag_means_and_else_the_only_field_of_that_name() -> None:
    names = ["noise_p", "p", "train_noise_p", "eval.noise_p", "lr", "pos_enc_size", "eval_every"]
    assert [*keys_of("lsa1", names).values()] == [
        *("base.noise_p", "base.noise_p", "train.noise_p", "eval.noise_p"),
        *("training.lr", "model.pos_enc_size", "eval_every"),
    ]
    assert keys_of("languages", ["code", "code_dim", "languages", "dim"]) == {
        "code": "code.kind",
        "code_dim": "code.dim",
        "languages": "data.languages",
        "dim": "code.dim",
    }
    assert keys_of("tiny", ["embed_size", "task_law"]) == {
        "embed_size": "model.d_model",
        "task_law": "data.task_distribution",
    }


@pytest.mark.parametrize(
    ("swept", "zipped", "axes"),
    [
        ("lr=1e-3,3e-3", [], {"lr": ["1e-3", "3e-3"]}),
        ("lr=1e-3, 3e-3 num-layers=1 2", [], {"lr": ["1e-3", "3e-3"], "num_layers": ["1", "2"]}),
        ("attention=(softmax,linear),(linear)", [], {"attention": ["(softmax,linear)", "(linear)"]}),
        ("baselines=(),(ridge)", [], {"baselines": ["()", "(ridge)"]}),
        ("languages=((a|b)*,tomita1),((ab)*)", [], {"languages": ["((a|b)*,tomita1)", "((ab)*)"]}),
        ("", ["lr=1,2 steps=3,4"], {("lr", "steps"): [("1", "3"), ("2", "4")]}),
        ("", ["lr=1,2 attention=(a),(b,c)"], {("lr", "attention"): [("1", "(a)"), ("2", "(b,c)")]}),
    ],
)
def test_words_become_axes(swept: str, zipped: list[str], axes: Mapping[Any, Any]) -> None:
    assert of_words(swept.split(), [words.split() for words in zipped]) == axes


def test_text_in_brackets_is_a_list_where_the_field_is_one() -> None:
    axes = {"attention": ["(softmax, linear)", "(linear)"], "train_only": ["(layer_1|layer_2)/query", "(layer_1)"]}
    points = Grid(("lsa1",), axes, settings={"num_layers": 2, "baselines": ()}).points()
    assert [(point.model.attention, point.training.train_only) for point in points] == [
        (attention, regex)
        for attention in (("softmax", "linear"), ("linear",))
        for regex in ("(layer_1|layer_2)/query", "(layer_1)")
    ]
    (point,) = Grid(("languages",), {"languages": ["((a|b)*,(ab)*)"]}, settings={"negatives": "random_hash"}).points()
    assert point.data.languages == ("(a|b)*", "(ab)*")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        ("--sweep num_tasks=4", "unknown config key 'num_tasks' of the family regression"),
        ("--sweep num_layer=4", "unknown config key 'num_layer' of the family regression, did you mean num_layers?"),
        (
            "--zip lr=1,2 steps=3",
            "moves its fields together, so their lists are of equal length: lr has 2, steps has 1",
        ),
        ("--zip lr=1 lr=2", "--zip lr and lr: a field is given twice"),
        ("--sweep attention=softmax,linear", "attention is a list of words; each of its values stands in brackets"),
        ("--sweep lr=(1e-3)", "training.lr is '(1e-3)'; it must be a number"),
        ("--sweep lr", "argument --sweep: 'lr' is not FIELD=VALUES"),
        ("--zip lr", "argument --zip: 'lr' is not FIELD=VALUES"),
        ("--sweep lr=", "lr is an empty list"),
        ("--sweep lr=1e-3,x", "training.lr is 'x'; it must be a number"),
        ("--sweep lr=1e-3,-1", "lsa1 with lr -1: lr is -1.0; it must be above 0"),
        ("--sweep num_heads=1,1.5", "model.num_heads is '1.5'; it must be a whole number"),
        ("--sweep optimizer=adamw,adm", "lsa1 with optimizer adm: optimizer is 'adm'; it must be one of "),
        ("--sweep lr=1 lr=2", "lr is swept twice"),
        ("--sweep lr=1 training.lr=2", "training.lr is swept twice, as lr and training.lr"),
        ("--sweep lr=1 --zip lr=1 steps=2", "training.lr is swept twice, as lr and lr"),
        ("--noise_p 0,1 --sweep noise_p=0", "noise_p is swept twice, by its flag and by a field"),
        ("--steps 10 --sweep steps=10,20", "steps is swept, and set for all runs alike; leave one of them out"),
        ("--config.lr=1 --sweep training.lr=1", "training.lr is swept, and set for all runs alike"),
        ("--sweep preset=paper", "preset cannot be swept; use --preset"),
        ("--sweep data_seed=1,2", "data_seed cannot be swept; use --seeds"),
        ("--preset published9", "lsa1 has no preset published9; it has default, paper, published"),
        ("--seeds 4-0", "'4-0' is not a range of 1 to 100000 numbers, such as 0-4"),
        ("--seeds 0-4294967295", "'0-4294967295' is not a range of 1 to 100000 numbers"),
        ("--seeds 0-", "'0-' is not a whole number from 0 to"),
    ],
)
def test_what_is_no_axis_is_refused_before_anything_is_written(words: str, sentence: str, refused: Refused) -> None:
    assert sentence in refused(RUN, "lsa1", *words.split())


def test_a_name_of_several_fields_that_no_flag_has_is_refused_with_their_names(
    workshop: Workshop, tmp_path: Path
) -> None:
    """The logistic family with a second section of data: its flag `weight_scale` says which it means, the name not."""
    plugin = tmp_path / "logistic"
    shutil.copytree(LOGISTIC, plugin)
    config = (plugin / "config.py").read_text()
    section = "    data: LogisticData = LogisticData()\n"
    (plugin / "config.py").write_text(config.replace(section, section + section.replace("data:", "other:")))
    words = [RUN, "logistic", "--plugin", plugin, "--seeds", "0", "--dry_run", "--runs_dir", tmp_path / "runs"]
    done = workshop.run(*words, "--sweep", "num_pairs=5,6")
    assert (done.returncode, done.stdout) == (2, "")
    assert "'num_pairs' is a field of several sections; name one of data.num_pairs, other.num_pairs" in done.stderr
    done = workshop.run(*words, "--sweep", "weight_scale=1,2", "other.num_pairs=5")
    assert re.findall(r"logistic_dim5_scale(\d)_seed0-", done.stdout) == ["1", "2"]


def test_the_preset_is_the_one_of_each_points_depth_and_of_the_name_asked_for() -> None:
    for name in ("default", "paper", "published"):
        points = Grid(("lsa1",), {"num_layers": [1, 4], "recurrent": [False, True]}, preset=name).points()
        expected = [
            resolve(preset("lsa1", name, depth, recurrent)) for depth, recurrent in product((1, 4), (False, True))
        ]
        assert [(point.training, point.model) for point in points] == [(one.training, one.model) for one in expected]


def test_what_follows_a_swept_field_is_said_with_its_values() -> None:
    """Expected from the table of presets: lsa1's rate and clips change beyond three layers, its steps beyond one."""
    grid = Grid(("lsa1",), {"num_layers": [1, 2, 4], "recurrent": [False, True], "lr": [1e-3, 1e-4]}, range(3))
    assert [*following.lines(grid, plan([grid]))] == [
        "lsa1: training.steps follows num_layers and recurrent: 5000 at 1 and false, 1 and true, 2 and true, "
        "4 and true; 50000 at 2 and false, 4 and false",
        "lsa1: training.grad_clip follows num_layers: 0.001 at 1, 2; 10 at 4",
        "lsa1: model.activation_clip follows num_layers: 0 at 1, 2; 10 at 4",
    ]


@pytest.mark.parametrize("axes", [{"lr": [1, 2]}, {"noise_mode": ["clean", "label_noise"], "noise_p": [0.0, 0.5]}])
def test_nothing_follows_a_field_that_nothing_follows(axes: Axes) -> None:
    grid = Grid(("lsa1", "twolayer"), axes)
    assert [*following.lines(grid, plan([grid]))] == []


def test_the_command_says_so_before_it_trains(ran: Ran) -> None:
    done = ran("eval_diversity", "--num_tasks", "4", "--sweep", "dim=4,8", "--seeds", "0-1", "--dry_run")
    assert done.out.startswith("tiny: data.num_pairs follows dim: 8 at 4; 16 at 8\n")
    assert re.findall(r"_D(\d)_\w*_seed(\d)-", done.out) == [("4", "0"), ("4", "1"), ("8", "0"), ("8", "1")]
    assert "follows" not in ran("eval_diversity", "--sweep", "dim=4,8", "--seeds", "0", "--dry_run", "--quiet").out


def test_a_field_takes_the_place_of_its_flags_default(ran: Ran) -> None:
    done = ran("eval_noise", *"--models lsa1 --sweep noise_p=0.5 noise_mode=label_noise --seeds 0 --dry_run".split())
    assert set(re.findall(r"lsa1_random_([\w.]+)_(?:clean|noisy)_first_seed0", done.out)) == {"label_noise_p0.5_s0.5"}


def test_a_field_of_a_plugins_family_is_an_axis(workshop: Workshop, tmp_path: Path) -> None:
    words = ["logistic", "--plugin", LOGISTIC, "--sweep", "weight_scale=1,2", "num_pairs=5,6", "--seeds", "0"]
    done = workshop.run(RUN, *words, "--dry_run", "--runs_dir", tmp_path / "runs", "--out", tmp_path / "t.csv")
    assert done.returncode == 0, done.stderr
    assert re.findall(r"logistic_dim5_scale(\d)_seed0-", done.stdout) == ["1", "1", "2", "2"]
