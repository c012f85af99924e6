# SPDX-License-Identifier: MIT
"""One origin of time and one peak: every view of a trace is held against the others, and against the bare tables."""
import json
import re
import sqlite3
import sys
import unittest

import tidemark
from tidemark import SAMPLES, Case, ask, run

LENET = SAMPLES / "lenet5.json"
UNET = SAMPLES / "unet.json"


def shown_run(path):
    """As docs/trace-format.md says, from the tables alone; 0: the whole."""
    (last, first), = ask(path, "SELECT coalesce(max(id), 0), (SELECT first_event FROM run ORDER BY id DESC LIMIT 1) FROM run")
    (processes,), = ask(path, "SELECT count(*) FROM process")
    (kept,), = ask(path, "SELECT CAST(value AS INTEGER) FROM meta WHERE key = 'first_kept_event'")
    return last if processes <= 1 and last > 0 and (first or 0) >= kept else 0


def origin_of(path):
    times = [t for t, in ask(path, "SELECT min(t_ns) FROM event UNION SELECT min(begin_ns) FROM event_chunk "
                                   "UNION SELECT min(begin_ns) FROM leaf UNION SELECT min(begin_ns) FROM run") if t is not None]
    return min(times) if times else 0


def fullest(path, run_id):
    """Of the events at which the run is highest, the first with the most tensors' bytes in the plan's buffers."""
    used, live = {}, {}
    for name, size, begin, end in ask(path, "SELECT name, bytes, begin_event, end_event FROM holders"):
        for event, delta in ((begin, size), (end, -size)):
            if event is None:
                continue
            live[event] = live.get(event, 0) + delta
            used[event] = used.get(event, 0) + (delta if name != "unused in the buffer" else 0)
    first, last = ask(path, "SELECT first_event, last_event FROM run WHERE id = ?", run_id)[0]
    now_live = now_used = 0
    best = (-1, -1)
    for event in sorted(live):
        now_live += live[event]
        now_used += used[event]
        if first <= event <= last and (now_live, now_used) > best:
            best, at = (now_live, now_used), event
    return best[0], at, ask(path, "SELECT t_ns FROM event WHERE id = ?", at)[0][0]


def first_highest(path, run_id):
    """(bytes, event, t_ns) by a replay in Python; of the whole where the run is 0. None: the file does not say it all."""
    if ask(path, "SELECT count(*) FROM event_chunk")[0][0] > 0:
        return None
    first, last, begin = 1, 1 << 62, 0
    if run_id:
        (first, last, begin), = ask(path, "SELECT first_event, coalesce(last_event, 1 << 62), begin_ns FROM run WHERE id = ?", run_id)
    live, now, best = {}, 0, None
    for event, t, op, block, size in ask(path, "SELECT id, t_ns, op, block_id, requested_bytes FROM event ORDER BY id"):
        if event > last:
            break
        if event >= first and best is None:
            best = (now, first - 1, begin)  # what was there when it began
        if op == 1:
            live[block] = size
            now += size
        elif op == 3:
            now -= live.pop(block, 0)
        if event >= first and now > best[0]:
            best = (now, event, t)
    return best or (0, 0, begin)


def words(text):
    """ "46.68 ms" as ns, and how far off it may be."""
    number, unit = re.match(r"([\d.]+) (\S+)", text).groups()
    scale = {"ns": 1, "us": 1e3, "µs": 1e3, "ms": 1e6, "s": 1e9}[unit]
    digits = len(number.split(".")[1]) if "." in number else 0
    # Four digits are told, and trailing zeros are not written.
    return float(number) * scale, scale * 10.0 ** -max(digits, 3 - len(number.split(".")[0])) * 0.51


class OneTime(Case):
    def views(self, path):
        """Every figure that a view gives of the trace: {name: (peak bytes, ns since the origin)}."""
        found = {}
        facts = self.json("trace", path)
        found["trace"] = (facts["peak"]["bytes"], facts["peak"]["since_begin_ns"])
        at = self.json("trace", path, "--at", "peak")["moment"]
        found["trace --at peak"] = (at["requested_bytes"], at["since_begin_ns"])
        out = self.dir / "r.json"
        self.ok("report", path, "-o", out)
        peak = json.loads(out.read_text())["sides"][0]["peak"]
        found["report json"] = (peak["bytes"], peak["t"])
        page = self.dir / "r.html"
        self.ok("report", path, "-o", page)
        data = re.search(r'<script[^>]*id="tidemark-data"[^>]*>(.*?)</script>', page.read_text(), re.S).group(1)
        peak = json.loads(data)["sides"][0]["peak"]
        found["report html"] = (peak["bytes"], peak["t"])
        pane = self.json("tui", path, "--pane", "curve", "--json")
        found["tui curve"] = (pane["peak_bytes"], pane["peak_ns"] - pane["origin_ns"])
        pane = self.json("tui", path, "--command", "goto peak", "--pane", "table", "--json")
        found["tui goto peak"] = (pane["cursor_bytes"], pane["cursor_ns"] - pane["origin_ns"])
        diff = self.json("diff", path, "--at", "peak", "--and", "peak")
        found["diff --at peak"] = (diff["a"]["peak_bytes"] if "peak_bytes" in diff["a"] else facts["peak"]["bytes"], diff["a"]["at"])
        return facts, found

    def texts(self, path):
        """The moment of the peak in words, of each view that says it."""
        found = {}
        found["trace"] = re.search(r"^peak .* at (\S+ \S+) from the begin", self.ok("trace", path).stdout, re.M).group(1)
        txt = self.dir / "r.txt"
        self.ok("report", path, "-o", txt)
        found["report txt"] = re.search(r"^Peak .* at (\S+ [nµm]?s)", txt.read_text(), re.M).group(1)
        frame = self.ok("tui", path, "--once", "--size", "160x40").stdout
        found["tui"] = re.search(r"peak at (\S+ \S+)", frame).group(1)
        hello = self.ok("tui", path, "--linear", stdin="quit\n").stdout
        found["tui --linear"] = re.search(r"Peak .*? at (\S+ [num]?s)", hello).group(1)
        return found

    def agree(self, path):
        facts, found = self.views(path)
        run_id, origin = shown_run(path), origin_of(path)
        planned = run_id > 0 and ask(path, "SELECT mode FROM run WHERE id = ?", run_id)[0][0] == "planned"
        self.assertEqual(facts["peak"]["run"] or 0, run_id)
        self.assertEqual(facts["begin_ns"], origin)
        want = fullest(path, run_id) if planned else first_highest(path, run_id)
        if want is not None and facts["first_kept_event"] == 1:
            self.assertEqual((facts["peak"]["bytes"], facts["peak"]["event"], facts["peak"]["t_ns"]), want)
        for view, value in found.items():
            self.assertEqual(value, found["trace"], view)
        for view, text in self.texts(path).items():
            ns, off = words(text)
            self.assertAlmostEqual(ns, found["trace"][1], delta=off, msg=f"{view}: {text}")
        thinned = facts["first_kept_event"] > 1  # who was live early on is known at the peak alone
        for share in ("95%", "end") if thinned else ("10%", "50%", "90%", "begin", "end"):
            here = self.json("trace", path, "--at", share)["moment"]
            there = self.json("diff", path, "--at", share, "--and", share)["a"]
            self.assertEqual(there["at"], here["since_begin_ns"], share)
            # A time that a view shows leads back to the moment in every other.
            back = self.json("trace", path, "--at", f"{here['since_begin_ns']}ns")["moment"]
            self.assertEqual(back["t_ns"], here["t_ns"], share)
        for row in facts["runs"]:
            one = self.json("trace", path, "--run", row["id"], "--at", "peak")["moment"]
            self.assertEqual(one["since_begin_ns"], row["peak_since_begin_ns"])
        whole = self.json("trace", path, "--whole", "--at", "peak")["moment"]
        self.assertEqual(whole["since_begin_ns"], facts["whole_peak"]["since_begin_ns"])

    def record(self, *args):
        path = self.dir / "t.db"
        self.ok(*args, "-o", path)
        return path

    def test_a_naive_run_whose_peak_is_reached_five_times(self):
        self.agree(self.record("run", LENET, "--naive", "-n", 5))

    def test_a_planned_run(self):
        self.agree(self.record("run", LENET, "-n", 4))

    def test_two_runs(self):
        path = self.record("compare", LENET, "-n", 2)
        self.agree(path)
        self.assertEqual(self.json("trace", path)["peak"]["run"], 2)

    def test_several_processes(self):
        path = self.dir / "all.db"
        line = f"{tidemark.PROGRAM} run {LENET} -n 2 & {tidemark.PROGRAM} run {UNET} -n 2 --naive & wait"
        self.ok("record", "-o", path, "--", "sh", "-c", line)
        self.agree(path)
        self.assertIsNone(self.json("trace", path)["peak"]["run"])

    def test_a_thinned_trace(self):
        """The peak's events are gone; who was live then is known."""
        path = self.record("run", LENET, "--naive", "-n", 6000, "--max-trace", "8MiB")
        facts = self.json("trace", path)
        self.assertGreater(facts["first_kept_event"], facts["peak"]["event"] + 1)
        at = self.json("trace", path, "--at", "peak")
        self.assertEqual(sum(b["requested_bytes"] for b in at["blocks"]), facts["peak"]["bytes"])
        self.agree(path)
        self.ok("trace", path, "--check")
        # A higher one later takes its place; a copy has it, too.
        copy = self.dir / "copy.db"
        self.ok("trace", path, "--recover", "-o", copy)
        self.assertEqual(self.json("trace", copy, "--at", "peak")["blocks"], at["blocks"])

    def test_an_empty_trace(self):
        path = self.dir / "none.db"
        done = self.ok("record", "-o", path, "--", "true")
        self.assertIn("no process that the command started spoke to tidemark", done.stderr)
        self.assertEqual(self.json("trace", path)["peak"]["since_begin_ns"], 0)
        self.assertEqual(self.json("trace", path, "--at", "peak")["moment"]["requested_bytes"], 0)

    def test_a_time_behind_the_end_is_refused(self):
        path = self.record("run", LENET, "-n", 2)
        done = run("trace", path, "--at", "99s")
        self.assertEqual(done.returncode, 2)
        self.assertIn("lies behind the end of the trace", done.stderr)


if __name__ == "__main__":
    sys.exit(unittest.main())
