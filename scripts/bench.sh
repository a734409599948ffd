#!/bin/sh
# Runs the benchmarks. Prints the machine first, then one table for each benchmark. Exit 2 if a limit is exceeded.
#
#   scripts/bench.sh      TACTUS=path, default target/release/tactus
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh

tactus=${TACTUS:-target/release/tactus}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
probe_limit=2097152

machine() {
  sed -n 's/^PRETTY_NAME=//p' /etc/os-release | tr -d '"'
  uname -srvm
  sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | sort | uniq -c | sed 's/^ *//; s/ / x /'
  if grep -qw hypervisor /proc/cpuinfo; then say "a virtual machine: its latencies include those of its host"; fi
  say "load: $(cut -d' ' -f1-3 /proc/loadavg)"
  "$tactus" --version
}

probe_size() {
  over=0
  printf '%-32s %10s %10s\n' "probe" "bytes" "limit"
  for probe_target in $PROBE_TARGETS; do
    bytes=$(stat -c %s "$target/probes/$probe_target/tactus-probe")
    printf '%-32s %10d %10d\n' "$probe_target" "$bytes" "$probe_limit"
    [ "$bytes" -le "$probe_limit" ] || over=1
  done
  return "$over"
}

guest_start() {
  for script in scripts/bench/guest-start.*; do
    case "$script" in
      *.py) python3 "$script" ;;
      *) "$script" ;;
    esac
  done
}

step "the machine" machine
must "the probes" build_probes "$target/probes"
step "size of the probe" probe_size
step "the instrument against cyclictest" python3 scripts/bench/instrument.py \
  "$target/probes/$(uname -m)-unknown-linux-musl/tactus-probe"
step "values against the field's tools" python3 scripts/bench/field.py \
  "$target/probes/$(uname -m)-unknown-linux-musl/tactus-probe"
step "what the probe does to the CPU that it measures" python3 scripts/bench/disturbance.py \
  "$target/probes/$(uname -m)-unknown-linux-musl/tactus-probe"
step "what it costs to keep who had the CPU" python3 scripts/bench/blame.py \
  "$target/probes/$(uname -m)-unknown-linux-musl/tactus-probe"
step "from QEMU's start to the first word of the probe" guest_start
step "from a container's start to the first word of the probe" python3 scripts/bench/container-start.py
step "degradations of the host against itself" python3 scripts/bench/alike.py "$tactus" --only host --repeats 5
step "what starting costs" python3 scripts/bench/start.py "$tactus"
step "what an audit costs" python3 scripts/bench/audit.py "$tactus"
step "what the bundle of a long run takes" python3 scripts/bench/long-run.py "$tactus"
step "what recording and watching eight CPUs costs" python3 scripts/bench/watchers.py
step "what importing a GB takes" python3 scripts/bench/import.py "$tactus"
step "what a fleet costs for each machine" python3 scripts/bench/fleet_jobs.py "$tactus" 1000
step "overhead of tactus run --quick" python3 scripts/bench/overhead.py "$tactus" --quick
[ -z "$steps_failed" ] || fail "failed or above the limit: $steps_failed"
