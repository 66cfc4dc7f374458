# Everything a developer does. `make help` lists it.
.DEFAULT_GOAL := help
SHELL := /bin/sh
PY := .venv/bin
# Bytecode is compiled at set-up, also where the environment forbids to write it.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run test setup check contracts faults promises bench ci clean lock

help: ## list the targets
	@grep -E '^[a-z]+:.*## ' $(MAKEFILE_LIST) | awk -F ':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

run: ## set up what is needed and talk to Hermes; the first time it brings a small model
	@scripts/setup run
	@$(PY)/hermes first-run

test: ## set up and run the developer's suite
	@scripts/setup dev
	@$(PY)/pytest -n 2 -m "not slow and not faults" tests

setup: ## make .venv with everything a developer needs
	@scripts/setup dev

check: setup ## format, lint, types, layers, dependencies
	@$(PY)/ruff format --check -q .
	@$(PY)/ruff check -q .
	@$(PY)/mypy
	@$(PY)/lint-imports --no-logo 2>/dev/null || $(PY)/lint-imports
	@$(PY)/deptry . 2>&1 | tail -3

contracts: setup ## the contract suites in memory, on SQLite and on PostgreSQL
	@$(PY)/pytest -n 2 tests/contracts --database-url memory://
	@$(PY)/pytest -n 2 tests/contracts --database-url sqlite://
	@$(PY)/python scripts/with_postgres.py $(PY)/pytest -n 2 tests/contracts --database-url {url}

faults: setup ## the whole fault campaign: 1,000 kills and more
	@$(PY)/pytest -s --timeout 3600 -m "faults or slow" tests

promises: setup ## break each promise in a copy of the code and see the tests notice
	@$(PY)/python scripts/break_promises.py

bench: setup ## our figures, each beside its floor in the same run
	@$(PY)/python -m bench

ci: check contracts ## what must pass before anything lands
	@$(PY)/pytest -n 2 -m "not faults" tests

lock: setup ## write the lock files anew
	@scripts/lock

clean: ## remove what can be made again
	@rm -rf .venv .mypy_cache .ruff_cache .hypothesis .import_linter_cache .faults dist build
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
