# make run     the dashboard, on a machine with nothing but Python 3.11 to 3.14 and make
# make test    what a contributor runs: eight minutes on two idle cores
# make test-all    that, and what takes long and rarely finds anything: all that CI runs
# make check   the quick part of it: unit and contract tests that a change can reach, without those
#              that take seconds and stand in no changed file
# make docs    the documentation, into build/docs
# Nothing is installed outside $(VENV). A stamp file records each installation, so that a second run
# starts at once.

PYTHON ?= python3
VENV   ?= .venv

PY         := $(VENV)/bin/python
RUN_STAMP  := $(VENV)/.dpviz-run
DEV_STAMP  := $(VENV)/.dpviz-dev
BEGUN      := $(VENV)/.dpviz-begun
PYTHON_OK  := import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 14))

# One BLAS thread in every process: the same bytes whatever the number of cores (docs/scale.md), and
# workers that do not fight for them.
export OPENBLAS_NUM_THREADS    := 1
export OMP_NUM_THREADS         := 1
export MKL_NUM_THREADS         := 1
export VECLIB_MAXIMUM_THREADS  := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help run dev test test-all test-long check lint format docs lock audit wheel browser-edition clean

help:
	@echo "make run      start the dashboard (creates $(VENV) the first time)"
	@echo "make dev      the same, reloading when a file changes"
	@echo "make check    lint, types, and the unit and contract tests that a change can reach"
	@echo "make test     what a change needs: lint, types, science, answers, pages, twelve journeys"
	@echo "make test-all make test, then what takes long and rarely finds anything"
	@echo "make format   reformat the code"
	@echo "make lock     renew the lock files from the ranges"
	@echo "make audit    compare the locked versions with known advisories (asks the package index)"
	@echo "make docs     build the documentation into build/docs, with every warning an error"
	@echo "make wheel    build the wheel into dist/"
	@echo "make browser-edition  build the dashboard that runs inside a browser into build/browser"
	@echo "make clean    remove $(VENV), caches and builds"

# Compiled on all cores, where pip would use one: what is not, every start of a server or a command
# compiles again where nothing else may write bytecode.
PIP_INSTALL = $(PY) -m pip install --quiet --no-compile
COMPILE     = @$(PY) -m compileall -q -j 0
# A package may ship files that are no Python of this version; its tests are never run.
COMPILE_LIBRARIES = $(COMPILE) -q -x '/tests?/' $(VENV)/lib || true

run: $(RUN_STAMP)
	$(COMPILE) dpviz pages
	$(PY) -m dpviz app

# The shipped settings watch no files; developers want the reload.
dev: $(RUN_STAMP)
	STREAMLIT_SERVER_FILE_WATCHER_TYPE=auto STREAMLIT_SERVER_RUN_ON_SAVE=true \
	STREAMLIT_CLIENT_SHOW_ERROR_DETAILS=full $(PY) -m dpviz app

# tests/layers.py runs the layers, prints the time of each and closes with
# "N passed, N failed, N skipped". ARGS goes to pytest: make test ARGS="-k wishart".
test: $(DEV_STAMP)
	$(COMPILE) dpviz pages
	$(PY) -m tests.layers --first $(if $(ARGS),-- $(ARGS))

test-long: $(DEV_STAMP)
	$(COMPILE) dpviz pages
	$(PY) -m tests.layers --long $(if $(ARGS),-- $(ARGS))

test-all: test test-long

check: $(DEV_STAMP)
	$(COMPILE) dpviz pages
	$(PY) -m tools.words
	$(PY) -m tests.layers --changed lint style types unit contract $(if $(ARGS),-- $(ARGS))

lint: $(DEV_STAMP)
	$(PY) -m tools.words
	$(PY) -m tests.layers lint style types

format: $(DEV_STAMP)
	$(PY) -m ruff check --fix .
	$(PY) -m ruff format .

lock: $(DEV_STAMP)
	$(PY) -m pip install --quiet "uv>=0.5"
	$(PY) -m tools.lock

audit: $(DEV_STAMP)
	$(PY) -m pip install --quiet "pip-audit>=2.9"
	$(PY) -m pip_audit --strict --require-hashes --disable-pip -r requirements.lock -r requirements-dev.lock

docs: $(DEV_STAMP)
	$(PY) -m tools.docs build/docs
	@echo "build/docs/index.html"

wheel: $(DEV_STAMP)
	$(PY) -m pip wheel --quiet --no-deps --wheel-dir dist .

# Pyodide's files and the pinned libraries go into the user's cache, each checked against
# browser/lock.json; the tests of the layer `browser` run where they are there.
browser-edition: $(DEV_STAMP)
	files=$$($(PY) -m tools.edition fetch) && $(PY) -m dpviz export-browser build/browser --pyodide "$$files" \
	  --libraries "$$files"

# Stopped on its way, an environment may have a Python and no pip: it is begun from nothing. What
# was made by hand, or was whole once, is left alone.
ifneq ($(wildcard $(BEGUN)),)
.PHONY: $(PY)
endif
$(PY):
	@$(PYTHON) -c '' >/dev/null 2>&1 || { \
	  echo "make: '$(PYTHON)' does not run; install Python 3.11 to 3.14, or say make PYTHON=python3.12" >&2; exit 1; }
	@$(PYTHON) -c '$(PYTHON_OK)' || { \
	  echo "make: dpviz needs Python 3.11 to 3.14, and '$(PYTHON)' is $$($(PYTHON) -V 2>&1); say make PYTHON=python3.12" >&2; exit 1; }
	@test ! -e $(BEGUN) || { rm -f $(PY) && rm -rf $(VENV); }
	@mkdir -p $(VENV) && touch $(BEGUN)
	$(PYTHON) -m venv $(VENV)

$(RUN_STAMP): requirements.txt | $(PY)
	$(PIP_INSTALL) -r requirements.txt
	$(COMPILE_LIBRARIES)
	@rm -f $(BEGUN)
	@touch $@

# --group reads [dependency-groups] of pyproject.toml, which pip knows since 25.1.
$(DEV_STAMP): pyproject.toml $(RUN_STAMP)
	$(PIP_INSTALL) --upgrade "pip>=25.1"
	$(PIP_INSTALL) -r requirements.txt --group dev
	$(COMPILE_LIBRARIES)
	@touch $@

clean:
	rm -rf $(VENV) build dist .hypothesis .mypy_cache .pytest_cache .ruff_cache .test-reports
