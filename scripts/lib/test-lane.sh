#!/bin/sh
# Runs the tests of a lane (see run-tests.sh), as `make test` built them. Their output goes to stdout and to LOG, followed by
# the slowest tests (SLOWEST is their number).
#
#   scripts/lib/test-lane.sh LANE SLOWEST LOG
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh

export TACTUS_TEST_LANE="$1"
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
run_tests=scripts/lib/run-tests.sh

# Whether the tests lack nothing here; prints what they lack.
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
    say "missing:${lacking%,}. Tests that need them are skipped."
    return 1
  }
}

# In the lane `check` tests may be skipped.
[ "$1" = check ] || ! everything_is_here || export TACTUS_TEST_ALL=1
export "CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER=$run_tests"
# A test that skips itself prints so. Some may even if nothing is missing: a feature that the kernel lacks cannot be installed.
# shellcheck disable=SC2086  # words on purpose
{ cargo test $TEST_SELECTION --no-fail-fast -- --show-output 2>&1 && echo 0 >"$3.status" || echo 1 >"$3.status"; } |
  if has python3; then scripts/lib/slowest-tests.py "$2"; else cat; fi | tee "$3"
exit "$(cat "$3.status")"
