# SPDX-License-Identifier: MIT
"""Files are written in one way, core/base/output. Other calls that create, rename or write one are listed here with the
reason; a new one fails this test."""
import pathlib
import re
import sys

ROOT = pathlib.Path(sys.argv[1])
FLOORS = ("core", "planner", "profiler", "analysis", "gate", "reports", "tui", "cli", "cuda", "preload", "mpi", "symbols")
CALLS = re.compile(r"\b(?:fopen|fdopen|freopen|creat|mkstemp|mkostemp|mkdtemp|tmpfile|rename|renameat2?|link|symlink|mkdir|mkdirat)"
                   r"\s*\((?!\s*\))[^;]*|\bopen(?:at)?\s*\([^;]*O_CREAT[^;]*|SQLITE_OPEN_CREATE")
READS = re.compile(r'fopen\s*\([^;]*,\s*"r[be]*"')

ALLOWED = {
    "core/base/output.c": "the one way",
    "profiler/feed/feed_file.c": "a feed: shared memory of the recorded process, created by O_EXCL and named when it is whole",
    "profiler/store/store_create.c": "SQLite, in a folder that output made",
    "profiler/import/import.c": "events on their way into a trace, without a name in a folder that output made",
    "profiler/read/recover_file.c": "copies, in a folder that output made",
    "tui/state/state_file.c": "a folder for the state",
    "cli/folders.c": "folders that a command writes files into",
    "cli/buffer_file.c": "memory of a run's contexts, which is mapped and not written; created by O_EXCL, of full size or not at all",
    "cli/run_tui.c": "a folder of its own for a temporary trace",
    "cli/cmd_sweep.c": "/dev/null for the ranks that do not print",
}


def calls(path):
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", path.read_text(encoding="utf-8"), flags=re.S)
    text = re.sub(r'"(?:\\.|[^"\\])*"', lambda m: m.group() if re.fullmatch(r'"[rwab+e]+"', m.group()) else '""', text)
    return [m.group().split("\n")[0] for m in CALLS.finditer(text) if not READS.match(m.group())]


found = {}
for floor in FLOORS:
    for path in sorted((ROOT / floor).rglob("*.c*")):
        hits = calls(path) if path.suffix in (".c", ".cpp") else []
        if hits:
            found[str(path.relative_to(ROOT))] = hits

# The test can fail: each of these is found.
for bad in ('FILE *f = fopen(path, "wb");', "rename(a, b);", "open(p, O_WRONLY | O_CREAT, 0600);", "mkstemp(name);"):
    assert CALLS.search(bad) and not READS.match(bad), bad

wrong = [f"{path}: {hit}" for path, hits in found.items() if path not in ALLOWED for hit in hits]
idle = [path for path in ALLOWED if path not in found]
for line in wrong:
    print(f"writes a file past core/base/output: {line}")
for path in idle:
    print(f"is allowed to write and does not: {path}")
print(f"{len(found)} files write, {len(wrong)} calls are not allowed")
sys.exit(1 if wrong or idle else 0)
