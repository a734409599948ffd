#!/bin/sh
# `make run`: measures this machine into runs/<time>, as root if possible.
#
#   scripts/run.sh [ARGUMENTS of tactus run]
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

tactus=${TACTUS:-target/release/tactus}
out=runs/$(date +%Y%m%d-%H%M%S)
mkdir -p runs

case "$(as_root)" in
  "") exec "$tactus" run --out "$out" "$@" ;;
  none)
    exec "$tactus" run --out "$out" "$@"
    ;;
esac
say "Running as root (by sudo): real-time priorities, containers and guests need it." >&2
status=0
sudo "$tactus" run --out "$out" "$@" || status=$?
# The bundle belongs to the user, not to root.
sudo chown -R "$(id -u):$(id -g)" "$out"
exit "$status"
