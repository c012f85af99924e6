# SPDX-License-Identifier: MIT
"""Every C and C++ file is laid out as .clang-format says. Skipped (77) where clang-format is not there, or is of another
major version: those lay out differently. Usage: format.py SOURCE_DIR"""
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys

VERSION = "14"  # Debian 12's
FOLDERS = ("include", "core", "planner", "profiler", "analysis", "gate", "tui", "reports", "cli", "cuda", "preload", "mpi", "symbols", "tests", "bench",
           "examples")


def find_tool():
    """(name, None), or (None, why there is none)."""
    why = "clang-format is not here"
    for name in (f"clang-format-{VERSION}", "clang-format"):
        if shutil.which(name) is None:
            continue
        text = subprocess.run([name, "--version"], check=True, capture_output=True, text=True).stdout
        found = re.search(r"version (\d+)\.", text)
        if found and found.group(1) == VERSION:
            return name, None
        why = f"clang-format is of version {found.group(1) if found else '?'}, the layout is that of {VERSION}"
    return None, why


def main():
    tool, why = find_tool()
    if tool is None:
        print(f"skipped: {why}")
        return 77
    root = pathlib.Path(sys.argv[1])
    files = [str(f) for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.suffix in (".c", ".h", ".cpp")]
    parts = [files[i::8] for i in range(8)]
    check = lambda part: subprocess.run([tool, "--dry-run", "-Werror", *part], capture_output=True, text=True)
    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        done = list(pool.map(check, parts))
    faults = sorted({line.split(":")[0] for p in done for line in p.stderr.splitlines() if ": error: " in line})
    for name in faults:
        print(f"{os.path.relpath(name, root)} is not laid out by .clang-format (clang-format -i does it)")
    print(f"{len(files)} files, {len(faults)} faults")
    # A check that reads nothing must not pass.
    return 1 if faults or len(files) < 500 or any(p.returncode != 0 for p in done) else 0


if __name__ == "__main__":
    sys.exit(main())
