#!/usr/bin/env python3
"""Writes the bill of materials of the program, as CycloneDX 1.6 in JSON: sbom.py OUT.

It reads `cargo metadata` and Cargo.lock. The document lists every crate that is linked into the command, the probes and the
guest, with version, licence, source, checksum and dependencies. It lists no crates that only build or test. Equal sources
make equal documents: it contains no time and no random number."""

import hashlib
import json
import os
import pathlib
import subprocess
import sys
import tomllib
import uuid

TARGET = "x86_64-unknown-linux-gnu"
# Packages that the program contains as bytes, without a dependency that cargo knows.
EMBEDDED = [
    ("x86_64-unknown-linux-musl", "tactus-probe"),
    ("aarch64-unknown-linux-musl", "tactus-probe"),
    ("x86_64-unknown-none", "tactus-bare-guest"),
]


# Scripts in the source that were published elsewhere.
VENDOR = pathlib.Path(__file__).parent.parent / "crates/tactus-report/src/render/html/vendor"


def metadata(target):
    cargo = [os.environ.get("CARGO", "cargo"), "metadata", "--locked", "--format-version", "1"]
    said = subprocess.run([*cargo, "--filter-platform", target], check=True, stdout=subprocess.PIPE)
    return json.loads(said.stdout)


def linked(data, root):
    """Ids of the packages that are linked into a package, each with its direct dependencies."""
    nodes = {node["id"]: node for node in data["resolve"]["nodes"]}
    macros = {
        package["id"]
        for package in data["packages"]
        if any("proc-macro" in target["kind"] for target in package["targets"])
    }
    found, waiting = {}, [root]
    while waiting:
        one = waiting.pop()
        if one in found:
            continue
        needs = {
            dependency["pkg"]
            for dependency in nodes[one]["deps"]
            if any(kind["kind"] is None for kind in dependency["dep_kinds"])
        }
        found[one] = sorted(needs - macros)
        waiting.extend(found[one])
    return found


def main():
    with open("Cargo.lock", "rb") as lock:
        sums = {
            (package["name"], package["version"]): package["checksum"]
            for package in tomllib.load(lock)["package"]
            if "checksum" in package
        }
    packages, needs = {}, {}
    for target, name in [(TARGET, "tactus"), *EMBEDDED]:
        data = metadata(target)
        packages.update({package["id"]: package for package in data["packages"]})
        root = next(package["id"] for package in data["packages"] if package["name"] == name)
        for one, others in linked(data, root).items():
            needs[one] = sorted({*needs.get(one, []), *others})

    def purl(one):
        return f"pkg:cargo/{packages[one]['name']}@{packages[one]['version']}"

    def component(one):
        package = packages[one]
        made = {
            "type": "application" if package["name"] == "tactus" else "library",
            "bom-ref": purl(one),
            "name": package["name"],
            "version": package["version"],
            "purl": purl(one),
        }
        if package["license"]:
            # cargo still accepts `/` for OR; SPDX does not.
            made["licenses"] = [{"expression": package["license"].replace("/", " OR ")}]
        if package["description"]:
            made["description"] = " ".join(package["description"].split())
        checksum = sums.get((package["name"], package["version"]))
        if checksum:
            made["hashes"] = [{"alg": "SHA-256", "content": checksum}]
        return made

    program = next(one for one in needs if packages[one]["name"] == "tactus")
    names = {name for _, name in EMBEDDED}
    needs[program] = sorted({*needs[program], *(one for one in needs if packages[one]["name"] in names)})
    order = sorted(needs, key=purl)
    vendored, drawn = vendor(), next(one for one in needs if packages[one]["name"] == "tactus-report")
    body = {
        "metadata": {"component": component(program)},
        "components": [component(one) for one in order if one != program] + vendored,
        "dependencies": [
            {"ref": purl(one), "dependsOn": sorted([*map(purl, needs[one]), *(made["bom-ref"] for made in vendored if one == drawn)])}
            for one in order
        ],
    }
    digest = hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
    head = {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid.UUID(digest[:32], version=4)}",
        "version": 1,
    }
    with open(sys.argv[1], "w") as out:
        json.dump({**head, **body}, out, indent=2, ensure_ascii=False)
        out.write("\n")


def vendor():
    """Components in the source that were published elsewhere: scripts of the report's page, by the names of their files."""
    made = []
    for path in sorted(VENDOR.glob("*.js")):
        name, version = path.stem.rsplit("-", 1)
        purl = f"pkg:npm/{name}@{version}"
        digest = hashlib.sha256(path.read_bytes()).hexdigest()
        made.append({"type": "library", "bom-ref": purl, "name": name, "version": version, "purl": purl,
                     "licenses": [{"expression": "MIT"}], "hashes": [{"alg": "SHA-256", "content": digest}]})
    return made


if len(sys.argv) != 2:
    sys.exit("usage: sbom.py OUT")
main()
