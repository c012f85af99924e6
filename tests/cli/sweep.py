# SPDX-License-Identifier: MIT
"""tidemark sweep: figures held against plan and run, the largest size that fits against all sizes and against real runs,
one result whatever the number of threads or processes, every output, what cannot be swept."""
import csv
import io
import json
import os
import pathlib
import pty
import re
import shutil
import signal
import subprocess
import sys
import unittest
import xml.etree.ElementTree

import tidemark
from degenerate import graph
from tidemark import PROGRAM, SAMPLES, SOURCE, Case, environment, until

DYNAMIC = SAMPLES / "dynamic_batch.json"
SCHEMA = SOURCE / "docs" / "schemas" / "sweep.json"
TIMED = ("plan_time_ns", "time_ns")


def without_times(doc, *more):
    doc = json.loads(json.dumps(doc))
    for point in doc["points"]:
        for key in (*TIMED, *more):
            point.pop(key)
    if "rank" in more:
        doc.pop("n_ranks")
    return doc


class Models(Case):
    def beside(self):
        """What the process of DYNAMIC takes beside its tensors: the program and its bookkeeping."""
        point = self.json("sweep", DYNAMIC, "--batch", 1)["points"][0]
        return point["process_bytes"] - point["total_bytes"]

    def opened(self, name, **axes):
        """A sample graph whose first input has open extents: opened("resnet18", N=0) opens the first one as N."""
        doc = json.loads((SAMPLES / f"{name}.json").read_text())
        for extent, at in axes.items():
            doc["inputs"][0]["shape"][at] = extent
        path = self.dir / f"{name}.json"
        path.write_text(json.dumps(doc))
        return path

    def encoder(self):
        return self.opened("transformer_encoder", N=0, S=1)


class Figures(Models):
    def test_those_of_plan(self):
        doc = self.json("sweep", DYNAMIC, "--extent", "batch=1,8,64", "--strategy", "search,naive", "--align", "64,256")
        self.assertEqual(len(doc["points"]), 12)
        for p in doc["points"]:
            plan = self.json("plan", DYNAMIC, "--shape", f"x={p['value']}x64", "--strategy", p["strategy"], "--align",
                             p["align_bytes"], "--node-limit", 20000)["plans"][0]
            self.assertEqual([p["planned_bytes"], p["naive_bytes"], p["lower_bound_bytes"], p["proved_bytes"], p["proven"]],
                             [plan[k] for k in ("bytes", "naive_bytes", "lower_bound_bytes", "proved_bytes", "proven")])
            self.assertEqual(p["total_bytes"], p["planned_bytes"] + p["weights_bytes"] + p["io_bytes"] + p["other_bytes"])
        self.assertEqual([(s["strategy"], s["align_bytes"], s["n"]) for s in doc["series"]],
                         [("naive", 64, 3), ("naive", 256, 3), ("search", 64, 3), ("search", 256, 3)])

    def test_those_of_a_run(self):
        doc = self.json("sweep", self.encoder(), "--extent", "N=1,3", "--extent", "S=16,64", "--run", "-n", 1)
        self.assertEqual(doc["extent"], "N")
        self.assertEqual([p["sizes"] for p in doc["points"]], ["N=1 S=16", "N=3 S=16", "N=1 S=64", "N=3 S=64"])
        for p in doc["points"]:
            self.assertEqual(p["measured_peak_bytes"], p["total_bytes"])
            self.assertGreater(p["time_ns"], 0)

    def test_lists_ranges_steps_factors(self):
        for values, want in (("4,1,2,4", [1, 2, 4]), ("3..6", [3, 4, 5, 6]), ("1..10:4", [1, 5, 9]), ("1..9*2", [1, 2, 4, 8]),
                             ("1..3,8", [1, 2, 3, 8]), ("7", [7])):
            for option in ("--extent", "--batch"):
                doc = self.json("sweep", DYNAMIC, option, f"batch={values}" if option == "--extent" else values)
                self.assertEqual([p["value"] for p in doc["points"]], want)
                self.assertEqual(doc["extent"], "batch")
        for wrong in ("0", "4..1", "1..", "..4", "1..4:0", "1..4*1", "1,,2", "1..4:2*2", "x", "", "1 2", "4294967296", "-1"):
            self.refused(2, "sweep", DYNAMIC, "--extent", f"batch={wrong}", says=["--extent"])
        self.refused(2, "sweep", DYNAMIC, "--extent", "=1", says=["--extent"])
        self.refused(2, "sweep", DYNAMIC, "--extent", "batch=1..200000", says=["more values", "--fits"])
        self.refused(2, "sweep", DYNAMIC, "--extent", "batch", says=["more values"])
        self.refused(2, "sweep", DYNAMIC, "--extent", "batch=1..99999", "--strategy", "search,naive", says=["100000 points"])
        self.refused(2, "sweep", DYNAMIC, "--batch", "1", "--batch", "2", says=["twice"])

    def test_without_an_extent(self):
        doc = self.json("sweep", SAMPLES / "lenet5.json", SAMPLES / "unet.json", "--strategy", "search,naive")
        self.assertEqual([p["value"] for p in doc["points"]], [None] * 4)
        self.assertEqual(doc["extent"], "")
        lifetimes = self.dir / "l.csv"
        self.ok("export", SAMPLES / "lenet5.json", "--to", "csv", "-o", lifetimes)
        plan = self.json("plan", lifetimes, "--node-limit", 20000)["plans"][0]
        point = self.json("sweep", lifetimes)["points"][0]
        self.assertEqual([point["planned_bytes"], point["align_bytes"]], [plan["bytes"], 256])

    def test_the_same_whatever_the_number_of_threads(self):
        options = ["sweep", self.encoder(), DYNAMIC, "--batch", "1..12", "--extent", "S=32,64", "--strategy", "search,greedy_color"]
        options[2:3] = []
        for more in ([], ["--fits", "21MiB", "--fits", "23MiB"]):
            docs = [without_times(self.json(*options, *more, "--jobs", jobs)) for jobs in (1, 2, 7)]
            self.assertEqual(docs[0], docs[1])
            self.assertEqual(docs[0], docs[2])
            self.assertEqual(len(docs[0]["answers"]), len(docs[0]["series"]) * len(more) // 2)


class Fits(Models):
    def test_the_largest_of_all(self):
        every = self.json("sweep", DYNAMIC, "--extent", "batch=1..600", "--strategy", "search,naive")
        beside = self.beside()
        # Weights alone are more than the first.
        budgets = [beside + n for n in (300_000, 400_000, 409_600, 700_001, 1 << 20, 1 << 30)]
        found = self.json("sweep", DYNAMIC, "--extent", "batch=1..600", "--strategy", "search,naive",
                          *[o for b in budgets for o in ("--fits", b)])
        self.assertEqual(len(found["answers"]), 2 * len(budgets))
        self.assertLess(len(found["points"]), 150)
        totals = {(p["strategy"], p["value"]): p["process_bytes"] for p in every["points"]}
        for p in found["points"]:
            self.assertEqual(p["process_bytes"], totals[p["strategy"], p["value"]])
            self.assertEqual(p["process_bytes"], p["total_bytes"] + beside)
        for a in found["answers"]:
            strategy = found["series"][a["series"]]["strategy"]
            fits = [v for v in range(1, 601) if totals[strategy, v] <= a["budget_bytes"]]
            self.assertEqual(a["value"], max(fits, default=None))
            self.assertEqual([a["none_fits"], a["is_open"]], [not fits, len(fits) == 600])
            if fits:
                self.assertEqual(a["needs_bytes"], totals[strategy, a["value"]])
            if len(fits) < 600:
                self.assertEqual(a["next_value"], max(fits, default=0) + 1)
                self.assertEqual(a["next_bytes"], totals[strategy, a["next_value"]])
        self.assertTrue(any(a["none_fits"] for a in found["answers"]) and any(a["is_open"] for a in found["answers"]))

    def test_without_a_range(self):
        doc = self.json("sweep", DYNAMIC, "--extent", "batch", "--fits", "64MiB")
        a = doc["answers"][0]
        self.assertTrue(set(range(a["value"], a["value"] + 5)) <= {p["value"] for p in doc["points"]}, "the neighbours are planned")
        self.assertFalse(a["is_open"] or a["none_fits"])
        self.assertLessEqual(a["needs_bytes"], 64 << 20)
        self.assertGreater(a["next_bytes"], 64 << 20)
        self.assertEqual(a["next_value"], a["value"] + 1)

    def test_four_values_beyond_the_answer_are_planned(self):
        """Memory need not grow at each step. The search itself asks for none of these but the first and the third."""
        doc = self.json("sweep", DYNAMIC, "--batch", "1..1000", "--fits", "18MiB")
        value = doc["answers"][0]["value"]
        planned = {p["value"] for p in doc["points"]}
        self.assertEqual([v - value for v in range(value + 1, value + 7) if v in planned], [1, 2, 3, 4])

    def test_listed_values_are_planned_too(self):
        doc = self.json("sweep", DYNAMIC, "--extent", "batch=3,5,100", "--fits", "18400KiB")
        self.assertTrue({3, 5, 100} <= {p["value"] for p in doc["points"]})
        self.assertTrue(all(3 <= p["value"] <= 100 for p in doc["points"]))

    def test_three_models_and_their_neighbours_run(self):
        """What fits 64 MiB goes through with what the program leaves of them for blocks, and one more does not: asked of
        sweep, and of run."""
        models = {DYNAMIC: ("batch", "x={}x64"), self.encoder(): ("N", "tokens={}x64x256"),
                  self.opened("squeezenet1_1", N=0): ("N", None)}
        for model, (extent, shape) in models.items():
            more = ["--extent", "S=64"] if model.stem == "transformer_encoder" else []
            html = self.dir / f"{model.stem}.html"
            p = self.ok("sweep", model, "--extent", f"{extent}=1..1000000", *more, "--fits", "64MiB", "--run=answers", "-n", 1, "-o",
                        html, "-o", self.dir / "s.json")
            doc = json.loads((self.dir / "s.json").read_text())
            a = doc["answers"][0]
            self.assertEqual([a["ran"], a["next_ran"]], [True, True], model)
            sentence = re.search(rf"{model.name}.*: the largest {extent} that fits 64 MiB is {a['value']} \(.*\); {a['next_value']} needs ",
                                 p.stdout)
            self.assertIsNotNone(sentence, p.stdout[-400:])
            self.assertIn(f"the largest {extent} that fits 64 MiB is {a['value']} (", html.read_text())
            self.assertIn('class="ring"', html.read_text())
            at = next(q for q in doc["points"] if q["value"] == a["value"])
            self.assertEqual(at["measured_peak_bytes"], at["total_bytes"])
            self.assertEqual(at["process_bytes"], a["needs_bytes"])
            blocks = (64 << 20) - (at["process_bytes"] - at["total_bytes"])
            if shape is not None:
                for value, code in ((a["value"], 0), (a["next_value"], 6)):
                    self.ok("run", model, "-n", 1, "--limit", blocks, "--shape", shape.format(value), "--node-limit", 20000, code=code)

    def test_a_budget_that_the_program_fills(self):
        """Of a model without a byte nothing is left for blocks, and nothing is needed."""
        path = self.dir / "none.json"
        path.write_text(graph([("Relu", ["x"], ["y"])], [("x", ["n", 0])], ["y"]))
        need = self.json("plan", path, "--extent", "n=1")["process"]["peak_bytes"]
        doc = self.json("sweep", path, "--extent", "n=1..4", "--fits", need, "--run")
        self.assertTrue(doc["answers"][0]["is_open"] and doc["answers"][0]["ran"], doc["answers"])
        doc = self.json("sweep", path, "--extent", "n=1..4", "--fits", need - 1, "--run")
        self.assertTrue(doc["answers"][0]["none_fits"])

    def test_needs_something_to_grow(self):
        self.refused(2, "sweep", DYNAMIC, "--fits", "1MiB", says=["--extent", "--batch"])
        self.refused(2, "sweep", DYNAMIC, "--batch", "1..8", "--fits", "0", says=["0 bytes"])
        self.refused(2, "sweep", DYNAMIC, "--batch", "1..8", "--fits", "many", says=["--fits"])


class Output(Models):
    def test_every_format_says_the_same(self):
        endings = ("json", "csv", "md", "txt", "html", "svg")
        outs = [o for ending in endings for o in ("-o", self.dir / f"s.{ending}")]
        p = self.ok("sweep", DYNAMIC, "--batch", "1..65536", "--fits", "64MiB", "--align", "256,65536", *outs)
        doc = json.loads((self.dir / "s.json").read_text())
        rows = list(csv.DictReader(io.StringIO((self.dir / "s.csv").read_bytes().decode(), newline="")))
        self.assertEqual(len(rows), len(doc["points"]))
        for row, point in zip(rows, doc["points"]):
            self.assertEqual(set(row), set(point))
            for key, value in point.items():
                self.assertEqual(row[key], "" if value is None else str(int(value)) if isinstance(value, (bool, int)) else value, key)
        for ending in ("md", "txt", "html"):
            text = (self.dir / f"s.{ending}").read_text()
            for a in doc["answers"]:
                self.assertIn(f"the largest batch that fits 64 MiB is {a['value']}", text)
        for ending in ("svg", "html"):
            text = (self.dir / f"s.{ending}").read_text()
            for a in doc["answers"]:
                self.assertIn(f">{a['value']}</text>", text)
            self.assertEqual(text.count('class="ring"'), len(doc["answers"]))
            self.assertIsNone(re.search(r"(src|href|url\()=?[\"']?http", text))
        self.assertTrue(xml.etree.ElementTree.parse(self.dir / "s.svg").getroot().tag.endswith("svg"))
        self.assertRegex(p.stdout, "│ *b\\**")
        self.assertIn("█", self.ok("sweep", DYNAMIC, "--batch", "1..64").stdout)
        again = self.dir / "again.html"
        self.ok("sweep", DYNAMIC, "--batch", "1..65536", "--fits", "64MiB", "--align", "256,65536", "-o", again)
        self.assertEqual(again.read_text(), (self.dir / "s.html").read_text())

    def test_letters_and_width_of_the_terminal(self):
        for columns in (60, 100):
            p = self.ok("sweep", DYNAMIC, "--batch", "1..8", env={"LC_ALL": "C", "COLUMNS": str(columns)})
            self.assertTrue(p.stdout.isascii())
            axis = next(line for line in p.stdout.splitlines() if re.search(r"\d batch$", line))
            self.assertEqual(len(axis), columns)

    def test_of_the_schema(self):
        python = next((p for p in (sys.executable, "/usr/bin/python3")
                       if subprocess.run([p, "-c", "import jsonschema"], capture_output=True, check=False).returncode == 0), None)
        if python is None:
            self.skipTest("python3-jsonschema is not installed")
        check = ("import json, jsonschema, sys\n"
                 "jsonschema.validate(json.load(open(sys.argv[1])), json.load(open(sys.argv[2])))")
        path = self.dir / "s.json"
        good = [([DYNAMIC, "--batch", "1..64", "--fits", "1KiB", "--fits", "18400KiB", "--fits", "1GiB", "--run", "-n", 1], 0),
                ([SAMPLES / "lenet5.json"], 0), ([DYNAMIC, SAMPLES / "lenet5.json", "--batch", "1,2"], 1)]
        for options, code in good:
            self.ok("sweep", *options, "-o", path, code=code)
            p = subprocess.run([python, "-c", check, path, SCHEMA], capture_output=True, text=True, check=False)
            self.assertEqual(p.returncode, 0, f"{options}: {p.stderr[-1500:]}")
        doc = json.loads(path.read_text())
        for spoil in (lambda d: d.pop("extent"), lambda d: d.update(version=2), lambda d: d.update(more=1),
                      lambda d: d["points"][0].update(total_bytes="64"), lambda d: d["points"][0].update(proven=None),
                      lambda d: d["points"][-1].update(total_bytes=1), lambda d: d["points"][0].pop("rank")):
            wrong = json.loads(json.dumps(doc))
            spoil(wrong)
            path.write_text(json.dumps(wrong))
            p = subprocess.run([python, "-c", check, path, SCHEMA], capture_output=True, text=True, check=False)
            self.assertIn("ValidationError", p.stderr)

    def test_files_that_cannot_be(self):
        self.refused(2, "sweep", DYNAMIC, "--batch", "1", "-o", self.dir / "s.doc", says=[".svg"])
        copy = self.dir / "m.json"
        shutil.copy(DYNAMIC, copy)
        self.refused(2, "sweep", copy, "--batch", "1", "-o", copy, says=["replaced"])
        self.refused(8, "sweep", DYNAMIC, "--batch", "1", "-o", self.dir / "no" / "s.html", says=["s.html"])
        if pathlib.Path("/dev/full").exists():
            (self.dir / "full.html").symlink_to("/dev/full")
            self.refused(8, "sweep", DYNAMIC, "--batch", "1", "-o", self.dir / "full.html", says=["full.html"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir() if not p.is_symlink()), ["m.json"])

    def test_progress_is_for_those_who_look(self):
        p = self.ok("sweep", DYNAMIC, "--batch", "1..8")
        self.assertEqual(p.stderr, "")
        leader, follower = pty.openpty()
        with subprocess.Popen([PROGRAM, "sweep", DYNAMIC, "--batch", "1..8"], stdout=subprocess.DEVNULL, stderr=follower,
                              env=environment()) as shown:
            os.close(follower)
            seen = b""
            while True:
                try:
                    piece = os.read(leader, 4096)
                except OSError: # all processes on the other side have ended
                    break
                if not piece:
                    break
                seen += piece
        os.close(leader)
        self.assertEqual(shown.returncode, 0)
        self.assertIn(b"8 points planned", seen)
        self.assertTrue(seen.endswith(b"\r\x1b[K"))

    def test_an_interrupt_leaves_no_file(self):
        model = self.opened("resnet50", N=0)
        p = self.start("sweep", model, "--extent", "N=1..20000", "--jobs", 2, "-o", self.dir / "s.html")
        until(lambda: p.poll() is not None or len(list(pathlib.Path(f"/proc/{p.pid}/task").iterdir())) > 1, "no thread plans")
        p.send_signal(signal.SIGINT)
        self.assertEqual(p.wait(60), -signal.SIGINT)
        self.assertEqual([f.name for f in self.dir.iterdir()], [model.name])


class Gate(Models):
    """A sweep is held against an older one by `check`."""

    def sweep(self, name, *options, values="1,8,64", code=0):
        path = self.dir / name
        self.ok("sweep", self.dir / "dynamic_batch.json", "--batch", values, "--strategy", "search,naive", *options, "-o", path, code=code)
        return path

    def setUp(self):
        super().setUp()
        shutil.copy(DYNAMIC, self.dir)

    def test_growth_fails_and_names_the_point(self):
        old, same = self.sweep("old.json"), self.sweep("same.json")
        self.ok("check", same, "--baseline", old)
        p = self.ok("check", self.sweep("worse.json", "--no-fuse", "--no-passes"), "--baseline", old, code=1)
        for value in (1, 8, 64):
            self.assertIn(f"dynamic_batch.json [batch={value}, strategy=naive]\n  planned_bytes: ", p.stdout)
        doc = json.loads(self.ok("check", same, "--baseline", old, "--json").stdout)
        self.assertEqual(len(doc["cases"]), 6)
        p = self.ok("check", self.sweep("less.json", values="1,8"), "--baseline", old, code=1)
        self.assertIn("dynamic_batch.json [batch=64, strategy=naive]", p.stdout)

    def test_alignments_are_cases_of_their_own(self):
        old = self.sweep("old.json")
        p = self.ok("check", self.sweep("more.json", "--align", "64,256"), "--baseline", old)
        self.assertIn("dynamic_batch.json [batch=8, strategy=search, align=64]", p.stdout)

    def test_a_point_without_figures_fails(self):
        old = self.sweep("old.json")
        shutil.copy(SAMPLES / "lenet5.json", self.dir / "lenet5.json")
        both = self.dir / "both.json"
        self.ok("sweep", self.dir / "dynamic_batch.json", self.dir / "lenet5.json", "--batch", "1,8,64", "--strategy", "search,naive", "-o",
                both, code=1)
        p = self.ok("check", both, "--baseline", old, code=1)
        self.assertIn("leaves no extent", p.stdout)

    def test_no_sweep(self):
        old, bad = self.sweep("old.json"), self.dir / "bad.json"
        bad.write_text('{"schema": "tidemark.sweep"}')
        self.refused(3, "check", bad, "--baseline", old, says=["bad.json: version", "the key 'version' is missing"])
        bad.write_text(old.read_text().replace('"extent": "batch"', '"extend": "batch"'))
        self.refused(4, "check", old, "--baseline", bad, says=["extend", "did you mean 'extent'"])


class Refusals(Models):
    def test_what_is_not_open(self):
        lenet = SAMPLES / "lenet5.json"
        for option in (["--extent", "N=1,2"], ["--batch", "1..8", "--fits", "1MiB"]):
            self.refused(3, "sweep", lenet, *option, says=["lenet5.json", "no extent", "a number in the file"])
        self.refused(3, "sweep", DYNAMIC, "--extent", "bacth=1", says=["no open extent 'bacth'", "batch", "did you mean"])
        lifetimes = self.dir / "l.csv"
        self.ok("export", lenet, "--to", "csv", "-o", lifetimes)
        self.refused(3, "sweep", lifetimes, "--batch", "1", says=["its sizes are numbers"])
        self.refused(3, "sweep", lifetimes, "--run", says=["a model or graph text is needed"])
        self.refused(3, "sweep", self.dir / "nothing.onnx", "--batch", "1", says=["nothing.onnx"])
        trace = self.dir / "t.db"
        self.ok("run", lenet, "-n", 1, "-o", trace)
        self.refused(3, "sweep", trace, says=["is a trace"])

    def test_a_point_that_fails_is_a_row(self):
        """Other extents that stay open are never guessed; the other models are planned all the same."""
        doc = self.json("sweep", self.encoder(), "--extent", "N=1,2", code=1)
        for p in doc["points"]:
            self.assertIsNone(p["total_bytes"])
            self.assertIn("S", p["error"])
        p = self.ok("sweep", DYNAMIC, SAMPLES / "lenet5.json", "--batch", "1,2", "-o", self.dir / "s.json", code=1)
        self.assertIn("2 of 4 points have no figures", p.stderr)
        doc = json.loads((self.dir / "s.json").read_text())
        self.assertEqual([q["error"] is None for q in doc["points"]], [True, True, False, False])
        doc = self.json("sweep", self.encoder(), "--extent", "N=1..100", "--fits", "1MiB", code=1)
        self.assertEqual([len(doc["points"]), len(doc["answers"])], [1, 0])

    def test_use(self):
        self.refused(2, "sweep", says=["FILE"])
        self.refused(2, "sweep", DYNAMIC, "--strategy", "search,serach", says=["search"])
        self.refused(2, "sweep", DYNAMIC, "--align", "64,100", says=["power of two"])
        self.refused(2, "sweep", DYNAMIC, "--jobs", "0", says=["--jobs"])
        self.refused(2, "sweep", DYNAMIC, "--run=some", says=["answers"])
        self.refused(2, "sweep", DYNAMIC, "--time-limit", "1", says=["not an option"])


def why_no_mpi():
    if shutil.which("mpirun") is None:
        return "mpirun is not installed"
    if not (pathlib.Path(PROGRAM).parent / "tidemark_mpi.so").exists():
        return "the plug-in for MPI was not built"
    return None


def ranks(*command, n=4, env=None, cwd=None):
    # What MPI itself never gives back is no leak of ours, in a build that looks for some.
    leaks = {"ASAN_OPTIONS": ":".join(filter(None, (os.environ.get("ASAN_OPTIONS"), "detect_leaks=0")))}
    return subprocess.run(["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(n), *map(str, command)], capture_output=True,
                          text=True, env=environment({**leaks, **(env or {})}), timeout=300, check=False, cwd=cwd)


@unittest.skipIf(why_no_mpi(), why_no_mpi())
class Processes(Models):
    def test_four_say_what_one_says(self):
        encoder = self.encoder()
        for options in (["--batch", "1..20", "--strategy", "search,naive"], ["--batch", "1..50", "--fits", "18400KiB", "--fits", "1GiB"],
                        ["--extent", "batch=1,2", "--align", "64,256", "--run", "-n", "1"]):
            out = self.dir / "s.json"
            one = self.json("sweep", DYNAMIC, *options)
            p = ranks(PROGRAM, "sweep", DYNAMIC, *options, "-o", out)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(len(re.findall("dynamic_batch.json: (?:total bytes|bytes of the process)", p.stdout)), 1)
            four = json.loads(out.read_text())
            self.assertEqual(four["n_ranks"], 4)
            self.assertEqual(without_times(one, "rank"), without_times(four, "rank"))
            if len(four["points"]) > 30:
                self.assertEqual({q["rank"] for q in four["points"]}, {0, 1, 2, 3})
        four = json.loads(ranks(PROGRAM, "sweep", encoder, "--extent", "N=1..9", "--extent", "S=16,32", "--json").stdout)
        one = self.json("sweep", encoder, "--extent", "N=1..9", "--extent", "S=16,32")
        self.assertEqual(without_times(one, "rank"), without_times(four, "rank"))

    def test_all_leave_with_the_same_code(self):
        for code, options in ((2, ["--bathc", "1"]), (3, [self.dir / "nothing", "--batch", "1"]), (1, [self.encoder(), "--extent", "N=1,2"]),
                              (0, ["--help"])):
            report = self.dir / "codes"
            report.unlink(missing_ok=True)
            p = ranks("sh", "-c", f'"$@"; code=$?; echo $code >> {report}; exit 0', "sh", PROGRAM, "sweep", *options)
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertEqual(report.read_text().split(), [str(code)] * 4)
            self.assertEqual(p.stderr.count("error:"), 1 if code else 0)

    def test_a_rank_that_cannot_reports_its_points(self):
        """Two of four ranks run where the file is not there."""
        shutil.copy(DYNAMIC, self.dir / "m.json")
        (self.dir / "elsewhere").mkdir()
        p = ranks("sh", "-c", 'test $OMPI_COMM_WORLD_RANK -lt 2 || cd elsewhere; "$@" || exit $?', "sh", PROGRAM, "sweep", "m.json", "--batch",
                  "1..16", "-o", self.dir / "s.json", cwd=self.dir)
        self.assertEqual(p.returncode, 1)
        doc = json.loads((self.dir / "s.json").read_text())
        self.assertEqual([q["value"] for q in doc["points"]], list(range(1, 17)))
        for q in doc["points"]:
            self.assertEqual(q["error"] is not None, q["rank"] >= 2)
        self.assertIn("8 of 16 points have no figures", p.stderr)

    def test_without_the_plug_in(self):
        p = ranks(PROGRAM, "sweep", DYNAMIC, "--batch", "1", "-o", self.dir / "s.json", env={"TIDEMARK_MPI": str(self.dir / "none.so")})
        self.assertEqual(p.returncode, 3)
        self.assertIn("cannot work as one of 4 processes", p.stderr)
        self.assertIn("hint:", p.stderr)
        self.assertEqual(list(self.dir.iterdir()), [])
        p = ranks(PROGRAM, "sweep", DYNAMIC, "--batch", "1", "--json", n=1, env={"TIDEMARK_MPI": str(self.dir / "none.so")})
        self.assertEqual(json.loads(p.stdout)["n_ranks"], 1)


if __name__ == "__main__":
    tidemark.main()
