#!/usr/bin/env python3
"""Checks that a file is a CycloneDX 1.6 document, with CycloneDX's validator: sbom-holds.py FILE."""

import json
import sys

from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

with open(sys.argv[1]) as file:
    text = file.read()
wrong = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
if wrong:
    sys.exit(f"error: {sys.argv[1]}: {wrong}")
names = [component["name"] for component in json.loads(text)["components"]]
for needed in ["clap", "serde", "tactus-audit", "tactus-probe", "libc"]:
    if needed not in names:
        sys.exit(f"error: {sys.argv[1]}: {needed} is not among the components")
for alien in ["insta", "proptest"]:
    if alien in names:
        sys.exit(f"error: {sys.argv[1]}: {alien} is a component, but only tests need it")
print(f"{len(names)} components")
