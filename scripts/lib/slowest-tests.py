#!/usr/bin/env python3
"""Passes on the output of `cargo test`, and then prints the slowest tests.

    cargo test 2>&1 | scripts/lib/slowest-tests.py [HOW MANY]

The time between two results counts for the later test. If tests run one at a time, that is its duration; otherwise it is
the time that it adds to the total. Other lines, such as "has been running for over 60 seconds", are ignored.

If no test ends for five minutes, it prints the processes, which show where a test hangs.
"""
import re
import subprocess
import sys
import threading
import time

SILENCE_S = 300


def processes():
    """Prints every user process: number, parent, state, kernel function in which it waits, age in s, command."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid,stat,wchan:24,etimes,args"], capture_output=True, text=True, check=False)
    rows = [row[:200] for row in listed.stdout.splitlines() if not row.endswith("]")]
    print("\n".join([f"\nno test has ended for {SILENCE_S} s:", *rows]), flush=True)


def watchdog():
    """A timer that prints the processes unless it is cancelled in time."""
    timer = threading.Timer(SILENCE_S, processes)
    timer.daemon = True
    timer.start()
    return timer


many = int(sys.argv[1]) if len(sys.argv) > 1 else 10
took, binary, name, last = [], "", "", time.monotonic()
timer = watchdog()
for line in sys.stdin:
    timer.cancel()
    timer = watchdog()
    sys.stdout.write(line)
    sys.stdout.flush()
    now = time.monotonic()
    if match := re.match(r"\s+Running (?:unittests )?(\S+)|\s+Doc-tests (\S+)", line):
        binary = match[1] or match[2]
    if match := re.match(r"test (\S+) \.\.\. ", line):
        name = match[1]
    # With one thread the name is printed first: other output may stand between it and its result.
    result = re.match(r"(?:test \S+ \.\.\. .*\b)?(?:ok|FAILED)$", line.rstrip())
    if result and name:
        took.append((now - last, name, binary))
        name = ""
    # The build ends where the tests of a program begin.
    if result or re.match(r"running \d+ tests?$", line):
        last = now
timer.cancel()
if took:
    total = sum(seconds for seconds, _, _ in took)
    print(f"\nThe slowest of {len(took)} tests ({total:.0f} s in all):")
    for seconds, name, binary in sorted(took, reverse=True)[:many]:
        print(f"{seconds:7.1f} s  {binary}  {name}")
