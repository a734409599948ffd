#!/usr/bin/env python3
"""Tests tactus in an emulated arm64 machine: TACTUS INIT KERNEL.

TACTUS is the program for aarch64, INIT the built init.c, KERNEL an arm64 Image. The machine is QEMU's `virt`, emulated
(TCG): its latencies say nothing about hardware. Exit: 0 if every command ended as expected.
"""

import json
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "fixtures"))
from arm64_guest import boot, member  # noqa: E402

PLAN = """name = "aarch64"
[defaults]
interval = "5ms"
duration = "4s"
[environment.host]
kind = "host"
[[scenario]]
name = "idle"
environment = "host"
measurement = "timer"
[[scenario]]
name = "loaded"
environment = "host"
measurement = "timer"
load = ["scheduler", "memory"]
[[scenario]]
name = "polled"
environment = "host"
measurement = "spin"
"""
# Each command, and its expected exit codes: 0 good, 1 findings, 3 inconclusive.
COMMANDS = [
    ("tactus --version", [0]),
    ("tactus environments", [0]),
    ("tactus audit", [0, 1]),
    ("tactus measure --interval 5ms --duration 3s --out /tmp/measured", [0, 3]),
    ("tactus run /plan.toml --out /tmp/run", [0, 3]),
    ("tactus report /tmp/run --json", [0]),
]
CMDLINE = "console=ttyAMA0 panic=-1 quiet isolcpus=managed_irq,domain,2-3 rdinit=/init"


def initramfs(program, init):
    """Makes the machine's initramfs."""
    read = lambda path: pathlib.Path(path).read_bytes()
    archive = b"".join(member(name, 0o40755) for name in ["bin", "dev", "proc", "sys", "run", "tmp"])
    archive += member("bin/tactus", 0o100755, read(program)) + member("init", 0o100755, read(init))
    archive += member("plan.toml", 0o100644, PLAN.encode())
    archive += member("commands", 0o100644, "".join(words + "\n" for words, _ in COMMANDS).encode())
    return archive + member("TRAILER!!!", 0)


def main():
    program, init, kernel = sys.argv[1:]
    console = boot(initramfs(program, init), kernel, CMDLINE, "2G", 600)
    wrong = []
    for number, (words, right) in enumerate(COMMANDS):
        rest = console.partition(f"BEGIN {number} {words}\n")[2]
        said, end, code = rest.partition(f"\nEND {number} ")
        code = int(code.split("\n", 1)[0]) if end else None
        print(f"== {words}: exit code {code}")
        if code not in right:
            wrong.append(f"`{words}` ended with {code}:\n{said[-3000:]}")
        elif words.endswith("--json"):
            rows = json.loads(said)["scenarios"]
            for row in rows:
                print(f"   {row['name']}: {row['status']}, {row['evidence']}, self-test {row.get('self_test')}")
                if row["status"] != "measured" or row["evidence"] != "virtual host":
                    wrong.append(f"{row['name']}: {row['status']} ({row.get('reason')}), {row['evidence']}")
    if "END 0" not in console:
        wrong.append(f"the machine did not boot:\n{console[-3000:]}")
    sys.exit("\n".join(wrong) if wrong else 0)


main()
