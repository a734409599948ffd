"""Performs a workflow of GitHub as a runner does: workflow.py FILE

Each step with `run` is a script of bash, in this directory, which is its HOME too; a step that fails ends the job, but for steps
with `if: always()`. `uses` is not performed. The gate may end with 0, 1 or 3: a machine that others use decides nothing. With 2 it
did not work. What the last step publishes must be there: JUnit files are parsed, pages begin as HTML."""

import os
import subprocess
import sys
import xml.etree.ElementTree as ElementTree

import yaml

# Many runs of each row: shorter ones than elsewhere.
ENVIRONMENT = os.environ | {"HOME": os.getcwd(), "TACTUS_SHORT": "200ms"}


def perform(steps):
    """Performs the steps of a job, and gives the exit codes of those that have a script."""
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
                    assert ElementTree.parse(file).getroot().findall(".//testcase"), f"{path} has no case"
                else:
                    assert file.read(15) == "<!doctype html>", f"{path} is no page"
            yield path


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        workflow = yaml.safe_load(file)
    assert workflow["jobs"], "there is no job"
    for name, job in workflow["jobs"].items():
        codes = perform(job["steps"])
        assert codes and all(code in (0, 1, 3) for code in codes), f"{name}: {codes}"
        paths = list(published(job["steps"]))
        assert paths, f"{name} publishes nothing"
        print(f"{name}: exit codes {codes}, published {paths}")


main()
