SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
# hundreds of tests start twgen: without cached bytecode, each start would compile it, which is five times slower
unexport PYTHONDONTWRITEBYTECODE

PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
# more processes than processors, because many tests wait for other programs
TESTERS := $(shell expr $$(getconf _NPROCESSORS_ONLN) + 1)
# each process has its own servers (about 3 GiB), and its tests mostly wait
TELLERS := 5
# marks of the tests that need servers, packages or minutes
SLOW := (server or packaging or heavy)
# this runs the fast tests again on the image's Python, and uses all processors by itself
NEWER_PYTHON := tests/packaging/test_debian_python.py

.PHONY: help demo demo-live demo-rollout stack test test-servers test-all lint servers bench bench-fleet cases docs documentation example home schemas lock package workflows clean

help: ## Show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

demo: $(INSTALLED) ## Plan, follow, simulate and render an example, offline
	@export PATH="$(abspath $(BIN)):$$PATH"; cd examples/three-versions; \
	show() { printf '\n$$ %s\n' "$$*"; "$$@"; }; \
	show twgen plan . --snapshot before.yaml; \
	show twgen status . --snapshot snapshot.yaml; \
	show twgen plan . --snapshot snapshot.yaml --now 2026-11-21T05:35:00Z; \
	show twgen simulate .; \
	printf '\n$$ twgen render . --snapshot before.yaml | head -n 24\n'; \
	manifests="$$(twgen render . --snapshot before.yaml)"; head -n 24 <<< "$$manifests"; \
	echo "... $$(wc -l <<< "$$manifests") lines, $$(grep -c '^---$$' <<< "$$manifests") manifests in all"

demo-rollout: $(INSTALLED) ## Roll out three versions of a real worker on a real Temporal server (one minute)
	@$(BIN)/python -m testing.demo_rollout

demo-live: $(INSTALLED) servers ## Commit to a real Argo CD to roll out, break and roll back a worker (some minutes)
	@$(BIN)/python -m testing.demo_live

stack: $(INSTALLED) servers ## Run Temporal, Kubernetes, Argo CD and a Git repository with an example, until Ctrl-C
	@$(BIN)/python -m testing.argocd.stack

test: $(INSTALLED) lint docs ## Check the code and the documentation, and run the fast tests (two minutes)
	@$(BIN)/pytest -n $(TESTERS) --dist worksteal -m "not $(SLOW)"
	@echo 'Not run: the tests with real servers, those marked packaging or heavy, and most examples of properties.'
	@echo '`make test-servers` runs them, in about 30 minutes. The first time it builds the servers, for about 25 more.'

test-servers: $(INSTALLED) servers ## Run the tests that `make test` leaves out, with real servers (about 30 minutes)
	@$(BIN)/pytest -n $(TESTERS) --dist worksteal --hypothesis-profile=thorough -m "hypothesis and not $(SLOW)"
	@$(BIN)/pytest --tb=short $(NEWER_PYTHON)
	@$(BIN)/pytest --tb=short -n $(TELLERS) --dist loadfile --no-loadscope-reorder --durations=20 --hypothesis-profile=thorough -m "$(SLOW)" \
		$$(grep -rlE "mark\.(server|packaging|heavy)" --include="test_*.py" tests | grep -vxF $(NEWER_PYTHON))

test-all: test test-servers ## Run both

lint: $(INSTALLED)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports
	@$(BIN)/python tools/size_budget.py

servers: $(INSTALLED) ## Install the servers that the tests use, once for all clones
	@$(BIN)/python -m testing.install

bench: $(INSTALLED) ## Compare twgen's speed with other tools. Exit with 1 if a limit is exceeded
	@$(BIN)/python -m benchmarks.bench

bench-fleet: $(INSTALLED) servers ## Measure tick with 100, 500 and 2,000 workers on real servers (about 20 minutes)
	@$(BIN)/python -m benchmarks.fleet

cases: $(INSTALLED) ## Regenerate the golden files of the test cases
	@$(BIN)/python -m tests.cases.regenerate
	@$(BIN)/python -m tests.refused

docs: $(INSTALLED) ## Build the documentation as a site of files, and check its links
	@$(BIN)/python -m tools.website

documentation: schemas ## Regenerate the generated parts of the documentation
	@$(BIN)/python -m tools.documentation

example: $(INSTALLED) servers ## Record the example again from a real Temporal server
	@$(BIN)/python -m tools.record_example

schemas: $(INSTALLED) ## Regenerate the schemas of all documents, pods and attached objects, and their addresses
	@$(BIN)/python -m tools.schemas
	@$(BIN)/python -m tools.kubernetes_schemas

home: $(INSTALLED) ## Write the public addresses in pyproject.toml, if any, into schemas and pages
	@$(BIN)/python -m tools.home

lock: ## Update requirements.lock from pyproject.toml
	@$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --generate-hashes \
		--no-emit-index-url --no-header --quiet --output-file requirements.lock

package: $(INSTALLED) ## Build the sdist and the wheel, check them, and install the wheel in a new environment
	@rm -rf dist build/try
	@$(BIN)/python -m build --no-isolation --outdir dist . > /dev/null
	@$(BIN)/twine check --strict dist/*
	@$(PYTHON) -m venv build/try
	@$(BIN)/python tools/locked.py requirements.lock twgen > build/try/runtime.lock
	@build/try/bin/pip install --quiet --disable-pip-version-check --require-hashes -r build/try/runtime.lock
	@build/try/bin/pip install --quiet --disable-pip-version-check --no-deps --no-index dist/*.whl
	@build/try/bin/twgen version

workflows: $(INSTALLED) ## Check the workflows in .github with actionlint
	@$(BIN)/pytest -q tests/packaging/test_workflows.py

clean: ## Remove everything that these commands created
	@rm -rf .venv dist build site .*_cache .hypothesis benchmarks/data

$(INSTALLED): requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "twgen needs Python 3.11 or newer: make PYTHON=python3.12")'
	@echo "setting up .venv (once, some minutes) ..." >&2
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@
