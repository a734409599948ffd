#!/bin/sh
# Builds the program for packages: one static file for each architecture, which needs no other file of the system.
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
# These flags replace those of .cargo/config.toml, which are for the probe: the program unwinds when it panics, and loads at
# any address. It does not contain the build directory, which would make builds of the same sources differ. (The probes in
# it are built as always, and contain the path of the crates' cache.)
RUSTFLAGS="-Ctarget-feature=+crt-static --remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$PWD=/tactus"
export RUSTFLAGS
for arch in "$@"; do
  set -- "$@" --target "$arch-unknown-linux-musl"
  shift
done
cargo build --release --locked -p tactus "$@"
