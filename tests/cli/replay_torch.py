# SPDX-License-Identifier: MIT
"""`tidemark replay` of memory snapshots of PyTorch: what the allocator `pytorch` has reserved, recorded by `replay -o` and read
by SQL, beside the segments of the pickle, read by Python; its settings beside a second allocator written here; a plan of the
same blocks beside the live bytes of the pickle."""
import bisect
import json
import os
import pickle
import random
import resource
import unittest

import tidemark
from tidemark import SHARED, Case, ask

MIB = 1 << 20
SNAPSHOTS = SHARED / "data" / "snapshots"
REAL = {"memory_ctx128_forward_": (18756, 18584), "memory_ctx128_fullstep": (58280, 52392),
        "memory_ctx256_forward_mixed": (27512, 27082)}  # MiB: reserved at the end, live peak (the README beside them)
ALLOC, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE = 1, 3, 4, 5
BASE = 0x7f0000000000


def before(snapshot):
    """What was there before the first event of device 0: segments as (address, bytes), blocks as (address, bytes)."""
    alive, begun, segments, blocks = set(), set(), [], []
    for e in snapshot["device_traces"][0]:
        where, what = e["addr"], e["action"]
        if what == "alloc":
            alive.add(where)
        elif what == "free_requested" and where not in alive:
            blocks.append((where, e["size"]))
            alive.add(where)
        elif what == "free_completed":
            alive.discard(where)
        elif what == "segment_alloc":
            begun.add(where)
        elif what == "segment_free" and where in begun:
            begun.discard(where)
        elif what == "segment_free":
            segments.append((where, e["size"]))
    for g in snapshot["segments"]:
        if g["address"] not in begun:
            segments.append((g["address"], g["total_size"]))
        blocks += [(b["address"], b["size"]) for b in g["blocks"] if b["state"] != "inactive" and b["address"] not in alive]
    return sorted(segments), sorted(blocks)


def recorded(snapshot):
    """Reserved bytes after each block that was given or freed, and the most that was live, in steps of 512 B."""
    segments, blocks = before(snapshot)
    reserved, curve = sum(size for _, size in segments), []
    live = {where: (size + 511) // 512 * 512 for where, size in blocks}
    now = peak = sum(live.values())
    for e in snapshot["device_traces"][0]:
        if e["action"] == "segment_alloc":
            reserved += e["size"]
        elif e["action"] == "segment_free":
            reserved -= e["size"]
        elif e["action"] == "alloc":
            live[e["addr"]] = (e["size"] + 511) // 512 * 512
            now += live[e["addr"]]
            peak = max(peak, now)
            curve.append(reserved)
        elif e["action"] == "free_completed":
            now -= live.pop(e["addr"])
            curve.append(reserved)
    return curve, len(blocks), peak


def replayed(path):
    """The same of the trace that a replay was recorded into."""
    reserved, curve = 0, []
    for op, size in ask(path, "SELECT op, reserved_bytes FROM event WHERE op IN (1, 3, 4, 5) ORDER BY id"):
        if op == SEGMENT_ALLOC:
            reserved += size
        elif op == SEGMENT_FREE:
            reserved -= size
        else:
            curve.append(reserved)
    return curve


class Allocator:
    """The rules once more: free blocks in sorted lists, one stream."""

    def __init__(self, divisions=0, max_split=1 << 60):
        self.divisions, self.max_split = divisions, max_split
        self.free, self.next, self.reserved, self.peak = {True: [], False: []}, 1, 0, 0

    def rounded(self, n):
        divisions = self.divisions(n) if callable(self.divisions) else self.divisions
        if divisions > 1 and n > 512 * divisions:
            floor = 1 << (n.bit_length() - 1)
            part = floor // divisions
            return n if n == floor else -(-n // part) * part
        return max(512, -(-n // 512) * 512)

    def put(self, block):
        block["free"] = True
        bisect.insort(self.free[block["small"]], (block["size"], block["at"], id(block), block))

    def drop(self, block):
        self.free[block["small"]].remove((block["size"], block["at"], id(block), block))
        block["free"] = False

    def alloc(self, n):
        need = self.rounded(n)
        small = need <= MIB
        i = bisect.bisect_left(self.free[small], (need,))
        block = self.free[small][i][3] if i < len(self.free[small]) else None
        if block is not None and (block["size"] >= self.max_split if need < self.max_split else block["size"] >= need + 20 * MIB):
            block = None
        if block is None:
            size = 2 * MIB if small else 20 * MIB if need < 10 * MIB else -(-need // (2 * MIB)) * 2 * MIB
            block = {"at": self.next, "size": size, "small": small, "free": False, "before": None, "after": None}
            self.next += size + 1
            self.reserved += size
            self.peak = max(self.peak, self.reserved)
        else:
            self.drop(block)
        rest = block["size"] - need
        if rest >= 512 if small else rest > MIB and need < self.max_split:
            other = {**block, "at": block["at"] + need, "size": rest, "before": block}
            if block["after"] is not None:
                block["after"]["before"] = other
            block.update(size=need, after=other)
            self.put(other)
        return block

    def release(self, block):
        after, first = block["after"], block["before"]
        if after is not None and after["free"]:
            self.drop(after)
            block.update(size=block["size"] + after["size"], after=after["after"])
            if block["after"] is not None:
                block["after"]["before"] = block
        if first is not None and first["free"]:
            self.drop(first)
            first.update(size=first["size"] + block["size"], after=block["after"])
            if first["after"] is not None:
                first["after"]["before"] = first
            block = first
        self.put(block)

    def empty(self):
        for blocks in self.free.values():
            for *_, block in list(blocks):
                if block["before"] is None and block["after"] is None:
                    self.drop(block)
                    self.reserved -= block["size"]


class Recorded(Allocator):
    """The same, and the snapshot that a program with these settings leaves behind."""

    def __init__(self, **settings):
        super().__init__(**settings)
        self.next, self.events, self.taken = 2 * MIB, [], []

    def add(self, action, block, size):
        self.events.append(event(action, block["at"], size, 10 + len(self.events)))

    def alloc(self, n):
        before = self.reserved
        block = super().alloc(n)
        if self.reserved != before:
            self.next = -(-self.next // (2 * MIB)) * 2 * MIB
            self.taken.append((block, self.reserved - before))
            self.add("segment_alloc", block, self.reserved - before)
        self.add("alloc", block, n)
        return block

    def release(self, block):
        for action in ("free_requested", "free_completed"):
            self.add(action, block, block["size"])
        super().release(block)

    def snapshot(self, **settings):
        segments = []
        for first, size in self.taken:
            blocks, block = [], first
            while block is not None:
                blocks.append((block["size"], "inactive" if block["free"] else "active_allocated"))
                block = block["after"]
            segments.append(segment(first["at"], size, blocks))
        return {"segments": segments, "device_traces": [self.events], "allocator_settings": settings, "external_annotations": []}


class Ranges:
    """Expandable segments once more: what is live as (begin, end) and pages by number, of each pool; what is free follows anew
    each time."""

    def __init__(self):
        self.live, self.pages, self.peak = {True: [], False: []}, {True: set(), False: set()}, 0

    def gaps(self, small):
        """Free and bare stretches between live ones, in the order of addresses: [is free, begin, end]."""
        page, out, at = (2 if small else 20) * MIB, [], 0
        for begin, end in self.live[small] + [(1 << 40, 1 << 40)]:
            while at < begin:
                mapped = at // page in self.pages[small]
                top = max(self.pages[small], default=-1) + 1
                stop = begin if at // page >= top else min(begin, (at // page + 1) * page)
                if out and out[-1][0] == mapped and out[-1][2] == at:
                    out[-1][2] = stop
                else:
                    out.append([mapped, at, stop])
                at = stop
            at = max(at, end)
        return out

    def alloc(self, n):
        need = max(512, -(-n // 512) * 512)
        small = need <= MIB
        page, gaps = (2 if small else 20) * MIB, self.gaps(small)

        def follows(i, is_free):
            return 0 < i < len(gaps) and gaps[i][1] == gaps[i - 1][2] and gaps[i][0] == is_free

        def grown(i):
            return gaps[i + 1 if follows(i + 1, False) else i][2] - gaps[i][1]

        fit = sorted((end - begin, begin, i) for i, (is_free, begin, end) in enumerate(gaps) if is_free and end - begin >= need)
        if fit:
            k = 0
            while k + 1 < len(fit) and grown(fit[k + 1][2]) < grown(fit[k][2]):
                k += 1
            at = fit[k][1]
        else:
            for i, (is_free, at, _) in enumerate(gaps):
                if is_free:
                    continue
                if i > 0 and gaps[i - 1][0] and gaps[i - 1][2] == at:
                    i, at = i - 1, gaps[i - 1][1]
                last = i
                while last + 1 < len(gaps) and gaps[last + 1][1] == gaps[last][2]:
                    last += 1
                if gaps[last][2] - at >= need:
                    break
            self.pages[small].update(range(at // page, -(-(at + need) // page)))
            self.peak = max(self.peak, 2 * MIB * len(self.pages[True]) + 20 * MIB * len(self.pages[False]))
        bisect.insort(self.live[small], (at, at + need))
        return small, at, at + need

    def release(self, block):
        self.live[block[0]].remove(block[1:])

    def empty(self):
        for small, page in ((True, 2 * MIB), (False, 20 * MIB)):
            for is_free, begin, end in self.gaps(small):
                if is_free:
                    self.pages[small] -= set(range(-(-begin // page), end // page))


class RecordedRanges(Ranges):
    """The same, and the snapshot of a program whose recording began when `record` was called. The two pools are far apart, as
    their ranges are."""
    BASES = {True: 2 * MIB, False: 2 * MIB + (1 << 39)}

    def __init__(self, stream=0):
        super().__init__()
        self.stream, self.events, self.is_recorded = stream, [], False

    def reserved(self):
        return 2 * MIB * len(self.pages[True]) + 20 * MIB * len(self.pages[False])

    def record(self):
        self.is_recorded = True

    def add(self, action, small, at, size):
        if self.is_recorded:
            self.events.append(event(action, self.BASES[small] + at, size, 10 + len(self.events), self.stream))

    def paged(self, action, before):
        for small, page in ((True, 2 * MIB), (False, 20 * MIB)):
            for i in sorted(before[small] ^ self.pages[small]):
                self.add(action, small, i * page, page)

    def alloc(self, n):
        before = {small: set(pages) for small, pages in self.pages.items()}
        block = super().alloc(n)
        self.paged("segment_map", before)
        self.add("alloc", block[0], block[1], n)
        return block

    def release(self, block):
        for action in ("free_requested", "free_completed"):
            self.add(action, block[0], block[1], block[2] - block[1])
        super().release(block)

    def empty(self):
        before = {small: set(pages) for small, pages in self.pages.items()}
        super().empty()
        self.paged("segment_unmap", before)

    def segments(self):
        out = []
        for small, page in ((True, 2 * MIB), (False, 20 * MIB)):
            for i in sorted(self.pages[small]):
                if i - 1 in self.pages[small]:
                    continue
                end = i
                while end in self.pages[small]:
                    end += 1
                first, behind, blocks, at = i * page, end * page, [], i * page
                for begin, stop in [b for b in self.live[small] if first <= b[0] < behind] + [(behind, behind)]:
                    blocks += [(begin - at, "inactive")] * (begin > at) + [(stop - begin, "active_allocated")] * (stop > begin)
                    at = stop
                out.append({**segment(self.BASES[small] + first, behind - first, blocks, self.stream), "is_expandable": True})
        return out


def peak_of(allocator, snapshot):
    """What it reserves at most for the blocks of a snapshot, those of before in the order of their addresses."""
    live = {where: allocator.alloc(size) for where, size in before(snapshot)[1]}
    latest = None
    for e in snapshot["device_traces"][0]:
        if e["action"] == "alloc":
            live[e["addr"]] = allocator.alloc(e["size"])
        elif e["action"] == "free_completed":
            allocator.release(live.pop(e["addr"]))
        elif e["action"] == "segment_free" and latest != "segment_free":
            allocator.empty()
        latest = e["action"]
    return allocator.peak


@unittest.skipUnless(SNAPSHOTS.is_dir(), "skipped: ../shared/data/snapshots is not here")
class Real(Case):
    """Snapshots of an 80 GB GPU, on a machine without one."""

    def each(self):
        for name, figures in REAL.items():
            path = self.dir / f"{name}.db"
            if not path.exists():
                self.ok("import", SNAPSHOTS / f"{name}.pickle", "-o", path)
            yield path, pickle.loads((SNAPSHOTS / f"{name}.pickle").read_bytes()), figures

    def test_reserved_at_every_moment(self):
        for path, snapshot, (end_mib, _) in self.each():
            out = self.dir / "replayed.db"
            doc = self.json("replay", path, "--allocator", "pytorch", "-o", out, "--form", "rows", "--force")
            want, n_before, _ = recorded(snapshot)
            got = replayed(out)[n_before:][:len(want)]
            self.assertEqual(len(got), len(want))
            apart = [(abs(a - b) / b, i) for i, (a, b) in enumerate(zip(got, want))]
            self.assertLessEqual(max(apart)[0], 0.01)
            self.assertEqual(got, want)  # to the byte
            a = doc["allocators"][0]
            self.assertEqual((a["end_reserved_bytes"], doc["recorded"]["end_reserved_bytes"]), (end_mib * MIB,) * 2)
            self.assertEqual((doc["device"], doc["simulated"], a["fits"]), ("sim:0", True, True))
            self.assertEqual(a["begins_with_segments"], len(before(snapshot)[0]))
            self.assertEqual(a["begins_with_bytes"], sum(size for _, size in before(snapshot)[0]))
            self.assertEqual(a["beside_recorded"]["moments_apart"], 0)
            self.assertEqual(a["emptied"], 1 if "mixed" in path.name else 0)
            self.assertEqual(self.json("trace", out, "--whole")["problems"], 0)

    def test_settings_beside_a_second_allocator(self):
        for path, snapshot, _ in self.each():
            for options, other in (("roundup_power2_divisions=4", Allocator(divisions=4)),
                                   ("max_split_size=64MiB", Allocator(max_split=64 * MIB)),
                                   ("roundup_power2_divisions=8,max_split_size=100MiB", Allocator(8, 100 * MIB)),
                                   ("expandable_segments", Ranges())):
                a = self.json("replay", path, "--allocator", f"pytorch:{options}")["allocators"][0]
                self.assertEqual(a["reserved_peak_bytes"], peak_of(other, snapshot), options)
                self.assertEqual((a["begins_with_segments"], a["allocator"]), (0, f"pytorch:{options}"))

    def test_a_plan_of_the_same_blocks(self):
        for path, snapshot, (end_mib, live_mib) in self.each():
            doc = self.json("replay", path, "--allocator", "pytorch", "--strategy", "search", "--strategy", "greedy_color")
            best, other = doc["plans"]
            live = recorded(snapshot)[2]
            self.assertEqual((best["strategy"], best["bytes"], best["lower_bound_bytes"], best["proven"]), ("search", live, live, True))
            self.assertLess(abs(live / MIB - live_mib), 1)
            self.assertGreaterEqual(other["bytes"], live)
            self.assertEqual(best["blocks"], doc["recorded"]["allocations"])
            text = self.ok("replay", path, "--strategy", "search").stdout
            self.assertIn("proven: none fits into less; recorded were", text)
            self.assertIn("plan: search", text)

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers reserve addresses of their own")
    def test_it_takes_no_memory(self):
        """57 GiB are replayed in 1 GiB of addresses."""
        p = tidemark.run("replay", SNAPSHOTS / "memory_ctx128_fullstep.pickle",
                         preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (1 << 30, 1 << 30)))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("simulated: addresses without memory", p.stdout)
        self.assertIn("has reserved what was recorded at each of", p.stdout)

    def test_limit(self):
        path, snapshot, _ = list(self.each())[1]
        for gib, fits in ((56, True), (50, False)):
            doc = self.json("replay", path, "--allocator", "pytorch", "--limit", f"{gib}GiB", code=0 if fits else 6)
            a = doc["allocators"][0]
            self.assertEqual((a["fits"], a["first_failure"] is None), (fits, fits))
            self.assertLessEqual(a["reserved_peak_bytes"], gib << 30)
            self.assertEqual(a["beside_recorded"]["reason"], "it has the memory of --limit")
        # By age nothing is kept that long: less is reserved than in the same memory without that setting.
        plain, by_age = self.json("replay", path, "--limit", "56GiB", "--allocator",
                                  "pytorch,pytorch:garbage_collection_threshold=0.8")["allocators"]
        self.assertGreater(plain["reserved_peak_bytes"], by_age["reserved_peak_bytes"])
        self.assertGreater(plain["reserved_peak_bytes"], 55 << 30)


def event(action, at, size, t, stream=0):
    return {"action": action, "addr": BASE + at, "size": size, "stream": stream, "time_us": t, "frames": []}


def segment(at, size, blocks, stream=0):
    """Blocks as (bytes, state), one behind the other."""
    out, where = [], at
    for held, state in blocks:
        out.append({"address": BASE + where, "size": held, "requested_size": held, "state": state, "frames": []})
        where += held
    return {"device": 0, "address": BASE + at, "total_size": size, "stream": stream, "segment_type": "large", "blocks": out,
            "is_expandable": False}


class ByHand(Case):
    """Small snapshots, in which each figure is seen."""

    def made(self, segments, *events):
        path = self.dir / "s.pickle"
        with open(path, "wb") as f:
            pickle.dump({"segments": segments, "device_traces": list(events), "allocator_settings": {}, "external_annotations": []}, f)
        return path

    def test_it_begins_where_the_blocks_lay(self):
        """|2 free|6 held|12 free|: 13 MiB have no room, as they would have if the block lay at the begin; 3 and 2 have."""
        events = [event("segment_alloc", 64 * MIB, 14 * MIB, 10), event("alloc", 64 * MIB, 13 * MIB, 10),
                  event("alloc", 8 * MIB, 3 * MIB, 11), event("alloc", 0, 2 * MIB, 12)]
        path = self.made([segment(0, 20 * MIB, [(2 * MIB, "active_allocated"), (6 * MIB, "active_allocated"),
                                                (3 * MIB, "active_allocated"), (9 * MIB, "inactive")]),
                          segment(64 * MIB, 14 * MIB, [(14 * MIB, "active_allocated")])], events)
        doc = self.json("replay", path, "--allocator", "pytorch,cuda_caching")
        a, other = doc["allocators"]
        self.assertEqual((a["begins_with_segments"], a["begins_with_bytes"]), (1, 20 * MIB))
        self.assertEqual((a["reserved_peak_bytes"], a["beside_recorded"]["moments"], a["beside_recorded"]["moments_apart"]),
                         (34 * MIB, 3, 0))
        self.assertEqual((other["reserved_peak_bytes"], other["begins_with_segments"], other["beside_recorded"]), (40 * MIB, 0, None))
        self.assertIn("begins with the 1 segment of before", self.ok("replay", path).stdout)

    def test_a_free_that_waits(self):
        """What a stream still uses is not given out again: the second 30 MiB are a segment of their own."""
        events = [event("segment_alloc", 0, 30 * MIB, 10), event("alloc", 0, 30 * MIB, 11), event("free_requested", 0, 30 * MIB, 12),
                  event("segment_alloc", 64 * MIB, 30 * MIB, 13), event("alloc", 64 * MIB, 30 * MIB, 14),
                  event("free_completed", 0, 30 * MIB, 15), event("alloc", 0, 30 * MIB, 16)]
        path = self.made([segment(0, 30 * MIB, [(30 * MIB, "active_allocated")]),
                          segment(64 * MIB, 30 * MIB, [(30 * MIB, "active_allocated")])], events)
        doc = self.json("replay", path, "--allocator", "pytorch", "--strategy", "search")
        a = doc["allocators"][0]
        self.assertEqual((a["reserved_peak_bytes"], a["beside_recorded"]["moments_apart"], a["end_reserved_bytes"]),
                         (60 * MIB, 0, 60 * MIB))
        self.assertEqual((doc["plans"][0]["bytes"], doc["plans"][0]["proven"]), (60 * MIB, True))

    def test_what_differs_is_said(self):
        """Recorded with another rule: 30 MiB that were not taken from a free segment of 40."""
        events = [event("segment_alloc", 0, 40 * MIB, 10), event("alloc", 0, 40 * MIB, 11), event("free_requested", 0, 40 * MIB, 12),
                  event("free_completed", 0, 40 * MIB, 13), event("segment_alloc", 64 * MIB, 30 * MIB, 14),
                  event("alloc", 64 * MIB, 30 * MIB, 15)]
        path = self.made([segment(0, 40 * MIB, [(40 * MIB, "inactive")]),
                          segment(64 * MIB, 30 * MIB, [(30 * MIB, "active_allocated")])], events)
        a = self.json("replay", path, "--allocator", "pytorch")["allocators"][0]["beside_recorded"]
        self.assertEqual((a["moments_apart"], a["worst"]["recorded_bytes"], a["worst"]["replayed_bytes"]), (1, 70 * MIB, 40 * MIB))
        self.assertIn("other settings", a["reason"])
        self.assertIn("40.00 MiB, not 70.00 MiB (42.86 %); the recorded program had other settings",
                      self.ok("replay", path, "--allocator", "pytorch").stdout)

    def test_the_cache_is_emptied_when_it_was(self):
        events = [event("segment_alloc", 0, 40 * MIB, 10), event("alloc", 0, 40 * MIB, 11), event("free_requested", 0, 40 * MIB, 12),
                  event("free_completed", 0, 40 * MIB, 13), event("segment_free", 0, 40 * MIB, 14),
                  event("segment_alloc", 64 * MIB, 30 * MIB, 15), event("alloc", 64 * MIB, 30 * MIB, 16)]
        path = self.made([segment(64 * MIB, 30 * MIB, [(30 * MIB, "active_allocated")])], events)
        doc = self.json("replay", path)
        self.assertEqual([a["allocator"] for a in doc["allocators"]], ["pytorch", "cuda_caching", "cuda_vmm"])
        for a in doc["allocators"]:
            self.assertEqual(a["emptied"], 1)
        self.assertEqual([a["end_reserved_bytes"] for a in doc["allocators"]], [30 * MIB, 30 * MIB, 40 * MIB])
        self.assertIn("gave back what was kept 1 time", self.ok("replay", path).stdout)

    def test_two_devices(self):
        """Each has an allocator of its own, which begins with its segments; their addresses are the same."""
        events = [event("segment_alloc", 64 * MIB, 20 * MIB, 10), event("alloc", 64 * MIB, 4 * MIB, 11)]
        held = segment(0, 20 * MIB, [(20 * MIB, "active_allocated")])
        path = self.made([held, {**held, "device": 1}], events, events)
        for name in ("pytorch", "as_recorded"):
            a = self.json("replay", path, "--allocator", name)["allocators"][0]
            self.assertEqual((a["begins_with_segments"], a["begins_with_bytes"], a["reserved_peak_bytes"]), (2, 40 * MIB, 80 * MIB))
            self.assertEqual((a["beside_recorded"]["moments"], a["beside_recorded"]["moments_apart"]), (2, 0))
        for device in ("cuda:0", "cuda:1"):
            a = self.json("replay", path, "--allocator", "pytorch", "--of", device)["allocators"][0]
            self.assertEqual((a["begins_with_segments"], a["reserved_peak_bytes"], a["beside_recorded"]["moments_apart"]),
                             (1, 40 * MIB, 0))
        out = self.dir / "r.json"
        self.ok("report", path, "-o", out)
        rows = json.loads(out.read_text())["sides"][0]["settings"]
        self.assertEqual([(r["device"], r["reserved_bytes"]) for r in rows if r["setting"] == "(as recorded)"],
                         [("cuda:0", 40 * MIB), ("cuda:1", 40 * MIB)])
        self.assertEqual([r["device"] for r in rows], ["cuda:0"] * (len(rows) // 2) + ["cuda:1"] * (len(rows) // 2))

    def test_settings_of_the_recorded_program(self):
        """A program that ran with settings is replayed with them: the same at every moment, and not without them."""
        of_size = lambda n: 1 if n < 4 * MIB else 2 if n < 8 * MIB else 8
        mib = {str(1 << i): (1 if i < 2 else 2 if i < 3 else 8) for i in range(16)}
        for allocator, settings, text in (
                (Recorded(divisions=4), {"roundup_power2_divisions": {k: 4 for k in mib}}, "roundup_power2_divisions=4"),
                (Recorded(divisions=of_size), {"roundup_power2_divisions": mib}, "roundup_power2_divisions=[2:1,4:2,>:8]"),
                (Recorded(max_split=32 * MIB), {"max_split_size": 32 * MIB}, "max_split_size=33554432")):
            rng, live = random.Random(5), []
            for _ in range(400):
                if live and rng.random() < 0.45:
                    allocator.release(live.pop(rng.randrange(len(live))))
                else:
                    live.append(allocator.alloc(int(2 ** rng.uniform(8, 26))))
            path = self.dir / "s.pickle"
            path.write_bytes(pickle.dumps(allocator.snapshot(max_split_size=-1, PYTORCH_CUDA_ALLOC_CONF="", **settings)
                                          if "max_split_size" not in settings else allocator.snapshot(PYTORCH_CUDA_ALLOC_CONF="", **settings)))
            doc = self.json("replay", path, "--allocator", "pytorch,pytorch:")
            with_them, without = doc["allocators"]
            self.assertEqual(doc["recorded"]["settings"], text)
            self.assertEqual((with_them["beside_recorded"]["moments_apart"], with_them["reserved_peak_bytes"]), (0, allocator.peak))
            self.assertGreater(with_them["beside_recorded"]["moments"], 300)
            self.assertGreater(without["beside_recorded"]["moments_apart"], 0)
            self.assertIn(f"with the settings of the recorded program: {text}", self.ok("replay", path).stdout)
            out = self.dir / "r.json"
            self.ok("report", path, "-o", out)
            rows = {r["setting"]: r for r in json.loads(out.read_text())["sides"][0]["settings"]}
            self.assertEqual(rows["(as recorded)"]["reserved_bytes"], allocator.peak)
            self.assertIn(f"with {text}: the same", rows["(as recorded)"]["note"])
            self.assertEqual(rows["(no settings)"]["reserved_bytes"], without["reserved_peak_bytes"])

    def test_expandable_segments_of_before(self):
        """What a program had mapped before it was recorded is begun with: reserved is what it had at each moment after."""
        for seed, empties in ((1, False), (2, True), (3, True), (4, True)):
            rng, live, allocator = random.Random(seed), [], RecordedRanges()

            def work(n):
                for _ in range(n):
                    if live and rng.random() < 0.48:
                        allocator.release(live.pop(rng.randrange(len(live))))
                    else:
                        live.append(allocator.alloc(int(2 ** rng.uniform(8, 26))))
            work(150)
            if empties:
                while len(live) > 20:
                    allocator.release(live.pop(rng.randrange(len(live))))
                allocator.empty()
                work(20)
            mapped = allocator.reserved()
            allocator.record()
            work(150)
            if empties:
                allocator.empty()
                work(50)
            path = self.dir / "s.pickle"
            path.write_bytes(pickle.dumps({"segments": allocator.segments(), "device_traces": [allocator.events],
                                           "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "expandable_segments": True}, "external_annotations": []}))
            doc = self.json("replay", path, "--allocator", "pytorch,pytorch:expandable_segments")
            a, anew = doc["allocators"]
            self.assertEqual(doc["recorded"]["settings"], "expandable_segments")
            self.assertEqual((a["begins_with_bytes"], a["end_reserved_bytes"]), (mapped, allocator.reserved()), seed)
            self.assertEqual(a["beside_recorded"]["moments_apart"], 0, (seed, a["beside_recorded"]))
            self.assertGreater(a["beside_recorded"]["moments"], 100)
            self.assertEqual(anew["begins_with_bytes"], 0)

    def test_private_pools(self):
        """A CUDA graph's pool keeps its memory to itself: what is free in it serves nothing else, and the other way round."""
        usual, graph, live, rng = Recorded(), Recorded(), [], random.Random(11)
        graph.next, graph.events = 1 << 40, usual.events  # one list of events, another place
        for _ in range(400):
            if live and rng.random() < 0.5:
                allocator, block = live.pop(rng.randrange(len(live)))
                allocator.release(block)
            else:
                allocator = rng.choice((usual, graph))
                live.append((allocator, allocator.alloc(int(2 ** rng.uniform(8, 26)))))
        held = usual.snapshot(PYTORCH_CUDA_ALLOC_CONF="")
        own = [{**s, "segment_pool_id": (0, 1)} for s in graph.snapshot()["segments"]]
        shared = dict(held, segments=held["segments"] + [{**s, "segment_pool_id": (0, 0)} for s in own])
        held["segments"] += own
        path = self.dir / "s.pickle"
        for doc, n_apart in ((held, 0), (shared, 1)):
            path.write_bytes(pickle.dumps(doc))
            a = self.json("replay", path, "--allocator", "pytorch")["allocators"][0]
            self.assertEqual(min(1, a["beside_recorded"]["moments_apart"]), n_apart)
            self.assertGreater(a["beside_recorded"]["moments"], 350)
        path.write_bytes(pickle.dumps(held))
        other = self.json("replay", path, "--allocator", "pytorch:max_split_size=32MiB")["allocators"][0]
        self.assertGreaterEqual(other["reserved_peak_bytes"], a["reserved_peak_bytes"])  # apart with settings too
        self.ok("import", path, "-o", self.dir / "t.db", "--force")
        got = dict(ask(self.dir / "t.db", """SELECT allocator, sum(reserved_bytes) FROM events WHERE op = 'segment_alloc' GROUP BY 1"""))
        self.assertEqual(got, {"pytorch": usual.reserved, "pytorch pool 0.1": graph.reserved})

    def test_a_pool_takes_an_address_over(self):
        """A segment of the end is of its pool from its last segment_alloc on."""
        twice = [event("segment_alloc", 0, 40 * MIB, 10), event("alloc", 0, 40 * MIB, 11), event("free_requested", 0, 40 * MIB, 12),
                 event("free_completed", 0, 40 * MIB, 13), event("segment_free", 0, 40 * MIB, 14),
                 event("segment_alloc", 0, 40 * MIB, 15), event("alloc", 0, 40 * MIB, 16), event("alloc", 64 * MIB, 2 * MIB, 17)]
        private = {**segment(0, 40 * MIB, [(40 * MIB, "active_allocated")]), "segment_pool_id": (3, 0)}
        before_it = {**segment(64 * MIB, 20 * MIB, [(2 * MIB, "active_allocated"), (18 * MIB, "inactive")]), "segment_pool_id": (0, 7)}
        path = self.made([private, before_it], twice)
        self.ok("import", path, "-o", self.dir / "t.db")
        self.assertEqual(ask(self.dir / "t.db", "SELECT op, allocator FROM events WHERE op LIKE '%alloc' ORDER BY event_id"),
                         [("segment_alloc", "pytorch pool 0.7"), ("segment_alloc", "pytorch"), ("alloc", "pytorch"),
                          ("segment_alloc", "pytorch pool 3.0"), ("alloc", "pytorch pool 3.0"), ("alloc", "pytorch pool 0.7")])
        a = self.json("replay", path, "--allocator", "pytorch")["allocators"][0]
        self.assertEqual((a["beside_recorded"]["moments_apart"], a["end_reserved_bytes"]), (0, 60 * MIB))
        bad = {**private, "segment_pool_id": (-1, 0)}
        self.refused(3, "import", self.made([bad], twice), "-o", self.dir / "u.db", says=["segment_pool_id"])

    def test_nothing_in_it(self):
        path = self.made([], [])
        doc = self.json("replay", path, "--allocator", "pytorch", "--strategy", "search")
        self.assertEqual((doc["allocators"][0]["reserved_peak_bytes"], doc["plans"][0]["bytes"]), (0, 0))

    def test_names(self):
        path = self.made([segment(0, 20 * MIB, [(20 * MIB, "active_allocated")])], [])
        every = "max_split_size=512MiB,roundup_power2_divisions=4,garbage_collection_threshold=0.8,expandable_segments"
        doc = self.json("replay", path, "--allocator", f"pytorch,pytorch:{every},cuda_vmm", "--allocator", "pytorch:expandable_segments")
        self.assertEqual([a["allocator"] for a in doc["allocators"]],
                         ["pytorch", f"pytorch:{every}", "cuda_vmm", "pytorch:expandable_segments"])
        snapshot, path = path, self.dir / "s.db"
        self.ok("import", snapshot, "-o", path)
        self.refused(2, "replay", path, "--allocator", "pytorch:max_split=3", says=["no option 'max_split=3'", "max_split_size="])
        self.refused(2, "replay", path, "--allocator", "pytorch:max_split_size=1MiB", says=["max_split_size=1MiB", "above 20 MiB"])
        self.refused(2, "replay", path, "--allocator", "pytorch,cpu", says=["cpu", "sim:0"])
        self.refused(3, "replay", path, "--allocator", "pytorch", "--device", "cpu", says=["--device sim"])
        self.refused(3, "replay", path, "--device", "sim", "--check", says=["contents cannot be checked on sim:0"])
        self.refused(3, "replay", path, "--device", "sim:1", says=["one sim device"])
        names = [n["name"] for n in self.json("allocators", "--device", "sim")["named"]]
        self.assertEqual(names, ["pytorch", "pytorch:expandable_segments", "cuda", "cuda_caching", "cuda_vmm"])
        for name in names:
            self.ok("replay", path, "--device", "sim", "--allocator", name)
        self.assertNotIn("sim", self.ok("devices").stdout.split())  # it is no device of this machine


if __name__ == "__main__":
    tidemark.main()
