#!/bin/sh
# Starts a real Kubernetes cluster on this machine, and tests fleets of tactus on it (make cluster). It needs root, x86_64
# and Debian, or another Linux that has the programs.
#
#   scripts/cluster.sh [--nodes N] [--only WORD]... TACTUS
#
# Two nodes are real kubelets, each with its containerd. A thousand more (--nodes) are kwok's and run no code. The script
# builds the programs once from their Go modules (a quarter of an hour on two cores) and keeps them below the user's cache.
# The cases then take a quarter of an hour, and need no network. The rest of the machine sees nothing of it: processes,
# mounts, /run and the kernel settings of kubelets are in namespaces that end with this script, however it ends.
# Exit: 0 every case holds, 1 some do not, 2 the cases could not run.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

[ "$(id -u)" -eq 0 ] || fail "only root can start a kubelet" "run: sudo -E make cluster"
[ "$(uname -m)" = x86_64 ] || fail "make cluster runs on x86_64 only" "its images are for x86_64: use an x86_64 machine"
PATH="$PATH:/usr/local/go/bin"
say "A cluster of Kubernetes on this machine: about 15 minutes, and 15 more the first time, to build its programs."

missing=""
for pair in etcd:etcd-server containerd:containerd runc:runc openssl:openssl busybox:busybox-static unshare:util-linux ldd:libc-bin; do
  has "${pair%%:*}" || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
  # If systemd runs, these packages would start daemons: the user installs them.
  if ! has apt-get || [ -d /run/systemd/system ]; then
    fail "not installed (Debian's names):$missing" "install them, stop the daemons that they start, then run this again"
  fi
  say "Installing$missing with apt-get."
  {
    apt-get update -q </dev/null
    # shellcheck disable=SC2086  # words on purpose
    env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing </dev/null
  } >&2
fi
programs=$(scripts/cluster/build.sh)/bin

home=$(mktemp -d "${TMPDIR:-/tmp}/tactus-cluster-XXXXXX")
name=${home##*/}
child=""
# A process namespace ends with its first process, its mounts with the last: only files and cgroups are left.
clean() {
  trap '' INT TERM HUP
  [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || :
  tries=0
  while find /sys/fs/cgroup -depth -type d -path "*/$name-*" -exec rmdir {} + 2>/dev/null; [ -n "$(left)" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || {
      say "these cgroups are left:
$(left)" >&2
      break
    }
    sleep 0.2
  done
  if [ -n "${KEEP:-}" ]; then say "kept: $home"; else rm -rf --one-file-system "$home"; fi
}
left() {
  find /sys/fs/cgroup -maxdepth 2 -type d -name "$name-*" 2>/dev/null
}
trap clean EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
trap 'exit 129' HUP
# The first process there is a shell: it reaps orphaned processes.
unshare --mount --pid --fork --kill-child --mount-proc sh -c 'python3 "$@"; exit $?' sh scripts/cluster/run.py "$home" "$programs" "$@" &
child=$!
status=0
wait "$child" || status=$?
child=""
exit "$status"
