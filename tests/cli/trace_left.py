# SPDX-License-Identifier: MIT
"""Traces whose writer was killed in the middle, is still at work, or whose file was cut: every command that reads a trace
answers as on the whole trace, or ends with an error in words and the exit code of docs/architecture.md."""
import json
import os
import pathlib
import re
import shutil
import signal
import sqlite3
import stat
import struct
import subprocess
import sys
import unittest

import tidemark
from recording import committed
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, run, until

LENET = SAMPLES / "lenet5.json"
VICTIM = os.environ.get("TIDE_KILL_VICTIM", "")
OTHER_USER = 65534

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


def all_taken(path):
    """Whether every event that was handed over is in the trace: no ring has a head beyond its tail (profiler/feed/format.h)."""
    for feed in path.parent.glob(f"{path.name}.feed-*"):
        data = feed.read_bytes()
        assert struct.unpack_from("<8sI", data) == (b"tidefeed", 3)
        (n_chunks,) = struct.unpack_from("<I", data, 192)
        for i in range(n_chunks):
            offset, _, kind, _, _ = struct.unpack_from("<QQIIQ", data, 760 + 32 * i)
            head, tail = struct.unpack_from("<Q", data, offset)[0], struct.unpack_from("<Q", data, offset + 64)[0]
            if kind == 2 and head != tail:
                return False
    return True


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


def as_other_user():
    os.setgid(OTHER_USER)
    os.setuid(OTHER_USER)


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

    def refused_to_other_user(self, *says):
        before = self.path.read_bytes(), pathlib.Path(f"{self.path}-journal").read_bytes()
        for reader in ("trace",), ("trace", "--check"), ("tui", "--once"):
            p = self.refused(3, reader[0], self.path, *reader[1:], says=("journal", *says), preexec_fn=as_other_user)
            self.assertNotIn("malformed", p.stderr)
            self.assertIn("hint:", p.stderr)
        self.assertEqual((self.path.read_bytes(), pathlib.Path(f"{self.path}-journal").read_bytes()), before)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_who_may_not_write_is_told_the_remedy(self):
        half_written(self.path)
        self.refused_to_other_user("cp ")
        os.chmod(f"{self.path}-journal", 0o600)
        self.refused_to_other_user("cannot be read")
        os.chmod(f"{self.path}-journal", 0o644)
        mine = self.dir / "mine"  # the remedy
        mine.mkdir()
        for end in ("", "-journal"):
            shutil.copy(f"{self.path}{end}", mine)
            os.chown(mine / f"t.db{end}", OTHER_USER, OTHER_USER)
        os.chown(mine, OTHER_USER, OTHER_USER)
        self.ok("trace", mine / "t.db", preexec_fn=as_other_user)
        self.assert_whole(mine / "t.db")
        self.ok("trace", self.path)  # and so does one who may
        self.assert_whole(self.path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_own_files_in_a_folder_of_another(self):
        half_written(self.path)
        for end in ("", "-journal"):
            os.chown(f"{self.path}{end}", OTHER_USER, OTHER_USER)
        self.ok("trace", self.path, preexec_fn=as_other_user)  # no name can be taken away there
        self.ok("trace", self.path, preexec_fn=as_other_user)
        self.assert_whole(self.path)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_planted_one_is_not_played(self):
        half_written(self.path)
        journal = f"{self.path}-journal"
        os.chown(journal, OTHER_USER, OTHER_USER)
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
        p = self.ok("trace", self.path, "--sql", query, preexec_fn=as_other_user)
        self.assertEqual(p.stdout.split("\n")[1], "in the log")
        self.assertEqual(p.stderr, "")
        for reader in ("trace",), ("trace", "--check"), ("tui", "--once"):
            self.ok(reader[0], self.path, *reader[1:], preexec_fn=as_other_user)
        self.assertEqual({f: f.read_bytes() for f in self.dir.iterdir()}, before)
        os.unlink(f"{self.path}-wal")  # then there is nothing but the file
        self.ok("trace", self.path, preexec_fn=as_other_user)

    @unittest.skipUnless(os.geteuid() == 0, "needs root, to be another user")
    def test_a_log_that_cannot_be_read(self):
        with_log(self.path)
        os.chmod(f"{self.path}-wal", 0o600)
        self.refused(3, "trace", self.path, preexec_fn=as_other_user)


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


# Every command that takes a trace, and its exit code for a whole trace, for a cut one, and while it is being recorded.
# A trace that cannot be measured is a failed case of `check` (1); as a baseline it is none to compare with (4).
COMMANDS = [
    (("check", "t.db", "--no-baseline", "--no-summary", "--json"), 0, 1, 1),
    (("check", "t.db", "--baseline", "t.db", "--no-summary", "--json"), 0, 4, 4),
    (("check", LENET.resolve(), "--baseline", "t.db", "--no-summary", "--json"), 0, 4, 0),
    (("export", "t.db", "--to", "csv"), 0, 3, 0),
    (("export", "t.db", "--to", "json", "--with-offsets"), 0, 3, 0),
    (("run", LENET.resolve(), "--plan", "t.db", "-n", 1, "--leak-check"), 0, 3, 0),
    (("report", "t.db", "-o", "r.html"), 0, 3, 0),
    (("report", "t.db", "-o", "r.csv"), 0, 3, 0),
    (("report", "t.db", "-o", "r.json"), 0, 3, 0),
    (("tui", "t.db", "--once", "--no-state", "--size", "100x30"), 0, 3, 0),
    (("tui", "t.db", "--no-state", "--pane", "table", "--csv"), 0, 3, 0),
    (("tui", "t.db", "--no-state", "--pane", "pools.leaks", "--csv"), 0, 3, 0),
    (("diff", "t.db", "t.db", "--json"), 0, 3, 0),
    (("diff", "t.db", "--at", "10%", "--and", "90%"), 0, 3, 0),
    (("trace", "t.db"), 0, 3, 0),
    (("trace", "t.db", "--json"), 0, 3, 0),
    (("trace", "t.db", "--at", "peak", "--by", "kind"), 0, 3, 0),
    (("trace", "t.db", "--at", "begin", "--and", "50%"), 0, 3, 0),
    (("trace", "t.db", "--compare", "t.db"), 0, 3, 0),
    (("trace", "t.db", "--check"), 0, 3, 1),
    (("trace", "t.db", "--sql", "SELECT count(*), sum(requested_bytes) FROM event"), 0, 3, 0),
    (("sweep", "t.db", "--align", 64), 3, 3, 3),
    (("plan", "t.db"), 3, 3, 3),
    (("compare", "t.db"), 3, 3, 3),
]


class EveryCommand(Left):
    """The table: each command on each state of a trace."""

    def folder(self, name, files=()):
        to = self.dir / name
        shutil.rmtree(to, ignore_errors=True)
        to.mkdir()
        for f in files:
            shutil.copy(f, to / f.name.replace("good", "t"))
        return to

    def answer(self, folder, words):
        """(process, all that was written), without times of this call and the size of a file that is being put together."""
        p = run(*words, cwd=folder)
        text = p.stdout if words[0] != "run" else ""
        if words[0] == "check" and p.returncode in (0, 1):
            doc = json.loads(text)
            for case in doc["cases"]:
                case["rows"] = [row for row in case["rows"] if row["unit"] != "ns"]
            text = json.dumps(doc)
        if words[0] == "trace":
            text = re.sub(r" in [0-9.]+ [KM]iB: |, its own peak [0-9.]+ KiB|\"(file|own_peak)_bytes\": [0-9]+,", "", text)
        if words[0] == "report" and p.returncode == 0:
            text += (folder / words[-1]).read_text(encoding="utf-8")
        return p, text

    def check_state(self, make, whole):
        """Each command on a trace that `make` leaves in a new folder answers as on the trace of folder `whole`."""
        for words, code, _, _ in COMMANDS:
            with self.subTest(command=words):
                want, text = self.answer(whole, words)
                self.assertEqual(want.returncode, code, want.stderr)
                got, found = self.answer(make(), words)
                self.assertEqual((got.returncode, found), (code, text), got.stderr)
                self.assertNotIn("malformed", got.stderr)

    def test_a_hot_journal(self):
        def make():
            folder = self.folder("left", [self.good])
            half_written(folder / "t.db")
            return folder
        self.check_state(make, self.folder("whole", [self.good]))

    def test_a_log_that_is_not_in_the_file(self):
        def make():
            folder = self.folder("left", [self.good])
            with_log(folder / "t.db")
            return folder
        whole = make()
        run("trace", whole / "t.db")
        self.check_state(make, whole.rename(self.dir / "whole"))

    def test_a_feed_that_no_collector_took_in(self):
        """The events that the killed program handed over last are in its feed alone."""
        killed = self.folder("killed")
        p = self.start("run", LENET, "--naive", "-n", 100000000, "--recorder", "thread", "-o", killed / "t.db")
        until(lambda: p.poll() is not None or (killed / "t.db").exists() and
              any(f.name.startswith("t.db.feed") for f in killed.iterdir()) and committed(killed / "t.db") > 1000)
        p.kill()
        p.wait()
        files = list(killed.iterdir())
        self.assertTrue([f for f in files if ".feed-" in f.name], files)
        whole = self.folder("whole", files)
        p = self.ok("trace", whole / "t.db")
        self.assertIn("note: finished", p.stderr)
        self.assertEqual([f.name for f in whole.iterdir()], ["t.db"])
        self.check_state(lambda: self.folder("left", files), whole)

    def test_a_file_that_was_cut_at_a_page(self):
        whole = self.good.read_bytes()
        size = int.from_bytes(whole[16:18], "big")
        n = len(whole) // size
        for words, _, code, _ in COMMANDS:
            for pages in {1, n // 3, n - 1}:
                with self.subTest(command=words, pages=pages):
                    folder = self.folder("cut")
                    (folder / "t.db").write_bytes(whole[:pages * size])
                    p, text = self.answer(folder, words)
                    self.assertEqual(p.returncode, code, p.stderr)
                    if words[0] in ("sweep", "plan", "compare"):
                        continue  # they take no trace at all
                    self.assertIn("database disk image is malformed", p.stderr + text)
                    self.assertIn("the file is damaged or is not a tidemark trace", p.stderr + text)
                    self.assertEqual([f.name for f in folder.iterdir()], ["t.db"])
                    self.assertEqual((folder / "t.db").read_bytes(), whole[:pages * size])

    def record(self):
        """A recording that goes on: its folder and process, once some runs are in the trace."""
        live = self.folder("live")
        p = self.start("run", LENET, "--naive", "-n", 100000000, "-o", live / "t.db")
        until(lambda: p.poll() is not None or (live / "t.db").exists() and committed(live / "t.db") > 1000)
        self.assertIsNone(p.poll())
        return live, p

    def test_a_recording_that_goes_on(self):
        live, p = self.record()
        os.kill(p.pid, signal.SIGSTOP)  # the collector takes what is there, and then the trace stays as it is
        until(lambda: all_taken(live / "t.db"))
        of_good = self.folder("whole", [self.good])
        for words, _, _, code in COMMANDS:
            with self.subTest(command=words):
                q, text = self.answer(live, words)
                self.assertEqual(q.returncode, code, q.stderr)
                self.assertNotIn("malformed", q.stderr + text)
                if words[0] == "check" and code != 0:
                    self.assertIn("the trace is still being recorded", text if code == 1 else q.stderr)
                if words[0] == "export":  # the plan is there from the beginning
                    self.assertEqual(text, self.answer(of_good, words)[1])
                if words == ("trace", "t.db", "--check"):
                    self.assertIn("it is not finished", text)
        facts = self.json("trace", live / "t.db", "--whole")
        (n,), = ask(live / "t.db", "SELECT max(id) FROM event")
        self.assertEqual(facts["events"], n)
        self.check_live(facts)
        os.kill(p.pid, signal.SIGCONT)

    def test_a_recording_that_moves(self):
        """What is printed is of one moment, also while events come."""
        live, p = self.record()
        seen = [self.json("trace", live / "t.db", "--whole") for _ in range(8)]
        for facts in seen:
            self.check_live(facts)
        self.assertGreater(seen[-1]["events"], seen[0]["events"])
        self.assertEqual(sorted(seen, key=lambda facts: facts["events"]), seen)
        self.assertIsNone(p.poll())

    def check_live(self, facts):
        """Blocks and bytes add up, and are no more than the plan and a finished recording of the same model allow."""
        self.assertEqual((facts["state"], facts["lost"], facts["problems"]), ("recording", 0, 0))
        self.assertEqual(facts["leaks"], sum(k["allocations"] - k["frees"] for k in facts["kinds"]))
        self.assertGreaterEqual(facts["events"], sum(k["allocations"] + k["frees"] for k in facts["kinds"]))
        of_good = self.json("trace", self.good, "--whole")
        self.assertEqual(facts["runs"][0]["plan_bytes"], of_good["runs"][-1]["plan_bytes"])
        self.assertLessEqual(facts["peak"]["bytes"], of_good["runs"][0]["peak_bytes"])


if __name__ == "__main__":
    tidemark.main()
