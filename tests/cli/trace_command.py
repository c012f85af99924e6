# SPDX-License-Identifier: MIT
"""`tidemark trace`: its answers held against plain SQL on the same file, and what it says of files that are no trace."""
import json
import os
import re
import shutil
import sqlite3
import subprocess
import unittest

import tidemark
from tidemark import SAMPLES, Case, ask, run

LENET = SAMPLES / "lenet5.json"
KEYS = ["kind", "device", "scope", "name", "allocator", "size", "age", "thread", "run"]


def live_after(path, event):
    """Blocks alive after an event, by the rows alone."""
    return dict(ask(path, """SELECT a.block_id, a.requested_bytes FROM event a WHERE a.op = 1 AND a.id <= ?1 AND NOT EXISTS
        (SELECT 1 FROM event f WHERE f.op = 3 AND f.block_id = a.block_id AND f.id <= ?1)""", event))


class Traces(Case):
    """A trace of both modes, in rows unless a test wants chunks."""

    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"
        self.doc = self.json("compare", LENET, "-n", 3, "-o", self.path, "--form", "rows")

    def trace(self, *args, code=0, **kw):
        return self.ok("trace", self.path, *args, code=code, **kw)


class Facts(Traces):
    def test_json_is_what_sql_says(self):
        facts = self.json("trace", self.path, "--whole")
        self.assertEqual(list(facts)[:3], ["schema", "version", "file"])
        self.assertEqual(facts["schema"], "tidemark.trace_facts")
        self.assertEqual((facts["file"], facts["state"], facts["reason"]), (str(self.path), "complete", None))
        self.assertEqual(facts["trace_version"], ask(self.path, "PRAGMA user_version")[0][0])
        self.assertEqual(facts["file_bytes"], self.path.stat().st_size)
        rows, first, last = ask(self.path, "SELECT count(*), min(t_ns), max(t_ns) FROM event")[0]
        self.assertEqual((facts["events"], facts["rows"], facts["chunks"], facts["first_kept_event"]), (rows, rows, 0, 1))
        self.assertLessEqual(facts["begin_ns"], first)
        self.assertGreaterEqual(facts["end_ns"], last)
        self.assertEqual((facts["processes"], facts["threads"], facts["lost"], facts["problems"], facts["leaks"]),
                         (1, 1, 0, 0, 0))
        self.assertEqual(facts["blocks"], ask(self.path, "SELECT count(*) FROM block")[0][0])
        peak = ask(self.path, "SELECT peak_bytes, t_ns, event_id FROM peak WHERE run_id = 0")[0]
        self.assertEqual(facts["whole_peak"]["bytes"], peak[0])
        # SQL has the first moment, the facts that of all as high at which most of the plans' buffers is used.
        self.assertGreaterEqual(facts["whole_peak"]["event"], peak[2])
        event, t_ns = ask(self.path, "SELECT id, t_ns FROM event WHERE id = ?", facts["whole_peak"]["event"])[0]
        self.assertEqual(facts["whole_peak"]["t_ns"], t_ns)
        live = ask(self.path, "SELECT sum(requested_bytes) FROM block WHERE alloc_event <= ?1 AND ifnull(free_event, ?1 + 1) > ?1",
                   event)[0][0]
        self.assertEqual(live, peak[0])
        kinds = [(k["kind"], k["device"], k["allocations"], k["frees"], k["requested_bytes"], k["peak_bytes"],
                  k["reserved_peak_bytes"], k["live_at_end_bytes"]) for k in facts["kinds"]]
        self.assertEqual(sorted(kinds), sorted(ask(self.path, """SELECT kind, device, allocations, frees, requested_bytes,
            peak_bytes, peak_reserved_bytes, live_at_end_bytes FROM bytes_by_kind WHERE run_id = 0""")))
        runs = [(r["id"], r["model"], r["mode"], r["begin_ns"], r["end_ns"], r["plan_bytes"]) for r in facts["runs"]]
        self.assertEqual(runs, ask(self.path, "SELECT id, model, mode, begin_ns, end_ns, plan_bytes FROM run"))
        self.assertEqual([(r["id"], r["peak_bytes"]) for r in facts["runs"]],
                         ask(self.path, "SELECT run_id, peak_bytes FROM peak WHERE run_id > 0 ORDER BY run_id"))
        self.assertEqual([r["peak_bytes"] for r in facts["runs"]], [m["peak_bytes"] for m in self.doc["modes"]])
        self.assertEqual([(m["name"], m["event"], m["t_ns"]) for m in facts["marks"]],
                         ask(self.path, "SELECT name, event_id, t_ns FROM marks ORDER BY event_id"))

    def test_one_run(self):
        for run_id, mode in ((1, "naive_kinds"), (2, "kinds")):
            facts = self.json("trace", self.path, "--run", run_id)
            self.assertEqual({k["kind"]: k["peak_bytes"] for k in facts["kinds"]},
                             {k["kind"]: k["measured_bytes"] for k in self.doc[mode]})
            self.assertEqual(facts["peak"]["bytes"], facts["runs"][run_id - 1]["peak_bytes"])
        self.assertEqual(self.json("trace", self.path), facts)  # what is said of no run is said of the last one
        self.assertIn("kinds      of run 2", self.trace().stdout)
        self.assertNotIn("kinds      of run", self.trace("--whole").stdout)
        self.refused(3, "trace", self.path, "--run", 3, says=["run 3"])
        self.refused(2, "trace", self.path, "--run", "x", says=["--run"])

    def test_text(self):
        """What the document has, laid out: no line is longer than the terminal, numbers stand under each other."""
        facts = self.json("trace", self.path)
        for width in (80, 120):
            text = self.trace(env={"COLUMNS": str(width)}).stdout
            for line in text.splitlines():
                self.assertLessEqual(len(line), width, line)
                self.assertEqual(line, line.rstrip())
        self.assertIn(f"{facts['events']} in ", text)
        for k in facts["kinds"]:
            self.assertRegex(text, rf"(?m)^  {k['kind']} +{k['device']} +{k['peak_bytes']} ")
        for word in ("complete", "lenet5", "naive", "planned", "search", "warm", "1 process", "2 runs"):
            self.assertIn(word, text)
        head = next(line for line in text.splitlines() if "peak bytes" in line)
        row = next(line for line in text.splitlines() if line.startswith("  Workspace"))
        end = head.index("peak bytes") + len("peak bytes")
        peak = next(k["peak_bytes"] for k in facts["kinds"] if k["kind"] == "Workspace")
        self.assertEqual(row[:end].split()[-1], str(peak))

    def test_nothing_recorded(self):
        """A trace without one event answers everything."""
        self.ok("record", "-o", self.path, "--quiet", "--", "true")
        facts = self.json("trace", self.path)
        self.assertEqual((facts["events"], facts["processes"], facts["peak"]["bytes"], facts["kinds"]), (0, 0, 0, []))
        self.trace()
        self.trace("--check")
        for at in ("begin", "peak", "end", "50%", "1ms"):
            self.assertEqual(self.json("trace", self.path, "--at", at)["blocks"], [])
        self.assertEqual(self.json("trace", self.path, "--at", "begin", "--and", "end")["groups"], [])
        self.refused(2, "trace", self.path, "--at", "warm", says=["warm", "no marks"])


class Moments(Traces):
    def check_live(self, doc):
        want = live_after(self.path, doc["moment"]["event"])
        by_block = {}  # a plan's buffer stands there as its tensors and its rest
        for b in doc["blocks"]:
            by_block[b["block_id"]] = by_block.get(b["block_id"], 0) + b["requested_bytes"]
        self.assertEqual(by_block, want)
        self.assertEqual(doc["moment"]["requested_bytes"], sum(want.values()))
        self.assertEqual(doc["moment"]["live_blocks"], len(want))
        self.assertEqual(doc["moment"]["live_tensors"], len(doc["blocks"]) - len(want))
        sizes = [b["requested_bytes"] for b in doc["blocks"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))

    def test_every_way_to_say_when(self):
        facts = self.json("trace", self.path)
        begin, end = facts["begin_ns"], facts["end_ns"]
        for at, t_ns in (("begin", begin), ("end", end), ("50%", begin + (end - begin) // 2), ("100%", end),
                         ("0%", begin), ("0ns", begin), ("100us", begin + 100000), ("0.1ms", begin + 100000),
                         ("0.5 ms", begin + 500000), ("1e2us", begin + 100000)):
            doc = self.json("trace", self.path, "--whole", "--at", at)
            self.assertLessEqual(abs(doc["moment"]["t_ns"] - t_ns), 1, at)
            event = ask(self.path, "SELECT coalesce(max(id), 0) FROM event WHERE t_ns <= ?", doc["moment"]["t_ns"])[0][0]
            self.assertEqual(doc["moment"]["event"], event)
            self.check_live(doc)
        peak = self.json("trace", self.path, "--at", "peak")
        self.assertEqual(peak["moment"]["event"], facts["peak"]["event"])
        self.assertEqual(peak["moment"]["requested_bytes"], facts["peak"]["bytes"])
        self.check_live(peak)
        for event in (1, 17, facts["events"] // 2, facts["events"]):
            doc = self.json("trace", self.path, "--at", f"#{event}")
            self.assertEqual(doc["moment"]["event"], event)
            self.check_live(doc)
        marks = facts["marks"]
        self.assertEqual(self.json("trace", self.path, "--whole", "--at", "warm")["moment"]["event"],
                         marks[0]["event"])
        self.assertEqual(self.json("trace", self.path, "--whole", "--at", "mark:warm")["moment"]["event"],
                         marks[0]["event"])
        # What is said of no run is said of the last one.
        self.assertEqual(self.json("trace", self.path, "--at", "warm")["moment"]["event"], marks[1]["event"])
        # In a run: its own mark, peak and share.
        doc = self.json("trace", self.path, "--at", "warm", "--run", 2)
        self.assertEqual((doc["moment"]["event"], doc["moment"]["run"]), (marks[1]["event"], 2))
        for run_id in (1, 2):
            doc = self.json("trace", self.path, "--at", "peak", "--run", run_id)
            self.assertEqual(doc["moment"]["requested_bytes"], facts["runs"][run_id - 1]["peak_bytes"])
            self.check_live(doc)

    def test_peaks_of_runs(self):
        """A model whose plan saves memory: each run has a peak of its own."""
        self.ok("compare", SAMPLES / "transformer_encoder.json", "-n", 1, "-o", self.path)
        peaks = [self.json("trace", self.path, "--at", "peak", "--run", n)["moment"]["requested_bytes"] for n in (1, 2)]
        self.assertEqual(peaks, [r["peak_bytes"] for r in self.json("trace", self.path)["runs"]])
        self.assertGreater(peaks[0], peaks[1])

    def test_no_moment(self):
        for at in ("", "noon", "101%", "-1%", "5", "5 parsecs", "#", "#x", "-3ms", "mark:", "mark:cold", "1e400s",
                   "nan%"):
            self.refused(2, "trace", self.path, "--at", at, says=["no moment", "'warm'"])
        for at in ("99s", "1min"):
            self.refused(2, "trace", self.path, "--at", at, says=[f"'{at}' lies behind the end of the trace"])
        self.refused(2, "trace", self.path, "--at", "begin", "--and", "99s", says=["behind the end"])
        self.refused(2, "trace", self.path, "--at", "99s", "--run", 1, says=["behind the end"])
        for at in ("#99999999999999999999",):
            self.refused(2, "trace", self.path, "--at", at)

    def test_blocks_say_whose_they_are(self):
        doc = self.json("trace", self.path, "--at", "peak", "--run", 1)
        want = ask(self.path, """SELECT block_id, name, nullif(scope, ''), step, kind, device, allocator, thread,
            requested_bytes, reserved_bytes, alloc_ns FROM blocks WHERE alloc_event <= ?1 AND (free_event IS NULL OR free_event > ?1)""",
            doc["moment"]["event"])
        keys = ("block_id", "name", "scope", "scope_index", "kind", "device", "allocator", "thread", "requested_bytes",
                "reserved_bytes", "alloc_ns")
        got = [tuple(b[key] for key in keys) for b in doc["blocks"]]
        self.assertEqual(sorted(got), sorted(want))
        for b in doc["blocks"]:
            self.assertEqual(b["age_ns"], doc["moment"]["t_ns"] - b["alloc_ns"])
        self.assertIn("conv1.w", [b["name"] for b in doc["blocks"]])

    def test_groups_sum_up(self):
        doc = self.json("trace", self.path, "--at", "peak")
        for key in KEYS:
            with self.subTest(by=key):
                groups = self.json("trace", self.path, "--at", "peak", "--by", key)
                self.assertEqual(groups["by"], key)
                self.assertEqual(groups["moment"], doc["moment"])
                self.assertEqual(sum(g["requested_bytes"] for g in groups["groups"]), doc["moment"]["requested_bytes"])
                self.assertEqual(sum(g["blocks"] for g in groups["groups"]), doc["moment"]["live_blocks"] + doc["moment"]["live_tensors"])
                text = self.trace("--at", "peak", "--by", key).stdout
                for g in groups["groups"][:30]:
                    name = re.escape(g["key"] or "-")
                    self.assertRegex(text, rf"(?m)^  {name} +{g['blocks']} +{g['requested_bytes']} ")
        by_kind = self.json("trace", self.path, "--at", "peak", "--by", "kind")
        kinds = {g["key"]: g["requested_bytes"] for g in by_kind["groups"]}
        want = {}
        for b in doc["blocks"]:
            want[b["kind"]] = want.get(b["kind"], 0) + b["requested_bytes"]
        self.assertEqual(kinds, want)
        self.refused(2, "trace", self.path, "--at", "peak", "--by", "colour", says=["colour", "kind"])
        self.refused(2, "trace", self.path, "--by", "kind", says=["--at"])

    def test_text_adds_up(self):
        """Shortened lists say what they leave out, in the columns that they leave it out of."""
        doc = self.json("trace", self.path, "--at", "peak")
        for rows in (1, 3, 0, 1000):
            text = self.trace("--at", "peak", "--rows", rows).stdout
            lines = text.splitlines()
            n = min(rows, len(doc["blocks"])) if rows else len(doc["blocks"])
            sizes = [int(line.split()[0]) for line in lines[4:]]
            self.assertEqual(len(sizes), n + (n < len(doc["blocks"])))
            self.assertEqual(sum(sizes), doc["moment"]["requested_bytes"])
        self.assertIn(f"in {len(doc['blocks']) - 1} more", self.trace("--at", "peak", "--rows", 1).stdout)
        # A narrow terminal cuts names, never numbers.
        for width in (60, 80, 120):
            for line in self.trace("--at", "peak", env={"COLUMNS": str(width)}).stdout.splitlines()[2:]:
                self.assertLessEqual(len(line), width, line)
        text = self.trace("--whole", "--at", "end").stdout
        self.assertIn("live: 0 blocks, 0 B requested", text)

    def test_changes_between_two_moments(self):
        facts = self.json("trace", self.path)
        for a, b in (("begin", "peak"), ("peak", "end"), ("10%", "90%"), ("#5", "#50"), ("warm", "warm"),
                     ("end", "begin")):
            for key in ["name", "kind", "scope", "size"]:
                doc = self.json("trace", self.path, "--at", a, "--and", b, "--by", key)
                one, two = doc["a"], doc["b"]
                for side, moment in (("a", one), ("b", two)):
                    self.assertEqual(sum(g[f"{side}_bytes"] for g in doc["groups"]), moment["requested_bytes"])
                    self.assertEqual(sum(g[f"{side}_blocks"] for g in doc["groups"]), moment["live_blocks"] + moment["live_tensors"])
                self.assertEqual(doc["change_bytes"], two["requested_bytes"] - one["requested_bytes"])
                self.assertEqual(sum(g["change_bytes"] for g in doc["groups"]), doc["change_bytes"])
        doc = self.json("trace", self.path, "--at", "begin", "--and", "peak")
        self.assertEqual(doc["by"], "name")
        text = self.trace("--at", "begin", "--and", "peak").stdout
        for g in doc["groups"]:
            if g["change_bytes"]:
                name, change = re.escape(g["key"] or "-"), re.escape(f"{g['change_bytes']:+d}")
                self.assertRegex(text, rf"(?m)^  {name} .* {change}$")
        self.assertRegex(text, rf"(?m)^  together .* {facts['peak']['bytes']} +\+{doc['change_bytes']}$")
        self.refused(2, "trace", self.path, "--and", "end", says=["--at"])
        self.refused(2, "trace", self.path, "--at", "begin", "--and", "noon", says=["noon"])

    def test_two_traces(self):
        other = self.dir / "other.db"
        self.ok("run", LENET, "--naive", "-n", 2, "-o", other)
        peaks = [self.json("trace", p)["peak"]["bytes"] for p in (self.path, other)]
        doc = self.json("trace", self.path, "--compare", other)
        self.assertEqual([doc["a"]["file"], doc["b"]["file"]], [str(self.path), str(other)])
        self.assertEqual([doc["a"]["requested_bytes"], doc["b"]["requested_bytes"]], peaks)
        self.assertEqual(sum(g["change_bytes"] for g in doc["groups"]), peaks[1] - peaks[0])
        same = self.json("trace", self.path, "--compare", self.path)
        self.assertEqual({g["change_bytes"] for g in same["groups"]}, {0})
        text = self.trace("--compare", self.path).stdout
        self.assertRegex(text, r"(?m)^  \d+ unchanged ")
        doc = self.json("trace", self.path, "--compare", other, "--at", "warm", "--by", "kind")
        self.assertEqual((doc["a"]["at"], doc["b"]["at"], doc["by"]), ("warm", "warm", "kind"))
        doc = self.json("trace", self.path, "--compare", other, "--at", "begin", "--and", "peak")
        self.assertEqual((doc["a"]["at"], doc["b"]["at"], doc["b"]["requested_bytes"]), ("begin", "peak", peaks[1]))
        self.refused(3, "trace", self.path, "--compare", self.dir / "none.db", says=["none.db"])

    def test_chunks_say_the_same(self):
        """The same answers, however the events are kept: a second run differs in times alone."""
        chunked = self.dir / "c.db"
        self.ok("compare", LENET, "-n", 3, "-o", chunked, "--form", "chunks")
        self.assertGreater(self.json("trace", chunked)["chunks"], 0)
        n = self.json("trace", self.path)["events"]
        for event in range(1, n, 13):
            a, b = (self.json("trace", p, "--at", f"#{event}") for p in (self.path, chunked))
            strip = lambda doc: sorted((x["name"], x["kind"], x["scope"], x["requested_bytes"]) for x in doc["blocks"])
            self.assertEqual(strip(a), strip(b))
        ran = [self.json("trace", p, "--sql", "SELECT op, count(*) FROM all_events GROUP BY op ORDER BY op")["rows"]
               for p in (self.path, chunked)]
        self.assertEqual(ran[0], ran[1])
        blocks = [self.json("trace", p, "--sql", "SELECT kind, count(*), sum(requested_bytes), count(free_event) FROM block GROUP BY kind")["rows"]
                  for p in (self.path, chunked)]
        self.assertEqual(blocks[0], blocks[1])
        self.assertEqual(ask(chunked, "SELECT count(*) FROM block"), [(0,)])
        self.assertIn("--expand", ask(chunked, "SELECT value FROM meta WHERE key = 'packed'")[0][0])
        # Expanded: every event is a row, and nothing else is different.
        before = self.json("trace", chunked)
        self.assertEqual(self.json("trace", chunked, "--expand"),
                         {"schema": "tidemark.trace_expand", "version": 1, "file": str(chunked), "rows": n, "chunks": 0})
        after = self.json("trace", chunked)
        changed = {k for k in before if before[k] != after[k]}
        self.assertLessEqual(changed, {"rows", "chunks", "file_bytes", "trace_version"})
        self.assertEqual((before["trace_version"], after["trace_version"]), (2, 1))
        self.assertEqual(ask(chunked, "SELECT count(*) FROM event"), [(n,)])
        self.assertIn("no chunks", self.ok("trace", chunked, "--expand").stdout)
        self.ok("trace", chunked, "--check")


class Sql(Traces):
    def test_rows(self):
        query = "SELECT kind, device, peak_bytes, NULL, 1.5 AS x FROM bytes_by_kind WHERE run_id = 1 ORDER BY kind"
        want = ask(self.path, query)
        lines = self.trace("--sql", query).stdout.splitlines()
        self.assertEqual(lines[0], "kind\tdevice\tpeak_bytes\tNULL\tx")
        texts = [["" if v is None else str(v) for v in row] for row in want]
        self.assertEqual([line.split("\t") for line in lines[1:]], texts)
        doc = self.json("trace", self.path, "--sql", query)
        self.assertEqual(doc["columns"], ["kind", "device", "peak_bytes", "NULL", "x"])
        self.assertEqual([tuple(row) for row in doc["rows"]], want)

    def test_queries_of_all_sorts(self):
        for query in ("SELECT 1;", "SELECT 1 ;\n ", "SELECT 1 -- a remark", "SELECT 1 /* ; */",
                      "WITH a AS (SELECT 1 AS b) SELECT b FROM a", "VALUES (1)", "\n  select\n1"):
            with self.subTest(query=query):
                self.assertEqual(self.trace("--sql", query).stdout.splitlines()[1:], ["1"])
                self.assertEqual(self.json("trace", self.path, "--sql", query)["rows"], [[1]])
        self.assertEqual(self.json("trace", self.path, "--sql", "SELECT 1 AS a, 2 AS a")["rows"], [[1, 2]])
        odd = "SELECT x'00ff' AS b, 'a\"b\\c' AS \"q\"\"t\", 'tab\there' AS t, 'line\nend' AS n, 9223372036854775807, " \
              "char(27)"
        doc = self.json("trace", self.path, "--sql", odd)
        self.assertEqual(doc["rows"], [["00FF", 'a"b\\c', "tab\there", "line\nend", 9223372036854775807, "\x1b"]])
        self.assertEqual(doc["columns"][:2], ["b", 'q"t'])
        self.assertNotIn("\x1b", self.trace("--sql", odd).stdout)
        strange = "SELECT CAST(x'61ff62' AS TEXT) AS bad, 9e999 AS i, -9e999 AS j, 0.1 AS r, 1e300 AS big"
        doc = self.json("trace", self.path, "--sql", strange)
        self.assertEqual(doc["rows"], [["a\ufffdb", None, None, 0.1, 1e300]])
        empty = "SELECT id FROM event WHERE id < 0"
        self.assertEqual(self.trace("--sql", empty).stdout, "id\n")
        self.assertEqual(self.json("trace", self.path, "--sql", empty)["rows"], [])
        order = "SELECT id FROM event ORDER BY id DESC"
        rows = self.json("trace", self.path, "--sql", order)["rows"]
        self.assertEqual([tuple(r) for r in rows], ask(self.path, order))
        self.assertEqual(len(self.json("trace", self.path, "--sql", order, "--rows", 5)["rows"]), 5)
        self.assertEqual(len(self.trace("--sql", order, "--rows", 5).stdout.splitlines()), 6)

    def test_every_view(self):
        for (name,) in ask(self.path, "SELECT name FROM sqlite_master WHERE type IN ('view', 'table')"):
            want = ask(self.path, f'SELECT count(*) FROM "{name}"')[0][0]
            doc = self.json("trace", self.path, "--sql", f'SELECT * FROM "{name}"')
            self.assertEqual(len(doc["rows"]), want, name)

    def test_nothing_is_written(self):
        before = self.path.read_bytes()
        for query in ("DELETE FROM event", "INSERT INTO meta VALUES ('a', 'b')", "DROP TABLE event", "CREATE TABLE x(y)",
                      "UPDATE event SET t_ns = 0", "ATTACH 'x.db' AS x", "PRAGMA journal_mode = DELETE", "VACUUM", "",
                      "SELECT 1; DELETE FROM event", "SELECT nothing FROM nowhere", "SELEC 1", "PRAGMA user_version = 9",
                      f"VACUUM INTO '{self.dir}/copy.db'", "SELECT writefile('x', 'y')", "SELECT load_extension('x')"):
            with self.subTest(query=query):
                for more in ([], ["--json"]):
                    self.refused(2, "trace", self.path, "--sql", query, *more)
        self.assertEqual(self.path.read_bytes(), before)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["t.db"])
        self.refused(2, "trace", self.path, "--sql", says=["--sql"])


class Documents(Traces):
    def keys_of(self, value):
        if isinstance(value, dict):
            return set(value).union(*map(self.keys_of, value.values()))
        return set().union(*map(self.keys_of, value)) if isinstance(value, list) else set()

    def test_every_key_is_documented(self):
        text = (tidemark.SOURCE / "docs" / "architecture.md").read_text().split("## The command line")[1]
        words = set(re.findall(r"\w+", text))
        for args in ([], ["--at", "peak"], ["--at", "peak", "--by", "kind"], ["--at", "begin", "--and", "end"],
                     ["--sql", "SELECT 1"], ["--check"], ["--recover", "-o", self.dir / "r.db"], ["--expand"]):
            doc = self.json("trace", self.path, *args)
            self.assertEqual((list(doc)[:2], doc["version"]), (["schema", "version"], 1))
            self.assertIn(doc["schema"].removeprefix("tidemark."), words)
            self.assertLessEqual(self.keys_of(doc), words)
        doc = self.json("run", LENET, "-n", 1, "-o", self.path)
        self.assertLessEqual(self.keys_of({"recorder": doc["recorder"]}), words)


class Use(Traces):
    def test_options_that_do_not_go_together(self):
        out = self.dir / "o.db"
        for args in (["--check", "--expand"], ["--recover", "--expand", "-o", out], ["--sql", "SELECT 1", "--check"],
                     ["--check", "--at", "peak"], ["--sql", "SELECT 1", "--by", "kind"], ["--recover"],
                     ["-o", out], ["--check", "-o", out], ["--rows", "x"], ["--no-such"], ["--at"], ["--compare"],
                     ["--recover", "-o", self.path], [self.path]):
            with self.subTest(args=args):
                self.refused(2, "trace", self.path, *args)
        self.refused(2, "trace")
        self.assertFalse(out.exists())

    def test_standard_output_is_watched(self):
        with open("/dev/full", "w") as full:
            for args in ([], ["--json"], ["--at", "peak"], ["--sql", "SELECT * FROM event"]):
                p = subprocess.run([tidemark.PROGRAM, "trace", str(self.path), *args], stdout=full,
                                   stderr=subprocess.PIPE, text=True)
                self.assertEqual(p.returncode, 8, args)

    def test_names_with_control_characters(self):
        doc = json.loads((SAMPLES / "diamond.json").read_text())
        doc["name"] = "red\x1b[31m\nline"
        for node in doc["nodes"]:
            node["name"] += "\x1b]0;\x07\t"
        graph = self.dir / "g.json"
        graph.write_text(json.dumps(doc))
        self.ok("run", graph, "-n", 2, "-o", self.path)
        for args in ([], ["--at", "peak"], ["--at", "peak", "--by", "scope"], ["--at", "peak", "--by", "name"],
                     ["--at", "begin", "--and", "peak", "--by", "scope"], ["--sql", "SELECT * FROM scopes"],
                     ["--sql", "SELECT * FROM run"]):
            text = self.trace(*args).stdout
            self.assertNotIn("\x1b", text)
            self.assertNotIn("\x07", text)
        self.assertEqual(self.json("trace", self.path)["runs"][0]["model"], "red\x1b[31m\nline")


class Bad(Traces):
    ACTIONS = ([], ["--json"], ["--check"], ["--at", "peak"], ["--sql", "SELECT 1"], ["--expand"])

    def bad(self, path, *says):
        for args in self.ACTIONS:
            p = self.refused(3, "trace", path, *args, says=[path.name, *says])
            self.assertEqual(p.stdout, "")
        self.refused(3, "trace", self.path, "--compare", path, says=[path.name])

    def test_files_that_are_no_trace(self):
        names = {"empty": b"", "text": b"hello, world\n" * 100, "zero": b"\0" * 8192,
                 "magic": b"SQLite format 3\0" + b"\0" * 4096}
        for name, data in names.items():
            (self.dir / name).write_bytes(data)
            self.bad(self.dir / name)
        foreign = self.dir / "foreign.db"
        db = sqlite3.connect(foreign)
        db.execute("CREATE TABLE event(id INTEGER PRIMARY KEY, t_ns)")
        db.commit()
        db.close()
        self.bad(foreign)
        self.bad(self.dir / "missing.db")
        folder = self.dir / "folder"
        folder.mkdir()
        self.bad(folder)
        self.bad(LENET)

    def test_another_version(self):
        for version in (0, 2, 3, 99):  # of 2 there is a table more
            other = self.dir / "v.db"
            shutil.copy(self.path, other)
            db = sqlite3.connect(other)
            db.execute(f"PRAGMA user_version = {version}")
            db.execute(f"UPDATE meta SET value = '{version}' WHERE key = 'version'")
            db.commit()
            db.close()
            self.bad(other, str(version))

    def test_truncated(self):
        data = self.path.read_bytes()
        cut = self.dir / "cut.db"
        for eighths in range(1, 8):
            cut.write_bytes(data[:len(data) * eighths // 8])
            p = self.refused(3, "trace", cut, says=["cut.db"])
            self.assertEqual(p.stdout, "")

    def test_damaged_within(self):
        """Pages overwritten here and there: the full check finds it, nothing crashes, and what can be read is read."""
        data = bytearray(self.path.read_bytes())
        page = 8192
        found = 0
        for at in range(page, len(data), page):
            bad = bytearray(data)
            bad[at:at + page] = b"\xA5" * page
            path = self.dir / "bad.db"
            path.write_bytes(bad)
            p = run("trace", path, "--check")
            self.assertIn(p.returncode, (0, 3), p.stderr)
            found += p.returncode == 3
            for args in ([], ["--at", "peak"], ["--at", "50%", "--by", "scope"]):
                p = run("trace", path, *args)
                self.assertIn(p.returncode, (0, 3), p.stderr)
            out = self.dir / "out.db"
            p = run("trace", path, "--recover", "-o", out)
            self.assertIn(p.returncode, (0, 3), p.stderr)
            if p.returncode == 0:
                self.ok("trace", out, "--at", "end")
                out.unlink()
            else:
                self.assertFalse(out.exists())
        self.assertGreater(found, len(data) // page // 2)

    def test_recover_of_a_good_one_is_the_same(self):
        out = self.dir / "out.db"
        facts = self.json("trace", self.path)
        doc = self.json("trace", self.path, "--recover", "-o", out)
        self.assertEqual((doc["events"], doc["lost"], doc["file"]), (facts["events"], 0, str(out)))
        again = self.json("trace", out)
        for key in ("events", "blocks", "peak", "kinds", "runs", "marks", "begin_ns", "end_ns"):
            self.assertEqual(again[key], facts[key], key)
        self.refused(3, "trace", self.dir / "none.db", "--recover", "-o", out, says=["none.db"])
        self.refused(8, "trace", self.path, "--recover", "-o", self.dir / "no" / "x.db", says=["x.db"])
        self.assertIn("0 could not be read", self.ok("trace", self.path, "--recover", "-o", out).stdout)


if __name__ == "__main__":
    tidemark.main()
