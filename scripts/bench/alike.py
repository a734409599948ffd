#!/usr/bin/env python3
"""Counts false degradations: compares the host with itself, and with a container that costs nothing.

usage: alike.py [TACTUS] [--repeats N] [--seconds N] [--second KIND] [--only host|container] [--before WORDS] [--json FILE]

Each repeat is a whole run of a plan: `os` and `cpu` in two equal places, seven rounds in random order. A table is false if
the report calls a value a degradation. In a comparison of the host with itself, a table is also false if the report calls a
value better. A container can be better, because its processes have less to copy in a fork. A table is right with 95 %, so
one in twenty may be false. The limit is the number that chance exceeds in fewer than one of a hundred cases (binomial).

Exit: 0 within the limit, 1 above it, 2 something is missing.
"""

import argparse
import json
import math
import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROUNDS = 7
ERROR = 0.05


def plan(second, seconds):
    text = f'name = "alike"\n[defaults]\nduration = "{seconds}s"\nrepeat = {ROUNDS}\n'
    for name, kind in (("first", "host"), ("second", second)):
        text += f'[environment.{name}]\nkind = "{kind}"\n'
        for measurement in ("os", "cpu"):
            text += f'[[scenario]]\nname = "{name}, {measurement}"\nenvironment = "{name}"\nmeasurement = "{measurement}"\n'
    return text


def table(options, second, directory):
    """The degradations that the report of a run announces, and its number of judged items."""
    (Path(directory) / "plan.toml").write_text(plan(second, options.seconds))
    words = [*shlex.split(options.before), options.tactus, "run", str(Path(directory) / "plan.toml"), "--out", str(Path(directory) / "bundle"), "--json"]
    run = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if run.returncode not in (0, 3):
        sys.stderr.write(f"alike.py: {' '.join(words)} ended with status {run.returncode}: {run.stderr.strip()[-600:]}\n")
        sys.exit(2)
    document = json.loads(run.stdout)
    missing = [row for row in document["scenarios"] if row["status"] != "measured"]
    judged = [entry for entry in document["degradations"] if entry["degradation"]["rounds"] == ROUNDS]
    if missing or not judged:
        sys.stderr.write(f"alike.py: not every row was measured: {[row.get('reason') for row in missing][:2]}\n")
        sys.exit(2)
    return {
        "items": len(judged),
        "seen": [
            {key: entry[key] for key in ("item", "at", "degradation")} | {"with": entry["with"]["environment"]}
            for entry in judged if entry["degradation"]["seen"]
        ],
    }


def most(repeats):
    """The most false tables among `repeats` that chance makes in 99 of a hundred cases."""
    chance, wrong = 0.0, 0
    while True:
        chance += math.comb(repeats, wrong) * ERROR**wrong * (1 - ERROR) ** (repeats - wrong)
        if chance >= 0.99:
            return wrong
        wrong += 1


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tactus", nargs="?", default="target/release/tactus")
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=1, help="of each measurement")
    parser.add_argument("--second", default="oci", help="the kind of the container")
    parser.add_argument("--only", choices=("host", "container"))
    parser.add_argument("--before", default="", help="a command in front of each run, such as `flock FILE`")
    parser.add_argument("--json")
    options = parser.parse_args()
    good, all_tables = True, {}
    print(f"load: {' '.join(f'{load:.1f}' for load in os.getloadavg())}; {ROUNDS} rounds of {options.seconds} s for each of two measurements in two places")
    seconds = {"host": "host", "container": options.second}
    for name, second in seconds.items():
        if options.only and name != options.only:
            continue
        tables = all_tables[name] = []
        for repeat in range(options.repeats):
            with tempfile.TemporaryDirectory(prefix="tactus-alike-") as directory:
                tables.append(table(options, second, directory))
            seen = "; ".join(f"{one['item']} in {one['with']}: {one['degradation']['value']:+.1%}" for one in tables[-1]["seen"])
            print(f"host against {second}, {repeat + 1:>2}: {tables[-1]['items']} items, {seen or 'nothing'}", flush=True)
        # The order of the first round decides which of the two hosts is the base of the comparison.
        is_false = lambda one: any(name == "host" or entry["degradation"]["value"] > 0 for entry in one["seen"])
        wrong, allowed = sum(map(is_false, tables)), most(options.repeats)
        good = good and wrong <= allowed
        word = "within" if wrong <= allowed else "OVER"
        print(f"host against {second}: {wrong} of {options.repeats} tables are false, {word} the {allowed} that chance allows", flush=True)
        if options.json:
            Path(options.json).write_text(json.dumps(all_tables, indent=1))
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
