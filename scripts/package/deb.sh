#!/bin/sh
# Makes a Debian package of the files below STAGE: scripts/package/deb.sh STAGE ARCH OUT
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
stage=$1 out=$3
version=${version:?}
has dpkg-deb || fail "dpkg-deb is not installed" "run: scripts/setup.sh package, or FORMATS='rpm tar image' scripts/package.sh"
case "$2" in
  x86_64) arch=amd64 ;;
  aarch64) arch=arm64 ;;
  *) fail "Debian has no name for $2" "use x86_64 or aarch64" ;;
esac
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
chmod 755 "$tree"
cp -a "$stage/usr" "$tree/usr"
doc="$tree/usr/share/doc/tactus"

# Debian's directories, and the files that its policy requires.
mkdir -p "$tree/usr/share/zsh/vendor-completions" "$tree/usr/share/lintian/overrides" "$tree/DEBIAN"
mv "$tree/usr/share/zsh/site-functions/_tactus" "$tree/usr/share/zsh/vendor-completions/_tactus"
rmdir "$tree/usr/share/zsh/site-functions"
gzip -9n "$tree"/usr/share/man/man1/*
cat scripts/package/debian/copyright >"$doc/copyright"
{
  printf 'tactus (%s-1) unstable; urgency=medium\n\n  * The history of the sources lists the changes.\n\n' "$version"
  printf ' -- %s  %s\n' "$(sed -n 's/^Maintainer: //p' scripts/package/debian/control)" "$(date -u -R -d "@$SOURCE_DATE_EPOCH")"
} | gzip -9n >"$doc/changelog.Debian.gz"
cp scripts/package/debian/lintian-overrides "$tree/usr/share/lintian/overrides/tactus"

size=$(du -sk --apparent-size "$tree/usr" | cut -f1)
sed "s/@VERSION@/$version-1/; s/@ARCH@/$arch/; s/@SIZE@/$size/" scripts/package/debian/control >"$tree/DEBIAN/control"
(cd "$tree" && find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum >DEBIAN/md5sums)
chmod -R u=rwX,go=rX "$tree"
[ "${PACKED:-}" = fast ] && how="-Zgzip -z1" || how=-Zxz
# shellcheck disable=SC2086  # two words on purpose
dpkg-deb --root-owner-group $how --build "$tree" "$out/tactus_$version-1_$arch.deb" >/dev/null
