# SPDX-License-Identifier: MIT
"""Memory runs out at any moment of any command: never a signal, never "bad input", always the same first words.

A malloc that is preloaded (oom_preload.c) fails at the n-th allocation, once or from then on. Here some values of n for
each command; TIDE_OOM_VALUES=150 tries that many (make soak).
"""
import collections
import os
import re
import shutil
import sqlite3
import unittest

import tidemark
from tidemark import SAMPLES, Case

PRELOAD = os.environ.get("TIDE_OOM_PRELOAD", "")
VALUES = int(os.environ.get("TIDE_OOM_VALUES", "4"))
GRAPH = SAMPLES / "split_two_outputs.json"
KERNELS = SAMPLES / "lenet5.json"
CONFIG = """[defaults]
strategies = ["search"]
[[target]]
model = "m.json"
"""

# Name, arguments in a folder that holds m.json (kernels of oneDNN), s.json (none), plan.json, l.csv, l.json, t.db, buffer.bin
# and a gate; and the output it writes, if any.
COMMANDS = {
    "plan": ["plan", "m.json", "-o", "new.json"],
    "plan --json": ["plan", "--json", "s.json"],
    "plan --all": ["plan", "--all", "s.json"],
    "plan of a list": ["plan", "l.json"],
    "plan of a table": ["plan", "l.csv"],
    "run": ["run", "m.json"],
    "run -o": ["run", "-o", "new.db", "s.json"],
    "run --buffer-file": ["run", "--buffer-file", "buffer.bin", "s.json"],
    "compare": ["compare", "s.json"],
    "report of a model": ["report", "m.json", "-o", "new.html"],
    "report of a trace": ["report", "t.db", "-o", "new.json"],
    "check": ["check", "m.json", "--baseline", "plan.json"],
    "diff": ["diff", "s.json", "plan.json", "--json"],
    "export": ["export", "s.json", "--to", "csv", "-o", "new.csv"],
    "export c-header": ["export", "plan.json", "--to", "c-header", "-o", "new.h"],
    "export tflm": ["export", "l.json", "--to", "tflm", "-o", "new.bin"],
    "export chrome-trace": ["export", "t.db", "--to", "chrome-trace", "-o", "new.json"],
    "export pytorch": ["export", "t.db", "--to", "pytorch", "-o", "new.pickle"],
    "export chrome-trace of a plan": ["export", "plan.json", "--to", "chrome-trace", "-o", "new.json"],
    "sweep": ["sweep", "--batch", "1,2", "d.json"],
    "trace": ["trace", "t.db", "--at", "peak"],
    "tui --once": ["tui", "--once", "m.json"],
    "tui of a trace": ["tui", "--once", "t.db"],
    "import of tables": ["import", "s.db", "-o", "new.db"],
    "record": ["record", "-o", "new.db", "--", tidemark.PROGRAM, "run", "s.json"],
    "replay": ["replay", "--check", "t.db"],
    "replay -o": ["replay", "t.db", "-o", "new.db"],
    "allocators": ["allocators", "--json"],
    "devices": ["devices", "--json"],
    "operators": ["operators", "--json"],
    "help man": ["help", "--format", "man", "tui"],
    "help fish": ["help", "--format", "fish"],
}


class Preloaded(Case):
    """A folder with one file of each kind."""

    def setUp(self):
        super().setUp()
        if not PRELOAD:
            self.skipTest("sanitizers bring their own malloc: nothing can be preloaded under them")
        for name, sample in (("m", KERNELS), ("s", GRAPH), ("d", SAMPLES / "dynamic_batch.json")):
            shutil.copy(sample, self.dir / f"{name}.json")
        self.ok("plan", "m.json", "-o", "plan.json", cwd=self.dir)
        self.ok("run", "s.json", "-o", "t.db", cwd=self.dir)
        for form in ("csv", "json"):
            self.ok("export", "m.json", "--to", form, "-o", f"l.{form}", cwd=self.dir)
        db = sqlite3.connect(self.dir / "s.db")  # a snapshot of PyTorch
        db.executescript("""CREATE TABLE device_traces(id INTEGER PRIMARY KEY, action, addr, size, frames);
            CREATE TABLE segments(id, address, total_size); CREATE TABLE blocks(segment_id, addr, size, state, frames);
            INSERT INTO device_traces VALUES(1, 'alloc', 8192, 512, '[{"name": "f", "filename": "/a.py", "line": 3}]');
            INSERT INTO segments VALUES(1, 4096, 8192); INSERT INTO blocks VALUES(1, 4096, 4096, 'active_allocated', NULL)""")
        db.close()
        (self.dir / "buffer.bin").write_bytes(bytes(1 << 20))
        self.kept = set(os.listdir(self.dir))

    def run_with(self, args, **oom):
        """The finished process; what it wrote is removed."""
        env = {"LD_PRELOAD": PRELOAD, **{f"TIDE_OOM_{k.upper()}": str(v) for k, v in oom.items()}}
        done = tidemark.run(*args, env=env, cwd=self.dir, timeout=120)
        for name in set(os.listdir(self.dir)) - self.kept:
            if name != "count":
                os.unlink(self.dir / name)
        return done

    def count(self, args):
        """Allocations of the process that makes most, and what the command ends with when none fails."""
        counts = self.dir / "count"
        counts.write_text("")
        done = self.run_with(args, count=counts)
        return max(map(int, counts.read_text().split())), done

    def values(self, n):
        return sorted({1 + i * n // VALUES for i in range(VALUES)} | {n})

    def fault_of(self, whole, done, at):
        """What is wrong with how it ended, or None."""
        if done.returncode == whole.returncode == 0:
            return None  # what failed was not needed
        if done.returncode != 6:
            return f"exit code {done.returncode}"
        if not re.search(r"^(error: out of memory|.*\[out of memory\])", done.stderr, re.M):
            return "not a word of memory"
        return None

    def hold(self, name):
        args = COMMANDS[name]
        n, whole = self.count(args)
        self.assertEqual(whole.returncode, 0, whole.stderr)
        self.assertGreater(n, 10)
        faults, codes = [], collections.Counter()
        for at in self.values(n):
            for more in ({}, {"from": 1}):
                done = self.run_with(args, at=at, **more)
                codes[done.returncode] += 1
                fault = self.fault_of(whole, done, at)
                if fault:
                    faults.append(f"allocation {at} of {n}{' and all after it' if more else ''}: {fault}\n"
                                  f"    {done.stderr.strip()[:300]}")
        self.assertEqual(faults, [], f"{name}: {len(faults)} of {sum(codes.values())}, codes {dict(codes)}\n" +
                         "\n".join(faults[:5]))
        self.assertGreater(codes[6], 0, f"{name}: nothing ever failed, codes {dict(codes)}")


for title in COMMANDS:
    slug = re.sub(r"\W+", "_", title)
    setattr(Preloaded, f"test_{slug}", lambda self, title=title: self.hold(title))


class Limits(Case):
    """No preloading: the kernel's own limit on addresses."""

    def test_a_limit_on_addresses_is_told_in_words(self):
        if not PRELOAD:
            self.skipTest("sanitizers reserve terabytes of addresses")
        codes = collections.Counter()
        for kib in (60_000, 70_000, 80_000, 100_000):
            for args in (["run", "-n", "2"], ["plan"]):
                done = tidemark.run(*args, KERNELS, env={"OMP_NUM_THREADS": "1"}, preexec_fn=limit(kib))
                codes[done.returncode] += 1
                if done.returncode == 127:  # the loader of programs found no room for the libraries
                    continue
                self.assertIn(done.returncode, (0, 6), f"{args} in {kib} KiB: {done.stderr}")
                if done.returncode == 6:
                    self.assertRegex(done.stderr, r"(?m)^error: out of memory")
        self.assertGreater(codes[0] + codes[6], 0, codes)


def limit(kib):
    def set_it():
        import resource
        resource.setrlimit(resource.RLIMIT_AS, (kib * 1024, kib * 1024))
    return set_it


if __name__ == "__main__":
    tidemark.main()
