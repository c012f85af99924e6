# SPDX-License-Identifier: MIT
"""What `export` writes for other programs, read back as they would: JSON for Perfetto by a JSON reader and held against SQL
over the trace, C headers by compilers, the metadata of TensorFlow Lite Micro by its bytes."""
import collections
import json
import os
import pathlib
import pty
import re
import resource
import shutil
import signal
import sqlite3
import struct
import subprocess
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, share

LENET = SAMPLES / "lenet5.json"
HERE = pathlib.Path("build/test/tests/cli")
SUMS_TRACE = os.environ.get("TIDE_SUMS_TRACE", HERE / "sums_trace")
REPLAY_TRACE = os.environ.get("TIDE_REPLAY_TRACE", HERE / "replay_trace")
PEAK_OF = os.environ.get("TIDE_PEAK_OF", HERE / "peak_of")
DEVICE_TRACE = os.environ.get("TIDE_DEVICE_TRACE", HERE / "device_trace")
HEADS = "id,lower,upper,size,alignment,kind,device,role,persistent\n"
# Names that would end a comment or a string, begin another comment, a trigraph or a format, or are no identifier; several
# that are the same one when all but letters and digits is left out.
NAMES = ["a*/b", "a/*b", "*/", "/", "*", 'q"uote', "back\\", "what??/", "??/", "int", "class", "2nd", "3", "a.b", "a b", "a_b", "A_B", "a_b_2",
         "__x__", "_", "\u65e5\u672c", "\u202eturned", "tab\there", "line\nend */ #error x", "%s%n", "\u00e9t\u00e9", "offset", "N_TENSORS",
         "arena", "x" * 300, "\x7f", "// c", "\\\n", "p_2", "p", "p.", "y" * 4095, "z" * 4096, "\u00e9?'\"\\" * 900]


def document(tensors, **more):
    return json.dumps({"schema": "tidemark.lifetimes", "version": 1, "tensors": tensors, **more})


def tensor(name, size, begin, end, **more):
    return {"name": name, "size_bytes": size, "begin": begin, "end": end, **more}


# ---- C headers ----

class Header:
    """A header as a compiler sees it."""

    def __init__(self, case, text):
        self.case, self.text = case, text
        self.path = case.dir / "plan.h"
        self.path.write_bytes(text.encode())
        self.prefix = re.search(r"#ifndef (\w+)_MEMORY_PLAN_H", text)[1]
        self.macros = dict(re.findall(r"^#define (\w+) (\d+)(?:u|ull)?\b", text, re.M))

    def compile(self):
        """Alone, and twice in one file, in C and C++ of all years, without a warning."""
        flags = ["-Wall", "-Wextra", "-pedantic", "-Werror", "-fsyntax-only"]
        twice = self.case.dir / "twice.c"
        twice.write_text('#include "plan.h"\n#include "plan.h"\n')
        for compiler, language, years in (("gcc", "c", ("c99", "c17")), ("g++", "c++", ("c++11", "c++20")), ("clang", "c", ("c99",))):
            for year in years:
                for path in (self.path, twice):
                    if shutil.which(compiler) is None:
                        continue
                    p = subprocess.run([compiler, f"-std={year}", *flags, "-x", language, path], capture_output=True, text=True)
                    self.case.assertEqual((p.returncode, p.stderr), (0, ""), f"{compiler} {year} {path}\n{self.text[:3000]}")

    def table(self):
        """[(name, arena, offset, bytes, first step, last step)] as a program reads it, names as bytes."""
        count = int(self.macros[f"{self.prefix}_N_TENSORS"])
        if count == 0:
            return []
        lower, source, program = self.prefix.lower(), self.case.dir / "main.c", self.case.dir / "main"
        used = "\n".join(f'    printf("%llu\\n", (unsigned long long)({name}));' for name in self.macros)
        source.write_text(f"""#include "plan.h"
#include <stdio.h>
int main(void) {{
    for (unsigned i = 0; i < {self.prefix}_N_TENSORS; i++) {{
        const {lower}_tensor *t = &{lower}_tensors[i];
        for (const char *c = t->name; *c; c++) printf("%02x", (unsigned)(unsigned char)*c);
        printf(" %u %llu %llu %llu %llu\\n", (unsigned)t->arena, (unsigned long long)t->offset, (unsigned long long)t->bytes,
               (unsigned long long)t->first_step, (unsigned long long)t->last_step);
    }}
{used}
    return 0;
}}
""")
        subprocess.run(["gcc", "-std=c99", "-o", program, source], check=True)
        lines = subprocess.run([program], check=True, capture_output=True, text=True).stdout.splitlines()
        rows = []
        for line in lines[:count]:
            name, *numbers = line.split(" ")
            rows.append((bytes.fromhex(name), *map(int, numbers)))
        # What a comment has let out would stand in the macros: each is a number, and nothing else.
        self.case.assertEqual(lines[count:], list(self.macros.values()))
        return rows


class CHeader(Case):
    def header(self, *args):
        return Header(self, self.ok("export", *args, "--to", "c-header").stdout)

    def hold(self, header, doc):
        """The header against the plan's JSON: every tensor with a place, in order, where the plan has it."""
        plan = doc["plans"][0]
        buffers = plan["buffers"]
        index = {(b["device"], b["kind"]): i for i, b in enumerate(buffers)}
        want = [(t["name"].encode(), index.get((t["device"], t["kind"]), 0), t["places"][0]["offset"], t["size_bytes"], t["birth"],
                 t["death"]) for t in doc["tensors"] if t["places"][0]["offset"] is not None]
        self.assertEqual(header.table(), want)
        # Macros: in the same order, each name once.
        found = re.findall(rf"^#define ({header.prefix}_TENSOR_\w+)_OFFSET (\d+)(?:u|ull) .*\n#define \1_BYTES (\d+)(?:u|ull)$",
                           header.text, re.M)
        self.assertEqual([(int(offset), int(size)) for _, offset, size in found], [row[2:4] for row in want])
        names = re.findall(r"^#define (\w+)", header.text, re.M)
        self.assertEqual(len(names), len(set(names)))
        for name in names:
            self.assertNotIn("__", name)
        sizes = [(b["bytes"], b["align_bytes"]) for b in buffers]
        if len(buffers) <= 1:
            got = [tuple(int(header.macros[f"{header.prefix}_ARENA_{what}"]) for what in ("BYTES", "ALIGN"))]
            self.assertEqual(got, sizes or [(0, 1)])
        else:
            got = re.findall(rf"^#define ({header.prefix}_ARENA_\w+) (\d+)u /.*\n#define \1_BYTES (\d+)u(?:ll)?\n#define \1_ALIGN (\d+)u",
                             header.text, re.M)
            self.assertEqual([(int(i), int(size), int(align)) for _, i, size, align in got],
                             [(i, *size) for i, size in enumerate(sizes)])
        self.assertEqual(int(header.macros[f"{header.prefix}_N_ARENAS"]), max(1, len(buffers)))
        header.compile()

    def check(self, path, *args):
        plan = self.dir / "plan.json"
        self.ok("plan", path, *args, "-o", plan)
        doc = json.loads(plan.read_text())
        header = self.header(plan)
        self.hold(header, doc)
        return header

    def test_models(self):
        for path in share(sorted(SAMPLES.glob("*.json")), 4):
            more = ["--shape", "x=8x64"] if path.stem == "dynamic_batch" else []
            with self.subTest(graph=path.stem):
                self.check(path, *more)

    def test_a_model_is_planned_and_a_trace_has_its_plan(self):
        self.hold(self.header(LENET), self.json("plan", LENET))
        self.ok("run", LENET, "-n", 1, "-o", self.dir / "t.db")
        self.assertEqual(self.header(self.dir / "t.db").table(), self.header(LENET).table())

    def test_pools(self):
        header = self.check(LENET, "--strategy", "greedy_color")
        self.assertIn("greedy_color", header.text)

    def test_names_that_no_header_holds(self):
        path = self.dir / "l.json"
        path.write_text(document([tensor(name, 10 + i, i % 5, i % 5 + 2) for i, name in enumerate(NAMES)],
                                 model="*/ 1st \u65e5 model\n#error"))
        self.check(path)

    def test_names_that_differ_in_what_is_left_out(self):
        """Hundreds of names that are one identifier: each gets its own, without a search through all before."""
        path = self.dir / "l.json"
        path.write_text(document([tensor("a" + "." * i, 1, 0, 1) for i in range(1, 301)] +
                                 [tensor(f"a_{i}", 1, 0, 1) for i in range(300)]))
        self.check(path)

    def test_several_buffers(self):
        path = self.dir / "l.csv"
        path.write_text(HEADS + "a,0,2,8,,,,,\nb,1,3,8,,,,,\nk,0,3,100,16,KVCache,,,\ng,0,1,64,64,,cuda:0,,\nw,0,3,5,,Persistent,,weight,1\n")
        header = self.check(path)
        self.assertIn("_ARENA_CUDA_0_WORKSPACE_BYTES 64u", header.text)
        self.assertIn("Not listed: 1 ", header.text)

    def test_of_hardly_anything(self):
        for name, tensors in {"none": [], "zero": [tensor("a", 0, 0, 3), tensor("b", 0, 1, 2)], "one": [tensor("a", 1, 0, 1)],
                              "persistent": [tensor("w", 64, 0, 2, persistent=True, role="weight")],
                              "far": [tensor("a", 64, 4 * 10**12, 4 * 10**12 + 1)],
                              "large": [tensor("a", 5 << 32, 0, 2), tensor("b", 1, 0, 2)]}.items():
            with self.subTest(list=name):
                path = self.dir / f"{name}.json"
                path.write_text(document(tensors, model=name))
                header = self.check(path)
                self.assertEqual("uint64_t" in header.text, name in ("far", "large"))

    def test_prefix(self):
        header = self.header(LENET, "--prefix", "My_net2")
        self.assertEqual(header.prefix, "MY_NET2")
        self.assertIn("my_net2_tensors", header.text)
        header.compile()
        for bad in ("", "2x", "_x", "x_", "a__b", "a-b", "a b", "\u00e9", "x;"):
            self.refused(2, "export", LENET, "--to", "c-header", "--prefix", bad, says=["--prefix"])
        self.refused(2, "export", LENET, "--to", "csv", "--prefix", "x", says=["c-header"])

    def test_a_tensor_without_a_size_is_told(self):
        path = self.dir / "l.json"
        path.write_text(document([tensor("a", 8, 0, 1)], dynamic=["later"]))
        p = self.ok("export", path, "--to", "c-header")
        self.assertIn("sized while running", p.stderr)
        self.assertIn("Not listed: 1 sized while running", p.stdout)
        Header(self, p.stdout).compile()


# ---- TensorFlow Lite Micro ----

class Tflm(Case):
    def words(self, *args, stdin=None):
        out = self.dir / "plan.bin"
        self.ok("export", *args, "--to", "tflm", "-o", out, stdin=stdin)
        data = out.read_bytes()
        self.assertEqual(len(data) % 4, 0)
        return list(struct.unpack(f"<{len(data) // 4}i", data))

    def hold(self, words, doc):
        places = [t["places"][0]["offset"] for t in doc["tensors"] if t["role"] != "scratch"]
        self.assertEqual(words, [1, 0, len(places), *(-1 if place is None else place for place in places)])

    def test_models(self):
        for path in (LENET, SAMPLES / "unet.json", SAMPLES / "squeezenet1_1.json"):
            plan = self.dir / "plan.json"
            self.ok("plan", path, "-o", plan)
            self.hold(self.words(plan), json.loads(plan.read_text()))

    def test_of_hardly_anything(self):
        for tensors in ([], [tensor("a", 0, 0, 1)], [tensor("w", 4, 0, 2, persistent=True), tensor("b", 300, 0, 1)]):
            self.hold(self.words("-", stdin=document(tensors)), self.json("plan", "-", stdin=document(tensors)))

    def test_offsets_have_31_bits(self):
        last = [tensor("a", 2**31 - 1, 0, 2, fixed_offset=0), tensor("behind", 1, 0, 2, fixed_offset=2**31 - 1)]
        self.assertEqual(self.words("-", stdin=document(last)), [1, 0, 2, 0, 2**31 - 1])
        over = [tensor("a", 2**31, 0, 2, fixed_offset=0), tensor("be\nhind", 1, 0, 2, fixed_offset=2**31)]
        out = self.dir / "over.bin"
        self.refused(3, "export", "-", "--to", "tflm", "-o", out, stdin=document(over), says=["'be?hind'", str(2**31)])
        self.assertFalse(out.exists())

    def test_one_arena(self):
        two = [tensor("a", 8, 0, 2), tensor("k", 8, 0, 2, kind="KVCache")]
        self.refused(3, "export", "-", "--to", "tflm", stdin=document(two), says=["one arena", "KVCache", "c-header"])

    def test_a_terminal_gets_no_bytes(self):
        mine, its = pty.openpty()
        p = subprocess.run([PROGRAM, "export", LENET, "--to", "tflm"], stdout=its, stderr=subprocess.PIPE, text=True, env=environment())
        os.close(its)
        self.assertEqual(p.returncode, 2)
        self.assertIn("-o FILE", p.stderr)
        os.set_blocking(mine, False)
        with self.assertRaises(OSError):
            os.read(mine, 1)
        os.close(mine)


# ---- the Trace Event Format ----

def ns(ts):
    """A time as text, "12.345", in whole nanoseconds."""
    whole, _, part = ts.partition(".")
    assert len(part) == 3, ts
    return int(whole) * 1000 + int(part)


class Timeline:
    """What was written, with exact times, and what must hold of every such file."""

    def __init__(self, case, path, *args):
        out = case.dir / "out.json"
        case.ok("export", path, "--to", "chrome-trace", "-o", out, *args)
        self.case, text = case, out.read_text(encoding="utf-8")
        case.assertEqual(case.ok("export", path, "--to", "chrome-trace", *args).stdout, text)  # the same to standard output
        self.doc = json.loads(text, parse_float=str)
        case.assertEqual(self.doc["displayTimeUnit"], "ns")
        self.events = self.doc["traceEvents"]
        case.assertEqual(text.count("\n"), len(self.events) + 5)  # one a line
        for e in self.events:
            if e["ph"] != "M":
                e["ns"] = ns(e["ts"])
        self.check_slices()
        self.check_scopes()
        self.check_order()
        self.check_names()

    def of(self, ph, **keys):
        return [e for e in self.events if e["ph"] == ph and all(e.get(k) == v for k, v in keys.items())]

    def check_slices(self):
        """Each begin has one end of the same name, not before it, and no id is given twice."""
        begun = {}
        ended = set()
        for e in self.events:
            key = e.get("pid"), e.get("cat"), e.get("id"), e.get("name")
            if e["ph"] == "b":
                self.case.assertNotIn(key, begun)
                begun[key] = e
            if e["ph"] == "e":
                self.case.assertIn(key, begun)
                self.case.assertNotIn(key, ended)
                self.case.assertGreaterEqual(e["ns"], begun[key]["ns"])
                ended.add(key)
        self.case.assertEqual(set(begun), ended)

    def check_scopes(self):
        """Begins and ends of a thread nest."""
        stacks = collections.defaultdict(list)
        for e in self.events:
            if e["ph"] == "B":
                stacks[e["pid"], e["tid"]].append((e["name"], e["ns"]))
            if e["ph"] == "E":
                name, begin = stacks[e["pid"], e["tid"]].pop()
                self.case.assertEqual(name, e["name"])
                self.case.assertGreaterEqual(e["ns"], begin)
        self.case.assertFalse(any(stacks.values()))

    def check_order(self):
        """Times of a counter, and of the scopes of a thread, never go back."""
        last = collections.defaultdict(int)
        for e in self.events:
            track = ("C", e["pid"], e["name"]) if e["ph"] == "C" else ("B", e["pid"], e["tid"]) if e["ph"] in "BE" else None
            if track:
                self.case.assertGreaterEqual(e["ns"], last[track], e)
                last[track] = e["ns"]

    def check_names(self):
        named = {e["pid"] for e in self.of("M", name="process_name")}
        self.case.assertLessEqual({e["pid"] for e in self.events}, named)
        threads = {(e["pid"], e["tid"]) for e in self.of("M", name="thread_name")}
        self.case.assertLessEqual({(e["pid"], e["tid"]) for e in self.of("B")}, threads)


class Ledger:
    """A replay of the table of events, by the rules of docs/trace-format.md; knows nothing of what tidemark shows."""

    def __init__(self, path, first=1, last=None):
        db = sqlite3.connect(path)
        self.origin = min([t for (t,) in db.execute("SELECT t_ns FROM event ORDER BY id LIMIT 1")] +
                          [t for (t,) in db.execute("SELECT begin_ns FROM run")], default=0)
        self.curves = collections.defaultdict(list)  # name -> [(ns, requested, reserved)] after each change
        self.blocks, self.live, sums = [], {}, collections.defaultdict(lambda: [0, 0])
        query = """SELECT e.id, e.t_ns, o.name, coalesce(e.block_id, 0), k.name, d.name, e.requested_bytes, e.reserved_bytes, e.address,
            coalesce(t.text, ''), coalesce(a.text, '') FROM event e JOIN op o ON o.id = e.op LEFT JOIN kind k ON k.id = e.kind
            LEFT JOIN device d ON d.id = e.device LEFT JOIN name t ON t.id = e.tag_id LEFT JOIN name a ON a.id = e.allocator_id
            ORDER BY e.id"""

        def change(block, sign, t, show):
            for name in ("all memory", f"{block['device']} {block['kind']}"):
                sums[name][0] += sign * block["requested"]
                sums[name][1] += sign * block["reserved"]
                if show:
                    self.curves[name].append((t - self.origin, *sums[name]))

        def end(number, t, shown):
            block = self.live.pop(number)
            block["end"] = t - self.origin
            change(block, -1, t, shown)

        for event, t, op, number, kind, device, requested, reserved, address, name, allocator in db.execute(query):
            if last is not None and event > last:
                break
            shown = event >= first
            if shown and not self.curves and first > 1:
                for key, value in sums.items():
                    self.curves[key].append((None, *value))
            if op == "alloc" and number > 0:
                if number in self.live:
                    end(number, t, False)
                if sums["all memory"][0] + requested > 2**63 - 1:
                    continue
                block = {"event": event, "begin": t - self.origin, "end": None, "name": name or "(no name)", "kind": kind, "device": device,
                         "requested": requested, "reserved": reserved, "address": address % 2**64, "allocator": allocator or "(no name)"}
                self.live[number] = block
                self.blocks.append(block)
                change(block, 1, t, shown)
            elif op == "free_completed" and number in self.live:
                end(number, t, shown)
            elif op == "pool_discard":
                for other, block in sorted(self.live.items()):
                    if block["device"] == device and other >> 48 == number >> 48 and (block["address"] - address) % 2**64 < reserved:
                        end(other, t, shown)
            if not shown:
                self.blocks = [b for b in self.blocks if b["end"] is None]  # of a part: what ended before is not shown
        db.close()


class ChromeTrace(Case):
    def record(self, program, *args):
        path = self.dir / "t.db"
        subprocess.run([program, *args, path], check=True)
        return path

    def hold(self, line, ledger):
        """Curves at each moment, and every block, against the ledger."""
        for name, want in ledger.curves.items():
            got = [(e["ns"], e["args"]["requested"], e["args"]["reserved"]) for e in line.of("C", pid=1, name=name)]
            if want and want[0][0] is None:  # where a part begins
                want = [(got[0][0], *want[0][1:]), *want[1:]]
            self.assertEqual(self.last_of_each_moment(got), self.last_of_each_moment(want), name)
        shown = {e["name"] for e in line.of("C", pid=1) if "requested" in e["args"]}
        self.assertEqual(shown, {name for name, rows in ledger.curves.items() if rows} | (shown & {"all memory"}))
        ends = {e["id"]: e for e in line.of("e")}
        got = {}
        for e in line.of("b"):
            if not e["id"].startswith("b"):
                continue
            a = e["args"]
            end = ends[e["id"]]
            still = end.get("args", {}).get("end") == "alive at the end of what is shown"
            got[a["event"]] = (e["ns"], None if still else end["ns"], e["name"], a["bytes"], a["reserved"], a["kind"], a["device"],
                               a["allocator"], int(a["address"], 16))
        want = {b["event"]: (b["begin"], b["end"], b["name"], b["requested"], b["reserved"], b["kind"], b["device"], b["allocator"],
                             b["address"]) for b in ledger.blocks}
        self.assertEqual(got, want)

    @staticmethod
    def last_of_each_moment(rows):
        """Several changes can share a moment: what holds behind it, and the highest value ever."""
        return dict((row[0], row[1:]) for row in rows), max((row[1] for row in rows), default=0)

    def whole(self, path):
        line = Timeline(self, path, "--whole")
        ledger = Ledger(path)
        self.hold(line, ledger)
        # Scopes of each thread, one by one; what was never left ends with the trace.
        want = collections.defaultdict(list)
        for thread, enter, name, t in ask(path, "SELECT thread, enter, scope, t_ns FROM scopes ORDER BY scope_event_id"):
            want[thread].append(("B" if enter else "E", name, t - ledger.origin))
        got = collections.defaultdict(list)
        for e in line.events:
            if e["ph"] in "BE" and "not left" not in e.get("args", {}).values():
                got[e["tid"]].append((e["ph"], e["name"], e["ns"]))
        self.assertEqual(got, want)
        # What the blocks of an allocator hold at the end, and the most that it ever was: no more than all they ever held.
        rows = ask(path, """SELECT (b.id >> 48) + 2, coalesce(n.text, '(no name)') || ' on ' || d.name, sum(b.reserved_bytes),
            sum(iif(b.free_event IS NULL, b.reserved_bytes, 0)) FROM block b JOIN device d ON d.id = b.device
            LEFT JOIN name n ON n.id = b.allocator_id WHERE b.id > 0 GROUP BY 1, 2""")
        for pid, name, most, last in rows if len(ledger.blocks) == ask(path, "SELECT count(*) FROM block WHERE id > 0")[0][0] else ():
            curve = [e["args"]["active"] for e in line.of("C", pid=pid, name=name)]
            self.assertEqual(curve[-1], last, name)
            self.assertLessEqual(max(curve), most, name)
        peak = ask(path, "SELECT peak_bytes, t_ns FROM peak WHERE run_id = 0")
        curve = [(e["args"]["requested"], e["ns"]) for e in line.of("C", pid=1, name="all memory")]
        if curve and peak:
            self.assertEqual(max(curve)[0], peak[0][0])
        return line

    def test_traces_of_programs(self):
        for program, kinds in ((SUMS_TRACE, ("one", "zero", "kind")),
                               (REPLAY_TRACE, ("streams", "discard", "frees", "twice", "huge", "some", "oom", "many")),
                               (DEVICE_TRACE, ("program", "blind", "3", "4"))):
            for kind in kinds:
                with self.subTest(program=pathlib.Path(program).name, kind=kind):
                    self.whole(self.record(program, kind))

    def test_runs(self):
        """Naive and planned, of one trace the last run unless another is asked for; curves begin with what was there."""
        naive, planned = self.dir / "n.db", self.dir / "p.db"
        self.ok("run", SAMPLES / "unet.json", "-n", 3, "--naive", "-o", naive)
        self.ok("compare", SAMPLES / "inception_block.json", "-n", 2, "-o", planned)
        for path in (naive, planned):
            line = self.whole(path)
            steps = ask(path, "SELECT count(*) FROM scopes WHERE enter")[0][0]
            self.assertEqual(len(line.of("B")), steps)
            marks = ask(path, "SELECT name, t_ns FROM marks")
            origin = Ledger(path).origin
            self.assertEqual([(e["name"], e["ns"]) for e in line.of("i", cat="mark")], [(n, t - origin) for n, t in marks])
            runs = ask(path, "SELECT id, first_event, last_event, begin_ns FROM run")
            for run_id, first, last, begin in runs:
                part = Timeline(self, path, "--run", run_id)
                self.hold(part, Ledger(path, first, last))
                self.assertEqual([e["args"]["run"] for e in part.of("b", cat="run")], [run_id])
                peak = ask(path, "SELECT peak_bytes FROM peak WHERE run_id = ?", run_id)[0][0]
                self.assertEqual(max(e["args"]["requested"] for e in part.of("C", name="all memory")), peak)
                self.assertEqual(part.of("b", cat="run")[0]["ns"], begin - origin)
            self.assertEqual(Timeline(self, path).events, part.events)
        self.refused(3, "export", naive, "--to", "chrome-trace", "--run", 7, says=["7"])
        self.refused(2, "export", naive, "--to", "csv", "--run", 1, says=["chrome-trace"])
        self.refused(2, "export", naive, "--to", "chrome-trace", "--run", 0)
        self.refused(2, "export", naive, "--to", "chrome-trace", "--run", 1, "--whole")
        self.refused(2, "export", LENET, "--to", "chrome-trace", "--whole", says=["graph text"])

    def test_tensors_in_a_plans_buffer(self):
        """Each execution's tensors, from step to step: those that view `holders` has of each."""
        path = self.dir / "t.db"
        self.ok("run", LENET, "-n", 3, "-o", path)
        line = self.whole(path)
        origin = Ledger(path).origin
        ends = {e["id"]: e["ns"] for e in line.of("e")}
        got = collections.Counter((e["args"]["execution"], e["name"], e["args"]["bytes"], e["args"]["offset"])
                                  for e in line.of("b", cat="in a plan's buffer"))
        tensors = ask(path, "SELECT name, size_bytes, offset_bytes, begin_step, end_step FROM plan_tensors WHERE NOT persistent")
        executions = ask(path, "SELECT execution, step, t_ns FROM execution_steps s JOIN event e ON e.id = s.first_event ORDER BY 1, 2")
        numbers = sorted({row[0] for row in executions})
        self.assertEqual(len(numbers), 3)
        self.assertEqual(got, collections.Counter((n, name, size, offset) for n in range(len(numbers)) for name, size, offset, *_ in tensors))
        begins = {(n, step): t - origin for n, (number) in enumerate(numbers) for e, step, t in executions if e == number}
        steps = max(step for _, step in begins)
        spans = {name: (b, e) for name, _, _, b, e in tensors}
        for e in line.of("b", cat="in a plan's buffer"):
            first, behind = spans[e["name"]]
            self.assertEqual(e["ns"], begins[e["args"]["execution"], first])
            if behind <= steps:
                self.assertEqual(ends[e["id"]], begins[e["args"]["execution"], behind])

    def test_what_a_program_does_between(self):
        """Given up and held, ended by its pool, failed: the end of a slice or a moment says so."""
        line = self.whole(self.record(REPLAY_TRACE, "streams"))
        waited = [e["args"]["waited_ns"] for e in line.of("e") if "waited_ns" in e.get("args", {})]
        self.assertIn(2000, waited)
        line = self.whole(self.record(REPLAY_TRACE, "discard"))
        self.assertIn("its pool was discarded", [e.get("args", {}).get("end") for e in line.of("e")])
        line = self.whole(self.record(REPLAY_TRACE, "oom"))
        self.assertEqual(len(line.of("i", cat="oom")), 1)
        line = self.whole(self.record(DEVICE_TRACE, "program"))
        want = ask(self.dir / "t.db", "SELECT count(*) FROM events WHERE op = 'device_usage'")[0][0]
        self.assertEqual(len([e for e in line.of("C") if "used" in e["args"]]), want)
        # What allocators take from the system, by its events.
        for e in line.of("C"):
            if "segments" in e["args"]:
                self.assertGreaterEqual(e["args"]["segments"], 0)

    def test_a_scope_that_was_not_left(self):
        """It ends with the one around it, and says so; the end of that one is found then."""
        path = self.dir / "t.db"
        self.ok("run", LENET, "-n", 1, "--naive", "--form", "rows", "-o", path)
        scopes = ask(path, """SELECT e.id, o.name, e.scope_id, e.t_ns FROM event e JOIN op o ON o.id = e.op
                              WHERE o.name IN ('scope_enter', 'scope_leave') ORDER BY e.id""")
        outer = scopes[0][2]
        at = next(k for k, row in enumerate(scopes) if row[1] == "scope_leave")  # of the first operator: now of all around it
        with sqlite3.connect(path) as db:
            db.execute("UPDATE event SET scope_id = ? WHERE id = ?", (outer, scopes[at][0]))
        db.close()
        ends = Timeline(self, path, "--whole").of("E")
        t = scopes[at][3] - Ledger(path).origin
        self.assertEqual([(e["name"], e["ns"], e.get("args", {}).get("end")) for e in ends[:2]],
                         [("conv1", t, "not left"), ("lenet5", t, None)])
        self.assertEqual({e.get("args", {}).get("end") for e in ends[2:]}, {None})

    def test_several_processes(self):
        """Scopes and blocks stand with the process whose they are; what all have together is the sum."""
        path = self.dir / "t.db"
        command = f"{PROGRAM} run {LENET} -n 1 --naive & {PROGRAM} run {LENET} -n 1 --naive; wait"
        self.ok("record", "-o", path, "--", "sh", "-c", command)
        line = self.whole(path)
        rows = ask(path, "SELECT p.id, p.pid, t.id FROM process p JOIN thread t ON t.process_id = p.id")
        self.assertEqual(len({row[0] for row in rows}), 2)
        threads = {(e["pid"], e["tid"]) for e in line.of("B")}
        self.assertEqual(threads, {(number + 1, thread) for number, _, thread in rows})
        for number, pid, _ in rows:
            (name,) = {e["args"]["name"] for e in line.of("M", name="process_name", pid=number + 1)}
            self.assertTrue(name.startswith(f"process {pid}"), name)
            self.assertIn("cpu on cpu", {e["name"] for e in line.of("C", pid=number + 1)})
        by = collections.Counter(e["pid"] for e in line.of("b") if e["id"].startswith("b"))
        self.assertEqual(by, collections.Counter(dict(ask(path, "SELECT (id >> 48) + 2, count(*) FROM block GROUP BY 1"))))

    def test_chunks_and_dropped_events(self):
        """Chunks say the same as rows; where the oldest events are gone, what is left begins with what was live."""
        path = self.dir / "t.db"
        self.ok("run", LENET, "-n", 20, "--naive", "-o", path, "--form", "chunks")
        self.assertEqual(ask(path, "SELECT count(*) FROM event"), [(0,)])
        before = Timeline(self, path, "--whole").events
        self.ok("trace", path, "--expand")
        self.assertEqual(self.whole(path).events, before)
        self.ok("run", LENET, "-n", 6000, "--naive", "-o", path, "--max-trace", "8MiB")
        first = int(ask(path, "SELECT value FROM meta WHERE key = 'first_kept_event'")[0][0])
        self.assertGreater(first, 1)
        out = self.dir / "out.json"
        self.ok("export", path, "--to", "chrome-trace", "-o", out, "--whole")
        events = json.loads(out.read_text())["traceEvents"]
        curve = [e["args"]["requested"] for e in events if e["ph"] == "C" and e["name"] == "all memory"]
        self.assertEqual(curve[-1], self.json("trace", path, "--at", "end")["moment"]["requested_bytes"])
        allocs = [i for i, e in enumerate(events) if e["ph"] == "b" and e["id"][0] == "b" and e["args"]["event"] >= first]
        for i in allocs[:3] + allocs[len(allocs) // 2:][:3]:
            behind = next(e["args"]["requested"] for e in events[i:] if e["ph"] == "C" and e["name"] == "all memory")
            event = events[i]["args"]["event"]
            self.assertEqual(behind, self.json("trace", path, "--at", f"#{event}")["moment"]["requested_bytes"], event)
        begun, ended = ({e["id"] for e in events if e["ph"] == ph} for ph in "be")
        self.assertEqual(begun, ended)

    def test_an_unfinished_trace_and_an_empty_one(self):
        empty = self.dir / "e.db"
        self.ok("record", "-o", empty, "--", "true")
        line = Timeline(self, empty)
        self.assertEqual([e["ph"] for e in line.events], ["M"])
        path = self.dir / "u.db"
        p = self.start("run", LENET, "-n", 1000000, "--naive", "-o", path)
        tidemark.until(lambda: path.exists() and ask(path, "SELECT count(*) FROM event")[0][0] > 100)
        text = self.ok("export", path, "--to", "chrome-trace", "--whole").stdout
        p.kill()
        p.wait()
        self.assertGreater(len(json.loads(text)["traceEvents"]), 100)

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers take memory of their own")
    def test_a_trace_is_not_held(self):
        """Ten times as many events take no more memory: what is live is all that is kept."""
        peaks = []
        for runs in (400, 4000):
            path = self.dir / f"{runs}.db"
            self.ok("run", LENET, "-n", runs, "--naive", "-o", path)
            p = subprocess.run([PEAK_OF, PROGRAM, "export", path, "--to", "chrome-trace", "-o", self.dir / "out.json"], check=True,
                               stderr=subprocess.PIPE, text=True, env=environment())
            peaks.append(int(p.stderr.splitlines()[-1]))
        self.assertGreater((self.dir / "out.json").stat().st_size, 30 << 20)
        self.assertLess(peaks[1], peaks[0] + (4 << 20), peaks)

    def test_names(self):
        """Exact for a parser, whatever they are; nothing that a terminal obeys."""
        names = [name for name in NAMES if "\0" not in name]
        plan = self.dir / "l.json"
        plan.write_text(document([tensor(name, 1, 0, 1) for name in names]))
        text = self.ok("export", plan, "--to", "chrome-trace").stdout
        self.assertNotRegex(text, "[\x00-\x09\x0b-\x1f\x7f\u202e]")
        self.assertEqual([e["name"] for e in json.loads(text)["traceEvents"] if e["ph"] == "b"], names)

    def test_plans(self):
        """A slice a tensor where its lifetime is, a step a microsecond, live bytes at each step as plain sums give them."""
        lists = {"none": [], "zero": [tensor("a", 0, 0, 3)], "one": [tensor("a", 1, 0, 1)], "far": [tensor("a", 64, 4 * 10**12, 4 * 10**12 + 1)],
                 "gaps": [tensor("a", 100, 0, 9, gaps=[{"begin": 2, "end": 4}, {"begin": 5, "end": 6, "lo": 0, "hi": 30}]), tensor("b", 7, 3, 5)],
                 "buffers": [tensor("a", 8, 0, 2), tensor("k", 9, 1, 3, kind="KVCache"), tensor("g", 10, 2, 4, device="cuda:0")]}
        paths = [(SAMPLES / f"{name}.json", []) for name in ("lenet5", "unet", "inception_block")]
        for name, tensors in lists.items():
            (self.dir / f"{name}.json").write_text(document(tensors))
            paths.append((self.dir / f"{name}.json", []))
        paths.append((LENET, ["--strategy", "greedy_color"]))
        for path, more in paths:
            with self.subTest(plan=path.stem, more=more):
                plan = self.dir / "plan.json"
                self.ok("plan", path, *more, "-o", plan)
                self.check_plan(Timeline(self, plan), json.loads(plan.read_text()), path.stem in lists)

    def check_plan(self, line, doc, is_list):
        ends = {e["id"]: e["ns"] for e in line.of("e")}
        begun = line.of("b")
        self.assertEqual([(e["name"], e["ns"], ends[e["id"]], e["args"]["bytes"], e["args"].get("offset"), e["args"].get("pool", -1))
                          for e in begun],
                         [(t["name"], t["begin"] * 1000, t["end"] * 1000, t["size_bytes"], t["places"][0]["offset"], t["places"][0]["pool"])
                          for t in doc["tensors"]])
        self.assertEqual([e["name"] for e in line.of("X")], doc["order"])
        for b in doc["plans"][0]["buffers"]:
            curve = {e["ns"] // 1000: e["args"]["live"] for e in line.of("C", name=f"{b['device']} {b['kind']}")}
            self.assertEqual(max(curve.values(), default=0), b["lower_bound_bytes"])
            if is_list:
                self.assertEqual(curve, self.sums(doc, b))
        self.assertEqual({e["name"] for e in line.of("C")}, {f"{b['device']} {b['kind']}" for b in doc["plans"][0]["buffers"]
                                                             if b["lower_bound_bytes"] > 0})

    @staticmethod
    def sums(doc, buffer):
        """Live bytes at each step where a lifetime or a gap begins or ends; lists without aliases."""
        mine = [t for t in doc["tensors"] if (t["device"], t["kind"], t["persistent"]) == (buffer["device"], buffer["kind"], False)]
        cuts = {cut for t in mine for cut in (t["begin"], t["end"], *(g[k] for g in t.get("gaps", []) for k in ("begin", "end")))}

        def needs(t, step):
            if not t["begin"] <= step < t["end"]:
                return 0
            for g in t.get("gaps", []):
                if g["begin"] <= step < g["end"]:
                    return g.get("hi", 0) - g.get("lo", 0)
            return t["aligned_bytes"]
        return {cut: sum(needs(t, cut) for t in mine) for cut in cuts}


# ---- a long list of blocks ----

class Listing(Case):
    """A trace without runs as CSV is written in parts of 4,096 blocks."""

    def made(self, what):
        path = self.dir / f"{what}.db"
        subprocess.run([REPLAY_TRACE, what, path], check=True)
        return path

    def test_parts_are_one_list(self):
        """The columns that any part needs; what is read back is the same; begins and ends are counted by hand."""
        path = self.made("many")
        self.ok("trace", "--expand", path)
        last = ask(path, "SELECT max(block_id) FROM event WHERE op = 1")[0][0]
        with sqlite3.connect(path) as db:
            db.execute("UPDATE event SET kind = 3 WHERE block_id = ?", (last,))  # KVCache, of the last block alone
        db.close()
        out = self.dir / "l.csv"
        self.ok("export", path, "--to", "csv", "-o", out)
        again = self.ok("export", out, "--to", "csv").stdout
        self.assertEqual(out.read_text(), again)
        head, *lines = out.read_text().splitlines()
        self.assertIn("kind", head.split(","))
        rows = [dict(zip(head.split(","), line.split(","))) for line in lines]
        self.assertEqual([r["kind"] for r in rows], ["Workspace"] * 19999 + ["KVCache"])
        step, begins, ends, sizes = 0, {}, {}, {}
        for op, block, size in ask(path, "SELECT op, block_id, requested_bytes FROM event WHERE op IN (1, 3) ORDER BY id"):
            if op == 1:
                begins[block], sizes[block], step = step, size, step + 1
            else:
                ends[block] = step
        want = [(str(begins[b]), str(ends.get(b, step)), str(sizes[b])) for b in begins]
        self.assertEqual([(r["lower"], r["upper"], r["size"]) for r in rows], want)

    def test_none_and_one(self):
        for what, n in (("frees", 0), ("oom", 1)):
            self.assertEqual(len(self.ok("export", self.made(what), "--to", "csv").stdout.splitlines()), n + 1)

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "sanitizers take memory of their own")
    def test_it_is_not_held(self):
        """19,000 blocks more take less than 300 bytes each, a part and its text among them; a list that is held takes 430."""
        peaks = []
        for what in ("some", "many"):
            p = subprocess.run([PEAK_OF, PROGRAM, "export", self.made(what), "--to", "csv", "-o", self.dir / "l.csv"], check=True,
                               stderr=subprocess.PIPE, text=True, env=environment())
            peaks.append(int(p.stderr.splitlines()[-1]))
        self.assertLess(peaks[1] - peaks[0], 19000 * 300, peaks)

    def test_a_name_that_no_csv_holds(self):
        """Of a late part: nothing is written."""
        path, out = self.made("many"), self.dir / "l.csv"
        self.ok("trace", "--expand", path)
        with sqlite3.connect(path) as db:
            db.execute("UPDATE name SET text = 'a, b' WHERE text = 'block'")
        db.close()
        self.refused(3, "export", path, "--to", "csv", "-o", out, says=["it has a comma"])
        self.assertFalse(out.exists())


# ---- where it goes ----

class Files(Case):
    def test_nothing_is_half_written(self):
        """A damaged trace, a folder that is not there, a full disk: an error, and the file is as it was."""
        trace, out = self.dir / "t.db", self.dir / "out.json"
        self.ok("run", LENET, "-n", 2, "--naive", "-o", trace)
        out.write_text("as it was")
        data = bytearray(trace.read_bytes())
        data[len(data) // 2:len(data) // 2 + 4096] = b"\xff" * 4096
        (self.dir / "bad.db").write_bytes(data)
        p = tidemark.run("export", self.dir / "bad.db", "--to", "chrome-trace", "-o", out)
        self.assertIn(p.returncode, (0, 3), p.stderr)
        if p.returncode == 3:
            self.assertEqual(out.read_text(), "as it was")
        # Files may not grow past what two of its pieces take: some of it has been written then.
        self.ok("run", LENET, "-n", 400, "--naive", "-o", trace)

        def limit():
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            resource.setrlimit(resource.RLIMIT_FSIZE, (2 << 20, 2 << 20))
        self.refused(8, "export", trace, "--to", "chrome-trace", "-o", out, says=["out.json"], preexec_fn=limit)
        self.assertEqual(out.read_text(), "as it was")
        self.refused(8, "export", trace, "--to", "chrome-trace", "-o", self.dir / "no" / "out.json", says=["does not exist"])
        self.refused(8, "export", trace, "--to", "chrome-trace", "-o", "/dev/full", says=["/dev/full"])
        self.refused(2, "export", trace, "--to", "chrome-trace", "-o", trace, says=["replaced"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["bad.db", "out.json", "t.db"])
        with open("/dev/full", "w") as full:
            p = subprocess.run([PROGRAM, "export", trace, "--to", "chrome-trace"], stdout=full, stderr=subprocess.PIPE, text=True,
                               env=environment())
        self.assertEqual(p.returncode, 8, p.stderr)
        self.assertIn("standard output", p.stderr)

    def test_every_form_is_told(self):
        p = self.refused(2, "export", LENET, "--to", "xml")
        h = self.ok("export", "--help").stdout
        page = (tidemark.SOURCE / "docs" / "interchange.md").read_text()
        for form in ("csv", "json", "minimalloc", "c-header", "tflm", "chrome-trace", "pytorch"):
            self.assertIn(form, p.stderr)
            self.assertIn(f"    {form} ", h)
            self.assertIn(f"`{form}`", page)


if __name__ == "__main__":
    tidemark.main()
