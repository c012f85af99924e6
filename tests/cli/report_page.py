# SPDX-License-Identifier: MIT
"""The HTML report in a real Chromium: every control is used, the console is empty, no request leaves the page, with
scripts off it is whole, and the accessibility rules hold. TIDE_PICTURES=FOLDER keeps a picture of each state."""
import csv
import http.server
import io
import json
import os
import pathlib
import re
import shutil
import struct
import subprocess
import tempfile
import threading
import unittest

import browser
import png
import tidemark
from tidemark import SAMPLES, SHARED, SOURCE, Case

LENET = SAMPLES / "lenet5.json"
AXE = [SOURCE / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"]
PICTURES = os.environ.get("TIDE_PICTURES")
HASH = "return location.hash"
SIZES = "return [...document.querySelectorAll('#items tbody tr')].map(tr => +tr.cells[4].textContent)"
BAR = "return document.querySelector('.peakbar:not([hidden])').textContent"
EVERYTHING = "#kind=all&weights=unfolded&sort=begin"
ROWS = "return [...document.querySelectorAll('#items tbody tr')].map(tr => tr.cells[0].textContent)"


@unittest.skipIf(browser.missing(), browser.missing())
class InBrowser(Case):
    @classmethod
    def setUpClass(cls):
        cls.b = browser.Browser()
        cls.addClassCleanup(cls.b.close)

    def setUp(self):
        super().setUp()
        self.local = set()  # addresses of our own server
        self.b.media()
        self.b.size(1300, 900)
        self.b.log("browser")
        self.b.requests()

    def report(self, *files, name="r.html", options=()):
        out = self.dir / name
        self.ok("report", *files, "-o", out, *options)
        return out

    def trace(self, model=LENET, *options):
        path = self.dir / "t.db"
        self.ok("run", model, "-n", 2, "-o", path, *options)
        return path

    def open(self, page, fragment=""):
        self.b.open(page, fragment)
        self.b.settle()

    def look(self, name):
        if PICTURES:
            self.b.picture(pathlib.Path(PICTURES) / f"{name}.png")

    def tearDown(self):
        """After each test: the console is empty and no request left the machine."""
        said = [entry for entry in self.b.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(said, [], "the console is not empty")
        for url in self.b.requests():
            self.assertTrue(url.startswith(("file://", "about:", "data:", *self.local)), f"the page asked for {url}")
        super().tearDown()

    def check_accessibility(self, name, part="html"):
        tool = next((path for path in AXE if path.exists()), None)
        if tool is None:
            self.skipTest("axe-core is not installed (scripts/deps.sh test installs it where npm is)")
        self.b.js(tool.read_text())
        found = self.b.js_async(f"const done = arguments[0]; axe.run('{part}', {{resultTypes: ['violations']}}).then("
                                "r => done(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)])),"
                                "e => done([['failed', String(e), []]]));")
        self.assertEqual(found, [], name)


SNAPSHOTS = SHARED / "data" / "snapshots"


@unittest.skipUnless(SNAPSHOTS.is_dir(), "the folder of shared snapshots is not there")
class Calls(InBrowser):
    """The picture of call stacks: zoom by pointer and keys, the way back, the search; against the JSON of the report."""
    SAID = "return document.querySelector('.flame [role=status]').textContent"
    BOXES = ("return [...document.querySelectorAll('.flame g')].map(g => [g.getAttribute('aria-label'), +g.getAttribute('aria-level'),"
             " +g.querySelector('rect').getAttribute('width')])")
    CRUMBS = "return [...document.querySelectorAll('.crumbs button')].map(b => b.textContent)"
    AT = "return document.activeElement.getAttribute('aria-label')"

    def test_zoom_and_search(self):
        path = SNAPSHOTS / "memory_ctx128_fullstep.pickle"
        page = self.report(path)
        self.ok("report", path, "-o", self.dir / "r.json")
        rows = json.loads((self.dir / "r.json").read_text())["sides"][0]["peak_by_stack"]
        stacks = [(r["stack"].split("; "), r["bytes"]) for r in rows if r["stack"] != "(no stack)"]
        whole = sum(n for _, n in stacks)
        below = lambda *lines: sum(n for stack, n in stacks if tuple(stack[:len(lines)]) == lines)
        share = lambda n: f"{100 * n / whole:.1f} %"
        self.open(page)
        # The widths of the outermost calls are their bytes.
        boxes = self.b.js(self.BOXES)
        full = boxes[0][2] + 1
        for label, level, width in boxes:
            if level == 2:
                name = label.rsplit(", ", 2)[0]
                self.assertAlmostEqual((width + 1) / full, below(name) / whole, delta=0.01, msg=name)
                self.assertTrue(label.endswith(", " + share(below(name))), label)
        # Down the widest call with keys, and back.
        first, second, third = max(((tuple(s[:3]), below(*s[:3])) for s, _ in stacks if len(s) > 2), key=lambda x: x[1])[0]
        self.b.keys("ArrowDown", "ArrowDown", "ArrowDown", css=".flame g[tabindex='0']")
        self.assertTrue(self.b.js(self.AT).startswith(third + ", "), self.b.js(self.AT))
        self.b.keys("Enter", css=".flame g[tabindex='0']")
        self.assertEqual(self.b.js(self.CRUMBS), ["all", first, second, third])
        self.assertTrue(self.b.js(self.SAID).startswith(third + ": "), self.b.js(self.SAID))
        zoomed = [w for label, level, w in self.b.js(self.BOXES) if level == 4]
        self.assertEqual((len(zoomed), zoomed[0] + 1), (1, full))
        self.b.keys("Escape", css=".flame g[tabindex='0']")
        self.assertEqual(self.b.js(self.CRUMBS), ["all", first, second])
        self.assertTrue(self.b.js(self.AT).startswith(second + ", "))
        self.b.click(".crumbs button")
        self.assertEqual(self.b.js(self.CRUMBS), ["all"])
        self.assertEqual(self.b.js(self.BOXES), boxes)
        # What matches, each byte once: lines of benchmark.py call each other.
        for word in ("OPTIMIZERS", "Benchmark"):
            self.b.js("const i = document.querySelector('.flame input'); i.value = ''")
            self.b.type(".flame input", word)
            found = {line for stack, _ in stacks for line in stack if word.lower() in line.lower()}
            held = sum(n for stack, n in stacks if any(word.lower() in line.lower() for line in stack))
            self.assertRegex(self.b.js(self.SAID), rf"^{len(found)} lines match and hold .*, {re.escape(share(held))},")
        self.assertGreater(self.b.js("return document.querySelectorAll('.flame rect.hit').length"), 1)
        for dark in (False, True):
            self.b.media(dark=dark)
            self.check_accessibility("dark" if dark else "light", ".stacks")

    def test_still_without_scripts(self):
        """In print, and where scripts are off, the still picture stands there."""
        self.open(self.report(SNAPSHOTS / "memory_ctx128_forward_.pickle"))
        shown = "return [...document.querySelectorAll('.stacks .still, .stacks .flame')].map(e => [e.className, e.offsetHeight > 0])"
        self.assertEqual(dict(self.b.js(shown)), {"flame": True, "still": False})
        self.b.media("print")
        self.assertEqual(dict(self.b.js(shown)), {"flame": False, "still": True})


class Page(InBrowser):
    # ---- numbers ----

    def test_says_the_numbers_of_json_and_csv(self):
        page, trace = self.report(LENET), self.trace()
        self.ok("report", LENET, "-o", self.dir / "r.json")
        side = json.loads((self.dir / "r.json").read_text())["sides"][0]
        data = json.loads(re.search(r'id="tidemark-data">(.*?)</script>', page.read_text(), re.S).group(1))["sides"][0]
        self.assertEqual(data["peak"], side["peak"])
        self.assertEqual(data["plan"], side["plan"])
        self.assertEqual(data["items"]["size_bytes"], [i["size_bytes"] for i in side["items"]])
        self.assertEqual([data["words"][n] for n in data["items"]["name"]], [i["name"] for i in side["items"]])
        self.open(page, EVERYTHING)
        sizes = self.b.js("return [...document.querySelectorAll('#items tbody tr')].map(tr => +tr.cells[4].textContent)")
        self.assertEqual(sizes, [i["size_bytes"] for i in side["items"]])
        self.open(self.report(trace, name="t.html"))
        self.assertIn("Never freed", self.b.js("return document.body.textContent"))

    # ---- every control ----

    def test_zoom_pan_and_whole(self):
        self.open(self.report(LENET))
        self.assertEqual(self.b.js(HASH), "")
        self.b.click("#live-in")
        first = self.b.js(HASH)
        self.assertRegex(first, r"^#t=[\d.]+-[\d.]+$")
        self.b.click("#live-out")
        self.assertEqual(self.b.js(HASH), "")
        self.b.keys("+", "+")
        zoomed = self.b.js(HASH)
        self.b.keys("Shift+ArrowRight")
        self.assertNotEqual(self.b.js(HASH), zoomed)
        self.b.click("#live-whole")
        self.assertEqual(self.b.js(HASH), "")
        self.b.wheel("#live-curve", 600, 80, -200)
        self.assertRegex(self.b.js(HASH), r"^#t=")
        before = self.b.js(HASH)
        self.b.pointer("#live-curve", ("move", 600, 80), ("down",), ("move", 700, 80), ("up",))
        self.assertNotEqual(self.b.js(HASH), before, "dragging pans")
        before = self.b.js(HASH)
        self.b.pointer("#live-mini", ("move", 250, 12), ("down",), ("up",))
        self.assertNotEqual(self.b.js(HASH), before, "a click into the overview jumps")
        self.b.keys("0")
        self.assertEqual(self.b.js(HASH), "")

    def test_selection_and_link(self):
        page = self.report(LENET)
        self.open(page)
        self.b.keys("ArrowDown", "ArrowDown")
        link = self.b.js(HASH)
        self.assertIn("sel=", link)
        name = self.b.js("return document.querySelector('#live-details dd').textContent")
        self.open(page, link)
        self.assertEqual(self.b.js("return document.querySelector('#live-details dd').textContent"), name)
        self.assertEqual(self.b.js("return document.querySelector('#items tr.sel').cells[0].textContent"), name)
        self.b.click("#live-fit")
        self.assertIn("t=", self.b.js(HASH) + "t=")
        self.b.keys("Escape")
        self.assertNotIn("sel=", self.b.js(HASH))
        self.b.click("#items tbody tr:nth-child(3) button")
        self.assertIn("sel=", self.b.js(HASH))
        self.b.pointer("#live-gantt", ("move", 400, 9), ("down",), ("up",))
        self.assertEqual(self.b.js("return document.querySelector('#live-details dd').textContent"), self.b.js(ROWS)[0])
        self.b.click("#live-peak")
        self.assertIn("100 % of the peak", self.b.js("return document.getElementById('live-cursor').textContent"))
        self.b.keys("ArrowRight")
        self.assertNotIn("100 % of the peak", self.b.js("return document.getElementById('live-cursor').textContent"))
        self.b.keys("p")
        self.assertIn("100 % of the peak", self.b.js("return document.getElementById('live-cursor').textContent"))

    def test_search_show_and_sort(self):
        page = self.report(LENET)
        self.open(page, EVERYTHING)
        everything = self.b.js(ROWS)
        self.b.type("#live-search", "conv1")
        found = self.b.js(ROWS)
        self.assertTrue(found and len(found) < len(everything))
        self.assertEqual(found, [n for n in everything if n in found])
        self.assertIn("q=conv1", self.b.js(HASH))
        self.b.type("#live-search", browser.KEYS["Enter"])
        self.assertIn("sel=", self.b.js(HASH))
        self.open(page, "#q=no%20such%20thing")
        self.assertEqual(self.b.js(ROWS), [])
        self.look("nothing_matches")
        self.open(page)
        self.b.type("#live-search", "conv1") # goes through everything, also what is not alive at the peak
        self.assertEqual(sorted(self.b.js(ROWS)), sorted(found))
        self.assertEqual(self.b.js("return document.getElementById('live-kind').value"), "all")
        self.open(page, EVERYTHING)
        for kind in self.b.js("return [...document.querySelectorAll('#live-kind option')].map(o => o.value)"):
            self.b.choose("#live-kind", kind)
            self.assertEqual(len(self.b.js(ROWS)) < len(everything), kind != "all", kind)
        self.open(page, EVERYTHING)
        for order in ("size", "life", "place", "name", "begin"):
            self.b.choose("#live-sort", order)
            self.assertEqual(sorted(self.b.js(ROWS)), sorted(everything))
            if order == "name":
                self.assertEqual(self.b.js(ROWS), sorted(everything))
            if order == "size":
                sizes = self.b.js("return [...document.querySelectorAll('#items tbody tr')].map(tr => +tr.cells[4].textContent)")
                self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.b.click("#items th[data-sort=size] button")
        self.assertEqual(self.b.js("return document.querySelector('#items th[data-sort=size]').getAttribute('aria-sort')"),
                         "descending")
        self.assertEqual(self.b.js("return document.getElementById('live-sort').value"), "size")
        self.b.click("#items th[data-sort=size] button") # again: the other way round
        self.assertEqual(self.b.js(SIZES), sorted(self.b.js(SIZES)))
        self.assertIn("sort=-size", self.b.js(HASH))
        for column, of in (("owner", 1), ("kind", 2), ("role", 3), ("takes", 5), ("end", 7), ("place", 8)):
            self.b.click(f"#items th[data-sort={column}] button")
            values = self.b.js(f"return [...document.querySelectorAll('#items tbody tr')].map(tr => tr.cells[{of}].textContent)")
            known = [int(v) if column in ("takes", "end", "place") else v for v in values if v]
            self.assertEqual(known, sorted(known, reverse=column == "takes"), column)
            self.assertEqual(values[:len(known)], [v for v in values if v], f"{column}: what is not known comes last")
        self.assertEqual(self.b.js("return document.querySelectorAll('#items th[aria-sort]').length"), 1)

    def test_memory_view_and_hover(self):
        page = self.report(LENET)
        self.open(page, EVERYTHING)
        self.b.choose("#live-view", "memory")
        self.assertIn("view=memory", self.b.js(HASH))
        self.look("memory")
        name = ""
        for y in range(370, 0, -20): # whatever lies lowest in the buffer
            self.b.pointer("#live-gantt", ("move", 200, y))
            if not self.b.js("return document.getElementById('live-note').hidden"):
                name = self.b.js("return document.getElementById('live-note').firstChild.textContent")
                break
        self.assertIn(name, self.b.js(ROWS))
        self.b.keys("m")
        self.assertNotIn("view=memory", self.b.js(HASH))
        self.b.pointer("#live-curve", ("move", 400, 90))
        self.assertRegex(self.b.js("return document.getElementById('live-note').textContent"), r"step \d.*live")

    DRAWN = """if (!window.drawn) { const old = CanvasRenderingContext2D.prototype.fillText; window.drawn = [];
        CanvasRenderingContext2D.prototype.fillText = function (text, x, y) { window.drawn.push([this.canvas.id, text, x, y]); old.call(this, text, x, y); }; }
        window.drawn.length = 0; window.dispatchEvent(new Event('hashchange'));"""

    def drawn(self):
        """What the pictures say, after they are drawn once more."""
        self.b.js(self.DRAWN)
        self.b.settle()
        self.b.until("window.drawn.length")
        return self.b.js("return window.drawn")

    def test_a_narrow_page_keeps_what_a_level_says(self):
        """The height of a level is the plan and what lies below it: no part of the sum is left out, at any width."""
        self.ok("report", SQUEEZENET, "-o", self.dir / "r.json")
        levels = json.loads((self.dir / "r.json").read_text())["sides"][0]["levels"]
        self.assertGreater(levels["below_bytes"], 0)
        page = self.report(SQUEEZENET)
        for width in (1300, 700, 390, 320):
            self.b.size(width, 800)
            self.open(page)
            words = [text for canvas, text, _, _ in self.drawn() if canvas == "live-curve" and "+" in text]
            self.assertTrue(words, width)
            for text in words:
                units = {"": 1, "K": 1 << 10, "M": 1 << 20}
                parts = [float(n) * units[u] for n, u in re.findall(r"([\d.]+) ?([KM])i?B?", text)]
                self.assertEqual(len(parts), 2, text)
                self.assertAlmostEqual(sum(parts), levels["bound_bytes"], delta=0.02 * levels["bound_bytes"], msg=text)

    def test_ticks_are_told_from_one_another(self):
        """Also where the window is some nanoseconds of a long trace: no two ticks have the same words, and none lie over others."""
        trace = self.trace()
        span = json.loads(self.ok("report", trace, "-o", self.dir / "r.json").stdout or (self.dir / "r.json").read_text())["sides"][0]
        length = span["end"] - span["begin"]
        page = self.report(trace)
        for width in (1300, 390):
            self.b.size(width, 800)
            self.open(page)
            for window, begin in [(w, min(length // 2 + 7 * k, length - w)) for w in (3, 10, 47, 1000, 123456, length) for k in range(4)]:
                # The page listens to its address: that takes a tenth of loading it anew for each window.
                self.b.js("location.hash = arguments[0]", f"#t={begin}-{begin + window}")
                ticks = [(text, x) for canvas, text, x, _ in self.drawn() if canvas == "live-curve" and re.fullmatch(r"[\d.]+ (ns|\u00b5s|ms|s)", text)]
                self.assertEqual(len({text for text, _ in ticks}), len(ticks), (window, ticks))
                self.assertTrue(ticks, window)

    def test_a_place_is_found_by_its_number(self):
        """The column of places is in decimal: its numbers are found as they stand, of a plan and of a trace."""
        for file in (LENET, self.trace(LENET, "--naive")):
            self.open(self.report(file), EVERYTHING)
            cells = self.b.js("return [...document.querySelectorAll('#items tbody tr')].map(tr => [tr.cells[0].textContent, tr.cells[8].textContent])")
            name, place = max((c for c in cells if c[1]), key=lambda c: int(c[1]))
            self.b.type("#live-search", place)
            found = self.b.js("return [...document.querySelectorAll('#items tbody tr')].map(tr => [tr.cells[0].textContent, tr.cells[8].textContent])")
            self.assertIn([name, place], found)
            self.assertEqual({p for _, p in found}, {place})

    def test_keys_search_and_pages(self):
        page = self.report(SAMPLES / "lenet5.json")
        self.open(page)
        self.b.keys("/")
        self.assertEqual(self.b.js("return document.activeElement.id"), "live-search")
        self.b.keys("End")
        last = self.b.js("return document.querySelector('#live-details dd').textContent")
        self.assertEqual(last, self.b.js(ROWS)[-1])
        self.b.keys("Home", "PageDown", "PageUp", "ArrowUp", "f", "-", "=")
        self.assertEqual(self.b.js("return document.querySelector('#live-details dd').textContent"), self.b.js(ROWS)[0])

    def test_many_items_have_pages(self):
        if not SHARED.is_dir():
            self.skipTest(f"{SHARED} is not there")
        model = SHARED / "models" / "light-resnet50" / "model.onnx"
        page = self.report(model)
        self.assertLess(page.stat().st_size, 300_000)
        self.open(page, EVERYTHING)
        self.assertEqual(len(self.b.js(ROWS)), 100)
        self.assertTrue(self.b.js("return document.getElementById('items-back').disabled"))
        first = self.b.js(ROWS)
        self.b.click("#items-on")
        self.assertNotEqual(self.b.js(ROWS), first)
        self.assertIn("page 2 of", self.b.js("return document.getElementById('items-page').textContent"))
        self.b.click("#items-back")
        self.assertEqual(self.b.js(ROWS), first)
        self.look("resnet50")

    def test_a_pair(self):
        other = self.dir / "plan.json"
        self.ok("plan", LENET, "--no-passes", "-o", other)
        self.open(self.report(LENET, other))
        self.look("pair")
        self.assertIn("A and B", self.b.js("return document.body.textContent"))
        a = self.b.js(ROWS)
        self.b.choose("#live-side", "1")
        self.assertIn("side=b", self.b.js(HASH))
        self.assertNotEqual(self.b.js("return document.getElementById('live-cursor').textContent"), "")
        self.assertTrue(a and self.b.js(ROWS))

    # ---- the first screen ----

    def test_opens_at_the_peak(self):
        """Rows alive at the peak, largest first; weights are one row, which one control unfolds everywhere at once."""
        for file, name in ((LENET, "plan.html"), (self.trace(), "planned.html"), (self.trace(LENET, "--naive"), "naive.html")):
            page = self.report(file, name=name)
            self.ok("report", file, "-o", self.dir / "r.json")
            side = json.loads((self.dir / "r.json").read_text())["sides"][0]
            alive = [i for i in side["items"] if i["at_peak"]]
            weights = [i for i in alive if i["kind"] == "Persistent"]
            self.assertGreater(2 * sum(i["size_bytes"] for i in weights), side["peak"]["bytes"], "the sample is of that kind")
            others = sorted((i for i in alive if i["kind"] != "Persistent"), key=lambda i: -i["size_bytes"])
            self.open(page)
            self.assertEqual(self.b.js(HASH), "")
            self.assertEqual(self.b.js(ROWS)[0], f"weights ({len(weights)})")
            self.assertEqual(self.b.js(SIZES), [sum(i["size_bytes"] for i in weights)] + [i["size_bytes"] for i in others])
            self.assertIn("the peak", self.b.js("return document.getElementById('live-space-title').textContent"))
            self.assertIn(f"weights ({len(weights)})", self.b.js(BAR))
            height = "return document.getElementById('live-height').style.height"
            self.assertEqual(self.b.js(height), f"{18 * (1 + len(others))}px")
            self.b.click("#live-fold")
            self.assertEqual(sorted(self.b.js(ROWS)), sorted(i["name"] for i in alive))
            self.assertEqual(self.b.js(SIZES), sorted((i["size_bytes"] for i in alive), reverse=True))
            self.assertEqual(self.b.js(height), f"{18 * len(alive)}px")
            self.assertNotIn("weights (", self.b.js(BAR))
            self.assertIn("weights=unfolded", self.b.js(HASH))
            self.look(f"unfolded_{name}")
            self.b.keys("w")
            self.assertEqual(self.b.js(HASH), "")

    def test_what_runs_out_first_stands_in_front(self):
        """Reserved bytes, where an allocator takes more than is live, before the peak; the capacity is held against the process."""
        trace = self.trace(LENET, "--allocator", "stream_caching")
        first = "return [...document.querySelectorAll('.cards div')].slice(0, 3).map(d => [d.querySelector('dt').textContent, d.querySelector('dd').firstChild.textContent])"
        self.ok("report", trace, "-o", self.dir / "r.json")
        side = json.loads((self.dir / "r.json").read_text())["sides"][0]
        self.assertGreater(side["reserved"]["bytes"], side["peak"]["bytes"])
        self.assertGreaterEqual(side["needs_bytes"], side["reserved"]["bytes"])
        self.open(self.report(trace, options=["--capacity", side["needs_bytes"] - 1]))
        cards = self.b.js(first)
        self.assertEqual([key for key, _ in cards], ["Will it fit", "Peak reserved", "Peak"])
        self.assertEqual(cards[0][1], "no")
        self.open(self.report(trace, options=["--capacity", side["needs_bytes"]]))
        self.assertEqual(self.b.js(first)[0][1], "yes")
        self.open(self.report(self.trace())) # nothing is known of segments here
        self.assertEqual(self.b.js(first)[0][0], "Peak")
        self.open(self.report(self.trace(LENET, "--allocator", "cpu_caching", "--force"))) # keeps blocks, and does not tell
        self.assertEqual(self.b.js(first)[0], ["Peak reserved", "not known"])

    def test_a_plan_without_weights_has_nothing_to_fold(self):
        self.open(self.report(self.list_of("a", "b", "c")))
        self.assertTrue(self.b.js("return document.getElementById('live-fold').hidden"))
        self.assertEqual(len(self.b.js(ROWS)), 2)
        self.b.keys("w")
        self.assertEqual(len(self.b.js(ROWS)), 2)
        rows = [{"name": name, "size_bytes": 64, "begin": 0, "end": 2, "kind": "Persistent", "role": "weight", "persistent": True}
                for name in ("v", "w")]
        (self.dir / "weights.json").write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "tensors": rows}))
        self.open(self.report(self.dir / "weights.json", name="weights.html"))
        self.assertEqual(self.b.js(ROWS), ["v", "w"], "nothing but weights: one by one")

    def test_memory_stands_beside_the_lifetimes(self):
        page = self.report(LENET)
        boxes = "return ['live-rows', 'live-map'].map(id => { const r = document.getElementById(id).getBoundingClientRect(); return [r.left, r.right, r.top, r.bottom]; })"
        for width, beside in ((1400, True), (390, False)):
            self.b.size(width, 900)
            self.open(page)
            rows, memory = self.b.js(boxes)
            self.assertEqual(memory[0] >= rows[1], beside, width)
            self.assertEqual(memory[2] >= rows[3], not beside, width)
        self.b.size(1400, 1000)
        self.open(page)
        title = "return document.getElementById('live-space-title').textContent"
        at_peak = self.b.js(title)
        self.b.keys("ArrowRight")
        self.assertNotEqual(self.b.js(title), at_peak, "the map shows the moment of the cursor")
        self.b.keys("p")
        self.assertEqual(self.b.js(title), at_peak)
        box = self.b.js("const r = document.getElementById('live-map').getBoundingClientRect(); return [r.width, r.height]")
        self.b.pointer("#live-map", ("move", round(box[0] * 0.7), round(box[1] * 0.6)), ("down",), ("up",))
        self.assertEqual(self.selected()[0], "relu1.out")

    def test_parts_of_the_peak_select(self):
        self.open(self.report(LENET))
        self.b.click(".peakbar:not([hidden]) .parts li:nth-child(2) a")
        self.assertEqual(self.selected()[0], "relu1.out")
        self.assertIn("sel=relu1.out", self.b.js(HASH))
        self.assertEqual(self.b.js("return [...document.querySelectorAll('.peakbar:not([hidden]) .parts .sel')].map(a => a.textContent)"), ["relu1.out"])
        self.b.click(".peakbar:not([hidden]) .parts li:nth-child(1) a")
        self.assertRegex(self.b.js("return document.querySelector('#live-details dd').textContent"), r"^weights \(10\)$")
        sums = self.b.js("return [...document.querySelectorAll('.peakbar')].map(bar => [...bar.querySelectorAll('svg rect')].reduce((s, r) => s + parseFloat(r.getAttribute('width')), 0))")
        for whole in sums:
            self.assertAlmostEqual(whole, 100, delta=0.2)

    def test_every_table_sorts(self):
        """By a click and by keys, stable, numbers as numbers; the order is told."""
        self.open(self.report(LENET))
        column = "return [...document.getElementById(arguments[0]).closest('section').querySelectorAll('tbody tr')].map(tr => [tr.cells[0].textContent, tr.cells[arguments[1]].title || tr.cells[arguments[1]].textContent])"
        heads = "return [...document.getElementById(arguments[0]).closest('section').querySelectorAll('th[scope=col]')].map(th => th.getAttribute('aria-sort'))"
        ids = self.b.js("return [...document.querySelectorAll('main section > h3')].filter(h => h.parentNode.querySelector('table') && h.id !== 's-items').map(h => h.id)")
        self.assertGreater(len(ids), 4)
        for table in ids:
            for at in range(len(self.b.js(heads, table))):
                written = self.b.js(column, table, at)
                button = f"section:has(> #{table}) thead th:nth-child({at + 1}) button"
                self.b.click(button)
                once = self.b.js(column, table, at)
                self.assertEqual(sorted(once), sorted(written))
                told = self.b.js(heads, table)
                self.assertIn(told[at], ("ascending", "descending"))
                self.assertEqual(told.count(None), len(told) - 1)
                if at > 1:
                    continue
                self.b.do("POST", f"/element/{self.b.find(button)}/value", {"text": browser.KEYS["Enter"]})
                self.b.settle()
                self.assertNotEqual(self.b.js(heads, table)[at], told[at], "the key turns it round")
        self.open(self.report(LENET))
        size = self.b.js("return [...document.querySelector('#t-peak_items-a').parentNode.querySelectorAll('th[scope=col]')].map(th => th.textContent)").index("Bytes")
        self.b.click(f"section:has(> #t-peak_items-a) thead th:nth-child({size + 1}) button")
        sizes = [int(text.removesuffix(" B")) for _, text in self.b.js(column, "t-peak_items-a", size)]
        self.assertEqual(sizes, sorted(sizes, reverse=True))
        self.assertGreater(len(set(sizes)), 5)

    def test_executions_stand_on_the_axis(self):
        trace = self.trace()
        page = self.report(trace)
        data = json.loads(re.search(r'id="tidemark-data">(.*?)</script>', page.read_text(), re.S).group(1))["sides"][0]
        said = tidemark.ask(trace, "SELECT begin_ns, end_ns FROM executions ORDER BY begin_ns")
        self.assertEqual([list(pair) for pair in zip(data["executions"]["begin"], data["executions"]["end"])],
                         [[begin - data["origin"], end - data["origin"]] for begin, end in said])
        bars = re.search(r'class="run" d="([^"]*)"', page.read_text())[1]
        self.assertEqual(bars.count("M"), len(said), "the still picture has them too")
        steps = tidemark.ask(trace, "SELECT count(*) FROM execution_steps")[0][0]
        self.assertEqual(sum(len(s) for s in data["executions"]["steps"]), steps)
        self.open(page)
        cursor = "return document.getElementById('live-cursor').textContent"
        self.assertRegex(self.b.js(cursor), r"\(execution \d, \u2066\w+\u2069\)")

    def test_the_curve_of_a_long_trace_is_exact(self):
        """Each column holds its own extremes, also the first ones, in whose leaf of events lies what was before the run."""
        trace = self.dir / "long.db"
        self.ok("run", LENET, "--naive", "-n", 1000, "-o", trace)
        data = json.loads(re.search(r'id="tidemark-data">(.*?)</script>', self.report(trace).read_text(), re.S).group(1))["sides"][0]
        events = tidemark.ask(trace, "SELECT t_ns, CASE op WHEN 'alloc' THEN requested_bytes ELSE -requested_bytes END "
                                     "FROM events WHERE op IN ('alloc', 'free_completed') ORDER BY event_id")
        self.assertGreater(len(events), 8192, "more than are answered exactly without being asked for")
        n, span, live, at = data["curve"]["columns"], data["end"] - data["begin"], 0, 0
        low, high = [], []
        for k in range(n):
            begin, end = (data["begin"] + i * span // n for i in (k, k + 1))
            while at < len(events) and events[at][0] < begin:
                live += events[at][1]
                at += 1
            seen = [] if at < len(events) and events[at][0] == begin else [live]
            while at < len(events) and events[at][0] < end:
                live += events[at][1]
                seen.append(live)
                at += 1
            low.append(min(seen))
            high.append(max(seen))
        changes = [k for k in range(n) if k == 0 or (low[k], high[k]) != (low[k - 1], high[k - 1])]
        self.assertEqual(data["curve"], {"columns": n, "at": changes, "min": [low[k] for k in changes], "max": [high[k] for k in changes]})

    def test_tensors_of_executions_stand_once(self):
        """Each execution costs the times of its steps; what the page makes of that is what the JSON report lists."""
        model, sizes = SAMPLES / "squeezenet1_1.json", []
        for n in (2, 6):
            trace = self.trace(model, "-n", n)
            page = self.report(trace)
            sizes.append(len(re.search(r'id="tidemark-data">(.*?)</script>', page.read_text(), re.S).group(1)))
        steps = tidemark.ask(trace, "SELECT count(*) FROM plan_step")[0][0]
        self.assertLess(sizes[1] - sizes[0], 4 * (steps * 8 + 100) + 8000, "an execution costs its steps; the curve may change")
        self.ok("report", trace, "-o", self.dir / "r.json")
        said = json.loads((self.dir / "r.json").read_text())["sides"][0]["items"]
        self.assertGreater(sum(i["name"] == "conv1.scratch" or i["name"] == "relu1.out" for i in said), 6)
        self.open(page, EVERYTHING)
        rows = []
        while True:
            rows += self.b.js("return [...document.querySelectorAll('#items tbody tr')].map(tr => [...tr.cells].map(td => td.textContent))")
            if self.b.js("return document.getElementById('items-on').disabled"):
                break
            self.b.click("#items-on")
        text = lambda v: "" if v is None else str(v)
        self.assertEqual(rows, [[i["name"], text(i["owner"]), i["kind"], text(i["role"]), str(i["size_bytes"]), str(i["reserved_bytes"]),
                                 str(i["begin_ns"]), "" if i["open_ended"] else str(i["end_ns"]), text(i["place"])] for i in said])

    def test_pools_over_time(self):
        """A band for each pool of the table, a mark for each segment that was taken or given back, with its reason; nothing
        of it without pools."""
        trace = self.dir / "pools.db"
        self.ok("run", LENET, "--naive", "--allocator", "stream_caching", "-n", 2, "-o", trace)
        text = self.report(trace).read_text()
        section = text.split("<h2>Pools over time</h2>")[1].split("</section>")[0]
        n_pools = tidemark.ask(trace, "SELECT count(*) FROM (SELECT DISTINCT allocator, device, kind FROM events "
                                      "WHERE op IN ('alloc', 'segment_alloc'))")[0][0]
        self.assertEqual((section.count('class="used"'), section.count('class="cached"')), (n_pools, n_pools))
        taken = tidemark.ask(trace, "SELECT op, reserved_bytes FROM events WHERE op LIKE 'segment%' AND "
                                    "t_ns BETWEEN (SELECT begin_ns FROM run) AND (SELECT end_ns FROM run)")
        self.assertGreater(len(taken), 0)
        self.assertEqual(section.count('class="mark"'), len(taken))
        self.assertEqual(section.count("<title>took "), sum(op == "segment_alloc" for op, _ in taken))
        self.assertIn(", for image</title>", section)
        (self.dir / "one.csv").write_text("id,lower,upper,size\na,0,1,0\n")
        self.assertNotIn("Pools over time", self.report(self.dir / "one.csv").read_text())

    def test_a_page_of_a_thousand_tensors(self):
        rows = [(f"features/block_{i // 40}/conv{i}.weight_or_out", i % 200, i % 200 + 1 + i % 7, 64 * (1 + i % 97)) for i in range(1000)]
        (self.dir / "k.csv").write_text("id,lower,upper,size\n" + "".join("%s,%d,%d,%d\n" % r for r in rows))
        page = self.report(self.dir / "k.csv")
        self.assertLess(page.stat().st_size, 300_000)

    # ---- without scripts, in print, on small and large screens, dark and light ----

    def test_whole_without_scripts(self):
        page = self.report(LENET)
        self.b.cdp("Emulation.setScriptExecutionDisabled", value=True)
        try:
            self.b.open(page)
            self.look("no_scripts")
            shown = self.b.cdp("DOM.getDocument", depth=-1)
        finally:
            self.b.cdp("Emulation.setScriptExecutionDisabled", value=False)
        text = json.dumps(shown)
        self.assertIn("conv1.w", text)
        source = re.sub(r"<script.*?</script>", "", page.read_text(), flags=re.S)
        self.assertRegex(source, r'class="parts">\s*<li><a [^>]*><bdi>weights \(10\)</bdi></a> <b>242.\d\d KiB</b>')
        self.assertRegex(source, r"<title>conv1.scratch [\d.]+ KiB</title>")
        links = re.findall(r'<a href="#([^"]*)"', source)
        self.assertTrue(links)
        for link in set(links):
            self.assertIn(f'id="{link}"', source)
        listed = re.search(r'<table id="items".*?<tbody>(.*?)</tbody>', source, re.S).group(1)
        self.assertEqual(re.findall(r'<tr><th scope="row">(.*?)</th>', listed)[:3], ["weights (10)", "relu1.out", "conv1.scratch"])
        self.assertNotIn("aria-sort", source)
        self.b.open(page)
        still = self.b.js("return document.querySelectorAll('.still svg').length")
        self.assertGreaterEqual(still, 3)
        self.assertNotIn('class="js"', page.read_text())

    def test_print_shows_still_pictures(self):
        self.open(self.report(LENET))
        self.assertEqual(self.b.js("return getComputedStyle(document.querySelector('.still')).display"), "none")
        self.b.media("print")
        self.assertEqual(self.b.js("return getComputedStyle(document.querySelector('.still')).display"), "block")
        self.assertEqual(self.b.js("return getComputedStyle(document.getElementById('live')).display"), "none")
        self.look("print")

    def test_no_width_overflows(self):
        page = self.report(LENET)
        for width in (360, 768, 1300, 1920):
            self.b.size(width, 900)
            for dark in (False, True):
                self.b.media(dark=dark)
                self.open(page)
                wide = self.b.js("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(wide[0], wide[1], f"at {width} px something is wider than the screen")
                self.look(f"{width}_{'dark' if dark else 'light'}")

    def test_no_level_is_cut(self):
        """Beside a line of the curve stands a whole number, on a telephone too."""
        self.b.size(390, 900)
        self.open(self.report(LENET))
        texts = self.b.js_async(
            "const done = arguments[0], out = [], p = CanvasRenderingContext2D.prototype, f = p.fillText;"
            "p.fillText = function(t, ...a) { out.push(t); return f.call(this, t, ...a); };"
            "location.hash = 'sort=name'; setTimeout(() => { p.fillText = f; done(out); }, 400);")
        levels = [t for t in texts if t.startswith(("plan", "lower bound"))]
        self.assertTrue(levels, texts)
        for text in levels:
            self.assertRegex(text, r"^[a-z =]+ [0-9.]+ ?([KM]?i?B|[KM])( \+ [0-9.]+ ?([KM]?i?B.*|[KM]))?$")
            self.assertNotIn("\u2026", text)

    # ---- accessibility ----

    def test_accessible(self):
        page = self.report(LENET)
        trace = self.report(self.trace(), name="t.html")
        other = self.dir / "plan.json"
        self.ok("plan", LENET, "--no-passes", "-o", other)
        pair = self.report(LENET, other, name="pair.html")
        for file in (page, trace, pair):
            for dark in (False, True):
                self.b.media(dark=dark)
                self.open(file)
                self.b.keys("ArrowDown")
                self.check_accessibility(f"{file.name}, {'dark' if dark else 'light'}")
        self.assertEqual(self.b.js("return document.documentElement.lang"), "en")
        ids = self.b.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)), "an id stands twice")

    def test_the_page_of_the_gate(self):
        """tidemark check --report: fits every screen, and the accessibility rules hold."""
        plan, page = self.dir / "plan.json", self.dir / "gate.html"
        diamond = SAMPLES / "diamond.json"
        self.ok("plan", diamond, "--node-limit", 2000, "-o", plan)
        self.ok("check", diamond, "--baseline", plan, "--no-in-place", "--report", page, code=1)
        for width in (360, 1400):
            for dark in (False, True):
                self.b.size(width, 900)
                self.b.media(dark=dark)
                self.open(page)
                wide = self.b.js("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(wide[0], wide[1])
                self.look(f"gate_{width}_{'dark' if dark else 'light'}")
                self.check_accessibility(f"gate, {width}, {'dark' if dark else 'light'}")
        sizes = "return [...document.querySelectorAll('section:has(> #tensors-0) tbody tr')].map(tr => tr.cells[arguments[0]].textContent)"
        heads = self.b.js("return [...document.querySelectorAll('section:has(> #tensors-0) thead th')].map(th => th.textContent)")
        for at, head in enumerate(heads):
            written = self.b.js(sizes, at)
            self.b.click(f"section:has(> #tensors-0) thead th:nth-child({at + 1}) button")
            once = self.b.js(sizes, at)
            self.assertEqual(sorted(once), sorted(written))
            self.b.click(f"section:has(> #tensors-0) thead th:nth-child({at + 1}) button")
            if len(set(once)) > 1:
                self.assertNotEqual(self.b.js(sizes, at), once, f"{head}: again is the other way round")

    # ---- hostile names ----

    def test_hostile_names_do_nothing(self):
        path = self.dir / "hostile.json"
        names = ["</script><script>document.title='pwned'</script>", "<img src=x onerror=\"document.title='pwned'\">",
                 "]]>", "\u202ertl \u05e9\u05dc", "=1+1", "x" * 10000, "a\tb"]
        path.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "model": "</title><script>x</script>",
                                    "tensors": [{"name": name, "size_bytes": 64 * (k + 1), "begin": k, "end": k + 2}
                                                for k, name in enumerate(names)]}))
        page = self.report(path)
        self.open(page, EVERYTHING)
        title = self.b.js("return document.title")
        self.assertNotEqual(title, "pwned")
        self.assertEqual(len(self.b.js(ROWS)), len(names))
        self.b.keys("ArrowDown", "ArrowDown", "m")
        self.assertNotEqual(self.b.js("return document.title"), "pwned")
        self.b.keys("0")
        self.assertEqual(self.b.js("return document.images.length"), 0)
        self.look("hostile")
        self.b.size(360, 800)
        self.assertLessEqual(self.b.js("return document.documentElement.scrollWidth"), 360)

    def selected(self):
        """What is selected: its name, and where it stands among the rows; None: nothing."""
        return self.b.js("const row = document.querySelector('#items tr.sel');"
                         "return row ? [row.cells[0].textContent, +row.dataset.item] : null")

    def list_of(self, *names, file="l.json", model="list"):
        path = self.dir / file
        path.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "model": model, "tensors": [
            {"name": name, "size_bytes": 64 * (k + 1), "begin": k, "end": k + 2} for k, name in enumerate(names)]}))
        return path

    def test_a_link_selects_by_name(self):
        """A link from a page made before a tensor came in front: the name is what is meant, whatever its number now."""
        before = self.report(self.list_of("data_0", "fc6_w_0", "relu"), name="before.html")
        after = self.report(self.list_of("new", "data_0", "fc6_w_0", "relu", file="n.json"), name="after.html")
        self.open(before, EVERYTHING)
        self.b.click("#items tbody tr:nth-child(2) button")
        link = self.b.js(HASH)
        self.assertEqual(link, "#kind=all&sort=begin&sel=fc6_w_0")
        for from_it in (link, "#sel=fc6_w_0"):
            self.open(after, from_it)
            self.assertEqual(self.selected(), ["fc6_w_0", 2])
        for old, name in (("#sel=fc6_w_0@0", "fc6_w_0"), ("#sel=fc6_w_0%401", "fc6_w_0"), ("#sel=data_0@2", "data_0")):
            self.open(after, old)
            self.assertEqual(self.selected()[0], name, old)
        for nothing in ("#sel=fc7@0", "#sel=@0", "#sel=", "#sel=%E0%A4", "#nth=2", "#sort=constructor", "#kind=__proto__"):
            self.open(after, nothing)
            self.assertIsNone(self.selected(), nothing)

    def test_every_name_survives_in_a_link(self):
        names = ["a@1", "a", "x&sel=y", "#x=1", "50%", "%41", "a b+c", "\u00e4\U0001f30a", "\u05e9\u05dc", "'\"<>`\\^{|}", "@", "/?:;,=",
                 "sel", "\u2028", "x" * 3000]
        page = self.report(self.list_of(*names))
        self.open(page, EVERYTHING)
        links = []
        for k in range(len(names)):
            self.b.keys("ArrowDown")
            links.append(self.b.js(HASH))
            self.assertEqual(self.selected()[1], k)
        self.assertEqual(len(set(links)), len(names))
        for k, link in enumerate(links):
            self.open(page, link)
            self.assertEqual((self.selected() or [None, None])[1], k, (names[k][:40], link[:80]))
            self.assertEqual(self.b.js(HASH), link)

    def test_items_of_one_name_are_told_apart(self):
        """Blocks of a trace: each run has a block of that name. The nth of them is meant, and stays the nth."""
        page = self.report(self.trace(LENET, "--naive"), options=["--whole"])
        self.open(page, EVERYTHING)
        rows = self.b.js(ROWS)
        name = next(name for name in rows if rows.count(name) > 1 and name)
        those = [k for k, other in enumerate(rows) if other == name]
        links = []
        for k in those:
            self.b.click(f"#items tbody tr:nth-child({k + 1}) button")
            links.append(self.b.js(HASH))
        self.assertEqual([re.sub(".*&", "", link) for link in links], [f"nth={n + 1}" for n in range(len(those))])
        for k, link in zip(those, links):
            self.open(page, link)
            self.assertEqual(self.selected(), [name, k])

    def test_a_name_from_right_to_left_turns_nothing_round(self):
        """Beside names of scripts that are written from right to left, and of marks, everything stands where it would
        beside others: in each line of headings and sentences, what is no such name runs from left to right."""
        marked = ["\u05e9\u05dc\u05d5\u05dd", "\u200fnet", "\u0645\u0631\u062d\u0628\u0627", "12"]
        file = self.list_of(*marked, model="\u05e9\u05dc\u05d5\u05dd 12 (b) 7")
        other = self.list_of(*marked[::-1], file="o.json", model="\u0645\u0631 3 [c] 9")
        for files in ([file], [file, other]):
            self.open(self.report(*files))
            turned = self.b.js("""
              const found = [];
              for (const line of document.querySelectorAll('h1, h2, header p, .why p, .cards dd, .cards small, #live-cursor')) {
                let x = -1, y = -1, before = '';
                const walk = document.createTreeWalker(line, NodeFilter.SHOW_TEXT);
                for (let node; (node = walk.nextNode());) {
                  for (let i = 0; i < node.data.length; i++) {
                    if (/[\\s\\u0590-\\u08ff\\u200e\\u200f\\u2066\\u2069]/.test(node.data[i])) continue;
                    const r = document.createRange();
                    r.setStart(node, i); r.setEnd(node, i + 1);
                    const box = r.getBoundingClientRect();
                    if (box.width === 0) continue;
                    if (Math.abs(box.top - y) < 8 && box.left < x - 0.5) { found.push(line.textContent.slice(0, 120) + ' @ ' + before + node.data[i]); break; }
                    x = box.left; y = box.top; before = node.data[i];
                  }
                }
              }
              return found;""")
            self.assertEqual(turned, [])
            title = self.b.js("return document.title")
            self.assertRegex(title, "^\u2066[^\u2066\u2069]*\u2069( and \u2066[^\u2066\u2069]*\u2069)? - tidemark$")
        self.look("right_to_left")

    # ---- behind a server that forbids what is inside ----

    def serve(self, policy=None):
        """A server on this machine for the test's folder. @return its address"""
        folder = str(self.dir)

        class Handler(http.server.SimpleHTTPRequestHandler):
            def __init__(self, *args):
                super().__init__(*args, directory=folder)

            def end_headers(self):
                if policy:
                    self.send_header("Content-Security-Policy", policy)
                super().end_headers()

            def do_GET(self):
                if self.path == "/favicon.ico":  # browsers ask for it by themselves
                    self.send_response(204)
                    return self.end_headers()
                super().do_GET()

            def log_message(self, *args):
                pass

        server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.server_close)
        self.addCleanup(server.shutdown)
        return f"http://127.0.0.1:{server.server_address[1]}"

    def at(self, address):
        self.b.do("POST", "/url", {"url": "about:blank"})
        self.b.do("POST", "/url", {"url": address})
        self.b.settle()

    def pixels(self):
        self.b.pointer("h1", ("move", 5, 5)) # where it was before a note may show
        self.b.settle()
        return self.b.do("GET", "/screenshot")

    def test_a_strict_policy_breaks_nothing(self):
        """Behind a policy that forbids whatever is inside, the page is what it is without one, each pixel within two of 256
        levels: no violation
        is logged (tearDown looks), while the page with its parts inside has some."""
        STRICT = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:"
        whole = self.report(self.trace(), name="whole.html")
        split = self.report(self.dir / "t.db", name="a b%41.html", options=["--split-script"])
        self.assertEqual(sorted(p.name for p in self.dir.iterdir()), ["a b%41.css", "a b%41.html", "a b%41.js", "t.db", "whole.html"])
        text = split.read_text()
        self.assertEqual((text.count("<script"), text.count("<style"), text.count(" style=")), (2, 0, 0))
        strict, free = self.serve(STRICT), self.serve()
        for width, dark, view in ((1300, False, ""), (1300, True, "#view=memory"), (360, True, "")):
            self.b.size(width, 900)
            self.b.media(dark=dark)
            keys = ("ArrowDown", "+") if view else ()
            self.open(whole, view)
            self.b.keys(*keys)
            expected = self.pixels()
            self.at(f"{strict}/a%20b%2541.html{view}")
            self.b.keys(*keys)
            self.assertLessEqual(png.distance(self.pixels(), expected), 2, f"{width} {'dark' if dark else 'light'} {keys}")
            self.assertEqual(self.b.js("return document.styleSheets.length"), 1)
            self.look(f"policy_{width}_{'dark' if dark else 'light'}")
        self.local.add(strict)
        self.assertEqual([e for e in self.b.log("browser") if e["level"] in ("SEVERE", "WARNING")], [])
        self.at(f"{strict}/whole.html")
        self.assertTrue([e for e in self.b.log("browser") if "Content Security Policy" in e["message"]], "the policy holds")
        self.at(f"{free}/a%20b%2541.html")
        self.local.add(free)

    # ---- with hardly anything in it ----

    def test_pages_of_hardly_anything(self):
        """No console message (tearDown), every key does nothing bad."""
        one = json.dumps({"schema": "tidemark.graph", "version": 1, "name": "one", "opset": 13,
                          "inputs": [{"name": "x", "dtype": "float32", "shape": [4]}], "initializers": [],
                          "nodes": [{"op": "Relu", "name": "r", "inputs": ["x"], "outputs": ["y"]}], "outputs": ["y"]})
        (self.dir / "one").write_text(one)
        (self.dir / "zero").write_text(one.replace("[4]", "[0]"))
        (self.dir / "persistent").write_text("id,lower,upper,size,persistent\na,0,1,64,1\n")
        self.list_of(file="none")
        for name in ("one", "zero", "persistent", "none"):
            for options in ([], ["--capacity", "1KiB"]):
                self.open(self.report(self.dir / name, name=f"{name}.html", options=options), "#view=memory&t=0-9&sel=x&nth=4")
                if name != "none":
                    self.b.keys("ArrowDown", "m", "+", "-", "f", "p", "0", "End", "Escape", "ArrowRight")
                self.assertNotRegex(self.b.js("return document.body.innerText"), "NaN|undefined|Infinity")


SQUEEZENET = SAMPLES / "squeezenet1_1.json"
EXAMPLES = os.environ.get("TIDE_EXAMPLES_DIR")


def unit(text):
    """Nanoseconds of "12.5 ms"."""
    number, of = text.split()
    return float(number) * {"ns": 1, "\u00b5s": 1e3, "ms": 1e6, "s": 1e9}[of]


class Segments:
    """What SQL says of the segments of an allocator and of what lies in them: the answers of the page, found the slow way."""

    def __init__(self, trace, kind):
        self.trace, self.kind = trace, kind
        self.begin, self.end = tidemark.ask(trace, "SELECT begin_ns, end_ns FROM run")[0]
        back = {a: t for a, t in tidemark.ask(trace, "SELECT address, t_ns FROM events WHERE op = 'segment_free' ORDER BY event_id")}
        self.segments = [(address, size, t, back.get(address, 1 << 63)) for address, size, t in tidemark.ask(
            trace, "SELECT address, reserved_bytes, t_ns FROM events WHERE op = 'segment_alloc' AND kind = ? ORDER BY event_id", kind)]
        self.blocks = [(a, b, n, t0, t1 if t1 is not None else 1 << 63) for a, b, n, t0, t1 in tidemark.ask(
            trace, "SELECT address, reserved_bytes, name, alloc_ns, free_ns FROM blocks WHERE allocator = 'stream_caching'")]
        self.times = sorted({t for b in self.blocks for t in b[3:5]} | {t for s in self.segments for t in s[2:4]})

    def at(self, t):
        """For each segment its blocks at a time, by address."""
        return [(s, sorted(b for b in self.blocks if s[0] <= b[0] < s[0] + s[1] and b[3] <= t < b[4]))
                for s in self.segments if s[2] <= t < s[3]]

    @staticmethod
    def free(segment, blocks):
        edges = [segment[0]] + [e for b in blocks for e in (b[0], b[0] + b[1])] + [segment[0] + segment[1]]
        return [hi - lo for lo, hi in zip(edges[::2], edges[1::2]) if hi > lo]

    def request(self, t, size):
        """(bytes in the way, their names, address); None: no segment is that large."""
        tries = []
        for segment, blocks in self.at(t):
            for begin in [segment[0]] + [b[0] + b[1] for b in blocks]:
                those = [b for b in blocks if b[0] < begin + size and b[0] + b[1] > begin]
                if begin + size <= segment[0] + segment[1]:
                    tries.append((sum(b[1] for b in those), len(those), begin, [b[2] for b in those]))
        return min(tries) if tries else None

    def next(self, t, size):
        return next((u for u in self.times if t < u < self.end and any(
            max(self.free(*pair), default=0) >= size for pair in self.at(u))), None)

    def worst(self):
        """(share, event, when, whose blocks split what is free) after the event of the run at which that is worst."""
        kind, first, last = self.kind, *tidemark.ask(self.trace, "SELECT min(event_id), max(event_id) FROM events WHERE run_id IS NOT NULL")[0]
        segments, blocks, worst = {}, {}, (-1.0, 0, 0, [])
        for event, t, op, of, block, address, size, name in tidemark.ask(
                self.trace, "SELECT event_id, t_ns, op, kind, block_id, address, reserved_bytes, name FROM events WHERE "
                            "op IN ('alloc', 'free_completed', 'segment_alloc', 'segment_free') ORDER BY event_id"):
            if op == "segment_alloc" and of == kind:
                segments[address] = size
            elif op == "segment_free":
                segments.pop(address, None)
            elif op == "alloc":
                blocks[block] = (address, size, name)
            elif op == "free_completed":
                blocks.pop(block, None)
            there = [((a, s), sorted(b for b in blocks.values() if a <= b[0] < a + s)) for a, s in segments.items()]
            free = [f for pair in there for f in self.free(*pair)]
            share = struct.unpack("f", struct.pack("f", 1 - max(free) / sum(free)))[0] if free else 0.0
            if first <= event <= last and there and share > worst[0]:
                worst = (share, event, t, [name for pair in there for name in self.splitting(*pair)])
        return worst

    @staticmethod
    def splitting(segment, blocks):
        """Names of the blocks with free memory before and behind them."""
        at, gaps = segment[0], []
        for b in blocks:
            gaps.append(b[0] > at)
            at = max(at, b[0] + b[1])
        gaps.append(at < segment[0] + segment[1])
        return [b[2] for k, b in enumerate(blocks) if any(gaps[:k + 1]) and any(gaps[k + 1:])]

    def spare_since(self, segment):
        """From when on to its end the pool had as much cached as the segment has."""
        spare = lambda t: sum(sum(self.free(*pair)) for pair in self.at(t)) >= segment[1]
        since = None
        for t in reversed([t for t in self.times if segment[2] <= t < min(segment[3], self.end)]):
            if not spare(t):
                break
            since = t
        return since


class Questions(InBrowser):
    """The table of docs/reports.md: each question is answered in the page as the command line or SQL answers it."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, True)
        cls.naive, cls.planned, cls.colour = cls.made / "naive.db", cls.made / "planned.db", cls.made / "colour.json"
        steps = [["run", SQUEEZENET, "--naive", "--allocator", "stream_caching", "-n", 20, "-o", cls.naive],
                 ["run", SQUEEZENET, "-n", 20, "-o", cls.planned],
                 ["plan", SQUEEZENET, "--strategy", "greedy_color", "-o", cls.colour]]
        if EXAMPLES:
            cls.serve = cls.made / "serve.db"
            subprocess.run([pathlib.Path(EXAMPLES) / "serve", cls.serve], check=True, stdout=subprocess.DEVNULL)
        for file in ("naive", "planned", "colour") + (("serve",) if EXAMPLES else ()):
            steps.append(["report", getattr(cls, file), "-o", cls.made / f"{file}.html"])
        steps.append(["report", cls.naive, cls.planned, "-o", cls.made / "pair.html"])
        for step in steps:
            done = tidemark.run(*step)
            assert done.returncode == 0, done.stderr

    def see(self, file, go=None):
        self.open(self.made / f"{file}.html")
        if go:
            self.put("#live-goto", go)

    def put(self, css, text):
        self.b.js("document.querySelector(arguments[0]).value = ''", css)
        self.b.type(css, text + browser.KEYS["Enter"])

    def rows(self, css):
        """Cells of a table that the script made: a title says it exactly."""
        return self.b.js("return [...document.querySelectorAll(arguments[0] + ' tbody tr')].map(tr => [...tr.cells].map(td => td.title || td.textContent))", css)

    def text(self, css):
        return self.b.js("return document.querySelector(arguments[0]).innerText", css).replace("\u2066", "").replace("\u2069", "")

    def listed(self):
        """Names, bytes and what they take of all that the table of items lists, weights one by one."""
        self.b.js("if (document.getElementById('live-fold').getAttribute('aria-expanded') === 'false') document.getElementById('live-fold').click()")
        self.b.settle()
        return sorted((r[0], int(r[4]), int(r[5])) for r in self.rows("#items"))

    @staticmethod
    def mib(text):
        """A size in MiB, with two digits."""
        number, of = text.split()
        return round(float(number) * {"B": 1 / 1048576, "KiB": 1 / 1024, "MiB": 1}[of], 2)

    def asked(self, *args):
        return json.loads(self.ok("trace", *args, "--json").stdout)

    def origin(self, trace):
        return tidemark.ask(trace, "SELECT begin_ns FROM span")[0][0]

    # The most pixels of the page's ground between the curve and its foot, in any column of the picture where no label stands:
    # the curve begins where three pixels below one another are no ground, which lines above it are not.
    GAPS = """const c = document.getElementById('live-curve'), scale = c.width / c.clientWidth;
        const css = getComputedStyle(document.documentElement).getPropertyValue('--bg').trim();
        const ink = css.length === 4 ? [...css.slice(1)].map(d => parseInt(d + d, 16)) : [1, 3, 5].map(k => parseInt(css.slice(k, k + 2), 16));
        const all = c.getContext('2d').getImageData(0, 0, c.width, c.height).data, foot = Math.floor((170 - 22) * scale) - 2;
        let most = 0;
        for (let x = Math.ceil(c.width * 0.62); x < c.width - 14 * scale; x++) {
            const ground = y => { const k = 4 * (y * c.width + x); return all[k + 3] === 0 || ink.every((v, i) => all[k + i] === v); };
            let y = 0, n = 0;
            while (y < foot && (ground(y) || ground(y + 1) || ground(y + 2))) y++;
            for (; y < foot; y++) n += ground(y);
            most = Math.max(most, n);
        }
        return most;"""

    def test_bands_of_the_curve(self):
        """They sum to the curve, at the cursor and in each column of the picture, and are those of the command line."""
        def size(text):
            number, of = text.split()
            return float(number) * 1024 ** ["B", "KiB", "MiB", "GiB"].index(of)

        for file, key in (("planned", "name"), ("naive", "name"), ("naive", "scope"), ("planned", "scope")):
            said = self.asked(getattr(self, file), "--at", "exec:12", "--rows", 0)
            self.see(file, "exec:12")
            self.b.js("const s = document.getElementById('live-by'); s.value = arguments[0]; s.dispatchEvent(new Event('change'))",
                      {"name": "tensor", "scope": "operator"}[key])
            self.b.settle()
            text = self.text("#live-kinds")
            self.assertTrue(text.startswith({"name": "By tensor: ", "scope": "By operator: "}[key]), text)
            bands = dict(re.match(r"(.*) ([\d.]+ \w+)$", part).groups() for part in text.split(": ", 1)[1].removesuffix(".").split(", "))
            whole = said["moment"]["requested_bytes"]
            self.assertAlmostEqual(sum(map(size, bands.values())), whole, delta=0.01 * whole)
            found = 0
            for name, value in bands.items():
                those = [b for b in said["blocks"] if b["kind"] != "Persistent" and b[key] == name and not b["is_unused"]]
                if those and name not in ("weights", "unused in the buffer"):
                    expected = sum(b["requested_bytes"] for b in those)
                    self.assertAlmostEqual(size(value), expected, delta=max(512, 0.01 * expected), msg=name)  # aligned to 512
                    found += 1
            self.assertGreater(found, 0 if key == "scope" else 1, text)
        for file in ("planned", "colour"):
            for by in ("kind", "operator", "pool", "tensor", "none"):
                self.open(self.made / f"{file}.html", f"#bands={by}")
                self.assertLessEqual(self.b.js(self.GAPS), 1, (file, by))
                if by == "pool":  # at the peak, by the places of the plan or the kinds of the trace
                    names = self.b.js("return document.getElementById('live-kinds').textContent")
                    self.assertIn({"planned": "buffer Workspace", "colour": "pool 0"}[file], names)
        self.open(self.report(self.trace(LENET, "--naive")), "#bands=operator&kind=all")
        self.assertIn("(inputs) 3.25 KiB", self.text("#live-kinds"))

    def test_pages_of_a_thousand_blocks(self):
        for file in ("naive", "planned") + (("serve",) if EXAMPLES else ()):
            page = self.made / f"{file}.html"
            self.assertGreater(int(re.search(r"Blocks and tensors</dt><dd>(\d+)", page.read_text()).group(1)), 1000)
            self.assertLess(page.stat().st_size, 300_000, file)

    def test_1_the_peak_of_execution_12_and_who(self):
        for file in ("naive", "planned"):
            trace = getattr(self, file)
            said = self.asked(trace, "--at", "exec:12", "--rows", 0)
            self.see(file, "exec:12")
            self.assertIn(f"({said['moment']['requested_bytes']:,} B) live", self.text("#live-cursor"))
            self.assertIn("execution 12", self.text("#live-cursor"))
            blocks = [b for b in said["blocks"] if not b["is_unused"]]
            self.assertEqual([(name, takes if said["moment"]["live_tensors"] and name in planned else size) for name, size, takes in self.listed()
                              for planned in [{b["name"] for b in blocks if b["execution"] is not None}]],
                             sorted((b["name"], b["requested_bytes"]) for b in blocks))
            self.b.js("document.getElementById('live-executions-box').open = true")
            self.b.until("document.querySelectorAll('#live-executions tbody tr').length")
            self.assertEqual(self.rows("#live-executions")[12][2], f"{said['moment']['requested_bytes']} B")

    def test_2_alive_at_a_step_of_execution_12(self):
        for file in ("naive", "planned"):
            trace = getattr(self, file)
            for step in ("5", "conv9"):
                said = [b for b in self.asked(trace, "--at", f"exec:12:{step}", "--rows", 0)["blocks"] if not b["is_unused"]]
                self.see(file, f"exec:12:{step}")
                self.assertEqual([name for name, _, _ in self.listed()], sorted(b["name"] for b in said), (file, step))

    def test_3_what_would_lower_it(self):
        events = tidemark.ask(self.naive, "SELECT b.name, CASE op WHEN 'alloc' THEN b.requested_bytes ELSE -b.requested_bytes END FROM events e "
                                          "JOIN blocks b USING (block_id) WHERE op IN ('alloc', 'free_completed') ORDER BY event_id")
        self.see("naive")
        found = self.b.js("return [...document.querySelectorAll('section:has(> #t-without-a) tbody tr')].map(tr => [...tr.cells].map(td => td.title || td.textContent))")
        heads = self.b.js("return [...document.querySelectorAll('section:has(> #t-without-a) thead th')].map(td => td.textContent)")
        column = heads.index("The peak would be")
        for row in found[:2]:
            live = best = 0
            for name, change in events:
                live += 0 if name == row[0] else change
                best = max(best, live)
            self.assertEqual(int(row[column].removesuffix(" B")), best, row)
        # Of a planned run as the terminal view has it, with the plan of the rest.
        said = {w["name"]: w for w in json.loads(self.ok("tui", self.planned, "--pane", "explain", "--json", "--no-state").stdout)["without"]}
        self.see("planned")
        text = self.text("section:has(> #t-without-a)")
        self.assertGreater(len(said), 1)
        for name, w in said.items():
            self.assertIn(name, text)
            sentence = re.search(rf"Without {re.escape(name)}\b[^\n]* The plan of the rest takes ([\d.]+ \w+)", self.text("main"))
            self.assertIsNotNone(sentence, name)
            self.assertEqual(self.mib(sentence.group(1)), self.mib(f"{w['plan_bytes'] / 1024:.2f} KiB"), name)

    def test_4_when_and_why_a_pool_grew_and_when_it_could_have_shrunk(self):
        for file, kind in (("naive", "Workspace"), ("serve", "Workspace"), ("serve", "KVCache"))[:3 if EXAMPLES else 1]:
            trace = getattr(self, file)
            pool, origin = Segments(trace, kind), self.origin(trace)
            self.see(file)
            found = [row for row in self.rows("#pools-growth") if row[1] == f"stream_caching, {kind}"]
            self.assertEqual(len(found), len(pool.segments))
            for row, segment in zip(found, pool.segments):
                first = min((b for b in pool.blocks if segment[0] <= b[0] < segment[0] + segment[1] and b[3] >= segment[2]), key=lambda b: b[3])
                last = max(min(b[4], segment[3]) for b in pool.blocks if segment[0] <= b[0] < segment[0] + segment[1])
                self.assertEqual((row[2], row[3]), (f"{segment[1]} B", first[2]))
                said = [segment[2], last if last < min(segment[3], pool.end) else None, pool.spare_since(segment)]
                for text, t in zip((row[0], row[5], row[6]), said):
                    self.assertEqual(text == "", t is None, (row, said))
                    if t is not None:
                        self.assertAlmostEqual(unit(text), t - origin, delta=max(1e3, 1e-5 * (t - origin)))

    def test_5_fragmentation_at_the_worst_moment_and_who_splits(self):
        for file, kind in (("naive", "Workspace"), ("serve", "KVCache"))[:2 if EXAMPLES else 1]:
            trace = getattr(self, file)
            pool = Segments(trace, kind)
            share, event, t, splits = pool.worst()
            self.see(file)
            row = next(row for row in self.rows("#pools-worst") if row[0] == f"stream_caching, {kind}")
            self.assertEqual(row[1], f"{100 * share:.1f} %")
            self.assertAlmostEqual(unit(row[2]), t - self.origin(trace), delta=max(1e3, 1e-5 * t))
            self.assertEqual(len(re.findall(r" \d", row[5])) if splits else 0, len(splits), row)
            for name in splits:
                self.assertIn(name, row[5])
            self.assertIn(event, [w["event"] for w in self.worst_of_page(file).values()])
        for file in ("naive", "planned", "colour"):
            self.check_worst_of_views(file)

    def worst_of_page(self, file):
        data = re.search(r'id="tidemark-data">(.*?)</script>', (self.made / f"{file}.html").read_text(), re.S).group(1)
        return {row: p["worst"] for row, p in enumerate(json.loads(data)["sides"][0]["pools"]) if p["worst"]}

    def check_worst_of_views(self, file):
        """`goto fragmented` of the terminal view goes to the very moments of the page, by event."""
        said, found = self.worst_of_page(file), {}
        for row in said:
            pane = json.loads(self.ok("tui", getattr(self, file), "--view", 4, *["--command", "down"] * row,
                                      "--command", "goto fragmented", "--pane", "pools", "--json").stdout)
            cursor = pane["cursor_step"] if file == "colour" else pane["cursor_ns"] - pane["origin_ns"]
            found[row] = (cursor, pane["cursor_event"])
        self.assertEqual(found, {row: (w["t"], w["event"]) for row, w in said.items()})
        self.assertTrue(said)

    def test_6_would_64_MiB_fit_now(self):
        self.see("naive", "exec:12")
        at = self.asked(self.naive, "--at", "exec:12")["moment"]["t_ns"]
        pool, origin = Segments(self.naive, "Workspace"), self.origin(self.naive)
        for size, words in ((64, "64 MiB"), (17, "17MiB"), (1, "1048576"), (19, "0x")):
            self.put("#pools-request", words)
            if words == "0x":
                self.assertIn("No size", self.text("#pools-answer"))
                continue
            line = next(p for p in self.text("#pools-answer").split("\n") if p.startswith("stream_caching, Workspace:"))
            found, later = pool.request(at, size << 20), pool.next(at, size << 20)
            if found is None:
                self.assertIn("nothing there is that large, it would have to grow", line)
            elif found[0] == 0:
                self.assertIn(f"fits now, at 0x{found[2]:x}.", line)
            else:
                self.assertIn(f"At 0x{found[2]:x} the least is in the way", line)
                self.assertIn(f"({found[0]:,} B)", line)
                for name in found[3]:
                    self.assertIn(name, line)
            if found is None or found[0]:
                said = re.search(r"served at ([\d.]+ \S+)", line)
                self.assertEqual(said is None, later is None, line)
                if later:
                    self.assertAlmostEqual(unit(said.group(1)), later - origin, delta=max(1e3, 5e-6 * (later - origin)))
        frame = self.ok("tui", self.naive, "--once", "--size", "180x50", "--view", 4, "--command", "goto exec:12", "--command", "request 64MiB").stdout
        self.assertIn("nothing there is that large, it would have to grow", frame)
        self.see("colour", "conv9")
        self.put("#pools-request", "256 KiB")
        frame = self.ok("tui", self.colour, "--once", "--size", "180x60", "--view", 4, "--command", "goto conv9", "--command", "request 256KiB").stdout
        self.assertEqual("256.00 KiB would be served now" in frame, "fits now" in self.text("#pools-answer"))

    def test_7_which_pool_of_a_colouring_plan_wastes_most(self):
        self.ok("report", self.colour, "-o", self.dir / "r.json")
        side = json.loads((self.dir / "r.json").read_text())["sides"][0]
        most = max(side["pools"], key=lambda p: p["wasted_bytes"])
        self.see("colour")
        heads = self.b.js("return [...document.querySelectorAll('section:has(> #t-pools-a) thead th')].map(td => td.textContent)")
        self.b.click(f"section:has(> #t-pools-a) thead th:nth-child({heads.index('Unused on average') + 1}) button")
        first = self.rows("section:has(> #t-pools-a)")[0]
        self.assertEqual((first[0], first[heads.index("Unused on average")]), (most["name"], f"{most['wasted_bytes']} B"))
        # the map: its number beside each pool that has room there
        regions = [r for r in side["regions"] if r["pools"]]
        self.assertEqual([{f"pool {number}": size for number, _, size in r["pools"]} for r in regions],
                         [{p["name"]: p["reserved_bytes"] for p in side["pools"]}])
        self.b.js(Page.DRAWN)
        self.b.settle()
        self.b.until("window.drawn.length")
        drawn = [text for canvas, text, *_ in self.b.js("return window.drawn") if canvas == "live-map"]
        self.assertIn(most["name"], [text.split(",")[0] for text in drawn])
        base, found = 0, []
        for pool in sorted(side["pools"], key=lambda p: int(p["name"].split()[1])):
            end = base + pool["reserved_bytes"]
            those = [i for i in side["items"] if i["place"] is not None and base <= i["place"] < end]
            spare = 0
            for step in range(side["end"]):
                at = base
                for lo, hi in sorted((i["place"], i["place"] + i["reserved_bytes"]) for i in those if i["begin_step"] <= step < i["end_step"]):
                    spare += max(lo - at, 0)
                    at = max(at, hi)
                spare += end - at
            self.assertAlmostEqual(pool["wasted_bytes"], spare / side["end"], delta=256, msg="but for the rounding of an alias that outlives what it lies in")
            rows = [r for r in self.rows("#pools-waste") if r[1] == pool["name"]]
            self.assertEqual(sorted((r[0], int(r[2]), int(r[3]), r[4]) for r in rows), sorted(
                (i["name"], i["begin_step"], i["end_step"], f"{i['reserved_bytes']} B") for i in those))
            found += [(int(pool["name"].split()[1]), *(int(v.removesuffix(" B")) for v in r[2:6]), r[0]) for r in rows]
            base = end
        self.assertTrue(any(i["lies_in"] for i in side["items"]), "results in place are among them")
        said = json.loads(self.ok("tui", self.colour, "--view", 4, "--pane", "pools", "--json").stdout)["tensors"]
        self.assertEqual(sorted(found), sorted((t["pool"], t["begin_step"], t["end_step"], t["reserved_bytes"], t["left_over_bytes"], t["name"]) for t in said))

    @unittest.skipUnless(EXAMPLES, "the examples are not built")
    def test_8_who_leaked_since_when(self):
        said = tidemark.ask(self.serve, "SELECT name, scope, count(*), sum(requested_bytes), min(alloc_ns), max(alloc_ns) FROM leaks GROUP BY name, scope")
        self.see("serve")
        heads = self.b.js("return [...document.querySelectorAll('section:has(> #t-leaks-a) thead th')].map(td => td.textContent)")
        rows = [dict(zip(heads, r)) for r in self.rows("section:has(> #t-leaks-a)")]
        origin = self.origin(self.serve)
        self.assertEqual([(r["Name"], r["Scope"], int(r["Not freed"]), int(r["Bytes"].removesuffix(" B"))) for r in rows], [s[:4] for s in said])
        for r, s in zip(rows, said):
            for head, t in (("First at", s[4]), ("Last at", s[5])):
                self.assertAlmostEqual(unit(r[head]), t - origin, delta=1e-3 * (t - origin))

    def test_9_what_differs_between_naive_and_planned(self):
        said = [g for g in self.asked(self.naive, "--compare", self.planned, "--rows", 0)["groups"] if g["change_bytes"] and g["key"] != "unused in the buffer"]
        self.open(self.made / "pair.html")
        heads = self.b.js("return [...document.querySelectorAll('section:has(> #t-change_by_item-ab) thead th')].map(td => td.textContent)")
        rows = [dict(zip(heads, r)) for r in self.rows("section:has(> #t-change_by_item-ab)")]
        size = lambda text: 0 if text == "" else int(text.removesuffix(" B").replace("+", "").replace("\u2212", "-"))
        found = {r["Name"]: size(r["Change of the peak"]) for r in rows if size(r["Change of the peak"])}
        self.assertGreater(len(said), 1)
        self.assertEqual({g["key"]: g["change_bytes"] for g in said}, {name: found.get(name) for name in (g["key"] for g in said)})
        self.assertIn("A and B", self.text("body"))

    @staticmethod
    def executions_by_sql(trace):
        """Context, time, peak of all that is live, allocations and bytes taken by its own thread: all by event."""
        live, after = 0, [0]
        for op, size in tidemark.ask(trace, "SELECT op, requested_bytes FROM events ORDER BY event_id"):
            live += size if op == "alloc" else -size if op == "free_completed" else 0
            after.append(live)
        contexts = {}
        for thread, first, last, begin, end in tidemark.ask(trace, "SELECT thread, first_event, last_event, begin_ns, end_ns FROM executions ORDER BY execution"):
            context = contexts.setdefault(thread, len(contexts) + 1)
            made, taken = tidemark.ask(trace, "SELECT count(*) FILTER (WHERE op = 'alloc'), coalesce(sum(reserved_bytes) FILTER (WHERE op = 'segment_alloc'), 0) "
                                              "FROM events WHERE thread = ? AND event_id >= ? AND event_id < ?", thread, first, last)[0]
            yield str(context), end - begin, f"{max(after[first:last])} B", str(made), taken

    def check_executions(self, trace):
        """The table of the page that is open against SQL."""
        self.b.js("document.getElementById('live-executions-box').open = true")
        self.b.until("document.querySelectorAll('#live-executions tbody tr').length")
        heads = self.b.js("return [...document.querySelectorAll('#live-executions th')].map(th => th.textContent)")
        rows, said = self.rows("#live-executions"), list(self.executions_by_sql(trace))
        tells = tidemark.ask(trace, "SELECT count(*) FROM events WHERE op = 'segment_alloc'")[0][0] > 0
        self.assertEqual(len(rows), len(said))
        for row, (context, took, peak, made, taken) in zip(rows, said):
            cells = dict(zip(heads, row))
            self.assertAlmostEqual(unit(cells["Took"]), took, delta=1e-3 * took)
            self.assertEqual(cells.get("Context", "1"), context)
            self.assertEqual((cells["Peak"], cells["Allocations"], cells["Taken from the system"]),
                             (peak, made, f"{taken} B" if tells else ""), row)
        return rows

    def test_executions_of_several_contexts(self):
        """They overlap: each allocation counts for the execution of its own thread, and no other."""
        for options in (["--contexts", 2], ["--contexts", 2, "--naive", "--allocator", "stream_caching"], []):
            trace = self.dir / "several.db"
            self.ok("run", SQUEEZENET, "-n", 10, *options, "-o", trace, "--force")
            page = self.report(trace)
            self.open(page)
            self.check_executions(trace)
            n_buffers = tidemark.ask(trace, "SELECT count(*) FROM buffers WHERE run_id = (SELECT max(id) FROM run)")[0][0]
            self.assertEqual(self.check_regions(page, trace), n_buffers)

    def check_regions(self, page, trace):
        """Each context has a buffer of its own: the page places a tensor of an execution where SQL says it lay."""
        held = tidemark.ask(trace, "SELECT name, block_id FROM tensors ORDER BY role <> 'scratch', begin_ns, execution")
        name = held[0][0] if held else None
        labels = {}
        blocks = [block for other, block in held if other == name]
        for nth, block in enumerate(blocks, 1):
            if blocks[:nth].count(block) > 2:
                continue
            self.open(page, f"#sel={name}&nth={nth}")
            label = re.search(r"Place\s+[\d,]+ B in (.*)", self.text("#live-details"))[1]
            self.assertEqual(labels.setdefault(block, label), label, (nth, block))
        self.assertEqual(len(set(labels.values())), len(labels), labels)
        return len(labels)

    def test_10_cold_against_warm(self):
        self.see("naive")
        rows = self.check_executions(self.naive)
        self.assertNotEqual(rows[0][6], rows[1][6], "cold, the pool has to grow")
        for file in ("naive", "planned"):
            self.see(file)
            self.b.js("document.getElementById('live-two-box').open = true")
            self.put("#two-a", "exec:0:3")
            self.put("#two-b", "exec:12:5")
            said = self.asked(getattr(self, file), "--at", "exec:0:3", "--and", "exec:12:5", "--rows", 0)["groups"]
            found = {r[0]: [int(v.removesuffix(" B")) for v in r[3:6]] for r in self.rows("#two-out")}
            self.assertEqual({g["key"]: [g["a_bytes"], g["b_bytes"], g["change_bytes"]] for g in said if g["change_bytes"]},
                             {name: v for name, v in found.items() if v[2]}, file)

    def test_11_who_lies_at_an_address(self):
        address = tidemark.ask(self.naive, "SELECT address + 64 FROM blocks WHERE kind = 'Workspace' GROUP BY address ORDER BY count(*) DESC")[0][0]
        at = self.asked(self.naive, "--at", "exec:12")["moment"]["t_ns"]
        said = tidemark.ask(self.naive, "SELECT name, alloc_ns <= ? AND (free_ns IS NULL OR free_ns > ?) FROM blocks "
                                        "WHERE address <= ? AND ? < address + reserved_bytes", at, at, address, address)
        self.see("naive")
        self.b.type("#live-search", f"0x{address:x}")
        count = self.text("#items-count")
        self.assertTrue(count.startswith(f"{len(said):,} of "), count)
        self.see("naive", "exec:12")
        self.b.type("#live-search", f"0x{address:x}")
        self.assertEqual(sorted(r[0] for r in self.rows("#items")), sorted(name for name, alive in said if alive))
        self.see("colour")
        self.b.type("#live-search", "@0")
        self.ok("report", self.colour, "-o", self.dir / "r.json")
        items = json.loads((self.dir / "r.json").read_text())["sides"][0]["items"]
        self.assertEqual(sorted(r[0] for r in self.rows("#items")), sorted(i["name"] for i in items if i["place"] == 0 and i["reserved_bytes"]))

    def test_12_which_kind_used_what_when(self):
        for file in ("naive", "planned"):
            trace = getattr(self, file)
            self.see(file, "exec:12:5")
            groups = self.asked(trace, "--at", "exec:12:5", "--by", "kind")["groups"]
            words = self.text("#live-kinds")
            for g in groups:
                self.assertIn(f"{g['key']} {self.b.js('const u = [`B`, `KiB`, `MiB`]; let v = arguments[0], k = 0; while (v >= 1024 && k < 2) { v /= 1024; k++; } return v.toFixed(k === 0 || v >= 100 ? 0 : v >= 10 ? 1 : 2) + ` ` + u[k]', g['requested_bytes'])}", words)
            self.b.js("document.getElementById('live-kind-box').open = true")
            self.b.until("document.querySelectorAll('#live-kind-peaks tbody tr').length")
            origin = self.origin(trace)
            for kind, peak, first, _ in self.rows("#live-kind-peaks"):
                events = tidemark.ask(trace, "SELECT t_ns, CASE op WHEN 'alloc' THEN requested_bytes ELSE -requested_bytes END FROM events "
                                             "WHERE op IN ('alloc', 'free_completed') AND kind = ? ORDER BY event_id", kind)
                live, best = 0, (0, 0)
                for t, change in events:
                    live += change
                    best = max(best, (live, -t))
                self.assertEqual(peak, f"{best[0]} B")
                begin = tidemark.ask(trace, "SELECT begin_ns FROM run")[0][0]
                self.assertAlmostEqual(unit(first), max(-best[1], begin) - origin, delta=1e4)

    def test_13_find_by_name(self):
        said = tidemark.ask(self.naive, "SELECT count(*) FROM blocks WHERE name LIKE '%concat%' OR scope LIKE '%concat%'")[0][0]
        self.see("naive")
        self.b.type("#live-search", "concat")
        self.assertTrue(self.text("#items-count").startswith(f"{said:,} of "), self.text("#items-count"))

    def test_14_export_what_is_seen(self):
        self.ok("report", self.naive, "-o", self.dir / "r.csv")
        all_rows = list(csv.DictReader(io.StringIO((self.dir / "r.csv").read_text())))
        for link, keeps in (("", lambda r: r["at_peak"] == "1"), ("#q=concat", lambda r: "concat" in r["name"] + r["owner"]), (EVERYTHING, lambda r: True)):
            self.open(self.made / "naive.html", link)
            self.b.js("window.saved = []; const make = URL.createObjectURL; URL.createObjectURL = (blob) => { window.saved.push(blob); return make(blob); }")
            self.b.click("#items-csv")
            self.b.click("#items-json")
            texts = self.b.js_async("const done = arguments[0]; Promise.all(window.saved.map(b => b.text())).then(done)")
            found = list(csv.DictReader(io.StringIO(texts[0])))
            key = lambda r: tuple(r[c] for c in ("name", "owner", "kind", "role", "size_bytes", "reserved_bytes", "begin_ns", "end_ns", "open_ended", "place", "lies_in"))
            self.assertEqual(sorted(map(key, found)), sorted(key(r) for r in all_rows if keeps(r)), link)
            items = json.loads(texts[1])["items"]
            self.assertEqual([["" if i[c] is None else str(i[c]) for c in i] for i in items], [list(r.values()) for r in found])


if __name__ == "__main__":
    tidemark.main()
