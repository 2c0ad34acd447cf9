# Everything a fresh machine needs: Python 3.11 and make. No step asks for root.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: setup demo test test-long check bench lock clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(STAMP)

demo: setup
	$(BIN)/secant demo

test: check
	$(BIN)/python -m pytest -n 2 -m "not long" tests

test-long: setup
	SECANT_PROFILE=long $(BIN)/python -m pytest -n 2 tests

check: setup
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m bench

lock: # needs uv; no index address is written into the lock files
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml requirements/dev.in -o requirements/dev.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -c requirements/dev.lock -o requirements/core.lock

clean:
	rm -rf $(VENV) build dist bench/data
