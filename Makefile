# `make` alone lists what there is.
.DEFAULT_GOAL := help
BIN := .venv/bin

# Compiled once and kept: what set-up installs is compiled by whoever imports it first, and a command that compiles all
# that it imports takes four times as long to start.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup registry browser harness fetched checked pictures fleet sweep sweep-fleet test test-unit test-fleet images-docs statistics-docs external-docs lint types format bench bench-docs bench-peers soak clean

help: ## list these
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "%-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## virtual environment, Docker engine, images of the CLIs that tests and sweeps/free.yaml use
	@scripts/setup.sh

fleet: setup ## the images of all CLIs as well
	$(BIN)/cab images build

sweep: setup ## set up, then run sweeps/free.yaml
	$(BIN)/cab sweep run sweeps/free.yaml

sweep-fleet: fleet ## every CLI on three tasks, sweeps/fleet.yaml
	$(BIN)/cab sweep run sweeps/fleet.yaml

# Two workers: tests that run containers compete for the engine, and the others take seconds. In the order of tests/conftest.py.
test: setup ## set up, then all checks and all tests
	@$(MAKE) --no-print-directory -j 3 --output-sync=target fetched harness checked
	$(BIN)/pytest -n 2 --dist loadfile --no-loadscope-reorder

test-unit: lint types ## checks and the tests that need no engine
	$(BIN)/pytest -n auto --dist loadfile tests/unit

test-fleet: fleet ## every CLI for real, tests/fleet
	$(BIN)/pytest tests/fleet

# One after the other: apt's lists have one lock.
fetched:
	@scripts/registry.sh
	@scripts/browser.sh

checked: lint types

registry:
	@scripts/registry.sh

browser:
	@scripts/browser.sh

harness:
	@scripts/harness.sh

pictures: browser ## docs/img, from a site of the sweeps in results/
	$(BIN)/python scripts/pictures.py

images-docs: ## the table of docs/images.md, from images.lock and the folders
	$(BIN)/python scripts/images_docs.py

statistics-docs: ## the simulations of docs/statistics.md, some minutes
	$(BIN)/python scripts/statistics_docs.py

external-docs: ## the tables of docs/external.md, from the fixtures in external/continuation
	$(BIN)/python scripts/external_docs.py

lint: ## style
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: ## types
	$(BIN)/mypy

format: ## put into the house style
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench-peers: setup
	@scripts/bench-peers.sh

bench: bench-peers ## cab, its gateway and its site against their floors and peers
	$(BIN)/python scripts/bench.py
	$(BIN)/python scripts/bench_gateway.py
	$(BIN)/python scripts/bench_site.py

bench-docs: bench-peers ## the same, written into docs/speed*.md
	$(BIN)/python scripts/bench.py --runs 15 --write docs/speed.md
	$(BIN)/python scripts/bench_gateway.py --write docs/speed-gateway.md
	$(BIN)/python scripts/bench_site.py --write docs/speed-site.md

soak: setup ## the gateway's memory over 100,000 calls, some minutes
	$(BIN)/python scripts/bench_gateway.py --soak 100000

clean: ## remove what set-up and tests made here; results and the engine's images stay
	rm -rf .venv build images.lock .mypy_cache .ruff_cache .pytest_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
