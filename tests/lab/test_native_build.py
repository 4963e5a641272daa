"""The native kernel's object: built with the machine's compiler, kept, checked; what goes wrong is a sentence."""

import json
import os
import shutil
import stat
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from icl_lab.lab import caches, compile_cache
from icl_lab.lab.native import build, compilers, kept
from icl_lab.lab.native.build import Recipe, found_or_built
from icl_lab.lab.native.kernel import Kernel

pytestmark = pytest.mark.robust

STAND_IN = 'extern "C" int icl_lanes() { return LANES; }\n'
CHECK = "import ctypes, sys; sys.exit(ctypes.CDLL(sys.argv[1]).icl_lanes() != 4 and 'error: not four lanes')"


@pytest.fixture
def recipe(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Recipe:
    """A kernel that compiles at once, in a cache of its own."""
    source = tmp_path / "source"
    source.mkdir()
    (source / "native.cpp").write_text('#include "lanes.hpp"\n' + STAND_IN)
    (source / "lanes.hpp").write_text("#define LANES 4\n")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("CXX", raising=False)
    return Recipe(source, check=(sys.executable, "-c", CHECK))


def script(path: Path, text: str) -> Path:
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def counting(folder: Path, name: str = "c++") -> Path:
    """A compiler that notes each call that is to make an object; `calls` counts them."""
    real = shutil.which("c++") or shutil.which("g++") or shutil.which("clang++")
    return script(folder / name, f'case "$*" in *native.cpp*) echo call >> {folder}/calls;; esac\nexec {real} "$@"')


def calls(folder: Path) -> int:
    path = folder / "calls"
    return len(path.read_text().splitlines()) if path.exists() else 0


def place() -> Path:
    return kept.folder()


def names() -> list[str]:
    return sorted(path.suffix for path in place().iterdir())


@pytest.mark.usefixtures("compiler")
class TestWithACompiler:
    def test_it_is_built_once_in_a_private_folder(
        self, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CXX", str(counting(tmp_path / "bin")))
        first, second = found_or_built(recipe), found_or_built(recipe)
        assert first.path is not None, first.why
        assert first == second
        assert calls(tmp_path / "bin") == 1
        assert names() == [".json", ".so"]
        assert stat.S_IMODE(place().stat().st_mode) == 0o700
        facts = json.loads(next(place().glob("*.json")).read_text())
        assert (facts["lanes"], facts["source"]) == (4, kept.source_hash(recipe.source))
        assert "-O3" in facts["flags"]
        assert not {"-ffast-math", "-Ofast", "-ffinite-math-only"} & {*facts["flags"].split()}
        assert first.described == f"native {facts['source']}, {facts['compiler']}, 4 lanes"

    def test_what_it_is_made_of_is_its_name(self, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
        tags = [found_or_built(recipe).tag]
        (recipe.source / "lanes.hpp").write_text("#define LANES 2 + 2\n")
        tags.append(found_or_built(recipe).tag)
        monkeypatch.setattr(compilers, "FLAGS", (*compilers.FLAGS, "-g0"))
        tags.append(found_or_built(recipe).tag)
        monkeypatch.setattr(kept, "version", lambda package: "0.0.1")
        tags.append(found_or_built(recipe).tag)
        assert len(set(tags)) == 4
        monkeypatch.setattr(compile_cache, "cpu", lambda: "another")
        assert found_or_built(recipe).path is not None
        assert len([*compile_cache.default_folder().glob("native-*")]) == 2

    @pytest.mark.parametrize("damage", ["cut", "changed", "gone", "a link", "no JSON"])
    def test_a_damaged_object_is_never_given_and_built_anew(
        self, damage: str, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CXX", str(counting(tmp_path / "bin")))
        made = found_or_built(recipe).path
        assert made is not None
        content = made.read_bytes()
        if damage == "cut":
            os.truncate(made, 1000)
        elif damage == "changed":
            made.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))
        elif damage == "gone":
            made.unlink()
        elif damage == "a link":
            made.rename(tmp_path / "elsewhere.so")
            made.symlink_to(tmp_path / "elsewhere.so")
        else:
            next(place().glob("*.json")).write_text('{"object": ')
        again = found_or_built(recipe)
        assert again.path == made
        assert made.read_bytes() == content
        assert not made.is_symlink()
        assert calls(tmp_path / "bin") == 2

    def test_processes_that_build_at_once_give_one_object(self, recipe: Recipe, root: Path) -> None:
        code = "import sys, pathlib; from icl_lab.lab.native.build import Recipe, found_or_built; "
        code += "print(found_or_built(Recipe(pathlib.Path(sys.argv[1]), check=(sys.executable, '-c', sys.argv[2]))))"
        line = [sys.executable, "-c", code, str(recipe.source), CHECK]
        begun = [subprocess.Popen(line, cwd=root, stdout=subprocess.PIPE, text=True) for _ in range(4)]
        said = {process.communicate()[0] for process in begun}
        assert said == {f"{found_or_built(recipe)}\n"}
        assert names() == [".json", ".so"]

    def test_a_compiler_is_the_same_by_all_its_names(self, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
        real = shutil.which("c++") or ""
        made = [found_or_built(recipe)]
        monkeypatch.setenv("CXX", os.path.realpath(real))
        assert [found_or_built(recipe)] == made

    def test_flags_that_a_compiler_refuses_are_left_out(
        self, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        real = shutil.which("c++")
        refusing = 'case "$*" in *-march=*|*-mcpu=*|*-fno-ivopts*) echo "error: unknown" >&2; exit 1;; esac'
        monkeypatch.setenv("CXX", str(script(tmp_path / "bin" / "c++", f'{refusing}\nexec {real} "$@"')))
        made = found_or_built(recipe)
        assert made.path is not None, made.why
        facts = json.loads(next(place().glob("*.json")).read_text())
        assert facts["flags"].split() == [*compilers.FLAGS]

    def test_an_object_that_this_cpu_cannot_run_is_built_for_any(self, recipe: Recipe) -> None:
        """An emulator may say that it has what it has not: an object for this CPU dies, and one for all does not."""
        flags = '#ifdef __AVX2__\nextern "C" int icl_wide() { return 1; }\n#endif\n'
        (recipe.source / "lanes.hpp").write_text(f"#define LANES 4\n{flags}")
        check = "import ctypes, os, sys; hasattr(ctypes.CDLL(sys.argv[1]), 'icl_wide') and os.kill(os.getpid(), 4)"
        made = found_or_built(recipe._replace(check=(sys.executable, "-c", check)))
        assert made.path is not None, made.why

    def test_a_failed_check_is_told_and_remembered(
        self, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        compiler = counting(tmp_path / "bin")
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}")
        script(tmp_path / "bin" / "as", 'exec /usr/bin/as "$@"')
        script(tmp_path / "bin" / "ld", 'exec /usr/bin/ld "$@"')
        (recipe.source / "lanes.hpp").write_text("#define LANES 5\n")
        first = found_or_built(recipe)
        tried = calls(tmp_path / "bin")
        assert first.path is None
        assert first.described == "xla"
        assert first.why.startswith(f"{compiler} (")
        assert "builds no native kernel: its check fails: error: not four lanes; install g++" in first.why
        assert "\n" not in first.why
        assert found_or_built(recipe) == first
        assert calls(tmp_path / "bin") == tried
        assert names() == [".failed"]
        (recipe.source / "lanes.hpp").write_text("#define LANES 4\n")
        assert found_or_built(recipe).path is not None

    def test_a_failure_is_tried_again_when_asked(self, recipe: Recipe, tmp_path: Path) -> None:
        wrong = recipe._replace(check=(sys.executable, "-c", "raise SystemExit('no')"))
        assert found_or_built(wrong).path is None
        assert found_or_built(recipe).path is None
        assert found_or_built(recipe, retry=True).path is not None
        assert found_or_built(recipe).path is not None

    def test_a_second_compiler_is_tried_where_the_first_fails(
        self, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("CXX", "/bin/false")
        assert found_or_built(recipe).path is not None
        broken = script(tmp_path / "bin" / "mine", 'test "$1" = --version && echo mine 1.0 && exit 0\nexit 3')
        monkeypatch.setenv("CXX", str(broken))
        made = found_or_built(recipe)
        assert made.path is not None
        assert "mine" not in made.described

    def test_a_build_that_takes_too_long_is_ended_with_its_children(
        self, recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        slow = f"sleep 300 & echo $! >> {tmp_path}/child; wait"
        script(tmp_path / "bin" / "c++", f'test "$1" = --version && echo slow && exit 0\n{slow}')
        monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin")
        monkeypatch.setattr(compilers, "NAMES", ("c++",))
        began = time.monotonic()
        made = found_or_built(recipe._replace(seconds=1.0))
        assert made.path is None
        assert "it took longer than 1 s" in made.why
        assert time.monotonic() - began < 60
        for child in (tmp_path / "child").read_text().split():
            state = Path(f"/proc/{child}/stat")
            assert not state.exists() or state.read_text().split()[2] == "Z"  # which its new parent has not read

    def test_objects_count_towards_the_cache_and_are_not_evicted(
        self, recipe: Recipe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        made = found_or_built(recipe).path
        assert made is not None
        programs = caches.private_folder(compile_cache.default_folder() / compile_cache.key())
        size = made.stat().st_size + next(place().glob("*.json")).stat().st_size
        for number in range(3):
            (programs / f"{number}-cache").write_bytes(bytes(1000))
            os.utime(programs / f"{number}-cache", (2e9 + number, 2e9 + number))  # newer than the object
        monkeypatch.setattr(caches, "MOST_BYTES", size + 2000)
        caches.tidy(compile_cache.default_folder(), compile_cache.PROGRAMS, counted=compile_cache.NATIVE)
        assert sorted(path.name for path in programs.iterdir()) == ["1-cache", "2-cache"]
        assert made.exists()

    def test_old_objects_and_drafts_go(self, recipe: Recipe, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(kept, "MOST_OBJECTS", 2)
        tags = []
        for number in range(4):
            (recipe.source / "lanes.hpp").write_text(f"#define LANES 4 + 0 * {number}\n")
            tags.append(found_or_built(recipe).tag)
            for path in place().glob(f"{tags[-1]}*"):
                os.utime(path, (1000.0 + number,) * 2)
        draft = place() / "build-of-a-killed-process"
        draft.mkdir()
        os.utime(draft, (1000, 1000))
        (recipe.source / "lanes.hpp").write_text("#define LANES 4 + 0 * 9\n")
        tags.append(found_or_built(recipe).tag)
        assert {path.name[: kept.DIGITS] for path in place().iterdir()} == {*tags[-2:]}


def test_without_a_compiler_the_reason_says_what_to_install(
    recipe: Recipe, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("PATH", str(tmp_path / "empty"))
    assert found_or_built(recipe) == Kernel(why=f"no C++ compiler; {build.INSTALL}")
    monkeypatch.setenv("CXX", "/bin/false")
    assert found_or_built(recipe) == Kernel(why=f"no C++ compiler; {build.INSTALL}")


@pytest.fixture
def mounted(tmp_path: Path) -> Iterator[str]:
    """Mounts a file system of memory with these options at `cache`."""
    made = []

    def mount(options: str) -> Path:
        folder = tmp_path / "cache"
        folder.mkdir(exist_ok=True)
        line = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
        if os.getuid() != 0 or subprocess.run(line, capture_output=True).returncode:
            pytest.skip("only root mounts file systems, and not everywhere")
        made.append(folder)
        return folder

    yield mount
    for folder in made:
        subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.usefixtures("compiler")
@pytest.mark.parametrize(
    ("options", "says"),
    [("noexec", "is mounted noexec"), ("ro", "Read-only file system"), ("size=16k", "No space left on device")],
)
def test_a_cache_in_which_nothing_can_be_kept_or_run_is_told(
    options: str, says: str, recipe: Recipe, mounted: Iterator[str]
) -> None:
    mounted(options)
    made = found_or_built(recipe)
    assert made.path is None
    assert says in made.why
    assert "set XDG_CACHE_HOME" in made.why


def test_a_folder_open_to_others_is_told(recipe: Recipe, tmp_path: Path) -> None:
    folder = tmp_path / "cache" / "icl-lab"
    folder.mkdir(parents=True, mode=0o755)
    made = found_or_built(recipe)
    assert made.path is None
    assert "is open to other users" in made.why


@pytest.mark.usefixtures("compiler")
def test_the_kernel_itself_is_built_and_passes_its_check() -> None:
    """Where the tests keep what they compile."""
    made = found_or_built()
    assert made.path is not None, made.why
    assert made.described.rpartition(", ")[2] in ("4 lanes", "8 lanes", "16 lanes")
    assert build.of_this_machine(made) == made
    assert build.of_this_machine(made._replace(tag="of another machine", asked="native")) == made._replace(
        asked="native"
    )
