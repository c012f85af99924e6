# SPDX-License-Identifier: MIT
"""The command line's contract: commands, exit codes, JSON keys, files, the gate."""
import csv
import json
import re
import sqlite3
import subprocess
import unittest

import scratch
import tidemark
from tidemark import SAMPLES, Case, run

LENET = SAMPLES / "lenet5.json"
DYNAMIC = SAMPLES / "dynamic_batch.json"
SQUEEZENET = SAMPLES / "squeezenet1_1.json"
PLAN_KEYS = ["strategy", "form", "bytes", "naive_bytes", "lower_bound_bytes", "saving", "proven", "verified", "time_ns"]
TENSOR_KEYS = ["name", "size_bytes", "begin", "end", "kind", "persistent"]


class Commands(Case):
    def test_usage_and_version(self):
        self.assertEqual(run().returncode, 2)
        self.assertIn("tidemark ", self.ok("--version").stdout)
        self.assertEqual(self.json("--version")["schema"], "tidemark.version")
        for name in ("demo", "help", "plan", "run", "compare", "record", "import", "merge", "trace", "replay", "tui", "report", "check", "sweep", "export", "allocators", "devices",
                     "operators", "collect"):
            self.assertIn(f"usage: tidemark {name}", self.ok(name, "--help").stdout)
            self.refused(2, name, "--no-such-option", says=["no-such-option", f"tidemark {name} --help"])
        self.refused(2, "plna", says=["did you mean 'plan'?", "sweep"])
        self.refused(2, "help", "reprot", says=["did you mean 'report'?"])
        self.assertNotIn("did you mean", self.refused(2, "xyzzy").stderr)
        self.refused(2, "plan")
        self.refused(2, "plan", LENET, "--strategy", "gredy_color", says=["greedy_color"])
        self.refused(2, "plan", LENET, "--align", 48, says=["power of two"])
        self.refused(2, "run", LENET, "-n", "-3")

    def test_short_version(self):
        self.assertEqual(self.ok("-V").stdout, self.ok("--version").stdout)
        self.assertEqual(self.json("-V"), self.json("--version"))

    def test_no_run_is_no_measurement(self):
        """Of 0 runs nothing can be said: every command that runs refuses it."""
        for command in (["run", LENET], ["compare", LENET], ["check", LENET, "--no-baseline", "--run"],
                        ["sweep", LENET, "--align", "64", "--run"]):
            self.refused(2, *command, "-n", 0, says=["-n"])

    def test_an_option_that_is_none_is_told_what_was_meant(self):
        for command, given, meant in (
                ("plan", "--stratgy", "--strategy"), ("plan", "--budgte=1MiB", "--budget"), ("run", "--leak-chek", "--leak-check"),
                ("tui", "--onec", "--once"), ("check", "--baselnie", "--baseline"), ("record", "--quite", "--quiet"),
                ("sweep", "--fit", None), ("plan", "--no", "--no-fuse or --no-qdq or --node-limit or --no-passes"),
                ("plan", "--threads", "--plan-threads"), ("run", "--threads=4", "--plan-threads"), ("plan", "--xyzzy", None)):
            p = run(command, given, LENET)
            if given == "--fit":
                self.assertNotIn("is not an option", p.stderr)  # a beginning that says enough is an option
                continue
            self.assertEqual((p.returncode, p.stdout), (2, ""), given)
            self.assertIn(f"'{given.split('=')[0]}' is not an option of {command}", p.stderr)
            self.assertIn(f"tidemark {command} --help", p.stderr)
            if meant:
                self.assertIn(f"did you mean {meant}", p.stderr)
            else:
                self.assertNotIn("did you mean", p.stderr)
        self.assertNotIn("\x1b", run("plan", "--stra\x1b[31mtegy").stderr)
        self.assertIn("'-z' is not an option", run("plan", "-z").stderr)

    def test_a_device_that_is_not_there_says_why(self):
        for row in self.json("devices")["devices"]:
            self.assertEqual(row["available"], row["reason"] is None)
            if row["available"]:
                continue
            self.assertIn("is not available", row["reason"])
            self.assertIn(row["reason"], self.ok("devices").stdout)

    def test_many_warnings_do_not_hide_the_error(self):
        """A model in which each of 200 values is produced twice: one line says so, and the error behind it is seen."""
        import bad_input as b
        constant = lambda name: b.field(1, b.field(2, name.encode()) + b.field(4, b"Constant") + b.field(5, b.field(1, b"value") +
                                        b.field(5, b.varint(1, 1) + b.varint(2, 1) + b.field(9, b"\0\0\0\0")) + b"\xa0\x01\x04"))
        nodes = b"".join(constant(f"c{k}") * 2 for k in range(200))
        add = b.field(1, b.field(1, b"x") + b.field(1, b"c0") + b.field(2, b"y") + b.field(4, b"Add"))
        for dims, code in ((b.field(1, b.varint(1, 1)), 0), (b.field(1, b.field(2, b"N")), 3)):
            graph = nodes + add + b.field(2, b"g") + b.field(11, b.field(1, b"x") + b.field(2, b.field(1, b.varint(1, 1) + b.field(2, dims))))
            path = self.dir / "twice.onnx"
            path.write_bytes(b.varint(1, 8) + b.field(7, graph + b.field(12, b.field(1, b"y"))) + b.field(8, b.field(1, b"") + b.varint(2, 13)))
            p = run("plan", path)
            self.assertEqual(p.returncode, code, p.stderr)
            lines = p.stderr.splitlines()
            self.assertEqual([line for line in lines if line.startswith("warning")][1:], [], "one is enough")
            self.assertIn("two Constant nodes produce 'c0' (and 199 other values)", lines[0])
            if code:
                self.assertTrue(lines[1].startswith("error: "), lines[1])

    def test_plan_json(self):
        """S23-3, S23-14: every field for every tensor, keys and order of the contract."""
        doc = self.json("plan", LENET, "--all")
        self.assertEqual(list(doc)[:2], ["schema", "version"])
        self.assertEqual((doc["schema"], doc["version"]), ("tidemark.plan", 1))
        self.assertGreaterEqual(len(doc["plans"]), 6)
        self.assertEqual(doc["plans"][0]["strategy"], "naive")
        for plan in doc["plans"]:
            self.assertTrue(set(PLAN_KEYS) <= set(plan), plan)
            self.assertTrue(plan["verified"])
            self.assertGreaterEqual(plan["bytes"], plan["lower_bound_bytes"])
        for tensor in doc["tensors"]:
            self.assertTrue(set(TENSOR_KEYS) <= set(tensor), tensor)
            self.assertLess(tensor["begin"], tensor["end"])
        self.assertIn("conv1", doc["order"])

    def test_plan_file_round_trip_and_run(self):
        """S23-14: a saved plan runs; its bytes are what the run holds."""
        path = self.dir / "plan.json"
        self.ok("plan", LENET, "-o", path)
        bytes_ = json.loads(path.read_text())["plans"][0]["bytes"]
        doc = self.json("run", LENET, "--plan", path, "-n", 3)
        work = next(k for k in doc["kinds"] if k["kind"] == "Workspace")
        self.assertEqual(work["peak_bytes"], bytes_)
        self.assertEqual(work["allocations"], 1)

    def test_plan_with_a_gap_is_refused_before_anything_runs(self):
        """S27-13: the strict rule, through the program: a plan that lacks a tensor names it and nothing is allocated."""
        doc = {"schema": "tidemark.graph", "version": 1, "name": "chain", "opset": 13,
               "inputs": [{"name": "x", "dtype": "float32", "shape": [64]}], "initializers": [], "outputs": ["c"],
               "nodes": [{"op": op, "name": op.lower(), "inputs": [i], "outputs": [o]}
                         for op, i, o in (("Tanh", "x", "a"), ("Sigmoid", "a", "b"), ("Abs", "b", "c"))]}
        whole, part = self.dir / "whole.json", self.dir / "part.json"
        whole.write_text(json.dumps(doc))
        doc["nodes"] = [doc["nodes"][0], dict(doc["nodes"][2], inputs=["a"])]
        part.write_text(json.dumps(doc))
        plan = self.dir / "plan.json"
        self.ok("plan", part, "-o", plan)
        self.ok("run", part, "--plan", plan)
        # The plan says in which order its nodes run: that of another program is not comparable.
        self.refused(4, "run", whole, "--plan", plan, "-o", self.dir / "t.db", says=["sigmoid"])
        # One that does not say is taken as it is.
        stored = json.loads(plan.read_text())
        stored["order"] = []
        plan.write_text(json.dumps(stored))
        self.refused(3, "run", whole, "--plan", plan, "-o", self.dir / "t.db", says=["sigmoid", "port 0", "'b'"])
        self.assertFalse((self.dir / "t.db").exists())

    def test_stages_and_report_text(self):
        """S23-2: the four stages of one model in their order, each alone and of every tensor, for pools and offsets."""
        stages = {"liveness": "1 liveness", "graph": "2 interference graph", "colour": "3 colouring", "plan": "4 plan"}
        for strategy in ("greedy_color", "search"):
            planned = {t["name"] for t in self.json("plan", LENET, "--strategy", strategy)["tensors"] if not t["persistent"]}
            for stage, title in stages.items():
                with self.subTest(strategy=strategy, stage=stage):
                    lines = self.ok("plan", LENET, "--dump-stage", stage, "--strategy", strategy).stdout.splitlines()
                    if stage == "colour" and strategy == "search":
                        self.assertIn("has no colours", lines.pop(0))
                    self.assertTrue(lines[0].startswith(title), lines[0])
                    for other in set(stages.values()) - {title}:
                        self.assertFalse(any(line.startswith(other) for line in lines), other)
                    self.assertLessEqual(planned, {re.split(r":? +", line)[0].rstrip(":") for line in lines[1:]})

    def test_report_has_the_numbers_of_the_json_S23_16(self):
        """S23-16, S23-17, S23-10: pools, members, original, optimised, saving and gap of the report are those of --json."""
        kb = lambda size: f"{size / 1024:.2f} KiB"
        for strategy in ("greedy_color", "search", "naive"):
            with self.subTest(strategy=strategy):
                doc = self.json("plan", SQUEEZENET, "--strategy", strategy, "--node-limit", 3000)
                text = self.ok("plan", SQUEEZENET, "--full", "--strategy", strategy, "--node-limit", 3000).stdout
                plan = doc["plans"][0]
                sizes = [t["aligned_bytes"] for t in doc["tensors"] if not t["persistent"]]
                self.assertEqual(plan["naive_bytes"], sum(sizes))
                self.assertAlmostEqual(plan["saving"], 1 - plan["bytes"] / plan["naive_bytes"], places=6)
                self.assertIn(f"Original Memory: {kb(plan['naive_bytes'])}\n", text)
                self.assertIn(f"Optimized Memory: {kb(plan['bytes'])}\n", text)
                self.assertIn(f"Memory Saving: {100 * plan['saving']:.2f}%\n", text)
                gap = 100 * (plan["bytes"] / plan["lower_bound_bytes"] - 1)
                reached = "reached: no plan is smaller" if plan["bytes"] == plan["lower_bound_bytes"] else f"gap {gap:.2f}%"
                self.assertIn(f"Lower Bound: {kb(plan['lower_bound_bytes'])} ({reached})\n", text)
                if plan["form"] == "offsets":
                    self.assertIn(f"Memory Buffer: {kb(plan['bytes'])}\n", text)
                    continue
                self.assertIn(f"Memory Pools: {plan['n_pools']}\n", text)
                self.assertEqual(sum(pool["size_bytes"] for pool in plan["pools"]), plan["bytes"])
                for pool in plan["pools"]:
                    # Below each member stands what lies in it.
                    found = re.search(rf"(?m)^Pool {pool['id']}: (.*)\n  Tensors \((\d+)\):\n((?:    - .*\n)+)", text)
                    lines = found[3].splitlines()
                    self.assertEqual((found[1], int(found[2])), (kb(pool["size_bytes"]), len(lines)))
                    self.assertEqual([line[6:] for line in lines if " in " not in line], pool["members"])
                inside = {t["name"] for t in doc["tensors"] if "alias" in t}
                self.assertEqual(set(re.findall(r"(?m)^    - (.*), [\w-]+ in .*$", text)), inside)

    def test_a_plan_with_a_second_buffer_runs_X7(self):
        """X-7, S23-14: what a plan has in other buffers is no part of a run, nor of the picture of its buffer."""
        lists = json.loads(self.ok("export", LENET, "--to", "json").stdout)
        lists["tensors"].append({"name": "cache", "size_bytes": 500000, "begin": 0, "end": 2, "kind": "KVCache"})
        plan, trace, report = (self.dir / name for name in ("p.json", "t.db", "r.json"))
        self.ok("plan", "-", "-o", plan, stdin=json.dumps(lists))
        buffers = {b["kind"]: b["bytes"] for b in json.loads(plan.read_text())["plans"][0]["buffers"]}
        self.assertEqual(set(buffers), {"Workspace", "KVCache"})
        self.ok("run", LENET, "--plan", plan, "-n", 2, "-o", trace)
        self.ok("report", trace, "-o", report)
        doc = json.loads(report.read_text())["sides"][0]
        kinds = {k["kind"]: k for k in doc["kinds"]}
        self.assertEqual(kinds["Workspace"]["measured_bytes"], buffers["Workspace"])
        for kind in ("Default", "Persistent", "Workspace"):
            self.assertEqual(kinds[kind]["difference_bytes"], 0, kind)
        placed = {i["name"] for i in doc["items"] if i["place"] is not None}
        self.assertIn("relu1.out", placed)
        self.assertNotIn("cache", {i["name"] for i in doc["items"]})

    def test_off_verbose_and_aligned_S23_22(self):
        """S23-22: planning can be switched off, made verbose, and given an alignment, for the plan and for the run."""
        off, on = self.json("run", LENET, "-n", 2, "--naive"), self.json("run", LENET, "-n", 2)
        self.assertEqual([(d["mode"], d["strategy"]) for d in (off, on)], [("naive", None), ("planned", "search")])
        self.assertGreater(len(self.ok("plan", LENET, "--full", "-v").stdout), len(self.ok("plan", LENET, "--full").stdout))
        for align in (64, 256, 4096):
            doc = self.json("plan", LENET, "--align", align)
            for tensor in doc["tensors"]:
                if not tensor["persistent"] and "alias" not in tensor:
                    self.assertEqual((tensor["align_bytes"], tensor["places"][0]["offset"] % align), (align, 0), tensor)
            work = next(k for k in self.json("run", LENET, "-n", 2, "--align", align)["kinds"] if k["kind"] == "Workspace")
            self.assertEqual(work["peak_bytes"], doc["plans"][0]["bytes"])

    def test_scratch_is_planned_S27_15(self):
        """S27-15: each operator that asks for scratch has a line of its own, in plan and report; runs allocate none."""
        doc = self.json("plan", LENET)
        scratch = {t["name"] for t in doc["tensors"] if t["role"] == "scratch"}
        self.assertTrue(scratch)
        self.assertLessEqual(scratch, {f"{step}.scratch" for step in doc["order"]})
        for tensor in doc["tensors"]:
            if tensor["name"] in scratch:
                self.assertEqual(tensor["begin"] + 1, tensor["end"])
                self.assertIsNotNone(tensor["places"][0]["offset"])
        ran = self.json("run", LENET, "-n", 5, "-o", self.dir / "t.db")
        self.assertEqual(ran["warm_allocations"], 0)
        self.ok("report", self.dir / "t.db", "-o", self.dir / "r.json")
        self.assertLessEqual(scratch, {i["name"] for i in json.loads((self.dir / "r.json").read_text())["sides"][0]["items"]})

    def test_fits(self):
        big = self.json("plan", LENET, "--budget", "1GiB")
        self.assertEqual(big["fits"], "yes")
        small = self.json("plan", LENET, "--budget", "1KiB", code=6)
        self.assertEqual(small["fits"], "no")
        doc = self.json("plan", LENET)
        exact = doc["plans"][0]["bytes"]
        self.assertEqual(self.json("plan", LENET, "--capacity", exact)["fits"], "yes")
        self.assertEqual(self.json("plan", LENET, "--capacity", doc["plans"][0]["lower_bound_bytes"] - 1, code=6)["fits"],
                         "no")

    def test_lifetimes_csv(self):
        path = self.dir / "a.csv"
        path.write_text("id,lower,upper,size\na,0,2,10\nb,1,3,20\nc,2,4,10\n")
        doc = self.json("plan", path)
        self.assertEqual(doc["plans"][0]["bytes"], 30)
        self.assertEqual(doc["plans"][0]["lower_bound_bytes"], 30)
        self.refused(3, "run", path, says=["lifetimes CSV"])

    def test_run_json(self):
        """LT-32, S27-14: bytes by kind, no allocation in warm planned runs, no leak."""
        doc = self.json("run", LENET, "-n", 5, "--leak-check")
        self.assertEqual(doc["schema"], "tidemark.run")
        for key in ("model", "runs", "contexts", "time_ns", "trace", "recorder", "kinds", "warm_allocations", "leaks"):
            self.assertIn(key, doc)
        self.assertEqual(doc["warm_allocations"], 0)
        self.assertEqual(doc["leaks"], [])
        naive = self.json("run", LENET, "-n", 5, "--naive")
        self.assertGreater(naive["warm_allocations"], 0)

    def test_bytes_by_kind_LT_32(self):
        """LT-32: `report` prints bytes by kind; together they are what the allocators held: a budget of just that serves
        the run, of a byte less does not. PT-26: every block's tag, and who made it, is in each of the three reports."""
        for mode in ([], ["--naive"]):
            with self.subTest(mode=mode):
                trace = self.dir / "t.db"
                run_doc = self.json("run", LENET, "-n", 3, *mode, "-o", trace)
                for ending in ("html", "csv", "json"):
                    self.ok("report", trace, "-o", self.dir / f"r.{ending}")
                doc = json.loads((self.dir / "r.json").read_text())["sides"][0]
                page = (self.dir / "r.html").read_text()
                rows = list(csv.DictReader((self.dir / "r.csv").read_text().splitlines()))
                kinds = {k["kind"]: k["measured_bytes"] for k in doc["kinds"]}
                self.assertEqual(kinds, {k["kind"]: k["peak_bytes"] for k in run_doc["kinds"]})
                self.assertEqual(set(kinds), {"Default", "Persistent", "Workspace"})
                for kind, bytes_ in kinds.items():
                    row = rf'>{kind}</th><td>cpu</td>(<td[^>]*>[^<]*</td>)?<td title="{bytes_} B">'
                    self.assertIsNotNone(re.search(row, page), f"no row for {kind} of {bytes_} bytes")
                if mode:
                    # Bytes of a kind at the one moment at which all together are the most.
                    at_peak = [r for r in rows if r["at_peak"] == "1"]
                    total = sum(int(r["size_bytes"]) for r in at_peak)
                    for kind, bytes_ in kinds.items():
                        self.assertLessEqual(sum(int(r["size_bytes"]) for r in at_peak if r["kind"] == kind), bytes_)
                else:
                    total = sum(kinds.values())  # a planned run holds all of it at once
                self.assertEqual(doc["peak"]["bytes"], total)
                self.ok("run", LENET, "-n", 3, *mode, "--limit", total)
                self.refused(6, "run", LENET, "-n", 3, *mode, "--limit", total - 1)
                owners = {i["name"]: i["owner"] for i in doc["items"]}
                self.assertEqual([owners[n] for n in ("fc1.w", "image", "conv1.scratch")], [None, None, "conv1"])
                self.assertEqual({r["name"]: r["owner"] or None for r in rows}, owners)
                for name in owners:
                    self.assertTrue(f">{name}<" in page, name)

    def test_contexts_share_weights(self):
        """S27-28: K contexts cost the weights once and the buffer K times; the trace predicts just that."""
        one, four = (self.json("run", LENET, "-n", 3, "--contexts", k, "-o", self.dir / f"{k}.db") for k in (1, 4))
        peak = lambda doc, kind: next(k["peak_bytes"] for k in doc["kinds"] if k["kind"] == kind)
        self.assertEqual(peak(one, "Persistent"), peak(four, "Persistent"))
        self.assertEqual(4 * peak(one, "Workspace"), peak(four, "Workspace"))
        for k in (1, 4):
            db = sqlite3.connect(self.dir / f"{k}.db")
            rows = db.execute("SELECT kind, difference_bytes FROM predicted_vs_measured ORDER BY kind").fetchall()
            db.close()
            self.assertEqual(rows, [("Default", 0), ("Persistent", 0), ("Workspace", 0)])

    def test_limit(self):
        """LT-32: below its peak a run says what was asked, what would have fitted and who holds the memory."""
        whole = self.json("run", LENET, "--naive", "-n", 2)
        held = sum(k["reserved_peak_bytes"] for k in whole["kinds"])  # not all at the same moment: at least the peak
        self.assertEqual(whole["limit_bytes"], None)
        above = self.json("run", LENET, "--naive", "-n", 2, "--limit", held)
        self.assertEqual(above["limit_bytes"], held)
        self.assertEqual(above["kinds"], whole["kinds"])

        peak = self.json("compare", LENET)["modes"][0]["peak_bytes"]
        p = run("run", LENET, "--naive", "--limit", peak - 1, "--json")
        self.assertEqual(p.returncode, 6, p.stderr)
        doc = json.loads(p.stdout)
        self.assertEqual((doc["schema"], doc["limit_bytes"]), ("tidemark.run", peak - 1))
        oom = doc["oom"]
        self.assertIn(oom["tag"], doc["error"])
        self.assertLess(oom["would_fit_bytes"], oom["asked_bytes"])
        self.assertGreater(oom["live_bytes"] + oom["asked_bytes"], peak - 1)
        self.assertGreater(oom["live_blocks"], 10)
        self.assertEqual(len(oom["blocks"]), 10)
        sizes = [b["bytes"] for b in oom["blocks"]]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertEqual({b["kind"] for b in oom["blocks"]}, {"Persistent", "Workspace", "Default"})
        made = {b["tag"]: b["operator"] for b in oom["blocks"] if b["kind"] == "Workspace"}
        self.assertTrue(made)
        self.assertTrue(all(made.values()), made)  # every one says in which operator it was born
        for key in ("requested_bytes", "active_bytes", "cached_bytes", "reserved_bytes", "largest_free_bytes",
                    "pending_bytes", "pending_frees", "headroom_bytes"):
            self.assertIn(key, oom)
        # The same for people; every block of the document is in the text.
        self.assertIn(f"budget of {peak - 1} B", p.stderr)
        for b in oom["blocks"]:
            self.assertRegex(p.stderr, rf"(?m)^ +{b['bytes']} +{b['kind']} +{b['tag']} +{b['operator'] or '-'}$")
        self.assertIn("would have fit", p.stderr)
        rest = re.search(r"(?m)^ +(\d+)  in (\d+) more$", p.stderr)
        self.assertEqual(sum(sizes) + int(rest[1]), oom["live_bytes"])  # the column adds up
        self.assertEqual(10 + int(rest[2]), oom["live_blocks"])
        # The very first block: nothing is live, and nothing would have fitted.
        p = self.refused(6, "run", LENET, "--limit", 1, "--json", says=["conv1.w", "0 blocks, 0 B requested", "fit  nothing"])
        self.assertEqual(json.loads(p.stdout)["oom"]["blocks"], [])
        # What rounding refuses is not put down to the system.
        p = self.refused(6, "run", LENET, "--naive", "--allocator", "cpu_caching", "--limit", 380000,
                         says=["a block of allocator 'cpu_caching' takes 32768 B", "not known: there is room, but rounding"])
        self.refused(6, "compare", LENET, "--limit", "100KiB", says=["out of memory on cpu", "fc1.w"])

    def test_sizes_that_no_number_holds(self):
        """A budget is printed as JSON's integer: what does not fit one is refused, not shown as something negative."""
        most = (1 << 63) - 1
        self.assertEqual(self.json("run", LENET, "-n", 1, "--limit", most)["limit_bytes"], most)
        for command, option in (("run", "--limit"), ("compare", "--limit"), ("plan", "--budget")):
            for size in (most + 1, (1 << 64) - 1, 1 << 64, "99999999999GiB", "-1", "", "much"):
                self.refused(2, command, LENET, option, size, says=[option])
        self.refused(2, "run", LENET, "--limit", 0, says=["at least 1 byte"])

    def test_every_named_allocator_runs(self):
        """LT-20: what serves the memory is one option; the program is the same and holds the same."""
        plain = self.json("run", LENET, "-n", 2)
        for row in self.json("allocators")["named"]:
            doc = self.json("run", LENET, "-n", 2, "--leak-check", "--allocator", row["name"])
            for kind, other in zip(doc["kinds"], plain["kinds"]):
                self.assertEqual(kind["peak_bytes"], other["peak_bytes"], row["name"])
                self.assertGreaterEqual(kind["reserved_peak_bytes"], kind["peak_bytes"])
            self.assertEqual(doc["leaks"], [])
        self.refused(6, "run", LENET, "--allocator", "stream_caching", "--limit", "100KiB", says=["largest free block"])

    def test_recorded_frees_of_a_stream_aware_allocator(self):
        """Frees that the allocator completes itself: the trace holds each block once, and every one is complete."""
        self.json("run", LENET, "-n", 2, "--naive", "--allocator", "stream_caching", "-o", self.dir / "t.db")
        db = sqlite3.connect(self.dir / "t.db")
        n = dict(db.execute("SELECT op, count(*) FROM events GROUP BY op").fetchall())
        self.assertEqual(n["alloc"], n["free_requested"])
        self.assertEqual(n["alloc"], n["free_completed"])
        self.assertGreater(n["segment_alloc"], 0)
        self.assertEqual(db.execute("SELECT count(*) FROM leaks").fetchone(), (0,))
        self.assertEqual(db.execute("SELECT count(*) FROM block").fetchone(), (n["alloc"],))
        rows = db.execute("SELECT difference_bytes FROM predicted_vs_measured").fetchall()
        db.close()
        self.assertEqual(set(rows), {(0,)})

    def test_each_setting_changes_what_it_names_S27_29(self):
        """Device, planning, alignment, sizes that change, profiling, fusion, a limit: each alone, against the defaults."""
        def workspace(doc):
            return next(k for k in doc["kinds"] if k["kind"] == "Workspace")
        run = self.json("run", LENET, "-n", 2)
        self.assertEqual((run["mode"], run["trace"], run["limit_bytes"]), ("planned", None, None))
        self.assertEqual(workspace(run)["allocations"], 1, "one buffer")
        naive = self.json("run", LENET, "-n", 2, "--naive")
        self.assertEqual(naive["mode"], "naive")
        self.assertGreater(workspace(naive)["allocations"], 10)
        self.refused(3, "run", LENET, "--device", "cuda:9", says=["cuda:9"])
        plan = self.json("plan", LENET)
        self.assertEqual({t["align_bytes"] for t in plan["tensors"]}, {256})
        for align in (64, 4096):
            other = self.json("plan", LENET, "--align", align)
            self.assertEqual({t["align_bytes"] for t in other["tensors"]}, {align})
            places = [p["offset"] for t in other["tensors"] for p in t["places"] if p["offset"] is not None]
            self.assertEqual([p % align for p in places], [0] * len(places))
        self.assertLess(plan["n_steps"], self.json("plan", LENET, "--no-fuse")["n_steps"])
        self.assertIsNone(self.json("run", DYNAMIC, "--shape", "x=4x64", "-n", 1).get("sizes"))
        sizes = self.ok("run", DYNAMIC, "--profile", "x=1x64:4x64:16x64", "-n", 1).stdout
        for size in ("1x64", "4x64", "16x64"):
            self.assertIn(size, sizes)
        profiled = self.json("run", LENET, "-n", 2, "-o", self.dir / "t.db")
        self.assertEqual(profiled["trace"], str(self.dir / "t.db"))
        self.assertGreater(tidemark.ask(self.dir / "t.db", "SELECT count(*) FROM events")[0][0], 10)
        self.assertEqual(self.json("run", LENET, "-n", 1, "--limit", "1MiB")["limit_bytes"], 1 << 20)
        self.refused(6, "run", LENET, "-n", 1, "--limit", "100KiB", says=["out of memory"])

    def test_verify_compares_what_every_step_makes(self):
        text = self.ok("compare", "--verify", "-n", 1, LENET).stdout
        self.assertIn("tensors naive = planned: bit for bit, 9 made by 9 steps\n", text)
        self.assertEqual(self.json("compare", "--verify", "-n", 1, LENET)["tensors"],
                         {"compared": 9, "bitwise_equal": True, "first": None})
        self.assertIsNone(self.json("compare", "-n", 1, LENET)["tensors"])
        self.refused(2, "compare", "--verify", LENET, "-o", self.dir / "t.db", says=["--verify", "-o"])
        self.assertFalse((self.dir / "t.db").exists())

    def test_compare_prints_predicted_and_measured(self):
        """X-7: for people too: predicted, measured and difference of each kind, in both modes, and the difference is 0."""
        text = self.ok("compare", LENET).stdout
        self.assertEqual(len(re.findall(r"(?m)^ +kind +predicted +measured +difference", text)), 2)
        for kinds in (self.json("compare", LENET)[k] for k in ("naive_kinds", "kinds")):
            self.assertGreaterEqual(len(kinds), 3)
            for k in kinds:
                self.assertEqual(k["predicted_bytes"], k["measured_bytes"])
                self.assertRegex(text, rf"(?m)^ +{k['kind']} +{k['predicted_bytes']} +{k['measured_bytes']} +\+0 ")

    def test_tables(self):
        """LT-17, PT-15, LT-27, X-3: the allocator table, who can be named, and what alignment holds for what."""
        doc = self.json("allocators")
        kinds = ["Default", "Persistent", "Workspace", "KVCache", "HostPinned", "HostPageable"]
        cpu = {r["kind"]: r for r in doc["allocators"] if r["device"] == "cpu"}
        self.assertEqual(list(cpu)[: len(kinds)], kinds)  # a build may have more (docs/extending.md)
        table = self.ok("allocators").stdout
        for kind, row in cpu.items():
            self.assertRegex(table, rf"(?m)^cpu +{kind} +{row['allocator']} ")
        keys = [(r["device"], r["kind"]) for r in doc["allocators"]]
        self.assertEqual(len(keys), len(set(keys)))  # the key is (device, kind)
        for row in doc["allocators"] + doc["named"]:
            for key in ("what", "min_align_bytes", "max_bytes", "keeps_freed", "stream_aware", "page_locked"):
                self.assertIn(key, row)
        for row in doc["allocators"]:
            for key in ("requested_bytes", "active_bytes", "cached_bytes", "reserved_bytes", "largest_free_bytes"):
                self.assertIn(key, row)
        named = {r["name"]: r for r in doc["named"]}
        self.assertTrue({"cpu", "cpu_caching", "stream_caching", "pinned"} <= set(named))
        self.assertTrue(named["cpu_caching"]["keeps_freed"] and not named["cpu"]["keeps_freed"])
        self.assertTrue(named["stream_caching"]["stream_aware"] and not named["cpu_caching"]["stream_aware"])
        self.assertEqual(named["cpu:align=256"]["min_align_bytes"], 256)
        self.assertFalse(named["pinned"]["page_locked"])  # the CPU device has no page-locked memory to give
        rules = {(r["kind"], r["device"]): r["align_bytes"] for r in doc["alignment"]}
        self.assertEqual((rules["Workspace", "cpu"], rules["HostPageable", "cpu"]), (256, 64))
        self.assertNotIn(("HostPinned", "cuda:0"), rules)
        text = self.ok("allocators").stdout
        for word in [*named, *(kind for kind, _ in rules), *(r["what"] for r in doc["named"])]:
            self.assertIn(word, text)
        self.assertEqual(self.json("devices")["devices"][0], {
            "device": "cpu", "available": True, "reason": None, "name": None, "driver": None, "total_bytes": None,
            "map_step_bytes": None, "pool": None})
        self.assertIn("HostPinned", self.ok("allocators").stdout)

    def test_cuda_is_refused_not_replaced(self):
        """S27-4: a device the build lacks is refused."""
        self.refused(3, "run", LENET, "--device", "cuda:0", says=["cuda"])


class Odd(Case):
    """Legal but unusual use."""

    def test_standard_input(self):
        text = LENET.read_text()
        self.assertIn("lenet5", self.ok("tui", "-", "--once", "--size", "80x24", stdin=text).stdout)
        self.ok("report", "-", "-o", self.dir / "r.html", stdin=text)
        self.ok("check", LENET, "--baseline", "-", stdin=self.ok("plan", LENET, "-o", "-").stdout)

    def test_input_is_never_replaced(self):
        path = self.dir / "g.json"
        path.write_text(LENET.read_text())
        for command in ("plan", "run", "compare"):
            self.refused(2, command, path, "-o", path, says=["replace"])
            self.assertEqual(path.read_text(), LENET.read_text())
        for command in ("run", "compare"):
            self.refused(2, command, path, "-o", path, "--force", says=["replaced"])
        self.assertEqual(path.read_text(), LENET.read_text())

    def test_plan_file_can_be_planned_anew(self):
        path = self.dir / "p.json"
        self.ok("plan", LENET, "-o", path)
        anew, direct = self.json("plan", "--all", path), self.json("plan", "--all", LENET)
        self.assertEqual([p["bytes"] for p in anew["plans"]], [p["bytes"] for p in direct["plans"]])

    def test_lost_output_is_told(self):
        with open("/dev/full", "w") as full:
            for args in (["plan", "--all", LENET], ["plan", "--json", SAMPLES / "resnet50.json"], ["--version"]):
                p = subprocess.run([tidemark.PROGRAM, *map(str, args)], stdout=full, stderr=subprocess.PIPE, text=True)
                self.assertEqual(p.returncode, 8, args)
                self.assertIn("standard output", p.stderr)

    def test_file_size_limit_leaves_nothing(self):
        p = subprocess.run(["sh", "-c", f'ulimit -f 1; exec "$0" run "$1" -o "{self.dir}/t.db"', tidemark.PROGRAM,
                            str(LENET)], capture_output=True, text=True)
        self.assertEqual(p.returncode, 8, p.stderr)
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_names_with_control_characters(self):
        doc = json.loads((SAMPLES / "diamond.json").read_text())
        doc["name"] = "red\x1b[31m\nline"
        doc["nodes"][0]["op"] = "No\x1b]0;such\x07"
        path = self.dir / "g.json"
        path.write_text(json.dumps(doc))
        p = self.refused(3, "plan", path, says=["No"])
        self.assertNotIn("\x1b", p.stderr)
        doc["nodes"][0]["op"] = "Relu"
        path.write_text(json.dumps(doc))
        for args in (["plan"], ["compare"], ["run"], ["plan", "--all"], ["plan", "--dump-stage", "liveness"],
                     ["tui", "--once"]):
            self.assertNotIn("\x1b", self.ok(*args, path).stdout, args)
        self.assertEqual(self.json("compare", path)["model"], "red\x1b[31m\nline")

    def test_a_csv_without_its_columns_is_no_onnx_model(self):
        path = self.dir / "a.csv"
        path.write_text("id,lower,upper\na,1,2\n")
        self.refused(3, "plan", path, says=["size", "a.csv:1"])


class Files(Case):
    def setUp(self):
        super().setUp()
        self.trace = self.dir / "lenet.db"
        self.compare = self.json("compare", LENET, "-n", 2, "-o", self.trace)

    def test_trace_opens_in_sqlite(self):
        """S28-19: the trace shows buffer and runs; plain SQL finds what the program printed."""
        db = sqlite3.connect(self.trace)
        self.assertEqual(db.execute("PRAGMA integrity_check").fetchone(), ("ok",))
        runs = db.execute("SELECT mode FROM run ORDER BY id").fetchall()
        self.assertEqual(runs, [("naive",), ("planned",)])
        want = next(k for k in self.compare["kinds"] if k["kind"] == "Workspace")["measured_bytes"]
        got = db.execute("SELECT max(requested_bytes) FROM event WHERE run_id = 2 AND kind = 2 AND op = 1").fetchone()[0]
        self.assertEqual(got, want)
        db.close()
        self.assertEqual([p.name for p in self.dir.iterdir()], ["lenet.db"])

    def test_report_files(self):
        for ending in ("html", "csv", "json"):
            out = self.dir / f"r.{ending}"
            self.ok("report", self.trace, "-o", out)
            first = out.read_bytes()
            self.ok("report", self.trace, "-o", out)
            self.assertEqual(first, out.read_bytes(), f"{ending} is not byte-stable")
        rows = list(csv.DictReader((self.dir / "r.csv").read_text().splitlines()))
        self.assertGreater(len(rows), 5)
        self.assertEqual(json.loads((self.dir / "r.json").read_text())["schema"], "tidemark.report")
        page = (self.dir / "r.html").read_text()
        self.assertIn("<svg", page)
        self.assertIn("lenet5", page)
        self.refused(2, "report", self.trace, "-o", self.dir / "r.docx", says=[".html"])
        self.refused(8, "report", self.trace, "-o", self.dir / "no" / "folder.html", says=["folder.html"])

    def test_frame_of_every_input(self):
        for file in (self.trace, LENET):
            frame = self.ok("tui", file, "--once", "--size", "100x30").stdout
            lines = frame.splitlines()
            self.assertEqual(len(lines), 30)
            self.assertIn("lenet5", frame)
        self.ok("tui", self.trace, "--once", "--run", 1)
        self.refused(3, "tui", self.trace, "--once", "--run", 9, says=["9"])


if __name__ == "__main__":
    tidemark.main()
