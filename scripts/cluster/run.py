#!/usr/bin/env python3
"""Starts the cluster, runs the cases, and prints the result of each: run.py HOME PROGRAMS [--nodes N] [--only WORD]... TACTUS.

scripts/cluster.sh starts it in new namespaces and removes everything at the end.
"""

import argparse
import pathlib
import subprocess
import sys
import time
import traceback

import cases
import image
import thousand
from control import Control
from node import Node

# The kernel settings that kubelets make, with their values: kubelets find them already made, in private files.
SYSCTLS = {"vm/overcommit_memory": 1, "vm/panic_on_oom": 0, "kernel/panic": 10, "kernel/panic_on_oops": 1,
           "kernel/keys/root_maxkeys": 1000000, "kernel/keys/root_maxbytes": 25000000}


def mount(*words):
    subprocess.run(["mount", *words], check=True)


def apart(home, names):
    """Mounts private files and directories over those that kubelets and containerd write outside of their directories."""
    for place in ["/run", "/var/lib", "/var/log"]:
        mount("-t", "tmpfs", "tmpfs", place)
    (home / "sysctl").mkdir()
    for name, value in SYSCTLS.items():
        file = home / "sysctl" / name.replace("/", ".")
        file.write_text(f"{value}\n")
        mount("--bind", str(file), f"/proc/sys/{name}")
    hosts = home / "hosts"
    hosts.write_text("127.0.0.1 localhost " + " ".join(names) + "\n")
    mount("--bind", str(hosts), "/etc/hosts")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("home", type=pathlib.Path)
    parser.add_argument("programs", type=pathlib.Path)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("tactus", type=pathlib.Path)
    arguments = parser.parse_args()
    home, tactus = arguments.home, arguments.tactus.resolve()
    names = ["n1", "n2"]
    # Also those of kwok: each failed look-up of a name takes the API's server ten seconds.
    apart(home, names + thousand.names(arguments.nodes))
    began = time.monotonic()
    control = Control(home, arguments.programs, names)
    control.begin()
    print(f"the control plane answers after {time.monotonic() - began:.1f} s", flush=True)
    busybox = subprocess.run(["sh", "-c", "command -v busybox"], capture_output=True, text=True, check=True).stdout.strip()
    image.pause(home / "pause.tar", "tactus.test/pause:1", busybox)
    nodes = {}
    for name in names:
        # Each node has its lock, like separate machines: both nodes are this machine.
        image.tactus(home / f"{name}.tar", "tactus.test/tactus:1", tactus, [f"TACTUS_LOCK={home.name}-{name}"])
        nodes[name] = Node(control, name, [home / "pause.tar", home / f"{name}.tar"])
        nodes[name].begin()
    for node in nodes.values():
        node.await_ready()
    print(f"two nodes are ready after {time.monotonic() - began:.1f} s", flush=True)
    passed, failed = 0, 0
    lab = cases.Lab(control, nodes, tactus)
    for case in [*cases.CASES, *thousand.CASES]:
        said = case.__doc__.splitlines()[0]
        if arguments.only and not any(word in said or word in case.__name__ for word in arguments.only):
            continue
        begun = time.monotonic()
        try:
            figures = case(lab, arguments.nodes) if case in thousand.CASES else case(lab)
        except Exception as error:  # After any error, run the other cases.
            failed += 1
            print(f"FAILED  {said}\n{error}", flush=True)
            if not isinstance(error, (AssertionError, cases.Broken)):
                traceback.print_exc()
            lab.settle()
            continue
        passed += 1
        print(f"ok      {said} ({time.monotonic() - begun:.0f} s){': ' + figures if figures else ''}", flush=True)
    print(f"{passed} passed, {failed} failed", flush=True)
    return 1 if failed or not passed else 0


sys.exit(main())
