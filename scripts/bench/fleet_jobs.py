#!/usr/bin/env python3
"""Measures the time that tactus itself needs for each machine of a fleet.

    scripts/bench/fleet_jobs.py TACTUS [MACHINES]

Scripts replace Slurm: sinfo lists the machines, sbatch puts a finished bundle where the job would leave it, squeue reports
every job as ended. It prints the time of `tactus fleet run` for each machine, without the time of these scripts, which are
run again alone. It also prints the time of the repeated command, which only verifies every bundle. It has no limit.
"""
import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PLAN = 'name = "bench"\n[environment.host]\nkind = "host"\n[[scenario]]\nname = "idle"\nenvironment = "host"\nmeasurement = "timer"\nduration = "1s"\n'
SBATCH = """#!/bin/sh
# sbatch --parsable FLEET/objects/NAME.sh
script=${2##*/}
key=${script%.sh}
id=${key#n}
fleet=${2%/objects/*}
cp -r BUNDLE "$fleet/incoming/$key"
sed "s/MACHINE/$key/" BUNDLE/manifest.json >"$fleet/incoming/$key/manifest.json"
sed -n "s/^#SBATCH --job-name=/$id|/; s/$/|COMPLETED|None/; /^$id|/p" "$2" >>"$fleet.jobs"
echo "$id"
"""


def program(path, text):
    path.write_text(text)
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def timed(command, env):
    began = time.monotonic()
    done = subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return time.monotonic() - began, done


def main():
    tactus, machines = Path(sys.argv[1]).resolve(), int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    home = Path(tempfile.mkdtemp(prefix="tactus-bench-fleet-"))
    try:
        (home / "plan.toml").write_text(PLAN)
        env = {**os.environ, "PATH": f"{home}/bin:{os.environ['PATH']}", "TACTUS_LOCK": "bench-fleet", "TACTUS_MACHINE": "MACHINE"}
        run = [tactus, "run", home / "plan.toml", "--out", home / "bundle"]
        subprocess.run(run, env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        assert json.loads((home / "bundle/manifest.json").read_text())["machine"]["name"] == "MACHINE"
        (home / "bin").mkdir()
        names = "\n".join(f"n{n}|idle|rt|none" for n in range(1, machines + 1))
        program(home / "bin/sinfo", f"#!/bin/sh\ncat <<'E'\n{names}\nE\n")
        program(home / "bin/sbatch", SBATCH.replace("BUNDLE", f"{home}/bundle"))
        program(home / "bin/squeue", f"#!/bin/sh\ncat {home}/fleet.jobs 2>/dev/null || true\n")
        fleet = [tactus, "fleet", "run", home / "plan.toml", "--on", "slurm", "--select", "all", "--out", home / "fleet"]
        fleet += ["--wave", str(machines), "--every", "10ms"]
        whole, done = timed(fleet, env)
        assert done.returncode == 0, done.stderr
        again, done = timed(fleet, env)
        assert done.returncode == 0, done.stderr
        # The engine's share: the same calls alone, into another directory.
        alone = home / "alone"
        (alone / "incoming").mkdir(parents=True)
        shutil.copytree(home / "fleet/objects", alone / "objects")
        engine = sum(timed([home / "bin/sbatch", "--parsable", script], env)[0] for script in (alone / "objects").iterdir())
        size = sum(file.stat().st_size for file in (home / "bundle").rglob("*") if file.is_file())
        own = (whole - engine) / machines * 1e3
        print(f"{machines} machines, bundles of {size // 1000} kB: {whole:.1f} s in all, {engine:.1f} s of it in the stand-in for the engine")
        print(f"tactus itself: {own:.1f} ms for each machine; repeated, to verify all bundles: {again / machines * 1e3:.1f} ms")
    finally:
        shutil.rmtree(home)


main()
