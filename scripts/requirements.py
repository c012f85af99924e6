#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Fill the column `shown by` of docs/requirements.md from the tests that name a row, or check that it is filled.

A test names a row by its id (S23-7, LT-36, X-5 …; in identifiers S23_7, LT_36, X_5) in its name, a comment before it or
its body. What a file's opening paragraph names belongs to the file, and counts where no test of its own names the row. A
row, or a part of one, that has no meaning in C says so in SENTENCES. Usage:
    scripts/requirements.py            rewrite the column
    scripts/requirements.py --check    exit 1 and say what differs when the column is not what the tests say
"""
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DOC = ROOT / "docs" / "requirements.md"
ROW_ID = re.compile(r"(?<![A-Za-z0-9])(S23|S27|S28|LT|PT|X)[-_](\d+)(?![A-Za-z0-9])")
SENTENCES = {
    "PT-4": "Out of scope: the foreign-process flag and the language-binding slot, which have no meaning in C (PT-26).",
    "PT-26": "Out of scope in C, and only these: symbolic sizes (unresolved extents stand for them), the foreign-process "
             "flag, the binding slot.",
}
FUNCTION = re.compile(r"^static void (\w+)\(void \*\*")
METHOD = re.compile(r"^    def (test_\w+)\(")


def ids(line):
    return [f"{seed}-{number}" for seed, number in ROW_ID.findall(line)]


def add(found, row, where):
    found.setdefault(row, [])
    if where not in found[row]:
        found[row].append(where)


def add_python(found, name, lines):
    """Ids in a method belong to it: they stand in its docstring or body."""
    method = None
    for line in lines:
        started = METHOD.match(line)
        method = started.group(1) if started else method
        for row in ids(line) if method else []:
            add(found, row, f"{name}: {method}")
    # A script without methods is one test; what it shows stands in its own docstring.
    for line in lines if method is None else []:
        for row in ids(line):
            add(found, row, name)


def tests_by_row():
    found, by_file = {}, {}
    for path in sorted((ROOT / "tests").rglob("*")):
        if path.suffix not in (".c", ".h", ".sh", ".py"):
            continue
        lines = path.read_text(encoding="utf-8").splitlines()
        name = path.stem
        if path.suffix == ".py":
            add_python(found, name, lines)
            continue
        pending = []  # ids seen since the last test function ended
        function = None
        for line in lines:
            if line.startswith("#include") and path.suffix in (".c", ".h"):
                for row in pending:
                    add(by_file, row, name)
                pending = []
            started = FUNCTION.match(line) if path.suffix in (".c", ".h") else None
            if started:
                function = started.group(1)
            pending += ids(line)
            if path.suffix == ".sh" or line == "}":
                where = f"{name}: {function}" if function else name
                if path.suffix == ".sh" or function:
                    for row in pending:
                        add(found, row, where)
                    pending = []
                function = None
    return {**by_file, **found}


def filled(text, found):
    out = []
    for line in text.splitlines():
        cells = re.split(r"(?<!\\)\|", line)
        if len(cells) == 7 and ROW_ID.fullmatch(cells[1].strip()):
            shown = found.get(cells[1].strip(), [])
            cells[5] = " " + "; ".join(shown[:4]) + (f"; +{len(shown) - 4} more" if len(shown) > 4 else "") + " "
            if not shown:
                cells[5] = " "
            if cells[1].strip() in SENTENCES:
                cells[5] += SENTENCES[cells[1].strip()] + " "
            line = "|".join(cells)
        out.append(line)
    return "\n".join(out) + "\n"


def main():
    text = DOC.read_text(encoding="utf-8")
    found = tests_by_row()
    rows = [c[1].strip() for c in (re.split(r"(?<!\\)\|", l) for l in text.splitlines())
            if len(c) == 7 and ROW_ID.fullmatch(c[1].strip())]
    want = filled(text, found)
    print(f"{len(rows)} rows, {sum(r in found for r in rows)} named by a test")
    unknown = sorted(set(found) - set(rows))
    if unknown:
        print("tests name rows that do not exist:", ", ".join(unknown))
        return 1
    if "--check" not in sys.argv[1:]:
        DOC.write_text(want, encoding="utf-8")
        return 0
    if want == text:
        return 0
    for have, should in zip(text.splitlines(), want.splitlines()):
        if have != should:
            print("is:    ", have.split("|")[1], have.split("|")[5])
            print("should:", should.split("|")[1], should.split("|")[5])
    print("run scripts/requirements.py")
    return 1


if __name__ == "__main__":
    sys.exit(main())
