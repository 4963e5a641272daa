#!/bin/sh
# Trains the runs of a sweep over depth, noise or context, evaluates them per layer, and plots each with gradient descent.
#     sh scripts/run_depth_sweep.sh [--sweep depth] [--model linear] [--preset default] [--steps N] [--seeds "0 1"]
#         [--num_tasks 5000] [--out runs/depth_sweep] [-- FLAGS OF THE RUNNER]
# SWEEP, MODEL, PRESET, STEPS, SEEDS, NUM_TASKS and OUT in the environment do the same; PY is the interpreter. A second
# call skips finished runs and resumes the stopped one.
set -eu
cd "$(dirname "$0")/.."

fail() {
    echo "error: $*" >&2
    exit 2
}

while [ $# -gt 0 ]; do
    case $1 in
    --) shift && break ;;
    --sweep | --model | --preset | --steps | --seeds | --num_tasks | --out)
        [ $# -gt 1 ] || fail "$1 needs a value"
        name=$(echo "${1#--}" | tr '[:lower:]' '[:upper:]')
        eval "$name=\$2"
        shift 2
        ;;
    *) fail "unknown argument $1; known are --sweep, --model, --preset, --steps, --seeds, --num_tasks, --out and --" ;;
    esac
done

sweep=${SWEEP:-depth} model=${MODEL:-linear} preset=${PRESET:-default} seeds=${SEEDS:-0}
num_tasks=${NUM_TASKS:-5000} out=${OUT:-runs/depth_sweep} py=${PY:-.venv/bin/python}

for seed in $seeds; do
    case $seed in *[!0-9]*) fail "seeds has '$seed'; each must be a whole number" ;; esac
done
case $sweep in # the flag that differs between the runs of a sweep, and its values
depth) flag=--num_layers values="2 4 8 12 24" ;;
noise) flag=--config.noise_std values="0.0 0.02 0.05 0.1" ;;
context) flag=--config.num_pairs values="10 20 40" ;;
*) fail "sweep is '$sweep'; choose depth, noise or context" ;;
esac

all=
for value in $values; do
    run=$flag=$value
    folder=$out/$model/${run#--}
    files= first=
    for seed in $seeds; do
        "$py" -m runners.run_layerwise --model "$model" --preset "$preset" --seed "$seed" "$run" ${STEPS:+--steps "$STEPS"} \
            --out "$folder/seed_$seed" "$@"
        "$py" -m analysis.layerwise --run "$folder/seed_$seed" --num_tasks "$num_tasks"
        files="$files $folder/seed_$seed/analysis/layerwise_metrics.json"
        first=${first:-$folder/seed_$seed}
    done
    "$py" -m analysis.gd_curve --like "$first" --num_tasks "$num_tasks" --steps 24 \
        --out "$folder/gd_metrics.json"
    "$py" -m plots.compare_depth --gd "$folder/gd_metrics.json" --layerwise $files --references ridge --out "$folder"
    all="$all $first/analysis/layerwise_metrics.json"
done
if [ "$sweep" = depth ]; then
    "$py" -m plots.compare_depth --gd "$folder/gd_metrics.json" --layerwise $all --references ridge --out "$out/$model"
fi
