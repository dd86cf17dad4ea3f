# Two commands do everything on a machine with Python 3.11+, make and git: `make demo`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.DEFAULT_GOAL := help
.PHONY: help setup browser demo test chaos bench docs clean

help:  ## Show the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-8s %s\n", $$1, $$2}' Makefile

$(READY): pyproject.toml constraints.txt Makefile
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Shoal needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --editable '.[dev]' --constraint constraints.txt
	@touch $@

setup: $(READY)  ## Make the virtual environment and install Shoal into it.

demo: $(READY)  ## Run the paper's whole experiment and write its figures.
	rm -rf build/demo
	$(BIN)/shoal compare --out build/demo

browser:  # the pages are tested in a real one, which is a Debian package
	@command -v chromium >/dev/null \
	  || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } \
	  || { echo "The tests need Chromium; install it: sudo apt-get install chromium" >&2; exit 1; }

test: $(READY) browser  ## Run all checks and all tests.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/pytest -n auto --maxprocesses 4 --dist worksteal
	$(BIN)/mkdocs build --strict --quiet --site-dir build/site

chaos: $(READY)  ## Kill the service a hundred times per store while a campaign runs.
	SHOAL_CHAOS_POLICY=shoal SHOAL_CHAOS_KILLS=100 SHOAL_CHAOS_ROUNDS=200 $(BIN)/pytest tests/service/test_chaos.py

bench: $(READY)  ## Measure, side by side, and write the tables that the documentation shows.
	$(BIN)/python -m benchmarks

docs: $(READY)  ## Serve the documentation on this machine.
	$(BIN)/mkdocs serve

clean:  ## Remove everything that was made here.
	rm -rf $(VENV) build .mypy_cache .pytest_cache .ruff_cache .hypothesis
