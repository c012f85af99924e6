# SPDX-License-Identifier: MIT
"""Files that call each other in a circle are one concept in several files: none may, but those that are listed with a reason.
No file takes a name that a higher floor defines: a public header declares functions of several floors, so that includes.py
cannot see who calls whom. And no two files define the same global name: linked from static libraries, one of them would be
taken without a word.

Reads the symbols of the objects that were built, so what the linker sees is what counts.
Usage: circles.py SOURCE_DIR BUILD_DIR [--all]   (--all: print every circle, listed or not)
"""
import pathlib
import subprocess
import sys
from collections import defaultdict

import includes

FLOORS = ["core", "planner", "profiler", "analysis", "tui", "reports", "gate", "cli"]
# One file of the circle, and why it stays.
LISTED = {}


def objects(source, build):
    """Path of a source -> its object. A target of folder F has them in F/CMakeFiles/TARGET.dir."""
    found = {}
    for path in sorted(build.rglob("*.c.o")):
        target, _, rest = path.relative_to(build).as_posix().partition(".dir/")
        name = (pathlib.PurePosixPath(target).parent.parent / rest[:-2]).as_posix()
        if name.split("/")[0] in FLOORS and (source / name).exists():
            found.setdefault(name, path)
    return found


def symbols(objs):
    """What each file defines for others, what it takes from others, and names that two files define."""
    out = subprocess.run(["nm", "-A", "-g", *map(str, objs.values())], check=True, capture_output=True, text=True).stdout
    name_of = {str(path): name for name, path in objs.items()}
    defined, taken, twice = {}, defaultdict(set), []
    for line in out.splitlines():
        path, rest = line.split(":", 1)
        kind, symbol = rest.split()[-2:]
        if kind == "U":
            taken[name_of[path]].add(symbol)
        else:
            if symbol in defined and kind not in "VW":
                twice.append(f"{symbol} is defined in {defined[symbol]} and {name_of[path]}")
            defined[symbol] = name_of[path]
    return defined, taken, twice


def circles(nodes, edges):
    """The strongly connected components of two files and more (Tarjan), largest first."""
    index, low, stack, on, out, counter = {}, {}, [], set(), [], [0]

    def visit(v):
        index[v] = low[v] = counter[0]
        counter[0] += 1
        stack.append(v)
        on.add(v)
        for w in sorted(edges[v]):
            if w not in index:
                visit(w)
                low[v] = min(low[v], low[w])
            elif w in on:
                low[v] = min(low[v], index[w])
        if low[v] == index[v]:
            part = []
            while True:
                w = stack.pop()
                on.discard(w)
                part.append(w)
                if w == v:
                    break
            if len(part) > 1:
                out.append(sorted(part))

    sys.setrecursionlimit(10000)
    for v in sorted(nodes):
        if v not in index:
            visit(v)
    return sorted(out, key=lambda c: (-len(c), c))


def upward(edges):
    """Which file takes names from a floor above its own, and from which file."""
    rank = lambda name: includes.RANK[includes.floor(name)]
    return sorted((name, other) for name, others in edges.items() for other in others if rank(other) > rank(name))


def main():
    source, build = map(pathlib.Path, sys.argv[1:3])
    objs = objects(source, build)
    n_files = sum(len(list((source / floor).rglob("*.c"))) for floor in FLOORS)
    defined, taken, twice = symbols(objs)
    edges = defaultdict(set)
    for name, wanted in taken.items():
        for symbol in wanted:
            other = defined.get(symbol)
            if other is not None and other != name:
                edges[name].add(other)
    found = circles(objs, edges)
    faults = [c for c in found if not LISTED.keys() & set(c)]
    for c in found if "--all" in sys.argv else faults:
        print(f"{len(c)} files call each other: {' '.join(c)}")
    stale = [name for name in LISTED if not any(name in c for c in found)]
    rises = upward(edges)
    for name, other in rises:
        print(f"{name} takes a name of {other}, which is not below it")
    for line in twice:
        print(line)
    for name in stale:
        print(f"{name} is listed and in no circle")
    print(f"{len(objs)} objects of {n_files} files, {len(found)} circles, {len(faults)} of them not listed, "
          f"{len(rises)} names from above")
    # A check that reads nothing must not pass.
    return 1 if faults or stale or twice or rises or len(objs) < 0.9 * n_files else 0


if __name__ == "__main__":
    sys.exit(main())
