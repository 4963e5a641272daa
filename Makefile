# Everything a user types. `make` alone lists it. The first target that runs anything makes the environment in .venv;
# after that no network is used. Variables: PYTHON=python3.12 chooses the interpreter, ARGS="--seed 1" is appended to a
# target's command, CUDA=1 (or 12, 13) with env installs the CUDA build of jax.

SHELL := /bin/sh
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.SUFFIXES:
MAKEFLAGS += --no-builtin-rules

PY := .venv/bin/python
ARGS ?=
CUDA_VERSION := $(if $(filter-out 0,$(CUDA)),$(if $(filter 13,$(CUDA)),13,12))
STAMP := .venv/.made$(if $(CUDA_VERSION),-cuda$(CUDA_VERSION))

# One rule a target; the text behind ## is what `make help` says.

.PHONY: demo_concat demo_copy demo_seeds smoke_train figs eval_order eval_order_inference eval_order_noise \
	eval_order_noise_inference eval_noise eval_noise_inference eval_diversity eval_languages study reproduce diversity stages languages language-model solutions functions theory text-corpus notebooks site site-check test-site bench gpu-check llc-validation llc-targets test test-robust test-all faults lint env clean help FORCE

demo_concat: $(STAMP) ## one linear layer on (x, y) tokens: trains it and compares it with gradient descent
	$(PY) -m runners.run_concat_inputs_targets --save_attention --eval_every 100 --out runs/demo_concat --overwrite $(ARGS)

demo_copy: $(STAMP) ## two layers on interleaved tokens: a softmax layer copies, a linear one does gradient descent
	$(PY) -m runners.run_softmax_copy --save_attention --eval_every 100 --out runs/demo_copy --overwrite $(ARGS)

demo_seeds: $(STAMP) ## five seeds of the main experiment, trained together
	$(PY) -m scripts.demo_seeds $(ARGS)

smoke_train: $(STAMP) ## trains four short runs and checks them; fails if a check fails
	bash scripts/smoke.sh $(ARGS)

figs: $(STAMP) ## draws the figures of the demo runs, and of the tables of sweeps, again from their files
	@set --; for run in runs/demo_*; do if [ -f "$$run/config.json" ]; then set -- "$$@" "$$run"; fi; done; \
	if [ $$# -gt 0 ] || ! ls results_*.csv > /dev/null 2>&1; then $(PY) -m plots.run_figures $${1+--run} "$$@" $(ARGS); fi
	@for table in results_*.csv; do if [ -f "$$table" ]; then \
	$(PY) -m plots.fig_templates --from "$$table" --out "figs/$${table%.csv}" || exit; fi; done

eval_order: $(STAMP) ## orders of the context's pairs, in training and evaluation
	$(PY) -m eval_order $(ARGS)

eval_order_inference: $(STAMP) ## orders at evaluation, for runs trained in random order
	$(PY) -m eval_order --train_ordering random --out results_order_inference.csv $(ARGS)

eval_order_noise: $(STAMP) ## orders at evaluation under label noise (p .25, .5), for runs trained with that noise in random order
	$(PY) -m eval_order $(NOISY_ORDERS) --out results_order_noise.csv $(ARGS)

eval_order_noise_inference: $(STAMP) ## orders at evaluation under label noise (p .25, .5), for runs trained clean in random order
	$(PY) -m eval_order $(NOISY_ORDERS) --train_noise_mode clean --out results_order_noise_inference.csv $(ARGS)

NOISY_ORDERS = --ordering random,easy2hard,hard2easy --train_ordering random \
	--noise_mode label_noise --p 0.25,0.5 --sigma 0.5 --placement mixed

eval_noise: $(STAMP) ## corrupted pairs and where they stand, in training and evaluation
	$(PY) -m eval_noise $(ARGS)

eval_noise_inference: $(STAMP) ## corrupted pairs (p 0, .5; mixed, noisy first) at evaluation, for runs trained clean
	$(PY) -m eval_noise --p 0,0.5 --placement mixed,noisy_first --train_noise_mode clean \
	--out results_noise_inference.csv $(ARGS)

study: $(STAMP) ## how order and noise of the context's pairs change learning: report/order_noise.md, its figures and tables; PROFILE=quick or full
	$(PY) -m studies.run order_noise --profile $(or $(PROFILE),quick) $(ARGS)

reproduce: $(STAMP) ## the paper's results: report/reproduction.md, its claims and figures; PROFILE=quick, full or gpu
	$(PY) -m studies.run reproduction --profile $(or $(PROFILE),quick) $(ARGS)

diversity: $(STAMP) ## task diversity and the transient ridge: report/task_diversity.md, its claims and figures; PROFILE=quick, full or gpu
	$(PY) -m studies.run task_diversity --profile $(or $(PROFILE),quick) $(ARGS)

stages: $(STAMP) ## how models develop, LLC and essential dynamics with their nulls: report/stages.md; PROFILE=quick, full or gpu
	$(PY) -m studies.run stages --profile $(or $(PROFILE),quick) $(ARGS)

languages: $(STAMP) ## in-context membership in regular languages: report/languages.md, its claims and figures; PROFILE=quick or full
	$(PY) -m studies.run languages --profile $(or $(PROFILE),quick) $(ARGS)

language-model: $(STAMP) ## Markov chains, triggers and text: report/language_model.md, its claims and figures; PROFILE=quick or full
	$(PY) -m studies.run language_model --profile $(or $(PROFILE),quick) $(ARGS)

solutions: $(STAMP) ## which solutions one layer finds: report/solutions.md, its claims and figures; PROFILE=quick or full
	$(PY) -m studies.run solutions --profile $(or $(PROFILE),quick) $(ARGS)

functions: $(STAMP) ## which functions decoders learn in context: report/functions.md, its claims and figures; PROFILE=quick or full
	$(PY) -m studies.run functions --profile $(or $(PROFILE),quick) $(ARGS)

theory: $(STAMP) ## what theory predicts of trained transformers: report/theory.md, its claims and figures; PROFILE=quick or full
	$(PY) -m studies.run theory --profile $(or $(PROFILE),quick) $(ARGS)

eval_languages: $(STAMP) ## models of membership in regular languages, compared with baselines such as gradient descent
	$(PY) -m eval_languages $(ARGS)

eval_diversity: $(STAMP) ## decoders trained on pools of M tasks, compared with ridge and dMMSE
	$(PY) -m eval_diversity $(ARGS)

text-corpus: $(STAMP) ## fetches two public-domain texts, 9 MB, into corpus/; then python -m runners.run_tokens --model text --corpus corpus
	$(PY) -m scripts.text_corpus $(ARGS)

notebooks: $(STAMP) ## makes tutorials/*.ipynb of their scripts, and executes those that changed (twelve minutes for all)
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-notebook.txt
	$(PY) -m scripts.notebooks --execute $(ARGS)

site: $(STAMP) ## builds the site; then open site/index.html, which needs no network; NOTEBOOKS=0 leaves outputs out of tutorials
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-site.txt
	$(if $(BARE),,$(PY) -m scripts.notebooks --execute)
	$(PY) -m scripts.site.build $(BARE) $(ARGS)

BARE = $(if $(filter 0,$(NOTEBOOKS)),--bare_notebooks)

site-check: site ## opens every page of the site in headless Chromium, narrow and wide, light and dark
	$(PY) -m scripts.site.check

test-site: $(STAMP) ## the tests of pages in a browser: the explorer, the results table, the check of the site
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-site.txt
	$(PY) -m pytest -m "not slow" tests/scripts/test_explorer.py tests/scripts/test_results_table.py tests/scripts/test_site.py

bench: $(STAMP) ## times training and commands, compared with a plain loop (three hours of a machine that does nothing else; ARGS="--only NAME" for some)
	$(PY) -m benchmarks.bench $(ARGS)
	$(PY) -m benchmarks.report

gpu-check: $(STAMP) ## on a GPU: numerical tests, the benchmark and the studies' claims, one JSON to send back (ARGS=--quick: two minutes)
	$(PY) -m scripts.gpu_check $(ARGS)

llc-validation: $(STAMP) ## the LLC estimator where the answer is known: docs/llc/validation.md (ten minutes; ARGS=--quick: one)
	$(PY) -m scripts.llc_validation $(ARGS)

llc-targets: $(STAMP) ## the LLC values that estimates are validated against, computed in NumPy: docs/llc/targets.csv (seven minutes)
	$(PY) -m scripts.llc_targets $(ARGS)

test: lint ## the tests, except the slow ones and those of test-robust
	$(PY) -m pytest -m "not slow and not robust" $(IN_TWO) $(ARGS)

test-robust: $(STAMP) ## the tests of locks, kills, executors, installation, foreign files and fuzzing; CI runs them after the others
	$(PY) -m pytest -m "robust and not slow" $(IN_TWO) $(ARGS)

test-all: lint ## all tests, with programs compiled as for users, fully optimised; installs what clusters need, and PyTorch
	$(PY) -m pip install --quiet --disable-pip-version-check -r requirements-ray.txt -r requirements-slurm.txt \
	-r requirements-tensorboard.txt -r requirements-wandb.txt -r requirements-notebook.txt -r requirements-torch.txt
	XLA_FLAGS= $(PY) -m pytest $(IN_TWO) $(ARGS)

IN_TWO = --durations=30 --durations-min=5 -n 2 --dist loadfile

faults: $(STAMP) ## plants faults in a copy of the tree, one at a time: the tests must catch each (an hour; ARGS="--only NAME")
	$(PY) -m scripts.plant_faults $(ARGS)

lint: $(STAMP) ## format, lint and types; changes nothing
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy

env: $(STAMP) ## makes .venv or brings it up to date; CUDA=1 for a GPU

clean: ## removes .venv and caches; runs/ stays
	rm -rf .venv .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

help: ## this list
	@awk -F ':.*## ' '/^[a-z][a-z_-]*:.*## / { printf "  make %-27s %s\n", $$1, $$2 }' Makefile

# The stamp is written last, so a half-finished installation does not count. An interpreter that is asked for by name is
# compared with the one in .venv each time.
$(STAMP): requirements.txt requirements-dev.txt $(if $(PYTHON),FORCE)
	@PYTHON="$(PYTHON)" sh scripts/make_env.sh $@ $(CUDA_VERSION)
