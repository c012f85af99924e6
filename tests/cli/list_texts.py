# SPDX-License-Identifier: MIT
"""Plans of other compilers, as they write them in texts, as lists of lifetimes. The files are made here after what their writers write; every figure is reckoned
here too, by plain loops over what was made and not over what was written."""
import json
import os
import random
import shutil

import tidemark
from tidemark import Case


def union_of(stretches):
    """Bytes of stretches (begin, end), each once."""
    total, reach = 0, 0
    for lo, hi in sorted(stretches):
        total += max(0, hi - max(lo, reach))
        reach = max(reach, hi)
    return total


class Buffer:
    """A buffer with a place in the file's own plan; it is needed from step `begin` to step `end`, both included."""

    def __init__(self, name, size, begin, end, **more):
        self.name, self.size, self.begin, self.end, self.offset, self.group = name, size, begin, end, None, None
        self.phi, self.space, self.like = False, 0, None  # like: lies where that one lies
        self.__dict__.update(more)

    def meets(self, other):
        return self.begin <= other.end and other.begin <= self.end


def lay(buffers, align):
    """Each at the lowest place where nothing lies that is needed when it is: first fit. @return bytes of it all"""
    placed = []
    for b in buffers:
        if b.like is not None:
            b.offset = b.like.offset
        else:
            family = [b] + [c for c in buffers if c.like is b]
            at = 0
            for lo, hi in sorted((p.offset, p.offset + p.size) for p in placed if any(p.meets(f) for f in family)):
                if at + b.size <= lo:
                    break
                at = max(at, -(-hi // align) * align)
            b.offset = at
        placed.append(b)
    return max((b.offset + b.size for b in buffers), default=0)


def bound_of(buffers, steps):
    """The most bytes that are needed in a step, what lies at the same bytes of one group once."""
    best = 0
    for t in range(steps):
        groups = {}
        for b in buffers:
            if b.begin <= t <= b.end:
                groups.setdefault(b.group or id(b), []).append((b.offset, b.offset + b.size))
        best = max(best, sum(union_of(g) for g in groups.values()))
    return best


def roots(tensors):
    """Which tensors lie together: the name of the one that each lies in at last."""
    inside = {t["name"]: t["alias"]["of"] for t in tensors if "alias" in t}

    def root(name):
        return root(inside[name]) if name in inside else name
    return {t["name"]: root(t["name"]) for t in tensors}


class Lists(Case):
    def listed(self, path):
        return json.loads(self.ok("export", path, "--to", "json").stdout)

    def every_command(self, path):
        """Takes the file itself, as a list."""
        self.ok("report", path, "-o", self.dir / "r.html")
        self.ok("tui", path, "--once")
        self.ok("export", path, "--to", "c-header")
        self.ok("diff", path, path)
        self.ok("sweep", path, "--json")
        config = self.dir / "tidemark.toml"
        config.write_text(f'version = 1\nbaseline = "b.json"\n[[model]]\npath = "{path.name}"\n')
        self.ok("check", "--update-baseline", "--reason", "new", "--by", "A", cwd=self.dir)
        self.ok("check", cwd=self.dir)
        self.ok("plan", path, "--all")
        self.ok("plan", path, "-o", self.dir / "p.json")
        self.ok("plan", self.dir / "p.json")


class Xla(Lists):
    """Modules as XLA dumps them."""
    STEM = "module_0001.jit_f.cpu_after_optimizations"

    def module(self, rng, steps, n, align=64):
        """Values of temporary memory: some overwrite what they read (the next one begins where the last one ends), some are what a loop
        hands on."""
        temps = []
        for k in range(n):
            begin = rng.randrange(steps)
            b = Buffer(f"fusion.{k}", rng.choice([0, 4, 100, 1000, 4096, 70000]), begin, min(steps - 1, begin + rng.randrange(6)))
            temps.append(b)
            while rng.random() < 0.3 and b.size and b.end + 1 < steps:
                c = Buffer(f"{b.name}.i{{{rng.randrange(3)},{k}}}", b.size, b.end, min(steps - 1, b.end + rng.randrange(1, 4)))
                c.like = b.like or b
                c.group = b.group = b.group or f"g{k}"
                temps.append(c)
                b = c
        size = lay(temps, align)
        rng.shuffle(temps)
        return temps, size

    def texts(self, temps, size, steps, rest=True, old=False):
        """The two parts. `old`: with addresses and no bars, as older versions write them."""
        out, total, number = ["BufferAssignment:"], size, 0
        bar, address = ("", "0x7f00, ") if old else ("|", "")

        def allocation(bytes_, words):
            nonlocal number
            out.append(f"allocation {number}: {address}size {bytes_}{words}:")
            number += 1
        ranges, names = [], [f"op.{k}" for k in range(steps)]
        if rest:
            allocation(640, f", parameter 0, shape {bar}(f32[4,8], f32[128]){bar} at ShapeIndex {{1}}")
            out.append(" value: <900 arg{1} @0> (size=640,offset=0): f32[160]{0}")
            allocation(12, f", parameter 1, shape {bar}f32[3]{bar} at ShapeIndex {{}}, maybe-live-out")
            out.append(" value: <901 donated @0> (size=12,offset=0): f32[3]{0}")
            out.append(" value: <902 updated @0> (size=12,offset=0): f32[3]{0}")
            allocation(48, f", output shape is {bar}(f32[2,3], f32[6]){bar}, maybe-live-out")
            out.append(" value: <903 early @0> (size=24,offset=0): f32[6]{0}")
            out.append(" value: <904 result{} @0> (size=48,offset=0): (f32[6]{0}, /*index=1*/f32[6]{0})")
            allocation(8, ", constant")
            out.append(" value: <905 constant.3 @0> (size=8,offset=0): s64[]")
            allocation(4, ", thread-local")
            out.append(" value: <906 lhs @0> (size=4,offset=0): f32[]")
            allocation(4, ", thread-local")
            out.append(" value: <907 rhs> (size=4,offset=0): f32[]")
            total += 640 + 12 + 48 + 8 + 8
            ranges += [f"    arg{{1}}:0-{steps}", "    donated{}:0-1", f"    updated{{}}:1-{steps}", "    early{}:0-0",
                       f"    result{{}}:{steps - 1}-{steps}", "    constant.3{}:0-1"]
        allocation(size, ", preallocated-temp")
        for k, b in enumerate(temps):
            out.append(f" value: <{k} {b.name}{' (phi)' if b.phi else ''} @0> (size={b.size},offset={b.offset}): u8[{b.size}]{{0}}")
            ranges.append(f"    {b.name if '{' in b.name else b.name + '{}'}:{b.begin}-{b.end}")
        places = "\n".join(out) + "\n"
        if old:
            places += f"\nTotal bytes used: {total} (1KiB)\n\nUsed values:\n<0 fusion.0 @0>\n positions:\n  fusion.0\n uses:\n from instruction:%x\n"
        live = "\n".join([f"HloLiveRange (max {steps}):", "  InstructionSequence:", *[f"    {k}:{n}" for k, n in enumerate(names)],
                          "  BufferLiveRange:", *ranges, "  Live ranges at 3 (peak):", "    x{}: 8 bytes (cumulative: 8 bytes)",
                          "  Stack trace breakdown for peak usage: 8 bytes", "      ├── x (100.0%)"]) + "\n"
        return places, live

    def write(self, places, live, one=False):
        a, b = self.dir / f"{self.STEM}-buffer-assignment.txt", self.dir / f"{self.STEM}-live-range.txt"
        a.write_text(places + "\n\n" + live if one else places)
        b.unlink(missing_ok=True)
        if not one:
            b.write_text(live)
        return a, b

    def together(self, temps):
        """The rule of docs/interchange.md, pair by pair. @return for each name those that it lies with"""
        with_ = {b.name: {b.name} for b in temps}

        def bind(a, b):
            whole = with_[a.name] | with_[b.name]
            for name in whole:
                with_[name] = whole
        for a in temps:
            for b in temps:
                same = a.size and (a.offset, a.size) == (b.offset, b.size)
                if a is b or not same:
                    continue
                phi = any(c.phi and (c.offset, c.size) == (a.offset, a.size) for c in temps)
                chain = [c for c in temps if (c.offset, c.size) == (a.offset, a.size) and c.begin <= b.begin and c is not b]
                if phi or (chain and max(c.end for c in chain) >= b.begin - 1 and a in chain and a.end == max(c.end for c in chain)):
                    bind(a, b)
        return with_

    def check(self, path, temps, size, steps, rest=True):
        doc = self.listed(path)
        by_name = {t["name"]: t for t in doc["tensors"]}
        self.assertEqual(len(by_name), len(temps) + (4 if rest else 0))
        self.assertEqual((doc["n_steps"], doc["order"][-1], len(doc["order"])), (steps + 1, "(end)", steps + 1))
        align = min([256] + [b.offset & -b.offset for b in temps if b.offset])
        for b in temps:
            t = by_name[b.name]
            self.assertEqual((t["size_bytes"], t["begin"], t["end"], t["persistent"], t["kind"], t["role"], t["align_bytes"], t["unrounded"]),
                             (b.size, b.begin, b.end + 1, False, "Workspace", "intermediate", align, True), b.name)
        found = roots([t for t in doc["tensors"] if not t["persistent"]])
        for name, others in self.together(temps).items():
            self.assertEqual({n for n in found if found[n] == found[name]}, others, name)
        if rest:
            self.assertEqual({n: (t["size_bytes"], t["role"], t["kind"]) for n, t in by_name.items() if t["persistent"]},
                             {"arg{1}": (640, "input", "Default"), "donated": (12, "input", "Default"), "result": (48, "output", "Default"),
                              "constant.3": (8, "weight", "Persistent")})
        plan = self.json("plan", path)
        best = plan["plans"][0]
        self.assertEqual(plan["given_plan_bytes"], size)
        self.assertEqual(best["lower_bound_bytes"], bound_of(temps, steps))
        self.assertTrue(best["verified"])
        self.assertLessEqual(best["lower_bound_bytes"], size)
        return best

    def test_modules(self):
        better = 0
        for seed in tidemark.share(range(24), 4):
            rng = random.Random(seed)
            steps, n = rng.choice([(3, 2), (8, 12), (30, 60)])
            temps, size = self.module(rng, steps, n, rng.choice([16, 64, 256]))
            if size == 0:
                continue
            places, live = self.texts(temps, size, steps, old=seed % 3 == 2)
            with self.subTest(seed=seed):
                a, b = self.write(places, live, one=seed % 3 > 0)
                best = self.check(a, temps, size, steps)
                better += best["bytes"] < size
                if seed % 3 == 0:  # either of the two will do
                    self.assertEqual(self.listed(a)["tensors"], self.listed(b)["tensors"])
        self.assertGreater(better, 0)

    def test_what_a_loop_hands_on(self):
        """The parameter of its body and what the body returns are one, though none of them is needed between."""
        temps = [Buffer("param{0}", 512, 1, 3, offset=0, phi=True, group="l"), Buffer("next", 512, 6, 8, offset=0, group="l"),
                 Buffer("other", 256, 4, 5, offset=0), Buffer("far", 512, 9, 9, offset=512), Buffer("far.2", 512, 2, 3, offset=512)]
        a, _ = self.write(*self.texts(temps, 1024, 10))
        self.check(a, temps, 1024, 10)
        temps[0].phi, temps[0].group, temps[1].group = False, None, None
        a, _ = self.write(*self.texts(temps, 1024, 10))
        self.check(a, temps, 1024, 10)  # now they are apart: together() says so
        self.assertEqual(roots(self.listed(a)["tensors"])["next"], "next")

    def test_an_operator_in_place_of_older_versions(self):
        """It ended a step before the next one began. And two that begin at once at one place."""
        temps = [Buffer("a", 512, 1, 3, offset=0, group="g"), Buffer("b", 512, 4, 6, offset=0, group="g"),
                 Buffer("c", 512, 4, 4, offset=512, group="h"), Buffer("d", 512, 4, 9, offset=512, group="h")]
        a, _ = self.write(*self.texts(temps, 1024, 10), one=True)
        self.check(a, temps, 1024, 10)

    def test_a_result_inside_of_an_operand(self):
        places, live = self.texts([Buffer("a", 1024, 1, 3, offset=0), Buffer("b", 256, 3, 6, offset=512), Buffer("c", 512, 4, 5, offset=0)], 1024, 10)
        doc = self.listed(self.write(places, live)[0])
        self.assertEqual([t["alias"] for t in doc["tensors"] if t["name"] == "b"], [{"kind": "given", "of": "a", "offset": 512}])

    def test_nothing_and_one(self):
        a, _ = self.write(*self.texts([], 0, 4))
        doc = self.json("plan", a)
        self.assertEqual((doc["plans"][0]["bytes"], "given_plan_bytes" in doc), (0, False))
        one = [Buffer("x", 1000, 0, 3, offset=0)]
        a, _ = self.write(*self.texts(one, 1000, 4, rest=False))
        self.check(a, one, 1000, 4, rest=False)

    def test_spaces(self):
        temps = [Buffer("x", 1000, 0, 3, offset=0)]
        places, live = self.texts(temps, 1000, 4)
        host = places.replace("size 1000, preallocated", "size 1000, color 5, preallocated")
        a, _ = self.write(host, live)
        self.assertEqual([t["kind"] for t in self.listed(a)["tensors"] if t["name"] == "x"], ["HostPinned"])
        self.assertEqual([(b["kind"], b["bytes"]) for b in self.json("plan", a)["plans"][0]["buffers"]], [("HostPinned", 1000)])
        a, _ = self.write(places.replace("size 1000, preallocated", "size 1000, color 1, preallocated"), live)
        self.refused(3, "plan", a, says=["memory space 1", f"{a.name}:{1 + places.splitlines().index('allocation 6: size 1000, preallocated-temp:')}"])

    def test_what_is_printed(self):
        temps, size = self.module(random.Random(5), 30, 60)
        a, _ = self.write(*self.texts(temps, size, 30))
        p = self.ok("plan", a)
        planned = self.json("plan", a)["plans"][0]["bytes"]
        change = f"{100 * (planned / size - 1):.2f}"
        self.assertIn(f"Plan in the File: {size / 1024:.2f} KiB (this one: {'+' if planned > size else ''}{change}%)", p.stdout)
        self.assertIn("2 thread-local allocations (8 bytes) are not in the list", p.stderr)
        self.every_command(a)
        self.assertIn(f"The plan in the file takes {size} bytes.", self.ok("plan", a, "--all").stdout)
        for args in (["export", a, "--to", "json", "-o", self.dir / "l.json"], ["plan", a, "-o", self.dir / "l.json"]):
            self.ok(*args)  # and from there on
            self.assertEqual(self.json("plan", self.dir / "l.json")["given_plan_bytes"], size)

    def test_one_part_alone(self):
        places, live = self.texts([Buffer("x", 1000, 0, 3, offset=0)], 1000, 4)
        a, b = self.write(places, live)
        os.rename(b, self.dir / "elsewhere")
        self.refused(3, "plan", a, says=["does not say when", "-live-range.txt", "--xla_dump_to"])
        os.rename(self.dir / "elsewhere", b)
        a.unlink()
        self.refused(3, "plan", b, says=["does not say how large", "-buffer-assignment.txt"])
        self.refused(3, "plan", "-", stdin=places, says=["does not say when"])
        doc = json.loads(self.ok("export", "-", "--to", "json", stdin=places + live).stdout)
        self.assertEqual(len(doc["tensors"]), 5)
        a.write_text(places)
        b.write_text("HloLiveRange not available (finalized or constructed from proto)")  # as XLA writes it
        for path in (a, b):
            self.refused(3, "plan", path, says=["does not say when"])
        a.write_text(live)
        self.refused(3, "plan", b, says=["no allocation"])
        b.write_text(live)
        shutil.copy(b, self.dir / "x.txt")
        self.refused(3, "plan", self.dir / "x.txt", says=["does not say how large"])

    def test_damages(self):
        temps = [Buffer("x", 1000, 0, 3, offset=0), Buffer("y", 500, 2, 3, offset=1024)]
        places, live = self.texts(temps, 1536, 4, old=True)
        whole = places + "\n\n" + live
        lines = whole.splitlines()
        at = {name: 1 + next(i for i, l in enumerate(lines) if l.startswith(begin)) for name, begin in (
            ("x", " value: <0 x"), ("y", " value: <1 y"), ("a0", "allocation 0"), ("a1", "allocation 1"), ("temp", "allocation 6"), ("total", "Total"),
            ("max", "HloLive"), ("seq", "  Instr"), ("op1", "    1:op"), ("ranges", "  BufferL"), ("rx", "    x{}:"), ("ry", "    y{}:"))}
        for line, old, new, says in (
                ("a1", "allocation 1", "allocation 2", "follows on 1 others"), ("a0", "size 640", "size x", "has no size"),
                ("a0", "size 640", f"size {1 << 61}", "pass 2^61"), ("a0", "size 640", f"size {1 << 64}", "has no size"),
                ("a0", ", parameter 0", ", pirameter 0", "is not known"), ("a0", "at ShapeIndex", "at", "is not known"), ("a0", ":", "", "want 'allocation"),
                ("temp", ", preallocated-temp", "", "is not one of"), ("temp", ", preallocated-temp", ", constant, preallocated-temp", "is not one of"),
                ("temp", "-temp:", "-temp", "does not end in"), ("x", "size=1000", "size=9999", "ends outside"),
                ("x", "offset=0", f"offset={(1 << 63) - 1}", "ends outside"), ("x", "size=1000", "size=-1", "has no (size"), ("x", "<0 x", "<0x", "want 'value:"),
                ("y", "1 y @0", "1 x @0", "there twice"), ("y", "1 y @0", "1  @0", "no name"), ("total", "bytes used: ", "bytes used: 1", "together"),
                ("total", "Total", "Totil", "no line of a buffer assignment"), ("max", "max 4", "max x", "want 'HloLiveRange"),
                ("max", "max 4", "max 5", "4 instructions of 5"), ("op1", "1:", "2:", "follows on 1 others"), ("op1", "1:", "x:", "want '    NUMBER:NAME'"),
                ("rx", "0-3", "3-0", "do not lie"), ("rx", "0-3", "0-5", "do not lie"), ("rx", "0-3", "0", "want '    NAME"), ("rx", "x{}", "z{}", "no allocation"),
                ("ry", "y{}:", "x{}:", "there twice"), ("seq", "Instr", "instr", "want '  Instr")):
            changed = list(lines)
            self.assertIn(old, changed[at[line] - 1], line)
            changed[at[line] - 1] = changed[at[line] - 1].replace(old, new, 1)
            a, _ = self.write("\n".join(changed) + "\n", "", one=True)
            where = at["ranges"] if "instructions of" in says else at[line]
            with self.subTest(line=line, new=new):
                self.refused(3, "plan", a, says=[says, f"{a.name}:{where}\n"])
        for gone, says, where in (("ry", "has no live range", "y"), ("a1", "is there twice" if False else "follows on", "a1"), ("x", "no allocation", "rx")):
            changed = lines[:at[gone] - 1] + lines[at[gone]:]
            a, _ = self.write("\n".join(changed) + "\n", "", one=True)
            with self.subTest(gone=gone):
                self.refused(3, "plan", a, says=[says])
        for more, says in ((whole, "second module"), (live, "second module")):
            a, _ = self.write(whole + more, "", one=True)
            self.refused(3, "plan", a, says=[says])
        a, _ = self.write(whole.replace("x @0", "x\0@0"), "", one=True)
        self.refused(3, "plan", a, says=["a zero byte"])

    def test_places_that_contradict(self):
        for temps in ([Buffer("x", 1000, 0, 3, offset=0), Buffer("y", 1000, 2, 3, offset=512)],  # half over each other
                      [Buffer("x", 1000, 0, 2, offset=0), Buffer("y", 1000, 2, 3, offset=512)],
                      [Buffer("x", 1000, 1, 2, offset=0), Buffer("y", 500, 1, 3, offset=0)],  # begin at once
                      [Buffer("x", 1000, 0, 3, offset=0), Buffer("y", 100, 1, 2, offset=512)]):
            places, live = self.texts(temps, 1536, 4, rest=False)
            a, _ = self.write(places, live)
            self.refused(3, "plan", a, says=["share bytes", "'x' and 'y'", f"{a.name}:4\n"])

    def test_lines_end_as_elsewhere(self):
        temps, size = self.module(random.Random(3), 8, 12)
        places, live = self.texts(temps, size, 8)
        a, b = self.write(places, live)
        as_unix = self.listed(a)["tensors"]
        a.write_bytes(b"\xef\xbb\xbf" + places.replace("\n", "\r\n").encode())
        b.write_bytes(live.replace("\n", "\r\n").encode())
        self.assertEqual(self.listed(a)["tensors"], as_unix)

    def test_many(self):
        """Ten thousand values at one place, and as many beside each other."""
        n = tidemark.share([10000, 100000], 2)[-1]
        temps = [Buffer(f"v{k}", 64, k, k + 1, offset=0, group="g") for k in range(n)]
        wide = [Buffer(f"w{k}", 64, 7, n - 1, offset=64 * (k + 1)) for k in range(n)]
        places, live = self.texts(temps + wide, 64 * (n + 1), n + 2, rest=False)
        a, _ = self.write(places, live)
        plan = json.loads(self.ok("plan", a, "--strategy", "greedy_by_size", "--json", timeout=60).stdout)
        self.assertEqual(plan["plans"][0]["lower_bound_bytes"], 64 * (n + 1))


class Somas(Lists):
    """Texts of MindSpore's planner."""
    COLUMNS = "index:\taligned_size:\toriginal_size:\toffset:\ttype:\tlifelong:\tlife_start:\tlife_end:\tsource node name:"

    def graph(self, rng, steps, n, gap):
        """Tensors, lists of one place and lists of side by side. Of the latter the first and the last have `gap` bytes more, before and
        behind them, and the first one's offset is behind its own."""
        self.lists = {"union": [], "contiguous": []}
        tensors = []
        for k in range(n):
            begin = rng.randrange(steps)
            b = Buffer(f"Op-op{begin}", rng.choice([0, 512, 1024, 4096]), begin, min(steps - 1, begin + rng.randrange(5)), life="LifeLongNone")
            b.life = rng.choice(["LifeLongNone"] * 5 + ["LifeLongGraphAll", "LifeLongGraphStart", "LifeLongGraphEnd"])
            b.first = b.begin if b.life in ("LifeLongNone", "LifeLongGraphEnd") else 0
            b.last = b.end if b.life in ("LifeLongNone", "LifeLongGraphStart") else steps - 1
            tensors.append(b)
        free = [k for k in range(n) if tensors[k].size]
        rng.shuffle(free)
        blocks = []
        while len(free) >= 6 and rng.random() < 0.8:
            ids = [free.pop() for _ in range(rng.choice([2, 3]))]
            self.lists["contiguous"].append(ids)
            tensors[ids[0]].size += gap
            tensors[ids[-1]].size += gap
            blocks.append(ids)
        while len(free) >= 2 and rng.random() < 0.6:
            a, b = free.pop(), free.pop()
            tensors[b].size = tensors[a].size
            self.lists["union"].append([a, b])
            blocks.append([a, b])
        return tensors, self.place(tensors, blocks, gap)

    def place(self, tensors, blocks, gap):
        """First fit, each block as one; what is side by side at its distances."""
        inside = {k: ids for ids in blocks for k in ids}
        taken, top = [], 0
        for ids in blocks + [[k] for k in range(len(tensors)) if k not in inside]:
            rel, at = {}, 0
            for k in ids:
                rel[k] = at
                at += tensors[k].size if ids in self.lists["contiguous"] else 0
            size = max(rel[k] + tensors[k].size for k in ids)
            first, last = min(tensors[k].first for k in ids), max(tensors[k].last for k in ids)
            at = 0
            for lo, hi in sorted((lo, hi) for lo, hi, f, l in taken if f <= last and first <= l):
                if at + size <= lo:
                    break
                at = max(at, hi)
            for k in ids:
                tensors[k].offset = at + rel[k]
                tensors[k].group = f"b{ids}" if len(ids) > 1 else None
            if size:
                taken.append((at, at + size, first, last))
                top = max(top, at + size)
            if ids in self.lists["contiguous"]:
                tensors[ids[0]].printed = at + gap
        return top

    def text(self, tensors, total, steps, stream=0):
        out = ["All Parameters:", "", "index:\tsize:\tsource node name:\tnode out index:", "%0P\t#4096S\tconv1.weight\t0", "%1P\t#12S\tx\t0", "", "",
               "All Tensors:", "", self.COLUMNS]
        for k, b in enumerate(tensors):
            kind = ("Workspace", "GraphOutput", "Common", "OutputOnly")[k % 4]
            out.append(f"%{k}T\t#{b.size}S\t#{b.size // 2}S\t&{getattr(b, 'printed', b.offset)}\t{kind}\t{b.life}\t{b.begin}\t{b.end}\t{b.name}")
        out += [f"%{len(tensors)}CT\t#0S\t#0S\t&0\tControl\tLifeLongNone\t0\t{steps - 1}\tSend-op1", "", "", "All Nodes:", ""]
        out += [f"${k}\tOp-op{k}\t0\tinputs[%0P, ]\toutputs[]\tworkspace[]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@{stream}]" for k in range(steps)]
        for heading, word in (("All Union Tensors Info:", "union"), ("All Original Contiguous Tensors Info:", "contiguous"),
                              ("All Processed Contiguous Tensors Info:", "contiguous")):
            out += ["", "", heading, ""]
            out += [f"{word} tensors: [{''.join(f'%{k}T ' for k in ids)}]" for ids in self.lists[word]]
        out += ["", "", "All Stream Groups:", "", f"stm{stream} ", "", "", "All Merged Blocks:", "", "start_offset:\tsize:", f"0\t{total}", "",
                f"Total Memory Size after reused:{total}"]
        return "\n".join(out)

    def write(self, text):
        path = self.dir / "Ascend_somas_tensor_offset_1.ir"
        path.write_text(text)
        return path

    def check(self, path, tensors, total, steps):
        doc = self.listed(path)
        by_name = {t["name"]: t for t in doc["tensors"]}
        self.assertEqual((doc["n_steps"], doc["order"]), (steps, [f"Op-op{k}" for k in range(steps)]))
        covers = [t for t in doc["tensors"] if t["name"].startswith("(together")]
        self.assertEqual(len(by_name), len(tensors) + 2 + len(covers))
        found = roots(doc["tensors"])
        inside = {t["name"]: t.get("alias", {}).get("offset", 0) for t in doc["tensors"]}
        for k, b in enumerate(tensors):
            t = by_name[f"%{k}T {b.name}"]
            role = ("scratch", "output", "intermediate", "intermediate")[k % 4]
            self.assertEqual((t["size_bytes"], t["begin"], t["end"], t["persistent"], t["role"]), (b.size, b.first, b.last + 1, False, role), k)
        for ids in self.lists["contiguous"] + self.lists["union"]:
            names = [f"%{k}T {tensors[k].name}" for k in ids]
            self.assertEqual(len({found[n] for n in names}), 1)
            self.assertEqual([inside[n] for n in names], [tensors[k].offset - tensors[ids[0]].offset for k in ids])
        alone = set(range(len(tensors))) - {k for word in self.lists for ids in self.lists[word] for k in ids}
        for k in alone:
            self.assertNotIn("alias", by_name[f"%{k}T {tensors[k].name}"])
        self.assertEqual({n: (t["size_bytes"], t["kind"], t["role"]) for n, t in by_name.items() if t["persistent"]},
                         {"%0P conv1.weight": (4096, "Persistent", "weight"), "%1P x": (12, "Persistent", "weight")})
        # What a list of side by side needs: each member while it lives, and all of it where all live (or always, if they never all do).
        needs = []
        for k, b in enumerate(tensors):
            needs.append(Buffer("", b.size, b.first, b.last, offset=b.offset, group=b.group))
        for ids in self.lists["contiguous"]:
            members = [tensors[k] for k in ids]
            lo, hi = members[0].offset, max(m.offset + m.size for m in members)
            if any((m.offset, m.offset + m.size) == (lo, hi) for m in members):
                continue
            first, last = max(m.first for m in members), min(m.last for m in members)
            if first > last:
                first, last = min(m.first for m in members), max(m.last for m in members)
            needs.append(Buffer("", hi - lo, first, last, offset=lo, group=members[0].group))
        plan = self.json("plan", path)
        self.assertEqual(plan["given_plan_bytes"], total)
        self.assertEqual(plan["plans"][0]["lower_bound_bytes"], bound_of(needs, steps))
        return plan["plans"][0]

    def test_graphs(self):
        better = 0
        for seed in tidemark.share(range(24), 4):
            rng = random.Random(seed)
            steps, n = rng.choice([(3, 4), (10, 20), (20, 60)])
            tensors, total = self.graph(rng, steps, n, rng.choice([0, 512]))
            with self.subTest(seed=seed):
                best = self.check(self.write(self.text(tensors, total, steps)), tensors, total, steps)
                better += best["bytes"] < total
        self.assertGreater(better, 0)
        self.every_command(self.dir / "Ascend_somas_tensor_offset_1.ir")

    def test_nothing(self):
        self.lists = {"union": [], "contiguous": []}
        doc = self.json("plan", self.write(self.text([], 0, 1)))
        self.assertEqual(doc["plans"][0]["bytes"], 0)

    def test_several_streams(self):
        tensors, total = self.graph(random.Random(1), 10, 20, 512)
        text = self.text(tensors, total, 10)
        line = 1 + next(i for i, l in enumerate(text.splitlines()) if l.startswith("$4\t"))
        path = self.write(text.replace("@0]", "@3]").replace("$4\tOp-op4\t0\tinputs[%0P, ]\toutputs[]\tworkspace[]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@3]",
                                                             "$4\tOp-op4\t0\tinputs[]\toutputs[]\tworkspace[]\tctrl_inputs[]\tctrl_outputs[]\tstreamID[@5]"))
        self.refused(3, "plan", path, says=["streams 3 and 5", f"{path.name}:{line}\n", "what waits for what"])

    def test_older_ones(self):
        old = ("All Parameters:\n\nindex:\tsize:\tstart_addr:\tsource node name:\tnode out index:\n%0P\t#4S\t&0x7f\tx\t0\n\n\nAll Tensors:\n\n"
               "index:\tsize:\treal_size:\toffset:\taddr:\ttype:\tlifelong:\tlife_start:\tlife_end:\tsource node name:\n")
        self.refused(3, "plan", self.write(old), says=["columns are not known", ":3\n", "side by side"])

    def test_damages(self):
        for seed in range(100):
            tensors, total = self.graph(random.Random(seed), 10, 20, 512)
            if self.lists["union"] and self.lists["contiguous"]:
                break
        self.assertTrue(self.lists["union"] and self.lists["contiguous"])
        text = self.text(tensors, total, 10)
        lines = text.splitlines()
        at = {name: 1 + next(i for i, l in enumerate(lines) if l.startswith(begin)) for name, begin in (
            ("p1", "%1P"), ("t0", "%0T"), ("t1", "%1T"), ("n3", "$3"), ("union", "union"), ("contiguous", "contiguous"), ("nodes", "All Nodes"),
            ("total", "Total"), ("columns", "index:\taligned"), ("control", "%20CT"), ("merged", "All Merged"))}
        size = tensors[1].size
        bound = {k for word in self.lists for ids in self.lists[word] for k in ids}
        alone = next(k for k, t in enumerate(tensors) if t.size and k not in bound)
        at["alone"] = at["t0"] + alone
        for line, old, new, says in (
                ("p1", "%1P", "%2P", "follows on 1 others"), ("p1", "#12S", "#-12S", "of a parameter"), ("p1", "#12S", f"#{1 << 61}S", "of a parameter"),
                ("t1", "%1T", "%2T", "follows on 1 others"), ("t1", f"#{size}S", f"{size}", "of a tensor"), ("t1", f"#{size}S", f"#{1 << 63}S", "of a tensor"),
                ("t1", "LifeLong", "LongLife", "'lifelong' is"), ("t1", f"\t{tensors[1].begin}\t{tensors[1].end}\t", "\t9\t2\t", "lives from 9 to 2"),
                ("t1", f"\t{tensors[1].begin}\t{tensors[1].end}\t", "\t0\t10\t", "lives to node 10 of 10"), ("alone", "&", "&9", "ends behind"),
                ("n3", "$3", "$4", "follows on 3 others"), ("n3", "streamID[@0]", "streamID[@]", "of a node"), ("union", "T ]", "T", "want '%NUMBERT '"),
                ("union", "[%", "[%99", "is not listed"), ("nodes", "All Nodes:", "All Nodes: x", "more behind"), ("nodes", "All Nodes:", "All Stream Groups:", "comes where"),
                ("total", str(total), "", "the total is no number"), ("total", str(total), str(total)[:-1], "ends behind"), ("columns", "offset", "place", "columns"),
                ("control", "#0S\t#0S", "#8S\t#0S", "a control tensor of 8"), ("merged", "Merged", "Total", "")):
            changed = list(lines)
            self.assertIn(old, changed[at[line] - 1], line)
            changed[at[line] - 1] = changed[at[line] - 1].replace(old, new, 1)
            path = self.write("\n".join(changed))
            with self.subTest(line=line, new=new):
                p = self.refused(3, "plan", path, says=[says])
                self.assertRegex(p.stderr, f"{path.name}:\\d+\n")
        # Members of a list that the text does not lay side by side, or at one place.
        for word, says in (("union", "are one, and lie apart"), ("contiguous", "do not lie side by side")):
            ids = self.lists[word][0]
            line = 1 + next(i for i, l in enumerate(lines) if l.startswith(f"%{ids[1]}T\t"))
            changed = list(lines)
            offset = f"&{tensors[ids[1]].offset}\t"
            self.assertIn(offset, changed[line - 1])
            changed[line - 1] = changed[line - 1].replace(offset, f"&{tensors[ids[1]].offset + 65536}\t")
            path = self.write("\n".join(changed))
            self.refused(3, "plan", path, says=[says, f"{path.name}:{at[word]}\n"])

    def test_side_by_side(self):
        """What two lie in is needed where both are; where they never meet, from the first one's begin to the last one's end."""
        for (a, b, c, d), (begin, end), bound in (((0, 3, 2, 5), (2, 4), 1536), ((0, 1, 4, 5), (0, 6), 1536), ((2, 4, 2, 2), (2, 3), 1536)):
            self.lists = {"union": [], "contiguous": [[1, 0]]}
            tensors = [Buffer("A", 512, a, b, offset=1024, life="LifeLongNone"), Buffer("B", 1024, c, d, offset=0, life="LifeLongNone")]
            path = self.write(self.text(tensors, 1536, 6))
            cover = [t for t in self.listed(path)["tensors"] if t["name"] == "(together 0)"][0]
            self.assertEqual((cover["begin"], cover["end"], cover["size_bytes"]), (begin, end, 1536))
            self.assertEqual(self.json("plan", path)["plans"][0]["lower_bound_bytes"], bound)

    def test_a_plan_too_small(self):
        """What is needed at once is more than the plan has: places that share bytes."""
        self.lists = {"union": [], "contiguous": []}
        tensors = [Buffer("A", 1024, 0, 2, offset=0, life="LifeLongNone"), Buffer("B", 1024, 1, 2, offset=512, life="LifeLongNone")]
        path = self.write(self.text(tensors, 1536, 3))
        self.refused(3, "plan", path, says=["needs 2048 bytes in step 1", "1536"])


if __name__ == "__main__":
    tidemark.main()
