#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports of 1,000 and 100,000 tensors: sizes, what writing them takes, and what the page takes in a real Chromium.

Usage: bench_reports.py TIDEMARK. Keys are pressed through ChromeDriver: what that costs by itself is the line of a key that
does nothing.
"""
import json
import pathlib
import random
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "tests" / "cli"))
import browser  # noqa: E402

REPEATS = 9


def make_list(path, n):
    """Names as exporters write them, sizes and lives drawn with a fixed seed."""
    draw, steps = random.Random(1), max(4, n // 3)
    tensors = []
    for i in range(n):
        begin = draw.randrange(steps - 1)
        tensors.append({"name": f"model/layer_{i // 7}/block_{i % 7}/output_{i}", "size_bytes": 64 * draw.randrange(1, 20000),
                        "begin": begin, "end": min(steps, begin + 1 + int(draw.expovariate(1 / 6)))})
    path.write_text(json.dumps({"schema": "tidemark.lifetimes", "version": 1, "model": f"{n} tensors", "tensors": tensors}))


def timed(action):
    start = time.monotonic()
    action()
    return 1000 * (time.monotonic() - start)


def median(action):
    return statistics.median(timed(action) for _ in range(REPEATS))


def page(b, path):
    def open_it():
        b.open(path)
        b.settle()
    opened = []
    for _ in range(3):
        open_it()
        opened.append(b.js("return performance.getEntriesByType('navigation')[0].domComplete"))
    heap = b.js("return performance.memory.usedJSHeapSize") / 1e6
    print(f"  page: loaded in {statistics.median(opened):.0f} ms, script heap {heap:.0f} MB")
    for what, key in (("a key that does nothing", "x"), ("zoom in", "+"), ("whole", "0"), ("next row", "ArrowDown"),
                      ("cursor", "ArrowRight"), ("memory and back", "m")):
        print(f"  {what}: {median(lambda: b.keys(key)):.0f} ms")
    print(f"  search: {timed(lambda: b.type('#live-search', 'layer_12')):.0f} ms")
    print(f"  sort by name: {timed(lambda: b.choose('#live-sort', 'name')):.0f} ms")


def main():
    program = sys.argv[1]
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for n in (1000, 100000):
            source = folder / f"{n}.json"
            make_list(source, n)
            plan = folder / f"{n}.plan.json"
            subprocess.run([program, "plan", "--strategy", "greedy_by_size", source, "-o", plan], check=True,
                           stdout=subprocess.DEVNULL)
            print(f"== {n} tensors: format, bytes, ms to write (from a plan that is made), repeats {REPEATS}")
            for ending in ("html", "json", "csv", "md", "svg", "txt"):
                out = folder / f"{n}.{ending}"
                ms = median(lambda: subprocess.run([program, "report", plan, "-o", out], check=True))
                print(f"  {ending:5} {out.stat().st_size:10} {ms:8.0f}")
        why = browser.missing()
        if why:
            print(f"pages are not opened: {why}")
            return
        b = browser.Browser()
        try:
            b.size(1300, 900)
            for n in (1000, 100000):
                print(f"== {n} tensors in Chromium, ms with the way through the driver")
                page(b, folder / f"{n}.html")
        finally:
            b.close()


if __name__ == "__main__":
    main()
