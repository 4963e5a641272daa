"""The doors that users import from the root lead to the library's own objects."""

from icl_lab import utils_attention, utils_log
from icl_lab.analysis import attention_maps
from icl_lab.lab import progress


def test_a_door_has_what_is_behind_it() -> None:
    for door, behind in ((utils_log, progress), (utils_attention, attention_maps)):
        assert door.__all__
        assert all(getattr(door, name) is getattr(behind, name) for name in door.__all__)
    assert {"ConsoleLogger", "Logger", "NULL_LOGGER", "NullLogger", "meter"} <= {*utils_log.__all__}
    assert {"batch_mean", "head_summary", "summarise"} == {*utils_attention.__all__}
