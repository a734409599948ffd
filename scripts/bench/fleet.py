#!/usr/bin/env python3
"""Measures a data set of many machines: how fast it collects bundles, its size, how fast it answers.

    scripts/bench/fleet.py [BUNDLES] [MACHINES] [DAYS]

Prints JSON. It measures one bundle here for 25 s and copies it for all machines. The data set is simulated
(crates/tactus-data/examples/simulated-fleet.rs).
"""
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release"
bundles, machines, days = (sys.argv[1:] + ["1000", "1000", "30"][len(sys.argv) - 1 :])[:3]


def run(*words, codes=(0, 1, 3)):
    begun = time.monotonic()
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True)
    if done.returncode not in codes:
        sys.exit(f"{words}: {done.stderr}")
    return time.monotonic() - begun, done.stdout


def size(directory):
    return sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())


run("cargo", "build", "--release", "-p", "tactus", "--manifest-path", ROOT / "Cargo.toml")
run("cargo", "build", "--release", "-p", "tactus-data", "--example", "simulated-fleet", "--manifest-path", ROOT / "Cargo.toml")
tactus, fleet = TARGET / "tactus", TARGET / "examples/simulated-fleet"
with tempfile.TemporaryDirectory() as place:
    place = Path(place)
    run(tactus, "measure", "-D", "25", "--out", place / "one")
    run(fleet, "bundles", place / "many", place / "one", bundles)
    first, _ = run(tactus, "fleet", "collect", place / "many", "--into", place / "collected")
    again, _ = run(tactus, "fleet", "collect", place / "many", "--into", place / "collected")
    run(fleet, "data", place / "data", machines, days)
    shown, _ = run(tactus, "fleet", "show", place / "data", "--max", "100us", "--json")
    _, asked = run(fleet, "ask", place / "data")
    tables = {path.name: size(path) for path in (place / "data").iterdir() if path.is_dir() and size(path)}
    print(json.dumps({
        "bundle_bytes": size(place / "one"),
        "bundles": int(bundles),
        "collected_per_s": round(int(bundles) / first),
        "again_s": round(again, 2),
        "table_bytes": tables,
        "all_questions_s": round(shown, 2),
        **json.loads(asked),
    }, indent=2))
