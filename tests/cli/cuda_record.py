# SPDX-License-Identifier: MIT
"""CUDA programs under `tidemark record`, on the simulated driver and the simulated CUPTI (tests/cuda): a program that knows
nothing of tidemark, whose memory in the trace is held to the byte against the driver's own ledger. TIDE_SOAK=1: 100 kills."""
import collections
import contextlib
import ctypes
import json
import os
import pathlib
import re
import signal
import sqlite3
import subprocess
import sys
import time
import unittest

import tidemark
from tidemark import PROGRAM, SOURCE, Case, environment, until

BUILD = os.environ.get("TIDE_SIM_DIR", "")
PLUGIN = os.environ.get("TIDE_CUPTI_PLUGIN", "")
REAL = os.environ.get("TIDE_REAL_CUPTI", "")
if not BUILD or not PLUGIN:
    print("skipped: built without the CUDA toolkit")
    sys.exit(77)
sys.path.insert(0, str(SOURCE / "tests/cuda/driver"))
import sim_ledger_read as ledger  # noqa: E402

CUDA_PROGRAM = f"{BUILD}/cupti/cuda_program"
# What the driver's ledger calls the memory of each allocator of the trace.
KINDS = {"cuMemAlloc": "device", "cuMemAllocManaged": "managed", "cuMemAllocAsync": "pool_block", "cuMemHostAlloc": "pinned",
         "cuMemCreate": "physical", "cuMemMap": "physical"}
WITHOUT_RECORDS = set(KINDS.values())
EXIT_CODE = 7
N_MOMENTS = 24
N_THREADS = 4


def sim_environment(**more):
    return {"LD_LIBRARY_PATH": f"{BUILD}/driver:{BUILD}/cupti", "CUDA_INJECTION64_PATH": None, **more}


class Trace:
    """Events of a trace, and sums of them by what the ledger calls them."""

    def __init__(self, path):
        with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
            self.events = db.execute(
                "SELECT coalesce(own_ns, e.t_ns), e.op, e.block_id, e.requested_bytes, e.reserved_bytes, e.allocator, e.address, "
                "e.name, e.thread, e.device FROM events e LEFT JOIN late l USING (event_id) ORDER BY event_id").fetchall()
            self.meta = dict(db.execute("SELECT key, value FROM meta WHERE key LIKE 'cuda.%'").fetchall())
            self.problems = db.execute("SELECT what FROM problem WHERE problem <> 8").fetchall()
            self.processes = db.execute("SELECT id, how FROM process").fetchall()

    def counts(self):
        """What the recorders counted, by process."""
        return [dict((k, int(v)) for k, v in re.findall(r"(\w+)=(\d+)", text)) for _, text in sorted(self.meta.items())]

    def sums(self, t_ns, process=1):
        held = collections.Counter()
        blocks = {}
        for t, op, block, requested, reserved, allocator, *_ in self.events:
            if t > t_ns or block is None or (block >> 48) + 1 != process:
                continue
            kind = "pool" if op.startswith("segment") else KINDS.get(allocator, allocator)
            if op in ("alloc", "segment_alloc"):
                blocks[block] = requested
                held[kind] += requested
            elif op in ("free_completed", "segment_free"):
                held[kind] -= blocks.pop(block)
        return {kind: n for kind, n in held.items() if n}


class CudaRecord(Case):
    def setUp(self):
        super().setUp()
        self.path, self.moments, self.ledger, self.report = (self.dir / n for n in ("t.db", "moments", "ledger", "report"))

    def env(self, **more):
        return sim_environment(TIDESIM_LEDGER=str(self.ledger), TIDECUPTI_REPORT=str(self.report), **more)

    def record(self, mode="", options=(), **more):
        p = self.run_("record", "--force", "-o", self.path, *options, "--", CUDA_PROGRAM, self.moments, N_MOMENTS, mode, env=self.env(**more))
        return p

    def run_(self, *args, env):
        return tidemark.run(*args, env=env)

    def check_moments(self, trace, process=1, moments=None, file=None, pools=True, at_least=20):
        """The trace and the ledger say the same of every moment."""
        times = [int(t) for t in (moments or self.moments).read_text().split()]
        self.assertGreaterEqual(len(times), at_least)
        seen = set()
        for i, t in enumerate(times):
            want = {}
            for (kind, device), n in ledger.live(file or self.ledger, t).items():
                if kind in WITHOUT_RECORDS or (kind == "pool" and pools):
                    want[kind] = want.get(kind, 0) + n
            got = trace.sums(t, process)
            if not pools:
                got.pop("pool", None)
            self.assertEqual(got, want, f"moment {i} of {len(times)}")
            seen |= set(want)
        self.assertEqual(seen, WITHOUT_RECORDS | ({"pool"} if pools else set()), "all sorts of memory were there")
        return times

    def check_report(self):
        report = dict(re.findall(r"(\w+)=(\d+)", self.report.read_text()))
        self.assertEqual((report["misuse"], report["calls_inside"]), ("0", "0"))
        self.assertGreater(int(report["records"]), 1000)

    def plain(self, mode="leave"):
        env = sim_environment()
        return subprocess.run([CUDA_PROGRAM, str(self.dir / "plain"), str(N_MOMENTS), mode], env=environment(env), capture_output=True, text=True)

    def test_to_the_byte(self):
        for mode in ("leave", "tidy"):
            self.moments.unlink(missing_ok=True)
            p = self.record(mode)
            plain = self.plain(mode)
            self.assertEqual((p.returncode, p.stdout), (EXIT_CODE, plain.stdout), p.stderr)
            self.assertEqual(plain.returncode, EXIT_CODE)
            self.assertRegex(p.stderr, r"\Atrace: .*\ncuda: 1 process, peak [\d.]+ MiB on cuda:0\n\Z")
            trace = Trace(self.path)
            self.check_moments(trace)
            self.check_report()
            [n] = trace.counts()
            self.assertEqual(trace.problems, [])
            zero = ("failed_frees", "unknown_frees", "unmatched", "unchecked", "outside", "dropped", "refused_buffers", "no_room", "errors",
                    "flush_hung", "own_calls")
            self.assertEqual({k: n[k] for k in zero}, dict.fromkeys(zero, 0))
            self.assertGreater(n["duplicates"], 0, "the second context tells its allocations twice")
            self.assertGreater(n["matched"], 1000)
            self.assertLessEqual(n["records"] - n["matched"], 60, "all but those of pools")
            self.assertEqual({e[7] for e in trace.events if e[1] == "alloc"}, {"cuda_program"}, "who asked")
            self.assertGreaterEqual(len({e[8] for e in trace.events if e[1] == "alloc"}), N_THREADS)
            samples = [e for e in trace.events if e[1] == "device_usage"]
            self.assertEqual(len(samples), n["samples"])
            self.assertGreater(len(samples), 0)
            for t, _, _, used, total, *_ in samples:
                given = [b for (kind, _), b in ledger.live(self.ledger, t).items() if kind in ("context", "physical", "pool")]
                self.assertEqual(total, 16 << 30)
                self.assertGreater(used, sum(given) // 2)
            self.assertEqual({e[9] for e in trace.events if e[5] == "cuMemHostAlloc"}, {"cpu"})

    def tail(self, trace):
        """By address, what the ledger has and the trace has not, and the other way round: what was under way in the end."""
        names = {"device", "managed", "pinned", "pool_block"}
        want, got = collections.defaultdict(list), collections.defaultdict(list)
        for r in ledger.records(self.ledger):
            if ledger.KINDS[r.kind] in names:
                want[r.address].append((r.op, r.bytes))
        ops = {"alloc": 1, "free_completed": 2}
        for _, op, _, requested, _, allocator, address, *_ in trace.events:
            if op in ops and KINDS.get(allocator) in names:
                got[address].append((ops[op], requested))
        n = 0
        for address in want | got:
            w, g = want[address], got[address]
            short = min(len(w), len(g))
            self.assertEqual(w[:short], g[:short], hex(address))
            n += abs(len(w) - len(g))
        return n, sum(map(len, want.values()))

    def test_killed(self):
        kills = 100 if os.environ.get("TIDE_SOAK") else 3
        for i in range(kills):
            for file in (self.moments, self.ledger):
                file.unlink(missing_ok=True)
            p = subprocess.Popen([PROGRAM, "record", "--force", "-o", self.path, "--", CUDA_PROGRAM, self.moments, "1", "endless"],
                                 env=environment(self.env()), stderr=subprocess.PIPE, text=True)
            until(lambda: self.moments.exists() and len(self.moments.read_text().split()) >= 21 + i % 7)
            [pid] = [int(c) for c in pathlib.Path(f"/proc/{p.pid}/task/{p.pid}/children").read_text().split()]
            os.kill(pid, signal.SIGKILL)
            err = p.communicate(timeout=100)[1]
            self.assertEqual(p.returncode, 128 + signal.SIGKILL, err)
            self.assertIn("ended without saying what CUPTI had dropped", err)
            trace = Trace(self.path)
            self.assertEqual([how for _, how in trace.processes], ["killed"])
            self.check_moments(trace, pools=False)
            n_under_way, n_all = self.tail(trace)
            self.assertLessEqual(n_under_way, N_THREADS, "one call of each thread")
            self.assertGreater(n_all, 1000)

    def test_fork(self):
        p = self.record("fork")
        self.assertEqual(p.returncode, EXIT_CODE, p.stderr)
        trace = Trace(self.path)
        self.assertEqual(len(trace.processes), 1, "the child has no part in it")
        self.check_moments(trace)

    def test_exec(self):
        p = self.record("exec")
        self.assertEqual(p.returncode, EXIT_CODE, p.stderr)
        self.assertIn("cuda: 2 processes", p.stderr)
        trace = Trace(self.path)
        self.assertEqual(len(trace.processes), 2, "a lane for each")
        self.check_moments(trace, 1, pools=False)
        self.check_moments(trace, 2, self.dir / "moments.again", self.dir / "ledger.again")

    def test_another_subscriber(self):
        p, plain = self.record("leave", TIDECUPTI_OTHER="Nsight"), self.plain()
        self.assertEqual((p.returncode, p.stdout), (EXIT_CODE, plain.stdout))
        ours = [line for line in p.stderr.splitlines() if line.startswith("tidemark: ")]
        self.assertEqual(len(ours), 1, p.stderr)
        self.assertRegex(ours[0], r"process \d+: .*another tool watches this process already: CUPTI for Nsight; the program runs on$")
        self.assertIn("warning: CUDA memory of 1 process was not recorded: ", p.stderr)
        trace = Trace(self.path)
        self.assertEqual(trace.events, [])
        [why] = trace.meta.values()
        self.assertRegex(why, "^off busy .*Nsight$")

    def test_refused_buffers(self):
        p = self.record("leave", TIDECUPTI_BUFFER_RECORDS="1")
        self.assertEqual(p.returncode, EXIT_CODE, p.stderr)
        trace = Trace(self.path)
        [n] = trace.counts()
        self.assertGreater(n["dropped"], 0)
        self.assertGreater(n["refused_buffers"], 0)
        self.assertIn(f"warning: CUPTI dropped {n['dropped']} records", p.stderr)
        self.check_moments(trace, pools=False)
        self.check_report()

    def test_flush_that_hangs(self):
        begin = time.monotonic()
        p, plain = self.record("leave", TIDECUPTI_HANG="forced"), self.plain()
        self.assertEqual((p.returncode, p.stdout), (EXIT_CODE, plain.stdout), p.stderr)
        self.assertGreater(time.monotonic() - begin, 3.9, "it was waited for")
        self.assertIn("CUPTI did not give out its last records in time", p.stderr)
        trace = Trace(self.path)
        self.assertEqual(trace.counts()[0]["flush_hung"], 1)
        self.check_moments(trace, pools=False)

    def test_faults_of_the_program(self):
        p = self.record("faults", TIDESIM_FAIL="20:900:cuMemFreeHost")
        self.assertEqual(p.returncode, EXIT_CODE, p.stderr)
        trace = Trace(self.path)
        [n] = trace.counts()
        self.assertEqual(n["failed_frees"], 1)
        self.assertGreaterEqual(n["unknown_frees"], N_MOMENTS)
        self.assertGreater(sum(e[1] == "oom" for e in trace.events), 0)
        self.assertEqual(trace.problems, [])
        self.check_moments(trace)

    def test_the_option(self):
        p = self.record("leave", ["--cuda", "off"])
        self.assertEqual(p.returncode, EXIT_CODE)
        self.assertNotIn("cuda:", p.stderr)
        self.assertIn("the trace is empty", p.stderr)
        p = self.record("leave", ["--cuda", "maybe"])
        self.assertEqual(p.returncode, 2)
        self.assertIn("--cuda: 'maybe' is none of auto, on and off", p.stderr)
        p = self.record("leave", CUDA_INJECTION64_PATH="/opt/other.so")
        self.assertEqual(p.returncode, EXIT_CODE)
        self.assertIn("CUDA_INJECTION64_PATH is set already and stays (/opt/other.so)", p.stderr)
        ran = self.dir / "ran"
        for env, why in (({"CUDA_INJECTION64_PATH": "/opt/other.so"}, "is set already: /opt/other.so"),
                         ({"LD_LIBRARY_PATH": None}, "there is no NVIDIA driver: libcuda.so.1")):
            p = tidemark.run("record", "--force", "-o", self.path, "--cuda", "on", "--", "touch", ran, env=self.env(**env))
            self.assertNotEqual(p.returncode, 0)
            self.assertIn(why, p.stderr)
            self.assertFalse(ran.exists(), "nothing was run")
        p = tidemark.run("record", "--force", "-o", self.path, "--", "touch", ran, env=self.env(LD_LIBRARY_PATH=None))
        self.assertEqual(p.returncode, 0, p.stderr)
        self.assertIn("no process that the command started spoke to tidemark", p.stderr)

    def test_real_library_without_a_driver(self):
        """NVIDIA's own libcupti, on a machine without a driver: the refusal in words, and the program runs on."""
        if not REAL:
            self.skipTest("no libcupti of the toolkit")
        code = f"import ctypes; print(ctypes.CDLL({PLUGIN!r}).InitializeInjection())"
        p = tidemark.run("record", "--force", "-o", self.path, "--", sys.executable, "-c", code,
                         env={"TIDEMARK_CUPTI": REAL, "LD_LIBRARY_PATH": None})
        self.assertEqual((p.returncode, p.stdout), (0, "1\n"), p.stderr)
        self.assertRegex(p.stderr, r"tidemark: process \d+: .*cuptiSubscribe_v2: CUPTI_ERROR_UNKNOWN \(999\); the program runs on")
        # and without a collector
        p = subprocess.run([sys.executable, "-c", code], env=environment({"TIDEMARK_CUPTI": REAL}), capture_output=True, text=True)
        self.assertEqual((p.returncode, p.stdout), (0, "1\n"))
        self.assertIn("no collector runs", p.stderr)

    def test_the_file(self):
        """What it needs, and what it shows of itself."""
        needed = subprocess.run(["readelf", "-d", PLUGIN], capture_output=True, text=True, check=True).stdout
        names = set(re.findall(r"NEEDED.*\[(.*?)\]", needed))
        self.assertLessEqual({re.sub(r"\.so.*", "", n) for n in names}, {"libc", "libm", "ld-linux-x86-64"})
        symbols = subprocess.run(["nm", "-D", "--defined-only", PLUGIN], capture_output=True, text=True, check=True).stdout
        self.assertEqual({line.split()[-1] for line in symbols.splitlines()}, {"InitializeInjection", "tidemark_cupti_plugin"})


if __name__ == "__main__":
    unittest.main()
