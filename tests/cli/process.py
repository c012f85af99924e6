# SPDX-License-Identifier: MIT
"""What a process takes that runs a model: predicted by plan, and asked of the kernel for a real run. Both while the model
is loaded and in all, with weights mapped and copied. TIDE_TABLE=1 prints the table of docs/benchmarks.md."""
import contextlib
import json
import os
import pathlib
import resource
import shlex
import signal
import sqlite3
import subprocess
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, SHARED, Case, environment, share
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
        chosen = share(models(), 3)
        n = sum(self.check(*model) for model in chosen)
        self.assertGreater(n, len(chosen) / 2)

    def test_large_weights(self):
        """Stored, as bytes and as a list of numbers, stored at an odd place, beside the model, and made by folding."""
        for place in PLACES:
            self.assertTrue(self.check(place, write(self.dir, place, 4096, 4096), ()))
            for path in self.dir.iterdir():
                path.unlink()

    def test_contexts_cost_what_is_said(self):
        path = SAMPLES / "unet.json"
        one, five = (self.json("run", "-n", 2, "--contexts", n, path) for n in (1, 5))
        cost = one["process"]["context_bytes"] + one["process"]["context_own_bytes"]
        self.assertEqual(five["process"]["run_bytes"], one["process"]["run_bytes"] + 4 * cost)
        grown = five["measured_peak_bytes"] - one["measured_peak_bytes"]
        self.assertGreater(grown, 3 * cost)
        self.assertLess(grown, 4 * cost + 16 * MIB)  # threads, and what the library takes for each of them

    def test_many_contexts_of_small_models(self):
        """Bookkeeping and threads are the most of what they take. (Not of larger ones: their kernels allocate by themselves.)"""
        for name in ("decoder_step", "diamond"):
            p, outside = run_measured("run", "-n", 1, "--json", "--contexts", 200, SAMPLES / f"{name}.json")
            self.assertEqual(p.returncode, 0, p.stderr)
            predicted = json.loads(p.stdout)["process"]["peak_bytes"]
            self.assertLess(abs(outside - predicted), 0.05 * outside + 20e6, (name, outside, predicted))

    def test_a_plan_that_says_odd_things_of_the_process(self):
        """Of few bytes few can be shared; and what passes 2^63 can be read again."""
        self.ok("plan", SAMPLES / "diamond.json", "-o", self.dir / "p.json")
        doc = json.loads((self.dir / "p.json").read_text())
        for program, own in ((1, 0), (1 << 20, 1), (2**63 - 1, 2**63 - 1)):
            doc["process"].update(program_bytes=program, own_bytes=own)
            (self.dir / "p.json").write_text(json.dumps(doc))
            process = self.json("plan", self.dir / "p.json")["process"]
            self.assertLessEqual(process["private_bytes"], process["peak_bytes"])
            self.assertLessEqual(process["shared_bytes"], process["program_bytes"])
            self.assertLess(process["peak_bytes"], 2**63)
            self.ok("plan", self.dir / "p.json", "--budget", "1MiB", "-o", self.dir / "again.json", code=(0, 6))
            self.ok("plan", self.dir / "again.json")

    def test_a_run_by_a_plan_of_a_file(self):
        """The process is that of the run, whatever the file says of another or does not say."""
        path, plan = SAMPLES / "lenet5.json", self.dir / "p.json"
        self.ok("plan", path, "-o", plan)
        doc = json.loads(plan.read_text())
        want = doc["process"]
        for process in ({**want, "program_bytes": 1, "constants_bytes": 2**62}, None):
            doc["process"] = process
            if process is None:
                doc.pop("process")
            plan.write_text(json.dumps(doc))
            self.assertEqual(self.json("run", "-n", 1, "--plan", plan, path)["process"], want)

    def test_two_models_in_one_trace(self):
        """Each run has the process of its own model."""
        models = [SAMPLES / "lenet5.json", SAMPLES / "resnet18.json"]
        self.ok("record", "-o", self.dir / "t.db", "--", "sh", "-c",
                " && ".join(f"{shlex.quote(str(PROGRAM))} run -n 1 {shlex.quote(str(m))}" for m in models))
        for k, model in enumerate(models, 1):
            self.ok("report", self.dir / "t.db", "--run", k, "-o", self.dir / "r.json")
            process = json.loads((self.dir / "r.json").read_text())["sides"][0]["process"]
            self.assertEqual(process, self.json("plan", model)["process"])

    def test_what_was_recorded_counts_where_it_is_more(self):
        """A KV cache is in no plan; and figures of a trace that are none are said to be damaged."""
        trace, out = self.dir / "t.db", self.dir / "r.json"
        self.ok("run", "--decode", 40, SAMPLES / "decoder_step.json", "-o", trace)
        self.ok("report", trace, "--capacity", "1GiB", "-o", out)
        side = json.loads(out.read_text())["sides"][0]
        beside = side["process"]["program_bytes"] + side["process"]["own_bytes"]
        self.assertEqual(side["needs_bytes"], beside + side["peak"]["bytes"])
        self.assertGreater(side["needs_bytes"], side["process"]["peak_bytes"])
        self.ok("report", trace, "--capacity", side["needs_bytes"] - 1, "-o", self.dir / "r.txt")
        self.assertRegex((self.dir / "r.txt").read_text(), "Will it fit +no .*by what was recorded")
        for value in ("-5", "abc", "1.5", ""):
            with contextlib.closing(sqlite3.connect(trace)) as db, db:
                db.execute("UPDATE meta SET value = ? WHERE key = 'process_own_bytes.1'", (value,))
            self.refused(3, "report", trace, "-o", out, says=["table meta"])

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

    @unittest.skipUnless((SHARED / "models/light-bvlc-alexnet").is_dir(), "skipped: ../shared is not there")
    def test_what_would_make_it_fit_does(self):
        """Constants that are not folded: the advice's figure is the kernel's, and the results are the same."""
        path = SHARED / "models/light-bvlc-alexnet/model.onnx"
        rows = self.json("plan", path, "--budget", "200MB", code=6)["advice"]
        row = next(r for r in rows if r["kind"] == "fold")
        self.assertTrue(row["fits"])
        options = row["change"].split()
        p, outside = run_measured("run", "-n", 2, *options, path)
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertLess(outside, 200_000_000)
        self.assertLess(abs(outside - row["need_bytes"]), 0.05 * outside + 20e6)
        self.ok("compare", path, *options, "--reference", path.parent / "test_data_set_0")
        self.refused(2, "plan", path, "--fold-limit", "1KiB", says=["64KiB"])

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


# What a limit on addresses counts beside what lies at them, measured on Debian 12: the parts of libraries that are never
# read, stacks of threads.
ADDRESSES = 42_000_000
CGROUPS = pathlib.Path("/sys/fs/cgroup")


def limited_models(folder):
    """Five, and one whose weights stay in the file."""
    yield SAMPLES / "lenet5.json"
    yield SAMPLES / "unet.json"
    for name in ("light-squeezenet", "light-resnet50", "light-bvlc-alexnet"):
        path = SHARED / "models" / name / "model.onnx"
        if path.exists():
            yield path
    yield write(folder, "aligned", 4096, 4096)


@unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "skipped: sanitizers take terabytes of addresses")
class Limits(Case):
    def survives(self, path, prepare):
        """Whether a run does whose process is prepared so. One that does not says so, or the system has ended it."""
        p = subprocess.run([PROGRAM, "run", "-n", "3", str(path)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                           env=environment({}), preexec_fn=prepare, check=False)
        self.assertIn(p.returncode, (0, 6, 127, -signal.SIGKILL), p.stderr)  # 127: libraries do not fit
        return p.returncode == 0

    def least(self, path, prepare, predicted):
        """The smallest limit under which it runs, to 3 MiB."""
        fails, runs = predicted - 40_000_000, predicted + 60_000_000
        self.assertTrue(self.survives(path, prepare(runs)), path)
        while runs - fails > 3 * MIB:
            middle = (runs + fails) // 2
            if middle > 0 and self.survives(path, prepare(middle)):
                runs = middle
            else:
                fails = middle
        return runs

    def held_against(self, what, path, prepare, predicted):
        """The smallest limit lies as near to what was predicted as is promised: under that much more it runs, and under that
        much less it does not. To look for the limit itself takes three times as many runs."""
        near = int(0.05 * predicted + 10e6)
        if os.environ.get("TIDE_TABLE"):
            least = self.least(path, prepare, predicted)
            print(f"| {path.parent.name}/{path.name} | {what} | {predicted / 1e6:.1f} | {least / 1e6:.1f} |")
        self.assertTrue(self.survives(path, prepare(predicted + near)), (what, path, "more than predicted"))
        self.assertFalse(predicted - near > 3 * MIB and self.survives(path, prepare(predicted - near)), (what, path, "less than predicted"))

    def test_addresses(self):
        """plan --budget says yes for just those budgets under which a run survives ulimit -v of that size, and what
        addresses take that nothing lies at."""
        def prepare(limit):
            return lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
        for path in limited_models(self.dir):
            predicted = self.json("plan", path)["process"]["peak_bytes"] + ADDRESSES
            self.held_against("ulimit -v", path, prepare, predicted)

    @contextlib.contextmanager
    def cgroup(self):
        """A group of its own, and its file for the limit; skipped where none can be made."""
        old = (CGROUPS / "memory" / "cgroup.procs").exists()
        group = (CGROUPS / "memory" if old else CGROUPS) / f"tidemark-test-{os.getpid()}"
        try:
            group.mkdir()
        except OSError as e:
            self.skipTest(f"no cgroup can be made: {e}")
        try:
            limit = group / ("memory.limit_in_bytes" if old else "memory.max")
            if not limit.exists():
                self.skipTest("cgroups here do not count memory")
            yield group, limit
        finally:
            tidemark.until(lambda: not (group / "cgroup.procs").read_text())
            group.rmdir()

    def test_cgroup(self):
        """A cgroup has to have room for what is private: what lies in files can be dropped and read again."""
        with self.cgroup() as (group, limit_file):
            def prepare(limit):
                def enter():
                    limit_file.write_text(str(limit // 4096 * 4096))
                    (group / "cgroup.procs").write_text("0")
                return enter
            for path in limited_models(self.dir):
                private = self.json("plan", path)["process"]["private_bytes"]
                self.held_against("cgroup", path, prepare, private)

    def test_processes_share(self):
        """N of them at once take what is said to be shared, and N times what is private, by the kernel's own count."""
        for path in list(limited_models(self.dir))[::2] + [self.dir / "aligned.onnx"]:
            process = self.json("plan", path)["process"]
            self.assertEqual(process["shared_bytes"] + process["private_bytes"], process["peak_bytes"])
            for n in (1, 4):
                taken = self.taken_by(n, path)
                want = process["shared_bytes"] + n * process["private_bytes"]
                self.assertLess(abs(taken - want), 0.05 * want + 20e6, (path, n, taken, want))
                if n == 4 and path.name == "aligned.onnx":
                    self.assertLess(taken, 1.4 * process["peak_bytes"], "the weights are there once")

    def taken_by(self, n, path):
        """Bytes of n processes together, shared ones once: the sum of their proportional set sizes, in the midst of runs."""
        running = [subprocess.Popen([PROGRAM, "run", "-n", "1000000", str(path)], stdout=subprocess.DEVNULL, env=environment({}))
                   for _ in range(n)]
        try:
            # Whole MiB: the list of times grows with the runs.
            tidemark.settle([p.pid for p in running], lambda pid: self.kib(pid, "status", "VmHWM") // 1024, 0.3)
            for p in running:
                self.assertIsNone(p.poll(), "it is still running")
                p.send_signal(signal.SIGSTOP)
            return 1024 * sum(self.kib(p.pid, "smaps_rollup", "Pss") for p in running)
        finally:
            for p in running:
                p.kill()
                p.wait()

    def kib(self, pid, file, key):
        for line in pathlib.Path(f"/proc/{pid}/{file}").read_text().splitlines():
            if line.startswith(key + ":"):
                return int(line.split()[1])
        return self.fail(f"no {key}")


if __name__ == "__main__":
    tidemark.main()
