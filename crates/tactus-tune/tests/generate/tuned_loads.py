"""Loads a profile as the TuneD daemon does, with its includes and variables, and prints it as JSON."""

import json
import os
import sys

import tuned.consts as consts
import tuned.plugins
from tuned.profiles import Factory, Loader, Locator, Merger
from tuned.profiles.variables import Variables
from tuned.utils.global_config import GlobalConfig

variables = Variables()
locator = Locator(consts.LOAD_DIRECTORIES)
loader = Loader(locator, Factory(), Merger(), GlobalConfig(), variables)
profile = loader.load(sys.argv[1])
plugins = os.path.dirname(tuned.plugins.__file__)
units = {}
for name, unit in profile.units.items():
    kind = unit.type or name
    if not os.path.exists(os.path.join(plugins, f"plugin_{kind}.py")):
        sys.exit(f"error: TuneD has no plugin for [{name}]")
    units[name] = {key: variables.expand(str(value)) for key, value in unit.options.items()}
json.dump(units, sys.stdout)
