# SPDX-License-Identifier: MIT
"""A folder with a configuration, models and a baseline, for gate.py and gate_baseline.py."""
import json
import os
import pathlib
import subprocess

import tidemark
from tidemark import SAMPLES

LENET = SAMPLES / "lenet5.json"
TRACE = os.environ.get("TIDE_GATE_TRACE", "build/test/tests/cli/gate_trace")
TIMED = ("time_ns", "plan_time_ns")


def untimed(value):
    """The document without what a clock has told."""
    if isinstance(value, dict):
        return {k: untimed(v) for k, v in value.items() if k not in TIMED}
    if isinstance(value, list):
        return [untimed(v) for v in value if not (isinstance(v, dict) and v.get("metric") in TIMED)]
    return value


class GateCase(tidemark.Case):
    """A folder with a configuration, models and a baseline."""

    def check(self, *args, code=0, env=None, **kw):
        return self.ok("check", *args, code=code, cwd=self.dir, env=env, **kw)

    def document(self, *args, code=0, **kw):
        return json.loads(self.check("--json", *args, code=code, **kw).stdout)

    def not_run(self, code, *args, says=(), env=None, **kw):
        return self.refused(code, "check", *args, says=says, cwd=self.dir, env=env, **kw)

    def model(self, name, change=lambda doc: None, of=LENET):
        doc = json.loads(pathlib.Path(of).read_text())
        change(doc)
        (self.dir / name).write_text(json.dumps(doc))

    def config(self, models=("m.json",), head="", tail="", run=True):
        lines = ["version = 1", 'baseline = "base.json"', head, "[defaults]", f"run = {str(run).lower()}", "node_limit = 2000"]
        for name in models:
            lines += ["[[model]]", f'path = "{name}"']
        (self.dir / "tidemark.toml").write_text("\n".join([*lines, tail]) + "\n")

    def default(self, line):
        """One more line in [defaults]."""
        path = self.dir / "tidemark.toml"
        path.write_text(path.read_text().replace("[defaults]", f"[defaults]\n{line}", 1))

    def update(self, reason="as it is", *args):
        return self.check("--update-baseline", "--reason", reason, "--by", "Ann", *args)

    def remedy(self, p, then=()):
        """The command that a refused check prints works as it is typed, and the check passes after it."""
        line = next(line for line in p.stdout.splitlines() if line.startswith(("to accept: ", "to make a baseline: ")))
        folder = self.dir / "bin"
        folder.mkdir(exist_ok=True)
        (folder / "tidemark").unlink(missing_ok=True)
        (folder / "tidemark").symlink_to(tidemark.PROGRAM)
        env = tidemark.environment({"PATH": f"{folder}:{os.environ['PATH']}"})
        typed = subprocess.run(line.split(": ", 1)[1], shell=True, cwd=self.dir, env=env, capture_output=True, text=True)
        self.assertEqual(typed.returncode, 0, f"{line}\n{typed.stdout}{typed.stderr}")
        self.check(*then)
        return line

    def begin(self, *args, **kw):
        """A model, a configuration and a baseline that it passes."""
        self.model("m.json")
        self.config(*args, **kw)
        self.update()
        self.check()

    def failed(self, *says, metric=None, cause=None):
        """The check fails, in words that hold all of `says`; the JSON tells the metric and the kind of the cause."""
        text = self.check(code=1).stdout
        self.assertTrue(text.startswith("FAIL"), text)
        for word in says:
            self.assertIn(word, text)
        doc = self.document(code=1)
        self.assertEqual((doc["verdict"], doc["exit_code"]), ("fail", 1))
        whole = json.dumps(doc)
        if metric is not None:
            bad = [r for c in doc["cases"] for r in c["rows"] if r["verdict"] == "fail"]
            self.assertIn(metric, [r["metric"] for r in bad])
        if cause is not None:
            self.assertIn(f'"{cause}"', whole)
        return doc
