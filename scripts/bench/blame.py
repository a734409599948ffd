#!/usr/bin/env python3
"""Measures the cost of recording what had the CPU (`blame_above`): runs the probe with and without it in turn, on the same
CPU of this machine (FIFO 95, 200 us).

usage: blame.py [PROBE] [--cpu N] [--pairs N] [--seconds N]

Prints every pair, and the median of the ratios with/without with its interval (as in instrument.py). The ratios are those of
the latencies, and of the CPU time per wake-up of all threads of the probe. A default could cost 3 % of CPU time; `blame_above` is
opt-in. Exit: 1 if it costs more than 15 % (the whole interval), 2 if the kernel refuses BPF.
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
        sys.exit("blame: no probe was found\nhint: run make build")
    if os.geteuid() != 0:
        print("blame: BPF at the kernel's tracepoints needs root\nhint: run it as root", file=sys.stderr)
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
    print("CPU per wake-up, against the 3 % that a default could cost:", own.judged(ratios["cpu"], GOAL)[0])
    sys.exit(1 if over else 0)


main()
