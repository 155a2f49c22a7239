# Counterfoil's front door. `make` alone lists what there is.
#
#   DSN=…         the database to work on (a libpq connection string or URI)
#   SCHEMA=…      the schema to work in, `counterfoil` unless the installer says otherwise
#   PG=docker:17  a container instead of the embedded server, when no DSN is given
#   T=…           only these test files or folders, for pgtap, isolation and pytest

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
BIN := .venv/bin
ENV := .venv/.stamp
PGSPOT := .venv-pgspot/.stamp

ifneq ($(filter docker:%,$(PG)),)
ifeq ($(DSN),)
PG_MAJOR := $(patsubst docker:%,%,$(PG))
DSN := host=127.0.0.1 port=543$(PG_MAJOR) user=postgres password=counterfoil dbname=postgres
CONTAINER := container
endif
endif

ifneq ($(DSN),)
# As it was given: a password may hold a dollar sign.
export COUNTERFOIL_DSN := $(value DSN)
export COUNTERFOIL_TEST_DSN := $(value DSN)
endif
ifneq ($(SCHEMA),)
export COUNTERFOIL_SCHEMA := $(SCHEMA)
endif

.PHONY: help demo up down migrate status verify plan prepare-indexes roles
.PHONY: test lint pgtap isolation pytest coverage bench docs clean packages container

help: ## this list
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 18

# --- what it does -------------------------------------------------------------------------------

demo: $(ENV) $(CONTAINER) ## real runs from a bare checkout: server, gateway, dispatcher, workers, findings
	@$(BIN)/counterfoil demo

up: $(ENV) $(CONTAINER) ## the same stack, kept running
	@$(BIN)/counterfoil up

down: $(ENV) ## stop what `make up` started
	@$(BIN)/counterfoil down
	@if [ -n "$(PG_MAJOR)" ]; then PG_MAJOR=$(PG_MAJOR) docker compose -f docker/compose.yaml down --volumes; fi

# --- for DBAs -----------------------------------------------------------------------------------

migrate: $(ENV) $(CONTAINER) ## install or upgrade the schema (DSN, SCHEMA)
	@$(BIN)/counterfoil migrate

status: $(ENV) $(CONTAINER) ## which migrations are applied, which are not (DSN, SCHEMA)
	@$(BIN)/counterfoil status

verify: $(ENV) $(CONTAINER) ## prove the whole shape: tables, indexes, functions, grants (DSN, SCHEMA)
	@$(BIN)/counterfoil verify

plan: $(ENV) $(CONTAINER) ## print the SQL that `make migrate` would run (DSN, SCHEMA)
	@$(BIN)/counterfoil plan

prepare-indexes: $(ENV) $(CONTAINER) ## the CONCURRENTLY part, before a migration that needs it (DSN, SCHEMA)
	@$(BIN)/counterfoil prepare-indexes

roles: $(ENV) ## print the SQL that creates the roles, for a DBA with CREATEROLE
	@$(BIN)/counterfoil roles

# --- for developers -----------------------------------------------------------------------------

test: packages $(ENV) $(PGSPOT) $(CONTAINER) ## everything: lint, pgTAP, isolation, pytest, on PostgreSQL 15 and 18
	@$(BIN)/python -m tests.suite lint pgtap isolation pytest

lint: packages $(ENV) $(PGSPOT) $(CONTAINER) ## every gate on SQL and Python
	@$(BIN)/python -m tests.suite lint

pgtap: packages $(ENV) $(CONTAINER) ## the functions' tests, in SQL
	@$(BIN)/python -m tests.suite pgtap --only $(T)

isolation: packages $(ENV) $(CONTAINER) ## what concurrent sessions may and may not see
	@$(BIN)/python -m tests.suite isolation --only $(T)

pytest: packages $(ENV) $(PGSPOT) $(CONTAINER) ## driver, gateway, faults, properties
	@$(BIN)/python -m tests.suite pytest --only $(T)

coverage: packages $(ENV) ## which statements and branches of the functions the pgTAP files reach
	@$(BIN)/python -m tests.suite.coverage

bench: $(ENV) $(CONTAINER) ## the measurements behind docs/benchmarks.md
	@$(BIN)/python -m benchmarks

docs: $(ENV) ## write docs/reference.md from the schema's own comments
	@$(BIN)/python -m lint.reference

clean: ## remove what the targets above made, but for the data of `make up`
	rm -rf .venv .venv-pgspot build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis

# --- what the others need -----------------------------------------------------------------------

packages:
	@tests/servers/packages

$(ENV): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed; $(PYTHON) is $$($(PYTHON) --version 2>&1)." \
	       "Say PYTHON=/path/to/python3." >&2; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || tests/servers/packages python3-venv
	@$(PYTHON) -c 'import ensurepip, venv' \
	  || { echo "$(PYTHON) cannot make an environment: its module ensurepip is missing." >&2; exit 1; }
	@echo "Making .venv …" >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@

# In an environment of its own: it pins another pglast than ours.
$(PGSPOT): $(ENV)
	@test -x .venv-pgspot/bin/pgspot || $(PYTHON) -m venv .venv-pgspot
	@.venv-pgspot/bin/pip install --quiet --disable-pip-version-check 'pgspot>=0.9,<0.10'
	@touch $@

container:
	@PG_MAJOR=$(PG_MAJOR) docker compose -f docker/compose.yaml up --detach --wait --build
