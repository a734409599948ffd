#!/usr/bin/env python3
"""Measures the cost of recording and watching a run on the housekeeping CPUs, for eight measuring CPUs.

    scripts/bench/watchers.py [SECONDS]

It simulates eight streams, of CPUs that wake every 200 us with a tick a second. They go through the code that reads, records,
draws (four pictures a second) and serves metrics (every five seconds). It prints the CPU time of all threads of the process, as a
share of one CPU. Limit: 1 %. Exit 1 if it is exceeded.
"""

import json
import os
import statistics
import subprocess
import sys

ROUNDS, LIMIT_PERCENT = 3, 1.0
TEST = ["cargo", "test", "--quiet", "--release", "-p", "tactus-run", "--lib", "--"]
NAME = "what_recording_and_watching_eight_cpus_costs"


def once(seconds):
    """The CPU time of one pass over `seconds`."""
    command = [*TEST, "--ignored", "--nocapture", "--test-threads=1", NAME]
    said = subprocess.run(command, env={**os.environ, "SECONDS": str(seconds)}, check=True, stdout=subprocess.PIPE)
    # The figures follow the test's name.
    lines = said.stdout.decode().splitlines()
    return next(json.loads(line[line.index("{") :]) for line in lines if '{"bytes"' in line)


def main():
    seconds = int(sys.argv[1]) if len(sys.argv) > 1 else 600
    rounds = [once(seconds) for _ in range(ROUNDS)]
    share = lambda key: statistics.median(100 * one[key] / 1e9 / one["seconds"] for one in rounds)
    kb = rounds[0]["bytes"] / 1e3 / seconds
    print(f"{rounds[0]['cpus']} CPUs every 200 us, {seconds} s, {kb:.0f} kB of frames a second, share of one CPU:")
    for name, value in [
        ("reading frames", share("reading_ns")),
        ("and recording", share("recording_thread_ns")),
        ("and a screen and metrics", share("process_ns")),
    ]:
        print(f"  {name:28}{value:6.2f} %")
    print(f"  {'limit':28}{LIMIT_PERCENT:6.2f} %")
    return int(share("process_ns") > LIMIT_PERCENT)


if __name__ == "__main__":
    sys.exit(main())
