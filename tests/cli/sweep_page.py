# SPDX-License-Identifier: MIT
"""The page of a sweep in a real Chromium: nothing is loaded, nothing overflows on any screen, the accessibility rules
hold, names do nothing. TIDE_PICTURES=FOLDER keeps a picture of each state."""
import json
import os
import pathlib
import unittest

import browser
import tidemark
from tidemark import SAMPLES, SOURCE, Case

AXE = SOURCE / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"
PICTURES = os.environ.get("TIDE_PICTURES")


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

    def tearDown(self):
        """After each test: the console is empty and no request left the machine."""
        said = [entry for entry in self.b.log("browser") if entry["level"] in ("SEVERE", "WARNING")]
        self.assertEqual(said, [], "the console is not empty")
        for url in self.b.requests():
            self.assertTrue(url.startswith(("file://", "about:", "data:")), f"the page asked for {url}")
        super().tearDown()

    def model(self, name="m.json", title="dynamic_batch", extent="batch"):
        doc = json.loads((SAMPLES / "dynamic_batch.json").read_text())
        doc["name"] = title
        doc["inputs"][0]["shape"][0] = extent
        path = self.dir / name
        path.write_text(json.dumps(doc))
        return path

    def page(self, *options, ending="html", code=0):
        out = self.dir / f"s.{ending}"
        self.ok("sweep", *options, "-o", out, code=code)
        return out

    def sweep(self, **kw):
        """Two models, three strategies, two budgets, points that were run and one model that has no figures."""
        return self.page(SAMPLES / "dynamic_batch.json", self.model(), SAMPLES / "lenet5.json", "--batch", "1,64..512:64", "--strategy",
                         "search,naive,greedy_color", "--fits", "18500KiB", "--fits", "18900KiB", "--run=answers", "-n", 1, code=1, **kw)

    def open(self, page):
        self.b.open(page)
        self.b.settle()

    def look(self, name):
        if PICTURES:
            self.b.picture(pathlib.Path(PICTURES) / f"sweep_{name}.png")

    def test_no_width_overflows(self):
        page = self.sweep()
        for width in (360, 768, 1300, 1920):
            self.b.size(width, 900)
            for dark in (False, True):
                self.b.media(dark=dark)
                self.open(page)
                wide = self.b.js("return [document.documentElement.scrollWidth, innerWidth]")
                self.assertLessEqual(wide[0], wide[1], f"at {width} px something is wider than the screen")
                self.look(f"{width}_{'dark' if dark else 'light'}")
                letters = self.b.js("const t = document.querySelector('svg.sweep text').getBoundingClientRect(); return t.height")
                self.assertGreater(letters, 11, f"at {width} px the picture's letters are too small")

    def test_text_stays_in_the_picture(self):
        self.open(self.sweep())
        out = self.b.js("const bad = []; for (const svg of document.querySelectorAll('svg.sweep')) { const b = svg.getBoundingClientRect();"
                        "for (const t of svg.querySelectorAll('text, circle, path')) { const r = t.getBoundingClientRect();"
                        "if (r.left < b.left - 1 || r.right > b.right + 1 || r.top < b.top - 1 || r.bottom > b.bottom + 1)"
                        "bad.push(t.outerHTML); } } return bad;")
        self.assertEqual(out, [])
        self.assertEqual(self.b.js("return document.querySelectorAll('svg.sweep').length"), 2)

    def test_says_what_the_document_says(self):
        self.open(self.sweep())
        self.sweep(ending="json")
        doc = json.loads((self.dir / "s.json").read_text())
        self.assertEqual(self.b.js("return document.querySelectorAll('tbody tr').length"), len(doc["points"]))
        self.assertEqual(self.b.js("return document.querySelectorAll('.why p').length"), len(doc["answers"]))
        titles = self.b.js("return [...document.querySelectorAll('tbody td[title]')].map(td => td.title)")
        for p in doc["points"]:
            if p["error"] is None:
                self.assertIn(f"{p['total_bytes']} B", titles)

    def test_accessible(self):
        if not AXE.exists():
            self.skipTest("axe-core is not installed (scripts/deps.sh test installs it where npm is)")
        page = self.sweep()
        for dark in (False, True):
            self.b.media(dark=dark)
            self.open(page)
            self.b.js(AXE.read_text())
            found = self.b.js_async("const done = arguments[0]; axe.run(document, {resultTypes: ['violations']}).then("
                                    "r => done(r.violations.map(v => [v.id, v.help, v.nodes.slice(0, 3).map(n => n.html)])),"
                                    "e => done([['failed', String(e), []]]));")
            self.assertEqual(found, [], "dark" if dark else "light")
        self.assertEqual(self.b.js("return document.documentElement.lang"), "en")
        ids = self.b.js("return [...document.querySelectorAll('[id]')].map(e => e.id)")
        self.assertEqual(len(ids), len(set(ids)), "an id stands twice")

    def test_hostile_names_do_nothing(self):
        name = "<img src=x onerror=document.title='pwned'>&\"'\u202e.json"
        extent = "</text><script>document.title='pwned'</script>"
        page = self.page(self.model(name, extent=extent), "--batch", "1..4096", "--fits", "20MiB")
        self.open(page)
        self.assertNotEqual(self.b.js("return document.title"), "pwned")
        self.assertEqual(self.b.js("return document.images.length + document.scripts.length"), 0)
        self.open(self.page(self.model(name, extent=extent), "--extent", f"{extent}=1..8", ending="svg"))
        self.assertEqual(self.b.js("return document.querySelectorAll('script').length"), 0)
        self.b.size(360, 800)
        self.open(page)
        self.assertLessEqual(self.b.js("return document.documentElement.scrollWidth"), 360)

    def test_the_picture_alone(self):
        self.open(self.sweep(ending="svg"))
        self.look("alone")
        self.assertEqual(self.b.js("return document.documentElement.localName"), "svg")
        self.assertEqual(self.b.js("return document.querySelectorAll('.ring').length"), 12)


if __name__ == "__main__":
    tidemark.main()
