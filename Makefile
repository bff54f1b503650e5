# `make` alone lists the targets. Every target installs what it needs and is quick when that, and
# the build, are there already.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.PHONY: help demo build wheel docs reference quick test screenshots chaos power ratings fleet failover images check rules release fuzz bench

# Links that lead nowhere are faults; links to what is private, and plain addresses, are not.
RUSTDOCFLAGS := --deny warnings --allow rustdoc::private-intra-doc-links --allow rustdoc::bare-urls

help: ## Show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: ## Build webfill quickly and let it complete a table from a small web that it serves itself
	@deploy/install-build-deps.sh
	cargo build --profile demo --locked --package webfill
	@cargo run --profile demo --locked --quiet --package webfill -- demo

build: ## Build webfill for use, optimised: target/release/webfill
	@deploy/install-build-deps.sh
	cargo build --release --locked --package webfill

# A wheel holds the program as released, in at most 25 MB.
wheel: ## Build the Python wheel with the program: target/wheels
	@tests/python/install.sh # first: what is missing shows before the build
	@$(MAKE) --no-print-directory build
	@python/build.sh target/release/webfill target/wheels 25

docs: ## Build the documentation as a site, target/site/docs/README.html; links that lead nowhere are faults
	@tests/docs/install.sh
	.cache/docs-tools/venv/bin/sphinx-build -c docs/site -b html -q -W --keep-going . target/site

reference: ## Write the pages of docs/reference/ that the program knows, the JSON Schemas, and deploy/webfill.toml
	@deploy/install-build-deps.sh
	cargo build --locked --package webfill
	@folder=$$(mktemp -d) && trap 'rm -r "$$folder"' EXIT && target/debug/webfill manual "$$folder" \
		&& cp "$$folder"/*.md "$$folder"/{crawl-request,watch,progress}.schema.json docs/reference \
		&& cp "$$folder/mapping.schema.json" etl-mappings/schema.json \
		&& cp "$$folder/golden-case.schema.json" etl-mappings/golden/case.schema.json && cp "$$folder/webfill.toml" deploy

# BASE=REV names the commit that changes are counted from; otherwise it is the upstream branch, or
# what is not committed yet.
quick: ## Run the tests of what changed, in less than a minute once they are built
	@deploy/install-build-deps.sh --tests
	@tests/quick.sh "$(BASE)"

# Built with all targets first: the tests drive the `webfill` binary, and so the dependencies are
# compiled once, with the features that tests and binary need together.
test: ## Build everything and run all tests
	@deploy/install-build-deps.sh --tests
	@deploy/install-mongod.sh >/dev/null || [ $$? = 3 ] # tests that need one say so
	@tests/warc/install.sh || [ $$? = 3 ] # the same
	@tests/mail/install.sh || [ $$? = 3 ] # the same
	@tests/office/install.sh || [ $$? = 3 ] # the same
	@tests/parquet/install.sh || [ $$? = 3 ] # the same
	@tests/prometheus/install.sh || [ $$? = 3 ] # the same
	@tests/dashboard/install.sh || [ $$? = 3 ] # the same
	@tests/released.sh || { [ -z "$${REQUIRE_RELEASED:-}" ] && echo "without the released program: tests that need it say so" >&2; }
	cargo build --workspace --all-targets --locked
	"$${CARGO_TARGET_DIR:-target}/debug/with-mongod" cargo nextest run --workspace --locked
	RUSTDOC=$(CURDIR)/.ci/rustdoc RUSTDOCFLAGS="$(RUSTDOCFLAGS)" cargo test --workspace --locked --doc --quiet # examples and links in documentation

# A difference is for people to judge: it is shown, and no failure.
screenshots: ## Compare the dashboard's screenshots of the last tests with those before: which differ, and by how much
	@cargo run --quiet --package webfill-test-browser --locked --bin compare-screenshots

# SEED=N deals the faults out in the same order again; SECONDS=N is how long new rounds begin.
chaos: ## Crawl for minutes while processes, networks and clocks fail at random
	@deploy/install-build-deps.sh --tests
	@deploy/install-mongod.sh >/dev/null || [ $$? = 3 ] # rounds that need one say so
	cargo build --package webfill --package webfill-tests --tests --bins --locked
	CHAOS_SEED="$(SEED)" CHAOS_SECONDS="$(SECONDS)" cargo test --package webfill-tests --locked --test chaos -- --ignored --nocapture hundreds_of_faults

# Each cut is a loss of power during a crawl, judged, and the crawl from what is left to its end.
power: ## Lose the power in the middle of crawls; CUTS=1000 times, by SEED=1
	@deploy/install-build-deps.sh --tests
	cargo build --package webfill --package webfill-tests --tests --bins --locked
	POWER_CUTS="$(or $(CUTS),1000)" POWER_SEED="$(SEED)" cargo test --package webfill-tests --locked --test chaos -- --nocapture whenever_the_power_is_lost

# Each machine is a network namespace with a supervisor and a worker; MINUTES is how long some of them are killed.
ratings: ## Collect all ratings of USERS=2000 users of a made site that refuses from time to time (docs/how-to/listings.md)
	@deploy/install-build-deps.sh --tests
	@deploy/install-mongod.sh >/dev/null
	cargo build --package webfill --package webfill-tests --tests --bins --locked
	WEBFILL_RATING_USERS="$(or $(USERS),2000)" REQUIRE_MONGOD=1 cargo test --package webfill-tests --locked --test crawls -- --nocapture rows::seeds_job

fleet: ## Run MACHINES=126 machines: restart, replace and kill them under load for MINUTES=10, and report the cost
	@deploy/install-build-deps.sh --tests
	@deploy/install-mongod.sh >/dev/null
	cargo build --package webfill --package webfill-tests --tests --bins --locked
	FLEET_MACHINES="$(MACHINES)" FLEET_MINUTES="$(MINUTES)" REQUIRE_MONGOD=1 cargo test --package webfill-tests --locked --test fleet -- --include-ignored --nocapture a_large_fleet machines_are_started

# Two dispatchers in network namespaces: the one that serves is killed, cut off, suspended or asked to hand over.
failover: ## Lose the dispatcher that serves KILLS=1000 times under load, and report when the other one serves
	@deploy/install-build-deps.sh --tests
	@deploy/install-mongod.sh >/dev/null
	cargo build --package webfill --package webfill-tests --tests --bins --locked
	FAILOVER_KILLS="$(KILLS)" REQUIRE_MONGOD=1 cargo test --package webfill-tests --locked --test fleet -- --ignored --nocapture another_dispatcher_serves_as_often

# Not among the tests, because they fetch packages for minutes.
images: ## Build the container image and the disk image, run the one, and boot the other under qemu
	tests/deploy/run image-container image-disk

check: ## Format, lints, documentation, licences and advisories of dependencies
	@deploy/install-build-deps.sh --tests
	cargo fmt --all --check
	cargo clippy --workspace --all-targets --locked -- --deny warnings
	cargo check --package webfill --locked # alone, without the features that only tests want
	RUSTDOCFLAGS="$(RUSTDOCFLAGS)" cargo doc --workspace --lib --no-deps --locked --quiet
	@$(MAKE) --no-print-directory rules

# What is not compiled for.
rules:
	python3 -B -m doctest .ci/check_dependencies.py .ci/check_features.py .ci/check_metadata.py .ci/check_rebuild.py .ci/release.py .ci/report_flaky.py
	python3 .ci/check_dependencies.py
	python3 .ci/check_features.py
	python3 .ci/check_metadata.py

# PROGRAM=target/debug/webfill is packed instead of an optimised build: a rehearsal in minutes, which judges no sizes.
release: ## Walk through all that a release needs: checks, packages, sizes; publishes nothing
	@python3 .ci/release.py $(PROGRAM)

fuzz: ## Feed every reader of foreign input hostile input; TIME=120 seconds each, TARGETS="urls pages"
	@deploy/install-build-deps.sh
	TIME="$(TIME)" TARGETS="$(TARGETS)" tests/fuzz/run.sh

# SIZE=small takes the debug build and a tenth of the work: to see that no limit is broken by a factor.
bench: ## Measure speed and memory, each figure beside what it is measured against
	@deploy/install-build-deps.sh --bench
	@deploy/install-mongod.sh >/dev/null
	BENCH_SIZE="$(SIZE)" tests/bench/run.sh
