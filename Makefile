# Everything a developer needs; `make` alone explains it.
# Variables: PG=13…18 (another PostgreSQL than Debian's), KAFKA_BROKERS=3, STACK_PG_PORT, STACK_KAFKA_PORT,
# STACK_REGISTRY_PORT, STACK_DIR; see integration/README.md. For chaos: SEED, FAULTS, MINUTES. For parity: CASES='types-* toast-*'. For bench: W, PAIRS, OPPONENTS, SCALE, TABLES.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

STACK := PYTHONPATH=integration python3 -m stack
NO_SERVICES := env -u TIDEGATE_TEST_PG -u TIDEGATE_TEST_KAFKA -u TIDEGATE_TEST_REGISTRY

PARITY = $$($(STACK) venv) -m parity

.PHONY: help up down status logs build check test test-full chaos chaos-self-test parity demo bench bench-quick bench-micro clean clean-stack

help: ## this text
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

up: ## start PostgreSQL, Kafka and a schema registry (PG=13…18, KAFKA_BROKERS=3)
	@integration/stack/prerequisites services
	@$(STACK) up

down: ## stop them; data is kept
	@$(STACK) down

status: ## what runs, where, and whether it answers
	@$(STACK) status

logs: ## the end of the services' logs (PART=kafka for more of one)
	@$(STACK) logs $(PART)

build: ## build the worker
	@integration/stack/prerequisites build
	cargo build

check: ## formatting, lints, hermetic tests, docs: before every commit
	@integration/stack/prerequisites build
	cargo fmt --check
	cargo clippy --all-targets -- -D warnings
	$(NO_SERVICES) cargo test
	PYTHONPATH=integration python3 -m unittest -q registry.tests parity.tests harness.proxy_tests harness.mirror_tests
	RUSTDOCFLAGS="-D warnings" cargo doc --no-deps

test: ## all tests that must pass: hermetic, with services, scenarios on the oldest and newest PostgreSQL
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	$(STACK) up
	eval "$$($(STACK) env)"; cargo test
	benches/micro/instructions test
	cargo build
	PG=14 integration/run --jobs 2 --where-the-server-matters
	PG=18 integration/run --jobs 2
	PYTHONPATH=integration $(PARITY) recorded $(RECORDED)

# One of each family; all of them are in test-full.
RECORDED = columns-mask-types comments defaults enum-change headers-context identity keys messages name-type names-avro \
	null-vs-default partitioned-root schema-change-slow smt-filter smt-route-regex toast-default toast-mode-hex-map-string truncate \
	tx-metadata types-array types-ext types-ext-hstore-map types-numeric-special-string types-scalar unwrap-default

test-full: test ## and the other servers, the long scenarios, and everything that was recorded of Debezium
	PG=14 integration/run --jobs 2
	PG=15 integration/run --jobs 2
	PG=16 integration/run --jobs 2
	PG=17 integration/run --jobs 2
	PG=18 integration/run --jobs 2 --long
	$(MAKE) chaos PG=18
	$(MAKE) chaos-self-test PG=18
	PYTHONPATH=integration $(PARITY) recorded

CHAOS = PYTHONPATH=integration $$($(STACK) venv) -m chaos $(if $(SEED),--seed $(SEED))

chaos: ## random faults under a random workload: is each change there once, in order? about 15 minutes (SEED=7 FAULTS=300 PG=18)
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@cargo build --quiet
	@$(CHAOS) $(if $(FAULTS),--faults $(FAULTS)) $(if $(MINUTES),--minutes $(MINUTES))

chaos-self-test: ## chaos must find three faults that a special build commits on purpose; a few minutes
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@cargo build --quiet --features sabotage
	@mkdir -p target/sabotage && cp target/debug/tidegate target/sabotage/
	@cargo build --quiet
	@TIDEGATE_BIN=target/sabotage/tidegate $(CHAOS) --self-test

parity: ## real Debezium beside the worker on the same statements, and Debezium's JDBC sink behind it; about 20 minutes (PG=14…18)
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@cargo build
	@PYTHONPATH=integration $(PARITY) live $(CASES)
	@$(if $(CASES),,integration/run sink)

bench-micro: ## time and instructions per row from frame to hand-over (UPDATE_EXPECT=1 sets the bounds)
	@integration/stack/prerequisites build
	cargo bench --bench micro
	benches/micro/instructions release

demo: ## a table's changes on their way from PostgreSQL to Kafka, on your terminal
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@$(STACK) up
	@cargo build --quiet
	@integration/demo

BENCH = benches/run $(if $(W),--workloads $(W)) $(if $(PAIRS),--pairs $(PAIRS)) $(if $(OPPONENTS),--opponents $(OPPONENTS)) \
	$(if $(SCALE),--scale $(SCALE)) $(if $(TABLES),--tables $(TABLES))

bench: ## measure against PostgreSQL's reader and Debezium, about an hour (W=W1,W3 PAIRS=5 OPPONENTS=recvlogical SCALE=0.5)
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@$(BENCH)

bench-quick: ## the same in a few minutes: backlogs of narrow and wide rows, latency
	@integration/stack/prerequisites build
	@integration/stack/prerequisites services
	@$(BENCH) --quick

clean-stack: ## stop the services and delete their data; downloads are kept
	@$(STACK) clean

clean: clean-stack ## and delete what was built
	cargo clean
