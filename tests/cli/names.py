# SPDX-License-Identifier: MIT
"""Foreign names in every output: class of character by command and format, and by where the name came from."""
import csv
import io
import json
import pathlib
import shutil
import tempfile
import unicodedata

import tidemark
from tidemark import SAMPLES, Case, run

CLASSES = {
    "escape": "\x1b[31mred", "bell": "a\x07b", "delete": "a\x7fb", "C1": "a\x9b31mb", "newline": "a\nbb", "return": "a\rbb",
    "override": "abc\u202egpj", "isolate": "a\u2067b", "mark": "a\u200fb", "zero width": "a\u200bb", "separator": "a\u2028b",
    "tag": "a\U000e0041b", "order": "a\ufeffb", "formula": "=1+1", "plus": "+1", "at": "@SUM(1)", "minus": "-2+3",
}


def is_unsafe(c):
    return (unicodedata.category(c) in ("Cc", "Cf", "Zl", "Zp", "Cs") or ord(c) in (0xFFFE, 0xFFFF)) and c not in "\r\n\t"


def renamed(value, names):
    if isinstance(value, dict):
        return {names.get(k, k): renamed(v, names) for k, v in value.items()}
    if isinstance(value, list):
        return [renamed(v, names) for v in value]
    return names.get(value, value) if isinstance(value, str) else value


class Names(Case):
    @classmethod
    def setUpClass(cls):
        """A graph whose tensors and operators have one name of each class."""
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, True)
        graph = json.loads((SAMPLES / "squeezenet1_1.json").read_text())
        outs = [o for n in graph["nodes"] for o in n["outputs"]]
        last = {o if isinstance(o, str) else o["name"] for o in graph["outputs"]}
        plan = run("plan", SAMPLES / "squeezenet1_1.json", "--json").stdout
        outs = [o for o in outs if o not in last and f'"{o}"' in plan]  # not those that fusing takes away
        cls.names = dict(zip(outs, CLASSES.values()))
        assert len(cls.names) == len(CLASSES)
        text = renamed(graph, cls.names)
        for node, name in zip(text["nodes"], CLASSES.values()):
            node["name"] = "op" + name
        text["name"] = "model\u202e\x1b[1m"
        cls.graph = cls.made / "g.json"
        cls.graph.write_text(json.dumps(text))
        run("run", "--naive", "-n", "1", cls.graph, "-o", cls.made / "t.db").check_returncode()
        run("plan", cls.graph, "-o", cls.made / "p.json").check_returncode()
        rows = "".join(f"{i},{i},{i + 2},64\n" for i in range(4))
        cls.lifetimes = cls.made / "l.csv"
        cls.lifetimes.write_text("id,lower,upper,size\n" + rows.replace("2,2,", "a\u202eb,2,"))

    def clean(self, text, what):
        for c in text:
            self.assertFalse(is_unsafe(c), f"{what}: U+{ord(c):04X} in {text[max(0, text.find(c) - 40):][:80]!r}")
        if what != "csv":  # quoted there: a reader of RFC 4180 gets the name
            self.assertNotIn("a\nbb", text, what)
            self.assertNotIn("a\rbb", text, what)

    def printed(self):
        g, t, p = self.graph, self.made / "t.db", self.made / "p.json"
        yield from (["plan", g], ["plan", "--all", g], ["plan", "--json", g], ["plan", g, "--budget", "1KiB"],
                    ["plan", self.lifetimes], ["plan", "--json", self.lifetimes], ["plan", "-v", g])
        for stage in ("liveness", "graph", "colour", "plan"):
            yield ["plan", g, "--dump-stage", stage]
            yield ["plan", self.lifetimes, "--dump-stage", stage]
        yield from (["run", "-n", "1", g], ["run", "-n", "1", g, "--json"], ["run", "-n", "1", g, "--limit", "5500KiB"],
                    ["run", "-n", "1", "--naive", g, "--limit", "5500KiB", "--json"], ["compare", "-n", "1", g],
                    ["compare", "-n", "1", g, "--json"], ["export", g, "--to", "json"])
        for by in ([], ["--at", "peak"], ["--at", "peak", "--by", "name"], ["--at", "peak", "--by", "scope"],
                   ["--at", "10%", "--and", "peak"], ["--sql", "SELECT * FROM name"]):
            yield ["trace", t, *by]
            yield ["trace", t, *by, "--json"]
        other = SAMPLES / "squeezenet1_1.json"
        yield from (["diff", g, other], ["diff", g, other, "--json"], ["diff", t, "--at", "10%", "--and", "peak"])
        for view in (1, 3):
            yield ["tui", p, "--once", "--size", "120x40", "--view", str(view)]
            yield ["tui", t, "--once", "--size", "120x40", "--view", str(view)]
        yield ["tui", p, "--linear"]
        for pane in ("table", "operators"):
            yield ["tui", p, "--pane", pane, "--csv"]
            yield ["tui", p, "--pane", pane, "--json"]
        yield from (["sweep", "--align", "64,256", g], ["sweep", "--align", "64", g, "--json"])

    def test_standard_output_and_messages(self):
        for args in self.printed():
            with self.subTest(args=args):
                p = run(*args)
                self.assertLess(p.returncode, 7, p.stderr)
                self.assertNotEqual(p.returncode, 2, p.stderr)
                self.clean(p.stdout, args)
                self.clean(p.stderr, args)
                if "--csv" in args:
                    self.no_formula(p.stdout)

    def no_formula(self, text):
        for row in csv.reader(io.StringIO(text, newline="")):
            for cell in row:
                if cell[:1] in tuple("=+-@\t") and cell != "-":
                    float(cell)  # a number may have a sign

    def test_files(self):
        for ending in ("html", "csv", "json", "md", "svg", "txt"):
            for source in ("p.json", "t.db"):
                with self.subTest(ending=ending, source=source):
                    out = self.dir / f"r.{ending}"
                    self.ok("report", self.made / source, "-o", out)
                    text = out.read_bytes().decode()
                    self.clean(text, ending)
                    if ending == "csv":
                        self.no_formula(text)
            with self.subTest("sweep", ending=ending):
                out = self.dir / f"s.{ending}"
                self.ok("sweep", "--align", "64,256", self.graph, "-o", out)
                self.clean(out.read_bytes().decode(), ending)

    def test_json_is_exact(self):
        """What was escaped is what a parser gets back."""
        for args in (["plan", self.graph, "--json"], ["export", self.graph, "--to", "json"],
                     ["trace", self.made / "t.db", "--sql", "SELECT text FROM name", "--json"]):
            text = self.ok(*args).stdout
            found = set()

            def walk(v):
                if isinstance(v, str):
                    found.add(v)
                for item in (list(v.values()) + list(v) if isinstance(v, dict) else v if isinstance(v, list) else []):
                    walk(item)

            walk(json.loads(text))
            for name in CLASSES.values():
                self.assertIn(name, found, args)

    def test_usage_errors(self):
        for bad in CLASSES.values():
            for args in (["plan", "--strategy", bad, self.graph], ["plan", "--dump-stage", bad, self.graph], ["run", f"--{bad}"],
                         ["trace", "x", "--by", bad], ["run", "--limit", bad, "x"], [bad + "x"], ["plan", f"no{bad}.json"]):
                with self.subTest(args=args):
                    p = run(*args)
                    self.assertIn(p.returncode, (2, 3))
                    self.clean(p.stderr, args)


if __name__ == "__main__":
    tidemark.main()
