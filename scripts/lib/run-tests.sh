#!/bin/sh
# How `cargo test` executes a program of tests for scripts/test.sh: those that only compute, with a thread for each CPU;
# all others one test at a time, because they measure, load the machine, or look for what a run left behind.
#
#   CARGO_TARGET_..._RUNNER="[sudo --preserve-env] scripts/lib/run-tests.sh" cargo test
program=${1##*/}
case ${program%-*} in
  tactus_model | tactus_format | tactus_audit | audit | tactus_report | report | guards)
    RUST_TEST_THREADS=$(nproc)
    export RUST_TEST_THREADS
    ;;
esac
exec "$@"
