#!/bin/sh
# Tests the decisions of scripts/setup.sh in a clean Debian 12, in half a minute and without building anything (root):
#
#   scripts/fresh/decisions.sh
set -eu
cd "$(dirname "$0")/../.."
. scripts/lib/say.sh
. scripts/fresh/root.sh

scratch=$(mktemp -d "${TMPDIR:-/tmp}/tactus-fresh.XXXXXX")
chmod 755 "$scratch"
root="$scratch/root"
trap 'rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' INT TERM
new_root "$root" bookworm systemd,sudo
in_root "$root" apt-get update -q >/dev/null
in_root "$root" useradd --create-home user
said="$scratch/said"

# setup STATUS [VARIABLE=VALUE...] [sudo -u user]: runs scripts/setup.sh run, which must end with STATUS and install nothing.
setup() {
  wanted=$1
  shift
  cp "$root/var/lib/dpkg/status" "$scratch/status"
  status=0
  in_root "$root" env "$@" /src/scripts/setup.sh run >"$said" 2>&1 || status=$?
  [ "$status" -eq "$wanted" ] || wrong "setup ended with $status, not $wanted"
  cmp -s "$root/var/lib/dpkg/status" "$scratch/status" || wrong "setup installed something"
}

says() {
  for words in "$@"; do
    grep -qF -- "$words" "$said" || wrong "setup does not print: $words"
  done
}

wrong() {
  cat "$said"
  fail "$case_name: $1"
}

begin() {
  case_name=$1
  say "  $case_name"
}

# stand_in NAME WORDS: makes a program that prints WORDS.
stand_in() {
  printf '#!/bin/sh\necho "%s"\n' "$2" >"$root/usr/local/bin/$1"
  chmod 755 "$root/usr/local/bin/$1"
}

begin "Debian 12 has no rustup: setup tells root before it installs anything"
setup 2
says "cargo is not installed" "https://rustup.rs"

begin "sudo, and only the user has a Rust: setup says to run it as the user"
mkdir -p "$root/home/user/.cargo/bin"
printf '#!/bin/sh\n' >"$root/home/user/.cargo/bin/cargo"
chmod 755 "$root/home/user/.cargo/bin/cargo"
setup 2 SUDO_USER=user
says "root has no Rust, user has one in /home/user/.cargo" "without sudo: make run"
rm -r "$root/home/user/.cargo"

begin "a user who may not install anything sees all problems at once"
setup 2 sudo -u user
says "nothing can be built: gcc libc6-dev" "cargo is not installed"

begin "setup names a Rust that is too old"
stand_in cargo "cargo 1.63.0"
setup 2
says "this Rust is 1.63.0" "1.92"

begin "without root setup skips optional packages, on Debian and elsewhere"
stand_in cargo "cargo 1.92.0"
stand_in rustc /usr/local/bin
stand_in cc ""
stand_in make ""
setup 0 sudo -u user
says "Not installed" "the rest runs" "apt-get install --no-install-recommends qemu-system-x86"
cp "$root/etc/os-release" "$scratch/os-release"
rm "$root/etc/os-release"
printf 'ID=rocky\nID_LIKE="rhel centos fedora"\n' >"$root/etc/os-release"
setup 0
says "the rest runs" "dnf install qemu-system-x86-core"
mkdir -p "$root/usr/libexec"
cp "$root/usr/local/bin/cc" "$root/usr/libexec/qemu-kvm"
setup 0
! grep -q qemu "$said" || wrong "setup does not find QEMU where RHEL installs it"
cp "$scratch/os-release" "$root/etc/os-release"

begin "an installed server does not start, nor at the next boot"
cat >"$root/install" <<'END'
set -eu
cd /src
sudo=""
# systemd does not run here: systemctl only changes links.
export SYSTEMD_OFFLINE=1
. scripts/lib/say.sh
. scripts/lib/install.sh
mkdir -p /run/systemd/system
printf '#!/bin/sh\nexit 0\n' >/usr/sbin/policy-rc.d
chmod 755 /usr/sbin/policy-rc.d
ln -s /lib/systemd/system/own.service /etc/systemd/system/multi-user.target.wants/own.service
apt_install openssh-server
grep -qx 'exit 0' /usr/sbin/policy-rc.d
[ ! -e /usr/sbin/policy-rc.d.kept ]
if pidof sshd; then exit 1; fi
[ -x /usr/sbin/sshd ]
[ -L /etc/systemd/system/multi-user.target.wants/own.service ]
[ ! -L /etc/systemd/system/multi-user.target.wants/ssh.service ]
[ ! -L /etc/systemd/system/sshd.service ]
END
in_root "$root" sh /install >"$said" 2>&1 || wrong "the installation changed the machine"
says "They are disabled: ssh.service"
