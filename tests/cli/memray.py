# SPDX-License-Identifier: MIT
"""tidemark import of captures of memray: files made here after memray's source, of every version that is read, held against a
reader of its own (memray_file.py), and against Python for lines; files that are cut, damaged, and larger than they look."""
import gzip
import json
import os
import random
import resource
import shutil
import struct
import subprocess
import unittest

import tidemark
from memray_file import BEGIN_MS, MAIN, NEW, SIMPLE_FREES, Reader, Writer, varint
from tidemark import Case, ask, run, share

MIB = 1 << 20
VERSIONS = (10, 11, 12, 13)
OTHER = MAIN + 0x1000
STACKS = """WITH RECURSIVE p(id, path) AS (
  SELECT s.id, n.text FROM scope s JOIN name n ON n.id = s.name_id WHERE s.parent_id IS NULL
  UNION ALL SELECT s.id, p.path || char(10) || n.text FROM scope s JOIN p ON s.parent_id = p.id JOIN name n ON n.id = s.name_id)
SELECT o.name, coalesce(e.address, 0), e.requested_bytes, n.text, e.thread, coalesce(p.path, ''), e.t_ns
FROM event e JOIN op o ON o.id = e.op LEFT JOIN name n ON n.id = e.allocator_id LEFT JOIN p ON p.id = e.scope_id ORDER BY e.id"""
HAS_LZ4 = shutil.which("lz4") is not None


def lz4(data, *options):
    return subprocess.run(["lz4", "-q", "-c", *options], input=data, capture_output=True, check=True).stdout


def small(version, **more):
    """Two threads, a frame with lines, a block that stays, one that goes, a mapped range of which a part goes, a foreign free."""
    w = Writer(version, **more)
    w.time(0)
    w.thread(MAIN)
    w.code(7, "main", "/src/prog.py", 10, b"\xe8\x02")  # one entry: all of it on the second line on
    w.push(7)
    w.call("malloc", 0x1000, 100)
    w.call("pymalloc_malloc", 0x2000, 50)
    w.time(12)
    w.thread(OTHER)
    w.thread_name("worker")
    w.call("mmap", 0x10000, 0x3000)
    w.call("free", 0x2000)
    w.thread(MAIN)
    w.pop()
    w.call("munmap", 0x11000, 0x1000)
    w.call("free", 0x9998)
    w.call("calloc", 0, 77)
    w.time(20)
    w.call("realloc", 0x1008, 0)
    return w


class Made(Case):
    def take(self, data, name="m.bin"):
        (self.dir / name).write_bytes(data)
        return self.json("import", self.dir / name, "-o", self.dir / "t.db")

    def events(self):
        return ask(self.dir / "t.db", STACKS)


class Captures(Made):
    def test_what_stands_in_the_file(self):
        at = [(BEGIN_MS + ms) * 1_000_000 for ms in (0, 12, 20)]
        for version in VERSIONS:
            with self.subTest(version):
                said = self.take(small(version).bytes(padding=3000))
                main = "main @ /src/prog.py:" + ("11" if version >= 12 else "10")
                self.assertEqual(self.events(), [
                    ("alloc", 0x1000, 100, "malloc", 1, main, at[0]), ("alloc", 0x2000, 50, "pymalloc_malloc", 1, main, at[0]),
                    ("alloc", 0x10000, 0x3000, "mmap", 2, "", at[1]), ("free_completed", 0x2000, 50, "pymalloc_malloc", 2, "", at[1]),
                    ("free_completed", 0x10000, 0x3000, "mmap", 1, "", at[1]), ("alloc", 0x10000, 0x1000, "mmap", 2, "", at[1]),
                    ("alloc", 0x12000, 0x1000, "mmap", 2, "", at[1]), ("oom", 0, 77, "calloc", 1, "", at[1]),
                    ("alloc", 0x1008, 0, "realloc", 1, "", at[2])])
                self.assertEqual({k: said[k] for k in ("format", "events", "blocks", "unknown_frees", "contradictions", "native_frames", "sums", "cut")},
                                 {"format": "a capture of memray", "events": 8, "blocks": 4, "unknown_frees": 1, "contradictions": 0,
                                  "native_frames": 0, "sums": False, "cut": False})
                self.assertEqual(ask(self.dir / "t.db", "SELECT number, name FROM thread ORDER BY id"), [(1, None), (2, "worker")])
                self.assertEqual(ask(self.dir / "t.db", "SELECT DISTINCT name FROM events WHERE name <> ''"), [(main.replace("@ /src/", ""),)])
                self.assertEqual(ask(self.dir / "t.db", "SELECT pid, begin_ns FROM process"), [(4711, at[0])])
        self.ok("report", self.dir / "m.bin", "-o", self.dir / "r.html")
        self.assertIn("a capture of memray, 8 events, 4 blocks", self.ok("trace", self.dir / "m.bin").stderr)

    def test_nothing_of_anything(self):
        for version in VERSIONS:
            self.assertEqual(self.take(Writer(version).bytes())["events"], 0)
            self.assertEqual(self.take(Writer(version, sums=True).bytes())["events"], 0)
        w = Writer()
        w.thread(0)
        w.call("malloc", 0x10, 0)
        w.call("malloc", 0x20, (1 << 63) - 2)
        w.call("malloc", 0xFFFFFFFFFFFFFFF8, 1)
        self.assertEqual(self.take(w.bytes())["blocks"], 3)
        self.assertEqual(ask(self.dir / "t.db", "SELECT requested_bytes, address FROM block ORDER BY id"),
                         [(0, 16), ((1 << 63) - 2, 32), (1, -8)])

    @staticmethod
    def program(rng, version, native, steps=300):
        """Whatever a program may do, and some that it may not."""
        w = Writer(version, native, skipped=rng.choice([0, 0, 2]), python=0x030E00F0)
        tids, depth, codes, live = [MAIN, OTHER, OTHER + 8], {}, 0, []
        w.time(0)
        for _ in range(steps):
            w.thread(tid := rng.choice(tids) if rng.random() < 0.2 or w.tid is None else w.tid)
            what = rng.random()
            if what < 0.15:
                if codes == 0 or rng.random() < 0.3:
                    codes += 1
                    table = b"".join(bytes([128 | rng.randrange(10, 13) << 3 | rng.randrange(8), 1, 9]) for _ in range(rng.randrange(4)))
                    w.code(codes * 3, f"f{codes}", rng.choice(["", "/a/b.py", "ünï.py"]), rng.randrange(1, 500), table)
                w.push(3 * rng.randrange(1, codes + 1), rng.randrange(-2, 40), rng.random() < 0.5)
                depth[tid] = depth.get(tid, 0) + 1
            elif what < 0.22 and depth.get(tid, 0) > 0:
                w.pop(n := rng.randrange(1, depth[tid] + 1))
                depth[tid] -= n
            elif what < 0.5:
                live.append(rng.randrange(1, 60) * 8)
                w.call(rng.choice([n for n in NEW[1:] if n not in SIMPLE_FREES and n not in ("mmap", "munmap")]), live[-1],
                       rng.choice([0, 1, 127, 128, 5000, 1 << 40]), rng.randrange(9))
            elif what < 0.7:
                w.call(rng.choice(SIMPLE_FREES), live.pop(rng.randrange(len(live))) if live and rng.random() < 0.9 else 8 * rng.randrange(99))
            elif what < 0.78:
                w.call("mmap", 4096 * rng.randrange(40), 4096 * rng.randrange(1, 9), rng.randrange(9))
            elif what < 0.88:
                w.call("munmap", 4096 * rng.randrange(40), 4096 * rng.randrange(9), rng.randrange(9))
            elif what < 0.92:
                w.time(rng.randrange(-3, 2000))
            elif what < 0.94:
                w.thread_name(rng.choice(["", "T", "Thread-1 (run)"]))
            elif what < 0.96 and version >= 12:
                w.object(8 * rng.randrange(1, 60), rng.random() < 0.5, rng.randrange(9))
            elif native and what < 0.98:
                w.native_frame(rng.randrange(1 << 48), rng.randrange(99))
            elif native:
                w.loaded("/lib/libc.so", [(4096, 99)] * rng.randrange(3))
        return w

    def test_programs_at_random(self):
        rng = random.Random(11)
        seen = dict.fromkeys(("calls", "unknown", "again", "objects", "native", "blocks"), 0)
        for i in share(range(60), 3):  # a third of them has all four versions
            version, native = VERSIONS[i % 4], i // 4 % 2 == 1
            data = self.program(rng, version, native, rng.choice([5, 300])).bytes(padding=rng.choice([0, 1, 70000]))
            want, said = Reader(data), self.take(data)
            with self.subTest(i=i, version=version, native=native):
                self.assertEqual(self.events(), want.events)
                names = {"calls": "events", "unknown": "unknown_frees", "again": "contradictions", "objects": "python_objects",
                         "native": "native_frames", "blocks": "blocks"}
                self.assertEqual({k: said[v] for k, v in names.items()}, want.counts)
                self.assertFalse(said["cut"])
            seen = {k: v + want.counts[k] for k, v in seen.items()}
        self.assertTrue(all(v > 20 for v in seen.values()), seen)

    def test_parts_of_ranges(self):
        def play(*calls):
            w = Writer()
            w.thread(MAIN)
            for name, begin, pages in calls:
                w.call(name, begin * 4096, pages * 4096)
            said = self.take(w.bytes())
            alive = ask(self.dir / "t.db", "SELECT address / 4096, requested_bytes / 4096 FROM block WHERE free_ns IS NULL ORDER BY address")
            return alive, said["unknown_frees"], said["contradictions"]
        whole = ("mmap", 10, 10)
        for calls, want in (((whole, ("munmap", 10, 10)), ([], 0, 0)), ((whole, ("munmap", 12, 3)), ([(10, 2), (15, 5)], 0, 0)),
                            ((whole, ("munmap", 10, 3)), ([(13, 7)], 0, 0)), ((whole, ("munmap", 15, 5)), ([(10, 5)], 0, 0)),
                            ((whole, ("munmap", 0, 10)), ([(10, 10)], 1, 0)), ((whole, ("munmap", 20, 9)), ([(10, 10)], 1, 0)),
                            ((whole, ("munmap", 15, 0)), ([(10, 10)], 1, 0)), ((whole, ("munmap", 0, (1 << 52) - 1)), ([], 0, 0)),
                            ((whole, ("mmap", 20, 5), ("mmap", 30, 5), ("munmap", 19, 12)), ([(10, 9), (31, 4)], 0, 0)),
                            ((whole, ("mmap", 12, 2)), ([(10, 2), (12, 2), (14, 6)], 0, 1)), ((whole, whole), ([(10, 10)], 0, 1)),
                            ((whole, ("munmap", 11, 1), ("munmap", 13, 1), ("munmap", 11, 3)), ([(10, 1), (14, 6)], 0, 0))):
            with self.subTest(calls=calls):
                self.assertEqual(play(*calls), want)

    def test_thousands_of_ranges(self):
        rng, w = random.Random(4), Writer()
        w.thread(MAIN)
        for _ in range(6000):
            w.call(rng.choice(["mmap", "munmap"]), 4096 * rng.randrange(20000), 4096 * rng.randrange(1, 30))
        self.take(w.bytes())
        self.assertEqual(self.events(), Reader(w.bytes()).events)

    def test_lines_are_those_of_python(self):
        """Of real functions, held against what Python says of each of their instructions."""
        source = "def f(x):\n  a = [\n    x,\n\n\n    g(x)]\n" + "\n" * 400 + "  for i in a:\n    print(i,\n      a)\n  with x as y:\n    return (y\n      + 1)\n"
        codes = [compile(source, "f.py", "exec"), json.dumps.__code__, subprocess.run.__code__, unittest.TestCase.__init__.__code__]
        codes.append(next(c for c in codes[0].co_consts if hasattr(c, "co_code")))
        n_lines = 0
        for code in codes:
            lines = list(code.co_lines())
            for python, table in ((0x030B07F0, code.co_linetable), (0x030A00F0, self.table_3_10(code, lines)), (0x030900F0, code.co_lnotab)):
                w = Writer(python=python)
                w.thread(MAIN)
                w.code(1, "f", "f.py", code.co_firstlineno, table)
                want = []
                for begin, end, line in lines:
                    for offset in range(begin, end, 2):
                        w.push(1, offset // 2 if python >> 16 == 0x030A else offset)
                        w.call("malloc", 8, 1)
                        w.pop()
                        want.append(line)
                self.take(w.bytes())
                got = ask(self.dir / "t.db", "SELECT name FROM events WHERE op = 'alloc' ORDER BY event_id")
                got = [int(name.rpartition(":")[2]) for name, in got]
                # Before 3.10 an instruction without a line has the one before it.
                self.assertEqual([g for g, l in zip(got, want, strict=True) if l is not None or python >= 0x030A0000],
                                 [l or 0 for l in want if l is not None or python >= 0x030A0000], hex(python))
                n_lines += len(want)
        self.assertGreater(n_lines, 1000)

    @staticmethod
    def table_3_10(code, lines):
        out, last = bytearray(), code.co_firstlineno
        for begin, end, line in lines:
            by = 0 if line is None else line - last
            while abs(by) > 127:
                step = 127 if by > 0 else -127
                out += struct.pack("Bb", 0, step)
                by -= step
            n = end - begin
            while n > 254:
                out += struct.pack("Bb", 254, -128 if line is None else by)
                n, by = n - 254, 0
            out += struct.pack("Bb", n, -128 if line is None else by)
            last = last if line is None else line
        return bytes(out)

    def test_tables_of_lines_that_are_damaged(self):
        rng = random.Random(3)
        for python in (0x030900F0, 0x030A00F0, 0x030E00F0):
            w = Writer(python=python)
            w.thread(MAIN)
            for i in range(300):
                w.code(i, "f", "f.py", rng.randrange(-5, 1 << 31), rng.randbytes(rng.randrange(20)))
                w.push(i, rng.randrange(-(1 << 31), 1 << 31) if i % 2 else rng.randrange(60))
                w.call("malloc", 8 * i + 8, 1)
                w.pop()
            self.assertEqual(self.take(w.bytes())["blocks"], 300)
            for name, in ask(self.dir / "t.db", "SELECT name FROM events"):
                self.assertRegex(name, r"^f f\.py:\d+$")

    def test_the_frames_of_memray_itself(self):
        """Of the main thread, and of no other."""
        for version in VERSIONS:
            w = Writer(version, skipped=2)
            for tid in (MAIN, OTHER):
                w.thread(tid)
                if tid == MAIN:
                    for i in range(4):
                        w.code(i, f"f{i}", "", 1)
                for i in range(4):
                    w.push(i)
                    w.call("malloc", tid + 8 * i, 1)
                w.pop(3)
                w.call("malloc", tid + 80, 1)
                w.push(3)
                w.push(3)
                w.call("malloc", tid + 88, 1)
            self.take(w.bytes())
            self.assertEqual([e[5].split() for e in self.events()], [
                [], [], ["f2"], ["f2", "f3"], [], ["f3"],
                ["f0"], ["f0", "f1"], ["f0", "f1", "f2"], ["f0", "f1", "f2", "f3"], ["f0"], ["f0", "f3", "f3"]])

    def test_times(self):
        w = Writer()
        w.thread(MAIN)
        w.call("malloc", 8, 1)
        for i, ms in enumerate((5, 3, -7, 5, 100)):
            w.time(ms)
            w.call("malloc", 16 + 8 * i, 1)
        self.take(w.bytes())
        self.assertEqual([e[6] // 1_000_000 - BEGIN_MS for e in self.events()], [0, 5, 5, 5, 5, 100])

    def test_a_head_that_counts_otherwise(self):
        w = small(13)
        for calls, want in ((8, 0), (0, 0), (9, 1)):  # 0: it was written to a socket
            w.calls = calls
            self.assertEqual(self.take(w.bytes())["contradictions"], want)

    def test_what_was_left_out_is_said(self):
        w = small(12, native=True)
        w.native_frame(0x1234, 1)
        w.native_frame(0x5678, 0)
        w.object(0x1000, True)
        (self.dir / "m.bin").write_bytes(w.bytes())
        said = self.ok("import", self.dir / "m.bin", "-o", self.dir / "t.db").stderr
        for word in ("note: 2 frames of native code were left out", "note: 1 begins and ends of Python's objects", "note: 1 frees of blocks"):
            self.assertIn(word, said)


class Sums(Made):
    @staticmethod
    def made(version, skipped=0):
        w = Writer(version, sums=True, skipped=skipped)
        w.end_ms = BEGIN_MS + 5000
        w.time(3)
        w.thread(MAIN)
        w.thread_name("main")
        for i in range(3):
            w.code(i, f"f{i}", "a.py", 10 * i)
        if version >= 12:
            w.put(13, varint(0x123))
        for i in range(3):
            w.frame_index(i, i)
        w.stack(0, 0)
        w.stack(1, 1)
        w.stack(2, 1)
        w.sum(MAIN, "malloc", 2, 3, 300, 1, 100)
        w.sum(MAIN, "mmap", 3, 1, 4096, 1, 4096)
        w.sum(OTHER, "pymalloc_calloc", 2, 0, 0, 2, 64)
        w.sum(OTHER, "malloc", 0, 5, 50, 0, 0)
        return w

    def test_the_peak_and_the_end(self):
        first, last = BEGIN_MS * 1_000_000, (BEGIN_MS + 5000) * 1_000_000
        for version in VERSIONS:
            for skipped, main in ((0, "f0 @ a.py:{0}\n"), (1, "")):
                with self.subTest(version=version, skipped=skipped):
                    # From 12 on without a table of lines no line is known.
                    line = (lambda n: 0) if version >= 12 else (lambda n: n)
                    main = main.format(line(0))
                    f1, f2 = f"f1 @ a.py:{line(10)}", f"f2 @ a.py:{line(20)}"
                    said = self.take(self.made(version, skipped).bytes())
                    self.assertEqual(self.events(), [
                        ("alloc", 0, 300, "malloc", 1, main + f1, first), ("alloc", 0, 4096, "mmap", 1, main + f2, first),
                        ("alloc", 0, 50, "malloc", 2, "", first), ("free_completed", 0, 300, "malloc", 1, "", last),
                        ("free_completed", 0, 50, "malloc", 2, "", last), ("alloc", 0, 100, "malloc", 1, main + f1, last),
                        ("alloc", 0, 64, "pymalloc_calloc", 2, f"f0 @ a.py:{line(0)}\n" + f1, last)])
                    self.assertEqual((said["events"], said["blocks"], said["sums"], said["python_objects"]), (4, 5, True, int(version >= 12)))
                    self.assertEqual(ask(self.dir / "t.db", "SELECT peak_bytes FROM peak"), [(4446,)])
                    self.assertEqual(ask(self.dir / "t.db", "SELECT sum(requested_bytes) FROM block WHERE free_ns IS NULL"), [(4260,)])
                    self.assertIn((f"f1 a.py:{line(10)}: 3 allocations",), ask(self.dir / "t.db", "SELECT name FROM events"))
        self.assertIn("note: the file has sums in the place of events", self.ok("trace", self.dir / "m.bin").stderr)

    def test_sums_at_random(self):
        rng = random.Random(6)
        for i in range(40):
            version = VERSIONS[i % 4]
            w = Writer(version, sums=True, skipped=rng.choice([0, 3]), python=0x030E00F0)
            for k in range(5):
                w.code(k, f"f{k}", "a.py", k + 1, b"\xd7\0\1")
            for k in range(5):
                w.frame_index(k, k, rng.randrange(20) if version >= 12 else 0)
            n = rng.randrange(50)
            for k in range(n):
                w.stack(rng.randrange(5), rng.randrange(k + 1))
            for _ in range(rng.randrange(60)):
                numbers = [rng.choice([0, 1, 100]), rng.choice([0, 5, 999]), rng.choice([0, 1, 100]), rng.choice([0, 5, 999])]
                w.sum(rng.choice([MAIN, OTHER]), rng.choice(["malloc", "mmap", "valloc", "pymalloc_malloc"]), rng.randrange(n + 1), *numbers)
            self.take(w.bytes())
            rows, events = Reader(w.bytes()).rows, self.events()
            peak = [("alloc", 0, r[4], r[1], r[0], r[2], BEGIN_MS * 1_000_000) for r in rows if r[3] or r[4]]
            end = sorted((r[1], r[0], r[6]) for r in rows if r[5] or r[6])
            self.assertEqual(events[:len(peak)], peak)
            alive = ask(self.dir / "t.db", "SELECT a.text, b.thread, requested_bytes FROM block b JOIN name a ON a.id = b.allocator_id WHERE free_ns IS NULL")
            self.assertEqual(sorted(alive), end)

    def test_bad_sums(self):
        for spoil, says in ((lambda w: w.sum(MAIN, "free", 0, 1, 1, 1, 1), "allocator"), (lambda w: w.sum(MAIN, "munmap", 0, 1, 1, 1, 1), "allocator"),
                            (lambda w: w.sum(MAIN, "malloc", 4, 1, 1, 1, 1), "call stack"), (lambda w: w.sum(MAIN, "malloc", 0, 1, 1 << 63, 1, 1), "2^63 bytes"),
                            (lambda w: w.sum(MAIN, "malloc", 0, 1, 1, 1, MASK), "2^63 bytes"), (lambda w: w.stack(9, 0), "not there"),
                            (lambda w: w.stack(0, 4), "are not there"), (lambda w: w.put(9), "not known"),
                            (lambda w: w.put(8), "not known"), (lambda w: w.put(0, b"\1"), "not known")):
            for version in VERSIONS:
                w = self.made(version)
                spoil(w)
                self.take_refused(w.bytes(), says)
        w = self.made(13)
        w.frame_index(7, 0)
        self.take_refused(w.bytes(), "not the next")

    def take_refused(self, data, says):
        (self.dir / "m.bin").write_bytes(data)
        p = self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "bad.db", says=["m.bin: byte "])
        self.assertIn(says, p.stderr)
        self.assertFalse((self.dir / "bad.db").exists())

    def test_cut_anywhere(self):
        for version in (11, 13):
            whole = self.made(version).bytes()
            head, n_read = len(Writer(version).head()), 0
            for n in share(range(8, len(whole)), 20):
                (self.dir / "m.bin").write_bytes(whole[:n])
                p = run("import", self.dir / "m.bin", "-o", self.dir / "t.db", "--json")
                if p.returncode != 0:
                    self.assertRegex(p.stderr, "ends before its first event")
                    continue
                self.assertGreater(n, head)
                self.assertTrue(json.loads(p.stdout)["cut"])
                n_read += 1
            self.assertGreater(n_read, 4)


MASK = (1 << 64) - 1


class Bad(Made):
    def test_other_versions(self):
        for version in (-1, 0, 8, 9, 14, 0x0D000000):
            (self.dir / "m.bin").write_bytes(b"memray\0" + struct.pack("<i", version) + Writer().bytes()[11:])
            self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db",
                         says=[f"version {version & 0xffffffff} of memray's, and versions 10 to 13 are read", "m.bin: byte 7"])

    def test_heads(self):
        head = Writer().head()
        for at, byte, says in ((15, 2, "yes or no"), (16, 2, "yes or no"), (40, 0x7F, "32-bit"), (48, 0x7F, "32-bit")):
            changed = bytearray(head)
            changed[at] = byte
            (self.dir / "m.bin").write_bytes(changed)
            self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db", says=[says, "m.bin: byte "])
        # The same head of a machine whose numbers have 32 bits.
        data = b"memray\0" + struct.pack("<iIBBIIqq", 13, 0x030B07F0, 0, 0, 5, 0, BEGIN_MS, BEGIN_MS + 9) + b"python3 prog.py\0" + bytes([1]) * 60
        (self.dir / "m.bin").write_bytes(data)
        self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db", says=["32-bit"])

    def spoilt(self, version):
        """What may not stand in a file, and why."""
        new = version >= 12
        yield lambda w: w.pop(2), "more frames are left"
        yield lambda w: w.push(99), "function is not there"
        yield lambda w: w.call("malloc", 0x40, 1 << 63), "2^63 bytes"
        yield lambda w: w.call("mmap", 0x40, 0), "empty"
        yield lambda w: w.call("mmap", MASK - 7, 8), "last address"
        yield lambda w: w.time((1 << 63) - 1), "time that cannot be"
        yield lambda w: w.put(12, b"\xff" * 8), "number is none"
        yield lambda w: w.put(7, b"lib\0", varint(1), bytes(8), b"\7"), "segment"
        yield lambda w: w.put(8), "not known"
        yield lambda w: w.put(0, b"\1"), "not known"
        yield lambda w: w.put(0xF8 if new else 0x01, b"\2", b"\x10" if new else b""), "allocator"
        yield lambda w: w.put(2 if new else 11, b"\xff" * 9 + b"\2"), "64 bits"
        yield lambda w: w.put(1 if new else 0x10, b"\1"), "behind its end"
        yield lambda w: w.code(5, "f", "f.py", 1 << 31), "line"
        if new:
            yield lambda w: w.put(14, varint(MASK), b"f\0f\0\0\0"), "number is none"
            yield lambda w: w.put(14, b"\1f\0f\0\0", varint((1 << 24) + 1)), "16 MiB"
            yield lambda w: w.put(64 | 2, b"\7\0"), "not known"
            yield lambda w: w.push(7, 1 << 31), "place is none"

    def test_bad_records(self):
        for version in VERSIONS:
            # All that is spoilt in the newest version; of older ones half, in two that are alike one half each.
            spoilt = list(enumerate(self.spoilt(version)))
            for i, (spoil, says) in spoilt if version == 13 else share(spoilt[version % 2:] + spoilt[:version % 2], 2):
                with self.subTest(version=version, i=i, says=says):
                    w = small(version)
                    spoil(w)
                    (self.dir / "m.bin").write_bytes(w.bytes())
                    self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db", says=[says, "m.bin: byte "])
                    self.assertFalse((self.dir / "t.db").exists())
        for spoil, says in ((lambda w: w.call("malloc", 8, 1), "no thread"), (lambda w: w.push(1), "no thread"), (lambda w: w.pop(), "more frames"),
                            (lambda w: w.thread_name("x"), "no thread")):
            w = Writer()
            spoil(w)
            (self.dir / "m.bin").write_bytes(w.bytes())
            self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db", says=[says])

    def test_a_stack_that_has_no_end(self):
        w = Writer()
        w.thread(MAIN)
        w.code(1, "f", "f.py", 1)
        w.out += b"\x41\1\0" * ((1 << 20) + 1)
        (self.dir / "m.bin").write_bytes(w.bytes())
        self.refused(3, "import", self.dir / "m.bin", "-o", self.dir / "t.db", says=["more than 2^20"])
        w.out = w.out[:-3]
        w.call("malloc", 8, 1)
        self.assertEqual(self.take(w.bytes())["blocks"], 1)

    def prefixes(self, of, whole, step=1, more=b""):
        """Of each beginning of `of`: what was read, or that nothing was."""
        rows, n_read = [e for e in whole], 0
        for n in share(range(12, len(of), step), 5 if step > 1 else 19):
            (self.dir / "m.bin").write_bytes(of[:n] + more)
            p = run("import", self.dir / "m.bin", "-o", self.dir / "t.db", "--json")
            if p.returncode == 3:
                self.assertRegex(p.stderr, "ends before its first (event|byte)|no recording of a known tool")
                continue
            self.assertEqual(p.returncode, 0, p.stderr)
            self.assertTrue(json.loads(p.stdout)["cut"], n)
            got = self.events()
            self.assertEqual(got, rows[:len(got)], n)
            n_read += len(got) > 0
        return n_read

    def test_cut_at_every_byte(self):
        for version in (11, 13):
            data = small(version).bytes()
            self.take(data)
            whole = self.events()
            self.assertGreater(self.prefixes(data, whole), 2)
            # Its program was killed: the file ends in zeros, and what may have been one of them is not taken for a number.
            self.assertGreater(self.prefixes(data, whole, more=bytes(4096)), 2)
        (self.dir / "m.bin").write_bytes(small(13).bytes(end=False, padding=99999))
        self.assertIn("note: the file ends in the middle", self.ok("import", self.dir / "m.bin", "-o", self.dir / "t.db").stderr)

    @unittest.skipUnless(HAS_LZ4, "lz4 is not there")
    def test_packed_and_cut(self):
        data = Captures.program(random.Random(8), 13, False).bytes()
        self.take(data)
        whole = self.events()
        packed = lz4(data)
        self.prefixes(packed, whole, step=max(1, len(packed) // 150))

    def test_changed_at_random(self):
        rng = random.Random(12)
        codes = []
        for i in share(range(160), 5):
            data = bytearray((small(VERSIONS[i % 4]) if i % 3 else Sums.made(VERSIONS[i % 4])).bytes(padding=i % 2))
            for _ in range(rng.choice([1, 2, 5])):
                data[rng.randrange(12, len(data))] = rng.randrange(256)
            (self.dir / "m.bin").write_bytes(data)
            p = run("import", self.dir / "m.bin", "-o", self.dir / "t.db")
            self.assertIn(p.returncode, (0, 3), p.stderr)
            codes.append(p.returncode)
            (self.dir / "t.db").unlink(missing_ok=True)
        self.assertEqual(set(codes), {0, 3})


class Packed(Made):
    @unittest.skipUnless(HAS_LZ4, "lz4 is not there")
    def test_every_packer(self):
        data = Captures.program(random.Random(5), 13, True).bytes(padding=300000)
        half = len(data) // 2
        said = self.take(data)
        rows = self.events()
        self.assertGreater(len(rows), 50)
        packed = {"lz4": lz4(data), "by hard work": lz4(data, "-9"), "small blocks": lz4(data, "-B4", "-BD"), "its size in its head": lz4(data, "--content-size"),
                  "without a checksum": lz4(data, "--no-frame-crc"), "two frames": lz4(data[:half]) + lz4(data[half:]), "of blocks with sums": lz4(data, "-BX"),
                  "an empty frame": lz4(b"") + lz4(data), "one that is skipped": lz4(data) + struct.pack("<II", 0x184D2A53, 5) + b"hello", "gzip": gzip.compress(data)}
        for name, file in packed.items():
            with self.subTest(name):
                self.assertEqual({**self.take(file), "file": ""}, {**said, "file": ""})
                self.assertEqual(self.events(), rows)
        for n in range(1, 9):  # the end of the packed data, behind that of the capture
            self.assertTrue(self.take(lz4(data)[:-n])["cut"])
            self.assertEqual(self.events(), rows)

    @unittest.skipUnless(HAS_LZ4, "lz4 is not there")
    def test_damaged_ones(self):
        file = lz4(Captures.program(random.Random(5), 13, True).bytes(), "-BX")
        n_refused = 0
        for at in share(range(4, len(file), max(1, len(file) // 80)), 4):
            changed = bytearray(file)
            changed[at] ^= 0x55
            (self.dir / "m.bin").write_bytes(changed)
            p = run("import", self.dir / "m.bin", "-o", self.dir / "t.db")
            if p.returncode == 0:  # the mark of the end
                self.assertIn("ends in the middle", p.stderr)
                (self.dir / "t.db").unlink()
                continue
            self.assertEqual(p.returncode, 3, (at, p.stderr, p.stdout))
            self.assertRegex(p.stderr, r"^error: .*(packed in it \(lz4\) is damaged|no recording of|ends before|cannot read)")
            n_refused += "(lz4) is damaged" in p.stderr
            self.assertFalse((self.dir / "t.db").exists())
        self.assertGreater(n_refused, 10)

    @unittest.skipUnless(HAS_LZ4, "lz4 is not there")
    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers reserve addresses of their own")
    def test_bombs(self):
        """Texts and tables without an end, zeros, stacks, loaded files, times: memory is that of what is kept, not of the file."""
        most = 5 if os.environ.get("TIDE_SOAK") else 1 # times as much as the limit leaves
        limit = lambda: resource.setrlimit(resource.RLIMIT_AS, (160 * MIB, 160 * MIB))
        head = small(13).bytes(end=False)
        table = b"\x0e\x01f\0f\0\0" + varint(1 << 24) + b"\xf8" * (1 << 24 if most > 1 else 1)
        for name, more, code, says in (
                ("a name", b"\x0a" + b"x" * (40 * MIB * most), 3, "4 MiB"), ("zeros", bytes(160 * MIB * most) + b"\1", 3, "not known"),
                ("padding", bytes(160 * MIB * most), 0, ""), ("times", b"\2\5\5" * (54 * MIB * most) + b"\1", 0, ""),
                ("segments", b"\7l\0" + varint(9 * MIB * most) + bytes(8) + (b"\x08" + bytes(8) + b"\1") * (9 * MIB * most) + b"\1", 0, ""),
                ("tables", table * 20 + b"\1", 3, "256 MiB")):
            if name == "tables" and most == 1:
                continue # as large as what is allowed: make soak
            with self.subTest(name):
                (self.dir / "m.bin").write_bytes(lz4(head + more))
                p = run("import", self.dir / "m.bin", "-o", self.dir / "t.db", preexec_fn=limit if name != "tables" else None)
                self.assertEqual(p.returncode, code, p.stderr)
                self.assertIn(says, p.stderr)


if __name__ == "__main__":
    tidemark.main()
