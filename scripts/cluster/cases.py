"""The cases on real kubelets. Each case is a separate fleet; the first line of its docstring is its name."""

import hashlib
import json
import os
import pathlib
import subprocess
import time

from control import Broken, until

PLAN = """name = "two"
[environment.host]
kind = "host"
[defaults]
environment = "host"
measurement = "timer"
duration = "{seconds}s"
cpus = "auto"
{require}
[[scenario]]
name = "first"
[[scenario]]
name = "second"
"""
# UNDECIDED: too few cycles for a verdict (`tactus run` ends with 3). BROKEN: no wake-up is that fast (1).
UNDECIDED, BROKEN = 'require = { max = "10s", cycles = 100000000 }', 'require = { max = "1ns" }'


def check(holds, *said):
    """A case that does not hold, and the state instead."""
    if not holds:
        raise Broken("\n".join(one if isinstance(one, str) else json.dumps(one, indent=1) for one in said))


class Fleet:
    """A fleet, and the command that runs it."""

    def __init__(self, lab, name, seconds=3, require="", select="tactus.test/real=yes", extra=(), words=()):
        self.lab, self.dir = lab, lab.home / "fleets" / name
        self.dir.parent.mkdir(exist_ok=True)
        self.plan = lab.home / "fleets" / f"{name}.toml"
        self.plan.write_text(PLAN.format(seconds=seconds, require=require))
        self.bundles = lab.home / "bundles"
        options = {"image": "tactus.test/tactus:1", "cpus": "1", "memory": "256Mi", "dir": str(self.bundles), **dict(extra)}
        self.wanted = [self.plan, "--on", "kubernetes", "--select", select, "--out", self.dir]
        for option, value in options.items():
            self.wanted += ["--with", f"{option}={value}"]
        self.words = [*words]

    def command(self, *words):
        """Runs `tactus fleet` with these words: its exit status, its stdout, its stderr."""
        argv = [str(word) for word in [self.lab.tactus, "fleet", *words]]
        done = subprocess.run(argv, env=self.lab.environment(), capture_output=True, text=True, stdin=subprocess.DEVNULL)
        return done.returncode, done.stdout, done.stderr

    def run(self, wait="3m", wave=50, every="1s"):
        return self.command("run", *self.wanted, "--every", every, "--wave", wave, "--wait", wait, *self.words)

    def begun(self, wait="5m", wave=50):
        """The same, in the background."""
        argv = [str(word) for word in [self.lab.tactus, "fleet", "run", *self.wanted, "--every", "1s", "--wave", wave, "--wait", wait, *self.words]]
        said = open(f"{self.dir}.said", "w")
        return subprocess.Popen(argv, env=self.lab.environment(), stdin=subprocess.DEVNULL, stdout=said, stderr=said)

    def said(self):
        with open(f"{self.dir}.said") as said:
            return said.read()

    def ended(self, process, seconds=300):
        try:
            return process.wait(seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise Broken(f"the command has not ended within {seconds} s:\n{self.said()}") from None

    def row(self, machine):
        try:
            return json.loads((self.dir / f"machines/{machine}.json").read_text())
        except OSError:
            return {}

    def id(self):
        return json.loads((self.dir / "fleet.json").read_text())["id"]

    def manifest(self, machine):
        return json.loads((self.dir / f"bundles/{machine}/manifest.json").read_text())

    def on_node(self, machine):
        """The bundle on the node."""
        try:
            return self.bundles / self.id() / machine
        except OSError:
            return self.bundles / "nowhere"

    def half_done(self, machine):
        """Whether the first scenario is complete, and the second has begun."""
        bundle = self.on_node(machine)
        try:
            done = json.loads((bundle / "scenarios/01-first/result.json").read_text())["status"] == "measured"
        except (OSError, ValueError):
            return False
        return done and (bundle / "scenarios/02-second/ticks.csv").exists()

    def finished(self, machine):
        """Whether the bundle on the node is finished."""
        try:
            return json.loads((self.on_node(machine) / "manifest.json").read_text())["finished"] is not None
        except (OSError, ValueError):
            return False

    def measured(self, attempts, sessions=1):
        """Checks that every bundle is here, as its manifest says, after the expected number of jobs and sessions."""
        for machine, jobs in attempts.items():
            row = self.row(machine)
            check(row.get("state") == "measured" and row["attempts"] == jobs, f"{machine}: expected {jobs} jobs", row)
            manifest = self.manifest(machine)
            check(manifest["machine"]["name"] == machine, manifest)
            for file, sum_ in manifest["files"].items():
                data = (self.dir / f"bundles/{machine}" / file).read_bytes()
                check(hashlib.sha256(data).hexdigest() == sum_, f"{machine}: {file} has another checksum")
            meant = sessions if isinstance(sessions, int) else sessions[machine]
            check(len(manifest["sessions"]) == meant, f"{machine}: expected {meant} sessions", manifest["sessions"])

    def pods(self):
        found = self.lab.control.ask("GET", f"/api/v1/namespaces/default/pods?labelSelector=tactus.fleet/id%3D{self.id()}")
        return found["items"]

    def jobs_are_complete(self):
        found = self.lab.control.ask("GET", f"/apis/batch/v1/namespaces/default/jobs?labelSelector=tactus.fleet/id%3D{self.id()}")
        return all(job["status"].get("succeeded") for job in found["items"])

    def exits(self):
        """The exit codes of the containers, by machine."""
        found = {}
        for pod in self.pods():
            for status in pod["status"].get("containerStatuses", []):
                ended = status["state"].get("terminated")
                found[pod["spec"].get("nodeName")] = ended["exitCode"] if ended else None
        return found


class Lab:
    """The cluster, and the tested tactus."""

    def __init__(self, control, nodes, tactus):
        self.control, self.nodes, self.tactus, self.home = control, nodes, tactus, control.home

    def environment(self):
        return {**self.control.environment(), "TACTUS_CACHE_DIR": f"{self.home}/cache"}

    def record(self, name, fleet, kinds):
        """With RECORD=DIR: records the answers of kubectl, for the tests without a cluster."""
        if "RECORD" not in os.environ:
            return
        for kind in kinds:
            selector = [] if kind == "nodes" else [f"--selector=tactus.fleet/id={fleet.id()}"]
            text = self.control.kubectl("get", kind, "--output=json", *selector)
            text = text.replace(str(fleet.bundles), "/var/lib/tactus-fleet").replace(self.home.name, "cluster")
            to = pathlib.Path(os.environ["RECORD"])
            to.mkdir(parents=True, exist_ok=True)
            (to / f"{name}-{kind}.json").write_text(text)

    def settle(self):
        """After a failed case: removes its jobs, and brings both nodes back to the initial state."""
        words = ["delete", "jobs,pods", "--all", "--force", "--grace-period=0", "--wait=false"]
        subprocess.run(["kubectl", *words], env=self.environment(), capture_output=True)
        for name, node in self.nodes.items():
            if f"{name}-containerd" not in self.control.processes:
                node.runtime()
            if f"{name}-kubelet" not in self.control.processes:
                node.agent()
            node.await_ready()
            self.control.kubectl("uncordon", name)


def machines_are_measured(lab):
    """a Job on each node: both bundles arrive unchanged; an inconclusive verdict (3) is not a failure"""
    fleet = Fleet(lab, "plain", require=UNDECIDED)
    begun = time.monotonic()
    code, printed, said = fleet.run()
    took = time.monotonic() - begun
    check(code == 0, f"exit {code}\n{printed}{said}", fleet.row("n1"), fleet.row("n2"))
    fleet.measured({"n1": 1, "n2": 1})
    check(fleet.exits() == {"n1": 0, "n2": 0}, fleet.exits())
    lab.record("complete", fleet, ["nodes", "jobs", "pods"])
    for machine in ["n1", "n2"]:
        session = fleet.manifest(machine)["sessions"][-1]
        check(session["job"]["engine"] == "kubernetes", session)
        result = json.loads((fleet.dir / f"bundles/{machine}/scenarios/01-first/result.json").read_text())
        check(result["status"] == "measured", result)
        shown = subprocess.run([lab.tactus, "report", fleet.dir / "bundles" / machine], env=lab.environment(), capture_output=True, text=True)
        check("inconclusive" in shown.stdout.lower(), shown.stdout, shown.stderr)
    # The repeated command has nothing to do.
    before = {pod["metadata"]["name"] for pod in fleet.pods()}
    code, printed, said = fleet.run()
    check(code == 0, f"exit {code}\n{printed}{said}")
    fleet.measured({"n1": 1, "n2": 1})
    check(before == {pod["metadata"]["name"] for pod in fleet.pods()}, "the repeated command made pods")
    return f"{took:.1f} s for two nodes"


def what_is_rendered_is_taken(lab):
    """the API accepts the output of `fleet render`, and knows all of its fields"""
    fleet = Fleet(lab, "rendered", extra={"tolerate": "rt", "busy": "2h"}.items())
    code, printed, said = fleet.command("render", *fleet.wanted)
    files = printed.split()
    check(code == 0 and len(files) == 3, printed, said)
    done = lab.control.kubectl("apply", "--dry-run=server", "--validate=strict", *[f"--filename={file}" for file in files])
    check(done.count("created (server dry run)") == 3, done)


def a_cut_log_is_refused(lab):
    """a log that is cut, or altered, is refused; the repeated command gets the bundle printed again"""
    fleet = Fleet(lab, "cut")
    code, printed, said = fleet.run(wait="1s")
    check(code == 3, f"exit {code}\n{printed}{said}")
    until("both Jobs are complete", fleet.jobs_are_complete)
    logs = {}
    for pod in fleet.pods():
        found = list(lab.home.glob(f"*/logs/default_{pod['metadata']['name']}_*/tactus/0.log"))
        check(len(found) == 1, f"{found}")
        logs[pod["spec"]["nodeName"]] = found[0]
    text = logs["n1"].read_text()
    logs["n1"].write_text(text[:len(text) // 2])
    lines = logs["n2"].read_text().splitlines(keepends=True)
    middle = len(lines) // 2
    lines[middle], lines[middle + 1] = lines[middle + 1], lines[middle]
    logs["n2"].write_text("".join(lines))
    code, printed, said = fleet.command("collect", fleet.dir)
    check(code == 3 and "is cut" in fleet.row("n1")["reason"] and "cut or altered" in fleet.row("n2")["reason"], printed, said,
          fleet.row("n1"), fleet.row("n2"))
    code, printed, said = fleet.run()
    check(code == 0, f"exit {code}\n{printed}{said}", fleet.row("n1"), fleet.row("n2"))
    # Printed again, not measured again.
    fleet.measured({"n1": 2, "n2": 2}, sessions=1)


def a_kubelet_that_dies_loses_nothing(lab):
    """a kubelet is killed in mid-run: the measurement continues, its row says why it waits, and its bundle arrives when the kubelet is back"""
    fleet = Fleet(lab, "agent", seconds=8, require=BROKEN)
    process = fleet.begun()
    until("n1 is half done", lambda: fleet.half_done("n1"))
    lab.nodes["n1"].kill_agent()
    until("the bundle is finished without the kubelet", lambda: fleet.finished("n1"))
    lab.nodes["n1"].await_ready("Unknown", 90)
    until("its row says why", lambda: "does not answer" in (fleet.row("n1").get("reason") or ""), 60)
    check(fleet.row("n1")["state"] == "running" and process.poll() is None, fleet.row("n1"), fleet.said())
    lab.record("silent", fleet, ["nodes", "jobs", "pods"])
    lab.nodes["n1"].agent()
    code = fleet.ended(process)
    check(code == 0, f"exit {code}\n{fleet.said()}", fleet.row("n1"), fleet.row("n2"))
    fleet.measured({"n1": 1, "n2": 1})


def a_node_that_dies_goes_on(lab):
    """a whole node dies in mid-run: the second pod of its Job continues the half-done bundle"""
    fleet = Fleet(lab, "node", seconds=8)
    process = fleet.begun()
    until("n2 is half done", lambda: fleet.half_done("n2"))
    lab.nodes["n2"].kill()
    lab.nodes["n2"].await_ready("Unknown", 90)
    check(not fleet.finished("n2"), "the node must die before the bundle is finished")
    lab.nodes["n2"].runtime()
    lab.nodes["n2"].agent()
    code = fleet.ended(process)
    check(code == 0, f"exit {code}\n{fleet.said()}", fleet.row("n1"), fleet.row("n2"))
    fleet.measured({"n1": 1, "n2": 1}, {"n1": 1, "n2": 2})


def a_cordoned_node_keeps_a_row(lab):
    """a cordoned node is away and gets no job; it is measured when it is back"""
    lab.control.kubectl("cordon", "n2")
    fleet = Fleet(lab, "cordoned")
    code, printed, said = fleet.run()
    row = fleet.row("n2")
    check(code == 3 and (row["state"], row["reason"], row["attempts"]) == ("away", "cordoned", 0), f"exit {code}\n{printed}{said}", row)
    fleet.measured({"n1": 1})
    lab.record("cordoned", fleet, ["nodes"])
    lab.control.kubectl("uncordon", "n2")
    code, printed, said = fleet.run()
    check(code == 0, f"exit {code}\n{printed}{said}", fleet.row("n2"))
    fleet.measured({"n1": 1, "n2": 1})


def a_drained_node_goes_on(lab):
    """a node is drained in mid-run: its row waits with Kubernetes' reason, and its bundle is completed when it is back"""
    fleet = Fleet(lab, "drained", seconds=8)
    process = fleet.begun()
    until("n1 is half done", lambda: fleet.half_done("n1"))
    lab.control.kubectl("drain", "n1", "--force", "--ignore-daemonsets", "--grace-period=1", "--timeout=60s")
    until("its row says why", lambda: "unschedulable" in (fleet.row("n1").get("reason") or ""), 60)
    reason = fleet.row("n1")["reason"]
    lab.record("drained", fleet, ["jobs", "pods"])
    lab.control.kubectl("uncordon", "n1")
    code = fleet.ended(process)
    check(code == 0, f"exit {code}\n{fleet.said()}", fleet.row("n1"), fleet.row("n2"))
    fleet.measured({"n1": 1, "n2": 1}, {"n1": 2, "n2": 1})
    return f'"{reason}"'


def a_busy_node_waits(lab):
    """a node whose CPUs another pod has waits with Kubernetes' reason, and is measured when they are free"""
    share = {"cpu": "1", "memory": "64Mi"}
    capacity = int(lab.control.ask("GET", "/api/v1/nodes/n1")["status"]["allocatable"]["cpu"])
    share["cpu"] = str(capacity)
    container = {"name": "it", "image": "tactus.test/pause:1", "resources": {"requests": share, "limits": share}}
    lab.control.ask("POST", "/api/v1/namespaces/default/pods", {
        "metadata": {"name": "busy"}, "spec": {"nodeName": "n1", "hostNetwork": True, "containers": [container]}})
    until("it runs", lambda: lab.control.ask("GET", "/api/v1/namespaces/default/pods/busy")["status"]["phase"] == "Running")
    fleet = Fleet(lab, "busy")
    code, printed, said = fleet.run(wait="15s")
    row = fleet.row("n1")
    check(code == 3 and row["state"] == "waiting" and "Insufficient cpu" in row["reason"], f"exit {code}\n{printed}{said}", row)
    lab.record("busy", fleet, ["jobs", "pods"])
    lab.control.kubectl("delete", "pod", "busy", "--force", "--grace-period=0")
    code, printed, said = fleet.run()
    check(code == 0, f"exit {code}\n{printed}{said}", fleet.row("n1"))
    fleet.measured({"n1": 1, "n2": 1})
    return f'"{row["reason"]}"'


def an_image_that_is_not_there_is_told(lab):
    """an image that cannot be pulled is reported in Kubernetes' words"""
    fleet = Fleet(lab, "image", extra={"image": "localhost:1/none:1"}.items())
    code, printed, said = fleet.run(wait="20s")
    row = fleet.row("n1")
    check(code == 3 and row["state"] == "waiting" and "Image" in row["reason"], f"exit {code}\n{printed}{said}", row)
    lab.record("image", fleet, ["jobs", "pods"])
    lab.control.kubectl("delete", "jobs", f"--selector=tactus.fleet/id={fleet.id()}")
    code, printed, said = fleet.command("collect", fleet.dir)
    check(code == 3 and "does not know its job" in fleet.row("n1")["reason"], printed, said, fleet.row("n1"))
    return f'"{row["reason"]}"'


def a_volume_brings_bundles(lab):
    """a volume brings bundles without the log: a claim, and a directory of both nodes"""
    shared = lab.home / "shared"
    shared.mkdir()
    node = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "tactus.test/real", "operator": "Exists"}]}]}
    share, modes = {"storage": "1Gi"}, ["ReadWriteMany"]
    lab.control.ask("POST", "/api/v1/persistentvolumes", {"metadata": {"name": "shared"}, "spec": {
        "capacity": share, "accessModes": modes, "storageClassName": "it", "hostPath": {"path": str(shared)}, "nodeAffinity": {"required": node}}})
    lab.control.ask("POST", "/api/v1/namespaces/default/persistentvolumeclaims", {"metadata": {"name": "lab"}, "spec": {
        "accessModes": modes, "storageClassName": "it", "resources": {"requests": share}}})
    for name, volume in [("claim", "claim:lab"), ("directory", str(shared))]:
        fleet = Fleet(lab, name)
        at = next(n for n, word in enumerate(fleet.wanted) if str(word).startswith("dir="))
        fleet.wanted[at + 1:at + 1] = ["--with", f"volume={volume}", "--with", f"here={shared}"]
        code, printed, said = fleet.run()
        check(code == 0, f"exit {code}\n{printed}{said}", fleet.row("n1"), fleet.row("n2"))
        fleet.measured({"n1": 1, "n2": 1})
        first = fleet.pods()[0]
        word = first["status"]["containerStatuses"][0]["state"]["terminated"].get("message", "")
        check(word.startswith("archive-sha256: "), f"its last word is {word!r}")
        pod = first["metadata"]["name"]
        log = lab.control.kubectl("logs", pod)
        check("BEGIN TACTUS" not in log, log)
        check((shared / f"{fleet.id()}-archives" / "n1.tar.gz").exists(), "the archive is missing on the volume")
        check(not (shared / fleet.id()).exists(), "a bundle was made on the volume, not on the node")


CASES = [machines_are_measured, what_is_rendered_is_taken, a_cut_log_is_refused, a_kubelet_that_dies_loses_nothing,
         a_node_that_dies_goes_on, a_cordoned_node_keeps_a_row, a_drained_node_goes_on, a_busy_node_waits,
         an_image_that_is_not_there_is_told, a_volume_brings_bundles]
