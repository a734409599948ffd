"""Whether a YAML document keeps to a schema: yaml_holds.py SCHEMA DOCUMENT."""

import json
import sys

import jsonschema
import yaml

with open(sys.argv[1]) as schema, open(sys.argv[2]) as document:
    rules = json.load(schema)
    jsonschema.Draft202012Validator.check_schema(rules)
    jsonschema.validate(yaml.safe_load(document), rules, jsonschema.Draft202012Validator)
