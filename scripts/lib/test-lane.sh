#!/bin/sh
# The tests of a lane (run-tests.sh tells which they are), as `make test` has built them: what they say goes to stdout and
# to LOG, with the slowest of them at its end.
#
#   scripts/lib/test-lane.sh LANE SLOWEST LOG
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh

export TACTUS_TEST_LANE="$1"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
run_tests=scripts/lib/run-tests.sh

# What the tests can have here; says what they cannot.
everything_is_here() {
  lacking=""
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      # Built as the user, executed as root.
      run_tests="sudo --preserve-env $PWD/$run_tests"
    else
      lacking="$lacking root,"
    fi
  fi
  has "qemu-system-$(uname -m)" || lacking="$lacking QEMU,"
  has podman || lacking="$lacking podman,"
  { has docker && has dockerd; } || lacking="$lacking docker,"
  has lxc-execute || lacking="$lacking lxc,"
  has systemd-nspawn || lacking="$lacking systemd-nspawn,"
  "$target/debug/tactus" kernel list --arch "$(uname -m)" --json 2>/dev/null | grep -q '"path"' || lacking="$lacking a guest kernel,"
  [ -z "$lacking" ] || {
    say "without${lacking%,}: tests that need them are skipped, and say so"
    return 1
  }
}

# Of the lane `check` each test does what can be done here.
[ "$1" = check ] || ! everything_is_here || export TACTUS_TEST_ALL=1
export "CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER=$run_tests"
# A test that skips itself says so in its output, and some may where everything is here: what a kernel has not is not installed.
# shellcheck disable=SC2086  # words on purpose
{ cargo test $TEST_SELECTION --no-fail-fast -- --show-output 2>&1 && echo 0 >"$3.status" || echo 1 >"$3.status"; } |
  if has python3; then scripts/lib/slowest-tests.py "$2"; else cat; fi | tee "$3"
exit "$(cat "$3.status")"
