"""Whether Nova's own validators take extra specs: nova_holds.py NAME=VALUE...

Only the validators and the enumerations that they name are loaded: what those import beside them (databases,
message queues, keys) is stood in for."""

import os
import sys
import types
from unittest import mock

ROOT = next(os.path.join(path, "nova") for path in sys.path if os.path.isdir(os.path.join(path, "nova")))


class ValidationError(Exception):
    pass


def package(name, **members):
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(ROOT, *name.split(".")[1:])]
    module.__dict__.update(members)
    sys.modules[name] = module


def validators():
    for name in ["nova", "nova.api", "nova.api.validation", "nova.objects"]:
        package(name)
    package("nova.exception", ValidationError=ValidationError)
    # An enumeration of Nova's has these names as its values, and must have some.
    sys.modules["cursive"] = mock.MagicMock(signature_utils=mock.MagicMock(HASH_METHODS={"SHA-256": None}))
    for _ in range(60):
        try:
            import nova.api.validation.extra_specs.hw as hardware

            return {validator.name: validator for validator in hardware.register()}
        except ModuleNotFoundError as error:
            sys.modules[error.name] = mock.MagicMock(__path__=[])
    sys.exit("error: Nova's validators cannot be loaded")


def main():
    known = validators()
    for given in sys.argv[1:]:
        name, _, value = given.partition("=")
        if name not in known:
            sys.exit(f"error: {given}: Nova knows no such extra spec")
        try:
            known[name].validate(name, value)
        except ValidationError as error:
            sys.exit(f"error: {given}: {error}")


main()
