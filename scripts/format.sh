#!/bin/sh
# Formats every Rust file, those too that a macro declares and that `cargo fmt` does not see.
#
#   scripts/format.sh [OPTION...]     options of rustfmt; `--check -l` names the files that differ
set -eu
cd "$(dirname "$0")/.."
find crates fuzz -name target -prune -o -name '*.rs' -print0 | xargs -0 rustfmt --edition 2024 "$@"
