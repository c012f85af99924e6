# SPDX-License-Identifier: MIT
"""A traced run of every model that runs: sums per kind are the allocators' totals, and what the program answers about the
trace is what plain SQL answers on the same file."""
import os
import unittest

import tidemark
from models import MODELS
from tidemark import SAMPLES, SHARED, Case, ask, run, share


class Traced(Case):
    def check(self, name, args):
        path = self.dir / "t.db"
        doc = self.json("run", *args, "-n", 2, "--naive", "-o", path)
        self.check_sums(doc, path)
        facts = self.json("trace", path, "--whole")
        self.check_facts(facts, path)
        events = sorted({1, facts["peak"]["event"], facts["marks"][0]["event"], facts["events"] // 3, facts["events"]})
        for event in events:
            self.check_moment(path, event, event == facts["peak"]["event"] or os.environ.get("TIDE_SOAK") == "1")
        self.check_curve(facts, path)
        print(f"{name:24} {facts['events']:>6} events, {facts['blocks']:>5} blocks, peak {facts['peak']['bytes']:>10}",
              flush=True)

    def check_sums(self, doc, path):
        """The allocators' own numbers, as the run prints them, are the sums over the events of each kind."""
        heard = {k["kind"]: (k["allocations"], k["requested_bytes"]) for k in doc["kinds"]}
        totals = {k: (n, b) for k, n, b in ask(path, "SELECT kind, allocations, requested_bytes FROM totals")}
        events = {k: (n, b) for k, n, b in ask(path, """SELECT kind, count(*), sum(requested_bytes) FROM events
                                                        WHERE op = 'alloc' GROUP BY kind""")}
        frees = dict(ask(path, """SELECT kind, sum(requested_bytes) FROM events
                                  WHERE op = 'free_completed' GROUP BY kind"""))
        self.assertEqual(totals, heard)
        self.assertEqual(events, heard)
        self.assertEqual(frees, {k: b for k, (_, b) in heard.items()})  # nothing leaks
        peaks = {k: (p, r) for k, p, r in ask(path, """SELECT kind, peak_bytes, peak_reserved_bytes FROM bytes_by_kind
                                                       WHERE run_id = 0""")}
        self.assertEqual(peaks, {k["kind"]: (k["peak_bytes"], k["reserved_peak_bytes"]) for k in doc["kinds"]})
        # Nothing is predicted of tensors that are sized while running: in a run only they are HostPageable.
        rows = ask(path, "SELECT kind, difference_bytes FROM predicted_vs_measured WHERE kind <> 'HostPageable'")
        # Which bodies a naive run goes through is no part of a plan.
        unknown = {("Workspace", None)} if ask(path, "SELECT 1 FROM plan_region") else set()
        self.assertEqual({r[1] for r in set(rows) - unknown}, {0}, rows)

    def check_facts(self, facts, path):
        self.assertEqual((facts["state"], facts["lost"], facts["problems"], facts["leaks"]), ("complete", 0, 0, 0))
        self.assertEqual(ask(path, "SELECT count(*), max(id) FROM event"), [(facts["events"], facts["events"])])
        self.assertEqual(ask(path, "SELECT peak_bytes, t_ns, event_id FROM peak WHERE run_id = 0"),
                         [(facts["peak"]["bytes"], facts["peak"]["t_ns"], facts["peak"]["event"])])
        self.assertEqual(ask(path, "SELECT peak_bytes FROM peak WHERE run_id = 1"), [(facts["runs"][0]["peak_bytes"],)])
        keys = ("kind", "allocations", "frees", "requested_bytes", "peak_bytes")
        want = ask(path, f"SELECT {', '.join(keys)} FROM bytes_by_kind WHERE run_id = 0")
        self.assertEqual(sorted(tuple(k[key] for key in keys) for k in facts["kinds"]), sorted(want))

    def check_moment(self, path, event, grouped):
        doc = self.json("trace", path, "--at", f"#{event}")
        want = ask(path, """SELECT a.block_id, a.requested_bytes, a.kind, a.name, a.scope FROM events a
            WHERE a.op = 'alloc' AND a.event_id <= ?1 AND a.block_id NOT IN
            (SELECT block_id FROM events WHERE op = 'free_completed' AND event_id <= ?1)""", event)
        got = [(b["block_id"], b["requested_bytes"], b["kind"], b["name"] or "", b["scope"] or "") for b in doc["blocks"]]
        self.assertEqual(sorted(got), sorted(want))
        # Groups of the same blocks: at the peak; in make soak at every moment.
        for key in ("kind", "scope") if grouped else ():
            groups = self.json("trace", path, "--at", f"#{event}", "--by", key)["groups"]
            self.assertEqual(sum(g["requested_bytes"] for g in groups), sum(row[1] for row in want))

    def check_curve(self, facts, path):
        """The sum over all events at some moments: live bytes by the program, by the view, by adding up."""
        for share in (10, 50, 90):
            moment = self.json("trace", path, "--at", f"{share}%")["moment"]
            (added,) = ask(path, """SELECT coalesce(sum(CASE op WHEN 1 THEN requested_bytes WHEN 3 THEN -requested_bytes
                END), 0) FROM event WHERE t_ns <= ?""", moment["t_ns"])[0]
            self.assertEqual(moment["requested_bytes"], added)
            view = ask(path, """SELECT total_bytes FROM live_bytes WHERE run_id = 0 AND t_ns <= ?
                ORDER BY event_id DESC LIMIT 1""", moment["t_ns"])
            self.assertEqual(view[0][0] if view else 0, added)

    def test_samples(self):
        for path in share(sorted(SAMPLES.glob("*.json")), 2):
            shape = ["--shape", "x=8x64"] if path.stem == "dynamic_batch" else []
            with self.subTest(graph=path.stem):
                self.check(path.stem, [path, *shape])

    def test_shared_models(self):
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        for name in MODELS:
            for data in sorted((SHARED / "models" / name).glob("test_data_set_*"))[:1]:
                with self.subTest(model=name):
                    self.check(name, [SHARED / "models" / name / "model.onnx", "--input-dir", data])

    def test_models_that_no_list_names(self):
        """Whatever else in ../shared/models runs is traced too; what does not run says so with its exit code."""
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        others = sorted(p for p in (SHARED / "models").iterdir() if p.is_dir() and p.name not in MODELS)
        for folder in share(others, 2):
            model = folder / "model.onnx"
            data = sorted(folder.glob("test_data_set_*"))
            if not model.is_file():
                continue
            args = [model, *(["--input-dir", data[0]] if data else [])]
            p = run("run", *args, "-n", 1)
            if p.returncode != 0:
                why = p.stderr.splitlines()[0] if p.stderr else p.returncode
                print(f"{folder.name:24} does not run: {why}", flush=True)
                self.assertIn(p.returncode, (3,), p.stderr)
                continue
            with self.subTest(model=folder.name):
                self.check(folder.name, args)


if __name__ == "__main__":
    tidemark.main()
