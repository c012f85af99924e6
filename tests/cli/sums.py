# SPDX-License-Identifier: MIT
"""The sums of every view of a trace are those of plain SQL over its tables, to the byte: a naive run over a caching allocator,
a planned run, a decoder step by step, a program that records itself (examples/serve.c), and traces of hardly anything."""
import collections
import csv
import io
import itertools
import json
import os
import pathlib
import re
import resource
import shutil
import subprocess
import tempfile
import unittest

import tidemark
from ledger import UNUSED, Ledger
from tidemark import SAMPLES, SOURCE, Case, environment, run

SERVE = pathlib.Path(os.environ.get("TIDE_EXAMPLES_DIR", "build/test/examples")) / "serve"
SUMS_TRACE = os.environ.get("TIDE_SUMS_TRACE", "build/test/tests/cli/sums_trace")
GRAPH = SAMPLES / "inception_block.json"


def grouped(rows, key):
    """{key: [rows, requested bytes, reserved bytes]}"""
    out = collections.defaultdict(lambda: [0, 0, 0])
    for r in rows:
        sums = out[key(r)]
        sums[0] += 1
        sums[1] += r.requested
        sums[2] += r.reserved
    return dict(out)


def is_told(pool):
    """Whether a trace says what an allocator took: it tells its segments, or takes each block from the system by itself."""
    tells = pool["tells_segments"] if "tells_segments" in pool else pool["n_segments"] is not None
    return tells or pool["pool"] in ("cpu", "caller", "mapped", "device")


def sum_if_known(values):
    """As tidemark sums: the sum of what is not known and anything is not known."""
    values = list(values)
    return None if None in values else sum(values)


def scope_of(h):
    if h.name == UNUSED:
        return "(unused in the buffer)"
    if h.scope is None:
        return "(outside all scopes)"
    return h.scope if h.step is None else f"{h.scope} #{h.step}"


BY = {"kind": lambda h: h.kind, "device": lambda h: h.device, "name": lambda h: h.name or "(no name)", "scope": scope_of,
      "allocator": lambda h: h.allocator or "(no allocator)", "thread": lambda h: f"thread {h.thread}",
      "run": lambda h: f"run {h.run}" if h.run else "(outside all runs)"}


class Traces(Case):
    """One trace for all tests of a class, and its ledger."""
    run_id = 1
    steps_take_time = True

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, folder, True)
        cls.trace = folder / "t.db"
        cls.record(cls.trace)
        run("trace", cls.trace)  # whoever opens it first puts one in order that ended early
        cls.ledger = Ledger(cls.trace)
        cls.addClassCleanup(cls.ledger.db.close)

    @classmethod
    def made(cls, *args):
        p = run("run", *args)
        if p.returncode != 0:
            raise AssertionError(p.stderr)

    def moments(self):
        """The peak; begin and end of the trace and of its runs; some between, also inside of a step."""
        led = self.ledger
        last = led.events[-1].id
        found = {1, last, led.peak(0)[1], led.peak(self.run_id)[1], last // 3, last * 2 // 3}
        for run_id in led.modes:
            first, end, _, _ = led.span(run_id)
            found |= {first - 1, first, end}
        for x in led.executions[1:2] + led.executions[-1:]:
            found |= {x.first, x.steps[len(x.steps) // 2].begin, x.last}
        return sorted(found - {0})[::1 if len(found) < 9 else 2] + [last]


class Sums:
    """What holds of each of them."""

    # ---- tidemark trace ----

    def test_facts(self):
        for args, run_id in ((["--whole"], 0), ([], self.run_id)):
            with self.subTest(args=args):
                facts = self.json("trace", self.trace, *args)
                peak, event = self.ledger.peak(run_id)
                self.assertEqual((facts["peak"]["bytes"], facts["peak"]["event"]), (peak, event))
                whole = self.ledger.peak(0)
                self.assertEqual((facts["whole_peak"]["bytes"], facts["whole_peak"]["event"]), whole)
                got = {(k["kind"], k["device"]): (k["allocations"], k["frees"], k["requested_bytes"], k["peak_bytes"],
                                                  k["reserved_peak_bytes"], k["live_at_end_bytes"]) for k in facts["kinds"]}
                self.assertEqual(got, self.ledger.kinds(run_id))
                self.assertEqual([(r["id"], r["peak_bytes"], r["peak_event"]) for r in facts["runs"]],
                                 [(r, *self.ledger.peak(r)) for r in self.ledger.modes])
                self.assertEqual((facts["events"], facts["blocks"], facts["leaks"]),
                                 (len(self.ledger.events),
                                  *self.ledger.one("SELECT count(*), count(*) - count(free_event) FROM block")))

    def test_who_was_live(self):
        for event in self.moments():
            with self.subTest(event=event):
                doc = self.json("trace", self.trace, "--at", f"#{event}")
                want = self.ledger.holders(event)
                self.assertEqual((doc["moment"]["requested_bytes"], doc["moment"]["reserved_bytes"]),
                                 (sum(h.requested for h in want), sum(h.reserved for h in want)))
                row = ("block_id", "name", "scope", "scope_index", "kind", "device", "allocator", "thread", "run",
                       "requested_bytes", "reserved_bytes")
                self.assertEqual(sorted(json.dumps([b[k] for k in row]) for b in doc["blocks"]),
                                 sorted(json.dumps(h[:-1]) for h in want))

    def test_who_was_live_by(self):
        events = self.moments()
        for event, keys in ((self.ledger.peak(self.run_id)[1], BY), (events[len(events) // 2], ("scope", "kind"))):
            want = self.ledger.holders(event)
            for key, of in ((key, BY[key]) for key in keys):
                with self.subTest(event=event, by=key):
                    doc = self.json("trace", self.trace, "--at", f"#{event}", "--by", key)
                    got = {g["key"]: [g["blocks"], g["requested_bytes"], g["reserved_bytes"]] for g in doc["groups"]}
                    self.assertEqual(got, grouped(want, of))
            for key in ("size", "age") if keys is BY else ():
                groups = self.json("trace", self.trace, "--at", f"#{event}", "--by", key)["groups"]
                self.assertEqual([sum(g[k] for g in groups) for k in ("blocks", "requested_bytes", "reserved_bytes")],
                                 [len(want), sum(h.requested for h in want), sum(h.reserved for h in want)])

    def check_changes(self, doc, a, b, of):
        a, b = grouped(a, of), grouped(b, of)
        got = {g["key"]: (g["a_blocks"], g["b_blocks"], g["a_bytes"], g["b_bytes"], g["change_bytes"]) for g in doc["groups"]}
        want = {}
        for key in a.keys() | b.keys():
            (n, x, _), (m, y, _) = a.get(key, (0, 0, 0)), b.get(key, (0, 0, 0))
            want[key] = (n, m, x, y, y - x)
        missing = {k: v for k, v in want.items() if k not in got}
        self.assertEqual([v for v in missing.values() if v[4] != 0 or v[0] != v[1]], [])  # what did not change may be left out
        self.assertEqual(got, {k: v for k, v in want.items() if k in got})
        self.assertEqual(doc["change_bytes"], sum(v[4] for v in want.values()))

    def test_two_moments(self):
        events = self.moments()
        for a, b, key in ((events[0], self.ledger.peak(0)[1], "name"), (events[len(events) // 3], events[-2:][0], "scope")):
            doc = self.json("trace", self.trace, "--at", f"#{a}", "--and", f"#{b}", "--by", key, "--rows", 0)
            self.check_changes(doc, self.ledger.holders(a), self.ledger.holders(b), BY[key])

    # ---- tidemark report ----

    def report(self, ending, *args):
        path = self.dir / f"r.{ending}"
        self.ok("report", self.trace, *args, "-o", path)
        return path.read_text()

    def check_kinds(self, rows, run_id):
        sums = ("requested_bytes", "measured_bytes", "reserved_peak_bytes", "live_at_end_bytes")
        got = {(k["kind"], k["device"]): tuple(k[name] for name in sums) for k in rows}
        self.assertEqual(got, {key: k[2:] for key, k in self.ledger.kinds(run_id).items()})

    def check_pools(self, rows, event):
        """A plan's own pools lie in those of the allocators."""
        for p in rows:
            if not is_told(p):
                self.assertIsNone(p["reserved_bytes"])
        got = {(p["pool"], p["device"], p["kind"]): [p["reserved_bytes"] if is_told(p) else p["active_bytes"], p["active_bytes"],
                                                     p["requested_bytes"], p["blocks"]] for p in rows if not p["is_planned"]}
        self.assertEqual({key: p for key, p in got.items() if any(p[:3])},
                         {key: p for key, p in self.ledger.pools(event).items() if any(p[:3])})
        for p in rows:
            self.assertEqual(p["cached_bytes"], p["reserved_bytes"] - p["active_bytes"] if is_told(p) else None)

    def check_plan_pools(self, rows, event):
        """In each buffer of the plan: what its tensors use, and what they leave on average."""
        planned = [p for p in rows if p["wasted_bytes"] is not None]
        self.assertEqual(sum(p["active_bytes"] for p in planned), self.ledger.used(event) if planned else 0)
        for p in planned:
            used = self.ledger.plan_used(self.run_id, p["kind"])
            self.assertEqual(p["wasted_bytes"], sum(p["reserved_bytes"] - u for u in used) // len(used))

    def test_report(self):
        for args, run_id in (([], self.run_id), (["--whole"], 0)):
            with self.subTest(args=args):
                side = json.loads(self.report("json", *args))["sides"][0]
                peak, event = self.ledger.peak(run_id)
                t = (self.ledger.events[event - 1].t if event > 0 else side["begin"]) - side["origin"]
                self.assertEqual([side["peak"][k] for k in ("bytes", "event", "t", "explained_t")], [peak, event, t, t])
                if event == 0:  # nothing is ever live: shown is the begin by its time, and what happens then
                    event = max(e.id for e in self.ledger.events if e.t <= side["begin"])
                parts = self.ledger.parts(event)
                got = {p["part"]: p["bytes"] for p in side.get("peak_parts", [])}  # of nothing there are none
                self.assertEqual(got or dict.fromkeys(parts, 0), parts)
                self.assertEqual(side["peak"]["held_bytes"], sum(parts.values()))
                self.check_kinds(side["kinds"], run_id)
                pools = [{**p, "pool": p["name"], "blocks": p["n_blocks"], "is_planned": p["wasted_bytes"] is not None}
                         for p in side["pools"]]
                self.check_pools(pools, event)
                self.check_plan_pools(pools, event)
                top, tops = self.ledger.peak_reserved(run_id)
                got = {(p["pool"], p["device"], p["kind"]): p["peak_reserved_bytes"] for p in pools if not p["is_planned"]}
                silent = {(p["pool"], p["device"], p["kind"]) for p in pools if not is_told(p)}
                self.assertEqual({key for key, top in got.items() if top is None}, silent)
                self.assertEqual({key: top for key, top in got.items() if key not in silent and top > 0},
                                 {key: top for key, top in tops.items() if key not in silent and top > 0})
                if silent:
                    self.assertIsNone(side["reserved"])
                if side["reserved"] is not None:
                    self.assertEqual(side["reserved"]["bytes"], top)
                live = [h for h in self.ledger.holders(event) if h.name != UNUSED]
                self.assertEqual(sorted((i["name"], i["bytes"]) for i in side["peak_items"] if i["bytes"] > 0),
                                 sorted((h.name, h.requested) for h in live if h.requested > 0))
                self.check_owners([(o["key"], o["n"], o["bytes"]) for o in side["peak_by_operator"]], live)
                self.assertEqual(sum(row["bytes"] for row in side["leaks"]), self.ledger.leaked(run_id))
                first, last, begin, end = self.ledger.span(run_id)
                # The whole ends behind its last event.
                self.assertEqual((side["begin"], side["end"]), (begin, end + (run_id == 0)))
                curve = self.ledger.curve(run_id)
                self.assertEqual((min(side["curve"]["min"]), max(side["curve"]["max"])),
                                 (min(c[2] for c in curve[curve[1][1] == begin:]), peak))
                if self.steps_take_time:
                    self.assertEqual([(s["makes_bytes"], s["frees_bytes"]) for s in side.get("operators", [])],
                                     [sums for _, sums in sorted(self.ledger.step_totals(run_id).items())])

    def check_owners(self, got, live):
        """By operator; those that none made are weights, inputs, outputs, or of no operator: their sum."""
        scopes = {key: tuple(v[:2]) for key, v in grouped(live, lambda h: h.scope).items()}
        outside = scopes.pop(None, (0, 0))
        self.assertEqual({key: (n, size) for key, n, size in got if not key.startswith("(")}, scopes)
        named = [(n, size) for key, n, size in got if key.startswith("(")]
        self.assertEqual(tuple(map(sum, zip((0, 0), *named))), outside)

    def test_report_as_csv_text_and_page(self):
        """The other formats have the bytes of the JSON document: each table its sums, the page its data."""
        side = json.loads(self.report("json"))["sides"][0]
        page = self.report("html")
        for table in ("kinds", "peak_parts", "operators", "pools", "items"):
            if not side.get(table):
                continue  # a table without rows is left out
            rows = list(csv.DictReader(io.StringIO(self.report("csv", "--table", table))))
            self.assertEqual(len(rows), len(side[table]))
            for column in [c for c in rows[0] if c.endswith("bytes") or c in ("bytes", "n")]:
                want = [row[column] for row in side[table]]
                self.assertEqual([int(r[column]) if r[column] else None for r in rows], want, (table, column))
                if table in ("kinds", "peak_parts"):
                    for size in (size for size in want if size and size >= 1024):  # of less the figure itself is exact
                        self.assertIn(f'title="{size} B"', page)
        text = self.report("txt", "--rows", 1000)
        parts = self.ledger.parts(self.ledger.peak(self.run_id)[1])
        for part, size in parts.items() if any(parts.values()) else ():
            self.assertEqual(lines_of(text, re.escape(part))[0], shown(size))
        self.check_page(json.loads(re.search(r'id="tidemark-data">(.*?)</script>', page, re.S).group(1))["sides"][0])

    def check_page(self, side):
        """The items of the page, added up at moments; between two events of one time no page can tell."""
        for columns in filter(None, (side["items"], side["tensors"])):
            for name, column in columns.items():
                if isinstance(column, dict) and "period" in column:  # what stands so many rows before, once more
                    rows = column["first"]
                    while len(rows) < columns["n"]:
                        rows.append(rows[-column["period"]])
                    columns[name] = rows
                elif isinstance(column, dict):  # what each number adds to the one before
                    columns[name] = list(itertools.accumulate(column["steps"]))
                elif isinstance(column, str):  # another column once more
                    columns[name] = columns[column]
                elif name != "n" and len(column) < columns["n"]:
                    columns[name] = column * columns["n"]
        it = side["items"]
        blocks = [(it["begin"][i], None if it["open"][i] else it["end"][i], it["size_bytes"][i]) for i in range(it["n"])]
        blocks += [(b["begin"], None if b["open"] else b["end"], b["size_bytes"]) for b in side["buffers"]]
        curve = self.ledger.curve(self.run_id)
        last_of = {c[1]: c for c in curve}  # of events of one time the last
        for c in list(last_of.values())[1:-1:max(1, len(last_of) // 50)]:
            t = c[1] - side["origin"]
            self.assertEqual(sum(size for begin, end, size in blocks if begin <= t and (end is None or t < end)), c[2], t)

    def test_the_page_adds_up(self):
        """What its script makes of the data: tensor bytes in the buffers, live bytes, at events of a time of their own."""
        if not shutil.which("node"):
            self.skipTest("node is not here")
        curve = self.ledger.curve(self.run_id)
        alone = [e for a, e, b in zip(curve, curve[1:], curve[2:]) if a[1] < e[1] < b[1]]
        chosen = [e for e in alone[::max(1, len(alone) // 200)]]
        got = script(self.report("html"), [e[1] for e in chosen])
        self.assertEqual([(row["live"], row["used"]) for row in got], [(e[2], self.ledger.used(e[0])) for e in chosen])
        for row, e in zip(got, chosen):
            pools = self.ledger.pools(e[0])
            for p in row["pools"]:
                if p["used"] is None:  # several allocators of one kind that record no segments
                    continue
                reserved, active, *_ = pools.get((p["name"], p["device"], p["kind"]), (0, 0))
                self.assertEqual((p["used"], p["had"]), (active, None if p["had"] is None else reserved), (e[0], p))
                self.assertEqual(p["had"] is not None, p["tells_segments"] or p["name"] == "cpu", p)

    # ---- tidemark diff, export ----

    def test_diff_of_two_moments(self):
        a, b = self.in_the_run()[0], self.ledger.peak(self.run_id)[1]
        doc = self.json("diff", self.trace, "--at", f"#{a}", "--and", f"#{b}", "--rows", 0)
        self.check_diff(doc, self.ledger, a, self.ledger, b)

    def check_diff(self, doc, a_ledger, a, b_ledger, b):
        """Each list sums to the change of what is held, and the parts are those of the ledger."""
        a_parts, b_parts = a_ledger.parts(a), b_ledger.parts(b)
        held = next(f for f in doc["figures"] if f["figure"] == "held_bytes")
        self.assertEqual((doc["a"]["event"] or 0, doc["b"]["event"] or 0), (a, b))
        self.assertEqual((held["a_bytes"], held["b_bytes"]), (sum(a_parts.values()), sum(b_parts.values())))
        for groups in (doc["by_operator"], doc["by_kind"]):
            self.assertEqual(sum(g["change_bytes"] for g in groups), held["change_bytes"])
        parts = {g["key"]: (g["a_bytes"], g["b_bytes"]) for g in doc["by_operator"] if g["part"]}
        for part in a_parts.keys() - {"live"}:
            self.assertEqual(parts.get(part, (0, 0)), (a_parts[part], b_parts[part]), part)
        by_kind = [grouped([h for h in led.holders(e) if h.name != UNUSED], BY["kind"]) for led, e in ((a_ledger, a), (b_ledger, b))]
        want = {k: tuple(side.get(k, (0, 0, 0))[1] for side in by_kind) for k in by_kind[0].keys() | by_kind[1].keys()}
        self.assertEqual({g["key"]: (g["a_bytes"], g["b_bytes"]) for g in doc["by_kind"] if not g["part"]},
                         {k: v for k, v in want.items() if any(v)})
        self.assertEqual(sum(r["b_held_bytes"] - r["a_held_bytes"] for r in doc["rows"]), b_parts["live"] - a_parts["live"])

    def test_export(self):
        if self.ledger.one("SELECT count(*) FROM plan WHERE run_id = ?", self.run_id) == (0,):
            if self.ledger.modes:
                self.refused(3, "export", self.trace, "--to", "csv", says=["plan"])
            else:
                self.ok("export", self.trace, "--to", "csv")
            return
        rows = list(csv.DictReader(io.StringIO(self.ok("export", self.trace, "--to", "csv", "--with-offsets").stdout)))
        got = collections.Counter()
        for r in rows:
            got[r["kind"], r["role"], r["persistent"]] += int(r["size"])
        want = {(kind, role, str(persistent)): size for kind, role, persistent, size in self.ledger.db.execute("""
            SELECT k.name, role, persistent, sum(size_bytes) FROM plan_tensor t JOIN kind k ON k.id = t.kind WHERE run_id = ?
            GROUP BY 1, 2, 3""", (self.run_id,))}
        self.assertEqual(dict(got), want)
        self.assertEqual(sorted((r["id"], int(r["offset"] or -1)) for r in rows), sorted(self.ledger.db.execute(
            "SELECT name, ifnull(offset_bytes, -1) FROM plan_tensor WHERE run_id = ?", (self.run_id,))))

    # ---- tidemark tui ----

    def pane(self, name, *commands):
        return self.json("tui", self.trace, "--no-state", *(w for c in commands for w in ("--command", c)), "--pane", name)

    def in_the_run(self):
        first, last, _, _ = self.ledger.span(self.run_id)
        return [e for e in self.moments() if first <= e < last][1::2]

    def test_panes_at_moments(self):
        for event in self.in_the_run():
            goto, live = f"goto #{event}", [h for h in self.ledger.holders(event)]
            with self.subTest(event=event):
                table = self.pane("table", goto)
                total = sum(h.requested for h in live)
                self.assertEqual((table["cursor_event"], table["cursor_bytes"], table["live_bytes"]), (event, total, total))
                self.assertEqual(sorted((r["name"], r["counts_bytes"]) for r in table["rows"]),
                                 sorted((h.name, h.requested) for h in live))
                pools = self.pane("pools", goto)
                self.check_pools(pools["rows"], event)
                self.check_plan_pools(pools["rows"], event)
                own = [p for p in pools["rows"] if not p["is_planned"]]
                for key in ("reserved_bytes", "active_bytes", "requested_bytes", "cached_bytes"):
                    self.assertEqual(pools[key], sum_if_known(p[key] for p in own))
                explain = self.pane("explain", goto)
                parts = self.ledger.parts(event)
                self.assertEqual({p["part"]: p["bytes"] for p in explain["parts"]}, parts)
                self.assertEqual((explain["held_bytes"], explain["live_bytes"]), (sum(parts.values()), parts["live"]))
                named = [h for h in live if h.name != UNUSED]
                self.check_owners([(o["name"], o["items"], o["bytes"]) for o in explain["by_owner"]], named)
                self.assertEqual({k["name"]: [k["items"], k["bytes"]] for k in explain["by_kind"]},
                                 {key: v[:2] for key, v in grouped(named, lambda h: h.kind).items()})
                self.assertEqual(sorted((r["name"], r["counts_bytes"]) for r in explain["live"]),
                                 sorted((h.name, h.requested) for h in named))

    def test_operators(self):
        if not self.steps_take_time:
            self.skipTest("by time nothing is known of what a step makes that takes none: docs/STATUS.md")
        got = {r["step"]: (r["makes_bytes"], r["frees_bytes"]) for r in self.pane("operators")["rows"]}
        names = dict(enumerate(sorted(self.ledger.step_totals(self.run_id))))
        self.assertEqual({names[row]: sums for row, sums in got.items()}, self.ledger.step_totals(self.run_id))

    def test_live_at_each_step_of_a_plan(self):
        """What is live while a step runs for the first time: of the plan's buffer what tensors use at that step."""
        led, run_id = self.ledger, self.run_id
        if led.modes.get(run_id, "naive") == "naive":
            self.skipTest("its tensors are blocks")
        first = next(x for x in led.executions if x.run == run_id)
        want = [max(sum(h.requested for h in led.holders(e) if h.name != UNUSED) for e in range(s.begin, s.end)) for s in first.steps]
        self.assertGreater(len(set(want)), 3, "they differ from step to step")
        self.assertEqual([r["live_bytes"] for r in self.pane("operators")["rows"]], want)
        self.assertEqual([r["live_bytes"] for r in json.loads(self.report("json"))["sides"][0]["operators"]], want)

    def test_curve_and_bands(self):
        curve = self.ledger.curve(self.run_id)
        for by in ("kind", "tensor") if self.steps_take_time else ("operator",):
            with self.subTest(by=by):
                doc = self.pane("curve", f"bands {by}")
                begins = [r["begin_ns"] for r in doc["rows"]] + [doc["window"][1] + 1]
                bands = collections.Counter()
                for b in doc["bands"]:
                    bands[b["begin_ns"]] += b["size_bytes"]
                k = 0
                for row, begin, end in zip(doc["rows"], begins, begins[1:]):
                    while k + 1 < len(curve) and curve[k + 1][1] < begin:
                        k += 1
                    here = [curve[k][2]] + [c[2] for c in curve[k + 1:] if begin <= c[1] < max(end, begin + 1)]
                    if k + 1 < len(curve) and curve[k + 1][1] == begin:
                        here = here[1:]  # the column begins with it
                    self.assertEqual((row["min_bytes"], row["max_bytes"]), (min(here), max(here)), row)
                    # Where the window is narrower than its columns, several are of one moment.
                    self.assertEqual(bands[begin], begins.count(begin) * row["max_bytes"], row)

    def test_frames(self):
        """What a screen says in words: the peak, the parts of view 3, what pools hold, who lives in the view of memory."""
        peak, event = self.ledger.peak(self.run_id)
        parts = self.ledger.parts(event)
        look = ("tui", self.trace, "--once", "--no-state", "--size", "160x60", "--view")
        frames = {v: self.ok(*look, v).stdout for v in (1, 2, 3, 4)}
        for v, frame in frames.items():
            self.assertIn(f"peak {shown(peak)}", frame.splitlines()[0], f"view {v}")
        for part, size in parts.items():
            if size > 0:
                self.assertEqual(lines_of(frames[3], ". " + part)[0], shown(size), part)
        if any(parts.values()):
            self.assertEqual(lines_of(frames[3], "= held")[0], shown(sum(parts.values())))
        reserved = sum(p[0] for p in self.ledger.pools(event).values())
        pools = [p for p in self.json("tui", self.trace, "--pane", "pools")["rows"] if not p["is_planned"]]
        self.assertRegex(frames[4], rf"\b{shown(reserved) if all(map(is_told, pools)) else 'unknown'} reserved[, ]")
        leaked = self.ledger.leaked(self.run_id)
        self.assertRegex(frames[4], rf" reserved, {shown(leaked)} never freed " if leaked > 0 else
                         " reserved, (all freed|0 B never freed) ")


def script(page, times):
    """Asks the page's own functions what is live, and what tensors use of buffers, at these times."""
    source = "".join((SOURCE / "reports" / "page" / name).read_text() for name in ("10-data.js", "15-held.js", "62-pools.js"))
    data = re.search(r'id="tidemark-data">(.*?)</script>', page, re.S).group(1)
    call = """const text = require('fs').readFileSync(0, 'utf8').split('\\u0001');
        const document = {getElementById: () => ({textContent: text[0]})};
        const run = new Function('document', text[1] + `; return (times) => { const s = sides[0];
            const all = s.rooms.length ? s.pools.map((p, k) => [p, poolCurves(s, k)]).filter(([p]) => !p.planned) : [];
            const pools = (t) => all.map(([p, c]) => ({name: p.name, device: p.device, kind: p.kind, tells_segments: p.tells_segments,
                used: c && valueAt(c.used, t), had: c && c.had && valueAt(c.had, t)}));
            return times.map((t) => ({live: valueAt(liveOf(s, null), t - s.begin), used: valueAt(usedOf(s), t - s.begin),
                pools: pools(t - s.begin)})); }`);
        console.log(JSON.stringify(run(document)(JSON.parse(text[2]))));"""
    p = subprocess.run(["node", "-e", call], input="\1".join((data, source, json.dumps(times))), capture_output=True, text=True,
                       check=True)
    return json.loads(p.stdout)


def shown(size):
    """As a person reads bytes."""
    for power, unit in ((4, "TiB"), (3, "GiB"), (2, "MiB"), (1, "KiB")):
        if size >= 1 << 10 * power:
            return f"{size / (1 << 10 * power):.2f} {unit}"
    return f"{size} B"


def lines_of(text, head):
    """The number and unit behind a line's head."""
    return re.findall(rf"(?m)^ *{head}  +(\S+ \S+)", text) or [None]


class Naive(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(GRAPH, "--naive", "--allocator", "stream_caching", "-n", 20, "-o", trace)


class Planned(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(GRAPH, "-n", 20, "-o", trace)


    def test_beside_a_naive_run(self):
        """Two traces: trace --compare and diff, each at its peak."""
        other = self.dir / "naive.db"
        Naive.record(other)
        ledger = Ledger(other)
        self.addCleanup(ledger.db.close)
        a, b = ledger.peak(1)[1], self.ledger.peak(1)[1]
        for key in ("name", "kind"):
            doc = self.json("trace", other, "--compare", self.trace, "--by", key, "--rows", 0)
            self.check_changes(doc, ledger.holders(a), self.ledger.holders(b), BY[key])
        self.check_diff(self.json("diff", other, self.trace, "--rows", 0), ledger, a, self.ledger, b)


class Parts(Traces):
    """Tensors that lie in others at places that are no multiple of an alignment: they take whole multiples all the same."""
    report, test_who_was_live, test_the_page_adds_up = Sums.report, Sums.test_who_was_live, Sums.test_the_page_adds_up

    @classmethod
    def record(cls, trace):
        doc = {"schema": "tidemark.graph", "version": 1, "name": "parts", "opset": 13,
               "inputs": [{"name": f"x{i}", "dtype": "float32", "shape": [1, n, 16]} for i, n in enumerate((35, 41, 23))],
               "nodes": [{"op": "Sigmoid", "name": f"s{i}", "inputs": [f"x{i}"], "outputs": [f"s{i}.out"]} for i in range(3)] + [
                   {"op": "Concat", "name": "join", "inputs": ["s0.out", "s1.out", "s2.out"], "outputs": ["together"],
                    "attrs": {"axis": 1}},
                   {"op": "ReduceSum", "name": "sum", "inputs": ["together"], "outputs": ["y"]}],
               "outputs": ["y"]}
        graph = trace.parent / "parts.json"
        graph.write_text(json.dumps(doc))
        cls.made(graph, "-n", 3, "-o", trace)

    def test_two_ways_to_say_what_lies_there(self):
        """`plan_part` by the places of the tensors."""
        odd = "SELECT count(*) FROM plan_tensor WHERE alias = 'part' AND alias_offset_bytes % 256 > 0"
        self.assertEqual(self.ledger.one(odd), (1,))
        for step in range(self.ledger.one("SELECT n_steps FROM plan")[0]):
            self.assertEqual(sum(self.ledger.storages(1, step).values()), self.ledger.plan_used(1, "Workspace")[step])


class Decode(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(SAMPLES / "decoder_step.json", "--decode", 20, "-o", trace)


class Hardly:
    """Traces that a program makes of a few events, without runs: sums_trace.c."""
    run_id = 0
    steps_take_time = False

    @classmethod
    def record(cls, trace):
        subprocess.run([SUMS_TRACE, cls.__name__.lower(), trace], check=True, env=environment())

    def in_the_run(self):
        return self.moments()[:2]


class Nothing(Case):
    def test_no_event_at_all(self):
        """Nothing is nothing in all of them."""
        trace, page = self.dir / "t.db", self.dir / "r.json"
        self.ok("record", "-o", trace, "--", "true")
        ledger = Ledger(trace)
        self.addCleanup(ledger.db.close)
        self.assertEqual((ledger.events, ledger.peak(0), ledger.kinds(0)), ([], (0, 0), {}))
        facts = self.json("trace", trace)
        self.assertEqual((facts["peak"]["bytes"], facts["blocks"], facts["kinds"]), (0, 0, []))
        for at in ("begin", "peak", "end"):
            moment = self.json("trace", trace, "--at", at)["moment"]
            self.assertEqual((moment["requested_bytes"], moment["reserved_bytes"], moment["live_blocks"]), (0, 0, 0))
        changes = self.json("trace", trace, "--compare", trace)
        self.assertEqual((changes["change_bytes"], changes["groups"]), (0, []))
        for pane in ("curve", "table", "pools", "explain", "operators"):
            doc = self.json("tui", trace, "--no-state", "--pane", pane)
            self.assertEqual(doc["cursor_bytes"], 0)
            sizes = [v for row in [doc, *doc.get("rows", []), *doc.get("parts", [])] for k, v in row.items() if k.endswith("bytes")]
            self.assertEqual(set(filter(None, sizes)), set(), pane)
        self.ok("report", trace, "-o", page)
        side = json.loads(page.read_text())["sides"][0]
        self.assertEqual((side["peak"]["bytes"], side["peak"]["held_bytes"], side["n_items"]), (0, 0, 0))


class One(Hardly, Traces, Sums):
    """One allocation, never freed."""
    test_export = test_the_page_adds_up = None  # as of Zero


class Zero(Hardly, Traces, Sums):
    """Blocks of no bytes, one of them held by an allocator that reserves some for it."""


class Kind(Hardly, Traces, Sums):
    """Everything in one kind; blocks of one number of bytes and one name."""
    test_export = test_frames = test_the_page_adds_up = None  # as of Zero


class Cut(Traces):
    """A run whose trace could not be written to its end: what is there adds up."""
    report, check_kinds, check_pools = Sums.report, Sums.check_kinds, Sums.check_pools
    check_plan_pools, check_owners, test_facts = Sums.check_plan_pools, Sums.check_owners, Sums.test_facts
    test_report, steps_take_time = Sums.test_report, False

    @classmethod
    def record(cls, trace):
        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        p = run("run", SAMPLES / "lenet5.json", "--naive", "-n", 1500, "--ring-events", 512, "--form", "rows", "-o", trace,
                preexec_fn=limit)
        if p.returncode != 8:
            raise AssertionError(p.stderr)

    def test_it_was_cut_short(self):
        self.assertEqual(self.json("trace", self.trace)["state"], "cut short")

    def test_who_was_live(self):
        """After its last event."""
        last = self.ledger.events[-1].id
        doc = self.json("trace", self.trace, "--at", "end", "--whole")
        self.assertEqual((doc["moment"]["event"], doc["moment"]["requested_bytes"]),
                         (last, sum(h.requested for h in self.ledger.holders(last))))


class Serve(Traces, Sums):
    steps_take_time = False

    @classmethod
    def record(cls, trace):
        subprocess.run([SERVE, trace], check=True, env=environment())


if __name__ == "__main__":
    tidemark.main()
