#!/bin/sh
# The whole program for aarch64: cross-built, and tried in an emulated arm64 machine (facts, audit, measure, run).
# Not on hardware: that it measures there is all that this shows.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/probes.sh

target=${CARGO_TARGET_DIR:-target}
triple=aarch64-unknown-linux-musl
for command in aarch64-linux-gnu-gcc qemu-system-aarch64 python3; do
  has "$command" || fail "there is no $command" "run: scripts/setup.sh test"
done
# The probes are built once; without debug information the program is a third of its size.
build_probes "$target/probes"
TACTUS_PROBE_DIR=$(realpath "$target/probes")
export TACTUS_PROBE_DIR CARGO_PROFILE_DEV_DEBUG=none
cargo build --quiet --locked -p tactus --target "$triple"
aarch64-linux-gnu-gcc -Wall -Wextra -Werror -O1 -static -o "$target/$triple/init" scripts/aarch64/init.c

# A kernel that this machine's tactus knows, or that KERNEL names.
tactus=${TACTUS:-}
[ -x "$tactus" ] || {
  cargo build --quiet --locked -p tactus
  tactus=$target/debug/tactus
}
kernel=${KERNEL:-$("$tactus" kernel list --json --arch aarch64 | sed -n 's/.*"path": *"\([^"]*\)".*/\1/p' | head -n 1)}
[ -n "$kernel" ] || fail "there is no kernel for an arm64 machine" "run: $tactus kernel fetch rt --arch aarch64"
ls -l "$target/$triple/debug/tactus"
scripts/aarch64/boot.py "$target/$triple/debug/tactus" "$target/$triple/init" "$kernel"
