# One command does one job; each makes the virtual environment it needs first.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# Repetitions and tests use the cores; threads inside small matrix products only get in their way.
export OPENBLAS_NUM_THREADS = 1
# Tests start many processes; without it each would translate the package anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run demo test slow soak lint docs bench clean

run: $(VENV)/.installed
	$(BIN)/tacit reproduce all --quick --out results/reproduce

demo: $(VENV)/.service
	$(BIN)/tacit demo

# Three processes for two cores: some tests wait for servers, browsers and signals.
test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 3 --dist loadfile --no-loadscope-reorder

slow: $(VENV)/.dev
	$(BIN)/python -m pytest -m slow -n 3 --dist loadfile --no-loadscope-reorder

soak: $(VENV)/.dev
	$(BIN)/python -m pytest -m soak

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.docs
	$(BIN)/mkdocs build --strict

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/all.py

$(VENV)/.python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	touch $@

$(VENV)/.installed: pyproject.toml | $(VENV)/.python
	$(BIN)/python -m pip install --quiet --editable '.[cli]'
	touch $@

# It holds what a user installs, too: one installation, not two.
$(VENV)/.dev: pyproject.toml | $(VENV)/.python
	$(BIN)/python -m pip install --quiet --editable '.[dev]'
	touch $(VENV)/.installed $@

$(VENV)/.service: $(VENV)/.installed
	$(BIN)/python -m pip install --quiet --editable '.[service]'
	touch $@

$(VENV)/.docs: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --editable '.[docs]'
	touch $@

clean:
	rm -rf $(VENV) results site
