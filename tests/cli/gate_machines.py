# SPDX-License-Identifier: MIT
"""What tidemark check judges is the same on every machine: the program runs on processors that qemu plays, and what an
unchanged tree gave here passes there; kernels' scratch stands beside it. TIDE_SOAK=1 takes every sample and runs it."""
import json
import os
import shutil
import unittest

import tidemark
from gate_case import GateCase
from tidemark import SAMPLES, SOURCE

QEMU = shutil.which("qemu-x86_64")
PROCESSORS = ["Nehalem", "Haswell", "Skylake-Client", "Icelake-Server", "EPYC", "EPYC-Milan"]
NO_QEMU = None if QEMU else "skipped: there is no qemu-x86_64 (Debian: qemu-user)"
ALL = os.environ.get("TIDE_SOAK") == "1"
# Convolutions with scratch by the caches and by the instructions, and no convolution.
FEW = ["lenet5", "resnet18", "diamond"]
MACHINE_BOUND = {"process_bytes", "full_planned_bytes", "full_total_bytes", "full_lower_bound_bytes", "scratch_bytes", "peak_bytes",
                 "reserved_bytes", "allocations"}


def is_of_machine(row):
    return row["metric"] in MACHINE_BOUND or (row["metric"] in ("predicted_bytes", "kind_peak_bytes")
                                              and row["kind"] == "Workspace")


@unittest.skipIf(NO_QEMU, NO_QEMU)
class OtherProcessors(GateCase):
    def there(self, processor, *args, code=0):
        """The check as that processor runs it: with no variable that says anything about instructions."""
        old, tidemark.PROGRAM = tidemark.PROGRAM, QEMU
        try:
            env = {"ONEDNN_MAX_CPU_ISA": None, "DNNL_MAX_CPU_ISA": None, "OMP_NUM_THREADS": None}
            return tidemark.run("-cpu", processor, old, "check", *args, cwd=self.dir, env=env, timeout=7200)
        finally:
            tidemark.PROGRAM = old

    def own_samples(self):
        """The project's own baseline, of all of its samples or of some."""
        shutil.copytree(SAMPLES, self.dir / "sample_graphs")
        shutil.copy(SOURCE / "tidemark-baseline.json", self.dir)
        if ALL:
            shutil.copy(SOURCE / "tidemark.toml", self.dir)
            return
        models = "".join(f'[[model]]\npath = "sample_graphs/{name}.json"\n' for name in FEW)
        (self.dir / "tidemark.toml").write_text(f'version = 1\nremoved = "report"\n[rules]\n'
                                                f'leaked_bytes = "off"\nleaked_blocks = "off"\nwarm_allocations = "off"\n'
                                                f'unexplained_bytes = "off"\nkind_peak_bytes = "off"\n{models}')

    def test_an_unchanged_tree_passes(self):
        """The project's baseline, as it is committed, on each processor."""
        self.own_samples()
        for processor in PROCESSORS:
            with self.subTest(processor):
                p = self.there(processor, "--json")
                self.assertEqual(p.returncode, 0, p.stdout[-3000:] + p.stderr[-1000:])
                doc = json.loads(p.stdout)
                self.assertEqual(doc["verdict"], "pass")
                self.assertGreaterEqual(doc["counts"]["pass"], 26 if ALL else len(FEW))
                self.assertIn("instructions", doc["other_machine"])
                moved = [r for c in doc["cases"] for r in c["rows"] if r["other_machine"]]
                self.assertTrue(all(is_of_machine(r) and r["verdict"] == "pass" for r in moved))
                # What differs here does depend on the machine, and everything else is the same to the byte.
                for c in doc["cases"]:
                    for r in c["rows"]:
                        if c["state"] != "removed" and not is_of_machine(r) and r["unit"] != "ns":
                            self.assertIn(r["change"], (0, 0.0, None), (c["key"], r))

    def test_a_run_passes_too(self):
        """Also what a run measures, of a model that emulation runs in time."""
        self.model("m.json")
        self.config(run=True)
        self.update()
        for processor in ("Nehalem", "Haswell"):
            p = self.there(processor, "-v")
            self.assertEqual(p.returncode, 0, p.stdout + p.stderr)
            self.assertIn("not judged: another machine", p.stdout)

    def test_a_regression_is_found_there(self):
        """Another machine is told before its causes, and hides none of them."""
        self.model("m.json")
        self.config(run=False)
        self.update()
        self.default("align = 4096")
        p = self.there("Haswell", "--json")
        self.assertEqual(p.returncode, 1, p.stdout + p.stderr)
        doc = json.loads(p.stdout)
        causes = [c["kind"] for c in doc["cases"][0]["causes"]]
        self.assertEqual(causes[0], "machine")
        self.assertIn("setting", causes)
        text = doc["cases"][0]["causes"][0]["text"]
        self.assertIn("caches: L1d", text)
        if "avx512" in (self.dir / "base.json").read_text():
            self.assertIn("instructions: avx2", text)  # what this processor has, and that one has not
        self.assertEqual({r["metric"] for r in doc["cases"][0]["rows"] if r["verdict"] == "fail"} & MACHINE_BOUND, set())

    def test_an_update_there_leaves_what_is_the_same(self):
        """A baseline does not change with the machine that updates it."""
        self.model("a.json")
        self.model("b.json", of=SAMPLES / "diamond.json")
        self.config(["a.json", "b.json"], run=False)
        self.update()
        before = (self.dir / "base.json").read_bytes()
        p = self.there("Haswell", "--update-baseline", "--reason", "again")
        self.assertIn("left alone", p.stdout, p.stderr)
        self.assertEqual(before, (self.dir / "base.json").read_bytes())


class ThisMachine(GateCase):
    """Kernels' scratch is judged where a rule asks for it, and on the baseline's machine alone."""

    def elsewhere(self):
        """The baseline as if another machine had made it, which had half of the scratch."""
        doc = json.loads((self.dir / "base.json").read_text())
        for c in doc["cases"]:
            c["settings"]["caches"] = "L1d 1 KiB/1"
            for name in ("full_planned_bytes", "full_total_bytes", "scratch_bytes"):
                c["figures"][name] //= 2
            c["figures"]["predicted_bytes"]["Workspace"] //= 2
        (self.dir / "base.json").write_text(json.dumps(doc))

    def grow(self):
        """The baseline as if this machine's scratch had been smaller then."""
        doc = json.loads((self.dir / "base.json").read_text())
        for c in doc["cases"]:
            c["figures"]["full_planned_bytes"] -= 256
            c["figures"]["scratch_bytes"] -= 256
        (self.dir / "base.json").write_text(json.dumps(doc))

    def test_what_is_judged_holds_no_scratch(self):
        self.begin()
        row = {(r["metric"], r["kind"]): r for r in self.document()["cases"][0]["rows"]}
        planned, full = row["planned_bytes", None]["current"], row["full_planned_bytes", None]["current"]
        scratch = row["scratch_bytes", None]["current"]
        self.assertGreater(scratch, 0)
        self.assertLess(planned, full)
        self.assertLessEqual(full, planned + scratch)
        self.assertEqual(row["lower_bound_bytes", None]["current"], planned)  # lenet5's plan is proved to be the best
        alone = json.loads((self.dir / "base.json").read_text())["cases"][0]
        self.assertFalse([t for t in alone["tensors"] if t["name"].endswith(".scratch")])
        self.assertEqual(alone["peak"]["held_bytes"], planned)
        plan = json.loads(self.ok("plan", self.dir / "m.json", "--node-limit", 2000, "-o", "-").stdout)
        self.assertIn(str(full), json.dumps(plan))  # the full plan is the one that `plan` makes

    def test_scratch_alone_fails_nothing(self):
        self.begin(run=False)
        self.grow()
        text = self.check().stdout
        self.assertIn("full_planned_bytes", text)
        self.assertIn("the kernel that asks for most scratch takes", text)

    def test_a_rule_asks_for_it(self):
        self.begin(run=False)
        self.grow()
        self.config(run=False, tail='[rules]\nfull_planned_bytes = "fail"')
        self.failed("full_planned_bytes", metric="full_planned_bytes", cause="scratch")

    def test_another_machine_is_told_and_not_judged(self):
        self.begin(run=False)
        self.elsewhere()
        for tail in ("", '[rules]\nfull_planned_bytes = "fail"\nscratch_bytes = { max = 1 }\n'):
            self.config(run=False, tail=tail)
            text = self.check("-v").stdout
            self.assertIn("1 case was measured on another machine than the baseline's (caches: ", text)
            self.assertRegex(text, r"full_planned_bytes: .*; not judged: another machine")
            doc = self.document()
            self.assertIn("L1d 1 KiB/1", doc["other_machine"])
            self.assertEqual({r["metric"] for r in doc["cases"][0]["rows"] if r["other_machine"]},
                             {"process_bytes", "full_planned_bytes", "full_total_bytes", "full_lower_bound_bytes", "scratch_bytes",
                              "predicted_bytes"})
        # With no baseline there is no other machine: a budget is a budget.
        p = self.check("--no-baseline", code=1)
        self.assertIn("scratch_bytes", p.stdout)

    def test_the_case_notes_its_machine(self):
        self.begin()
        settings = json.loads((self.dir / "base.json").read_text())["cases"][0]["settings"]
        self.assertLessEqual({"instructions", "caches", "threads", "library"}, set(settings))
        self.assertRegex(settings["library"], r"^oneDNN \d+\.\d+\.\d+$")

    def graph(self, nodes, inputs=("x",), outputs=("y",), shape=(1, 1, 8, 8)):
        doc = {"format": "tidemark.graph", "version": 1, "name": "g", "opset": 17,
               "inputs": [{"name": n, "dtype": "float32", "shape": list(shape)} for n in inputs],
               "initializers": [], "nodes": nodes, "outputs": list(outputs)}
        like = json.loads((SAMPLES / "diamond.json").read_text())
        doc = {**{k: v for k, v in like.items() if k not in doc}, **{k: v for k, v in doc.items() if k in like}}
        (self.dir / "m.json").write_text(json.dumps(doc))

    def test_degenerate(self):
        """Nothing to plan, one operator, all of it inputs and outputs: each is a case that passes and is kept."""
        relu = {"op": "Relu", "name": "r", "inputs": ["x"], "outputs": ["y"]}
        soft = {"op": "Softmax", "name": "s", "inputs": ["x"], "outputs": ["y"], "attrs": {"axis": 1}}
        add = {"op": "Add", "name": "a", "inputs": ["x", "z"], "outputs": ["y"]}
        for nodes, inputs, outputs in (([relu], ["x"], ["y"]), ([add], ["x", "z"], ["y"]), ([soft], ["x"], ["y"])):
            with self.subTest(str(nodes)):
                self.graph(nodes, inputs, outputs)
                (self.dir / "base.json").unlink(missing_ok=True)
                self.config()
                self.update()
                self.assertEqual(self.document()["cases"][0]["state"], "unchanged")
                figures = json.loads((self.dir / "base.json").read_text())["cases"][0]["figures"]
                self.assertEqual(figures["planned_bytes"], 0)
                self.assertEqual(figures["full_planned_bytes"], figures["scratch_bytes"])  # scratch alone, or nothing


class Versions(GateCase):
    def older(self):
        """The baseline as version 1 had it: scratch in the figures, no caches, no content."""
        doc = json.loads((self.dir / "base.json").read_text())
        doc["version"] = 1
        for c in doc["cases"]:
            c.pop("content", None)
            for key in ("caches", "library"):
                c["settings"].pop(key, None)
            f = c["figures"]
            for name in ("planned_bytes", "total_bytes", "lower_bound_bytes"):
                if f"full_{name}" in f:
                    f[name] = f.pop(f"full_{name}")
            f.pop("scratch_bytes", None)
        (self.dir / "base.json").write_text(json.dumps(doc))

    def test_version_1_is_no_pass_and_is_updated(self):
        self.begin()
        self.older()
        p = self.not_run(4, says=["it is of version 1, whose figures hold kernels' scratch"])
        command = next(line for line in p.stdout.splitlines() if line.startswith("to accept: "))
        self.assertEqual(command, 'to accept: tidemark check --update-baseline --reason "…"')
        self.update("version 2")
        self.check()
        self.assertEqual(len(json.loads((self.dir / "base.json").read_text())["updates"]), 2)

    def test_version_1_of_lifetimes_is_as_good(self):
        """What was planned elsewhere never depended on this machine."""
        self.ok("export", SAMPLES / "lenet5.json", "--to", "json", "-o", self.dir / "m.json")
        self.config(run=False)
        self.update()
        self.older()
        self.check()

    def test_a_later_version_is_refused(self):
        self.begin()
        doc = json.loads((self.dir / "base.json").read_text())
        (self.dir / "base.json").write_text(json.dumps({**doc, "version": 3}))
        self.not_run(4, says=["version 3"])


if __name__ == "__main__":
    tidemark.main()
