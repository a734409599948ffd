#!/bin/busybox sh
# The first process of the emulated machine. It prints the output of each command between `@@begin NAME` and `@@end NAME CODE`.
/bin/busybox --install -s /bin
export PATH=/bin LC_ALL=C.UTF-8 COLUMNS=120
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
mount -t tmpfs tmpfs /run
mount -t tmpfs tmpfs /tmp
exec </dev/null >/dev/ttyS0 2>&1
stty -F /dev/ttyS0 -opost

say() { # say NAME COMMAND...
  name=$1
  shift
  echo "@@begin $name"
  "$@"
  echo "@@end $name $?"
}
# Prints every file that tuning may write, and values that the kernel sets by itself.
look() {
  find /etc /var/lib -type f ! -name lock | sort | xargs sha256sum
  cat /boot/cmdline
  for file in /proc/sys/vm/swappiness /proc/sys/kernel/timer_migration /proc/sys/kernel/sched_rt_runtime_us; do
    echo "$file $(cat $file)"
  done
}
# Sets the sysctls as a service manager does at boot.
keep() {
  [ ! -e /etc/sysctl.d/90-tactus.conf ] || sysctl -p /etc/sysctl.d/90-tactus.conf >/dev/null
}
stepped() {
  tactus measure --interval 5ms --duration 6s --out /tmp/measured >/dev/null 2>/tmp/said &
  measuring=$!
  for day in 01 20 03; do
    sleep 1
    date -s "2031-05-$day 12:00:00" >/dev/null
  done
  wait $measuring
  code=$?
  cat /tmp/said
  return $code
}

# The last write of a stage; reboot.py looks for it among the recorded writes.
ended() {
  echo "the command has ended" >/var/cache/ended
  sync
}

keep
case "$(sed -n 's/.*stage=\([a-z]*\).*/\1/p' /proc/cmdline)" in
  look) say look look ;;
  apply)
    say apply tactus tune apply --profile realtime-virtual-guest --isolate 1 --persist
    ended
    ;;
  revert)
    say revert tactus tune revert
    ended
    ;;
  back)
    say verify tactus tune verify
    say revert tactus tune revert
    say again tactus tune revert
    say look look
    ;;
  clock)
    say clock stepped
    say shown tactus report /tmp/measured --json
    ;;
esac
sync
poweroff -f
