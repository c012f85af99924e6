# SPDX-License-Identifier: MIT
"""The version stands in include/tidemark/version.h alone: what CMake and the program say is that one, the first head of
CHANGELOG.md is about it, and no other file holds it. Usage: version.py SOURCE_DIR PROJECT_VERSION TIDEMARK"""
import json
import pathlib
import re
import subprocess
import sys

HEADER = "include/tidemark/version.h"
TEXTS = {".c", ".h", ".cpp", ".py", ".sh", ".md", ".txt", ".cmake", ".json", ".toml", ".yml", ".1", ".css", ".js", ""}
SKIPPED = {"build", ".git", "sample_graphs", "golden"}


def texts(root):
    for path in sorted(root.rglob("*")):
        parts = path.relative_to(root).parts
        if path.is_file() and path.suffix in TEXTS and not SKIPPED & set(parts) and path.stat().st_size < 1 << 20:
            yield "/".join(parts), path.read_text(encoding="utf-8", errors="replace")


def main():
    root, project_version, program = pathlib.Path(sys.argv[1]), *sys.argv[2:4]
    (version,) = re.findall(r'^#define TIDE_VERSION "([0-9]+\.[0-9]+\.[0-9]+)"$', (root / HEADER).read_text(), re.M)
    says = lambda *words: subprocess.run([program, *words], check=True, capture_output=True, text=True).stdout
    faults = []
    for what, found in (("CMake's project", project_version),
                        ("tidemark --version", says("--version").strip().removeprefix("tidemark ")),
                        ("tidemark -V", says("-V").strip().removeprefix("tidemark ")),
                        ("tidemark --version --json", json.loads(says("--version", "--json"))["tidemark"])):
        if found != version:
            faults.append(f"{what} says {found}, {HEADER} {version}")
    heads = re.findall(r"^## (\S+)", (root / "CHANGELOG.md").read_text(encoding="utf-8"), re.M)
    if not heads or heads[0] != version:
        faults.append(f"CHANGELOG.md begins with {heads[:1]}, not with {version}")
    word = re.compile(rf"(?<![\w.]){re.escape(version)}(?![\w.]*\d)")
    n = 0
    for name, text in texts(root):
        n += 1
        if name not in (HEADER, "CHANGELOG.md") and word.search(text):
            faults.append(f"{name}:{text[:word.search(text).start()].count(chr(10)) + 1} holds the version, which {HEADER} has")
    for fault in faults:
        print(fault)
    print(f"{version} in {n} files, {len(faults)} faults")
    # A check that reads nothing must not pass.
    return 1 if faults or n < 500 else 0


if __name__ == "__main__":
    sys.exit(main())
