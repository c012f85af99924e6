# SPDX-License-Identifier: MIT
"""docs/everyday.md: every line of it is typed on real files, and its answer is looked at. A line that is
not looked at here fails the test, and so does one of these that is no longer there."""
import csv
import html.parser
import json
import math
import os
import pickle
import pty
import re
import select
import shutil
import signal
import sqlite3
import struct
import subprocess
import time

import flatbuffer_file
import imports
import tidemark
from bad_input import field, model, varint
from tidemark import PROGRAM, SAMPLES, SOURCE, Case, environment

LINES = {}  # what stands in the page, less the comment behind it -> what looks at the answer


def line(text):
    """The test of one line. It gets a function that types it, with the words in the answer."""
    def keep(f):
        assert text not in LINES, text
        LINES[text] = f
        return f
    return keep


def everyday():
    """[(command, what it says of itself)] of the page."""
    lines = [one[4:] for one in (SOURCE / "docs/everyday.md").read_text().splitlines() if one.startswith("    tidemark ")]
    return [(re.split(r" {2,}", one, maxsplit=1) + [""])[:2] for one in lines]


# ---- the files that it names ----

def open_model(extent="N", channels=3, size=224):
    """A model whose first extent is open; its input is x."""
    dims = field(1, field(2, extent.encode())) + b"".join(field(1, varint(1, d)) for d in (channels, size, size))
    graph = b""
    for op, ins, out in (("Relu", ["x"], "a"), ("Tanh", ["a"], "b"), ("Add", ["a", "b"], "y")):
        graph += field(1, b"".join(field(1, i.encode()) for i in ins) + field(2, out.encode()) + field(3, out.encode()) +
                       field(4, op.encode()))
    graph += field(2, b"open") + field(11, field(1, b"x") + field(2, field(1, varint(1, 1) + field(2, dims))))
    return varint(1, 8) + field(7, graph + field(12, field(1, b"y"))) + field(8, field(1, b"") + varint(2, 13))


def closed_model(*extra):
    """x -> Relu -> a -> Tanh -> y, and what `extra` adds."""
    return model([("Relu", ["x"], ["a"], "relu"), *extra, ("Tanh", [extra[-1][2][0] if extra else "a"], ["y"], "tanh")],
                 [("x", 1, [64, 64])], ["y"])


def tensor(values):
    """ONNX's TensorProto: 64 x 64 floats."""
    return varint(1, 64) + varint(1, 64) + varint(2, 1) + field(9, struct.pack("<4096f", *values))


class Page(html.parser.HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.loads, self.text = [], ""
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.loads += [value for name, value in attrs if name in ("src", "href") and value and not value.startswith("#")]

    def handle_data(self, data):
        self.text += data


class Shell(Case):
    """Files with the page's names, made when a line needs them; a line is typed into a shell that knows `tidemark`."""

    def setUp(self):
        super().setUp()
        for folder in ("bin", "home", "DIR"):
            (self.dir / folder).mkdir()
        (self.dir / "bin" / "tidemark").symlink_to(PROGRAM)
        self.env = {"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "HOME": str(self.dir / "home"), "XDG_STATE_HOME": None,
                    "TERM": "xterm-256color", "GIT_AUTHOR_NAME": "A. Tester", "CI": None, "GITHUB_ACTIONS": None,
                    "GITHUB_STEP_SUMMARY": None, "NO_COLOR": "1", "TIDEMARK_LOG": None}
        self.write("model.onnx", closed_model())

    def write(self, name, content):
        (self.dir / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    def type(self, command, code=0):
        """What the shell shows."""
        p = subprocess.run(["sh", "-c", command], cwd=self.dir, env=environment(self.env), capture_output=True, text=True,
                           timeout=300)
        codes = code if isinstance(code, tuple) else (code,)
        self.assertIn(p.returncode, codes, f"{command}\nstdout: {p.stdout[-2000:]}\nstderr: {p.stderr[-2000:]}")
        return p.stdout + p.stderr

    def look(self, command, *steps):
        """The same on a terminal of 100 x 30: of each (text, keys) the keys are pressed once the text was written since the
        last. All that was written."""
        steps = list(steps)
        pid, terminal = pty.fork()
        if pid == 0:
            os.chdir(self.dir)
            os.execve("/bin/sh", ["sh", "-c", f"stty cols 100 rows 30; {command}"], environment(self.env))
        written, seen, deadline = b"", 0, time.monotonic() + 120
        try:
            while time.monotonic() < deadline:
                if select.select([terminal], [], [], 0.1)[0]:
                    try:
                        chunk = os.read(terminal, 65536)
                    except OSError:  # the other end is closed
                        chunk = b""
                    if not chunk:
                        break
                    written += chunk
                if steps and steps[0][0].encode() in written[seen:]:
                    os.write(terminal, steps.pop(0)[1].encode())
                    seen = len(written)
            else:
                os.kill(pid, signal.SIGKILL)
                self.fail(f"{command}: still to come {steps}, or it did not end:\n{written[-2000:]!r}")
        finally:
            os.close(terminal)
            status = os.waitpid(pid, 0)[1]
        self.assertEqual(os.waitstatus_to_exitcode(status), 0, written[-2000:])
        self.assertIn(b"\x1b[?1049h", written, "no screen of its own")
        self.assertEqual(steps, [], "this was never shown")
        return written.decode(errors="replace")

    def traces(self):
        self.type("tidemark run -n 2 -o old.db model.onnx && tidemark run -n 2 --naive -o new.db model.onnx")

    def plans(self):
        self.type("tidemark plan model.onnx -o old.json && tidemark plan --no-passes model.onnx -o new.json")

    def numbers(self, name):
        return json.loads((self.dir / name).read_text())


# ---- the lines ----

@line("tidemark demo")
def _(t, typed):
    shown = t.type(f"TMPDIR={t.dir} {typed}")
    folder = re.search(r"(?m)^\$ cd (\S+)$", shown)[1]
    t.assertEqual(len(os.listdir(folder)), 4)  # tests/cli/demo.py looks into them


@line("tidemark plan --all model.onnx")
def _(t, typed):
    rows = re.findall(r"(?m)^(\S+) +(?:offsets|pools) +(\d+) ", t.type(typed))
    t.assertEqual((rows[0][0], rows[-1][0]), ("naive", "search"))
    t.assertEqual(min(int(size) for _, size in rows), int(rows[-1][1]))


@line("tidemark plan model.onnx --budget 64MiB")
def _(t, typed):
    t.assertRegex(t.type(typed), r"(?m)^fits: yes \(needs [\d.]+ MiB of 64.00 MiB\)$")
    told = t.type(typed.replace("64MiB", "1KiB"), code=(1, 6))
    t.assertRegex(told, r"(?m)^fits: no")
    t.assertIn("relu", told)


@line("tidemark plan model.onnx --allow-recompute 10%")
def _(t, typed):
    t.assertRegex(t.type(typed), r"(?m)^recompute ")


@line("tidemark plan lifetimes.csv --capacity 1MiB")
def _(t, typed):
    t.type("tidemark export model.onnx --to csv -o lifetimes.csv")
    t.assertRegex(t.type(typed), r"(?m)^fits: yes")
    t.assertRegex(t.type(typed.replace("1MiB", "1KiB"), code=(1, 6)), r"(?m)^fits: no")


@line("tidemark run --buffer-file mem.bin model.onnx")
def _(t, typed):
    t.assertRegex(t.type(typed), r"(?m)^buffer file: ([\d.]+ \w+) of 'mem.bin' \(\1, made by this run\), 1 context")
    more = re.search(r"; ([\d.]+) (\w+) for one more context", t.type("tidemark plan model.onnx --budget 64MiB"))
    unit = {"B": 1, "KiB": 1024, "MiB": 1 << 20}[more[2]]
    t.assertAlmostEqual((t.dir / "mem.bin").stat().st_size, float(more[1]) * unit, delta=0.01 * unit)


@line("tidemark export model.onnx --to csv -o out.csv")
def _(t, typed):
    t.type(typed)
    rows = list(csv.DictReader((t.dir / "out.csv").read_text().splitlines()))
    t.assertEqual({row["id"] for row in rows}, {"x", "a", "y"})
    for form in ("json", "minimalloc"):
        t.type(typed.replace("csv", form, 1))
        t.assertIn("a", (t.dir / "out.csv").read_text())


@line("tidemark export trace.db --to chrome-trace -o t.json")
def _(t, typed):
    t.type(f"tidemark run --naive -n 2 -o trace.db model.onnx > made; {typed}")
    events = json.loads((t.dir / "t.json").read_text())["traceEvents"]
    t.assertIn("relu", {e["name"] for e in events if e["ph"] == "B"})
    for form, told in (("c-header", b"_TENSOR_A_OFFSET 0u"), ("tflm", b"\1\0\0\0\0\0\0\0")):
        t.type(f"tidemark export model.onnx --to {form} -o out")
        t.assertIn(told, (t.dir / "out").read_bytes())


@line("tidemark plan model.onnx --shape x=8x3x224x224")
def _(t, typed):
    t.write("model.onnx", open_model())
    t.assertRegex(t.type(typed), r"(?m)^Memory Buffer: 9408\.00 KiB$")
    asked = t.type("tidemark plan model.onnx", code=3)
    t.assertIn("--shape x=?x3x224x224", asked)


@line("tidemark compare model.onnx --reference DIR")
def _(t, typed):
    values = [(k % 17 - 8) / 8 for k in range(4096)]
    t.write("DIR/input_0.pb", tensor(values))
    t.write("DIR/output_0.pb", tensor([math.tanh(max(value, 0)) for value in values]))
    told = t.type(typed)
    t.assertIn("outputs naive = planned: bit for bit", told)
    t.assertRegex(told, r"(?m)^reference")
    t.write("DIR/output_0.pb", tensor(values))
    t.type(typed, code=1)


@line("tidemark run -n 100 -o trace.db model.onnx")
def _(t, typed):
    t.type(typed)
    t.assertEqual(tidemark.ask(t.dir / "trace.db", "SELECT count(*) FROM run"), [(1,)])
    t.assertGreater(tidemark.ask(t.dir / "trace.db", "SELECT count(*) FROM events WHERE op = 'alloc'")[0][0], 2)


@line("tidemark trace trace.db")
def _(t, typed):
    told = t.type(f"tidemark run -n 2 -o trace.db model.onnx > made; {typed}")
    for word in ("peak", "Workspace", "lost"):
        t.assertIn(word, told)


@line("tidemark trace trace.db --at peak --by scope")
def _(t, typed):
    told = t.type(f"tidemark run --naive -n 2 -o trace.db model.onnx > made; {typed}")
    t.assertRegex(told, r"(?m)^live: \d+ blocks")
    t.assertIn("relu", told)
    for moment in ("12us", "50%", "warm", "end"):
        t.type(typed.replace("peak", moment))


@line("tidemark trace trace.db --at exec:12")
def _(t, typed):
    told = t.type(f"tidemark run -n 13 -o trace.db model.onnx > made; {typed}")
    t.assertRegex(told, r"(?m)^live: \d+ blocks?, \d+ tensors? in plans' buffers")
    t.assertIn("unused in the buffer", told)
    t.assertNotIn("plan buffer", told)
    db = sqlite3.connect(t.dir / "trace.db")
    first, = db.execute("SELECT name FROM execution_steps WHERE execution = 12 AND step = 0").fetchone()
    t.assertIn(f"at exec:12:{first}: ", t.type(typed + f":{first}"))


@line("tidemark report snapshot.pickle -o snapshot.html")
def _(t, typed):
    t.write("snapshot.pickle", pickle.dumps(imports.snapshot(imports.small()), protocol=4))
    t.type(typed)
    page = Page((t.dir / "snapshot.html").read_text())
    t.assertEqual(page.loads, [])
    t.assertIn("20.00 MiB", page.text)  # reserved
    t.assertIn("forward model.py:199", page.text)


@line("tidemark trace snapshot.pickle --at A --and B --by module")
def _(t, typed):
    m = imports.small()
    marks = [{"stage": "START", "name": name, "device": 0, "time_us": m.events[i]["time_us"] + d} for name, i, d in (("A", 0, -1), ("B", -1, 1))]
    t.write("snapshot.pickle", pickle.dumps(imports.snapshot(m, annotations=marks), protocol=4))
    t.assertRegex(t.type(typed), r"step adam.py +0 +1 +0 +4194304 +\+4194304")


@line("tidemark replay s.pickle --allocator pytorch,pytorch:expandable_segments --strategy search")
def _(t, typed):
    t.write("s.pickle", pickle.dumps(imports.snapshot(imports.small()), protocol=4))
    said = t.type(typed)
    t.assertIn("pytorch: has reserved what was recorded at each of", said)
    t.assertRegex(said, r"(?m)^plan: search +12\.00 MiB")
    t.assertIn("simulated", said)


@line("tidemark trace old.db --compare new.db")
def _(t, typed):
    t.traces()
    t.assertRegex(t.type(typed), r"[-+]\d+")
    t.assertRegex(t.type("tidemark trace old.db --at begin --and end"), r"\d")


@line("tidemark record -o all.db -- sh job.sh")
def _(t, typed):
    t.write("job.sh", "tidemark run -n 1 model.onnx & tidemark run -n 1 --naive model.onnx & wait\n")
    t.type(typed)
    t.assertEqual(tidemark.ask(t.dir / "all.db", "SELECT mode FROM run ORDER BY mode"), [("naive",), ("planned",)])


def stacks(t, typed=None):
    """With the library that sanitizers leave no room for; whether it is there, and runs on this processor."""
    t.write("names.txt", "".join(f"name {i * 7919 % 1000}\n" for i in range(1000)))
    record = typed or "tidemark record --stacks 32 -o s.db -- sort names.txt"
    said = t.type(f"unset TIDEMARK_PRELOAD; {record}", code=(0, 3))
    t.assertEqual("trace: s.db: " in said, "--stacks" not in said, said)
    return "trace: s.db: " in said


@line("tidemark record --stacks 32 -o s.db -- sort names.txt")
def _(t, typed):
    if stacks(t, typed):
        t.assertEqual(tidemark.ask(t.dir / "s.db", "SELECT count(*) > 0 FROM scope WHERE kind = 'frame'"), [(1,)])


@line("tidemark trace s.db --at temporary --by function")
def _(t, typed):
    if stacks(t):
        t.assertRegex(t.type(typed), r"(?m)^freed at once, all together: \d+ block")
        t.assertRegex(t.type(typed.replace("temporary", "leaked")), r"(?m)^never freed, all together: \d+ block")


@line("tidemark plan model.tflite")
def _(t, typed):
    tensors = [flatbuffer_file.lite_tensor(name, [1000], flatbuffer_file.INT8) for name in "abc"]
    ops = [flatbuffer_file.lite_op(0, [0], [1]), flatbuffer_file.lite_op(0, [1], [2])]
    places = struct.pack("<6i", 1, 0, 3, 0, 1008, 2016) # version, subgraph, tensors, and the place of each: none lies where another was
    t.write("model.tflite", flatbuffer_file.lite_model([flatbuffer_file.RELU], [flatbuffer_file.lite_graph(tensors, [0], [2], ops)], [b"", places],
                                                       [("OfflineMemoryAllocation", 1)]))
    t.assertIn("Plan in the File: 2.95 KiB", t.type(typed))


@line("tidemark merge rank0.db rank1.db -o all.db")
def _(t, typed):
    for rank in range(2):
        t.type(f"tidemark run -n 1 -o rank{rank}.db model.onnx")
    t.assertIn("rank1", t.type(typed))
    t.assertEqual(tidemark.ask(t.dir / "all.db", "SELECT label FROM process ORDER BY id"), [("rank0",), ("rank1",)])


@line("tidemark run --limit 64MiB model.onnx")
def _(t, typed):
    t.assertIn("Workspace", t.type(typed))
    told = t.type(typed.replace("64MiB", "20KiB"), code=(5, 6))
    for word in ("out of memory", "budget of 20480 B", "would have fit"):
        t.assertIn(word, told)


@line("tidemark run --leak-check model.onnx")
def _(t, typed):
    t.assertRegex(t.type(typed), r"(?m)^leaks: none$")


@line("tidemark run --fill poison model.onnx")
def _(t, typed):
    t.assertEqual(hashes(t.type(typed + " --json")), hashes(t.type("tidemark run model.onnx --json")))
    t.assertIn("Workspace", t.type(typed))


@line("tidemark run --allocator cpu_caching model.onnx")
def _(t, typed):
    shutil.copy(SAMPLES / "lenet5.json", t.dir / "model.onnx")
    kinds = json.loads(t.type(typed + " --json"))["kinds"]
    t.assertTrue(any(kind["reserved_peak_bytes"] > kind["peak_bytes"] for kind in kinds), kinds)
    t.assertIn("reserved", t.type(typed))


@line("tidemark run --profile x=1x64:8x64:32x64 m.onnx")
def _(t, typed):
    shutil.copy(SAMPLES / "dynamic_batch.json", t.dir / "m.onnx")  # a FILE is found by its content
    told = t.type(typed)
    for word in ("x=1x64", "x=8x64", "x=32x64", "programs built: 3, all in one buffer"):
        t.assertIn(word, told)


@line("tidemark run --decode 64 decoder.json")
def _(t, typed):
    shutil.copy(SAMPLES / "decoder_step.json", t.dir / "decoder.json")
    told = t.type(typed)
    t.assertIn("KVCache", told)
    t.assertIn("cache: 64 tokens of at most 64", told)


@line("tidemark tui trace.db")
def _(t, typed):
    t.type("tidemark run -n 2 -o trace.db model.onnx")
    t.assertIn("planned", t.look(typed, ("peak", "q")))
    t.plans()
    for file in ("old.json", "model.onnx"):
        t.look(typed.replace("trace.db", file), ("peak", "q"))


@line("tidemark tui old.json new.json")
def _(t, typed):
    t.plans()
    t.look(typed, ("peak", "5"), ("COMPARE", "q"))


@line("tidemark run --tui model.onnx")
def _(t, typed):
    shown = t.look(typed, ("peak", "q"))
    t.assertIn("Workspace", shown[shown.rindex("\x1b[?1049l"):])  # the report follows the view


@line("tidemark tui --once --view 3 model.onnx")
def _(t, typed):
    frame = t.type(typed)
    t.assertIn("EXPLAIN", frame)
    t.assertEqual({len(row) for row in frame.splitlines()}, {120})
    t.assertIn("peak", t.type(f"printf 'peak\nquit\n' | tidemark tui --linear model.onnx").lower())
    rows = list(csv.DictReader(t.type("tidemark tui --pane table --csv model.onnx").splitlines()))
    t.assertIn("a", [row["name"] for row in rows])


@line("tidemark report trace.db -o report.html")
def _(t, typed):
    t.type(f"tidemark run -n 2 -o trace.db model.onnx && {typed}")
    page = Page((t.dir / "report.html").read_text())
    t.assertEqual(page.loads, [])
    t.assertIn("Why the peak is so high", page.text)
    for ending in ("csv", "json", "md", "svg", "txt"):
        t.type(typed.replace("html", ending))
        t.assertIn("relu" if ending in ("csv", "json") else "peak", (t.dir / f"report.{ending}").read_text().lower())


@line("tidemark report old.json new.json -o diff.html")
def _(t, typed):
    t.plans()
    t.type(typed)
    t.assertIn("A and B", Page((t.dir / "diff.html").read_text()).text)


@line("tidemark plan model.onnx -o plan.json")
def _(t, typed):
    t.type(typed)
    planned = t.numbers("plan.json")["plans"][0]["bytes"]
    kinds = json.loads(t.type("tidemark run --plan plan.json model.onnx --json"))["kinds"]
    t.assertEqual(sum(kind["peak_bytes"] for kind in kinds if kind["kind"] == "Workspace"), planned)


@line("tidemark diff before.onnx after.onnx")
def _(t, typed):
    t.write("before.onnx", closed_model())
    t.write("after.onnx", closed_model(("Abs", ["a"], ["c"], "abs"), ("Add", ["a", "c"], ["d"], "add")))
    told = t.type(typed)
    t.assertRegex(told, r"(?m)^peak +48.00 KiB +64.00 KiB +\+16.00 KiB")
    t.assertRegex(told, r"(?m)^  c +abs +added")


@line("tidemark diff trace.db --at 10% --and peak")
def _(t, typed):
    told = t.type(f"tidemark run --naive -n 2 -o trace.db model.onnx > made; {typed}")
    t.assertRegex(told, r"(?m)^B +trace.db .* at its peak, in relu$")
    t.assertRegex(told, r"(?m)^held ")


@line("tidemark check")
def _(t, typed):
    configure(t)
    t.type(typed, code=4)  # there is no baseline yet
    t.type('tidemark check --update-baseline --reason "first"')
    t.assertRegex(t.type(typed), r"(?i)^pass")
    t.write("model.onnx", closed_model(("Abs", ["a"], ["c"], "abs"), ("Add", ["a", "c"], ["d"], "add")))
    t.assertRegex(t.type(typed, code=1), r"(?i)^fail")


@line("tidemark check --report gate.html")
def _(t, typed):
    configure(t)
    t.type('tidemark check --update-baseline --reason "first"')
    t.write("model.onnx", closed_model(("Abs", ["a"], ["c"], "abs"), ("Add", ["a", "c"], ["d"], "add")))
    t.assertRegex(t.type(typed, code=1), r"(?m)^report: gate.html$")
    page = (t.dir / "gate.html").read_text()
    t.assertIn("Baseline (A)", page)
    t.assertRegex(page, r"<td>(abs|add)</td>")


@line('tidemark check --update-baseline --reason "…"')
def _(t, typed):
    configure(t)
    t.type(typed)
    kept = (t.dir / "baseline.json").read_text()
    t.assertIn("…", json.dumps(json.loads(kept), ensure_ascii=False))
    t.type("tidemark check --update-baseline", code=2)


@line("tidemark check model.onnx --baseline plan.json")
def _(t, typed):
    t.type(typed, code=4)
    t.type("tidemark plan model.onnx --node-limit 20000 -o plan.json")
    t.assertRegex(t.type(typed), r"(?i)^pass")
    t.write("model.onnx", closed_model(("Abs", ["a"], ["c"], "abs"), ("Add", ["a", "c"], ["d"], "add")))
    t.assertRegex(t.type(typed, code=1), r"\b(c|d)\b")


@line("tidemark sweep --extent N=1..4096 --fits 8GiB m.onnx")
def _(t, typed):
    t.write("m.onnx", open_model(size=512))
    t.assertRegex(t.type(typed), r"8 GiB")
    best = json.loads(t.type(typed + " --json"))["answers"][0]
    t.assertTrue(1 < best["value"] < 4096, best)


@line("tidemark sweep --batch 1,8,64 --run -o s.html *.onnx")
def _(t, typed):
    t.write("model.onnx", open_model(size=8))
    t.write("other.onnx", open_model(channels=1, size=16))
    t.type(typed)
    page = Page((t.dir / "s.html").read_text())
    t.assertEqual(page.loads, [])
    for name in ("model", "other", "64"):
        t.assertIn(name, page.text)


@line("tidemark replay --limit 64MiB trace.db")
def _(t, typed):
    told = t.type(f"tidemark run --naive -n 2 -o trace.db model.onnx > made; {typed}")
    peak = sqlite3.connect(t.dir / "trace.db").execute("SELECT peak_bytes FROM peak WHERE run_id = 0").fetchone()[0]
    for name in ("(recorded)", "cpu", "cpu_caching", "stream_caching"):
        t.assertRegex(told, rf"(?m)^{re.escape(name)} +{peak / 1024:.2f} KiB ")
    t.assertIn("limit 64.00 MiB: cpu fits, cpu_caching fits, stream_caching fits", told)


@line("tidemark allocators")
def _(t, typed):
    told = t.type(typed)
    for word in ("Workspace", "KVCache", "cpu_caching", "stream_caching"):
        t.assertIn(word, told)


@line("tidemark operators")
def _(t, typed):
    told = t.type(typed)
    for word in ("ai.onnx", "com.microsoft", "Conv", "Loop", "13 and later"):
        t.assertIn(word, told)


# ---- what they share ----

def configure(t):
    t.write("tidemark.toml", 'version = 1\nbaseline = "baseline.json"\n\n[[model]]\npath = "model.onnx"\n')


def hashes(text):
    """What a run gave out, whatever memory held before."""
    doc = json.loads(text)
    return doc.get("outputs_hash", [kind["peak_bytes"] for kind in doc["kinds"]])


class Everyday(Shell):
    def test_the_section_and_these_tests_are_one(self):
        written = [command for command, _ in everyday()]
        self.assertGreater(len(written), 30)
        self.assertEqual(sorted(set(written)), sorted(written), "a line stands there twice")
        self.assertEqual([one for one in written if one not in LINES], [], "no test checks the output of these lines")
        self.assertEqual([one for one in LINES if one not in written], [], "these lines are no longer in the page")
        self.assertEqual([one for one, says in everyday() if not says], [], "these lines do not say what they are for")


def add_tests():
    for n, (command, _) in enumerate(everyday()):
        if command in LINES:
            def test(self, command=command):
                LINES[command](self, command)
            test.__doc__ = command
            setattr(Everyday, f"test_{n:02}_{re.sub('[^a-z]+', '_', command.lower()).strip('_')}", test)


add_tests()
if __name__ == "__main__":
    tidemark.main()
