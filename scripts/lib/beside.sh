#!/bin/sh
# The steps of scripts/test.sh that only compute: beside those that wait (for a guest that boots, for a run to end), on
# what these leave of the CPUs. They have build directories of their own: nobody waits for a lock.
#
#   scripts/lib/beside.sh RESULTS     the names of what failed and what was skipped, for steps.sh
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
# A session has a share of the CPUs of its own, whatever the priorities in it; this one asks for the smallest.
[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup || true
# Nothing that is built here is executed, so that stand-ins will do.
TACTUS_PROBE_DIR="$target/no-probes"
export TACTUS_PROBE_DIR
empty_probes "$TACTUS_PROBE_DIR"

lints() {
  export CARGO_TARGET_DIR="$target/beside"
  cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
  # shellcheck disable=SC2046  # words on purpose
  cargo clippy --quiet --locked -p tactus-probe $(probe_targets) -- -D warnings
  cargo clippy --quiet --locked -p tactus-bare-guest --target "$BARE_TARGET" -- -D warnings
}

# The whole program, as far as the compiler can refuse it. `make aarch64` builds it and tries it in an emulated machine.
aarch64_program() {
  CARGO_TARGET_DIR="$target/beside" CARGO_PROFILE_DEV_DEBUG=none cargo check --quiet --locked -p tactus \
    --target aarch64-unknown-linux-musl
}

# What follows has the command and the tests that the others have built by then.
await_the_build() {
  until [ -e "$TESTS_ARE_BUILT" ]; do sleep 1; done
}

tests_that_compute() {
  TACTUS_PROBE_DIR="$target/probes" PATH="$PATH:$target/tools/bin" scripts/lib/test-lane.sh computes 3 "$TEST_LOG.computes"
}

words=$(mktemp)
trap 'rm -f "$words"' EXIT
trap 'exit 130' INT TERM

# computed NAME COMMAND...: a step whose words are said when it ends, all at once: others say theirs meanwhile.
computed() {
  step "$@" >"$words" 2>&1
  cat "$words"
}

computed "lints" lints
if has aarch64-linux-gnu-gcc; then
  computed "the program for aarch64" aarch64_program
else
  skipped "the program for aarch64" "there is no aarch64-linux-gnu-gcc"
  computed "the program without its tests" env CARGO_TARGET_DIR="$target/beside" cargo check --quiet --locked
fi
if has c++; then computed "fuzzing" scripts/fuzz.sh "${FUZZ_SECONDS:-5}"; else skipped "fuzzing" "no C++ compiler"; fi
await_the_build
computed "packages" env TACTUS="$target/debug/tactus" scripts/package/short.sh
computed "tests that only compute" tests_that_compute
if [ "$(id -u)" -eq 0 ] && has mmdebstrap; then
  computed "setup in a clean Debian 12" scripts/fresh/decisions.sh
else
  skipped "setup in a clean Debian 12" "root and mmdebstrap are needed"
fi
results >"$1"
