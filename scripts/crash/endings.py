"""Tests full and read-only disks, and terminals that are gone."""

import json
import os
import pathlib
import subprocess
import tempfile
import time

import left

RUN = ["run", "--only", "host idle", "--duration", "2s"]


def run(tactus, cache, words, **streams):
    """Runs the command to its end: its exit code, and its output if that is captured."""
    environ = dict(os.environ, TACTUS_CACHE_DIR=str(cache))
    given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **streams}
    done = subprocess.run([tactus, *words], env=environ, timeout=120, **given)
    return done.returncode, (done.stderr or b"").decode(errors="replace")


def opens(tactus, bundle):
    """The end of a run, from its bundle, which must open."""
    shown = subprocess.run([tactus, "report", bundle, "--json", "--damaged"], capture_output=True, text=True)
    return json.loads(shown.stdout)["status"] if shown.returncode == 0 else f"does not open: {shown.stderr}"


def mounted(place, options):
    """Makes a small file system in memory."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", place], check=True)


def disks(tactus, cache, place):
    """Tests a full disk, and a read-only disk."""
    wrong = []
    mounted(place, "size=64k")
    try:
        code, said = run(tactus, cache, [*RUN[:-1], "20s", "--out", place / "bundle"])
        if code != 2 or "No space left" not in said:
            wrong.append(f"a full disk: {code}: {said}")
        if (status := opens(tactus, place / "bundle")) != "interrupted":
            wrong.append(f"a full disk: the bundle {status}")
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        code, said = run(tactus, cache, [*RUN, "--out", place / "other"])
        if code != 2 or "Read-only" not in said:
            wrong.append(f"a read-only disk: {code}: {said}")
    finally:
        subprocess.run(["umount", place], check=True)
    return wrong


def fills(tactus, cache, place):
    """A disk fills during a measurement: everything is counted, and the run says what is not recorded."""
    mounted(place, "size=6m")
    try:
        words = [tactus, *RUN[:-1], "8s", "--out", place / "bundle"]
        environ = dict(os.environ, TACTUS_CACHE_DIR=str(cache))
        given = {"stdin": subprocess.DEVNULL, "stdout": subprocess.DEVNULL, "stderr": subprocess.PIPE, "text": True}
        with subprocess.Popen(words, env=environ, **given) as going:
            ticks = place / "bundle/scenarios/01-host-idle/ticks.csv"
            while going.poll() is None and not (ticks.exists() and ticks.stat().st_size > 200):
                time.sleep(0.02)
            size = 4 << 20
            while size:
                try:
                    (place / f"filled-{size}").write_bytes(b"1" * size)
                except OSError:
                    (place / f"filled-{size}").unlink(missing_ok=True)
                size //= 2
            _, said = going.communicate(timeout=120)
        status = opens(tactus, place / "bundle")
        print(f"  a disk that fills: ended with {going.returncode}, the bundle is {status}")
        good = going.returncode in (0, 1, 3) and status == "complete" and "full" in said
        return [] if good else [f"a disk that fills: {going.returncode}, the bundle {status}: {said}"]
    finally:
        subprocess.run(["umount", place], check=True)


def streams(tactus, cache, place):
    """Tests stdout and stderr that are full, closed, or a pipe without a reader."""
    wrong = []
    usual, _ = run(tactus, cache, [*RUN, "--out", place / "usual"])
    for name in ["stdout", "stderr"]:
        for how in ["full", "closed", "unheard"]:
            bundle = place / f"{name}-{how}"
            if how == "full":
                stream = os.open("/dev/full", os.O_WRONLY)
            else:
                reader, stream = os.pipe()
                os.close(reader)
            # Closed: the descriptor does not exist.
            number = {"stdout": 1, "stderr": 2}[name]
            closing = (lambda: os.close(number)) if how == "closed" else None
            code, _ = run(tactus, cache, [*RUN, "--out", bundle], preexec_fn=closing, **{name: stream})
            os.close(stream)
            # Data that cannot be written is an error; a reader that closes the pipe is not.
            right = [2] if (name, how) == ("stdout", "full") else [usual] if name == "stderr" else [usual, 0]
            status = opens(tactus, bundle)
            print(f"  {name} {how}: ended with {code}, the bundle is {status}")
            if code not in right or status != "complete":
                wrong.append(f"{name} {how}: ended with {code} (expected: {right}), the bundle: {status}")
    return wrong


def all_of(tactus, cache):
    """Runs all tests; returns the errors."""
    before = left.settings()
    with tempfile.TemporaryDirectory(prefix="tactus-crash-") as place:
        place = pathlib.Path(place)
        (place / "disk").mkdir()
        wrong = disks(tactus, cache, place / "disk") + fills(tactus, cache, place / "disk") + streams(tactus, cache, place)
    if list((cache / "run").glob("*.jsonl")):
        wrong.append("journals are left")
    if left.settings() != before:
        wrong.append("settings are not as before")
    return wrong
