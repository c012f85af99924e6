# SPDX-License-Identifier: MIT
"""The HTML report in a real Chromium: every control is used, the console is empty, no request leaves the page, with
scripts off it is whole, and the accessibility rules hold. TIDE_PICTURES=FOLDER keeps a picture of each state."""
import json
import os
import pathlib
import re
import unittest

import browser
import tidemark
from tidemark import SAMPLES, SHARED, SOURCE, Case

LENET = SAMPLES / "lenet5.json"
AXE = [SOURCE / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"]
PICTURES = os.environ.get("TIDE_PICTURES")
HASH = "return location.hash"
ROWS = "return [...document.querySelectorAll('#items tbody tr')].map(tr => tr.cells[0].textContent)"


@unittest.skipIf(browser.missing(), browser.missing())
class Page(Case):
    @classmethod
    def setUpClass(cls):
        cls.b = browser.Browser()
        cls.addClassCleanup(cls.b.close)

    def setUp(self):
        super().setUp()
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
        """After each test: nothing on the console, nothing asked of anybody."""
        said = [entry for entry in self.b.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(said, [], "the console is not empty")
        for url in self.b.requests():
            self.assertTrue(url.startswith(("file://", "about:", "data:")), f"the page asked for {url}")
        super().tearDown()

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
        self.open(page)
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
        self.b.keys("Shift+ArrowLeft")
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
        self.open(page)
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
        for kind in self.b.js("return [...document.querySelectorAll('#live-kind option')].map(o => o.value)"):
            self.b.choose("#live-kind", kind)
            self.assertEqual(len(self.b.js(ROWS)) < len(everything), kind != "", kind)
        self.open(page)
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

    def test_memory_view_and_hover(self):
        page = self.report(LENET)
        self.open(page)
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
        self.open(page)
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

    # ---- accessibility ----

    def check_accessibility(self, name):
        tool = next((path for path in AXE if path.exists()), None)
        if tool is None:
            self.skipTest("axe-core is not installed (scripts/deps.sh test installs it where npm is)")
        self.b.js(tool.read_text())
        found = self.b.js_async("const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then("
                                "r => done(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)])),"
                                "e => done([['failed', String(e), []]]));")
        self.assertEqual(found, [], name)

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

    # ---- hostile names ----

    def test_hostile_names_do_nothing(self):
        path = self.dir / "hostile.json"
        names = ["</script><script>document.title='pwned'</script>", "<img src=x onerror=\"document.title='pwned'\">",
                 "]]>", "\u202ertl \u05e9\u05dc", "=1+1", "x" * 10000, "a\tb"]
        path.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "model": "</title><script>x</script>",
                                    "tensors": [{"name": name, "size_bytes": 64 * (k + 1), "begin": k, "end": k + 2}
                                                for k, name in enumerate(names)]}))
        page = self.report(path)
        self.open(page)
        title = self.b.js("return document.title")
        self.assertNotEqual(title, "pwned")
        self.assertEqual(len(self.b.js(ROWS)), len(names))
        self.b.keys("ArrowDown", "ArrowDown", "m")
        self.assertNotEqual(self.b.js("return document.title"), "pwned")
        self.assertEqual(self.b.js("return document.images.length"), 0)
        self.look("hostile")
        self.b.size(360, 800)
        self.assertLessEqual(self.b.js("return document.documentElement.scrollWidth"), 360)

    def test_script_beside_the_page(self):
        page = self.report(LENET, options=["--split-script"])
        self.assertTrue((self.dir / "r.js").exists())
        self.assertEqual(page.read_text().count("<script"), 2)
        self.open(page)
        self.b.keys("ArrowDown")
        self.assertIn("sel=", self.b.js(HASH))


if __name__ == "__main__":
    tidemark.main()
