# Two commands do everything on a machine with Python 3.11+, make and git: `make demo`, `make test`.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CORE_READY := $(VENV)/.core-ready
DEMO_READY := $(VENV)/.demo-ready
KERNELS_READY := $(VENV)/.kernels-ready
PYTEST := $(BIN)/pytest -n 4
BESIDE := $(MAKE) --no-print-directory --jobs=2
SITE := $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going --doctree-dir build/doctrees docs build/site
FIVE := explore-then-commit,elimination-greedy,elimination-random,elimination-lp,ucb

# The tests start hundreds of processes: none should compile all sources and tests for itself.
unexport PYTHONDONTWRITEBYTECODE

# Shows a dot a second while a command runs that is silent itself.
DOTS := sh -c '(while sleep 1; kill -0 $$$$ 2>/dev/null; do printf . >&2; done) & "$$@"; end=$$?; echo >&2; exit $$end' dots

.DEFAULT_GOAL := help
.PHONY: help setup browser demo check test chaos soak bench paper screenshots docs outputs clean
.PHONY: packages programs lint types contracts pages kernels bytecode quick no-copy
.PHONY: compiled compiled-small compiled-large

help:  ## Show the targets.
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-11s %s\n", $$1, $$2}' Makefile

$(BIN)/pip:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Shoal needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version)." >&2; exit 1; }
	@printf 'making the virtual environment ' >&2
	@$(DOTS) $(PYTHON) -m venv $(VENV)

# Bytecode is made when a module is first loaded: of all that is installed, most never is.
PIP_INSTALL := $(BIN)/python -m pip install --quiet --no-compile --constraint constraints.txt --editable
INSTALL := $(DOTS) $(PIP_INSTALL)

# A copy, from pip or a wheel, would hide the sources: they are installed in its place again.
COPY := $(wildcard $(VENV)/lib/python*/site-packages/shoal/__init__.py)
$(READY) $(CORE_READY) $(KERNELS_READY): $(if $(COPY),no-copy)

no-copy:  # the client too: it has a part of the same package
	@rm -f $(READY) $(CORE_READY) $(DEMO_READY) $(KERNELS_READY)
	@$(BIN)/python -m pip uninstall --quiet --quiet --yes shoal shoal-client

$(READY): pyproject.toml constraints.txt Makefile | $(BIN)/pip $(BEFORE)
	@printf 'installing Shoal and the development tools ' >&2
	@$(INSTALL) '.[dev]'
	@touch $@ $(CORE_READY) $(DEMO_READY) $(KERNELS_READY)

# What the kernels are compiled with: while they are, all else is installed and checked.
$(KERNELS_READY): pyproject.toml constraints.txt Makefile | $(BIN)/pip
	@printf 'installing what compiles ' >&2
	@$(INSTALL) '.[service,postgres]' pytest pytest-xdist
	@touch $@

$(CORE_READY): pyproject.toml constraints.txt Makefile | $(BIN)/pip
	@printf 'installing Shoal ' >&2
	@$(INSTALL) .
	@touch $@

$(DEMO_READY): $(CORE_READY)
	@$(PIP_INSTALL) '.[service]'
	@touch $@

setup: $(READY)  ## Make the virtual environment and install Shoal into it, with the development tools.

# The two learners on a core each; what is compiled is kept for every later start.
compiled: $(CORE_READY)
	@printf 'installing the service, and compiling, once ' >&2
	@$(DOTS) $(BESIDE) compiled-small compiled-large

compiled-small:  # from the sources: the package is installed again meanwhile
	@PYTHONPATH=src $(BIN)/python -m shoal.cli simulate shoal --horizon 50 --json >build/small.json 2>/dev/null

compiled-large: $(DEMO_READY)
	@$(BIN)/shoal simulate shoal --instance clustered --users 300 --horizon 50 --json >build/large.json 2>/dev/null
	@$(BIN)/shoal compare --policies $(FIVE) --horizon 2000 --runs 2 --workers 1 --json >build/five.json 2>/dev/null

demo:  ## Run the paper's experiment, shortened, then watch the service learn: two minutes.
	@rm -rf build/demo && mkdir -p build/demo
	@$(MAKE) --no-print-directory compiled
	$(BIN)/shoal compare --policies $(FIVE),shoal --horizon 5000 --runs 4 --out build/demo/paper
	$(BIN)/shoal demo --headless --seconds 15 --out build/demo/service | tee build/demo/service.txt
	@grep -q 'smallest group' build/demo/service.txt
	@echo "Two results are in build/demo. The paper's experiment with shoal beside it, in paper: regret-uniform.png,"
	@echo "regret-linear.png, summary.csv. The service, learning from totals: service.txt, and in the"
	@echo "folder service learning.png and reminders.png. For the whole experiment: shoal compare --out FOLDER; to watch"
	@echo "the service's pages as long as you like: shoal demo. Both are in .venv/bin."

# Programs, and the Debian packages that have them.
INSTALLED = (for name in $(1); do command -v $$name >/dev/null || exit 1; done) \
  || { test "$$(id -u)" = 0 && apt-get update -qq && apt-get install -qq -y --no-install-recommends $(2); } \
  || { echo "The tests need $(1); install with: sudo apt-get install $(2)" >&2; exit 1; }

PROGRAMS := nginx caddy promtool systemd-analyze
PACKAGES := nginx-light caddy prometheus systemd

browser:  # the pages are tested in a real one
	@$(call INSTALLED,chromium,chromium)

programs:  # what is in deploy/ is tested with these
	@$(call INSTALLED,$(PROGRAMS),$(PACKAGES))

packages:
	@$(call INSTALLED,chromium $(PROGRAMS),chromium $(PACKAGES))

lint: $(READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(READY)
	$(BIN)/mypy

contracts: $(READY)
	$(BIN)/lint-imports --no-cache

pages: $(READY)
	rm -rf docs/reference/api build/site  # an interrupted build leaves what the next one stumbles over
	$(SITE) --fresh-env

kernels: $(KERNELS_READY)  # and the charts' script; from the sources: the package may be installed again meanwhile
	PYTHONPATH=src $(BIN)/pytest -m kernels tests/recordings
	PYTHONPATH=src $(BIN)/python -c 'from shoal.service.dashboard.assets import *; load(CHARTS)'

bytecode: $(READY)  # of all tests and of what they import, once and not by each worker
	@mkdir -p build
	$(BIN)/pytest --collect-only -qq >build/collected.txt

quick:
	$(BIN)/pytest -n 2 --quick

check: $(READY)  ## Run the checks, and the tests that need no browser, cluster or PostgreSQL.
	@$(BESIDE) quick types lint contracts

test:  ## Run all checks and all tests.
	@$(BESIDE) BEFORE=$(KERNELS_READY) packages kernels types lint contracts pages bytecode
	$(PYTEST) -m 'not kernels'

chaos: $(READY)  ## Kill the service a hundred times per store while a campaign runs.
	SHOAL_CHAOS_POLICY=shoal SHOAL_CHAOS_KILLS=100 SHOAL_CHAOS_ROUNDS=200 $(BIN)/pytest tests/service/test_chaos.py

soak: $(READY)  ## Run the service for half an hour (SECONDS) while everything around it fails, on each store.
	STORE=sqlite $(BIN)/python -m benchmarks soak
	STORE=postgresql $(BIN)/python -m benchmarks soak

bench: $(READY)  ## Measure, side by side, and write the tables that the documentation shows.
	$(BIN)/python -m benchmarks all

paper: $(READY)  ## Collect the paper's numbers, draw its figures and compile build/paper/paper.pdf.
	$(BIN)/python -m benchmarks.manuscript

screenshots: $(READY) browser  ## Take the documentation's pictures of the dashboard.
	$(BIN)/python examples/screenshots.py

docs: $(READY)  ## Build the documentation and serve it on this machine.
	$(SITE)
	$(BIN)/python -m http.server --directory build/site --bind 127.0.0.1 8090

outputs: $(READY)  ## Write what the examples print into the pages that show it.
	$(BIN)/python -m tests.support.pages

clean:  ## Remove everything that was made here.
	rm -rf $(VENV) build docs/reference/api .mypy_cache .pytest_cache .ruff_cache .hypothesis
