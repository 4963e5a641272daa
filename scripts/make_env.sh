#!/bin/sh
# Creates .venv or updates it. The Makefile calls it from the repository root:
#     sh scripts/make_env.sh STAMP [12|13]
# STAMP is a file in .venv that is written last, so it marks a complete installation; the number asks for the CUDA build
# of jax. PYTHON names the interpreter.
set -eu

stamp=$1
cuda=${2:-}
venv=.venv
mark=$venv/.installing # exists during an installation, and after an interrupted one

fail() {
    echo "$*" >&2
    exit 1
}

is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1; }

# The interpreter's version and prefix; an environment has those of the interpreter that made it.
identity() { "$1" -c 'import sys; print("%d.%d.%d" % sys.version_info[:3], sys.base_prefix)' 2>/dev/null; }

# The interpreter, its version and its home.
if [ -n "${PYTHON:-}" ]; then
    python=$PYTHON
    asked=$(identity "$python") || asked=
    case $asked in
    [12].* | 3.[0-9].* | 3.10.*)
        fail "PYTHON=$python is Python ${asked%% *}; this project needs Python 3.11 or newer."
        ;;
    [3-9].*) ;;
    *) fail "PYTHON=$python does not run as Python: name an interpreter of Python 3.11 or newer." ;;
    esac
else
    asked=
    python=
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_supported "$candidate"; then
            python=$candidate
            break
        fi
    done
fi

# An existing .venv is replaced if there is a `reason`. Without PYTHON= any that works is kept.
reason=
if [ -f "$mark" ]; then
    owner=$(cat "$mark")
    case $(ps -p "${owner:-0}" -o args= 2>/dev/null || true) in
    *make_env*) fail "Process $owner is installing into $venv; try again when it has ended." ;;
    esac
    reason="The last installation into $venv was interrupted"
elif [ -d "$venv" ]; then
    if ! current=$(identity "$venv/bin/python"); then
        reason="The interpreter of $venv no longer runs"
    elif [ -n "$asked" ] && [ "$current" != "$asked" ]; then
        reason="$venv was made from another interpreter, Python ${current%% *}"
    elif [ -z "$asked" ] && ! is_supported "$venv/bin/python"; then
        reason="$venv is of Python ${current%% *}"
    elif [ "$stamp" -nt requirements.txt ] && [ "$stamp" -nt requirements-dev.txt ]; then
        exit 0
    fi
fi

if [ ! -d "$venv" ] || [ -n "$reason" ]; then
    [ -n "$python" ] || fail "No Python 3.11 to 3.14 on the path: install one, or name it with PYTHON=/path/to/python3."
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python lacks the module venv or ensurepip: install them (Debian, Ubuntu: apt install python3-venv)."
fi

# An update keeps the CUDA build.
for made in "$venv"/.made-cuda*; do
    [ -n "$cuda" ] || [ ! -f "$made" ] || cuda=${made##*-cuda}
done

if [ -n "$reason" ]; then
    echo "$reason; starting again."
    rm -rf "$venv"
fi

pip_install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: "$@"
}

set -- -r requirements.txt -r requirements-dev.txt
[ -z "$cuda" ] || set -- "$@" "jax[cuda$cuda]"

if [ -d "$venv" ]; then
    echo "Updating $venv ..."
    pip_install --dry-run "$@" >/dev/null # without a network it fails here, before anything is changed
    rm -f "$venv"/.made*
    echo $$ >"$mark"
else
    echo "Making $venv with $("$python" --version), a download of about 250 MB ..."
    mkdir "$venv"
    echo $$ >"$mark"
    "$python" -m venv "$venv"
fi

[ -z "$cuda" ] || echo "The CUDA $cuda build of jax is some GB more ..."
pip_install "$@"
# The command icl-lab, for any folder. A checkout from whose root Python starts comes before this one.
pip_install --no-index --no-deps --no-build-isolation --editable .
"$venv/bin/python" -m pip --disable-pip-version-check check >/dev/null ||
    fail "The packages in $venv contradict each other: run 'make clean' and try again."

# The native kernel is an option: trainings have XLA's programs too, and without a compiler a line says what to install.
"$venv/bin/python" -m scripts.build_native || true

rm -f "$mark"
touch "$venv/.made"
[ -z "$cuda" ] || touch "$venv/.made-cuda$cuda"
echo "$venv is ready."
