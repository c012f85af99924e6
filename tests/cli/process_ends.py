# SPDX-License-Identifier: MIT
"""The end of a process ends its memory: the peak over several processes, held against a log that a library of the tests writes by
itself (tests/preload/shadow.c), in which what a process never freed goes when it ends. What was never freed stays a leak."""
import json
import os
import pathlib
import pickle
import shutil
import signal
import struct
import unittest

import tidemark
from tidemark import Case, ask, run, until

BUILT = pathlib.Path(os.environ.get("TIDE_PRELOAD_DIR", "build/test/tests/preload"))
VICTIM = BUILT / "preload_program"
SHADOW = BUILT / "preload_shadow.so"
BLOCK_BITS = 48
MIB = 1 << 20
CHANGES, ENDS, WAS_WAITED_FOR, EXECS, EXEC_FAILED = range(5)
HAS_LIBRARY = VICTIM.exists()
tidemark.CLEAN["TIDEMARK_PRELOAD"] = None # the library that is beside the program


class Image:
    """A program in a process: up to its exec, or its end. What it has in the log: [place, bytes]."""
    def __init__(self):
        self.changes, self.said, self.heard = [], None, None

    def end(self):
        """The place at which it was gone: it may free something after it said so."""
        if self.said is not None:
            return max([self.said] + [place for place, _ in self.changes])
        return self.heard


def images_of(log, pids):
    """Of each of these processes (pid: how many) its last images, one after the other: tidemark's own are in the log too, also that
    of the command's process before it is the command."""
    images = {}
    for place, (n, pid, what) in enumerate(struct.iter_unpack("<qii", log.read_bytes())):
        if pid not in pids:
            continue
        own = images.setdefault(pid, [Image()])
        if what == CHANGES:
            own[-1].changes.append((place, n))
        elif what == ENDS:
            own[-1].said = place
        elif what == WAS_WAITED_FOR:
            own[-1].heard = place
        elif what == EXECS:
            own[-1].said = place
            own.append(Image())
        elif what == EXEC_FAILED:
            own.pop()
            own[-1].said = None
    return [image for pid, own in images.items() for image in own[-pids[pid]:] if image.changes]


def peak_of(images):
    """The most bytes at once: [place, bytes] of all, with what each image has left going at its end."""
    changes = []
    for image in images:
        changes += image.changes
        left, end = sum(n for _, n in image.changes), image.end()
        if end is not None:
            changes.append((end + 0.5, -left))
    live = peak = 0
    for _, n in sorted(changes):
        live += n
        peak = max(peak, live)
    return peak


def peak_of_trace(path, allocator=None):
    """The same of what the trace says of each block, added up here."""
    changes = []
    for alloc, end, n in ask(path, "SELECT b.alloc_event, b.end_event, b.requested_bytes FROM life b JOIN name a ON a.id = b.allocator_id "
                             "WHERE ? IS NULL OR a.text = ?", allocator, allocator):
        changes.append((alloc, n))
        if end is not None:
            changes.append((end, -n))
    live = peak = 0
    for _, n in sorted(changes): # of one event those that go come first
        live += n
        peak = max(peak, live)
    return peak


@unittest.skipUnless(HAS_LIBRARY, "libtidemark-preload.so is not built (sanitizers bring a malloc of their own)")
class Ends(Case):
    def setUp(self):
        super().setUp()
        self.path, self.log = self.dir / "t.db", self.dir / "log"

    def record(self, *command, code=0, options=(), env=None):
        self.log.unlink(missing_ok=True)
        done = run("record", "--force", "-o", self.path, *options, "--", *command, cwd=self.dir,
                   env=dict({"LD_PRELOAD": str(SHADOW.resolve()), "SHADOW_LOG": str(self.log)}, **(env or {})))
        self.assertEqual(done.returncode, code, f"{command}\n{done.stdout[-1000:]}\n{done.stderr[-2000:]}")
        self.ok("trace", self.path, "--check")

    def facts(self):
        return json.loads(self.ok("trace", self.path, "--json").stdout)

    def held(self, *command, **kw):
        """The peak of the trace is that of the log, to the byte; what no process freed is never freed. @return the peak"""
        self.record(*command, **kw)
        images = images_of(self.log, dict(ask(self.path, "SELECT pid, count(*) FROM process GROUP BY pid")))
        peak = peak_of(images)
        self.assertEqual(peak_of_trace(self.path, "malloc"), peak, command)
        facts = self.facts()
        self.assertEqual(facts["peak"]["bytes"], peak_of_trace(self.path), command)
        # Every other way to ask for it says the same.
        self.assertEqual(ask(self.path, "SELECT peak_bytes FROM peak WHERE run_id = 0"), [(facts["peak"]["bytes"],)])
        at_peak, = ask(self.path, "SELECT sum(requested_bytes) FROM live_at_peak WHERE run_id = 0")[0]
        self.assertEqual(at_peak, facts["peak"]["bytes"])
        high, = ask(self.path, "SELECT max(total_bytes) FROM live_bytes WHERE run_id = 0")[0]
        self.assertEqual(high, facts["peak"]["bytes"])
        never, = ask(self.path, "SELECT sum(b.requested_bytes) FROM leaks l JOIN blocks b USING (block_id) WHERE b.allocator = 'malloc'")[0]
        self.assertEqual(never, sum(n for image in images for _, n in image.changes), command)
        self.assertEqual(facts["leaks"], ask(self.path, "SELECT count(*) FROM leaks")[0][0])
        self.assertEqual(ask(self.path, "SELECT sum(requested_bytes) FROM leaks")[0][0],
                         ask(self.path, "SELECT sum(requested_bytes - freed_bytes) FROM total")[0][0])
        return peak

    def hows(self):
        return ask(self.path, "SELECT how FROM process ORDER BY id")

    def test_children_of_a_shell_one_after_the_other(self):
        peak = self.held("sh", "-c", f"{VICTIM.resolve()} keep 3000000; {VICTIM.resolve()} keep 5000000; {VICTIM.resolve()} keep 4000000; true")
        self.assertTrue(5000000 <= peak < 5100000, peak)
        self.assertEqual(sorted(self.hows()), [("closed",)] * 4)

    def test_a_compiler_and_its_processes(self):
        if shutil.which("gcc") is None:
            self.skipTest("gcc is not installed")
        (self.dir / "f.c").write_text("int f(int x) { return x + 1; }\n")
        self.held("gcc", "-O2", "-c", "f.c")
        self.assertEqual(len(self.hows()), 3)

    def test_fifty_children_in_turn(self):
        peak = self.held(VICTIM.resolve(), "leave_in_turn", "50", str(MIB))
        self.assertTrue(MIB <= peak < 2 * MIB, peak)
        # Behind the end of the last one nothing happens.
        self.assertEqual(len(ask(self.path, "SELECT * FROM process_end")), 49)

    def test_fifty_children_at_once(self):
        peak = self.held(VICTIM.resolve(), "leave_at_once", "50", str(MIB))
        self.assertTrue(50 * MIB <= peak < 51 * MIB, peak)

    def test_exec_ends_what_was_before(self):
        peak = self.held("sh", "-c", f"exec {VICTIM.resolve()} exec")
        self.assertLess(peak, 2 * 1000003)
        # sh and the victim before its exec; the child of vfork, and the victim behind it.
        self.assertEqual(sorted(self.hows()), [("closed",), ("closed",), ("replaced",), ("replaced",)])
        self.assertEqual(ask(self.path, "SELECT count(DISTINCT pid) FROM process"), [(2,)])

    def test_an_exec_that_fails_ends_nothing(self):
        script = ("import os\nkeep = bytearray(7000000)\n"
                  "for path in ('/nowhere/at/all', '/etc/passwd'):\n    try: os.execv(path, [path])\n    except OSError: pass\n"
                  "more = bytearray(7000000)\n")
        peak = self.held("/usr/bin/python3", "-c", script)
        self.assertGreater(peak, 14000000)
        self.assertEqual(self.hows(), [("closed",)])
        self.record("/usr/bin/python3", "-c", script + "os.kill(os.getpid(), 9)", code=137)
        self.assertEqual(self.hows(), [("killed",)])

    def test_one_that_is_killed_ends_when_it_is_seen(self):
        peak = self.held(VICTIM.resolve(), "leave_killed", str(9 * MIB))
        self.assertTrue(9 * MIB <= peak < 10 * MIB, peak)
        self.assertEqual(sorted(self.hows()), [("closed",), ("killed",)])

    def test_the_collector_is_killed_before_they_end(self):
        """Their feeds say when they ended: the next program that opens the trace puts the ends in their places."""
        p = self.start("record", "--force", "-o", self.path, "--", VICTIM.resolve(), "leave_at_once", "20", str(MIB), str(30 * MIB), str(self.dir))
        until((self.dir / "ready").exists)
        until(lambda: ask(self.path, "SELECT count(*) FROM event WHERE requested_bytes = ?", MIB) == [(20,)])
        victim = min(pid for pid, in ask(self.path, "SELECT pid FROM process"))
        p.send_signal(signal.SIGKILL)
        p.wait()
        (self.dir / "go").touch()
        until(lambda: not os.path.exists(f"/proc/{victim}") or "\nState:\tZ" in pathlib.Path(f"/proc/{victim}/status").read_text())
        facts = self.facts()
        self.assertEqual(facts["peak"]["bytes"], 30 * MIB)
        self.assertEqual(len(ask(self.path, "SELECT * FROM process_end")), 20)
        self.assertEqual(facts["leaks"], 20)
        self.ok("trace", self.path, "--check")

    def test_a_merge_of_two(self):
        paths = [self.dir / "a.db", self.dir / "b.db"]
        for path in paths:
            self.record(VICTIM.resolve(), "leave_in_turn", "3", str(MIB))
            self.path.rename(path)
        self.ok("merge", *paths, "-o", self.path, "--align", "begin")
        self.ok("trace", self.path, "--check")
        events = ask(self.path, "SELECT (coalesce(block_id, 0) >> ?) + 1, id, t_ns FROM event WHERE op = 19 ORDER BY 1", BLOCK_BITS)
        self.assertEqual(ask(self.path, "SELECT process_id, event_id, t_ns FROM process_end ORDER BY 1"), events)
        self.assertEqual(len(events), 4)
        self.assertEqual(self.facts()["peak"]["bytes"], peak_of_trace(self.path))
        self.assertEqual(self.facts()["leaks"], 6)

    def test_what_is_made_of_it(self):
        """Other programs' views of it: none has a byte of a process that has ended."""
        self.record(VICTIM.resolve(), "leave_in_turn", "3", str(MIB))
        out = self.dir / "out"
        self.ok("export", self.path, "--to", "chrome-trace", "-o", out)
        doc = json.loads(out.read_text())
        events = doc["traceEvents"] if isinstance(doc, dict) else doc
        curve = [e["args"]["requested"] for e in events if e["ph"] == "C" and "requested" in e.get("args", {})]
        self.assertEqual(max(curve), MIB)
        self.assertEqual([e["args"]["end"] for e in events if e["ph"] == "e" and "end" in e.get("args", {})],
                         ["its process ended"] * 2 + ["alive at the end of what is shown"])
        self.ok("export", self.path, "--to", "pytorch", "-o", out)
        lists = pickle.loads(out.read_bytes())["device_traces"]
        self.assertEqual(sorted([e["action"] for e in one if e["action"] in ("alloc", "free_completed")] for one in lists),
                         [["alloc"]] + [["alloc", "free_completed"]] * 2)
        said = json.loads(self.ok("replay", self.path, "--json").stdout)["recorded"]
        self.assertEqual([said[k] for k in ("allocations", "frees", "live_at_end", "left", "left_bytes", "requested_peak_bytes")],
                         [3, 0, 1, 2, 2 * MIB, MIB])
        self.ok("report", self.path, "-o", self.dir / "out.html")
        view = self.ok("tui", self.path, "--once").stdout
        self.assertIn("1.00 MiB", view)
        self.ok("trace", self.path, "--recover", "-o", self.dir / "again.db")
        self.ok("trace", self.dir / "again.db", "--check")
        for query in ("SELECT * FROM process_end", "SELECT * FROM leaks", "SELECT * FROM live_bytes"):
            self.assertEqual(ask(self.dir / "again.db", query), ask(self.path, query))

    def test_the_last_process_has_no_end(self):
        """What a single program never freed is live at the end of the trace, as it always was."""
        self.held(VICTIM.resolve(), "keep", "3000000")
        self.assertEqual(ask(self.path, "SELECT count(*) FROM event WHERE op = 19"), [(0,)])
        facts = self.facts()
        self.assertEqual(facts["kinds"][0]["live_at_end_bytes"], 3000000)
        self.assertEqual(ask(self.path, "SELECT key FROM meta WHERE key = 'left_bytes'"), [])
        self.assertRegex(ask(self.path, "SELECT value FROM meta WHERE key = 'process_end.1'")[0][0], r"^0 \d+ 0 0$")


if __name__ == "__main__":
    tidemark.main()
