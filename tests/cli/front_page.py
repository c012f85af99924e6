# SPDX-License-Identifier: MIT
"""The front page and what it leads to: every command of README.md, docs/reading.md and docs/recording.md is run and its lines are
looked for in what it prints, every link of every page leads somewhere, pictures are small, and the page stays short."""
import html
import os
import pathlib
import re
import subprocess
import unittest

import scratch
import tidemark
from tidemark import PROGRAM, SAMPLES, SOURCE, Case, environment

PAGES = [SOURCE / "README.md", SOURCE / "CONTRIBUTING.md", SOURCE / "SECURITY.md", SOURCE / "CHANGELOG.md",
         *sorted((SOURCE / "docs").glob("*.md")), SOURCE / "docs/ci/README.md", SOURCE / "sample_graphs/README.md"]


def plain(line):
    """Without what differs from run to run: times, shares of times, the width of columns."""
    return re.sub(r"[\d.]+ ([mun]?s\b|%)", "T", " ".join(line.split()))


def told_by(page):
    """[(command, lines that are shown of it)] of a page's blocks."""
    found = []
    for block in re.findall(r"(?ms)^```(?:console)?\n(\$ .*?)^```$", page.read_text(encoding="utf-8")):
        for line in block.splitlines():
            if line.startswith("$ "):
                found.append((line[2:], []))
            else:
                found[-1][1].append(line)
    return found


class Shown(Case):
    def setUp(self):
        super().setUp()
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "tidemark").symlink_to(PROGRAM)
        (self.dir / "sample_graphs").symlink_to(SAMPLES.resolve())
        for graph in SAMPLES.glob("*.json"):
            (self.dir / graph.name).symlink_to(graph.resolve())
        self.env = environment({"PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}", "HOME": str(self.dir), "NO_COLOR": "1"})

    def check(self, name, at_least):
        """Lines stand in this order, one behind the other, but where the page has a line with … alone: there some are left
        out. A line that ends in … is a begin."""
        found = told_by(SOURCE / name)
        self.assertGreaterEqual(len(found), at_least)
        for command, wanted in found:
            p = subprocess.run(["sh", "-c", command], cwd=self.dir, env=self.env, stdin=subprocess.DEVNULL, capture_output=True,
                               text=True, timeout=300)
            self.assertEqual(p.stderr, "", command)
            printed, at, may_skip = [plain(line) for line in p.stdout.splitlines()], 0, False
            for line in wanted:
                if line == "…":
                    may_skip = True
                    continue
                line = plain(line)
                fits = (lambda got: got.startswith(line[:-1])) if line.endswith("…") else (lambda got: got == line)
                places = [i for i in range(at, len(printed) if may_skip else min(at + 1, len(printed))) if fits(printed[i])]
                self.assertTrue(places, f"{name}: $ {command}\n'{line}' is not in, or not at line {at + 1} of:\n" + "\n".join(printed))
                at, may_skip = places[0] + 1, False
            if wanted and not may_skip:
                self.assertEqual(printed[at:], [], f"{name}: $ {command}: more is printed than is shown")

    @unittest.skipIf(scratch.why_other(), scratch.why_other())
    def test_the_four_questions(self):
        self.check("README.md", 6)

    @unittest.skipIf(scratch.why_other(), scratch.why_other())
    def test_how_to_read_it(self):
        self.check("docs/reading.md", 2)

    @unittest.skipIf(scratch.why_other(), scratch.why_other())
    def test_recording(self):
        self.ok("compare", SAMPLES / "squeezenet1_1.json", "-o", self.dir / "squeezenet1_1.db")
        self.check("docs/recording.md", 1)


class Links(Case):
    @staticmethod
    def anchors(text):
        """Those that GitHub makes of headings."""
        return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in re.findall(r"(?m)^#+ (.*)$", text)}

    def test_every_link_leads_somewhere(self):
        seen = 0
        for page in PAGES:
            text = re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))
            for target in re.findall(r"\]\(([^)\s]+)\)|(?:src|srcset)=\"([^\"]+)\"", text):
                target = target[0] or target[1]
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                to = (page.parent / path).resolve() if path else page
                with self.subTest(page=page.name, link=target):
                    self.assertTrue(to.exists())
                    if anchor and to.suffix == ".md":
                        self.assertIn(anchor, self.anchors(to.read_text(encoding="utf-8")))
                seen += 1
        self.assertGreater(seen, 100)

    def test_every_page_is_in_the_table_of_contents(self):
        table = (SOURCE / "docs/README.md").read_text(encoding="utf-8")
        missing = [p.name for p in (SOURCE / "docs").glob("*.md") if p.name != "README.md" and f"]({p.name})" not in table]
        self.assertEqual(missing, [])

    def test_the_front_page_is_short(self):
        text = (SOURCE / "README.md").read_text(encoding="utf-8")
        self.assertLessEqual(len(text.splitlines()), 150)
        first = "\n".join(text.splitlines()[:32])  # what a visitor sees at once
        for words in ("tui-dark.svg", "report-dark.png", "tidemark demo", "tidemark tui", "apt install", "make install"):
            self.assertIn(words, first)
        pictures = [p for p in (SOURCE / "docs/images").iterdir()]
        self.assertLess(sum(p.stat().st_size for p in pictures), 200_000)
        used = "".join(page.read_text(encoding="utf-8") for page in PAGES)
        self.assertEqual([p.name for p in pictures if p.name not in used], [])

    def test_the_picture_is_of_this_program(self):
        """Words of the picture of the view are those that the view shows today."""
        picture = (SOURCE / "docs/images/tui-dark.svg").read_text(encoding="utf-8")
        shown = self.ok("tui", SAMPLES / "unet.json", "--view", "peak", "--once", "--size", "100x34").stdout
        words = [w for w in re.findall(r">([^<]{4,})</text>", picture) if re.search(r"[A-Za-z]{3}", w)]
        self.assertGreater(len(words), 40)
        self.assertEqual([w for w in words if html.unescape(w) not in shown], [])


if __name__ == "__main__":
    tidemark.main()
