# Sourced by setup.sh: which programs are needed for what, and the package of each. It asks for `mode`, `arch` and `family`.

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
    # RHEL's only one has another name.
    qemu-system-x86_64) has "$1" || { [ "$arch" = x86_64 ] && [ -x /usr/libexec/qemu-kvm ]; } ;;
    qemu-system-aarch64) has "$1" || { [ "$arch" = aarch64 ] && [ -x /usr/libexec/qemu-kvm ]; } ;;
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
  need newuidmap uidmap shadow-utils shadow shadow "containers of users who are not root"
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
    need mmdebstrap mmdebstrap - - - "a clean system, in which setup is tried"
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
