# SPDX-License-Identifier: MIT
"""Reports of every format: valid by independent tools, the same numbers in all of them and in plain SQL, nothing broken
by bad names or a full disk."""
import csv
import io
import json
import re
import resource
import subprocess
import xml.etree.ElementTree

import tidemark
from tidemark import SAMPLES, SHARED, SOURCE, Case, ask, run
from validators import python_with

LENET = SAMPLES / "lenet5.json"
SCHEMA = SOURCE / "docs" / "schemas" / "report.json"
TABLES = ["kinds", "peak_parts", "peak_by_operator", "peak_items", "without", "operators", "pools", "items"]


class Reports(Case):
    def report(self, *files, ending="json", options=(), name="r"):
        out = self.dir / f"{name}.{ending}"
        self.ok("report", *files, "-o", out, *options)
        return out

    def trace(self, *options, model=LENET):
        path = self.dir / "t.db"
        self.ok("run", model, "-n", 3, "-o", path, *options)
        return path

    def rows(self, *files, table="items", options=()):
        path = self.report(*files, ending="csv", options=["--table", table, *options])
        data = path.read_bytes()
        self.assertEqual(data.count(b"\n"), data.count(b"\r\n"))
        return list(csv.DictReader(io.StringIO(data.decode("utf-8"), newline="")))

    # ---- valid ----

    def merged(self):
        """Of two processes, one of which holds more."""
        out = self.dir / "merged.db"
        self.ok("merge", self.trace("--naive").rename(self.dir / "a.db"), self.trace().rename(self.dir / "b.db"), "-o", out, "--align", "begin")
        return out

    def test_json_is_of_its_schema(self):
        python = python_with("jsonschema")
        if python is None:
            self.skipTest("python3-jsonschema is not installed")
        plan = self.dir / "plan.json"
        self.ok("plan", LENET, "--no-passes", "-o", plan)
        merged = self.merged()
        inputs = [[LENET], [plan], [self.trace()], [LENET, plan], [plan, self.dir / "t.db"],
                  [self.trace("--naive"), "--whole"], [LENET, "--capacity", "64MiB"], [merged]]
        if SHARED.is_dir():
            for pattern in ("data/*/*.csv", "models/light-*/model.onnx"):  # the validator takes a second for 1 MB
                inputs += [[path] for path in sorted(SHARED.glob(pattern), key=lambda path: path.stat().st_size)[:3]]
        paths = []
        for i, files in enumerate(inputs):
            paths.append(self.report(*files).rename(self.dir / f"{i}.json"))
        p = subprocess.run([python, "-c", "import json, jsonschema, sys\n"
                            "for path in sys.argv[2:]:\n"
                            "    print(path, flush=True)\n"
                            "    jsonschema.validate(json.load(open(path)), json.load(open(sys.argv[1])))", SCHEMA, *paths],
                           capture_output=True, text=True, check=False)
        self.assertEqual(p.returncode, 0, f"{inputs[max(p.stdout.count(chr(10)) - 1, 0)]}: {p.stderr[-1500:]}")
        self.assertEqual(p.stdout.count("\n"), len(inputs))

    def test_a_wrong_document_is_not_of_the_schema(self):
        python = python_with("jsonschema")
        if python is None:
            self.skipTest("python3-jsonschema is not installed")
        doc = json.loads(self.report(LENET).read_text())
        for spoil in (lambda d: d["sides"][0].pop("peak"), lambda d: d.update(version=1),
                      lambda d: d["sides"][0]["items"][0].update(size_bytes="64")):
            wrong = json.loads(json.dumps(doc))
            spoil(wrong)
            path = self.dir / "wrong.json"
            path.write_text(json.dumps(wrong))
            p = subprocess.run([python, "-c", "import json, jsonschema, sys\n"
                                "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))", path, SCHEMA],
                               capture_output=True, text=True, check=False)
            self.assertIn("ValidationError", p.stderr)

    def test_svg_is_xml_and_loads_nothing(self):
        for files in ([LENET], [self.trace()]):
            path = self.report(*files, ending="svg")
            root = xml.etree.ElementTree.parse(path).getroot()
            self.assertEqual(root.tag, "{http://www.w3.org/2000/svg}svg")
            for element in root.iter():
                for name in element.attrib:
                    self.assertNotIn(name.split("}")[-1], ("href", "src", "onload", "onclick"))

    # ---- the same numbers everywhere ----

    def test_csv_and_json_are_equal(self):
        for files in ([LENET], [self.trace()], [self.trace("--naive")]):
            side = json.loads(self.report(*files).read_text())["sides"][0]
            for table in [t for t in TABLES if t in side]:
                rows = self.rows(*files, table=table)
                self.assertEqual(len(rows), len(side[table]), table)
                for row, want in zip(rows, side[table]):
                    self.assertEqual(list(row), list(want))
                    for key, value in want.items():
                        text = row[key]
                        if value is None:
                            self.assertEqual(text, "")
                        elif isinstance(value, bool):
                            self.assertEqual(text, str(int(value)))
                        elif isinstance(value, float):
                            self.assertAlmostEqual(float(text), value)
                        else:
                            self.assertEqual(text, str(value))

    def test_json_is_what_sqlite_says(self):
        trace = self.trace("--naive")
        side = json.loads(self.report(trace).read_text())["sides"][0]
        run_id = side["run"]
        (peak,), = ask(trace, "SELECT peak_bytes FROM peak WHERE run_id = ?", run_id)
        self.assertEqual(side["peak"]["bytes"], peak)
        self.assertEqual(sum(i["bytes"] for i in side["peak_items"]), peak)
        live = ask(trace, "SELECT block_id, requested_bytes FROM live_at_peak WHERE run_id = ?", run_id)
        self.assertEqual(sum(b for _, b in live), peak)
        self.assertEqual(len(side["peak_items"]), len(live))
        kinds = ask(trace, "SELECT kind, device, requested_bytes, peak_bytes FROM bytes_by_kind WHERE run_id = ?", run_id)
        self.assertEqual(sorted((k["kind"], k["device"], k["requested_bytes"], k["measured_bytes"]) for k in side["kinds"]),
                         sorted(kinds))
        whole = json.loads(self.report(trace, options=["--whole"]).read_text())["sides"][0]
        (n, size), = ask(trace, "SELECT count(*), sum(requested_bytes) FROM block")
        self.assertEqual((whole["n_items"], sum(i["size_bytes"] for i in whole["items"])), (n, size))
        leaks = ask(trace, "SELECT count(*), coalesce(sum(requested_bytes), 0) FROM block WHERE free_event IS NULL")
        self.assertEqual([(sum(k["n"] for k in whole["leaks"]), sum(k["bytes"] for k in whole["leaks"]))], leaks)

    def test_what_an_allocator_does_not_tell_is_not_known(self):
        """cpu_caching keeps freed blocks and records no segment: nothing says what it took, and 0 would be wrong."""
        trace = self.dir / "silent.db"
        self.ok("run", LENET, "--naive", "-n", 2, "--allocator", "cpu_caching", "-o", trace)
        unknown = ("reserved_bytes", "cached_bytes", "unused_bytes", "peak_reserved_bytes")
        side = json.loads(self.report(trace).read_text())["sides"][0]
        self.assertIsNone(side["reserved"])
        self.assertIsNone(side["reserved_curve"])
        pane = json.loads(self.ok("tui", trace, "--pane", "pools", "--json").stdout)
        self.assertEqual([pane["reserved_bytes"], pane["cached_bytes"]], [None, None])
        self.assertEqual([len(side["pools"]), len(pane["rows"])], [3, 3])
        for pool in side["pools"] + pane["rows"]:
            self.assertEqual([pool[key] for key in unknown], [None] * 4)
            self.assertGreater(pool["active_bytes"], 0)
        self.assertTrue(all(row["unused_since_ns"] is None for row in pane["rows"]))
        self.ok("report", trace, "-o", self.dir / "p.csv", "--table", "pools")
        for row in csv.DictReader(io.StringIO((self.dir / "p.csv").read_text())):
            self.assertEqual([row[key] for key in unknown], [""] * 4)
        self.ok("report", trace, "-o", self.dir / "p.txt")
        text = (self.dir / "p.txt").read_text()
        self.assertRegex(text, r"Peak reserved +not known +cpu_caching does not record")
        self.assertIn("What they took from the system is not known", text)
        self.ok("run", LENET, "--naive", "-n", 2, "-o", trace, "--force")
        pools = json.loads(self.report(trace).read_text())["sides"][0]["pools"]
        self.assertTrue(all(p["reserved_bytes"] == p["active_bytes"] and p["cached_bytes"] == 0 for p in pools if p["wasted_bytes"] is None),
                        "cpu takes each block by itself and keeps none")

    def test_a_word_means_one_thing(self):
        """Reserved is what allocators took from the system, of a pool; what blocks hold with rounding is active, also of a kind."""
        trace = self.trace("--naive", "--allocator", "stream_caching")
        text = self.report(trace, ending="txt").read_text()
        heads = {line.split()[0]: re.split(r"  +", line.strip()) for line in text.splitlines() if re.match(r"(Kind|Pool) +Device", line)}
        self.assertTrue({"Active peak", "Allocated in the run"} <= set(heads["Kind"]), heads)
        self.assertFalse({"Reserved peak", "Requested in all", "Requested"} & set(heads["Kind"]))
        self.assertTrue({"Reserved", "Active", "Requested", "Reserved peak"} <= set(heads["Pool"]))
        for kind in json.loads(self.report(trace).read_text())["sides"][0]["kinds"]:
            live = top = 0
            for op, of, size in ask(trace, "SELECT op, kind, reserved_bytes FROM events WHERE op IN ('alloc', 'free_completed') ORDER BY event_id"):
                live += (size if op == "alloc" else -size) if of == kind["kind"] else 0
                top = max(top, live)
            self.assertEqual(kind["reserved_peak_bytes"], top)
            self.assertEqual([(kind["requested_bytes"],)], ask(
                trace, "SELECT coalesce(sum(requested_bytes), 0) FROM events WHERE op = 'alloc' AND run_id IS NOT NULL AND kind = ?", kind["kind"]))

    def test_a_block_that_goes_goes_in_every_execution(self):
        """The sentence says how many blocks that are, and how many of them are there at the moment."""
        trace = self.trace("--naive")
        text = self.report(trace, ending="txt").read_text()
        for name, now, n, scope in re.findall(r"Without (\S+) \([\d.]+ \w+, (\d+) now of (\d+) in the run made by (\S+), which all go\)", text):
            self.assertEqual(ask(trace, "SELECT count(*) FROM blocks WHERE name = ? AND scope = ?", name, scope), [(int(n),)])
            self.assertEqual((now, n), ("1", "3"))
        self.assertIn("which all go", text)
        self.assertIn("in every execution", text)

    def test_sums_hold_for_every_model(self):
        """The parts of the peak sum to what is held, its operators and its items to the curve, on real models."""
        models = [LENET] + (sorted(SHARED.glob("models/light-*/model.onnx")) if SHARED.is_dir() else [])
        if not SHARED.is_dir():
            print(f"only {LENET.name}: {SHARED} is not there")
        for model in models:
            side = json.loads(self.report(model).read_text())["sides"][0]
            self.assertEqual(sum(p["bytes"] for p in side["peak_parts"]), side["peak"]["held_bytes"], model)
            self.assertEqual(sum(p["bytes"] for p in side["peak_by_operator"]), side["peak"]["bytes"], model)
            self.assertEqual(sum(p["bytes"] for p in side["peak_items"]), side["peak"]["bytes"], model)
            self.assertEqual(max(side["curve"]["bytes"]), side["peak"]["bytes"], model)

    def test_a_pair_sums_to_the_change(self):
        plan = self.dir / "plan.json"
        self.ok("plan", LENET, "--no-passes", "--align", 4096, "-o", plan)
        c = json.loads(self.report(LENET, plan).read_text())["comparison"]
        self.assertNotEqual(c["change_bytes"], 0)
        self.assertEqual(c["change_bytes"], c["b_held_bytes"] - c["a_held_bytes"])
        for table in ("change_by_operator", "change_by_kind"):
            self.assertEqual(sum(row["change_bytes"] for row in c[table]), c["change_bytes"], table)
        rows = self.rows(LENET, plan, table="change_by_item")
        self.assertEqual([row["name"] for row in rows], [row["name"] for row in c["change_by_item"]])
        other = self.rows(LENET, plan, table="b.items")
        self.assertEqual(len(other), len(self.rows(plan)))

    # ---- words ----

    def test_markdown_and_text_for_pasting(self):
        text = self.report(LENET, ending="txt").read_text()
        markdown = self.report(LENET, ending="md", options=["--rows", 3]).read_text()
        peak = f"{json.loads(self.report(LENET).read_text())['sides'][0]['peak']['bytes'] / 1024:.2f} KiB"
        for said in (text, markdown):
            self.assertIn(peak, said)
            self.assertIn("conv1.scratch", said)
        self.assertRegex(markdown, r"\d+ more rows\.")
        widths = {line.count("|") for line in markdown.splitlines() if line.startswith("| fc1")}
        self.assertTrue(widths)
        yes = self.report(LENET, ending="txt", options=["--capacity", "64MiB"]).read_text()
        no = self.report(LENET, ending="txt", options=["--capacity", "17MiB"]).read_text()
        self.assertRegex(yes, r"Will it fit +yes")
        self.assertRegex(no, r"Will it fit +no +\d+\.\d+ KiB too much")

    def test_the_same_bytes_twice(self):
        trace = self.trace()
        for ending in ("html", "csv", "json", "md", "svg", "txt"):
            for file in (LENET, trace):
                first = self.report(file, ending=ending, name="one").read_bytes()
                self.assertEqual(self.report(file, ending=ending, name="two").read_bytes(), first, f"{file.name} {ending}")
                self.assertNotIn(str(self.dir).encode(), first)

    # ---- what cannot be done ----

    def test_refusals(self):
        self.refused(2, "report", LENET, says=["-o is needed"])
        self.refused(2, "report", LENET, "-o", self.dir / "r.docx", says=[".html .csv .json .md .svg .txt"])
        self.refused(2, "report", LENET, "-o", self.dir / "r.json", "--table", "items", says=["--table"])
        self.refused(2, "report", LENET, "-o", self.dir / "r.csv", "--split-script", says=["--split-script"])
        self.refused(2, "report", LENET, LENET, LENET, "-o", self.dir / "r.html", says=["one or two FILEs"])
        self.refused(3, "report", LENET, "-o", self.dir / "r.csv", "--table", "itens", says=["itens", "items"])
        self.refused(8, "report", LENET, "-o", self.dir / "no" / "r.html", says=["r.html"])
        self.refused(3, "report", self.dir / "none.json", "-o", self.dir / "r.html", says=["none.json"])
        self.assertEqual(list(self.dir.iterdir()), [])

    def test_a_full_disk_leaves_the_old_file(self):
        out = self.report(LENET, ending="html")
        before = out.read_bytes()
        p = run("report", LENET, "-o", out, preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096)))
        self.assertNotEqual(p.returncode, 0)
        self.assertEqual(out.read_bytes(), before)
        self.assertEqual([f.name for f in self.dir.iterdir()], ["r.html"])

    def test_odd_subjects(self):
        """No tensor, one tensor, many: every format writes something that is whole."""
        empty, one = self.dir / "empty.json", self.dir / "one.csv"
        empty.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "tensors": []}))
        one.write_text("id,lower,upper,size\na,0,1,64\n")
        many = self.dir / "many.csv"
        many.write_text("id,lower,upper,size\n" + "".join(f"t{i},{i // 8},{i // 8 + 1 + i % 5},{64 + i % 1000}\n"
                                                          for i in range(5000)))
        for file, n in ((empty, 0), (one, 1), (many, 5000)):
            for ending in ("html", "csv", "json", "md", "svg", "txt"):
                options = ["--strategy", "greedy_by_size"]
                path = self.report(file, ending=ending, options=options)
                self.assertGreater(path.stat().st_size, 0)
            side = json.loads((self.dir / "r.json").read_text())["sides"][0]
            self.assertEqual(side["n_items"], n)
            self.assertEqual(len(self.rows(file, options=options)), n)

    def test_a_page_of_very_many_says_what_it_leaves_out(self):
        """The page's script knows the 200,000 largest; what is left out is counted, and stands in the CSV."""
        many, n = self.dir / "many.csv", 201000
        sizes = [64 + 64 * (i * 7919 % 5000) for i in range(n)]
        many.write_text("id,lower,upper,size\n" + "".join(f"t{i},{i // 8},{i // 8 + 1},{size}\n" for i, size in enumerate(sizes)))
        fast = ["--strategy", "greedy_by_size"]
        page = self.report(many, ending="html", options=fast).read_text()
        data = json.loads(page.split('id="tidemark-data">')[1].split("</script>")[0])["sides"][0]
        sizes.sort()
        self.assertEqual((data["n_items"], data["items_left_out"]), (n, 1000))
        self.assertEqual(data["left_out_bytes"], sum(sizes[:1000]))
        self.assertEqual(sorted(data["items"]["size_bytes"]), sizes[1000:])
        self.assertEqual(len(self.rows(many, options=fast)), n)


if __name__ == "__main__":
    tidemark.main()
