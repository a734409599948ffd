# tactus: build, measure, test. `make` alone lists the targets.

# `make install` puts the program into $(DESTDIR)$(PREFIX)/bin, manual pages and completions into $(DESTDIR)$(PREFIX)/share.
PREFIX  ?= /usr/local
DESTDIR ?=
# Arguments of `tactus run` in `make run`.
ARGS    ?=
# Seconds that each fuzz target runs in `make nightly`.
FUZZ_SECONDS ?= 60
export FUZZ_SECONDS

CARGO ?= cargo
# rustup's directory is not on every PATH (sudo's, for example).
export PATH := $(PATH):$(HOME)/.cargo/bin
TACTUS := $(or $(CARGO_TARGET_DIR),target)/release/tactus
export TACTUS

.DEFAULT_GOAL := help
.PHONY: help build run format check test nightly crash cluster aarch64 simulate bench book sbom install package packagetest freshtest clean

help: ## List the targets
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: ## Build target/release/tactus, which contains the probe for x86_64 and aarch64
	@[ -e $(TACTUS) ] || echo "Building tactus: about 15 minutes on two CPUs, and 1 GB in target."
	$(CARGO) build --release --locked

run: ## Install missing packages, build, and measure this machine in every environment that it has
	scripts/setup.sh run
	$(MAKE) --no-print-directory build
	scripts/setup.sh kernel
	scripts/run.sh $(ARGS)

format: ## Format every Rust file
	scripts/format.sh

check: ## Check a change in three minutes: format, lints, computing tests, the seeds of the fuzz targets
	scripts/check.sh

test: ## Run every check: lints, the README's commands, all tests
	scripts/test.sh

nightly: build ## Run the checks that take hours: fuzzing, simulations, crashes, clean systems, the program for aarch64 (root)
	scripts/setup.sh test
	scripts/setup.sh package
	scripts/setup.sh kernels
	scripts/nightly.sh $(TACTUS)

crash: build ## Kill 100 runs at random moments, cut the power while tuning writes, and look for leftovers (root; half an hour)
	scripts/setup.sh test
	scripts/setup.sh kernel
	scripts/crash.py --trials 100 --guest $(TACTUS)

cluster: build ## Test fleets on a real Kubernetes on this machine: two kubelets, 1,000 nodes of kwok (root; 15 minutes, the first time 30)
	scripts/cluster.sh $(TACTUS)

aarch64: ## Cross-build the whole program for aarch64, and test it in an emulated arm64 machine
	scripts/setup.sh test
	scripts/aarch64.sh

simulate: ## Simulate how often the report's statistics are wrong (half an hour; part of nightly)
	scripts/simulate.sh

bench: ## Compare with cyclictest and other tools; check the limits on start-up, overhead and size
	scripts/setup.sh bench
	$(MAKE) --no-print-directory build
	scripts/setup.sh kernel
	scripts/bench.sh

book: ## Build the documentation as a searchable site, in target/book (the first time 4 minutes)
	scripts/book.sh

SBOM := $(or $(CARGO_TARGET_DIR),target)/tactus.cdx.json

sbom: ## Write the bill of materials (CycloneDX), target/tactus.cdx.json
	scripts/sbom.py $(SBOM)

$(SBOM): Cargo.lock
	$(MAKE) --no-print-directory sbom

# Not `build`: `sudo make install` should not build as root if the program exists.
$(TACTUS):
	$(MAKE) --no-print-directory build

install: $(TACTUS) $(SBOM) ## Install the program, manual pages, completions, schemas, contrib/, bill of materials and tactus.h below PREFIX
	install -Dm755 $(TACTUS) $(DESTDIR)$(PREFIX)/bin/tactus
	install -Dm644 $(SBOM) $(DESTDIR)$(PREFIX)/share/doc/tactus/tactus.cdx.json
	install -Dm644 crates/tactus-application/include/tactus.h $(DESTDIR)$(PREFIX)/include/tactus.h
	install -d $(DESTDIR)$(PREFIX)/share/man/man1
	$(TACTUS) man --out $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/share/bash-completion/completions $(DESTDIR)$(PREFIX)/share/zsh/site-functions \
	  $(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d
	$(TACTUS) completions bash >$(DESTDIR)$(PREFIX)/share/bash-completion/completions/tactus
	$(TACTUS) completions zsh >$(DESTDIR)$(PREFIX)/share/zsh/site-functions/_tactus
	$(TACTUS) completions fish >$(DESTDIR)$(PREFIX)/share/fish/vendor_completions.d/tactus.fish
	install -Dm644 -t $(DESTDIR)$(PREFIX)/share/tactus/schema docs/schema/*.json
	cd contrib && find . -type f -exec install -Dm644 {} $(abspath $(DESTDIR)$(PREFIX))/share/tactus/contrib/{} \;

package: ## Build .deb, .rpm, tarball and container image for x86_64 and aarch64, in target/package
	scripts/setup.sh package
	scripts/package.sh

packagetest: ## Build the packages; install, run and remove them in clean systems; lint them and contrib/ (root)
	scripts/setup.sh package
	scripts/package/test.sh

freshtest: ## Test `make run` in clean systems of Debian 12 and 13, and guest kernels of sid (root; half an hour; part of nightly)
	scripts/setup.sh package
	scripts/fresh.sh

clean: ## Remove built files (runs/, with your measurements, stays)
	$(CARGO) clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
