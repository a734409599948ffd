#!/usr/bin/env python3
"""Measures the cost of a long run's bundle: its size on disk, and time and memory to read, analyse and render it.

    scripts/bench/long-run.py [TACTUS] [HOURS ...]

Eight CPUs, a tick a second; the latencies are simulated and written by the writer of real runs. Limits, for 24 hours:
60 MB on disk; 2 s and 200 MB for each way to show it. Exit 1 if one is exceeded.
"""

import json
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

CPUS, ROUNDS = 8, 3
LIMIT_HOURS, LIMIT_MB, LIMIT_S, LIMIT_PEAK_MB = 24, 60, 2.0, 200
WAYS = [["report", "--json"], ["report"], ["report", "--format", "html", "--out", "-"]]


def once(command):
    """Seconds, and peak memory in MB."""
    began = time.monotonic()
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit(f"{command} ended with {process.returncode}")
    return time.monotonic() - began, usage.ru_maxrss * 1024 / 1e6


def main():
    tactus = os.path.abspath(sys.argv[1] if len(sys.argv) > 1 else "target/release/tactus")
    lengths = [int(word) for word in sys.argv[2:]] or [1, 4, 24, 96]
    example = ["cargo", "run", "--quiet", "--release", "-p", "tactus-bundle", "--example", "simulated-run", "--"]
    names = [" ".join(["report", "html"] if "html" in way else way) for way in WAYS]
    print(f"{'hours':>6}{'on disk':>11}{'recorded in':>13}" + "".join(f"{name:>22}" for name in names))
    over = False
    # In memory: this measures the program, not the disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    for hours in lengths:
        with tempfile.TemporaryDirectory(prefix="tactus-long-run-", dir=memory) as scratch:
            bundle = os.path.join(scratch, "bundle")
            written = json.loads(subprocess.check_output([*example, bundle, str(hours), str(CPUS)]))
            disk = sum(file.stat().st_size for file in pathlib.Path(bundle).rglob("*") if file.is_file()) / 1e6
            cells = []
            for way in WAYS:
                runs = [once([tactus, way[0], bundle, *way[1:]]) for _ in range(ROUNDS)]
                seconds, peak = statistics.median(run[0] for run in runs), max(run[1] for run in runs)
                cells.append(f"{seconds:>12.2f} s {peak:>5.0f} MB")
                over |= hours == LIMIT_HOURS and (seconds > LIMIT_S or peak > LIMIT_PEAK_MB)
            over |= hours == LIMIT_HOURS and disk > LIMIT_MB
        print(f"{hours:>6}{disk:>8.1f} MB{written['peak_kib'] * 1024 / 1e6:>10.1f} MB" + "".join(cells))
    limits = f"{LIMIT_S:>12.2f} s {LIMIT_PEAK_MB:>5} MB"
    print(f"limits, {LIMIT_HOURS} h{LIMIT_MB:>5.1f} MB{'':13}" + len(WAYS) * limits)
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
