# Sourced by the scripts: what tactus-probe-image embeds (the probes, and the guest without an operating system), built
# once for every profile (crates/tactus-probe-image/build.rs reads TACTUS_PROBE_DIR).

PROBE_TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl"

BARE_TARGET=x86_64-unknown-none

# Both in one call of cargo: their last steps take one CPU each, and go side by side.
probe_targets() {
  # shellcheck disable=SC2086  # words on purpose
  printf -- '--target %s ' $PROBE_TARGETS
}

# build_probes DIR: the real ones.
build_probes() {
  # shellcheck disable=SC2046  # words on purpose
  cargo build --quiet --locked -p tactus-probe --profile probe $(probe_targets)
  cargo build --quiet --locked -p tactus-bare-guest --profile probe --target "$BARE_TARGET"
  for probe_target in $PROBE_TARGETS; do
    keep_built "$1" "$probe_target" tactus-probe
  done
  keep_built "$1" "$BARE_TARGET" tactus-bare-guest
}

# keep_built DIR TARGET PACKAGE: only a new content is copied: a new time stamp alone would build the rest anew.
keep_built() {
  mkdir -p "$1/$2"
  cmp -s "${CARGO_TARGET_DIR:-target}/$2/probe/$3" "$1/$2/$3" || cp "${CARGO_TARGET_DIR:-target}/$2/probe/$3" "$1/$2/$3"
}

# empty_probes DIR: stand-ins, for programs that never start one.
empty_probes() {
  for probe_target in $PROBE_TARGETS; do
    mkdir -p "$1/$probe_target"
    [ -e "$1/$probe_target/tactus-probe" ] || echo "not a probe" >"$1/$probe_target/tactus-probe"
  done
  mkdir -p "$1/$BARE_TARGET"
  [ -e "$1/$BARE_TARGET/tactus-bare-guest" ] || echo "not a guest" >"$1/$BARE_TARGET/tactus-bare-guest"
}
