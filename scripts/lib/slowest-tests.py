#!/usr/bin/env python3
"""Passes on what `cargo test` prints, and says at its end which tests took longest.

    cargo test 2>&1 | scripts/lib/slowest-tests.py [HOW MANY]

The time between two lines is the later test's. So it is where tests run one at a time; of those that do not it is
what each adds to the whole.
"""
import re
import sys
import time

many = int(sys.argv[1]) if len(sys.argv) > 1 else 10
took, binary, last = [], "", time.monotonic()
for line in sys.stdin:
    sys.stdout.write(line)
    sys.stdout.flush()
    now = time.monotonic()
    if match := re.match(r"\s+Running (?:unittests )?(\S+)|\s+Doc-tests (\S+)", line):
        binary = match[1] or match[2]
    if match := re.match(r"test (\S+) .*\b(ok|FAILED)$", line.rstrip()):
        took.append((now - last, match[1], binary))
    last = now
if took:
    total = sum(seconds for seconds, _, _ in took)
    print(f"\nThe slowest of {len(took)} tests ({total:.0f} s in all):")
    for seconds, name, binary in sorted(took, reverse=True)[:many]:
        print(f"{seconds:7.1f} s  {binary}  {name}")
