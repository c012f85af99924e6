# SPDX-License-Identifier: MIT
"""tidemark import, and commands that are given another tool's recording: memory snapshots of PyTorch, as files of a real GPU
and as pickles made here in every protocol, held against what Python's own pickle reads."""
import collections
import csv
import gzip
import html
import io
import json
import os
import pickle
import pickletools
import random
import re
import resource
import shutil
import sqlite3
import struct
import subprocess
import unittest

import tidemark
import validators
from tidemark import SHARED, SOURCE, Case, ask, environment, run, share

SNAPSHOTS = SHARED / "data" / "snapshots"
MIB = 1 << 20
SEGMENT = 20 * MIB


def frame(name, filename="??", line=0):
    return {"name": name, "filename": filename, "line": line}


TAKING = [frame("torch::unwind::unwind()"), frame("c10::cuda::CUDACachingAllocator::Native::malloc(void**)")]
PYTHON = [frame("_call_impl", "/usr/lib/python3/dist-packages/torch/nn/modules/module.py", 1750)]


def stack(op, *lines):
    """Innermost first, as PyTorch has it. `lines`: function, file and line of the program, innermost first."""
    frames = TAKING + [frame(f"at::_ops::{op}::redispatch(c10::DispatchKeySet)"), frame(f"at::_ops::{op}::call(at::Tensor)")]
    for name, filename, line in lines:
        frames += [frame(name, filename, line)] + PYTHON
    return frames


FORWARD = stack("bmm", ("forward", "/home/ann/model.py", 199), ("forward", "/home/ann/model.py", 292), ("<module>", "/home/ann/train.py", 9))
STEP = stack("zeros_like", ("step", "/home/ann/optim/adam.py", 84), ("<module>", "/home/ann/train.py", 12))
BACKWARD = TAKING + [frame("at::_ops::neg::call(at::Tensor)"),
                     frame("torch::autograd::generated::SubBackward0::apply(std::vector<at::Tensor>&&)"),
                     frame("torch::autograd::Engine::thread_main()")]


class Memory:
    """A device on which events happen, and the snapshot of it."""

    def __init__(self, base=0x7F0000000000):
        self.events, self.blocks, self.segments, self.now, self.base = [], {}, {}, 1_700_000_000_000_000, base

    def add(self, action, addr, size, frames=(), stream=0, **more):
        self.now += 10
        self.events.append({"action": action, "addr": addr, "size": size, "stream": stream, "time_us": self.now,
                            "frames": list(frames), **more})

    def segment(self, at, size=SEGMENT, record=True):
        self.segments[at] = size
        if record:
            self.add("segment_alloc", at, size)

    def alloc(self, at, size, frames=FORWARD, record=True, held=None):
        self.blocks[at] = [size, held or -(-max(size, 1) // 512) * 512, frames, "active_allocated"]
        if record:
            self.add("alloc", at, size, frames)

    def free(self, at, completed=True):
        size = self.blocks[at][0]
        self.add("free_requested", at, size)
        self.blocks[at][3] = "active_pending_free"
        if completed:
            self.add("free_completed", at, size)
            del self.blocks[at]

    def state(self, device=0):
        out = []
        for start, total in self.segments.items():
            blocks, at = [], start
            for addr in sorted(a for a in self.blocks if start <= a < start + total):
                if addr > at:
                    blocks.append({"address": at, "size": addr - at, "requested_size": 0, "state": "inactive", "frames": []})
                size, held, frames, state = self.blocks[addr]
                blocks.append({"address": addr, "size": held, "requested_size": size, "state": state, "frames": list(frames)})
                at = addr + held
            if at < start + total:
                blocks.append({"address": at, "size": start + total - at, "requested_size": 0, "state": "inactive", "frames": []})
            out.append({"device": device, "address": start, "total_size": total, "allocated_size": 0, "active_size": 0, "requested_size": 0,
                        "stream": 0, "segment_type": "large", "segment_pool_id": (0, 0), "is_expandable": False, "frames": [],
                        "blocks": blocks})
        return out


def snapshot(*memories, annotations=(), **settings):
    return {"segments": [s for i, m in enumerate(memories) for s in m.state(i)], "device_traces": [m.events for m in memories],
            "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0,
                                   "expandable_segments": False,
                                   "roundup_power2_divisions": {str(1 << i): 0 for i in range(16)}, **settings},
            "external_annotations": list(annotations)}


def small():
    """A segment, three blocks, one of them there before recording began, one freed."""
    m = Memory()
    m.segment(m.base, record=False)
    m.alloc(m.base, 5 * MIB, frames=[], record=False)
    m.alloc(m.base + 5 * MIB, 3 * MIB - 100)
    m.alloc(m.base + 8 * MIB, 4 * MIB, STEP)
    m.free(m.base + 5 * MIB)
    return m


def reckon(doc):
    """What is alive after each event of a device, from what Python reads: bytes, and the peak. Blocks that were alive before
    count with what they hold."""
    out = {}
    for device, events in enumerate(doc["device_traces"]):
        known, before = {}, 0
        for e in events:
            if e["action"] == "alloc":
                known[e["addr"]] = e["size"]
            elif e["action"] == "free_completed" and known.pop(e["addr"], None) is None:
                before += e["size"]
        before += sum(b["size"] for s in doc["segments"] if s["device"] == device for b in s["blocks"]
                      if b["state"] == "active_allocated" and b["address"] not in known)
        live = peak = before
        for e in events:
            live += {"alloc": e["size"], "free_completed": -e["size"]}.get(e["action"], 0)
            peak = max(peak, live)
        out[device] = {"before": before, "peak": peak, "end": live}
    return out


class Made(Case):
    def write(self, doc, protocol=4, name="s.pickle", pickler=pickle.dumps):
        path = self.dir / name
        path.write_bytes(doc if isinstance(doc, bytes) else pickler(doc, protocol=protocol))
        return path

    def take(self, doc, *options, **kw):
        path, out = self.write(doc, **kw), self.dir / "t.db"
        return self.json("import", path, "-o", out, *options), out

    def rows(self, out):
        return ask(out, "SELECT op, t_ns, name, scope, requested_bytes, reserved_bytes, device, address FROM events ORDER BY event_id")


class Torch(Made):
    def test_what_stands_in_the_file(self):
        said, out = self.take(snapshot(small()))
        self.assertEqual((said["events"], said["blocks"], said["blocks_before"], said["bytes_before"]), (4, 2, 1, 5 * MIB))
        self.assertEqual((said["contradictions"], said["inexact_blocks"], said["unknown_events"]), (0, 0, 0))
        rows = self.rows(out)
        self.assertEqual([r[0] for r in rows], ["segment_alloc", "alloc", "alloc", "alloc", "free_requested", "free_completed"])
        self.assertEqual([r[2:6] for r in rows[1:4]],
                         [("before recording", "", 5 * MIB, 5 * MIB), ("forward model.py:199", "aten::bmm", 3 * MIB - 100, 3 * MIB),
                          ("step adam.py:84", "aten::zeros_like", 4 * MIB, 4 * MIB)])
        self.assertEqual({r[6] for r in rows}, {"cuda:0"})
        self.assertEqual(self.ok("trace", out, "--check").returncode, 0)
        self.assertEqual(ask(out, "PRAGMA integrity_check"), [("ok",)])

    def test_every_protocol_and_pickler(self):
        """The C pickler, the one in Python, and one that remembers nothing: the same trace."""
        doc, seen = snapshot(small(), Memory()), set()
        for protocol in (2, 3, 4, 5):
            for name, pickler in (("c", pickle.dumps), ("python", pickle._dumps), ("optimized", lambda d, protocol: pickletools.optimize(
                    pickle.dumps(d, protocol=protocol)))):
                with self.subTest(protocol=protocol, pickler=name):
                    _, out = self.take(doc, protocol=protocol, pickler=pickler)
                    seen.add(tuple(self.rows(out)))
        fast = io.BytesIO()
        p = pickle.Pickler(fast, protocol=4)
        p.fast = True  # no memo
        p.dump(doc)
        _, out = self.take(fast.getvalue())
        seen.add(tuple(self.rows(out)))
        self.assertEqual(len(seen), 1)

    def test_thousands_at_once(self):
        """Python's pickler puts items in thousands; so do lists of events, blocks and frames come in parts."""
        m = Memory()
        m.segment(m.base, 4096 * MIB)
        deep = [frame(f"f{i}", "/home/ann/deep.py", i) for i in range(2500)]
        for i in range(3001):
            m.alloc(m.base + 512 * i, 100 + i % 7, deep if i == 5 else FORWARD)
        doc = snapshot(m)
        said, out = self.take(doc)
        self.assertEqual((said["blocks"], said["contradictions"], said["inexact_blocks"]), (3001, 0, 0))
        self.assertEqual(ask(out, "SELECT count(*) FROM block WHERE free_event IS NULL")[0][0], 3001)
        chain = """WITH RECURSIVE up(id, n) AS (SELECT scope_id, 1 FROM block WHERE id = 6 UNION ALL
                   SELECT s.parent_id, n + 1 FROM up JOIN scope s ON s.id = up.id WHERE s.parent_id IS NOT NULL) SELECT max(n) FROM up"""
        self.assertEqual(ask(out, chain)[0][0], 2500)

    def test_devices_are_merged_by_time(self):
        a, b = Memory(), Memory(0x7E0000000000)
        a.segment(a.base)
        b.segment(b.base)
        for i in range(600):  # more than is read at once
            a.alloc(a.base + 4096 * i, 4096)
            b.now = a.now - 5
            b.alloc(b.base + 8192 * i, 8192)
        _, out = self.take(snapshot(a, Memory(), b))
        rows = ask(out, "SELECT t_ns, device FROM events WHERE op = 'alloc' ORDER BY event_id")
        times = sorted(e["time_us"] * 1000 for m in (a, b) for e in m.events if e["action"] == "alloc")
        self.assertEqual([r[0] for r in rows], times)  # none was moved
        self.assertEqual(collections.Counter(r[1] for r in rows), {"cuda:0": 600, "cuda:2": 600})
        self.assertEqual(ask(out, "SELECT device, peak_bytes FROM bytes_by_kind WHERE run_id = 0 ORDER BY 1"),
                         [("cuda:0", 600 * 4096), ("cuda:2", 600 * 8192)])

    def test_nothing_of_anything(self):
        empty = {"segments": [], "device_traces": []}
        for name, doc in (("nothing", empty), ("a device", snapshot(Memory())), ("no traces", {"segments": []}),
                          ("no segments", {"device_traces": [small().events]}), ("state alone", {"segments": small().state()})):
            with self.subTest(name):
                said, out = self.take(doc)
                self.assertEqual(said["contradictions"], 0)
                self.ok("trace", out)
                self.ok("report", out, "-o", self.dir / "r.html")
                self.ok("tui", "--once", out)
        self.assertEqual(ask(out, "SELECT sum(requested_bytes) FROM block")[0][0], 9 * MIB)

    def test_alive_before_and_freed_while_recording(self):
        m = small()
        m.free(m.base)
        said, out = self.take(snapshot(m))
        self.assertEqual((said["blocks_before"], said["bytes_before"], said["contradictions"]), (1, 5 * MIB, 0))
        self.assertEqual(ask(out, "SELECT name, free_ns IS NULL FROM blocks ORDER BY block_id")[0], ("before recording", 0))

    def test_a_block_of_before_outside_of_every_segment(self):
        """It is there, and takes nothing from those that lie in segments."""
        m, there = Memory(), 1 << 30
        m.segment(m.base, record=False)
        m.segment(m.base + there, record=False)
        m.alloc(m.base + there + MIB, 3 * MIB, record=False)
        m.alloc(m.base + there + 5 * MIB, 3 * MIB, record=False)
        m.events.append({"action": "free_completed", "addr": m.base + (1 << 29), "size": 512, "stream": 0, "time_us": m.now, "frames": []})
        m.free(m.base + there + 5 * MIB)
        m.alloc(m.base + there + 4 * MIB, 16 * MIB - 4096, held=16 * MIB)
        said, out = self.take(snapshot(m))
        self.assertEqual((said["blocks_before"], said["inexact_blocks"], said["contradictions"]), (3, 0, 0))
        self.assertEqual(ask(out, "SELECT max(reserved_bytes) FROM block")[0][0], 16 * MIB)

    def test_given_up_and_still_used(self):
        m = small()
        m.free(m.base + 8 * MIB, completed=False)
        said, out = self.take(snapshot(m))
        self.assertEqual(said["contradictions"], 0)
        self.assertEqual(ask(out, "SELECT count(*) FROM block WHERE free_requested_ns IS NOT NULL AND free_ns IS NULL")[0][0], 1)
        m.events = []  # requested before recording began
        said, out = self.take(snapshot(m))
        self.assertEqual((said["blocks_before"], said["contradictions"]), (2, 0))
        self.assertEqual(ask(out, "SELECT count(*) FROM block WHERE free_requested_ns IS NOT NULL AND free_ns IS NULL")[0][0], 1)

    def test_what_a_block_holds(self):
        """By the allocator's rule of splitting: what is left over of up to 1 MiB stays with a large block."""
        m = Memory()
        m.segment(m.base)
        m.alloc(m.base, 19 * MIB + 100, held=20 * MIB)
        said, out = self.take(snapshot(m))
        self.assertEqual((said["inexact_blocks"], ask(out, "SELECT reserved_bytes FROM block")[0][0]), (0, 20 * MIB))
        m = Memory()
        m.segment(m.base)
        m.alloc(m.base, 9 * MIB + 100, held=10 * MIB)
        divisions = {str(1 << i): 4 for i in range(16)}
        said, out = self.take(snapshot(m, roundup_power2_divisions=divisions))
        self.assertEqual((said["inexact_blocks"], ask(out, "SELECT reserved_bytes FROM block")[0][0]), (0, 10 * MIB))

    def test_blocks_without_addresses(self):
        """As PyTorch 2.0 wrote them: a block follows the one before it."""
        doc = snapshot(small())
        for block in doc["segments"][0]["blocks"]:
            del block["address"], block["frames"]
        said, out = self.take(doc)
        self.assertEqual((said["contradictions"], said["inexact_blocks"], said["bytes_before"]), (0, 0, 5 * MIB))
        self.assertEqual(ask(out, "SELECT address FROM block ORDER BY id"), [(0x7F0000000000 + i * MIB,) for i in (0, 5, 8)])

    def test_segments_that_grow(self):
        m = Memory()
        first = 20 * MIB - 4096  # what is left is not the block's, as it would be in a segment of its own
        m.add("segment_map", m.base, 20 * MIB)
        m.alloc(m.base, first)
        m.add("segment_map", m.base + 20 * MIB, 20 * MIB)
        m.alloc(m.base + first, 20 * MIB)
        m.free(m.base + first)
        m.add("segment_unmap", m.base + 20 * MIB, 20 * MIB)
        doc = snapshot(m, expandable_segments=True)
        doc["segments"] = []
        said, out = self.take(doc)
        self.assertEqual(said["inexact_blocks"], 0)
        self.assertEqual(ask(out, "SELECT op, reserved_bytes FROM events WHERE op LIKE 'segment%' ORDER BY event_id"),
                         [("segment_alloc", 20 * MIB), ("segment_alloc", 20 * MIB), ("segment_free", 20 * MIB)])
        self.assertEqual(ask(out, "SELECT reserved_bytes FROM block ORDER BY id"), [(first,), (20 * MIB,)])

    def test_segments_that_grew_before_and_meanwhile(self):
        """A part of an expandable segment was mapped before recording began, a part while it went on, and parts of both go."""
        for gone in (0, 2, 10, 30):  # MiB, from the front: of the old part, and of both
            m = Memory()
            m.alloc(m.base + 30 * MIB, 4 * MIB, frames=[], record=False)
            m.add("segment_map", m.base + 40 * MIB, 20 * MIB)
            m.alloc(m.base + 34 * MIB, 20 * MIB)
            if gone:
                m.add("segment_unmap", m.base, gone * MIB)
            m.add("segment_map", m.base + 60 * MIB, 20 * MIB)
            m.add("segment_unmap", m.base + 50 * MIB + 8 * MIB, 22 * MIB)
            m.segments[m.base + gone * MIB] = 58 * MIB - gone * MIB
            doc = snapshot(m, expandable_segments=True)
            doc["segments"][0]["is_expandable"] = True
            said, out = self.take(doc)
            self.assertEqual((said["inexact_blocks"], said["contradictions"]), (0, 0))
            reserved = 0
            for op, size in ask(out, "SELECT op, reserved_bytes FROM events WHERE op LIKE 'segment%' ORDER BY event_id"):
                reserved += size if op == "segment_alloc" else -size
                self.assertGreaterEqual(reserved, 0)
            self.assertEqual(reserved, 58 * MIB - gone * MIB)
            before = ask(out, "SELECT sum(reserved_bytes) FROM events WHERE op = 'segment_alloc' AND t_ns = (SELECT min(t_ns) FROM events)")[0][0]
            self.assertEqual(before - 20 * MIB * (before > 40 * MIB), 40 * MIB)  # the first event is of the same moment

    def test_memory_that_ran_out(self):
        for key in ("addr", "device_free"):
            m = small()
            m.add("oom", 0, 9 << 30, FORWARD)
            m.events[-1].pop("addr")
            m.events[-1][key] = 512 * MIB
            _, out = self.take(snapshot(m))
            self.assertEqual(ask(out, "SELECT requested_bytes, device, scope FROM oom_attempts"), [(9 << 30, "cuda:0", "aten::bmm")])
            self.assertEqual(ask(out, "SELECT name FROM marks"), [("out of memory: asked for 9.00 GiB, the device had 512.00 MiB free",)])

    def test_moments_and_ranges(self):
        m = small()
        m.add("snapshot", 0, 0)
        t = m.events[1]["time_us"]
        m.events[2]["user_metadata"] = "epoch 3"
        said, out = self.take(snapshot(m, annotations=[
            {"stage": "START", "name": "ProfilerStep#10", "device": 0, "time_us": t - 1},
            {"stage": "END", "name": "ProfilerStep#10", "device": 0, "time_us": t + 1},
            {"stage": "START", "name": "ProfilerStep#20", "device": 0, "time_us": m.now + 100}]))
        self.assertEqual([r[0] for r in ask(out, "SELECT name FROM marks ORDER BY event_id")],
                         ["ProfilerStep#10", "epoch 3", "snapshot", "ProfilerStep#20"])
        self.assertEqual(self.ok("trace", out, "--check").returncode, 0)
        grew = self.json("trace", out, "--at", "ProfilerStep#10", "--and", "ProfilerStep#20", "--by", "module")
        self.assertEqual({g["key"]: g["change_bytes"] for g in grew["groups"]}, {"(no stack)": 0, "model.py:292 > 199": -(3 * MIB - 100),
                                                                                "step adam.py": 4 * MIB})

    def test_ranges_of_one_moment_keep_their_order(self):
        m = small()
        names = [f"range {i}" for i in range(40)]
        _, out = self.take(snapshot(m, annotations=[{"stage": s, "name": n, "device": 0, "time_us": m.now} for n in names for s in ("START", "END")]))
        self.assertEqual(ask(out, "SELECT op, scope FROM events WHERE op LIKE 'scope%' ORDER BY event_id"),
                         [(f"scope_{s}", n) for n in names for s in ("enter", "leave")])

    def test_odd_events(self):
        """Kinds that are not known are counted; without times events keep their order; large addresses and no size."""
        m = small()
        m.add("workspace_snapshot", 0, 0)
        m.alloc(m.base + 12 * MIB, 0)
        m.alloc(0xFFFFFFFFFFFFF000, 512)
        m.alloc(0, 512)
        for e in m.events:
            del e["time_us"]
        said, out = self.take(snapshot(m))
        self.assertEqual((said["unknown_events"], said["events_without_time"]), (1, len(m.events)))
        self.assertEqual(ask(out, "SELECT address FROM block WHERE requested_bytes = 512 ORDER BY id"), [(-4096,), (0,)])
        times = [r[1] for r in self.rows(out)]
        self.assertEqual(times, sorted(times))

    def test_events_that_contradict(self):
        m = small()
        m.alloc(m.base + 8 * MIB, 4 * MIB)  # again, without its free
        m.add("free_requested", m.base + 8 * MIB, 4 * MIB)
        m.add("free_requested", m.base + 8 * MIB, 4 * MIB)
        said, out = self.take(snapshot(m))
        self.assertEqual(said["contradictions"], 2)
        self.assertEqual(self.ok("trace", out, "--check").returncode, 0)

    def test_stacks(self):
        m = Memory()
        m.segment(m.base)
        grounds = [("forward", FORWARD, "activations"), ("step", STEP, "optimizer"), ("back", BACKWARD, "gradients"), ("none", [], "(no stack)"),
                   ("cpp", TAKING + [frame("f(std::function<void (int)>)", "f.cpp", 12)], "other"),
                   ("ws", stack("addmm", ("linear", "/home/ann/x (old) @ 2.py", 7)) + [frame("at::cuda::getCUDABlasLtWorkspace()")], "workspace")]
        for i, (_, frames, _) in enumerate(grounds):
            m.alloc(m.base + i * MIB, (i + 1) * 512, frames)
        _, out = self.take(snapshot(m))
        groups = lambda key: self.json("trace", out, "--at", "end", "--by", key)["groups"]
        by = lambda key: {g["key"]: g["requested_bytes"] // 512 for g in groups(key) if g["blocks"]}
        self.assertEqual(by("category"), {c: i + 1 for i, (_, _, c) in enumerate(grounds)})
        self.assertEqual(by("module"), {"model.py:292 > 199": 1, "step adam.py": 2, "(outside Python)": 8, "(no stack)": 4, "linear x (old) @ 2.py": 6})
        self.assertEqual(by("file")["/home/ann/x (old) @ 2.py"], 6)
        self.assertEqual(by("library"), {"the program": 9, "(outside Python)": 8, "(no stack)": 4})
        self.assertEqual(by("function")["step adam.py"], 2)
        held = lambda key: {g["key"]: (g["blocks"], g["requested_bytes"] // 512, g["with_callees_blocks"], g["with_callees_bytes"] // 512)
                            for g in groups(key)}
        self.assertEqual(held("function")["forward model.py"], (1, 1, 1, 1))  # twice in its stack, and counted once
        self.assertEqual(held("function")["<module> train.py"], (0, 0, 2, 3))
        self.assertEqual(held("function")["_call_impl module.py"], (0, 0, 3, 9))
        self.assertEqual(held("function")["(no stack)"], (1, 4, 1, 4))
        self.assertEqual({k: held("module")[k] for k in ("model.py:292", "model.py:292 > 199")}, {"model.py:292": (0, 0, 1, 1), "model.py:292 > 199": (1, 1, 1, 1)})
        self.assertEqual(held("library")["torch"], (0, 0, 3, 9))
        self.assertNotIn("with_callees_bytes", groups("category")[0])
        self.assertEqual(by("name")["SubBackward0"], 3)
        self.assertEqual(by("scope"), {"aten::bmm": 1, "aten::zeros_like": 2, "aten::neg": 3, "(outside all scopes)": 4,
                                       "f(std::function<void (int)>) @ f.cpp:12": 5, "aten::addmm": 6})

    def test_the_tree_of_calls_opens_and_closes(self):
        m = Memory()
        m.segment(m.base)
        for i, frames in enumerate((FORWARD, FORWARD, STEP, BACKWARD, [])):
            m.alloc(m.base + i * MIB, (8 if frames is FORWARD else 1) * 4096, frames)
        _, path = self.take(snapshot(m))  # without notes

        def rows(*commands):
            more = [x for c in commands for x in ("--command", c)]
            doc = json.loads(self.ok("tui", path, "--no-state", "--view", "6", *more, "--pane", "stacks", "--json").stdout)
            return [(r["level"], r["calls"], r["blocks"]) for r in doc["rows"]]

        call = (0, "_call_impl module.py:1750", 3)  # below it are the two of train.py
        main = (1, "<module> train.py:12 > step adam.py:84 > aten::zeros_like", 1)
        back = (0, "torch::autograd::Engine::thread_main() > torch::autograd::generated::SubBackward0::apply(std::vector<at::Tensor>&&)"
                   " > at::_ops::neg::call(at::Tensor) > aten::neg", 1)
        forward = (1, "<module> train.py:9 > forward model.py:292 > forward model.py:199 > aten::bmm", 2)
        self.assertEqual(rows(), [call, forward, main, back])
        frame = lambda *c: self.ok("tui", path, "--no-state", "--view", "6", "--once", "--size", "100x24", *[x for w in c for x in ("--command", w)]).stdout
        self.assertIn("72.00 KiB of 76.00 KiB have a stack", frame())
        for bad, says in (("nowhere", "no call matches 'nowhere'"), ("(", "cannot read the expression")):
            self.refused(2, "tui", path, "--no-state", "--view", "6", "--once", "--command", f"search {bad}", says=[says])
        self.assertIn("2 calls match 'forward'", frame("search forward"))
        self.assertIn("called nothing", frame("down", "open"))

    def test_calls_branch(self):
        m = Memory()
        m.segment(m.base)
        deep = stack("bmm", ("f", "/home/ann/a.py", 3), ("main", "/home/ann/a.py", 1))
        other = stack("add", ("g", "/home/ann/a.py", 4), ("main", "/home/ann/a.py", 1))
        small = stack("mul", ("h", "/home/ann/a.py", 5), ("g", "/home/ann/a.py", 4), ("main", "/home/ann/a.py", 1))
        for i, (frames, n) in enumerate(((deep, 64), (other, 16), (small, 2))):
            m.alloc(m.base + i * MIB, n * 512, frames)
        path = self.write(snapshot(m))

        def rows(*commands):
            more = [x for c in commands for x in ("--command", c)]
            doc = json.loads(self.ok("tui", path, "--no-state", "--view", "6", *more, "--pane", "stacks", "--json").stdout)
            return [(r["level"], r["calls"].split(":")[0], r["size_bytes"] // 512) for r in doc["rows"]]

        opened = [(0, "main a.py", 82), (1, "f a.py", 64), (1, "g a.py", 18)]
        self.assertEqual(rows()[:3], opened)
        self.assertEqual([r[2] for r in rows()], [82, 64, 18, 16, 2])  # a tenth and more is open, the heaviest first
        self.assertEqual(rows("left"), opened[:1])
        self.assertEqual(rows("open", "open"), rows())
        self.assertEqual(rows("down", "down", "left"), opened)
        self.assertEqual(rows("down", "down", "left", "left", "left"), opened[:1])  # closed, to its caller, closed
        self.assertEqual(rows("left", "right"), opened + rows()[3:])
        self.assertEqual(rows("left", "search h a"), rows())  # what is found is opened

        # All closed, and open again as at the begin; what was opened by hand is closed too.
        self.assertEqual(rows("close-all"), opened[:1])
        self.assertEqual(rows("close-all", "open"), opened)
        self.assertEqual(rows("close-all", "close-all"), rows())
        self.assertEqual(rows("down", "down", "left", "close-all"), opened[:1])
        self.assertEqual(rows("close-all", "open", "close-all"), opened[:1])

        # One call alone: the selected one, or the heaviest that matches; a row may begin in the middle of another.
        g = [(level - 1, *rest) for level, *rest in rows()[2:]]
        self.assertEqual(rows("down", "down", "root"), g)
        self.assertEqual(rows("down", "down", "root", "root"), rows())
        self.assertEqual(rows("down", "down", "root", "down", "root"), [(level - 1, *rest) for level, *rest in g[1:2]])
        self.assertEqual(rows("root ^g"), g)
        self.assertEqual(rows("root aten::bmm"), [(0, "aten", 64)])
        self.assertEqual(rows("root ^g", "left"), g[:1])
        self.assertEqual(rows("root ^g", "left", "search h a"), g)
        frame = lambda *c: self.ok("tui", path, "--no-state", "--view", "6", "--once", "--size", "100x24", *[x for w in c for x in ("--command", w)]).stdout
        self.assertIn("9.00 KiB of 41.00 KiB alone", frame("root ^g"))
        self.assertIn("holds nothing at the cursor", frame("root ^g", "goto 0ns"))
        _, trace = self.take(snapshot(m))  # without notes
        for command, says in (("root nowhere", "no call matches 'nowhere'"), ("root (", "cannot read the expression"),
                              ("search f a.py", "no call matches")):
            before = ("--command", "root ^g") if command.startswith("search") else ()
            self.refused(2, "tui", trace, "--no-state", "--view", "6", "--once", *before, "--command", command, says=[says])


class Settings(Made):
    """What a report says of other settings of the allocator, of snapshots with hardly anything in them."""

    def side(self, doc):
        path = self.dir / "s.pickle"
        path.write_bytes(pickle.dumps(doc, 4))
        for name in ("r.json", "r.txt", "r.html", "r.csv"):
            self.ok("report", path, "-o", self.dir / name)
        return json.loads((self.dir / "r.json").read_text())["sides"][0], (self.dir / "r.txt").read_text()

    def test_one_segment(self):
        side, _ = self.side(snapshot(small()))
        rows = {r["setting"]: r["reserved_bytes"] for r in side["settings"]}
        self.assertEqual(rows["(as recorded)"], SEGMENT)
        self.assertEqual(rows["(best placement)"], 9 * MIB + 3 * MIB - 512 * (100 // 512))
        # Each segment of a range that grows is 20 MiB for requests above 1 MiB.
        self.assertEqual(rows["expandable_segments:True"], SEGMENT)

    def test_several_devices(self):
        one = small()
        other = Memory(0x7E0000000000)
        other.segment(other.base)
        other.alloc(other.base, 2 * MIB)
        side, text = self.side(snapshot(one, other))
        of = {device: {r["setting"]: r["reserved_bytes"] for r in side["settings"] if r["device"] == device} for device in ("cuda:0", "cuda:1")}
        self.assertEqual([rows["(as recorded)"] for rows in of.values()], [SEGMENT, SEGMENT])
        self.assertEqual([rows["(best placement)"] for rows in of.values()], [9 * MIB + 3 * MIB - 512 * (100 // 512), 2 * MIB])
        self.assertIn("cuda:1", text)

    def test_blocks_without_a_segment(self):
        """A program that recorded no segment: what its allocator reserved is not known, and nothing is tried."""
        m = Memory()
        m.add("alloc", m.base, MIB, FORWARD)
        m.add("free_completed", m.base, MIB)
        side, text = self.side(snapshot(m))
        self.assertNotIn("settings", side)
        self.assertNotIn("With other settings", text)


class Lists(Made):
    """A recording without runs as a list of its blocks."""

    def test_every_form(self):
        path = self.write(snapshot(small()))
        csv_text = self.ok("export", path, "--to", "csv").stdout
        self.assertEqual(csv_text.splitlines()[1:], [
            f"before recording #1,0,3,{5 * MIB},512,1,Default,cuda:0", f"forward model.py:199 #2,1,3,{3 * MIB - 100},512,1,Default,cuda:0",
            f"step adam.py:84 #3,2,3,{4 * MIB},512,1,Default,cuda:0"])
        self.assertIn(",4096,", self.ok("export", path, "--to", "csv", "--align", "4096").stdout)
        doc = json.loads(self.ok("export", path, "--to", "json", "--with-offsets").stdout)
        self.assertEqual({t["name"]: t["device"] for t in doc["tensors"]},
                         dict.fromkeys(("before recording #1", "forward model.py:199 #2", "step adam.py:84 #3"), "cuda:0"))
        self.assertIn(f"_ARENA_BYTES {12 * MIB}u", self.ok("export", path, "--to", "c-header").stdout)
        # What has nothing in it is an empty list, and what has no names says which block.
        text = self.ok("export", self.write(snapshot(Memory())), "--to", "csv").stdout
        self.assertEqual(text.count("\n"), 1)
        log = self.dir / "h.txt"
        log.write_text("v 10400 3\na 3e8 0\na 0 0\n+ 0\n+ 1\n+ 0\n- 0\n")
        lines = self.ok("export", log, "--to", "csv").stdout.splitlines()[1:]
        self.assertEqual([line.split(",")[:5] for line in lines], [["block 1", "0", "2", "1000", "16"], ["block 2", "1", "2", "1000", "16"]])


class Direct(Made):
    def test_a_folder_of_that_name_in_TMPDIR(self):
        (self.dir / "tmp" / "s.pickle").mkdir(parents=True)
        self.ok("trace", self.write(snapshot(small())), env={"TMPDIR": str(self.dir / "tmp")})
        self.assertEqual([p.name for p in (self.dir / "tmp").iterdir()], ["s.pickle"])

    def test_commands_take_the_file_itself(self):
        path, there = self.write(snapshot(small())), self.dir / "tmp"
        there.mkdir()
        env = {"TMPDIR": str(there)}
        before = sorted(p.name for p in self.dir.iterdir())
        for args in (["trace", path], ["trace", path, "--at", "peak"], ["report", path, "-o", self.dir / "r.html"], ["tui", "--once", path],
                     ["diff", path, path], ["replay", path, "--allocator", "cpu"],
                     ["export", path, "--to", "chrome-trace", "-o", self.dir / "c.json"]):
            with self.subTest(args[0]):
                p = self.ok(*args, env=env)
                self.assertEqual(p.stderr.count("a memory snapshot of PyTorch, 4 events"), 1, p.stderr)
                self.assertEqual(list(there.iterdir()), [])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), sorted([*before, "c.json", "r.html"]))
        slices = [e for e in json.loads((self.dir / "c.json").read_text())["traceEvents"] if e["ph"] == "b"]
        self.assertEqual({e["name"] for e in slices}, {"before recording", "forward model.py:199", "step adam.py:84"})
        page = (self.dir / "r.html").read_text()
        self.assertIn("<title>s.pickle", page)
        self.assertNotIn(str(there), page)

    def test_a_signal_leaves_nothing(self):
        path, there = self.write(snapshot(small())), self.dir / "tmp"
        there.mkdir()
        p = self.start("tui", path, env={"TMPDIR": str(there), "TERM": "dumb"})
        p.wait(60)
        self.assertEqual(list(there.iterdir()), [])
        self.refused(8, "trace", path, env={"TMPDIR": str(self.dir / "none")}, says=["TMPDIR"])

    def test_outputs(self):
        path, out = self.write(snapshot(small())), self.dir / "t.db"
        out.write_text("mine\n")
        self.refused(2, "import", path, "-o", out, says=["--force"])
        self.assertEqual(out.read_text(), "mine\n")
        self.ok("import", path, "-o", out, "--force")
        self.ok("import", path, "-o", out)  # a trace may be replaced
        self.refused(2, "import", path, "-o", path, says=["input"])
        self.refused(2, "import", path, says=["-o TRACE"])
        self.refused(2, "import", "-o", out, says=["FILE"])
        self.refused(8, "import", path, "-o", self.dir / "none" / "t.db")
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["s.pickle", "t.db"])


class Bad(Made):
    def bad(self, doc, *says, **kw):
        path = self.write(doc, **kw)
        self.refused(3, "import", path, "-o", self.dir / "t.db", says=says)
        self.assertEqual([p.name for p in self.dir.iterdir()], ["s.pickle"])

    def test_what_would_run(self):
        """Whatever would import a name or call something is refused by its opcode's name, and does not happen."""
        class Evil:
            def __init__(self, path):
                self.path = path

            def __reduce__(self):
                return os.system, (f"touch {self.path}",)
        for protocol in (2, 4, 5):
            doc = snapshot(small())
            doc["segments"].append(Evil(self.dir / "ran"))
            self.bad(doc, "GLOBAL", "byte", protocol=protocol)
        self.bad({"segments": [{1, 2}]}, "is not plain data", protocol=4)
        self.bad({"segments": [collections.OrderedDict()]}, "is not plain data")
        self.bad(pickle.dumps({"segments": []}, protocol=0), "known tool", protocol=0)

    def test_cut_anywhere(self):
        whole = pickle.dumps(snapshot(small()), protocol=4)
        for n in share(random.Random(1).sample(range(2, len(whole)), 60), 4) + [2, len(whole) - 1]:
            with self.subTest(n):
                self.bad(whole[:n], "ends in the middle")

    def test_bytes_turned(self):
        """A file that was changed somewhere is read or refused, and nothing else."""
        whole, rng = bytearray(pickle.dumps(snapshot(small()), protocol=4)), random.Random(2)
        for _ in share(range(150), 5):
            changed = bytearray(whole)
            for _ in range(rng.choice([1, 1, 2, 8])):
                changed[rng.randrange(2, len(changed))] = rng.randrange(256)
            p = run("import", self.write(bytes(changed)), "-o", self.dir / "t.db")
            self.assertIn(p.returncode, (0, 3), p.stderr)
            if p.returncode == 0:
                self.assertEqual(run("trace", self.dir / "t.db", "--check").returncode, 0)

    def test_bombs(self):
        head = b"\x80\x04"
        for name, body, says in (
                ("marks", b"(" * 100000, "1024 containers"), ("dicts", b"}" * (90 << 20), "its own bytes"),
                ("lists in lists", b"]" * 2000 + b"a" * 1999 + b".", "no memory snapshot"), ("memo", b"}r\xff\xff\xff\xff.", "memo number"),
                ("memo of nothing", b"h\x07.", "never put"), ("text", b"X\xff\xff\xff\xff", "16 MiB"),
                ("text of 2^63", b"\x8d" + struct.pack("<Q", 1 << 63), "16 MiB"), ("bytes", b"\x8e" + struct.pack("<Q", 1 << 63), "ends in the middle"),
                ("long", b"\x8b\xff\xff\xff\xff", "negative length"), ("pop", b"0.", "MARK"), ("items", b"a", "operands"), ("pairs", b"s", "operands"),
                ("a key", b"}(K\x01u.", "without a value"), ("no list", b"}(K\x01e.", "no list"), ("two", b"K\x01K\x02.", "one value"),
                ("nothing", b".", "one value"), ("no opcode", b"\xff", "no opcode"), ("an old one", b"I1\n.", "is not plain data"),
                ("protocol 1", b"\x80\x01.", "pickle protocol")):
            with self.subTest(name):
                self.bad(head + body, says)

    def test_a_bomb_takes_little_memory(self):
        """As the system counts it: 90 MiB of dicts end the reading long before they are read."""
        path = self.write(b"\x80\x04" + b"}" * (90 << 20))
        if "TIDE_PEAK_OF" not in os.environ or os.environ.get("TIDE_SANITIZERS"):
            self.skipTest("without peak_of, or under a sanitizer, nothing says what the program takes")
        p = subprocess.run([os.environ["TIDE_PEAK_OF"], tidemark.PROGRAM, "import", path, "-o", self.dir / "t.db"], capture_output=True, text=True,
                           env=environment(), check=False)
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertLess(int(p.stderr.splitlines()[-1]), 100 << 20)

    def test_laughs(self):
        """A list that is ten times the list before it, nine times over: billions when it is built, nothing here."""
        layers = [[]]
        for _ in range(9):
            layers.append([layers[-1]] * 10)
        self.bad({"x": layers[-1]}, "no memory snapshot")

    def test_what_is_no_snapshot(self):
        self.bad([1, 2], "no memory snapshot", "_dump_snapshot")
        self.bad({"weights": [1.5]}, "no memory snapshot")
        self.bad({"device_traces": {}, "segments": []}, "device_traces")
        self.bad({"device_traces": small().events}, "list of lists")
        self.bad(b"", "known tool")
        self.bad(b"\x80", "known tool")
        for key, value in (("size", -1), ("size", 1 << 63), ("size", 1 << 70), ("size", "x"), ("addr", None), ("time_us", -1),
                           ("time_us", 1 << 62), ("stream", "x"), ("action", 7), ("frames", 3), ("frames", [1])):
            m = small()
            m.events[0][key] = value
            with self.subTest(key=key, value=value):
                self.bad(snapshot(m), key)
        last = (1 << 64) - 1  # nothing lies there, and no range ends behind it
        for action in ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_unmap"):
            for addr, size in ((last, 8), (last - 100, 1 << 40), (0, (1 << 62) + 1), (1 << 40, (1 << 63) - 1)):
                m = small()
                m.add(action, addr, size)
                with self.subTest(action=action, addr=addr):
                    self.bad(snapshot(m), "size" if size > 1 << 62 else "addr")
        for key in ("address", "size"):
            doc = snapshot(small())
            doc["segments"][0]["blocks"][0][key] = last - 1 if key == "address" else 1 << 63
            self.bad(doc, key)
        doc = snapshot(small())
        doc["segments"][0]["address"] = last - 5
        self.bad(doc, "address")
        doc = snapshot(small())
        doc["segments"][0]["device"] = 1 << 40
        self.bad(doc, "device")

    def test_a_list_that_grows_later(self):
        """A list of frames gets one more after an event has used it, as no pickler writes it."""
        frame = lambda: b"}(\x8c\x04name\x8c\x01f\x8c\x08filename\x8c\x01g\x8c\x04lineK\x01u"
        event = lambda frames: b"}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x10\x8c\x04sizeK\x08\x8c\x06frames" + frames + b"u"
        head = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](]("
        once = head + event(b"]\x94(" + frame() + b"e") + b"eeu."
        self.ok("import", self.write(once), "-o", self.dir / "t.db")
        (self.dir / "t.db").unlink()
        # Another list in between, then the first again.
        self.bad(head + event(b"]\x94(" + frame() + b"e") + event(b"](" + frame() + b"e") + event(b"h\x00(" + frame() + b"e") + b"eeu.", "grows after it was used")

    def test_a_list_in_two_places(self):
        m = small()
        self.bad({"segments": [], "device_traces": [m.events, list(m.events)]}, "two lists")
        m.events.append(m.events[0])
        self.bad(snapshot(m), "two lists")


class TorchTables(Made):
    """A snapshot as tables of SQLite (pytorch/pytorch pull request 178670): the same trace as of the pickle of the same data."""
    TRACES = ("id", "device", "action", "addr", "size", "stream", "time_us", "frames", "user_metadata", "device_free")
    SEGMENTS = ("id", "device", "address", "total_size", "stream", "segment_type", "is_expandable", "frames")
    BLOCKS = ("id", "segment_id", "addr", "size", "requested_size", "state", "frames")

    def tables(self, doc, traces=TRACES, segments=SEGMENTS, blocks=BLOCKS, spoil=()):
        """`spoil`: SQL behind it."""
        path = self.dir / "s.db"
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path)

        def table(name, columns, rows):
            keys = [c + (" INTEGER PRIMARY KEY" if c in ("id", "segment_id") and (name, c) != ("blocks", "segment_id") else "") for c in columns]
            db.execute(f"CREATE TABLE {name}({', '.join(keys)})")
            for row in rows:
                row = {**row, "frames": json.dumps(row["frames"]) if row.get("frames") else None}
                db.execute(f"INSERT INTO {name} VALUES({', '.join('?' * len(columns))})", [row.get(c) for c in columns])
        table("device_traces", traces, [{**e, "device": d} for d, events in enumerate(doc["device_traces"]) for e in events])
        number, every, inside = 0, [], []
        for s in doc["segments"]:
            number += 3
            every.append({**s, "id": number, "segment_id": number, "addr": s["address"], "size": s["total_size"]})
            inside += [{**b, "addr": b["address"], "segment_id": number} for b in s["blocks"]]
        table("segments", segments, every)
        table("blocks", blocks, inside)
        for sql in spoil:
            db.execute(sql)
        db.commit()
        db.close()
        return path

    def rows_of(self, path, name):
        out = self.dir / name
        said = self.json("import", path, "-o", out)
        columns = "op, t_ns, block_id, name, scope, requested_bytes, reserved_bytes, device, address, stream, kind, allocator"
        rows = ask(out, f"SELECT {columns} FROM events ORDER BY event_id")
        stacks = ask(out, """SELECT b.id, s.id, s.parent_id, n.text, s.kind FROM block b JOIN scope s ON s.id = b.scope_id
                             JOIN name n ON n.id = s.name_id ORDER BY b.id""")
        groups = [self.json("trace", out, "--at", "end", "--by", by)["groups"] for by in ("stack", "function", "module")]
        return {k: v for k, v in said.items() if k not in ("file", "trace", "format")}, rows, sorted(s[3:] for s in stacks), groups

    def same(self, doc, **columns):
        want = self.rows_of(self.write(doc), "p.db")
        tables = self.rows_of(self.tables(doc, **columns), "t.db")
        for a, b in zip(tables, want, strict=True):
            self.assertEqual(a, b)
        self.assertEqual(self.ok("trace", self.dir / "t.db", "--check").returncode, 0)
        return want[0]

    @staticmethod
    def busy():
        a, b = Memory(), Memory(0x7E0000000000)
        for m in (a, b):
            m.segment(m.base)
            m.segment(m.base + 64 * MIB, record=False)
            m.alloc(m.base + 64 * MIB, 3 * MIB, STEP, record=False)
            for i in range(12):
                m.alloc(m.base + MIB * i, 600 * 1024 + i, (FORWARD, STEP, BACKWARD, [])[i % 4])
            m.free(m.base + MIB, completed=False)
            m.free(m.base + 2 * MIB)
            b.now = a.now + 5
        a.add("oom", 0, 9 << 30, FORWARD)
        a.events[-1].pop("addr")
        a.events[-1]["device_free"] = 512 * MIB
        a.add("snapshot", 0, 0, user_metadata="epoch 2")
        a.add("segment_polish", 1, 2)
        b.events[-1].pop("time_us")
        return snapshot(a, Memory(), b)

    def test_as_the_pickle(self):
        said = self.same(snapshot(small()))
        self.assertEqual((said["blocks"], said["blocks_before"], said["bytes_before"]), (2, 1, 5 * MIB))
        said = self.same(self.busy())
        self.assertEqual((said["unknown_events"], said["events_without_time"]), (1, 1))
        self.same({"segments": [], "device_traces": []})
        self.same({"segments": small().state(), "device_traces": []})
        m = Memory()
        m.add("segment_map", m.base, 20 * MIB)
        m.alloc(m.base, 20 * MIB - 4096)
        m.segments[m.base] = 20 * MIB
        doc = snapshot(m)
        doc["segments"][0]["is_expandable"] = True
        self.same(doc)
        self.assertIn("SQLite", self.json("import", self.dir / "s.db", "-o", self.dir / "t.db")["format"])

    def test_other_columns(self):
        """Under the names of the pickle, and with what the proposal's text names alone."""
        self.same(self.busy(), segments=("segment_id", *self.SEGMENTS[1:]), blocks=("id", "segment_id", "address", *self.BLOCKS[3:]))
        doc = snapshot(small())
        few = {"traces": ("id", "action", "addr", "size", "time_us", "frames"), "segments": ("id", "address", "total_size"),
               "blocks": ("segment_id", "addr", "size", "state")}
        self.same(doc, **few)
        self.same(doc, **{**few, "blocks": ("segment_id", "size", "state")})  # one follows the one before it

    @unittest.skipUnless(SNAPSHOTS.is_dir(), "the snapshots are not there")
    def test_data_of_real_programs(self):
        with open(SNAPSHOTS / "memory_ctx128_forward_.pickle", "rb") as f:
            doc = pickle.load(f)
        doc["allocator_settings"] = {}  # tables tell none
        self.same(doc)

    def test_what_takes_such_a_file(self):
        path = self.tables(self.busy())
        for command in (["trace", path, "--at", "peak", "--by", "function"], ["report", path, "-o", self.dir / "r.html"], ["tui", "--once", path],
                        ["export", path, "--to", "pytorch", "-o", self.dir / "back.pickle"], ["replay", path, "--allocator", "pytorch"]):
            self.ok(*command)
        back = pickle.loads((self.dir / "back.pickle").read_bytes())
        self.assertEqual([len(t) > 0 for t in back["device_traces"]], [True, False, True])

    def test_what_is_wrong(self):
        """Each fault by table, row and column; nothing is written."""
        huge = 2**63 - 1
        faults = [(f"UPDATE {table} SET {column} = {value} WHERE rowid = {row}", table, row, column, why)
                  for table, row, columns in (("device_traces", 2, ("addr", "size")), ("blocks", 1, ("size", "segment_id")),
                                              ("segments", 3, ("address", "total_size")))
                  for column in columns for value, why in (("NULL", "is NULL"), ("-1", "is below 0"), ("'x'", "is no whole number"),
                                                           ("1.5", "is no whole number"), ("x'00'", "is no whole number"))]
        faults += [(f"UPDATE {table} SET {column} = {value} WHERE rowid = {row}", table, row, column, why) for table, row, column, value, why in (
            ("device_traces", 2, "size", huge, "is too large"), ("device_traces", 2, "size", 2**62 + 1, "is too large"),
            ("device_traces", 3, "time_us", huge, "is too large"), ("device_traces", 3, "time_us", -5, "is below 0"),
            ("device_traces", 1, "device", 256, "is too large"), ("device_traces", 1, "device", -1, "is below 0"),
            ("device_traces", 1, "device", "NULL", "is NULL"), ("device_traces", 1, "action", "NULL", "is NULL"),
            ("device_traces", 1, "action", "7", "is no text"), ("device_traces", 1, "frames", "x'5b5d'", "is no text"),
            ("device_traces", 1, "frames", "'['", "is no JSON"), ("device_traces", 1, "frames", "'{}'", "is no list of frames"),
            ("device_traces", 1, "frames", "'[1]'", "has a frame"), ("device_traces", 1, "frames", "'[{\"name\": \"f\"}]'", "has a frame"),
            ("device_traces", 1, "frames", "'[{\"filename\": \"f\", \"line\": \"7\"}]'", "has a frame"),
            ("device_traces", 1, "stream", -1, "is below 0"), ("device_traces", 1, "user_metadata", "7", "is no text"),
            ("blocks", 1, "size", huge, "is too large"), ("blocks", 2, "addr", -1, "is below 0"), ("blocks", 2, "requested_size", -1, "is below 0"),
            ("blocks", 2, "state", "NULL", "is NULL"), ("blocks", 2, "state", "1", "is no text"), ("blocks", 4, "segment_id", 4, "is of no segment"),
            ("blocks", 1, "segment_id", 1, "is of no segment"), ("segments", 3, "total_size", huge, "is too large"),
            ("segments", 3, "device", 256, "is too large"), ("segments", 3, "is_expandable", 2, "is too large"),
            ("segments", 3, "segment_type", "1", "is no text"))]
        out = self.dir / "t.db"
        for sql, table, row, column, why in faults:
            with self.subTest(sql):
                path = self.tables(snapshot(small()), spoil=[sql])
                self.refused(3, "import", path, "-o", out, says=[f"table {table}, row {row}", f"'{column}' {why}"])
                self.assertFalse(out.exists())
        for table, column in (("device_traces", "action"), ("device_traces", "addr"), ("device_traces", "size"), ("segments", "total_size"),
                              ("segments", "address"), ("blocks", "segment_id"), ("blocks", "size"), ("blocks", "state")):
            path = self.tables(snapshot(small()), spoil=[f"ALTER TABLE {table} RENAME COLUMN {column} TO other"])
            self.refused(3, "import", path, "-o", out, says=[f"table {table} has no column '{column}'"])
        path = self.tables(snapshot(small()), spoil=[
            "CREATE TABLE more(segment_id, address, total_size)", "INSERT INTO more VALUES(3, 4096, 512), (3, 8192, 512)",
            "DROP TABLE segments", "ALTER TABLE more RENAME TO segments"])
        self.refused(3, "import", path, "-o", out, says=["'segment_id' is there twice", "table segments, row 2"])
        for table in ("device_traces", "blocks", "segments"):
            path = self.tables(snapshot(small()), spoil=[f"DROP TABLE {table}"])
            self.refused(3, "import", path, "-o", out, says=["no recording of a known tool"])

    def test_damaged_and_cut(self):
        data = self.tables(self.busy()).read_bytes()
        for at in (*range(100, len(data), max(1, len(data) // 40)),):
            (self.dir / "d.db").write_bytes(data[:at])
            self.assertIn(run("import", self.dir / "d.db", "-o", self.dir / "t.db").returncode, (0, 3))
            bad = bytearray(data)
            bad[at] ^= 0xFF
            (self.dir / "d.db").write_bytes(bad)
            self.assertIn(run("import", self.dir / "d.db", "-o", self.dir / "t.db").returncode, (0, 3))


class Nsight(Made):
    """Exports as Nsight Systems writes them: with enums of their own, columns by version of the schema."""
    KINDS = ["PAGEABLE", "PINNED", "DEVICE", "ARRAY", "MANAGED", "DEVICE_STATIC", "MANAGED_STATIC", "UNKNOWN"]
    PID = 0x1_0012_34_000000  # hardware and VM above, then the process 0x1234, then the thread

    def export(self, rows, columns=("name", "correlationId", "streamId"), calls=True, memory=True, shift=0):
        """`rows`: (start, pid, device, address, bytes, kind, operation, name, correlation, stream)."""
        path = self.dir / "n.sqlite"
        path.unlink(missing_ok=True)
        db = sqlite3.connect(path)
        db.execute("CREATE TABLE META_DATA_EXPORT(name TEXT NOT NULL, value TEXT)")
        db.execute("CREATE TABLE ENUM_CUDA_MEM_KIND(id INTEGER PRIMARY KEY, name TEXT, label TEXT)")
        db.execute("CREATE TABLE ENUM_CUDA_DEV_MEM_EVENT_OPER(id INTEGER PRIMARY KEY, name TEXT, label TEXT)")
        db.executemany("INSERT INTO ENUM_CUDA_MEM_KIND VALUES(?, ?, '')", [(i + shift, f"CUDA_MEMOPR_MEMORY_KIND_{k}") for i, k in enumerate(self.KINDS)])
        db.executemany("INSERT INTO ENUM_CUDA_DEV_MEM_EVENT_OPER VALUES(?, ?, '')",
                       [(i + shift, f"CUDA_DEV_MEM_EVENT_OPR_{o}") for i, o in enumerate(("ALLOCATION", "DEALLOCATION"))])
        if calls:
            db.execute("CREATE TABLE StringIds(id INTEGER PRIMARY KEY, value TEXT NOT NULL)")
            db.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME(start INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER)")
            db.execute("INSERT INTO StringIds VALUES(7, 'cudaMallocAsync_v11020')")
            db.execute("INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES(0, ?, 5, 7)", (self.PID | 77,))
        if memory:
            names = ["start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", *columns]
            db.execute(f"CREATE TABLE CUDA_GPU_MEMORY_USAGE_EVENTS({', '.join(names)})")
            for row in rows:
                fields = dict(zip(("start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType", "name", "correlationId", "streamId"), row))
                fields["memKind"] += shift
                fields["memoryOperationType"] += shift
                db.execute(f"INSERT INTO CUDA_GPU_MEMORY_USAGE_EVENTS VALUES({', '.join('?' * len(names))})", [fields[n] for n in names])
        db.commit()
        db.close()
        return path

    def rows_of_all(self):
        return [(100 + k, self.PID, 1, 4096 * k, 10 + k, k, 0, "v" if k == 5 else None, 5 if k == 2 else 0, 3) for k in range(8)]

    def test_kinds_calls_and_enums(self):
        for shift in (0, 40):  # numbers are those of the file
            said = self.json("import", self.export(self.rows_of_all(), shift=shift), "-o", self.dir / "t.db")
            self.assertEqual((said["events"], said["blocks"]), (8, 8))
            self.assertEqual(ask(self.dir / "t.db", "SELECT kind, device, allocator, name, requested_bytes, stream, t_ns FROM events ORDER BY event_id"),
                             [("HostPageable", "cpu", "cuda", "", 10, 3, 100), ("HostPinned", "cpu", "cuda", "", 11, 3, 101),
                              ("Default", "cuda:1", "cudaMallocAsync", "", 12, 3, 102), ("Default", "cuda:1", "cuda", "", 13, 3, 103),
                              ("Default", "cuda:1", "cuda", "", 14, 3, 104), ("Persistent", "cuda:1", "module", "v", 15, 3, 105),
                              ("Persistent", "cuda:1", "module", "", 16, 3, 106), ("Default", "cuda:1", "cuda", "", 17, 3, 107)])
            self.assertEqual(ask(self.dir / "t.db", "SELECT pid FROM process"), [(0x1234,)])
            self.assertEqual(ask(self.dir / "t.db", "SELECT number FROM thread ORDER BY number"), [(1,), (77,)])

    def test_older_columns(self):
        said = self.json("import", self.export(self.rows_of_all(), columns=(), calls=False), "-o", self.dir / "t.db")
        self.assertEqual(said["events"], 8)

    def test_processes_and_frees(self):
        other = self.PID + (1 << 24)
        said = self.json("import", self.export([(1, self.PID, 0, 4096, 10, 2, 0, None, 0, 0), (2, other, 0, 4096, 20, 2, 0, None, 0, 0),
                                                (3, self.PID, 0, 4096, 10, 2, 1, None, 0, 0), (4, self.PID, 0, 9, 10, 2, 1, None, 0, 0),
                                                (5, other, 0, 4096, 30, 2, 0, None, 0, 0)]), "-o", self.dir / "t.db")
        self.assertEqual((said["unknown_frees"], said["contradictions"]), (1, 1))
        self.assertEqual(ask(self.dir / "t.db", "SELECT requested_bytes, free_ns FROM block ORDER BY alloc_ns"), [(10, 3), (20, 5), (30, None)])
        self.assertEqual(ask(self.dir / "t.db", "SELECT pid FROM process ORDER BY id"), [(0x1234,), (0x1235,)])
        self.assertEqual(self.ok("trace", self.dir / "t.db", "--check").returncode, 0)
        for args in (["tui", "--once"], ["report", "-o", self.dir / "r.html"], ["trace"]):
            self.ok(args[0], self.dir / "n.sqlite", *args[1:])

    def ranges(self, path, rows, columns=("textId", "domainId"), enums=True, more=()):
        """NVTX_EVENTS of (start, end, type, thread, text, textId, domain); types by name."""
        usual = {"NvtxMark": 34, "NvtxPushPopRange": 59, "NvtxStartEndRange": 60, "NvtxDomainCreate": 75, "NvtxCategory": 33}
        with sqlite3.connect(path) as db:
            if enums:
                db.execute("CREATE TABLE ENUM_NSYS_EVENT_TYPE(id INTEGER PRIMARY KEY, name TEXT, label TEXT)")
                db.executemany("INSERT INTO ENUM_NSYS_EVENT_TYPE VALUES(?, ?, '')", [(k + 500, name) for name, k in usual.items()])
            db.execute(f"CREATE TABLE NVTX_EVENTS(start, end, eventType, globalTid, text{''.join(', ' + c for c in columns)})")
            for start, end, what, thread, text, *ids in rows:
                values = [start, end, usual[what] + 500 * enums, thread, text, *ids[:len(columns)]]
                db.execute(f"INSERT INTO NVTX_EVENTS VALUES({', '.join('?' * len(values))})", values)
            for statement in more:
                db.execute(statement)
        db.close()
        return path

    def test_ranges_are_scopes(self):
        """By thread, the innermost that is open; a call is on its own thread, 77; marks are marks."""
        here, other = self.PID | 77, self.PID | 78
        blocks = [(t, self.PID, 0, 4096 * t, 100 + t, 2, 0, None, 5, 0) for t in (10, 25, 35, 45, 60, 82, 85, 90)]
        blocks.append((26, self.PID, 0, 1 << 40, 7, 2, 0, None, 0, 0))  # of no call: in no range
        rows = [(0, None, "NvtxDomainCreate", here, "cuBLAS", None, 1), (20, 50, "NvtxPushPopRange", here, "step", None, 0),
                (30, 40, "NvtxPushPopRange", here, None, 7, 1), (15, 95, "NvtxPushPopRange", other, "elsewhere", None, 0),
                (55, None, "NvtxStartEndRange", here, "never ended", None, 0), (60, 70, "NvtxStartEndRange", here, "", None, 0),
                (65, None, "NvtxMark", here, "here", None, 0), (66, None, "NvtxCategory", here, "no range", None, 0),
                (20, 50, "NvtxPushPopRange", here, "inner", None, 0),
                (80, 83, "NvtxPushPopRange", here, "short", None, 0), (80, 88, "NvtxPushPopRange", here, "long", None, 0)]
        want = [(10, None, None), (25, "inner", "step"), (26, None, None), (35, "cuBLAS: cudaMallocAsync_v11020", "inner"), (45, "inner", "step"),
                (60, "(no name)", "never ended"), (82, "short", "long"), (85, "long", "never ended"), (90, "never ended", None)]
        query = """SELECT e.t_ns, n.text, m.text FROM event e LEFT JOIN scope s ON s.id = e.scope_id LEFT JOIN name n ON n.id = s.name_id
                   LEFT JOIN scope p ON p.id = s.parent_id LEFT JOIN name m ON m.id = p.name_id WHERE e.op = 1 ORDER BY e.id"""
        for enums in (True, False):
            out = self.dir / "t.db"
            self.json("import", self.ranges(self.export(blocks), rows, enums=enums), "-o", out, "--force")
            self.assertEqual(ask(out, query), want)
            self.assertEqual(self.json("trace", out)["marks"][0]["name"], "here")
            self.assertEqual(ask(out, "SELECT op, count(*) FROM events WHERE op LIKE 'scope%' GROUP BY 1"), [("scope_enter", 8), ("scope_leave", 7)])
            self.assertEqual(self.ok("trace", out, "--check").returncode, 0)
            by = {g["key"]: g["blocks"] for g in self.json("trace", out, "--at", "end", "--by", "scope")["groups"]}
            self.assertEqual((by["inner"], by["never ended"]), (2, 1))
        for args in (["tui", "--once"], ["report", "-o", self.dir / "r.html"], ["export", "--to", "chrome-trace", "-o", self.dir / "c.json"]):
            self.ok(args[0], out, *args[1:])
        # Older columns; a file without any of them.
        self.json("import", self.ranges(self.export(blocks), rows[3:5], columns=()), "-o", out, "--force")
        self.assertEqual([r[1] for r in ask(out, query)], [None] * 5 + ["never ended"] * 4)
        self.json("import", self.export(blocks), "-o", out, "--force")
        self.assertEqual({r[1] for r in ask(out, query)}, {None})

    def test_what_runs_on_devices_is_counted(self):
        path = self.ranges(self.export(self.rows_of_all()), [], more=["CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL(start)",
                                                                     "INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1), (2)",
                                                                     "CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET(start)",
                                                                     "INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (1)"])
        self.assertEqual(self.json("import", path, "-o", self.dir / "t.db")["device_work"], 3)
        self.assertIn("3 kernels, copies and fills", self.ok("import", path, "-o", self.dir / "t.db", "--force").stderr)

    def test_bad_ranges(self):
        good = (20, 50, "NvtxPushPopRange", self.PID | 77, "step", None, 0)
        for place, value, says in ((0, -1, "start"), (0, "x", "start"), (0, None, "start"), (1, 19, "end"), (1, "x", "end"), (3, None, "globalTid"),
                                   (0, 1 << 62, "start")):
            row = list(good)
            row[place] = value
            with self.subTest(place=place, value=value):
                self.refused(3, "import", self.ranges(self.export(self.rows_of_all()), [good, row]), "-o", self.dir / "t.db", says=[says, "NVTX_EVENTS, row 2"])

    def test_many_ranges(self):
        """Each within the one before, all on one thread, and as many that overlap: times are in order, and each is left."""
        n = 3000
        rows = [(k, 3 * n - k, "NvtxPushPopRange", self.PID | 77, f"r{k}", None, 0) for k in range(n)]
        rows += [(k, k + n, "NvtxStartEndRange", self.PID | 78, "o", None, 0) for k in range(n)]
        self.ok("import", self.ranges(self.export([(n, self.PID, 0, 4096, 10, 2, 0, None, 5, 0)]), rows), "-o", self.dir / "t.db")
        times = ask(self.dir / "t.db", "SELECT t_ns FROM event ORDER BY id")
        self.assertEqual(len(times), 4 * n + 1)
        self.assertEqual(times, sorted(times))
        self.assertEqual(ask(self.dir / "t.db", "SELECT scope FROM events WHERE op = 'alloc'"), [(f"r{n - 1}",)])

    def test_bad_exports(self):
        good = (1, self.PID, 0, 4096, 10, 2, 0, None, 0, 0)
        self.refused(3, "import", self.export([], memory=False), "-o", self.dir / "t.db", says=["CUDA_GPU_MEMORY_USAGE_EVENTS", "--cuda-memory-usage=true"])
        self.ok("import", self.export([]), "-o", self.dir / "t.db")
        (self.dir / "t.db").unlink()
        for place, value, says in ((0, -1, "start"), (0, "x", "start"), (2, 999, "deviceId"), (4, -5, "bytes"), (4, "x", "bytes"), (5, 99, "memKind"),
                                   (6, 9, "memoryOperationType")):
            row = list(good)
            row[place] = value
            with self.subTest(place=place, value=value):
                self.refused(3, "import", self.export([good, row]), "-o", self.dir / "t.db", says=[says, "row 2"])
        many = [(i, self.PID + (i << 24), *good[2:]) for i in range(65)]
        self.refused(3, "import", self.export(many), "-o", self.dir / "t.db", says=["64 processes"])
        whole = self.export(self.rows_of_all() * 200).read_bytes()
        rng = random.Random(4)
        for n in [200, 4096, len(whole) // 2] + [0] * 30:
            changed = bytearray(whole[:n] if n else whole)
            for _ in range(0 if n else 40):
                changed[rng.randrange(100, len(changed))] = rng.randrange(256)
            (self.dir / "n.sqlite").write_bytes(changed)
            self.assertIn(run("import", self.dir / "n.sqlite", "-o", self.dir / "t.db").returncode, (0, 3))
        # A view in place of the table that never ends.
        (self.dir / "n.sqlite").unlink()
        db = sqlite3.connect(self.dir / "n.sqlite")
        db.execute("CREATE TABLE META_DATA_EXPORT(name TEXT, value TEXT)")
        db.execute("""CREATE VIEW CUDA_GPU_MEMORY_USAGE_EVENTS AS WITH RECURSIVE r(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM r)
                      SELECT n AS start, 0 AS globalPid, 0 AS deviceId, n AS address, 1 AS bytes, 0 AS memKind, 0 AS memoryOperationType FROM r""")
        db.commit()
        db.close()
        self.refused(3, "import", self.dir / "n.sqlite", "-o", self.dir / "t.db")

    @unittest.skipUnless((SHARED / "data" / "nsight").is_dir(), "the folder of shared exports is not there")
    def test_a_real_one(self):
        """Live bytes by kind of memory, event by event, as SQL over the export itself says."""
        path = SHARED / "data" / "nsight" / "gemm_tiled_10000.sqlite"
        said = self.json("import", path, "-o", self.dir / "t.db")
        kinds = {1: "HostPinned", 2: "Default", 5: "Persistent"}
        want, live = [], collections.Counter()
        for start, kind, op, size in ask(path, "SELECT start, memKind, memoryOperationType, bytes FROM CUDA_GPU_MEMORY_USAGE_EVENTS ORDER BY start"):
            live[kinds[kind]] += -size if op else size
            want.append((start, kinds[kind], live[kinds[kind]]))
        got, live = [], collections.Counter()
        for t_ns, kind, op, size in ask(self.dir / "t.db", "SELECT t_ns, kind, op, requested_bytes FROM events WHERE op NOT LIKE 'scope%' ORDER BY event_id"):
            live[kind] += size if op == "alloc" else -size
            got.append((t_ns, kind, live[kind]))
        self.assertEqual(got, want)
        self.assertEqual((said["events"], said["unknown_frees"], said["contradictions"]), (21, 0, 0))
        self.assertEqual({a for a, in ask(self.dir / "t.db", "SELECT DISTINCT allocator FROM events WHERE op = 'alloc'")}, {"cudaHostAlloc", "cudaMalloc", "module"})
        inside = ask(path, """SELECT e.start FROM CUDA_GPU_MEMORY_USAGE_EVENTS e JOIN CUPTI_ACTIVITY_KIND_RUNTIME r USING (correlationId)
            JOIN NVTX_EVENTS n ON n.eventType = 59 AND n.globalTid = r.globalTid AND e.start BETWEEN n.start AND n.end
            WHERE e.memoryOperationType = 0 ORDER BY 1""")
        self.assertEqual(len(inside), 3)
        self.assertEqual(ask(self.dir / "t.db", "SELECT t_ns FROM events WHERE scope = 'cuBLAS: cublasCreate_v2' AND op = 'alloc' ORDER BY 1"), inside)
        self.assertEqual(said["device_work"], sum(n for n, in ask(path, """SELECT count(*) FROM CUPTI_ACTIVITY_KIND_KERNEL UNION ALL
            SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMCPY UNION ALL SELECT count(*) FROM CUPTI_ACTIVITY_KIND_MEMSET""")))


class Heaptrack(Made):
    TEXT = """v 10400 3
X ./prog
I 1000 5e2990
s 4 prog
s 4 main
s 9 /src/a b.c
i 1000 1 2 3 c
i 2000 1
t 1 0
t 2 1
a 3e8 2
+ 0
c 5
+ 0
a 10 0
+ 1
c a
- 0
- 1
- 1
- 0
R 10
# strings: 3
"""

    def log(self, text):
        path = self.dir / "h.txt"
        path.write_text(text)
        return path

    def test_a_text(self):
        said = self.json("import", self.log(self.TEXT), "-o", self.dir / "t.db")
        self.assertEqual((said["events"], said["blocks"], said["unknown_frees"]), (6, 3, 1))
        self.assertEqual(ask(self.dir / "t.db", "SELECT op, requested_bytes, name, scope, t_ns, block_id FROM events ORDER BY event_id"), [
            ("alloc", 1000, "0x2000 in prog", "0x2000 in prog", 0, 1), ("alloc", 1000, "0x2000 in prog", "0x2000 in prog", 5000000, 2),
            ("alloc", 16, "", "", 5000000, 3), ("free_completed", 1000, "0x2000 in prog", "", 10000000, 2), ("free_completed", 16, "", "", 10000000, 3),
            ("free_completed", 1000, "0x2000 in prog", "", 10000000, 1)])
        self.assertEqual(ask(self.dir / "t.db", "SELECT n.text FROM scope s JOIN name n ON n.id = s.name_id ORDER BY s.id"),
                         [("main @ /src/a b.c:12",), ("0x2000 in prog",)])
        old = self.TEXT.replace("v 10400 3", "v 10000 2").replace("s 4 ", "s ").replace("s 9 ", "s ")
        self.assertEqual(self.json("import", self.log(old), "-o", self.dir / "t.db")["events"], 6)
        self.assertEqual(ask(self.dir / "t.db", "SELECT DISTINCT text FROM name WHERE text LIKE 'main%'"), [("main @ /src/a b.c:12",), ("main a b.c:12",)])
        self.ok("report", self.dir / "h.txt", "-o", self.dir / "r.html")
        self.assertEqual(self.json("import", self.log("v 10400 3\n"), "-o", self.dir / "t.db")["events"], 0)

    def test_bad_texts(self):
        for line, says in (("+ 5", "not there"), ("+", "not there"), ("a 3e8 99", "frame"), ("a -1 0", "size"), ("a 8000000000000000 0", "size"), ("t 9 0", "place"),
                           ("t 0 0", "place"), ("t 1 77", "caller"), ("i 5", "module"), ("i 5 1 2 3", "line"), ("i 5 99", "module"), ("c x", "time"),
                           ("s zz", "length"), ("s 4", "length"), ("v 10400 9", "format"), ("- ffffffffffffffffffff", "not there")):
            with self.subTest(line):
                self.refused(3, "import", self.log(self.TEXT + line + "\n"), "-o", self.dir / "t.db", says=[says, "h.txt:24"])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["h.txt"])
        rng = random.Random(5)
        for _ in share(range(100), 5):
            changed = bytearray(self.TEXT.encode())
            for _ in range(rng.choice([1, 3, 9])):
                changed[rng.randrange(10, len(changed))] = rng.choice(b"0123456789abcdef \n+-atisc\xff\0")
            (self.dir / "h.txt").write_bytes(changed)
            self.assertIn(run("import", self.dir / "h.txt", "-o", self.dir / "t.db").returncode, (0, 3))


class Packed(Made):
    """Files that are packed: the same trace, whatever the packer; files that end in the middle, and damaged ones."""

    @staticmethod
    def zstd(text, *more):
        return subprocess.run(["zstd", "-q", "-c", *more], input=text, capture_output=True, check=True).stdout

    @staticmethod
    def many_lines(n=400):
        rng, live = random.Random(3), []
        lines = ["v 10400 3", "s 4 prog", "i 1000 1", "t 1 0", *(f"a {i * 8:x} 1" for i in range(1, 60))]
        for i in range(n):
            if live and rng.random() < 0.4:
                lines.append(f"- {live.pop(rng.randrange(len(live))):x}")
            else:
                live.append(rng.randrange(59))
                lines.append(f"+ {live[-1]:x}")
            if rng.random() < 0.2:
                lines.append(f"c {i:x}")
        return "\n".join(lines) + "\n"

    def read(self, data, name="h"):
        (self.dir / name).write_bytes(data)
        return self.json("import", self.dir / name, "-o", self.dir / "t.db"), self.rows(self.dir / "t.db")

    def test_every_packer(self):
        text = self.many_lines().encode()
        want, rows = self.read(text)
        half = len(text) // 2
        packed = {"gzip": gzip.compress(text), "two members": gzip.compress(text[:half]) + gzip.compress(text[half:]),
                  "an empty member": gzip.compress(b"") + gzip.compress(text), "stored": gzip.compress(text, 0)}
        if shutil.which("zstd"):
            packed |= {"zstd": self.zstd(text), "two frames": self.zstd(text[:half]) + self.zstd(text[half:]),
                       "one that is skipped": struct.pack("<II", 0x184D2A53, 5) + b"hello" + self.zstd(text),
                       "with a far window": self.zstd(text, "--long=27"), "by hard work": self.zstd(text, "-19")}
        else:
            print("skipped: zstd is not there")
        if shutil.which("lz4"):
            packed["lz4"] = subprocess.run(["lz4", "-q", "-c"], input=text, capture_output=True, check=True).stdout
        for name, data in packed.items():
            with self.subTest(name):
                said, got = self.read(data)
                self.assertEqual({**said, "file": ""}, {**want, "file": ""})
                self.assertEqual(got, rows)
        # Other formats, and commands that take the file itself.
        doc = snapshot(small())
        _, plain = self.take(doc)
        rows = self.rows(plain)
        self.assertEqual(self.read(gzip.compress(pickle.dumps(doc)))[1], rows)
        self.assertIn("a memory snapshot of PyTorch", self.ok("trace", self.dir / "h").stderr)
        self.assertEqual(self.read(gzip.compress((Rmm.HEAD + "1,10:00:00.000001,allocate,0x10,512,0").encode()))[0]["format"], "a log of RMM")

    def test_one_that_ends_in_the_middle(self):
        """What stands before is read, to the last whole line; where that is nothing it is an error."""
        text = self.many_lines(200).encode()
        _, rows = self.read(text)
        n_read = 0
        for of, step in ((text, 97), (gzip.compress(text, 1), 41)):
            for n in share(range(12, len(of), step), 3):
                (self.dir / "h").write_bytes(of[:n])
                p = run("import", self.dir / "h", "-o", self.dir / "t.db", "--json")
                if p.returncode == 3:
                    self.assertRegex(p.stderr, "ends before its first|no recording of a known tool")
                    continue
                self.assertEqual(p.returncode, 0, p.stderr)
                if not json.loads(p.stdout)["cut"]:
                    self.assertTrue(of is text and of[n - 1:n] == b"\n", n)
                got = self.rows(self.dir / "t.db")
                self.assertEqual(got, rows[:len(got)])
                n_read += len(got) > 0
        self.assertGreater(n_read, 5)
        (self.dir / "h").write_bytes(text[:-1])
        self.assertIn("note: the file ends in the middle", self.ok("import", self.dir / "h", "-o", self.dir / "t.db").stderr)
        (self.dir / "h").write_bytes(gzip.compress(pickle.dumps(snapshot(small())))[:-30])
        self.refused(3, "import", self.dir / "h", "-o", self.dir / "p.db", says=["cannot read"])
        self.assertFalse((self.dir / "p.db").exists())

    def test_damaged_ones(self):
        text = self.many_lines(100).encode()
        packed = [gzip.compress(text)] + ([self.zstd(text, "--check")] if shutil.which("zstd") else [])
        for data in packed:
            for at in share(range(4, len(data), max(1, len(data) // 25)), 2):
                changed = bytearray(data)
                changed[at] ^= 0x55
                (self.dir / "h").write_bytes(changed)
                p = run("import", self.dir / "h", "-o", self.dir / "t.db")
                self.assertIn(p.returncode, (0, 3), (at, p.stderr))  # 0: a byte of the head that says nothing
                if p.returncode == 3:
                    self.assertRegex(p.stderr, r"^error: .*(damaged|no recording of|ends before|cannot read)")
                    self.assertFalse((self.dir / "t.db").exists())
                (self.dir / "t.db").unlink(missing_ok=True)
        (self.dir / "h").write_bytes(gzip.compress(text)[:-8] + bytes(8))
        self.refused(3, "import", self.dir / "h", "-o", self.dir / "t.db", says=["packed in it (gzip) is damaged", "h: byte "])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["h"])

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers reserve addresses of their own")
    def test_bombs(self):
        """Lines without an end, and and ten million lines: memory is that of a line."""
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (300 * MIB, 300 * MIB))
        for text, code in ((b"v 10400 3\nX " + b"x" * (200 * MIB), 3), (b"v 10400 3\n" + b"X abc\n" * (10 * MIB), 0)):
            (self.dir / "h").write_bytes(gzip.compress(text, 1))
            p = run("import", self.dir / "h", "-o", self.dir / "t.db", preexec_fn=limit)
            self.assertEqual(p.returncode, code, p.stderr)
        (self.dir / "h").write_bytes(gzip.compress(b"SQLite format 3\0" + bytes(500)))
        self.refused(3, "import", self.dir / "h", "-o", self.dir / "t2.db", says=["but for SQLite"])


class Rmm(Made):
    HEAD = "Thread,Time,Action,Pointer,Size,Stream\n"

    def log(self, text, head=HEAD):
        path = self.dir / "log.csv"
        path.write_text(head + text)
        return path

    def taken(self, text, **kw):
        return self.json("import", self.log(text, **kw), "-o", self.dir / "t.db"), self.dir / "t.db"

    def test_a_log(self):
        said, out = self.taken("""11,23:59:59.999998,allocate,0x7f0000000000,1000,0x2
12,23:59:59.999999,allocate,0x7f0000001000,(nil),0
11,00:00:00.000001,free,0x7f0000000000,1000,0x2
12,00:00:01.5,allocate failure,(nil),1073741824,0xffffffffffffffff
12,00:00:02.000000,free,0xdead,8,0
11,00:00:03.000000,allocate,0x7f0000001000,24,0
11,00:00:04.000000,trim,0x0,0,0

""")
        self.assertEqual((said["events"], said["blocks"], said["unknown_frees"], said["contradictions"], said["unknown_events"]), (7, 3, 1, 1, 1))
        self.assertEqual(ask(out, "SELECT op, requested_bytes, stream, device, allocator, thread, t_ns - 86399999998000 FROM events ORDER BY event_id"), [
            ("alloc", 1000, 2, "cuda:0", "rmm", 11, 0), ("alloc", 0, 0, "cuda:0", "rmm", 12, 1000),
            ("free_completed", 1000, 2, "cuda:0", "rmm", 11, 3000), ("oom", 1 << 30, -1, "cuda:0", "rmm", 12, 1500002000),
            ("free_completed", 0, 0, "cuda:0", "rmm", 11, 3000002000), ("alloc", 24, 0, "cuda:0", "rmm", 11, 3000002000)])
        self.assertEqual(self.ok("trace", out, "--check").returncode, 0)
        self.ok("report", self.dir / "log.csv", "-o", self.dir / "r.html")

    def test_columns_in_any_order_and_more_of_them(self):
        said, out = self.taken("0,free,x,1,0x10,64,00:00:02.000000\n", head="Stream,Action,More,Thread,Pointer,Size,Time\r\n"
                               "0,allocate,x,1,0x10,64,00:00:01.000000\r\n")
        self.assertEqual((said["events"], ask(out, "SELECT requested_bytes, free_ns - alloc_ns FROM block")), (2, [(64, 10**9)]))

    def test_an_empty_log(self):
        said, out = self.taken("")
        self.assertEqual(said["events"], 0)
        self.ok("trace", out)

    def test_bad_lines(self):
        good = "1,00:00:00.000000,allocate,0x10,8,0"
        for place, value, says in ((0, "x", "Thread"), (0, "0", "Thread"), (0, str(1 << 40), "Thread"), (1, "24:00:00.0", "Time"), (1, "1:2", "Time"),
                                   (1, "00:00:00.0x", "Time"), (3, "?", "Pointer"), (3, "", "Pointer"), (4, "-1", "Size"), (4, str(1 << 63), "Size"),
                                   (4, str(1 << 70), "Size"), (5, "x", "Stream")):
            cells = good.split(",")
            cells[place] = value
            with self.subTest(value=value, place=place):
                path = self.log(good + "\n" + ",".join(cells) + "\n")
                self.refused(3, "import", path, "-o", self.dir / "t.db", says=[says, "log.csv:3"])
        self.refused(3, "import", self.log("1,00:00:00.0\n"), "-o", self.dir / "t.db", says=["Pointer"])
        self.refused(3, "import", self.log("x" * 5000), "-o", self.dir / "t.db", says=["Thread"])
        self.refused(3, "import", self.log("," * 40), "-o", self.dir / "t.db", says=["32 columns"])
        self.refused(3, "import", self.log("", head="Thread,Time,Action,Pointer,Size\n"), "-o", self.dir / "t.db", says=["'Stream'"])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["log.csv"])


class Tflm(Made):
    """What the recording interpreter of TensorFlow Lite Micro prints, in logs of several kinds."""
    CATEGORIES = [("TfLiteEvalTensor data", 360, 360, 15, "allocations"), ("Persistent TfLiteTensor data", 0, 0, 0, "tensors"),
                  ("Persistent buffer data", 640, 608, 10, "allocations"), ("NodeAndRegistration struct", 392, 392, 7, "NodeAndRegistration structs")]
    HEAD, TAIL = 7744, 1824

    def lines(self, head=HEAD, tail=TAIL, categories=None, old=False):
        mark = "[RecordingMicroAllocator]"
        out = [f"{mark} Arena allocation total {head + tail} bytes", f"{mark} Arena allocation head {head} bytes", f"{mark} Arena allocation tail {tail} bytes"]
        for name, used, requested, count, word in self.CATEGORIES if categories is None else categories:
            out.append(f"{mark} '{name}' used {used} bytes (requested {requested} bytes {count} times)" if old else
                       f"{mark} '{name}' used {used} bytes with alignment overhead (requested {requested} bytes for {count} {word})")
        return out

    def blocks(self, head=HEAD, tail=TAIL, categories=None):
        """As they follow from what was asked to be printed."""
        named = [(f"{name} ({count})", "Persistent", requested, used) for name, used, requested, count, _ in
                 (self.CATEGORIES if categories is None else categories) if used]
        rest = tail - sum(used for *_, used in named)
        return ([("head (not persistent)", "Workspace", head, head)] if head else []) + named + (
            [("tail, in no category", "Persistent", rest, rest)] if rest else [])

    def log(self, lines, end="\n"):
        path = self.dir / "serial.log"
        path.write_text(end.join([*lines, ""]), newline="")
        return path

    def taken(self, path):
        said = self.json("import", path, "-o", self.dir / "t.db")
        self.assertEqual(said["format"], "a log of TensorFlow Lite Micro's arena")
        return said, ask(self.dir / "t.db", "SELECT name, kind, requested_bytes, reserved_bytes FROM events WHERE op = 'alloc' ORDER BY event_id")

    def test_logs(self):
        plain = self.lines()
        serial = ["I (31) boot: ESP-IDF v5.1", *[f"I ({400 + k}) main: {l}" for k, l in enumerate(plain)], "W (999) wifi: off"]
        mixed = [x for l in plain for x in (l, "12:00:01.5 sensor: 17")]
        colours = [f"\x1b[0;32m{l}\x1b[0m " for l in plain]
        for lines, end in ((plain, "\n"), (serial, "\r\n"), (mixed, "\n"), (colours, "\n"), (self.lines(old=True), "\n"), (["x" * 200] * 4000 + plain, "\n")):
            said, blocks = self.taken(self.log(lines, end))
            self.assertEqual(blocks, self.blocks())
            self.assertEqual((said["events"], said["events_without_time"], said["blocks"]), (5, 5, 5))
        self.assertEqual(ask(self.dir / "t.db", "SELECT DISTINCT device, allocator FROM events"), [("cpu", "tflm")])
        live = self.json("trace", self.dir / "t.db", "--at", "end")
        self.assertEqual((live["moment"]["requested_bytes"], live["moment"]["reserved_bytes"]), (self.HEAD + self.TAIL - 32, self.HEAD + self.TAIL))
        self.assertEqual(self.ok("trace", self.dir / "t.db", "--check").returncode, 0)
        path = self.log(plain)
        packed = self.dir / "serial.log.gz"
        packed.write_bytes(gzip.compress(path.read_bytes()))
        self.assertEqual(self.taken(packed)[1], self.blocks())
        self.ok("report", path, "-o", self.dir / "r.html")
        self.ok("tui", path, "--once")

    def test_the_first_line_anywhere(self):
        for before in (16384 - 250, 16384 - 60, 16384 - 30, 16384 - 2, (1 << 20) - 200):
            self.assertEqual(self.taken(self.log(["x" * before, *self.lines()]))[1], self.blocks())
        self.refused(3, "import", self.log(["x" * (2 << 20), *self.lines()]), "-o", self.dir / "t.db", says=["known tool"])

    def test_several_prints(self):
        """The next one takes the place of the one before."""
        more = [("Operator runtime data", 136, 130, 5, "OpData structs")]
        said, blocks = self.taken(self.log(self.lines() + ["reset"] + self.lines(100, 200, more) + self.lines(0, 0, [])))
        self.assertEqual(blocks, self.blocks() + self.blocks(100, 200, more))
        self.assertEqual(ask(self.dir / "t.db", "SELECT count(*), count(free_ns) FROM block"), [(8, 8)])
        self.assertEqual(self.json("trace", self.dir / "t.db")["peak"]["bytes"], self.HEAD + self.TAIL - 32)

    def test_what_is_none(self):
        for text in ('MicroPrintf("[RecordingMicroAllocator] Arena allocation total %d bytes",', "[RecordingMicroAllocator] Arena allocation total",
                     "[RecordingMicroAllocator] Arena allocation head 8 bytes", "Arena allocation total 8 bytes", "[RecordingMicroAllocator]"):
            self.refused(3, "import", self.log([text]), "-o", self.dir / "t.db", says=["known tool"])

    def test_bad_lines(self):
        plain = ["boot", *self.lines()]
        for at, old, new, says, line in ((2, "7744", "7743", "are not its total", 2), (2, "7744", "-7744", "want 'Arena", 3), (2, "head", "heap", "want 'Arena", 3),
                                         (3, "tail", "head", "there twice", 4), (3, "1824 bytes", "1824", "want 'Arena", 4), (4, "used 360", "used x", "want ''NAME'", 5),
                                         (4, "used 360", "used 1361", "more than the arena's tail", 2), (4, "requested 360", "requested 361", "less than was asked", 5),
                                         (4, "'TfLite", "TfLite", "is not known", 5), (4, "allocations)", "allocations", "want ''NAME'", 5),
                                         (4, "used 360", f"used {1 << 31}", "want ''NAME'", 5), (4, "used 360", f"used {1 << 64}", "want ''NAME'", 5),
                                         (4, "allocations)", "allocations) x", "want ''NAME'", 5), (4, "'TfLiteEvalTensor data'", "''", "want ''NAME'", 5)):
            changed = list(plain)
            self.assertIn(old, changed[at])
            changed[at] = changed[at].replace(old, new, 1)
            with self.subTest(new=new, at=at):
                self.refused(3, "import", self.log(changed), "-o", self.dir / "t.db", says=[says, f"serial.log:{line}\n"])
        for lines, says in ((plain[:2], "no head or no tail"), (plain[:3], "no head or no tail"), (plain[:2] + plain[4:], "before head and tail"),
                            (plain[:1] + plain[2:3] + plain, "before its total"), (plain[:4] + plain[4:5] * 70, "more than")):
            self.refused(3, "import", self.log(lines), "-o", self.dir / "t.db", says=[says])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["serial.log"])
        rng = random.Random(8)
        text = "\n".join(plain).encode()
        for _ in share(range(25), 3):
            changed = bytearray(text)
            for _ in range(rng.choice([1, 3, 9])):
                changed[rng.randrange(len(changed))] = rng.choice(b"0123456789'()[] \n\0\xff")
            (self.dir / "serial.log").write_bytes(changed)
            self.assertIn(run("import", self.dir / "serial.log", "-o", self.dir / "t.db").returncode, (0, 3))


def at_the_peak(doc):
    """Blocks of the first device that are alive when most is, each with what counts and its frames from the innermost out."""
    events, known, before = doc["device_traces"][0], {}, []
    held = {b["address"]: b for s in doc["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
    for e in events:
        if e["action"] == "alloc":
            known[e["addr"]] = e
        elif e["action"] == "free_completed" and known.pop(e["addr"], None) is None:
            before.append((e["addr"], e["size"]))
    live = {a: (size, []) for a, size in before}
    live.update({a: (b["size"], b["frames"]) for a, b in held.items() if a not in known})
    total = best = sum(size for size, _ in live.values())
    out = list(live.values())
    for e in events:
        if e["action"] == "alloc":
            live[e["addr"]] = (e["size"], e["frames"])
            total += e["size"]
        elif e["action"] == "free_completed":
            total -= live.pop(e["addr"])[0]
        if total > best:
            best, out = total, list(live.values())
    return out


def shown_frames(frames):
    """Without those that only take the memory."""
    taking = ("torch::unwind", "CapturedTraceback", "gather_with_cpp", "CUDACachingAllocator")
    while len(frames) > 1 and any(t in frames[0]["name"] for t in taking):
        frames = frames[1:]
    return frames


def is_python(f):
    return f["filename"].endswith(".py") or f["filename"].startswith("<")


def library_of(f):
    if not is_python(f):
        return "(outside Python)"
    if "-packages/" in f["filename"]:
        return f["filename"].split("-packages/")[1].split("/")[0]
    return "python" if f["filename"][0] == "<" or "/lib/python" in f["filename"] else "the program"


def file_of(f):
    return f["filename"] if f["filename"] not in ("", "??") else "(no file)"


def function_of(f):
    return f["name"] + (" " + os.path.basename(f["filename"]) if is_python(f) else "")


def own_and_with_callees(blocks, key):
    """By key of a frame: blocks and bytes of those it leads, and of those that it is anywhere in."""
    out = collections.defaultdict(lambda: [0, 0, 0, 0])
    for size, frames in blocks:
        frames = shown_frames(frames)
        lines = [f for f in frames if is_python(f)]
        leading = ([f for f in lines if library_of(f) == "the program"] + lines + frames)[:1]
        for group in [key(f) for f in leading] or ["(no stack)"]:
            out[group][0] += 1
            out[group][1] += size
        for group in {key(f) for f in frames} or {"(no stack)"}:
            out[group][2] += 1
            out[group][3] += size
    return dict(out)


@unittest.skipUnless(SNAPSHOTS.is_dir(), "the folder of shared snapshots is not there")
class Real(Made):
    """Files of a real GPU; every figure is reckoned anew by Python from the pickle."""
    PEAKS_MIB = {"memory_ctx128_forward_": (18584, 18756), "memory_ctx128_fullstep": (52392, 58280), "memory_ctx256_forward_mixed": (27082, 27512)}

    def test_figures(self):
        for path in sorted(SNAPSHOTS.glob("*.pickle")):
            with self.subTest(path.name):
                doc = pickle.loads(path.read_bytes())
                out = self.dir / f"{path.name}.db"
                said = self.json("import", path, "-o", out)
                want = reckon(doc)[0]
                self.assertEqual((said["bytes_before"], said["contradictions"]), (want["before"], 0))
                self.assertEqual(ask(out, "SELECT peak_bytes FROM peak WHERE run_id = 0")[0][0], want["peak"])
                self.assertEqual(ask(out, "SELECT sum(requested_bytes) FROM block WHERE free_event IS NULL")[0][0], want["end"])
                reserved = ask(out, """SELECT sum(CASE op WHEN 'segment_alloc' THEN reserved_bytes WHEN 'segment_free' THEN -reserved_bytes END)
                                       FROM events""")[0][0]
                self.assertEqual(reserved, sum(s["total_size"] for s in doc["segments"]))
                if path.stem in self.PEAKS_MIB:
                    self.assertEqual((want["peak"] // MIB, reserved // MIB), self.PEAKS_MIB[path.stem])
                actions = collections.Counter(e["action"] for e in doc["device_traces"][0])
                ops = dict(ask(out, "SELECT op, count(*) FROM events GROUP BY op"))
                self.assertEqual(ops["alloc"], actions["alloc"] + said["blocks_before"])
                self.assertEqual((ops["free_completed"], ops["free_requested"]), (actions["free_completed"], actions["free_requested"]))
                # What blocks hold is made out of the events alone; the state at the end says it too.
                states = {b["address"]: b["size"] for s in doc["segments"] for b in s["blocks"] if b["state"] == "active_allocated"}
                held = {a % (1 << 64): r for a, r in ask(out, "SELECT address, reserved_bytes FROM block WHERE free_event IS NULL")}
                self.assertEqual(states.keys(), held.keys())
                self.assertEqual({a: (states[a], held[a]) for a in states if states[a] != held[a]}, {})
                self.assertEqual(said["inexact_blocks"], 0)
                for by in ("module", "function", "file", "library", "stack", "category", "scope"):
                    groups = self.json("trace", out, "--at", "peak", "--by", by)["groups"]
                    self.assertEqual(sum(g["requested_bytes"] for g in groups), want["peak"], by)

    def test_own_and_with_callees(self):
        """What each function, file and library allocated itself and holds with all that it called, against the pickle, to
        the byte; the report has the same, and one order is the other's rows."""
        for path in sorted(SNAPSHOTS.glob("*.pickle")):
            blocks = at_the_peak(pickle.loads(path.read_bytes()))
            out = self.dir / f"{path.name}.db"
            self.ok("import", path, "-o", out)
            for by, key in (("function", function_of), ("file", file_of), ("library", library_of)):
                with self.subTest(path.name, by=by):
                    groups = self.json("trace", out, "--at", "peak", "--by", by)["groups"]
                    row = lambda g: [g["blocks"], g["requested_bytes"], g["with_callees_blocks"], g["with_callees_bytes"]]
                    self.assertEqual({g["key"]: row(g) for g in groups}, own_and_with_callees(blocks, key))
                    sorted_groups = self.json("trace", out, "--at", "peak", "--by", by, "--sort", "callees")["groups"]
                    held = [g["with_callees_bytes"] for g in sorted_groups]
                    self.assertEqual(held, sorted(held, reverse=True))
                    self.assertCountEqual(map(json.dumps, sorted_groups), map(json.dumps, groups))
            rows = self.written(out, "r.json")["sides"][0]["peak_by_function"]
            self.assertEqual({r["function"]: [r["own_blocks"], r["own_bytes"], r["with_callees_blocks"], r["with_callees_bytes"]] for r in rows},
                             own_and_with_callees(blocks, function_of))
        self.refused(2, "trace", out, "--at", "peak", "--by", "category", "--sort", "own", says=["--sort"])

    def test_the_tree_of_calls(self):
        """Of the terminal view: each call holds what the blocks below it do, against the pickle; rows are a part of the calls."""
        path = SNAPSHOTS / "memory_ctx256_forward_mixed.pickle"
        want = collections.defaultdict(lambda: [0, 0])
        for size, frames in at_the_peak(pickle.loads(path.read_bytes())):
            where = ()
            for f in reversed(shown_frames(frames)):
                where += (f["name"] + (f" @ {f['filename']}:{f['line']}" if f["filename"] not in ("", "??") else ""),)
                want[where][0] += 1
                want[where][1] += size
        doc = json.loads(self.ok("tui", path, "--no-state", "--pane", "stacks", "--json").stdout)
        places, got = {None: ()}, {}
        for c in doc["calls"]:
            places[c["call"]] = places[c["caller"]] + (c["name"],)
            if not c["name"].startswith("aten::"):
                got[places[c["call"]]] = [c["blocks"], c["size_bytes"]]
        self.assertEqual(got, dict(want))
        top = [r for r in doc["rows"] if r["level"] == 0]
        self.assertEqual(sum(r["size_bytes"] for r in top) + doc["untold_bytes"], doc["live_bytes"])
        self.assertEqual([r["size_bytes"] for r in top], sorted((r["size_bytes"] for r in top), reverse=True))

    def test_the_peak_by_call_stack(self):
        """The table sums to the peak, fits the schema and stands in the page; each box of the picture is as wide as its bytes."""
        path = SNAPSHOTS / "memory_ctx128_forward_.pickle"
        for name in ("r.json", "r.html"):
            self.ok("report", path, "-o", self.dir / name)
        doc = json.loads((self.dir / "r.json").read_text())
        schema = json.loads((SOURCE / "docs" / "schemas" / "report.json").read_text())
        self.assertEqual(validators.schema_errors(self, schema, [doc]), [[]])
        rows = doc["sides"][0]["peak_by_stack"]
        self.assertEqual(sum(r["bytes"] for r in rows), doc["sides"][0]["peak"]["bytes"])
        traced = sum(r["bytes"] for r in rows if r["stack"] != "(no stack)")
        page = (self.dir / "r.html").read_text()
        part = page[page.index('<section class="stacks">'):]
        boxes = re.findall(r'<g><title>(.*?): [^:]*</title><rect class="\w+" x="([\d.]+)" y="(\d+)" width="([\d.]+)"', part[:part.index("</section>")])
        wide = collections.Counter()
        for name, _, y, width in boxes:
            wide[html.unescape(re.sub(r"<.*?>", "", name)), int(y) // 18] += float(width)
        for line, depth in ((0, 1), (3, 4), (4, 5)):
            for said in {r["stack"].split("; ")[line] for r in rows if r["stack"].count("; ") > line}:
                want = 1044 * sum(r["bytes"] for r in rows if r["stack"].split("; ")[line:line + 1] == [said]) / traced
                if want > 20:
                    self.assertAlmostEqual(wide[said, depth] / want, 1, delta=0.08, msg=(said, depth))

    def test_the_bar_of_the_peak(self):
        """Blocks of one name and one operator are one part of it: as many and as much as `trace` lists one by one."""
        for path in sorted(SNAPSHOTS.glob("*.pickle")):
            self.ok("report", path, "-o", self.dir / "r.html")
            page = (self.dir / "r.html").read_text()
            bar = page[page.index('class="peakbar"'):]
            parts = re.findall("<li>.*?<bdi>(.*?)</bdi></a> <b>(.*?)</b>", bar[:bar.index("</ol>")])
            sites = collections.defaultdict(list)
            for b in self.json("trace", path, "--at", "peak", "--rows", 0)["blocks"]:
                sites[b["name"], b["scope"]].append(b["requested_bytes"])
            largest = sorted(map(sum, sites.values()), reverse=True)[:10]
            names = [html.unescape(name) for name, _ in parts]
            count = len(sites["before recording", ""] or sites["before recording", None])
            self.assertIn(f"before recording ({count})", names)
            self.assertEqual(sum(name.startswith("before recording") for name in names), 1)
            held = [size for _, size in parts[:len(largest)]]
            for size, want in zip(held, largest):
                number, unit = size.split()
                self.assertAlmostEqual(float(number), want / 1024 ** ["B", "KiB", "MiB", "GiB"].index(unit), delta=0.006, msg=path.name)

    def test_other_settings(self):
        """The report tries settings of the allocator; its figures are those of replays, and the recorded ones where there
        are no settings."""
        path = SNAPSHOTS / "memory_ctx128_fullstep.pickle"
        side = lambda *more: self.written(path, "r.json", *more)["sides"][0]
        found = side()
        rows = {r["setting"]: r for r in found["settings"]}
        replays = {r["allocator"]: r for r in self.json("replay", path, "--allocator",
                   "pytorch:expandable_segments,pytorch:max_split_size=128MiB,pytorch:roundup_power2_divisions=8")["allocators"]}
        for setting, allocator in (("expandable_segments:True", "pytorch:expandable_segments"),
                                   ("max_split_size_mb:128", "pytorch:max_split_size=128MiB"),
                                   ("roundup_power2_divisions:8", "pytorch:roundup_power2_divisions=8")):
            self.assertEqual(rows[setting]["reserved_bytes"], replays[allocator]["reserved_peak_bytes"], setting)
        recorded = rows["(as recorded)"]
        self.assertEqual((recorded["reserved_bytes"], recorded["change_bytes"]), (58280 * MIB, 0))
        self.assertIn("12665 moments", recorded["note"])
        self.assertEqual(rows["(best placement)"]["reserved_bytes"], -(-found["peak"]["bytes"] // 512) * 512)
        self.ok("report", path, "-o", self.dir / "r.txt")
        self.assertRegex((self.dir / "r.txt").read_text(), r"With other settings +51\.84 GiB .*expandable_segments:True .*\(8\.9 %\) less")
        # With too little memory each says where it ends, and no setting is one that helps.
        rows = {r["setting"]: r for r in side("--capacity", "40GiB")["settings"]}
        self.assertGreater(rows["garbage_collection_threshold:0.8"]["failed"], 0)
        self.assertIsNone(rows["expandable_segments:True"]["reserved_bytes"])
        self.assertIn("no memory for", rows["(as recorded)"]["note"])
        self.ok("report", path, "-o", self.dir / "r.txt", "--capacity", "40GiB")
        self.assertRegex((self.dir / "r.txt").read_text(), "With other settings +no less")
        # A trace with another allocator has no such table.
        other = self.dir / "rmm.csv"
        other.write_text("Thread,Time,Action,Pointer,Size,Stream\n1,10:00:00.000001,allocate,0x10,512,0x0\n")
        self.assertNotIn("settings", self.written(other, "r.json")["sides"][0])

    def written(self, path, name, *more):
        self.ok("report", path, "-o", self.dir / name, *more)
        return json.loads((self.dir / name).read_text())

    def test_as_a_list(self):
        """What is alive in the list at most is the peak of the trace; any planner reads it."""
        for name, mib in (("memory_ctx128_fullstep", 52392), ("memory_ctx256_forward_mixed", 27082)):
            path = SNAPSHOTS / f"{name}.pickle"
            peak = self.json("trace", path)["peak"]["bytes"]
            self.assertEqual(peak >> 20, mib)
            for form in ("csv", "minimalloc"):
                out = self.dir / f"l.{form}"
                self.ok("export", path, "--to", form, "-o", out)
                rows = list(csv.DictReader(io.StringIO(out.read_text())))
                self.assertEqual(len({r["id"] for r in rows}), len(rows))
                changes = sorted((int(t), sign > 0, sign * int(r["size"])) for r in rows for t, sign in ((r["lower"], 1), (r["upper"], -1)))
                live = 0
                most = max(live := live + change for _, _, change in changes)
                self.assertTrue(most == peak if form == "csv" else peak <= most < peak + 512 * len(rows), form)
            plan = self.json("plan", self.dir / "l.csv")["plans"][0]
            self.assertTrue(peak <= plan["bytes"] < peak + 512 * len(rows) and plan["proven"])

    def test_the_first_answer(self):
        """What was reserved, what was live, and what was held for nothing."""
        self.ok("report", SNAPSHOTS / "memory_ctx128_fullstep.pickle", "-o", self.dir / "r.txt")
        text = (self.dir / "r.txt").read_text()
        self.assertIn("Peak reserved          56.91 GiB", text)
        self.assertIn("5.75 GiB more than is live", text)
        self.assertIn("51.16 GiB  live", text)


if __name__ == "__main__":
    tidemark.main()
