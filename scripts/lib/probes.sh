# Sourced by the scripts: the probes that tactus-probe-image embeds, built once for every profile
# (crates/tactus-probe-image/build.rs reads TACTUS_PROBE_DIR).

PROBE_TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl"

# Both in one call of cargo: their last steps take one CPU each, and go side by side.
probe_targets() {
  # shellcheck disable=SC2086  # words on purpose
  printf -- '--target %s ' $PROBE_TARGETS
}

# build_probes DIR: the real ones.
build_probes() {
  # shellcheck disable=SC2046  # words on purpose
  cargo build --quiet --locked -p tactus-probe --profile probe $(probe_targets)
  for probe_target in $PROBE_TARGETS; do
    mkdir -p "$1/$probe_target"
    # Only a new content is copied: a new time stamp alone would build the rest anew.
    cmp -s "${CARGO_TARGET_DIR:-target}/$probe_target/probe/tactus-probe" "$1/$probe_target/tactus-probe" ||
      cp "${CARGO_TARGET_DIR:-target}/$probe_target/probe/tactus-probe" "$1/$probe_target/tactus-probe"
  done
}

# empty_probes DIR: stand-ins, for programs that never start a probe.
empty_probes() {
  for probe_target in $PROBE_TARGETS; do
    mkdir -p "$1/$probe_target"
    [ -e "$1/$probe_target/tactus-probe" ] || echo "not a probe" >"$1/$probe_target/tactus-probe"
  done
}
