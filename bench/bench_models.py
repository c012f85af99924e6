# SPDX-License-Identifier: MIT
"""Every model of the shared folder in tidemark and in ONNX Runtime, one thread each, turn by turn: processor time of one run.

    python3 bench/bench_models.py PROGRAM [--models FOLDER] [--ort LIBRARY] [--rounds N] [--only NAME,…] [--base PROGRAM]

LIBRARY is libonnxruntime.so.1 of npm's onnxruntime-node (default: below build/npm, where scripts/deps.sh bench puts it);
without it tidemark is measured alone. Another build of tidemark, the BASE, can take part in the same rounds.

tidemark: what N + 1 runs take of the processor (the kernel's account of the process) less what one run takes, by N; with a
plan of the strategy greedy_by_size, which is made in no time. Bytes are those of the default plan.
ONNX Runtime: the thread's time in N calls of Run after three others, all optimisations on, sequential, by N. Where a model
takes 20 us, some 2 us of them are Python's, which calls it. N is what takes about 0.3 s. Medians over the rounds.
"""
import argparse
import ctypes
import json
import math
import os
import pathlib
import statistics
import struct
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
NPM = HERE.parent / "build" / "npm" / "node_modules" / "onnxruntime-node" / "bin" / "napi-v6" / "linux" / "x64"
SECONDS = 0.3  # that the runs of one round take, about

# ---- a TensorProto ----


def varint(data, at):
    value = shift = 0
    while True:
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at


def fields(data):
    """(number, value) of each field: an integer or bytes."""
    at = 0
    while at < len(data):
        key, at = varint(data, at)
        if key & 7 == 0:
            value, at = varint(data, at)
        else:
            size, at = varint(data, at) if key & 7 == 2 else (8 if key & 7 == 1 else 4, at)
            value, at = data[at:at + size], at + size
        yield key >> 3, value


def packed(value):
    """The whole numbers of a repeated field, packed or one by one."""
    out, at = [], 0
    if isinstance(value, int):
        return [value]
    while at < len(value):
        number, at = varint(value, at)
        out.append(number)
    return out


def read_tensor(path):
    """(ONNX's number of the type, extents, bytes)"""
    dtype, dims, raw = 0, [], b""
    for number, value in fields(path.read_bytes()):
        if number == 1:
            dims += packed(value)
        elif number == 2:
            dtype = value
        elif number in (9, 4):  # raw, float_data
            raw += value
        elif number == 7:
            raw += b"".join(struct.pack("<Q", n) for n in packed(value))
        elif number == 5:
            raw += b"".join(struct.pack({6: "<I", 9: "<B", 2: "<B"}[dtype], n & 0xffffffff) for n in packed(value))
    return dtype, dims, raw


# ---- ONNX Runtime, by the table of functions of its C interface ----

# Places in OrtApi, which only ever grows at its end (include/onnxruntime/core/session/onnxruntime_c_api.h).
PLACES = {"GetErrorMessage": 2, "CreateEnv": 3, "CreateSession": 7, "Run": 9, "CreateSessionOptions": 10,
          "SetSessionGraphOptimizationLevel": 23, "SetIntraOpNumThreads": 24, "SetInterOpNumThreads": 25,
          "SessionGetInputCount": 30, "SessionGetOutputCount": 31, "SessionGetInputName": 36, "SessionGetOutputName": 37,
          "CreateTensorWithDataAsOrtValue": 49, "CreateCpuMemoryInfo": 69, "GetAllocatorWithDefaultOptions": 78,
          "ReleaseValue": 96}


class Ort:
    def __init__(self, library):
        class Base(ctypes.Structure):
            _fields_ = [("get_api", ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_uint32)),
                        ("version", ctypes.CFUNCTYPE(ctypes.c_char_p))]

        lib = ctypes.CDLL(str(library))
        lib.OrtGetApiBase.restype = ctypes.POINTER(Base)
        base = lib.OrtGetApiBase().contents
        self.version = base.version().decode()
        self.table = ctypes.cast(base.get_api(16), ctypes.POINTER(ctypes.c_void_p))

    def raw(self, name, result=ctypes.c_void_p):
        return ctypes.CFUNCTYPE(result)(self.table[PLACES[name]])

    def call(self, name, *args):
        status = self.raw(name)(*args)
        if status:
            raise SystemExit(f"{name}: {self.raw('GetErrorMessage', ctypes.c_char_p)(ctypes.c_void_p(status)).decode()}")

    def made(self, name, *args):
        """What a function leaves at its last argument."""
        out = ctypes.c_void_p()
        self.call(name, *args, ctypes.byref(out))
        return out

    def names(self, session, what):
        allocator, count = self.made("GetAllocatorWithDefaultOptions"), ctypes.c_size_t()
        self.call(f"SessionGet{what}Count", session, ctypes.byref(count))
        return [ctypes.c_char_p(self.made(f"SessionGet{what}Name", session, ctypes.c_size_t(i), allocator).value)
                for i in range(count.value)]


def ort_child(library, model, data):
    """Microseconds of the thread for one run, printed."""
    ort = Ort(library)
    options = ort.made("CreateSessionOptions")
    ort.call("SetSessionGraphOptimizationLevel", options, 99)
    ort.call("SetIntraOpNumThreads", options, 1)
    ort.call("SetInterOpNumThreads", options, 1)
    session = ort.made("CreateSession", ort.made("CreateEnv", 3, b"bench"), str(model).encode(), options)
    memory = ort.made("CreateCpuMemoryInfo", 1, 0)
    ins, outs = ort.names(session, "Input"), ort.names(session, "Output")
    tensors, kept = [], []
    for i in range(len(ins)):
        dtype, dims, raw = read_tensor(data / f"input_{i}.pb")
        held = ctypes.create_string_buffer(raw, max(len(raw), 1))
        kept.append(held)
        tensors.append(ort.made("CreateTensorWithDataAsOrtValue", memory, held, ctypes.c_size_t(len(raw)),
                                (ctypes.c_int64 * len(dims))(*dims), ctypes.c_size_t(len(dims)), dtype))
    in_names, in_values = (ctypes.c_char_p * len(ins))(*(n.value for n in ins)), (ctypes.c_void_p * len(ins))(*(t.value for t in tensors))
    out_names, out_values = (ctypes.c_char_p * len(outs))(*(n.value for n in outs)), (ctypes.c_void_p * len(outs))()
    run, release = ort.raw("Run"), ort.raw("ReleaseValue", None)

    def once():
        if run(session, None, in_names, in_values, ctypes.c_size_t(len(ins)), out_names, ctypes.c_size_t(len(outs)), out_values):
            raise SystemExit("Run failed")
        for i in range(len(outs)):
            release(ctypes.c_void_p(out_values[i]))
            out_values[i] = None

    for _ in range(3):
        once()
    begin = time.thread_time_ns()
    once()
    n = max(1, min(20000, int(SECONDS * 1e9 / max(1, time.thread_time_ns() - begin))))
    begin = time.thread_time_ns()
    for _ in range(n):
        once()
    print((time.thread_time_ns() - begin) / n / 1e3)


def ort_us(library, model, data):
    done = subprocess.run([sys.executable, __file__, "--ort-child", library, model, data], capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"{model}: ONNX Runtime: {done.stderr.strip() or done.returncode}")
    return float(done.stdout)


# ---- tidemark ----


def process_us(command):
    """What a process takes of the processor, in microseconds, and its exit code."""
    null = os.open(os.devnull, os.O_WRONLY)
    pid = os.posix_spawn(command[0], [str(c) for c in command], os.environ,
                         file_actions=[(os.POSIX_SPAWN_DUP2, null, 1), (os.POSIX_SPAWN_DUP2, null, 2)])
    _, status, used = os.wait4(pid, 0)
    os.close(null)
    return (used.ru_utime + used.ru_stime) * 1e6, os.waitstatus_to_exitcode(status)


class Tidemark:
    def __init__(self, program, model, data):
        command = [program, "run", model, "--input-dir", data]
        self.command = command + ["--strategy", "greedy_by_size", "-n"]
        done = subprocess.run([str(c) for c in command] + ["-n", "5", "--json"], capture_output=True, text=True)
        self.error = done.stderr.strip().split("\n")[0] if done.returncode != 0 else None
        if self.error is None:
            doc = json.loads(done.stdout)
            self.n = max(8, min(20000, int(SECONDS * 1e9 / max(1, doc["time_ns"]["min"]))))
            self.peaks = {k["kind"]: k["peak_bytes"] for k in doc["kinds"]}

    def us(self):
        less, more = process_us(self.command + [1]), process_us(self.command + [self.n + 1])
        assert less[1] == 0 and more[1] == 0
        return (more[0] - less[0]) / self.n


# ---- the table ----


def geometric_mean(values):
    return math.exp(sum(math.log(v) for v in values) / len(values)) if values else float("nan")


def measure(model, options):
    """A line of the table, or None where tidemark cannot run the model."""
    data = model.parent / "test_data_set_0"
    ours = [Tidemark(p, model, data) for p in (options.program, options.base) if p is not None]
    if any(t.error for t in ours):
        print(f"{model.parent.name}: {ours[0].error or ours[-1].error}", file=sys.stderr)
        return None
    times, peers = [[] for _ in ours], []
    for _ in range(options.rounds):
        for i, tidemark in enumerate(ours):
            times[i].append(tidemark.us())
        if options.ort is not None:
            peers.append(ort_us(options.ort, model, data))
    return {"model": model.parent.name, "us": [statistics.median(t) for t in times], "peaks": [t.peaks for t in ours],
            "ort": statistics.median(peers) if peers else None}


def cells(row):
    base = row["us"][1] if len(row["us"]) > 1 else None
    peak = " → ".join(f"{p.get('Workspace', 0) / 1e3:.1f}" for p in reversed(row["peaks"]))
    return [row["model"], f"{row['us'][0] / 1e3:.3f}", f"{base / 1e3:.3f}" if base else "",
            f"{row['ort'] / 1e3:.3f}" if row["ort"] else "", f"{row['us'][0] / row['ort']:.2f}" if row["ort"] else "",
            f"{base / row['ort']:.2f}" if base and row["ort"] else "", peak]


def print_table(rows):
    print("| model | tidemark, CPU ms | base | ONNX Runtime | ratio | base's ratio | Workspace, kB |\n|---|---|---|---|---|---|---|")
    for row in rows:
        print("| " + " | ".join(cells(row)) + " |")
    for what, some in (("1 ms or more", [r for r in rows if r["ort"] and r["ort"] >= 1000]),
                       ("below 1 ms", [r for r in rows if r["ort"] and r["ort"] < 1000])):
        if some:
            means = [geometric_mean([r["us"][i] / r["ort"] for r in some]) for i in range(len(some[0]["us"]))]
            worst = max(some, key=lambda r: r["us"][0] / r["ort"])
            print(f"ONNX Runtime {what}: {len(some)} models, geometric mean " + ", base ".join(f"{m:.2f}" for m in means) +
                  f", worst {worst['us'][0] / worst['ort']:.2f} ({worst['model']})")


def main():
    if sys.argv[1:2] == ["--ort-child"]:
        return ort_child(sys.argv[2], sys.argv[3], pathlib.Path(sys.argv[4]))
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("program", type=pathlib.Path)
    parser.add_argument("--base", type=pathlib.Path)
    parser.add_argument("--models", type=pathlib.Path, default=os.environ.get("TIDE_SHARED_DIR", HERE.parents[1] / "shared") / pathlib.Path("models"))
    parser.add_argument("--ort", type=pathlib.Path, default=NPM / "libonnxruntime.so.1")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if not options.ort.exists():
        print(f"{options.ort} is not there: tidemark is measured alone", file=sys.stderr)
        options.ort = None
    wanted = [w for w in options.only.split(",") if w]
    models = [m for m in sorted(options.models.glob("*/model.onnx")) if not wanted or m.parent.name in wanted]
    if not models:
        print(f"skipped: no models below {options.models}")
        return 0
    rows = [row for row in (measure(m, options) for m in models) if row is not None]
    print_table(rows)
    return 0


if __name__ == "__main__":
    sys.exit(main())
