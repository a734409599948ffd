#!/usr/bin/env python3
"""Measures the time until the probe's first frame from a container, and compares it with the time in which the runtime
alone runs `true` to its end. The two alternate on the same machine, so that other load disturbs both equally.

The limit is 1.3 times the runtime's time plus 10 ms for the probe. Exit 1 if the median of the pairs is above it for any
kind, 2 if no kind can be measured. A private Docker daemon is started and removed.

    container-start.py [--pairs 7] [--kinds oci,podman,docker,lxc,nspawn]
"""
import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

FACTOR, PROBE_MS = 1.3, 10
# Hidden as tactus hides them: with them a container would get no real-time budget on some kernels.
BUDGET = "/sys/fs/cgroup/cpu/cpu.rt_runtime_us"
HIDE = "umount /sys/fs/cgroup/cpu; umount /sys/fs/cgroup/unified 2>/dev/null; exec \"$@\""


def example():
    """The program that starts one environment as tactus does."""
    root = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    subprocess.run(
        ["cargo", "build", "--quiet", "--release", "-p", "tactus-environment", "--example", "first-frame"], cwd=root, check=True
    )
    target = os.environ.get("CARGO_TARGET_DIR", os.path.join(root, "target"))
    return os.path.join(target, "release", "examples", "first-frame")


def hidden(words):
    return ["unshare", "-m", "sh", "-c", HIDE, "sh", *words] if os.path.exists(BUDGET) else words


class Runtimes:
    """The files that each runtime needs to run `true`, and no others."""

    def __init__(self, directory):
        self.dir = directory
        self.daemon = None
        self.root = os.path.join(directory, "root")
        os.makedirs(os.path.join(self.root, "usr"))
        source = os.path.join(directory, "true.c")
        with open(source, "w") as text:
            text.write("int main(void) { return 0; }\n")
        subprocess.run(["cc", "-static", "-Os", "-o", os.path.join(self.root, "true"), source], check=True)

    def oci(self):
        if not shutil.which("crun"):
            return None
        subprocess.run(["crun", "spec"], cwd=self.dir, check=True)
        path = os.path.join(self.dir, "config.json")
        with open(path) as text:
            config = json.load(text)
        config["process"].update(terminal=False, args=["/true"])
        config["process"].pop("rlimits", None)
        config["root"]["path"] = "root"
        with open(path, "w") as text:
            json.dump(config, text)
        return hidden(["crun", "--root", os.path.join(self.dir, "state"), "run", "-b", self.dir, "bench-true"])

    def podman(self):
        if not shutil.which("podman"):
            return None
        limits = ["--ulimit=nofile=1024:1024", "--ulimit=nproc=1024:1024"]
        runtime = ["--runtime=crun"] if shutil.which("crun") else []
        words = ["podman", "run", "--rm", *runtime, "--network=none", "--no-hosts", "--log-driver=none"]
        return hidden([*words, *limits, "--rootfs", self.root, "/true"])

    def docker(self):
        dockerd = shutil.which("dockerd", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin")
        if not dockerd or not shutil.which("docker"):
            return None
        at = lambda name: os.path.join(self.dir, name)
        with open(at("daemon.json"), "w") as text:
            json.dump({"deprecated-key-path": at("key.json")}, text)
        self.host = "unix://" + at("docker.sock")
        words = [dockerd, "--config-file", at("daemon.json"), "-H", self.host, "--data-root", at("data")]
        words += ["--exec-root", at("exec"), "--pidfile", at("pid"), "--cgroup-parent", "/tactus-bench"]
        words += ["--exec-opt", "native.cgroupdriver=cgroupfs", "--bridge=none", "--iptables=false"]
        with open(at("log"), "w") as log:
            self.daemon = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        client = ["docker", "-H", self.host]
        for _ in range(200):
            if subprocess.run([*client, "version"], capture_output=True).returncode == 0:
                break
            time.sleep(0.05)
        archive = at("true.tar")
        subprocess.run(["tar", "-cf", archive, "-C", self.root, "true"], check=True)
        subprocess.run([*client, "import", archive, "bench-true:1"], check=True, capture_output=True)
        return [*client, "run", "--rm", "--network=none", "--log-driver=none", "bench-true:1", "/true"]

    def lxc(self):
        if not shutil.which("lxc-execute"):
            return None
        path = os.path.join(self.dir, "lxc.conf")
        with open(path, "w") as text:
            text.write(f"lxc.rootfs.path = dir:{self.root}\nlxc.net.0.type = empty\n")
            text.write("lxc.mount.auto = proc:mixed sys:ro\nlxc.apparmor.profile = unconfined\nlxc.pty.max = 1\n")
        return hidden(["lxc-execute", "-P", self.dir, "-n", "bench-true", "-f", path, "--", "/true"])

    def nspawn(self):
        if not shutil.which("systemd-nspawn"):
            return None
        words = ["systemd-nspawn", "-q", "--register=no", "--console=pipe", "--private-network", "-M", "bench-true"]
        keep = [] if os.path.isdir("/run/systemd/system") else ["--keep-unit"]
        return [*words, *keep, "-D", self.root, "/true"]

    def close(self):
        if self.daemon:
            self.daemon.terminate()
            self.daemon.wait(20)
        subprocess.run("rmdir /sys/fs/cgroup/tactus-bench /sys/fs/cgroup/*/tactus-bench /run/docker/plugins /run/docker "
                       "/run/containerd/s /run/containerd /sys/fs/cgroup/*/payload /sys/fs/cgroup/*/supervisor",
                       shell=True, stderr=subprocess.DEVNULL)
        shutil.rmtree("/run/systemd/nspawn/propagate/bench-true", ignore_errors=True)


def own(words):
    began = time.monotonic()
    done = subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"`{' '.join(words)}`: {done.stderr.strip()}")
    return (time.monotonic() - began) * 1e3


def tactus(program, kind, options):
    """Milliseconds until the probe's first frame, of the first container of a run and of the next."""
    done = subprocess.run([program, kind, *options, "--twice"], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(f"{kind}: {done.stderr.strip()}")
    return [json.loads(line)["hello_ms"] for line in done.stdout.splitlines()]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("--pairs", type=int, default=7)
    arguments.add_argument("--kinds", default="oci,podman,docker,lxc,nspawn")
    arguments.add_argument("--program", help="a ready-built first-frame")
    arguments = arguments.parse_args()
    program = arguments.program or example()
    over, measured = [], 0
    print(f"{'kind':<18} {'true':>9} {'first frame':>11} {'ratio':>7} {'of limit':>9}")
    with tempfile.TemporaryDirectory(prefix="tactus-bench-") as directory:
        runtimes = Runtimes(directory)
        try:
            for kind in arguments.kinds.split(","):
                words = getattr(runtimes, kind)()
                if words is None:
                    print(f"{kind:<18} not installed")
                    continue
                options = [f"host={runtimes.host}"] if kind == "docker" else []
                own(words), tactus(program, kind, options)  # once, to warm the caches
                pairs = [(own(words), *tactus(program, kind, options)) for _ in range(arguments.pairs)]
                measured += 1
                for at, which in ((1, "first of a run"), (2, "")):
                    if which and kind != "docker":
                        continue  # only for this kind the first container has more to do
                    ratio = statistics.median(pair[at] / pair[0] for pair in pairs)
                    share = statistics.median(pair[at] / (FACTOR * pair[0] + PROBE_MS) for pair in pairs)
                    least = statistics.median(pair[0] for pair in pairs)
                    ours = statistics.median(pair[at] for pair in pairs)
                    name = f"{kind}, first" if which else kind
                    print(f"{name:<18} {least:>6.0f} ms {ours:>8.0f} ms {ratio:>7.2f} {share:>8.0%}", flush=True)
                    if share > 1:
                        over.append(name)
        finally:
            runtimes.close()
    print(f"medians of {arguments.pairs} pairs; the limit is {FACTOR} times the runtime's `true` plus {PROBE_MS} ms")
    if not measured:
        print("error: no container runtime is installed\nhint: run scripts/setup.sh bench", file=sys.stderr)
        sys.exit(2)
    if over:
        print(f"above the limit: {', '.join(over)}")
    sys.exit(1 if over else 0)


if __name__ == "__main__":
    main()
