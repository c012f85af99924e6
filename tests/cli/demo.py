# SPDX-License-Identifier: MIT
"""`tidemark demo`: the main job from the program alone, without its sources, a network or a display: what it types is what a
user can type, its files are whole, nothing is overwritten, and on a terminal it ends in the view."""
import json
import os
import re
import shlex
import shutil
import subprocess
import unittest

import tidemark
from manual import Terminal
from tidemark import PROGRAM, SAMPLES, Case, ask, environment

FILES = ["unet-plan.json", "unet.db", "unet.html", "unet.json"]


class Demo(Case):
    def setUp(self):
        super().setUp()
        self.elsewhere = self.dir / "elsewhere"
        self.elsewhere.mkdir()
        # The program alone: of its sources nothing is near.
        self.program = self.dir / "bin" / "tidemark"
        self.program.parent.mkdir()
        shutil.copy(PROGRAM, self.program)
        self.env = environment({"TMPDIR": str(self.dir / "tmp"), "HOME": str(self.dir / "home"), "DISPLAY": None,
                                "PATH": f"{self.program.parent}:{os.environ['PATH']}", "XDG_STATE_HOME": None})
        for name in ("tmp", "home"):
            (self.dir / name).mkdir()

    def demo(self, *args, code=0, before=()):
        p = subprocess.run([*before, self.program, "demo", *map(str, args)], cwd=self.elsewhere, env=self.env, text=True,
                           stdin=subprocess.DEVNULL, capture_output=True, timeout=300)
        self.assertEqual(p.returncode, code, f"stdout: {p.stdout[-3000:]}\nstderr: {p.stderr}")
        return p

    def test_the_main_job(self):
        """Into a fresh folder, by a user who has no network where that can be had."""
        alone = ["unshare", "-r", "-n"]
        has_unshare = shutil.which("unshare") and subprocess.run([*alone, "true"], check=False, capture_output=True).returncode == 0
        p = self.demo("--once", before=alone if has_unshare else ())
        self.assertEqual(p.stderr, "")
        folder = next((self.dir / "tmp").iterdir())
        self.assertEqual(sorted(path.name for path in folder.iterdir()), FILES)
        self.assertEqual(folder.stat().st_mode & 0o777, 0o700)
        self.assertEqual(p.stdout.splitlines()[1], f"$ cd {folder}")
        self.assertEqual(list(self.elsewhere.iterdir()) + list((self.dir / "home").iterdir()), [])
        self.assertEqual((folder / "unet.json").read_bytes(), (SAMPLES / "unet.json").read_bytes())
        self.assertEqual(ask(folder / "unet.db", "SELECT mode FROM run ORDER BY id"), [("naive",), ("planned",)])
        page = (folder / "unet.html").read_text()
        self.assertIn("</html>", page)
        self.assertNotRegex(page, r'(?:src|href)="(?!#|data:)')
        for words in ("fits: yes", "outputs naive = planned: bit for bit", "predicted = measured: to the byte",
                      "EXPLAIN: step 19 (up3)", f"# What is left, in {folder}:"):
            self.assertIn(words, p.stdout)
        # What it typed does the same when a user types it: the plan is made anew, the bytes of its file are the same.
        typed = [line[2:] for line in p.stdout.splitlines() if line.startswith("$ tidemark ")]
        self.assertEqual([shlex.split(line)[1] for line in typed], ["plan", "plan", "compare", "report", "tui"])
        before = (folder / "unet-plan.json").read_bytes()
        for line in (typed[1], typed[4]):
            again = subprocess.run(["sh", "-c", line], cwd=folder, env=self.env, capture_output=True, text=True, timeout=120)
            self.assertEqual((again.returncode, again.stderr), (0, ""), line)
            self.assertIn(again.stdout.strip(), p.stdout)
        self.assertEqual((folder / "unet-plan.json").read_bytes(), before)
        bytes_ = json.loads(before)["plans"][0]["bytes"]
        kinds = {k["kind"]: k for k in self.json("trace", folder / "unet.db")["kinds"]}
        self.assertEqual(kinds["Workspace"]["peak_bytes"], bytes_)

    def test_nothing_is_overwritten(self):
        mine = self.elsewhere / "mine"
        mine.mkdir()
        (mine / "unet.json").write_text("mine")
        p = self.demo("mine", code=3)
        for words in ("'mine' is not empty", "'unet.json' is in it", "overwrites nothing"):
            self.assertIn(words, p.stderr)
        self.assertEqual([path.read_text() for path in mine.iterdir()], ["mine"])
        (self.elsewhere / "file").write_text("mine")
        self.assertIn("cannot make the folder 'file'", self.demo("file", code=8).stderr)
        self.assertIn("cannot make the folder 'file': Not a directory", self.demo("file/x", code=8).stderr)
        self.assertIn("one DIR at most", self.demo("a", "b", code=2).stderr)
        self.env["TMPDIR"] = str(self.dir / "nowhere")
        self.assertIn("nowhere", self.demo("--once", code=8).stderr)
        self.assertEqual(sorted(path.name for path in self.elsewhere.iterdir()), ["file", "mine"])

    def test_a_step_that_fails_ends_it(self):
        """A disk that is full: its exit code is that of the step, and the step is named."""
        limit = ["prlimit", "--fsize=20000"]
        if shutil.which("prlimit") is None:
            self.skipTest("prlimit is not installed")
        p = self.demo("--once", "full", code=8, before=limit)
        self.assertIn("error: the demo ends here, with exit code 8 of 'tidemark plan'", p.stderr)
        self.assertEqual(sorted(path.name for path in (self.elsewhere / "full").iterdir()), ["unet.json"])

    def test_on_a_terminal_it_ends_in_the_view(self):
        env = {**self.env, "TERM": "xterm-256color", "LINES": "30", "COLUMNS": "100"}
        line = f"stty cols 100 rows 30; {self.program} demo 'my folder'; echo co''de=$?"
        shell = Terminal(self, ["sh", "-c", line], env)
        try:
            shown = shell.type("", "$ tidemark tui unet.json --view peak --no-state", "EXPLAIN")
            self.assertIn("$ cd 'my folder'", shown)
            self.assertNotIn("--once", shown)
            shell.type("q", "# What is left, in 'my folder':", "code=0")
        finally:
            shell.close()
        self.assertEqual(sorted(path.name for path in (self.dir / "my folder").iterdir()), FILES)
        self.assertEqual(list((self.dir / "home").iterdir()), [])


if __name__ == "__main__":
    tidemark.main()
