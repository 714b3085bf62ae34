# Needs python3 >= 3.11 and make. Everything else is installed on first use into .venv, from the
# hash-pinned locks in requirements/. PYTHON=python3.12 make test uses .venv-python3.12 instead.

PYTHON ?= python3
VENV ?= .venv$(addprefix -,$(notdir $(filter-out python3,$(PYTHON))))
BIN := $(VENV)/bin

# Stamps of what is installed, keyed by the content of the locks: a touched file or a switched
# branch with the same locks costs nothing, and a changed lock makes the environment exact again.
READY := $(VENV)/.ready-$(shell cat requirements/*.txt pyproject.toml | cksum | cut -d' ' -f1)

unexport PYTHONDONTWRITEBYTECODE # the tests start thousands of processes, which load what is compiled

# A test waits for disks and other processes for about as long as it computes: twice as many workers
# as there are cores. Tests of one file stay with one worker, as far as the others have work of their own.
CORES = $(shell $(BIN)/python -c \
  'import os; print(len(getattr(os, "sched_getaffinity", lambda _: range(os.cpu_count()))(0)))')
TOGETHER = -n $(shell expr $(CORES) \* 2) --dist worksteal

.NOTPARALLEL: # two installers in one environment would race

# The frameworks of agents want versions of their own: they are installed beside, not into, what all
# other tests run in.
FRAMEWORKS := .venv-frameworks

.PHONY: help run test test-frameworks types-frameworks torture lint format types check bench dist lock \
  clean test-in-frameworks types-in-frameworks

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' Makefile

run: $(READY)/test ## agents that are killed, and go on
	@$(BIN)/hardsave demo

test: $(READY)/test ## all tests but the torture; ARGS="-k name" goes to pytest
	@$(BIN)/python -m pytest $(TOGETHER) $(ARGS)

torture: $(READY)/test ## the tests that take minutes
	@$(BIN)/python -m pytest $(TOGETHER) -m torture $(ARGS)

test-frameworks: ## the adapters for agent frameworks, in an environment of their own
	@$(MAKE) --no-print-directory VENV=$(FRAMEWORKS) test-in-frameworks

types-frameworks: ## mypy, strict, of these adapters against the real frameworks
	@$(MAKE) --no-print-directory VENV=$(FRAMEWORKS) types-in-frameworks

# ARGS may name files; without any, all tests of frameworks are run.
test-in-frameworks: $(READY)/frameworks
	@HARDSAVE_TEST_FRAMEWORKS=1 $(BIN)/python -m pytest -p pytest_asyncio.plugin -p anyio.pytest_plugin \
	  -o asyncio_default_fixture_loop_scope=function $(TOGETHER) \
	  $(if $(filter tests/%,$(ARGS)),,tests/frameworks) $(ARGS)

types-in-frameworks: $(READY)/frameworks
	@$(BIN)/mypy --config-file tests/frameworks/mypy.toml --cache-dir .mypy_cache/frameworks \
	  src/hardsave/adapters tests/frameworks examples/frameworks

lint: $(READY)/lint ## rules and formatting
	@$(BIN)/ruff check
	@$(BIN)/ruff format --check

format: $(READY)/lint ## repair what lint can repair by itself
	@$(BIN)/ruff check --fix
	@$(BIN)/ruff format

types: $(READY)/lint ## mypy, strict; what is installed also as macOS would have it
	@$(BIN)/mypy $(wildcard src tests bench examples)
	@$(BIN)/mypy --platform darwin --cache-dir .mypy_cache/darwin src

check: lint types test ## all three

bench: $(READY)/bench ## side by side with peers
	@$(BIN)/python -m bench $(ARGS)

dist: $(READY)/core ## sdist and wheel, into dist/; what is built is tried by a test
	@rm -rf dist
	@$(BIN)/python -m hatchling build

clean: ## remove what was built and installed
	rm -rf .venv .venv-* dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# The locks agree with each other because each is cut from one resolution of all groups together.
# Versions stay as they are where they can; make lock UPGRADE=--upgrade moves them.
GROUPS := test lint bench frameworks
ALL := $(VENV)/all.txt
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
  --no-annotate --no-emit-index-url --custom-compile-command 'make lock' $(UPGRADE)
PROJECT = pyproject.toml --group build

lock: $(READY)/core ## resolve the dependencies anew
	cat $(foreach g,core $(GROUPS),requirements/$g.txt) > $(ALL)
	$(COMPILE) $(PROJECT) $(GROUPS:%=--group %) -o $(ALL)
	$(COMPILE) $(PROJECT) -c $(ALL) -o requirements/core.txt
	set -e; for group in $(GROUPS); do \
	  $(COMPILE) $(PROJECT) --group $$group -c $(ALL) -o requirements/$$group.txt; done
	$(COMPILE) --group uv -o requirements/uv.txt

# Wheels only: to build one would fetch build tools that no lock pins.
LOCKED := --quiet --require-hashes --only-binary :all: -r
PIP := $(BIN)/python -m pip install $(LOCKED)
UV := $(BIN)/uv pip install --python $(BIN)/python

$(READY)/core:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo >&2 \
	  "$(PYTHON) is not Python 3.11 or newer; install one and name it: PYTHON=python3.12 make"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' || { echo >&2 \
	  "$(PYTHON) cannot make virtual environments; on Debian: apt-get install python3-venv"; exit 1; }
	@echo "installing into $(VENV) ..."
	@rm -rf $(VENV)/.ready-*
	@$(BIN)/python -m pip --version >/dev/null 2>&1 || $(PYTHON) -m venv --clear $(VENV)
	@$(PIP) requirements/uv.txt
	@$(UV) --exact $(LOCKED) requirements/core.txt || $(PIP) requirements/core.txt
	@$(UV) --quiet --no-build-isolation --no-deps --editable .
	@mkdir $(@D) && touch $@

# uv does not read pip's settings: where only pip knows the way to a mirror, pip does it, slower.
$(READY)/%: $(READY)/core
	@$(UV) $(LOCKED) requirements/$*.txt || $(PIP) requirements/$*.txt
	@touch $@
