#!/bin/sh
# Runs the steps of scripts/test.sh that only compute, in parallel with steps that mostly wait (for a guest to boot, for a run
# to end). It uses the CPU time that these leave. Lints use a separate build directory, so that no step waits for a lock.
#
#   scripts/lib/beside.sh RESULTS     the file for the names of failed and skipped steps, for steps.sh
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh
. scripts/lib/tests-env.sh

# Each session has a share of the CPUs, whatever its priorities (autogroup); this one asks for the smallest share.
[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup || true

# The steps below need the command and the tests that scripts/test.sh builds.
await_the_build() {
  until [ -e "$TESTS_ARE_BUILT" ]; do sleep 1; done
}

tests_that_compute() {
  TACTUS_PROBE_DIR="$target/probes" PATH="$PATH:$target/tools/bin" scripts/lib/test-lane.sh computes 3 "$TEST_LOG.computes"
}

words=$(mktemp)
trap 'rm -f "$words"' EXIT
trap 'exit 130' INT TERM

# computed NAME COMMAND...: a step that prints its output at its end, all at once: other steps print meanwhile.
computed() {
  step "$@" >"$words" 2>&1
  cat "$words"
}

computed "lints" lints
await_the_build
computed "packages" env TACTUS="$target/debug/tactus" scripts/package/short.sh
computed "tests that only compute" tests_that_compute
if [ "$(id -u)" -eq 0 ] && has mmdebstrap; then
  computed "setup in a clean Debian 12" scripts/fresh/decisions.sh
else
  skipped "setup in a clean Debian 12" "needs root and mmdebstrap"
fi
results >"$1"
