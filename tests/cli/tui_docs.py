# SPDX-License-Identifier: MIT
"""Documents of the terminal view say what it does: every ```console block of docs/tui.md is run and compared.
TIDE_UPDATE_DOCS=1 writes what the program says into them instead."""
import os
import pathlib
import re
import subprocess
import unittest

import scratch
import tidemark
from tidemark import PROGRAM, SOURCE, Case, environment

UPDATE = os.environ.get("TIDE_UPDATE_DOCS") == "1"
EXAMPLES = pathlib.Path(os.environ.get("TIDE_EXAMPLES_DIR", pathlib.Path(PROGRAM).parent.parent / "examples"))


def blocks(text):
    """(first line, line behind the last) of the inside of each console block."""
    lines, begin = text.splitlines(), None
    for i, line in enumerate(lines):
        if line == "```console":
            begin = i + 1
        elif line == "```" and begin is not None:
            yield begin, i
            begin = None


class Documents(Case):
    def shell(self, command):
        bin_dir = self.dir / "bin"
        bin_dir.mkdir(exist_ok=True)
        for name, target in (("tidemark", pathlib.Path(PROGRAM)), ("serve", EXAMPLES / "serve")):
            if not (bin_dir / name).exists():
                (bin_dir / name).symlink_to(target.resolve())
        graphs = self.dir / "sample_graphs"
        if not graphs.exists():
            graphs.symlink_to((SOURCE / "sample_graphs").resolve())
        env = environment({"PATH": f"{bin_dir}:{os.environ['PATH']}", "NO_COLOR": None, "TERM": "xterm-256color"})
        p = subprocess.run(["sh", "-c", command], cwd=self.dir, env=env, stdin=subprocess.DEVNULL, capture_output=True,
                           text=True, timeout=120)
        self.assertEqual((p.returncode, p.stderr), (0, ""), command)
        # Where a block lies is the system's to say.
        return [re.sub(r"0x[0-9a-f]{8,16}", "0x7f0000000000", line).rstrip() for line in p.stdout.splitlines()]

    def run_block(self, lines):
        """The block as it should be: each command with what it prints."""
        out = []
        for line in lines:
            if line.startswith("$ "):
                out += [line, *self.shell(line[2:])]
        return out

    def check_page(self, name, at_least):
        page = SOURCE / name
        lines = page.read_text(encoding="utf-8").splitlines()
        found = list(blocks("\n".join(lines)))
        self.assertGreaterEqual(len(found), at_least)
        new, at = [], 0
        for begin, end in found:
            got = self.run_block(lines[begin:end])
            if not UPDATE:
                self.assertEqual(lines[begin:end], got,
                                 f"{name}:{begin + 1}: TIDE_UPDATE_DOCS=1 python3 tests/cli/tui_docs.py rewrites it")
            new += lines[at:begin] + got
            at = end
        if UPDATE:
            page.write_text("\n".join(new + lines[at:]) + "\n", encoding="utf-8")

    @unittest.skipIf(scratch.why_other(), scratch.why_other())
    def test_the_pages_blocks(self):
        self.check_page("docs/tui.md", 8)

    def questions(self):
        """Rows of the table: number, files, keys, answers."""
        for line in (SOURCE / "docs/tui.md").read_text(encoding="utf-8").splitlines():
            row = re.fullmatch(r"\| (\d+) \| [^|]+ \| ([^|`]+) \| ([^|]+) \| ([^|]+) \|", line)
            if row:
                yield row[1], row[2].split(), re.findall(r"`([^`]+)`", row[3]), re.findall(r"`([^`]+)`", row[4])

    def test_fourteen_questions(self):
        page = (SOURCE / "docs/tui.md").read_text(encoding="utf-8")
        begin = page.index("## Fourteen questions")
        makers = re.findall(r"^    ((?:tidemark|serve) .+)$", page[begin:page.index("| | question", begin)], re.M)
        self.assertEqual(len(makers), 4)
        for command in makers:
            self.shell(f"{command} > made.txt")
        asked = list(self.questions())
        self.assertEqual([number for number, *_ in asked], [str(i) for i in range(1, 15)])
        for size in ("150x44", "80x24", "120x40", "220x60"):
            self.check_answers(asked, size)
        rows = (self.dir / "seen.csv").read_text(encoding="utf-8").splitlines()
        self.assertTrue(rows[0].startswith("name,owner,") and len(rows) > 20, rows[:2])
        self.assertEqual({r.split(",")[3] for r in rows[1:]}, {"Workspace"})

    def check_answers(self, asked, size):
        """All of them; of the smallest screen the first of each question, for its lists are short."""
        for number, files, keys, answers in asked:
            with self.subTest(question=number, size=size):
                self.assertTrue(keys and answers)
                script = self.dir / "keys.txt"
                script.write_text("".join(f"do {k[1:]}\n" if k[0] == ":" else f"key {k}\n" for k in keys) + "dump\n",
                                  encoding="utf-8")
                frame = "\n".join(self.shell(f"tidemark tui {' '.join(files)} --script keys.txt --size {size} --no-state"))
                words = re.sub(r"\s+", " ", frame) # a sentence may be broken where the pane ends
                for answer in answers if size != "80x24" else answers[:1]:
                    self.assertIn(re.sub(r"\s+", " ", answer), words, f"{keys}:\n{frame}")


if __name__ == "__main__":
    tidemark.main()
