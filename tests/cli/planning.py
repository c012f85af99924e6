# SPDX-License-Identifier: MIT
"""Planning from the command line: passes, limits, will it fit and what would make it fit, profiles, export."""
import csv
import json
import os
import random
import re
import unittest

import scratch
import tidemark
from tidemark import SAMPLES, SHARED, SOURCE, Case, ask, run

LENET = SAMPLES / "lenet5.json"
SQUEEZENET = SAMPLES / "squeezenet1_1.json"
DYNAMIC = SAMPLES / "dynamic_batch.json"
# The kernels of these two models have little scratch: their plans are the same on every processor.
ENCODER = SAMPLES / "transformer_encoder.json"
DECODER = SAMPLES / "decoder_step.json"
MINIMALLOC = SHARED / "data" / "minimalloc"
KIB = 1024


def plan_of(doc):
    return doc["plans"][0]


FAST = ("--strategy", "greedy_by_size")


class Text(Case):
    def test_the_verdict_comes_first(self):
        """A large model: what was found and the ten that matter are on the first screen; --full has every tensor."""
        doc = self.json("plan", SAMPLES / "resnet50.json", *FAST, "-v")
        lines = self.ok("plan", SAMPLES / "resnet50.json", *FAST).stdout.splitlines()
        self.assertLess(len(lines), 40)
        saved = next(k for k, line in enumerate(lines) if line.startswith("Memory Saving: "))
        peak = next(k for k, line in enumerate(lines) if line.startswith("Peak of Workspace on cpu: "))
        self.assertLess(saved, 12)
        self.assertLess(saved, peak)
        listed = [entry["tensor"] for entry in doc["peak"]][:10]
        self.assertEqual([line.split()[0] for line in lines[peak + 2:peak + 2 + len(listed)]], listed)
        self.assertIn(f"--full lists all {len(doc['tensors'])} tensors", lines)
        full = self.ok("plan", SAMPLES / "resnet50.json", *FAST, "--full").stdout
        for tensor in doc["tensors"]:
            if not tensor["persistent"]:
                self.assertRegex(full, rf"(?m)^    - {re.escape(tensor['name'])}: offset ")
        fits = self.ok("plan", SAMPLES / "resnet50.json", *FAST, "--budget", "1GiB").stdout.splitlines()
        self.assertLess(next(k for k, line in enumerate(fits) if line.startswith("fits: yes")), 15)

    def test_no_more_than_ten_are_listed(self):
        path = self.dir / "wide.csv"
        path.write_text("id,lower,upper,size\n" + "".join(f"t{k},0,1,{k + 1}\n" for k in range(30)))
        text = self.ok("plan", path).stdout
        self.assertEqual(re.findall(r"(?m)^(t\d+) ", text), [f"t{k}" for k in range(29, 19, -1)])
        self.assertIn("and 20 more of 210 B together", text)
        self.assertEqual(len(re.findall(r"(?m)^    - t\d+:", self.ok("plan", path, "--full").stdout)), 30)

    def test_sizes_are_kib(self):
        for args in ([], ["--full"], ["--strategy", "greedy_color"], ["--full", "--strategy", "greedy_color"]):
            text = self.ok("plan", LENET, *args).stdout
            self.assertIn(" KiB", text)
            self.assertNotRegex(text, r"\bKB\b")


class Extents(Case):
    def test_an_extent_by_its_name(self):
        """As `check` and `sweep` have it: the same plan as with the shape written out, of every command that plans."""
        want = self.json("plan", DYNAMIC, "--shape", self.shape(8))
        self.assertEqual(plan_of(self.json("plan", DYNAMIC, "--extent", "batch=8"))["bytes"], plan_of(want)["bytes"])
        self.ok("run", DYNAMIC, "-n", 1, "--extent", "batch=8")
        self.ok("compare", DYNAMIC, "-n", 1, "--extent", "batch=8")
        self.ok("tui", DYNAMIC, "--once", "--no-state", "--extent", "batch=8")
        self.ok("report", DYNAMIC, "-o", self.dir / "r.json", "--extent", "batch=8")
        self.assertIn("id,", self.ok("export", DYNAMIC, "--to", "csv", "--extent", "batch=8").stdout)
        self.ok("diff", DYNAMIC, DYNAMIC, "--extent", "batch=8")
        self.ok("check", DYNAMIC, "--no-baseline", "--no-summary", "--extent", "batch=8")

    def shape(self, batch):
        one = json.loads(DYNAMIC.read_text())["inputs"][0]
        return f"{one['name']}=" + "x".join(str(batch if d == "batch" else d) for d in one["shape"])

    def test_what_is_wrong_with_one(self):
        self.refused(3, "plan", DYNAMIC, "--extent", "batc=8", says=["batc", "did you mean 'batch'"])
        self.refused(3, "plan", DYNAMIC, "--extent", "batch=8", "--extent", "batch=9", says=["twice"])
        self.refused(3, "plan", DYNAMIC, "--extent", "batch=8", "--shape", self.shape(9), says=["contradicts"])
        self.refused(2, "plan", DYNAMIC, "--extent", "batch", says=["--extent"])
        self.refused(2, "plan", DYNAMIC, "--extent", "batch=-1", says=["--extent"])
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\na,0,1,64\n")
        self.refused(3, "plan", path, "--extent", "N=8", says=["--extent", "l.csv"])


def long_graph(n):
    """A chain that often keeps a result for a reader far behind."""
    draw, kept, nodes = random.Random(3), [], []
    for i in range(n):
        node = {"op": "Sigmoid", "name": f"n{i}", "inputs": [f"v{i - 1}" if i else "x"], "outputs": [f"v{i}"]}
        if kept and draw.random() < 0.3:
            node["op"] = "Add"
            node["inputs"].append(kept.pop(draw.randrange(len(kept))))
        elif draw.random() < 0.35:
            kept.append(f"v{i}")
        nodes.append(node)
    return {"schema": "tidemark.graph", "version": 1, "name": "long", "opset": 13, "initializers": [], "nodes": nodes,
            "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 256]}], "outputs": [f"v{n - 1}"]}


class KernelThreads(Case):
    """Threads of the kernels: their scratch is in the plan, so that they belong to what a plan is of."""

    def setUp(self):
        super().setUp()
        self.plan, self.env = self.dir / "p.json", {"OMP_NUM_THREADS": None}

    def bytes(self, *args, env=None):
        """The sum of all scratch. Whether scratch also grows at the peak depends on the processor."""
        doc = self.json("plan", SQUEEZENET, *FAST, *args, env=env or self.env)
        return sum(t["size_bytes"] for t in doc["tensors"] if t["name"].endswith(".scratch"))

    def test_scratch_grows_with_them(self):
        one, two = self.bytes(), self.bytes("--intra-threads", 2)
        self.assertGreater(two, one)
        self.assertEqual(self.bytes("--intra-threads", 1), one)
        self.assertEqual(self.bytes(env={"OMP_NUM_THREADS": "2"}), two)
        self.assertEqual(self.bytes("--intra-threads", 1, env={"OMP_NUM_THREADS": "2"}), one)  # what is typed wins
        doc = self.json("compare", SQUEEZENET, "-n", 1, "--intra-threads", 2, env=self.env)
        self.assertTrue(all(kind["predicted_bytes"] == kind["measured_bytes"] for kind in doc["kinds"]), doc["kinds"])

    def test_a_plan_file_says_for_how_many_it_is(self):
        self.ok("plan", SQUEEZENET, *FAST, "-o", self.plan, "--intra-threads", 2, env=self.env)
        self.assertEqual(json.loads(self.plan.read_text())["kernel_threads"], 2)
        self.ok("run", SQUEEZENET, "-n", 1, "--plan", self.plan, "--intra-threads", 2, env=self.env)
        self.refused(4, "run", SQUEEZENET, "-n", 1, "--plan", self.plan, env=self.env,
                     says=["kernels of 2 threads", "--intra-threads 2"])
        doc = json.loads(self.ok("plan", SQUEEZENET, *FAST, "-o", "-", env=self.env).stdout)
        self.assertEqual(doc.pop("kernel_threads"), 1)
        self.plan.write_text(json.dumps(doc))  # as an older version wrote it
        self.ok("run", SQUEEZENET, "-n", 1, "--plan", self.plan, env=self.env)
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\na,0,1,64\n")
        self.assertNotIn("kernel_threads", self.json("plan", path))  # a list has no kernels

    def test_trace_and_gate_say_it(self):
        trace, case = self.dir / "t.db", self.dir / "c.json"
        self.ok("run", LENET, "-n", 1, "-o", trace, "--intra-threads", 2, env=self.env)
        self.assertEqual(tidemark.ask(trace, "SELECT value FROM meta WHERE key = 'kernel_threads'"), [("2",)])
        self.refused(4, "run", LENET, "-n", 1, "--plan", trace, env=self.env, says=["kernels of 2 threads"])
        (self.dir / "tidemark.toml").write_text(f'version = 1\nbaseline = "b.json"\n[[model]]\npath = "{LENET.absolute()}"\n')
        self.ok("check", "--update-baseline", "--reason", "first", "--intra-threads", 2, cwd=self.dir,
                env=self.env)
        self.assertRegex((self.dir / "b.json").read_text(), r'"threads": "2"')

    def test_what_is_no_number_of_threads(self):
        for n in (0, -1, 1025, "many", ""):
            self.refused(2, "plan", LENET, "--intra-threads", n, says=["--intra-threads"])


class Passes(Case):
    def test_every_pass_can_be_switched_off(self):
        """What the passes gained is in the report, text and JSON; each alone, and all of them, can be left out."""
        doc = self.json("plan", ENCODER)
        gains = {g["pass"]: g for g in doc["passes"]}
        self.assertEqual(list(gains), ["views", "slices", "in-place", "parts", "order", "recompute"])
        text = self.ok("plan", ENCODER).stdout
        self.assertIn("Passes: lower bound", text)
        for name in ("views", "slices", "in-place", "parts", "order"):
            self.assertTrue(gains[name]["ran"], name)
            self.assertGreaterEqual(gains[name]["before_bytes"], gains[name]["after_bytes"])
            self.assertRegex(text, rf"(?m)^{name} ")
            off = self.json("plan", ENCODER, f"--no-{name}")
            self.assertFalse(next(g for g in off["passes"] if g["pass"] == name)["ran"])
            self.assertGreaterEqual(plan_of(off)["lower_bound_bytes"], plan_of(doc)["lower_bound_bytes"])
        self.assertGreater(gains["in-place"]["n"] + gains["parts"]["n"], 0)
        bare = self.json("plan", ENCODER, "--no-passes")
        self.assertFalse(any(g["ran"] for g in bare["passes"]))
        self.assertFalse(any("alias" in t for t in bare["tensors"]))
        self.assertTrue(any("alias" in t for t in doc["tensors"]))
        self.assertEqual(plan_of(bare)["lower_bound_bytes"], doc["given_lower_bound_bytes"])
        self.assertLess(plan_of(doc)["lower_bound_bytes"], plan_of(bare)["lower_bound_bytes"])

    def test_passes_are_options_of_every_command_that_plans(self):
        off = ["--no-passes", "--no-views", "--no-slices", "--no-in-place", "--no-parts", "--no-order"]
        self.ok("run", LENET, "-n", 1, *off)
        self.ok("compare", LENET, "-n", 1, "--no-passes")
        self.ok("tui", LENET, "--once", "--no-order")
        self.ok("report", LENET, "-o", self.dir / "r.html", "--no-in-place")
        base = self.dir / "b.json"
        self.ok("plan", ENCODER, "-o", base)
        self.ok("check", ENCODER, "--baseline", base)
        worse = self.ok("check", ENCODER, "--baseline", base, "--no-passes", code=1).stdout
        self.assertIn("before they lay in others (in-place), among them widen_bias.out", worse)
        self.assertNotIn("(new)", worse)  # the same tensors, at places of their own
        inception = SAMPLES / "inception_block.json"
        self.ok("plan", inception, "-o", base)
        moved = self.ok("check", inception, "--baseline", base, "--no-order", code=1).stdout
        if scratch.why_other() is None:  # with other scratch, fewer operators move, and each is named
            self.assertIn("operators run at another place", moved)
        else:
            print(scratch.why_other())
        self.refused(2, "plan", LENET, "--allow-recompute", "much", says=["--allow-recompute"])
        self.refused(2, "plan", LENET, "--allow-recompute", "-5%", says=["--allow-recompute"])
        self.refused(2, "plan", LENET, "--no-recompute")

    def test_recompute_and_order_go_through_a_plan_file(self):
        """A plan names its steps in its own order; the program that runs it follows, node by node."""
        for graph in (SAMPLES / "inception_block.json", SAMPLES / "unet.json", SAMPLES / "densenet_block.json",
                      SAMPLES / "long_skip.json"):
            with self.subTest(graph=graph.name):
                path = self.dir / "p.json"
                self.ok("plan", graph, "--allow-recompute", "50%", "-o", path)
                doc = json.loads(path.read_text())
                for name in doc.get("recomputed", []):
                    self.assertIn(f"{name}.again", doc["order"])
                run = self.json("run", graph, "--plan", path, "-n", 2, "--leak-check")
                work = next(k for k in run["kinds"] if k["kind"] == "Workspace")
                self.assertEqual(work["peak_bytes"], plan_of(doc)["bytes"])
                self.ok("compare", graph, "--allow-recompute", "50%")


    def test_saving_is_against_the_model_as_given(self):
        """Second runs make tensors of their own: they are not what the model would take without a plan."""
        for graph in ("decoder_step",):
            given = plan_of(self.json("plan", SAMPLES / f"{graph}.json"))["naive_bytes"]
            path, page = self.dir / "p.json", self.dir / "r.json"
            self.ok("plan", SAMPLES / f"{graph}.json", "--allow-recompute", "50%", "-o", path)
            doc = json.loads(path.read_text())
            self.assertGreater(len(doc["recomputed"]), 0)
            self.assertGreater(plan_of(doc)["naive_bytes"], given)
            saving = 1 - plan_of(doc)["bytes"] / given
            self.assertAlmostEqual(plan_of(doc)["saving"], saving, 5)
            self.assertIn(f"Memory Saving: {100 * saving:.2f}%", self.ok("plan", path).stdout)
            self.assertIn(f"Original Memory: {given / 1024:.2f} ", self.ok("plan", path).stdout)
            self.ok("report", path, "-o", page)
            self.assertIn(f'"naive_bytes": {given}', page.read_text())
            text = self.ok("compare", SAMPLES / f"{graph}.json", "--allow-recompute", "50%").stdout
            self.assertIn(f"saves {100 * saving:.2f} %", text)

    def test_recompute_says_what_it_used(self):
        """All of it, some, or nothing; and when its own limit of steps ended it, which no clock does."""
        text = self.ok("plan", DECODER, "--allow-recompute", "50%").stdout
        self.assertRegex(text, r"nodes run twice: 6, \+[0-9.]+% work of 50.00% allowed\n")
        text = self.ok("plan", LENET, "--allow-recompute", "50%").stdout
        self.assertIn("nothing lowers the peak: 50.00% of work allowed, none used\n", text)
        self.assertFalse(self.json("plan", LENET, "--allow-recompute", "50%")["recompute_is_cut"])
        # Many steps, of which many could be repeated: it ends at its limit, and says so.
        path = self.dir / "long.json"
        path.write_text(json.dumps(long_graph(12000)))
        plan = self.dir / "plan.json"
        text = self.ok("plan", path, "--allow-recompute", "20%", *FAST, "-o", plan).stdout
        self.assertIn("; its search ended at its limit of steps", text)
        self.assertTrue(json.loads(plan.read_text())["recompute_is_cut"])


class Limits(Case):
    def test_a_node_limit_gives_the_same_plan_each_time(self):
        args = ("plan", MINIMALLOC / "C.1048576.csv", "--node-limit", 20000, "--seed", 7)
        if not args[1].is_file():
            self.skipTest(f"{args[1]} is not here")
        places = []
        for threads in (1, 2):
            doc = self.json(*args, "--plan-threads", threads)
            places.append([t["places"] for t in doc["tensors"]])
        self.assertEqual(places[0], places[1])

    def test_capacity(self):
        """--capacity: yes with exit 0; no, proved, with 6; unknown with 7."""
        doc = plan_of(self.json("plan", LENET))
        yes = self.json("plan", LENET, "--capacity", doc["bytes"])
        self.assertEqual(yes["fits"], "yes")
        no = self.json("plan", LENET, "--capacity", doc["proved_bytes"] - 1, code=6)
        self.assertEqual(no["fits"], "no")
        self.assertNotIn("advice", no)
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\na,0,2,10\nb,1,3,10\nc,2,4,10\n")
        self.json("plan", path, "--strategy", "naive", "--capacity", 30)
        doc = self.json("plan", path, "--strategy", "naive", "--capacity", 20, code=7)
        self.assertEqual(doc["fits"], "unknown")  # naive has no plan of 20, and nothing says that there is none
        text = self.ok("plan", path, "--strategy", "naive", "--capacity", 20, code=7).stdout
        self.assertIn("fits: unknown (needs 30 B of 20 B, 10 B too much; nothing proves that no plan fits", text)
        self.json("plan", path, "--strategy", "greedy_by_size", "--capacity", 20)

    def test_values_of_options(self):
        for option, value in (("--time-limit", 0), ("--time-limit", "soon"), ("--node-limit", "-1"),
                              ("--plan-threads", 5000), ("--capacity", "lots"), ("--budget", "-3")):
            self.refused(2, "plan", LENET, option, value, says=[option])

    def test_strategies_that_cannot_serve_a_table_have_a_row_that_says_so(self):
        path = self.dir / "fixed.csv"
        path.write_text("id,lower,upper,size,offset\na,0,2,16,64\nb,1,3,32,\n")
        doc = self.json("plan", path, "--all")
        self.assertGreater(len(doc["plans"]), 0)
        refused = {r["strategy"]: r["why"] for r in doc["refused"]}
        self.assertIn("greedy_color", refused)
        self.assertFalse(set(refused) & {p["strategy"] for p in doc["plans"]})
        table = self.ok("plan", path, "--all").stdout
        for name, why in refused.items():
            self.assertRegex(table, rf"(?m)^{name} .*-.*{why[:20]}")
        a = next(t for t in doc["tensors"] if t["name"] == "a")
        self.assertEqual((a["fixed_offset"], {p["offset"] for p in a["places"]}), (64, {64}))
        self.refused(3, "plan", path, "--strategy", "greedy_color")


class Repeated(Case):
    def test_runs_again_S23_11(self):
        """S23-11, S23-4: the whole answer, steps in their order too, is the same in every run, byte for byte. (Of every
        strategy, and a hundred times: strategies_all.)"""
        answers = {re.sub(r'"time_ns": \d+', "", self.ok("plan", SAMPLES / "inception_block.json", "--json").stdout)
                   for _ in range(20)}
        self.assertEqual(len(answers), 1)

    def test_no_clock_decides(self):
        """With a clock that goes a hundred times faster, and with one thread or two, the plan file has the same bytes:
        hard problems, which no bound ends, small, large and too large for the tree."""
        if "TIDE_FAST_CLOCK" not in os.environ:
            self.skipTest("TIDE_FAST_CLOCK names no clock")
        fast = {"LD_PRELOAD": os.environ["TIDE_FAST_CLOCK"],
                "ASAN_OPTIONS": os.environ.get("ASAN_OPTIONS", "") + ":verify_asan_link_order=0"}
        for n in (1, 400, 3000, 9000):
            path, a, b = self.dir / f"{n}.csv", self.dir / "a.json", self.dir / "b.json"
            random_ = random.Random(n)
            with open(path, "w") as file:
                file.write("id,lower,upper,size\n")
                for i in range(n):
                    begin, length = random_.randrange(n), 1 + int(random_.expovariate(30 / n))
                    file.write(f"t{i},{begin},{begin + length},{int(2 ** random_.uniform(6, 20))}\n")
            self.ok("plan", path, "-o", a)
            self.ok("plan", path, "-o", b, "--plan-threads", 1, env=fast)
            self.assertEqual(a.read_bytes(), b.read_bytes(), f"{n} tensors")
            if n >= 3000:
                self.assertFalse(plan_of(json.loads(a.read_text()))["proven"], f"{n} tensors are too easy to tell")

    def test_shuffled_nodes_S23_11(self):
        """S23-11: nodes in any order of the file make the same plan, by every strategy, where one order alone can run.

        Where several can, the file's own decides among them (ties go to the lowest index), and so what is planned.
        """
        random_ = random.Random(23)
        for graph in ("long_skip", "early_output", "lenet5", "view_chain"):
            doc = json.loads((SAMPLES / f"{graph}.json").read_text())
            answers = []
            for _ in range(4):
                answer = self.json("plan", "-", "--all", "--node-limit", 3000, stdin=json.dumps(doc))
                for plan in answer["plans"]:
                    del plan["time_ns"]
                for tensor in answer["tensors"]:
                    del tensor["node"], tensor["value"]  # where they stand in the file
                answers.append((answer["order"], answer["plans"], sorted(answer["tensors"], key=lambda t: t["name"])))
                random_.shuffle(doc["nodes"])
            for other in answers[1:]:
                self.assertEqual(other, answers[0], graph)


class Budget(Case):
    def test_it_fits(self):
        doc = self.json("plan", LENET, "--budget", "64MiB")
        self.assertEqual(doc["fits"], "yes")
        self.assertNotIn("advice", doc)
        self.assertIn("fits: yes", self.ok("plan", LENET, "--budget", "64MiB").stdout)
        self.assertIn("peak", self.json("plan", LENET, "-v"))

    def needs(self, *args):
        """Bytes of everything: what is asked of a budget of nothing."""
        return self.json("plan", *args, "--budget", 1, code=6)["need_bytes"]

    def test_the_peak_and_what_to_change(self):
        """Exit 1; who is alive at the peak, adding up to it; changes with figures that a plan bears out."""
        need = self.needs(SQUEEZENET)
        doc = self.json("plan", SQUEEZENET, "--budget", need - 1, code=6)
        self.assertEqual(doc["fits"], "no")
        roots = [e for e in doc["peak"] if e["inside"] is None]
        self.assertEqual(sum(e["bytes"] for e in roots), plan_of(doc)["lower_bound_bytes"])
        self.assertAlmostEqual(sum(e["share"] for e in roots), 1, places=4)
        self.assertEqual([e["bytes"] for e in roots], sorted((e["bytes"] for e in roots), reverse=True))
        first = roots[0]
        self.assertIn(first["made_by"], doc["order"])
        self.assertIn(first["last_read_by"], doc["order"])
        self.assertTrue(doc["advice"])
        fits = [a["fits"] for a in doc["advice"]]
        self.assertEqual(fits, sorted(fits, reverse=True))
        self.assertTrue(fits[0])
        for row in doc["advice"]:
            self.assertEqual(row["saves_bytes"], need - row["need_bytes"])
            if row["fits"]:
                self.assertLessEqual(row["need_bytes"], need - 1)
        text = self.ok("plan", SQUEEZENET, "--budget", need - 1, code=6).stdout
        self.assertIn("last read by", text)
        for row in doc["advice"]:
            self.assertIn(row["change"], text)
        # Each option that is named does what is said of it.
        for row in doc["advice"]:
            if row["kind"] in ("align", "recompute"):
                self.assertEqual(self.needs(SQUEEZENET, *row["change"].split()), row["need_bytes"])

    def test_a_pass_that_was_off_is_the_smallest_change(self):
        on, off = self.needs(ENCODER), self.needs(ENCODER, "--no-in-place", "--no-parts")
        self.assertLess(on, off)
        rows = self.json("plan", ENCODER, "--no-in-place", "--budget", on, code=6)["advice"]
        self.assertEqual((rows[0]["kind"], rows[0]["fits"], rows[0]["need_bytes"]), ("pass", True, on))
        self.assertIn("in-place", rows[0]["change"])
        unfused = self.needs(SQUEEZENET, "--no-fuse", "--no-passes")
        rows = self.json("plan", SQUEEZENET, "--no-fuse", "--no-passes", "--budget", unfused - 1, code=6)["advice"]
        self.assertTrue(any(r["kind"] == "fuse" for r in rows) or any(r["kind"] == "pass" for r in rows))

    @unittest.skipIf(scratch.why_other(), scratch.why_other())
    def test_passes_that_help_together(self):
        """Several passes are off. Turning on one of them may not be enough; turning on all of them is."""
        graph = SAMPLES / "inception_block.json"
        all_on = self.needs(graph)
        off = ("--no-parts", "--no-order")
        self.assertLess(all_on, min(self.needs(graph, one) for one in off))
        for options in (off, ("--no-passes",)):
            rows = self.json("plan", graph, *options, "--budget", all_on, code=6)["advice"]
            self.assertEqual((rows[0]["kind"], rows[0]["change"], rows[0]["fits"], rows[0]["need_bytes"]),
                             ("passes", "turn all passes on", True, all_on))
        rows = self.json("plan", graph, "--no-parts", "--budget", all_on, code=6)["advice"]
        self.assertNotIn("passes", {r["kind"] for r in rows})

    def test_what_is_too_much(self):
        """Sizes that look alike when they are rounded: by how much it does not fit is said as well."""
        need = self.needs(SQUEEZENET)
        self.assertIn(", 1 B too much)", self.ok("plan", SQUEEZENET, "--budget", need - 1, code=6).stdout)
        self.assertNotIn("too much", self.ok("plan", SQUEEZENET, "--budget", need).stdout)

    def test_a_smaller_batch(self):
        shape = ("--shape", "x=64x64")
        need = self.needs(DYNAMIC, *shape)
        rows = self.json("plan", DYNAMIC, *shape, "--budget", need - 1, code=6)["advice"]
        half = next(r for r in rows if r["kind"] == "extents")
        self.assertEqual(half["change"], "--shape x=32x64")
        self.assertTrue(half["fits"])
        self.assertEqual(self.needs(DYNAMIC, "--shape", "x=32x64"), half["need_bytes"])

    def test_the_largest_batch_that_fits(self):
        """Each of its figures is a plan's: it fits, and one more does not."""
        need = self.needs(DYNAMIC, "--extent", "batch=4096")
        beside = self.needs(DYNAMIC, "--extent", "batch=1")
        budget = (need + beside) // 2
        doc = self.json("plan", DYNAMIC, "--extent", "batch=4096", "--budget", budget, code=6)
        row = next(r for r in doc["advice"] if r["kind"] == "batch")
        self.assertTrue(row["fits"])
        batch, shape = re.match(r"batch (\d+): (--shape x=\d+x64)$", row["change"]).groups()
        self.assertEqual(self.json("plan", DYNAMIC, *shape.split(), "--budget", budget)["fits"], "yes")
        self.assertEqual(self.needs(DYNAMIC, *shape.split()), row["need_bytes"])
        more = ("--extent", f"batch={int(batch) + 1}")
        self.assertGreater(self.needs(DYNAMIC, *more), budget)
        # Where not even one fits, that is what is said.
        doc = self.json("plan", DYNAMIC, "--extent", "batch=64", "--budget", 1000, code=6)
        row = next(r for r in doc["advice"] if r["kind"] == "batch")
        self.assertEqual((row["change"], row["fits"], row["need_bytes"]), ("batch 1: --shape x=1x64", False, beside))

    def test_fewer_threads(self):
        many = ("--intra-threads", 4)
        need, one = self.needs(SQUEEZENET, *many), self.needs(SQUEEZENET, "--intra-threads", 1)
        self.assertLess(one, need)
        rows = self.json("plan", SQUEEZENET, *many, "--budget", need - 1, code=6)["advice"]
        row = next(r for r in rows if r["kind"] == "threads")
        self.assertEqual((row["change"], row["need_bytes"], row["fits"]), ("--intra-threads 1", one, True))
        rows = self.json("plan", SQUEEZENET, "--intra-threads", 1, "--budget", one - 1, code=6)["advice"]
        self.assertNotIn("threads", {r["kind"] for r in rows})

    def test_the_largest_part(self):
        for path, budget, part in ((LENET, "10KiB", "the program"), (SAMPLES / "resnet50.json", "20MiB", "weights")):
            doc = self.json("plan", path, "--budget", budget, code=6)
            self.assertEqual(doc["largest_part"], part)
            self.assertIn(f"The largest part: {part}, ", self.ok("plan", path, "--budget", budget, code=6).stdout)

    def test_weights_alone_exceed_the_budget(self):
        doc = self.json("plan", LENET, "--budget", "10KiB", code=6)
        self.assertGreater(doc["persistent_bytes"], 10 * KIB)
        self.assertFalse(any(r["fits"] for r in doc["advice"]))
        self.assertIn("alone exceed the budget", self.ok("plan", LENET, "--budget", "10KiB", code=6).stdout)

    def test_a_bare_list(self):
        """Without a program the tensors alone can be changed; the smallest one that is enough comes first."""
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\nbig,0,4,100\nmid,1,3,40\nlow,1,2,10\nlate,3,4,5\n")
        doc = self.json("plan", path, "--budget", 145, code=6)
        self.assertEqual([e["tensor"] for e in doc["peak"]], ["big", "mid", "low"])
        best = doc["advice"][0]
        self.assertEqual((best["kind"], best["change"], best["need_bytes"]), ("half", "'low' at half its size (16-bit)", 145))
        gone = next(r for r in doc["advice"] if r["kind"] == "gone")
        self.assertEqual((gone["change"], gone["need_bytes"], gone["fits"]), ("without 'low'", 140, True))
        self.assertEqual({r["kind"] for r in doc["advice"]}, {"half", "gone"})

    def test_a_bound_that_leaves_room(self):
        """Unknown: the plan at hand does not fit, but nothing proves that none does."""
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\na,0,2,10\nb,1,3,10\nc,2,4,10\n")
        doc = self.json("plan", path, "--strategy", "naive", "--budget", 20, code=7)
        self.assertEqual(doc["fits"], "unknown")
        self.assertTrue(any(r["kind"] == "search" and not r["fits"] for r in doc["advice"]))


class Profiles(Case):
    def test_one_plan_for_all_points_S27_23(self):
        """S27-23: planned for the maximum; the exact need of each point beside it."""
        doc = self.json("plan", DYNAMIC, "--profile", "x=1x64:4x64:16x64")
        self.assertEqual(doc["points"], ["x=1x64", "x=4x64", "x=16x64"])
        alone = {}
        for need, batch in zip(doc["point_needs"], (1, 4, 16)):
            alone[batch] = plan_of(self.json("plan", DYNAMIC, "--shape", f"x={batch}x64"))
            self.assertEqual(need["point"], f"x={batch}x64")
            self.assertEqual(need["lower_bound_bytes"], alone[batch]["lower_bound_bytes"])
            self.assertEqual(need["bytes"], alone[batch]["bytes"])
        self.assertEqual(plan_of(doc)["bytes"], alone[16]["bytes"])
        self.assertLess(alone[1]["bytes"], alone[16]["bytes"])
        for tensor in doc["tensors"]:
            self.assertEqual(tensor["size_bytes"], max(tensor["point_bytes"]))
        x = next(t for t in doc["tensors"] if t["name"] == "x")
        self.assertEqual(x["point_bytes"], [256, 1024, 4096])
        text = self.ok("plan", DYNAMIC, "--profile", "x=1x64,16x64").stdout
        self.assertRegex(text, r"x=1x64: lower bound .*, planned .*, in the one plan ")
        table = self.ok("plan", DYNAMIC, "--profile", "x=1x64,16x64", "--all").stdout
        self.assertEqual(table[table.index("Profile points"):], text[text.index("Profile points"):])  # the best of all
        # The order of the points changes nothing but their order.
        other = self.json("plan", DYNAMIC, "--profile", "x=16x64,1x64,4x64")
        self.assertEqual(plan_of(other)["bytes"], plan_of(doc)["bytes"])

    def test_one_size_after_the_other_S27_24(self):
        """run --profile: all in the buffer of the plan, nothing is allocated once each size has come."""
        trace = self.dir / "sizes.db"
        profile = ("--profile", "x=1x64:4x64:16x64")
        doc = self.json("run", DYNAMIC, *profile, "-n", 4, "-o", trace, "--fill", "poison", "--leak-check")
        self.assertEqual([(s["size"], s["runs"]) for s in doc["sizes"]], [(f"x={n}x64", 4) for n in (1, 4, 16)])
        self.assertEqual((doc["programs_built"], doc["size_changes"], doc["warm_allocations"]), (3, 12, 0))
        self.assertEqual(doc["leaks"], [])
        kinds = {k["kind"]: k for k in doc["kinds"]}
        plan = plan_of(self.json("plan", DYNAMIC, *profile))
        self.assertEqual((kinds["Workspace"]["peak_bytes"], kinds["Workspace"]["allocations"]), (plan["bytes"], 1))
        self.assertEqual({d for d, in ask(trace, "SELECT difference_bytes FROM predicted_vs_measured")}, {0})
        self.assertEqual(ask(trace, "SELECT count(*) FROM executions"), [(12,)])
        # Weights are there once, whatever the number of sizes.
        one = {k["kind"]: k for k in self.json("run", DYNAMIC, "--shape", "x=16x64", "-n", 1)["kinds"]}
        self.assertEqual(kinds["Persistent"]["peak_bytes"], one["Persistent"]["peak_bytes"])
        for more in (["--naive"], ["--contexts", "2"], ["--plan", trace], ["--decode", "2"]):
            self.refused(2, "run", DYNAMIC, *profile, *more, says=["--profile plans and runs in one context"])
        self.refused(3, "run", SAMPLES / "lenet5.json", "--profile", "input=1x1x28x28,1x1x14x14")
        self.assertIn("all in one buffer", self.ok("run", DYNAMIC, *profile, "-n", 1).stdout)

    def test_every_size_runs_on_the_one_plan_S27_23(self):
        """S27-23: points and what lies between them run on it without a new allocation. Views, what is overwritten and
        the first part of a Concat lie inside others at every size; the second part's offset is another at each."""
        doc = {"schema": "tidemark.graph", "version": 1, "name": "g", "opset": 13,
               "inputs": [{"name": "x", "dtype": "float32", "shape": ["n", 16]}], "outputs": ["y", "z"],
               "initializers": [{"name": "flat", "dtype": "int64", "shape": [2], "values": [-1, 8]}] +
               [{"name": f"k{i}", "dtype": "int64", "shape": [1], "values": [i]} for i in range(3)],
               "nodes": [{"op": op, "name": out, "inputs": inputs, "outputs": [out], **({"attrs": attrs} if attrs else {})}
                         for op, inputs, out, attrs in (
                             ("Tanh", ["x"], "a", None), ("Reshape", ["a", "flat"], "r", None),
                             ("Tanh", ["r"], "b", None), ("Sigmoid", ["b"], "c", None),
                             ("Concat", ["b", "c"], "d", {"axis": 0}), ("Relu", ["d"], "e", None),
                             ("Neg", ["e"], "y", None), ("Slice", ["a", "k1", "k2", "k0"], "row", None),
                             ("Tanh", ["row"], "z", None))]}
        graph, path = self.dir / "g.json", self.dir / "p.json"
        graph.write_text(json.dumps(doc))
        self.ok("plan", graph, "--profile", "x=4x16,8x16,32x16", "-o", path)
        kinds = {t["name"]: t.get("alias", {}).get("kind") for t in json.loads(path.read_text())["tensors"]}
        self.assertEqual([kinds[name] for name in ("r", "b", "row", "e", "c")],
                         ["view", "in-place", "slice", "in-place", None])
        planned = plan_of(json.loads(path.read_text()))["bytes"]
        for n in list(range(2, 12)) + [20, 31, 32]:
            self.assertLessEqual(plan_of(self.json("plan", graph, "--shape", f"x={n}x16"))["bytes"], planned)
            run_doc = self.json("run", graph, "--plan", path, "--shape", f"x={n}x16", "--fill", "poison", "-n", 2)
            self.assertEqual(run_doc["warm_allocations"], 0)

    def test_a_profile_goes_through_files(self):
        path, again = self.dir / "p.json", self.dir / "l.json"
        self.ok("plan", DYNAMIC, "--profile", "x=1x64,16x64", "-o", path)
        self.ok("export", path, "--to", "json", "-o", again)
        one, two = json.loads(path.read_text()), json.loads(again.read_text())
        self.assertEqual(one["points"], two["points"])
        self.assertEqual([t["point_bytes"] for t in one["tensors"]], [t["point_bytes"] for t in two["tensors"]])
        self.assertEqual(plan_of(self.json("plan", again))["bytes"], plan_of(one)["bytes"])

    def test_bad_profiles(self):
        for value in ("x", "=1x64:2x64", "x=1x64", "x=1x64:2x64:3x64:4x64", "x=1x64:axb", "x=1x64,", "x="):
            self.refused(2, "plan", DYNAMIC, "--profile", value, says=["--profile"])
        self.refused(2, "plan", DYNAMIC, "--profile", "x=1x64,2x64", "--profile", "y=1,2,3", says=["3 sizes"])
        self.refused(2, "plan", DYNAMIC, "--profile", "x=1x64,2x64", "--profile", "x=1x64,2x64", says=["twice"])
        self.refused(3, "plan", DYNAMIC, "--profile", "nobody=1x64,2x64", says=["nobody", "profile point"])
        self.refused(3, "plan", DYNAMIC, "--profile", "x=1x64,2x65", says=["x=2x65"])
        path = self.dir / "l.csv"
        path.write_text("id,lower,upper,size\na,0,2,10\n")
        self.refused(3, "plan", path, "--profile", "x=1,2", says=["a model or graph text is needed"])

    def test_points_of_different_structure(self):
        """What is folded away at one size and too large to fold at another: both points and the difference are named."""
        doc = {"schema": "tidemark.graph", "version": 1, "name": "g", "opset": 13,
               "inputs": [{"name": "x", "dtype": "float32", "shape": ["n"]}], "initializers": [], "outputs": ["y"],
               "nodes": [{"op": "Shape", "name": "s", "inputs": ["x"], "outputs": ["dims"]},
                         {"op": "ConstantOfShape", "name": "fill", "inputs": ["dims"], "outputs": ["c"]},
                         {"op": "Add", "name": "a", "inputs": ["x", "c"], "outputs": ["y"]}]}
        path = self.dir / "g.json"
        path.write_text(json.dumps(doc))
        self.ok("plan", path, "--profile", "x=1,8")
        p = run("plan", path, "--profile", "x=8,500000000")  # a warning says that `fill` is not folded
        self.assertEqual(p.returncode, 4, p.stderr)
        for word in ("error: the program differs", "fill", "x=8", "x=500000000"):
            self.assertIn(word, p.stderr)


class Export(Case):
    def same_problem(self, args, text, stdin):
        a = plan_of(self.json("plan", *args))
        b = plan_of(self.json("plan", "-", stdin=stdin))
        for key in ("lower_bound_bytes", "proved_bytes"):
            self.assertEqual(a[key], b[key], (text, key))

    def test_lifetimes_of_every_file(self):
        """A graph, a plan, a trace and a list give the same lifetimes, in every form."""
        plan, trace = self.dir / "p.json", self.dir / "t.db"
        self.ok("plan", SQUEEZENET, "-o", plan)
        self.ok("run", SQUEEZENET, "--plan", plan, "-n", 1, "-o", trace)
        for form in ("csv", "json", "minimalloc"):
            first = self.ok("export", SQUEEZENET, "--to", form).stdout
            for file in (plan, trace):
                self.assertEqual(self.ok("export", file, "--to", form).stdout, first, (form, file))
            if form != "minimalloc":
                listed = self.dir / f"l.{form}"
                self.ok("export", SQUEEZENET, "--to", form, "-o", listed)
                self.assertEqual(self.ok("export", listed, "--to", form).stdout, first, form)
                self.assertEqual(listed.read_text(), first)
            self.same_problem([SQUEEZENET], form, first)

    def test_offsets_are_a_plan(self):
        """With offsets: everything is fixed where the plan has it, and lies there when it is planned again."""
        for form in ("csv", "json", "minimalloc"):
            text = self.ok("export", LENET, "--to", form, "--with-offsets").stdout
            doc = self.json("plan", "-", stdin=text)
            self.assertTrue(plan_of(doc)["verified"])
            self.assertEqual(plan_of(doc)["bytes"], plan_of(self.json("plan", LENET))["bytes"])
        rows = list(csv.DictReader(self.ok("export", LENET, "--to", "csv", "--with-offsets").stdout.splitlines()))
        places = {t["name"]: t["places"][0]["offset"] for t in self.json("plan", LENET)["tensors"]}
        self.assertEqual({r["id"]: int(r["offset"]) if r["offset"] else None for r in rows}, places)

    def test_minimallocs_own_files_come_back(self):
        files = sorted(MINIMALLOC.rglob("*.csv"))
        if not files:
            self.skipTest(f"{MINIMALLOC} is not here")
        for file in files:
            for form in ("csv", "minimalloc"):
                out = self.ok("export", file, "--to", form).stdout
                self.assertEqual(out.split(), file.read_text().split(), file)

    def test_the_example_of_the_page(self):
        """docs/lifetimes-format.md: its example is a list, and both parts lie where it says."""
        page = (SOURCE / "docs" / "lifetimes-format.md").read_text()
        text = "".join(line[4:] + "\n" for line in page.splitlines() if line.startswith("    "))
        doc = self.json("plan", "-", stdin=text)
        conv, relu = doc["tensors"]
        self.assertEqual(relu["alias"], {"kind": "given", "of": "conv1", "offset": 1605632})
        self.assertEqual(relu["places"][0]["offset"] - conv["places"][0]["offset"], 1605632)
        self.assertEqual(plan_of(doc)["bytes"], 3211264)

    def test_what_cannot_be_exported(self):
        self.refused(2, "export", LENET, says=["--to"])
        self.refused(2, "export", LENET, "--to", "xml", says=["xml", "minimalloc"])
        graph = json.loads(LENET.read_text().replace('"conv1.out"', '"conv1,out"').replace('"relu1.out"', '"relu1,out"'))
        path, out = self.dir / "g.json", self.dir / "out.csv"
        path.write_text(json.dumps(graph))
        self.refused(3, "export", path, "--to", "csv", "-o", out, says=["comma", "JSON"])
        self.ok("export", path, "--to", "json")
        kinds = self.dir / "k.csv"
        kinds.write_text("id,lower,upper,size,kind\na,0,1,8,Workspace\nb,0,1,8,KVCache\n")
        self.refused(3, "export", kinds, "--to", "minimalloc", "-o", out, says=["one buffer"])
        self.refused(2, "export", kinds, "--to", "csv", "-o", kinds, says=["replaced"])
        bad = self.dir / "bad.csv"
        bad.write_text("id,lower,upper,size,gaps\na,0,9,8,3\n")
        self.refused(3, "export", bad, "--to", "csv", "-o", out, says=["bad.csv:2:9"])
        self.assertFalse(out.exists())

    def test_every_kind_and_device_is_a_buffer(self):
        path = self.dir / "k.csv"
        path.write_text("id,lower,upper,size,kind,device\na,0,2,8,,\nb,1,3,8,,\nk,0,3,100,KVCache,\ng,0,1,64,,cuda:0\n")
        doc = self.json("plan", path)
        buffers = {(b["device"], b["kind"]): b["bytes"] for b in plan_of(doc)["buffers"]}
        self.assertEqual(buffers, {("cpu", "Workspace"): 16, ("cpu", "KVCache"): 100, ("cuda:0", "Workspace"): 64})
        self.assertEqual(plan_of(doc)["bytes"], 180)
        text = self.ok("plan", path, "--full").stdout
        self.assertIn("Buffer cpu KVCache: 0.10 KiB", text)


if __name__ == "__main__":
    tidemark.main()
