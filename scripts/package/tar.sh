#!/bin/sh
# Makes a tarball of the files below STAGE, to be unpacked below any prefix (tar -C /usr/local --strip-components=1 -xf):
# scripts/package/tar.sh STAGE ARCH OUT
set -eu
cd "$(dirname "$0")/../.."
stage=$1 arch=$2 out=$3
version=${version:?}
name="tactus-$version-$arch-linux"
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
cp -a "$stage/usr" "$top/$name"
install -m644 LICENSE-APACHE LICENSE-MIT "$top/$name/share/doc/tactus/"
chmod -R u=rwX,go=rX "$top/$name"
[ "${PACKED:-}" = fast ] && how="gzip -1n" end=gz || how="xz -T1 -6" end=xz
tar -C "$top" --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 --numeric-owner --format=ustar -cf - "$name" |
  $how >"$out/$name.tar.$end"
