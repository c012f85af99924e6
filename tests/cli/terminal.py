# SPDX-License-Identifier: MIT
"""The contract with terminals: what is sent where, at any size, in any locale, and what is left behind whatever ends the
view. A real terminal each (tmux); what the program writes is read byte by byte beside it."""
import os
import random
import re
import shlex
import signal
import sqlite3
import unittest

import tidemark
from screen import Screen
from tidemark import PROGRAM, SAMPLES, Case, run, until

LENET = SAMPLES / "lenet5.json"
SIZES = ((20, 5), (39, 10), (40, 9), (40, 10), (60, 18), (80, 24), (100, 30), (120, 40), (200, 60), (400, 120))
MODES = ("\x1b[?1049h", "\x1b[?1049l")  # alternate screen: on, off


class Raw(Screen):
    """A screen, and beside it every byte that the program has written."""

    def start_raw(self, *args, **kw):
        self.start(*args, wait=False, before="read _; ", **kw)
        self.bytes_file = self.dir / "bytes"
        self.bytes_file.touch()
        self.tmux("pipe-pane", "-O", f"cat > {shlex.quote(str(self.bytes_file))}")
        self.tmux("send-keys", "Enter")
        return self.idle()

    def written(self):
        return self.bytes_file.read_bytes()

    def until_written(self, what, why="it was never written"):
        return until(lambda: self.written() if what(self.written()) else None, why)

    def quit(self):
        self.tmux("send-keys", "q")
        self.ended(0)
        self.until_written(lambda b: MODES[1].encode() in b, "the alternate screen was never left")


class Screens(Screen):
    def test_draws_answers_and_quits(self):
        self.start(LENET, "--no-state")
        first = self.idle()
        self.assertIn("lenet5", first)
        self.assertIn("probabilities", first)  # an output is alive at every step, whatever the peak is on this processor
        self.assertIn("Questions", self.keys("?"))
        self.assertEqual(self.keys("Escape").rsplit("\n", 2)[0], first.rsplit("\n", 2)[0])  # but for the last line
        self.assertNotEqual(self.keys("Down").split("\n")[2:-2], first.split("\n")[2:-2])
        self.tmux("send-keys", "q")
        self.ended(0)

    def test_any_size(self):
        self.start(LENET, "--no-state", width=120, height=40)
        for width, height in SIZES:
            with self.subTest(size=f"{width}x{height}"):
                self.resize(width, height)
                if width < 40 or height < 10:
                    needs = f"needs40x10,has{width}x{height}"  # broken where a line ends
                    screen = self.until(lambda s: needs in re.sub(r"\s+", "", s))
                else:
                    screen = self.until(lambda s: s.count("\n") == height and "lenet5" in s and
                                        self.state_of(s)[1] == "idle" and "needs" not in s)
                    self.assertTrue(all(len(line) <= width for line in screen.split("\n")))

    def test_every_view_at_every_size(self):
        """No view, no overlay and no focus breaks at any size; every screen is full: its last line is there."""
        self.start(LENET, "--no-state", width=40, height=10)
        for width, height in SIZES[3:]:
            self.resize(width, height)
            self.until(lambda s: s.count("\n") == height and self.state_of(s)[1] == "idle")
            for key in ("1", "2", "3", "4", "5", "Tab", "Tab", "?", "Escape", "F2", "Escape"):
                screen = self.keys(key)
                self.assertEqual(screen.count("\n"), height, f"{key} at {width}x{height}")

    def test_a_long_explanation_keeps_no_key_waiting(self):
        """Plans of a table of thousands take seconds: what is held is there at once, and keys are done meanwhile."""
        rng = random.Random(18)
        rows = ["id,lower,upper,size"]
        for i in range(9000):
            begin = rng.randrange(9000)
            rows.append(f"{i},{begin},{begin + rng.randrange(20, 3000)},{64 * rng.randrange(1, 4000)}")
        table = self.dir / "long.csv"
        table.write_text("\n".join(rows) + "\n")
        self.start(table, "--no-state")
        self.tmux("send-keys", "3")
        screen = self.until(lambda s: "Making a plan without each of the largest" in s, "no first answer")
        self.assertIn("= held", screen)
        self.assertEqual(self.state_of(screen)[1], "busy")
        at = re.search(r"EXPLAIN: (step \d+)", screen)[1]
        self.tmux("send-keys", "Right")
        screen = self.until(lambda s: "EXPLAIN: step" in s and at not in s.split("EXPLAIN", 1)[1], "the cursor stood")
        self.assertEqual(self.state_of(screen)[1], "busy")
        self.assertIn("= held", screen)
        self.tmux("send-keys", "q")
        self.ended(0)

    def test_resize_storm(self):
        """Sixty sizes as fast as they can be sent, 1x1 among them; the frame then is that of a fresh start."""
        rng = random.Random(7)
        self.start(LENET, "--no-state", width=100, height=30)
        calm = self.idle()
        for i in range(60):
            self.resize(*((1, 1) if i % 9 == 4 else (rng.randint(1, 200), rng.randint(1, 60))))
        self.resize(100, 30)
        self.until(lambda s: s == calm, "the frame is not that of a fresh start")
        self.tmux("send-keys", "q")
        self.ended(0)


class OtherTerminals(Screen):
    def test_the_same_picture_by_curses(self):
        """A terminal whose strings want padding is left to curses: the same cells, after every key."""
        keys = ("Down", "2", "Right", "3", "4", "?", "Escape", "1")
        screens = []
        for term in ("tmux-256color", "vt100"):
            self.socket = str(self.dir / f"{term}.sock")
            self.start(LENET, "--no-state", term=term, env={"NO_COLOR": "1"}, width=100, height=30)
            screens.append([self.idle()] + [self.keys(key) for key in keys])
            self.tmux("send-keys", "q")
            self.ended(0, restores=False)  # a vt100 has one screen
            self.tmux("kill-server")
            self.code.unlink()
        self.assertEqual(*screens)


class Logged(Screen):
    def test_what_is_logged_does_not_stand_in_the_picture(self):
        """A second model is planned from inside, which logs: the line at the bottom says so, :messages has all of it,
        and the shell gets it afterwards."""
        self.start(LENET, "--no-state", env={"TIDEMARK_LOG": "1"})
        self.line(f"compare {SAMPLES.absolute() / 'unet.json'}")
        screen = self.until(lambda s: re.search(r"\d+ logged: :messages", s), "nothing was said of the log")
        body = screen.split("\n")[:-2]
        self.assertFalse([line for line in body if "note:" in line or "program '" in line], screen)
        listed = self.line("messages")
        self.assertRegex(listed, r"note: .*unet")
        self.keys("Escape")
        self.keys("Escape")
        self.tmux("send-keys", "q")
        self.until(lambda s: self.code.exists() and self.code.read_text().strip() != "")
        self.assertRegex(self.until(lambda s: "note:" in s), r"note: .*unet")


class Signals(Screen):
    def check(self, number, says=""):
        self.start(LENET, "--no-state")
        self.signal(number)
        self.ended(128 + number, says)
        cursor = self.tmux("display-message", "-p", "#{cursor_flag} #{alternate_on} #{mouse_any_flag}").split()
        self.assertEqual(cursor, ["1", "0", "0"], "cursor, alternate screen or mouse were left as they were")

    def test_term(self):
        self.check(signal.SIGTERM)

    def test_int(self):
        self.check(signal.SIGINT)

    def test_hup(self):
        self.check(signal.SIGHUP)

    def test_abrt(self):
        self.check(signal.SIGABRT, "Aborted")

    def test_segv(self):
        self.check(signal.SIGSEGV, "Segmentation fault")

    def test_stop_and_continue(self):
        """Ctrl-Z gives the terminal back to the shell, fg brings the view back as it was."""
        (self.dir / "tmux.conf").write_text('set -g default-terminal "tmux-256color"\nset -g status off\n')
        shell = ["env", "LC_ALL=C.UTF-8", "PS1=ready>", "ENV=", f"HOME={self.dir}", "sh", "-i"]
        self.tmux("new-session", "-d", "-x", 100, "-y", 30, *shell)
        self.addCleanup(self.tmux, "kill-server")
        self.until(lambda s: "ready>" in s)
        self.tmux("send-keys", "-l", shlex.join([PROGRAM, "tui", str(LENET.absolute()), "--no-state", "--test-mode"]))
        self.tmux("send-keys", "Enter")
        self.idle()
        before = self.keys("Down", "3")
        self.tmux("send-keys", "C-z")
        self.until(lambda s: "Stopped" in s and "ready>" in s and "EXPLAIN" not in s)
        self.tmux("send-keys", "-l", "fg")
        self.tmux("send-keys", "Enter")
        self.until(lambda s: s == before, "the view did not come back as it was")
        self.tmux("send-keys", "q")
        self.until(lambda s: "EXPLAIN" not in s and "ready>" in s)


class Bytes(Raw):
    def test_no_color(self):
        """NO_COLOR with any value: no colour, but the whole picture."""
        self.start_raw(LENET, "--no-state", env={"NO_COLOR": "1"})
        self.keys("2", "3", "?", "Escape")
        self.quit()
        colours = re.findall(rb"\x1b\[[0-9;:]*m", self.written())
        self.assertTrue(colours, "not even bold or reverse")
        for sgr in colours:
            codes = [int(c) for c in re.split(rb"[;:]", sgr[2:-1]) if c]
            self.assertFalse([c for c in codes if 30 <= c <= 38 or 40 <= c <= 48 or 90 <= c <= 107], sgr)

    def test_colours_by_default(self):
        self.start_raw(LENET, "--no-state")
        self.quit()
        self.assertRegex(self.written(), rb"\x1b\[[0-9;]*38[;:]5[;:]\d+")

    def test_true_colour(self):
        """COLORTERM says what terminfo does not; NO_COLOR has the last word."""
        self.start_raw(LENET, "--no-state", env={"COLORTERM": "truecolor"})
        self.quit()
        self.assertRegex(self.written(), rb"\x1b\[[0-9;]*38;2;\d+;\d+;\d+")
        self.assertNotRegex(self.written(), rb"\x1b\[[0-9;]*38;5;")

    def test_true_colour_and_none(self):
        self.start_raw(LENET, "--no-state", env={"COLORTERM": "truecolor", "NO_COLOR": "1"})
        self.quit()
        self.assertNotRegex(self.written(), rb"\x1b\[[0-9;]*[34]8;")

    def test_another_word_in_colorterm(self):
        self.start_raw(LENET, "--no-state", env={"COLORTERM": "yes"})
        self.quit()
        self.assertNotRegex(self.written(), rb"\x1b\[[0-9;]*38;2;")

    def test_ascii_in_the_c_locale(self):
        self.start_raw(LENET, "--no-state", env={"LC_ALL": "C"})
        self.keys("2", "3", "4", "5", "?", "Escape")
        self.quit()
        self.assertTrue(self.written().isascii(), "bytes beyond ASCII in the C locale")

    def test_everything_is_put_back(self):
        """Alternate screen, cursor, mouse, bracketed paste: every mode that was set is reset in the end."""
        self.start_raw(LENET, "--no-state")
        self.quit()
        data = self.written()
        on = set(re.findall(rb"\x1b\[\?(\d+)h", data)) | {m for group in re.findall(rb"\x1b\[\?([\d;]+)h", data)
                                                        for m in group.split(b";")}
        last = {}
        for modes, what in re.findall(rb"\x1b\[\?([\d;]+)([hl])", data):
            for mode in modes.split(b";"):
                last[mode] = what
        self.assertIn(b"1049", on)
        self.assertIn(b"1006", on, "SGR mouse was never asked for")
        for mode in on - {b"25", b"12", b"7"}:
            self.assertEqual(last[mode], b"l", f"mode {mode.decode()} stays set")
        self.assertEqual(last.get(b"25", b"h"), b"h", "the cursor stays hidden")

    def test_a_cursor_move_sends_what_changed(self):
        self.start_raw(SAMPLES / "resnet18.json", "--no-state", width=120, height=40)
        before, moves = len(self.written()), 40
        for _ in range(moves // 2):
            self.keys("Right")
        for _ in range(moves // 2):
            self.keys("Left")
        each = (len(self.written()) - before) / moves
        print(f"{each:.0f} bytes for a move of the cursor at 120x40, {before} for the first frame")
        self.assertLess(each, 4096)

    def test_copy_reaches_the_clipboard(self):
        self.start_raw(LENET, term="xterm-256color")
        self.keys("Down", "y")
        data = self.until_written(lambda b: re.search(rb"\x1b\]52;c;[A-Za-z0-9+/=]+\x07", b))
        import base64
        text = base64.b64decode(re.search(rb"\x1b\]52;c;([A-Za-z0-9+/=]+)\x07", data).group(1)).decode()
        self.assertTrue(text.strip())
        self.assertEqual((self.dir / "state" / "tidemark" / "copied.txt").read_text().strip(), text.strip())
        self.quit()


class Mouse(Screen):
    def mouse(self, button, column, row, down=True):
        """An event as terminals with SGR coordinates send it; cells count from 1."""
        self.tmux("send-keys", "-l", f"\x1b[<{button};{column};{row}{'M' if down else 'm'}")

    def check(self, term):
        self.start(LENET, "--no-state", term=term, width=240, height=40)
        self.idle()
        screen = self.keys("@")  # all rows
        rows = [i for i, line in enumerate(screen.split("\n")) if re.match(r"^[ >]\S", line) and "KiB" in line[200:]]
        self.assertGreater(len(rows), 4, screen)
        name = screen.split("\n")[rows[3]][1:].split()[0]
        seq = self.state_of(screen)[0]
        self.mouse(0, 5, rows[3] + 1)
        self.mouse(0, 5, rows[3] + 1, down=False)
        self.until(lambda s: s.split("\n")[rows[3]].startswith(">" + name), f"a click did not select {name!r}")
        # Beyond column 223, which the older coding cannot tell: a column of the time axis.
        seq = self.state_of(self.idle(seq))[0]
        before = self.screen()
        self.mouse(0, 224, 6)
        self.mouse(0, 224, 6, down=False)
        self.idle(seq)
        # The wheel zooms at the pointer: the ruler changes.
        seq = self.state_of(self.screen())[0]
        self.mouse(64, 120, 6)
        after = self.idle(seq, "the wheel did nothing")
        self.assertNotEqual(after, before)
        self.tmux("send-keys", "q")
        self.ended(0, restores=term != "linux")  # a console has one screen: there is none to go back to

    def test_xterm(self):
        self.check("xterm-256color")

    def test_tmux(self):
        self.check("tmux-256color")

    def test_screen(self):
        self.check("screen-256color")

    def test_linux(self):
        self.check("linux")

    def test_no_mouse_leaves_it_to_the_terminal(self):
        self.start(LENET, "--no-state", "--no-mouse")
        self.assertEqual(self.tmux("display-message", "-p", "#{mouse_any_flag}").strip(), "0")
        self.keys("M")
        until(lambda: self.tmux("display-message", "-p", "#{mouse_any_flag}").strip() == "1")
        self.keys("M")
        until(lambda: self.tmux("display-message", "-p", "#{mouse_any_flag}").strip() == "0")


class State(Screen):
    def again(self, *args):
        self.tmux("send-keys", "q")
        self.ended(0)
        self.tmux("kill-server")
        self.code.unlink()
        self.socket += "+"
        self.start(LENET, *args)
        return self.idle()

    def test_view_and_filters_are_kept(self):
        self.start(LENET)
        self.keys("3")
        self.line("filter size>1KiB")
        kept = sorted((self.dir / "state" / "tidemark").iterdir()) if (self.dir / "state").exists() else []
        self.assertIn("EXPLAIN", self.again())
        kept = sorted((self.dir / "state" / "tidemark").iterdir())
        self.assertTrue(kept, "nothing was kept")
        self.assertIn("size>1", self.keys("1"))
        # A fresh start on request; an invalid state file does not prevent the start.
        self.line("reset")
        self.assertNotIn("EXPLAIN", self.again())
        for path in (self.dir / "state" / "tidemark").iterdir():
            path.write_text("{ not json")
        self.assertIn("lenet5", self.again())

    def test_no_state_writes_nothing(self):
        self.start(LENET, "--no-state")
        self.keys("3")
        self.assertIn("bytes copied, for the terminal's clipboard alone", self.keys("y"))
        self.tmux("send-keys", "q")
        self.ended(0)
        self.assertFalse((self.dir / "state").exists())


class Live(Screen):
    def test_a_trace_that_grows(self):
        """Opened while it is being recorded, it grows on the screen, and ends with the numbers of the finished file."""
        path = self.dir / "t.db"
        p = self.start_recording(path)
        until(lambda: path.exists() and path.stat().st_size > 0)
        self.start(path, "--follow", "--no-state", "--run", "all", wait=False)
        self.until(lambda s: re.search(r"recording|live", s, re.I) and "peak" in s)
        self.assertEqual(p.wait(timeout=300), 0)
        events = sqlite3.connect(path).execute("SELECT count(*) FROM block").fetchone()[0]
        self.until(lambda s: f"{events:,} blocks" in s.replace("_", ","), "it never showed the finished trace")
        self.tmux("send-keys", "q")
        self.ended(0)

    def start_recording(self, path):
        return Case.start(self, "run", LENET, "--naive", "-n", 20000, "-o", path)


class NoTerminal(Case):
    def test_pipe_is_told(self):
        p = run("tui", LENET)
        self.assertEqual(p.returncode, 2)
        self.assertIn("--once", p.stderr)
        self.assertEqual(p.stdout, "")

    def test_dumb_terminal_is_told(self):
        p = run("tui", LENET, env={"TERM": "dumb"})
        self.assertEqual(p.returncode, 2)
        self.assertNotIn("\x1b", p.stdout + p.stderr)
        self.assertIn("--once", p.stderr)

    def test_ascii_in_the_c_locale(self):
        p = run("tui", LENET, "--once", env={"LC_ALL": "C"})
        self.assertEqual(p.returncode, 0)
        self.assertTrue(p.stdout.isascii())

    def test_once_is_plain_text(self):
        for view in range(1, 6):
            p = run("tui", LENET, "--once", "--no-state", "--size", "100x30", "--view", view)
            self.assertEqual(p.returncode, 0)
            self.assertNotIn("\x1b", p.stdout)
            self.assertEqual(p.stdout.count("\n"), 30)


class Dumb(Screen):
    def test_dumb_terminal_is_told(self):
        self.start(LENET, "--no-state", term="dumb", wait=False)
        self.until(lambda s: self.code.exists() and self.code.read_text().strip() != "")
        self.assertEqual(self.code.read_text().strip(), "2")
        self.assertIn("--once", self.screen())


if __name__ == "__main__":
    tidemark.main()
