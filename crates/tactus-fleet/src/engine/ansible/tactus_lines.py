"""What came of each task on each machine, a line of JSON each: tactus reads it."""
import json

from ansible.plugins.callback import CallbackBase

DOCUMENTATION = """
name: tactus_lines
type: stdout
short_description: a line of JSON for each result
description: A line of JSON for each result of a task on a machine.
"""


class CallbackModule(CallbackBase):
    CALLBACK_VERSION = 2.0
    CALLBACK_TYPE = "stdout"
    CALLBACK_NAME = "tactus_lines"

    def line(self, result, how):
        # Ansible 2.19 has other names for the three.
        of = lambda name: getattr(result, name, None) or getattr(result, "_" + name)
        told = of("result")
        # What a machine says is as long as it likes.
        plain = lambda value: value if isinstance(value, (bool, int, float)) else str(value)[:200]
        words = {key: plain(told[key]) for key in ("ansible_job_id", "finished", "rc") if key in told}
        # An error of Ansible's own says more in its message than a command in what it printed.
        said = [told.get(key) for key in ("stderr", "msg") if isinstance(told.get(key), str)]
        words["said"] = "\n".join(text[-2000:] for text in said if text)
        line = {"machine": of("host").get_name(), "task": of("task").get_name(), "how": how, **words}
        self._display.display("TACTUS " + json.dumps(line))

    def v2_runner_on_ok(self, result):
        self.line(result, "ok")

    def v2_runner_on_failed(self, result, ignore_errors=False):
        self.line(result, "failed")

    def v2_runner_on_unreachable(self, result):
        self.line(result, "unreachable")
