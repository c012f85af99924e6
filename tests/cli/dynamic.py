# SPDX-License-Identifier: MIT
"""Models with tensors that are sized while running, with bounds and without: through every command that takes a model, and
in the trace of a run."""
import json
import os
import random
import unittest

import onnx_file
import tidemark
from onnx_file import BOOL, INT64, Graph, node, tensor
from tidemark import Case, ask

GRAPH = {
    "schema": "tidemark.graph", "version": 1, "name": "distinct",
    "inputs": [{"name": "x", "dtype": "float32", "shape": [4, 64]}],
    "initializers": [{"name": "w", "dtype": "float32", "shape": [64, 64], "random": {"low": -1}}],
    "nodes": [{"op": "MatMul", "inputs": ["x", "w"], "outputs": ["a"], "name": "matmul"},
              {"op": "Relu", "inputs": ["a"], "outputs": ["b"], "name": "relu"},
              {"op": "Unique", "inputs": ["b"], "outputs": ["u", "", "where"], "name": "unique"},
              {"op": "Exp", "inputs": ["u"], "outputs": ["y"], "name": "exp"},
              {"op": "Tanh", "inputs": ["b"], "outputs": ["z"], "name": "tanh"}],
    "outputs": ["y", "z"]}
DYNAMIC = {"u", "where", "y"}
OPEN = ("--bound-limit", "0")  # leaves them without a place
RUNS = 3
# How long y is the sum of many numbers: nothing says how large that can be.
LOOSE = [{"op": "Cast", "inputs": ["x"], "outputs": ["b"], "attrs": {"to": 9}}, {"op": "Cast", "inputs": ["b"], "outputs": ["n"], "attrs": {"to": 7}},
         {"op": "ReduceSum", "inputs": ["n"], "outputs": ["many"], "attrs": {"keepdims": 0}}, {"op": "Reshape", "inputs": ["many", "one"], "outputs": ["list"]},
         {"op": "ConstantOfShape", "inputs": ["list"], "outputs": ["y"], "name": "make"}]
ONE = [{"name": "one", "dtype": "int64", "shape": [1], "values": [1]}]


class Dynamic(Case):
    def graph(self, **changes):
        path = self.dir / "distinct.json"
        path.write_text(json.dumps(GRAPH | changes))
        return path

    def test_a_plan_names_them_and_cannot_say_that_it_fits(self):
        graph = self.graph()
        plan = self.json("plan", graph, *OPEN)
        self.assertEqual(set(plan["dynamic"]), DYNAMIC)
        self.assertEqual({t["name"] for t in plan["tensors"]} & DYNAMIC, set())
        said = self.ok("plan", graph, *OPEN).stdout
        self.assertIn("Sized while running, on top of this: 3 tensors: u, where, y\n", said)
        said = self.ok("plan", graph, *OPEN, "--budget", "1GiB", code=7).stdout
        self.assertIn("fits: unknown", said)
        self.assertIn("what is sized while running comes on top of that", said)
        self.ok("plan", graph, *OPEN, "--budget", "1KiB", code=6)  # the rest alone is too much
        self.ok("plan", graph, *OPEN, "--capacity", "1MiB", code=7)

    def test_naive_and_planned_agree(self):
        done = self.json("compare", self.graph(), "-n", RUNS, *OPEN)
        self.assertTrue(done["outputs"]["bitwise_equal"])
        for key in ("kinds", "naive_kinds"):
            kinds = {k["kind"]: k for k in done[key]}
            self.assertIsNone(kinds["HostPageable"]["predicted_bytes"])
            self.assertIsNone(kinds["HostPageable"]["difference_bytes"])
            self.assertGreater(kinds["HostPageable"]["measured_bytes"], 0)
            self.assertEqual({k["difference_bytes"] for name, k in kinds.items() if name != "HostPageable"}, {0})
        self.assertIn("to the byte, but for what is sized while running", self.ok("compare", self.graph(), *OPEN).stdout)

    def test_the_trace_of_a_run(self):
        """Each is allocated in its operator, in each run, and given back by the last that reads it, an output by the next run."""
        trace, plan = self.dir / "run.db", self.dir / "plan.json"
        self.ok("plan", self.graph(), "-o", plan, *OPEN)
        for args in ([], ["--naive"], ["--plan", plan], ["--contexts", "2"]):
            with self.subTest(args=args):
                self.ok("run", self.graph(), "-n", RUNS, "-o", trace, "--force", *args, *OPEN)
                n = RUNS * (2 if "--contexts" in args else 1)
                self.assertIn("sound", self.ok("trace", trace, "--check").stdout)
                self.ok("trace", trace, "--expand")
                by_name = {}
                for name, scope, left in ask(trace, "SELECT name, scope, free_ns IS NULL FROM blocks WHERE kind = 'HostPageable'"):
                    by_name.setdefault((name, scope), []).append(left)
                self.assertEqual(by_name, {k: [0] * n for k in (("u", "unique"), ("where", "unique"), ("unique.scratch", "unique"), ("y", "exp"))})

    def test_what_wants_a_plan_of_all_names_them(self):
        graph = self.graph()
        for args in (["plan", graph, "--profile", "x=4x64,4x64"], ["run", graph, "--profile", "x=4x64,4x64"], ["sweep", graph]):
            done = tidemark.run(*args, *OPEN)
            self.assertNotEqual(done.returncode, 0, args)
            for words in ("how large 3 tensors can be is not known: u, where, y", "--bound"):
                self.assertIn(words, done.stdout + done.stderr, args)

    def test_check_counts_them_apart(self):
        """What is planned is judged like any other; a budget for all that a run holds is not kept, and says by which tensors."""
        config = self.dir / "tidemark.toml"
        path = self.graph(nodes=LOOSE, outputs=["y"], initializers=ONE)
        for bounds, max_bytes, code, says in (("", 1 << 30, 1, "no bound is known of y, and may be at most 1.00 GiB"),
                                              ('bounds = { y = "512" }\n', 1 << 30, 0, "pass"),
                                              ('bounds = { y = "?" }\n', 1 << 30, 1, "leaves an extent open"),
                                              ('bounds = { y = "512" }\n', 100, 1, "at most 100 B"),
                                              ('bounds = { y = "5" }\n', 1 << 30, 1, "and its bound is [5]"),
                                              ('bounds = { no = "200" }\n', 1 << 30, 1, "no such tensor"),
                                              ('bounds = { y = "2y" }\n', 1 << 30, 3, "'2y' is not a shape")):
            config.write_text(f'version = 1\n[[model]]\npath = "{path.name}"\nrun = true\nmax_bytes = {max_bytes}\n' + bounds)
            with self.subTest(bounds=bounds):
                done = tidemark.run("check", "--config", config, "--no-baseline")
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(says, done.stdout + done.stderr)
        path = self.graph()
        for limit, code, says in (("0", 1, "no bound is known of u, where, y"), ('"2047"', 1, "no bound is known of where"), ('"2KiB"', 0, "pass"),
                                  ('"many"', 3, "is not a size"), ("-1", 3, "bound_limit")):
            config.write_text(f'version = 1\n[[model]]\npath = "{path.name}"\nmax_bytes = "1GiB"\nbound_limit = {limit}\n')
            with self.subTest(limit=limit):
                done = tidemark.run("check", "--config", config, "--no-baseline")
                self.assertEqual(done.returncode, code, done.stdout + done.stderr)
                self.assertIn(says, done.stdout + done.stderr)
        done = tidemark.run("check", path, "--no-baseline")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        done = tidemark.run("check", self.graph(), "--no-baseline", *OPEN)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)

    def test_views_and_lists_leave_them_out_and_say_so(self):
        graph, out = self.graph(), self.dir / "r.json"
        words = "3 tensors are sized while running, on top of all this"
        self.assertIn(words, self.ok("tui", graph, *OPEN, "--once", "--size", "160x40").stdout)
        self.assertIn(f"{words}: u, where, y", self.ok("tui", graph, *OPEN, "--once", "--size", "240x40").stdout)
        frame = self.ok("tui", graph, *OPEN, "--once", "--size", "160x40", "--capacity", "1GiB").stdout
        self.assertRegex(frame, r"fits 1.00 ?G(iB without what is sized while running|\?)")
        self.ok("report", graph, *OPEN, "-o", out, "--capacity", "1GiB")
        side = json.loads(out.read_text())["sides"][0]
        self.assertEqual(side["trouble"], f"{words}: u, where, y")
        self.assertEqual({i["name"] for i in side["items"]} & DYNAMIC, set())
        self.assertIsNone(side["fit"]["fits"])
        self.ok("report", graph, *OPEN, "-o", out, "--capacity", "1KiB")
        self.assertFalse(json.loads(out.read_text())["sides"][0]["fit"]["fits"], "the rest alone is too much")
        self.ok("report", graph, *OPEN, "-o", self.dir / "r.txt", "--capacity", "1GiB")
        self.assertRegex((self.dir / "r.txt").read_text(), "Will it fit +not known .* are left for what is sized while running")
        self.ok("report", graph, *OPEN, "-o", self.dir / "r.html")
        self.assertIn(words, (self.dir / "r.html").read_text())
        self.ok("diff", graph, graph, *OPEN)
        long = "n" * 43 + "\u00e9" * 20
        nodes = [{"op": "Unique", "inputs": ["x"], "outputs": [long], "name": "unique"}]
        self.ok("report", self.graph(nodes=nodes, outputs=[long], initializers=[]), *OPEN, "-o", out)
        said = json.loads(out.read_text())["sides"][0]["trouble"]
        self.assertEqual(said, "1 tensor is sized while running, on top of all this: " + "n" * 43 + "\u2026", "cut between characters")
        graph = self.graph()
        done = self.ok("export", graph, "--to", "csv", *OPEN)
        self.assertIn("note: 3 tensors are sized while running, and not in the list: 'u' and others", done.stderr)
        names = {line.split(",")[0] for line in done.stdout.splitlines()[1:]}
        self.assertEqual(names & DYNAMIC, set())
        self.assertIn("b", names)

    def test_none_of_them(self):
        """All that was distinct is one element; nothing at all. With bounds and without."""
        nodes = [{"op": "Sub", "inputs": ["x", "x"], "outputs": ["zero"]}, {"op": "Cast", "inputs": ["zero"], "outputs": ["no"], "attrs": {"to": 9}},
                 {"op": "Reshape", "inputs": ["no", "row"], "outputs": ["none"]}]
        row = [{"name": "row", "dtype": "int64", "shape": [1], "values": [-1]}]
        for last in ({"op": "Unique", "inputs": ["zero"], "outputs": ["y"]}, {"op": "NonZero", "inputs": ["zero"], "outputs": ["y"]},
                     {"op": "Compress", "inputs": ["x", "none"], "outputs": ["y"]}):
            graph = self.graph(nodes=nodes + [last, {"op": "Neg", "inputs": ["y"], "outputs": ["z"]}], outputs=["y", "z"], initializers=row)
            for limit in ((), OPEN):
                done = self.json("compare", graph, "--fill", "poison", "-n", 2, *limit)
                self.assertTrue(done["outputs"]["bitwise_equal"])


class Bounded(Case):
    """The same model within bounds: all of it is planned, and a run says what came out."""
    def graph(self, **changes):
        path = self.dir / "distinct.json"
        path.write_text(json.dumps(GRAPH | changes))
        return path

    def test_a_plan_has_places_for_them(self):
        plan = self.json("plan", self.graph())
        self.assertNotIn("dynamic", plan)
        size = {t["name"]: t["size_bytes"] for t in plan["tensors"]}
        self.assertEqual({k: size[k] for k in DYNAMIC}, {"u": 1024, "where": 2048, "y": 1024})
        self.assertIn("fits: yes", self.ok("plan", self.graph(), "--budget", "1GiB").stdout)
        size = {t["name"]: t["size_bytes"] for t in self.json("plan", self.graph(), "--bound", "u=100", "--bound", "y=?")["tensors"]}
        self.assertEqual({k: size[k] for k in DYNAMIC}, {"u": 400, "where": 2048, "y": 400})
        named = self.json("plan", self.graph(), "--bound-limit", "2047")["dynamic"]
        self.assertEqual(named, ["where"])

    def test_naive_and_planned_agree_to_the_byte(self):
        for fill in ("poison", "zero"):
            done = self.json("compare", self.graph(), "-n", RUNS, "--fill", fill)
            self.assertTrue(done["outputs"]["bitwise_equal"])
            for key in ("kinds", "naive_kinds"):
                self.assertEqual({k["difference_bytes"] for k in done[key]}, {0})

    def test_a_run_says_what_came_out(self):
        done = self.json("run", self.graph(), "-n", RUNS)
        self.assertEqual(done["warm_allocations"], 0)
        found = {b["name"]: b for b in done["bounded"]}
        self.assertEqual(set(found), DYNAMIC)
        u = found["u"]
        self.assertEqual((u["bound"], u["bound_bytes"], u["runs"]), ([256], 1024, RUNS))
        self.assertEqual(u["last_bytes"], 4 * u["last"][0])
        self.assertLessEqual(u["least_bytes"], u["last_bytes"])
        self.assertLess(u["most_bytes"], u["bound_bytes"])
        shapes = {b["name"]: b["last"] for b in self.json("run", self.graph(), "-n", 1, "--naive")["bounded"]}
        self.assertEqual(shapes, {k: v["last"] for k, v in found.items()})
        said = self.ok("run", self.graph(), "-n", RUNS, "--contexts", 2).stdout
        self.assertRegex(said, rf"u +\[256\] +1.00 KiB +\[{u['last'][0]}\] +{u['last_bytes']} B +{u['most_bytes']} B +{100 * u['most_bytes'] / 1024:.1f} %")
        self.assertIn("allocations in warm runs: 0", said)
        self.assertNotIn("bounded", self.json("run", self.graph(), "-n", 1, *OPEN))

    def test_past_a_bound(self):
        for options in ((), ("--naive",)):
            done = tidemark.run("run", self.graph(), "-n", 1, "--bound", "u=10", *options)
            self.assertEqual(done.returncode, 3)
            self.assertRegex(done.stderr, r"node 'unique' \(Unique\): tensor 'u' comes out as float32 \[\d+\], and its bound is \[10\]")
            self.assertRegex(done.stderr, r"hint: --bound u=\d+ makes room for it")

    def test_bounds_that_cannot_be(self):
        for option, code, says in (("u=2x3", 3, "has 2 extents, and the tensor 1"), ("where=10", 3, "contradicts its operator"),
                                   ("none=1", 3, "no such tensor"), ("a=1", 3, "not sized while running"), ("u=4611686018427387904", 0, ""),
                                   ("u=0", 3, "never less than 1"), ("u=", 3, "extents"), ("u", 2, "not of the form"), ("=1", 2, "not of the form"),
                                   ("u=1y", 2, "not a shape"), ("u=-1", 2, "not a shape"), ("u=1x1x1x1x1x1x1x1x1", 2, "more than 8")):
            done = tidemark.run("plan", self.graph(), "--bound", option)
            self.assertEqual(done.returncode, code, (option, done.stderr))
            self.assertIn(says, done.stderr, option)
        self.assertEqual(tidemark.run("plan", self.graph(), "--bound", "u=1", "--bound", "u=1").returncode, 2)

    def test_an_operator_without_a_rule(self):
        plain = self.graph(nodes=LOOSE, outputs=["y"], initializers=ONE)
        self.assertEqual(self.json("plan", plain)["dynamic"], ["y"])
        self.ok("run", plain, "-n", 1)
        self.ok("compare", plain, "-n", 2, "--bound", "y=256", "--fill", "poison")
        done = tidemark.run("run", plain, "-n", 1, "--bound", "y=255")
        self.assertEqual(done.returncode, 3)
        self.assertIn("node 'make' (ConstantOfShape): tensor 'y' comes out as float32 [256], and its bound is [255]", done.stderr)

    def test_bodies(self):
        """A carried value that shrinks fits where it came in; what a Loop collects has room for all its trips; a result
        of an If has the larger of both branches."""
        def case(name, trips, n):
            body = Graph([node("Slice", ["s", "zero", "last"], ["t"]), node("ReduceSum", ["s"], ["sum"], keepdims=1), node("Less", ["i", "n"], ["g"])],
                         [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("t",), ("sum",)])
            graph = Graph([node("Loop", ["most", "", "x"], ["y", "all"], name="L", body=body), node("Less", ["n", "one"], ["short"]),
                           node("If", ["short"], ["q"], name="I", then_branch=Graph([node("Slice", ["x", "zero", "two"], ["a"])], [], [("a",)]),
                                else_branch=Graph([node("Neg", ["x"], ["b"])], [], [("b",)]))],
                          [("x", INT64, [8]), ("n", INT64, [])], [("y", INT64, ["m"]), ("all", INT64, ["k", 1]), ("q", INT64, ["l"])],
                          [tensor("most", INT64, [], [trips]), tensor("one", INT64, [], [1]), tensor("zero", INT64, [1], [0]),
                           tensor("two", INT64, [1], [2]), tensor("last", INT64, [1], [-1])])
            x = [3, 1, 4, 1, 5, 9, 2, 6]
            turns = min(trips, n + 1)
            every = [sum(x[:max(8 - i, 0)]) for i in range(turns)]
            left, q = x[:max(8 - turns, 0)], x[:2] if n < 1 else [-v for v in x]
            return onnx_file.write_case(self.dir / name, graph, [(INT64, [8], x), (INT64, [], [n])],
                                        [(INT64, [len(left)], left), (INT64, [turns, 1], every), (INT64, [len(q)], q)])

        for trips, n in ((6, 1), (6, 0), (6, 50), (0, 3), (12, 50)):
            path, data = case(f"body{trips}_{n}", trips, n)
            with self.subTest(trips=trips, n=n):
                doc = self.json("plan", path)
                self.assertNotIn("dynamic", doc)
                size = {t["name"]: t["size_bytes"] for t in doc["tensors"]}
                self.assertEqual((size["y"], size["all"], size["q"]), (64, 8 * trips, 64))
                for limit in ((), OPEN):
                    done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2, *limit)
                    self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
                    self.assertTrue(done["outputs"]["bitwise_equal"])

    def test_plans_that_leave_them_out(self):
        """A plan that was made without places for them is run as it is."""
        plan = self.dir / "p.json"
        self.ok("plan", self.graph(), "-o", plan, *OPEN)
        self.ok("run", self.graph(), "--plan", plan, "-n", 2, "--fill", "poison")
        self.ok("plan", self.graph(), "-o", plan)
        self.ok("run", self.graph(), "--plan", plan, "-n", 2, "--fill", "poison")

    def test_every_command_takes_them(self):
        graph, out = self.graph(), self.dir / "r.json"
        profile = ["--profile", "x=4x64,4x64"]
        self.assertEqual(len(self.json("plan", graph, *profile)["profile"]["points"]) if "profile" in self.json("plan", graph, *profile) else 2, 2)
        self.ok("run", graph, *profile, "-n", 2, "--fill", "poison")
        point = self.json("sweep", graph)["points"][0]
        self.assertIsNone(point["error"])
        self.ok("report", graph, "-o", out)
        items = {i["name"] for i in json.loads(out.read_text())["sides"][0]["items"]}
        self.assertLessEqual(DYNAMIC, items)
        self.ok("check", graph, "--no-baseline")
        done = tidemark.run("check", graph, "--no-baseline", "--run", "--bound", "u=10")
        self.assertEqual(done.returncode, 1)
        self.assertIn("its bound is [10]", done.stdout + done.stderr)


class Numbers(Case):
    """Sizes that are made of calculated numbers have bounds: those of an interpreter of intervals of this file's own."""
    def build(self, seed):
        """A graph of random arithmetic on three numbers that only a run knows, each result in 0 … 300 the length of a tensor.
        @return its path, and what the longest of each tensor is"""
        rng = random.Random(seed)
        nodes, constants, known, longest = [], [], {}, {}

        def add(op, inputs, **attrs):
            name = f"v{len(nodes)}"
            nodes.append({"op": op, "inputs": inputs, "outputs": [name], "attrs": attrs})
            return name

        def constant(*values, shape=None, dtype="int64"):
            constants.append({"name": f"c{len(constants)}", "dtype": dtype, "shape": [len(values)] if shape is None else shape, "values": list(values)})
            return constants[-1]["name"]

        scalar = lambda n: constant(n, shape=[])
        found = add("Shape", [add("NonZero", [add("Cast", ["x"], to=9)])])
        known[add("Gather", [found, scalar(-1)])] = (0, 256)
        known[add("Squeeze", [add("Slice", [found, constant(1), constant(2)])])] = (0, 256)
        known[add("Gather", [add("ArgMax", ["x"], axis=1, keepdims=0), scalar(2)])] = (0, 63)
        known[add("Size", [add("NonZero", [add("Cast", ["x"], to=9)])])] = (0, 512)
        for _ in range(24):
            (a, (la, ha)), (b, (lb, hb)) = rng.choices(list(known.items())[-8:], k=2)
            n, op = rng.randint(1, 9), rng.choice(("Add", "Sub", "Mul", "Div", "Min", "Max", "Neg", "Clip", "Cast", "List", "Prod"))
            if op == "Div":
                by = rng.choice((n, -n))
                ends = [int(v / by) for v in (la, ha)]
                known[add("Div", [a, scalar(by)])] = (min(ends), max(ends))
            elif op == "Neg":
                known[add("Neg", [a])] = (-ha, -la)
            elif op == "Clip":
                known[add("Clip", [a, scalar(-n), scalar(20 * n)])] = (min(max(la, -n), 20 * n), min(max(ha, -n), 20 * n))
            elif op == "Cast":
                fits = -2**31 <= la and ha < 2**31
                known[add("Cast", [add("Cast", [a], to=6)], to=7)] = (la, ha) if fits else (-2**31, 2**31 - 1)
            elif op in ("List", "Prod"):
                ends = [add("Unsqueeze", [v, constant(0)]) for v in (a, b)]
                both = add("Concat", [*ends, constant(n)], axis=0)
                if op == "List":
                    known[add("Gather", [both, scalar(rng.choice((1, -2)))])] = (lb, hb)
                else:
                    known[add("ReduceSum", [both], keepdims=0)] = (la + lb + n, ha + hb + n)
            else:
                ends = {"Add": (la + lb, ha + hb), "Sub": (la - hb, ha - lb), "Min": (min(la, lb), min(ha, hb)), "Max": (max(la, lb), max(ha, hb)),
                        "Mul": (min(la * lb, la * hb, ha * lb, ha * hb), max(la * lb, la * hb, ha * lb, ha * hb))}[op]
                if max(map(abs, ends)) >= 2**40:
                    continue
                known[add(op, [a, b])] = ends
        for name, (_, most) in list(known.items()):
            length = add("Unsqueeze", [add("Clip", [name, scalar(0), scalar(300)]), constant(0)])
            longest[add("ConstantOfShape", [length])] = 4 * min(max(most, 0), 300)
        path = self.dir / f"numbers{seed}.json"
        path.write_text(json.dumps({"schema": "tidemark.graph", "version": 1, "name": "numbers", "nodes": nodes, "initializers": constants,
                                    "inputs": [{"name": "x", "dtype": "float32", "shape": [4, 64]}], "outputs": list(longest)}))
        return path, longest

    def test_arithmetic(self):
        for seed in range(3 if "TIDE_SOAK" not in os.environ else 300):
            with self.subTest(seed=seed):
                path, longest = self.build(seed)
                plan = self.json("plan", path)
                self.assertNotIn("dynamic", plan)
                sizes = {t["name"]: t["size_bytes"] for t in plan["tensors"]}
                self.assertEqual({name: sizes[name] for name in longest}, longest)
                done = self.json("compare", path, "-n", 2, "--fill", "poison")
                self.assertTrue(done["outputs"]["bitwise_equal"])
                self.assertEqual({k["difference_bytes"] for k in done["kinds"]}, {0})

    def test_what_is_sized_by_them(self):
        ints = lambda name, *values, shape=None: {"name": name, "dtype": "int64", "shape": [len(values)] if shape is None else shape, "values": list(values)}
        one = lambda op, inputs, out, **attrs: {"op": op, "inputs": inputs, "outputs": [out], "attrs": attrs}
        head = [one("Cast", ["x"], "b", to=9), one("NonZero", ["b"], "n"), one("Shape", ["n"], "s"), one("Slice", ["s", "i1", "i2"], "len"),
                one("Squeeze", ["len"], "count"), one("Neg", ["count"], "less"), one("Concat", ["len", "i3"], "rows", axis=0),
                one("Concat", ["i2", "open"], "two_open", axis=0), one("Concat", ["i0", "len"], "pads", axis=0), one("Transpose", ["n"], "t")]
        values = [ints("i0", 0), ints("i1", 1), ints("i2", 2), ints("i3", 3), ints("open", -1), ints("zero", 0, shape=[]), ints("one", 1, shape=[]),
                  ints("seven", 7, shape=[]), ints("back", -2, shape=[]), ints("row", 5, 6, 7)]
        for made, bytes_of_y in ((one("Range", ["zero", "count", "one"], "y"), 8 * 256), (one("Range", ["zero", "count", "seven"], "y"), 8 * 37),
                                 (one("Range", ["count", "zero", "back"], "y"), 8 * 128), (one("Range", ["less", "count", "one"], "y"), 8 * 512),
                                 (one("Expand", ["row", "rows"], "y"), 8 * 3 * 256), (one("Expand", ["one", "len"], "y"), 8 * 256),
                                 (one("Tile", ["row", "len"], "y"), 8 * 3 * 256), (one("Pad", ["row", "pads"], "y"), 8 * (3 + 256)),
                                 (one("OneHot", ["row", "count", "row2"], "y"), 8 * 3 * 256), (one("Reshape", ["t", "two_open"], "y"), 8 * 512),
                                 (one("ConstantOfShape", ["rows"], "y"), 4 * 3 * 256)):
            with self.subTest(made=made):
                path = self.dir / "sized.json"
                path.write_text(json.dumps({"schema": "tidemark.graph", "version": 1, "name": "sized", "nodes": [*head, made], "outputs": ["y"],
                                            "initializers": [*values, ints("row2", 0, 1)], "inputs": [{"name": "x", "dtype": "float32", "shape": [4, 64]}]}))
                plan = self.json("plan", path)
                self.assertNotIn("dynamic", plan)
                self.assertEqual([t["size_bytes"] for t in plan["tensors"] if t["name"] == "y"], [bytes_of_y])
                self.assertTrue(self.json("compare", path, "-n", 2, "--fill", "poison")["outputs"]["bitwise_equal"])


if __name__ == "__main__":
    tidemark.main()
