# tactus: build, measure, test. `make` alone lists what there is.

# Where `make install` puts the program: $(DESTDIR)$(PREFIX)/bin, and its manual pages and completions.
PREFIX  ?= /usr/local
DESTDIR ?=
# Arguments of `tactus run` in `make run`.
ARGS    ?=
# Seconds that each fuzz target runs in `make nightly`.
FUZZ_SECONDS ?= 60
export FUZZ_SECONDS

CARGO ?= cargo
# rustup's directory is not on everybody's PATH (sudo's, for instance).
export PATH := $(PATH):$(HOME)/.cargo/bin
TACTUS := $(or $(CARGO_TARGET_DIR),target)/release/tactus
export TACTUS

.DEFAULT_GOAL := help
.PHONY: help build run format check test nightly crash cluster aarch64 simulate bench book sbom install package packagetest freshtest clean

help: ## This list
	@sed -n 's/^\([a-z0-9]*\):.*## \(.*\)/make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 16

build: ## Build target/release/tactus, with the probe for x86_64 and aarch64 in it
	@[ -e $(TACTUS) ] || echo "Building tactus: about 15 minutes on two CPUs, and 1 GB in target."
	$(CARGO) build --release --locked

run: ## Set up what is missing, build, and measure this machine in every environment it has
	scripts/setup.sh run
	$(MAKE) --no-print-directory build
	scripts/setup.sh kernel
	scripts/run.sh $(ARGS)

format: ## Format every Rust file
	scripts/format.sh

check: ## What three minutes can show of a change: format, lints, the tests that only compute, the seeds of fuzzing
	scripts/check.sh

test: ## Everything that must hold: lints, the README's commands, all tests
	scripts/test.sh

nightly: build ## What takes hours: fuzzing, simulations, crashes, clean systems, the program for aarch64 (root)
	scripts/setup.sh test
	scripts/setup.sh package
	scripts/setup.sh kernels
	scripts/nightly.sh $(TACTUS)

crash: build ## Kill runs at 100 random moments, cut the power of a machine that is tuned, and look at what is left (root)
	scripts/setup.sh test
	scripts/setup.sh kernel
	scripts/crash.py --trials 100 --guest $(TACTUS)

cluster: build ## Fleets on a real Kubernetes on this machine: two kubelets, 1,000 nodes of kwok (root; 15 minutes, and 15 more the first time)
	scripts/cluster.sh $(TACTUS)

aarch64: ## Cross-build the whole program for aarch64, and try it in an emulated arm64 machine
	scripts/setup.sh test
	scripts/aarch64.sh

simulate: ## How often the report's statistics are wrong, by simulation (half an hour; nightly)
	scripts/simulate.sh

bench: ## Compare with cyclictest; start-up of a guest; overhead of a run; size of the probe
	scripts/setup.sh bench
	$(MAKE) --no-print-directory build
	scripts/setup.sh kernel
	scripts/bench.sh

book: ## Build the documentation as a site that can be searched, in target/book (the first time 4 minutes)
	scripts/book.sh

SBOM := $(or $(CARGO_TARGET_DIR),target)/tactus.cdx.json

sbom: ## What the program is made of, as CycloneDX, in target/tactus.cdx.json
	scripts/sbom.py $(SBOM)

$(SBOM): Cargo.lock
	$(MAKE) --no-print-directory sbom

# Not `build`: `sudo make install` should not build as root.
$(TACTUS):
	$(MAKE) --no-print-directory build

install: $(TACTUS) $(SBOM) ## Install the program, its manual pages, completions and list of components below PREFIX, and the header for applications
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

packagetest: ## Install, run and remove those packages in clean systems; lint them and what is in contrib (root)
	scripts/setup.sh package
	scripts/package/test.sh

freshtest: ## `make run` in clean systems of Debian 12 and 13, and guest kernels of sid (root; half an hour; nightly)
	scripts/setup.sh package
	scripts/fresh.sh

clean: ## Remove what was built (not what was measured: runs/ stays)
	$(CARGO) clean
	rm -rf fuzz/target fuzz/corpus fuzz/artifacts
