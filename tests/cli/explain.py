# SPDX-License-Identifier: MIT
"""Counterfactuals against the command line itself: what they take away is taken out of the list of lifetimes, and that list is
planned. On sample graphs, real models, lists that are hardly any, and in the buffer of a planned run."""
import json
import unittest

import tidemark
from tidemark import SAMPLES, SHARED, Case

MODELS = ["light-densenet121", "light-squeezenet", "light-inception-v1", "bert-toy", "light-shufflenet", "superres-espcn",
          "tiny-llm-kv", "gpt2-past"]


def open_extents(path):
    return ["--shape", "x=8x64"] if path.stem == "dynamic_batch" else []


def classes_of(tensors):
    """{name of the tensor that all others of its storage lie in: their names}"""
    into = {t["name"]: t.get("alias", {}).get("of") for t in tensors}
    found = {}
    for name in into:
        root = name
        while into[root] is not None:
            root = into[root]
        found.setdefault(root, set()).add(name)
    return found


class Explain(Case):
    def pane(self, *args):
        return json.loads(self.ok("tui", "--pane", "explain", "--json", *args).stdout)

    def planned(self, listed, gone=frozenset()):
        """The plan of a list without some of its tensors."""
        doc = json.loads(listed.read_text())
        doc["tensors"] = [t for t in doc["tensors"] if t["name"] not in gone]
        path = self.dir / "rest.json"
        path.write_text(json.dumps(doc))
        return self.json("plan", path)["plans"][0]

    def check(self, pane, listed, n_at_least=1):
        """Each saving is that of a plan made without exactly these; all together save at least as much as each."""
        storages = classes_of(json.loads(listed.read_text())["tensors"])
        whole = self.planned(listed)
        rows = pane["without"]
        self.assertGreaterEqual(len(rows), n_at_least)
        self.assertEqual(len({r["name"] for r in rows}), len(rows))
        gone_all = set()
        for row in rows:
            gone = storages[row["name"]]
            gone_all |= gone
            self.assertEqual(row["n_inside"], len(gone) - 1)
            self.assertIn(row["alive"], gone)
            rest = self.planned(listed, gone)
            self.assertTrue(rest["proven"], row)  # only then there is one answer
            self.assertEqual(row["plan_bytes"], rest["bytes"], row)
            self.assertEqual(row["plan_saves_bytes"], whole["bytes"] - rest["bytes"], row)
            self.assertLessEqual(pane["second_peak_bytes"] or 0, row["peak_bytes"], row)
            self.assertLessEqual(pane["second_plan_bytes"], row["plan_bytes"], row)
        self.assertLess(len(rows), 20)  # all of them are listed
        if rows:
            self.assertEqual(pane["second_plan_bytes"], self.planned(listed, gone_all)["bytes"])
        return rows

    def test_samples(self):
        n_inside = 0
        for path in sorted(SAMPLES.glob("*.json")):
            with self.subTest(graph=path.stem):
                listed = self.dir / "all.json"
                self.ok("export", path, *open_extents(path), "--to", "json", "-o", listed)
                rows = self.check(self.pane(path, *open_extents(path)), listed, 0)
                n_inside += sum(r["n_inside"] for r in rows)
        self.assertGreater(n_inside, 20)

    def test_shared_models(self):
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        found = {}
        for name in MODELS:
            path = SHARED / "models" / name / "model.onnx"
            if not path.exists() or tidemark.run("plan", path).returncode != 0:
                print(f"{name:24} skipped: not here, or an extent is open")
                continue
            with self.subTest(model=name):
                listed = self.dir / "all.json"
                self.ok("export", path, "--to", "json", "-o", listed)
                found[name] = self.check(self.pane(path), listed)
        # A chain of Concats goes whole.
        self.assertGreater(max(r["n_inside"] for r in found["light-densenet121"]), 5)
        text = self.dir / "why.txt"
        self.ok("report", SHARED / "models" / "light-densenet121" / "model.onnx", "-o", text)
        row = max(found["light-densenet121"], key=lambda r: r["n_inside"])
        self.assertIn(f"Without {row['name']} and the {row['n_inside']} that lie in it (", text.read_text())

    def test_in_the_buffer_of_a_run(self):
        """The peak of the run is smaller by what the plan saves; the plan is that in the trace."""
        trace = self.dir / "t.db"
        for name in ("inception_block", "unet", "densenet_block"):
            with self.subTest(graph=name):
                self.ok("run", "-n", "3", "-o", trace, SAMPLES / f"{name}.json")
                listed = self.dir / "all.json"
                self.ok("export", trace, "--to", "json", "-o", listed)
                pane = self.pane(trace)
                peak = pane["held_bytes"] - next((p["bytes"] for p in pane["parts"] if p["part"] == "rounding"), 0)
                whole = self.planned(listed)
                storages = classes_of(json.loads(listed.read_text())["tensors"])
                rows = [r for r in pane["without"] if r["plan_bytes"] is not None]
                self.assertGreater(len(rows), 1)
                for row in rows:
                    rest = self.planned(listed, storages[row["name"]])
                    self.assertEqual(row["plan_bytes"], rest["bytes"])
                    self.assertEqual(row["peak_bytes"], peak - (whole["bytes"] - rest["bytes"]), row)
                    self.assertLessEqual(pane["second_peak_bytes"], row["peak_bytes"])
                # One run: the whole trace is as high at the same moment.
                docs = []
                for args in ([], ["--whole"]):
                    page = self.dir / "r.json"
                    self.ok("report", *args, trace, "-o", page)
                    docs.append(json.loads(page.read_text())["sides"][0])
                planned = [[r for r in d["without"] if r["plan_bytes"] is not None] for d in docs]
                self.assertEqual(planned[1], planned[0])
                self.assertEqual(docs[1]["peak_parts"], docs[0]["peak_parts"])
                # The same tensors as in the plan alone, at the same moment.
                alone = self.pane(SAMPLES / f"{name}.json")
                self.assertEqual({r["name"] for r in rows}, {r["name"] for r in alone["without"]})

    # ---- ways: each against a plan that the command line makes ----

    PASSES = ("views", "slices", "in-place", "parts", "order")

    def plan_bytes(self, *args):
        return self.json("plan", *args)["plans"][0]["bytes"]

    def check_way(self, way, path, args):
        """What the plan takes with that change, made in another way."""
        verb, rest = way["way"].split(" ", 1)
        if verb == "pass":
            self.assertEqual(args, ["--no-passes"])
            more = ["--allow-recompute", "10%"] if rest == "recompute" else []
            return self.plan_bytes(path, *[f"--no-{p}" for p in self.PASSES if p != rest], *more)
        if verb == "in-place":
            of, other = rest.split(" ")
            listed = self.dir / "in_place.json"
            self.ok("export", path, *args, "--to", "json", "-o", listed)
            doc = json.loads(listed.read_text())
            item = next(t for t in doc["tensors"] if t["name"] == of)
            self.assertNotIn("alias", item)
            item["alias"] = {"kind": "in-place", "of": other, "offset": 0}
            listed.write_text(json.dumps(doc))
            return self.plan_bytes(listed)
        self.assertEqual(verb, "recompute")
        advice = json.loads(self.ok("tui", "--pane", "whatif", "--json", path, *args).stdout)["advice"]
        return next(a["plan_bytes"] for a in advice if a["edit"] == way["way"])

    def test_ways_of_the_samples(self):
        verbs = set()
        for path in sorted(SAMPLES.glob("*.json")):
            if path.stem == "dynamic_batch":
                continue
            with self.subTest(graph=path.stem):
                pane = self.pane(path, "--no-passes")
                now = self.plan_bytes(path, "--no-passes")
                for way in pane["ways"]:
                    self.assertEqual(way["plan_saves_bytes"], now - way["plan_bytes"], way)
                    self.assertGreater(way["plan_saves_bytes"], 0, way)
                    self.assertEqual(self.check_way(way, path, ["--no-passes"]), way["plan_bytes"], way)
                    verbs.add(way["way"].split(" ")[0])
                    self.assertEqual(way["n_again"] > 0, "recompute" in way["way"], way)
                # Where none is known the text says so, and why; ways are looked for five times.
                text = self.dir / "why.txt"
                self.ok("report", path, "--no-passes", "-o", text)
                said = [line for line in text.read_text().splitlines() if line.startswith("Without ") and ") the peak" in line]
                have = {w["name"] for w in pane["ways"]}
                self.assertEqual(len(said), min(5, len(pane["without"])))
                for row, line in zip(pane["without"], said):
                    self.assertTrue(line.startswith(f"Without {row['name']}"), line)
                    self.assertEqual("To get there: " in line, row["name"] in have, line)
                    self.assertEqual("No known way: " in line, row["name"] not in have, line)
        self.assertEqual(verbs, {"pass", "in-place", "recompute"})

    def saved(self, path, edit, args):
        """The plan with that edit, saved by the view, and what it said then."""
        out = self.dir / "edited.json"
        out.unlink(missing_ok=True)
        ran = tidemark.run("tui", path, *args, "--once", "--command", f"edit {edit}", "--command", f"save-plan {out}")
        self.assertIn(ran.returncode, (0, 2), ran.stderr)
        self.assertTrue(out.exists(), ran.stderr)
        return out, ran.stderr

    def test_advice_that_runs(self):
        """Each kind of advice on samples with no pass: a run takes the plan, or refuses it, as the advice says; of an
        operator that may not overwrite what it reads no advice is given, and saving such a plan says why."""
        seen, kinds = set(), ("in-place", "free-earlier", "half", "align", "recompute")
        for name in ("unet", "densenet_block", "diamond", "long_skip", "resnet18"):
            path = SAMPLES / f"{name}.json"
            advice = json.loads(self.ok("tui", path, "--no-passes", "--pane", "whatif", "--json").stdout)["advice"]
            for row in advice:
                verb = row["edit"].split(" ")[0]
                if verb not in kinds or (name, verb) in seen:
                    continue
                seen.add((name, verb))
                with self.subTest(graph=name, edit=row["edit"]):
                    self.assertIn(row["runs"], ("yes", "no"))
                    out, said = self.saved(path, row["edit"], ["--no-passes"])
                    ran = tidemark.run("run", path, "--no-passes", "--plan", out)
                    self.assertEqual(ran.returncode, 0 if row["runs"] == "yes" else 3, ran.stderr)
                    self.assertEqual("no run can follow it" in said, row["runs"] == "no", said)
        self.assertEqual({verb for _, verb in seen}, set(kinds))
        # A convolution reads what lies beside: never in place, whatever the lifetimes.
        path = SAMPLES / "resnet18.json"
        out, said = self.saved(path, "in-place bn3.out relu2.out", ["--no-passes"])
        self.assertIn("no run can follow it: 'in-place bn3.out relu2.out': its operator cannot overwrite 'relu2.out'", said)
        self.refused(3, "run", path, "--no-passes", "--plan", out, says=["does not allow"])
        # A list of lifetimes alone has no operators that could be asked.
        listed = self.dir / "all.json"
        self.ok("export", SAMPLES / "diamond.json", "--no-passes", "--to", "json", "-o", listed)
        advice = json.loads(self.ok("tui", listed, "--pane", "whatif", "--json").stdout)["advice"]
        self.assertEqual({a["runs"] for a in advice if a["edit"].startswith("in-place")}, {"unknown"})

    def test_smaller_extents(self):
        """Half the batch, and half of any other open extent; one given by --extent as one given by --shape."""
        path = SAMPLES / "dynamic_batch.json"
        ways = self.pane(path, "--shape", "x=8x64")["ways"]
        self.assertEqual({w["way"] for w in ways}, {"batch 4"})
        self.assertEqual({w["plan_bytes"] for w in ways}, {self.plan_bytes(path, "--shape", "x=4x64")})
        self.assertEqual(self.pane(path, "--shape", "x=1x64")["ways"], [])  # one has no half
        model = SHARED / "models" / "bert-toy" / "model.onnx"
        if not model.exists():
            self.skipTest(f"{model} is not here")
        extents = lambda batch, n: ["--extent", f"batch={batch}", "--extent", f"max_seq_len_in_batch={n}"]
        shapes = [x for i in ("input_ids", "token_type_ids", "input_mask") for x in ("--shape", f"{i}=4x32")]
        for args in (extents(4, 32), shapes):
            ways = {w["way"]: w["plan_bytes"] for w in self.pane(model, *args)["ways"]}
            self.assertEqual(ways, {"batch 2": self.plan_bytes(model, *extents(2, 32)),
                                    "extent max_seq_len_in_batch=16": self.plan_bytes(model, *extents(4, 16))})
        advice = json.loads(self.ok("tui", "--pane", "whatif", "--json", model, *extents(4, 32)).stdout)["advice"]
        self.assertEqual({a["edit"]: a["plan_bytes"] for a in advice if a["edit"] in ways}, ways)

    def test_without_the_model_nothing_is_said_of_ways(self):
        listed = self.dir / "all.json"
        self.ok("export", SAMPLES / "unet.json", "--to", "json", "-o", listed)
        self.assertEqual(self.pane(listed)["ways"], [])
        text = self.dir / "why.txt"
        self.ok("report", listed, "-o", text)
        self.assertIn("No known way from here: only the model could tell.", text.read_text())
        self.ok("report", SAMPLES / "unet.json", "-o", text)
        self.assertNotIn("from here", text.read_text())

    # ---- lists that are hardly any ----

    def listed(self, *rows):
        path = self.dir / "list.csv"
        path.write_text("id,lower,upper,size,alias,persistent\n" + "".join(r + "\n" for r in rows))
        return path

    def test_hardly_anything(self):
        cases = {
            "no tensor": [],
            "weights only": ["w,0,3,100,,1", "v,0,3,50,,1"],
            "one": ["a,0,3,100,,"],
            "all of one size": [f"t{i},{i},{i + 3},64,," for i in range(6)],
            "no bytes": ["a,0,3,0,,", "b,1,2,0,,"],
            "one storage": ["a,0,4,100,,", "b,1,3,50,a+0,", "c,2,4,20,b+10,"],
            "beside what persists": ["w,0,4,500,,1", "a,0,2,100,,", "b,1,4,70,,"],
        }
        for what, rows in cases.items():
            with self.subTest(what):
                path = self.listed(*rows)
                p = tidemark.run("tui", "--pane", "explain", "--json", path)
                if not rows:
                    self.assertEqual(p.returncode, 3, p.stderr)  # an empty list is none
                    continue
                self.assertEqual(p.returncode, 0, p.stderr)
                pane = json.loads(p.stdout)
                lists = self.dir / "all.json"
                self.ok("export", path, "--to", "json", "-o", lists)
                found = self.check(pane, lists, 0)
                n = {"weights only": 0, "one": 1, "all of one size": 3, "no bytes": 0, "one storage": 1,
                     "beside what persists": 2}[what]
                self.assertEqual(len(found), n)
                if what == "one storage":
                    self.assertEqual((found[0]["name"], found[0]["n_inside"], found[0]["plan_bytes"]), ("a", 2, 0))
                text = self.dir / "why.txt"
                self.ok("report", path, "-o", text)
                self.assertEqual(" and the 2 that lie in it (" in text.read_text(), what == "one storage")


if __name__ == "__main__":
    tidemark.main()
