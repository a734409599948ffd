"""Runs that are killed: the environments, the targets, and the checks afterwards."""

import json
import os
import pathlib
import signal
import subprocess
import time

import left

PLAN = """name = "crash"
[defaults]
duration = "{seconds}s"
interval = "2ms"
[environment.{kind}]
kind = "{kind}"
[[scenario]]
name = "crash"
environment = "{kind}"
measurement = "timer"
"""
# In addition to the measurement: a load, and on the host also faults and settings.
MORE = {
    "host": """load = ["scheduler"]
fault = [{ kind = "hog", length = "1ms", every = "50ms" }, { kind = "overcommit", threads = 2, length = "1ms", every = "50ms" }]
settings = ["timer-migration", "vmstat-interval"]
""",
    "podman": 'load = ["memory"]\n',
    "qemu": "",
}
# The targets in each environment.
TARGETS = {
    "host": ["command", "guardian", "both", "probe", "stopped probe"],
    "podman": ["command", "guardian", "both", "probe", "conmon"],
    "qemu": ["command", "guardian", "both", "qemu"],
}
# The duration of a run, in seconds.
LENGTH = 6
# The moments of the kill, from the start to after the first second of measuring, in seconds.
MOMENTS = {"host": 3.0, "podman": 4.0, "qemu": 14.0}
# tactus gives up a silent probe after half a minute, and one that never said hello or is not ready after one and a half.
# Then the run must end; an emulated guest ends slowly.
PATIENCE = 150


class Wrong(Exception):
    """An error of a trial."""


class Run:
    """A run of the command, with private directories."""

    def __init__(self, tactus, cache, place, kind):
        self.cache, self.bundle, self.before = cache, place / "bundle", left.settings()
        plan = place / "plan.toml"
        plan.write_text(PLAN.format(kind=kind, seconds=LENGTH) + MORE[kind])
        self.known = set(self.journals())
        self.said = open(place / "said", "w+b")
        words = [tactus, "run", plan, "--out", self.bundle]
        environ = dict(os.environ, TACTUS_CACHE_DIR=str(cache))
        self.process = subprocess.Popen(words, env=environ, stdin=subprocess.DEVNULL, stdout=self.said, stderr=self.said)

    def journals(self):
        """The journals of runs."""
        return [path.stem for path in (self.cache / "run").glob("*.jsonl")]

    def run_id(self):
        """The run's id, as soon as it has a journal."""
        new = set(self.journals()) - self.known
        return new.pop() if new else None

    def words(self):
        """The output of the command."""
        self.said.seek(0)
        return self.said.read().decode(errors="replace")

    def find(self, target):
        """The processes of the target now."""
        run = self.id
        if target == "command":
            return [self.process.pid]
        if target == "guardian":
            return left.guardian(run)
        if target == "both":
            return [self.process.pid] + left.guardian(run)
        if target == "conmon":
            # Podman does not pass the mark to conmon, but the container's name.
            return [pid for pid, words, _ in left.processes()
                    if words[0].endswith(b"conmon") and any(run.encode() in word for word in words)]
        marked = left.of_run(run)
        name = b"qemu" if target == "qemu" else b"probe"
        found = [(pid, words) for pid, words in marked if name in os.path.basename(words[0])]
        if "probe" in target:
            # The session, whose command line is its name alone; not its workers.
            found = [(pid, words) for pid, words in found if words[1:2] in ([b""], [], [b"session"])]
        return [pid for pid, _ in found]

    def kill(self, target, moment):
        """Waits for the moment, and for the target; returns whether the target started."""
        began = time.monotonic()
        self.id, self.guarded = None, True
        while self.process.poll() is None and not (self.id and time.monotonic() - began >= moment):
            self.id = self.id or self.run_id()
            time.sleep(0.005)
        until = time.monotonic() + PATIENCE
        while self.process.poll() is None and time.monotonic() < until:
            pids = self.find(target)
            if pids:
                self.guarded = bool(self.find("guardian"))
                for pid in pids:
                    try:
                        os.kill(pid, signal.SIGSTOP if target.startswith("stopped") else signal.SIGKILL)
                    except ProcessLookupError:
                        pass
                return True
            time.sleep(0.005)
        return False

    def check(self, tactus, target):
        """Checks everything after the kill; returns how the command ended."""
        try:
            code = self.process.wait(timeout=PATIENCE)
        except subprocess.TimeoutExpired:
            raise Wrong("the command does not end") from None
        if target == "both" or not self.guarded:
            # No guardian is left, or none had started, to revert the changes: the next command does.
            self.next_command(tactus)
        if self.id and (stays := left.await_none(self.id, self.cache)):
            raise Wrong("left behind: " + ", ".join(stays))
        if target in ("command", "both"):
            if code != -signal.SIGKILL:
                raise Wrong(f"the command ended with {code}")
        elif code not in (0, 2, 3):
            raise Wrong(f"the command ended with {code}: {self.words()}")
        if target == "guardian" and code in (0, 3) and "the guardian was killed" not in self.words():
            raise Wrong(f"the command does not say that the guardian was killed: {self.words()}")
        after = left.settings()
        if after != self.before:
            changed = [f"{path}: {after.get(path)}, was {text}" for path, text in self.before.items()
                       if after.get(path) != text]
            raise Wrong("settings: " + "; ".join(changed))
        if (self.bundle / "manifest.json").exists():
            shown = subprocess.run([tactus, "report", self.bundle, "--json"], capture_output=True, text=True)
            if shown.returncode != 0:
                raise Wrong(f"the bundle does not open: {shown.stderr}")
            status = json.loads(shown.stdout)["status"]
            if target in ("command", "both") and status != "interrupted":
                raise Wrong(f"a killed run is {status}")
        # A file that was being written at the kill has a name that begins with a dot.
        elif self.bundle.exists() and any(not path.name.startswith(".") for path in pathlib.Path(self.bundle).iterdir()):
            raise Wrong("a bundle without a manifest")
        return code

    def next_command(self, tactus):
        """Measures for a second: this cleans up after earlier runs."""
        words = [tactus, "measure", "-D", "1", "--no-self-test"]
        environ = dict(os.environ, TACTUS_CACHE_DIR=str(self.cache))
        done = subprocess.run(words, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True)
        if done.returncode not in (0, 3):
            raise Wrong(f"the next command ended with {done.returncode}: {done.stderr}")

    def end(self):
        """Kills the processes that a failed trial left."""
        self.process.kill()
        self.process.wait()
        self.said.close()
