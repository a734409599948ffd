"""Measures the cost of an audit: of a recorded host with 128 CPUs (limit 50 ms), and of this machine in CPU time
(limit 200 ms for tactus and its probe together)."""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

TACTUS = os.path.abspath(sys.argv[1])
RECORDED_MS = 50
CPU_MS = 200
ROUNDS = 7


def cpu_ms():
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return (usage.ru_utime + usage.ru_stime) * 1e3


def main():
    example = ["cargo", "run", "--quiet", "--release", "-p", "tactus-audit", "--example", "audit-speed", "--"]
    recorded = json.loads(
        subprocess.check_output([*example, "crates/tactus-audit/tests/machines/host-128.json.gz"])
    )
    times = []
    for _ in range(ROUNDS):
        before = cpu_ms()
        subprocess.run([TACTUS, "audit", "--json", "--fail-on", "never"], stdout=subprocess.DEVNULL, check=True)
        times.append(cpu_ms() - before)
        time.sleep(0.1)
    own = statistics.median(times)
    print(f"{'audit':<44} {'median':>9} {'limit':>9}")
    print(f"{'recorded host, 128 CPUs, ' + str(recorded['readings']) + ' readings':<44} {recorded['median_ms']:>6.1f} ms {RECORDED_MS:>6} ms")
    print(f"{'this machine, CPU time, two readings':<44} {own:>6.1f} ms {CPU_MS:>6} ms")
    return int(recorded["median_ms"] > RECORDED_MS or own > CPU_MS)


sys.exit(main())
