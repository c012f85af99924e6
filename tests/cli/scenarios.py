# SPDX-License-Identifier: MIT
"""Five questions that people come with, answered as a person would who knows nothing but the help overlay: press ?, read
which key answers the question, press it, read the answer. Each answer is held against one that was computed elsewhere."""
import json
import os
import re
import subprocess
import unittest

import tidemark
from screen import Screen
from tidemark import SAMPLES, ask, run

TRACER = os.environ.get("TIDE_SCENARIO_TRACE", "build/test/tests/cli/scenario_trace")
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}
SIZE = r"([+-]?[\d.]+) (B|KiB|MiB|GiB)"


def shown(text):
    """Bytes of "1.50 KiB", as exact as it is printed."""
    number, unit = re.match(SIZE, text).groups()
    return float(number) * UNITS[unit]


def words(n):
    """Bytes as the program writes them."""
    for unit in ("B", "KiB", "MiB", "GiB"):
        if n < 1024 or unit == "GiB":
            return f"{n} B" if unit == "B" else f"{n:.2f} {unit}"
        n /= 1024
    return None


class Scenario(Screen):
    def ask_help(self, question):
        """The key that the help names for a question; with it pressed, the screen."""
        self.keys("?")
        line = next(l for l in self.screen().split("\n") if question in l)
        key = line.split()[0]
        self.keys("Escape")
        return self.keys(key)

    def plan(self, model, *options):
        """A plan of a model as a file, and its document."""
        path = self.dir / f"{model}{''.join(options)}.json"
        self.ok("plan", SAMPLES / f"{model}.json", *options, "--strategy", "greedy_by_size", "-o", path)
        return path, json.loads(path.read_text())

    @staticmethod
    def pane(screen, name):
        """Lines of a pane, below its heading; of one that has a neighbour its own columns."""
        lines = screen.split("\n")
        for y, line in enumerate(lines):
            found = re.search(rf"[═─] {name}: ", line, re.I)
            if not found:
                continue
            x = found.start()
            end = re.search(r"[═─] [═─]", line[x + 2:])
            width = end.start() + 1 if end else None
            body = []
            for below in lines[y + 1:]:
                part = below[x:][:width] if width else below[x:]
                if re.match(r"^[═─] \w+: ", part):
                    break
                body.append(part.rstrip())
            return line[x:][:width] if width else line[x:], body
        raise AssertionError(f"there is no pane {name!r}:\n{screen}")


def alive_bytes(tensor, step):
    """What a tensor takes at a step; aliases take nothing of their own."""
    if tensor.get("alias") or not (tensor["persistent"] or tensor["begin"] <= step < tensor["end"]):
        return 0
    align = 1 if tensor.get("unrounded") else tensor.get("align_bytes", 256)
    return -(-tensor["size_bytes"] // align) * align


def curve(doc, without=None):
    return [sum(alive_bytes(t, step) for t in doc["tensors"] if t["name"] != without) for step in range(doc["n_steps"])]


class Peak(Scenario):
    def test_which_ten_tensors_make_the_peak(self):
        path, doc = self.plan("resnet18", "--no-passes")
        sums = curve(doc)
        step = sums.index(max(sums))
        sizes = {t["name"]: alive_bytes(t, step) for t in doc["tensors"]}
        self.start(path, "--no-state", width=120, height=40)
        heading, rows = self.pane(self.ask_help("what makes the peak"), "table")
        self.assertIn(f"step {step}", heading)
        self.assertIn("peak", heading)
        rows = [r for r in rows[1:] if re.search(SIZE, r)][:10]
        self.assertEqual(len(rows), 10, "ten rows at 120x40")
        got = [r[2:].split()[0] for r in rows]
        want = sorted(sizes.values(), reverse=True)[:10]
        self.assertEqual([sizes[name] for name in got], want)
        for name, row in zip(got, rows):
            self.assertIn(words(sizes[name]), row)
        share = 100 * sum(want) / sums[step]
        self.assertIn(f"{share:.1f} %", rows[9], "how much of the peak they are together")

    def test_what_would_lower_it(self):
        path, doc = self.plan("inception_block", "--no-passes")
        sums = curve(doc)
        self.start(path, "--no-state", width=160, height=50)
        screen = self.ask_help("what would lower it")
        text = re.sub(r"\s+", " ", " ".join(self.pane(screen, "explain")[1]))
        conclusions = re.findall(rf"Without (\S+) \([^)]*\) the peak is {SIZE} \(([+-][\d.]+) %\); (?:then |still at )?step "
                                 r"(\d+)", text)
        self.assertGreaterEqual(len(conclusions), 2, text)
        for name, number, unit, percent, at in conclusions:
            less = curve(doc, without=name)
            self.assertIn(words(max(less)), f"{number} {unit}", name)
            self.assertAlmostEqual(float(percent), 100 * (max(less) / max(sums) - 1), delta=0.06)
            self.assertEqual(less[int(at)], max(less), f"step {at} is no peak without {name}")
        # The parts sum to what is held, on the screen.
        parts, total = re.search(r"([\d,]+(?: \+ [\d,]+)*) = ([\d,]+) B", text).groups()
        self.assertEqual(sum(int(p.replace(",", "")) for p in parts.split(" + ")), int(total.replace(",", "")))

    def test_advice_does_what_it_says(self):
        path, doc = self.plan("inception_block", "--no-passes")
        self.start(path, "--no-state", width=160, height=50)
        screen = self.ask_help("what would lower it")
        advice = next(l for l in self.pane(screen, "whatif")[1] if l.startswith(">"))
        saves = re.findall(SIZE, advice)[0]
        self.keys("!")
        wanted = self.until(lambda s: "planned anew" in s)
        less = re.search(rf"planned anew: {SIZE}, {SIZE} less", wanted).groups()
        self.assertEqual(less[2:], saves)
        out = self.dir / "better.json"
        self.line(f"save-plan {out}")
        self.until(lambda s: out.exists())
        plan = json.loads(out.read_text())["plans"][0]
        self.assertEqual(words(plan["bytes"]), " ".join(less[:2]))
        self.assertTrue(plan["verified"])
        # And back: nothing is left of the edit.
        self.keys("3")
        self.keys("u")
        self.until(lambda s: "planned anew" not in s and f"plan {words(doc['plans'][0]['bytes'])}" in s)


class Pair(Scenario):
    def test_is_b_better_and_why(self):
        a_path, a = self.plan("inception_block", "--no-passes")
        b_path, b = self.plan("inception_block")
        self.start(a_path, b_path, "--no-state", width=120, height=50)
        heading, rows = self.pane(self.ask_help("is B better than A"), "compare")
        plan = next(r for r in rows if r.split()[:1] == ["plan"])
        a_bytes, b_bytes = a["plans"][0]["bytes"], b["plans"][0]["bytes"]
        self.assertLess(b_bytes, a_bytes)
        self.assertEqual([" ".join(p) for p in re.findall(SIZE, plan)],
                         [words(a_bytes), words(b_bytes), f"-{words(a_bytes - b_bytes)}"])
        # Why: the steps of the waterfall sum to the difference that stands below them.
        start = next(i for i, r in enumerate(rows) if r.split()[:1] == ["plan"]) + 1
        end = next(i for i, r in enumerate(rows) if r.lstrip().startswith("= B - A"))
        steps = [shown(re.search(SIZE, r).group()) for r in rows[start:end] if re.search(SIZE, r)]
        self.assertTrue(steps)
        total = shown(re.search(SIZE, rows[end]).group())
        self.assertAlmostEqual(sum(steps), total, delta=0.006 * len(steps) * 1024 * 1024)
        held = re.findall(SIZE, next(r for r in rows if r.split()[:1] == ["held"]))
        self.assertEqual(total, shown(" ".join(held[2])))


class Allocators(Scenario):
    def setUp(self):
        super().setUp()
        if not os.path.exists(TRACER):
            self.skipTest(f"{TRACER} is not built")
        self.trace = self.dir / "t.db"
        subprocess.run([TRACER, self.trace], check=True)

    def test_which_allocator_caches_unused_memory(self):
        self.start(self.trace, "--no-state", width=120, height=40)
        _, rows = self.pane(self.ask_help("which allocator caches"), "pools")
        segments = ask(self.trace, "SELECT sum(reserved_bytes) FROM events WHERE op = 'segment_alloc'")[0][0]
        used = ask(self.trace, "SELECT max(requested_bytes) FROM block b JOIN name n ON n.id = b.allocator_id "
                   "WHERE n.text = 'hoarder'")[0][0]
        self.assertIn(f"hoarder on cpu (Workspace): {words(segments - used)} of its {words(segments)} stayed unused",
                      " ".join(rows))
        row = next(r for r in rows if r[2:].startswith("hoarder"))
        self.assertIn(words(segments), row)

    def test_where_a_leak_began(self):
        self.start(self.trace, "--no-state", width=120, height=40)
        screen = self.ask_help("where a leak began")
        n, size, first = ask(self.trace, "SELECT count(*), sum(requested_bytes), min(alloc_ns) FROM leaks "
                             "WHERE name = 'leaky'")[0]
        begin = ask(self.trace, "SELECT begin_ns FROM span WHERE run_id = 0")[0][0]
        row = next(l for l in screen.split("\n") if re.match(r"^[ >] leaky ", l))
        self.assertIn(f"{n} of {n}", row)
        self.assertIn(words(size), row)
        self.assertIn("yes", row)
        when = re.search(r"([\d.]+) ms", row)
        self.assertAlmostEqual(float(when.group(1)), (first - begin) / 1e6, delta=0.01)
        self.assertEqual(round((first - begin) / 1e6), 40)


if __name__ == "__main__":
    tidemark.main()
