# SPDX-License-Identifier: MIT
"""What the system counts of recorded processes (tidemark record --sample), held against what each program read of itself."""
import bisect
import os
import shutil
import signal
import subprocess
import time
import unittest

import tidemark
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, run, until

MIB = 1 << 20
PYTHON = "/usr/bin/python3"
# The kernel counts pages for each processor apart, and adds them up now and then.
SLACK = 2 * MIB
MODEL = SAMPLES / "densenet_block.json"
# Grows in steps, gives half back; after each step, when it has rested, the time and what it reads of itself.
STEPS = """
import mmap, time, sys
def status(key):
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) * 1024 for line in f if line.startswith(key + ":"))
def rest():
    time.sleep(0.2)
    print(time.monotonic_ns(), status("VmRSS"), status("VmHWM"), flush=True)
maps = []
rest()
for size in (8, 16, 4, 32):
    m = mmap.mmap(-1, size << 20)
    for at in range(0, size << 20, 4096):
        m[at] = 1
    maps.append(m)
    rest()
maps[1].close(); maps[3].close()
rest()
"""


def rows(path, process=1):
    return ask(path, "SELECT t_ns, resident_bytes, peak_bytes, swapped_bytes, share_bytes, minor_faults, major_faults "
               "FROM process_memory WHERE process_id = ? ORDER BY t_ns", process)


@unittest.skipUnless(os.path.exists(PYTHON), "no " + PYTHON)
class ProcessMemory(Case):
    """The program records itself with `tidemark run` in the same process number: what is under test is the collector's look."""

    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"
        self.library = os.path.join(os.path.dirname(PROGRAM), "..", "lib", "tidemark", "libtidemark-preload.so")
        if not os.path.exists(self.library):
            self.skipTest("libtidemark-preload.so is not built (sanitizers bring a malloc of their own)")
        self.env = {"TIDEMARK_PRELOAD": None}

    def record(self, *command, options=(), code=0):
        return self.ok("record", *options, "-o", self.path, "--quiet", "--", *command, env=self.env, code=code)

    def test_as_the_program_reads_it(self):
        p = self.record(PYTHON, "-c", STEPS)
        seen = rows(self.path)
        times = [row[0] for row in seen]
        read = [tuple(map(int, line.split())) for line in p.stdout.splitlines()]
        self.assertEqual(len(read), 6)
        # The last look before each of its own: on a machine with much else to do one may come too late.
        last = [seen[max(bisect.bisect_right(times, t_ns) - 1, 0)] for t_ns, _, _ in read]
        same = [abs(row[1] - resident) < SLACK and abs(row[2] - peak) < SLACK for row, (_, resident, peak) in zip(last, read)]
        self.assertGreaterEqual(sum(same), 4, list(zip(last, read)))
        self.assertGreater(read[-2][1] - read[-1][1], 40 * MIB)
        highest = max(range(len(seen)), key=lambda i: seen[i][1])
        self.assertGreater(seen[highest][1] - min(row[1] for row in seen[highest:]), 40 * MIB)  # what was given back
        for a, b in zip(seen, seen[1:]):
            self.assertLess(a[2], b[2] + SLACK)  # the peak; then both faults
            self.assertLessEqual(a[5], b[5])
            self.assertLessEqual(a[6], b[6])
        shares = [row[4] for row in seen if row[4] is not None]
        self.assertGreater(len(shares), 0)
        self.assertLessEqual(max(shares), max(row[2] for row in seen))
        self.assertGreater(max(shares), 2 * MIB)
        self.views(read)

    def views(self, read):
        """The same in `trace`, the page and its tables; the rest is what is resident beside blocks."""
        text = self.ok("trace", self.path).stdout
        self.assertRegex(text, r"process \d+ python3: resident \S+ MiB, at most \S+ MiB until then; at the peak")
        self.assertRegex(text, r"the rest +\S+ [MK]iB resident beside them")
        one = [d for d in self.json("trace", self.path)["devices"] if d["is_process"]]
        self.assertEqual(len(one), 1)
        self.assertEqual(one[0]["used_bytes"] + one[0]["off_bytes"], one[0]["allocators_bytes"] + one[0]["unexplained_bytes"])
        self.assertLess(one[0]["used_bytes"], max(r for _, r, _ in read) + SLACK)
        self.ok("report", self.path, "-o", self.dir / "t.html")
        page = (self.dir / "t.html").read_text()
        self.assertIn("Devices and processes over time", page)
        self.assertRegex(page, r">\d+ python3<")

    def test_off(self):
        self.record(PYTHON, "-c", STEPS, options=("--sample", "0"))
        self.assertEqual(rows(self.path), [])
        self.assertNotIn("resident", self.ok("trace", self.path).stdout)
        for bad in ("", "x", "-1", "60001", "1.5"):
            p = run("record", "--sample", bad, "-o", self.dir / "no.db", "--", "true", env=self.env)
            self.assertEqual(p.returncode, 2, p.stderr)
            self.assertIn("--sample", p.stderr)
            self.assertFalse((self.dir / "no.db").exists())

    def test_several(self):
        """Each process has its rows, and those that end at once are no error."""
        self.record("sh", "-c", f'{PYTHON} -c "import time; x = bytearray(50 << 20); time.sleep(0.2)" & '
                    f'{PYTHON} -c "import time; time.sleep(0.2)" & wait; true')
        largest = dict(ask(self.path, "SELECT p.command, max(m.resident_bytes) FROM process p JOIN process_memory m "
                           "ON m.process_id = p.id GROUP BY p.id"))
        big = next(n for command, n in largest.items() if command.startswith(PYTHON) and "bytearray" in command)
        small = next(n for command, n in largest.items() if command.startswith(PYTHON) and "bytearray" not in command)
        self.assertGreater(big, small + 45 * MIB)
        self.assertIn("resident", self.ok("trace", self.path).stdout)
        self.assertEqual(ask(self.path, "SELECT count(*) FROM process_memory WHERE process_id NOT IN (SELECT id FROM process)")[0][0], 0)

    def test_killed_and_merged(self):
        p = subprocess.Popen([PROGRAM, "record", "-o", str(self.path), "--quiet", "--", PYTHON, "-c",
                              "import time; x = bytearray(20 << 20); print(1, flush=True); time.sleep(0.3); print(2, flush=True); time.sleep(60)"],
                             stdout=subprocess.PIPE, env=environment(self.env), text=True)
        self.addCleanup(p.stdout.close)
        self.assertEqual(p.stdout.readline() + p.stdout.readline(), "1\n2\n")
        with open(f"/proc/{p.pid}/task/{p.pid}/children") as f:
            (child,) = f.read().split()
        os.kill(int(child), signal.SIGKILL)
        self.assertEqual(p.wait(), 128 + signal.SIGKILL)
        before = rows(self.path)
        self.assertGreater(max(row[1] for row in before), 20 * MIB)
        other = self.dir / "other.db"
        shutil.copy(self.path, other)
        self.ok("merge", self.path, other, "--offsets", "0,5s", "-o", self.dir / "two.db")
        first, second = rows(self.dir / "two.db", 1), rows(self.dir / "two.db", 2)
        self.assertEqual(first, before)
        self.assertEqual([(row[0] - 5_000_000_000, *row[1:]) for row in second], before)

    def test_damaged(self):
        """Rows that no recorder writes are refused with the table's name; other commands go on without them."""
        self.record(PYTHON, "-c", "import time; x = bytearray(9 << 20); time.sleep(0.2)")
        with tidemark.sqlite3.connect(self.path) as db:
            db.execute("UPDATE process_memory SET resident_bytes = -1")
        p = run("trace", self.path, env=self.env)
        self.assertEqual(p.returncode, 3, p.stderr)
        self.assertIn("process_memory", p.stderr)
        self.ok("export", self.path, "--to", "csv", "-o", self.dir / "t.csv")


if __name__ == "__main__":
    tidemark.main()
