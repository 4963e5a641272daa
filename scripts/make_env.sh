#!/bin/sh
# Makes .venv, or brings it up to date. The Makefile calls it from the repository root:
#     sh scripts/make_env.sh STAMP [12|13]
# STAMP is a file in .venv that is written last, so it is there only when everything is; the number asks for the CUDA
# build of jax. PYTHON names the interpreter.
set -eu

stamp=$1
cuda=${2:-}
venv=.venv
mark=$venv/.installing # there while an installation runs; left behind by one that was cut off

fail() {
    echo "$*" >&2
    exit 1
}

is_supported() { "$1" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 15))' >/dev/null 2>&1; }

identity() { "$1" -c 'import sys; print(sys.base_prefix, *sys.version_info[:3])'; }

if [ -n "${PYTHON:-}" ]; then
    python=$PYTHON
    command -v "$python" >/dev/null || fail "PYTHON=$python is no command: name an interpreter of Python 3.11 or newer."
    version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])' 2>/dev/null) ||
        fail "PYTHON=$python does not run as Python: name an interpreter of Python 3.11 or newer."
    case $version in
    [12].* | 3.[0-9] | 3.10) fail "PYTHON=$python is Python $version; this project needs Python 3.11 or newer." ;;
    esac
else
    python=
    for candidate in python3 python3.14 python3.13 python3.12 python3.11; do
        if is_supported "$candidate"; then
            python=$candidate
            break
        fi
    done
fi

# Another make may be at it.
if [ -f "$mark" ]; then
    owner=$(cat "$mark")
    case $(ps -p "${owner:-0}" -o args= 2>/dev/null || true) in
    *make_env*) fail "Process $owner is installing into $venv; try again when it has ended." ;;
    esac
    echo "The last installation into $venv was cut off; starting again."
    rm -rf "$venv"
fi

# An environment of another interpreter than the one asked for makes way; without PYTHON= any that works stays.
if [ -d "$venv" ]; then
    if ! current=$(identity "$venv/bin/python" 2>/dev/null); then
        echo "The interpreter of $venv no longer runs; starting again."
        rm -rf "$venv"
    elif [ -n "${PYTHON:-}" ] && [ "$current" != "$(identity "$python")" ]; then
        echo "$venv is of Python ${current#* }, not of $python; starting again."
        rm -rf "$venv"
    elif ! is_supported "$venv/bin/python" && [ -z "${PYTHON:-}" ]; then
        fail "$venv is of a Python that is too old or too new: remove it with 'make clean' and try again."
    elif [ "$stamp" -nt requirements.txt ] && [ "$stamp" -nt requirements-dev.txt ]; then
        exit 0
    fi
fi

if [ ! -d "$venv" ]; then
    [ -n "$python" ] || fail "No Python 3.11 to 3.14 on the path: install one, or name it with PYTHON=/path/to/python3."
    "$python" -c 'import ensurepip, venv' 2>/dev/null ||
        fail "$python lacks the modules venv and ensurepip: install them (Debian and Ubuntu: apt install python3-venv)."
fi

# Once the CUDA build is in, an update keeps it.
for made in "$venv"/.made-cuda*; do
    [ -n "$cuda" ] || [ ! -f "$made" ] || cuda=${made##*-cuda}
done

pip_install() {
    "$venv/bin/python" -m pip install --quiet --disable-pip-version-check --no-input --only-binary=:all: "$@"
}

set -- -r requirements.txt -r requirements-dev.txt
[ -z "$cuda" ] || set -- "$@" "jax[cuda$cuda]"

if [ -d "$venv" ]; then
    echo "Updating $venv ..."
    pip_install --dry-run "$@" >/dev/null # without the network it fails here, and what is installed stays whole
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
"$venv/bin/python" -m pip --disable-pip-version-check check >/dev/null ||
    fail "The packages in $venv contradict each other: run 'make clean' and try again."

rm -f "$mark"
touch "$venv/.made"
[ -z "$cuda" ] || touch "$venv/.made-cuda$cuda"
echo "$venv is ready."
