.DEFAULT_GOAL := help
.PHONY: help run build test check openapi bench package fmt clean-data

# Where `make run` keeps its database and files, and the language model it answers with.
SVC_DATA_DIR ?= ./data
MODEL_FILE := $(CURDIR)/.cache/models/smollm2-135m-instruct.gguf

# Areas of the contract that are still being built.
INCOMPLETE_AREAS ?=

# Where the tests of `make test` note which types of events they emit.
EMITTED_EVENTS := $(CURDIR)/target/emitted-events

# One set of compiler flags for every command, the one in Cargo's own files: another one rebuilds everything.
unexport RUSTFLAGS RUSTDOCFLAGS CARGO_ENCODED_RUSTFLAGS

ifdef CI
# Nothing is compiled twice there, so what makes the second time fast only costs.
export CARGO_INCREMENTAL := 0
endif

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: ## install missing packages, download the model, build, and serve demo data
	scripts/setup
	scripts/fetch-model --out '$(MODEL_FILE)'
	@echo 'The first build takes about twelve minutes on two processors; later ones take seconds.'
	scripts/build --release --locked -p server
	exec env SVC_DATA_DIR='$(SVC_DATA_DIR)' SVC_MODEL_FILE='$(MODEL_FILE)' ./target/release/svc serve --demo

build: ## build everything, for development
	scripts/setup
	cargo build --workspace --all-targets --locked

# Documentation examples first: the tests' own last line is then the last line.
test: ## run all tests; start and stop a PostgreSQL and a Redis for them
	scripts/setup --test
	scripts/webhook-libraries
	scripts/jwt-libraries
	scripts/fetch-model --out '$(MODEL_FILE)'
	cargo test --workspace --doc --locked
	@if command -v cargo-nextest >/dev/null; then set -- cargo nextest run; else set -- cargo test --lib --bins --tests --no-fail-fast; fi; \
	rm -rf $(EMITTED_EVENTS); export SVC_TEST_EMITTED_EVENTS=$(EMITTED_EVENTS); \
	set -x; scripts/with-services "$$@" --workspace --locked || exit; \
	{ set +x; } 2>/dev/null; scripts/check-emitted-events $(EMITTED_EVENTS)

# Built as the tests are, so that `make test` compiles nothing twice: `cargo build --all-targets` gives macros another profile.
check: ## check formatting, lints, layers, tests, licences, the OpenAPI documents, clients generated from them, the dashboard's bundle and the chat page
	scripts/setup --check
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- -D warnings
	scripts/check-layers
	scripts/check-cycles
	scripts/check-tests
	scripts/check-dependencies
	scripts/validate-openapi --incomplete '$(INCOMPLETE_AREAS)' openapi.public.json openapi.partner.json
	scripts/vendor-scalar --check
	scripts/build-dashboard --check
	RUSTDOCFLAGS='-D warnings' cargo doc --workspace --no-deps --document-private-items --locked
	cargo test --workspace --no-run --locked
	scripts/check-clients
	scripts/check-chat-page

openapi: ## regenerate the OpenAPI documents and the tables of operations, roles, events, formulas, expressions and nodes of flows
	@mkdir -p target
	cargo run -q --locked -p server -- openapi > target/openapi.public.json
	cargo run -q --locked -p server -- openapi --partner > target/openapi.partner.json
	cargo run -q --locked -p server -- openapi --dashboard > target/openapi.dashboard.json
	cargo run -q --locked -p server -- openapi --table > target/operations.txt
	cargo run -q --locked -p server -- openapi --events > target/events.md
	cargo run -q --locked -p server -- openapi --formulas > target/formulas.md
	cargo run -q --locked -p server -- openapi --expressions > target/expressions.md
	cargo run -q --locked -p server -- openapi --flow-nodes > target/flow-nodes.md
	cargo run -q --locked -p server -- openapi --roles > target/roles.txt
	mv target/openapi.public.json target/openapi.partner.json target/openapi.dashboard.json .
	mv target/operations.txt target/roles.txt target/events.md target/formulas.md target/expressions.md target/flow-nodes.md docs/

bench: ## run the benchmarks and write docs/benchmarks.md
	scripts/bench

package: ## build Debian packages, an archive and, with Docker, an image in target/package; install and try them on a clean Debian
	scripts/setup --package --test
	scripts/fetch-model --out '$(MODEL_FILE)'
	@echo 'The first build takes about fifteen minutes on two processors.'
	scripts/package --model '$(MODEL_FILE)'
	scripts/check-package

fmt: ## format the code
	cargo fmt --all

clean-data: ## delete ./data, where `make run` keeps its data by default
	rm -rf ./data
