# SPDX-License-Identifier: MIT
"""`tidemark replay`: its figures held against a replay of the SQL rows in Python, against what the recording program's own
allocator took, and its answers to traces with hardly anything in them."""
import os
import subprocess
import unittest

import tidemark
from tidemark import SAMPLES, Case, ask

LENET = SAMPLES / "lenet5.json"
USUAL = ["cpu", "cpu_caching", "stream_caching"]
PLUGIN, SIMULATION = os.environ.get("TIDE_CUDA_PLUGIN", ""), os.environ.get("TIDE_SIM_DRIVER", "")


def replayed(path, run_id=None, kinds=None):
    """What the rows say, block by block: the peaks, when, how many, what is left."""
    live, requested, active, peak, active_peak, at, n, frees = {}, 0, 0, 0, 0, 0, 0, 0
    first, last = 1, 1 << 62
    if run_id is not None:
        first, last = ask(path, "SELECT min(id), max(id) FROM event WHERE run_id = ?", run_id)[0]
    for number, op, block, kind, size, held in ask(path, """SELECT id, op, block_id, kind, requested_bytes, reserved_bytes
            FROM event WHERE op IN (1, 3) ORDER BY id"""):
        if number > last or (kinds is not None and kind not in kinds):
            continue
        if op == 1 and size > 0:
            live[block] = (size, held)
        elif op == 3 and block in live:
            size, held = (-part for part in live.pop(block))
            frees += number >= first
        else:
            continue
        requested, active = requested + size, active + held
        n += op == 1 and number >= first
        if op == 1 and requested > peak:
            peak, at = requested, number
        active_peak = max(active_peak, active)
        if number < first:
            peak, active_peak, n = 0, 0, len(live)  # what is alive when it begins is given first
    if n and peak < requested:
        peak = requested
    return {"requested": peak, "active": active_peak, "event": at, "allocs": n, "frees": frees, "left": len(live),
            "left_bytes": requested}


class Replays(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def made(self, what):
        subprocess.run([os.environ["TIDE_REPLAY_TRACE"], what, self.path], check=True)
        return self.path

    def naive(self, *args):
        self.ok("run", "--naive", "-n", 2, "--allocator", "stream_caching", "-o", self.path, "--form", "rows", *args, LENET)
        return self.path


class Figures(Replays):
    def same(self, doc, want):
        """One trace, whichever allocator: the same blocks, and the same bytes asked for."""
        self.assertEqual(doc["schema"], "tidemark.replay")
        c = doc["recorded"]
        self.assertEqual((c["requested_peak_bytes"], c["active_peak_bytes"], c["peak"]["event"], c["frees"], c["live_at_end_bytes"]),
                         (want["requested"], want["active"], want["event"], want["frees"], want["left_bytes"]))
        for a in doc["allocators"]:
            self.assertEqual(a["requested_peak_bytes"], want["requested"], a["allocator"])
            self.assertEqual((a["peak"]["event"], a["allocations"], a["frees"], a["live_at_end"], a["live_at_end_bytes"]),
                             (want["event"], want["allocs"], want["frees"], want["left"], want["left_bytes"]))
            p = a["peak"]
            self.assertEqual(p["requested_bytes"], want["requested"])
            self.assertEqual(p["idle_bytes"], p["reserved_bytes"] - p["active_bytes"])
            self.assertEqual(p["rounding_bytes"], p["active_bytes"] - p["requested_bytes"])
            self.assertLessEqual(p["requested_bytes"], p["active_bytes"])
            self.assertGreaterEqual(a["reserved_peak_bytes"], a["active_peak_bytes"])
            self.assertGreaterEqual(a["worst_idle_bytes"], p["idle_bytes"])
            self.assertGreaterEqual(a["worst_rounding_bytes"], p["rounding_bytes"])
            self.assertEqual(a["system_calls"] + a["cache_hits"], a["allocations"], a["allocator"])
            if a["allocations"]:
                self.assertLessEqual(a["alloc_median_ns"], a["alloc_p99_ns"])

    def test_a_naive_run(self):
        doc = self.json("replay", self.naive())
        self.assertEqual([a["allocator"] for a in doc["allocators"]], USUAL)
        self.same(doc, replayed(self.path))
        cpu = doc["allocators"][0]
        self.assertEqual((cpu["reserved_peak_bytes"], cpu["worst_idle_bytes"], cpu["cache_hits"]), (cpu["active_peak_bytes"], 0, 0))
        self.assertEqual(cpu["wrong_bytes"], None)  # nothing was looked at

    def test_many_blocks(self):
        doc = self.json("replay", self.made("many"), "--check")
        self.same(doc, replayed(self.path))
        self.assertEqual([(a["wrong_bytes"], a["checked_blocks"]) for a in doc["allocators"]], [(0, 20000)] * 3)
        by_name = {a["allocator"]: a for a in doc["allocators"]}
        self.assertEqual(by_name["cpu"]["system_calls"], 20000)
        self.assertGreater(by_name["stream_caching"]["cache_hits"], 19000)
        # chunks say the same as rows
        self.ok("replay", self.path, "--allocator", "cpu", "-o", self.dir / "chunks.db", "--form", "chunks")
        again = self.json("replay", self.dir / "chunks.db", "--allocator", "cpu")["recorded"]
        self.assertEqual(again["requested_peak_bytes"], doc["recorded"]["requested_peak_bytes"])

    def test_round_trip(self):
        """Blocks that one stream_caching has served take of another one what they took of it."""
        path = self.naive()
        for kind in ("Workspace", "Persistent", "Default"):  # a run has an allocator for each
            doc = self.json("replay", path, "--kind", kind, "--allocator", "stream_caching")
            self.assertGreater(doc["recorded"]["allocations"], 0)
            self.assertEqual(doc["allocators"][0]["reserved_peak_bytes"], doc["recorded"]["reserved_peak_bytes"])
            self.assertEqual(doc["allocators"][0]["active_peak_bytes"], doc["recorded"]["active_peak_bytes"])
            self.assertEqual(doc["allocators"][0]["peak"]["idle_bytes"], doc["recorded"]["peak"]["idle_bytes"])
        self.made("many")
        for name in USUAL:
            out = self.dir / f"{name}.db"
            first = self.json("replay", self.path, "--allocator", name, "-o", out)["allocators"][0]
            again = self.json("replay", out, "--allocator", name)
            for key in ("requested_peak_bytes", "active_peak_bytes", "reserved_peak_bytes", "worst_idle_bytes", "system_calls",
                        "cache_hits"):
                self.assertEqual(first[key], again["allocators"][0][key], (name, key))

    def test_runs(self):
        path = self.dir / "both.db"
        self.ok("run", "-n", 2, "-o", path, "--form", "rows", LENET)
        doc = self.json("replay", path)
        self.assertEqual(doc["planned_runs"], 1)
        self.assertIn("the buffer (", self.ok("replay", path).stdout)
        self.same(doc, replayed(path))
        self.naive()
        doc = self.json("replay", self.path, "--run", 1)
        self.assertEqual(doc["run"], 1)
        self.assertEqual(doc["recorded"]["reserved_peak_bytes"], None)  # segments of before are not known
        self.assertGreater(doc["recorded"]["live_at_begin"], 0)
        for a in doc["allocators"]:
            self.assertEqual(a["allocations"], doc["recorded"]["allocations"])
            self.assertEqual(a["requested_peak_bytes"], doc["recorded"]["requested_peak_bytes"])
        peak = ask(self.path, "SELECT peak_bytes FROM peak WHERE run_id = 1")[0][0]
        self.assertEqual(doc["recorded"]["requested_peak_bytes"], peak)

    def test_streams_and_leaks(self):
        doc = self.json("replay", self.made("streams"), "--check")
        want = replayed(self.path)
        self.same(doc, want)
        self.assertEqual(doc["recorded"]["empty_blocks"], 1)
        self.assertEqual([a["streams"] for a in doc["allocators"]], [2] * 3)
        self.assertEqual([a["checked_blocks"] for a in doc["allocators"]], [8] * 3)
        text = self.ok("replay", self.path).stdout
        self.assertIn("are alive at the end", text)
        self.assertIn("1 blocks of 0 bytes", text)

    def test_a_pool_that_goes_at_once(self):
        doc = self.json("replay", self.made("discard"))
        self.assertEqual((doc["recorded"]["frees"], doc["recorded"]["live_at_end"]), (3, 2))
        self.assertEqual({(a["frees"], a["live_at_end"], a["requested_peak_bytes"]) for a in doc["allocators"]}, {(3, 2, 400)})

    def test_processes(self):
        path = self.dir / "all.db"
        self.ok("record", "-o", path, "--", "sh", "-c", f"for i in 1 2; do {tidemark.PROGRAM} run --naive -n 1 {LENET} & done; wait")
        doc = self.json("replay", path)
        self.assertEqual(doc["processes"], 2)
        self.same(doc, replayed(path))
        self.assertIn("in the order of time", self.ok("replay", path).stdout)

    def test_dropped_events(self):
        path = self.dir / "thin.db"
        self.ok("run", "--naive", "-n", 5000, "-o", path, "--form", "rows", "--max-trace", "8MiB", LENET)
        doc = self.json("replay", path, "--allocator", "cpu")
        if doc["dropped_events"] == 0:
            self.fail("nothing was dropped: the run is too short for this test")
        self.assertGreater(doc["recorded"]["live_at_begin"], 0)
        self.assertEqual(doc["recorded"]["unknown_frees"], 0)
        self.assertEqual(doc["recorded"]["allocations"], doc["allocators"][0]["allocations"])


def reserved_at_each_moment(path):
    """Reserved bytes behind each block that was given or freed: of allocators that tell of segments these, of others what their
    blocks hold; each kind has its own."""
    taken, held, sizes, curve = {}, {}, {}, []
    for op, block, key, size in ask(path, """SELECT op, block_id, coalesce(allocator_id, 0) || ' ' || kind, reserved_bytes FROM event
            WHERE op IN (1, 3, 4, 5) ORDER BY id"""):
        if op in (4, 5):
            taken[key] = taken.get(key, 0) + (size if op == 4 else -size)
            continue
        if op == 1:
            sizes[block] = size
        held[key] = held.get(key, 0) + (sizes[block] if op == 1 else -sizes.pop(block))
        curve.append(sum(taken.get(k, n) for k, n in held.items()))
    return curve


class AsRecorded(Replays):
    """The allocators that the trace names take again what they took, to the byte at every moment: the traces of docs/tui.md."""

    def same(self, path):
        out = self.dir / "replayed.db"
        doc = self.json("replay", path, "--allocator", "as_recorded", "-o", out, "--form", "rows", "--force")
        want, a = reserved_at_each_moment(path), doc["allocators"][0]
        self.assertGreater(len(set(want)), 2)
        self.assertEqual(reserved_at_each_moment(out)[:len(want)], want)
        self.assertEqual((a["beside_recorded"]["moments"], a["beside_recorded"]["moments_apart"]), (len(want), 0))
        for key in ("active_peak_bytes", "reserved_peak_bytes", "worst_idle_bytes", "end_reserved_bytes", "peak"):
            self.assertEqual(a[key], doc["recorded"][key], key)
        self.assertEqual(a["reserved_peak_bytes"], max(want))
        return doc

    def test_planned_and_naive(self):
        unet = SAMPLES / "unet.json"
        self.ok("run", "-n", 20, "-o", self.path, "--form", "rows", unet)
        self.same(self.path)
        self.ok("run", "--naive", "--allocator", "stream_caching", "-n", 20, "-o", self.path, "--form", "rows", unet)
        doc = self.same(self.path)
        one = self.json("replay", self.path, "--allocator", "stream_caching")["allocators"][0]
        self.assertLess(one["reserved_peak_bytes"], doc["recorded"]["reserved_peak_bytes"])  # of one for all kinds it is less
        self.assertIsNone(one["beside_recorded"])
        self.assertIn("as_recorded: has reserved what was recorded at each of", self.ok("replay", self.path, "--allocator", "as_recorded").stdout)
        self.ok("run", "--naive", "--allocator", "cpu_caching", "-n", 3, "-o", self.path, "--form", "rows", LENET)
        a = self.json("replay", self.path, "--allocator", "as_recorded")["allocators"][0]
        self.assertEqual((a["beside_recorded"]["moments_apart"], a["active_peak_bytes"]),
                         (0, self.json("replay", self.path)["recorded"]["active_peak_bytes"]))

    def test_an_hour_of_a_server(self):
        subprocess.run([os.path.join(os.environ["TIDE_EXAMPLES_DIR"], "serve"), self.path], check=True)
        self.ok("trace", "--expand", self.path)
        self.same(self.path)

    def test_alignments(self):
        """What blocks of odd sizes hold tells how they were aligned."""
        self.same(self.made("aligned"))
        self.ok("replay", self.path, "--allocator", "cpu", "-o", self.dir / "plain.db", "--form", "rows")
        self.same(self.dir / "plain.db")

    def test_a_plan_is_no_trace(self):
        plan = self.dir / "colour.json"
        self.ok("plan", SAMPLES / "unet.json", "--strategy", "greedy_color", "-o", plan)
        self.refused(3, "replay", plan, says=["is a plan, and not a tidemark trace", "run --plan PLAN -o trace.db"])
        self.refused(3, "trace", SAMPLES / "unet.json", says=["is graph text", "tidemark run -o trace.db"])

    def test_what_there_is_not(self):
        self.refused(3, "replay", self.made("some"), "--allocator", "as_recorded", says=["arena", "--kind and --of"])


class Answers(Replays):
    """Exit codes and words."""

    def test_degenerate(self):
        for what, n in (("nothing", 0), ("scopes", 0), ("no_bytes", 0), ("frees", 0), ("one_event", 1), ("one_tick", 3)):
            path = self.dir / f"{what}.db"
            subprocess.run([os.environ["TIDE_SCENARIO_TRACE"], path, what], check=True)
            doc = self.json("replay", path, "--check")
            self.assertEqual([a["allocations"] for a in doc["allocators"]], [n] * 3, what)
            if n == 0:
                self.assertEqual(doc["allocators"][0]["alloc_median_ns"], None)
            self.ok("replay", path, "--limit", "16MiB", "-o", self.dir / "out.db")
        self.assertEqual(self.json("replay", self.made("frees"))["recorded"]["unknown_frees"], 3)
        self.assertEqual(self.json("replay", self.made("twice"))["recorded"]["allocated_twice"], 1)
        self.assertEqual(self.json("replay", self.made("oom"))["recorded"]["failed"], 1)

    def test_more_than_there_can_be(self):
        doc = self.json("replay", self.made("huge"), code=6)
        for a in doc["allocators"]:
            self.assertEqual((a["fits"], a["failed"], a["allocations"], a["frees"], a["requested_peak_bytes"]), (False, 1, 2, 2, 128))
            f = a["first_failure"]
            self.assertEqual((f["event"], f["asked_bytes"], f["requested_bytes"], f["name"]), (2, 1 << 62, 64, "block"))
            self.assertTrue(f["reason"])
        self.assertIn("asked for 4.00 EiB for 'block'", self.ok("replay", self.path, code=6).stdout)

    def test_limit(self):
        """The limit is what may be reserved: the smallest that fits is just the peak of an allocator that keeps nothing."""
        path = self.made("many")
        peak = self.json("replay", path, "--allocator", "cpu")["allocators"][0]["reserved_peak_bytes"]
        for size, code in ((peak, 0), (peak - 1, 6), (1, 6)):
            doc = self.json("replay", path, "--allocator", "cpu", "--limit", size, code=code)
            a = doc["allocators"][0]
            self.assertEqual((a["fits"], a["failed"] == 0, doc["limit_bytes"]), (code == 0, code == 0, size))
            self.assertLessEqual(a["reserved_peak_bytes"], size)
            self.assertEqual(a["allocations"] + a["failed"], 20000)
        self.assertIn("cpu does not fit", self.ok("replay", path, "--allocator", "cpu", "--limit", peak - 1, code=6).stdout)
        self.assertIn("cpu fits", self.ok("replay", path, "--allocator", "cpu", "--limit", peak).stdout)
        # One that keeps what is freed gives it back before it fails: it fits into less than it takes unasked.
        free = self.json("replay", path, "--allocator", "cpu_caching")["allocators"][0]
        tight = self.json("replay", path, "--allocator", "cpu_caching", "--limit", free["active_peak_bytes"] + 1, code=0)
        self.assertGreater(free["reserved_peak_bytes"], free["active_peak_bytes"])
        self.assertLessEqual(tight["allocators"][0]["reserved_peak_bytes"], free["active_peak_bytes"] + 1)

    def test_recorded_replays(self):
        out = self.dir / "out.db"
        doc = self.json("replay", self.naive(), "-o", out, "--limit", "64MiB")
        self.assertEqual((doc["trace"], doc["recorder"]["state"]), (str(out), "complete"))
        self.assertEqual([a["run"] for a in doc["allocators"]], [1, 2, 3])
        facts = self.json("trace", out, "--whole")
        self.assertEqual([r["model"] for r in facts["runs"]], [f"lenet5, {name}" for name in USUAL])
        self.assertEqual((facts["problems"], facts["leaks"], facts["lost"]), (0, 0, 0))
        for a in doc["allocators"]:
            peak = ask(out, "SELECT peak_bytes FROM peak WHERE run_id = ?", a["run"])[0][0]
            self.assertEqual(peak, a["requested_peak_bytes"])
        self.ok("trace", out, "--check")
        self.assertIn("conv1", self.ok("trace", out, "--run", 3, "--at", "peak").stdout)
        self.ok("tui", out, "--once", "--run", 3)
        self.ok("report", out, "-o", self.dir / "r.html")
        self.ok("diff", self.path, out, code=(0, 1))
        self.refused(2, "replay", self.path, "-o", self.path, says=["it would be replaced"])
        (self.dir / "mine.txt").write_text("mine")
        self.refused(2, "replay", self.path, "-o", self.dir / "mine.txt", says=["--force"])

    def test_what_is_refused(self):
        path = self.made("streams")
        self.refused(3, "replay", self.dir / "none.db", says=["none.db"])
        self.refused(3, "replay", LENET)
        self.refused(3, "replay", path, "--run", 4, says=["run 4"])
        self.refused(2, "replay", path, "--run", 0, says=["from 1"])
        self.refused(2, "replay", path, "--allocator", "cpu,malloc", says=["malloc", "cpu_caching"])
        self.refused(2, "replay", path, "--allocator", "")
        self.refused(2, "replay", path, "--allocator", "cpu,")
        self.refused(2, "replay", path, "--allocator", "cpu", "--allocator", "malloc", says=["malloc"])
        self.refused(2, "replay", path, "--allocator", "cpu,max_split_size=512MiB", says=["max_split_size"])
        self.refused(2, "replay", path, "--strategy", "best", says=["best"])
        self.refused(2, "replay", path, "--kind", "Wrokspace", says=["tidemark allocators"])
        self.refused(3, "replay", path, "--of", "cuda:3", says=["cuda:3"])
        self.refused(2, "replay", path, "--limit", 0)
        self.refused(2, "replay", path, "--device", "gpu")
        self.refused(2, "replay")
        self.refused(2, "replay", path, path)
        self.refused(2, "replay", path, "--max-trace", "9MiB", says=["-o"])
        missing = {d["device"]: d["reason"] for d in self.json("devices")["devices"]}
        if missing.get("cuda:0"):  # the same words everywhere, and never the CPU in its place
            for command in (["replay", path], ["allocators"]):
                p = self.refused(3, *command, "--device", "cuda:0", says=["cuda:0"])
                self.assertEqual(p.stdout, "")

    def test_the_contract_of_names(self):
        doc = self.json("allocators", "--device", "cpu")
        self.assertEqual([n["name"] for n in doc["named"]], [n["name"] for n in self.json("allocators")["named"]])
        self.assertEqual({r["device"] for r in doc["allocators"]}, {"cpu"})
        for row in doc["named"]:
            self.assertEqual((row["reason"], row["reserved_bytes"], row["headroom_bytes"]), (None, 0, None))
            one = self.json("replay", self.made("streams"), "--allocator", row["name"])["allocators"][0]
            self.assertEqual(one["allocator"], row["name"])


@unittest.skipUnless(PLUGIN and SIMULATION, "built without the CUDA toolkit: there is no CUDA plug-in")
@unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "the plug-in is not loaded into a program under sanitizers")
class OnADevice(Replays):
    """The same on cuda:0 of the simulated driver (tests/cuda/driver)."""
    same = Figures.same

    def setUp(self):
        super().setUp()
        self.env = {"TIDEMARK_CUDA_PLUGIN": PLUGIN, "LD_LIBRARY_PATH": SIMULATION}

    def test_the_blocks_of_a_trace(self):
        for what in ("some", "streams"):
            doc = self.json("replay", self.made(what), "--device", "cuda:0", "--check", env=self.env)
            self.assertEqual(doc["device"], "cuda:0")
            self.same(doc, replayed(self.path))
            self.assertEqual({a["wrong_bytes"] for a in doc["allocators"]}, {0})
            self.assertEqual({a["checked_blocks"] for a in doc["allocators"]}, {doc["recorded"]["allocations"] -
                                                                               doc["recorded"]["empty_blocks"]})
            self.assertEqual({a["streams"] for a in doc["allocators"]}, {2 if what == "streams" else 0})
            self.assertTrue({"cuda", "cuda_caching"} <= {a["allocator"] for a in doc["allocators"]})
        self.made("some")
        # the caching allocator of the CPU and that of a device are one: the same segments
        names = [n["name"] for n in self.json("allocators", "--device", "cuda:0", env=self.env)["named"] if not n["reason"]]
        for name in names:
            self.ok("replay", self.path, "--device", "cuda:0", "--allocator", name, env=self.env)
        on_cpu = self.json("replay", self.path, "--allocator", "stream_caching")["allocators"][0]
        there = self.json("replay", self.path, "--device", "cuda:0", "--allocator", "cuda_caching", env=self.env)["allocators"][0]
        self.assertEqual(on_cpu["reserved_peak_bytes"], there["reserved_peak_bytes"])

    def test_it_is_recorded(self):
        out = self.dir / "out.db"
        doc = self.json("replay", self.naive(), "--device", "cuda:0", "-o", out, env=self.env)
        facts = self.json("trace", out, "--whole")
        self.assertEqual({k["device"] for k in facts["kinds"]}, {"cuda:0"})
        self.assertEqual((len(facts["runs"]), facts["leaks"], facts["problems"]), (len(doc["allocators"]), 0, 0))
        again = self.json("replay", out, "--run", 1, "--of", "cuda:0")
        self.assertEqual(again["recorded"]["requested_peak_bytes"], doc["recorded"]["requested_peak_bytes"])

    def test_a_device_that_is_full(self):
        self.made("many")
        full = {**self.env, "TIDESIM_BYTES": str(529 << 20)}  # of which a context takes 526 MiB
        for name in ("cuda", "cuda_caching"):
            doc = self.json("replay", self.path, "--device", "cuda:0", "--allocator", name, code=6, env=full)
            a = doc["allocators"][0]
            self.assertFalse(a["fits"])
            self.assertEqual(a["allocations"] + a["failed"], 20000)
            self.assertLessEqual(a["first_failure"]["reserved_bytes"], 3 << 20)
            self.assertRegex(a["first_failure"]["reason"], "no memory|out of memory|OUT_OF_MEMORY")

    def test_a_call_that_fails(self):
        """An error of the driver that is no lack of memory ends it, in words, whichever call it is."""
        self.made("streams")
        for n in (1, 90, 100, 110, 130):
            p = tidemark.run("replay", self.path, "--device", "cuda:0", "--check", env={**self.env, "TIDESIM_FAIL": f"{n}:700"})
            self.assertIn(p.returncode, (0, 3, 5), (n, p.stderr))
            if p.returncode:
                self.assertTrue(p.stderr.startswith("error: "), (n, p.stderr))


if __name__ == "__main__":
    tidemark.main()
