# Everything a fresh machine needs: Python 3.11 and make. No step asks for root; the browser of the tests is installed
# where we are root, and unpacked into .venv where we are not.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
CORE := $(VENV)/.core

# Tests start Secant hundreds of times; where nothing is kept compiled, each start compiles all of it.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: setup setup-browser setup-clients setup-spark clients demo docs pictures test test-long check bench same lock clean

setup: $(STAMP)

$(STAMP): pyproject.toml requirements/dev.lock
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	touch $(STAMP)

# Clients of the PostgreSQL port that pip does not install, for `make test-long`: psql, JDBC, node. Works with and without root.
setup-clients: setup
	tests/clients/clients.sh

# Every check of docs/reference/postgresql-port.md with every client that is here; the page says what came of it.
clients: setup-clients
	$(BIN)/python docs/tools/checked_clients.py

setup-browser: setup
	tests/browser/chromium.sh

# Tests on Spark start a server, for which pip brings all but Java: installed where we are root, else skipped by name.
setup-spark: setup
	command -v java >/dev/null || test "$$(id -u)" != 0 || \
	  { apt-get update -qq && apt-get install -y -qq --no-install-recommends openjdk-17-jre-headless >/dev/null; } || true
	command -v java >/dev/null || echo "no Java: tests on Spark are skipped (Debian: apt install openjdk-17-jre-headless)"

# What answers questions, without what tests need; `make setup` adds that to the same environment.
$(CORE): pyproject.toml requirements/core.lock
	test -e $(STAMP) || $(PYTHON) -m venv $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/core.lock
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $(CORE)

demo: $(CORE)
	$(BIN)/secant demo

# The site, offline: every page, proofs and the Python reference; fails on a warning or a dead link.
docs: setup
	$(BIN)/python docs/tools/build_site.py

# What pages show of the library itself, drawn and written again; `git diff` then says what changed.
pictures: setup setup-browser
	$(BIN)/python docs/tools/pictures.py
	$(BIN)/python docs/tools/console_pictures.py
	$(BIN)/python docs/tools/error_codes.py
	$(BIN)/python docs/tools/coming_from.py

# `tests/workers.py` says what each worker gets: whole files, the longest first, and all of Spark as one. Checks run beside the
# tests, and are printed after them. (Spelled `make`: what is spelled $(MAKE) would run under `make -n`, too.)
test: setup setup-browser setup-spark
	@mkdir -p build; make --no-print-directory check >build/check.txt 2>&1 & checking=$$!; \
	$(BIN)/python -m pytest -n 2 -m "not long" tests; tested=$$?; \
	wait $$checking; checked=$$?; echo; echo "make check:"; cat build/check.txt; \
	test $$checked -eq 0 || echo "make check failed, as above" >&2; \
	test $$tested -eq 0 || echo "tests failed, as above" >&2; \
	test $$tested -eq 0 && test $$checked -eq 0

test-long: setup setup-browser setup-spark
	SECANT_PROFILE=long $(BIN)/python -m pytest -n 2 tests

check: setup
	$(BIN)/ruff check src tests bench
	$(BIN)/ruff format --check src tests bench
	$(BIN)/mypy
	$(BIN)/lint-imports

# What privacy costs in time, on one page, beside the run before; `python -m bench` runs all other benchmarks.
bench: setup
	$(BIN)/python -m bench.page $(if $(POSTGRES),--postgres $(POSTGRES))

# What a redesign must not change: `make same BEFORE=folder`, where the folder was written by the commit before.
same: setup
	$(BIN)/python -m bench.same write build/same $(if $(POSTGRES),--postgres $(POSTGRES))
	$(BIN)/python -m bench.same compare $(BEFORE) build/same

lock: # needs uv; no index address is written into the lock files
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header --all-extras pyproject.toml requirements/dev.in -o requirements/dev.lock
	uv pip compile --quiet --python-version 3.11 --generate-hashes --no-emit-index-url --no-header pyproject.toml -c requirements/dev.lock -o requirements/core.lock

clean:
	rm -rf $(VENV) build dist bench/data
