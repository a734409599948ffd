#!/usr/bin/env python3
"""Compares the probe with cyclictest on this machine: same CPU, FIFO 95, 200 us, in turn.

usage: instrument.py [PROBE] [--cpu N] [--pairs N] [--further N] [--seconds N] [--json FILE]

Prints every pair and the median of the ratios probe/cyclictest, with the smallest interval of order statistics that
contains the true median with 95 % (H. A. David, H. N. Nagaraja, Order Statistics, 2003, section 7.1), for

  CPU per wake-up   CPU time of all threads of the process divided by its wake-ups, between two
                    readings of /proc/PID/task/*/schedstat: one second after the start and just
                    before the end. So work that a program does once (facts, control, allocation)
                    does not count.
  whole life        the same from getrusage(2) of the ended process, start and end included.
  average, minimum  latency.

A ratio is out of bounds (1.02 CPU, 0.9 to 1.1 average, 1.1 minimum) if its whole interval is. If only its median is, the
pairs decide nothing, and as many again are measured, up to twice (--further).

Exit: 0 if no ratio is out of bounds, 1 if one is, 2 if something is missing.
"""

import argparse
import json
import math
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import zlib
from pathlib import Path

INTERVAL_US = 200
PRIORITY = 95
SETTLE_S = 1.0
RATIOS = [("cpu", "CPU per wake-up"), ("life", "whole life"), ("average", "average"), ("minimum", "minimum"), ("maximum", "maximum")]
BOUNDS = {"cpu": (0.0, 1.02), "average": (0.9, 1.1), "minimum": (0.0, 1.1)}


def cpu_ns(pid):
    """CPU time of all live threads of a process, in ns."""
    total = 0
    for path in Path(f"/proc/{pid}/task").iterdir():
        try:
            total += int((path / "schedstat").read_text().split()[0])
        except (FileNotFoundError, ProcessLookupError):
            pass
    return total


class Steady:
    """CPU time per wake-up between two moments of a running process."""

    def __init__(self, pid, begun_at, seconds):
        time.sleep(max(0.0, begun_at + SETTLE_S - time.monotonic()))
        self.pid, self.at, self.cpu = pid, time.monotonic(), cpu_ns(pid)
        time.sleep(max(0.0, begun_at + seconds - 0.5 - time.monotonic()))
        wakeups = (time.monotonic() - self.at) * 1e6 / INTERVAL_US
        self.per_wakeup = (cpu_ns(pid) - self.cpu) / wakeups


def ended(process):
    """CPU time of an ended child, in ns."""
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return (usage.ru_utime + usage.ru_stime) * 1e9


def cyclictest(cpu, seconds):
    words = ["cyclictest", "-m", "-q", "-N", "-p", str(PRIORITY), "-i", str(INTERVAL_US), "-a", str(cpu), "-t", "1", "-D", str(seconds)]
    process = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
    steady = Steady(process.pid, time.monotonic(), seconds)
    text = process.stdout.read()
    life = ended(process)
    found = re.search(r"C:\s*(\d+) Min:\s*(\d+) Act:\s*\d+ Avg:\s*(\d+) Max:\s*(\d+)", text)
    if process.returncode or not found:
        sys.exit(f"cyclictest failed: {text}")
    cycles, low, mean, high = map(int, found.groups())
    return {"cpu": steady.per_wakeup, "life": life / cycles, "minimum": low, "average": mean, "maximum": high, "cycles": cycles}


class Probe:
    """Speaks the wire protocol of the probe (docs/design/wire.md)."""

    def __init__(self, *words):
        self.process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.sent = 0

    def say(self, message):
        line = '{"q":%d,"m":%s' % (self.sent, json.dumps(message, separators=(",", ":")))
        self.sent += 1
        self.process.stdin.write(f'{line},"c":"{zlib.crc32(line.encode()):08x}"}}\n'.encode())
        self.process.stdin.flush()

    def messages(self):
        parts = []
        for line in self.process.stdout:
            frame = json.loads(line)
            if "m" in frame:
                yield frame["m"]
                continue
            index, of = frame["p"]
            parts = parts[:index] + [frame["x"]]
            if index + 1 == of:
                yield json.loads("".join(parts))
        sys.exit("the probe ended without a message")

    def wait(self, *kinds):
        for message in self.messages():
            if message["t"] == "refused":
                sys.exit(f"the probe refused: {message['reason']}")
            if message["t"] == "note" and "not understood" in message["text"]:
                sys.exit(f"this script and the probe use different protocols: {message['text']}")
            if message["t"] in kinds and message.get("last", True):
                return message


def probe(path, cpu, seconds, **asked):
    """The latencies that the probe measures, and its CPU time; `asked`: further keys of the job."""
    # All other CPUs are housekeeping CPUs, as the kernel arranges it for cyclictest's main thread.
    house = ",".join(str(other) for other in sorted(os.sched_getaffinity(0) - {cpu})) or str(cpu)
    what = ["what=Measure", "measure=timer", f"interval_ns={INTERVAL_US * 1000}", f"priority={PRIORITY}", "policy=fifo"]
    job = {
        "t": "job", "duration_ns": seconds * 10**9, "tick_ns": 10**9, "control": ["what=Nothing"], "no_side_effects": False,
        "housekeeping": house, "activities": [{"id": 0, "cpus": str(cpu), "what": what}],
        **asked,
    }
    session = Probe(path)
    session.wait("facts")
    session.say(job)
    session.wait("ready")
    session.say({"t": "go"})
    steady = Steady(session.process.pid, time.monotonic(), seconds)
    total = None
    for message in session.messages():
        if message["t"] == "tick":
            total = message["total"]
        if message["t"] == "done":
            break
    session.say({"t": "quit"})
    life = ended(session.process)
    cycles = total["cycles"]
    return {
        "cpu": steady.per_wakeup, "life": life / cycles, "minimum": total["min_ns"], "average": total["sum_ns"] / cycles,
        "maximum": total["max_ns"], "cycles": cycles,
    }


def interval(ratios):
    """The two order statistics that contain the true median with 95 %; the extremes if there are too few ratios."""
    ordered, many = sorted(ratios), len(ratios)
    outside, cut = 0.0, 0
    while cut + 1 < many / 2 and 2 * (outside + math.comb(many, cut) / 2**many) <= 0.05:
        outside += math.comb(many, cut) / 2**many
        cut += 1
    return ordered[max(cut - 1, 0)], ordered[many - max(cut, 1)]


def judged(ratios, bounds):
    """Judges a ratio by its pairs: the end of its line, and `within`, `out` or `undecided`. Without bounds: `within`."""
    low, high = interval(ratios)
    middle = statistics.median(ratios)
    text = f"{middle:.3f} [{low:.3f}, {high:.3f}]"
    if not bounds:
        return text, "within"
    least, most = bounds
    if least <= middle <= most:
        return f"{text}  within {least} to {most}", "within"
    if high < least or low > most:
        return f"{text}  OUT OF BOUNDS ({least} to {most})", "out"
    return f"{text}  NOT DECIDED by {len(ratios)} pairs ({least} to {most})", "undecided"


def candidates(arch):
    """The places where a build of the probe may be, the best last."""
    target = Path(os.environ.get("CARGO_TARGET_DIR", Path(__file__).parents[2] / "target"))
    return [target / f"{arch}-unknown-linux-musl/probe/tactus-probe", target / f"probes/{arch}-unknown-linux-musl/tactus-probe"]


def pair(number, path, options):
    """Measures and prints one pair. The order alternates, so that neither always follows the other."""
    runs = {}
    for name in ["cyclictest", "probe"] if number % 2 == 0 else ["probe", "cyclictest"]:
        runs[name] = cyclictest(options.cpu, options.seconds) if name == "cyclictest" else probe(path, options.cpu, options.seconds)
    theirs, ours = runs["cyclictest"], runs["probe"]
    cells = [f"{theirs[key]:8.0f} | {ours[key]:<8.0f}" for key, _ in RATIOS]
    print(f"{number + 1:>4}  " + "  ".join(cells), flush=True)
    return theirs, ours


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", nargs="?", help="default: where `make` builds it")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--further", type=int, default=2, metavar="N", help="measure as many pairs again if a ratio is not decided, up to N times")
    parser.add_argument("--seconds", type=int, default=5)
    parser.add_argument("--json", help="write all pairs there")
    options = parser.parse_args()
    if not shutil.which("cyclictest"):
        print("instrument.py: cyclictest is not installed\nhint: apt-get install rt-tests", file=sys.stderr)
        return 2
    built = {arch: path for arch in ("x86_64", "aarch64") for path in candidates(arch) if path.exists()}
    path = options.probe or built.get(os.uname().machine)
    if not path:
        print("instrument.py: no probe was found\nhint: name one, or run make build", file=sys.stderr)
        return 2
    for each in sorted({str(path), *map(str, built.values())}):
        print(f"{each}: {os.path.getsize(each)} bytes")
    print(f"CPU {options.cpu}, SCHED_FIFO {PRIORITY}, {INTERVAL_US} us, {options.seconds} s each; times in ns, cyclictest | probe")
    print(f"{'pair':>4}  {'CPU per wake-up':>21}  {'whole life':>17}  {'average':>15}  {'minimum':>15}  {'maximum':>19}")
    pairs = []
    for _ in range(1 + options.further):
        for number in range(len(pairs), len(pairs) + options.pairs):
            pairs.append(pair(number, path, options))
        said = {name: judged([ours[key] / theirs[key] for theirs, ours in pairs], BOUNDS.get(key)) for key, name in RATIOS}
        for name, (text, _) in said.items():
            print(f"median ratio probe/cyclictest, {name:<16} {text}", flush=True)
        if "undecided" not in {word for _, word in said.values()}:
            break
    good = "out" not in {word for _, word in said.values()}
    if options.json:
        Path(options.json).write_text(json.dumps([{"cyclictest": theirs, "probe": ours} for theirs, ours in pairs], indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
