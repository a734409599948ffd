"""An emulated machine whose power fails during tuning, with a private disk and a Debian kernel."""

import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading

import disk

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))
from arm64_guest import member  # noqa: E402

BUSYBOX = "/usr/bin/busybox"
MODULES = ["virtio_pci", "virtio_blk", "crc32c_generic", "ext4"]
# Emulated, a boot takes up to half a minute, and applying a profile some seconds.
LIMIT = 300
# The first and the last write of a transaction contain these words: lines of tune's journal, and the guest's note after the
# command has ended (guest.sh).
ENDED = b"the command has ended"
WRITES = {"apply": (b'{"begin":', b'"commit"'), "revert": (b'"reverting"', ENDED)}
# Cuts of each, and the share of the disk's cache that survives.
CUTS = 6
SURVIVES = [0.0, 0.5, 1.0]
JOURNAL = "/var/lib/tactus/tune/journal.jsonl"
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
    """A disk, a kernel, and the modules that are loaded before the disk."""

    def __init__(self, tactus, place):
        self.disk, self.initrd = place / "disk", place / "initrd"
        kernels = json.loads(subprocess.run([tactus, "kernel", "list", "--arch", "x86_64", "--json"], capture_output=True, check=True).stdout)
        kernel = next(kernel for kernel in kernels if kernel["preempt_rt"])
        self.kernel = kernel["path"]
        self.make_disk(tactus, place / "root")
        self.make_initrd(pathlib.Path(self.kernel).parents[1])

    def make_disk(self, tactus, root):
        """Makes a root file system with the command, a shell and a boot loader's settings."""
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
        """The modules for the disk that the kernel lacks, each after those that it needs."""
        paths = {path.name.split(".ko")[0].replace("-", "_"): path for path in tree.glob("**/*.ko")}
        order = []

        def load(name):
            # A missing module is built into the kernel.
            if name not in paths or paths[name] in order:
                return
            # The module lists its dependencies (.modinfo).
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

    def read(self, path):
        """The text of a file of the disk, after the file system is repaired."""
        subprocess.run(["e2fsck", "-fy", self.disk], capture_output=True)
        said = subprocess.run(["debugfs", "-R", f"cat {path}", self.disk], capture_output=True, text=True)
        return said.stdout

    def cmdline(self):
        """The command line that the boot loader would give the kernel, from the disk."""
        return self.read("/boot/cmdline").strip()

    def boot(self, stage, log=None):
        """Boots, and returns the console's output until the end; with a log it records all writes."""
        words = f"console=ttyS0 loglevel=1 panic=-1 stage={stage} {self.cmdline()}"
        drive = disk.drive(self.disk, log) if log else f"file={self.disk},format=raw,if=virtio"
        qemu = ["qemu-system-x86_64", "-machine", "q35", "-accel", "tcg", "-smp", "2", "-m", "1G", "-nodefaults", "-display",
                "none", "-serial", "stdio", "-no-reboot", "-kernel", self.kernel, "-initrd", self.initrd, "-append", words,
                "-drive", drive]
        guest = subprocess.Popen(qemu, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, text=True, errors="replace")
        end = threading.Timer(LIMIT, guest.kill)
        end.start()
        lines = [line.rstrip("\r\n") for line in guest.stdout]
        guest.wait()
        end.cancel()
        return lines

    def record(self, stage, place):
        """Boots once with every write recorded: the disk before it, and the writes."""
        before, log = place / f"before-{stage}", place / f"log-{stage}"
        # Reading the command line repairs the file system first: the recorded writes are to the repaired disk.
        self.cmdline()
        subprocess.run(["cp", "--sparse=always", self.disk, before], check=True)
        said, code = part(self.boot(stage, log), stage)
        if code != 0:
            raise RuntimeError(f"{stage} ended with {code}: {said}")
        return before, disk.recorded(log)


def part(lines, name):
    """A part of the guest's output: its lines, and its exit code."""
    try:
        begin = lines.index(f"@@begin {name}")
        end = next(at for at in range(begin, len(lines)) if lines[at].startswith(f"@@end {name} "))
    except (ValueError, StopIteration):
        raise RuntimeError(f"the guest did not reach `{name}`: " + " | ".join(lines[-15:])) from None
    return lines[begin + 1:end], int(lines[end].rsplit(" ", 1)[1])


def progress(journal):
    """The progress of tune's journal, in words, and whether it is between the first and the last write."""
    kinds = []
    for line in journal.splitlines():
        try:
            said = json.loads(line)
            kinds.append(next(iter(said)) if isinstance(said, dict) else said)
        except ValueError:
            kinds.append("cut")
    count = {kind: kinds.count(kind) for kind in ("begin", "intent", "done", "undone")}
    words = ", ".join(f"{kind} {number}" for kind, number in count.items()) if kinds else "none"
    for kind in ("cut", "commit", "reverting"):
        words += f", {kind}" if kind in kinds else ""
    return words, "begin" in kinds and ("commit" not in kinds or "reverting" in kinds)


def comes_back(guest, pristine, applied):
    """Boots a disk after a power failure: returns the progress of the journal, and the errors."""
    journal, cmdline = guest.read(JOURNAL), guest.cmdline()
    words, among = progress(journal)
    lines = guest.boot("back")
    verified, revert, again = (part(lines, name) for name in ("verify", "revert", "again"))
    print(f"    journal: {words}; command line `{cmdline[:30]}`; verify ended with {verified[1]}, revert with {revert[1]}: "
          f"{' '.join(revert[0])[:110]}", flush=True)
    wrong = []
    # If the first write did not reach the disk, nothing is applied.
    right = (0, 1) if words != "none" else (2,)
    if verified[1] not in right or revert[1] != (0 if words != "none" else 2):
        wrong.append(f"verify ended with {verified}, revert with {revert}")
    if applied and ("isolcpus" not in cmdline or "commit" not in words):
        wrong.append(f"a finished apply was lost: {words}; `{cmdline}`")
    if again[1] != 2 or "nothing is applied" not in " ".join(again[0]):
        wrong.append(f"a second revert ended with {again}")
    if (rest := guest.cmdline()):
        wrong.append(f"the command line is still `{rest}`")
    look = part(lines, "look")[0]
    wrong += [f"`{line}` is not as before" for line in sorted(set(look) ^ set(pristine))]
    return among, wrong


def cuts(guest, place, stage, pristine, chance):
    """Cuts the power among the writes of an apply or a revert, and just after it; returns the errors."""
    before, writes = guest.record(stage, place)
    begin, end = (disk.first(writes, words) + 1 for words in WRITES[stage])
    ended = disk.first(writes, ENDED)
    done = place / f"done-{stage}"
    guest.disk.rename(done)
    print(f"  {stage}: {len(writes)} writes and flushes, {begin} to {end - 1} of them are of the transaction", flush=True)
    numbers = sorted(chance.sample(range(begin, end), min(CUTS, end - begin)))
    among, wrong = 0, []
    for number, share in [(number, chance.choice(SURVIVES)) for number in numbers] + [(ended, 0.0)]:
        print(f"  the power fails after write {number}; {share:.0%} of the disk's cache survives", flush=True)
        disk.cut(before, guest.disk, writes[:number], lambda: chance.random() < share)
        fell, more = comes_back(guest, pristine, stage == "apply" and number == ended)
        among += fell
        wrong += [f"{stage} cut after write {number}, {share:.0%} of the cache: {words}" for words in more]
    print(f"  {stage}: {len(numbers) + 1} cuts, {among} with a journal between its first and its last line, {len(wrong)} wrong")
    if among == 0:
        wrong.append(f"no cut fell among the writes of {stage}")
    done.replace(guest.disk)
    return wrong


def stepped_clock(guest):
    """Sets the clock forward and back during a measurement; returns the errors."""
    lines = guest.boot("clock")
    said, code = part(lines, "clock")
    shown = json.loads("\n".join(part(lines, "shown")[0]))
    print(f"  the clock is set forward and back during a measurement: ended with {code}, {shown['status']}")
    good = code in (0, 3) and shown["status"] == "complete"
    return [] if good else [f"a stepped clock: {code}, {shown['status']}: {said}"]


def all_of(tactus, chance=random.Random()):
    """Cuts the power while a profile is applied and reverted, and sets the clock; returns the errors."""
    lacking = [path for path in [BUSYBOX, "/usr/bin/qemu-system-x86_64", "/sbin/mkfs.ext4"] if not os.path.exists(path)]
    if lacking:
        return ["no emulated machine: not found: " + ", ".join(lacking)]
    with tempfile.TemporaryDirectory(prefix="tactus-crash-") as place:
        place = pathlib.Path(place)
        guest = Guest(tactus, place)
        pristine = part(guest.boot("look"), "look")[0]
        wrong = []
        for stage in WRITES:
            wrong += cuts(guest, place, stage, pristine, chance)
        return wrong + stepped_clock(guest)
