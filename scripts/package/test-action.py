"""Runs the steps of contrib/github-action as a runner does: test-action.py TARBALL

A limit that no machine exceeds ends with 0 or 3 (a virtual machine, a short time); one that every machine exceeds fails the
job. The action refuses a tarball with another sum, and an address without one."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

import yaml

HERE = os.path.dirname(os.path.abspath(__file__))
ACTION = os.path.join(HERE, "../../contrib/github-action/action.yml")


def perform(action, inputs, where):
    """Runs the steps; returns the status of the failed step, or 0, and the outputs."""
    given = {name: str(entry.get("default", "")) for name, entry in action["inputs"].items()} | inputs
    files = {name: os.path.join(where, name) for name in ("GITHUB_PATH", "GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
    for file in files.values():
        open(file, "w").close()
    path = os.environ["PATH"]
    for step in action["runs"]["steps"]:
        assert step["shell"] == "bash" and "${{" not in step["run"], "inputs must be variables, never text of a script"
        env = {key: re.sub(r"\$\{\{ inputs\.([\w-]+) \}\}", lambda word: given[word[1]], value) for key, value in step["env"].items()}
        env |= files | {"RUNNER_TEMP": where, "PATH": path, "HOME": where}
        done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]],
                              cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        if done.returncode != 0:
            print("    " + done.stdout.strip().splitlines()[-1] if done.stdout.strip() else "    (no word)")
            return done.returncode, outputs(files), files
        added = open(files["GITHUB_PATH"]).read().split()
        path = ":".join([*added, os.environ["PATH"]])
    return 0, outputs(files), files


def outputs(files):
    return dict(line.rstrip("\n").split("=", 1) for line in open(files["GITHUB_OUTPUT"]))


def main():
    tarball = os.path.abspath(sys.argv[1])
    action = yaml.safe_load(open(ACTION))
    digest = hashlib.sha256(open(tarball, "rb").read()).hexdigest()
    for step in action["runs"]["steps"]:
        subprocess.run(["shellcheck", "--shell=bash", "-"], input=step["run"], text=True, check=True)
    short = "--only=host\n--duration=1s\n"
    cases = [
        ("a limit that no machine exceeds", {"sha256": digest, "arguments": short + "--max=10s", "inconclusive": "pass"}, (0,)),
        ("the same, inconclusive fails", {"arguments": short + "--max=10s"}, (0, 3)),
        ("words that a shell would execute", {"arguments": "--only=$(touch hacked); touch hacked"}, (2,)),
        ("another sum", {"sha256": "0" * 64}, (1,)),
        ("an address without a sum", {"tarball": "https://127.0.0.1/tactus.tar.xz"}, (2,)),
        ("a missing plan", {"plan": "nothing.toml"}, (2,)),
    ]
    for name, inputs, wanted in cases:
        where = tempfile.mkdtemp()
        try:
            status, said, files = perform(action, {"tarball": tarball} | inputs, where)
            assert status in wanted, f"{name}: {status}, not {wanted}"
            assert not os.path.exists(os.path.join(where, "hacked")), name
            if said.get("status") in ("0", "1", "3"):
                suites = ElementTree.parse(os.path.join(where, said["junit"])).getroot()
                assert suites.tag == "testsuites" and len(suites.findall(".//testcase")) > 0
                assert open(os.path.join(where, said["page"])).read(15) == "<!doctype html>"
                assert "host" in open(files["GITHUB_STEP_SUMMARY"]).read()
            print(f"  {name}: {status}")
        finally:
            shutil.rmtree(where)


main()
