"""A call of the library leaves the process that made it as it was."""

from __future__ import annotations

import os
import warnings
from pathlib import Path

import jax
import pytest

from icl_lab.lab import compile_cache
from icl_lab.lab.guest import JAX_SETTINGS, OF_PROGRAMS, as_guest, variables_as_before
from icl_lab.src.precision import use_highest_precision


def state() -> tuple[dict[str, str], list[object], dict[str, object]]:
    settings = {name: jax.config.values[name] for name in (*JAX_SETTINGS, *OF_PROGRAMS)}
    return dict(os.environ), [*warnings.filters, warnings.showwarning], settings


def change(folder: Path) -> None:
    """What training does to its process, and to variables."""
    use_highest_precision()
    compile_cache.keep_in(folder)
    os.environ["NPROC"] = "77"
    os.environ.pop("HOME")


@pytest.mark.parametrize("error", [None, KeyboardInterrupt])
def test_settings_variables_and_warnings_are_put_back(
    error: type[BaseException] | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/root")
    monkeypatch.delenv("NPROC", raising=False)
    before = state()

    def call() -> None:
        with as_guest():
            change(tmp_path / "cache")
            assert all(one != other for one, other in zip(state(), before, strict=True))
            if error:
                raise error

    if error:
        with pytest.raises(error):
            call()
    else:
        call()
    assert state() == before


def test_variables_alone_are_put_back_without_jax(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NPROC", raising=False)
    with variables_as_before():
        os.environ["NPROC"] = "77"
    assert "NPROC" not in os.environ
