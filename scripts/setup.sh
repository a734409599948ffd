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
# Exit: 0 ready (perhaps without what needs root: it says so), 2 something must be done by hand first.
set -eu
cd "$(dirname "$0")/.."
. scripts/lib/say.sh

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

case "$arch" in
  aarch64) qemu="qemu-system-aarch64 qemu-system-arm qemu-system-aarch64-core qemu-system-aarch64 qemu-arm" ;;
  *) qemu="qemu-system-x86_64 qemu-system-x86 qemu-system-x86-core qemu-system-x86 qemu-x86" ;;
esac

missing=""  # packages that can be installed
reasons=""  # a line for each
building="" # those without which nothing can be built

# need COMMAND DEBIAN FEDORA ARCH SUSE WHY [build]: one package by the name each family gives it.
need() {
  if present "$1"; then
    return
  fi
  case "$family" in
    fedora) package=$3 ;;
    arch) package=$4 ;;
    suse) package=$5 ;;
    *) package=$2 ;;
  esac
  missing="$missing $package"
  reasons="$reasons
  $package: $6"
  [ "${7:-}" != build ] || building="$building $package"
}

present() {
  case "$1" in
    fonts) find -L /usr/share/fonts /usr/local/share/fonts -name '*.ttf' 2>/dev/null | grep -q . ;;
    # The system's own Python: that of the packages.
    python3-yaml) /usr/bin/python3 -c 'import yaml' 2>/dev/null ;;
    python3-*) /usr/bin/python3 -c "import ${1#python3-}" 2>/dev/null ;;
    libc) has cc && echo 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null ;;
    # The two are asked for together.
    libc-aarch64) has aarch64-linux-gnu-gcc && echo '#include <stdlib.h>' | aarch64-linux-gnu-gcc -x c -c -o /dev/null - 2>/dev/null ;;
    # Not in everybody's PATH.
    sshd) has sshd || [ -x /usr/sbin/sshd ] ;;
    slurmctld | slurmd | munged) has "$1" || [ -x "/usr/sbin/$1" ] ;;
    qemu-ga) has qemu-ga || [ -x /usr/sbin/qemu-ga ] ;;
    # Its parts, whatever Linux they are built on.
    grub-pc) [ -e /usr/lib/grub/i386-pc/multiboot2.mod ] ;;
    modprobe) has modprobe || [ -x /usr/sbin/modprobe ] ;;
    *) has "$1" ;;
  esac
}

collect() {
  need cc gcc gcc gcc gcc "links the program" build
  need libc libc6-dev glibc-devel glibc glibc-devel "the C library that it is linked with" build
  need make make make make make "runs the steps" build
  # shellcheck disable=SC2086  # five words on purpose
  need $qemu "virtual machines"
  need podman podman podman podman podman "containers"
  [ "$mode" != package ] || {
    need_for_packages
    return 0
  }
  need crun crun crun crun crun "the container runtime of podman and of the kind \`oci\`"
  [ "$mode" != run ] || return 0
  need sshd openssh-server openssh-server openssh openssh-server "a private server on the loopback, to try environments of the kind \`ssh\`"
  need c++ g++ gcc-c++ gcc gcc-c++ "the fuzzer's engine"
  need busybox busybox-static busybox busybox busybox-static "reads the archives that guests boot; and the smallest guest, to compare start-up with"
  # Where systemd runs, these packages would start a daemon and a bridge: left to their owner.
  [ -d /run/systemd/system ] || {
    need dockerd docker.io moby-engine docker docker "containers of Docker, by a daemon of the tests' own"
    need lxc-execute lxc lxc lxc lxc "containers of LXC"
  }
  need systemd-nspawn systemd-container systemd-container systemd systemd-container "containers of systemd-nspawn"
  need runc runc runc runc runc "runs the generated container scripts where crun refuses the machine's cgroups"
  need virt-xml-validate libvirt-clients libvirt-client libvirt libvirt-client "checks the generated domains, and asks libvirt for virtual machines"
  need qemu-system-aarch64 qemu-system-arm qemu-system-aarch64-core qemu-system-aarch64 qemu-arm "a guest of another architecture"
  # Others have no C library for it in a package.
  [ "$family" != debian ] || {
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu - - - "the part in C of the program for aarch64"
    need libc-aarch64 libc6-dev-arm64-cross - - - "the C headers that it is compiled with"
  }
  need xmllint libxml2-utils libxml2 libxml2 libxml2-tools "reads them for it"
  need python3 python3 python3 python python3 "the generated script that pins virtual CPUs, and checks of generated files"
  need python3-jsonschema python3-jsonschema python3-jsonschema python-jsonschema python3-jsonschema "checks the generated YAML against its schemas"
  need python3-yaml python3-yaml python3-pyyaml python-yaml python3-PyYAML "reads it for that"
  # Where systemd runs, these packages would start a daemon, and that of tuned changes the machine: left to its owner.
  [ -d /run/systemd/system ] || need libvirtd libvirt-daemon-system libvirt-daemon-kvm libvirt libvirt-daemon-qemu "virtual machines of the kind \`libvirt\`; the tests start a private daemon"
  # In a virtual machine it would answer the machine's own host: left to its owner, too.
  [ -d /run/systemd/system ] || need qemu-ga qemu-guest-agent qemu-guest-agent qemu-guest-agent qemu-guest-agent "runs in a guest of the tests, to which tactus attaches"
  [ -d /run/systemd/system ] || need tuned-adm tuned tuned tuned tuned "loads the generated TuneD profiles"
  need modprobe kmod kmod kmod kmod "reads the written options of modules"
  need grub-script-check grub-common grub2-tools-minimal grub grub2 "parses the generated command line"
  [ "$arch" != x86_64 ] || {
    need grub-pc grub-pc-bin grub2-pc-modules grub grub2-i386-pc "starts the guest without an operating system as a boot loader does"
    need xorriso xorriso xorriso libisoburn xorriso "makes the disc that it is started from"
    need mformat mtools mtools mtools mtools "makes the same for other firmware"
  }
  need python3-ensurepip python3-venv python3 python python3 "installs the validators of scripts/lib/tools.txt into target/tools"
  need mkfs.ext4 e2fsprogs e2fsprogs e2fsprogs e2fsprogs "the disk of the machine whose power fails (make crash)"
  need rpmbuild rpm rpm-build rpm-tools rpm-build "makes and reads the .rpm"
  need strace strace strace strace strace "counts what the probe asks of the kernel while it measures"
  # Where systemd runs, the packages would start daemons: left to their owner. Others have them in no package.
  [ "$family" != debian ] || [ -d /run/systemd/system ] || {
    need slurmctld slurmctld - - - "the controller of Slurm, for a cluster of the tests' own"
    need slurmd slurmd - - - "its nodes"
    need sbatch slurm-client - - - "its clients"
    need munged munge - - - "proves them to one another who they are"
  }
  need tmux tmux tmux tmux tmux "shows the live screen to the tests"
  # Where systemd runs, the package would start a daemon: left to its owner.
  [ -d /run/systemd/system ] || need prometheus prometheus prometheus prometheus prometheus "scrapes the metrics of a run, and checks the alert rules"
  need chromium chromium chromium chromium chromium "opens the report's page as its readers do"
  need fonts fonts-dejavu-core dejavu-sans-fonts ttf-dejavu dejavu-fonts "text in PNG figures"
  need cyclictest rt-tests realtime-tests rt-tests rt-tests "cyclictest, the instrument to compare with and to read"
  # Others have it in no package of this name.
  [ "$family" != debian ] || {
    need jitterdebugger jitterdebugger - - - "an instrument of the field, whose files are read"
    need rtla rtla - - - "another one"
  }
  [ "$mode" = bench ] || return 0
  need stress-ng stress-ng stress-ng stress-ng stress-ng "the bandwidth of memory, to compare with"
  need perf linux-perf perf perf perf "the round trip through a pipe, to compare with"
  need iperf3 iperf3 iperf3 iperf3 iperf "streams of UDP, to compare with"
  need sockperf sockperf sockperf sockperf sockperf "the round trip of UDP, to compare with"
}

need_for_packages() {
  need git git git git git "the time of the sources, which packages bear"
  need xz xz-utils xz xz xz "packs them"
  need rpmbuild rpm rpm-build rpm-tools rpm-build "makes and reads the .rpm"
  need dpkg-deb dpkg dpkg dpkg dpkg "makes and reads the .deb"
  need python3 python3 python3 python python3 "the list of what the program is made of"
  need shellcheck shellcheck ShellCheck shellcheck ShellCheck "looks at the scripts of the action"
  need python3-ensurepip python3-venv python3 python python3 "installs what looks at contrib/"
  # Others have no compiler for musl of this name, no C library for arm64, or none of Debian's tools.
  [ "$family" != debian ] || {
    need musl-gcc musl-tools - - - "the part in C of the static program"
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu - - - "the same for aarch64"
    need libc-aarch64 libc6-dev-arm64-cross - - - "the C headers that it is compiled with"
    need lintian lintian - - - "looks at the .deb as Debian does"
    need mmdebstrap mmdebstrap - - - "a clean system, in which the .deb is installed and removed"
    need qemu-aarch64-static qemu-user-static - - - "starts the program for aarch64"
  }
}

install_packages() {
  collect
  [ -n "$missing" ] || return 0
  say "These packages are missing:$reasons"
  case "$family" in
    debian) ;;
    fedora) fail "not installed:$missing" "run: dnf install$missing" ;;
    arch) fail "not installed:$missing" "run: pacman -S$missing" ;;
    suse) fail "not installed:$missing" "run: zypper install$missing" ;;
    *) fail "not installed (Debian's names):$missing" "install what your distribution calls them, then run this again" ;;
  esac
  if [ "$sudo" = none ]; then
    [ -z "$building" ] || fail "not installed, and only root can:$building" "run as root: apt-get install$missing"
    say "Not installed, because that needs root or sudo. What needs them is skipped; the rest runs."
    say "To have everything, run as root: apt-get install$missing"
    return 0
  fi
  say "Installing them with apt-get${sudo:+ (by sudo)}."
  # shellcheck disable=SC2086  # words on purpose
  {
    $sudo apt-get update -q </dev/null
    $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing </dev/null
  } >&2
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

install_rust() {
  if ! has cargo; then
    # Debian 13 and Ubuntu 24.04 have rustup; older ones do not.
    if [ "$family" = debian ] && [ "$sudo" != none ] && apt-cache show rustup >/dev/null 2>&1; then
      say "Installing the package rustup: the Rust toolchain that builds tactus."
      $sudo env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends rustup </dev/null >&2
    else
      fail "there is no cargo: tactus is built with Rust 1.88 or newer" "get rustup from https://rustup.rs, then run this again"
    fi
  fi
  has rustup && { cargo --version >/dev/null 2>&1 || rustup toolchain install stable >&2; }
  for target in x86_64-unknown-linux-musl aarch64-unknown-linux-musl x86_64-unknown-none; do
    [ ! -d "$(rustc --print target-libdir --target "$target" 2>/dev/null)" ] || continue
    has rustup || fail "this Rust has no standard library for $target, which the probe or the bare guest is built for" \
      "use the toolchain of https://rustup.rs and run: rustup target add $target"
    case "$target" in
      *-none) say "Adding the Rust target $target: the guest without an operating system is built for it." ;;
      *) say "Adding the Rust target $target: the probe, a static program, is built for it." ;;
    esac
    rustup target add "$target" >&2
  done
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
  $sudo apt-get install -y -q --no-install-recommends "linux-headers-$release" </dev/null >&2 ||
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
