# SPDX-License-Identifier: MIT
"""docs/gate.md says what the program does: its configurations are taken, its console blocks are run and compared, its
tables hold every key of the configuration and every metric, as the sources have them. TIDE_UPDATE_DOCS=1 writes what the
program says into the blocks instead."""
import os
import pathlib
import re
import shutil
import subprocess

import tidemark
from tidemark import PROGRAM, SOURCE, SAMPLES, Case, environment

UPDATE = os.environ.get("TIDE_UPDATE_DOCS") == "1"
PAGE = SOURCE / "docs" / "gate.md"
MODELS = {"lenet5": "models", "diamond": "models", "dynamic_batch": "models/open"}
# Figures that hold kernels' scratch: the page has those of the machine that wrote it.
OF_MACHINE = re.compile(r" *(with kernels' scratch on this machine|full_\w+|scratch_bytes|peak_bytes|reserved_bytes|allocations|"
                        r"(predicted_bytes|kind_peak_bytes)\.Workspace): ")
PINNED = {"NO_COLOR": "1"}


def everywhere(lines):
    """What a block says on every machine."""
    return [line for line in lines if not OF_MACHINE.match(line)]


def blocks(text):
    """(language, name of the file or None, first line, line behind the last) of the inside of each block."""
    lines, begin, language = text.splitlines(), None, None
    for i, line in enumerate(lines):
        if begin is None and line.startswith("```"):
            begin, language = i + 1, line[3:]
        elif line == "```":
            named = re.fullmatch(r"<!-- file: (\S+) -->", lines[begin - 2])
            yield language, named and named[1], begin, i
            begin = None


def table_after(text, heading):
    """Rows of the first table behind a line that begins so, as lists of cells."""
    rows = text.split("\n" + heading, 1)[1].split("\n|", 1)[1].split("\n\n", 1)[0]
    return [[cell.strip().replace(r"\|", "|") for cell in re.split(r"(?<!\\)\|", row.strip("|"))]
            for row in rows.splitlines()[2:]]


def keys_of(table):
    return [row[0].strip("`") for row in table]


def words_of(source, declaration):
    """The texts of a C array."""
    text = (SOURCE / "gate" / source).read_text(encoding="utf-8")
    return re.findall(r'"([^"]+)"', text.split(declaration, 1)[1].split("};", 1)[0])


class Documents(Case):
    def setUp(self):
        super().setUp()
        self.text = PAGE.read_text(encoding="utf-8")
        for name, folder in MODELS.items():
            (self.dir / folder).mkdir(parents=True, exist_ok=True)
            shutil.copy(SAMPLES / f"{name}.json", self.dir / folder)
        (self.dir / "bin").mkdir()
        (self.dir / "bin" / "tidemark").symlink_to(pathlib.Path(PROGRAM).resolve())

    def shell(self, command):
        env = environment({**PINNED, "PATH": f"{self.dir / 'bin'}:{os.environ['PATH']}"})
        p = subprocess.run(["sh", "-c", command], cwd=self.dir, env=env, stdin=subprocess.DEVNULL, text=True,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=300)
        self.assertEqual(p.returncode, 0, f"{command}\n{p.stdout}")
        return [re.sub(r"\b20\d\d-\d\d-\d\d\b", "2026-01-31", line).rstrip() for line in p.stdout.splitlines()]

    def test_the_pages_blocks(self):
        lines = self.text.splitlines()
        new, at, n_run = [], 0, 0
        for language, name, begin, end in list(blocks(self.text)):
            if name:
                (self.dir / name).write_text("\n".join(lines[begin:end]) + "\n", encoding="utf-8")
            if language != "console":
                continue
            n_run += 1
            got = []
            for line in lines[begin:end]:
                if line.startswith("$ "):
                    got += [line, *self.shell(line[2:])]
            if not UPDATE:
                self.assertEqual(everywhere(lines[begin:end]), everywhere(got), f"{PAGE}:{begin + 1}: TIDE_UPDATE_DOCS=1 python3 "
                                 "tests/cli/gate_docs.py rewrites it")
            new += lines[at:begin] + got
            at = end
        self.assertGreaterEqual(n_run, 6)
        if UPDATE:
            PAGE.write_text("\n".join(new + lines[at:]) + "\n", encoding="utf-8")

    def test_its_configurations_are_taken(self):
        n = 0
        for language, name, begin, end in blocks(self.text):
            if language != "toml" or name == "wrong.toml":
                continue
            n += 1
            (self.dir / "taken.toml").write_text("\n".join(self.text.splitlines()[begin:end]), encoding="utf-8")
            # Whatever was measured: there is no baseline, so that 4 is what a configuration that was read ends with.
            p = tidemark.run("check", "--config", "taken.toml", cwd=self.dir, env=PINNED)
            self.assertEqual(p.returncode, 4, p.stdout + p.stderr)
        self.assertGreaterEqual(n, 2)

    def test_every_key_is_in_its_table(self):
        top = words_of("config.c", "static tide_status read_top")
        self.assertCountEqual(keys_of(table_after(self.text, "At the top:")), top)
        settings = words_of("config_targets.c", "tide__gate_settings_keys[] =")
        self.assertCountEqual(keys_of(table_after(self.text, "In `[defaults]`")), settings)
        own = words_of("config_targets.c", "static tide_status check_model_keys")
        self.assertCountEqual(keys_of(table_after(self.text, "In a `[[model]]`:")), own)
        override = words_of("config.c", "static tide_status read_override")
        self.assertCountEqual(keys_of(table_after(self.text, "In an `[[override]]`:")), override)
        fields = words_of("config_rules.c", "field_keys[TIDE__GATE_N_FIELDS] =")
        self.assertCountEqual(keys_of(table_after(self.text, "or a table with some of these:")),
                              fields + ["gain", "min", "warn_min"])
        words = words_of("config_rules.c", "static tide_status read_word")
        self.assertEqual([w.strip('"') for w in keys_of(table_after(self.text, "A rule belongs"))], words)

    def test_every_key_is_known_to_the_program(self):
        """A letter too much, and the program knows what was meant."""
        head, model = "version = 1\n", '[[model]]\npath = "models/*.json"\n'
        override = model + '[[override]]\nmatch = "*"\n'
        places = (("At the top:", "", "\n" + model), ("In `[defaults]`", head + "[defaults]\n", "\n" + model),
                  ("In `[defaults]`", head + model, ""), ("In a `[[model]]`:", head + model, ""),
                  ("In an `[[override]]`:", head + override, ""))
        for heading, before, after in places:
            for key in keys_of(table_after(self.text, heading)):
                (self.dir / "odd.toml").write_text(f"{before}q{key} = 1\n{after}", encoding="utf-8")
                p = tidemark.run("check", "--config", "odd.toml", cwd=self.dir)
                self.assertEqual(p.returncode, 3, key)
                self.assertIn(f"did you mean '{key}'?", p.stderr)

    def test_every_metric_is_in_its_table(self):
        header = (SOURCE / "gate" / "metric.h").read_text(encoding="utf-8")
        body = header.split("#define TIDE_GATE_METRIC_MAP(XX)", 1)[1].split("typedef", 1)[0].replace("\\\n", "\n")
        want = []
        for entry in re.findall(r"XX\((.*?\"\s*)\)", body, re.S):
            name, identifier, unit, better, level, kinds, run, what = (part.strip() for part in entry.split(",", 7))
            text = "".join(re.findall(r'"([^"]*)"', what))
            timed = ", always" if unit == "NS" else ""
            want.append([f"`{identifier[1:-1]}`", {"NS": "time"}.get(unit, unit.lower()), better.lower(),
                         ("fails" if level == "FAIL" else "warns" if level == "WARN" else "is reported") + timed,
                         "yes" if kinds == "true" else "", "yes" if run == "true" else "", text])
        self.assertGreaterEqual(len(want), 18)
        self.assertEqual(table_after(self.text, "## Metrics"), want)


if __name__ == "__main__":
    tidemark.main()
