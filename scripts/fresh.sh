#!/bin/sh
# Tests `make run` in clean systems of Debian, and guest kernels of sid. `make freshtest`, as root: bookworm and trixie each
# build tactus once, which takes about 12 minutes of CPU time.
#
#   scripts/fresh.sh [bookworm] [trixie] [sid]     default: all three; ROOTS=DIR keeps the systems in DIR
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/fresh/root.sh

[ "$(id -u)" -eq 0 ] || fail "making a clean system needs root" "run as root: make freshtest"
has mmdebstrap || fail "mmdebstrap is not installed" "run: scripts/setup.sh package"
[ $# -gt 0 ] || set -- bookworm trixie sid
scratch=${ROOTS:-$(mktemp -d "${TMPDIR:-/var/tmp}/tactus-fresh.XXXXXX")}
mkdir -p "$scratch"
chmod 755 "$scratch"
[ -n "${ROOTS:-}" ] || trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT TERM

# system SUITE PACKAGES: makes the system if it does not exist.
system() {
  [ -e "$scratch/$1/src" ] || new_root "$scratch/$1" "$1" "git,make,ca-certificates${2:+,$2}"
  in_root "$scratch/$1" apt-get update -q >/dev/null
}

# Copies this machine's rustup into the system, as rustup.rs installs it, because Debian 12 has no rustup.
own_rust() {
  home="$scratch/$1/root"
  mkdir -p "$home/.cargo" "$home/.rustup/toolchains"
  cp -a "${CARGO_HOME:-$HOME/.cargo}/bin" "$home/.cargo/"
  cp -a "${RUSTUP_HOME:-$HOME/.rustup}/settings.toml" "$home/.rustup/"
  cp -a "${RUSTUP_HOME:-$HOME/.rustup}/toolchains/$(rustup show active-toolchain | cut -d ' ' -f 1)" "$home/.rustup/toolchains/"
  rm -rf "$home"/.rustup/toolchains/*/share/doc
}

# Runs `make run`, and checks what it measured.
make_run() {
  in_root "$scratch/$1" make -C /src run
  bundle=$(cd "$scratch/$1/src" && ls -d runs/*/ | tail -n 1)
  in_root "$scratch/$1" /src/target/release/tactus report --json "/src/$bundle" >"$scratch/$1.json" || [ $? -eq 3 ]
  python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["scenarios"]
measured = sorted({row["environment"] for row in rows if row["status"] == "measured"})
others = [(row["name"], row["status"], row["reason"]) for row in rows if row["status"] != "measured"]
print("  measured:", ", ".join(measured))
assert {"host", "podman", "qemu"} <= set(measured) and not others, others' "$scratch/$1.json"
}

# Measures in a guest with this system's kernel, with the program that another system built.
kernels_of() {
  for built in bookworm trixie; do
    [ ! -x "$scratch/$built/src/target/release/tactus" ] || cp "$scratch/$built/src/target/release/tactus" "$scratch/$1/tactus"
  done
  [ -x "$scratch/$1/tactus" ] || fail "no system has built tactus, which fetches the kernels" "run: scripts/fresh.sh bookworm $1"
  in_root "$scratch/$1" apt-get install -q -y --no-install-recommends qemu-system-x86 >/dev/null
  in_root "$scratch/$1" /tactus kernel fetch rt
  in_root "$scratch/$1" /tactus measure --in qemu --duration 2s --json >"$scratch/$1.json" || [ $? -eq 3 ]
  python3 -c '
import json, sys
(row,) = json.load(open(sys.argv[1]))["scenarios"]
assert row["status"] == "measured", row
print("  measured in a guest: %d wake-ups" % row["all"]["cycles"])' "$scratch/$1.json"
}

step "decisions in a clean Debian 12" scripts/fresh/decisions.sh
for suite in "$@"; do
  must "a clean $suite" system "$suite"
  case "$suite" in
    sid) step "guest kernels of $suite" kernels_of "$suite" ;;
    *)
      [ "$suite" != bookworm ] || step "a Rust of the user's own" own_rust "$suite"
      step "make run in $suite" make_run "$suite"
      ;;
  esac
done
[ -z "$steps_failed" ] || fail "failed: $steps_failed"
