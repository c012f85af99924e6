# SPDX-License-Identifier: MIT
"""tidemark record of programs that know nothing of tidemark: what the trace says of their malloc, held against a library that
counts by itself (tests/preload/shadow.c), and against what a program of our own does (tests/preload/program.c)."""
import os
import pathlib
import shutil
import signal
import subprocess
import time
import unittest

import tidemark
from tidemark import PROGRAM, Case, ask, environment, run, until

BUILT = pathlib.Path(os.environ.get("TIDE_PRELOAD_DIR", "build/test/tests/preload"))
VICTIM = BUILT / "preload_program"
SHADOW = BUILT / "preload_shadow.so"
BUMP = BUILT / "preload_bump.so"
MARK = 1000003
PAGE = 4096
BLOCK_BITS = 48
HAS_LIBRARY = VICTIM.exists()
tidemark.CLEAN["TIDEMARK_PRELOAD"] = None # the library that is beside the program
AS_ROOT = os.geteuid() == 0


def sums(path, process_id, allocator="malloc"):
    """allocs, frees, requested, freed, peak of one process, added up here."""
    allocs = frees = requested = freed = live = peak = 0
    for op, n in ask(path, "SELECT e.op, e.requested_bytes FROM event e JOIN name a ON a.id = e.allocator_id "
                     "WHERE e.block_id >> ? = ? AND a.text = ? ORDER BY e.id", BLOCK_BITS, process_id - 1, allocator):
        if op == 1:
            allocs, requested, live = allocs + 1, requested + n, live + n
            peak = max(peak, live)
        elif op == 3:
            frees, freed, live = frees + 1, freed + n, live - n
    return [allocs, frees, requested, freed, peak]


def jemalloc_of(program):
    """The library that it links; None: there is none here."""
    if not program.exists():
        return None
    lines = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines()
    return next((line.split()[2] for line in lines if "jemalloc" in line), None)


def marked(path, more=0, process=None):
    """How many blocks of MARK + more bytes were made, and freed."""
    return tuple(ask(path, "SELECT count(*) FROM event WHERE op = ? AND requested_bytes = ? AND (? IS NULL OR block_id >> ? = ? - 1)",
                     op, MARK + more, process, BLOCK_BITS, process)[0][0] for op in (1, 3))


@unittest.skipUnless(HAS_LIBRARY, "libtidemark-preload.so is not built (sanitizers bring a malloc of their own)")
class Recorded(Case):
    def setUp(self):
        super().setUp()
        self.path = self.dir / "t.db"

    def record(self, *command, code=0, options=(), **kw):
        done = run("record", "--force", "-o", self.path, *options, "--", *command, **kw)
        self.assertEqual(done.returncode, code, f"{command}\nstdout: {done.stdout[-1000:]}\nstderr: {done.stderr[-2000:]}")
        return done

    def is_whole(self):
        """The sums of the file are those that the processes counted, and nothing is wrong with it."""
        self.assertEqual(ask(self.path, "SELECT value FROM meta WHERE key = 'totals'"), [("equal",)])
        self.ok("trace", self.path, "--check")


class Counted(Recorded):
    """The shadow is loaded behind our library: it is what that one takes for the real malloc."""

    def held(self, *command, threads=False, n_processes=1, cwd=None):
        said = self.dir / "shadow.txt"
        said.unlink(missing_ok=True)
        self.record(*command, env={"LD_PRELOAD": str(SHADOW.resolve()), "SHADOW_FILE": str(said)}, cwd=cwd or self.dir)
        shadows = {}
        for line in said.read_text().splitlines():
            pid, *rest, strange = map(int, line.split())
            self.assertEqual(strange, 0, line)
            shadows[pid] = rest
        processes = ask(self.path, "SELECT id, pid, command FROM process ORDER BY id")
        self.assertEqual(len(processes), n_processes, processes)
        for number, pid, words in processes:
            ours, theirs = sums(self.path, number), shadows[pid]
            # Of threads that run at once none can say from outside whose block came first: the peak may differ.
            self.assertEqual(ours[:4] if threads else ours, theirs[:4] if threads else theirs, words)
            self.assertGreater(ours[0], 0, words)
            known = ask(self.path, "SELECT value FROM meta WHERE key = ?", f"by_address.{number}")[0][0]
            self.assertRegex(known, "^unknown=0 twice=0 ", words)
        self.is_whole()

    def test_each_function(self):
        self.held(VICTIM, "each")

    def test_threads_that_hand_blocks_on(self):
        self.held(VICTIM, "threads", "4", "20000", threads=True)

    def test_many_threads(self):
        self.held(VICTIM, "threads", "300", "20", threads=True)

    def test_sqlite3(self):
        if shutil.which("sqlite3") is None:
            self.skipTest("sqlite3 is not installed")
        self.held("sqlite3", ":memory:", "CREATE TABLE t(a); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c WHERE x < 3000) "
                  "INSERT INTO t SELECT hex(x) FROM c; SELECT count(*), max(a) FROM t;")

    def test_python(self):
        if not os.path.exists("/usr/bin/python3"):
            self.skipTest("/usr/bin/python3 is not there")
        self.held("/usr/bin/python3", "-c", "import json; json.dumps(list(range(9999)))")

    def test_sort(self):
        (self.dir / "in").write_text("".join(f"{i * 7919 % 10007}\n" for i in range(10000)))
        self.held("sort", "in", "-o", "out")

    def test_a_compiler_and_its_processes(self):
        if shutil.which("gcc") is None:
            self.skipTest("gcc is not installed")
        (self.dir / "f.c").write_text("int f(int x) { return x + 1; }\n")
        self.held("gcc", "-O2", "-c", "f.c", n_processes=3)


class Told(Recorded):
    def test_blocks_have_the_name_of_what_made_them(self):
        self.record(VICTIM, "each")
        made = ask(self.path, "SELECT e.requested_bytes, n.text FROM event e JOIN name n ON n.id = e.tag_id WHERE e.op = 1 "
                   "AND e.requested_bytes >= ? AND e.requested_bytes < ? + 11 ORDER BY e.id", MARK, MARK)
        self.assertEqual([(b - MARK, name) for b, name in made],
                         [(0, "malloc"), (1, "calloc"), (2, "realloc"), (3, "realloc"), (5, "realloc"), (5, "aligned_alloc"), (7, "aligned_alloc"),
                          (8, "aligned_alloc"), (9, "aligned_alloc"), (10, "malloc"), (10, "realloc")])
        # What could not be had: two attempts, and the block is there still.
        self.assertEqual(ask(self.path, "SELECT count(*) FROM event WHERE op = 6"), [(2,)])
        self.assertNotIn("errno", self.record(VICTIM, "each").stdout)

    def test_parts_of_pages(self):
        self.record(VICTIM, "pages")
        rows = ask(self.path, "SELECT e.op, e.block_id, e.requested_bytes / 4096, n.text FROM event e JOIN name n ON n.id = e.tag_id "
                   "JOIN name a ON a.id = e.allocator_id WHERE a.text = 'mmap' ORDER BY e.id")
        first = rows[0][1]
        self.assertEqual([(op, pages, name) for op, _, pages, name in rows],
                         [(1, 16, "mmap"), (3, 16, "munmap"), (1, 2, "mmap"), (1, 11, "mmap"), (3, 2, "munmap"), (1, 1, "mmap"),
                          (3, 11, "munmap"), (1, 10, "mmap"), (1, 4, "mmap"), (3, 4, "mremap"), (1, 64, "mremap"),
                          (3, 64, "mmap"), (1, 8, "mremap"), (1, 48, "mremap"), (1, 8, "mmap"), (3, 8, "mmap"), (1, 7, "mremap")])
        self.assertEqual(rows[1][1], first)
        live = {}
        for op, block, pages, _ in rows:
            if op == 1:
                live[block] = pages
            else:
                self.assertEqual(live.pop(block), pages)
        self.assertEqual(sorted(live.values()), [1, 7, 8, 10, 48])
        self.is_whole()

    def test_what_is_looked_for_leaves_no_error_behind(self):
        self.assertEqual(self.record(VICTIM, "dlerror").stdout, "")

    def test_a_program_that_tells_of_itself_is_in_the_trace_once(self):
        victim = BUILT.parent / "profiler" / "register_victim"
        if not victim.exists():
            self.skipTest(f"{victim} is not built")
        self.record(victim, self.dir / "ledger", "3")
        self.assertEqual(ask(self.path, "SELECT count(*), count(DISTINCT pid) FROM process"), [(1, 1)])
        self.assertEqual(ask(self.path, "SELECT count(*) FROM run"), [(3,)])
        self.assertEqual(ask(self.path, "SELECT count(*) FROM name WHERE text = 'malloc'"), [(0,)])

    def test_addresses_without_access_are_no_memory(self):
        """256 GiB are mapped without access; what is made accessible of it is told, and goes again in parts."""
        self.assertEqual(self.record(VICTIM, "addresses").stdout, "")
        rows = ask(self.path, "SELECT e.op, e.requested_bytes / 4096, n.text FROM event e JOIN name n ON n.id = e.tag_id "
                   "JOIN name a ON a.id = e.allocator_id WHERE a.text = 'mmap' ORDER BY e.id")
        self.assertEqual(rows, [(1, 4, "mprotect"), (3, 4, "mprotect"), (1, 1, "mprotect"), (1, 2, "mprotect"),
                                (3, 2, "munmap"), (1, 1, "mprotect"), (1, 8, "mprotect"), (3, 8, "mmap")])
        self.is_whole()

    def test_a_plugin_that_brings_the_c_plus_plus_library(self):
        self.record(VICTIM, "plugin", (BUILT / "preload_plugin.so").resolve())
        aligned = MARK // 64 * 64 + 64 - MARK # the C++ library rounds up
        self.assertEqual([marked(self.path, more) for more in (0, 2, aligned)], [(1, 1)] * 3)

    def test_a_heap_at_low_addresses_also_where_nothing_is_recorded(self):
        # Without random addresses the heap follows the program, which lies at 4 MiB.
        low = [*(["setarch", "-R"] if shutil.which("setarch") else []), BUILT / "preload_low", "each"]
        self.record(*low)
        self.assertEqual(marked(self.path), (1, 1))
        library = pathlib.Path(PROGRAM).parents[1] / "lib/tidemark/libtidemark-preload.so"
        done = subprocess.run(low, env=environment({"LD_PRELOAD": str(library.resolve())}), capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_operators_of_c_plus_plus(self):
        operators = BUILT / "preload_operators"
        library = jemalloc_of(BUILT / "preload_jemalloc")
        for env in ({}, {"LD_PRELOAD": library}) if library else ({},):
            self.record(operators, env=env)
            self.assertEqual([marked(self.path, more) for more in range(4)], [(1, 1)] * 4, env)
            self.assertEqual(ask(self.path, "SELECT sum(op = 1), sum(op = 3) FROM event WHERE requested_bytes = ?", MARK // 64 * 64 + 64),
                             [(1, 1)])
            self.is_whole()

    def test_a_child_of_fork_and_its_child(self):
        said = self.record(VICTIM, "fork").stderr
        self.assertEqual([marked(self.path, more) for more in (0, 1, 2, 4)], [(1, 1), (10, 10), (5, 5), (10, 10)])
        # The child frees a block of its parent's: that is said. A child that fork(3) did not make is left alone.
        self.assertIn("1 frees were of blocks that are not in the trace", said)
        self.assertEqual(marked(self.path, 3), (0, 0))
        self.assertEqual(marked(self.path, 1, process=2), (10, 10))
        self.assertEqual(ask(self.path, "SELECT count(*), count(DISTINCT pid) FROM process"), [(3, 3)])

    def test_each_image_of_a_process_is_one(self):
        self.record(VICTIM, "exec")
        self.assertEqual(sorted(marked(self.path, process=p) for p in (1, 2, 3)), [(6, 6), (7, 7), (8, 8)])
        self.assertEqual(ask(self.path, "SELECT count(*), count(DISTINCT pid) FROM process"), [(3, 2)])


class Ends(Recorded):
    def test_however_it_ends(self):
        for how, code, marks in (("kill", 137, 500), ("abort", 134, 500), ("_exit", 7, 500), ("quick", 7, 500), ("crash", 139, 500)):
            self.record(VICTIM, how, "500", code=code)
            self.assertEqual(marked(self.path), (marks, marks), how)

    def test_a_daemon_that_outlives_its_command(self):
        self.record(VICTIM, "daemon", code=3)
        self.assertEqual(marked(self.path), (10, 10))

    def test_output_and_code_are_as_without_us(self):
        for command in (["sh", "-c", "echo out; echo err >&2; exit 5"], ["sort", "--no-such"],
                        ["sh", "-c", "kill -9 $$"], ["date", "+%Z"]):
            plain = subprocess.run(command, capture_output=True, text=True, env=environment())
            code = plain.returncode if plain.returncode >= 0 else 128 - plain.returncode
            recorded = self.record(*command, code=code, options=["--quiet"])
            self.assertEqual((recorded.stdout, recorded.stderr), (plain.stdout, plain.stderr), command)


class Hard(Recorded):
    def test_all_descriptors_are_closed(self):
        self.assertEqual(self.record(VICTIM, "close", cwd=self.dir).stdout, "")
        self.assertEqual([marked(self.path, more) for more in (0, 1, 2)], [(1, 1), (3000, 3000), (1, 1)])
        self.is_whole()

    def test_signal_handlers_that_allocate(self):
        said = self.record(VICTIM, "signals", env={"LD_PRELOAD": str(BUMP.resolve())}).stdout.split()
        main, handler = int(said[0]), int(said[1])
        self.assertEqual([marked(self.path, more) for more in (0, 1)], [(main, main), (handler, handler)])
        self.assertGreater(handler, 0)

    @unittest.skipUnless(AS_ROOT, "only root can change the root folder and the user")
    def test_another_root_and_another_user(self):
        self.dir.chmod(0o755)
        for what in ("chroot", "nobody"):
            self.assertEqual(self.record(VICTIM, what).stdout, "")
            self.assertEqual([marked(self.path, more) for more in (0, 1)], [(11, 11), (3000, 3000)], what)

    def test_an_allocator_that_the_program_brings(self):
        linked = BUILT / "preload_jemalloc"
        if not linked.exists():
            self.skipTest("jemalloc is not installed")
        for command, env in (([linked], {}), ([VICTIM], {"LD_PRELOAD": jemalloc_of(linked)})):
            self.record(*command, "threads", "4", "5000", env=env)
            self.assertGreaterEqual(sums(self.path, 1)[0], 20000)
            self.is_whole()

    def test_static_programs(self):
        static = BUILT / "preload_static"
        said = self.record(static, "many", "3").stderr
        self.assertIn("is not recorded: it is a static program", said)
        self.refused(3, "record", "--force", "-o", self.path, "--malloc", "on", "--", static, says=["--malloc on", "static program"])
        script = self.dir / "script"
        script.write_text(f"#!{static.resolve()}\n")
        script.chmod(0o755)
        self.assertIn("static program", self.record(script).stderr)

    @unittest.skipUnless(AS_ROOT, "only root can make a program that runs as another user")
    def test_programs_that_run_as_another_user(self):
        self.dir.chmod(0o755)
        other = self.dir / "other"
        shutil.copy(VICTIM, other)
        os.chown(other, 65534, 65534)
        other.chmod(0o4755)
        self.assertIn("runs as another user", self.record(other, "many", "3").stderr)
        self.assertEqual(marked(self.path), (0, 0))
        self.refused(3, "record", "--force", "-o", self.path, "--malloc", "on", "--", other, says=["runs as another user"])

    def test_not_asked_for(self):
        said = self.record(VICTIM, "many", "3", options=["--malloc", "off"]).stderr
        self.assertIn("the trace is empty", said)
        self.refused(2, "record", "-o", self.path, "--malloc", "perhaps", "--", "true", says=["perhaps"])

    def test_tidemark_records_itself_alone(self):
        self.record(PROGRAM, "run", "-n", "1", tidemark.SAMPLES / "diamond.json")
        self.assertEqual(ask(self.path, "SELECT count(*) FROM process"), [(1,)])
        self.assertEqual(ask(self.path, "SELECT count(*) FROM name WHERE text = 'malloc'"), [(0,)])


class Takeover(Recorded):
    def test_a_collector_that_is_killed(self):
        """Blocks of before are known to the drain that goes on: it makes its table of the trace."""
        ready, go = self.dir / "ready", self.dir / "go"
        script = (f"blocks = [bytearray({MARK - 1}) for i in range(200)]\nimport os, time\nopen({str(ready)!r}, 'w')\n"
                  f"while not os.path.exists({str(go)!r}): time.sleep(0.05)\nblocks.clear()\n")
        p = self.start("record", "--force", "-o", self.path, "--form", "rows", "--", "/usr/bin/python3", "-c", script)
        until(ready.exists)
        while marked(self.path)[0] < 200:
            time.sleep(0.05)
        victim, = ask(self.path, "SELECT pid FROM process")[0]
        p.send_signal(signal.SIGKILL)
        p.wait()
        go.touch()
        until(lambda: not is_running(victim))
        self.ok("trace", self.path)
        self.assertEqual(marked(self.path), (200, 200))
        self.assertRegex(ask(self.path, "SELECT value FROM meta WHERE key = 'by_address.1'")[0][0], r"^unknown=0 twice=0 ")
        self.is_whole()


def is_running(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


if __name__ == "__main__":
    tidemark.main()
