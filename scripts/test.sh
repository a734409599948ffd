#!/bin/sh
# Everything that must hold before a change is kept. `make test` and CI run this.
#
# As root (or with sudo), with QEMU, Podman and a guest kernel, every test runs and none may be
# skipped (TACTUS_TEST_ALL=1). Otherwise those that need what is missing say so and are counted.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/steps.sh
. scripts/lib/probes.sh

fuzz_seconds=${FUZZ_SECONDS:-5}
target=$(realpath -m "${CARGO_TARGET_DIR:-target}")
log="$target/test.log"
mkdir -p "$target"

# Line numbers in backtraces are all the debug information that a test needs, and CI does without: a panic says
# where it was. The rest is link time.
export CARGO_PROFILE_DEV_DEBUG=line-tables-only
if [ -n "${CI:-}" ]; then
  export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none CARGO_TERM_PROGRESS_WHEN=never
fi
# One test at a time: they measure, they load the machine, and they look for what a run left behind. Those that only
# compute are told apart by scripts/lib/run-tests.sh.
export RUST_TEST_THREADS=1
runner="CARGO_TARGET_$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')_RUNNER"
run_tests=scripts/lib/run-tests.sh
# A changed snapshot is a failure, never a new file.
export INSTA_UPDATE=no

scripts_parse() {
  for script in scripts/*.sh scripts/lib/*.sh scripts/bench/*.sh scripts/crash/*.sh .ci/run; do
    [ ! -e "$script" ] || sh -n "$script"
  done
  if has shellcheck; then shellcheck scripts/*.sh; else say "shellcheck is not installed"; fi
  if has python3; then
    for script in scripts/*.py scripts/bench/*.py scripts/aarch64/*.py scripts/crash/*.py; do
      [ ! -e "$script" ] || python3 -c 'import ast, sys; ast.parse(open(sys.argv[1]).read(), sys.argv[1])' "$script"
    done
  fi
}

formatting() {
  # Every file by its name: `cargo fmt` does not see those that a macro declares. `make format` mends them.
  scripts/format.sh --check -l
}

lints() {
  cargo clippy --quiet --locked --workspace --all-targets -- -D warnings
  # shellcheck disable=SC2046  # words on purpose
  cargo clippy --quiet --locked -p tactus-probe $(probe_targets) -- -D warnings
}

# The whole program. `make aarch64` tries it in an emulated machine; here nobody executes it, and no statistics have to be
# fast.
aarch64_program() {
  CARGO_PROFILE_DEV_DEBUG=none cargo build --quiet --locked -p tactus --target aarch64-unknown-linux-musl \
    --config profile.dev.package.tactus-model.opt-level=0 --config profile.dev.package.tactus-report.opt-level=0
}

licences() {
  cargo deny --offline --locked check --hide-inclusion-graph licenses bans sources
}

# Of a database that was fetched just now: an old one says nothing of today.
advisories() {
  cargo deny --offline --locked check --hide-inclusion-graph advisories
}

# What the program is made of, as the package has it, by CycloneDX's own validator.
components() {
  scripts/sbom.py "$target/tactus.cdx.json"
  "$target/tools/bin/python3" scripts/lib/sbom-holds.py "$target/tactus.cdx.json"
}

# What the tests can have here; says what they cannot.
everything_is_here() {
  lacking=""
  if [ "$(id -u)" -ne 0 ]; then
    if sudo -n true 2>/dev/null; then
      # Built as the user, executed as root.
      run_tests="sudo --preserve-env $PWD/$run_tests"
    else
      lacking="$lacking root,"
    fi
  fi
  has "qemu-system-$(uname -m)" || lacking="$lacking QEMU,"
  has podman || lacking="$lacking podman,"
  { has docker && has dockerd; } || lacking="$lacking docker,"
  has lxc-execute || lacking="$lacking lxc,"
  has systemd-nspawn || lacking="$lacking systemd-nspawn,"
  "$target/debug/tactus" kernel list --arch "$(uname -m)" --json 2>/dev/null | grep -q '"path"' || lacking="$lacking a guest kernel,"
  [ -z "$lacking" ] || {
    say "without${lacking%,}: tests that need them are skipped, and say so"
    return 1
  }
}

# The command and everything that is tested: built at once. `cargo build` alone asks fewer features of the crates of others
# than tests do, so that half of the house would be built twice. As users have it, it is built for aarch64.
everything="--locked --workspace --lib --bins --tests"

built() {
  # shellcheck disable=SC2086  # words on purpose
  cargo test --quiet $everything --no-run
}

tests() {
  if everything_is_here; then
    export TACTUS_TEST_ALL=1
    show=""
  else
    # A test that skips itself says so in its output.
    show="-- --show-output"
  fi
  export "$runner=$run_tests"
  # shellcheck disable=SC2086  # two words on purpose
  { cargo test $everything --no-fail-fast $show 2>&1 && echo 0 >"$log.status" || echo 1 >"$log.status"; } |
    if has python3; then scripts/lib/slowest-tests.py 10; else cat; fi | tee "$log"
  return "$(cat "$log.status")"
}

rm -f "$log"
must "what the tests need" scripts/setup.sh test
step "scripts" scripts_parse
step "formatting" formatting
if has python3; then step "circles" scripts/circles.py; else skipped "circles" "Python is not installed"; fi
must "the probes" build_probes "$target/probes"
export TACTUS_PROBE_DIR="$target/probes"
step "lints" lints
if has aarch64-linux-gnu-gcc; then
  step "the program for aarch64" aarch64_program
else
  skipped "the program for aarch64" "there is no aarch64-linux-gnu-gcc"
  step "the program without its tests" cargo check --quiet --locked
fi
# Behind everything else of that name.
PATH="$PATH:$target/tools/bin"
if has cargo-deny; then
  step "licences" licences
  if fetched=$(cargo deny --locked fetch db 2>&1 </dev/null); then
    step "advisories" advisories
  else
    printf '%s\n' "$fetched" | tail -n 3
    skipped "advisories" "unknowable: the database of advisories cannot be fetched, and nobody has looked for known faults"
  fi
else
  skipped "licences" "cargo-deny is not installed"
  skipped "advisories" "unknowable: cargo-deny is not installed, and nobody has looked for known faults"
fi
if [ -e "$target/tools/installed" ] && has python3; then
  step "components" components
else
  skipped "components" "their validator is not installed (scripts/setup.sh test)"
fi
must "the command and the tests" built
step "guest kernels" env TACTUS="$target/debug/tactus" scripts/setup.sh kernels
if has c++; then step "fuzzing" scripts/fuzz.sh "$fuzz_seconds"; else skipped "fuzzing" "no C++ compiler"; fi
step "the commands of the README and the guide" env TACTUS="$target/debug/tactus" scripts/readme-commands.sh
step "tests" tests
if [ "$(id -u)" -eq 0 ] && has python3; then
  step "kills at random moments" scripts/crash.py --trials 4 "$target/debug/tactus"
else
  skipped "kills at random moments" "root and Python are needed"
fi

printf '\n'
[ -z "$steps_skipped" ] || say "skipped steps, which count as nothing: $steps_skipped"
[ -z "$steps_failed" ] || say "failed steps: $steps_failed"
awk -f scripts/lib/count-tests.awk "$log" || exit 1
[ -z "$steps_failed" ]
