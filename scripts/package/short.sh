#!/bin/sh
# Tests the contents of the packages in a short time. It packs the program that the tests built (TACTUS), for this machine only,
# with fast compression, and unpacks the packages in a scratch directory. `make packagetest` runs the rest.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
arch=$(uname -m)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 130' INT TERM
mkdir -p "$scratch/programs/$arch"
strip -o "$scratch/programs/$arch/tactus" "${TACTUS:-$target/debug/tactus}"
formats=tar
has dpkg-deb && formats="$formats deb"
has rpmbuild && formats="$formats rpm"
out="$scratch/packages"
PROGRAMS="$scratch/programs" OUT="$out" FORMATS="$formats" scripts/package.sh "$arch"
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
export out version
(cd "$out" && sha256sum --check --quiet SHA256SUMS)
scripts/package/test-tar.sh
if has rpmbuild; then RUN=no scripts/package/test-rpm.sh; else say "SKIPPED: rpmbuild is not installed"; fi
if has dpkg-deb; then
  for deb in "$out"/*.deb; do
    dpkg-deb -R "$deb" "$scratch/deb"
    (cd "$scratch/deb" && md5sum --check --quiet DEBIAN/md5sums)
    [ "$("$scratch/deb/usr/bin/tactus" --version)" = "tactus $version" ]
    # The package has no scripts, and installs no other package, also by apt's defaults.
    [ "$(LC_ALL=C ls "$scratch/deb/DEBIAN" | tr '\n' ' ')" = "control md5sums " ]
    if dpkg-deb -f "$deb" Depends Pre-Depends Recommends | grep .; then fail "$deb installs other packages"; fi
    say "  $(basename "$deb"): $(wc -l <"$scratch/deb/DEBIAN/md5sums") files, whole"
  done
else
  say "SKIPPED: dpkg-deb is not installed"
fi
