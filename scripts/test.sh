#!/bin/sh
# Runs every check that a change must pass. `make test` and CI run this.
#
# If nothing is missing (test-lane.sh: root or sudo, QEMU, container runtimes, a guest kernel), every test runs and a skip is
# a failure (TACTUS_TEST_ALL=1). Otherwise tests that lack something are skipped, and counted.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh
. scripts/lib/tests-env.sh
log="$target/test.log"

# One test at a time: tests measure, load the machine, and look for leftovers of a run. scripts/lib/run-tests.sh runs the
# others in parallel.
export RUST_TEST_THREADS=1

licences() {
  # Also the crates for other systems, which no build here needs.
  cargo fetch --quiet --locked
  cargo deny --offline --locked check --hide-inclusion-graph licenses bans sources
}

# Needs a database that was fetched just now: an old one lacks today's advisories.
advisories() {
  cargo deny --offline --locked check --hide-inclusion-graph advisories
}

# Checks the bill of materials of the packages with CycloneDX's validator.
components() {
  scripts/sbom.py "$target/tactus.cdx.json"
  "$target/tools/bin/python3" scripts/lib/sbom-holds.py "$target/tactus.cdx.json"
}

built() {
  # shellcheck disable=SC2086  # words on purpose
  cargo test --quiet $TEST_SELECTION --no-run
}

# The computing tests run in parallel with the others, as soon as this file exists.
export TESTS_ARE_BUILT="$target/tests-are-built"
export TEST_LOG="$log"
rm -f "$log" "$log.computes" "$TESTS_ARE_BUILT"
export STEPS_SAID="$target/steps-said" STEPS_TIMES="$target/steps-times"
steps_said=$STEPS_SAID
: >"$steps_said"
: >"$STEPS_TIMES"
must "what the tests need" scripts/setup.sh test
# Lints, packages, tests that only compute.
beside scripts/lib/beside.sh
step "scripts" scripts_parse
step "formatting" formatting
if has python3; then
  step "circles" scripts/circles.py
  step "prose" scripts/prose.py
  step "pages of the book" scripts/lib/book-source.py docs "$target/book-pages"
else
  skipped "circles, prose and book" "Python is not installed"
fi
must "the probes" build_probes "$target/probes"
export TACTUS_PROBE_DIR="$target/probes"
# Last, so that installed programs of the same name come first.
PATH="$PATH:$target/tools/bin"
if has cargo-deny; then
  step "licences" licences
  if fetched=$(cargo deny --locked fetch db 2>&1 </dev/null); then
    step "advisories" advisories
  else
    printf '%s\n' "$fetched" | tail -n 3
    skipped "advisories" "the database of advisories cannot be fetched: known faults are not looked for"
  fi
else
  skipped "licences" "cargo-deny is not installed"
  skipped "advisories" "cargo-deny is not installed: known faults are not looked for"
fi
if [ -e "$target/tools/installed" ] && has python3; then
  step "components" components
else
  skipped "components" "the validator is not installed (run: scripts/setup.sh test)"
fi
must "the command and the tests" built
step "guest kernels" env TACTUS="$target/debug/tactus" scripts/setup.sh kernels
touch "$TESTS_ARE_BUILT"
step "the commands of the README and the guide" env TACTUS="$target/debug/tactus" scripts/readme-commands.sh
step "tests" scripts/lib/test-lane.sh measures 10 "$log"
joined
if [ "$(id -u)" -eq 0 ] && has python3; then
  step "kills at random moments" scripts/crash.py --trials 4 "$target/debug/tactus"
else
  skipped "kills at random moments" "needs root and Python"
fi

step_times
slowest "$log.computes" "$log"
printf '\n'
[ -z "$steps_skipped" ] || say "skipped steps, which show nothing: $steps_skipped"
if [ -n "$steps_failed" ]; then
  say "failed steps: $steps_failed"
  cat "$steps_said"
fi
cat "$log.computes" "$log" 2>/dev/null | awk -f scripts/lib/count-tests.awk || exit 1
[ -z "$steps_failed" ]
