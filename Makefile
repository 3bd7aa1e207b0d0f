# One command does one job; each makes the virtual environment it needs first.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# uv sets up in seconds where it is installed; plain pip does the same elsewhere.
UV := $(shell command -v uv)
ifneq ($(UV),)
MAKE_VENV := $(UV) venv --quiet --seed --python $(PYTHON) $(VENV)
INSTALL := $(UV) pip install --quiet --python $(BIN)/python --editable
else
MAKE_VENV := $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet --upgrade pip
INSTALL := $(BIN)/python -m pip install --quiet --editable
endif
# The versions of Python that Tacit is for.
PYTHONS := 3.11 3.12 3.13 3.14
# Repetitions and tests use the cores; threads inside small matrix products only get in their way.
export OPENBLAS_NUM_THREADS = 1
# Tests start many processes; without it each would translate the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo test slow numeric plain matrix soak lint hooks docs bench clean

run: $(VENV)/.installed
	$(BIN)/tacit reproduce all --quick --out results/reproduce

demo: $(VENV)/.service
	$(BIN)/tacit demo

# Three processes for two cores: some tests wait for servers, browsers and signals.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow -n 3 --dist loadfile --no-loadscope-reorder

# What depends on matrix products, with those of other processors (Prescott is the oldest that OpenBLAS knows),
# and kernels compiled for no processor in particular, which fuse no multiplication with an addition.
PRODUCTS := tests/contextual tests/graphs
KERNELS := tests/contextual/test_users_oracle.py tests/contextual/test_users_worlds.py tests/arms/test_arms_oracles.py \
	tests/arms/test_private_blocks.py tests/arms/test_graph_policies.py
numeric: $(VENV)/.dev
	OPENBLAS_CORETYPE=Prescott $(BIN)/python -m pytest -n 2 --dist loadfile $(PRODUCTS)
	OPENBLAS_CORETYPE=Haswell $(BIN)/python -m pytest -n 2 --dist loadfile $(PRODUCTS)
	NUMBA_CPU_NAME=generic $(BIN)/python -m pytest -n 2 --dist loadfile $(KERNELS)

# Numba as it is, as in a program that imports Tacit: kernels of every kind, compiled anew.
plain: $(VENV)/.dev
	TACIT_PLAIN_NUMBA=1 NUMBA_CACHE_DIR=$(abspath $(VENV))/plain-kernels \
		$(BIN)/python -m pytest -n 2 --dist loadfile tests/test_kernels.py \
		tests/battery/test_repeatability.py $(KERNELS)

# The quick tests on each version of Python that is installed, in a virtual environment of its own.
matrix: $(PYTHONS:%=python-%)

python-%:
	@if python$* -c '' 2>/dev/null; then $(MAKE) test PYTHON=python$* VENV=.venv-$*; \
	else echo "python$* is not installed: skipped"; fi

soak: $(VENV)/.dev
	$(BIN)/python -m pytest -m soak

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# The same checks before every commit; once, it needs the program pre-commit.
hooks: $(VENV)/.dev
	pre-commit install

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py

$(VENV)/.python:
	$(MAKE_VENV)
	touch $@

$(VENV)/.installed: pyproject.toml studies/pyproject.toml | $(VENV)/.python
	$(INSTALL) '.[cli]' --editable studies
	touch $@

# It holds what a user installs, too: one installation, not two.
$(VENV)/.dev: pyproject.toml studies/pyproject.toml | $(VENV)/.python
	$(INSTALL) '.[dev]' --editable studies
	touch $(VENV)/.installed $@

$(VENV)/.service: $(VENV)/.installed
	$(INSTALL) '.[service]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(INSTALL) '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) $(PYTHONS:%=.venv-%) results site
