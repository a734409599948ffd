# Sourced by the scripts: the probes that tactus-probe-image embeds, built once for every profile
# (crates/tactus-probe-image/build.rs reads TACTUS_PROBE_DIR).

PROBE_TARGETS="x86_64-unknown-linux-musl aarch64-unknown-linux-musl"

# build_probes DIR: the real ones.
build_probes() {
  for probe_target in $PROBE_TARGETS; do
    cargo build --quiet --locked -p tactus-probe --profile probe --target "$probe_target"
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
