# SPDX-License-Identifier: MIT
"""What a process takes that runs a model: predicted by plan, and asked of the kernel for a real run. Both while the model
is loaded and in all, with weights mapped and copied. TIDE_TABLE=1 prints the table of docs/benchmarks.md."""
import json
import os

import tidemark
from tidemark import SAMPLES, SHARED, Case
from weights import MIB, PLACES, run_measured, write

EXTENTS = {"dynamic_batch": ("--extent", "batch=8")}


def models():
    """Name, file, options that fix open extents."""
    for path in sorted(SAMPLES.glob("*.json")):
        yield path.stem, path, EXTENTS.get(path.stem, ())
    for path in sorted(SHARED.glob("models/*/model.onnx")):
        data = path.parent / "test_data_set_0"
        yield path.parent.name, path, ("--input-dir", data) if data.is_dir() else ()


class Process(Case):
    def measure(self, name, path, options, weights):
        """Runs it. @return the predicted and the measured bytes, of loading and in all; None: it cannot run here"""
        p, outside = run_measured("run", "-n", 2, "--json", "--weights", weights, *options, path)
        if p.returncode == 3:
            return None
        self.assertEqual(p.returncode, 0, p.stderr)
        doc = json.loads(p.stdout)
        process = doc["process"]
        if "--input-dir" not in options:
            plan = self.json("plan", "--weights", weights, *options, path)["process"]
            self.assertEqual(process, plan, "run and plan say the same")
        parts = [k for k in process if k.endswith("_bytes") and k.split("_")[0] in
                 ("program", "own", "weights", "mapped", "inputs", "outputs", "buffer")]
        self.assertEqual(sum(process[k] for k in parts), process["run_bytes"], name)
        self.assertEqual(max(process["load_bytes"], process["run_bytes"]), process["peak_bytes"])
        self.assertLess(abs(outside - doc["measured_peak_bytes"]), MIB, "what it read of itself is what the kernel says")
        return process["load_bytes"], doc["measured_load_bytes"], process["peak_bytes"], outside

    def check(self, name, path, options):
        for weights in ("map", "copy") if path.suffix == ".onnx" and path.stat().st_size > 1 << 16 else ("map",):
            found = self.measure(name, path, options, weights)
            if found is None:
                return False
            if os.environ.get("TIDE_TABLE"):
                print("| {} | {} | {} |".format(name, weights, " | ".join(f"{n / 1e6:.1f}" for n in found)))
            for predicted, measured in (found[:2], found[2:]):
                self.assertLess(abs(predicted - measured), 0.05 * measured + 20e6, (name, weights, found))
        return True

    def test_models(self):
        n = sum(self.check(*model) for model in models())
        self.assertGreater(n, 17)

    def test_large_weights(self):
        """Stored, stored at an odd place, beside the model, and made by folding."""
        for place in PLACES:
            if place != "list":
                self.assertTrue(self.check(place, write(self.dir, place, 8192, 4096), ()))
                for path in self.dir.iterdir():
                    path.unlink()

    def test_contexts_cost_what_is_said(self):
        path = SAMPLES / "unet.json"
        one, five = (self.json("run", "-n", 2, "--contexts", n, path) for n in (1, 5))
        cost = one["process"]["context_bytes"]
        self.assertEqual(five["process"]["run_bytes"], one["process"]["run_bytes"] + 4 * cost)
        grown = five["measured_peak_bytes"] - one["measured_peak_bytes"]
        self.assertGreater(grown, 3 * cost)
        self.assertLess(grown, 4 * cost + 16 * MIB)  # threads, and what the library takes for each of them

    def test_a_budget_is_the_process(self):
        """To the byte; and what does not fit says which parts there are."""
        need = self.json("plan", SAMPLES / "lenet5.json")["process"]["peak_bytes"]
        self.assertIn("fits: yes", self.ok("plan", SAMPLES / "lenet5.json", "--budget", need).stdout)
        said = self.ok("plan", SAMPLES / "lenet5.json", "--budget", need - 1, code=6).stdout
        self.assertIn(", 1 B too much)", said)
        for part in ("program ", "own ", "weights ", "inputs ", "outputs ", "buffer "):
            self.assertIn(part, said)
        self.assertIn("the program, weights, inputs and outputs", said)

    def fits(self, path, budget, extent=()):
        """What each command answers that is asked whether the process fits: name -> yes or no."""
        said = {}
        for name, asked in (("plan", path), ("plan of a plan", self.dir / "p.json")):
            more = extent if asked == path else ()
            doc = self.json("plan", asked, *more, "--budget", budget, code=(0, 6))
            said[name] = doc["fits"] == "yes"
        (self.dir / "tidemark.toml").write_text(
            f'version = 1\nbaseline = false\n[defaults]\nrun = false\n[[model]]\npath = "{path}"\nmax_bytes = {budget}\n' +
            ('shapes = { x = "8x64" }\n' if extent else ""))
        said["check"] = self.ok("check", cwd=self.dir, code=(0, 1)).returncode == 0
        if extent:
            name, value = extent[1].split("=")
            doc = self.json("sweep", path, "--extent", f"{name}={value}..{value}", "--fits", budget)
            said["sweep"] = not doc["answers"][0]["none_fits"]
        for asked in (path, self.dir / "p.json", self.dir / "t.db"):
            out = self.dir / "r.json"
            self.ok("report", asked, *(extent if asked == path else ()), "--capacity", budget, "-o", out)
            side = json.loads(out.read_text())["sides"][0]
            said[f"report of {asked.suffix}"] = side["fit"]["fits"]
            self.assertEqual(side["needs_bytes"], side["process"]["peak_bytes"])
        return said

    def test_one_answer(self):
        """To the byte the same from plan, check, sweep --fits and the page, of a model, its plan and the trace of its run."""
        cases = [(SAMPLES / "lenet5.json", ()), (SAMPLES / "dynamic_batch.json", ("--extent", "batch=8"))]
        cases += [(p, ()) for p in (SHARED / "models/light-squeezenet/model.onnx",) if p.exists()]
        for path, extent in cases:
            path = path.resolve()
            self.ok("plan", path, *extent, "-o", self.dir / "p.json")
            self.ok("run", "-n", 1, path, *extent, "-o", self.dir / "t.db")
            need = self.json("plan", path, *extent)["process"]["peak_bytes"]
            self.assertEqual(set(self.fits(path, need, extent).values()), {True}, path)
            said = self.fits(path, need - 1, extent)
            self.assertEqual(set(said.values()), {False}, (path, said))

    def test_trace_of_contexts(self):
        """The page of a run with four contexts says what four take; that of a naive run what its blocks took."""
        self.ok("run", "-n", 1, "--contexts", 4, SAMPLES / "lenet5.json", "-o", self.dir / "t.db")
        self.ok("run", "-n", 1, "--naive", SAMPLES / "lenet5.json", "-o", self.dir / "n.db")
        for trace, contexts in (("t.db", 4), ("n.db", None)):
            self.ok("report", self.dir / trace, "--capacity", "1MiB", "-o", self.dir / "r.json")
            side = json.loads((self.dir / "r.json").read_text())["sides"][0]
            if contexts is None:
                self.assertNotIn("process", side)
                self.assertEqual(side["needs_bytes"], side["peak"]["bytes"])
            else:
                self.assertEqual(side["process"]["contexts"], contexts)
                self.assertEqual(side["process"]["buffer_bytes"], 4 * self.json("plan", SAMPLES / "lenet5.json")["plans"][0]["bytes"])


if __name__ == "__main__":
    tidemark.main()
