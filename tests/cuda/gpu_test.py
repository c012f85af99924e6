#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What only a machine with a GPU can tell, asked in one go: `make gpu-test`.

    gpu_test.py BUILD [-o RESULTS.md] [SECTION...]

BUILD is a build folder (build/gpu). Each section asks one part of the list; what cannot be asked here (no PyTorch, no
compute-sanitizer, no driver) is written down as *not run* with the reason, never as passed. RESULTS.md is docs/gpu-results.md.
Exit code 1: an answer is wrong; 77: there is no driver, so nothing was asked.
"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(HERE))


class Results:
    """Lines of the page, and whether anything was wrong."""

    def __init__(self):
        self.lines = []
        self.n_wrong = 0
        self.n_not_run = 0

    def say(self, text=""):
        self.lines.append(text)
        print(text, flush=True)

    def head(self, title):
        self.say()
        self.say("## " + title)
        self.say()

    def answer(self, question, good, answer):
        """One row of a table: `good` None means that it was not run."""
        word = "*not run*" if good is None else "yes" if good else "**NO**"
        self.n_wrong += good is False
        self.n_not_run += good is None
        self.say(f"| {question} | {word} | {answer} |")

    def table(self, columns="question | holds | answer"):
        self.say("| " + columns + " |")
        self.say("|" + "---|" * len(columns.split("|")))


class Machine:
    """The programs of the build, run with the libraries of this machine."""

    def __init__(self, build):
        self.build = os.path.abspath(build)
        self.env = dict(os.environ)
        self.cupti = self.find_cupti()
        if self.cupti is not None:
            folder = os.path.dirname(self.cupti)
            self.env["LD_LIBRARY_PATH"] = ":".join(filter(None, [self.env.get("LD_LIBRARY_PATH"), folder]))
        self.tidemark = os.path.join(self.build, "cli", "tidemark")
        self.env["TIDEMARK_CUDA_PLUGIN"] = os.path.join(self.build, "cli", "libtidemark-cuda.so")

    @staticmethod
    def find_cupti():
        for folder in ("/usr/local/cuda/lib64", "/usr/local/cuda/targets/x86_64-linux/lib",
                       "/usr/local/cuda/extras/CUPTI/lib64"):
            path = os.path.join(folder, "libcupti.so.13")
            if os.path.exists(path):
                return path
        return None

    def run(self, *command, env=None, timeout=300):
        """The finished process, output and errors as one text."""
        try:
            return subprocess.run(command, env={**self.env, **(env or {})}, stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=timeout, check=False)
        except subprocess.TimeoutExpired:
            return subprocess.CompletedProcess(command, 124, f"no end within {timeout} s")

    def program(self, *path):
        full = os.path.join(self.build, *path)
        return full if os.access(full, os.X_OK) else None

    def json(self, *arguments, timeout=300):
        done = subprocess.run([self.tidemark, *arguments, "--json"], env=self.env, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=timeout, check=False)
        return (json.loads(done.stdout) if done.stdout.startswith("{") else None), done


def last_line(text):
    lines = [line for line in text.strip().splitlines() if line.strip()]
    return lines[-1].replace("|", "/")[:200] if lines else ""


def mib(n):
    return f"{n / 2**20:,.1f} MiB"


# ---- sections ----


def section_machine(m, r):
    devices, done = m.json("devices")
    if devices is None:
        r.say(f"`tidemark devices` failed: {last_line(done.stderr)}")
        r.n_wrong += 1
        return False
    cuda = [d for d in devices["devices"] if d["device"].startswith("cuda")]
    available = [d for d in cuda if d["available"]]
    for d in available:
        facts = ", ".join(f"{k} {v}" for k, v in d.items() if k not in ("device", "available", "reason"))
        r.say(f"- {d['device']}: {facts}")
    if not available:
        r.say("no CUDA device: " + (cuda[0]["reason"] if cuda else "this build has no CUDA"))
    smi = shutil.which("nvidia-smi")
    if smi:
        r.say("- nvidia-smi: " + last_line(m.run(smi, "--query-gpu=name,driver_version,memory.total", "--format=csv").stdout))
    r.say(f"- CUPTI: {m.cupti or 'not found'}")
    return bool(available)


def section_rules(m, r):
    r.say("What the simulated driver and CUPTI answer, asked of the real ones (tests/cuda/rules.c, cupti_rules.c); in"
          " `make test` the same questions are asked of the simulation.")
    r.say()
    r.table()
    for name in ("rules", "cupti_rules"):
        program = m.program("tests", "cuda", name)
        if program is None:
            r.answer(name, None, "the program was not built")
            continue
        done = m.run(program)
        differ = [line for line in done.stdout.splitlines() if line.startswith("DIFFERS")]
        r.answer(f"all of {name} as simulated", done.returncode == 0, last_line(done.stdout))
        for line in differ:
            r.say(f"| {line.replace('|', '/')} | | |")
    program = m.program("tests", "cuda", "rules")
    if program is not None:
        r.say()
        r.table("fact of this device | value")
        for line in m.run(program, "--facts").stdout.splitlines():
            r.say("| " + line + " |")


def unit_tests(m, folder, pattern):
    """Names of the tests of a folder's program that match; [] without one."""
    program = m.program("tests", folder, "test_" + folder)
    if program is None:
        return None, []
    files = sorted(os.listdir(os.path.join(ROOT, "tests", folder)))
    names = [f[5:-2] for f in files if f.startswith("test_") and f.endswith(".c")]
    return program, [n for n in names if re.search(pattern, n)]


def section_suites(m, r):
    r.say("The suites of devices and allocators, with `TIDE_TEST_DEVICE=cuda:0` instead of the CPU and the fake device.")
    r.say()
    r.table("suite | holds | last line")
    for folder, pattern in (("device", r"^device_(streams|capture|closing|stress|transfer)$"),
                            ("memory", r"^(allocator_conformance|stream_race)_devices$")):
        program, names = unit_tests(m, folder, pattern)
        if program is None:
            r.answer(folder, None, "the program was not built")
        for name in names:
            done = m.run(program, name, env={"TIDE_TEST_DEVICE": "cuda:0"}, timeout=120)
            good = None if done.returncode == 77 else done.returncode == 0
            r.answer(f"{folder}/{name}", good, last_line(done.stdout))


def section_sanitizer(m, r):
    r.table()
    sanitizer = shutil.which("compute-sanitizer") or shutil.which("compute-sanitizer", path="/usr/local/cuda/bin")
    program, names = unit_tests(m, "memory", r"^stream_race_devices$")
    if sanitizer is None or program is None or not names:
        r.answer("memcheck over the race of two streams", None,
                 "no compute-sanitizer here" if sanitizer is None else "the program was not built")
        return
    done = m.run(sanitizer, "--tool", "memcheck", "--error-exitcode", "99", program, names[0],
                 env={"TIDE_TEST_DEVICE": "cuda:0"}, timeout=240)
    errors = re.findall(r"ERROR SUMMARY: (\d+) error", done.stdout)
    r.answer("memcheck over the race of two streams", errors[-1:] == ["0"], last_line(done.stdout))


def section_replay(m, r, folder):
    trace = os.path.join(folder, "sequence.db")
    model = os.path.join(ROOT, "sample_graphs", "squeezenet1_1.json")
    done = m.run(m.tidemark, "run", "--naive", "-n", "50", "-o", trace, model)
    if done.returncode != 0:
        r.say(f"no sequence to replay: {last_line(done.stdout)}")
        r.n_wrong += 1
        return
    r.say(f"One recorded sequence (`tidemark run --naive -n 50 {os.path.basename(model)}`), replayed on the device: "
          "`tidemark replay sequence.db --device cuda:0 --check`. Times are the host's, of one call.")
    r.say()
    answer, done = m.json("replay", trace, "--device", "cuda:0", "--check")
    if answer is None:
        r.say(f"**NO**: {last_line(done.stderr)}")
        r.n_wrong += 1
        return
    r.table("allocator | requested peak | reserved peak | worst idle | calls of the driver | alloc, ns | free, ns")
    for row in answer["allocators"]:
        r.say(f"| {row['allocator']} | {mib(row['requested_peak_bytes'])} | {mib(row['reserved_peak_bytes'])} | "
              f"{mib(row['worst_idle_bytes'])} | {row['system_calls']} | {row['alloc_median_ns']} | "
              f"{row['free_median_ns']} |")
    wrong = sum(row["wrong_bytes"] or 0 for row in answer["allocators"])
    r.say()
    r.table()
    r.answer("contents were right at every free (--check)", wrong == 0 and done.returncode == 0, f"{wrong} bytes wrong")


TORCH = r"""
import json, os, sys
import torch
torch.cuda.memory._record_memory_history(max_entries=100000)
out = {}
x = torch.randn(512, 512, device='cuda')
big = torch.empty(30 << 20, dtype=torch.uint8, device='cuda')
y = x @ x
c = torch.nn.Conv2d(3, 16, 3).cuda()
z = c(torch.randn(8, 3, 64, 64, device='cuda'))
torch.cuda.synchronize()
del big
if len(sys.argv) > 2: torch.cuda.empty_cache()
torch.cuda.synchronize()
free, total = torch.cuda.mem_get_info()
segments = torch.cuda.memory_snapshot()
out['used'] = total - free
out['reserved'] = torch.cuda.memory_reserved()
out['segments'] = sorted((s['address'], s['total_size']) for s in segments)
json.dump(out, open(sys.argv[1], 'w'))
os._exit(0) if os.environ.get('END') == 'exit' else None
"""


def section_torch(m, r, folder):
    r.table()
    python = shutil.which("python3")
    probe = m.run(python, "-c", "import torch; print(torch.__version__, torch.cuda.is_available())")
    if probe.returncode != 0 or "True" not in probe.stdout:
        r.answer("PyTorch recorded by injection", None, "no PyTorch with CUDA here")
        return
    r.answer("PyTorch", True, last_line(probe.stdout))
    script = os.path.join(folder, "t.py")
    with open(script, "w", encoding="utf-8") as f:
        f.write(TORCH)
    for name, env, extra in (("caching allocator", {}, []), ("caching allocator, cache emptied", {}, ["empty"]),
                             ("expandable segments", {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}, []),
                             ("ended without exit handlers", {"END": "exit"}, [])):
        trace, told = os.path.join(folder, "torch.db"), os.path.join(folder, "torch.json")
        done = m.run(m.tidemark, "record", "--force", "--cuda", "on", "-o", trace, "--", python, script, told, *extra, env=env)
        if not os.path.exists(told):
            r.answer(name, False, last_line(done.stdout))
            continue
        with open(told, encoding="utf-8") as f:
            want = json.load(f)
        os.unlink(told)
        blocks, listed = m.json("trace", trace, "--at", "end")
        if blocks is None:
            r.answer(name, False, last_line(listed.stderr))
            continue
        ours = [b for b in blocks["blocks"] if b["device"].startswith("cuda")]
        torchs = sum(b["requested_bytes"] for b in ours if "c10_cuda" in (b["name"] or ""))
        rest = sum(b["requested_bytes"] for b in ours) - torchs
        r.answer(f"{name}: driver bytes asked by libc10_cuda.so = torch.cuda.memory_reserved()",
                 torchs == want["reserved"],
                 f"{torchs:,} and {want['reserved']:,}; others {rest:,}; device used {mib(want['used'])}")
        r.say(f"| {last_line(done.stdout)} | | |")


def section_overhead(m, r, folder):
    loop = m.program("tests", "cuda", "alloc_loop")
    if loop is None:
        r.table()
        r.answer("overhead of the recorder", None, "the program was not built")
        return
    r.say("A loop of cuMemAlloc and cuMemFree of 64 KiB, and of cuMemAllocAsync and cuMemFreeAsync: ns for a pair, and"
          " bytes of the device in use, alone and recorded.")
    r.say()
    r.table("run | pair, ns | async pair, ns | device in use")
    for name, command in (("alone", [loop]), ("recorded", [m.tidemark, "record", "--force", "--cuda", "on", "-o",
                                                           os.path.join(folder, "loop.db"), "--", loop])):
        done = m.run(*command)
        for line in done.stdout.splitlines():
            if line.startswith("loop "):
                r.say(f"| {name} | " + " | ".join(line.split()[1:]) + " |")


SECTIONS = (("rules", "Rules of the driver and of CUPTI"), ("suites", "The suites on the device"),
            ("sanitizer", "compute-sanitizer"), ("replay", "Allocators on one recorded sequence"),
            ("torch", "PyTorch recorded by injection"), ("overhead", "What recording costs"))


def main():
    arguments = sys.argv[1:]
    out = None
    if "-o" in arguments:
        at = arguments.index("-o")
        out = arguments[at + 1]
        del arguments[at:at + 2]
    if not arguments:
        sys.exit(__doc__)
    m, r = Machine(arguments[0]), Results()
    wanted = arguments[1:] or [name for name, _ in SECTIONS]
    r.say("# What a real GPU answered")
    r.say()
    r.say(f"Written by `make gpu-test` (tests/cuda/gpu_test.py) on {time.strftime('%Y-%m-%d')}. *not run* is said where a"
          " question could not be asked; it is no answer.")
    r.say()
    r.say("## The machine")
    r.say()
    if not section_machine(m, r):
        print("skipped: no CUDA device here")
        return 77
    with tempfile.TemporaryDirectory() as folder:
        for name, title in SECTIONS:
            r.head(title)
            if name not in wanted:
                r.say("*not run*: not asked for this time")
                r.n_not_run += 1
                continue
            section = globals()["section_" + name]
            try:
                section(m, r, folder) if name in ("replay", "torch", "overhead") else section(m, r)
            except (subprocess.TimeoutExpired, OSError, KeyError, ValueError) as problem:
                r.say(f"**NO**: {type(problem).__name__}: {problem}")
                r.n_wrong += 1
    r.say()
    r.say(f"{r.n_wrong} wrong, {r.n_not_run} not run.")
    if out is not None:
        with open(out, "w", encoding="utf-8") as f:
            f.write("\n".join(r.lines) + "\n")
    return 1 if r.n_wrong else 0


if __name__ == "__main__":
    sys.exit(main())
