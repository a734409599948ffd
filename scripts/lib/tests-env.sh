# Sourced by test.sh and check.sh: the options that build the tests, equal in both, so that each reuses the other's build.

target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
mkdir -p "$target"

# A test needs line numbers in backtraces, and no other debug information, which costs link time. CI needs none.
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
if [ -n "${CI:-}" ]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_TERM_PROGRESS_WHEN=never
fi
# A changed snapshot is a failure, never a new file.
export INSTA_UPDATE=no

# One build for the command and all tests. `cargo build` alone enables fewer features of other crates than tests do, so
# that half of these would be built twice. `make nightly` builds the program as users build it.
export TEST_SELECTION="--locked --workspace --lib --bins --tests"

scripts_parse() {
  for script in scripts/*.sh scripts/*/*.sh .ci/run; do
    [ ! -e "$script" ] || sh -n "$script"
  done
  if has shellcheck; then shellcheck -x --severity=warning scripts/*.sh scripts/cluster/*.sh scripts/fresh/*.sh scripts/package/*.sh; else say "shellcheck is not installed"; fi
  if has python3; then
    python3 -c 'import ast, sys; [ast.parse(open(name).read(), name) for name in sys.argv[1:]]' scripts/*.py scripts/*/*.py
  fi
}

formatting() {
  # Lists every file: `cargo fmt` does not see those that a macro declares. `make format` fixes them.
  scripts/format.sh --check -l
}

# The Rust version whose lints are errors. Other versions have other lints, which are only printed.
LINTED_WITH=1.95

# Nothing built here is executed, so stand-ins replace the probes.
lints() {
  case "$(rustc --version)" in
    "rustc $LINTED_WITH."*) deny="-D warnings" ;;
    *) deny="" && say "this is $(rustc --version), not Rust $LINTED_WITH: lints are not errors" ;;
  esac
  export CARGO_TARGET_DIR="$target/beside" TACTUS_PROBE_DIR="$target/no-probes"
  empty_probes "$TACTUS_PROBE_DIR"
  # shellcheck disable=SC2086  # words on purpose
  cargo clippy --quiet --locked --workspace --all-targets -- $deny
  # shellcheck disable=SC2046,SC2086  # words on purpose
  cargo clippy --quiet --locked -p tactus-probe $(probe_targets) -- $deny
  # shellcheck disable=SC2086  # words on purpose
  cargo clippy --quiet --locked -p tactus-bare-guest --target "$BARE_TARGET" -- $deny
}

# slowest LOG...: the ten slowest tests of all lanes, from the lines of slowest-tests.py at the end of each log.
slowest() {
  printf '\nThe ten slowest tests:\n'
  cat "$@" 2>/dev/null | grep -E '^ +[0-9]+\.[0-9] s  ' | sort -rn | head -n 10
}
