# SPDX-License-Identifier: MIT
"""The files around tidemark check: baselines that are missing, spoilt or rewritten, who may change them, and what is
written when a disk is full or a name is hostile."""
import json
import os
import re
import resource
import shutil
import sqlite3
import subprocess
import unittest
import xml.etree.ElementTree

import tidemark
from gate_case import LENET, TRACE, GateCase
from tidemark import SAMPLES


class Baselines(GateCase):
    def test_only_people_update(self):
        """In CI nothing is updated, and the variable that says so is named."""
        self.begin()
        before = (self.dir / "base.json").read_bytes()
        self.default("align = 512")
        for name in tidemark.CI_NAMES:
            self.not_run(2, "--update-baseline", "--reason", "r", env={name: "1"}, says=[f"${name}"])
        self.assertEqual(before, (self.dir / "base.json").read_bytes())
        for value in ("", "0", "false"):
            self.check("--update-baseline", "--reason", "r", env={"CI": value})
        self.assertNotEqual(before, (self.dir / "base.json").read_bytes())

    def test_who_and_why(self):
        self.begin()
        self.default("align = 512")
        self.check("--update-baseline", "--reason", "wider", env={"GIT_AUTHOR_NAME": "Bo"})
        self.default("seed = 1")
        doc = json.loads((self.dir / "base.json").read_text())
        self.assertEqual([(u["by"], u["reason"], u["changed"]) for u in doc["updates"]],
                         [("Ann", "as it is", ["m.json"]), ("Bo", "wider", ["m.json"])])
        self.assertRegex(doc["updates"][1]["date"], r"^\d{4}-\d\d-\d\d$")

    def test_nothing_is_kept_of_what_was_not_measured(self):
        self.begin()
        before = (self.dir / "base.json").read_bytes()
        (self.dir / "m.json").write_text("{")
        self.not_run(3, "--update-baseline", "--reason", "r", says=["m.json"])
        self.assertEqual(before, (self.dir / "base.json").read_bytes())

    def test_what_is_no_baseline(self):
        """Missing, empty, cut, of another schema, version or model: exit 4 with the reason, and never a pass."""
        self.begin()
        base = self.dir / "base.json"
        good = base.read_text()
        doc = json.loads(good)
        spoilt = {"empty": "", "cut": good[: len(good) // 2], "garbage": "\x00\x01", "list": "[]",
                  "schema": json.dumps({**doc, "schema": "tidemark.report"}), "version": json.dumps({**doc, "version": 99}),
                  "cases": json.dumps({**doc, "cases": "none"}),
                  "keys": json.dumps({**doc, "cases": [{**doc["cases"][0], "key": "other.json", "content": "fnv1a:0"}]}),
                  "negative": good.replace('"leaked_bytes": 0', '"leaked_bytes": -1')}
        for name, text in spoilt.items():
            with self.subTest(name):
                self.assertNotEqual(text, good)
                base.write_text(text)
                self.assertEqual(self.document(code=4)["verdict"], "not_comparable")
                p = tidemark.run("check", cwd=self.dir)
                self.assertEqual(p.returncode, 4)
                self.assertTrue(p.stdout.startswith("NOT COMPARABLE"), p.stdout)
                self.assertIn("base.json", p.stdout + p.stderr)
        base.unlink()
        self.not_run(4, says=["base.json", "--update-baseline"])
        base.mkdir()
        self.not_run(4, says=["base.json"])
        base.rmdir()
        base.write_text(good)
        self.check()

    def test_another_model_of_the_same_name(self):
        self.begin()
        self.model("m.json", of=SAMPLES / "diamond.json")
        p = self.not_run(4)
        self.assertIn("another model", p.stdout)

    def test_a_figure_that_is_missing_is_no_pass(self):
        """What is judged and has no figure in the baseline: exit 4 for that case, not a pass, and not for the others."""
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["a.json", "b.json"])
        self.update()
        base = self.dir / "base.json"
        good = json.loads(base.read_text())
        judged = ["planned_bytes", "total_bytes", "kind_peak_bytes", "leaked_bytes", "leaked_blocks", "warm_allocations",
                  "unexplained_bytes", "predicted_bytes"]
        for gone in (list(good["cases"][0]["figures"]), *([name] for name in judged)):
            with self.subTest(str(gone)):
                doc = json.loads(json.dumps(good))
                for name in gone:
                    doc["cases"][0]["figures"].pop(name)
                base.write_text(json.dumps(doc))
                p = self.not_run(4, says=["a.json", "the baseline has no figure of"])
                result = self.document(code=4)
                self.assertEqual([c["verdict"] for c in result["cases"]], ["not_comparable", "pass"])
                self.assertEqual({r["metric"] for r in result["cases"][0]["rows"] if r["verdict"] == "not_comparable"},
                                 set(gone) & set(judged))
        self.remedy(p)
        # What only is reported may be missing.
        doc = json.loads(json.dumps(good))
        doc["cases"][0]["figures"].pop("gap")
        base.write_text(json.dumps(doc))
        self.check()
        # One kind of several counts as nothing: what is there has grown.
        doc["cases"][0]["figures"]["predicted_bytes"].pop("Persistent")
        base.write_text(json.dumps(doc))
        self.check(code=1)

    def test_a_regression_is_told_beside_a_missing_figure(self):
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["a.json", "b.json"], run=False)
        self.update()
        doc = json.loads((self.dir / "base.json").read_text())
        doc["cases"][0]["figures"] = {}
        (self.dir / "base.json").write_text(json.dumps(doc))
        self.model("b.json", lambda d: d["inputs"][0]["shape"].__setitem__(0, 2 * d["inputs"][0]["shape"][0]),
                   of=SAMPLES / "diamond.json")
        result = self.document(code=1)
        self.assertEqual([c["verdict"] for c in result["cases"]], ["not_comparable", "fail"])

    def test_the_last_file_of_a_pattern_goes(self):
        """It fails as what it is, and all others are judged."""
        (self.dir / "old").mkdir()
        self.model("old/x.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["old/*.json", "b.json"], run=False)
        self.update()
        (self.dir / "old" / "x.json").unlink()
        doc = self.document(code=1)
        self.assertEqual({c["key"]: (c["state"], c["verdict"]) for c in doc["cases"]},
                         {"old/*.json": ("unmeasured", "fail"), "old/x.json": ("removed", "fail"),
                          "b.json": ("unchanged", "pass")})
        self.assertIn("no file matches this pattern of tidemark.toml:", self.check(code=1).stdout)
        self.not_run(3, "--update-baseline", "--reason", "r", says=["no file matches"])
        self.config(["b.json"], run=False)
        self.update()
        self.check()
        self.config(["old/*.json", "new/*.json"], run=False)  # nothing at all is a mistake of the configuration
        self.not_run(3, says=["no file matches this pattern: 'old/*.json'"])

    def test_an_entry_that_holds_for_nothing_any_more(self):
        """An override of a model that went, an exclude of a file that went: told, and all others are judged."""
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["b.json"], run=False)
        self.update()
        with open(self.dir / "tidemark.toml", "a", encoding="utf-8") as f:
            f.write('\n[[override]]\nmatch = "gone*"\nmax_bytes = "1GiB"\n'
                    '\n[[model]]\npath = "b.json"\nname = "two"\nexclude = "nothing*"\n')
        cases = {c["key"]: (c["state"], c["verdict"]) for c in self.document(code=1)["cases"]}
        self.assertEqual(cases["b.json"], ("unchanged", "pass"))
        self.assertEqual({cases["gone*"], cases["nothing*"]}, {("unmeasured", "fail")})
        said = self.check(code=1).stdout
        for words in ("this override matches no case of tidemark.toml:",
                      "this 'exclude' leaves nothing out of tidemark.toml:"):
            self.assertIn(words, said)

    def test_a_renamed_file_is_the_same_case(self):
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["[a-z].json"], run=False)
        self.update()
        (self.dir / "a.json").rename(self.dir / "z.json")
        text = self.check().stdout
        self.assertIn("renamed: the baseline has the same file as 'a.json'", text)
        doc = self.document()
        self.assertEqual((doc["verdict"], doc["counts"]["added"], doc["counts"]["removed"]), ("warn", 0, 0))
        self.assertEqual([(c["key"], c["renamed_from"], c["state"]) for c in doc["cases"]],
                         [("b.json", None, "unchanged"), ("z.json", "a.json", "unchanged")])
        # It hides nothing: settings that make it worse fail under the new name too.
        self.default("align = 4096")
        doc = self.document(code=1)
        self.assertEqual([(c["key"], c["verdict"]) for c in doc["cases"]], [("b.json", "pass"), ("z.json", "fail")])
        # Renamed and changed is another file.
        self.config(["[a-z].json"], run=False)
        self.model("z.json", lambda d: d.update(name="other"))
        doc = self.document(code=1)
        self.assertEqual({c["key"]: c["state"] for c in doc["cases"]},
                         {"a.json": "removed", "b.json": "unchanged", "z.json": "added"})

    def test_the_one_file_is_renamed(self):
        """A baseline that has nothing else is not one of other cases."""
        self.begin(run=False)
        (self.dir / "m.json").rename(self.dir / "n.json")
        self.config(["n.json"], run=False)
        self.assertIn("renamed", self.check().stdout)
        self.update("renamed")
        self.assertEqual(self.document()["verdict"], "pass")

    def test_an_update_shows_what_it_accepts(self):
        """Each case that changed with its old and its new figures; new ones and those that went."""
        self.begin(run=False)
        self.model("m.json", lambda d: d["inputs"][0].update(shape=[2, 1, 28, 28]))
        before = self.document(code=1)["cases"][0]["rows"]
        text = self.update("two images").stdout
        planned = next(r for r in before if r["metric"] == "planned_bytes")
        self.assertRegex(text, rf"    planned_bytes: [^\n]*\({planned['baseline']}\) -> [^\n]*\({planned['current']}\), \+")
        self.assertNotIn("operators", text)  # what did not change is not told
        self.model("n.json", of=SAMPLES / "diamond.json")
        self.config(["n.json"], run=False)
        text = self.update("another one").stdout
        self.assertRegex(text, r"  m\.json  \(gone\)\n    planned_bytes: ")
        self.assertRegex(text, r"  n\.json  \(new\)\n    planned_bytes: ")
        self.assertNotIn("->", text)

    def test_the_remedy_works_when_typed(self):
        """With a configuration and without, of a baseline that is not there and of one that is spoilt."""
        self.model("it's a model.json")
        self.config(["it's a model.json"], run=False)
        for text in (None, "", "{", "[]", '{"schema": "tidemark.plan"}'):
            with self.subTest(str(text)):
                (self.dir / "base.json").unlink(missing_ok=True)
                if text is not None:
                    (self.dir / "base.json").write_text(text)
                p = self.not_run(4, says=["--update-baseline"])
                self.remedy(p)
        self.assertEqual((self.dir / "base.json.old").read_text(), '{"schema": "tidemark.plan"}')  # put aside, not lost
        (self.dir / "tidemark.toml").rename(self.dir / "other name.toml")
        (self.dir / "base.json").unlink()
        p = self.not_run(4, "-v", "--config", "other name.toml", "--markdown", "r.md", "--json")
        self.remedy(self.not_run(4, "-v", "--config", "other name.toml", "--markdown", "r.md"),
                    ["--config", "other name.toml"])
        files = ["it's a model.json", "--align", "512", "--no-fuse", "--run", "-n", "2"]
        p = self.not_run(4, *files, "--baseline", "b 2.json")
        self.remedy(p, [*files, "--baseline", "b 2.json"])
        self.remedy(self.not_run(4, *files), [*files, "--baseline", "tidemark-baseline.json"])
        # A regression that is accepted, too.
        p = self.check(*files[:1], "--align", "4096", "--run", "-n", "2", "--baseline", "b 2.json", code=1)
        self.remedy(p, [files[0], "--align", "4096", "--run", "-n", "2", "--baseline", "b 2.json"])

    def test_where_findings_point(self):
        """At the model; where its file is gone at its entry in the configuration."""
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["a.json", "b.json"], run=False)
        self.update()
        self.default("align = 4096")
        (self.dir / "b.json").unlink()
        text = self.check("--annotations", "--sarif", "r.sarif", code=1).stdout
        lines = (self.dir / "tidemark.toml").read_text().splitlines()
        entry = lines.index('path = "b.json"')  # [[model]] stands a line above; lines count from 1
        self.assertRegex(text, r"(?m)^::error file=a\.json,title=")
        self.assertRegex(text, rf"(?m)^::error file=tidemark\.toml,line={entry},title=")
        run, = json.loads((self.dir / "r.sarif").read_text())["runs"]
        places = {(p["artifactLocation"]["uri"], p["region"]["startLine"])
                  for p in (r["locations"][0]["physicalLocation"] for r in run["results"])}
        self.assertEqual(places, {("a.json", 1), ("tidemark.toml", entry)})

    def test_no_baseline_is_named(self):
        self.begin()
        path = self.dir / "tidemark.toml"
        path.write_text(path.read_text().replace('baseline = "base.json"\n', ""))
        p = self.not_run(4, says=["tidemark-baseline.json", "--update-baseline"])  # beside the configuration
        self.remedy(p)
        self.check("--no-baseline")
        self.not_run(4, "m.json", says=["--no-baseline"])

    def test_budgets_alone(self):
        self.model("m.json")
        self.config(head="", tail='max_bytes = "64MiB"')
        self.check("--no-baseline")
        self.config(head="", tail='max_bytes = "64KiB"')
        p = self.check("--no-baseline", code=1)
        self.assertIn("64.00 KiB", p.stdout)
        self.assertIn("tidemark.toml:", p.stdout)

    def test_a_skipped_measurement_is_a_failure(self):
        """No file, a broken file, a model that cannot run, memory that does not suffice."""
        self.begin()
        self.default('limit = "100KiB"')
        self.assertIn("budget of 102400 B", self.check(code=1).stdout)
        self.config()
        (self.dir / "m.json").write_text("{")
        self.assertIn("could not be measured", self.check(code=1).stdout)

        def opaque(doc):
            doc["nodes"][1] = {"op": "Opaque", "name": "theirs", "inputs": ["conv1.out"], "outputs": ["relu1.out"],
                               "output_types": [{"dtype": "float32", "shape": [1, 6, 28, 28]}]}

        self.model("m.json", opaque)
        p = self.check(code=1)
        self.assertIn("was skipped", p.stdout)
        self.assertIn("operator 'theirs' (Opaque) has no kernel", p.stdout)
        self.assertEqual(self.document(code=1)["cases"][0]["state"], "unmeasured")
        self.config(run=False)
        self.update("it is planned alone")
        self.check()

    def test_a_trace_that_does_not_hold_all(self):
        """Figures of half a recording are too small: they are none."""
        trace = self.dir / "t.db"
        subprocess.run([TRACE, trace], check=True)
        whole = trace.read_bytes()
        self.config(["t.db"], run=False)
        self.update()
        for key, value, says in (("n_lost", "3", "damaged: 3 lost events recorded, 0 found"), ("n_lost", "1", "the trace has lost 1 events"),
                                 ("state", "cut short", "cut short")):
            trace.write_bytes(whole)
            db = sqlite3.connect(trace)
            db.execute("UPDATE meta SET value = ? WHERE key = ?", (value, key))
            if says.endswith("lost 1 events"):  # as the threads' own counts have it
                db.execute("UPDATE position SET n_lost = 1 WHERE ring = 0")
            db.commit()
            self.assertEqual(db.execute("SELECT value FROM meta WHERE key = ?", (key,)).fetchone(), (value,))
            db.close()
            p = self.check(code=1)
            self.assertIn("could not be measured", p.stdout)
            self.assertIn(says, p.stdout)


@unittest.skipUnless(shutil.which("git"), "skipped: git is not here")
class Rewritten(GateCase):
    """A change that rewrites the baseline which judges it: --baseline-of REF takes the older one."""

    def git(self, *args):
        env = {k: v for k, v in os.environ.items() if not k.startswith("GIT_")}
        subprocess.run(["git", "-c", "user.name=t", "-c", "user.email=t@t", "-c", "commit.gpgsign=false", *args],
                       cwd=self.dir, check=True, capture_output=True,
                       env={**env, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull})

    def setUp(self):
        super().setUp()
        self.git("init", "-q", "-b", "main")
        self.begin()
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "base")

    def test_git_says_who(self):
        """As git would sign here; what is given goes before it."""
        self.model("m.json")
        self.config(run=False)
        self.git("init", "-q")
        self.git("config", "user.name", "Cleo of Git")
        self.check("--update-baseline", "--reason", "r")
        by = json.loads((self.dir / "base.json").read_text())["updates"][-1]["by"]
        self.assertEqual(by, "Cleo of Git")
        for args, env, want in ((["--by", "Ann"], {}, "Ann"), ([], {"GIT_AUTHOR_NAME": "Bo"}, "Bo"),
                                ([], {"PATH": "/nowhere"}, "tester")):
            (self.dir / "base.json").unlink()
            self.check("--update-baseline", "--reason", "r", *args, env=env)
            self.assertEqual(json.loads((self.dir / "base.json").read_text())["updates"][-1]["by"], want)

    def test_unchanged(self):
        p = self.check("--baseline-of", "main")
        self.assertEqual(p.stderr, "")
        self.assertIn("main:./base.json", p.stdout)

    def test_accepted_with_a_reason(self):
        self.default("align = 4096")
        self.check("--baseline-of", "main", code=1)
        self.update("pages are wanted")
        p = self.check("--baseline-of", "main")
        self.assertTrue(p.stdout.startswith("WARN"), p.stdout)
        self.assertIn("accepted: pages are wanted (Ann", p.stdout)
        self.assertIn("pages are wanted", p.stderr)
        self.assertIn("differs", p.stderr)
        doc = self.document("--baseline-of", "main")
        self.assertEqual((doc["verdict"], doc["exit_code"]), ("warn", 0))

    def test_rewritten_in_silence(self):
        """Figures that were changed by hand, without an entry: the older ones hold."""
        self.default("align = 4096")
        path = self.dir / "base.json"
        before = json.loads(path.read_text())
        self.update("x")
        after = json.loads(path.read_text())
        after["updates"] = before["updates"]
        path.write_text(json.dumps(after))
        self.check()
        p = self.check("--baseline-of", "main", code=1)
        self.assertIn("nothing of it is accepted", p.stderr)
        after["updates"] = [*before["updates"], {"date": "2026-01-01", "by": "x", "reason": " ", "changed": ["m.json"]}]
        path.write_text(json.dumps(after))
        p = tidemark.run("check", "--baseline-of", "main", cwd=self.dir)
        self.assertIn(p.returncode, (1, 4))  # an entry without a reason accepts nothing

    def test_accepted_is_what_was_measured_then(self):
        """An entry for the case is no licence for more than it says."""
        self.default("align = 512")
        self.update("a little")
        path = self.dir / "tidemark.toml"
        path.write_text(path.read_text().replace("align = 512", "align = 4096"))
        p = self.check("--baseline-of", "main", code=1)
        self.assertNotIn("accepted", p.stdout)

    def test_raised_in_passing(self):
        """A baseline that allows more than is measured, or less, is told by the change that makes it so."""
        path = self.dir / "base.json"
        good = path.read_text()
        for planned, verdict, code, says in ((10 ** 9, "warn", 0, "allows more than is measured"),
                                             (1, "fail", 1, "does not pass")):
            doc = json.loads(good)
            doc["cases"][0]["figures"]["planned_bytes"] = planned
            path.write_text(json.dumps(doc))
            p = self.check("--baseline-of", "main", code=code)
            self.assertIn(says, p.stdout)
            self.assertEqual(self.document("--baseline-of", "main", code=code)["verdict"], verdict)

    def test_no_baseline_to_ask_for(self):
        path = self.dir / "tidemark.toml"
        path.write_text(path.read_text().replace('"base.json"', "false") + 'max_bytes = "64MiB"\n')
        self.check()
        self.not_run(4, "--baseline-of", "main", says=["no baseline"])

    def test_removed_and_added(self):
        self.model("n.json", of=SAMPLES / "diamond.json")
        self.config(["n.json"])
        self.check("--baseline-of", "main", code=4)
        self.config(["m.json", "n.json"])
        p = self.check("--baseline-of", "main")
        self.assertIn("added", p.stdout)

    def test_what_git_cannot_give(self):
        self.not_run(4, "--baseline-of", "nosuch", says=["nosuch"])
        self.not_run(4, "--baseline-of", "main", says=["git"], env={"PATH": "/nowhere"})
        self.git("rm", "-q", "--cached", "base.json")
        self.git("commit", "-q", "-m", "gone")
        self.not_run(4, "--baseline-of", "main", says=["base.json"])
        shutil.rmtree(self.dir / ".git")
        self.not_run(4, "--baseline-of", "main", says=["git"], env={"GIT_CEILING_DIRECTORIES": str(self.dir.parent)})

    def test_in_a_folder_below(self):
        below = self.dir / "a b"
        below.mkdir()
        for name in ("tidemark.toml", "base.json", "m.json"):
            shutil.copy(self.dir / name, below)
        self.git("add", "-A")
        self.git("commit", "-q", "-m", "below")
        p = self.check("--baseline-of", "main", "--config", "a b/tidemark.toml")
        self.assertIn("pass", p.stdout)


class Outputs(GateCase):
    FILES = {"--write-json": "r.json", "--markdown": "r.md", "--junit": "r.xml", "--sarif": "r.sarif"}

    def all_outputs(self):
        return [word for option, name in self.FILES.items() for word in (option, name)]

    def made(self):
        return sorted(p.name for p in self.dir.iterdir() if p.name.startswith("r."))

    def test_all_are_there_whatever_the_verdict(self):
        self.begin()
        summary = self.dir / "summary.md"
        summary.write_text("before\n")
        env = {"GITHUB_STEP_SUMMARY": str(summary)}
        self.check(*self.all_outputs(), env=env)
        self.assertEqual(self.made(), sorted(self.FILES.values()))
        self.default("align = 4096")
        p = self.check(*self.all_outputs(), "--annotations", code=1, env=env)
        self.assertIn("::error", p.stdout)
        self.assertTrue(summary.read_text().startswith("before\n"))  # appended, never overwritten
        self.assertIn((self.dir / "r.md").read_text(), summary.read_text())
        self.assertEqual(json.loads((self.dir / "r.json").read_text())["exit_code"], 1)
        self.assertGreater(int(xml.etree.ElementTree.parse(self.dir / "r.xml").getroot().get("failures")), 0)
        self.assertTrue(json.loads((self.dir / "r.sarif").read_text())["runs"][0]["results"])
        size = summary.stat().st_size
        self.check(code=1, env=env)
        self.assertGreater(summary.stat().st_size, size)
        size = summary.stat().st_size
        self.check("--no-summary", code=1, env=env)
        self.assertEqual(summary.stat().st_size, size)
        # Also where nothing could be compared.
        (self.dir / "base.json").unlink()
        for name in self.FILES.values():
            (self.dir / name).unlink()
        self.check(*self.all_outputs(), code=4)
        self.assertEqual(self.made(), sorted(self.FILES.values()))
        self.assertEqual(json.loads((self.dir / "r.json").read_text())["exit_code"], 4)

    def test_annotations_stay_out_of_json(self):
        self.begin()
        self.default("align = 4096")
        p = self.check("--json", "--annotations", code=1)
        json.loads(p.stdout)
        self.assertIn("::error", p.stderr)

    def test_one_that_cannot_be_written(self):
        """Exit 8 with its name, and the others are there."""
        self.begin()
        for bad in ("no/such/r.xml", "/dev/full"):
            p = self.check("--junit", bad, "--markdown", "r.md", "--write-json", "r.json", code=8)
            self.assertIn(f"cannot write '{bad}'", p.stderr)
            self.assertEqual(self.made(), ["r.json", "r.md"])
            self.assertEqual(json.loads((self.dir / "r.json").read_text())["exit_code"], 8)
        p = self.check(code=8, env={"GITHUB_STEP_SUMMARY": str(self.dir / "no" / "summary")})
        self.assertIn("--no-summary", p.stderr)
        p = self.check(code=8, env={"GITHUB_STEP_SUMMARY": "/dev/full"})
        self.assertIn("cannot append", p.stderr)
        for option in ("--junit", "--write-json"):
            self.assertEqual(self.document(option, "/dev/full", code=8)["exit_code"], 8)

    def test_a_full_disk(self):
        """Nothing that is half there: neither results nor the baseline."""
        self.begin()
        before = (self.dir / "base.json").read_bytes()

        def limit():
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))

        p = self.check(*self.all_outputs(), code=8, preexec_fn=limit)
        self.assertEqual(self.made(), [])
        self.assertEqual(p.stderr.count("error: cannot write"), 4)
        self.default("align = 512")
        self.not_run(8, "--update-baseline", "--reason", "r", preexec_fn=limit, says=["base.json"])
        self.assertEqual(before, (self.dir / "base.json").read_bytes())
        self.assertEqual([p.name for p in self.dir.iterdir() if "tmp" in p.name], [])

    def test_lost_standard_output(self):
        self.begin()
        with open("/dev/full", "w") as full:
            p = subprocess.run([tidemark.PROGRAM, "check"], cwd=self.dir, stdout=full, stderr=subprocess.PIPE, text=True,
                               env=tidemark.environment())
        self.assertEqual(p.returncode, 8)

    def test_hostile_names(self):
        """Names that mean something to a format, a terminal or a CI: every output is whole, and nothing gets out."""
        hostile = ['q"uote\'s', "line\nbreak\r", "</script><b>", "]]>", "%0A::error::x", "rtl\u202eevil", "x" * 10000,
                   "nul\u0001", "|pipe`tick`", "##[error]x"]

        def rename(doc):
            for node, name in zip(doc["nodes"], hostile):
                node["name"] = name
            old = doc["nodes"][2]["outputs"][0]
            for node in doc["nodes"]:
                node["inputs"] = ["]]>\n::error::" if v == old else v for v in node["inputs"]]
                node["outputs"] = ["]]>\n::error::" if v == old else v for v in node["outputs"]]

        name = 'a"b]]>\n::error::\u202e.json'
        self.model(name, rename)
        doc = {"version": 1, "baseline": "base.json", "defaults": {"run": True}, "model": [{"path": name}]}
        (self.dir / "tidemark.json").write_text(json.dumps(doc))
        self.update("why\n::error::")
        self.check()
        doc["defaults"].update(align=4096)
        (self.dir / "tidemark.json").write_text(json.dumps(doc))
        p = self.check(*self.all_outputs(), code=1)
        for text in (p.stdout, (self.dir / "r.md").read_text()):
            self.assertNotIn("\u202e", text)
            self.assertIsNone(re.search(r"(?m)^::", text))
        xml.etree.ElementTree.parse(self.dir / "r.xml")
        json.loads((self.dir / "r.json").read_text())
        json.loads((self.dir / "r.sarif").read_text())
        p = self.check("--annotations", code=1)
        for line in p.stdout.splitlines():
            if line.startswith("::"):
                self.assertRegex(line, r"^::(error|warning|notice)\b")
                self.assertNotIn("::error::x", line)

    def test_names_that_are_no_text(self):
        """A path that is no UTF-8 can be named on the command line: the documents are UTF-8 all the same."""
        path = os.fsencode(self.dir) + b"/m\xff.json"
        with open(path, "wb") as f:
            f.write(LENET.read_bytes())
        p = subprocess.run([tidemark.PROGRAM.encode(), b"check", b"--no-baseline", b"--json", path], capture_output=True,
                           env=tidemark.environment())
        self.assertEqual(p.returncode, 0, p.stderr)
        json.loads(p.stdout.decode("utf-8"))


if __name__ == "__main__":
    tidemark.main()
