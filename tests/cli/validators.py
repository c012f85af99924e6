# SPDX-License-Identifier: MIT
"""Schemas and those who read them, for the files beside this one: Debian's jsonschema and xmllint, and what npm brought
into build/npm."""
import json
import pathlib
import shutil
import subprocess
import sys

from tidemark import SOURCE

NPM = pathlib.Path(SOURCE).resolve() / "build" / "npm" / "node_modules"
CHECK = """
import json, jsonschema, sys
schema, docs = json.load(sys.stdin)
checker = jsonschema.validators.validator_for(schema)(schema)
print(json.dumps([[f"{list(e.absolute_path)}: {e.message[:300]}" for e in checker.iter_errors(d)][:5] for d in docs]))
"""


def python_with(module):
    """A Python that has a module (Debian's packages are for Debian's own Python); None: there is none."""
    for python in (sys.executable, "/usr/bin/python3"):
        if subprocess.run([python, "-c", "import " + module], capture_output=True, check=False).returncode == 0:
            return python
    return None


def schema_errors(case, schema, docs):
    """The schema errors of each document. The test is skipped where jsonschema is not installed."""
    python = python_with("jsonschema")
    if python is None:
        case.skipTest("python3-jsonschema is not installed")
    p = subprocess.run([python, "-c", CHECK], input=json.dumps([schema, docs]), capture_output=True, text=True,
                       check=False)
    case.assertEqual(p.returncode, 0, p.stderr[-1500:])
    return json.loads(p.stdout)


def xsd_errors(case, schema, files):
    """xmllint's complaints about all files, "" when there are none."""
    if shutil.which("xmllint") is None:
        case.skipTest("xmllint is not installed")
    p = subprocess.run(["xmllint", "--noout", "--nonet", "--schema", schema, *files], capture_output=True, text=True,
                       check=False)
    wrong = [line for line in p.stderr.splitlines() if not line.endswith(" validates")]
    case.assertEqual(p.returncode == 0, not wrong, p.stderr[-1500:])
    return "\n".join(wrong)
