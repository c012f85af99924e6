# SPDX-License-Identifier: MIT
"""tidemark diff: what changed between two plans, traces or models, or two moments of one; sums that are exact; bad input."""
import html
import json
import os
import re
import resource
import subprocess

import tidemark
import validators
from tidemark import SAMPLES, SHARED, SOURCE, Case, ask, run

LENET = SAMPLES / "lenet5.json"
SCHEMA = SOURCE / "docs" / "schemas" / "diff.json"
HOSTILE = "a|b`*_[x](y)</td><script>alert(1)</script>\"]]>@nobody\n::error::\u202e" + "n" * 10000


def size(n):
    """A byte count in the program's words."""
    for unit in ("B", "KiB", "MiB"):
        if n < 1024:
            return f"{n} B" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024
    return f"{n:.2f} GiB"


class Diff(Case):
    def lenet(self, edit, name="edited.json"):
        graph = json.loads(LENET.read_text())
        edit(graph)
        path = self.dir / name
        path.write_text(json.dumps(graph), encoding="utf-8")
        return path

    def trace(self, *options, name="t.db", model=LENET):
        path = self.dir / name
        self.ok("run", model, "-n", 3, "-o", path, *options)
        return path

    def figure(self, doc, name):
        return next(f for f in doc["figures"] if f["figure"] == name)

    def check_sums(self, doc, by_rows=True):
        """Operators, kinds, and tensors with what is no tensor's, each explain the whole change."""
        change = self.figure(doc, "held_bytes")["change_bytes"]
        for key in ("by_operator", "by_kind"):
            self.assertEqual(sum(s["change_bytes"] for s in doc[key]), change, key)
            for side in ("a_bytes", "b_bytes"):
                self.assertEqual(sum(s[side] for s in doc[key]), self.figure(doc, "held_bytes")[side], key)
        if by_rows:
            parts = sum(s["change_bytes"] for s in doc["by_operator"] if s["part"])
            self.assertEqual(sum(r["change_bytes"] for r in doc["rows"]) + parts, change)
        for row in doc["rows"]:
            self.assertEqual(row["change_bytes"], row["b_held_bytes"] - row["a_held_bytes"])

    def row(self, doc, name):
        return next(r for r in doc["rows"] if r["name"] == name)

    # ---- what is told ----

    def test_the_same_twice_differs_in_nothing(self):
        doc = self.json("diff", LENET, LENET, "--exit-code")
        self.assertFalse(doc["differs"])
        self.assertEqual(doc["rows"], [])
        self.assertGreater(doc["counts"]["unchanged"], 5)
        self.assertIn("Nothing differs.", self.ok("diff", LENET, LENET).stdout)

    def test_added_removed_resized_are_named(self):
        def edit(graph):
            graph["inputs"][0]["shape"] = [2, 1, 28, 28]
            relu = next(n for n in graph["nodes"] if n["name"] == "relu3")
            relu.update(op="Tanh", name="tanh3", outputs=["tanh3.out"])
            next(n for n in graph["nodes"] if n["name"] == "fc2")["inputs"][0] = "tanh3.out"
        doc = self.json("diff", LENET, self.lenet(edit), "--no-fuse", "--no-passes", "--exit-code", code=1)
        self.check_sums(doc)
        self.assertEqual(self.row(doc, "tanh3.out")["what"], ["added"])
        self.assertIsNone(self.row(doc, "tanh3.out")["a_bytes"])
        self.assertEqual(self.row(doc, "relu3.out")["what"], ["removed"])
        conv = self.row(doc, "conv1.out")
        self.assertIn("resized", conv["what"])
        self.assertEqual(conv["b_bytes"], 2 * conv["a_bytes"])
        self.assertEqual((doc["counts"]["added"], doc["counts"]["removed"]), (1, 1))
        peak = self.figure(doc, "peak_bytes")
        self.assertEqual(peak["change_bytes"], peak["b_bytes"] - peak["a_bytes"])

    def test_another_plan_of_one_model(self):
        plan = self.dir / "plan.json"
        self.ok("plan", LENET, "--align", 8192, "-o", plan)
        doc = self.json("diff", LENET, plan)
        self.check_sums(doc)
        self.assertGreater(self.figure(doc, "plan_bytes")["change_bytes"], 0)
        text = self.ok("diff", LENET, plan).stdout
        self.assertIn("By operator", text)
        self.assertRegex(text, r"planned buffers +[\d.]+ KiB +[\d.]+ KiB +\+")

    def test_sums_hold_for_real_models(self):
        models = [SAMPLES / name for name in ("resnet18.json", "unet.json", "transformer_encoder.json")]
        models += sorted(SHARED.glob("models/light-*/model.onnx")) if SHARED.is_dir() else []
        if not SHARED.is_dir():
            print(f"sample graphs alone: {SHARED} is not there")
        for model in models:
            plan = self.dir / "plan.json"
            self.ok("plan", model, "--no-fuse", "--align", 512, "--node-limit", 2000, "-o", plan)
            self.check_sums(self.json("diff", plan, model, "--node-limit", 2000))

    def test_traces(self):
        a, b = self.trace("--naive"), self.trace(name="b.db")
        doc = self.json("diff", a, b)
        self.check_sums(doc)
        for side, path in (("a_bytes", a), ("b_bytes", b)):
            (peak,), = ask(path, "SELECT peak_bytes FROM peak WHERE run_id = 1")
            self.assertEqual(self.figure(doc, "peak_bytes")[side], peak)
        self.assertEqual(doc["a"]["axis"], "ns")

    def test_two_moments_of_one_trace(self):
        trace = self.trace("--naive")
        doc = self.json("diff", trace, "--at", "begin", "--and", "peak")
        self.check_sums(doc)
        (peak,), = ask(trace, "SELECT peak_bytes FROM peak WHERE run_id = 1")
        self.assertEqual(self.figure(doc, "held_bytes")["b_bytes"], peak)
        back = self.json("diff", trace, "--at", "peak", "--and", "begin")
        self.assertEqual(self.figure(back, "held_bytes")["change_bytes"], -self.figure(doc, "held_bytes")["change_bytes"])
        self.assertEqual({r["name"] for r in doc["rows"] if r["what"] == ["added"]},
                         {r["name"] for r in back["rows"] if r["what"] == ["removed"]})

    def test_two_moments_of_one_plan(self):
        by_name = self.json("diff", LENET, "--at", "conv1", "--and", "fc1", "--no-fuse")
        self.check_sums(by_name)
        self.assertEqual((by_name["a"]["step"], by_name["b"]["step"]), ("conv1", "fc1"))
        by_number = self.json("diff", LENET, "--no-fuse", "--at", by_name["a"]["at"], "--and", by_name["b"]["at"])
        self.assertEqual(by_number["rows"], by_name["rows"])
        self.assertEqual(by_number["by_operator"], by_name["by_operator"])
        self.assertIn("at B alone", self.ok("diff", LENET, "--at", "conv1", "--and", "fc1", "--no-fuse").stdout)

    def test_as_much_of_others_is_a_difference(self):
        """A buffer is held whole: at two of its moments alike in size, but not of the same tensors."""
        for files in ([LENET], [LENET, LENET]):
            doc = self.json("diff", *files, "--at", "begin", "--and", "end", "--exit-code", code=1)
            self.assertEqual(self.figure(doc, "held_bytes")["change_bytes"], 0)
            self.assertTrue(doc["differs"])
            self.assertNotIn("Nothing differs", self.ok("diff", *files, "--at", "begin", "--and", "end").stdout)

    # ---- outputs ----

    def test_json_is_of_its_schema(self):
        trace = self.trace("--naive")
        cases = [[LENET, LENET], [LENET, SAMPLES / "unet.json"], [LENET, trace], [trace, "--at", "begin", "--and", "50%"]]
        docs = []
        for n, args in enumerate(cases):
            path = self.dir / f"{n}.json"
            self.ok("diff", *args, "-o", path)
            docs.append(json.loads(path.read_text(encoding="utf-8")))
        wrong = [{**docs[0], "version": 2}, {**docs[1], "rows": [{**docs[1]["rows"][0], "a_bytes": "64"}]}]
        errors = validators.schema_errors(self, json.loads(SCHEMA.read_text()), docs + wrong)
        self.assertEqual(errors[:len(docs)], [[]] * len(docs))
        self.assertTrue(all(errors[len(docs):]), "a wrong document is taken for a right one")

    def test_markdown_and_text_say_what_json_says(self):
        other = SAMPLES / "squeezenet1_1.json"
        doc = self.json("diff", LENET, other)
        for ending in ("md", "txt"):
            path = self.dir / f"d.{ending}"
            self.ok("diff", LENET, other, "--rows", 0, "-o", path)
            text = path.read_text(encoding="utf-8").replace("\\", "")
            for row in doc["rows"]:
                self.assertIn(row["name"], text)
            for step in doc["by_operator"]:
                if step["change_bytes"] != 0:
                    self.assertIn(step["key"], text)
        short = self.ok("diff", LENET, other, "--rows", 3).stdout
        self.assertRegex(short, r"… and \d+ more: --rows \d+")
        rest = [step for step in doc["by_operator"] if step["change_bytes"] != 0][3:]
        rest += [step for step in doc["by_operator"] if step["change_bytes"] == 0]
        words = [size(sum(step[side] for step in rest)) for side in ("a_bytes", "b_bytes")]
        self.assertRegex(short, r"\(\d+ others\) +" + " +".join(map(re.escape, words)))

    def test_hostile_names_do_no_harm(self):
        def edit(graph):
            graph["nodes"][0]["outputs"] = graph["nodes"][1]["inputs"] = [HOSTILE]
            graph["nodes"][0]["name"] = HOSTILE
            graph["inputs"][0]["shape"] = [2, 1, 28, 28]
        path = self.lenet(edit)
        out = self.dir / "d.md"
        self.ok("diff", LENET, path, "--no-fuse", "--no-passes", "-o", out)
        text = out.read_text(encoding="utf-8")
        self.assertNotIn("<script", text)
        self.assertNotRegex(text, r"(?m)^::")
        self.assertNotIn("@nobody", text)
        self.assertNotIn("\u202e", text)
        width = {}
        for line in text.splitlines():
            if line.startswith("|"):
                width.setdefault(len(re.findall(r"(?<!\\)\|", line)), line)
        self.assertLessEqual(set(width), {5, 7}, width)
        screen = self.ok("diff", LENET, path, "--no-fuse", "--no-passes").stdout
        self.assertFalse([c for c in screen if ord(c) < 32 and c != "\n"])
        self.assertNotIn("\u202e", screen)
        doc = self.json("diff", LENET, path, "--no-fuse", "--no-passes")
        self.assertIn(html.unescape(HOSTILE), [r["name"] for r in doc["rows"]])

    # ---- bad input ----

    def test_usage(self):
        self.refused(2, "diff", LENET, says=["--at"])
        self.refused(2, "diff", says=["FILE"])
        self.refused(2, "diff", LENET, LENET, LENET)
        self.refused(2, "diff", LENET, LENET, "-o", self.dir / "d.html", says=["tidemark report"])
        self.refused(2, "diff", LENET, "--at", "nowhere", "--and", "peak", says=["nowhere", "steps"])
        self.refused(2, "diff", LENET, "--at", "999", "--and", "peak")
        trace = self.trace()
        self.refused(2, "diff", trace, "--at", "nowhere", "--and", "peak", says=["nowhere"])
        plan = self.lenet(lambda g: None, name="plan.json")
        self.refused(2, "diff", plan, LENET, "-o", plan, says=["input"])

    def test_unreadable_files(self):
        self.refused(3, "diff", LENET, self.dir / "none.json", says=["none.json"])
        bad = self.dir / "bad.json"
        bad.write_text("{")
        self.refused(3, "diff", bad, LENET, says=["bad.json"])
        self.refused(3, "diff", self.trace(), LENET, "--run", 7)

    def test_unwritable_output_leaves_nothing(self):
        self.refused(8, "diff", LENET, LENET, "-o", self.dir / "none" / "d.md", says=["d.md"])
        out = self.dir / "d.json"
        out.write_text("old")
        self.refused(8, "diff", LENET, SAMPLES / "unet.json", "-o", out, says=["d.json"],
                     preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100, 100)))
        self.assertEqual(out.read_text(), "old")
        self.assertEqual([f for f in os.listdir(self.dir) if "tmp" in f], [])
        if os.path.exists("/dev/full"):
            with open("/dev/full", "w", encoding="utf-8") as full:
                p = subprocess.run([tidemark.PROGRAM, "diff", LENET, LENET, "--json"], stdout=full, stderr=subprocess.PIPE,
                                   check=False)
            self.assertEqual(p.returncode, 8)


if __name__ == "__main__":
    tidemark.main()
