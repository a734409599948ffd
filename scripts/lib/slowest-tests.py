#!/usr/bin/env python3
"""Passes on what `cargo test` prints, and says at its end which tests took longest.

    cargo test 2>&1 | scripts/lib/slowest-tests.py [HOW MANY]

The time between two results is the later test's. So it is where tests run one at a time; of those that do not it is
what each adds to the whole. Other lines in between, such as "has been running for over 60 seconds", count for nothing.
"""
import re
import sys
import time

many = int(sys.argv[1]) if len(sys.argv) > 1 else 10
took, binary, name, last = [], "", "", time.monotonic()
for line in sys.stdin:
    sys.stdout.write(line)
    sys.stdout.flush()
    now = time.monotonic()
    if match := re.match(r"\s+Running (?:unittests )?(\S+)|\s+Doc-tests (\S+)", line):
        binary = match[1] or match[2]
    if match := re.match(r"test (\S+) \.\.\. ", line):
        name = match[1]
    # With one thread the name is printed first: what is said meanwhile stands between it and its result.
    result = re.match(r"(?:test \S+ \.\.\. .*\b)?(?:ok|FAILED)$", line.rstrip())
    if result and name:
        took.append((now - last, name, binary))
        name = ""
    # Building ends where the tests of a program begin.
    if result or re.match(r"running \d+ tests?$", line):
        last = now
if took:
    total = sum(seconds for seconds, _, _ in took)
    print(f"\nThe slowest of {len(took)} tests ({total:.0f} s in all):")
    for seconds, name, binary in sorted(took, reverse=True)[:many]:
        print(f"{seconds:7.1f} s  {binary}  {name}")
