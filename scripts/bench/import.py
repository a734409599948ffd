"""Measures speed and memory of the import of cyclictest's text: a stream of -v and a histogram of 64 CPUs, a GB each
(limits: 150 MB per second of CPU time, 128 MB of memory).

usage: import.py TACTUS [--mb N]"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

LEAST_MB_S = 150
MOST_MB = 128
# The limit of the program's address space: a program that reads the whole file into memory fails.
ROOM = 1 << 30
THREADS = 4
CPUS = 64


def stream(out, size):
    """Values of four threads in turn, with consecutive numbers."""
    values = [2 + (n * 7919) % 13 + 40 * (n % 997 == 0) for n in range(4096)]
    out.write("# /dev/cpu_dma_latency set to 0us\n")
    number = 0
    while out.tell() < size:
        numbers = range(number, number + 50_000)
        out.write("".join(f"{t:8d}:{n:8d}:{values[(n * THREADS + t) & 4095]:8d}\n" for n in numbers for t in range(THREADS)))
        number += 50_000


def histogram(out, size):
    """Rows of 64 CPUs, most of them zero."""
    rows = [[(value * 7 + cpu) % 5 if (value + cpu) % 3 == 0 else 0 for cpu in range(CPUS)] for value in range(15)]
    texts = ["\t".join(f"{count:06d}" for count in row) for row in rows]
    out.write("# Histogram\n")
    value = 0
    while out.tell() < size:
        out.write("".join(f"{at:06d} {texts[at % 15]}\n" for at in range(value, value + 1_500)))
        value += 1_500
    totals = [value // 15 * sum(column) for column in zip(*rows)]
    for name, figures in [
        ("Total", [f"{total:09d}" for total in totals]),
        ("Min Latencies", ["00000"] * CPUS),
        ("Avg Latencies", [f"{value // 2:05d}"] * CPUS),
        ("Max Latencies", [f"{value - 1:05d}"] * CPUS),
        ("Histogram Overflows", ["00000"] * CPUS),
    ]:
        out.write(f"# {name}: {' '.join(figures)}\n")


def imported(tactus, path, directory):
    """CPU seconds and peak memory in MB."""

    def confined():
        resource.setrlimit(resource.RLIMIT_AS, (ROOM, ROOM))

    words = [tactus, "convert", str(path), "--out", str(directory / (path.name + ".bundle"))]
    child = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, preexec_fn=confined)
    said = child.stderr.read().decode()
    _, status, usage = os.wait4(child.pid, 0)
    if status:
        sys.exit(f"import.py: tactus convert failed: {said}")
    return usage.ru_utime + usage.ru_stime, usage.ru_maxrss / 1024


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("tactus")
    parser.add_argument("--mb", type=int, default=1000)
    asked = parser.parse_args()
    over = False
    print(f"{'import':<28} {'size':>9} {'CPU':>8} {'MB/s':>7} {'limit':>7} {'memory':>9} {'limit':>7}")
    with tempfile.TemporaryDirectory() as directory:
        directory = Path(directory)
        for name, make in [("cyclictest -v", stream), ("cyclictest -h, 64 CPUs", histogram)]:
            path = directory / "run.txt"
            with path.open("w") as out:
                make(out, asked.mb * 1_000_000)
            size = path.stat().st_size / 1e6
            seconds, memory = imported(os.path.abspath(asked.tactus), path, directory)
            print(f"{name:<28} {size:>6.0f} MB {seconds:>6.2f} s {size / seconds:>7.0f} {LEAST_MB_S:>7} {memory:>6.1f} MB {MOST_MB:>4} MB")
            over |= size / seconds < LEAST_MB_S or memory > MOST_MB
            path.unlink()
            subprocess.run(["rm", "-r", str(directory / "run.txt.bundle")], check=True)
    return int(over)


sys.exit(main())
