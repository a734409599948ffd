#!/bin/sh
# How often the report's statistics are wrong: long simulations with fixed seeds, whose small parts `make test` runs.
# Every test of the workspace whose name begins with `simulation` and that is ignored otherwise. TRIALS: reports in
# each cell.
set -eu
cd "$(dirname "$0")/.."
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
# What is simulated is loops over numbers, all in these; the rest stays as tests have built it.
for crate in tactus-statistics tactus-report tactus-model hdrhistogram statrs; do
  set -- "$@" --config "profile.dev.package.$crate.opt-level=3"
done
for crate in ${CRATES:-tactus-statistics tactus-report}; do
  ${CARGO:-cargo} test --quiet --locked "$@" -p "$crate" -- --ignored --nocapture simulation
done
