#!/bin/sh
# Makes a container image that contains the program alone: scripts/package/image.sh STAGE ARCH OUT
# It leaves an archive for `podman load`, and (for this machine's architecture) localhost/tactus:VERSION in Podman.
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
stage=$1 arch=$2 out=$3
version=${version:?}
has podman || fail "podman is not installed" "run: scripts/setup.sh package, or FORMATS='deb rpm tar' scripts/package.sh"
case "$arch" in
  x86_64) platform=amd64 ;;
  aarch64) platform=arm64 ;;
  *) fail "images have no name for $arch" "use x86_64 or aarch64" ;;
esac
context=$(mktemp -d)
trap 'rm -rf "$context"' EXIT
# The program needs directories for temporary files and for the probe.
mkdir -p "$context/root/usr/bin" "$context/root/usr/share/licenses/tactus" "$context/root/tmp" "$context/root/work"
chmod 1777 "$context/root/tmp"
cp "$stage/usr/bin/tactus" "$context/root/usr/bin/"
cp LICENSE-APACHE LICENSE-MIT "$stage/usr/share/doc/tactus/tactus.cdx.json" "$context/root/usr/share/licenses/tactus/"
tag="localhost/tactus:$version-$platform"
podman build --quiet --platform "linux/$platform" --timestamp "$SOURCE_DATE_EPOCH" --build-arg VERSION="$version" \
  -f scripts/package/Containerfile -t "$tag" "$context" >/dev/null
[ "$(uname -m)" != "$arch" ] || podman tag "$tag" "localhost/tactus:$version"
podman save --quiet --format oci-archive -o "$out/tactus-$version-$arch.oci.tar" "$tag" >/dev/null
