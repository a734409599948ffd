#!/bin/sh
# Makes an RPM of the files below STAGE: scripts/package/rpm.sh STAGE ARCH OUT
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
stage=$(realpath "$1") arch=$2 out=$3
version=${version:?}
has rpmbuild || fail "rpmbuild is not installed" "run: scripts/setup.sh package, or FORMATS='deb tar image' scripts/package.sh"
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT
[ "${PACKED:-}" = fast ] && how=w1.gzdio || how=w9.xzdio
# Use private directories, and do not record the build machine. The program is static: rpmbuild must not strip it, move parts
# of it, or look for dependencies.
rpmbuild -bb --quiet --target "$arch-unknown-linux" \
  --define "_topdir $top" --define "_rpmdir $top" --define "_dbpath $top/db" --define "_buildhost localhost" \
  --define "use_source_date_epoch_as_buildtime 1" --define "clamp_mtime_to_source_date_epoch 1" \
  --define "_binary_payload $how" --define "__os_install_post %{nil}" --define "debug_package %{nil}" \
  --define "_build_id_links none" --define "stage $stage" --define "source $PWD" --define "tactus_version $version" \
  scripts/package/tactus.spec >"$top/said" 2>&1 || { cat "$top/said" >&2 && fail "rpmbuild made no package" ; }
mv "$top/$arch/tactus-$version-1.$arch.rpm" "$out/"
