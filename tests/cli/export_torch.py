# SPDX-License-Identifier: MIT
"""`export --to pytorch`: a trace as a memory snapshot of PyTorch. Read by Python's pickle, gone through by the rules of PyTorch's
viewer (torch/utils/viz/MemoryViz.js: backwards from the state at the end), and imported again: the same bytes at each moment."""
import collections
import importlib.util
import os
import pathlib
import pickle
import pickletools
import random
import sqlite3
import subprocess
import unittest

import imports
import tidemark
from imports import BACKWARD, FORWARD, MIB, SNAPSHOTS, STEP, Memory, small, snapshot
from tidemark import PROGRAM, SAMPLES, Case, ask, environment

LENET = SAMPLES / "lenet5.json"
HERE = pathlib.Path("build/test/tests/cli")
SUMS_TRACE = os.environ.get("TIDE_SUMS_TRACE", HERE / "sums_trace")
REPLAY_TRACE = os.environ.get("TIDE_REPLAY_TRACE", HERE / "replay_trace")
DEVICE_TRACE = os.environ.get("TIDE_DEVICE_TRACE", HERE / "device_trace")
PEAK_OF = os.environ.get("TIDE_PEAK_OF", HERE / "peak_of")
# What the viewer's reader of pickles knows.
OPCODES = {"PROTO", "FRAME", "STOP", "MARK", "EMPTY_LIST", "APPENDS", "APPEND", "EMPTY_DICT", "SETITEMS", "SETITEM", "BININT", "BININT1",
           "BININT2", "LONG1", "BINFLOAT", "NEWTRUE", "NEWFALSE", "NONE", "TUPLE1", "TUPLE2", "TUPLE3", "EMPTY_TUPLE", "SHORT_BINUNICODE",
           "BINUNICODE", "MEMOIZE", "BINGET", "LONG_BINGET", "BINPUT", "LONG_BINPUT"}
SEGMENT_KEYS = {"device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream", "segment_type",
                "segment_pool_id", "is_expandable", "frames", "blocks"}
BLOCK_KEYS = {"address", "size", "requested_size", "state", "frames"}
SETTINGS = {"PYTORCH_CUDA_ALLOC_CONF", "max_split_size", "garbage_collection_threshold", "expandable_segments",
            "pinned_num_register_threads", "release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "roundup_power2_divisions"}


class View:
    """One device of a snapshot as the viewer shows it."""

    def __init__(self, case, doc, device):
        self.case, self.device = case, device
        self.events = self.joined(doc["device_traces"][device])
        segments = [s for s in doc["segments"] if s["device"] == device]
        self.segments = {s["address"]: (s["total_size"], s["stream"]) for s in segments}
        case.assertEqual(len(self.segments), len(segments))
        self.blocks = {}  # addr -> [size, given up]
        for s in segments:
            for b in s["blocks"]:
                if b["state"] != "inactive":
                    self.blocks[b["address"]] = [b["requested_size"], b["state"] == "active_pending_free"]

    @staticmethod
    def joined(events):
        """free_requested and free_completed, one right behind the other, are one event."""
        out = []
        for e in events:
            if e["action"] == "free_completed" and out and out[-1]["action"] == "free_requested" and out[-1]["addr"] == e["addr"]:
                out[-1] = {**out[-1], "action": "free"}
            else:
                out.append(e)
        return out

    def check(self, event):
        """No two blocks share a byte, each lies in one segment, and segments do not overlap."""
        end = 0
        places = sorted((a, a + size, s) for a, (size, s) in self.segments.items())
        for begin, behind, _ in places:
            self.case.assertGreaterEqual(begin, end, event)
            end = behind
        end, at = 0, 0
        for addr, (size, _) in sorted(self.blocks.items()):
            self.case.assertGreaterEqual(addr, end, event)
            end = addr + size
            while at < len(places) and places[at][1] <= addr:
                at += 1
            self.case.assertTrue(at < len(places) and places[at][0] <= addr, event)
            self.case.assertLessEqual(end, places[at][1], event)

    def back(self, e):
        """Undo an event."""
        a, size = e.get("addr"), e["size"]
        if e["action"] in ("free", "free_completed"):
            self.case.assertNotIn(a, self.blocks, e)
            self.blocks[a] = [size, e["action"] == "free_completed"]
        elif e["action"] == "free_requested":
            self.case.assertTrue(self.blocks[a][1], e)
            self.blocks[a][1] = False
        elif e["action"] == "alloc":
            self.case.assertEqual(self.blocks.pop(a), [size, False], e)
        elif e["action"] == "segment_free":
            self.case.assertNotIn(a, self.segments, e)
            self.segments[a] = (size, e["stream"])
        elif e["action"] == "segment_alloc":
            self.case.assertEqual(self.segments.pop(a), (size, e["stream"]), e)
        elif e["action"] == "segment_unmap":
            self.put(a, size, e["stream"])
        elif e["action"] == "segment_map":
            self.cut(a, size, e["stream"])
        else:
            self.case.assertIn(e["action"], ("oom", "snapshot"))

    def put(self, a, size, stream):
        """A mapped part comes: one with those of its stream that it touches."""
        for other, (n, s) in list(self.segments.items()):
            if s == stream and a + size == other:
                size += self.segments.pop(other)[0]
            elif s == stream and other + n == a:
                del self.segments[other]
                a, size = other, n + size
        self.segments[a] = (size, stream)

    def cut(self, a, size, stream):
        (other, (n, s)), = [(o, v) for o, v in self.segments.items() if o <= a and a + size <= o + v[0]]
        self.case.assertEqual(s, stream)
        del self.segments[other]
        for begin, end in ((other, a), (a + size, other + n)):
            if begin < end:
                self.segments[begin] = (end - begin, s)

    def go_back(self):
        """Through all events: [(live bytes, reserved bytes)] before each, and behind the last."""
        out, every = [], max(1, len(self.events) * max(1, len(self.blocks)) // 200000)
        for i in range(len(self.events), -1, -1):
            if i < len(self.events):
                self.back(self.events[i])
            if i % every == 0 or i == len(self.events):
                self.check(i)
            out.append((sum(v[0] for v in self.blocks.values()), sum(v[0] for v in self.segments.values())) if every < 50 else None)
        return out[::-1]


class Torch(Case):
    def export(self, path, *args, name="out.pickle"):
        """What was written, held against all that must be true of every such file."""
        out = self.dir / name
        self.said = self.ok("export", path, "--to", "pytorch", "-o", out, *args).stderr
        data = out.read_bytes()
        piped = subprocess.run([PROGRAM, "export", path, "--to", "pytorch", *args], stdout=subprocess.PIPE, check=True, env=environment())
        self.assertEqual(piped.stdout, data)  # the same to standard output
        self.assertLessEqual({op.name for op, _, _ in pickletools.genops(data)}, OPCODES)
        doc = pickle.loads(data)
        self.assertEqual(set(doc), {"segments", "device_traces", "allocator_settings", "external_annotations", "tidemark"})
        self.assertEqual(set(doc["allocator_settings"]), SETTINGS)
        for events in doc["device_traces"]:
            for e in events:
                keys = {"action", "size", "stream", "time_us", "frames", "device_free" if e["action"] == "oom" else "addr"}
                self.assertLessEqual(set(e), keys | {"user_metadata"})
                self.assertLessEqual(keys, set(e))
            times = [e["time_us"] for e in events]
            self.assertEqual(times, sorted(times))
            known, asked = set(), set()  # what was allocated here goes in two steps
            for e in events:
                if e["action"] == "alloc":
                    known.add(e["addr"])
                elif e["action"] == "free_requested":
                    asked.add(e["addr"])
                elif e["action"] == "free_completed":
                    self.assertTrue(e["addr"] in asked or e["addr"] not in known, e)
                    known.discard(e["addr"])
                    asked.discard(e["addr"])
        for s in doc["segments"]:
            self.assertEqual(set(s), SEGMENT_KEYS)
            self.assertEqual(sum(b["size"] for b in s["blocks"]), s["total_size"])
            at = s["address"]
            for b in s["blocks"]:
                self.assertEqual(set(b), BLOCK_KEYS)
                self.assertEqual(b["address"], at)
                self.assertLessEqual(b["requested_size"], b["size"])
                at += b["size"]
            for key, states in (("allocated_size", {"active_allocated"}), ("active_size", {"active_allocated", "active_pending_free"})):
                self.assertEqual(s[key], sum(b["size"] for b in s["blocks"] if b["state"] in states))
        for frames in [e["frames"] for t in doc["device_traces"] for e in t] + [b["frames"] for s in doc["segments"] for b in s["blocks"]]:
            for f in frames:
                self.assertEqual({k: type(v) for k, v in f.items()}, {"name": str, "filename": str, "line": int})
        self.curves = {d: View(self, doc, d).go_back() for d in range(len(doc["device_traces"]))}
        return doc

    def changes(self, path, n_before=0):
        """What comes and goes on each device, in order: microseconds, bytes. The first `n_before` blocks were there before."""
        out, live = collections.defaultdict(list), {}
        with sqlite3.connect(path) as db:
            rows = db.execute("""SELECT e.t_ns, o.name, e.block_id, d.name, e.requested_bytes FROM event e JOIN op o ON o.id = e.op
                                 LEFT JOIN device d ON d.id = e.device ORDER BY e.id""").fetchall()
        for t, op, block, device, size in rows:
            if op == "alloc":
                live[block] = (device, size)
                out[device].append((t // 1000 if n_before <= 0 else 0, size))
                n_before -= 1
            elif op == "free_completed" and block in live:
                device, size = live.pop(block)
                out[device].append((t // 1000, -size))
        db.close()
        return {d: sorted(r for r in rows if r[0] == 0) + [r for r in rows if r[0] > 0] for d, rows in out.items()}

    def back(self, path, *args, n_before=0):
        """Exported and imported again, the trace has the same bytes at each moment, and the same peak."""
        doc = self.export(path, *args)
        again = self.dir / "again.db"
        self.last = self.json("import", self.dir / "out.pickle", "-o", again)
        self.assertEqual(self.last["contradictions"], 0)
        self.assertEqual((self.last["unknown_events"], self.last["events_without_time"], self.last["unknown_frees"]), (0, 0, 0))
        numbers = {x["device_name"]: f"cuda:{x['number']}" for x in doc["tidemark"]["lists"]}
        want = {numbers[d]: rows for d, rows in self.changes(path, n_before).items()}
        self.assertEqual(self.changes(again, self.last["blocks_before"]), want)
        if len(want) == 1:  # of several, what happens in one microsecond may change places
            self.assertEqual(*[ask(p, "SELECT peak_bytes FROM peak WHERE run_id = 0") for p in (path, again)])
        self.assertEqual(self.ok("trace", again, "--check").returncode, 0)
        return doc, again

    def stacks(self, path, by):
        return [(g["key"], g["blocks"], g["requested_bytes"]) for g in self.json("trace", path, "--at", "peak", "--by", by, "--whole")["groups"]]

    def hold_snapshot(self, source):
        """A snapshot, imported, exported, imported: the same trace but for the order of texts; exported once more the same file."""
        path = self.dir / "first.db"
        said = self.json("import", source, "-o", path)
        doc, again = self.back(path, n_before=said["blocks_before"])
        for key in ("events", "blocks", "blocks_before", "bytes_before"):
            self.assertEqual(self.last[key], said[key], key)
        self.assertLessEqual(self.last["inexact_blocks"], said["inexact_blocks"])  # the state is now what the events say
        for by in ("function", "module", "stack", "file", "library", "category"):
            self.assertEqual(self.stacks(again, by), self.stacks(path, by), by)
        columns = "op, t_ns, name, scope, requested_bytes, reserved_bytes, device, address"
        rows = [ask(p, f"SELECT {columns} FROM events WHERE op <> 'snapshot' AND op NOT LIKE 'scope%' ORDER BY event_id") for p in (path, again)]
        self.assertEqual(*rows)
        self.ok("export", again, "--to", "pytorch", "-o", self.dir / "twice.pickle")
        twice = pickle.loads((self.dir / "twice.pickle").read_bytes())
        for key in ("segments", "device_traces", "allocator_settings", "external_annotations"):
            self.assertEqual(twice[key], doc[key], key)
        return doc

    def take(self, *memories, **more):
        source = self.dir / "source.pickle"
        source.write_bytes(pickle.dumps(snapshot(*memories, **more)))
        return source

    # ---- snapshots of PyTorch ----

    def test_a_snapshot_comes_back(self):
        doc = self.hold_snapshot(self.take(small()))
        events = [e["action"] for e in doc["device_traces"][0]]
        self.assertEqual(events, ["alloc", "alloc", "free_requested", "free_completed"])
        source = snapshot(small())
        for made, was in zip(doc["segments"][0]["blocks"], source["segments"][0]["blocks"], strict=True):
            self.assertEqual({k: made[k] for k in ("address", "size", "state", "requested_size")},
                             {k: was[k] for k in ("address", "size", "state", "requested_size")})
        # Frames but for those that only take the memory, innermost first.
        want = [f for f in FORWARD if f not in imports.TAKING]
        self.assertEqual(doc["device_traces"][0][0]["frames"], want)

    def test_all_that_happens(self):
        """Several devices, one between them empty; waiting blocks, settings, annotations, marks, memory that ran out."""
        random.seed(7)
        a, b = Memory(), Memory(0x7E0000000000)
        for m in (a, b):
            m.segment(m.base, 40 * MIB)
            m.segment(m.base + 64 * MIB, record=False)
            m.alloc(m.base + 65 * MIB, 3 * MIB, [], record=False)
            m.alloc(m.base + 70 * MIB, 2 * MIB, [], record=False)
            for i in range(40):
                m.alloc(m.base + MIB * i // 2, random.randrange(1, MIB // 2), random.choice((FORWARD, STEP, BACKWARD, [])))
            for i in range(0, 40, 3):
                m.free(m.base + MIB * i // 2, completed=i % 2 == 0)
            m.free(m.base + 65 * MIB)
            b.now = a.now + 5
        a.add("oom", 0, 9 << 30, FORWARD)
        a.events[-1].pop("addr")
        a.events[-1]["device_free"] = 512 * MIB
        a.add("snapshot", 0, 0)
        a.add("snapshot", 0, 0, user_metadata="epoch 2")
        notes = [{"stage": s, "name": "ProfilerStep#1", "device": 0, "time_us": a.events[i]["time_us"]} for s, i in (("START", 3), ("END", 30))]
        doc = self.hold_snapshot(self.take(a, Memory(), b, annotations=notes, max_split_size=256 * MIB, garbage_collection_threshold=0.8,
                                           roundup_power2_divisions={str(1 << i): 4 for i in range(16)}))
        self.assertEqual([len(t) > 0 for t in doc["device_traces"]], [True, False, True])
        self.assertEqual([{k: n[k] for k in ("stage", "name", "time_us")} for n in doc["external_annotations"]],
                         [{k: n[k] for k in ("stage", "name", "time_us")} for n in notes])
        oom, = [e for e in doc["device_traces"][0] if e["action"] == "oom"]
        self.assertEqual((oom["size"], oom["device_free"]), (9 << 30, 512 * MIB))
        self.assertEqual(oom["frames"], [f for f in FORWARD if f not in imports.TAKING])
        marks = [e.get("user_metadata") for e in doc["device_traces"][0] if e["action"] == "snapshot"]
        self.assertEqual(marks, [None, "epoch 2"])
        settings = doc["allocator_settings"]
        self.assertEqual((settings["max_split_size"], settings["garbage_collection_threshold"]), (256 * MIB, 0.8))
        self.assertEqual(set(settings["roundup_power2_divisions"].values()), {4})

    def test_segments_that_grow_and_end_in_parts(self):
        m = Memory()
        m.add("segment_map", m.base, 20 * MIB)
        m.alloc(m.base, 19 * MIB)
        m.add("segment_map", m.base + 20 * MIB, 40 * MIB)
        m.alloc(m.base + 19 * MIB, 20 * MIB)  # in both
        m.add("segment_unmap", m.base + 50 * MIB, 10 * MIB)
        m.free(m.base + 19 * MIB)
        m.alloc(m.base + 19 * MIB, 2 * MIB)
        m.add("segment_unmap", m.base + 30 * MIB, 20 * MIB)
        doc = snapshot(m, expandable_segments=True)
        doc["segments"] = []
        source = self.dir / "source.pickle"
        source.write_bytes(pickle.dumps(doc))
        path = self.dir / "first.db"
        self.json("import", source, "-o", path)
        made, _ = self.back(path)
        self.assertEqual([(e["action"], e["addr"] - m.base, e["size"]) for e in made["device_traces"][0] if "segment" in e["action"]],
                         [(e["action"], e["addr"] - m.base, e["size"]) for e in m.events if "segment" in e["action"]])
        (segment,) = made["segments"]
        self.assertTrue(segment["is_expandable"])
        self.assertEqual((segment["address"], segment["total_size"]), (m.base, 30 * MIB))

    @unittest.skipUnless(SNAPSHOTS.is_dir(), "the snapshots are not there")
    def test_snapshots_of_real_programs(self):
        for path in sorted(SNAPSHOTS.glob("*.pickle")):
            with self.subTest(path.name):
                self.hold_snapshot(path)

    # ---- traces of anything ----

    def test_traces_of_programs(self):
        for program, kinds in ((SUMS_TRACE, ("one", "zero", "kind")), (REPLAY_TRACE, ("streams", "frees", "some", "oom")),
                               (DEVICE_TRACE, ("program", "3"))):
            for kind in kinds:
                with self.subTest(program=pathlib.Path(program).name, kind=kind):
                    path = self.dir / "t.db"
                    subprocess.run([program, kind, path], check=True)
                    self.back(path, "--whole")
                    self.assertEqual(self.said, "")
        for kind in ("discard", "twice"):
            subprocess.run([REPLAY_TRACE, kind, path], check=True)
            self.export(path, "--whole")
        subprocess.run([REPLAY_TRACE, "huge", path], check=True)
        self.export(path, "--whole")
        self.assertIn("1 block is larger than any memory", self.said)

    def test_waiting_blocks(self):
        """A block that was given up and is still in use: both events, and the viewer shows it waiting between them."""
        path = self.dir / "t.db"
        subprocess.run([REPLAY_TRACE, "streams", path], check=True)
        doc = self.export(path)
        want = ask(path, "SELECT t_ns, address FROM events WHERE op = 'free_requested' ORDER BY event_id")
        asked = [e for e in doc["device_traces"][0] if e["action"] == "free_requested"]
        self.assertLessEqual({(t // 1000, a) for t, a in want}, {(e["time_us"], e["addr"]) for e in asked})
        waits = [e for e in View.joined(doc["device_traces"][0]) if e["action"] == "free_requested"]
        self.assertGreater(len(waits), 0)

    def test_a_run_begins_with_what_was_there(self):
        path = self.dir / "t.db"
        self.ok("run", LENET, "-n", 2, "--naive", "-o", path)
        doc = self.export(path)
        first, = ask(path, "SELECT first_event FROM run")[0]
        weights = ask(path, "SELECT requested_bytes, address FROM block WHERE alloc_event < ? ORDER BY address", first)
        alive = [(b["requested_size"], b["address"]) for s in doc["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]
        self.assertLessEqual(set(weights), set(alive))
        allocated = {e["addr"] for e in doc["device_traces"][0] if e["action"] == "alloc"}
        self.assertFalse(allocated & {a for _, a in weights})
        self.assertEqual(doc["tidemark"]["lists"][0]["device_name"], "cpu")
        # Who: the tensor, the step of its operator, the model; where no step is, the tensor alone.
        frames = [e["frames"] for e in doc["device_traces"][0] if e["action"] == "alloc"]
        self.assertIn([{"name": "relu1.out", "filename": "Workspace", "line": 0}, {"name": "conv1", "filename": "step", "line": 0},
                       {"name": "lenet5", "filename": "??", "line": 0}], frames)
        peak = ask(path, "SELECT peak_bytes FROM peak WHERE run_id = 1")[0][0]
        self.assertEqual(max(live for live, _ in self.curves[0]), peak)
        runs = [n["name"] for n in doc["external_annotations"]]
        self.assertEqual(runs, ["lenet5"] * 4)
        # A tensor of each execution has the same frames, once in the file.
        data = (self.dir / "out.pickle").read_bytes()
        self.assertEqual(data.count(b"relu1.out"), 1)

    def test_all_of_a_trace_with_runs_comes_back(self):
        path = self.dir / "t.db"
        for more in (["--naive"], []):
            self.ok("run", SAMPLES / "unet.json", "-n", 3, *more, "-o", path)
            self.back(path, "--whole")

    def test_chunks_and_dropped_events(self):
        path = self.dir / "t.db"
        self.ok("run", LENET, "-n", 20, "--naive", "-o", path, "--form", "chunks")
        before = self.export(path, "--whole")
        self.ok("trace", path, "--expand")
        self.assertEqual(self.export(path, "--whole"), before)
        self.ok("run", LENET, "-n", 6000, "--naive", "-o", path, "--max-trace", "8MiB")
        self.assertGreater(int(ask(path, "SELECT value FROM meta WHERE key = 'first_kept_event'")[0][0]), 1)
        doc = pickle.loads(subprocess.run([PROGRAM, "export", path, "--to", "pytorch", "--whole"], stdout=subprocess.PIPE, check=True,
                                          env=environment()).stdout)
        view = View(self, doc, 0)
        self.assertEqual(sum(v[0] for v in view.blocks.values()), self.json("trace", path, "--at", "end")["moment"]["requested_bytes"])
        for e in reversed(view.events):
            view.back(e)
        view.check(0)

    def test_several_processes(self):
        """Addresses of two processes have nothing to do with each other: a list each."""
        path = self.dir / "t.db"
        command = f"{PROGRAM} run {LENET} -n 1 --naive & {PROGRAM} run {LENET} -n 1 --naive; wait"
        self.ok("record", "-o", path, "--", "sh", "-c", command)
        doc = self.export(path, "--whole")
        self.assertEqual([(x["number"], x["device_name"], x["process"]) for x in doc["tidemark"]["lists"]], [(0, "cpu", 0), (1, "cpu", 1)])
        self.assertEqual({x["pid"] for x in doc["tidemark"]["lists"]}, {p for p, in ask(path, "SELECT pid FROM process")})
        allocs = [sum(e["action"] == "alloc" for e in t) for t in doc["device_traces"]]
        self.assertEqual(collections.Counter(allocs), collections.Counter(n for n, in ask(path, "SELECT count(*) FROM block GROUP BY id >> 48")))

    def test_without_addresses(self):
        """heaptrack tells none: they are made up, and it is said how many."""
        log = self.dir / "h"
        log.write_text("v 10400 3\nX x\nI 1000 100\ns 4 main\ns 4 work\ni 1 0 1\ni 2 0 2\nt 1 0\nt 2 1\na 64 1\na 100 2\n+ 0\n+ 1\nc 5\n+ 0\n- 0\nc 9\n- 1\n")
        path = self.dir / "first.db"
        self.ok("import", log, "-o", path)
        doc, _ = self.back(path)
        self.assertIn("3 blocks are at a made-up address", self.said)
        addresses = [e["addr"] for e in doc["device_traces"][0] if e["action"] == "alloc"]
        self.assertTrue(all(2**52 <= a < 2**53 for a in addresses), addresses)
        names = [[f["name"] for f in e["frames"]] for e in doc["device_traces"][0] if e["action"] == "alloc"]
        self.assertEqual(names[1], ["work", "main"])

    def test_hardly_anything(self):
        empty = self.dir / "e.db"
        self.ok("record", "-o", empty, "--", "true")
        doc = self.export(empty)
        self.assertEqual((doc["device_traces"], doc["segments"]), ([[]], []))
        plan = self.dir / "plan.json"
        self.ok("plan", LENET, "-o", plan)
        for path in (LENET, plan):
            self.refused(3, "export", path, "--to", "pytorch", "-o", self.dir / "no.pickle", says=["only a trace has events"])
        self.refused(2, "export", empty, "--to", "pytorch", "--run", 1, "--whole")
        self.refused(3, "export", empty, "--to", "pytorch", "--run", 7, "-o", self.dir / "no.pickle", says=["7"])
        self.assertFalse((self.dir / "no.pickle").exists())

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers take memory of their own")
    def test_a_trace_is_not_held(self):
        peaks = []
        for runs in (400, 4000):
            path = self.dir / f"{runs}.db"
            self.ok("run", LENET, "-n", runs, "--naive", "-o", path)
            p = subprocess.run([PEAK_OF, PROGRAM, "export", path, "--to", "pytorch", "-o", self.dir / "out.pickle"], check=True,
                               stderr=subprocess.PIPE, text=True, env=environment())
            peaks.append(int(p.stderr.splitlines()[-1]))
        self.assertGreater((self.dir / "out.pickle").stat().st_size, 8 << 20)
        self.assertLess(peaks[1], peaks[0] + (6 << 20), peaks)

    def test_names(self):
        """Any name, exactly; bytes that are no text become U+FFFD."""
        names = ["\u65e5\u672c", "a @ b:c", "x" * 300, "\u202e", "f @ g @ /h:12", "<module> @ a b.py:-1", "q @ :3"]
        m = Memory()
        m.segment(m.base)
        for i, name in enumerate(names):
            m.alloc(m.base + MIB * i, 4096, [imports.frame(name, "/home/ann/a:b.py", 3), imports.frame("??")])
        doc = self.hold_snapshot(self.take(m))
        frames = [e["frames"] for e in doc["device_traces"][0] if e["action"] == "alloc"]
        self.assertEqual([f[0]["name"] for f in frames], names)
        self.assertEqual({f[0]["filename"] for f in frames}, {"/home/ann/a:b.py"})

    def test_what_contradicts_itself(self):
        """Events at random in a small room: blocks in one another, segments that overlap and end in parts or under blocks. What is
        written can be gone through, and its bytes are those of the trace."""
        random.seed(int(os.environ.get("TIDE_SEED", 5)))
        for k in range(int(os.environ.get("TIDE_ROUNDS", 12))):
            m = Memory()
            for _ in range(random.choice((3, 30, 300))):
                at, size = m.base + 512 * random.randrange(64), random.choice((0, 1, 512, 4096, 12000))
                what = random.choice(("alloc", "alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map",
                                      "segment_unmap"))
                m.add(what, at, size or ("segment" in what), stream=random.choice((0, 0, 7)))
            doc = snapshot(m)
            doc["segments"] = [{**g, "is_expandable": random.random() < 0.5} for g in small().state()][:random.randrange(2)]
            source, path = self.dir / "source.pickle", self.dir / "first.db"
            source.write_bytes(pickle.dumps(doc))
            with self.subTest(k):
                self.json("import", source, "-o", path)
                made = self.export(path)
                view = View(self, made, 0)
                want = ask(path, "SELECT sum(requested_bytes) FROM block WHERE free_event IS NULL")[0][0] or 0
                self.assertEqual(sum(v[0] for v in view.blocks.values()), want)
                if self.curves[0][0] is not None:
                    peak = ask(path, "SELECT peak_bytes FROM peak WHERE run_id = 0") or [(0,)]  # none without a block
                    self.assertEqual([(max(live for live, _ in self.curves[0]),)], peak)

    # ---- what others make of it ----

    def test_functions_of_pytorch(self):
        """torch.cuda._memory_viz, where PyTorch is installed: its texts and its own sums."""
        if importlib.util.find_spec("torch") is None:
            self.skipTest("PyTorch is not installed")
        viz = importlib.import_module("torch.cuda._memory_viz")
        path = self.dir / "t.db"
        subprocess.run([DEVICE_TRACE, "program", path], check=True)
        doc = self.export(path)
        self.assertIn("entries", viz.trace(doc))
        self.assertIn("total_reserved", viz.segsum(doc))
        self.assertIn("active_allocated", viz.memory(doc, lambda text: text))


if __name__ == "__main__":
    tidemark.main()
