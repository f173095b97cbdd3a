PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DIT_DATA ?= $(abspath ../shared/data)
export DIT_DATA
STAMP := $(VENV)/.installed
ANJANA := .venv-anjana
ANJANA_STAMP := $(ANJANA)/.installed

.PHONY: setup third-party demo test coverage test-slow check docs bench clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "dit_dask needs Python 3.11 or newer; set PYTHON=")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install -qq --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $@

# anjana pins an older pandas and NumPy than ours, so it lives in an environment of its own, as it would at a user's
third-party: $(ANJANA_STAMP)

$(ANJANA_STAMP): tests/third_party/constraints.txt | $(STAMP)
	test -x $(ANJANA)/bin/python || $(PYTHON) -m venv --without-pip $(ANJANA)
	$(BIN)/python -m pip --python $(ANJANA)/bin/python install -qq --disable-pip-version-check --no-compile --constraint tests/third_party/constraints.txt anjana
	$(BIN)/python -m pip --python $(ANJANA)/bin/python install -qq --disable-pip-version-check --no-deps --editable .
	touch $@

demo: setup
	$(BIN)/dit demo

# files in the order of their folders, so that the long ones of tests/cluster do not come last
test: setup third-party
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile --no-loadscope-reorder

# tracing every line makes tests of plain Python up to twice as slow
coverage: setup third-party
	$(BIN)/python -m pytest -m "not slow" --numprocesses 2 --dist loadfile --no-loadscope-reorder --cov --cov-report=term:skip-covered

test-slow: setup third-party
	$(BIN)/python -m pytest -m slow

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive dit_dask
	$(BIN)/python tools/audit_dependencies.py

# a warning, a missing page or a missing anchor is an error; the pages are in build/site
docs: setup
	$(BIN)/python -m sphinx -E -W --keep-going -q -b html docs build/site

bench: setup
	for script in benchmarks/*.py; do $(BIN)/python $$script || exit 1; done

clean:
	rm -rf $(VENV) $(ANJANA) build dist *.egg-info .coverage .mypy_cache .pytest_cache .ruff_cache .hypothesis
