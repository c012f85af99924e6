# SPDX-License-Identifier: MIT
"""What tensors come out as that are sized while running, beside what they are at most: in plan files and lists, in the trace,
in the terminal view, the page and the reports. The sizes are counted here, from the numbers that are fed."""
import csv
import io
import json
import unittest

import onnx_file as onnx
import tidemark
from onnx_file import BOOL, FLOAT, INT64, Graph, node, tensor
from tidemark import Case, ask

AT = ("execution", "name", "extents", "bytes", "bound", "bound_bytes")
ALL = f"SELECT {', '.join(AT)} FROM sizes ORDER BY event_id"


def model(graph):
    return onnx.number(1, 8) + onnx.message(8, onnx.number(2, 15)) + onnx.message(7, graph.encode())


class Sizes(Case):
    def write(self, graph, *inputs):
        path = self.dir / "m.onnx"
        path.write_bytes(model(graph))
        folder = self.dir / "in"
        folder.mkdir(exist_ok=True)
        for i, content in enumerate(inputs):
            (folder / f"input_{i}.pb").write_bytes(content)
        return path, ("--input-dir", folder)

    def nonzero(self, numbers):
        """The places of what is not 0, of a row of numbers, and a branch of the second power of these places."""
        g = Graph([node("NonZero", ["x"], ["places"], name="find"), node("Mul", ["places", "places"], ["squares"], name="square"),
                   node("Neg", ["squares"], ["y"], name="negate")],
                  [("x", FLOAT, [len(numbers)])], [("y", INT64, [1, "n"])])
        return self.write(g, tensor("x", FLOAT, [len(numbers)], numbers))

    def test_a_plan_says_what_they_are_at_most(self):
        path, _ = self.nonzero([0.0, 1.0, 2.0, 0.0, 3.0])
        want = {"places": "[1x5]", "squares": "[1x5]", "y": "[1x5]"}
        plan, lists = self.dir / "p.json", {}
        self.ok("plan", path, "-o", plan)
        for name, doc in (("plan", json.loads(plan.read_text())), ("json", json.loads(self.ok("export", path, "--to", "json").stdout))):
            lists[name] = {t["name"]: t["bound"] for t in doc["tensors"] if "bound" in t}
        rows = csv.DictReader(io.StringIO(self.ok("export", path, "--to", "csv").stdout))
        lists["csv"] = {r["id"]: r["bound"] for r in rows if r["bound"]}
        for form in ("json", "csv"):  # and read back
            again = self.dir / f"again.{form}"
            again.write_text(self.ok("export", plan, "--to", form).stdout)
            lists[f"again {form}"] = {t["name"]: t["bound"] for t in self.json("plan", again)["tensors"] if "bound" in t}
        self.assertEqual(lists, {k: want for k in lists})
        self.refused(3, "plan", self.write_list({"bound": 5}), says=["bound"])
        bad = self.write_list({"bound": "a,b"})
        self.refused(3, "export", bad, "--to", "csv", says=["'t' cannot be listed", "bound"])

    def write_list(self, more):
        path = self.dir / "l.json"
        path.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "tensors": [{"name": "t", "size_bytes": 8, "begin": 0, "end": 1} | more]}))
        return path

    def test_a_trace_has_each_of_them(self):
        """None, one, some, all; in a naive run too; two contexts, three executions each."""
        trace = self.dir / "t.db"
        for numbers in ([0.0] * 5, [0.0, 0.0, 7.0, 0.0, 0.0], [1.0, 0.0, 2.0, 0.0, 3.0], [1.0] * 5):
            n = sum(v != 0 for v in numbers)
            path, inputs = self.nonzero(numbers)
            once = [(name, f"[1x{n}]", 8 * n, "[1x5]", 40) for name in ("places", "squares", "y")]
            for args, executions in (([], 3), (["--naive"], 3), (["--contexts", "2"], 6)):
                with self.subTest(numbers=numbers, args=args):
                    self.ok("run", path, *inputs, "-n", 3, "-o", trace, "--force", *args)
                    found = ask(trace, ALL)
                    self.assertEqual(sorted(found), sorted((x, *row) for x in range(executions) for row in once))
                    self.assertIn("sound", self.ok("trace", trace, "--check").stdout)
                    self.assertEqual(ask(trace, "SELECT count(*) FROM problems"), [(0,)])

    def loop(self):
        """A Loop of 4 iterations; iteration i finds what is above i in [0, 1, 2, 3, 4]: 4, 3, 2, 1 places."""
        body = Graph([node("Cast", ["i"], ["at"], name="cast", to=1), node("Greater", ["x", "at"], ["above"], name="above"),
                      node("NonZero", ["above"], ["found"], name="find"), node("Shape", ["found"], ["shape"], name="count"),
                      node("Identity", ["go"], ["again"], name="on")],
                     [("i", INT64, []), ("go", BOOL, [])], [("again", BOOL, []), ("shape", INT64, [2])])
        g = Graph([node("Loop", ["trips", ""], ["counts"], name="loop", body=body)], [("x", FLOAT, [5])], [("counts", INT64, [4, 2])],
                  [tensor("trips", INT64, [], [4])])
        return self.write(g, tensor("x", FLOAT, [5], [0.0, 1.0, 2.0, 3.0, 4.0]))

    def test_a_body_has_one_in_each_iteration(self):
        trace = self.dir / "t.db"
        path, inputs = self.loop()
        self.ok("run", path, *inputs, "-n", 2, "-o", trace)
        found = [row[:4] for row in ask(trace, ALL) if row[1] == "found"]
        self.assertEqual(found, [(x, "found", f"[1x{n}]", 8 * n) for x in range(2) for n in (4, 3, 2, 1)])
        rows = {r["name"]: r for r in self.json("tui", trace, "--pane", "gantt")["rows"]}
        self.assertEqual((rows["found"]["bound"], rows["found"]["extents"], rows["found"]["actual_bytes"]), ("[1x5]", "[1x1]", 8))
        steps = {r["operator"]: r["body"] for r in self.json("tui", trace, "--pane", "operators")["rows"]}
        self.assertEqual((steps["find"], steps["loop"]), ("loop of loop", None))

    def test_views_show_both(self):
        """The list marks them, the details of the selected one say at most and came out; the page and the reports have them too."""
        trace, numbers = self.dir / "t.db", [1.0, 0.0, 2.0, 0.0, 3.0]
        path, inputs = self.nonzero(numbers)
        self.ok("run", path, *inputs, "-n", 2, "-o", trace)
        frame = self.ok("tui", trace, "--once", "--size", "120x40").stdout
        self.assertRegex(frame, r"places +.*<=40 B")
        row, = [r for r in self.json("tui", trace, "--pane", "table")["rows"] if r["name"] == "y"]
        self.assertEqual((row["bound"], row["extents"], row["actual_bytes"]), ("[1x5]", "[1x3]", 24))
        for subject in (trace, path):
            out = self.dir / "r.json"
            self.ok("report", subject, "-o", out)
            items = [i for i in json.loads(out.read_text())["sides"][0]["items"] if i["name"] in ("places", "squares")]
            self.assertGreaterEqual(len(items), 2)
            want = ("[1x5]", "[1x3]", 24) if subject == trace else ("[1x5]", None, None)
            self.assertEqual({(i["bound"], i["extents"], i["actual_bytes"]) for i in items}, {want})
            self.ok("report", subject, "-o", self.dir / "r.html")
            page = (self.dir / "r.html").read_text()
            self.assertIn("Sized while running", page)
            self.assertIn("[1x5]", page)
        self.assertIn('"sizes"', self.page(trace))
        self.assertIn("came out as [1x3], 24 B", self.svg(trace))
        self.assertNotIn('"sizes"', self.page(self.fixed()))

    def page(self, subject):
        self.ok("report", subject, "-o", self.dir / "r.html")
        return (self.dir / "r.html").read_text()

    def svg(self, subject):
        self.ok("report", subject, "-o", self.dir / "r.svg")
        return (self.dir / "r.svg").read_text()

    def fixed(self):
        g = Graph([node("Neg", ["x"], ["h"], name="a"), node("Neg", ["h"], ["y"], name="b")], [("x", FLOAT, [4])], [("y", FLOAT, [4])])
        path, inputs = self.write(g, tensor("x", FLOAT, [4], [1.0] * 4))
        trace = self.dir / "fixed.db"
        self.ok("run", path, *inputs, "-n", 2, "-o", trace)
        self.assertEqual(ask(trace, "SELECT count(*) FROM sizes"), [(0,)])
        return trace

    def test_a_plan_for_several_sizes(self):
        """Every tensor whose size hangs on the point is at most what the largest one needs; each execution says its own."""
        g = Graph([node("Neg", ["x"], ["h"], name="a"), node("Abs", ["h"], ["y"], name="b"), node("Neg", ["c"], ["d"], name="fixed")],
                  [("x", FLOAT, ["n", 3]), ("c", FLOAT, [2])], [("y", FLOAT, ["n", 3]), ("d", FLOAT, [2])])
        path, _ = self.write(g)
        trace, profile = self.dir / "t.db", ("--profile", "x=1x3,2x3,4x3")
        done = self.json("run", path, *profile, "-n", 2, "-o", trace)
        self.assertEqual(done["warm_allocations"], 0)
        self.assertEqual({row[1:] for row in ask(trace, ALL) if row[0] in (0, 3)}, {(t, "[1x3]", 12, "[4x3]", 48) for t in "hy"})
        self.assertEqual({row[1:] for row in ask(trace, ALL) if row[0] in (2, 5)}, {(t, "[4x3]", 48, "[4x3]", 48) for t in "hy"})
        self.assertEqual({t["name"]: t["bound"] for t in self.json("plan", path, *profile)["tensors"] if "bound" in t}, {"h": "[4x3]", "y": "[4x3]"})

    def test_runs_in_several_sizes_list_them(self):
        g = Graph([node("NonZero", ["x"], ["places"], name="find"), node("Neg", ["places"], ["y"], name="negate")],
                  [("x", FLOAT, ["n"])], [("y", INT64, [1, "m"])])
        path, _ = self.write(g)
        bounded = {b["name"]: b for b in self.json("run", path, "--profile", "x=2,7,5", "-n", 3)["bounded"]}
        self.assertEqual({k: (v["bound"], v["runs"]) for k, v in bounded.items()}, {k: ([1, 7], 9) for k in ("places", "y")})
        self.assertIn("sized while running", self.ok("run", path, "--profile", "x=2,7,5", "-n", 1).stdout)


if __name__ == "__main__":
    tidemark.main()
