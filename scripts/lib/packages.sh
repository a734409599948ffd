# Sourced by setup.sh: the programs that are needed, why, and the package of each. It needs `mode`, `arch` and `family` to be set.

case "$arch" in
  aarch64) qemu="qemu-system-aarch64 qemu-system-arm qemu-system-aarch64-core qemu-system-aarch64 qemu-arm" ;;
  *) qemu="qemu-system-x86_64 qemu-system-x86 qemu-system-x86-core qemu-system-x86 qemu-x86" ;;
esac

missing=""  # packages that can be installed
reasons=""  # a line for each of them
building="" # those that every build needs

# need COMMAND DEBIAN FEDORA ARCH SUSE WHY [build]: the package of a command, by its name in each family.
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
    # The system's Python, for which the packages are.
    python3-yaml) /usr/bin/python3 -c 'import yaml' 2>/dev/null ;;
    python3-*) /usr/bin/python3 -c "import ${1#python3-}" 2>/dev/null ;;
    libc) has cc && echo 'int main(void){return 0;}' | cc -x c -o /dev/null - 2>/dev/null ;;
    # The compiler and its headers are needed together.
    libc-aarch64) has aarch64-linux-gnu-gcc && echo '#include <stdlib.h>' | aarch64-linux-gnu-gcc -x c -c -o /dev/null - 2>/dev/null ;;
    # RHEL has one QEMU, with another name.
    qemu-system-x86_64) has "$1" || { [ "$arch" = x86_64 ] && [ -x /usr/libexec/qemu-kvm ]; } ;;
    qemu-system-aarch64) has "$1" || { [ "$arch" = aarch64 ] && [ -x /usr/libexec/qemu-kvm ]; } ;;
    # Not in every PATH.
    sshd) has sshd || [ -x /usr/sbin/sshd ] ;;
    slurmctld | slurmd | munged) has "$1" || [ -x "/usr/sbin/$1" ] ;;
    qemu-ga) has qemu-ga || [ -x /usr/sbin/qemu-ga ] ;;
    # Its modules; the path is Debian's.
    grub-pc) [ -e /usr/lib/grub/i386-pc/multiboot2.mod ] ;;
    modprobe) has modprobe || [ -x /usr/sbin/modprobe ] ;;
    *) has "$1" ;;
  esac
}

collect() {
  need cc gcc gcc gcc gcc "links the program" build
  need libc libc6-dev glibc-devel glibc glibc-devel "the C library of the program" build
  need make make make make make "runs the steps" build
  # shellcheck disable=SC2086  # five words on purpose
  need $qemu "virtual machines"
  need podman podman podman podman podman "containers"
  need newuidmap uidmap shadow-utils shadow shadow "containers of users other than root"
  [ "$mode" != package ] || {
    need_for_packages
    return 0
  }
  need crun crun crun crun crun "the container runtime of podman and of the kind \`oci\`"
  [ "$mode" != run ] || return 0
  need sshd openssh-server openssh-server openssh openssh-server "a private server on the loopback, to test environments of the kind \`ssh\`"
  need c++ g++ gcc-c++ gcc gcc-c++ "the fuzzer's engine"
  need busybox busybox-static busybox busybox busybox-static "reads the archives that guests boot; the smallest guest, to compare the start-up"
  # If systemd runs, these packages would start a daemon and a bridge: the user installs them.
  [ -d /run/systemd/system ] || {
    need dockerd docker.io moby-engine docker docker "containers of Docker; the tests start a private daemon"
    need lxc-execute lxc lxc lxc lxc "containers of LXC"
  }
  need systemd-nspawn systemd-container systemd-container systemd systemd-container "containers of systemd-nspawn"
  need runc runc runc runc runc "runs the generated container scripts if crun refuses the machine's cgroups"
  need virt-xml-validate libvirt-clients libvirt-client libvirt libvirt-client "checks the generated domains, and asks libvirt for virtual machines"
  need qemu-system-aarch64 qemu-system-arm qemu-system-aarch64-core qemu-system-aarch64 qemu-arm "a guest of another architecture"
  # Other distributions package no C library for aarch64.
  [ "$family" != debian ] || {
    need mmdebstrap mmdebstrap - - - "makes a clean system, to test setup"
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu - - - "compiles the C part of the program for aarch64"
    need libc-aarch64 libc6-dev-arm64-cross - - - "the C headers for it"
  }
  need xmllint libxml2-utils libxml2 libxml2 libxml2-tools "validates them for virt-xml-validate"
  need python3 python3 python3 python python3 "runs the generated script that pins virtual CPUs, and checks generated files"
  need python3-jsonschema python3-jsonschema python3-jsonschema python-jsonschema python3-jsonschema "checks the generated YAML against its schemas"
  need python3-yaml python3-yaml python3-pyyaml python-yaml python3-PyYAML "reads YAML for that"
  # If systemd runs, these packages would start daemons, and tuned's changes the machine: the user installs them.
  [ -d /run/systemd/system ] || need libvirtd libvirt-daemon-system libvirt-daemon-kvm libvirt libvirt-daemon-qemu "virtual machines of the kind \`libvirt\`; the tests start a private daemon"
  # In a virtual machine it would answer the machine's host: the user installs it.
  [ -d /run/systemd/system ] || need qemu-ga qemu-guest-agent qemu-guest-agent qemu-guest-agent qemu-guest-agent "runs in a test guest, to which tactus attaches"
  [ -d /run/systemd/system ] || need tuned-adm tuned tuned tuned tuned "loads the generated TuneD profiles"
  need modprobe kmod kmod kmod kmod "reads the generated module options"
  need grub-script-check grub-common grub2-tools-minimal grub grub2 "parses the generated command line"
  [ "$arch" != x86_64 ] || {
    need grub-pc grub-pc-bin grub2-pc-modules grub grub2-i386-pc "boots the guest without an operating system"
    need xorriso xorriso xorriso libisoburn xorriso "makes the disc from which it boots"
    need mformat mtools mtools mtools mtools "makes the same disc for EFI firmware"
  }
  need python3-ensurepip python3-venv python3 python python3 "installs the validators of scripts/lib/tools.txt into target/tools"
  need mkfs.ext4 e2fsprogs e2fsprogs e2fsprogs e2fsprogs "makes the disk of the machine whose power fails (make crash)"
  need rpmbuild rpm rpm-build rpm-tools rpm-build "makes and reads the .rpm"
  need strace strace strace strace strace "counts the probe's system calls while it measures"
  # If systemd runs, the packages would start daemons: the user installs them. Other distributions do not package them so.
  [ "$family" != debian ] || [ -d /run/systemd/system ] || {
    need slurmctld slurmctld - - - "the controller of Slurm, for a private cluster of the tests"
    need slurmd slurmd - - - "the nodes of Slurm"
    need sbatch slurm-client - - - "the clients of Slurm"
    need munged munge - - - "authenticates the parts of Slurm to each other"
  }
  need tmux tmux tmux tmux tmux "the terminal in which tests run the live screen"
  # If systemd runs, the package would start a daemon: the user installs it.
  [ -d /run/systemd/system ] || need prometheus prometheus prometheus prometheus prometheus "scrapes the metrics of a run, and checks the alert rules"
  need chromium chromium chromium chromium chromium "opens the report's page as a reader does"
  need fonts fonts-dejavu-core dejavu-sans-fonts ttf-dejavu dejavu-fonts "text in PNG figures"
  need cyclictest rt-tests realtime-tests rt-tests rt-tests "cyclictest, to compare with it and to read its output"
  # Other distributions have no packages of these names.
  [ "$family" != debian ] || {
    need jitterdebugger jitterdebugger - - - "an instrument whose files tests import"
    need rtla rtla - - - "another such instrument"
  }
  [ "$mode" = bench ] || return 0
  need stress-ng stress-ng stress-ng stress-ng stress-ng "memory bandwidth, for comparison"
  need perf linux-perf perf perf perf "pipe round trips, for comparison"
  need iperf3 iperf3 iperf3 iperf3 iperf "UDP streams, for comparison"
  need sockperf sockperf sockperf sockperf sockperf "UDP round trips, for comparison"
}

need_for_packages() {
  need git git git git git "the time of the last commit, which packages carry"
  need xz xz-utils xz xz xz "compresses packages"
  need rpmbuild rpm rpm-build rpm-tools rpm-build "makes and reads the .rpm"
  need dpkg-deb dpkg dpkg dpkg dpkg "makes and reads the .deb"
  need python3 python3 python3 python python3 "writes the bill of materials"
  need shellcheck shellcheck ShellCheck shellcheck ShellCheck "checks the scripts of the action"
  need python3-ensurepip python3-venv python3 python python3 "installs the linters for contrib/"
  # Other distributions lack a musl compiler of this name, a C library for arm64, or Debian's tools.
  [ "$family" != debian ] || {
    need musl-gcc musl-tools - - - "compiles the C part of the static program"
    need aarch64-linux-gnu-gcc gcc-aarch64-linux-gnu - - - "compiles it for aarch64"
    need libc-aarch64 libc6-dev-arm64-cross - - - "the C headers for it"
    need lintian lintian - - - "checks the .deb by Debian's rules"
    need mmdebstrap mmdebstrap - - - "makes a clean system, to install and remove the .deb"
    need qemu-aarch64-static qemu-user-static - - - "runs the program for aarch64"
  }
}
