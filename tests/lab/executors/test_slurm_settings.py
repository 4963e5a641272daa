"""What `--slurm` takes: every value that sbatch does, and no option that the executor needs for itself."""

import re
from pathlib import Path
from typing import Any

import pytest

from icl_lab.lab import cli
from icl_lab.lab.executors.slurm_settings import REFUSED, settings

pytestmark = pytest.mark.robust


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        (["partition=cpu,minutes=60"], {"partition": "cpu", "minutes": 60}),
        (["partition=cpu,gpu"], {"partition": "cpu,gpu"}),
        (["minutes=1440,partition=a,b,c,qos=low"], {"minutes": 1440, "partition": "a,b,c", "qos": "low"}),
        (["exclude=node[01-03,07]"], {"exclude": "node[01-03,07]"}),
        (["exclude=node[01-03,07],gpu[1,2],x", "mem=2G"], {"exclude": "node[01-03,07],gpu[1,2],x", "mem": "2G"}),
        (["partition=cpu gpu,", " minutes=9"], {"partition": "cpu,gpu", "minutes": 9}),
        (["constraint=[rack1|rack2]"], {"constraint": "[rack1|rack2]"}),
        (["gres=gpu:a100:1", "dependency=afterok:1:2"], {"gres": "gpu:a100:1", "dependency": "afterok:1:2"}),
        (["exclusive=true,comment=true_story"], {"exclusive": True, "comment": "true_story"}),
        (["time-min=5,ntasks-per-core=1"], {"time-min": "5", "ntasks-per-core": "1"}),  # longer than a refused one
        (["at_once=1e6", "minutes=527040"], {"at_once": 10**6, "minutes": 366 * 24 * 60}),
    ],
)
def test_a_comma_belongs_to_a_value_until_the_next_name(arguments: list[str], found: dict[str, Any]) -> None:
    assert dict(settings(arguments)) == found


@pytest.mark.parametrize("option", REFUSED)
def test_an_option_that_the_executor_needs_is_refused_however_it_is_written(option: str) -> None:
    """sbatch takes any beginning of an option's name for the option, if it is that of no other."""
    for name in {option, option.replace("-", "_"), option[:-1], option[:4]} - {"cluster"}:
        with pytest.raises(cli.UsageError, match=f"^argument --slurm: {name} cannot be given: [^\n]+"):
            settings([f"partition=cpu,{name}=1"])


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("partition", "'partition' is not NAME=VALUE"),
        ("=cpu", "'=cpu' is not NAME=VALUE"),
        ("partition=", "'partition=' is not NAME=VALUE"),
        (",", "it needs at least one NAME=VALUE"),
        ("minutes=0", "minutes is '0'; it must be a whole number from 1 to 527040"),
        ("minutes=527041", "minutes is '527041'; it must be a whole number from 1 to 527040"),
        ("minutes=1,2", "minutes is '1,2'; it must be a whole number from 1 to 527040"),
        ("at_once=" + "9" * 5000, "it must be a whole number from 1 to 1000000"),
        ("minutes=5,minutes=6", "minutes is given twice"),
        ("mem-per-cpu=1G,mem_per_cpu=2G", "mem-per-cpu is given twice"),
        ("cluster=debug", "cluster is 'debug'; choose slurm or local"),
    ],
)
def test_wrong_settings_are_one_sentence(text: str, said: str) -> None:
    with pytest.raises(cli.UsageError) as caught:
        settings([text])
    assert said in str(caught.value)


def test_the_page_lists_what_is_refused(root: Path) -> None:
    page = (root / "docs/cluster.md").read_text().partition("These options of `sbatch` are refused")[2]
    rows = re.findall(r"^\| `([\w-]+)` \| (.*) \|$", page.partition("\n## ")[0], re.M)
    assert {option: reason.replace("`", "") for option, reason in rows} == REFUSED
