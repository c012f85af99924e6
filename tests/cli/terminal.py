# SPDX-License-Identifier: MIT
"""The TUI on a real terminal (tmux): draws, answers keys, restores the screen, obeys signals."""
import os
import pathlib
import shutil
import subprocess
import time
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, run


class Terminal(Case):
    def setUp(self):
        super().setUp()
        if shutil.which("tmux") is None:
            self.skipTest("tmux is not installed")
        self.socket = str(self.dir / "tmux.sock")

    def tmux(self, *args):
        return subprocess.run(["tmux", "-f", "/dev/null", "-S", self.socket, *args], capture_output=True, text=True,
                              timeout=20).stdout

    def start(self, width=100, height=30, file=SAMPLES / "lenet5.json", env=""):
        marker = self.dir / "code"
        command = f"{env} LC_ALL=C.UTF-8 '{os.path.abspath(PROGRAM)}' tui '{file}'; echo $? > '{marker}'; exec cat"
        self.tmux("new-session", "-d", "-x", str(width), "-y", str(height), "sh", "-c", command)
        self.addCleanup(self.tmux, "kill-server")
        return marker

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def until(self, what, seconds=10):
        """Wait for a state of the screen (or of a file), never for a time."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if what(self.screen()):
                return self.screen()
            time.sleep(0.02)
        self.fail("the screen never came to that state:\n" + self.screen())

    def test_draws_and_quits(self):
        code = self.start()
        self.until(lambda s: "lenet5" in s and "conv1" in s)
        before = self.screen()
        self.tmux("send-keys", "?")
        self.until(lambda s: "quit" in s.lower() and s != before)
        self.tmux("send-keys", "?")
        self.until(lambda s: "conv1" in s)
        first = self.screen()
        self.tmux("send-keys", "Down")
        self.until(lambda s: s != first)
        self.tmux("send-keys", "q")
        self.until(lambda s: code.exists() and code.read_text().strip() == "0")
        self.assertNotIn("conv1", self.screen(), "the screen was not restored")

    def test_resize(self):
        self.start(120, 40)
        self.until(lambda s: "lenet5" in s)
        for width, height in ((80, 24), (40, 10), (20, 5), (100, 30)):
            self.tmux("resize-window", "-x", str(width), "-y", str(height))
            self.until(lambda s: s.count("\n") == height and (width < 40 or "lenet5" in s))

    def test_signal_restores_and_tells(self):
        code = self.start()
        self.until(lambda s: "lenet5" in s)
        pane = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        child = pathlib.Path(f"/proc/{pane}/task/{pane}/children").read_text().split()[0]
        os.kill(int(child), 15)
        self.until(lambda s: code.exists() and code.read_text().strip() == "143")
        self.assertNotIn("conv1", self.screen())


class NoTerminal(Case):
    def test_pipe_and_dumb_are_told(self):
        p = run("tui", SAMPLES / "lenet5.json")
        self.assertEqual(p.returncode, 3)
        self.assertIn("--once", p.stderr)
        self.assertEqual(p.stdout, "")

    def test_ascii_in_the_c_locale(self):
        p = run("tui", SAMPLES / "lenet5.json", "--once", env={"LC_ALL": "C"})
        self.assertEqual(p.returncode, 0)
        self.assertTrue(p.stdout.isascii())


if __name__ == "__main__":
    tidemark.main()
