#!/bin/sh
# The program as packages have it: one static file for each architecture, which needs nothing of the system it is put on.
#
#   scripts/package/build.sh ARCH...     x86_64, aarch64
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
. scripts/lib/probes.sh

target=${CARGO_TARGET_DIR:-target}
build_probes "$target/probes"
TACTUS_PROBE_DIR=$(realpath "$target/probes")
export TACTUS_PROBE_DIR
# In the place of .cargo/config.toml's flags, which are the probe's: a program that unwinds when it panics, and is loaded
# anywhere. Where it was built is nobody's business, and would make two builds of the same sources differ. (The probes in it
# are built as ever, and name the cache of crates that they were built from.)
RUSTFLAGS="-Ctarget-feature=+crt-static --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/tactus"
export RUSTFLAGS
for arch in "$@"; do
  set -- "$@" --target "$arch-unknown-linux-musl"
  shift
done
cargo build --release --locked -p tactus "$@"
