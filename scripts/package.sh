#!/bin/sh
# Builds packages of the program in target/package: .deb, .rpm, a tarball, a container image, and their SHA-256 sums.
#
#   scripts/package.sh [ARCH...]     default: x86_64 and aarch64
#
# PROGRAMS=DIR uses DIR/ARCH/tactus instead of building the programs, and compresses fast. Tests use it: the files of a
# package do not depend on the build of the program. FORMATS lists the formats: deb rpm tar image.
set -eu
# All users may read installed files, whatever this user's umask is.
umask 022
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=${OUT:-$target/package}
formats=${FORMATS:-deb rpm tar image}
[ $# -gt 0 ] || set -- x86_64 aarch64
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
# Packages of the same sources are equal, whenever they are built.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || stat -c %Y Cargo.lock)}
export SOURCE_DATE_EPOCH version

if [ -z "${PROGRAMS:-}" ]; then
  scripts/package/build.sh "$@"
  program() { echo "$target/$1-unknown-linux-musl/release/tactus"; }
  PACKED=small
else
  program() { echo "$PROGRAMS/$1/tactus"; }
  PACKED=fast
fi
export PACKED

# Manual pages and completions are the same for every architecture. The program that runs here writes them.
here=$(uname -m)
case " $* " in *" $here "*) speaks=$(program "$here") ;; *) speaks=${TACTUS:-target/release/tactus} ;; esac
[ -x "$speaks" ] || fail "$speaks is not built" "run: scripts/package.sh $here $*"

rm -rf "$out"
mkdir -p "$out"
for arch in "$@"; do
  stage="$out/stage/$arch"
  ${MAKE:-make} --no-print-directory -s install DESTDIR="$stage" PREFIX=/usr TACTUS="$speaks" >/dev/null
  install -m755 "$(program "$arch")" "$stage/usr/bin/tactus"
  for format in $formats; do
    case "$format" in
      deb | rpm | tar | image) "scripts/package/$format.sh" "$stage" "$arch" "$out" ;;
      *) fail "unknown format \`$format\`" "use deb, rpm, tar or image" ;;
    esac
  done
done
rm -rf "$out/stage"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%f\n' | LC_ALL=C sort | xargs sha256sum >SHA256SUMS)
say "packages in $out:"
(cd "$out" && find . -maxdepth 1 -type f ! -name SHA256SUMS -printf '%s %f\n' | LC_ALL=C sort -k2 |
  awk '{printf "  %6.1f MB  %s\n", $1 / 1e6, $2}')
for arch in "$@"; do
  printf '  %6.1f MB  the program for %s, unpacked\n' "$(stat -c %s "$(program "$arch")" | awk '{print $1 / 1e6}')" "$arch"
done
