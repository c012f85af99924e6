# SPDX-License-Identifier: MIT
"""What it costs to record any program, beside heaptrack of Debian in the same run: bench_record.py TIDEMARK LOOP [ROUNDS]
(LOOP: bench_record_loop). Prints; never passes or fails."""
import os
import pathlib
import resource
import shutil
import sqlite3
import statistics
import subprocess
import sys
import tempfile
import time

TIDEMARK, LOOP = (os.path.abspath(a) for a in sys.argv[1:3])
ROUNDS = int(sys.argv[3]) if len(sys.argv) > 3 else 5
HEAPTRACK = shutil.which("heaptrack")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith("TIDEMARK")}


def ways(folder):
    """name: the words before the command, and the file that they make."""
    db = folder / "t.db"
    record = [TIDEMARK, "record", "--quiet", "--force", "-o", db]
    found = {"alone": ([], None), "record": ([*record, "--"], db), "record --stacks 16": ([*record, "--stacks", "16", "--"], db)}
    if HEAPTRACK:
        found["heaptrack"] = ([HEAPTRACK, "-o", folder / "h"], folder / "h")
    return found


def run(before, command):
    """What it printed, its seconds by the clock and of the processor, with all that it started."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    done = subprocess.run([*map(str, before), *map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT)
    wall = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    if done.returncode != 0:
        sys.exit(f"{before} {command}: {done.stderr}")
    return done.stdout, wall, after.ru_utime + after.ru_stime - used.ru_utime - used.ru_stime


def size_of(file):
    """Of heaptrack the file has the ending of its packer."""
    return 0 if file is None else sum(f.stat().st_size for f in file.parent.glob(file.name + "*"))


def table(title, head, rows):
    print(f"\n{title}\n")
    print("| | " + " | ".join(head) + " |")
    print("|---|" + "---|" * len(head))
    for name, cells in rows.items():
        print(f"| {name} | " + " | ".join(cells) + " |")


def each_way(measure):
    """Rounds in alternation, so that what else the machine does meets all alike. {way: [of each round]}"""
    found = {}
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory() as folder:
            for name, (before, file) in ways(pathlib.Path(folder)).items():
                found.setdefault(name, []).append(measure(before, file))
                for path in pathlib.Path(folder).iterdir():
                    path.unlink()
    return found


def events():
    rows = {}
    columns = [(threads, depth) for threads in (1, 2, 4) for depth in (0, 12)]
    for threads, depth in columns:
        def one(before, _):
            text = run(before, [LOOP, threads, 40000, 12, depth])[0]
            return float(next(line for line in text.splitlines() if line[:1].isdigit() and len(line.split()) == 2).split()[0])
        for name, all_of in each_way(one).items():
            rows.setdefault(name, []).append(min(all_of))
    alone = rows["alone"]
    table("ns of the processor for an event (malloc or free) on the thread that makes it, beyond what it takes alone; the least",
          [f"{t} thread{'s' if t > 1 else ''}, {d} calls deep" for t, d in columns],
          {name: [f"{n:.1f}" if name == "alone" else f"{n - a:.1f}" for n, a in zip(cells, alone)] for name, cells in rows.items()})


SQL = """CREATE TABLE orders(id INTEGER PRIMARY KEY, name TEXT, price REAL);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO orders SELECT i, 'order ' || (i * 7919 % 200003), i * 0.37 FROM n;
CREATE INDEX by_name ON orders(name);
SELECT count(*), sum(price) FROM (SELECT * FROM orders ORDER BY name DESC LIMIT 100000);"""


def whole_run(title, command, n_events):
    def one(before, file):
        _, wall, cpu = run(before, command)
        return cpu, wall, size_of(file)
    rows = {}
    found = each_way(one)
    alone = min(cpu for cpu, _, _ in found["alone"])
    for name, all_of in found.items():
        cpu, wall = min(cpu for cpu, _, _ in all_of), min(wall for _, wall, _ in all_of)
        rows[name] = [f"{wall:.2f}", f"{cpu:.2f}", f"{(cpu - alone) / n_events * 1e9:.0f}", f"{all_of[-1][2] / n_events:.1f}"]
    table(f"all of it, collector included: {title}, {n_events:,} events",
          ["s by the clock", "s of the processor", "ns an event beyond alone", "bytes an event on disk"], rows)


def whole_runs():
    whole_run("one thread, 12 calls deep", [LOOP, 1, 20000, 100, 12], 100 * 20000)
    sqlite = shutil.which("sqlite3")
    if sqlite is None:
        return print("skipped: there is no sqlite3")
    command = [sqlite, ":memory:", SQL]
    with tempfile.TemporaryDirectory() as folder:
        db = pathlib.Path(folder) / "n.db"
        run([TIDEMARK, "record", "--quiet", "-o", db, "--"], command)
        with sqlite3.connect(db) as counted:
            n_events, = counted.execute("SELECT value FROM meta WHERE key = 'n_events'").fetchone()
    whole_run("a table of 200,000 rows, by sqlite3", command, int(n_events))


def starts():
    rows = {}
    for name, all_of in each_way(lambda before, _: [run(before, [shutil.which("true")])[1:] for _ in range(10)]).items():
        pairs = [pair for ten in all_of for pair in ten]
        rows[name] = [f"{statistics.median(w for w, _ in pairs) * 1e3:.1f}", f"{statistics.median(c for _, c in pairs) * 1e3:.1f}"]
    table("a program that does nothing (`true`), the median", ["ms by the clock", "ms of the processor"], rows)


def many_threads():
    def one(before, _):
        return int(next(line for line in run(before, [LOOP, 1000, 20, 1, 0])[0].splitlines() if len(line.split()) == 2 and line[:1].isdigit()).split()[1])
    found = {name: min(all_of) for name, all_of in each_way(one).items()}
    table("1,000 threads of 20 events each: resident bytes of the program at most", ["MiB", "MiB beyond alone"],
          {name: [f"{n / (1 << 20):.1f}", f"{(n - found['alone']) / (1 << 20):.1f}"] for name, n in found.items()})


def main():
    if not HEAPTRACK:
        print("heaptrack is not installed: nothing stands beside ours")
    for part in (events, whole_runs, starts, many_threads):
        part()


if __name__ == "__main__":
    main()
