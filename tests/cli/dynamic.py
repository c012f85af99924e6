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

    def test_what_asks_for_sizes_alone_refuses_them(self):
        graph = self.graph()
        for args in (["tui", graph, "--once"], ["report", graph, "-o", self.dir / "r.html"], ["export", graph, "--to", "csv"]):
            self.refused(3, *args, says=["Unique 'unique'", "known only while running", "run -o FILE.db"])

    def test_none_of_them(self):
        """All that was distinct is one element; nothing at all."""
        nodes = [{"op": "Sub", "inputs": ["x", "x"], "outputs": ["zero"]}]
        for last in ({"op": "Unique", "inputs": ["zero"], "outputs": ["y"]}, {"op": "NonZero", "inputs": ["zero"], "outputs": ["y"]}):
            done = self.json("compare", self.graph(nodes=nodes + [last], outputs=["y"], initializers=[]), "--fill", "poison", "-n", 2)
            self.assertTrue(done["outputs"]["bitwise_equal"])


if __name__ == "__main__":
    tidemark.main()
