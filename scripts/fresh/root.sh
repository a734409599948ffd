# Sourced: makes clean Debian systems, each in a separate directory, and runs commands in them.

# A system needs these variables of this machine to reach the network; it takes no others.
FROM_HERE="http_proxy https_proxy no_proxy HTTP_PROXY HTTPS_PROXY NO_PROXY RUSTUP_DIST_SERVER RUSTUP_UPDATE_ROOT"

# new_root DIR SUITE PACKAGES: makes a system with mmdebstrap, with the sources of tactus in /src.
new_root() {
  # This machine's apt options to reach packages (proxies, snapshot mirrors), for mmdebstrap and in the system.
  { echo '# Of the machine that made this system.' && apt-config dump | grep -E '^Acquire::(https?::|Check-)'; } >"$1.apt" || true
  mmdebstrap --quiet --variant=minbase --aptopt="$1.apt" --include="$3" "$2" "$1" </dev/null
  [ ! -e /etc/resolv.conf ] || cp -L /etc/resolv.conf "$1/etc/resolv.conf"
  [ ! -e "$1/etc/ssl/certs/ca-certificates.crt" ] ||
    cp -L /etc/ssl/certs/ca-certificates.crt "$1/etc/ssl/certs/ca-certificates.crt"
  mkdir "$1/src"
  git ls-files -z | tar --null --no-recursion -T - -c | tar -x -C "$1/src" --no-same-owner
}

# in_root DIR COMMAND...: runs it as root in a new process namespace: all its processes end with the command.
in_root() {
  in_root=$1
  shift
  in_root_words=""
  for in_root_name in $FROM_HERE; do
    eval "in_root_value=\${$in_root_name:-}"
    [ -z "$in_root_value" ] || in_root_words="$in_root_words $in_root_name=$in_root_value"
  done
  # shellcheck disable=SC2016,SC2086  # expanded in the namespace; words on purpose
  unshare --mount --pid --fork --kill-child sh -c '
    root=$1
    shift
    mount --make-rprivate /
    # Containers change the propagation of /, so / must be a mount.
    mount --bind "$root" "$root"
    mount -t proc proc "$root/proc"
    mount --rbind /sys "$root/sys"
    mount --rbind /dev "$root/dev"
    exec chroot "$root" "$@"' sh "$in_root" \
    env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LC_ALL=C.UTF-8 TERM=dumb \
    DEBIAN_FRONTEND=noninteractive $in_root_words "$@" </dev/null
}
