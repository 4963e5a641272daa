"""Strict numerics, programs that compile fast, a fixed hypothesis profile. The root is on pytest's `pythonpath`."""

import gc
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import hypothesis
import jax
import pytest

from icl_lab.lab import compile_cache
from icl_lab.lab.loaded_plugins import LOADED, Plugin
from icl_lab.lab.native.compilers import compilers
from icl_lab.lab.registries import ALL
from icl_lab.src.registry import Registry

for name in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL", "ARGS"):
    os.environ.pop(name, None)  # of the make that runs the tests
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in a script's background: what tests start would ignore it too
    signal.signal(signal.SIGINT, signal.default_int_handler)

# A test's program runs once, so compiling it is what takes the time, here and in the processes that tests start. XLA
# reads this when JAX gets its devices. `make test-all` sets it empty: there, all is compiled as a user's.
QUICKLY_COMPILED = (
    "--xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true --xla_cpu_use_fusion_emitters=false "
    "--xla_cpu_parallel_codegen_split_count=1"
)
os.environ.setdefault("XLA_FLAGS", QUICKLY_COMPILED)
gc.set_threshold(30_000, 20, 50)  # tracing makes many objects, and at each collection JAX looks through its caches
jax.config.update("jax_numpy_rank_promotion", "raise")


def pytest_configure(config: pytest.Config) -> None:
    """This process's programs are kept for others and for later runs of the tests; `make clean` removes them."""
    if not config.pluginmanager.has_plugin("cacheprovider"):
        jax.config.update("jax_enable_compilation_cache", False)
    else:
        compile_cache.keep_in(config.cache.mkdir("programs"))


hypothesis.settings.register_profile(
    "fixed",
    derandomize=True,
    deadline=None,  # this and the next: no test depends on how busy the machine is
    suppress_health_check=[hypothesis.HealthCheck.too_slow],
    max_examples=30,
)
hypothesis.settings.load_profile("fixed")


@pytest.fixture(autouse=True, scope="module")
def few_programs() -> Iterator[None]:
    """A file's compiled programs go with it: a worker that keeps all needs 4 GB. What was there before it is not
    looked through for garbage again.
    """
    gc.freeze()
    yield
    jax.clear_caches()
    gc.collect()


@pytest.fixture(autouse=True, scope="session")
def cache_of_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is kept between processes lies in a folder of the tests, one for all processes that test."""
    base = tmp_path_factory.getbasetemp()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str((base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "cache"))
        yield


@pytest.fixture
def x64() -> Iterator[None]:
    """Float64 for identities."""
    with jax.enable_x64(True):
        yield


@pytest.fixture(scope="session")
def compiler() -> None:
    """Skips without a C++ compiler; where one has to be, as in CI, its lack fails."""
    if next(compilers(), None) is None:
        assert not os.environ.get("ICL_LAB_NEEDS_COMPILER"), "a C++ compiler has to be here"
        pytest.skip("no C++ compiler is here")


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository's root folder."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def registered() -> Iterator[Callable[[Registry[Any], str, Any], None]]:
    """Adds an entry to a registry as a plugin does; the test's end takes it back."""
    plugin = Plugin("of_a_test", Path("of_a_test.py"), *["0123456789abcdef"] * 2)
    LOADED[plugin.name] = plugin
    yield lambda registry, name, entry: registry.add(name, entry, plugin.name)
    for registry in ALL:
        registry.drop(plugin.name)
    del LOADED[plugin.name]
