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
. scripts/lib/tests-env.sh

# A session has a share of the CPUs of its own, whatever the priorities in it; this one asks for the smallest.
[ ! -w /proc/self/autogroup ] || echo 19 >/proc/self/autogroup || true

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
await_the_build
computed "packages" env TACTUS="$target/debug/tactus" scripts/package/short.sh
computed "tests that only compute" tests_that_compute
if [ "$(id -u)" -eq 0 ] && has mmdebstrap; then
  computed "setup in a clean Debian 12" scripts/fresh/decisions.sh
else
  skipped "setup in a clean Debian 12" "root and mmdebstrap are needed"
fi
results >"$1"
