# SPDX-License-Identifier: MIT
"""Traces whose writer was killed in the middle: every command reads them, or says what to do; never half-written pages."""
import os
import pathlib
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, run, until

LENET = SAMPLES / "lenet5.json"
VICTIM = os.environ.get("TIDE_KILL_VICTIM", "")
NOBODY = 65534

# A transaction that is larger than its connection's memory, so that half of it is in the file, and no end.
HALF_WRITE = """
import os, signal, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.execute("PRAGMA cache_size = 10")
db.execute("BEGIN IMMEDIATE")
for table in ("event", "block", "leaf", "snapshot"): db.execute(f"DELETE FROM {table}")
db.execute("UPDATE meta SET value = 'half' WHERE key <> 'schema'")
db.execute("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200) "
           "INSERT INTO meta SELECT 'x' || i, hex(randomblob(8000)) FROM n")
os.kill(os.getpid(), signal.SIGKILL)
"""

READERS = [("trace",), ("trace", "--json"), ("trace", "--check"), ("trace", "--at", "peak"),
           ("trace", "--sql", "SELECT count(*) FROM event"), ("trace", "--expand"), ("report", "-o", "{dir}/r.html"),
           ("tui", "--once", "--size", "100x30"), ("diff", "{path}", "{good}"), ("diff", "{good}", "{path}"),
           ("trace", "--compare", "{good}"), ("trace", "--recover", "-o", "{dir}/recovered.db")]


def half_written(path):
    """The trace with a journal that was never rolled back."""
    p = subprocess.run([sys.executable, "-c", HALF_WRITE, str(path)])
    assert p.returncode == -signal.SIGKILL
    assert pathlib.Path(f"{path}-journal").stat().st_size > 0


def with_log(path):
    """The trace with a log that is not in it, and without the log's index: the last run is in the log alone."""
    db = sqlite3.connect(path, isolation_level=None)
    db.execute("PRAGMA journal_mode = WAL")
    db.execute("PRAGMA wal_autocheckpoint = 0")
    db.execute("UPDATE meta SET value = 'in the log' WHERE key = 'created_by'")
    kept = pathlib.Path(f"{path}-wal").read_bytes(), path.read_bytes()
    db.close()
    pathlib.Path(f"{path}-wal").write_bytes(kept[0])
    path.write_bytes(kept[1])


def as_nobody():
    os.setgid(NOBODY)
    os.setuid(NOBODY)


class Left(Case):
    def setUp(self):
        super().setUp()
        os.chmod(self.dir, 0o755)
        self.good, self.path = self.dir / "good.db", self.dir / "t.db"
        self.ok("compare", LENET, "-n", 3, "-o", self.good, "--form", "rows")
        self.n_events = ask(self.good, "SELECT count(*) FROM event")[0][0]
        shutil.copy(self.good, self.path)

    def beside(self, path=None):
        path = path or self.path
        return sorted(f.name for f in path.parent.iterdir() if f.name.startswith(path.name) and f != path)

    def assert_whole(self, path):
        self.assertEqual(ask(path, "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual(ask(path, "SELECT count(*) FROM event"), [(self.n_events,)])


class Journal(Left):
    def test_every_reader_rolls_it_back(self):
        for reader in READERS:
            shutil.copy(self.good, self.path)
            half_written(self.path)
            left = [shutil.copy(f"{self.path}{end}", self.dir / f"left{end}") for end in ("", "-journal")]
            words = [w.format(dir=self.dir, path=self.path, good=self.good) for w in reader]
            with self.subTest(reader=reader):
                self.ok(words[0], *([] if words[0] == "diff" else [self.path]), *words[1:], code=None)
                if "--recover" not in reader:  # what it reads it does not touch
                    self.assertEqual(self.beside(), [])
                    self.assert_whole(self.path)
            for f in left:
                os.unlink(f)
        self.assert_whole(self.dir / "recovered.db")

    def ok(self, *args, code=0, **kw):
        """`code` None: of a comparison, whose 1 is an answer."""
        if code is not None:
            return super().ok(*args, code=code, **kw)
        p = run(*args, **kw)
        self.assertIn(p.returncode, (0, 1) if "diff" in args else (0,), f"{args}\n{p.stdout[-500:]}\n{p.stderr[-2000:]}")
        return p

    def test_by_another_name(self):
        half_written(self.path)
        link = self.dir / "elsewhere" / "link.db"
        link.parent.mkdir()
        link.symlink_to(self.path)
        self.ok("trace", link)
        self.assert_whole(self.path)
        self.assertEqual(self.beside(), [])

    def test_recording_over_it(self):
        half_written(self.path)
        self.ok("run", LENET, "-n", 1, "-o", self.path)
        self.assertEqual(self.beside(), [])
        self.ok("trace", self.path, "--check")

    def refused_to_nobody(self, *says):
        before = self.path.read_bytes(), pathlib.Path(f"{self.path}-journal").read_bytes()
        for reader in ("trace",), ("trace", "--check"), ("tui", "--once"):
            p = self.refused(3, reader[0], self.path, *reader[1:], says=("journal", *says), preexec_fn=as_nobody)
            self.assertNotIn("malformed", p.stderr)
            self.assertIn("hint:", p.stderr)
        self.assertEqual((self.path.read_bytes(), pathlib.Path(f"{self.path}-journal").read_bytes()), before)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_who_may_not_write_is_told_the_remedy(self):
        half_written(self.path)
        self.refused_to_nobody("cp ")
        os.chmod(f"{self.path}-journal", 0o600)
        self.refused_to_nobody("cannot be read")
        os.chmod(f"{self.path}-journal", 0o644)
        mine = self.dir / "mine"  # the remedy
        mine.mkdir()
        for end in ("", "-journal"):
            shutil.copy(f"{self.path}{end}", mine)
            os.chown(mine / f"t.db{end}", NOBODY, NOBODY)
        os.chown(mine, NOBODY, NOBODY)
        self.ok("trace", mine / "t.db", preexec_fn=as_nobody)
        self.assert_whole(mine / "t.db")
        self.ok("trace", self.path)  # and so does one who may
        self.assert_whole(self.path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_own_files_in_a_folder_of_another(self):
        half_written(self.path)
        for end in ("", "-journal"):
            os.chown(f"{self.path}{end}", NOBODY, NOBODY)
        self.ok("trace", self.path, preexec_fn=as_nobody)  # no name can be taken away there
        self.ok("trace", self.path, preexec_fn=as_nobody)
        self.assert_whole(self.path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_planted_one_is_not_played(self):
        half_written(self.path)
        journal = f"{self.path}-journal"
        os.chown(journal, NOBODY, NOBODY)
        for _ in range(2):  # looking must not make it ours
            p = self.refused(3, "trace", self.path, says=("another user",))
            self.assertIn("hint:", p.stderr)
        os.chown(journal, 0, 0)
        self.ok("trace", self.path)
        self.assert_whole(self.path)

    def test_no_further_file_is_taken_away(self):
        """SQLite takes away the file that the end of a journal names, when that names no journal that is there."""
        half_written(self.path)
        other = self.dir / "other.txt"
        other.write_bytes(f"{self.dir}/none-journal\0".encode())
        name = str(other).encode()
        with open(f"{self.path}-journal", "ab") as f:
            f.write(struct.pack(">I", (1 << 30) // 8192 + 1) + name + struct.pack(">II", len(name), sum(name)) +
                    bytes.fromhex("d9d505f920a163d7"))
        p = self.refused(3, "trace", self.path, says=("further file",))
        self.assertIn("--recover", p.stderr)
        run("trace", self.path, "--recover", "-o", self.dir / "recovered.db")
        self.assertTrue(other.exists())


class Log(Left):
    def test_the_first_reader_makes_one_file(self):
        for reader in (), ("--json",), ("--check",), ("--expand",):
            shutil.copy(self.good, self.path)
            with_log(self.path)
            with self.subTest(reader=reader):
                self.ok("trace", self.path, *reader)
                self.assertEqual(self.beside(), [])
                self.assertEqual(ask(self.path, "PRAGMA journal_mode"), [("delete",)])
                self.assertEqual(ask(self.path, "SELECT value FROM meta WHERE key = 'created_by'"), [("in the log",)])
                self.assert_whole(self.path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_read_where_nothing_can_be_written(self):
        with_log(self.path)
        before = {f: f.read_bytes() for f in self.dir.iterdir()}
        query = "SELECT value FROM meta WHERE key = 'created_by'"
        p = self.ok("trace", self.path, "--sql", query, preexec_fn=as_nobody)
        self.assertEqual(p.stdout.split("\n")[1], "in the log")
        self.assertEqual(p.stderr, "")
        for reader in ("trace",), ("trace", "--check"), ("tui", "--once"):
            self.ok(reader[0], self.path, *reader[1:], preexec_fn=as_nobody)
        self.assertEqual({f: f.read_bytes() for f in self.dir.iterdir()}, before)
        os.unlink(f"{self.path}-wal")  # then there is nothing but the file
        self.ok("trace", self.path, preexec_fn=as_nobody)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_log_that_cannot_be_read(self):
        with_log(self.path)
        os.chmod(f"{self.path}-wal", 0o600)
        self.refused(3, "trace", self.path, preexec_fn=as_nobody)


@unittest.skipUnless(VICTIM, "needs the program that records events by the hundred thousand")
class Expand(Case):
    """The command that users type, ended in the middle."""

    N = 300000

    def setUp(self):
        super().setUp()
        self.path, shadow = self.dir / "t.db", self.dir / "shadow"
        shadow.write_bytes(bytes(4096))
        subprocess.run([VICTIM, "--trace", self.path, "--shadow", shadow, "--form", "chunks", "--events",
                        str(self.N // 2), "--seed", "7"], check=True, env=environment())
        shadow.unlink()
        self.chunks = self.path.read_bytes()

    def test_killed_while_it_writes(self):
        n_inside = 0
        for i in range(6):
            self.path.write_bytes(self.chunks)
            journal = pathlib.Path(f"{self.path}-journal")
            p = self.start("trace", self.path, "--expand")
            until(lambda: p.poll() is not None or (journal.exists() and journal.stat().st_size > (i << 18)))
            p.send_signal((signal.SIGTERM, signal.SIGINT, signal.SIGKILL)[i % 3])
            p.wait()
            n_inside += p.returncode < 0
            facts = self.json("trace", self.path)
            self.assertEqual((facts["state"], facts["events"]), ("complete", self.N))
            self.assertEqual([f.name for f in self.dir.iterdir()], ["t.db"])
            n_rows, n_chunked = ask(self.path, "SELECT (SELECT count(*) FROM event), "
                                    "(SELECT total(last_event - first_event + 1) FROM event_chunk)")[0]
            self.assertEqual(n_rows + n_chunked, self.N)
            self.assertEqual(ask(self.path, "PRAGMA integrity_check"), [("ok",)])
        self.assertGreater(n_inside, 2)
        self.ok("trace", self.path, "--expand")
        self.assertEqual(ask(self.path, "SELECT count(*) FROM event"), [(self.N,)])


if __name__ == "__main__":
    tidemark.main()
