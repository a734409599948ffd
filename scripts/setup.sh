#!/bin/sh
# Installs what is not there yet, and says first what and why.
#
#   scripts/setup.sh run      what `make run` needs
#   scripts/setup.sh test     that, and what the tests need
#   scripts/setup.sh bench    that, and what the benchmarks compare with
#   scripts/setup.sh package  what packages are made and tried with
#   scripts/setup.sh kernel   a guest kernel, fetched by the built tactus (TACTUS=path)
#   scripts/setup.sh kernels  that, a standard kernel to compare it with, and one for an aarch64 guest
#
# Exit: 0 ready (perhaps without what it may not install: it says so), 2 something must be done by hand first, and nothing
# was installed.
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

# What only the user can do is said before anything is done: all of it, at once.
by_hand=""
problem() {
  printf 'error: %s\nhint: %s\n' "$1" "$2" >&2
  by_hand=yes
}

# How this distribution installs packages.
installs() {
  case "$family" in
    debian) echo "apt-get install --no-install-recommends$1" ;;
    fedora) echo "dnf install$1" ;;
    arch) echo "pacman -S$1" ;;
    suse) echo "zypper install$1" ;;
    *) echo "install what this distribution calls (Debian's names):$1" ;;
  esac
}

# Whether packages are installed here, and not by hand.
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
  say "Not installed: setup does that on Debian and Ubuntu only, as root or with sudo. What needs them is skipped; the rest runs."
  say "To have everything, as root: $(installs "$missing")"
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

# Validators that no distribution has, or has too old, in a Python environment of the tests' own. Without the
# package index what needs them is skipped; where nothing may be skipped, it fails there.
install_tools() {
  tools="${CARGO_TARGET_DIR:-target}/tools"
  if [ -e "$tools/installed" ] && cmp -s scripts/lib/tools.txt "$tools/installed"; then
    return 0
  fi
  say "Installing the validators of scripts/lib/tools.txt into $tools."
  rm -rf "$tools"
  mkdir -p "$tools"
  # The system's own, if there is one: it stays.
  python=$(command -v /usr/bin/python3 || echo python3)
  if "$python" -m venv "$tools" >&2 &&
    "$tools/bin/pip" install --quiet --disable-pip-version-check --no-deps --no-compile -r scripts/lib/tools.txt </dev/null >&2; then
    cp scripts/lib/tools.txt "$tools/installed"
  else
    say "They could not be installed: what needs them is skipped, and says so."
  fi
}

rust_needed=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
rust_targets="x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-unknown-none"
toolchain=${RUSTUP_TOOLCHAIN:-stable}

# Whether apt can install rustup (Debian 13 and Ubuntu 24.04 have it). `apt-cache show` knows every name that another
# package mentions.
apt_has_rustup() {
  installing || return 1
  # A system that was just made has no lists of packages yet.
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
        "as $SUDO_USER, without sudo: make $mode (it asks sudo for what needs root)"
    else
      problem "there is no cargo: tactus is built with Rust $rust_needed or newer" "$get"
    fi
    return 0
  fi
  # A rustup without the toolchain would fetch it when cargo is asked for its version.
  if has rustup && ! has_toolchain; then
    return 0
  fi
  version=$(cargo --version 2>/dev/null | cut -d ' ' -f 2)
  if [ "$(printf '%s\n%s\n' "$rust_needed" "$version" | sort -V | head -n 1)" != "$rust_needed" ]; then
    if has rustup; then get="run: rustup update $toolchain"; fi
    problem "this Rust is ${version:-of no known version}: tactus is built with $rust_needed or newer" "$get"
    return 0
  fi
  has rustup || for target in $rust_targets; do
    has_target "$target" || problem "this Rust has no standard library for $target" "$get"
  done
}

install_rust() {
  if ! has cargo; then
    say "Installing the package rustup: it fetches the Rust toolchain that builds tactus."
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
      *-none) say "Adding the Rust target $target: the guest without an operating system is built for it." ;;
      *) say "Adding the Rust target $target: the probe, a static program, is built for it." ;;
    esac
    rustup target add --toolchain "$toolchain" "$target" >&2
  done
  # What only tests ask for.
  [ "$mode" != test ] || { cargo fmt --version && cargo clippy --version; } >/dev/null 2>&1 ||
    rustup component add --toolchain "$toolchain" rustfmt clippy >&2
}

# A guest with the standard kernel works too, and says less about real time. Fetching `rt` takes the
# standard kernel where a distribution keeps its own behind a subscription, and says so.
fetch_kernel() {
  [ -x "$tactus" ] || fail "$tactus is not built" "run: make build"
  if ! present "${qemu%% *}"; then
    say "No guest kernel is fetched: there is no QEMU to boot it."
    return 0
  fi
  if has_kernel '"preempt_rt": *true' || has_kernel '"origin": *"cache"'; then
    return 0
  fi
  if [ "$family" = debian ]; then
    say "Fetching a PREEMPT_RT kernel for guests (downloaded and unpacked, not installed)."
    fetch rt || say "It could not be fetched."
  fi
  if has_kernel '"preempt_rt": *true'; then
    return 0
  fi
  if has_kernel '"path"'; then
    say "Guests boot a standard kernel: there is none with PREEMPT_RT."
  else
    say "There is no kernel for guests: virtual machines are skipped."
  fi
  say "To use another: $tactus kernel use NAME|PATH, or \`kernel = \"PATH\"\` in a plan."
}

# Guests of the study redhat-openstack-2018 boot it beside the PREEMPT_RT one.
fetch_standard() {
  if [ "$family" != debian ] || ! present "${qemu%% *}" || has_kernel '"preempt_rt": *false'; then
    return 0
  fi
  say "Fetching a standard kernel for guests (downloaded and unpacked, not installed)."
  fetch standard || say "It could not be fetched: guests with a standard kernel are skipped."
}

# What a handler for that kernel is built with (`answer = "kernel"` of the measurement `interrupt`).
install_headers() {
  release=$(kernel_command list --json 2>/dev/null | sed -n 's/.*"release": *"\([^"]*rt-amd64\)".*/\1/p' | head -n 1)
  if [ "$family" != debian ] || [ "$sudo" = none ] || [ -z "$release" ] || [ -e "/usr/src/linux-headers-$release/Makefile" ]; then
    return 0
  fi
  say "Installing linux-headers-$release: the handler of an interrupt card is built with them."
  apt_install "linux-headers-$release" ||
    say "They could not be installed: the handler in a guest's kernel is not tested."
}

# The guest of another architecture: emulated, where QEMU is there for it.
fetch_foreign() {
  if [ "$family" != debian ] || [ "$arch" = aarch64 ] || ! present qemu-system-aarch64 ||
    has_kernel '"path"' aarch64; then
    return 0
  fi
  say "Fetching a PREEMPT_RT kernel for aarch64 guests (downloaded and unpacked, not installed)."
  kernel_command fetch rt --arch aarch64 || say "It could not be fetched: aarch64 guests are skipped."
}

# The kernels lie in root's cache when root runs tactus, as scripts/run.sh does.
kernel_command() {
  if [ "$sudo" = sudo ]; then
    sudo "$tactus" kernel "$@" </dev/null
  else
    "$tactus" kernel "$@" </dev/null
  fi
}

# fetch NAME: package lists that are missing or old are a reason to try once more.
fetch() {
  kernel_command fetch "$1" && return 0
  [ "$sudo" != none ] || return 1
  say "Once more, with fresh lists of packages."
  $sudo apt-get update -q </dev/null >&2 && kernel_command fetch "$1"
}

# has_kernel PATTERN [ARCH]: whether the list of kernels for an architecture (this machine's own) says this.
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
