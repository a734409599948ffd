"""What Nova reads of a directory with a drop-in of nova.conf: nova_reads.py DIRECTORY.

By oslo.config and Nova's own declarations of the options, which refuse a value of the wrong type; an option that none
declares, and that Nova would pass over in silence, is an error here. Prints the values as JSON."""

import importlib
import json
import os
import sys
import types

from oslo_config import cfg

ROOT = next(os.path.join(path, "nova") for path in sys.path if os.path.isdir(os.path.join(path, "nova")))


def package(name):
    """A package of Nova's without what it loads by itself."""
    module = types.ModuleType(name)
    module.__path__ = [os.path.join(ROOT, *name.split(".")[1:])]
    sys.modules[name] = module


def options():
    """The options that a compute host's configuration has, as Nova declares them."""
    package("nova")
    package("nova.conf")
    conf = cfg.ConfigOpts()
    for part in ["compute", "libvirt"]:
        importlib.import_module(f"nova.conf.{part}").register_opts(conf)
    return conf


def main():
    conf = options()
    conf([], project="nova", default_config_files=[], default_config_dirs=[sys.argv[1]])
    read = {}
    for sections in conf._namespace._parsed:
        for section, keys in sections.items():
            for key in keys:
                try:
                    group = conf if section == "DEFAULT" else conf[section]
                    read[f"{section}.{key}"] = group[key]
                except cfg.NoSuchOptError:
                    sys.exit(f"error: [{section}] {key}: Nova knows no such option")
                except cfg.ConfigFileValueError as error:
                    sys.exit(f"error: {error}")
    json.dump(read, sys.stdout)


main()
