#!/usr/bin/env python3
"""Kills runs at random moments, and looks for leftovers: [--trials N] [--seed N] [--guest] TACTUS.

Each trial starts a run on this machine, in a container or in a virtual machine. It kills the command, its guardian, both,
the probe, QEMU or conmon, or stops the probe. Afterwards nothing of the run may be left, every setting must be as
before, and the bundle must open. Then it tests full and read-only disks, and outputs that are closed or that nothing reads.
With --guest it applies and reverts a profile in an emulated machine, cuts the power among the writes of both, and boots the
machine again. The same seed repeats the same trials.

As root, alone on the machine. Exit: 0 if everything held.
"""

import argparse
import pathlib
import random
import shutil
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent / "crash"))
import endings  # noqa: E402
import runs  # noqa: E402


def usable(tactus):
    """The kinds of environment that are usable here."""
    import json
    import subprocess
    said = subprocess.run([tactus, "environments", "--json"], capture_output=True, text=True, check=True).stdout
    found = {entry["kind"] for entry in json.loads(said) if entry["usable"]}
    for kind in runs.TARGETS:
        if kind not in found:
            print(f"  {kind} is not usable here: skipped")
    return [kind for kind in runs.TARGETS if kind in found]


def trial(tactus, cache, kind, target, moment):
    """One run and its end; returns the error, if any, and the result in a few words."""
    with tempfile.TemporaryDirectory(prefix="tactus-crash-") as place:
        run = runs.Run(tactus, cache, pathlib.Path(place), kind)
        try:
            hit = run.kill(target, moment)
            if not hit:
                said = run.words()
                # A target that never starts cannot be killed: such a trial shows nothing, however often it is repeated.
                skipped = f"the run was skipped: {said}" if "skipped:" in said else None
                return skipped, f"{target} never started: {said[-500:]}"
            return None, f"ended with {run.check(tactus, target)}"
        except runs.Wrong as wrong:
            return f"{wrong}", "WRONG"
        finally:
            run.end()


def trials(tactus, cache, number, chance):
    """Runs all trials; returns the counts by target, and the errors."""
    kinds = usable(tactus)
    # Each target at least once, the rest at random; guests take longest and are rarest.
    turns = [(kind, target) for kind in kinds for target in runs.TARGETS[kind]]
    chance.shuffle(turns)
    if number < len(turns):
        # With few trials choose quick ones: a guest, and a stopped probe, take half a minute.
        turns.sort(key=lambda turn: turn[0] == "qemu" or turn[1] == "stopped probe")
    weights = {"host": 5, "podman": 4, "qemu": 1}
    while len(turns) < number:
        kind = chance.choices(kinds, [weights[kind] for kind in kinds])[0]
        turns.append((kind, chance.choice(runs.TARGETS[kind])))
    wrong, missed, figures = [], 0, {}
    for turn, (kind, target) in enumerate(turns[:number]):
        moment = chance.uniform(0, runs.MOMENTS[kind])
        began = time.monotonic()
        failed, words = trial(tactus, cache, kind, target, moment)
        missed += "never came" in words
        figures[kind, target] = figures.get((kind, target), 0) + 1
        print(f"  {turn + 1:3} {kind}: {target} at {moment:.2f} s: {words} ({time.monotonic() - began:.1f} s)", flush=True)
        if failed:
            wrong.append(f"trial {turn + 1}, {kind}, {target} at {moment:.2f} s: {failed}")
    for (kind, target), count in sorted(figures.items()):
        print(f"  {kind}: {target}: {count}")
    print(f"  {sum(figures.values())} trials, {missed} without a process to kill, {len(wrong)} wrong")
    return wrong


def main():
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("tactus")
    options.add_argument("--trials", type=int, default=100)
    options.add_argument("--seed", type=int, default=None)
    options.add_argument("--guest", action="store_true")
    given = options.parse_args()
    seed = given.seed if given.seed is not None else random.randrange(1 << 32)
    print(f"seed {seed}")
    tactus = str(pathlib.Path(given.tactus).resolve())
    cache = pathlib.Path(tempfile.mkdtemp(prefix="tactus-crash-cache-"))
    try:
        # A private directory for its records of runs. tactus refuses a link as directory of kernels, but accepts links in it.
        (cache / "kernels").mkdir()
        kernels = pathlib.Path("/var/cache/tactus/kernels")
        for kernel in kernels.iterdir() if kernels.is_dir() else []:
            (cache / "kernels" / kernel.name).symlink_to(kernel)
        wrong = trials(tactus, cache, given.trials, random.Random(seed))
        wrong += endings.all_of(tactus, cache)
        if given.guest:
            import reboot
            wrong += reboot.all_of(tactus, random.Random(seed))
    finally:
        shutil.rmtree(cache)
    for words in wrong:
        print(f"WRONG: {words}")
    sys.exit(1 if wrong else 0)


main()
