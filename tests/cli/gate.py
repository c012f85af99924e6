# SPDX-License-Identifier: MIT
"""tidemark check as a gate in CI: what is planted is found with its cause, what is unchanged passes every time."""
import html
import json
import re
import shutil
import subprocess
import unittest

import tidemark
from gate_case import LENET, TRACE, GateCase, untimed
from tidemark import SAMPLES


class Regressions(GateCase):
    """Ten ways to make memory worse: each is caught, and the text says what was done."""

    def test_01_fusion_off(self):
        self.model("m.json", of=SAMPLES / "inception_block.json")
        self.config()
        self.update()
        self.default("fuse = false")
        self.failed("fuse is off instead of on", "operators more", "(Relu)", metric="planned_bytes", cause="setting")

    def test_02_in_place_off(self):
        self.model("m.json", of=SAMPLES / "long_skip.json")
        self.config()
        self.update()
        self.default('no_passes = ["in-place"]')
        self.failed("passes: without in-place", "in-place)", metric="planned_bytes", cause="place_lost")

    def test_03_alignment_up(self):
        self.begin()
        self.default("align = 4096")
        doc = self.failed("align is 4096 instead of 256", "grew", metric="planned_bytes", cause="setting")
        # What is predicted is measured, whatever the alignment.
        self.assertNotIn("unexplained_bytes", json.dumps([r for c in doc["cases"] for r in c["rows"]
                                                          if r["verdict"] == "fail"]))

    def test_04_an_operator_reordered(self):
        """The same graph, its text in another order; nothing sorts it back."""
        self.model("m.json", of=SAMPLES / "inception_block.json")
        self.config()
        self.default('no_passes = ["order"]')
        self.update()

        def pool_first(doc):
            pool = next(n for n in doc["nodes"] if n["op"] == "MaxPool")
            doc["nodes"].remove(pool)
            doc["nodes"].insert(0, pool)

        self.model("m.json", pool_first, of=SAMPLES / "inception_block.json")
        self.failed("maxpool1 runs before conv1 (before: after it)", metric="planned_bytes", cause="order")

    def test_05_a_tensor_made_persistent(self):
        """A list of lifetimes, in which one tensor is kept for good."""
        table = self.dir / "m.json"
        self.ok("export", LENET, "--to", "json", "-o", table)
        self.config(run=False)
        self.update()
        doc = json.loads(table.read_text())
        tensor = next(t for t in doc["tensors"] if t["name"] == "relu4.out")
        tensor["persistent"] = True
        for other in doc["tensors"]:
            if other.get("alias_of") == "relu4.out":
                other.pop("alias_of")
        table.write_text(json.dumps(doc))
        self.failed("relu4.out", "persistent", metric="total_bytes", cause="kind")

    def test_05_a_tensor_made_an_output(self):
        """Other outputs are another model: that is no comparison, and no pass."""
        self.begin()
        self.model("m.json", lambda d: d["outputs"].append("maxpool1.out"))
        p = self.not_run(4)
        self.assertIn("maxpool1.out", p.stdout)

    def test_06_a_leak(self):
        subprocess.run([TRACE, self.dir / "t.db"], check=True)
        self.config(["t.db"], run=False)
        self.update()
        self.check()
        subprocess.run([TRACE, self.dir / "t.db", "leak"], check=True)
        self.failed("scratch of conv: 4.00 KiB never given back", metric="leaked_bytes", cause="leak")

    def test_07_an_allocation_in_steady_state(self):
        subprocess.run([TRACE, self.dir / "t.db"], check=True)
        self.config(["t.db"], run=False)
        self.update()
        subprocess.run([TRACE, self.dir / "t.db", "steady"], check=True)
        doc = self.failed("temp of softmax", "16 allocations in steady state (before: 0)", metric="warm_allocations",
                          cause="steady")
        row = next(r for r in doc["cases"][0]["rows"] if r["metric"] == "warm_allocations")
        self.assertEqual((row["baseline"], row["current"]), (0, 16))  # what comes before the mark does not count

    def test_08_batch_plus_one(self):
        self.begin()
        self.model("m.json", lambda d: d["inputs"][0].update(shape=[2, 1, 28, 28]))
        self.failed("image 2x1x28x28", "image 1x1x28x28", metric="kind_peak_bytes", cause="inputs")

    def test_08_an_open_extent_plus_one(self):
        self.model("m.json", of=SAMPLES / "dynamic_batch.json")
        self.config(run=False, tail="extents = { batch = 8 }")
        self.update()
        self.config(run=False, tail="extents = { batch = 9 }")
        self.failed("x 9x64", "x 8x64", metric="total_bytes", cause="inputs")

    def test_09_planner_swapped(self):
        self.model("m.json", of=SAMPLES / "inception_block.json")
        self.config()
        self.update()
        self.default('strategy = "greedy_color"')
        self.failed("strategy is greedy_color instead of search", metric="planned_bytes", cause="setting")

    def test_10_a_model_removed(self):
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["*.json"], head="")
        (self.dir / "tidemark.toml").write_text(
            'version = 1\nbaseline = "base.txt"\n[defaults]\nrun = true\n[[model]]\npath = "*.json"\n')
        self.update()
        (self.dir / "b.json").unlink()
        self.failed("b.json", "removed", "it is not measured any more")


class Unchanged(GateCase):
    def test_a_hundred_times(self):
        """The same bytes of JSON each time, but for what a clock tells; also while others want the machine."""
        for name in ("lenet5", "decoder_step", "diamond"):
            self.model(f"{name}.json", of=SAMPLES / f"{name}.json")
        self.config(["lenet5.json", "decoder_step.json", "diamond.json"])
        self.update()
        seen = set()
        done = 0
        while done < 100:  # five at a time
            crowd = [self.start("check", "--json", "--config", self.dir / "tidemark.toml") for _ in range(5)]
            for p in crowd:
                out, err = p.communicate()
                self.assertEqual(p.returncode, 0, err)
                seen.add(json.dumps(untimed(json.loads(out))))
                done += 1
        self.assertEqual(len(seen), 1)

    def test_steps_decide_and_no_clock(self):
        """A smaller limit of steps makes another plan, the same each time."""
        self.model("m.json", of=SAMPLES / "decoder_step.json")
        self.config(run=False)
        self.update()
        path = self.dir / "tidemark.toml"
        path.write_text(path.read_text().replace("node_limit = 2000", "node_limit = 1"))
        for _ in range(3):
            text = self.check(code=1).stdout
            self.assertIn("node_limit is 1 instead of 2000", text)
            self.assertIn("planned_bytes: 17.50 KiB (17920) -> 18.25 KiB (18688)", text)

    def test_threads_change_nothing(self):
        """Planned by several threads: the same document as by one."""
        names = [p.name for p in sorted(SAMPLES.glob("*.json")) if p.stem != "dynamic_batch"]
        for name in names:
            shutil.copy(SAMPLES / name, self.dir)
        self.config(names, run=False)
        self.update()
        first = untimed(self.document())
        self.assertEqual(len(first["cases"]), len(names))
        for jobs in (2, 8):
            self.assertEqual(first, untimed(self.document("--jobs", jobs)))

    def test_an_update_changes_nothing_when_nothing_changed(self):
        self.begin()
        before = (self.dir / "base.json").read_bytes()
        self.assertIn("left alone", self.update("again").stdout)
        self.assertEqual(before, (self.dir / "base.json").read_bytes())

    def test_predicted_and_measured(self):
        """X-7: predicted, measured and difference by kind; planned categories differ by 0."""
        self.begin()
        text = self.check("--verbose").stdout
        rows = re.findall(r"(?m)^    (\w+) +(\d+) +(\d+) +([+-]\d+)$", text)
        self.assertEqual({r[0] for r in rows}, {"Default", "Persistent", "Workspace"})
        for _, predicted, measured, difference in rows:
            self.assertEqual((predicted, difference), (measured, "+0"))
        compare = self.json("compare", LENET)
        self.assertEqual({(r[0], int(r[1])) for r in rows},
                         {(k["kind"], k["predicted_bytes"]) for k in compare["kinds"]})

    def test_the_project_passes_its_own(self):
        """tidemark-baseline.json is of these samples: every one of them is in it."""
        doc = json.loads(self.ok("check", "--json", cwd=tidemark.SOURCE).stdout)
        for sample in SAMPLES.glob("*.json"):
            self.assertTrue(any(c["key"].startswith(f"sample_graphs/{sample.name}") for c in doc["cases"]), sample)


class Page(GateCase):
    """--report: baseline against current as a page."""

    def page(self, *args, code=1):
        p = self.check("--report", "r.html", *args, code=code)
        self.assertEqual(p.stdout.splitlines()[-1], "report: r.html")
        return (self.dir / "r.html").read_text()

    def tables(self, page):
        """{heading: rows of cells}; a cell is its exact number where it has one."""
        found = {}
        for title, table in re.findall(r"<h3[^>]*>([^<]*)</h3>\s*<div[^>]*>\s*<table[^>]*>.*?<tbody>(.*?)</tbody>", page, re.S):
            found[title] = [[html.unescape(exact or text) for exact, text in
                             re.findall(r'<t[hd](?: scope="row")?(?: title="([^"]*)")?>(.*?)</t[hd]>', row)]
                            for row in table.split("</tr>")[:-1]]
        return found

    def test_figures_causes_and_tensors_of_both_sides(self):
        self.begin()
        self.default("no_passes = ['in-place']")
        page, doc = self.page(), self.document(code=1)["cases"][0]
        self.assertIn("<h2 id=\"case0\">FAIL <code>m.json</code></h2>", page)
        tables = self.tables(page)
        for row in doc["rows"]:
            if row["unit"] != "bytes" or row["baseline"] is None or row["current"] is None:
                continue
            name = row["metric"] + (f".{row['kind']}" if row["kind"] else "")
            said = next(cells for cells in tables["Figures"] if cells[0] == name)
            self.assertEqual([int(re.search(r"\((\d+)\)|^(\d+) B", text).group(0).strip("() B")) for text in said[1:3]],
                             [row["baseline"], row["current"]], name)
        for cause in doc["causes"]:
            self.assertIn(html.escape(cause["text"], quote=False), page.replace("&#39;", "'").replace("&quot;", '"'))
        number = lambda text: 0 if text == "" else int(text.removesuffix(" B"))
        for side, column in (("baseline", 5), ("current", 6)):
            peak = sum(number(cells[column]) for cells in tables["Tensors of both, largest change first"])
            self.assertEqual(peak + doc[side]["holes_bytes"], doc[side]["held_bytes"], side)
        change = sum(int(cells[3].removesuffix(" B")) for cells in tables["Change of the peak by operator"])
        self.assertEqual(change, doc["current"]["held_bytes"] - doc["baseline"]["held_bytes"])
        self.assertIn("no plan: when the tensors of A live and where they lie is not known", page)
        self.assertEqual(self.page(), page, "the same bytes twice")

    def test_a_plan_as_baseline_is_shown_over_time_by_another_command(self):
        self.model("m.json", of=SAMPLES / "diamond.json")
        self.ok("plan", self.dir / "m.json", "--node-limit", 2000, "-o", self.dir / "plan.json")
        page = self.page("m.json", "--baseline", "plan.json", "--no-in-place")
        self.assertIn("<code>tidemark report plan.json m.json -o page.html</code> shows both.", page)
        self.assertNotIn("is not known", page)

    def test_a_side_that_is_not_there(self):
        self.begin()
        (self.dir / "m.json").unlink()
        page = self.page()
        self.assertIn("nothing is known of B", page)
        self.assertIn("<b>Current (B)</b> is not known.", page)
        self.assertRegex(page, r"<bdi>relu1.out</bdi> A 18.50 KiB, <b>B not known</b>")
        self.begin()
        self.model("n.json")
        self.config(("m.json", "n.json"))
        self.assertIn("nothing is known of A", self.page(code=0))

    def test_a_pass_has_a_page_too(self):
        self.begin()
        self.assertIn("As before or within budget: 1 of 1.", self.page(code=0))

    def test_what_cannot_be_written(self):
        self.begin()
        self.not_run(2, "--report", "r.txt", says=["r.txt", ".html"])
        self.not_run(2, "--report", "r.html", "--markdown", "r.html", says=["same file"])
        self.not_run(2, "--report", "r.html", "--update-baseline", "--reason", "x", says=["judges nothing"])
        p = self.check("--report", "no/r.html", code=8)
        self.assertNotIn("report:", p.stdout)
        self.assertNotIn("--report", self.remedy(self.failed()), "the command to accept writes no page")

    def failed(self):
        self.default("no_passes = ['in-place']")
        return self.check("--report", "r.html", code=1)


class Plain(GateCase):
    """FILEs on the command line, without a configuration."""

    def test_a_plan_is_a_baseline(self):
        self.ok("plan", LENET, "-o", self.dir / "plan.json", "--node-limit", 20000)
        self.check(LENET, "--baseline", "plan.json")
        p = self.check(LENET, "--baseline", "plan.json", "--align", 4096, code=1)
        self.assertIn("align is 4096 instead of 256", p.stdout)
        self.assertNotIn("not set", p.stdout)  # what a plan does not tell is no difference
        p = self.not_run(4, SAMPLES / "diamond.json", "--baseline", "plan.json")
        self.assertIn("lenet5", p.stdout)
        self.assertIn("diamond", p.stdout)

    def test_a_trace_and_a_model_are_baselines(self):
        self.ok("run", LENET, "-n", 2, "-o", self.dir / "t.db", "--node-limit", 20000)
        self.check(LENET, "--baseline", "t.db")
        self.check(LENET, "--baseline", "t.db", "--run")
        self.check(LENET, "--baseline", LENET, "--run")
        self.check(self.dir / "t.db", "--baseline", "t.db")
        subprocess.run([TRACE, self.dir / "runs_nothing.db"], check=True)
        self.not_run(4, LENET, "--baseline", "runs_nothing.db", says=["holds no run"])
        p = self.check(LENET, "--baseline", LENET, "--run", "--contexts", 1, "--no-in-place", "--strategy", "naive")
        self.assertIn("pass", p.stdout)  # both sides have the same settings

    def test_a_baseline_on_standard_input(self):
        self.begin()
        text = (self.dir / "base.json").read_text()
        self.check("m.json", "--baseline", "-", "--run", "--node-limit", 2000, stdin=text)
        self.check("m.json", "--baseline", "-", stdin=self.ok("plan", LENET, "-o", "-").stdout)
        self.not_run(4, "m.json", "--baseline", "-", stdin="{}")

    def test_a_baseline_file_of_files(self):
        """--update-baseline needs no configuration either."""
        self.model("m.json")
        self.check("m.json", "--baseline", "b.json", "--update-baseline", "--reason", "r")
        self.check("m.json", "--baseline", "b.json")
        self.check("./m.json", "--baseline", "b.json")
        p = self.check("m.json", "--baseline", "b.json", "--align", 4096, code=1)
        self.assertIn("align", p.stdout)

    def test_extents_and_shapes(self):
        open_batch = SAMPLES / "dynamic_batch.json"
        doc = self.document(open_batch, "--no-baseline", "--extent", "batch=8")
        other = self.document(open_batch, "--no-baseline", "--shape", "x=8x64")
        self.assertEqual(untimed(doc), untimed(other))
        for args, says in ((["--extent", "bath=8"], ["bath", "batch"]), ([], ["x"]),
                           (["--extent", "batch=8", "--shape", "x=9x64"], ["batch=8", "9"])):
            p = self.check(open_batch, "--no-baseline", *args, code=1)
            for word in says:
                self.assertIn(word, p.stdout)
        self.not_run(2, open_batch, "--no-baseline", "--extent", "batch", says=["batch"])

    def test_what_does_not_go_together(self):
        self.begin()
        for args, says in ((["m.json", "--config", "tidemark.toml"], "--config"),
                           (["--strategy", "naive"], "configuration"), (["--run"], "--run"),
                           (["m.json", "--contexts", 2], "--run"), (["--no-baseline", "--baseline", "base.json"], "--baseline"),
                           (["--reason", "r"], "--update-baseline"), (["--update-baseline"], "--reason"),
                           (["--update-baseline", "--reason", " "], "--reason"),
                           (["--update-baseline", "--reason", "r", "--no-baseline"], "--no-baseline"),
                           (["--update-baseline", "--reason", "r", "--json"], "judges nothing"),
                           (["m.json", "--update-baseline", "--reason", "r"], "baseline"),
                           (["m.json", "--time-limit", 1], "clock"), (["--jobs", 0], "--jobs"),
                           (["--baseline-of", "-x"], "-x"), (["--baseline-of", "a:b"], "a:b"),
                           (["--markdown", "base.json"], "replaced"), (["--junit", "m.json"], "replaced"),
                           (["--sarif", "./tidemark.toml"], "replaced"),
                           (["--sarif", "x", "--junit", "./../" + self.dir.name + "/x", "--markdown", "x"], "same file")):
            self.not_run(2, *args, says=[says])
        (self.dir / "tidemark.json").write_text("{}")
        self.not_run(2, says=["both"])
        (self.dir / "tidemark.json").unlink()
        (self.dir / "tidemark.toml").unlink()
        self.not_run(2, says=["tidemark.toml"])


if __name__ == "__main__":
    tidemark.main()
