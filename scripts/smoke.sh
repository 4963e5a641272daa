#!/bin/sh
# Four short runs with what must hold of them, from any working directory: `make smoke_train` without make.
#     bash scripts/smoke.sh [FLAGS OF scripts.smoke_train]
# Runs go to runs/smoke of the repository; a relative --out is relative to the repository too.
set -eu
CDPATH="" cd -- "$(dirname -- "$0")/.."
py=.venv/bin/python
[ -x "$py" ] || py=python3
exec "$py" -m scripts.smoke_train "$@"
