# Sourced by setup.sh: installs packages of Debian and Ubuntu without starting or enabling their services. It needs `sudo` to
# be set.

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

# Packages run this file before they start a server. If this script was killed, the file runs the one that was there before.
forbid_starts() {
  if [ -e "$POLICY" ] && ! grep -q tactus "$POLICY"; then
    $sudo mv "$POLICY" "$POLICY.kept"
  fi
  printf '%s\n' "#!/bin/sh" "# Written by scripts/setup.sh of tactus. While it installs packages, they may start no server." \
    "[ ! -d /proc/$$ ] || exit 101" "[ ! -x $POLICY.kept ] || exec $POLICY.kept \"\$@\"" |
    $sudo sh -c "cat >$POLICY && chmod 755 $POLICY"
}

allow_starts() {
  $sudo rm -f "$POLICY"
  [ ! -e "$POLICY.kept" ] || $sudo mv "$POLICY.kept" "$POLICY"
}

# The units that systemd starts at boot, by the links of this machine.
enabled_units() {
  find /etc/systemd/system -path '*.wants/*' -printf '%P\n' 2>/dev/null | sort -u
}

new_units() {
  enabled_units | grep -vxF -e "$units_before" | sed 's|.*/||' | sort -u | tr '\n' ' '
}

# Timers and servers cost latency on a real-time machine, and a server is open to others: the units that the packages
# enabled are disabled and listed.
disable_new_units() {
  [ -d /run/systemd/system ] || return 0
  units=$(new_units)
  [ -n "$units" ] || return 0
  # shellcheck disable=SC2086  # words on purpose
  $sudo systemctl disable --now $units >/dev/null 2>&1 || true
  say "The packages enabled units that tactus does not need. They are disabled: $units"
  units=$(new_units)
  [ -z "$units" ] || say "These units are still enabled. To disable them, as root: systemctl disable --now $units"
}
