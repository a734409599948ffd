#!/bin/sh
# Tests the packages of scripts/package.sh: installs, runs and removes each in a clean system, checks it with its family's
# tools, and runs contrib/ with them. `make packagetest`, as root: some minutes, with the build.
#
#   scripts/package/test.sh     OUT=DIR for the packages, default target/package; its contents are replaced
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
. scripts/lib/steps.sh

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
out=$(realpath -m "${OUT:-$target/package}")
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
here=$(uname -m)
tools="$target/package-tools"
export version out
[ "$(id -u)" -eq 0 ] || fail "installing packages into clean systems needs root" "run as root: make packagetest"

sums_hold() {
  (cd "$out" && sha256sum --check --quiet SHA256SUMS)
  # Each file must have a sum.
  [ "$(find "$out" -maxdepth 1 -type f ! -name SHA256SUMS | wc -l)" -eq "$(wc -l <"$out/SHA256SUMS")" ]
}

# The program must need no interpreter and no library.
static() {
  for binary in "$target"/*-unknown-linux-musl/release/tactus; do
    file=$(readelf -ldW "$binary")
    if echo "$file" | grep -E 'INTERP|NEEDED'; then fail "$binary is not static"; fi
    # It must not contain the build directory. (The probes in it contain the path of the crates' cache, wherever they are built.)
    if grep -aqF "$PWD/" "$binary"; then fail "$binary names the directory it was built in"; fi
    echo "  static, $(stat -c %s "$binary") bytes: ${binary#"$target"/}"
  done
}

debian_is_content() {
  for deb in "$out"/*.deb; do
    lintian --fail-on error,warning --tag-display-limit 0 --allow-root --info "$deb"
    echo "  lintian: no error or warning for $(basename "$deb")"
  done
}

tools() {
  [ -x "$tools/bin/ansible-lint" ] && cmp -s scripts/package/tools.txt "$tools/installed" && return 0
  rm -rf "$tools"
  python3 -m venv "$tools"
  "$tools/bin/pip" install --quiet --disable-pip-version-check -r scripts/package/tools.txt </dev/null
  cp scripts/package/tools.txt "$tools/installed"
}

contrib_is_well_formed() {
  "$tools/bin/check-jsonschema" --builtin-schema vendor.github-actions contrib/github-action/action.yml
  "$tools/bin/check-jsonschema" --builtin-schema vendor.github-workflows contrib/github-action/workflow.example.yml
  (cd contrib/ansible && PATH="$tools/bin:$PATH" ansible-lint --offline --profile production .)
}

# All users must be able to read the files of a package, whatever umask built it.
must "the packages" env OUT="$out" sh -c 'umask 077 && exec scripts/package.sh'
step "sums" sums_hold
step "static programs" static
if has lintian; then step "lintian" debian_is_content; else skipped "lintian" "lintian is not installed"; fi
if has mmdebstrap; then
  step "the .deb in a clean system" scripts/package/test-deb.sh
else
  skipped "the .deb in a clean system" "mmdebstrap is not installed"
fi
step "the .rpm in an empty system" scripts/package/test-rpm.sh
step "the tarballs" scripts/package/test-tar.sh
step "the image" scripts/package/test-image.sh
step "the time that tactus --version takes" python3 scripts/bench/start.py "$target/$here-unknown-linux-musl/release/tactus"
must "what looks at contrib/" tools
step "contrib is well-formed" contrib_is_well_formed
step "the action" "$tools/bin/python3" scripts/package/test-action.py "$out/tactus-$version-$here-linux.tar.xz"
step "the role" env PATH="$tools/bin:$PATH" scripts/package/test-role.sh "$out/tactus-$version-$here-linux.tar.xz"
[ -z "$steps_skipped" ] || say "skipped steps, which show nothing: $steps_skipped"
[ -z "$steps_failed" ] || fail "failed: $steps_failed"
