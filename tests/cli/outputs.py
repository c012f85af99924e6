# SPDX-License-Identifier: MIT
"""Files that the program writes: each command and option, what has the name before, what ends it half way, and the exit
code of each trouble. From outside: folders are listed, limits set, signals sent."""
import os
import pathlib
import random
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import tempfile
import time

import tidemark
from tidemark import SAMPLES, Case, run

LENET = SAMPLES.resolve() / "lenet5.json"
ROOT = os.geteuid() == 0


def small_files():
    """A disk that is full, for one process: no file grows beyond 4 KiB."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


class Outputs(Case):
    @classmethod
    def setUpClass(cls):
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, True)
        for command in (["plan", LENET, "-o", "plan.json"], ["run", "-n", "2", "-o", "t.db", LENET]):
            run(*command, cwd=cls.made).check_returncode()
        (cls.made / "tidemark.toml").write_text('version = 1\nbaseline = "base.json"\n[[model]]\npath = "m.json"\n')
        (cls.made / "m.json").write_text(LENET.read_text())
        run("check", "--update-baseline", "--reason", "r", cwd=cls.made).check_returncode()

    def setUp(self):
        super().setUp()
        self.cwd = self.dir / "cwd"
        shutil.copytree(self.made, self.cwd)
        self.begin = self.files()
    def files(self):
        return {p.name for p in self.cwd.iterdir()}

    def texts(self):
        """Commands that write one file of text, by the ending it wants."""
        return {
            "plan": (["plan", LENET, "-o"], "out.json"),
            "export": (["export", LENET, "--to", "csv", "-o"], "out.csv"),
            "diff": (["diff", LENET, SAMPLES / "unet.json", "-o"], "out.json"),
            "sweep": (["sweep", "--align", "64,256", LENET, "-o"], "out.csv"),
            "check junit": (["check", "--junit"], "out.xml"),
            "check markdown": (["check", "--markdown"], "out.md"),
            "check sarif": (["check", "--sarif"], "out.sarif"),
            "check json": (["check", "--write-json"], "out.json"),
            "report": (["report", "plan.json", "-o"], "out.html"),
            "report csv": (["report", "plan.json", "-o"], "out.csv"),
        }

    def traces(self):
        """Commands that write a trace."""
        return {
            "run": ["run", "-n", "1", LENET, "-o"],
            "run thread": ["run", "-n", "1", "--recorder", "thread", LENET, "-o"],
            "compare": ["compare", "-n", "1", LENET, "-o"],
            "recover": ["trace", "t.db", "--recover", "-o"],
            "replay": ["replay", "t.db", "-o"],
            "record": ["record", "-o"],
        }

    def call(self, args, out, *more, **kw):
        args = [*args, out, *more]
        if args[0] == "record":
            args += ["--", tidemark.PROGRAM, "run", "-n", "1", LENET]
        return run(*args, cwd=self.cwd, **kw)

    def each(self):
        for name, (args, out) in self.texts().items():
            yield name, args, out
        for name, args in self.traces().items():
            yield name, args, "out.db"

    def test_exit_8_where_it_cannot_be_written(self):
        for name, args, out in self.each():
            with self.subTest(name):
                p = self.call(args, f"nope/{out}")
                self.assertEqual(p.returncode, 8, p.stderr)
                self.assertRegex(p.stderr, "the folder '(.*/)?nope' does not exist")
                (self.cwd / "sub").mkdir()
                os.rename(self.cwd / "sub", self.cwd / out)
                p = self.call(args, out)
                self.assertEqual(p.returncode, 8, p.stderr)
                self.assertIn("directory", p.stderr)
                (self.cwd / out).rmdir()
                if not out.endswith(".db"):
                    continue
                self.assertEqual(self.call(args, "/dev/full").returncode, 8)
                self.assertEqual(self.files(), self.begin)

    def test_exit_8_where_the_disk_is_full(self):
        for name, args, out in self.each():
            if name in ("check junit", "check markdown", "check sarif", "export", "sweep", "report csv"):
                continue  # shorter than the limit
            with self.subTest(name):
                (self.cwd / out).write_text("")
                p = self.call(args, out, preexec_fn=small_files)
                self.assertEqual(p.returncode, 8, p.stderr)
                if not out.endswith(".db"):
                    self.assertEqual((self.cwd / out).read_text(), "")
                (self.cwd / out).unlink(missing_ok=True)
                self.assertEqual(self.files(), self.begin)

    def test_exit_8_for_standard_output(self):
        commands = (["plan", LENET], ["plan", "--json", LENET], ["run", "-n", "1", LENET], ["compare", "-n", "1", LENET],
                    ["export", LENET, "--to", "csv"], ["diff", LENET, LENET], ["check"], ["check", "--json"],
                    ["check", "--junit", "-"], ["trace", "t.db"], ["trace", "t.db", "--at", "peak", "--json"],
                    ["sweep", "--align", "64", LENET], ["allocators"], ["devices"], ["replay", "t.db"], ["operators"],
                    ["tui", "plan.json", "--once"], ["--version"], ["plan", "--help"])
        with open("/dev/full", "wb") as full:
            for args in commands:
                with self.subTest(args=args):
                    p = subprocess.run([tidemark.PROGRAM, *map(str, args)], cwd=self.cwd, stdout=full,
                                       stderr=subprocess.PIPE, text=True, env=tidemark.environment())
                    self.assertEqual(p.returncode, 8, p.stderr)
                    self.assertIn("standard output", p.stderr)

    def test_the_other_codes(self):
        """One case of each, through each command that can have it."""
        for args in (["plan", "nothing.json"], ["run", "nothing.json"], ["trace", "nothing.db"], ["report", "nothing.db", "-o", "r.html"],
                     ["diff", "nothing.json", LENET], ["tui", "nothing.json", "--once"], ["export", "nothing.json", "--to", "csv"]):
            self.refused(3, *args, cwd=self.cwd)
        for args in (["plan"], ["run", "--no-such"], ["trace"], ["record"], ["check", "--no-such"], ["no-such"]):
            self.refused(2, *args, cwd=self.cwd)
        self.refused(4, "check", "m.json", "--baseline", "nothing.json", cwd=self.cwd)
        for command in ("run", "compare"):
            self.refused(6, command, LENET, "--limit", "100KiB", says=["out of memory"])
        with open(self.cwd / "tidemark.toml", "a") as config:
            config.write('strategy = "naive"\n')
        self.assertEqual(run("check", cwd=self.cwd).returncode, 1)

    def test_what_has_the_name_before(self):
        """A link leads to the file, which keeps its mode; two names stay one file; a planted name is not written to."""
        for name, args, out in self.each():
            with self.subTest(name):
                real, other = self.cwd / f"real-{out}", self.cwd / f"other-{out}"
                real.write_text("")
                real.chmod(0o600)
                os.link(real, other)
                (self.cwd / out).symlink_to(real.name)
                victim = self.cwd / "victim"
                victim.write_text("precious")
                p = self.call(args, out)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertTrue((self.cwd / out).is_symlink())
                self.assertEqual(real.stat().st_ino, other.stat().st_ino)
                self.assertGreater(other.stat().st_size, 0)
                other.unlink()
                p = self.call(args, out)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(stat.S_IMODE(real.stat().st_mode), 0o600)
                for path in (real, self.cwd / out, victim):
                    path.unlink()
                self.assertEqual(self.files(), self.begin)

    def test_names_that_others_could_guess(self):
        """Links that are planted under the names that earlier versions gave to files in the making."""
        victim = self.cwd / "victim"
        victim.write_text("precious")
        for name, args, out in self.each():
            with self.subTest(name):
                script = (f'for i in "" -0 -1 -2 -0-wal -1-wal -0-journal; do for x in tmp copy; do '
                          f'ln -s victim {out}.$x-$$$i; done; done; exec "$@"')
                full = [*args, out] + (["--", tidemark.PROGRAM, "run", "-n", "1", LENET] if args[0] == "record" else [])
                p = subprocess.run(["sh", "-c", script, "sh", tidemark.PROGRAM, *map(str, full)], cwd=self.cwd,
                                   stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, env=tidemark.environment())
                self.assertEqual(p.returncode, 0, p.stderr)
                self.assertEqual(victim.read_text(), "precious")

    def test_a_file_that_is_no_trace_is_not_replaced(self):
        for name, args in self.traces().items():
            with self.subTest(name):
                note = self.cwd / "note.txt"
                note.write_text("precious")
                p = self.call(args, note.name)
                self.assertEqual(p.returncode, 2, p.stderr)
                self.assertIn("no tidemark trace", p.stderr)
                self.assertIn("--force", p.stderr)
                self.assertEqual(note.read_text(), "precious")
                force = ["--force"]
                p = self.call(args[:-1], *force, "-o", note.name)
                self.assertEqual(p.returncode, 0, p.stderr)
                self.ok("trace", note, "--check")
                p = self.call(args, note.name)  # a trace may be replaced
                self.assertEqual(p.returncode, 0, p.stderr)
                note.write_text("")  # and an empty file
                self.assertEqual(self.call(args, note.name).returncode, 0)
                note.unlink()
                self.assertEqual(self.files(), self.begin)

    def test_signals(self):
        """At random moments: the old file or the new one, and nothing beside it."""
        self.ok("run", "-n", "400", "--naive", "-o", "big.db", LENET, cwd=self.cwd)
        with open(self.cwd / "big.db", "r+b") as f:  # so that it has something to recover
            f.seek(3 * 8192)
            f.write(b"\0" * 8192)
        begin, rng, ended = self.files(), random.Random(7), 0
        numbers = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT, signal.SIGALRM, signal.SIGSEGV]
        args = [tidemark.PROGRAM, "trace", "big.db", "--recover", "-o", "out.db"]
        start = time.monotonic()
        subprocess.run(args, cwd=self.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        whole = time.monotonic() - start
        os.unlink(self.cwd / "out.db")
        for i in range(24):
            p = subprocess.Popen(args, cwd=self.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * whole)
            p.send_signal(numbers[i % len(numbers)])
            p.wait()
            ended += p.returncode < 0
            self.assertLessEqual(self.files() - begin, {"out.db"}, p.returncode)
            if (self.cwd / "out.db").exists():
                self.ok("trace", "out.db", "--check", cwd=self.cwd)
                (self.cwd / "out.db").unlink()
        print(f"{ended} of 24 were ended by the signal")
        # What a kill leaves goes with the next run.
        for i in range(6):
            p = subprocess.Popen(args, cwd=self.cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            time.sleep(rng.random() * whole)
            p.kill()
            p.wait()
        self.ok("trace", "big.db", "--recover", "-o", "out.db", cwd=self.cwd)
        self.assertEqual(self.files() - begin, {"out.db"})

    def test_signals_while_a_recording_begins(self):
        """Nothing, or a trace that its collector finishes: no lock and no log stays."""
        rng = random.Random(3)
        for i in range(12):
            p = subprocess.Popen([tidemark.PROGRAM, "run", "-n", "3000", "--naive", "-o", "out.db", LENET], cwd=self.cwd,
                                 stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=tidemark.environment())
            time.sleep(rng.random() * 0.3)
            p.send_signal(signal.SIGTERM)
            p.wait()
            tidemark.until(lambda: self.files() - self.begin <= {"out.db"}, f"{self.files() - self.begin}", seconds=30)

    def test_another_user(self):
        """A folder without the right to write, as another user than root."""
        if not ROOT:
            self.skipTest("root alone can become another user")
        os.chmod(self.dir, 0o755)
        os.chmod(self.cwd, 0o755)
        for name, args, out in self.each():
            if name == "recover":
                continue  # it finishes what it reads first
            with self.subTest(name):
                p = self.call(args, out, preexec_fn=lambda: os.setuid(1234))
                self.assertEqual(p.returncode, 8, p.stderr)
                self.assertIn("Permission denied", p.stderr)
        self.assertEqual(self.files(), self.begin)


if __name__ == "__main__":
    tidemark.main()
