#!/bin/sh
# The image measures the machine that it runs on: its CPUs, its kernel, its settings.
#   out=directory version=VERSION scripts/package/test-image.sh
set -eu
out=${out:?} version=${version:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
arch=$(uname -m)
podman load --quiet -i "$out/tactus-$version-$arch.oci.tar" >/dev/null
image="localhost/tactus:$version-$(case "$arch" in x86_64) echo amd64 ;; *) echo arm64 ;; esac)"
# With limits that may be set in a container, too, in which this may run; and without the controllers of the older hierarchies,
# in which crun cannot place anything and threads get no real-time priority.
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
# The facts of the bundle are the node's.
grep -qrF "$(uname -r)" "$scratch/out/bundle/facts/" || { echo "error: another kernel is in the facts" >&2 && exit 1; }
node -v "$scratch/out:/out" "$image" report /out/bundle --format junit --out - >"$scratch/junit.xml" || [ $? -eq 3 ]
grep -q '<testsuites' "$scratch/junit.xml"
echo "  a report is written in it, too"
