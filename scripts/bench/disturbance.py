#!/usr/bin/env python3
"""Counts how the probe disturbs the CPU that it measures, compared with a minimal loop (bare-loop.c): the interrupts of that
CPU during the measurement. Probe and loop run in turn, on this machine and in a guest in which nothing else runs.

    disturbance.py [PROBE] [--seconds 60] [--pairs 1] [--cpu N] [--where host,guest]

It counts from one second after the start to one before the end (/proc/interrupts):

  LOC   timer interrupts: both programs sleep with them
  RES   rescheduling: another CPU asks this one to choose its next task
  CAL   function calls: another CPU makes this one run a function, TLB shootdowns included
  TLB   TLB shootdowns: a process that runs on this CPU lost a page
  sent  interrupts from other CPUs that a thread of the probe sent (ftrace, events ipi:*; `-`: unknown here). It excludes
        those that an interrupt handler sent while it interrupted such a thread: a tick that asks another CPU to balance
        the load, a timer that wakes a task.

On a machine with other load, CAL and TLB of both programs include those of others: there `sent` decides. Limits: the probe
sends none, and in the guest it has no more CAL and TLB together than the bare loop. Exit 1 if a limit is exceeded, 2 if
nothing can be measured.
"""
import argparse
import importlib.util
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import time
import zlib

HERE = pathlib.Path(__file__).resolve().parent
ROWS = ("LOC", "RES", "CAL", "TLB")
INTERVAL_US = 200
PRIORITY = 95
KINDS = ("bare loop", "timer", "spin")
MARK = "disturbance:"


def neighbour(name):
    """Loads another script of this directory, whose name is not a module name."""
    spec = importlib.util.spec_from_file_location(name.replace("-", "_"), HERE / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def unable(words, hint):
    print(f"disturbance: {words}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def compiled(directory):
    program = os.path.join(directory, "bare-loop")
    run = subprocess.run(["cc", "-O2", "-static", "-o", program, HERE / "bare-loop.c"], capture_output=True, text=True)
    if run.returncode:
        unable(f"bare-loop.c cannot be compiled: {run.stderr.strip()}", "install gcc and libc6-dev")
    return program


def frame(number, message):
    """A frame of the wire (docs/design/wire.md)."""
    line = '{"q":%d,"m":%s' % (number, json.dumps(message, separators=(",", ":")))
    return f'{line},"c":"{zlib.crc32(line.encode()):08x}"}}\n'


def job(kind, cpu, house, seconds):
    measure = {"timer": ["measure=timer", f"interval_ns={INTERVAL_US * 1000}"], "spin": ["measure=spin", "interval_ns=0"]}[kind]
    what = ["what=Measure", *measure, f"priority={PRIORITY}", "policy=fifo"]
    return {
        "t": "job", "duration_ns": seconds * 10**9, "tick_ns": 10**9, "control": ["what=Nothing"], "no_side_effects": False,
        "housekeeping": house, "activities": [{"id": 0, "cpus": str(cpu), "what": what}],
    }


def command(kind, programs, seconds, frames, cpu):
    """A shell command that measures for `seconds`. The messages to the probe do not depend on its answers."""
    if kind == "bare loop":
        return f"{programs['loop']} {cpu} {INTERVAL_US} {seconds} {PRIORITY}"
    prepare, go, end = (f"{frames}/{kind}-{name}" for name in ("job", "go", "quit"))
    return f"( cat {prepare}; sleep 2; cat {go}; sleep {seconds + 1}; cat {end} ) | {programs['probe']}"


def frames(directory, cpu, house, seconds):
    """Writes the messages to the probe; their paths are relative to `directory`."""
    written = {}
    for kind in KINDS[1:]:
        told = [job(kind, cpu, house, seconds), {"t": "go"}, {"t": "quit"}]
        for number, (name, message) in enumerate(zip(("job", "go", "quit"), told)):
            written[f"{kind}-{name}"] = frame(number, message)
    for name, text in written.items():
        pathlib.Path(directory, name).write_text(text)
    return written


def interrupts(text, cpu):
    """The rows of /proc/interrupts for one CPU."""
    lines = text.splitlines()
    at = lines[0].split().index(f"CPU{cpu}") + 1
    return {words[0].rstrip(":"): int(words[at]) for words in map(str.split, lines[1:]) if words and words[0].rstrip(":") in ROWS}


class Senders:
    """Finds the threads that interrupt a CPU from another one, with a separate instance of ftrace."""

    ROOTS = ("/sys/kernel/tracing", "/sys/kernel/debug/tracing")

    def __init__(self, cpu):
        self.cpu, self.instance, self.mounted = cpu, None, None
        root = next((root for root in self.ROOTS if os.path.exists(f"{root}/events/ipi")), None)
        if root is None and subprocess.run(["mount", "-t", "tracefs", "tracefs", self.ROOTS[0]], capture_output=True).returncode == 0:
            root = self.mounted = self.ROOTS[0]
        if root is None or not os.path.exists(f"{root}/events/ipi"):
            return
        self.instance = pathlib.Path(root, "instances", f"tactus-bench-{os.getpid()}")
        self.instance.mkdir()
        (self.instance / "buffer_size_kb").write_text("8192")

    def begin(self):
        if self.instance:
            (self.instance / "trace").write_text("")
            (self.instance / "events/ipi/enable").write_text("1")

    def end(self, name):
        """The number of interrupts that threads of programs with this name sent to the CPU."""
        if not self.instance:
            return None
        (self.instance / "events/ipi/enable").write_text("0")
        text = (self.instance / "trace").read_text()
        if any(int(line.split("overrun: ")[1]) for line in self.overruns()):
            return None
        count = 0
        for line in text.splitlines():
            if line.startswith("#") or "ipi_send" not in line:
                continue
            sender, what = line.split("[", 1)[0].strip(), line
            cpu = what.split("cpu=")[1].split()[0] if "cpu=" in what else None
            mask = what.split("cpumask=")[1].split()[0] if "cpumask=" in what else None
            there = cpu == str(self.cpu) or (mask is not None and self.within(mask))
            # Work that the measuring thread queues for its CPU does not count.
            by = int(line.split("[")[1].split("]")[0])
            # CPU, then flags, of which the third is the context: `.` outside of interrupts (Documentation/trace/ftrace.rst).
            in_interrupt = line.split("]", 1)[1].split()[0][2] != "."
            count += there and by != self.cpu and not in_interrupt and any(sender.startswith(each) for each in name)
        return count

    def overruns(self):
        for path in self.instance.glob("per_cpu/cpu*/stats"):
            yield from (line for line in path.read_text().splitlines() if line.startswith("overrun: "))

    def within(self, mask):
        """Reads a mask of hexadecimal words, or a list of CPUs."""
        if "-" in mask or len(mask.replace(",", "")) < 2 and not mask.startswith("0"):
            return any(self.cpu in range(int(part.split("-")[0]), int(part.split("-")[-1]) + 1) for part in mask.split(","))
        return int(mask.replace(",", ""), 16) >> self.cpu & 1 == 1

    def close(self):
        if self.instance:
            self.instance.rmdir()
        if self.mounted:
            subprocess.run(["umount", self.mounted], check=False)


def on_host(programs, cpu, seconds, pairs):
    house = ",".join(str(other) for other in sorted(os.sched_getaffinity(0) - {cpu}))
    if not house:
        unable("this machine has one CPU", "use a machine with a second, housekeeping CPU")
    # Only the probe may run on that CPU.
    programs = {**programs, "probe": f"taskset -c {cpu},{house} {programs['probe']}"}
    os.sched_setaffinity(0, os.sched_getaffinity(0) - {cpu})
    senders = Senders(cpu)
    try:
        with tempfile.TemporaryDirectory() as directory:
            frames(directory, cpu, house, seconds)
            for kind in KINDS * pairs:
                words = command(kind, programs, seconds, directory, cpu)
                with open(f"{directory}/out", "wb") as out:
                    process = subprocess.Popen(["sh", "-c", words], stdout=out)
                    time.sleep((2 if kind != "bare loop" else 0) + 1)
                    senders.begin()
                    before = interrupts(open("/proc/interrupts").read(), cpu)
                    time.sleep(seconds - 2)
                    after = interrupts(open("/proc/interrupts").read(), cpu)
                    sent = senders.end(("tactus-probe", "timer-", "spin-"))
                    process.wait()
                said = open(f"{directory}/out", "rb").read()
                yield "host", kind, {row: after[row] - before[row] for row in before}, sent, is_whole(kind, said)
    finally:
        senders.close()


def is_whole(kind, said):
    return b"largest" in said if kind == "bare loop" else b'"end":"complete"' in said


INIT = """#!/bin/busybox sh
export PATH=/bin
busybox mount -t proc proc /proc
busybox mount -t devtmpfs dev /dev 2>/dev/null
busybox mount -t sysfs sys /sys
echo 1 >/proc/sys/kernel/printk
for a in cat grep sleep poweroff taskset; do busybox ln -s busybox /bin/$a; done
taskset -p 1 $$ >/dev/null
run() {
  name=$1; settle=$2; shift 2
  sh -c "$*" >/out 2>&1 &
  sleep $settle
  cat /proc/interrupts >/before
  sleep SECONDS
  cat /proc/interrupts >/after
  wait
  whole=no
  grep -q -e largest -e '"end":"complete"' /out && whole=yes
  echo "MARK begin $name $whole"
  cat /before; echo "MARK then"; cat /after; echo "MARK end"
}
RUNS
poweroff -f
"""


def in_guest(programs, seconds, pairs):
    start = neighbour("guest-start")
    busybox = shutil.which("busybox") or unable("busybox is missing", "install busybox-static")
    inside = {"loop": "/bin/bare-loop", "probe": "/bin/tactus-probe"}
    runs = []
    for kind in KINDS * pairs:
        settle = 1 if kind == "bare loop" else 3
        runs.append(f"run '{kind}' {settle} '{command(kind, inside, seconds, '/frames', 1)}'")
    init = INIT.replace("SECONDS", str(seconds - 2)).replace("MARK", MARK).replace("RUNS", "\n".join(runs))
    with tempfile.TemporaryDirectory() as directory:
        entries = [
            *((name, 0o040755, b"", (0, 0)) for name in ("dev", "proc", "sys", "bin", "frames")),
            ("dev/console", 0o020600, b"", (5, 1)),
            *((f"bin/{name}", 0o100755, open(path, "rb").read(), (0, 0))
              for name, path in (("busybox", busybox), ("bare-loop", programs["loop"]), ("tactus-probe", programs["probe"]))),
            ("bin/sh", 0o120777, b"busybox", (0, 0)),
            *((f"frames/{name}", 0o100644, text.encode(), (0, 0)) for name, text in frames(directory, 1, "0", seconds).items()),
            ("init", 0o100755, init.encode(), (0, 0)),
        ]
        initramfs = os.path.join(directory, "initramfs.cpio")
        pathlib.Path(initramfs).write_bytes(start.newc(entries))
        words = ["qemu-system-x86_64", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
        words += ["-machine", "q35,hpet=off", "-accel", "tcg,thread=multi", "-cpu", "max", "-m", "512M", "-smp", "2"]
        words += ["-serial", "stdio", "-kernel", start.unpacked_kernel(), "-initrd", initramfs, "-append"]
        words += ["console=ttyS0 panic=-1 reboot=t tsc=reliable clocksource=tsc isolcpus=managed_irq,domain,1 irqaffinity=0"]
        try:
            guest = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, timeout=120 + 2 * len(runs) * (seconds + 10))
        except subprocess.TimeoutExpired:
            unable("the guest did not end", "boot it by hand")
    said = guest.stdout.decode(errors="replace").replace("\r", "").split(f"{MARK} begin ")[1:]
    if len(said) != len(runs):
        unable(f"the guest reported {len(said)} of {len(runs)} runs: {guest.stdout[-400:].decode(errors='replace')}", "boot it by hand")
    for part in said:
        head, rest = part.split("\n", 1)
        kind, whole = head.rsplit(" ", 1)
        before, after = (interrupts(text.strip("\n"), 1) for text in rest.split(f"{MARK} end")[0].split(f"{MARK} then\n"))
        yield "guest", kind, {row: after[row] - before[row] for row in before}, None, whole == "yes"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", nargs="?", help="default: where `make` builds it")
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--pairs", type=int, default=1)
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--where", default="host,guest")
    options = parser.parse_args()
    built = [path for path in neighbour("instrument").candidates(os.uname().machine) if path.exists()]
    probe = options.probe or (str(built[-1]) if built else unable("no probe was found", "name one, or run make build"))
    if os.geteuid():
        unable("SCHED_FIFO and tracing need root", "run it as root")
    with tempfile.TemporaryDirectory() as directory:
        programs = {"loop": compiled(directory), "probe": os.path.realpath(probe)}
        print(f"SCHED_FIFO {PRIORITY}, {INTERVAL_US} us; interrupts of the measured CPU in {options.seconds - 2} s")
        print(f"{'where':6}{'what':12}" + "".join(f"{row:>9}" for row in ROWS) + f"{'sent':>9}", flush=True)
        results = []
        if "host" in options.where:
            results += show(on_host(programs, options.cpu, options.seconds, options.pairs))
        if "guest" in options.where:
            results += show(in_guest(programs, options.seconds, options.pairs))
    return judge(results)


def show(results):
    for where, kind, counts, sent, whole in results:
        cells = [counts.get(row, "-") for row in ROWS] + ["-" if sent is None else sent]
        print(f"{where:6}{kind:12}" + "".join(f"{cell:>9}" for cell in cells) + ("" if whole else "  DID NOT END"), flush=True)
        yield where, kind, counts, sent, whole


def judge(results):
    results, good = list(results), True
    if not all(whole for *_, whole in results):
        unable("a run did not end", "reduce the load of the machine, and try again")
    sent = sum(sent or 0 for _, kind, _, sent, _ in results if kind != "bare loop")
    print(f"interrupts that the probe sent to the CPU that it measured: {sent} (limit 0)")
    good &= sent == 0
    calls = lambda kind: [counts.get("CAL", 0) + counts.get("TLB", 0) for where, each, counts, *_ in results if (where, each) == ("guest", kind)]
    for kind in KINDS[1:]:
        if calls(kind):
            ours, theirs = max(calls(kind)), max(calls("bare loop"))
            print(f"function calls and TLB shootdowns in the guest, {kind}: {ours} (limit {theirs}, the bare loop's)")
            good &= ours <= theirs
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
