"""A node: a real kubelet with its containerd, in separate cgroups."""

import json
import os
import pathlib
import signal
import subprocess

from control import Broken, free_ports, until

GROUPS = pathlib.Path("/sys/fs/cgroup")


def hierarchies():
    """The directories of all cgroup hierarchies."""
    if (GROUPS / "cgroup.controllers").exists():
        return [GROUPS]
    return [entry for entry in GROUPS.iterdir() if (entry / "cgroup.procs").exists()]


def make_groups(name):
    """Makes a group in each hierarchy, with the root's CPUs and memory where a group needs them."""
    for hierarchy in hierarchies():
        group = hierarchy / name
        group.mkdir()
        for setting in ["cpuset.cpus", "cpuset.mems"]:
            if (hierarchy / setting).exists() and (group / setting).exists():
                (group / setting).write_text((hierarchy / setting).read_text())
        if (hierarchy / "cgroup.subtree_control").exists():
            controllers = (group / "cgroup.controllers").read_text().split()
            (group / "cgroup.subtree_control").write_text(" ".join(f"+{one}" for one in controllers))


def members(name):
    """Every process in the groups of this name."""
    found = set()
    for hierarchy in hierarchies():
        for procs in (hierarchy / name).rglob("cgroup.procs"):
            try:
                found.update(int(word) for word in procs.read_text().split())
            except OSError:
                pass  # The group is gone.
    return found - {0}



class Node:
    """A node."""

    def __init__(self, control, name, images):
        self.control, self.name, self.images = control, name, images
        self.home = control.home / name
        self.home.mkdir()
        self.group = f"{control.home.name}-{name}"
        self.port = free_ports(1)[0]
        self.socket = f"{self.home}/containerd.sock"
        make_groups(self.group)

    def settings(self):
        """Writes the configurations of containerd and of the kubelet."""
        # Without CAP_SYS_RESOURCE no process may get a lower OOM score.
        restricted = json.dumps(not can_spare())
        # Pods use the node's network, but a node is ready only if a CNI configuration exists.
        (self.home / "net").mkdir(exist_ok=True)
        (self.home / "net/10-none.conflist").write_text('{"cniVersion": "0.4.0", "name": "none", "plugins": [{"type": "loopback"}]}\n')
        cri = 'plugins."io.containerd.grpc.v1.cri"'
        (self.home / "containerd.toml").write_text(f"""version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
root = "{self.home}/images"
state = "{self.home}/containers"
[grpc]
address = "{self.socket}"
[{cri}]
sandbox_image = "tactus.test/pause:1"
restrict_oom_score_adj = {restricted}
[{cri}.cni]
conf_dir = "{self.home}/net"
bin_dir = "{self.home}/net"
""")
        keys = self.control.home / "keys"
        (self.home / "kubelet.json").write_text(json.dumps({
            "apiVersion": "kubelet.config.k8s.io/v1beta1", "kind": "KubeletConfiguration",
            "address": "127.0.0.1", "port": self.port, "healthzPort": 0, "readOnlyPort": 0,
            "authentication": {"anonymous": {"enabled": False}, "webhook": {"enabled": False}, "x509": {"clientCAFile": f"{keys}/ca.crt"}},
            "authorization": {"mode": "AlwaysAllow"},
            "cgroupDriver": "cgroupfs", "cgroupRoot": f"/{self.group}", "enforceNodeAllocatable": [],
            "containerRuntimeEndpoint": f"unix://{self.socket}", "failSwapOn": False, "makeIPTablesUtilChains": False,
            "imageGCHighThresholdPercent": 100, "imageGCLowThresholdPercent": 99,
            "podLogsDir": f"{self.home}/logs", "volumePluginDir": f"{self.home}/plugins", "resolvConf": "",
            "evictionHard": {"memory.available": "10Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
            "nodeStatusUpdateFrequency": "3s", "nodeLeaseDurationSeconds": 10,
            # A guaranteed pod gets whole CPUs exclusively.
            "cpuManagerPolicy": "static", "reservedSystemCPUs": "0",
        }))

    def runtime(self):
        """Starts containerd."""
        process = self.control.start(f"{self.name}-containerd", ["containerd", "--config", self.home / "containerd.toml"])
        until(f"containerd of {self.name} answers", lambda: self.ctr("version", check=False) == 0, 60)
        return process

    def ctr(self, *words, check=True):
        done = subprocess.run(["ctr", "--address", self.socket, "--namespace", "k8s.io", *words], capture_output=True, text=True)
        if check and done.returncode:
            raise Broken(f"ctr {words}: {done.stderr}")
        return done.returncode

    def agent(self):
        """Starts the kubelet."""
        self.control.start(f"{self.name}-kubelet", [
            self.control.programs / "kubelet", f"--config={self.home}/kubelet.json", f"--kubeconfig={self.control.home}/keys/{self.name}.conf",
            f"--hostname-override={self.name}", f"--root-dir={self.home}/kubelet", f"--cert-dir={self.home}/kubelet-keys",
            "--node-labels=tactus.test/real=yes", "--v=1"])

    def begin(self):
        """Starts the node for the first time."""
        self.settings()
        self.runtime()
        for image in self.images:
            self.ctr("images", "import", str(image))
        self.agent()

    def kill_agent(self):
        """Kills only the kubelet."""
        self.control.stop(f"{self.name}-kubelet", signal.SIGKILL)

    def kill(self):
        """Kills every process of the node, like a power failure."""
        self.kill_agent()
        self.control.stop(f"{self.name}-containerd", signal.SIGKILL)
        for pid in self.shims() | members(self.group):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass

    def shims(self):
        """The shims of containerd, which are in no group of the node."""
        found = set()
        for entry in pathlib.Path("/proc").iterdir():
            try:
                words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else []
            except OSError:
                continue
            if words and words[0].endswith(b"containerd-shim-runc-v2") and self.socket.encode() in words:
                found.add(int(entry.name))
        return found

    def state(self):
        """Status and reason of the condition Ready."""
        node = self.control.ask("GET", f"/api/v1/nodes/{self.name}")
        conditions = node["status"].get("conditions", []) if node else []
        return next((one["status"] for one in conditions if one["type"] == "Ready"), None)

    def await_ready(self, status="True", seconds=120):
        """Waits until the node is ready, or (`Unknown`) silent."""
        def holds():
            process = self.control.processes.get(f"{self.name}-kubelet")
            if process is not None and process.poll() is not None:
                raise Broken(f"the kubelet of {self.name} has ended:\n{self.control.log(f'{self.name}-kubelet')}")
            return self.state() == status
        until(f"{self.name} is ready: {status}", holds, seconds)


def can_spare():
    """Whether this process has CAP_SYS_RESOURCE."""
    line = next(line for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("CapEff"))
    return bool(int(line.split()[1], 16) >> 24 & 1)
