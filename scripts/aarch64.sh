#!/bin/sh
# Cross-builds the whole program for aarch64, and tests it in an emulated arm64 machine (facts, audit, measure, run).
# This shows that the program works there; it says nothing about hardware.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/probes.sh

target=${CARGO_TARGET_DIR:-target}
triple=aarch64-unknown-linux-musl
for command in aarch64-linux-gnu-gcc qemu-system-aarch64 python3; do
  has "$command" || fail "$command is not installed" "run: scripts/setup.sh test"
done
# Builds the probes once. Without debug information the program has a third of the size.
build_probes "$target/probes"
TACTUS_PROBE_DIR=$(realpath "$target/probes")
export TACTUS_PROBE_DIR CARGO_PROFILE_DEV_DEBUG=none
cargo build --quiet --locked -p tactus --target "$triple"
aarch64-linux-gnu-gcc -Wall -Wextra -Werror -O1 -static -o "$target/$triple/init" scripts/aarch64/init.c

# The kernel: the first that this machine's tactus lists, or KERNEL.
tactus=${TACTUS:-}
[ -x "$tactus" ] || {
  cargo build --quiet --locked -p tactus
  tactus=$target/debug/tactus
}
kernel=${KERNEL:-$("$tactus" kernel list --json --arch aarch64 | sed -n 's/.*"path": *"\([^"]*\)".*/\1/p' | head -n 1)}
[ -n "$kernel" ] || fail "no kernel for an arm64 machine was found" "run: $tactus kernel fetch rt --arch aarch64"
ls -l "$target/$triple/debug/tactus"
scripts/aarch64/boot.py "$target/$triple/debug/tactus" "$target/$triple/init" "$kernel"
