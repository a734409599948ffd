#!/bin/sh
# Checks the metadata of the RPMs, and installs, runs and removes that for this machine in an empty system.
#   out=directory version=VERSION scripts/package/test-rpm.sh
set -eu
out=${out:?} version=${version:?}
scratch=$(mktemp -d)
trap 'umount "$scratch/root/proc" 2>/dev/null || true; umount "$scratch/root/dev" 2>/dev/null || true; rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT TERM
ask() { rpm --dbpath "$scratch/db" -qp "$@" 2>/dev/null; }
for arch in x86_64 aarch64; do
  rpm="$out/tactus-$version-1.$arch.rpm"
  [ -e "$rpm" ] || continue
  said=$(ask --qf '%{NAME} %{VERSION} %{RELEASE} %{ARCH} %{OS} %{LICENSE} %{BUILDHOST}' "$rpm")
  [ "$said" = "tactus $version 1 $arch linux Apache-2.0 OR MIT localhost" ] || { echo "error: $said" >&2 && exit 1; }
  # The package has no scripts, and needs only rpm.
  [ -z "$(ask --scripts "$rpm")$(ask --triggers "$rpm")" ] || { echo "error: $rpm has scripts" >&2 && exit 1; }
  if ask --requires "$rpm" | grep -v '^rpmlib('; then echo "error: $rpm needs the packages above" >&2 && exit 1; fi
  ask -lv "$rpm" >"$scratch/files"
  if awk '$3 != "root" || $4 != "root"' "$scratch/files" | grep .; then echo "error: $rpm has files of other owners than root" >&2 && exit 1; fi
  if grep -E '^.{5}w|^.{8}w|^.{3}s|^.{6}s' "$scratch/files"; then echo "error: $rpm has files that others may write, or with setuid or setgid" >&2 && exit 1; fi
  if grep -E '^-.{6}[^r]' "$scratch/files"; then echo "error: $rpm has files that not all users may read" >&2 && exit 1; fi
  for file in /usr/bin/tactus /usr/share/man/man1/tactus.1.gz /usr/share/bash-completion/completions/tactus \
    /usr/share/zsh/site-functions/_tactus /usr/share/fish/vendor_completions.d/tactus.fish \
    /usr/share/tactus/schema/show.schema.json /usr/share/tactus/contrib/grafana/tactus.json /usr/share/licenses/tactus/LICENSE-MIT; do
    awk '{print $9}' "$scratch/files" | grep -qx "$file" || { echo "error: $file is not in $rpm" >&2 && exit 1; }
  done
  echo "  $(basename "$rpm"): $(wc -l <"$scratch/files") files, no scripts, nothing required"
done
rpm="$out/tactus-$version-1.$(uname -m).rpm"
[ "${RUN:-yes}" = yes ] || exit 0
mkdir -p "$scratch/root/proc" "$scratch/root/dev" "$scratch/root/tmp"
in_root() { rpm --force-debian --root "$scratch/root" --dbpath /var/lib/rpm "$@"; }
in_root --ignorearch -i "$rpm"
in_root -V tactus
mount -t proc proc "$scratch/root/proc"
mount --bind /dev "$scratch/root/dev"
[ "$(chroot "$scratch/root" /usr/bin/tactus --version)" = "tactus $version" ]
env -i PATH="$PATH" HOME=/tmp/home chroot "$scratch/root" /usr/bin/tactus measure --duration 1 --json >"$scratch/measured.json" || [ $? -eq 3 ]
python3 -c '
import json, sys
(scenario,) = json.load(open(sys.argv[1]))["scenarios"]
assert scenario["status"] == "measured" and scenario["all"]["cycles"] > 0, scenario
print("  measured in an empty system: %d wake-ups" % scenario["all"]["cycles"])' "$scratch/measured.json"
in_root -e tactus
left=$(find "$scratch/root" -xdev -path "$scratch/root/proc" -prune -o -path "$scratch/root/dev" -prune -o -path "$scratch/root/tmp" -prune -o \
  -path "$scratch/root/var/lib/rpm" -prune -o -path "$scratch/root/var/cache/tactus" -prune -o ! -type d -print)
[ -z "$left" ] || { echo "error: left behind: $left" >&2 && exit 1; }
echo "  installed, run, removed; only the cache of probes is left"
