#!/bin/sh
# Simulates how often the report's statistics are wrong, with fixed seeds; `make test` runs small parts of it. It runs the
# ignored tests of CRATES whose names contain `simulation`. TRIALS: reports in each cell.
set -eu
cd "$(dirname "$0")/.."
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
# The simulations spend their time in these crates, so only these are optimized. The rest stays as the tests built it.
for crate in tactus-statistics tactus-report tactus-model hdrhistogram statrs; do
  set -- "$@" --config "profile.dev.package.$crate.opt-level=3"
done
for crate in ${CRATES:-tactus-statistics tactus-report}; do
  ${CARGO:-cargo} test --quiet --locked "$@" -p "$crate" -- --ignored --nocapture simulation
done
