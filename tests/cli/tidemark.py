# SPDX-License-Identifier: MIT
"""Running the program under test, for the files beside this one."""
import json
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
import unittest

import scratch

PROGRAM = os.path.abspath(os.environ.get("TIDEMARK", "build/test/cli/tidemark"))
SOURCE = pathlib.Path(os.environ.get("TIDE_SOURCE_DIR", "."))
SHARED = pathlib.Path(os.environ.get("TIDE_SHARED_DIR", "../shared"))
SAMPLES = SOURCE / "sample_graphs"
CI_NAMES = ["CI", "GITHUB_ACTIONS", "GITLAB_CI", "BUILDKITE", "JENKINS_URL", "TF_BUILD", "TEAMCITY_VERSION"]
# Whatever runs these tests must not change what they see: no CI, no settings of git or of the program's own. The machine
# may be any: oneDNN takes kernels that all processors have, since the scratch of others differs; by the caches it differs
# all the same (scratch.py).
CLEAN = {**scratch.PINNED, **{name: None for name in CI_NAMES}, "GITHUB_STEP_SUMMARY": None, "GIT_AUTHOR_NAME": None,
         "USER": "tester", "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "LC_ALL": "C.UTF-8", "COLUMNS": None,
         "TIDEMARK_COLLECT": None, "TIDEMARK_LOG": None, "TIDEMARK_MPI": None, "TIDEMARK_TICKS": None, "TIDE_NO_TICKS": None,
         "TIDEMARK_CUDA_PLUGIN": None,
         # Traces hold what programs tell themselves, and not the malloc of the shells and interpreters that start them:
         # any_program.py is about that.
         "TIDEMARK_PRELOAD": "/no/library"}

# Nor does it if it ignores signals, which programs inherit: nohup ignores hang-ups, a shell the interrupts of jobs in the
# background.
for ignored in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(ignored) == signal.SIG_IGN:
        signal.signal(ignored, signal.SIG_DFL)


def run(*args, stdin=None, env=None, timeout=300, preexec_fn=None, cwd=None):
    """The finished process; output as text, undecodable bytes replaced."""
    return subprocess.run([PROGRAM, *map(str, args)], input=stdin, capture_output=True, text=True, errors="replace",
                          env=environment(env), timeout=timeout, preexec_fn=preexec_fn, cwd=cwd)


def environment(more=None):
    """Ours, less what would make the program behave otherwise; a value of None takes a name away."""
    full = {**os.environ, **CLEAN, **(more or {})}
    return {name: value for name, value in full.items() if value is not None}


def until(what, why="it never came to that", seconds=120):
    """Wait for a state, never for a time. @return what `what` returned at last"""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = what()
        if found:
            return found
        time.sleep(0.01)
    raise AssertionError(why)


def processor_seconds(pid):
    """What the process has used of processors."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as stat:
        fields = stat.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def settle(pids, figure, seconds):
    """Wait until each process has used so much of a processor since figure(pid) changed last: however slow the machine is, it
    has worked on meanwhile. @return the figures"""
    last = {}

    def is_settled():
        for pid in pids:
            now = figure(pid)
            if pid not in last or last[pid][0] != now:
                last[pid] = (now, processor_seconds(pid))
        return all(processor_seconds(pid) - last[pid][1] >= seconds for pid in pids)
    until(is_settled)
    return [last[pid][0] for pid in pids]


def ask(path, query, *values):
    """Plain SQL on a finished trace."""
    db = sqlite3.connect(path)
    try:
        return db.execute(query, values).fetchall()
    finally:
        db.close()


class Case(unittest.TestCase):
    """A test with a folder of its own, and checks in the program's words."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.addCleanup(shutil.rmtree, self.dir, True)

    def start(self, *args, env=None, preexec_fn=None):
        """The running process; killed at the end of the test when it still runs."""
        p = subprocess.Popen([PROGRAM, *map(str, args)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                             env=environment(env), preexec_fn=preexec_fn)
        self.addCleanup(p.stdout.close)
        self.addCleanup(p.stderr.close)
        self.addCleanup(p.wait)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        return p

    def ok(self, *args, code=0, **kw):
        p = run(*args, **kw)
        codes = code if isinstance(code, tuple) else (code,)
        self.assertIn(p.returncode, codes, f"{args}\nstdout: {p.stdout[-2000:]}\nstderr: {p.stderr[-2000:]}")
        return p

    def json(self, *args, code=0, **kw):
        return json.loads(self.ok(*args, "--json", code=code, **kw).stdout)

    def refused(self, code, *args, says=(), **kw):
        """Fails with `code`, says `error:` and every word of `says`, and does not crash."""
        p = run(*args, **kw)
        self.assertEqual(p.returncode, code, f"{args}\nstdout: {p.stdout[-1000:]}\nstderr: {p.stderr[-2000:]}")
        self.assertTrue(p.stderr.startswith("error: "), p.stderr[:500])
        for word in says:
            self.assertIn(word, p.stderr)
        return p


def share(items, of):
    """One of `of` items, evenly from all of a long list; all of them in make soak (TIDE_SOAK)."""
    return list(items)[::1 if os.environ.get("TIDE_SOAK") else of]


def main():
    # One line per test and a summary; skipped ones are printed with their reason.
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == len(result.skipped):
        sys.exit(77)
