#!/bin/sh
# Unpacks the tarballs below a prefix, and runs the programs; that of another architecture only if QEMU for it is installed.
#   out=directory version=VERSION scripts/package/test-tar.sh
set -eu
out=${out:?} version=${version:?}
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
for arch in x86_64 aarch64; do
  for tar in "$out/tactus-$version-$arch-linux".tar.*; do
    [ -e "$tar" ] || continue
    # All files must be below one directory, and belong to root.
    if tar -tf "$tar" | grep -vE "^tactus-$version-$arch-linux/" || tar -tf "$tar" | grep -F '/../'; then
      echo "error: $tar has files outside of its directory" >&2 && exit 1
    fi
    if tar -tvf "$tar" | grep -v ' 0/0 '; then echo "error: $tar has files of other owners than root" >&2 && exit 1; fi
    prefix="$scratch/$arch"
    mkdir "$prefix"
    tar -C "$prefix" --strip-components=1 -xf "$tar"
    if [ "$arch" = "$(uname -m)" ]; then
      said=$("$prefix/bin/tactus" --version)
    elif command -v "qemu-$arch-static" >/dev/null; then
      said=$("qemu-$arch-static" "$prefix/bin/tactus" --version)
    else
      echo "  $arch: not run, qemu-$arch-static is not installed"
      continue
    fi
    [ "$said" = "tactus $version" ] || { echo "error: $tar prints the version $said" >&2 && exit 1; }
    for file in share/man/man1/tactus.1 share/doc/tactus/LICENSE-MIT share/tactus/schema/show.schema.json share/tactus/contrib/ansible/accept.yml include/tactus.h; do
      [ -s "$prefix/$file" ] || { echo "error: $tar has no $file" >&2 && exit 1; }
    done
    echo "  $arch: $said"
    # Run it as the only file of a system without /tmp and /dev, such as an initramfs. A test build needs a C library: skip it.
    if [ "$arch" = "$(uname -m)" ] && [ "$(id -u)" -eq 0 ] && ! readelf -lW "$prefix/bin/tactus" | grep -q INTERP; then
      mkdir -p "$scratch/alone/proc" "$scratch/alone/sys"
      cp "$prefix/bin/tactus" "$scratch/alone/tactus"
      for words in "audit --fail-on never" "measure --duration 1s"; do
        # shellcheck disable=SC2016,SC2086  # expanded in the namespace; words on purpose
        unshare --mount --propagation private sh -c 'root=$1 && shift && mount -t proc proc "$root/proc" &&
          mount -t sysfs sys "$root/sys" && exec chroot "$root" /tactus "$@"' sh "$scratch/alone" $words >/dev/null || [ $? -eq 3 ]
      done
      echo "  $arch: audits and measures as the only file of a system"
    fi
  done
done
