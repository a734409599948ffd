"""A machine whose power fails while it is tuned: emulated, with a disk of its own and a Debian kernel."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))
from arm64_guest import member  # noqa: E402

BUSYBOX = "/usr/bin/busybox"
MODULES = ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4"]
# Emulated, a boot takes up to half a minute, and applying a profile some seconds.
LIMIT = 300
WRITING = 1.5
CUTS = 5
HERE = pathlib.Path(__file__).parent

FIRST = """#!/bin/busybox sh
/bin/busybox mount -t devtmpfs devtmpfs /dev
exec >/dev/ttyS0 2>&1
for module in $(/bin/busybox cat /modules); do /bin/busybox insmod /$module; done
until [ -b /dev/vda ]; do /bin/busybox sleep 0.1; done
/bin/busybox mount -t ext4 /dev/vda /new || /bin/busybox poweroff -f
exec /bin/busybox switch_root /new /init
"""
UPDATE_GRUB = """#!/bin/sh
. /etc/default/grub
for file in /etc/default/grub.d/*.cfg; do [ ! -e "$file" ] || . "$file"; done
echo "$GRUB_CMDLINE_LINUX" >/boot/cmdline.new
sync
mv /boot/cmdline.new /boot/cmdline
sync
"""


class Guest:
    """A disk, a kernel, and what is loaded before the disk is there."""

    def __init__(self, tactus, place):
        self.disk, self.initrd = place / "disk", place / "initrd"
        kernels = json.loads(subprocess.run([tactus, "kernel", "list", "--arch", "x86_64", "--json"], capture_output=True, check=True).stdout)
        kernel = next(kernel for kernel in kernels if kernel["preempt_rt"])
        self.kernel = kernel["path"]
        self.make_disk(tactus, place / "root")
        self.make_initrd(pathlib.Path(self.kernel).parents[1])

    def make_disk(self, tactus, root):
        """A root file system with the command, a shell and a boot loader's settings."""
        for directory in ["bin", "boot", "dev", "etc/default", "proc", "run", "sys", "tmp", "var/lib", "var/cache"]:
            (root / directory).mkdir(parents=True)
        small = root / "bin/tactus"
        subprocess.run(["strip", "-o", small, tactus], check=True)
        said = subprocess.run(["ldd", tactus], capture_output=True, text=True, check=True).stdout
        libraries = [next((word for word in line.split() if word.startswith("/")), None) for line in said.splitlines()]
        for library in filter(None, libraries):
            target = root / library.lstrip("/")
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(pathlib.Path(library).read_bytes())
            target.chmod(0o755)
        files = {"bin/busybox": pathlib.Path(BUSYBOX).read_bytes(), "init": (HERE / "guest.sh").read_bytes(),
                 "bin/update-grub": UPDATE_GRUB.encode(), "etc/default/grub": b'GRUB_CMDLINE_LINUX=""\n',
                 "boot/cmdline": b"\n"}
        for name, data in files.items():
            (root / name).write_bytes(data)
            (root / name).chmod(0o755)
        with open(self.disk, "wb") as disk:
            disk.truncate(512 << 20)
        subprocess.run(["mkfs.ext4", "-q", "-d", root, self.disk], check=True)

    def make_initrd(self, tree):
        """What finds the disk: the modules that the kernel lacks, each after those that it needs."""
        paths = {path.name.split(".ko")[0].replace("-", "_"): path for path in tree.glob("**/*.ko")}
        order = []

        def load(name):
            # A name that is not there is built in.
            if name not in paths or paths[name] in order:
                return
            # The module says itself what it depends on (.modinfo).
            needs = paths[name].read_bytes().split(b"\0depends=", 1)[1].split(b"\0", 1)[0].decode()
            for needed in filter(None, needs.split(",")):
                load(needed.replace("-", "_"))
            order.append(paths[name])

        for name in MODULES:
            load(name)
        archive = b"".join(member(name, 0o40755) for name in ["bin", "dev", "new"])
        archive += member("dev/console", 0o20600)
        archive += member("bin/busybox", 0o100755, pathlib.Path(BUSYBOX).read_bytes())
        for path in order:
            archive += member(path.name, 0o100644, path.read_bytes())
        archive += member("modules", 0o100644, "\n".join(path.name for path in order).encode())
        archive += member("init", 0o100755, FIRST.encode()) + member("TRAILER!!!", 0)
        self.initrd.write_bytes(archive)

    def cmdline(self):
        """What the boot loader would give the kernel, as the disk says it."""
        subprocess.run(["e2fsck", "-fy", self.disk], capture_output=True)
        said = subprocess.run(["debugfs", "-R", "cat /boot/cmdline", self.disk], capture_output=True, text=True)
        return said.stdout.strip()

    def boot(self, stage, cut_after=None, moment=0.0):
        """Boots, and returns what was said until its end, or until its power fails so long after a line."""
        words = f"console=ttyS0 loglevel=1 panic=-1 stage={stage} {self.cmdline()}"
        qemu = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-smp", "2", "-m", "1G", "-nodefaults", "-display",
                "none", "-serial", "stdio", "-no-reboot", "-kernel", self.kernel, "-initrd", self.initrd, "-append", words,
                "-drive", f"file={self.disk},format=raw,if=virtio"]
        guest = subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        end = threading.Timer(LIMIT, guest.kill)
        end.start()
        lines = []
        for line in guest.stdout:
            lines.append(line.rstrip("\r\n"))
            if cut_after and lines[-1].startswith(cut_after):
                time.sleep(moment)
                guest.kill()
        guest.wait()
        end.cancel()
        return lines


def part(lines, name):
    """A part of what the guest said: its lines, and how it ended."""
    try:
        begin = lines.index(f"@@begin {name}")
        end = next(at for at in range(begin, len(lines)) if lines[at].startswith(f"@@end {name} "))
    except (ValueError, StopIteration):
        raise RuntimeError(f"the guest did not come to `{name}`: " + " | ".join(lines[-15:])) from None
    return lines[begin + 1:end], int(lines[end].rsplit(" ", 1)[1])


def cut(guest, pristine, cut_after, moment):
    """One cut and the return; what was wrong."""
    applied = any(line.startswith("@@end apply") for line in guest.boot("apply", cut_after, moment))
    cmdline = guest.cmdline()
    lines = guest.boot("back")
    verified, revert = part(lines, "verify"), part(lines, "revert")
    print(f"    {'after' if applied else 'in'} the apply; command line `{cmdline[:40]}`; verify ended with {verified[1]}, revert with {revert[1]}: {' '.join(revert[0])[:100]}")
    wrong = []
    # Nothing was in force where the power failed before the first step, or the call took back what was half done.
    if verified[1] not in (0, 1, 2) or revert[1] not in (0, 2):
        wrong.append(f"verify ended with {verified}, revert with {revert}")
    if cut_after == "@@end apply" and (verified[1] not in (0, 1) or revert[1] != 0 or "isolcpus" not in cmdline):
        wrong.append(f"what was applied for good did not come back: `{cmdline}`, {verified}, {revert}")
    if (rest := guest.cmdline()):
        wrong.append(f"the command line is still `{rest}`")
    look = part(guest.boot("look"), "look")[0]
    wrong += [f"`{line}` is not as before" for line in set(look) ^ set(pristine)]
    return wrong


def all_of(tactus, chance=random.Random()):
    """Power cuts while a profile is applied, and a clock that is set; what was wrong."""
    lacking = [path for path in [BUSYBOX, "/usr/bin/qemu-system-x86_64", "/sbin/mkfs.ext4"] if not os.path.exists(path)]
    if lacking:
        return ["no emulated machine: there is no " + ", ".join(lacking)]
    with tempfile.TemporaryDirectory(prefix="tactus-crash-") as place:
        guest = Guest(tactus, pathlib.Path(place))
        pristine = part(guest.boot("look"), "look")[0]
        wrong = []
        for cut_after, moment in [("@@end apply", 0.0)] + [("@@writes", chance.uniform(0, WRITING)) for _ in range(CUTS)]:
            print(f"  power fails {moment:.2f} s after `{cut_after}`", flush=True)
            wrong += [f"{cut_after} and {moment:.2f} s: {words}" for words in cut(guest, pristine, cut_after, moment)]
        lines = guest.boot("clock")
        said, code = part(lines, "clock")
        shown = json.loads("\n".join(part(lines, "shown")[0]))
        print(f"  a clock that is set forward and back while it is measured: ended with {code}, {shown['status']}")
        if code not in (0, 3) or shown["status"] != "complete":
            wrong.append(f"a stepped clock: {code}, {shown['status']}: {said}")
    return wrong
