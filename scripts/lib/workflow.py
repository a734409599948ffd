"""Runs a GitHub workflow as a runner does: workflow.py FILE

Each step with `run` is a bash script, in this directory, which is also its HOME. A failed step ends the job, except for steps
with `if: always()`. `uses` is ignored. A step may end with 0, 1 or 3, because the result of a shared machine is not reliable; 2
is an error. The files that the last step publishes must exist: it parses JUnit files, and pages must begin as HTML."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import yaml

# Shorter runs than elsewhere, because each row runs many times.
ENVIRONMENT = os.environ | {"HOME": os.getcwd(), "TACTUS_SHORT": "200ms"}


def perform(steps):
    """Runs the steps of a job, and returns the exit codes of those with a script."""
    codes = []
    for step in steps:
        if "run" not in step or any(codes) and step.get("if") != "always()":
            continue
        command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
        codes.append(subprocess.run(command, stdin=subprocess.DEVNULL, env=ENVIRONMENT, check=False).returncode)
    return codes


def published(steps):
    for step in steps:
        for path in str(step.get("with", {}).get("path", "")).split():
            with open(path, encoding="utf-8") as file:
                if path.endswith(".xml"):
                    assert ElementTree.parse(file).getroot().findall(".//testcase"), f"{path} has no test case"
                else:
                    assert file.read(15) == "<!doctype html>", f"{path} is not an HTML page"
            yield path


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        workflow = yaml.safe_load(file)
    assert workflow["jobs"], "the workflow has no job"
    for name, job in workflow["jobs"].items():
        codes = perform(job["steps"])
        assert codes and all(code in (0, 1, 3) for code in codes), f"{name}: {codes}"
        paths = list(published(job["steps"]))
        assert paths, f"{name} publishes nothing"
        print(f"{name}: exit codes {codes}, published {paths}")


main()
