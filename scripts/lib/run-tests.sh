#!/bin/sh
# The runner with which `cargo test` executes a test program for scripts/test.sh. Each program belongs to one of two lanes
# ($TACTUS_TEST_LANE); the lane `check` has the programs of both that need no root, no guest and no turn:
#
#   computes   programs that only compute, or run tools, with a thread for each CPU; and the guest that is tuned over a
#              reboot, which takes minutes of an emulated CPU and measures nothing
#   measures   all others, one test at a time, because they measure, load the machine, take the time, or look for leftovers
#              of a run. The tests of environments and of the whole command take turns by themselves: most of them wait.
#
#   TACTUS_TEST_LANE=measures CARGO_TARGET_..._RUNNER="[sudo --preserve-env] scripts/lib/run-tests.sh" cargo test
REBOOT=guest::a_guest_is_tuned_over_a_reboot_and_is_as_before_when_all_is_taken_back
program=${1##*/}
lane=measures
# A program that hangs is killed after this time, in seconds: its log then names the test.
longest=1800
case ${program%-*} in
  tactus_model | tactus_format | tactus_audit | audit | tactus_bundle | size | tactus_data | data | tactus_environment | \
    tactus_fleet | tactus_statistics | statistics | tactus_report | report | tactus_serve | serve | seeds | generate | guards)
    lane=computes
    RUST_TEST_THREADS=$(nproc)
    ;;
  # These take little time: one test at a time, as in `make test`.
  tactus | tactus_tune | actions | taken_back | tactus_watch)
    [ "$TACTUS_TEST_LANE" != check ] || lane=computes
    ;;
  contract) RUST_TEST_THREADS=4 ;;
  end_to_end)
    case $TACTUS_TEST_LANE in
      check) exit 0 ;;
      computes) exec "$@" --exact "$REBOOT" ;;
    esac
    RUST_TEST_THREADS=3
    longest=2700
    set -- "$@" --skip "$REBOOT"
    ;;
esac
case $TACTUS_TEST_LANE in
  # `generate` starts guests and containers.
  check) [ "$lane" = computes ] && [ "${program%-*}" != generate ] || exit 0 ;;
  *) [ "$lane" = "$TACTUS_TEST_LANE" ] || exit 0 ;;
esac
export RUST_TEST_THREADS
exec timeout --kill-after=10 "$longest" "$@" </dev/null
