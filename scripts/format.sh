#!/bin/sh
# Formats every Rust file, also those that a macro declares: `cargo fmt` does not see them.
#
#   scripts/format.sh [OPTION...]     options of rustfmt; `--check -l` lists the files that differ
set -eu
cd "$(dirname "$0")/.."
find crates fuzz -name target -prune -o -name '*.rs' -print0 | xargs -0 rustfmt --edition 2024 "$@"
