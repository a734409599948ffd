#!/bin/busybox sh
# The first process of the guest. Each part of what it says stands between `@@begin NAME` and
# `@@end NAME CODE`.
/bin/busybox mkdir -p /proc /sys /dev /run /tmp /var/lib /etc/default
/bin/busybox --install -s /bin
export PATH=/bin LC_ALL=C.UTF-8 COLUMNS=120
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug
exec </dev/null >/dev/ttyS0 2>&1
# A console that turns \n into \r\n would change what is compared.
stty -F /dev/ttyS0 -opost

JOURNAL=/var/lib/tactus/tune/journal.jsonl
# No stalld is in this guest: throttling goes off because it is asked for.
PROFILE="--profile realtime-virtual-guest --isolate 1 --with rt-throttling"

say() { # say NAME COMMAND...
  name=$1
  shift
  echo "@@begin $name"
  "$@"
  echo "@@end $name $?"
}
plan() {
  # shellcheck disable=SC2086  # words on purpose, here and below
  tactus tune plan $PROFILE --json >/tmp/plan.json || return
  # /proc/sys/kernel/watchdog is not in the plan, and depends on files that are.
  echo /proc/sys/kernel/watchdog >/tmp/files
  sed -n 's/^ *"path": "\(.*\)",*$/\1/p' /tmp/plan.json | sort -u >>/tmp/files
  wc -l </tmp/files
}
# What the plan touches, as it is now: sums, texts, scheduling and CPUs of the threads.
look() {
  xargs sha256sum </tmp/files | sed 's/^/sum /'
  xargs grep -H '' </tmp/files | sed 's/^/text /'
  cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^/stat /'
  grep -H '^Cpus_allowed_list:' /proc/[0-9]*/status 2>/dev/null | sed 's/^/cpus /'
}
# Kills a call in the middle: when it has written down what it is about to do, and not that it is
# done. A guest may be slow to see that; it may try again.
cut_short() { # cut_short ARGUMENTS OF APPLY
  try=0
  while [ $try -lt 8 ]; do
    try=$((try + 1))
    size=$(wc -l <"$JOURNAL" 2>/dev/null || echo 0)
    tactus tune apply "$@" >/tmp/killed 2>&1 &
    pid=$!
    while kill -0 $pid 2>/dev/null; do
      [ -e "$JOURNAL" ] && tail -n +$((size + 1)) "$JOURNAL" | grep -q '"intent"' && break
    done
    kill -9 $pid
    wait $pid
    code=$?
    last=$(tail -n 1 "$JOURNAL")
    case "$code $last" in
      "137 "*commit*) ;;
      137\ *) echo "killed after $try tries"; return 0 ;;
    esac
    tactus tune revert
  done
  echo "always done before the kill"
  cat /tmp/killed
  return 1
}
files() { find /etc /var/lib -type f | sort; }
boot_files() {
  cat /sys/devices/system/cpu/isolated /sys/devices/system/cpu/nohz_full
}
keep() { tar -cz -C / etc var/lib | base64; }
restore() { tar -xz -C / -f /state.tgz; }

. /stage
say over true
poweroff -f
