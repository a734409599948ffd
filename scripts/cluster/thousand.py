"""A thousand nodes of kwok: real Jobs, pods and states of a real control plane, but no running code."""

import base64
import concurrent.futures
import gzip
import hashlib
import io
import json
import re
import shutil
import tarfile
import time

from cases import UNDECIDED, Fleet, check
from control import free_ports, until

# A kubectl that records when it began and ended, and answers `logs` from a file if there is one. Its overhead counts as
# tactus' time.
KUBECTL = """#!/bin/sh
begun=$(date +%s%N)
case " $* " in
  *" logs "*)
    for pod; do :; done
    if [ -e "HOME/prints/${pod%-*}" ]; then
      cat "HOME/prints/${pod%-*}"
      echo "$begun $(date +%s%N) logs" >>HOME/calls
      exit
    fi
    ;;
esac
status=0
PROGRAMS/kubectl "$@" || status=$?
echo "$begun $(date +%s%N) $2" >>HOME/calls
exit $status
"""
CORDONED, GONE, FULL = "k0001", "k0002", ["k0003", "k0004", "k0005"]


def names(count):
    return [f"k{n:04}" for n in range(1, count + 1)]


def node(name):
    cpus = "0" if name in FULL else "8"
    share = {"cpu": cpus, "memory": "32Gi", "pods": "110"}
    metadata = {"name": name, "annotations": {"kwok.x-k8s.io/node": "fake"}, "labels": {"type": "kwok", "kubernetes.io/hostname": name}}
    spec = {"unschedulable": True} if name == CORDONED else {}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": spec, "status": {"allocatable": share, "capacity": share}}


def every(what, of):
    """Calls a function for each item, eight at a time."""
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        return list(pool.map(what, of))


def calls(home):
    """Seconds and number of kubectl's calls by word, and the seconds in which at least one ran; deletes the records."""
    file = home / "calls"
    lines = [line.split() for line in file.read_text().splitlines()] if file.exists() else []
    file.unlink(missing_ok=True)
    spans, words = [], {}
    for begun, ended, word in lines:
        spans.append((int(begun), int(ended)))
        seconds, number = words.get(word, (0.0, 0))
        words[word] = (seconds + (int(ended) - int(begun)) / 1e9, number + 1)
    busy, last = 0, 0
    for begun, ended in sorted(spans):
        busy += max(0, ended - max(begun, last))
        last = max(last, ended)
    return busy / 1e9, words


def printed(bundle, machine):
    """The log that a pod of this machine would print, made from a bundle of another machine."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for file in sorted(file for file in bundle.rglob("*") if file.is_file() and not file.name.startswith((".", "report."))):
            data = file.read_bytes()
            if file.name == "manifest.json":
                manifest = json.loads(data)
                manifest["machine"]["name"] = machine
                manifest["started"] = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
                data = json.dumps(manifest).encode()
            entry = tarfile.TarInfo(str(file.relative_to(bundle)))
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    packed = gzip.compress(out.getvalue(), 6)
    text = base64.b64encode(packed).decode()
    lines = "\n".join(text[at:at + 76] for at in range(0, len(text), 76))
    return f"-----BEGIN TACTUS BUNDLE-----\nsha256: {hashlib.sha256(packed).hexdigest()}\n{lines}\n-----END TACTUS BUNDLE-----\n"


def job(order, machine):
    """The name of a machine's Job."""
    return f"tactus-{order}-{machine}-{hashlib.sha256(machine.encode()).hexdigest()[:8]}"


def a_thousand_nodes(lab, count):
    """a thousand nodes of kwok: waves, stragglers and nodes that are away keep their rows; rows of pods without a log say so"""
    control, home = lab.control, lab.home
    machines = names(count)
    begun = time.monotonic()
    every(lambda name: control.ask("POST", "/api/v1/nodes", node(name)), machines)
    port = free_ports(1)[0]
    control.start("kwok", [
        control.programs / "kwok", f"--kubeconfig={home}/keys/admin.conf", "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake", f"--server-address=127.0.0.1:{port}",
        "--node-lease-duration-seconds=40"])

    def ready():
        found = control.ask("GET", "/api/v1/nodes?labelSelector=type%3Dkwok")["items"]
        conditions = [one for item in found for one in item["status"].get("conditions", [])]
        return sum(one["type"] == "Ready" and one["status"] == "True" for one in conditions) == count
    until("all are ready", ready, 300, 2)
    figures = [f"{count} nodes ready after {time.monotonic() - begun:.0f} s"]
    (home / "bin").mkdir(exist_ok=True)
    (home / "prints").mkdir(exist_ok=True)
    shim = home / "bin/kubectl"
    shim.write_text(KUBECTL.replace("HOME", str(home)).replace("PROGRAMS", str(control.programs)))
    shim.chmod(0o755)
    try:
        figures += the_fleet(lab, machines)
    finally:
        shim.unlink()
        control.stop("kwok")
        every(lambda name: control.ask("DELETE", f"/api/v1/nodes/{name}"), machines)
    return "; ".join(figures)


def all_have_ended(fleet, machines, process):
    check(process.poll() is None, f"the command has ended: {process.returncode}", fleet.said()[-2000:])
    rows = [fleet.row(name) for name in machines]
    # tactus asks next for the log of a pod that Kubernetes reports as ended.
    states = ["asked" if row.get("reason") == "exit 0 (Completed)" else row.get("state") for row in rows]
    open_ = [state for state in states if state not in ("failed", "away", "measured")]
    return len(open_) <= len(FULL) and "listed" not in open_


def the_fleet(lab, machines):
    control, home, count = lab.control, lab.home, len(machines)
    # The plan of the bundle that is copied below.
    fleet = Fleet(lab, "thousand", select="type=kwok", require=UNDECIDED)
    code, _, said = fleet.command("render", *fleet.wanted)
    check(code == 0, said)
    # The list is frozen: a node that disappears now is missed.
    control.ask("DELETE", f"/api/v1/nodes/{GONE}")
    calls(home)
    begun = time.monotonic()
    # In the background: some pods never begin, and the command would wait for them up to its limit.
    process = fleet.begun("1h", max(50, count // 5))
    try:
        until("all have ended, except those that never begin", lambda: all_have_ended(fleet, machines, process), 3600, 1)
    finally:
        process.terminate()
        process.wait()
    took = time.monotonic() - begun
    engine, words = calls(home)
    rows = {name: fleet.row(name) for name in machines}
    check(rows[CORDONED]["state"] == "away" and rows[CORDONED]["reason"] == "cordoned", rows[CORDONED])
    check(rows[GONE]["state"] == "away" and "does not name it" in rows[GONE]["reason"], rows[GONE])
    for name in FULL:
        check(rows[name]["state"] == "waiting" and "Insufficient cpu" in rows[name]["reason"], rows[name])
    others = [name for name in machines if name not in [CORDONED, GONE, *FULL]]
    for name in others:
        row = rows[name]
        check(row["state"] == "failed" and ("no bundle" in row["reason"] or "kubectl logs" in row["reason"]), row)
    spent = ", ".join(f"{word} {seconds:.0f} s in {number}" for word, (seconds, number) in sorted(words.items()))
    figures = [f"{took:.0f} s until each had ended, {engine:.0f} s of it in kubectl ({spent})"]
    at = time.monotonic()
    code, text, _ = fleet.command("status", fleet.dir)
    busy, _ = calls(home)
    check(code == 3 and text.splitlines()[0].startswith(f"{count} machines"), text[:500])
    figures.append(f"status {time.monotonic() - at:.1f} s, {busy:.1f} s of it in kubectl")
    # The logs of these machines' pods: the bundle of a real node under each name.
    real = Fleet(lab, "plain", require=UNDECIDED)
    source = real.dir / "bundles/n1"
    if not source.exists():
        return figures
    order = fleet.id()
    plan = (fleet.dir / "plan.toml").read_text()
    check(json.loads((source / "manifest.json").read_text())["plan"] == re.search('name = "(.*)"', plan)[1], "another plan")
    for name in others:
        (home / "prints" / job(order, name)).write_text(printed(source, name))
    at = time.monotonic()
    code, text, said = fleet.command("collect", fleet.dir)
    took = time.monotonic() - at
    busy, _ = calls(home)
    check(f"{len(others)} measured" in text, f"exit {code}\n{text[-2000:]}\n{said[-2000:]}")
    own = (took - busy) / len(others) * 1e3
    figures.append(f"{len(others)} bundles collected from logs in {took:.1f} s: tactus itself {own:.1f} ms for each")
    shutil.rmtree(home / "prints")
    return figures


CASES = [a_thousand_nodes]
