#!/usr/bin/env python3
"""What recording and watching a run costs on the housekeeping CPUs, at eight measuring CPUs.

    scripts/bench/watchers.py [SECONDS]

Eight made-up streams as those of eight CPUs that wake every 200 us, a tick a second, go through what reads, records, keeps,
draws (four pictures a second) and answers (metrics every five seconds). The CPU time of all threads of the process, as a
share of one CPU. Limit: 1 %. Exit 1 when it is exceeded.
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
    """What one pass over so many seconds took."""
    command = [*TEST, "--ignored", "--nocapture", "--test-threads=1", NAME]
    said = subprocess.run(command, env={**os.environ, "SECONDS": str(seconds)}, check=True, stdout=subprocess.PIPE)
    # It stands behind the test's name.
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
