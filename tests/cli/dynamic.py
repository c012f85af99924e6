# SPDX-License-Identifier: MIT
"""Models with tensors that are sized while running: through every command that takes a model, and in the trace of a run."""
import json
import unittest

import tidemark
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
RUNS = 3


class Dynamic(Case):
    def graph(self, **changes):
        path = self.dir / "distinct.json"
        path.write_text(json.dumps(GRAPH | changes))
        return path

    def test_a_plan_names_them_and_cannot_say_that_it_fits(self):
        graph = self.graph()
        plan = self.json("plan", graph)
        self.assertEqual(set(plan["dynamic"]), DYNAMIC)
        self.assertEqual({t["name"] for t in plan["tensors"]} & DYNAMIC, set())
        said = self.ok("plan", graph).stdout
        self.assertIn("Sized while running, on top of this: 3 tensors: u, where, y\n", said)
        said = self.ok("plan", graph, "--budget", "1GiB", code=7).stdout
        self.assertIn("fits: unknown", said)
        self.assertIn("what is sized while running comes on top of that", said)
        self.ok("plan", graph, "--budget", "1KiB", code=6)  # the rest alone is too much
        self.ok("plan", graph, "--capacity", "1MiB", code=7)

    def test_naive_and_planned_agree(self):
        done = self.json("compare", self.graph(), "-n", RUNS)
        self.assertTrue(done["outputs"]["bitwise_equal"])
        for key in ("kinds", "naive_kinds"):
            kinds = {k["kind"]: k for k in done[key]}
            self.assertIsNone(kinds["HostPageable"]["predicted_bytes"])
            self.assertIsNone(kinds["HostPageable"]["difference_bytes"])
            self.assertGreater(kinds["HostPageable"]["measured_bytes"], 0)
            self.assertEqual({k["difference_bytes"] for name, k in kinds.items() if name != "HostPageable"}, {0})
        self.assertIn("to the byte, but for what is sized while running", self.ok("compare", self.graph()).stdout)

    def test_the_trace_of_a_run(self):
        """Each is allocated in its operator, in each run, and given back by the last that reads it, an output by the next run."""
        trace, plan = self.dir / "run.db", self.dir / "plan.json"
        self.ok("plan", self.graph(), "-o", plan)
        for args in ([], ["--naive"], ["--plan", plan], ["--contexts", "2"]):
            with self.subTest(args=args):
                self.ok("run", self.graph(), "-n", RUNS, "-o", trace, "--force", *args)
                n = RUNS * (2 if "--contexts" in args else 1)
                self.assertIn("sound", self.ok("trace", trace, "--check").stdout)
                self.ok("trace", trace, "--expand")
                by_name = {}
                for name, scope, left in ask(trace, "SELECT name, scope, free_ns IS NULL FROM blocks WHERE kind = 'HostPageable'"):
                    by_name.setdefault((name, scope), []).append(left)
                self.assertEqual(by_name, {k: [0] * n for k in (("u", "unique"), ("where", "unique"), ("unique.scratch", "unique"), ("y", "exp"))})

    def test_what_wants_a_plan_of_all_refuses_them(self):
        graph = self.graph()
        for args in (["plan", graph, "--profile", "x=4x64,4x64"], ["run", graph, "--profile", "x=4x64,4x64"], ["check", graph, "--no-baseline"], ["sweep", graph]):
            done = tidemark.run(*args)
            self.assertNotEqual(done.returncode, 0, args)
            for words in ("Unique 'unique'", "known only while running"):
                self.assertIn(words, done.stdout + done.stderr, args)

    def test_views_and_lists_leave_them_out_and_say_so(self):
        graph, out = self.graph(), self.dir / "r.json"
        words = "3 tensors are sized while running, on top of all this"
        self.assertIn(words, self.ok("tui", graph, "--once", "--size", "160x40").stdout)
        self.assertIn(f"{words}: u, where, y", self.ok("tui", graph, "--once", "--size", "240x40").stdout)
        frame = self.ok("tui", graph, "--once", "--size", "160x40", "--capacity", "1GiB").stdout
        self.assertRegex(frame, r"fits 1.00 ?G(iB without what is sized while running|\?)")
        self.ok("report", graph, "-o", out, "--capacity", "1GiB")
        side = json.loads(out.read_text())["sides"][0]
        self.assertEqual(side["trouble"], f"{words}: u, where, y")
        self.assertEqual({i["name"] for i in side["items"]} & DYNAMIC, set())
        self.assertIsNone(side["fit"]["fits"])
        self.ok("report", graph, "-o", out, "--capacity", "1KiB")
        self.assertFalse(json.loads(out.read_text())["sides"][0]["fit"]["fits"], "the rest alone is too much")
        self.ok("report", graph, "-o", self.dir / "r.txt", "--capacity", "1GiB")
        self.assertRegex((self.dir / "r.txt").read_text(), "Will it fit +not known .* are left for what is sized while running")
        self.ok("report", graph, "-o", self.dir / "r.html")
        self.assertIn(words, (self.dir / "r.html").read_text())
        self.ok("diff", graph, graph)
        long = "n" * 43 + "\u00e9" * 20
        nodes = [{"op": "Unique", "inputs": ["x"], "outputs": [long], "name": "unique"}]
        self.ok("report", self.graph(nodes=nodes, outputs=[long], initializers=[]), "-o", out)
        said = json.loads(out.read_text())["sides"][0]["trouble"]
        self.assertEqual(said, "1 tensor is sized while running, on top of all this: " + "n" * 43 + "\u2026", "cut between characters")
        graph = self.graph()
        done = self.ok("export", graph, "--to", "csv")
        self.assertIn("note: 3 tensors are sized while running, and not in the list: 'u' and others", done.stderr)
        names = {line.split(",")[0] for line in done.stdout.splitlines()[1:]}
        self.assertEqual(names & DYNAMIC, set())
        self.assertIn("b", names)

    def test_none_of_them(self):
        """All that was distinct is one element; nothing at all."""
        nodes = [{"op": "Sub", "inputs": ["x", "x"], "outputs": ["zero"]}]
        for last in ({"op": "Unique", "inputs": ["zero"], "outputs": ["y"]}, {"op": "NonZero", "inputs": ["zero"], "outputs": ["y"]}):
            done = self.json("compare", self.graph(nodes=nodes + [last], outputs=["y"], initializers=[]), "--fill", "poison", "-n", 2)
            self.assertTrue(done["outputs"]["bitwise_equal"])


if __name__ == "__main__":
    tidemark.main()
