#!/usr/bin/env python3
"""Measures the overhead of a run: wall time minus measured time, per scenario.

    scripts/bench/overhead.py [TACTUS] [ARGUMENTS of `tactus run`, default --quick]

Limits: 3 s per scenario on the host or in a container, 6 s per scenario in a guest (emulated guests
boot slowest). For the whole command: 5 s per environment in addition to the measured time. Exit 1 if a limit is
exceeded.
"""

import json
import pathlib
import subprocess
import sys
import tempfile
import time

LIMIT_S = {"qemu": 6.0}
LIMIT_ELSE_S = 3.0
LIMIT_ENVIRONMENT_S = 5.0


def main():
    tactus = sys.argv[1] if len(sys.argv) > 1 else "target/release/tactus"
    arguments = sys.argv[2:] or ["--quick"]
    with tempfile.TemporaryDirectory(prefix="tactus-overhead-") as scratch:
        bundle = pathlib.Path(scratch) / "bundle"
        began = time.time()
        run = subprocess.run(
            [tactus, "run", *arguments, "--json", "--out", bundle],
            stdin=subprocess.DEVNULL, capture_output=True, text=True,
        )
        wall_s = time.time() - began
        if run.returncode not in (0, 3):
            sys.exit(f"tactus run ended with {run.returncode}\n{run.stderr}")
        document = json.loads(run.stdout)
        events = [json.loads(line) for line in (bundle / "events.jsonl").read_text().splitlines()]
    return report(document["scenarios"], events, began, wall_s)


def report(scenarios, events, began, wall_s):
    # A row is a scenario at one go, or one of its slices.
    named = {event["row"]: (event["name"], event["environment"]) for event in events if event["event"] == "row_started"}
    known = {(scenario["name"], scenario["environment"]): scenario for scenario in scenarios}
    before_ms, over, measured_sum, environments = began * 1000, False, 0.0, set()
    walls, measureds = {}, {}
    for event in (event for event in events if event["event"] == "row_finished" and event["row"] in named):
        key = named[event["row"]]
        walls[key] = walls.get(key, 0.0) + (event["at_ms"] - before_ms) / 1000
        measureds[key] = measureds.get(key, 0.0) + event["measured_ns"] / 1e9
        before_ms = event["at_ms"]
    print(f"{'scenario':32}{'evidence':14}{'wall s':>9}{'measured s':>12}{'overhead s':>12}{'limit s':>9}")
    for key, scenario in known.items():
        if scenario["status"] != "measured":
            print(f"{scenario['name'][:31]:32}{scenario['status']}: {scenario['reason']}")
            continue
        wall, measured = walls[key], measureds[key]
        measured_sum += measured
        environments.add(scenario["environment"])
        limit = LIMIT_S.get(scenario["kind"], LIMIT_ELSE_S)
        late = wall - measured > limit
        over |= late
        print(
            f"{scenario['name'][:31]:32}{scenario['evidence']:14}{wall:9.2f}{measured:12.2f}"
            f"{wall - measured:12.2f}{limit:9.1f}{'  TOO LONG' if late else ''}"
        )
    print(f"{'after the last (report)':46}{wall_s - (before_ms / 1000 - began):9.2f}")
    limit = LIMIT_ENVIRONMENT_S * len(environments)
    late = wall_s - measured_sum > limit
    print(
        f"{'from the command to its answer':46}{wall_s:9.2f}{measured_sum:12.2f}{wall_s - measured_sum:12.2f}"
        f"{limit:9.1f}{'  TOO LONG' if late else ''}"
    )
    return 1 if over or late else 0


if __name__ == "__main__":
    sys.exit(main())
