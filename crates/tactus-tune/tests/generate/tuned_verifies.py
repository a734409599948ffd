"""Has TuneD's own plug-ins verify a profile, as `tuned-adm verify` does, and prints what they say.

Nothing is applied. Left out are scripts, which look at the machine, and the scheduler, which verifies only what it
has applied before."""

import logging
import sys

import tuned.logs
from tuned.daemon.application import Application
from tuned.utils.global_config import GlobalConfig


class Print(logging.Handler):
    def emit(self, record):
        print(record.levelname, record.getMessage().replace("\n", " "))


log = tuned.logs.get()
for handler in list(log.handlers):
    log.removeHandler(handler)
log.addHandler(Print())
log.setLevel(logging.DEBUG)
daemon = Application(sys.argv[1], GlobalConfig())._daemon
units = daemon._profile_loader.load(sys.argv[1]).units
for name in ["script", "scheduler"]:
    units.pop(name, None)
daemon._unit_manager.create(units)
daemon._unit_manager.verify_tuning(True)
