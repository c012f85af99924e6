# SPDX-License-Identifier: MIT
"""Running the program under test, for the files beside this one."""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

PROGRAM = os.environ.get("TIDEMARK", "build/test/cli/tidemark")
SOURCE = pathlib.Path(os.environ.get("TIDE_SOURCE_DIR", "."))
SHARED = pathlib.Path(os.environ.get("TIDE_SHARED_DIR", "../shared"))
SAMPLES = SOURCE / "sample_graphs"


def run(*args, stdin=None, env=None, timeout=300):
    """The finished process; output as text, undecodable bytes replaced."""
    full = {**os.environ, "LC_ALL": "C.UTF-8", **(env or {})}
    return subprocess.run([PROGRAM, *map(str, args)], input=stdin, capture_output=True, text=True, errors="replace",
                          env=full, timeout=timeout)


class Case(unittest.TestCase):
    """A test with a folder of its own, and checks in the program's words."""

    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.addCleanup(shutil.rmtree, self.dir, True)

    def ok(self, *args, code=0, **kw):
        p = run(*args, **kw)
        self.assertEqual(p.returncode, code, f"{args}\nstdout: {p.stdout[-2000:]}\nstderr: {p.stderr[-2000:]}")
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


def main():
    # One line per test and a summary; skipped ones are printed with their reason.
    result = unittest.main(verbosity=2, exit=False).result
    if not result.wasSuccessful():
        sys.exit(1)
    if result.testsRun == len(result.skipped):
        sys.exit(77)
