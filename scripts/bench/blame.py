#!/usr/bin/env python3
"""What it costs to keep who had the CPU (`blame_above`): the probe with it and without it on this machine, in turn: same
CPU, FIFO 95, 200 us.

usage: blame.py [PROBE] [--cpu N] [--pairs N] [--seconds N]

Prints every pair and the median of the ratios with/without, with the interval that instrument.py gives it, of the CPU time
of all threads of the probe for a wake-up, and of its latencies. 3 % of CPU time is what a default could cost; it is asked
for, and not by itself. Exit: 1 where it costs more than 15 % (the whole interval), 2 where BPF is refused.
"""

import argparse
import importlib.util
import os
import sys
from pathlib import Path

GOAL = (0.0, 1.03)
LIMIT = (0.0, 1.15)
NEVER_NS = 10**12


def instrument():
    spec = importlib.util.spec_from_file_location("instrument", Path(__file__).parent / "instrument.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def main():
    own = instrument()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("probe", nargs="?", help="default: where `make` builds it")
    parser.add_argument("--cpu", type=int, default=max(os.sched_getaffinity(0)))
    parser.add_argument("--pairs", type=int, default=10)
    parser.add_argument("--seconds", type=int, default=5)
    options = parser.parse_args()
    path = options.probe or next((str(p) for p in reversed(own.candidates(os.uname().machine)) if p.exists()), None)
    if not path:
        sys.exit("no probe: `make build` makes it")
    if os.geteuid() != 0:
        print("blame: BPF at the kernel's tracepoints takes root\nhint: run it as root", file=sys.stderr)
        sys.exit(2)
    kinds = [("cpu", "CPU per wake-up"), ("average", "average"), ("maximum", "maximum")]
    print("pair  " + "  ".join(f"{name + ' (ns)':>19}" for _, name in kinds) + "   without | with")
    ratios = {key: [] for key, _ in kinds}
    for number in range(options.pairs):
        runs = {}
        for blamed in [False, True] if number % 2 == 0 else [True, False]:
            asked = {"blame_above": NEVER_NS} if blamed else {}
            runs[blamed] = own.probe(path, options.cpu, options.seconds, **asked)
        for key, _ in kinds:
            ratios[key].append(runs[True][key] / runs[False][key])
        cells = [f"{runs[False][key]:8.0f} | {runs[True][key]:<8.0f}" for key, _ in kinds]
        print(f"{number + 1:>4}  " + "  ".join(cells), flush=True)
    over = False
    for key, name in kinds:
        text, state = own.judged(ratios[key], LIMIT if key == "cpu" else None)
        over |= state == "out"
        print(f"{name:<18} with/without {text}")
    print("CPU per wake-up, 3 % as a default could cost:", own.judged(ratios["cpu"], GOAL)[0])
    sys.exit(1 if over else 0)


main()
