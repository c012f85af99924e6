# SPDX-License-Identifier: MIT
"""The view on a real terminal (tmux, with a socket of its own): keys in, screens out, waiting for states and never for
times. In test mode the last line ends in "seq=N idle" once everything that was asked for is on the screen."""
import os
import re
import shlex
import shutil
import subprocess
import time

from tidemark import PROGRAM, Case

SEQ = re.compile(r"seq=(\d+) (idle|busy)")


class Screen(Case):
    """A test with a terminal."""

    def setUp(self):
        super().setUp()
        if shutil.which("tmux") is None:
            self.skipTest("tmux is not installed")
        self.socket = str(self.dir / "tmux.sock")
        self.code = self.dir / "code"

    def tmux(self, *args):
        return subprocess.run(["tmux", "-f", str(self.dir / "tmux.conf"), "-S", self.socket, *map(str, args)],
                              capture_output=True, text=True, timeout=60).stdout

    def start(self, *args, width=120, height=40, env=None, term="tmux-256color", wait=True, test_mode=True, before=""):
        """Start `tidemark tui ARGS`; its exit code is in self.code when it has ended. Colours and state are those of a
        machine on which tidemark has never run."""
        (self.dir / "tmux.conf").write_text(f'set -g default-terminal "{term}"\nset -g status off\nset -g escape-time 0\n'
                                            "set -g set-clipboard on\nset -g history-limit 0\n")
        clean = {"LC_ALL": "C.UTF-8", "HOME": str(self.dir), "XDG_STATE_HOME": str(self.dir / "state"), "TERM": term,
                 **(env or {})}
        names = [n for n in ("NO_COLOR", "COLORTERM", "COLORFGBG", "COLUMNS", "LINES") if n not in clean]
        command = ["env", *[x for n in names for x in ("-u", n)], *[f"{k}={v}" for k, v in clean.items()], PROGRAM, "tui"]
        command += [str(a) for a in args] + (["--test-mode"] if test_mode else [])
        line = f"{before}{shlex.join(command)}; echo $? > {shlex.quote(str(self.code))}; exec cat"
        self.tmux("new-session", "-d", "-x", width, "-y", height, "sh", "-c", line)
        self.addCleanup(self.tmux, "kill-server")
        if wait:
            self.idle()

    def screen(self):
        return self.tmux("capture-pane", "-p")

    def until(self, what, why="the screen never came to that state", seconds=60):
        """The first screen for which `what` holds."""
        deadline = time.monotonic() + seconds
        screen = ""
        while time.monotonic() < deadline:
            screen = self.screen()
            if what(screen):
                return screen
            time.sleep(0.01)
        self.fail(f"{why}:\n{screen}")

    @staticmethod
    def state_of(screen):
        """(seq, "idle" | "busy") of the last line; (-1, "") when it has none."""
        found = SEQ.findall(screen.rstrip().rsplit("\n", 1)[-1])
        return (int(found[-1][0]), found[-1][1]) if found else (-1, "")

    def idle(self, beyond=-1, why="the view never came to rest"):
        """The screen when everything is done and the view has acted more than `beyond` times."""
        def rests(screen):
            if self.code.exists():
                self.fail(f"the program has ended: {why}\n{screen}")
            return self.state_of(screen)[1] == "idle" and self.state_of(screen)[0] > beyond
        return self.until(rests, why)

    def keys(self, *names):
        """Keys by tmux's names, one after the other, each done when the next one is sent. @return the screen"""
        screen = ""
        for name in names:
            seq = self.state_of(self.idle())[0]
            self.tmux("send-keys", name)
            screen = self.idle(seq, f"the view did nothing with {name!r}")
        return screen

    def line(self, text, key=":"):
        """A line behind ':' (or another prompt's key)."""
        self.keys(key)
        seq = self.state_of(self.idle())[0]
        self.tmux("send-keys", "-l", text)
        self.until(lambda s: self.state_of(s) == (seq + len(text), "idle"), f"{text!r} was not taken")
        return self.keys("Enter")

    def pid(self):
        pane = self.tmux("list-panes", "-F", "#{pane_pid}").strip()
        with open(f"/proc/{pane}/task/{pane}/children", encoding="ascii") as f:
            return int(f.read().split()[0])

    def ended(self, code, says="", restores=True):
        """It has ended with that code, and the screen is as it was before; `says`: what the shell may say of it."""
        self.until(lambda s: self.code.exists() and self.code.read_text().strip() != "", "it has not ended")
        self.assertEqual(self.code.read_text().strip(), str(code))
        if restores:
            self.until(lambda s: s.strip() in ("", says), "the screen was not restored")

    def signal(self, number):
        os.kill(self.pid(), number)

    def resize(self, width, height):
        self.tmux("resize-window", "-x", width, "-y", height)
