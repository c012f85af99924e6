# SPDX-License-Identifier: MIT
"""The sums of every view of a trace are those of plain SQL over its tables, to the byte: a naive run over a caching allocator, a
planned run, a decoder step by step, and a program that records itself (examples/serve.c)."""
import collections
import csv
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest

import tidemark
from ledger import UNUSED, Ledger
from tidemark import SAMPLES, Case, environment, run

SERVE = pathlib.Path(os.environ.get("TIDE_EXAMPLES_DIR", "build/test/examples")) / "serve"
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

    @classmethod
    def setUpClass(cls):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, folder, True)
        cls.trace = folder / "t.db"
        cls.record(cls.trace)
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
        return sorted(found - {0})


class Sums:
    """What holds of each of them."""

    # ---- tidemark trace ----

    def test_facts(self):
        for args, run_id in ((["--whole"], 0), (["--run", 1], 1), ([], self.run_id)):
            if run_id not in (0, *self.ledger.modes):
                continue
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
                                 (len(self.ledger.events), *self.ledger.one("SELECT count(*), count(*) - count(free_event) FROM block")))

    def test_who_was_live(self):
        for event in self.moments():
            with self.subTest(event=event):
                doc = self.json("trace", self.trace, "--at", f"#{event}")
                want = self.ledger.holders(event)
                self.assertEqual((doc["moment"]["requested_bytes"], doc["moment"]["reserved_bytes"]),
                                 (sum(h.requested for h in want), sum(h.reserved for h in want)))
                row = ("block_id", "name", "scope", "scope_index", "kind", "device", "allocator", "thread", "run", "requested_bytes",
                       "reserved_bytes")
                got = sorted(json.dumps([b[k] for k in row]) for b in doc["blocks"])
                self.assertEqual(got, sorted(json.dumps([h.block, h.name, h.scope, h.step, h.kind, h.device, h.allocator, h.thread,
                                                         h.run, h.requested, h.reserved]) for h in want))

    def test_who_was_live_by(self):
        events = self.moments()
        for event in (self.ledger.peak(self.run_id)[1], events[len(events) // 2], events[-2]):
            want = self.ledger.holders(event)
            for key, of in BY.items():
                with self.subTest(event=event, by=key):
                    doc = self.json("trace", self.trace, "--at", f"#{event}", "--by", key)
                    got = {g["key"]: [g["blocks"], g["requested_bytes"], g["reserved_bytes"]] for g in doc["groups"]}
                    self.assertEqual(got, grouped(want, of))
            for key in ("size", "age"):
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
        for a, b in ((events[0], self.ledger.peak(0)[1]), (events[len(events) // 3], events[-2])):
            for key in ("name", "kind", "scope"):
                doc = self.json("trace", self.trace, "--at", f"#{a}", "--and", f"#{b}", "--by", key, "--rows", 0)
                self.check_changes(doc, self.ledger.holders(a), self.ledger.holders(b), BY[key])


class Naive(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(GRAPH, "--naive", "--allocator", "stream_caching", "-n", 20, "-o", trace)


class Planned(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(GRAPH, "-n", 20, "-o", trace)


class Decode(Traces, Sums):
    @classmethod
    def record(cls, trace):
        cls.made(SAMPLES / "decoder_step.json", "--decode", 20, "-o", trace)


class Serve(Traces, Sums):
    @classmethod
    def record(cls, trace):
        subprocess.run([SERVE, trace], check=True, env=environment())


if __name__ == "__main__":
    tidemark.main()
