#!/bin/sh
# Installs missing packages and tools. First it prints each one and why it is needed.
#
#   scripts/setup.sh run      for `make run`
#   scripts/setup.sh test     the same, and for the tests
#   scripts/setup.sh bench    the same, and the tools with which the benchmarks compare
#   scripts/setup.sh package  for building and testing packages
#   scripts/setup.sh kernel   a guest kernel, fetched by the built tactus (TACTUS=path)
#   scripts/setup.sh kernels  that, a standard kernel, one for aarch64 guests, and headers for the handler of interrupt cards
#
# Exit: 0 ready (it lists the packages that it may not install), 2 you must do something by hand first, and nothing was
# installed.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh
. scripts/lib/install.sh

mode=${1:-run}
tactus=${TACTUS:-target/release/tactus}
sudo=$(as_root)
arch=$(uname -m)

family=other
if [ -r /etc/os-release ]; then
  ids=$(. /etc/os-release && echo " ${ID:-} ${ID_LIKE:-} ")
  case "$ids" in
    *" debian "* | *" ubuntu "*) family=debian ;;
    *" fedora "* | *" rhel "* | *" centos "*) family=fedora ;;
    *" arch "*) family=arch ;;
    *suse*) family=suse ;;
  esac
fi
. scripts/lib/packages.sh

# Problems that only the user can solve are printed before anything is installed, all at once.
by_hand=""
problem() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  by_hand=yes
}

# The command that installs packages on this distribution.
installs() {
  case "$family" in
    debian) echo "apt-get install --no-install-recommends$1" ;;
    fedora) echo "dnf install$1" ;;
    arch) echo "pacman -S$1" ;;
    suse) echo "zypper install$1" ;;
    *) echo "install these packages (Debian's names):$1" ;;
  esac
}

# Whether this script may install packages here.
installing() {
  [ "$family" = debian ] && [ "$sudo" != none ]
}

check_packages() {
  [ -n "$missing" ] || return 0
  say "These packages are missing:$reasons"
  if installing; then
    return 0
  fi
  [ -z "$building" ] || {
    problem "without these packages nothing can be built:$building" "as root: $(installs "$building")"
    return 0
  }
  say "Not installed: setup installs packages on Debian and Ubuntu only, as root or with sudo. Parts that need them are skipped; the rest runs."
  say "To install them, as root: $(installs "$missing")"
}

install_packages() {
  if [ -z "$missing" ] || ! installing; then
    return 0
  fi
  say "Installing them with apt-get${sudo:+ (by sudo)}."
  $sudo apt-get update -q </dev/null >&2
  # shellcheck disable=SC2086  # words on purpose
  apt_install $missing
}

# Validators that distributions lack, or have too old, in a separate Python environment. Without the package index
# they are missing: tests that need them are skipped, or fail with TACTUS_TEST_ALL=1.
install_tools() {
  tools="${CARGO_TARGET_DIR:-target}/tools"
  if [ -e "$tools/installed" ] && cmp -s scripts/lib/tools.txt "$tools/installed"; then
    return 0
  fi
  say "Installing the validators of scripts/lib/tools.txt into $tools."
  rm -rf "$tools"
  mkdir -p "$tools"
  # The system's Python, if there is one: it stays installed.
  python=$(command -v /usr/bin/python3 || echo python3)
  if "$python" -m venv "$tools" >&2 &&
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile -r scripts/lib/tools.txt </dev/null >&2; then
    cp scripts/lib/tools.txt "$tools/installed"
  else
    say "They could not be installed: tests that need them are skipped."
  fi
}

rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_targets="x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-unknown-none"
toolchain=${RUSTUP_TOOLCHAIN:-stable}

# Whether apt can install rustup (Debian 13 and Ubuntu 24.04 have it). Not `apt-cache show`: it knows every name that
# another package mentions.
apt_has_rustup() {
  installing || return 1
  # A new system has no package lists yet.
  find /var/lib/apt/lists -name '*_Packages*' 2>/dev/null | grep -q . || $sudo apt-get update -q </dev/null >&2
  LC_ALL=C apt-cache policy rustup 2>/dev/null | grep -q 'Candidate: [0-9]'
}

has_toolchain() {
  rustup toolchain list 2>/dev/null | grep -q "^$toolchain"
}

has_target() {
  [ -d "$(rustc --print target-libdir --target "$1" 2>/dev/null)" ]
}

check_rust() {
  get="get rustup from https://rustup.rs, then run this again"
  if ! has cargo; then
    home=$(getent passwd "${SUDO_USER:-}" 2>/dev/null | cut -d: -f6)
    if apt_has_rustup; then
      return 0
    elif [ -n "$home" ] && [ -x "$home/.cargo/bin/cargo" ]; then
      problem "root has no Rust, $SUDO_USER has one in $home/.cargo" \
        "as $SUDO_USER, without sudo: make $mode (it calls sudo when it needs root)"
    else
      problem "cargo is not installed: building tactus needs Rust $rust_needed or newer" "$get"
    fi
    return 0
  fi
  # Without the toolchain, rustup would fetch it for `cargo --version`.
  if has rustup && ! has_toolchain; then
    return 0
  fi
  version=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
  if [ "$(printf '%s\n%s\n' "$rust_needed" "$version" | sort -V | head -n 1)" != "$rust_needed" ]; then
    if has rustup; then get="run: rustup update $toolchain"; fi
    problem "this Rust is ${version:-of an unknown version}: building tactus needs $rust_needed or newer" "$get"
    return 0
  fi
  has rustup || for target in $rust_targets; do
    has_target "$target" || problem "this Rust has no standard library for $target" "$get"
  done
}

install_rust() {
  if ! has cargo; then
    say "Installing the package rustup, which fetches the Rust toolchain for tactus."
    apt_install rustup
  fi
  has rustup || return 0
  has_toolchain || {
    say "Fetching the Rust toolchain $toolchain, without its documentation (0.2 GB to download, 1 GB on the disk)."
    rustup toolchain install "$toolchain" --profile minimal >&2
  }
  for target in $rust_targets; do
    ! has_target "$target" || continue
    case "$target" in
      *-none) say "Adding the Rust target $target, for the guest without an operating system." ;;
      *) say "Adding the Rust target $target, for the probe, a static program." ;;
    esac
    rustup target add --toolchain "$toolchain" "$target" >&2
  done
  # Only tests need these.
  [ "$mode" != test ] || { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 ||
    rustup component add --toolchain "$toolchain" rustfmt clippy >&2
}

# A guest with the standard kernel works too, but says less about real time. If the distribution's PREEMPT_RT kernel needs a
# subscription, `tactus kernel fetch rt` fetches the standard kernel and says so.
fetch_kernel() {
  [ -x "$tactus" ] || fail "$tactus is not built" "run: make build"
  if ! present "${qemu%% *}"; then
    say "No guest kernel is fetched: QEMU is not installed."
    return 0
  fi
  if has_kernel '"preempt_rt": *true' || has_kernel '"origin": *"cache"'; then
    return 0
  fi
  if [ "$family" = debian ]; then
    say "Fetching a PREEMPT_RT kernel for guests (downloaded and unpacked, not installed)."
    fetch rt || say "The kernel could not be fetched."
  fi
  if has_kernel '"preempt_rt": *true'; then
    return 0
  fi
  if has_kernel '"path"'; then
    say "Guests boot a standard kernel: no PREEMPT_RT kernel was found."
  else
    say "No kernel for guests was found: virtual machines are skipped."
  fi
  say "To use another kernel: $tactus kernel use NAME|PATH, or \`kernel = \"PATH\"\` in a plan."
}

# The study redhat-openstack-2018 compares guests with the standard and the PREEMPT_RT kernel.
fetch_standard() {
  if [ "$family" != debian ] || ! present "${qemu%% *}" || has_kernel '"preempt_rt": *false'; then
    return 0
  fi
  say "Fetching a standard kernel for guests (downloaded and unpacked, not installed)."
  fetch standard || say "The kernel could not be fetched: guests with a standard kernel are skipped."
}

# Headers to build a handler for the guest's kernel (`answer = "kernel"` of the measurement `interrupt`).
install_headers() {
  release=$(kernel_command list --json 2>/dev/null | sed -n 's/.*"release": *"\([^"]*rt-amd64\)".*/\1/p' | head -n 1)
  if [ "$family" != debian ] || [ "$sudo" = none ] || [ -z "$release" ] || [ -e "/usr/src/linux-headers-$release/Makefile" ]; then
    return 0
  fi
  say "Installing linux-headers-$release, to build the handler of an interrupt card."
  apt_install "linux-headers-$release" ||
    say "They could not be installed: the handler in a guest's kernel is not tested."
}

# A kernel for a guest of another architecture, if QEMU for it is installed. The guest is emulated.
fetch_foreign() {
  if [ "$family" != debian ] || [ "$arch" = aarch64 ] || ! present qemu-system-aarch64 ||
    has_kernel '"path"' aarch64; then
    return 0
  fi
  say "Fetching a PREEMPT_RT kernel for aarch64 guests (downloaded and unpacked, not installed)."
  kernel_command fetch rt --arch aarch64 || say "The kernel could not be fetched: aarch64 guests are skipped."
}

# The kernels must be in root's cache, because root runs tactus (scripts/run.sh).
kernel_command() {
  if [ "$sudo" = sudo ]; then
    sudo "$tactus" kernel "$@" </dev/null
  else
    "$tactus" kernel "$@" </dev/null
  fi
}

# fetch NAME: tries again with fresh package lists if it fails.
fetch() {
  kernel_command fetch "$1" && return 0
  [ "$sudo" != none ] || return 1
  say "Trying again with fresh package lists."
  $sudo apt-get update -q </dev/null >&2 && kernel_command fetch "$1"
}

# has_kernel PATTERN [ARCH]: whether the list of kernels for ARCH (default: this machine's) contains PATTERN.
has_kernel() {
  kernels=$(kernel_command list --json --arch "${2:-$arch}" 2>/dev/null) || return 1
  printf '%s' "$kernels" | grep -q "$1"
}

case "$mode" in
  run | test | bench | package)
    collect
    check_packages
    check_rust
    [ -z "$by_hand" ] || exit 2
    install_packages
    install_rust
    [ "$mode" != test ] || install_tools
    ;;
  kernel) fetch_kernel ;;
  kernels)
    fetch_kernel
    fetch_standard
    fetch_foreign
    install_headers
    ;;
  *) fail "unknown mode \`$mode\`" "use run, test, bench, package, kernel or kernels" ;;
esac
