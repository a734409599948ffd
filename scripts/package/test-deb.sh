#!/bin/sh
# Installs, runs and removes the Debian package in a clean system, and checks that nothing is left.
#   out=directory version=VERSION scripts/package/test-deb.sh
set -eu
out=${out:?} version=${version:?}
deb="$out/tactus_$version-1_$(dpkg --print-architecture).deb"
root=$(mktemp -d)
cleanup() {
  umount "$root/proc" 2>/dev/null || true
  umount "$root/sys" 2>/dev/null || true
  umount "$root/dev" 2>/dev/null || true
  # Not into file systems that are still mounted.
  rm -rf --one-file-system "$root"
}
trap cleanup EXIT
trap 'exit 130' INT TERM
suite=$(. /etc/os-release && echo "${VERSION_CODENAME:-stable}")
mmdebstrap --quiet --variant=apt "$suite" "$root" </dev/null
cp "$deb" "$root/tactus.deb"
mount -t proc proc "$root/proc"
mount -t sysfs -o ro sys "$root/sys"
mount --bind /dev "$root/dev"

inside() { chroot "$root" env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/tmp/home DEBIAN_FRONTEND=noninteractive "$@" </dev/null; }
# Files of the system, without the records of apt and dpkg, and without directories that a boot empties (/run, /tmp).
files() {
  (cd "$root" && find . -xdev -path ./proc -prune -o -path ./sys -prune -o -path ./dev -prune -o -path ./tmp -prune -o \
    -path ./var/lib/dpkg -prune -o -path ./var/log -prune -o -path ./var/cache -prune -o -path ./var/lib/apt -prune -o -path ./run -prune -o -print |
    LC_ALL=C sort)
}
files >"$root/tmp/before"
# With apt's defaults, which also install recommended packages: it must install no other package.
inside apt-get install -q -y /tactus.deb
[ "$(inside dpkg-query -W -f '${Depends}${Recommends}' tactus)" = "" ]
inside dpkg --verify tactus
[ "$(inside tactus --version)" = "tactus $version" ]
inside tactus measure --duration 1 --json >"$root/tmp/measured.json" || [ $? -eq 3 ]
python3 -c '
import json, sys
(scenario,) = json.load(open(sys.argv[1]))["scenarios"]
assert scenario["status"] == "measured" and scenario["all"]["cycles"] > 0, scenario
print("  measured in the chroot: %d wake-ups" % scenario["all"]["cycles"])' "$root/tmp/measured.json"
inside tactus environments >/dev/null
# Minimal systems do not unpack manual pages, so look into the package.
dpkg-deb -c "$deb" | awk '{print $6}' >"$root/tmp/packed"
for file in usr/share/man/man1/tactus.1.gz usr/share/man/man1/tactus-run.1.gz usr/share/bash-completion/completions/tactus \
  usr/share/zsh/vendor-completions/_tactus usr/share/fish/vendor_completions.d/tactus.fish usr/include/tactus.h \
  usr/share/tactus/schema/show.schema.json usr/share/tactus/contrib/prometheus/tactus.rules.yml usr/share/doc/tactus/tactus.cdx.json usr/share/doc/tactus/copyright; do
  grep -qx "./$file" "$root/tmp/packed" || { echo "error: $file is not in the package" >&2 && exit 1; }
done
inside bash -c '. /usr/share/bash-completion/completions/tactus && complete -p tactus >/dev/null'
inside apt-get purge -q -y tactus
if inside tactus --version 2>/dev/null; then echo "error: tactus is still installed" >&2; exit 1; fi
rm -rf "$root/tmp/home"
files >"$root/tmp/after"
cmp "$root/tmp/before" "$root/tmp/after" || { diff "$root/tmp/before" "$root/tmp/after"; exit 1; }
echo "  $suite: installed, run, removed; nothing is left"
