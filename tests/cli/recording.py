# SPDX-License-Identifier: MIT
"""Recording from the command line: who writes the trace, what becomes of it when things go wrong, several processes."""
import contextlib
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import sqlite3
import stat
import subprocess
import sys
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, run, until

LENET = SAMPLES / "lenet5.json"
LONG = ["--naive", "-n", 100000000]  # until the test ends it


def children(pid):
    try:
        return [int(c) for c in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def alive(pid):
    """Whether the process is there and no zombie."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(") ", 1)[1][0] != "Z"
    except OSError:
        return False


def committed(path):
    """Events that other processes can see; 0 while there is no table yet."""
    try:
        db = sqlite3.connect(f"file:{path}?mode=ro", uri=True, timeout=20)
        try:
            rows = db.execute("SELECT coalesce(max(id), 0) FROM event").fetchone()[0]
            return max(rows, db.execute("SELECT coalesce(max(last_event), 0) FROM event_chunk").fetchone()[0])
        finally:
            db.close()
    except sqlite3.Error:
        return 0


def check_stopped(case, path, err, heard):
    """Some events were taken, then none, then those that were left in the ring; the gap is in the trace."""
    case.assertRegex(err, r"warning: .*nothing was taken from a full ring for 0\.5 s, the collector is stopped")
    case.assertGreater(heard["lost"], 0)
    facts = case.json("trace", path)
    case.assertEqual((facts["state"], facts["lost"]), ("complete", heard["lost"]))
    (kept, lost), = ask(path, "SELECT count(*), (SELECT sum(requested_bytes) FROM events WHERE op = 'gap') "
                              "FROM events WHERE op <> 'gap'")
    case.assertEqual((kept + lost, lost), (heard["events"], heard["lost"]))
    case.assertIn(": sound, ", case.ok("trace", path, "--check", code=1).stdout) # though not whole


class Options(Case):
    def test_every_recorder_and_form(self):
        """Every recorder and form gives the same events; one file is left."""
        counts = set()
        for recorder in ([], ["--recorder", "process"], ["--recorder", "thread"]):
            for form in ([], ["--form", "auto"], ["--form", "rows"], ["--form", "chunks"]):
                with self.subTest(recorder=recorder, form=form):
                    path = self.dir / "t.db"
                    doc = self.json("run", LENET, "--naive", "-n", 4, "-o", path, *recorder, *form)
                    self.assertEqual(doc["trace"], str(path))
                    heard = doc["recorder"]
                    self.assertEqual(list(heard), ["state", "reason", "events", "lost", "refused", "blocked_ns",
                                                   "feed_bytes", "not_in"])
                    self.assertEqual((heard["state"], heard["reason"], heard["lost"], heard["refused"]),
                                     ("complete", None, 0, 0))
                    self.assertGreater(heard["feed_bytes"], 64 * 64)
                    facts = self.json("trace", path)
                    self.assertEqual(facts["state"], "complete")
                    self.assertEqual((facts["events"], facts["lost"], facts["problems"]), (heard["events"], 0, 0))
                    if form == ["--form", "chunks"]:
                        self.assertEqual((facts["rows"], facts["chunks"] > 0), (0, True))
                    elif form != ["--form", "auto"] and form:
                        self.assertEqual((facts["rows"], facts["chunks"]), (heard["events"], 0))
                    self.assertEqual([p.name for p in self.dir.iterdir()], ["t.db"])
                    counts.add(heard["events"])
        self.assertEqual(len(counts), 1, counts)
        self.assertGreater(counts.pop(), 100)

    def test_nothing_is_recorded_without_o(self):
        for command in ("run", "compare"):
            doc = self.json(command, LENET, "-n", 1)
            self.assertEqual((doc["trace"], doc["recorder"]), (None, None))

    def test_compare_records_both(self):
        doc = self.json("compare", LENET, "-n", 2, "-o", self.dir / "t.db")
        self.assertEqual((doc["trace"], doc["recorder"]["state"]), (str(self.dir / "t.db"), "complete"))
        self.assertEqual([r["mode"] for r in self.json("trace", self.dir / "t.db")["runs"]], ["naive", "planned"])

    def test_bad_values(self):
        t = ["-o", self.dir / "t.db"]
        for command in (["run", LENET], ["compare", LENET]):
            for option, values in (("--recorder", ("", "fork", "Thread")), ("--form", ("", "row", "blob")),
                                   ("--ring-events", ("", "0", "15", "-1", "x", "67108865", "99999999999999999999")),
                                   ("--on-full", ("", "block", "Drop")),
                                   ("--max-wait", ("", "0", "-1", "long", "1e12", "nan")),
                                   ("--hold-back", ("", "-1", "-0.001", "long", "86401", "1e30", "nan", "inf")),
                                   ("--max-trace", ("", "0", "-1", "much", "1e30", "8191KiB"))):
                for value in values:
                    self.refused(2, *command, *t, option, value, says=[option])
                self.refused(2, *command, *t, option, says=[option, "value"])
            for option, value in (("--recorder", "thread"), ("--form", "rows"), ("--ring-events", "1024"),
                                  ("--on-full", "drop"), ("--max-wait", "2"), ("--hold-back", "0"), ("--max-trace", "8MiB")):
                self.refused(2, *command, option, value, says=[option, "-o"])
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_traces_that_cannot_be_made(self):
        """Refused before anything runs."""
        (self.dir / "folder").mkdir()
        for command in ("run", "compare"):
            for where, word in ((self.dir / "no" / "t.db", "t.db"), (self.dir / "folder", "folder"),
                                ("/dev/full", "/dev/full"), ("-", "-")):
                p = self.refused(3 if where == "-" else 8, command, LENET, "-o", where, says=[word])
                self.assertEqual(p.stdout, "")
        self.assertEqual([p.name for p in self.dir.iterdir()], ["folder"])

    def test_an_older_file_is_replaced(self):
        path = self.dir / "t.db"
        path.write_bytes(b"x" * 100000)
        self.refused(2, "run", LENET, "-n", 1, "-o", path, says=["no tidemark trace", "--force"])
        self.ok("run", LENET, "-n", 1, "--force", "-o", path)
        self.ok("run", LENET, "-n", 1, "-o", path)
        self.assertEqual(len(self.json("trace", path)["runs"]), 1)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["t.db"])

    def test_warm_mark(self):
        """The moment after all first turns; with one turn there is none."""
        path = self.dir / "t.db"
        for args, n in ((["-n", 1], 0), (["-n", 2], 1), (["-n", 3, "--contexts", 3], 1)):
            self.ok("run", LENET, "-o", path, *args)
            marks = self.json("trace", path)["marks"]
            self.assertEqual([m["name"] for m in marks], ["warm"] * n)
        over = ask(path, f"""SELECT count(DISTINCT thread) FROM scopes WHERE scope_kind = 'run' AND NOT enter
                             AND scope_event_id < {marks[0]['event']}""")
        self.assertEqual(over, [(3,)], "not every context has had its first turn")
        doc = self.json("run", LENET, "--naive", "-n", 3, "-o", path)
        event = self.json("trace", path)["marks"][0]["event"]
        after = ask(path, f"SELECT count(*) FROM event WHERE op = 1 AND id > {event}")[0][0]
        self.assertEqual(after, doc["warm_allocations"])
        self.ok("compare", LENET, "-n", 2, "-o", path)
        self.assertEqual([m["name"] for m in self.json("trace", path)["marks"]], ["warm", "warm"])


class Limits(Case):
    def test_full_ring_waits(self):
        """The smallest ring: every event still arrives, in every form."""
        whole = self.json("run", LENET, "--naive", "-n", 50, "-o", self.dir / "a.db")["recorder"]
        for recorder in ("process", "thread"):
            tight = self.json("run", LENET, "--naive", "-n", 50, "-o", self.dir / "b.db", "--ring-events", 16,
                              "--recorder", recorder)["recorder"]
            self.assertEqual((tight["events"], tight["lost"]), (whole["events"], 0))
            self.assertGreater(tight["blocked_ns"], 0)
            self.assertLess(tight["feed_bytes"], whole["feed_bytes"])
            self.assertEqual(self.json("trace", self.dir / "b.db")["events"], whole["events"])
            self.assertEqual(ask(self.dir / "b.db", "SELECT kind, requested_bytes FROM totals ORDER BY kind"),
                             ask(self.dir / "a.db", "SELECT kind, requested_bytes FROM totals ORDER BY kind"))

    def test_full_ring_drops(self):
        """What is dropped is counted and told, the gaps are in the trace, and the totals know nothing of it."""
        path = self.dir / "t.db"
        p = self.ok("run", LENET, "--naive", "-n", 2000, "-o", path, "--ring-events", 16, "--on-full", "drop", "--json")
        doc = json.loads(p.stdout)
        lost = doc["recorder"]["lost"]
        self.assertGreater(lost, 0)
        self.assertEqual(doc["recorder"]["state"], "complete")
        self.assertRegex(p.stderr, rf"(?m)^warning: {lost} of {doc['recorder']['events']} events were dropped")
        facts = self.json("trace", path)
        self.assertEqual(facts["lost"], lost)
        self.assertEqual(ask(path, "SELECT sum(lost) FROM gaps"), [(lost,)])
        totals = {k: (b, n) for k, b, n in ask(path, "SELECT kind, requested_bytes, allocations FROM totals")}
        self.assertEqual(totals, {k["kind"]: (k["requested_bytes"], k["allocations"]) for k in doc["kinds"]})
        p = self.ok("trace", path, "--check", code=1)
        self.assertIn(f"{lost} events were lost", p.stdout)

    def test_largest_file(self):
        """The oldest detail goes, the file stays below the limit, sums and peak are those of the whole."""
        path, limit = self.dir / "t.db", 8 << 20
        for form in ("rows", "chunks", "auto"):
            with self.subTest(form=form):
                doc = self.json("run", LENET, "--naive", "-n", 12000, "-o", path, "--max-trace", limit, "--form", form)
                self.assertEqual((doc["recorder"]["state"], doc["recorder"]["lost"]), ("complete", 0))
                self.assertLessEqual(path.stat().st_size, limit)
                facts = self.json("trace", path)
                self.assertGreater(facts["first_kept_event"], 1)
                self.assertEqual(facts["events"], doc["recorder"]["events"])
                totals = {k: (b, n) for k, b, n in ask(path, "SELECT kind, requested_bytes, allocations FROM totals")}
                self.assertEqual(totals, {k["kind"]: (k["requested_bytes"], k["allocations"]) for k in doc["kinds"]})
                self.assertEqual({k["kind"]: k["peak_bytes"] for k in facts["kinds"]},
                                 {k["kind"]: k["peak_bytes"] for k in doc["kinds"]})
                self.ok("trace", path, "--check")


class Trouble(Case):
    """Recording fails, the run does not."""

    def check_cut_short(self, p, doc, path):
        self.assertEqual(doc["recorder"]["state"], "cut short")
        self.assertTrue(doc["recorder"]["reason"])
        self.assertEqual({k["kind"] for k in doc["kinds"]}, {"Default", "Persistent", "Workspace"})
        self.assertEqual(p.stderr.count("warning: "), 1, p.stderr)
        self.assertEqual(p.stderr.count("error: "), 1, p.stderr)
        self.assertLess(p.stderr.index("warning: "), p.stderr.index("error: "))

    def test_file_size_limit(self):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, 6 << 20))

        for recorder in ("process", "thread"):
            with self.subTest(recorder=recorder):
                path = self.dir / f"{recorder}.db"
                args = ["run", LENET, "--naive", "-n", 4000, "-o", path, "--ring-events", 4096, "--recorder", recorder,
                        "--form", "rows", "--json"]
                p = run(*args, preexec_fn=limit)
                self.assertEqual(p.returncode, 8, p.stderr)
                self.check_cut_short(p, json.loads(p.stdout), path)
                facts = self.json("trace", path)
                self.assertEqual(facts["state"], "cut short")
                self.assertTrue(facts["reason"])
                self.assertGreater(facts["events"], 1000)
                self.assertEqual(ask(path, "PRAGMA integrity_check"), [("ok",)])
                p = self.ok("trace", path, "--check", code=1)
                self.assertIn("recording ended early", p.stdout)
                # For people: the results, and the line that says so.
                p = run(*args[:-1], preexec_fn=limit)
                self.assertEqual(p.returncode, 8, p.stderr)
                self.assertIn("Workspace", p.stdout)
                self.assertIn(f"trace: {path} (cut short)\n", p.stdout)

    def test_folder_vanishes(self):
        for recorder in ("process", "thread"):
            with self.subTest(recorder=recorder):
                folder = self.dir / recorder
                folder.mkdir()
                p = self.start("run", LENET, "--naive", "-n", 8000, "-o", folder / "t.db", "--recorder", recorder,
                               "--json")
                until(lambda: committed(folder / "t.db") > 0 or p.poll() is not None)
                shutil.rmtree(folder)
                out, err = p.communicate(timeout=300)
                self.assertEqual(p.returncode, 8, err)
                doc = json.loads(out)
                self.assertEqual((doc["runs"], doc["recorder"]["state"]), (8000, "cut short"))
                self.assertEqual(err.count("error: "), 1, err)
                self.assertFalse(folder.exists())

    def test_collector_is_killed(self):
        """The recorded program drains itself instead: no event is lost, no thread hangs, and a line says so."""
        path = self.dir / "t.db"
        p = self.start("run", LENET, "--naive", "-n", 8000, "-o", path, "--ring-events", 1024, "--json")
        until(lambda: committed(path) > 0 or p.poll() is not None)
        for pid in children(p.pid):
            os.kill(pid, signal.SIGKILL)
        out, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 0, err)
        doc = json.loads(out)
        self.assertEqual((doc["runs"], doc["recorder"]["state"], doc["recorder"]["lost"]), (8000, "complete", 0))
        self.assertRegex(err, r"\Awarning: .*the collector is gone")
        self.assertEqual(self.json("trace", path)["events"], doc["recorder"]["events"])
        self.ok("trace", path, "--check")
        self.assertEqual([f.name for f in self.dir.iterdir()], ["t.db"])

    def test_collector_is_stopped(self):
        """A program is not stopped with its collector: after a while it drops, says so, and ends."""
        path = self.dir / "t.db"
        out_path, err_path = self.dir / "out", self.dir / "err" # not pipes: the collector has them open, too
        with open(out_path, "w", encoding="utf-8") as out_file, open(err_path, "w", encoding="utf-8") as err_file:
            p = subprocess.Popen([PROGRAM, "run", LENET, "--naive", "-n", "20000", "-o", path, "--ring-events", "1024",
                                  "--form", "rows", "--max-wait", "0.5", "--json"], stdout=out_file, stderr=err_file)
        self.addCleanup(p.wait)
        self.addCleanup(lambda: p.poll() is None and p.kill())
        until(lambda: committed(path) > 0 or p.poll() is not None)
        (collector,) = children(p.pid)
        os.kill(collector, signal.SIGSTOP)
        try:
            self.assertNotEqual(p.wait(timeout=100), 0)
        finally:
            os.kill(collector, signal.SIGCONT)
        out, err = out_path.read_text(), err_path.read_text()
        self.assertIn(f"process {collector}, is stopped", err)
        until(lambda: not alive(collector))
        check_stopped(self, path, err, json.loads(out)["recorder"])
        self.assertEqual(sorted(f.name for f in self.dir.iterdir()), ["err", "out", "t.db"])

    def test_busy(self):
        """A trace that is being recorded is refused to a second recording."""
        path = self.dir / "t.db"
        p = self.start("run", LENET, *LONG, "-o", path)
        until(lambda: committed(path) > 0 or p.poll() is not None)
        self.refused(3, "run", LENET, "-n", 1, "-o", path, says=["t.db"])
        self.refused(3, "record", "-o", path, "--", "true", says=["t.db"])
        self.assertIsNone(p.poll())
        p.kill()

    def test_a_trace_that_is_being_written(self):
        """Readers wait for the writer, and say in the end why they go: no defect of theirs."""
        path = self.dir / "t.db"
        self.ok("run", LENET, "-o", path)
        with contextlib.closing(sqlite3.connect(path, isolation_level=None)) as writer:
            writer.execute("BEGIN EXCLUSIVE")
            readers = [self.start(*args) for args in (["trace", path], ["report", path, "-o", self.dir / "r.html"],
                                                      ["diff", path, path], ["tui", path, "--once"])]
            for p in readers:
                out, err = p.communicate(timeout=100)
                self.assertEqual(p.returncode, 3, err)
                self.assertIn("t.db': database is locked", err)
                self.assertIn("hint: another process is writing it", err)
                self.assertEqual(out, "")
            writer.execute("ROLLBACK")
        self.ok("trace", path)
        self.assertEqual(sorted(f.name for f in self.dir.iterdir() if f.name == "r.html" or "t.db" in f.name), ["t.db"])

    def test_out_of_memory_leaves_its_trace(self):
        """Who asked for how much, and who had the rest: that is what a trace is for. Other failures leave none."""
        path = self.dir / "t.db"
        p = self.refused(6, "run", LENET, "--naive", "--limit", "260KiB", "-o", path, says=["out of memory", str(path)])
        (asked,) = ask(path, "SELECT requested_bytes FROM oom_attempts")
        self.assertIn(f"asked", p.stderr)
        self.assertIn(f"({asked[0]} bytes", p.stderr)
        self.ok("trace", path, "--check")
        # Before anything ran.
        self.refused(6, "run", LENET, "--limit", "1", "-o", path)
        self.assertEqual(len(ask(path, "SELECT * FROM oom_attempts")), 1)
        self.refused(6, "compare", LENET, "--limit", "260KiB", "-o", path)
        self.assertGreaterEqual(len(ask(path, "SELECT * FROM oom_attempts")), 1)


class Killed(Case):
    """kill -9 in the middle: every reader finds what was recorded."""

    def kill(self, recorder, form):
        path = self.dir / "t.db"
        path.unlink(missing_ok=True)
        p = self.start("run", LENET, *LONG, "-o", path, "--recorder", recorder, "--form", form)
        until(lambda: committed(path) > 20000 or p.poll() is not None)
        collectors = children(p.pid)
        self.assertEqual(len(collectors), 1 if recorder == "process" else 0)
        p.kill()
        p.wait()
        for pid in collectors:
            until(lambda: not alive(pid), "the collector outlives what it records")
        return path

    def test_thread(self):
        for form in ("rows", "chunks"):
            with self.subTest(form=form):
                path = self.kill("thread", form)
                left = sorted(f.name for f in self.dir.iterdir())
                self.assertGreater(len(left), 1, "the feed is beside it")
                p = self.ok("trace", path, "--json")
                self.assertRegex(p.stderr, "^note: .*t.db")
                self.check(path, json.loads(p.stdout))

    def test_process(self):
        for form in ("rows", "chunks"):
            with self.subTest(form=form):
                path = self.kill("process", form)
                p = self.ok("trace", path, "--json")
                self.assertEqual(p.stderr, "", "the collector has finished it")
                self.check(path, json.loads(p.stdout))

    def check(self, path, facts):
        self.assertEqual(facts["state"], "complete")
        self.assertGreater(facts["events"], 20000)
        self.assertEqual((facts["lost"], facts["problems"]), (0, 0))
        self.assertEqual(ask(path, "SELECT how FROM processes"), [("killed",)])
        self.assertEqual(ask(path, "PRAGMA integrity_check"), [("ok",)])
        self.assertEqual([f.name for f in self.dir.iterdir()], ["t.db"])
        self.ok("trace", path, "--check")
        self.ok("trace", path, "--expand") # for SQLite alone
        # Totals that the producer counted are those of its events, but for one in whose midst its thread was killed.
        sums = ask(path, "SELECT kind, allocations, requested_bytes FROM totals ORDER BY kind")
        blocks = ask(path, "SELECT kind, count(*), sum(requested_bytes), max(requested_bytes) FROM blocks GROUP BY kind ORDER BY kind")
        self.assertEqual([kind for kind, _, _ in sums], [kind for kind, *_ in blocks])
        ahead = [(counted - n, told - size, largest) for (_, counted, told), (_, n, size, largest) in zip(sums, blocks)]
        self.assertLessEqual(sum(n for n, _, _ in ahead), 1, sums)
        for n, size, largest in ahead:
            self.assertIn(n, (0, 1), sums)
            self.assertIn(size, range(largest + 1) if n == 1 else (0,), sums)
        self.ok("tui", path, "--once")
        self.ok("report", path, "-o", self.dir / "r.html")
        (self.dir / "r.html").unlink()

    def test_interrupted(self):
        """Ctrl-C and its like go to the whole group: the collector outlives them, and finishes what is there."""
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(signal=number):
                path = self.dir / f"{number.name}.db"
                p = self.start("run", LENET, *LONG, "-o", path, preexec_fn=os.setsid)
                until(lambda: committed(path) > 1000 or p.poll() is not None)
                collectors = children(p.pid)
                os.killpg(p.pid, number)
                self.assertEqual(p.wait(), -number)
                for pid in collectors:
                    until(lambda: not alive(pid), "the collector outlives what it records")
                facts = self.json("trace", path)
                self.assertEqual((facts["state"], facts["problems"]), ("complete", 0))
                self.assertGreater(facts["events"], 1000)
        self.assertEqual(len(list(self.dir.iterdir())), 3)

    def test_every_reader_finishes_it(self):
        """tui, report, check, export and trace finish an unfinished trace; the first that opens it says so, once."""
        path = self.kill("thread", "auto")
        shutil.copytree(self.dir, self.dir.parent / f"{self.dir.name}-left")
        left = self.dir.parent / f"{self.dir.name}-left"
        self.addCleanup(shutil.rmtree, left, True)
        finished = self.dir.parent / f"{self.dir.name}-finished"
        shutil.copytree(left, finished)
        self.addCleanup(shutil.rmtree, finished, True)
        self.ok("trace", finished / "t.db")
        for args in (["tui", "--once"], ["report", "-o", self.dir / "r.csv"], ["check", "--baseline", finished / "t.db"],
                     ["export", "--with-offsets", "--to", "csv"], ["trace"], ["trace", "--check"], ["trace", "--expand"]):
            with self.subTest(args=args):
                here = self.dir / "again"
                shutil.rmtree(here, True)
                shutil.copytree(left, here)
                p = self.ok(args[0], here / "t.db", *args[1:])
                self.assertRegex(p.stderr, "(?m)^note: .*t.db")
                self.assertEqual(self.ok(args[0], here / "t.db", *args[1:]).stderr, "")

    def test_looked_at_while_it_grows(self):
        path = self.dir / "t.db"
        p = self.start("run", LENET, *LONG, "-o", path)
        until(lambda: committed(path) > 1000 or p.poll() is not None)
        first = self.json("trace", path)
        self.assertEqual(first["state"], "recording")
        self.assertGreater(first["events"], 0)
        until(lambda: committed(path) > first["events"])
        self.assertGreater(self.json("trace", path)["events"], first["events"])
        self.ok("trace", path, "--at", "end")
        self.assertIn("not finished", self.ok("trace", path, "--check", code=1).stdout)
        self.refused(3, "trace", path, "--expand", says=["not finished"])
        self.assertIsNone(p.poll())
        p.kill()


class Record(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def record(self, *command, code=0, options=(), **kw):
        return self.ok("record", "-o", self.path, *options, "--", *command, code=code, **kw)

    def test_two_processes(self):
        """Two runs at once in one file, each with its own numbers; one line at the end."""
        script = f'"{PROGRAM}" run "{LENET}" --naive -n 20 --json > "{self.dir}/a.json" & ' \
                 f'"{PROGRAM}" run "{SAMPLES}/diamond.json" -n 20 --json > "{self.dir}/b.json" & wait'
        p = self.record("sh", "-c", script)
        facts = self.json("trace", self.path)
        self.assertEqual((facts["state"], facts["processes"], facts["lost"], facts["problems"]), ("complete", 2, 0, 0))
        self.assertEqual(sorted(r["model"] for r in facts["runs"]), ["diamond", "lenet5"])
        events = 0
        for name in "ab":
            doc = json.loads((self.dir / f"{name}.json").read_text())
            self.assertEqual((doc["trace"], doc["recorder"]["state"]), (str(self.path), "attached"))
            events += doc["recorder"]["events"]
            totals = {k: (b, n) for k, b, n in ask(self.path, f"""SELECT kind, requested_bytes, allocations FROM totals
                      WHERE process_id = (SELECT process_id FROM run WHERE model = '{doc['model']}')""")}
            self.assertEqual(totals, {k["kind"]: (k["requested_bytes"], k["allocations"]) for k in doc["kinds"]})
        self.assertEqual(facts["events"], events)
        self.assertEqual(p.stdout, "")
        where = re.escape(str(self.path))
        self.assertRegex(p.stderr, rf"\Atrace: {where}: {events} events of 2 processes, 0 lost, peak ")
        self.assertEqual(p.stderr.count("\n"), 1)
        self.ok("trace", self.path, "--check")
        self.assertEqual(sorted(f.name for f in self.dir.iterdir()), ["a.json", "b.json", "t.db"])

    def test_many_at_once(self):
        """Twelve processes that begin and end as they like, some of them twice."""
        tool = f'"{PROGRAM}" run "{LENET}" --naive'
        script = "".join(f"({tool} -n {5 + 7 * k} && {tool} -n 1) > /dev/null & " for k in range(12)) + "wait"
        self.record("sh", "-c", script)
        facts = self.json("trace", self.path)
        self.assertEqual((facts["state"], facts["processes"], len(facts["runs"])), ("complete", 24, 24))
        self.assertEqual((facts["lost"], facts["problems"], facts["leaks"]), (0, 0, 0))
        turns = sum(6 + 7 * k for k in range(12))
        ran = ask(self.path, "SELECT count(*) FROM scopes WHERE scope_kind = 'run' AND enter")
        self.assertEqual(ran, [(turns,)])
        self.assertEqual(ask(self.path, "SELECT count(*) FROM event")[0][0], facts["events"])
        self.assertEqual(ask(self.path, "SELECT count(DISTINCT process_id) FROM totals"), [(24,)])
        self.ok("trace", self.path, "--check")

    def test_ranks(self):
        """Each process carries the rank that its launcher gave it."""
        tool = PROGRAM
        launchers = (("OMPI_COMM_WORLD_RANK", 3), ("PMI_RANK", 1), ("SLURM_PROCID", 2), ("NONE", 0))
        runs = [f'{name}={rank} "{tool}" run "{LENET}" -n 1 > /dev/null || exit 9' for name, rank in launchers]
        self.record("sh", "-c", "; ".join(runs))
        self.assertEqual(ask(self.path, "SELECT rank FROM processes ORDER BY process_id"), [(3,), (1,), (2,), (None,)])

    def test_one_that_is_killed(self):
        """kill -9 of one process: the others and its own events are there."""
        tool = PROGRAM
        script = f'"{tool}" run "{LENET}" --naive -n 100000000 & pid=$!; "{tool}" run "{LENET}" -n 5; ' \
                 f'while [ ! -e "{self.dir}/go" ]; do sleep 0.05; done; kill -9 $pid; wait $pid; exit 0'
        p = self.start("record", "-o", self.path, "--", "sh", "-c", script)
        until(lambda: committed(self.path) > 5000 or p.poll() is not None)
        (self.dir / "go").touch()
        _, err = p.communicate(timeout=300)
        self.assertEqual(p.returncode, 0, err)
        self.assertEqual(sorted(ask(self.path, "SELECT how FROM processes")), [("closed",), ("killed",)])
        self.assertEqual(self.json("trace", self.path)["state"], "complete")

    def test_one_that_stops_its_collector(self):
        """Ctrl-Z hits record alone: what it records goes on, and record finds the rest in the feed."""
        result = self.dir / "result"
        script = f'"{PROGRAM}" run "{LENET}" --naive -n 20000 --json > "{result}.tmp" 2> "{result}.err"; ' \
                 f'mv "{result}.tmp" "{result}"'
        p = self.start("record", "-o", self.path, "--max-wait", "0.5", "--ring-events", 1024, "--form", "rows", "--",
                       "sh", "-c", script)
        until(lambda: committed(self.path) > 0 or p.poll() is not None)
        os.kill(p.pid, signal.SIGSTOP)
        try:
            until(result.exists)
        finally:
            os.kill(p.pid, signal.SIGCONT)
        p.communicate(timeout=100)
        heard = json.loads(result.read_text())["recorder"]
        check_stopped(self, self.path, pathlib.Path(f"{result}.err").read_text(), heard)

    def test_the_plan_of_a_trace_is_that_of_its_last_run(self):
        other = SAMPLES / "long_skip.json"
        for models in ((LENET, other), (other, LENET)):
            self.record("sh", "-c", "; ".join(f'"{PROGRAM}" run "{model}" -n 1 > /dev/null' for model in models),
                        options=["--force"])
            found = self.ok("export", self.path, "--to", "csv").stdout
            plan = self.dir / "plan.json"
            self.ok("plan", models[-1], "-o", plan)
            self.assertEqual(found, self.ok("export", plan, "--to", "csv").stdout)

    def test_own_trace_wins(self):
        own = self.dir / "own.db"
        tool = PROGRAM
        self.record(tool, "run", LENET, "-n", 2, "-o", own)
        self.assertEqual(len(self.json("trace", own)["runs"]), 1)
        facts = self.json("trace", self.path)
        self.assertEqual((facts["state"], facts["events"], facts["processes"]), ("complete", 0, 0))
        # So does the collector that is nearest.
        self.record(PROGRAM, "record", "-o", own, "--quiet", "--", PROGRAM, "run", LENET, "-n", 2)
        self.assertEqual([self.json("trace", path)["processes"] for path in (own, self.path)], [1, 0])
        # Options of a trace are those of the one that writes it; those of a ring are one's own.
        self.refused(2, "record", "-o", self.path, "--quiet", "--", tool, "run", LENET, "--form", "rows", says=["--form"])
        self.record(tool, "compare", LENET, "-n", 1, "--ring-events", 16, "--on-full", "wait")
        self.assertEqual(len(self.json("trace", self.path)["runs"]), 2)

    def test_options_reach_the_rings(self):
        tool = PROGRAM
        p = self.record(tool, "run", LENET, "--naive", "-n", 2000, "--json",
                        options=["--ring-events", 16, "--on-full", "drop", "--form", "chunks"])
        doc = json.loads(p.stdout)["recorder"]
        self.assertGreater(doc["lost"], 0)
        self.assertIn("were dropped", p.stderr)
        self.assertIn(f" {doc['lost']} lost, ", p.stderr)
        self.assertEqual(self.json("trace", self.path)["lost"], doc["lost"])
        for name, value in (("TIDEMARK_RING_EVENTS", "x"), ("TIDEMARK_ON_FULL", "x"), ("TIDEMARK_MAX_WAIT", "x")):
            self.refused(2, "record", "-o", self.path, "--quiet", "--", tool, "run", LENET, says=[name],
                         env={name: value})

    def test_largest_file(self):
        p = self.record(PROGRAM, "run", LENET, "--naive", "-n", 12000, "--json", options=["--max-trace", "8MiB"])
        facts = self.json("trace", self.path)
        self.assertLessEqual(self.path.stat().st_size, 8 << 20)
        self.assertGreater(facts["first_kept_event"], 1)
        self.assertEqual(facts["events"], json.loads(p.stdout)["recorder"]["events"])

    def test_late_events(self):
        """Events that come late stand by their time within --hold-back; behind it both times are kept."""
        program = os.environ["TIDE_LATE_EVENTS"]
        for options, how, n_late in ((["--hold-back", "600"], ["at-once"], 0), (["--hold-back", "0"], [], 5)):
            self.record(program, self.path, *how, options=["--force", *options])
            self.assertEqual(self.json("trace", self.path)["late"], n_late, options)
            checked = self.json("trace", self.path, "--check")  # nothing is missing: late events are no fault
            self.assertEqual((checked["verdict"], checked["late"], checked["findings"]), ("pass", n_late, []))
            self.assertEqual("came later" in self.ok("trace", self.path, "--check").stdout, n_late > 0)
            own = [(1000000000000500000 + i * 1000000,) for i in range(5)]
            if n_late > 0:
                self.assertEqual(ask(self.path, "SELECT own_ns FROM late ORDER BY own_ns"), own)
            else:
                self.assertEqual(ask(self.path, "SELECT t_ns FROM event WHERE block_id > 100 ORDER BY t_ns"), own)

    def leaks(self):
        """How sure the trace is of its leaks: (how many, uncertain in the facts, words behind their number)."""
        facts = self.json("trace", self.path)
        (line,) = [line for line in self.ok("trace", self.path).stdout.split("\n") if line.startswith("blocks ")]
        return facts["leaks"], facts["leaks_uncertain"], line.partition(" never freed")[2]

    def test_leaks_are_uncertain_when_events_were_lost_or_came_late(self):
        program = os.environ["TIDE_LATE_EVENTS"]
        late = "; events came late: some may have been freed"
        for how, n, uncertain, words, n_problems in (
                ((), 105, False, "", 0),  # late allocations: each is there, and so would its end be
                (("frees",), 95, False, "", 0),  # late frees free all the same
                (("frees-first",), 105, True, late, 5)):  # five ends came before what they end, and were refused
            self.record(program, self.path, *how, options=["--force", "--hold-back", "0"])
            facts = self.json("trace", self.path)
            self.assertEqual((facts["late"], facts["problems"], facts["lost"]), (5, n_problems, 0))
            self.assertEqual(self.leaks(), (n, uncertain, words), how)
        self.ok("trace", self.path, "--check", code=1)
        self.record(program, self.path, "at-once", options=["--force", "--hold-back", "600"])  # in time: all is certain
        self.assertEqual(self.leaks(), (105, False, ""))
        # Lost events: the end of each block may be among them.
        self.record(PROGRAM, "run", LENET, "--naive", "-n", 2000,
                    options=["--force", "--ring-events", 16, "--on-full", "drop"])
        n, uncertain, words = self.leaks()
        self.assertGreater(n, 0)
        self.assertEqual((uncertain, words), (True, "; events were lost: some may have been freed"))
        self.assertEqual(ask(self.path, "SELECT count(*), min(uncertain), max(uncertain) FROM leaks"), [(n, 1, 1)])
        self.ok("report", self.path, "-o", self.dir / "r.txt", "--whole")
        self.assertIn("events were lost: some may have been freed", (self.dir / "r.txt").read_text(encoding="utf-8"))

    def test_exit_codes(self):
        for code in (0, 1, 7, 255):
            self.record("sh", "-c", f"exit {code}", code=code)
        for number in (signal.SIGTERM, signal.SIGKILL, signal.SIGSEGV):
            self.record("sh", "-c", f"kill -{int(number)} $$", code=128 + number)
        self.refused(127, "record", "-o", self.dir / "no.db", "--", "no-such-command-here", says=["no-such-command-here"])
        self.refused(127, "record", "-o", self.dir / "no.db", "--", self.dir / "nothing", says=["nothing"])
        plain = self.dir / "plain"
        plain.write_text("exit 3\n")
        self.refused(126, "record", "-o", self.dir / "no.db", "--", plain, says=["plain"])
        plain.chmod(0o755)
        self.record(plain, code=3)  # no first line: the shell's, as execvp has it
        plain.write_text("#!/no/such/interpreter\n")
        self.refused(127, "record", "-o", self.dir / "no.db", "--", plain, says=["plain"])
        self.refused(126, "record", "-o", self.dir / "no.db", "--", self.dir, says=["annot run"])
        self.assertFalse((self.dir / "no.db").exists())

    def test_usage(self):
        self.refused(2, "record", "--", "true", says=["-o"])
        self.refused(2, "record", "-o", self.path, says=["command"])
        self.refused(2, "record", "-o", self.path, "--", says=["command"])
        self.refused(2, "record", "-o", self.path, "--form", "x", "true", says=["--form"])
        self.refused(2, "record", "-o", self.path, "--no-such", "true", says=["--no-such"])
        self.refused(8, "record", "-o", self.dir / "no" / "t.db", "--", "touch", self.dir / "ran", says=["t.db"])
        self.refused(8, "record", "-o", self.dir, "--", "touch", self.dir / "ran")
        self.assertEqual(list(self.dir.iterdir()), [], "nothing ran")
        # The command's own options are its own, with -- and without.
        self.assertEqual(self.ok("record", "-o", self.path, "printf", "%s", "-o").stdout, "-o")
        self.assertEqual(self.ok("record", "-o", self.path, "--", "printf", "%s", "--form").stdout, "--form")
        # An empty trace is said even so.
        said = self.ok("record", "-o", self.path, "--quiet", "--", "true")
        self.assertEqual(said.stdout, "")
        self.assertIn("warning: the trace is empty", said.stderr)
        self.assertEqual(self.ok("record", "-o", self.path, "--quiet", "--", tidemark.PROGRAM, "run", "-n", 1, "--json",
                                 LENET).stderr, "")

    def test_the_commands_world(self):
        """Standard input and output, environment, signal dispositions and mask are as without `record`."""
        self.assertEqual(self.record("cat", stdin="through\n").stdout, "through\n")
        p = self.ok("record", "-o", "t.db", "--", "sh", "-c", 'cd / && echo "$TIDEMARK_COLLECT"', cwd=self.dir)
        self.assertEqual(os.path.realpath(p.stdout.strip()), os.path.realpath(self.path))
        status = ["grep", "-E", "^Sig(Blk|Ign)", "/proc/self/status"]
        self.assertEqual(self.record(*status).stdout, subprocess.run(status, capture_output=True, text=True).stdout)

    def test_signals_are_passed_on(self):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGUSR1, signal.SIGQUIT):
            with self.subTest(signal=number):
                ready = self.dir / "ready"
                script = f'trap "exit 42" {number.name[3:]}; touch "{ready}"; while :; do sleep 0.05; done'
                p = self.start("record", "-o", self.path, "--", "sh", "-c", script)
                until(ready.exists)
                p.send_signal(number)
                _, err = p.communicate(timeout=60)
                self.assertEqual(p.returncode, 42, err)
                self.assertEqual(self.json("trace", self.path)["state"], "complete")
                ready.unlink()

    def test_the_terminals_interrupt_comes_once(self):
        """Ctrl-C reaches the command from the terminal: `record` neither dies of it nor sends it again."""
        ready = self.dir / "ready"
        script = f"""
import signal, pathlib
both = {{signal.SIGINT, signal.SIGUSR1}}
signal.pthread_sigmask(signal.SIG_BLOCK, both)
pathlib.Path({str(ready)!r}).touch()
n = 0
while signal.sigwaitinfo(both).si_signo == signal.SIGINT:
    n += 1
raise SystemExit(40 + n)
"""
        command = [PROGRAM, "record", "-o", str(self.path), "--", sys.executable, "-c", script]
        pid, terminal = pty.fork()
        if pid == 0:
            os.execv(command[0], command)
        self.addCleanup(os.close, terminal)
        until(ready.exists)
        os.write(terminal, b"\x03")
        seen = b""
        while b"^C" not in seen:  # the terminal's echo: the signal has been sent
            seen += os.read(terminal, 100)
        os.kill(pid, signal.SIGUSR1)  # is passed on, and behind whatever was passed on before
        _, status = os.waitpid(pid, 0)
        self.assertEqual(os.waitstatus_to_exitcode(status), 41)
        self.assertEqual(self.json("trace", self.path)["state"], "complete")

    def test_ends_with_the_last_that_records(self):
        """The command ends, a process that it left behind still records: nothing of it is lost."""
        tool = PROGRAM
        script = f'"{tool}" run "{LENET}" --naive -n 100000000 > /dev/null 2>&1 & echo $! > "{self.dir}/pid"; ' \
                 f'while [ ! -e "{self.dir}/go" ]; do sleep 0.05; done'
        p = self.start("record", "-o", self.path, "--", "sh", "-c", script)
        until(lambda: committed(self.path) > 1000 or p.poll() is not None)
        (self.dir / "go").touch()
        seen = committed(self.path)
        until(lambda: committed(self.path) > seen + 5000)
        self.assertIsNone(p.poll())
        os.kill(int((self.dir / "pid").read_text()), signal.SIGKILL)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 0, err)
        self.assertEqual(ask(self.path, "SELECT how FROM processes"), [("killed",)])

    def test_record_fails_half_way(self):
        """A full disk does not end the recorded command; the exit code of the command is printed."""
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (6 << 20, 6 << 20))

        tool = PROGRAM
        script = f'"{tool}" run "{LENET}" --naive -n 4000 --ring-events 4096 > "{self.dir}/out"; exit 7'
        p = run("record", "-o", self.path, "--form", "rows", "--", "sh", "-c", script, preexec_fn=limit)
        self.assertEqual(p.returncode, 8, p.stderr)
        self.assertIn("note: the command itself ended with code 7", p.stderr)
        self.assertIn("Workspace", (self.dir / "out").read_text())
        self.assertEqual(self.json("trace", self.path)["state"], "cut short")

    def test_no_collector(self):
        for above in (self.dir / "none.db", self.dir / "no" / "none.db"):
            self.refused(3, "run", LENET, "-n", 1, says=["none.db"], env={"TIDEMARK_COLLECT": str(above)})
        self.ok("run", LENET, "-n", 1, env={"TIDEMARK_COLLECT": ""})
        # A finished trace has no collector.
        self.ok("run", LENET, "-n", 1, "-o", self.path)
        before = self.path.read_bytes()
        self.refused(3, "run", LENET, "-n", 1, says=["t.db"], env={"TIDEMARK_COLLECT": str(self.path)})
        self.assertEqual(self.path.read_bytes(), before)


class Collect(Case):
    def test_is_internal(self):
        self.assertNotRegex(self.ok("--help").stdout, r"(?m)^  collect ")
        told = self.ok("collect", "--help").stdout
        self.assertIn("(internal)", told)
        self.assertIn("no need to call it", told)

    def test_bad_use(self):
        self.refused(2, "collect")
        self.refused(2, "collect", "--ready-fd", "x", self.dir / "t.db", says=["--ready-fd"])
        self.refused(2, "collect", "--form", "x", self.dir / "t.db", says=["--form"])
        self.refused(2, "collect", "--max-bytes", "-1", self.dir / "t.db", says=["--max-bytes"])
        self.refused(8, "collect", self.dir / "t.db", says=["t.db"])
        (self.dir / "text").write_text("no trace\n")
        self.refused(3, "collect", self.dir / "text", says=["text"])
        self.ok("run", LENET, "-n", 1, "-o", self.dir / "t.db")
        before = (self.dir / "t.db").read_bytes()
        self.refused(3, "collect", self.dir / "t.db", says=["t.db", "that recording has ended"])
        self.assertEqual((self.dir / "t.db").read_bytes(), before)


if __name__ == "__main__":
    tidemark.main()
