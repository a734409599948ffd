# Sourced by the scripts: builds the images that tactus-probe-image embeds (the probes, and the guest without an operating
# system), once for all profiles (crates/tactus-probe-image/build.rs reads TACTUS_PROBE_DIR).

PROBE_TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl"

BARE_TARGET=x86_64-unknown-none

# One call of cargo builds both: their last steps take one CPU each, and run in parallel.
probe_targets() {
  # shellcheck disable=SC2086  # words on purpose
  printf -- '--target %s ' $PROBE_TARGETS
}

# build_probes DIR: builds the real probes and guest.
build_probes() {
  # shellcheck disable=SC2046  # words on purpose
  cargo build --quiet --locked -p tactus-probe --profile probe $(probe_targets)
  cargo build --quiet --locked -p tactus-bare-guest --profile probe --target "$BARE_TARGET"
  for probe_target in $PROBE_TARGETS; do
    keep_built "$1" "$probe_target" tactus-probe
  done
  keep_built "$1" "$BARE_TARGET" tactus-bare-guest
}

# keep_built DIR TARGET PACKAGE: copies only new content, because a new time stamp alone would rebuild the rest.
keep_built() {
  mkdir -p "$1/$2"
  cmp -s "${CARGO_TARGET_DIR:-target}/$2/probe/$3" "$1/$2/$3" || cp "${CARGO_TARGET_DIR:-target}/$2/probe/$3" "$1/$2/$3"
}

# empty_probes DIR: makes stand-ins, for programs that never start a probe.
empty_probes() {
  for probe_target in $PROBE_TARGETS; do
    mkdir -p "$1/$probe_target"
    [ -e "$1/$probe_target/tactus-probe" ] || echo "not a probe" >"$1/$probe_target/tactus-probe"
  done
  mkdir -p "$1/$BARE_TARGET"
  [ -e "$1/$BARE_TARGET/tactus-bare-guest" ] || echo "not a guest" >"$1/$BARE_TARGET/tactus-bare-guest"
}
