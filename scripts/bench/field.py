#!/usr/bin/env python3
"""Compares the probe's measurements of values with other tools on this machine: same CPU, same work, in turn.

usage: field.py [PROBE] [--cpu N] [--pairs N] [--seconds N] [--only GROUP,...] [--quick] [--json FILE]

Prints each pair, and the median of the ratios probe/tool with the smallest interval of order statistics that contains the
true median with 95 %, for

  memory   random latency by size of the array, against chase.c (the loop of lmbench's lat_mem_rd, which Debian does not
           package). The size that fits only into the shared cache is also compared with that loop over an array that it
           just read, which other programs cannot evict. Copy bandwidth, counted as in STREAM, against stress-ng --stream
  os       pipe latency, against perf bench sched pipe: a round trip of two processes on one CPU
  network  UDP over a veth pair between two network namespaces: throughput and loss, at full speed and at a fixed rate,
           against iperf3; round trip against sockperf ping-pong

All programs run at FIFO 1, so that others take little of their CPU. A ratio is out of bounds if its whole interval is. If
only its median is, the ratio is not decided; fewer than six pairs, as with --quick, decide nothing. A program
that spins at FIFO loses up to a twentieth of its CPU to the kernel's fair server if others wait for the CPU. The probe's
batches rest for an equal time.

Exit: 0 if no ratio is out of bounds, 1 if one is, 2 if something is missing.
"""

import argparse
import json
import os
import re
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.dont_write_bytecode = True
from instrument import Probe, candidates, ended, judged

HERE = Path(__file__).resolve().parent
FIRST = ("chrt", "-f", "1")
NEEDS = {
    "memory": [("stress-ng", "stress-ng"), ("cc", "gcc")],
    "os": [("perf", "linux-perf"), ("chrt", "util-linux")],
    "network": [("iperf3", "iperf3"), ("sockperf", "sockperf"), ("ip", "iproute2")],
}
SIZES = [16 << 10, 256 << 10, 4 << 20, 128 << 20]
LARGEST = SIZES[-1]
# Larger than the private caches of a core: here a loop that never stops shows its part of the shared cache.
SHARED = 4 << 20
RATE = 400
MESSAGE = 1472
NEAR, FAR = "192.0.2.1", "192.0.2.2"
ALIKE = (0.85, 1.15)
# With fewer pairs no interval contains the median with 95 %.
DECIDING = 6
# The compared values, with unit and bounds; both programs use the same unit.
ROWS = {
    "memory": [(f"random latency, {size >> 10} KiB", "ns", None if size == SHARED else ALIKE) for size in SIZES]
    + [(f"the same, {SHARED >> 10} KiB just read", "ns", ALIKE), ("copy, as STREAM counts", "MB/s", ALIKE)],
    "os": [("pipe, round trip", "us", ALIKE)],
    "network": [
        ("UDP that arrives", "Mb/s", (0.95, float("inf"))),
        ("UDP lost", "%", None),
        (f"UDP at {RATE} Mb/s that arrives", "Mb/s", (0.95, 1.05)),
        (f"UDP at {RATE} Mb/s lost", "%", None),
        ("UDP round trip", "us", ALIKE),
    ],
}


def unable(words, hint):
    print(f"field.py: {words}\nhint: {hint}", file=sys.stderr)
    sys.exit(2)


def said(*words, **more):
    """The stdout of a tool."""
    run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, **more)
    if run.returncode:
        unable(f"{' '.join(map(str, words))} failed: {(run.stderr or run.stdout).strip()[-400:]}", "run it by hand")
    return run.stdout


def number(pattern, text):
    found = re.search(pattern, text)
    if not found:
        unable(f"the output of a tool does not match {pattern}: {text[-400:]}", "its version may use another format: change the pattern in this script")
    return float(found.group(1))


def job(row, cpus, seconds, link=None):
    activity = {"id": 0, "cpus": cpus, "what": ["what=Measure", *row, "interval_ns=0", "priority=1", "policy=fifo"]}
    if link:
        activity["link"] = link
    return {
        "t": "job", "duration_ns": int(seconds * 1e9), "tick_ns": 10**9, "control": ["what=Nothing"], "no_side_effects": False,
        "housekeeping": ",".join(map(str, sorted(os.sched_getaffinity(0)))), "activities": [activity],
    }


class Session:
    """A probe with one job."""

    def __init__(self, words, message):
        self.probe = Probe(*words)
        self.probe.wait("facts")
        self.probe.say(message)
        self.probe.wait("ready")

    def go(self):
        self.probe.say({"t": "go"})

    def values(self):
        """The value of each item by its name; for a point of a curve by name and bytes."""
        last = {}
        for message in self.probe.messages():
            if message["t"] == "value":
                last[message["item"], (message.get("at") or {}).get("bytes")] = message["value"]
            if message["t"] == "done":
                if message["end"] != "complete":
                    unable(f"the probe ended early: {message.get('reason')}", "look at its reason")
                return last

    def stop(self):
        self.probe.say({"t": "stop"})
        self.probe.wait("done")

    def quit(self):
        self.probe.say({"t": "quit"})
        ended(self.probe.process)


def measured(words, row, cpus, seconds):
    session = Session(words, job(row, cpus, seconds))
    session.go()
    values = session.values()
    session.quit()
    return values


class Disturbed(Exception):
    """Every repeat of an item was disturbed: it has no value."""


def of(values, item, size=None):
    if (item, size) not in values:
        raise Disturbed(item)
    return values[item, size]


def tried(run):
    """The values of a run that other programs may disturb; tries up to three times."""
    for _ in range(3):
        try:
            return run()
        except Disturbed as gone:
            item = gone
    unable(f"the probe has no value of {item} in three runs", "other programs use the CPU: try again, or measure longer (--seconds)")


class Memory:
    def __init__(self, options, directory):
        self.options, self.chase = options, os.path.join(directory, "chase")
        said("cc", "-O2", "-o", self.chase, HERE / "chase.c")

    def ours(self):
        row = ["measure=memory", f"sizes={SIZES[0]}..{LARGEST}"]
        values = measured([self.options.probe], row, str(self.options.cpu), self.options.seconds)
        latencies = [of(values, "random latency, 4 KiB pages", size) for size in SIZES]
        # STREAM counts bytes read and bytes written.
        shared = of(values, "random latency, 4 KiB pages", SHARED)
        return [*latencies, shared, 2 * of(values, "memory copy bandwidth")]

    def theirs(self):
        on = ["taskset", "-c", str(self.options.cpu), *FIRST]
        each = str(int(self.options.seconds * 100))
        latencies = [float(said(*on, self.chase, str(size), each)) for size in SIZES]
        # Each of its three arrays is four times the given size of the cache: as much memory in all as ours. A run of a few
        # seconds prints no rate.
        cache = LARGEST // 12 >> 10
        told = said(
            *on, "stress-ng", "--stdout", "--stream", "1", "--stream-l3-size", f"{cache}K", "-t", str(max(6, int(self.options.seconds))), "--metrics",
            cwd=tempfile.gettempdir(),
        )
        rates = [number(rf"memory rate: .*?([\d.]+) MB {way}/sec", told) for way in ("read", "write")]
        shared = float(said(*on, self.chase, str(SHARED), each, "read"))
        return [*latencies, shared, sum(rates) * 1.048576]


class System:
    def __init__(self, options, _directory):
        self.options = options

    def ours(self):
        values = measured([self.options.probe], ["measure=os"], str(self.options.cpu), self.options.seconds)
        return [of(values, "pipe latency")]

    def theirs(self):
        loops = str(int(self.options.seconds * 10000))
        told = said("taskset", "-c", str(self.options.cpu), *FIRST, "perf", "bench", "sched", "pipe", "-l", loops)
        return [number(r"([\d.]+) usecs/op", told)]


class Network:
    def __init__(self, options, _directory):
        self.options = options
        self.ends = []
        try:
            for _ in (NEAR, FAR):
                # An unnamed namespace lives as long as its process, and the process as long as this script.
                words = ["setpriv", "--pdeathsig", "KILL", "unshare", "--net", "sh", "-c", "echo there; exec sleep infinity"]
                self.ends.append(subprocess.Popen(words, stdout=subprocess.PIPE, text=True))
                if self.ends[-1].stdout.readline() != "there\n":
                    unable("no network namespace could be made", "look at the error of unshare --net")
            far = str(self.ends[1].pid)
            said(*self.at(0), "ip", "link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns", far)
            for end, address in enumerate((NEAR, FAR)):
                said(*self.at(end), "ip", "address", "add", f"{address}/30", "dev", "eth0")
                said(*self.at(end), "ip", "link", "set", "eth0", "up")
        except BaseException:
            self.close()
            raise
        house = sorted(os.sched_getaffinity(0) - {options.cpu}) or [options.cpu]
        self.cpus = [str(options.cpu), str(house[0])]

    def close(self):
        for end in self.ends:
            end.kill()
            end.wait()

    def at(self, end):
        """Starts a command at one end."""
        return ["nsenter", f"--net=/proc/{self.ends[end].pid}/ns/net"]

    def within(self, end):
        """Starts a tool at one end, on its CPU."""
        return [*self.at(end), "taskset", "-c", self.cpus[end], *FIRST]

    def stream(self, rate):
        row = ["measure=network", *([f"rate={rate}"] if rate else [])]
        seconds = self.options.seconds
        links = [f"near {NEAR} {FAR} 5202 -", f"far {FAR} {NEAR} 5202 -"]
        begun = [[*self.at(end), self.options.probe] for end in (0, 1)]
        far = Session(begun[1], job(row, self.cpus[1], seconds + 10, links[1]))
        near = Session(begun[0], job(row, self.cpus[0], seconds, links[0]))
        far.go()
        near.go()
        values = near.values()
        near.quit()
        far.stop()
        far.quit()
        return values

    def ours(self):
        most, some = self.stream(None), self.stream(RATE)
        streams = [of(values, item) for values in (most, some) for item in ("TX throughput", "TX loss")]
        return [*streams, of(most, "round trip")]

    def iperf(self, rate):
        words = ["iperf3", "-s", "-1", "-p", "5203"]
        with subprocess.Popen([*self.within(1), *words], stdout=subprocess.DEVNULL) as server:
            try:
                time.sleep(0.5)
                seconds = str(max(1, int(self.options.seconds / 2)))
                told = said(
                    *self.within(0), "iperf3", "-c", FAR, "-p", "5203", "-u", "-b", f"{rate}M" if rate else "0", "-l", str(MESSAGE), "-t",
                    seconds, "-J",
                )
            finally:
                server.terminate()
        received = json.loads(told)["end"]["sum_received"]
        return [received["bits_per_second"] / 1e6, received["lost_percent"]]

    def sockperf(self):
        where = ["-i", FAR, "-p", "5204"]
        with subprocess.Popen([*self.within(1), "sockperf", "server", *where], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as server:
            try:
                time.sleep(0.5)
                seconds = str(max(1, int(self.options.seconds / 4)))
                told = said(*self.within(0), "sockperf", "ping-pong", *where, "-m", "64", "-t", seconds, "--full-rtt")
            finally:
                server.terminate()
        return number(r"avg-rtt=([\d.]+)", told)

    def theirs(self):
        return [*self.iperf(None), *self.iperf(RATE), self.sockperf()]


GROUPS = {"memory": Memory, "os": System, "network": Network}


def ratio(ours, theirs):
    """The ratio of two values; 1 if both are 0."""
    return ours / theirs if theirs else float(ours == theirs) or float("inf")


def compare(group, options, directory):
    """Measures and prints all pairs of a group and their ratios; whether no ratio is out of bounds."""
    bench, pairs = GROUPS[group](options, directory), []
    try:
        for pair in range(options.pairs):
            # The order alternates, so that neither always follows the other.
            order = ("theirs", "ours") if pair % 2 == 0 else ("ours", "theirs")
            runs = {who: tried(getattr(bench, who)) for who in order}
            pairs.append(runs)
            cells = [f"{theirs:.4g} | {ours:.4g}" for theirs, ours in zip(runs["theirs"], runs["ours"])]
            print(f"{group} {pair + 1:>2}  " + "  ".join(f"{cell:>17}" for cell in cells), flush=True)
    finally:
        getattr(bench, "close", lambda: None)()
    good = True
    for at, (name, unit, bounds) in enumerate(ROWS[group]):
        columns = [[runs[who][at] for runs in pairs] for who in ("theirs", "ours")]
        middles = " | ".join(f"{statistics.median(column):.4g}" for column in columns)
        if bounds:
            ratios = [ratio(ours, theirs) for theirs, ours in zip(*columns)]
            text, word = judged(ratios, bounds if len(pairs) >= DECIDING else None)
        else:
            text, word = "", "within"
        good = good and word != "out"
        print(f"{name:<28} {middles:>19} {unit:<5} {text}", flush=True)
    return good, pairs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", nargs="?", help="default: where `make` builds it")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--pairs", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=6)
    parser.add_argument("--only", default=",".join(GROUPS), help="groups, by commas")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", help="write all pairs there")
    options = parser.parse_args()
    if options.quick:
        options.pairs, options.seconds = 2, 3
    groups = options.only.split(",")
    if unknown := set(groups) - set(GROUPS):
        unable(f"unknown group {', '.join(sorted(unknown))}", f"use {', '.join(GROUPS)}")
    missing = [package for group in groups for program, package in NEEDS[group] if not shutil.which(program)]
    if missing:
        unable(f"not installed: {', '.join(missing)}", "run scripts/setup.sh bench")
    if os.geteuid():
        unable("FIFO and network namespaces need root", "run it as root")
    built = [path for path in candidates(os.uname().machine) if path.exists()]
    options.probe = options.probe or next(reversed(built), None)
    if not options.probe:
        unable("no probe was found", "name one, or run make build")
    options.probe = str(options.probe)
    # Ends through SystemExit, so that the setup is removed.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    print(f"CPU {options.cpu}, FIFO 1, {options.pairs} pairs; tool | probe, then the median ratio probe/tool [95 %]")
    good, all_pairs = True, {}
    with tempfile.TemporaryDirectory() as directory:
        for group in groups:
            went, all_pairs[group] = compare(group, options, directory)
            good = good and went
    if options.json:
        Path(options.json).write_text(json.dumps(all_pairs, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
