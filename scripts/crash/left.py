"""Finds the leftovers of a run on the machine, and the settings that it changed."""

import os
import pathlib
import re
import subprocess
import time

TRACING = pathlib.Path("/sys/kernel/tracing")
# Settings that scenarios make for their time, that tuning makes, and that the fault `block` changes in the kernel's tracers.
SETTINGS = ["/proc/sys/kernel/timer_migration", "/proc/sys/kernel/sched_rt_runtime_us", "/proc/sys/kernel/watchdog",
            "/proc/sys/vm/stat_interval", "/proc/sys/vm/swappiness", "/sys/kernel/mm/transparent_hugepage/enabled",
            "/sys/devices/virtual/workqueue/cpumask", "/proc/irq/default_smp_affinity"]
TRACERS = ["hwlat_detector/mode", "hwlat_detector/width", "hwlat_detector/window", "osnoise/runtime_us",
           "osnoise/period_us", "osnoise/cpus", "osnoise/options", "current_tracer"]


def processes():
    """Every process: number, words, environment."""
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                yield int(entry.name), (entry / "cmdline").read_bytes().split(b"\0"), (entry / "environ").read_bytes()
            except OSError:
                pass  # The process has ended, or is a kernel thread.


def of_run(run):
    """Processes that carry the mark of a run, or of something that it started inside an environment."""
    mark = f"TACTUS_RUN={run}".encode()
    return [(pid, words) for pid, words, environ in processes()
            if any(word == mark or word.startswith(mark + b"-") for word in environ.split(b"\0"))]


def guardian(run):
    """The guardian of a run, which carries no mark."""
    return [pid for pid, words, _ in processes() if words[1:2] == [b"guardian"] and run.encode() in words]


def cgroups(run):
    """Cgroups with the run's name."""
    return [path for path, _, _ in os.walk("/sys/fs/cgroup") if run in os.path.basename(path)]


def containers(run):
    """Containers of Podman, running or not."""
    try:
        said = subprocess.run(["podman", "ps", "-a", "--format", "{{.Names}}"], capture_output=True, text=True)
    except FileNotFoundError:
        return []
    return [name for name in said.stdout.split() if run in name]


def all_of(run, cache):
    """All leftovers of a run, in words."""
    left = [f"process {pid}: {b' '.join(words).decode(errors='replace')}" for pid, words in of_run(run)]
    left += [f"guardian {pid}" for pid in guardian(run)]
    mounts = pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
    left += [f"mount {line.split(' ')[4]}" for line in mounts if run in line]
    left += [f"cgroup {path}" for path in cgroups(run)]
    kept = [cache / "run" / f"{run}.jsonl", cache / "work" / run]
    left += [f"file {path}" for path in kept if path.exists()]
    for instances in [TRACING / "instances"]:
        left += [f"tracer {path}" for path in instances.glob(f"tactus-*{run}*")]
    # Podman is asked last: it takes longest.
    return left or [f"container {name}" for name in containers(run)]


def await_none(run, cache, seconds=40):
    """Waits until nothing of a run is left; returns the leftovers."""
    until = time.monotonic() + seconds
    while (left := all_of(run, cache)) and time.monotonic() < until:
        time.sleep(0.1)
    return left


def settings():
    """The settings that must be as before, without interrupts that other programs move."""
    paths = [pathlib.Path(path) for path in SETTINGS] + [TRACING / path for path in TRACERS]
    found = {}
    for path in paths:
        try:
            found[str(path)] = re.sub(r"\s+", " ", path.read_text())
        except OSError:
            pass
    return found
