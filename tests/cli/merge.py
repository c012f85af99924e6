# SPDX-License-Identifier: MIT
"""tidemark merge: traces of several ranks or hosts as one, held event by event against a merge that Python makes of the same
files."""
import heapq
import json
import os
import pickle
import random
import resource
import shutil
import sqlite3
import subprocess
import unittest

import tidemark
from imports import MIB, SNAPSHOTS, Memory, snapshot
from memray_file import MAIN, Writer
from tidemark import SAMPLES, Case, ask, environment, run

EVENTS = """SELECT e.t_ns, o.name, e.block_id, k.name, d.name, e.stream, e.requested_bytes, e.reserved_bytes, e.address, t.process_id,
    t.number, a.text, n.text, e.scope_id, e.run_id, e.id
  FROM event e JOIN op o ON o.id = e.op LEFT JOIN kind k ON k.id = e.kind LEFT JOIN device d ON d.id = e.device LEFT JOIN thread t ON t.id = e.thread
  LEFT JOIN name a ON a.id = e.allocator_id LEFT JOIN name n ON n.id = e.tag_id ORDER BY e.id"""
BLOCK_BITS = 48


def scopes(path):
    """Each scope as the chain of what it lies in."""
    out = {None: ()}
    for number, name, kind, step, parent in ask(path, "SELECT s.id, n.text, s.kind, s.step, s.parent_id FROM scope s JOIN name n ON n.id = s.name_id ORDER BY s.id"):
        out[number] = (*out[parent], (name, kind, step))
    return out


def events(path, shift=0, processes=lambda p: p, devices=None, runs=lambda r: r):
    """All that a trace says of its events, names as texts; numbers of processes, devices and runs by those of another trace."""
    chain = scopes(path)
    for t, op, block, kind, device, *rest, process, thread, allocator, tag, scope, run_id, number in ask(path, EVENTS):
        if block is None and op in ("segment_alloc", "segment_free", "pool_discard"): # of the addresses of a process
            block = (processes(process) - 1 << BLOCK_BITS) or None
        elif block is not None:
            block = (processes((block >> BLOCK_BITS) + 1) - 1 << BLOCK_BITS) | block & (1 << BLOCK_BITS) - 1
        yield (t + shift, op, block, kind, (devices or {}).get(device, device), *rest, processes(process), thread, allocator, tag, chain[scope],
               runs(run_id), number)


class Merging(Case):
    def trace(self, name, *options, graph="decoder_kv.json"):
        self.ok("run", SAMPLES / graph, "-o", self.dir / name, *options)
        return self.dir / name

    def change(self, path, statement, *values):
        db = sqlite3.connect(path)
        with db:
            db.execute(statement, values)
        db.close()

    def earlier(self, path, ns, processes=True):
        """All times of a trace, as if its clock had begun later."""
        for table, columns in {"event": ["t_ns"], "block": ["alloc_ns", "free_requested_ns", "free_ns"], "run": ["begin_ns", "end_ns"], "step": ["begin_ns", "end_ns"],
                               "leaf": ["begin_ns", "end_ns", "max_ns"], "snapshot": ["t_ns"], **({"process": ["begin_ns", "end_ns"]} if processes else {})}.items():
            for column in columns:
                self.change(path, f"UPDATE {table} SET {column} = max({column} - ?, 0)", ns)

    def device(self, name, memory, at=0, marks=(), **settings):
        """A snapshot of PyTorch whose events come `at` us later, with marks at so many us behind its begin."""
        begin = memory.events[0]["time_us"] + at if memory.events else at
        for e in memory.events:
            e["time_us"] += at
        doc = snapshot(memory, annotations=[{"stage": "START", "name": n, "time_us": begin + us} for n, us in marks] +
                       [{"stage": "END", "name": n, "time_us": begin + us + 1} for n, us in marks], **settings)
        path = self.dir / name
        path.write_bytes(pickle.dumps(doc, protocol=4))
        self.ok("import", path, "-o", path.with_suffix(".db"))
        return path.with_suffix(".db")

    def expect(self, out, said, files, devices=({}, {}, {}, {}), first_of_events=None):
        """The new trace holds the events of the files by time, and nothing else."""
        lanes = said["lanes"]
        moved = [lane["moved_ns"] for lane in lanes]
        begin = ask(out, "SELECT t_ns FROM event WHERE id = 1")[0][0]
        lowest = min(t for path, shift in zip(files, moved) for t in ask(path, "SELECT min(t_ns) FROM event")[0] if t is not None for t in [t + shift])
        firsts = [lane["first_process"] for lane in lanes]
        numbers = sorted((t + moved[i], i, r) for i, path in enumerate(files) for r, t in ask(path, "SELECT id, begin_ns FROM run"))
        new_runs = {(i, r): n for n, (_, i, r) in enumerate(numbers, 1)}
        new_runs.update({(i, None): None for i in range(len(files))})
        streams = [events(path, moved[i] + begin - lowest, lambda p, i=i: None if p is None else p + firsts[i] - 1, devices[i],
                          lambda r, i=i: new_runs[i, r]) for i, path in enumerate(files)]
        want = heapq.merge(*[((e[0], i, e[1:]) for e in s) for i, s in enumerate(streams)], key=lambda e: e[:2])
        n = 0
        for n, (got, (t, lane, rest)) in enumerate(zip(events(out), want, strict=True), 1):
            self.assertEqual(got[:-1], (t, *rest[:-1]), f"event {n}, of lane {lane}")
            self.assertEqual(got[-1], n)
        self.assertEqual(n, said["events"])
        self.assertEqual(ask(out, "PRAGMA integrity_check"), [("ok",)])
        self.ok("trace", out, "--check")
        self.check_runs(out, files, new_runs, moved, begin - lowest)
        return n

    def check_runs(self, out, files, new_runs, moved, more):
        """Runs with their plans, each between its own first and last event."""
        for i, path in enumerate(files):
            for number, model, mode, begin, end, first, last, plan in ask(path, "SELECT id, model, mode, begin_ns, end_ns, first_event, last_event, plan_bytes FROM run"):
                shift = moved[i] + more
                row = ask(out, "SELECT model, mode, begin_ns, end_ns, first_event, last_event, plan_bytes FROM run WHERE id = ?", new_runs[i, number])[0]
                self.assertEqual(row[:4] + row[6:], (model, mode, begin + shift, end + shift, plan))
                own = ask(out, "SELECT count(*), min(id), max(id) FROM event WHERE run_id = ?", new_runs[i, number])[0]
                self.assertEqual(own[0], ask(path, "SELECT count(*) FROM event WHERE run_id = ?", number)[0][0])
                if own[0]:
                    self.assertLessEqual(row[4], own[1])
                    self.assertGreaterEqual(row[5], own[2])
                for table in ("plan_tensor", "plan_step", "plan_buffer"):
                    columns = "name, size_bytes, begin_step, end_step, role" if table == "plan_tensor" else "*"
                    rows = [ask(p, f"SELECT {columns} FROM {table} WHERE run_id = ?", r) for p, r in ((path, number), (out, new_runs[i, number]))]
                    if columns == "*":
                        rows = [[r[1:] for r in side] for side in rows]
                    self.assertEqual(*rows)


class Native(Merging):
    def test_two_of_one_machine(self):
        a, b, out = self.trace("a.db"), self.trace("b.db", "-n", "30"), self.dir / "all.db"
        said = self.json("merge", a, b, "-o", out)
        self.assertEqual((said["clock"], [lane["label"] for lane in said["lanes"]]), ("boot", ["a", "b"]))
        self.assertEqual([lane["moved_ns"] for lane in said["lanes"]], [0, 0])
        self.expect(out, said, [a, b])
        self.assertEqual(ask(out, "SELECT value FROM meta WHERE key IN ('totals', 'n_problems') ORDER BY key"), [("0",), ("equal",)])
        self.assertEqual(ask(out, "SELECT label, boot_id IS NOT NULL, wall_ns IS NOT NULL FROM process"), [("a", 1, 1), ("b", 1, 1)])

    def test_in_the_midst_of_each_other(self):
        files = [self.trace(f"{i}.db", "--naive" if i % 2 else "--no-order", graph=g) for i, g in enumerate(("decoder_kv.json", "unet.json", "decoder_kv.json", "unet.json"))]
        out = self.dir / "all.db"
        said = self.json("merge", *files, "-o", out, "--align", "begin")
        self.assertGreater(self.expect(out, said, files), 1000)
        lanes = [t for t, in ask(out, "SELECT t.process_id FROM event e JOIN thread t ON t.id = e.thread ORDER BY e.id")]
        self.assertGreater(sum(a != b for a, b in zip(lanes, lanes[1:])), 50) # they really alternate

    def test_other_boots_have_other_clocks(self):
        a, b, out = self.trace("a.db"), self.trace("b.db"), self.dir / "all.db"
        self.change(b, "UPDATE process SET boot_id = '00000000-0000-4000-8000-000000000000'")
        self.change(a, "UPDATE process SET wall_ns = wall_ns + 5000000000000")
        for path in (a, b): # as if both had been recorded at one time
            self.change(path, "UPDATE process SET wall_ns = 1700000000000000000 - (SELECT min(t_ns) FROM event)")
        said = self.json("merge", a, b, "-o", out)
        self.assertEqual((said["clock"], [lane["begins_ns"] for lane in said["lanes"]]), ("wall", [0, 0]))
        self.expect(out, said, [a, b])
        self.assertEqual(ask(out, "SELECT DISTINCT t_ns + p.wall_ns FROM process p JOIN event e ON e.id = 1"), [(1700000000000000000,)])
        self.refused(3, "merge", a, b, "-o", out, "--align", "boot", says=["same machine", "--offsets"])
        self.change(b, "UPDATE process SET wall_ns = wall_ns - 86400000000000") # a day earlier: their marks are left
        said = self.json("merge", a, b, "-o", out)
        self.assertEqual(said["clock"], "marks")
        self.change(b, "UPDATE process SET wall_ns = NULL")
        self.assertEqual(self.json("merge", a, b, "-o", out)["clock"], "marks")
        self.refused(3, "merge", a, b, "-o", out, "--align", "wall", says=["'" + str(b), "date"])

    def test_offsets(self):
        a, b, c, out = self.trace("a.db"), self.trace("b.db"), self.trace("c.db"), self.dir / "all.db"
        said = self.json("merge", a, b, c, "-o", out, "--offsets", "0,1.5s,-20 ms", "--labels", "one,two,three")
        self.assertEqual([(lane["label"], lane["begins_ns"]) for lane in said["lanes"]], [("one", 20_000_000), ("two", 1_520_000_000), ("three", 0)])
        self.expect(out, said, [a, b, c])
        for path in (a, b): # a clock that began a moment ago: nothing may lie before 0
            self.earlier(path, ask(path, "SELECT min(t_ns) FROM event")[0][0] - 5)
        said = self.json("merge", a, b, "-o", out, "--offsets=0,-3s")
        self.assertEqual(ask(out, "SELECT t_ns FROM event WHERE id = 1"), [(0,)])
        self.expect(out, said, [a, b])

    def test_merged_ones_are_merged(self):
        a, b, c, out = self.trace("a.db"), self.trace("b.db"), self.trace("c.db"), self.dir / "all.db"
        self.ok("merge", a, b, "-o", self.dir / "ab.db")
        said = self.json("merge", self.dir / "ab.db", c, "-o", out)
        self.assertEqual(said["clock"], "boot")
        self.assertEqual(ask(out, "SELECT label FROM process ORDER BY id"), [("ab/a",), ("ab/b",), ("c",)])
        self.expect(out, said, [self.dir / "ab.db", c])

    def test_rows_and_chunks_alike(self):
        a, b, out = self.trace("a.db"), self.trace("b.db", "--form", "chunks", "-n", "200"), self.dir / "all.db"
        self.assertGreater(ask(b, "SELECT count(*) FROM event_chunk")[0][0], 0)
        self.json("merge", a, b, "-o", out)
        shutil.copy(b, self.dir / "rows.db")
        self.ok("trace", self.dir / "rows.db", "--expand")
        said = self.json("merge", a, self.dir / "rows.db", "-o", self.dir / "again.db", "--labels", "a,b")
        self.expect(self.dir / "again.db", said, [a, self.dir / "rows.db"])
        self.assertEqual(list(events(out)), list(events(self.dir / "again.db")))

    def test_one_that_lost_its_oldest_events(self):
        a, b, out = self.trace("a.db"), self.trace("b.db", "-n", "60000", "--max-trace", "8MiB", "--naive", graph="diamond.json"), self.dir / "all.db"
        first = int(ask(b, "SELECT value FROM meta WHERE key = 'first_kept_event'")[0][0])
        self.assertGreater(first, 1)
        p = self.ok("merge", a, b, "-o", out)
        self.assertIn(f"does not have its first {first - 1} events", p.stderr)
        self.ok("trace", out, "--check")
        self.assertEqual(ask(out, "SELECT requested_bytes FROM event WHERE op = 18"), [(first - 1,)])
        self.assertEqual(ask(out, "SELECT count(*) FROM problem"), [(0,)])
        # every block that was alive at its first event, or came later, with its own times
        rows = "SELECT n.text, b.requested_bytes, b.address, b.alloc_ns, b.free_ns, b.kind FROM block b LEFT JOIN name n ON n.id = b.tag_id WHERE b.id >> 48 = ? ORDER BY 4, 3, 5"
        mine = ask(b, rows, 0)
        self.assertGreater(sum(alloc < ask(b, "SELECT min(t_ns) FROM event")[0][0] for *_, alloc, _, _ in mine), 2)
        self.assertEqual(ask(out, rows, 1), mine)
        self.assertEqual(ask(out, rows, 0), ask(a, rows, 0))

    def test_a_free_that_was_requested_before(self):
        """The request of a block's free is among the events that are gone, its end is not: both keep their times."""
        path, out = self.dir / "asked.db", self.dir / "all.db"
        subprocess.run([os.environ["TIDE_REPLAY_TRACE"], "asked", path], check=True)
        self.assertGreater(int(ask(path, "SELECT value FROM meta WHERE key = 'first_kept_event'")[0][0]), 3)
        rows = "SELECT alloc_ns, free_requested_ns, free_ns, requested_bytes FROM block WHERE requested_bytes = 4000 AND free_requested_ns < free_ns"
        mine = ask(path, rows)
        self.assertEqual(len(mine), 1)
        self.ok("merge", self.trace("a.db"), path, "-o", out, "--align", "begin")
        (alloc, requested, freed, size), = ask(out, rows)
        self.assertEqual((requested - alloc, freed - alloc), (mine[0][1] - mine[0][0], mine[0][2] - mine[0][0]))
        self.assertEqual(ask(out, "SELECT count(*) FROM events WHERE op = 'free_requested' AND requested_bytes = 4000 AND t_ns = ?", requested), [(1,)])
        self.ok("trace", out, "--check")

    def test_what_went_wrong_is_kept(self):
        a, out = self.trace("a.db"), self.dir / "all.db"
        late = self.dir / "late.db"
        self.ok("record", "-o", late, "--", os.environ["TIDE_LATE_EVENTS"], late)
        n = ask(late, "SELECT count(*) FROM late")[0][0]
        self.assertEqual(n, 5)
        said = self.json("merge", a, late, "-o", out, "--align", "begin")
        apart = "SELECT e.t_ns - l.own_ns FROM late l JOIN event e ON e.id = l.event_id ORDER BY 1"
        self.assertEqual(ask(out, apart), ask(late, apart))
        self.assertEqual(said["lanes"][1]["events"], ask(late, "SELECT count(*) FROM event")[0][0])

    def test_times_of_a_program_s_own(self):
        a, b, out = self.trace("a.db"), self.trace("b.db"), self.dir / "all.db"
        self.earlier(b, ask(b, "SELECT min(t_ns) FROM event")[0][0] - 5, processes=False)
        self.assertEqual(self.json("merge", a, b, "-o", out)["clock"], "marks") # not of the machine's clock, whatever its process says
        self.refused(3, "merge", a, b, "-o", out, "--align", "boot", says=["b.db"])
        self.refused(3, "merge", a, b, "-o", out, "--align", "wall", says=["b.db", "date"])


    def test_several_processes_of_one_file(self):
        both, out = self.dir / "both.db", self.dir / "all.db"
        command = f"{tidemark.PROGRAM} run -n 2 {SAMPLES / 'diamond.json'}"
        self.ok("record", "-o", both, "--", "sh", "-c", f"RANK=0 {command} & RANK=1 {command} & wait")
        one = self.trace("one.db")
        said = self.json("merge", both, one, "-o", out)
        ranks = [r for r, in ask(both, "SELECT rank FROM process ORDER BY id")]
        self.assertEqual(sorted(ranks), [0, 1])
        self.assertEqual(ask(out, "SELECT label FROM process ORDER BY id"), [(f"both/rank {r}",) for r in ranks] + [("one",)])
        self.expect(out, said, [both, one])
        self.assertEqual([lane["name"] for lane in self.json("trace", out, "--lanes")["lanes"]], [f"both/rank {r}" for r in ranks] + ["one"])
        self.change(both, "UPDATE process SET rank = NULL")
        self.ok("merge", one, both, "-o", out)
        self.assertEqual(ask(out, "SELECT label FROM process WHERE id > 1"), [(f"both/{pid}",) for pid, in ask(both, "SELECT pid FROM process ORDER BY id")])

    def test_one_that_recorded_nothing_is_in_no_way(self):
        a, b, out = self.trace("a.db"), self.trace("b.db"), self.dir / "all.db"
        empty = self.dir / "empty.pickle"
        empty.write_bytes(pickle.dumps(snapshot(Memory()), protocol=4))
        for files in ([empty, a, b], [a, empty, b]):
            said = self.json("merge", *files, "-o", out)
            self.assertEqual((said["clock"], [lane["moved_ns"] for lane in said["lanes"]]), ("boot", [0, 0, 0]))
            self.ok("trace", out, "--check")
        self.change(b, "UPDATE process SET boot_id = NULL")
        for path in (a, b): # as if both had been recorded at one time
            self.change(path, "UPDATE process SET wall_ns = 1700000000000000000 - (SELECT min(t_ns) FROM event)")
        for files in ([empty, a, b], [a, empty, b]):
            self.assertEqual(self.json("merge", *files, "-o", out)["clock"], "wall")
        said = self.json("merge", empty, a, b, "-o", out, "--offsets", "0,0,1s")
        self.assertEqual([lane["begins_ns"] for lane in said["lanes"]], [None, 0, 1_000_000_000])
        said = self.json("merge", empty, a, b, "-o", out, "--align", "marks")
        self.assertEqual([lane["marks"] for lane in said["lanes"]][2], 1)


class Marks(Merging):
    def memories(self, n, seed=1):
        for i in range(n):
            m, rng = Memory(), random.Random(seed)
            m.segment(m.base)
            for k in range(20):
                m.alloc(m.base + k * MIB, rng.randrange(1, MIB))
            yield m

    def test_the_median_of_their_distances(self):
        first, second = self.memories(2)
        hour, names = 3_600_000_000, [f"ProfilerStep#{k}" for k in range(5)]
        a = self.device("a.pickle", first, marks=[(n, 20 * k) for k, n in enumerate(names)])
        b = self.device("b.pickle", second, at=hour, marks=[(n, 20 * k + late) for k, (n, late) in enumerate(zip(names, (3, 5, 5, 6, 90)))] + [("only here", 7)])
        said = self.json("merge", a, b, "-o", self.dir / "all.db", "--align", "marks")
        lane = said["lanes"][1]
        self.assertEqual((said["clock"], lane["marks"], lane["moved_ns"], lane["marks_apart_ns"]), ("marks", 5, -(hour + 5) * 1000, 85_000))
        text = self.ok("merge", a, b, "-o", self.dir / "all.db", "--align", "marks").stdout
        self.assertIn("85 us", text)
        times = dict(ask(self.dir / "all.db", "SELECT p.label, min(e.t_ns) FROM event e JOIN thread t ON t.id = e.thread JOIN process p ON p.id = t.process_id "
                         "JOIN name n ON n.id = e.tag_id WHERE n.text = 'ProfilerStep#1' AND e.op IN (SELECT id FROM op WHERE name = 'snapshot') GROUP BY 1"))
        self.assertEqual(times["a"], times["b"])

    def test_names_that_one_has_more_often(self):
        first, second = self.memories(2)
        a = self.device("a.pickle", first, marks=[("step", 0), ("step", 50), ("end", 100)])
        b = self.device("b.pickle", second, marks=[("step", 0), ("end", 130)])
        said = self.json("merge", a, b, "-o", self.dir / "all.db", "--align", "marks")
        self.assertEqual((said["lanes"][1]["marks"], said["lanes"][1]["moved_ns"]), (1, -30_000))
        self.assertIn("one mark alone", self.ok("merge", a, b, "-o", self.dir / "all.db", "--align", "marks").stderr)
        c = self.device("c.pickle", next(self.memories(1)), marks=[("step", 0)])
        self.refused(3, "merge", a, c, "-o", self.dir / "no.db", "--align", "marks", says=["c.db", "as often"])
        self.assertFalse((self.dir / "no.db").exists())

    def test_days_apart(self):
        first, second = self.memories(2)
        a, b = self.device("a.pickle", first), self.device("b.pickle", second, at=86_400_000_000)
        self.refused(3, "merge", a, b, "-o", self.dir / "no.db", says=["by date", "--align begin", "--offsets"])
        said = self.json("merge", a, b, "-o", self.dir / "all.db", "--align", "wall") # who asks for it gets it
        self.assertEqual(said["lanes"][1]["begins_ns"], 86_400_000_000_000)

    def test_captures_of_memray_have_dates(self):
        for name, ms in (("a", 30), ("b", 40)):
            w = Writer()
            w.thread(MAIN)
            w.time(ms)
            w.call("malloc", 0x1000, 100)
            w.time(50)
            w.call("malloc", 0x2000, 100)
            (self.dir / f"{name}.bin").write_bytes(w.bytes())
        said = self.json("merge", self.dir / "a.bin", self.dir / "b.bin", "-o", self.dir / "all.db")
        self.assertEqual((said["clock"], [lane["begins_ns"] for lane in said["lanes"]]), ("wall", [0, 10_000_000]))

    def test_logs_without_a_date(self):
        for name in ("a", "b"):
            (self.dir / f"{name}.log").write_text("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.000001,allocate,0x10,64,0\n", encoding="ascii")
        p = run("merge", self.dir / "a.log", self.dir / "b.log", "-o", self.dir / "no.db")
        self.assertEqual(p.returncode, 3)
        self.assertIn("not all know the date", p.stderr)
        self.ok("merge", self.dir / "a.log", self.dir / "b.log", "-o", self.dir / "all.db", "--align", "begin")


class Devices(Merging):
    def two(self):
        out = []
        for i in range(2):
            m = Memory()
            m.segment(m.base)
            m.alloc(m.base, (i + 1) * MIB)
            out.append(self.device(f"{i}.pickle", m))
        return out

    def test_one_of_each(self):
        files = self.two()
        said = self.json("merge", *files, "-o", self.dir / "all.db", "--align", "begin")
        self.assertEqual([lane["devices"] for lane in said["lanes"]], ["", "cuda:0 as cuda:1"])
        self.assertEqual(ask(self.dir / "all.db", "SELECT d.name, sum(b.requested_bytes) FROM block b JOIN device d ON d.id = b.device GROUP BY 1 ORDER BY 1"),
                         [("cuda:0", MIB), ("cuda:1", 2 * MIB)])
        said = self.json("merge", *files, "-o", self.dir / "all.db", "--align", "begin", "--devices", "same")
        self.assertEqual([lane["devices"] for lane in said["lanes"]], ["", ""])
        self.assertEqual(ask(self.dir / "all.db", "SELECT d.name, sum(b.requested_bytes) FROM block b JOIN device d ON d.id = b.device GROUP BY 1"), [("cuda:0", 3 * MIB)])

    def test_several_of_one_lane_keep_their_order(self):
        ms = [Memory(), Memory()]
        for m in ms:
            m.segment(m.base)
            m.alloc(m.base, MIB)
        path = self.dir / "two.pickle"
        path.write_bytes(pickle.dumps(snapshot(*ms), protocol=4))
        said = self.json("merge", self.two()[0], path, "-o", self.dir / "all.db", "--align", "begin")
        self.assertEqual(said["lanes"][1]["devices"], "cuda:0 as cuda:1, cuda:1 as cuda:2")


class Lanes(Merging):
    """Five ranks that do the same, but for what a test does to them."""

    def ranks(self, change=lambda rank, step, m: None, n=5, steps=240, size=lambda step: (1 + step % 3) * MIB):
        files = []
        for rank in range(n):
            m = Memory()
            m.segment(m.base, 4096 * MIB, record=False)
            for step in range(steps):
                m.now = 1_700_000_000_000_000 + 1000 * step + rank # never at quite the same moment
                m.alloc(m.base + (step % 8) * 16 * MIB, size(step))
                if step >= 4:
                    m.free(m.base + ((step - 4) % 8) * 16 * MIB)
                change(rank, step, m)
            files.append(self.device(f"rank{rank}.pickle", m))
        out = self.dir / "all.db"
        self.ok("merge", *files, "-o", out)
        return out

    def test_figures(self):
        out = self.ranks(lambda rank, step, m: m.alloc(m.base + 1024 * MIB, rank * MIB) if step == 20 and rank else None)
        begin, end = ask(out, "SELECT min(t_ns), max(t_ns) FROM event")[0]
        for lane in self.json("trace", out, "--lanes")["lanes"]:
            process = int(lane["name"][-1])
            rows = ask(out, "SELECT alloc_ns, coalesce(free_ns, ?), requested_bytes FROM block WHERE id >> 48 = ?", end + 1, process)
            times = sorted({t for a, f, _ in rows for t in (a, f)} & {t for t, in ask(out, "SELECT t_ns FROM event")})
            live = {t: sum(n for a, f, n in rows if a <= t < f) for t in times}
            peak = max(live.values())
            area = sum(live[t] * (u - t) for t, u in zip(times, times[1:]))
            self.assertEqual({k: lane[k] for k in ("blocks", "begin_ns", "end_ns", "peak_bytes", "peak_ns", "mean_bytes", "end_bytes")},
                             {"blocks": len(rows), "begin_ns": times[0] - begin, "end_ns": times[-1] - begin, "peak_bytes": peak,
                              "peak_ns": min(t for t in times if live[t] == peak) - begin, "mean_bytes": area // (times[-1] - times[0]), "end_bytes": live[times[-1]]})

    def test_one_holds_more(self):
        def change(rank, step, m):
            if rank == 3 and step == 100:
                m.alloc(m.base + 2048 * MIB, 30 * MIB, [{"name": "hoard", "filename": "/x/cache.py", "line": 7}])
            if rank == 3 and step == 150:
                m.free(m.base + 2048 * MIB)
        out = self.ranks(change)
        said = self.json("trace", out, "--lanes")
        row = {lane["name"]: lane for lane in said["lanes"]}
        self.assertEqual((said["outlier"], row["rank3"]["differs_bytes"]), ("rank3", 30 * MIB))
        self.assertTrue(100_000_000 <= row["rank3"]["differs_ns"] <= 150_100_000, row["rank3"])
        self.assertEqual([row[f"rank{i}"]["differs_bytes"] for i in (0, 1, 2, 4)], [None] * 4) # their median is none the worse for it
        self.assertEqual(said["lane_causes"][0], {"name": "hoard cache.py:7", "bytes": 30 * MIB, "typical_bytes": 0, "more_bytes": 30 * MIB})
        for name in ("r.html", "r.svg"): # each process has its curve, up to the highest of all
            self.ok("report", out, "-o", self.dir / name)
            page = (self.dir / name).read_text(encoding="utf-8")
            picture = page[page.index("Processes side by side"):]
            self.assertEqual([picture.count(f">{rank}</text>") > 0 for rank in row], [True] * 5)
            self.assertIn("30.00 MiB more</text>", picture)
        self.ok("report", self.dir / "rank0.db", "-o", self.dir / "r.html")
        self.assertNotIn("Processes side by side", (self.dir / "r.html").read_text(encoding="utf-8"))
        text = self.ok("trace", out, "--lanes").stdout
        self.assertIn("rank3 has up to 30.00 MiB more than the median of the others", text)
        self.assertIn("hoard", text)
        groups = {g["key"]: g["requested_bytes"] for g in self.json("trace", out, "--at", "120.5ms", "--by", "process")["groups"]}
        self.assertEqual(groups["rank3"] - groups["rank0"], 30 * MIB)
        self.assertEqual(sum(groups.values()), sum(b["requested_bytes"] for b in self.json("trace", out, "--at", "120.5ms")["blocks"]))

    def test_one_holds_less(self):
        def change(rank, step, m):
            if rank != 1 and step == 60:
                m.alloc(m.base + 2048 * MIB, 20 * MIB, [{"name": "shard", "filename": "/x/load.py", "line": 2}])
        said = self.json("trace", self.ranks(change), "--lanes")
        row = {lane["name"]: lane for lane in said["lanes"]}
        self.assertEqual((said["outlier"], row["rank1"]["differs_bytes"]), ("rank1", -20 * MIB))
        self.assertEqual(said["lane_causes"][0], {"name": "shard load.py:2", "bytes": 0, "typical_bytes": 20 * MIB, "more_bytes": -20 * MIB})

    def test_a_moment_apart_is_no_difference(self):
        def change(rank, step, m):
            if step in (50, 51): # each rank allocates it at another time within a column and the next
                at = m.base + 2048 * MIB
                if step == 50 + rank % 2:
                    m.alloc(at, 64 * MIB)
        said = self.json("trace", self.ranks(change, size=lambda step: MIB), "--lanes")
        self.assertEqual((said["outlier"], [lane["differs_bytes"] for lane in said["lanes"]]), (None, [None] * 5))
        self.assertIn("no lane differs", self.ok("trace", self.dir / "all.db", "--lanes").stdout)

    def test_a_quiet_one_has_what_it_had(self):
        files = []
        for rank in range(3):
            m = Memory()
            m.segment(m.base, 4096 * MIB, record=False)
            m.alloc(m.base, 30 * MIB)
            for step in range(200):
                m.now = 1_700_000_000_000_000 + 1000 * (step + 1)
                if rank != 1 or step == 199:
                    m.alloc(m.base + 64 * MIB, MIB)
                    m.free(m.base + 64 * MIB)
            files.append(self.device(f"rank{rank}.pickle", m))
        self.ok("merge", *files, "-o", self.dir / "all.db")
        lanes = self.json("trace", self.dir / "all.db", "--lanes")["lanes"]
        self.assertEqual([lane["differs_bytes"] for lane in lanes], [MIB // 2, -MIB, MIB // 2])
        self.assertEqual([lane["mean_bytes"] // MIB for lane in lanes], [30] * 3)

    def test_two_and_one_and_none(self):
        out = self.ranks(lambda rank, step, m: m.alloc(m.base + 1024 * MIB, 5 * MIB) if step == 20 and rank else None, n=2)
        said = self.json("trace", out, "--lanes")
        self.assertEqual((said["outlier"], [lane["differs_bytes"] for lane in said["lanes"]]), ("rank1", [-5 * MIB, 5 * MIB]))
        self.assertIn("more than the other,", self.ok("trace", out, "--lanes").stdout)
        self.assertIn("one process", self.ok("trace", self.dir / "rank0.db", "--lanes").stdout)
        empty = self.dir / "empty.pickle"
        empty.write_bytes(pickle.dumps(snapshot(Memory()), protocol=4))
        self.assertIn("one process", self.ok("trace", empty, "--lanes").stdout)
        self.ok("merge", out, empty, "-o", self.dir / "more.db", "--align", "begin")
        said = self.json("trace", self.dir / "more.db", "--lanes")
        self.assertEqual([lane["blocks"] for lane in said["lanes"]][2:], [0])
        self.assertEqual(said["outlier"], "all/rank1")
        self.refused(2, "trace", out, "--lanes", "--check", says=["one at a time"])


class Odd(Merging):
    def test_nothing_in_one(self):
        a, empty = self.trace("a.db"), self.dir / "empty.pickle"
        empty.write_bytes(pickle.dumps(snapshot(Memory()), protocol=4))
        said = self.json("merge", a, empty, "-o", self.dir / "all.db")
        self.assertEqual([lane["events"] for lane in said["lanes"]], [ask(a, "SELECT count(*) FROM event")[0][0], 0])
        self.ok("trace", self.dir / "all.db", "--check")
        self.json("merge", empty, a, "-o", self.dir / "all.db", "--align", "begin")
        self.ok("trace", self.dir / "all.db", "--check")
        other = self.dir / "e2.pickle"
        shutil.copy(empty, other)
        said = self.json("merge", empty, other, "-o", self.dir / "all.db", "--align", "begin")
        self.assertEqual(said["events"], 0)

    def test_one_file_twice(self):
        a, out = self.trace("a.db"), self.dir / "all.db"
        self.refused(2, "merge", a, a, "-o", out, says=["label of its own"])
        said = self.json("merge", a, a, "-o", out, "--labels", "a,again")
        self.expect(out, said, [a, a])

    def test_labels(self):
        for folder in ("h1", "h2"):
            (self.dir / folder).mkdir()
        a, b, out = self.trace("h1/t.db"), self.trace("h2/t.db"), self.dir / "all.db"
        said = self.json("merge", a, b, "-o", out)
        self.assertEqual([lane["label"] for lane in said["lanes"]], [str(a), str(b)])
        self.refused(2, "merge", a, b, "-o", out, "--labels", "x", says=["1 for 2 files"])
        self.refused(2, "merge", a, b, "-o", out, "--labels", "x,y,z", says=["3 for 2 files"])
        self.refused(2, "merge", a, b, "-o", out, "--labels", "x,", says=["label 2 is empty"])
        self.refused(2, "merge", a, b, "-o", out, "--labels", "x,x", says=["label of its own"])
        self.refused(2, "merge", a, b, "-o", out, "--offsets", "0,soon", says=["'soon' is no time"])
        self.refused(2, "merge", a, b, "-o", out, "--offsets", "0,9e99s", says=["is no time"])
        self.refused(2, "merge", a, b, "-o", out, "--offsets", "0", says=["1 for 2 files"])
        self.refused(2, "merge", a, b, "-o", out, "--offsets", "0,1s", "--align", "begin", says=["one of them"])
        self.refused(2, "merge", a, b, "-o", out, "--align", "sun", says=["none of boot"])
        self.refused(2, "merge", a, b, "-o", out, "--devices", "some", says=["neither"])
        self.refused(2, "merge", a, "-o", out, says=["two"])
        self.refused(2, "merge", a, b, says=["-o TRACE"])
        self.refused(2, "merge", a, b, "-o", b, says=["is an input"])

    def test_outputs(self):
        a, b = self.trace("a.db"), self.trace("b.db")
        self.refused(8, "merge", a, b, "-o", self.dir / "none" / "t.db")
        (self.dir / "text").write_text("mine", encoding="ascii")
        self.refused(2, "merge", a, b, "-o", self.dir / "text", says=["--force"])
        self.assertEqual((self.dir / "text").read_text(encoding="ascii"), "mine")
        self.ok("merge", a, b, "-o", self.dir / "text", "--force")
        before = sorted(p.name for p in self.dir.iterdir())
        self.refused(3, "merge", a, SAMPLES / "decoder_kv.json", "-o", self.dir / "no.db", says=["decoder_kv.json"])
        self.refused(3, "merge", a, self.dir / "absent.db", "-o", self.dir / "no.db", says=["absent.db"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), before)

    def test_more_files_than_may_be_open(self):
        files = [self.dir / f"{i}.db" for i in range(60)]
        one = self.trace("one.db")
        for path in files:
            os.link(one, path)
        p = run("merge", *files, "-o", self.dir / "no.db", preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))
        self.assertEqual(p.returncode, 3)
        self.assertRegex(p.stderr, r"error: cannot open '.*\.db'")
        self.assertFalse((self.dir / "no.db").exists())

    def test_damaged_ones(self):
        a, b = self.trace("a.db"), self.trace("b.db")
        for i, statement in enumerate(("UPDATE event SET thread = 77 WHERE id = 300", "UPDATE process SET begin_ns = -5", "UPDATE scope SET parent_id = id WHERE id = 3",
                                       "UPDATE scope SET kind = 'odd' WHERE id = 2", "UPDATE thread SET process_id = 9", "UPDATE run SET process_id = 40000",
                                       "UPDATE event SET block_id = block_id | (7 << 48) WHERE id = (SELECT max(id) FROM event WHERE op = 2)", "UPDATE run SET first_event = 900000000000000000000 WHERE id = 1",
                                       "UPDATE device SET name = printf('cuda:%0100d', 1)")):
            bad = self.dir / f"bad{i}.db"
            shutil.copy(b, bad)
            try:
                self.change(bad, statement)
            except sqlite3.Error:
                continue # the schema itself refuses it
            p = run("merge", a, bad, "-o", self.dir / "no.db", "--align", "begin")
            self.assertEqual(p.returncode, 3, f"{statement}\n{p.stdout}{p.stderr}")
            self.assertTrue(p.stderr.startswith("error: ") and bad.name in p.stderr, p.stderr)
            self.assertFalse((self.dir / "no.db").exists())

    def test_one_that_is_being_recorded(self):
        a = self.trace("a.db")
        p = self.start("run", SAMPLES / "decoder_kv.json", "-o", self.dir / "r.db", "-n", "1000000")
        tidemark.until(lambda: (self.dir / "r.db").exists() and ask(self.dir / "r.db", "SELECT count(*) FROM event") > [(1000,)])
        self.refused(3, "merge", a, self.dir / "r.db", "-o", self.dir / "no.db", says=["still being recorded"])
        p.kill()
        p.wait()
        tidemark.until(lambda: self.json("trace", self.dir / "r.db")["state"] == "complete")
        said = self.json("merge", a, self.dir / "r.db", "-o", self.dir / "all.db") # and what a killed program left is finished first
        self.assertEqual(ask(self.dir / "all.db", "SELECT how FROM process ORDER BY id"), [("closed",), ("killed",)])
        self.assertGreater(said["lanes"][1]["events"], 1000)
        self.ok("trace", self.dir / "all.db", "--check")

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers take memory of their own")
    def test_many_in_little_memory(self):
        one = self.trace("one.db")
        files = [self.dir / f"{i}.db" for i in range(200)]
        for path in files:
            os.link(one, path)
        out = self.dir / "all.db"
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (100, resource.getrlimit(resource.RLIMIT_NOFILE)[1])) # it asks for more
        p = subprocess.run([os.environ["TIDE_PEAK_OF"], tidemark.PROGRAM, "merge", *map(str, files), "-o", str(out)], capture_output=True, text=True,
                           env=environment(), preexec_fn=few)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(int(p.stderr.splitlines()[-1]), 300 * MIB)
        n = ask(one, "SELECT count(*) FROM event")[0][0]
        self.assertEqual(ask(out, "SELECT count(*), count(DISTINCT thread) FROM event"), [(200 * n, 200)])
        self.assertEqual(ask(out, "SELECT count(DISTINCT id), count(*) FROM block"), [(200 * ask(one, "SELECT count(*) FROM block")[0][0],) * 2])


@unittest.skipUnless(SNAPSHOTS.is_dir(), "no ../shared/data/snapshots here")
class Real(Merging):
    def test_three_snapshots(self):
        files, out = sorted(SNAPSHOTS.glob("*.pickle")), self.dir / "all.db"
        said = self.json("merge", *files, "-o", out, "--align", "begin")
        of = {f"cuda:{i}": self.json("trace", f)["kinds"] for i, f in enumerate(files)}
        got = {}
        for k in self.json("trace", out)["kinds"]:
            got.setdefault(k["device"], []).append({**k, "device": "cuda:0"})
        self.assertEqual(got, of)
        # segments stay those of their process: what each had reserved at its peak is what its own file says
        held = [self.json("trace", f)["devices"][0]["allocators_bytes"] for f in files]
        self.assertEqual([d["allocators_bytes"] for d in self.json("trace", out)["devices"]], held)
        self.ok("merge", *files[1:], "-o", self.dir / "two.db", "--align", "begin")
        self.ok("merge", files[0], self.dir / "two.db", "-o", self.dir / "three.db", "--align", "begin")
        self.assertEqual([d["allocators_bytes"] for d in self.json("trace", self.dir / "three.db")["devices"]], held)
        beside = self.json("trace", out, "--lanes")
        self.assertEqual([lane["peak_bytes"] for lane in beside["lanes"]], [k[0]["peak_bytes"] for k in of.values()])
        self.ok("report", out, "-o", self.dir / "r.json")
        side = json.loads((self.dir / "r.json").read_text(encoding="utf-8"))["sides"][0]
        self.assertEqual((side["lanes"], side["lane_causes"]), (beside["lanes"], beside["lane_causes"]))
        self.assertEqual(said["events"], sum(lane["events"] for lane in said["lanes"]))


if __name__ == "__main__":
    tidemark.main()
