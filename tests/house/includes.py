# SPDX-License-Identifier: MIT
"""Each floor knows only those below it.

No file includes a header of a higher floor, neighbours (views, reports, gate) do not know each other, only profiler/ includes
SQLite, and no file calls a banned function. Inside the terminal view includes go one way, too: state, scene, draw, term, and
above them what joins them. What is in a plug-in (cuda/) only plug-ins know. A public header (include/tidemark) stands on the
lowest floor that needs its types; what it declares of higher floors is theirs all the same, and circles.py finds the caller
below them. Usage: includes.py SOURCE_DIR
"""
import pathlib
import re
import sys

FLOORS = ["core/base", "core/device", "cuda/kernels cuda/driver", "cuda/device", "core/memory", "core/tensor", "core/graph",
          "core/ops", "core/runtime", "planner", "profiler", "analysis", "tui/tui.h", "tui/state", "tui/scene", "tui/draw", "tui/term",
          "tui reports gate", "cli cuda preload symbols"]
RANK = {folder: rank for rank, folders in enumerate(FLOORS) for folder in folders.split()}
# Each public header, and the lowest floor that needs its types.
PUBLIC = {"tidemark/status.h": "core/base", "tidemark/version.h": "core/base", "tidemark/memory.h": "core/device", "tidemark/plan.h": "core/runtime",
          "tidemark/record.h": "profiler", "tidemark/trace.h": "profiler", "tidemark/tidemark.h": "cli"}
INCLUDE = re.compile(r'^#include "([a-z]+/[^"]*)"', re.M)
BANNED = re.compile(r"\b(?:sprintf|strcpy|strcat|gets|atoi|strtok)\(")


def floor(path):
    path = PUBLIC.get(path.removeprefix("include/"), path)
    return next((f for f in RANK if path == f or path.startswith(f + "/")), None)


def are_neighbours(mine, theirs):
    mine, theirs = mine.split("/")[0], theirs.split("/")[0]
    return mine != theirs and RANK.get(mine) is not None and RANK.get(mine) == RANK.get(theirs)


def faults(path, text):
    mine = floor(path)
    if mine is None:
        yield "belongs to no floor"
        return
    for header in INCLUDE.findall(text):
        theirs = floor(header)
        if theirs is None or RANK[theirs] > RANK[mine]:
            yield f"includes {header}, which is not below it"
        elif theirs.startswith("cuda") and not mine.startswith("cuda"):
            yield f"includes {header}: plug-ins are opened, and nothing of the program knows what is in them"
        elif are_neighbours(mine, theirs):
            yield f"includes {header}: neighbours on one floor do not know each other"
    if mine != "profiler" and "<sqlite3.h>" in text:
        yield "includes SQLite, which is profiler/'s alone"
    for call in BANNED.findall(text):
        yield f"calls {call} which is banned"


def main():
    root = pathlib.Path(sys.argv[1])
    n_files = n_includes = n_faults = 0
    for top in ("include", "core", "planner", "profiler", "analysis", "tui", "reports", "gate", "cli", "cuda", "preload"):
        for file in sorted((root / top).rglob("*.[ch]*")):
            path, text = file.relative_to(root).as_posix(), file.read_text(encoding="utf-8")
            n_files += 1
            n_includes += len(INCLUDE.findall(text))
            for fault in faults(path, text):
                print(f"{path} {fault}")
                n_faults += 1
    print(f"{n_files} files, {n_includes} includes, {n_faults} faults")
    # A check that reads nothing must not pass.
    return 1 if n_faults or n_files < 100 or n_includes < 300 else 0


if __name__ == "__main__":
    sys.exit(main())
