#!/bin/sh
# Fuzzes all targets, or TARGET, for SECONDS each (default 10). `make test` only replays the seeds
# (crates/tactus/tests/seeds), without instrumentation.
#
#   scripts/fuzz.sh [SECONDS] [TARGET]
#
# It needs the stable toolchain and a C++ compiler, not cargo-fuzz, which only sets the flags below and
# builds. It keeps new inputs in fuzz/corpus and failing inputs in fuzz/artifacts. Neither is checked in;
# the seeds in fuzz/seeds are.
set -eu
cd "$(dirname "$0")/.."

seconds=${1:-10}
targets=${2:-$(ls fuzz/seeds)}
target_dir=${TACTUS_FUZZ_TARGET_DIR:-${CARGO_TARGET_DIR:-target}/fuzz}
triple=$(rustc -vV | sed -n 's/^host: //p')

# libFuzzer needs edge counters, their places, and the operands of comparisons.
coverage="-Cpasses=sancov-module
-Cllvm-args=-sanitizer-coverage-level=4
-Cllvm-args=-sanitizer-coverage-inline-8bit-counters
-Cllvm-args=-sanitizer-coverage-pc-table
-Cllvm-args=-sanitizer-coverage-trace-compares"
RUSTFLAGS=$(printf '%s ' --cfg fuzzing $coverage)
export RUSTFLAGS

scratch=$(mktemp -d -p "$([ -w /dev/shm ] && echo /dev/shm || echo "${TMPDIR:-/tmp}")" tactus-fuzz.XXXXXX)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
export TMPDIR="$scratch"

# No target runs the probe, so a stand-in replaces it.
. scripts/lib/probes.sh
TACTUS_PROBE_DIR="$(realpath -m "$target_dir")/no-probes"
export TACTUS_PROBE_DIR
empty_probes "$TACTUS_PROBE_DIR"

# Optimized code tries ten times as many inputs in the same time, but takes twice as long to build.
[ "$seconds" -lt 60 ] || export CARGO_PROFILE_RELEASE_OPT_LEVEL=1

echo "building the fuzz targets"
# With --target the flags apply to the targets and not to build scripts.
cargo build --quiet --release --locked --manifest-path fuzz/Cargo.toml --target "$triple" --target-dir "$target_dir"

# fuzz TARGET
fuzz() {
  target=$1
  log="$scratch/$target.log"
  mkdir -p "fuzz/corpus/$target" "fuzz/artifacts/$target"
  # A fuzzer must not hang: libFuzzer ends at max_total_time, an input at timeout. Entropic compares every input with all
  # others by tens of thousands of features, which takes longer than to try ten inputs.
  # Importers begin with the files of the field as well.
  field=""
  [ "$target" != import ] || field=crates/tactus-format/tests/field
  # shellcheck disable=SC2086  # a word or none
  if ! "$target_dir/$triple/release/$target" "fuzz/corpus/$target" "fuzz/seeds/$target" $field \
    -max_total_time="$seconds" -entropic=0 -timeout=60 -rss_limit_mb=1024 -max_len=65536 -print_final_stats=1 \
    -artifact_prefix="fuzz/artifacts/$target/" >"$log" 2>&1; then
    tail -n 40 "$log"
    echo "error: fuzzing $target failed: the input is in fuzz/artifacts/$target"
    return 1
  fi
  # Without instrumentation a fuzzer would pass everything.
  covered=$(sed -n 's/.*cov: \([0-9]*\).*/\1/p' "$log" | tail -n 1)
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
  if [ "${covered:-0}" -lt 100 ]; then
    tail -n 20 "$log"
    echo "error: fuzzing $target covered ${covered:-0} edges: the target is not instrumented"
    return 1
  fi
  echo "  $target: $runs inputs, cov: $covered"
}

echo "fuzzing for $seconds s: $targets"
failed=0
# shellcheck disable=SC2086  # words on purpose
set -- $targets
while [ $# -gt 0 ]; do
  # One for each CPU at a time.
  jobs=""
  while [ $# -gt 0 ] && [ "$(echo "$jobs" | wc -w)" -lt "$(nproc)" ]; do
    fuzz "$1" &
    jobs="$jobs $!"
    shift
  done
  for job in $jobs; do wait "$job" || failed=1; done
done
exit "$failed"
