#!/bin/sh
# The tarballs, unpacked below a prefix. The one of another architecture speaks where QEMU is there for it.
#   out=directory version=VERSION scripts/package/test-tar.sh
set -eu
out=${out:?} version=${version:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for arch in x86_64 aarch64; do
  for tar in "$out/tactus-$version-$arch-linux".tar.*; do
    [ -e "$tar" ] || continue
    # Only below its own directory, and nobody's but root's.
    if tar -tf "$tar" | grep -vE "^tactus-$version-$arch-linux/" || tar -tf "$tar" | grep -F '/../'; then
      echo "error: $tar leads elsewhere" >&2 && exit 1
    fi
    if tar -tvf "$tar" | grep -v ' 0/0 '; then echo "error: owners" >&2 && exit 1; fi
    prefix="$scratch/$arch"
    mkdir "$prefix"
    tar -C "$prefix" --strip-components=1 -xf "$tar"
    if [ "$arch" = "$(uname -m)" ]; then
      said=$("$prefix/bin/tactus" --version)
    elif command -v "qemu-$arch-static" >/dev/null; then
      said=$("qemu-$arch-static" "$prefix/bin/tactus" --version)
    else
      echo "  $arch: not run, there is no qemu-$arch-static"
      continue
    fi
    [ "$said" = "tactus $version" ] || { echo "error: $tar says $said" >&2 && exit 1; }
    for file in share/man/man1/tactus.1 share/doc/tactus/LICENSE-MIT share/tactus/schema/show.schema.json include/tactus.h; do
      [ -s "$prefix/$file" ] || { echo "error: $tar has no $file" >&2 && exit 1; }
    done
    echo "  $arch: $said"
  done
done
