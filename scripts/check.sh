#!/bin/sh
# Checks a change in three minutes, without root and without a network: format, lints, the tests that only compute, and
# the seeds of the fuzz targets. `make test` runs the rest.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh
. scripts/lib/tests-env.sh
log="$target/check.log"
export STEPS_TIMES="$target/check-times" RUST_TEST_THREADS=1
: >"$STEPS_TIMES"

# The executed programs embed the real probes, as in `make test`.
built() {
  build_probes "$target/probes"
  # shellcheck disable=SC2086  # words on purpose
  TACTUS_PROBE_DIR="$target/probes" cargo test --quiet $TEST_SELECTION --no-run
}

tests() {
  TACTUS_PROBE_DIR="$target/probes" PATH="$PATH:$target/tools/bin" scripts/lib/test-lane.sh check 10 "$log"
}

step "scripts" scripts_parse
step "formatting" formatting
if has python3; then
  step "circles" scripts/circles.py
  step "prose" scripts/prose.py
  step "pages of the book" scripts/lib/book-source.py docs "$target/book-pages"
else
  skipped "circles, prose and book" "Python is not installed"
fi
step "lints" lints
must "the tests are built" built
step "tests that only compute" tests
step_times
[ -z "$steps_failed" ] || fail "failed: $steps_failed"
awk -f scripts/lib/count-tests.awk "$log"
