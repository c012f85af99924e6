# SPDX-License-Identifier: MIT
#
# Who holds memory in planned runs, tensor by tensor: `trace --at` against plain SQL over the documented view `holders`, and
# against a ledger of this file's own, made of the tables plan_tensor, scope and event alone.
import json
import random
import signal
import sqlite3
import unittest

from tidemark import SAMPLES, SHARED, Case, ask, run, until


class Ledger:
    """Which step each thread is in, of which execution, at every event: read from events and scopes, nothing else."""

    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.scopes = {i: (kind, step, parent) for i, kind, step, parent in
                       self.db.execute("SELECT id, kind, step, parent_id FROM scope")}
        self.tensors = self.db.execute("SELECT run_id, name, begin_step, end_step, aligned_bytes, alias_of IS NULL "
                                       "FROM plan_tensor WHERE NOT persistent").fetchall()
        self.planned = {r for r, in self.db.execute("SELECT id FROM run WHERE mode = 'planned'")}

    def states(self):
        """After each event: number, live blocks {id: bytes}, and {buffer: (run, step)} of the executions that go on."""
        blocks, threads = {}, {}
        for event, run_id, op, block, thread, scope, size in self.db.execute(
                "SELECT id, run_id, op, block_id, thread, scope_id, requested_bytes FROM event ORDER BY id"):
            kind, step, _ = self.scopes.get(scope, (None, None, None))
            if op == 1:
                blocks[block] = size
            elif op == 3:
                blocks.pop(block, None)
            elif op == 16 and kind == "run":
                threads[thread] = [block, run_id, None]
            elif op == 17 and kind == "run":
                threads.pop(thread, None)
            elif op == 16 and kind == "operator" and thread in threads:
                threads[thread][2] = step
            elif op == 17 and kind == "operator" and thread in threads and step == threads[thread][2]:
                after = self.db.execute("SELECT op FROM event WHERE thread = ? AND id > ? AND op IN (16, 17) ORDER BY id "
                                        "LIMIT 1", (thread, event)).fetchone()
                if after != (16,):  # the last step is over
                    threads[thread][2] = None
            yield event, blocks, {b: (r, s) for b, r, s in threads.values() if r in self.planned}

    def alive(self, run_id, step):
        """Tensors with places of their own that the plan has alive at a step: name -> bytes."""
        return {name: size for r, name, begin, end, size, is_root in self.tensors
                if r == run_id and is_root and begin <= step < end}


class Holders(Case):
    def record(self, *args):
        trace = self.dir / f"{len(list(self.dir.iterdir()))}.db"
        self.ok("run", *args, "-o", trace)
        return trace

    def live(self, trace, at, *more):
        doc = self.json("trace", trace, "--at", at, "--rows", "0", "--json", *more)
        return doc["moment"], doc["blocks"]

    def check(self, trace, has_aliases=False, n=25):
        ledger = Ledger(trace)
        ledger.db.execute("CREATE TEMP TABLE held AS SELECT * FROM holders")
        last, = ledger.db.execute("SELECT max(id) FROM event").fetchone()
        chosen = set(random.Random(7).sample(range(1, last + 1), min(n, last)))
        chosen |= {e for e, in ledger.db.execute("SELECT first_event FROM execution_steps ORDER BY random() LIMIT 5")}
        for event, blocks, buffers in ledger.states():
            if event not in chosen:
                continue
            moment, items = self.live(trace, f"#{event}", "--whole")
            by_name = {}
            for item in items:
                by_name[item["name"]] = by_name.get(item["name"], 0) + item["requested_bytes"]
            self.assertEqual(moment["requested_bytes"], sum(blocks.values()), event)
            self.assertEqual(sum(by_name.values()), sum(blocks.values()), event)
            sql = dict(ledger.db.execute(
                "SELECT name, sum(bytes) FROM held WHERE begin_event <= ?1 AND (end_event IS NULL OR end_event > ?1) "
                "GROUP BY name HAVING sum(bytes) > 0", (event,)))
            self.assertEqual({k: v for k, v in by_name.items() if v > 0}, sql, event)
            if has_aliases:
                continue  # whose bytes are whose, the planner's own tests say
            tensors = {}
            for buffer, (run_id, step) in buffers.items():
                for name, size in (ledger.alive(run_id, step) if step is not None else {}).items():
                    tensors[name] = tensors.get(name, 0) + size
            got = {i["name"]: 0 for i in items if i["execution"] is not None}
            for i in items:
                if i["execution"] is not None:
                    got[i["name"]] += i["requested_bytes"]
            self.assertEqual(got, tensors, event)

    def test_twenty_executions(self):
        self.check(self.record("-n", 20, "--no-passes", SAMPLES / "squeezenet1_1.json"))

    def test_contexts_of_their_own(self):
        self.check(self.record("-n", 6, "--contexts", 3, "--no-passes", SAMPLES / "unet.json"))

    def test_aliases_chunks_and_pools(self):
        for options in (["--form", "chunks"], ["--strategy", "greedy_color"], ["--align", "1"]):
            trace = self.record("-n", 3, *options, SAMPLES / "densenet_block.json")
            if "chunks" in options:
                self.ok("trace", trace, "--expand")
            self.check(trace, has_aliases=True, n=12)

    def test_decode(self):
        self.check(self.record("--decode", 8, SAMPLES / "decoder_step.json"), has_aliases=True)

    @unittest.skipUnless((SHARED / "models").is_dir(), "skipped: ../shared is not here")
    def test_bodies(self):
        """Branches that are left out, and bodies that are gone through again."""
        for model, k in (("silero-vad", 0), ("silero-vad", 1), ("scan-lstm-cntk", 1), ("loop-crop-resize", 0)):
            trace = self.dir / f"{model}{k}.db"
            self.ok("run", "-n", 2, "--no-passes", "--input-dir", SHARED / "models" / model / f"test_data_set_{k}", "-o", trace,
                    SHARED / "models" / model / "model.onnx")
            self.check(trace, n=30)

    def test_naive_beside_planned(self):
        trace = self.dir / "compared.db"
        self.ok("compare", "-n", 3, "-o", trace, SAMPLES / "inception_block.json")
        self.check(trace, has_aliases=True)

    def test_a_killed_run(self):
        """What lay in the buffer when the program was killed is known to the last event."""
        trace = self.dir / "killed.db"
        p = self.start("run", "-n", 100000000, "-o", trace, SAMPLES / "resnet18.json")

        def facts():
            got = run("trace", trace, "--json")
            return json.loads(got.stdout) if got.returncode == 0 else {}

        until(lambda: facts().get("events", 0) > 2000)
        p.send_signal(signal.SIGKILL)
        p.wait()
        until(lambda: facts().get("state") == "complete")
        moment, items = self.live(trace, "end")
        self.assertEqual([(sum(i["requested_bytes"] for i in items),)],
                         ask(trace, "SELECT sum(requested_bytes) FROM block WHERE free_event IS NULL"))
        self.assertNotIn("plan buffer", {i["name"] for i in items})

    def test_moments_of_executions(self):
        trace = self.record("-n", 4, SAMPLES / "lenet5.json")
        db = sqlite3.connect(trace)
        steps = db.execute("SELECT execution, step, name, first_event FROM execution_steps").fetchall()
        for execution, step, name, event in steps:
            for text in (f"exec:{execution}:{step}", f"exec:{execution}:{name}"):
                self.assertEqual(self.live(trace, text)[0]["event"], event)
        for execution, first, last in db.execute("SELECT execution, first_event, last_event FROM executions"):
            self.assertEqual(self.live(trace, f"exec:{execution}:begin")[0]["event"], first)
            self.assertEqual(self.live(trace, f"exec:{execution}:end")[0]["event"], last)
            peak, items = self.live(trace, f"exec:{execution}")
            unused = sum(i["requested_bytes"] for i in items if i["is_unused"])
            for e, in db.execute("SELECT first_event FROM execution_steps WHERE execution = ?", (execution,)):
                moment, others = self.live(trace, f"#{e}")
                self.assertLessEqual(moment["requested_bytes"], peak["requested_bytes"])
                if moment["requested_bytes"] == peak["requested_bytes"]:
                    self.assertGreaterEqual(sum(i["requested_bytes"] for i in others if i["is_unused"]), unused)
        for wrong in ("exec:4", "exec:0:nothing", "exec:", "exec:x", "exec:0:99"):
            p = run("trace", trace, "--at", wrong)
            self.assertIn(p.returncode, (2, 3), wrong)
            self.assertTrue(p.stderr.startswith("error: "), p.stderr)

    def test_the_saving_is_explained_to_the_byte(self):
        """diff of a naive and a planned run: the tensors' changes, and what of the buffer is unused, are the change."""
        naive = self.record("--naive", "-n", 3, SAMPLES / "squeezenet1_1.json")
        planned = self.record("-n", 3, SAMPLES / "squeezenet1_1.json")
        doc = self.json("diff", "--json", "--rows", 0, naive, planned)
        held, = [f["change_bytes"] for f in doc["figures"] if f["figure"] == "held_bytes"]
        self.assertEqual(sum(r["change_bytes"] for r in doc["by_operator"]), held)
        tensors = sum(r["b_held_bytes"] - r["a_held_bytes"] for r in doc["rows"])
        parts = sum(r["change_bytes"] for r in doc["by_operator"] if r["part"])
        self.assertEqual(tensors + parts, held)
        self.assertEqual(doc["counts"]["added"] + doc["counts"]["removed"] + doc["counts"]["resized"], 0)


class Space:
    """What each allocator took and holds at an event, by address: read from the events, nothing else."""

    def __init__(self, path, event):
        self.segments, self.blocks = {}, {}
        for op, block, address, size, allocator, kind in ask(path, """SELECT op, block_id, address, reserved_bytes, allocator, kind
                FROM events WHERE event_id <= ? ORDER BY event_id""", event):
            if op == "alloc":
                self.blocks[block] = (address, size, (allocator, kind))
            elif op == "free_completed":
                self.blocks.pop(block)
            elif op == "segment_alloc":
                self.segments[address] = (size, (allocator, kind))
            elif op == "segment_free":
                self.segments.pop(address)

    def pools(self):
        """{(allocator, kind): [reserved, active, blocks, largest free, largest segment]} of those with segments."""
        out = {}
        for begin, (size, key) in self.segments.items():
            pool = out.setdefault(key, [0, 0, 0, 0, 0])
            inside = sorted((a, n) for a, n, _ in self.blocks.values() if begin <= a < begin + size)
            ends = [begin] + [a + n for a, n in inside]
            gaps = [b - a for a, b in zip(ends, [a for a, _ in inside] + [begin + size])]
            pool[0] += size
            pool[1] += sum(n for _, n in inside)
            pool[2] += len(inside)
            pool[3], pool[4] = max([pool[3], *gaps]), max(pool[4], size)
        return out


class Pools(Case):
    """View 4 against a ledger of addresses, and against the view `holders`."""

    def pane(self, trace, event, *commands):
        commands = [word for c in commands for word in ("--command", c)]
        return self.json("tui", trace, "--command", f"goto #{event}", *commands, "--pane", "pools", "--json")

    def answer(self, trace, event, row, size):
        """The sentence about a request to the pool in that row, as view 4 has it."""
        commands = [f"goto #{event}", "view 4", "pane pools", *["down"] * row, f"request {size}"]
        frame = self.ok("tui", trace, "--once", "--no-state", "--size", "160x50", *[w for c in commands for w in ("--command", c)]).stdout
        return " ".join(frame.split("POOLS:")[1].split())

    def test_allocators_with_segments(self):
        trace = self.dir / "t.db"
        self.ok("run", SAMPLES / "inception_block.json", "--naive", "--allocator", "stream_caching", "-n", 2, "-o", trace)
        first, last = ask(trace, """SELECT min(event_id), max(event_id) FROM events
            WHERE t_ns BETWEEN (SELECT begin_ns FROM run) AND (SELECT end_ns - 1 FROM run)""")[0]
        rng = random.Random(5)
        for event in (first, last, *(rng.randrange(first, last) for _ in range(8))):
            rows = self.pane(trace, event)["rows"]
            want = Space(trace, event).pools()
            got = {(r["pool"], r["kind"]): [r["reserved_bytes"], r["active_bytes"], r["blocks"], r["largest_free_bytes"]]
                   for r in rows if r["tells_segments"] and r["segments"] > 0}
            self.assertEqual(got, {key: pool[:4] for key, pool in want.items()}, f"event {event}")
            for row, r in enumerate(rows):
                pool = want.get((r["pool"], r["kind"]))
                if pool is None or rng.random() > 0.4:
                    continue
                if pool[3] > 0:
                    self.assertIn("would be served now: free at", self.answer(trace, event, row, pool[3]))
                self.assertIn("it would have to grow", self.answer(trace, event, row, pool[4] + 1))
                if pool[3] < pool[4]:
                    self.assertIn("in the way at", self.answer(trace, event, row, pool[4]))

    def test_pools_of_the_plan_in_every_execution(self):
        trace = self.dir / "t.db"
        self.ok("run", SAMPLES / "inception_block.json", "--strategy", "greedy_color", "-n", 3, "-o", trace)
        sizes = ask(trace, "SELECT sum(bytes) FROM buffers")
        events = [e for e, in ask(trace, """SELECT event_id FROM events JOIN executions ON t_ns BETWEEN begin_ns AND end_ns
            ORDER BY event_id""")]
        rng, n_used = random.Random(6), 0
        for event in (events[0], events[-1], *(rng.choice(events) for _ in range(14))):
            rows = [r for r in self.pane(trace, event)["rows"] if r["is_planned"]]
            self.assertGreater(len(rows), 1)
            used = ask(trace, """SELECT coalesce(sum(bytes), 0) FROM holders WHERE execution IS NOT NULL AND begin_event <= ?1
                       AND (end_event IS NULL OR end_event > ?1)""", event)[0][0]
            self.assertEqual(sum(r["active_bytes"] for r in rows), used, f"event {event}")
            n_used += used > 0
        self.assertGreater(n_used, 5, "moments inside of executions were asked about")
        self.assertEqual(len(sizes), 1)

    def test_the_curve_keeps_its_height_below_what_is_reserved(self):
        """Far above it the reserved line stands at the upper edge; near above, where it is."""
        trace = self.dir / "t.db"
        for model, allocator, far in (("squeezenet1_1", "stream_caching", True), ("squeezenet1_1", "cpu", False)):
            self.ok("run", SAMPLES / f"{model}.json", "--naive", "--allocator", allocator, "-n", 2, "-o", trace)
            frame = self.ok("tui", trace, "--once", "--no-state", "--size", "120x40").stdout.split("\n")
            rows = [line[30:110] for line in frame[3:12]]
            filled = sum("\u2588" in row or "\u2593" in row for row in rows)
            self.assertGreaterEqual(filled, 6, "\n".join(frame))
            self.assertEqual(any("above: reserved" in line for line in frame), far, "\n".join(frame))

    def test_traces_and_plans_without_anything(self):
        trace, lists = self.dir / "t.db", self.dir / "none.csv"
        self.ok("record", "-o", trace, "--", "true")
        lists.write_text("id,lower,upper,size\n")
        view = ("--once", "--no-state", "--size", "80x24", "--command", "view 4", "--command", "request 1MiB")
        frame = self.ok("tui", trace, *view).stdout
        self.assertIn("No allocator holds anything at this moment.", frame)
        self.assertNotIn("All that was held", frame)
        p = run("tui", lists, *view)
        self.assertEqual((p.returncode, p.stdout), (3, ""))
        self.assertIn("the file lists no buffer", p.stderr)
        self.assertIn("error: ", run("tui", trace, "--command", "request x", "--pane", "pools", "--json").stderr)


if __name__ == "__main__":
    unittest.main(verbosity=2)
