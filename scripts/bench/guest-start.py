#!/usr/bin/env python3
"""Measures the time from QEMU's start to the probe's first frame, and compares it with the minimum.
That is the time to /init of a busybox initramfs, with the same kernel on the same machine.

The two alternate, so that other load disturbs both equally. Exit 1 if the median of the pairs' ratios is
above the limit, 2 if nothing can be measured.

    guest-start.py [--pairs 5] [--kernel rt] [--machine q35,hpet=off]
"""
import argparse
import glob
import json
import os
import select
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

LIMIT = 1.15
PATIENCE_S = 60
MARK = b"tactus-bench-init"


def unable(words, hint):
    print(f"guest-start: {words}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def example():
    """The program that starts one guest as tactus does."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "-p", "tactus-environment", "--example", "first-frame"], cwd=root, check=True
    )
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
    return os.path.join(target, "release", "examples", "first-frame")


def newc(entries):
    """A cpio archive: (path, mode, content, device)."""
    out = b""
    for number, (path, mode, content, device) in enumerate(entries + [("TRAILER!!!", 0, b"", (0, 0))]):
        name = path.encode() + b"\0"
        fields = [number + 1, mode, 0, 0, 1, 0, len(content), 0, 0, *device, len(name), 0]
        out += b"070701" + b"".join(b"%08X" % field for field in fields) + name
        out += b"\0" * (-len(out) % 4) + content
        out += b"\0" * (-len(out) % 4)
    return out


def busybox_initramfs(path):
    busybox = shutil.which("busybox") or unable("busybox is missing", "install busybox-static")
    init = b"#!/bin/busybox sh\necho " + MARK + b"\n/bin/busybox poweroff -f\n"
    entries = [
        ("dev", 0o040755, b"", (0, 0)),
        ("bin", 0o040755, b"", (0, 0)),
        ("dev/console", 0o020600, b"", (5, 1)),
        ("bin/busybox", 0o100755, open(busybox, "rb").read(), (0, 0)),
        ("init", 0o100755, init, (0, 0)),
    ]
    with open(path, "wb") as archive:
        archive.write(newc(entries))


def unpacked_kernel():
    """The kernel file that tactus booted last."""
    caches = [os.environ.get("TACTUS_CACHE_DIR"), "/var/cache/tactus", os.path.expanduser("~/.cache/tactus")]
    found = [path for cache in caches if cache for path in glob.glob(f"{cache}/vmlinux/*") if not path.endswith(".no")]
    return max(found, key=os.path.getatime) if found else unable("no unpacked kernel was found", "the guest booted its bzImage")



def baseline(kernel, initramfs, machine):
    """Milliseconds from QEMU's start to /init."""
    words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    words += ["-machine", machine, "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512M"]
    words += ["-smp", f"{len(os.sched_getaffinity(0))}", "-serial", "stdio", "-kernel", kernel, "-initrd", initramfs]
    words += ["-append", "console=ttyS0 panic=-1 reboot=t tsc=reliable clocksource=tsc"]
    began = time.monotonic()
    qemu = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    try:
        seen = b""
        while MARK not in seen:
            if not select.select([qemu.stdout], [], [], PATIENCE_S)[0]:
                unable("the busybox guest hangs: " + seen[-400:].decode(errors="replace"), "try again")
            piece = os.read(qemu.stdout.fileno(), 65536)
            if not piece:
                unable("the busybox guest ended early: " + seen[-400:].decode(errors="replace"), "boot it by hand")
            seen = seen[-2000:] + piece
        return (time.monotonic() - began) * 1e3
    finally:
        qemu.kill()
        qemu.wait()


def tactus(program, kernel):
    """Milliseconds from the call that starts the guest to the probe's first frame."""
    run = subprocess.run([program, "qemu", "accel=tcg"] + kernel, capture_output=True, text=True)
    if run.returncode != 0:
        unable(run.stderr.strip(), "`tactus environments` prints what is missing")
    return json.loads(run.stdout)["hello_ms"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=5)
    arguments.add_argument("--kernel", help="as in a plan; default: the default guest kernel")
    arguments.add_argument("--machine", default="q35,hpet=off")
    arguments.add_argument("--program", help="a ready-built first-frame")
    arguments = arguments.parse_args()
    program = arguments.program or example()
    kernel = [f"kernel={arguments.kernel}"] if arguments.kernel else []
    with tempfile.TemporaryDirectory() as directory:
        initramfs = os.path.join(directory, "busybox.cpio")
        busybox_initramfs(initramfs)
        tactus(program, kernel)  # unpacks the kernel, once
        vmlinux = unpacked_kernel()
        ratios = []
        print(f"{'pair':>4} {'/init of busybox':>18} {'first frame':>13} {'ratio':>7}")
        for pair in range(1, arguments.pairs + 1):
            least = baseline(vmlinux, initramfs, arguments.machine)
            ours = tactus(program, kernel)
            ratios.append(ours / least)
            print(f"{pair:>4} {least:>15.0f} ms {ours:>10.0f} ms {ratios[-1]:>7.3f}", flush=True)
    median = statistics.median(ratios)
    print(f"median of the ratios: {median:.3f} (limit {LIMIT})")
    sys.exit(0 if median <= LIMIT else 1)


if __name__ == "__main__":
    main()
