#!/bin/sh
# Tests that the image measures the machine on which it runs: its CPUs, its kernel, its settings.
#   out=directory version=VERSION scripts/package/test-image.sh
set -eu
out=${out:?} version=${version:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
arch=$(uname -m)
podman load --quiet -i "$out/tactus-$version-$arch.oci.tar" >/dev/null
image="localhost/tactus:$version-$(case "$arch" in x86_64) echo amd64 ;; *) echo arm64 ;; esac)"
# The limits can be set even if this script runs in a container. With cgroup v1 the hierarchies cpu and unified are unmounted:
# crun cannot use them, and threads get no real-time priority in them.
engine() {
  if [ -e /sys/fs/cgroup/cpu/cpu.rt_runtime_us ]; then
    unshare -m sh -c 'umount /sys/fs/cgroup/cpu /sys/fs/cgroup/unified 2>/dev/null; exec "$@"' sh podman "$@"
  else
    podman "$@"
  fi
}
node() { engine run --rm --privileged --network=host --pid=host --ulimit=nofile=1024:1024 --ulimit=nproc=1024:1024 "$@"; }
[ "$(node "$image" --version)" = "tactus $version" ]
mkdir "$scratch/out"
node -v "$scratch/out:/out" "$image" measure --duration 2 --json --out /out/bundle >"$scratch/measured.json" || [ $? -eq 3 ]
python3 -c '
import json, sys
document = json.load(open(sys.argv[1]))
(scenario,) = document["scenarios"]
assert scenario["status"] == "measured" and scenario["all"]["cycles"] > 0, scenario
print("  measured from the image: %d wake-ups, evidence: %s" % (scenario["all"]["cycles"], scenario["evidence"]))' "$scratch/measured.json"
# The facts of the bundle must be those of the node.
grep -qrF "$(uname -r)" "$scratch/out/bundle/facts/" || { echo "error: the facts do not contain this kernel" >&2 && exit 1; }
node -v "$scratch/out:/out" "$image" report /out/bundle --format junit --out - >"$scratch/junit.xml" || [ $? -eq 3 ]
grep -q '<testsuites' "$scratch/junit.xml"
echo "  the image also writes a report"
