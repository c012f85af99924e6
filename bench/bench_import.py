# SPDX-License-Identifier: MIT
"""How long a large memory snapshot of PyTorch takes: a file of SIZE (default 1 GiB) is written opcode by opcode as Python's
pickler writes it (protocol 4, frames and stacks from a memo), then imported, read by Python's own pickle, and looked at.

    python3 bench/bench_import.py PROGRAM [SIZE in MiB]
"""
import os
import pathlib
import random
import resource
import struct
import subprocess
import sys
import tempfile
import time

DEPTH, STACKS = 50, 2000  # of a stack; how many different ones


class Writer:
    """Opcodes to a file, with a memo by what is put in."""

    def __init__(self, out):
        self.out, self.n_memo, self.texts, self.bytes = out, 0, {}, 0
        self.put(b"\x80\x04")

    def put(self, data):
        self.out.write(data)
        self.bytes += len(data)

    def memo(self):
        self.put(b"\x94")
        self.n_memo += 1
        return self.n_memo - 1

    @staticmethod
    def get(number):
        return b"h" + bytes([number]) if number < 256 else b"j" + struct.pack("<I", number)

    def text(self, text):
        if text in self.texts:
            return self.put(self.get(self.texts[text]))
        data = text.encode()
        self.put(b"\x8c" + bytes([len(data)]) + data if len(data) < 256 else b"X" + struct.pack("<I", len(data)) + data)
        self.texts[text] = self.memo()

    @staticmethod
    def number(n):
        if 0 <= n < 256:
            return b"K" + bytes([n])
        if 0 <= n < 65536:
            return b"M" + struct.pack("<H", n)
        if -(1 << 31) <= n < 1 << 31:
            return b"J" + struct.pack("<i", n)
        data = n.to_bytes((n.bit_length() + 8) // 8, "little")
        return b"\x8a" + bytes([len(data)]) + data

    def pairs(self, **items):
        """A dict that is not closed yet. @return its number in the memo"""
        self.put(b"}")
        number = self.memo()
        self.put(b"(")
        for key, value in items.items():
            self.text(key)
            self.text(value) if isinstance(value, str) else self.put(self.number(value))
        return number


def write(path, n_bytes):
    """@return how many events"""
    rng, n = random.Random(1), 0
    with open(path, "wb", buffering=1 << 20) as out:
        w = Writer(out)
        w.put(b"}")
        w.memo()
        w.put(b"(")
        w.text("segments")
        w.put(b"]")
        w.memo()
        w.text("device_traces")
        w.put(b"]")
        w.memo()
        w.put(b"(]")  # a list of one list
        w.memo()
        frames, live, free, at, now = {}, [], [], 0x7F0000000000, 1_700_000_000_000_000
        stacks = [None] * STACKS
        while w.bytes < n_bytes:
            w.put(b"(")
            for _ in range(1000):
                now += 3
                is_free = len(live) > 20000 or (live and rng.random() < 0.45)
                actions = ("free_requested", "free_completed") if is_free else ("alloc",)
                if is_free:
                    addr, size, stack = live.pop(rng.randrange(len(live)))
                    free.append(addr)
                elif free:
                    addr, size, stack = free.pop(), rng.randrange(1, 1 << 22), None
                else:  # a segment for each place
                    addr, size, stack, at = at, rng.randrange(1, 1 << 22), None, at + (1 << 22)
                    actions = ("segment_alloc", "alloc")
                for action in actions:
                    w.pairs(action=action, addr=addr, size=1 << 22 if action == "segment_alloc" else size, stream=0, time_us=now)
                    w.text("frames")
                    if stack is None or action == "alloc":
                        i = rng.randrange(STACKS)
                        if stacks[i] is None:
                            stacks[i] = rng.sample(range(STACKS), DEPTH)
                        w.put(b"]")
                        stack = w.memo()
                        w.put(b"(")
                        for f in stacks[i]:
                            if f in frames:
                                w.put(frames[f])
                                continue
                            frames[f] = w.get(w.pairs(name=f"function_{f}", filename=f"/home/ann/file_{f % 97}.py", line=f))
                            w.put(b"u")
                        w.put(b"e")
                        if action == "alloc":
                            live.append((addr, size, stack))
                    else:
                        w.put(w.get(stack))
                    w.put(b"u")
                    n += 1
            w.put(b"e")
        w.put(b"eu.")
    return n


def timed(what, *command, code=0):
    """Runs it and prints its time on the clock and of the processor, and its peak of memory."""
    before = time.monotonic()
    p = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = p.stdout.read().decode(errors="replace")
    _, status, usage = os.wait4(p.pid, 0)
    seconds = time.monotonic() - before
    if os.waitstatus_to_exitcode(status) != code:
        sys.exit(f"{command}: {said[-2000:]}")
    print(f"{what:34} {seconds:7.2f} s, of the processor {usage.ru_utime + usage.ru_stime:7.2f} s, peak {usage.ru_maxrss / 1024:8.1f} MiB")


def main():
    program, mib = os.path.abspath(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1024
    with tempfile.TemporaryDirectory(prefix="tidemark-bench-") as folder:
        path, trace = pathlib.Path(folder) / "large.pickle", pathlib.Path(folder) / "large.db"
        n = write(path, mib << 20)
        print(f"{path.stat().st_size / (1 << 20):.0f} MiB, {n:,} events")
        timed("tidemark import", program, "import", str(path), "-o", str(trace))
        print(f"{'the trace':34} {trace.stat().st_size / (1 << 20):.0f} MiB")
        timed("first frame of tidemark tui", program, "tui", "--once", str(trace))
        timed("who was alive at the peak, by module", program, "trace", str(trace), "--at", "peak", "--by", "module")
        timed("Python: pickle.load alone", sys.executable, "-c", f"import pickle; pickle.load(open({str(path)!r}, 'rb'))")


if __name__ == "__main__":
    main()
