#!/bin/sh
# A real cluster of Kubernetes on this machine, and fleets of tactus on it (make cluster; root, x86_64, Linux, Debian or what
# has its programs):
#
#   scripts/cluster.sh [--nodes N] [--only WORD]... TACTUS
#
# Two nodes are real kubelets, each with a containerd of its own; a thousand more (--nodes) are kwok's, which run no code. The
# programs are built from their Go modules once, a quarter of an hour on two cores, and kept below the user's cache; the
# cases then take a quarter of an hour, and no network. Nothing of it is seen outside: processes, mounts, /run and what
# kubelets set of the kernel live in namespaces that end with this script, however it ends.
# Exit: 0 every case holds, 1 some do not, 2 it could not be tried.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

[ "$(id -u)" -eq 0 ] || fail "a kubelet is started by root" "run: sudo -E make cluster"
[ "$(uname -m)" = x86_64 ] || fail "this was written for x86_64" "its images name no other architecture"
PATH="$PATH:/usr/local/go/bin"
say "A cluster of Kubernetes on this machine: about 15 minutes, and 15 more the first time, when its programs are built."

missing=""
for pair in etcd:etcd-server containerd:containerd runc:runc openssl:openssl busybox:busybox-static unshare:util-linux ldd:libc-bin; do
  has "${pair%%:*}" || missing="$missing ${pair#*:}"
done
if [ -n "$missing" ]; then
  # Where systemd runs, these packages would start daemons: left to their owner.
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
# With its first process a process namespace ends, and with the last process its mounts: what is left are files and groups.
clean() {
  trap '' INT TERM HUP
  [ -z "$child" ] || kill -KILL "$child" 2>/dev/null || :
  tries=0
  while find /sys/fs/cgroup -depth -type d -path "*/$name-*" -exec rmdir {} + 2>/dev/null; [ -n "$(left)" ]; do
    tries=$((tries + 1))
    [ "$tries" -lt 100 ] || {
      say "these groups are left:
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
# A shell comes first there: it waits for whoever has lost his parent.
unshare --mount --pid --fork --kill-child --mount-proc sh -c 'python3 "$@"; exit $?' sh scripts/cluster/run.py "$home" "$programs" "$@" &
child=$!
status=0
wait "$child" || status=$?
child=""
exit "$status"
