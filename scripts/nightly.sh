#!/bin/sh
# The checks that take hours and are not needed for every change. As root, alone on the machine:
#
#   scripts/nightly.sh TACTUS     the built program; FUZZ_SECONDS for each fuzz target, default 60
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh

TACTUS=$(realpath "$1")
export TACTUS
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
export STEPS_TIMES="$target/nightly-times"
: >"$STEPS_TIMES"

# `make test` also builds the tests' dependencies. This finds a missing feature of a crate that only tests enable.
without_tests() {
  CARGO_TARGET_DIR="$target/beside" cargo check --quiet --locked
}

# The oldest Rust that builds tactus, from Cargo.toml. In every `make test` Clippy's `incompatible_msrv` finds newer parts of
# the standard library; this also finds newer language features and crates.
oldest_rust() {
  oldest=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
  rustup toolchain list | grep -q "^$oldest-" || rustup toolchain install "$oldest" --profile minimal --no-self-update
  empty_probes "$target/no-probes"
  CARGO_TARGET_DIR="$target/oldest" TACTUS_PROBE_DIR="$target/no-probes" cargo "+$oldest" check --quiet --locked
}

step "the program without its tests" without_tests
if has rustup; then step "the oldest Rust" oldest_rust; else skipped "the oldest Rust" "rustup is not installed"; fi
step "the program for aarch64" scripts/aarch64.sh
step "fuzzing" scripts/fuzz.sh "${FUZZ_SECONDS:-60}"
step "simulations" scripts/simulate.sh
step "kills at random moments and power cuts" scripts/crash.py --trials 100 --guest "$TACTUS"
step "clean systems" scripts/fresh.sh
step_times
[ -z "$steps_skipped" ] || say "skipped steps, which show nothing: $steps_skipped"
[ -z "$steps_failed" ] || fail "failed: $steps_failed"
