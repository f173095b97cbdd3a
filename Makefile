PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIT_DATA ?= $(abspath ../shared/data)
export DIT_DATA
STAMP := $(VENV)/.installed

.PHONY: setup demo test test-slow check bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dit_dask needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

demo: setup
	$(BIN)/dit demo

test: setup
	$(BIN)/python -m pytest -m "not slow" --cov --cov-report=term:skip-covered

test-slow: setup
	$(BIN)/python -m pytest -m slow

check: setup
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --recursive dit_dask
	$(BIN)/python tools/audit_dependencies.py

bench: setup
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) build dist *.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
