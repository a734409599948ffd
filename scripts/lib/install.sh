# Sourced by setup.sh: packages of Debian and Ubuntu, of which nothing is started or stays enabled. It asks for `sudo`.

POLICY=/usr/sbin/policy-rc.d

# apt_install PACKAGE...
apt_install() {
  units_before=$(enabled_units)
  trap allow_starts EXIT
  trap 'exit 130' INT TERM
  forbid_starts
  install_status=0
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "$@" </dev/null >&2 ||
    install_status=$?
  allow_starts
  trap - EXIT INT TERM
  disable_new_units
  return "$install_status"
}

# Packages ask this file before they start a server. Where this script was killed, it asks the one that was there before.
forbid_starts() {
  if [ -e "$POLICY" ] && ! grep -q tactus "$POLICY"; then
    $sudo mv "$POLICY" "$POLICY.kept"
  fi
  printf '%s\n' "#!/bin/sh" "# Written by scripts/setup.sh of tactus while it installs packages: they start no server." \
    "[ ! -d /proc/$$ ] || exit 101" "[ ! -x $POLICY.kept ] || exec $POLICY.kept \"\$@\"" |
    $sudo sh -c "cat >$POLICY && chmod 755 $POLICY"
}

allow_starts() {
  $sudo rm -f "$POLICY"
  [ ! -e "$POLICY.kept" ] || $sudo mv "$POLICY.kept" "$POLICY"
}

# What systemd starts at boot, by what this machine's own links say.
enabled_units() {
  find /etc/systemd/system -path '*.wants/*' -printf '%P\n' 2>/dev/null | sort -u
}

new_units() {
  enabled_units | grep -vxF -e "$units_before" | sed 's|.*/||' | sort -u | tr '\n' ' '
}

# Timers and servers cost latency on a machine that is to be real-time, and a server is open to others: what the packages
# have enabled is disabled, and said.
disable_new_units() {
  [ -d /run/systemd/system ] || return 0
  units=$(new_units)
  [ -n "$units" ] || return 0
  # shellcheck disable=SC2086  # words on purpose
  $sudo systemctl disable --now $units >/dev/null 2>&1 || true
  say "The packages had enabled these, of which tactus needs none. They are disabled: $units"
  units=$(new_units)
  [ -z "$units" ] || say "These are enabled still. To disable them, as root: systemctl disable --now $units"
}
