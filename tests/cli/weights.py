# SPDX-License-Identifier: MIT
"""Weights that lie in a file: used where they are, or copied, and never there twice. What the process takes is asked of
the kernel (the most pages it had, as wait4 tells it), and not of the program."""
import os
import random
import struct
import subprocess

import tidemark
from bad_input import field, tensor_type, varint
from tidemark import PROGRAM, Case, ask, environment

MIB = 1 << 20
PLACES = ("aligned", "odd", "external", "list", "folded")


def node(op, ins, out, *attributes):
    return field(1, b"".join(field(1, i.encode()) for i in ins) + field(2, out.encode()) + field(3, out.encode()) +
                 field(4, op.encode()) + b"".join(field(5, a) for a in attributes))


def value(number, name, dims):
    return field(number, field(1, name.encode()) + field(2, tensor_type(1, dims)))


def key(number, size):
    """The begin of a field of that size."""
    return varint(number, size).replace(bytes([number << 3]), bytes([number << 3 | 2]), 1)


def model(pad, nodes, k, n, *initializers, raw_bytes=0):
    """x [1 x k] MatMul w [k x n] -> y. `pad` bytes move all that follows. The last initializer lacks its last raw_bytes,
    which come behind the model."""
    graph = nodes + node("MatMul", ["x", "w"], "y") + field(2, b"g") + value(11, "x", [1, k]) + value(12, "y", [1, n])
    for i in initializers:
        graph += key(5, len(i) + (raw_bytes if i is initializers[-1] else 0)) + i
    return (varint(1, 8) + field(2, b"p" * pad) + field(8, field(1, b"") + varint(2, 17)) +
            key(7, len(graph) + raw_bytes) + graph)


def put(path, content, raw_bytes, numbers):
    """Behind the content zeros as a hole of the file, or these numbers."""
    with path.open("wb") as f:
        f.write(content)
        if numbers is None:
            f.truncate(len(content) + raw_bytes)
        else:
            f.write(struct.pack(f"<{len(numbers)}f", *numbers))


def write(folder, place, k, n, numbers=None):
    """A model whose weight is at `place`; its numbers are zeros (holes of the file) where none are given."""
    path, raw_bytes = folder / f"{place}.onnx", 4 * k * n
    head = varint(1, k) + varint(1, n) + varint(2, 1) + field(8, b"w")
    if place == "external":
        put(folder / "w.bin", b"", raw_bytes, numbers)
        keys = {"location": "w.bin", "offset": "0", "length": str(raw_bytes)}
        head += b"".join(field(13, field(1, a.encode()) + field(2, b.encode())) for a, b in keys.items()) + varint(14, 1)
        path.write_bytes(model(0, b"", k, n, head))
    elif place == "folded":
        assert numbers is None
        shape = varint(1, 2) + varint(2, 7) + field(8, b"s") + field(9, struct.pack("<qq", k, n))
        number = varint(1, 1) + varint(2, 1) + field(9, struct.pack("<f", 0.5))
        fill = node("ConstantOfShape", ["s"], "w", field(1, b"value") + field(5, number))
        path.write_bytes(model(0, fill, k, n, shape))
    else:
        for pad in range(4):
            data = model(pad, b"", k, n, head + key(4 if place == "list" else 9, raw_bytes),
                         raw_bytes=raw_bytes)
            if (len(data) % 4 == 0) == (place != "odd"):
                break
        put(path, data, raw_bytes, numbers)
    return path


def run_measured(*args):
    """The finished process, and the most that it had in memory, as the kernel counts it."""
    done = subprocess.run([os.environ["TIDE_PEAK_OF"], PROGRAM, *map(str, args)], capture_output=True, text=True,
                          env=environment(), check=False)
    return done, int(done.stderr.splitlines()[-1])


def peak_bytes(*args):
    """Of a command that must succeed."""
    done, peak = run_measured(*args)
    assert done.returncode == 0, (args, done.stderr)
    return peak


def is_mapped(process, name):
    with open(f"/proc/{process.pid}/maps", encoding="utf-8") as maps:
        return name in maps.read()


class Weights(Case):
    def test_the_same_numbers(self):
        """Wherever they lie, and however they are held: what is computed is what Python computes."""
        k, n, draw = 128, 256, random.Random(7)
        w, x = [draw.uniform(-1, 1) for _ in range(k * n)], [draw.uniform(-1, 1) for _ in range(k)]
        w = list(struct.unpack(f"<{k * n}f", struct.pack(f"<{k * n}f", *w)))
        y = [sum(x[i] * w[i * n + j] for i in range(k)) for j in range(n)]
        data = self.dir / "data"
        data.mkdir()
        for name, numbers in (("input_0.pb", x), ("output_0.pb", y)):
            (data / name).write_bytes(varint(1, 1) + varint(1, len(numbers)) + varint(2, 1) +
                                      field(9, struct.pack(f"<{len(numbers)}f", *numbers)))
        for place in PLACES:
            if place == "folded":
                continue
            path = write(self.dir, place, k, n, w)
            for how in ("auto", "map", "copy"):
                doc = self.json("compare", path, "--weights", how, "--reference", data)
                self.assertTrue(all(o["pass"] for o in doc["outputs"]["reference"]), (place, how))
                self.assertTrue(doc["outputs"]["bitwise_equal"])
                self.assertTrue(all(kind["difference_bytes"] == 0 for kind in doc["kinds"]), (place, how, doc["kinds"]))

    def test_who_holds_them(self):
        """A block in the trace, with exactly the bytes of the file, of an allocator of its own; copied: as any other."""
        for place, stays in (("aligned", True), ("odd", False), ("list", True), ("external", True), ("folded", False)):
            path, trace = write(self.dir, place, 129, 255), self.dir / "t.db"
            for how in ("auto", "copy"):
                trace.unlink(missing_ok=True)
                self.ok("run", "-n", 2, "--weights", how, "-o", trace, path)
                rows = ask(trace, "SELECT allocator, requested_bytes, reserved_bytes FROM blocks WHERE name = 'w'")
                mapped = stays and how == "auto"
                want = [("mapped", 4 * 129 * 255, 4 * 129 * 255)] if mapped else [("cpu", 131584, 131584)]
                self.assertEqual(rows, want, (place, how))
                self.ok("trace", trace, "--check")
                plan = self.json("plan", "--weights", how, path)
                tensor = next(t for t in plan["tensors"] if t["name"] == "w")
                self.assertEqual((tensor["size_bytes"], tensor["align_bytes"]), (4 * 129 * 255, 4 if mapped else 256))

    def test_lists_of_numbers(self):
        """A list of floats is the file's bytes where it is one run of them; however else it is written, the numbers are the
        same. What contradicts itself is refused."""
        k, n, draw = 128, 256, random.Random(9)
        w = struct.unpack(f"<{k * n}f", struct.pack(f"<{k * n}f", *(draw.uniform(-1, 1) for _ in range(k * n))))
        raw, x = struct.pack(f"<{k * n}f", *w), [1.0] * k
        y = [sum(w[i * n + j] for i in range(k)) for j in range(n)]
        data = self.dir / "data"
        data.mkdir()
        for name, numbers in (("input_0.pb", x), ("output_0.pb", y)):
            (data / name).write_bytes(varint(1, 1) + varint(1, len(numbers)) + varint(2, 1) +
                                      field(9, struct.pack(f"<{len(numbers)}f", *numbers)))
        dims, kind, name = varint(1, k) + varint(1, n), varint(2, 1), field(8, b"w")
        cut = len(raw) // 2
        one_by_one = b"".join(bytes([4 << 3 | 5]) + raw[i:i + 4] for i in range(0, len(raw), 4))
        doubles = struct.pack(f"<{k * n}d", *w)
        good = {"one run": dims + kind + name + field(4, raw), "the type last": dims + field(4, raw) + name + kind,
                "two runs": dims + kind + name + field(4, raw[:cut]) + field(4, raw[cut:]), "one by one": dims + kind + name + one_by_one,
                "a run and single ones": dims + kind + name + field(4, raw[:-4]) + bytes([4 << 3 | 5]) + raw[-4:],
                "an empty run too": dims + kind + name + field(4, b"") + field(4, raw)}
        path = self.dir / "m.onnx"
        for how, tensor in good.items():
            path.write_bytes(model(0, b"", k, n, tensor))
            doc = self.json("compare", path, "--reference", data)
            self.assertTrue(all(o["pass"] for o in doc["outputs"]["reference"]), how)
        bad = {"doubles in floats": dims + varint(2, 11) + name + field(4, raw), "floats in doubles": dims + kind + name + field(10, doubles),
               "half a number": dims + kind + name + field(4, raw[:-2]), "too few": dims + kind + name + field(4, raw[:-4]),
               "no type": dims + name + field(4, raw), "integers": dims + varint(2, 6) + name + field(4, raw)}
        for how, tensor in bad.items():
            path.write_bytes(model(0, b"", k, n, tensor))
            self.refused(3, "plan", path, says=["m.onnx"])
            self.refused(3, "run", path)

    def test_they_are_there_once(self):
        """64 MiB: planning reads none of them, a run holds them once, whether they are mapped, copied or made."""
        tiny = write(self.dir, "odd", 16, 16)
        base_plan, base_run = peak_bytes("plan", tiny), peak_bytes("run", "-n", 1, tiny)
        for place in PLACES:
            path = write(self.dir, place, 4096, 4096)
            self.assertLess(peak_bytes("plan", path), base_plan + 4 * MIB, place)
            for how in ("auto", "copy"):
                taken = peak_bytes("run", "-n", 2, "--weights", how, path) - base_run
                self.assertLess(taken, 64 * MIB + 10 * MIB, (place, how))
                self.assertGreater(taken, 62 * MIB, (place, how))
            path.unlink()

    def test_many_in_a_large_file(self):
        """Small ones between large ones: whatever page of the file is touched, with what comes along of its huge page,
        goes again."""
        tiny = write(self.dir, "odd", 16, 16)
        base = peak_bytes("plan", tiny)
        parts = [varint(1, 16) + varint(1, 16) + varint(2, 1) + field(8, b"w") + field(9, bytes(1024))]
        for i in range(24):
            parts.append(varint(1, 100) + varint(2, 1) + field(8, b"s%d" % i) + field(9, bytes(400)))
            parts.append(varint(1, 1 << 20) + varint(2, 1) + field(8, b"l%d" % i) + field(9, bytes(1 << 22)))
        path = self.dir / "many.onnx"
        path.write_bytes(model(0, b"", 16, 16, *parts))
        self.assertLess(peak_bytes("plan", path), base + 8 * MIB)

    def test_what_does_not_stay_is_said(self):
        mapped, odd = write(self.dir, "aligned", 128, 256), write(self.dir, "odd", 128, 256)
        self.assertEqual(self.ok("plan", "--weights", "map", mapped).stderr, "")
        self.assertEqual(self.ok("plan", odd).stderr, "")
        self.assertIn("note: 0 of 1 weights, 0 B of 128.00 KiB, stay in their file",
                      self.ok("plan", "--weights", "map", odd).stderr)
        self.refused(2, "plan", "--weights", "maybe", odd, says=["'maybe'", "auto, map and copy"])

    def test_a_limit_counts_them(self):
        path = write(self.dir, "aligned", 1024, 1024)
        self.ok("run", "-n", 1, "--limit", "5MiB", path)
        self.assertIn("'w'", self.refused(6, "run", "-n", 1, "--limit", "4MB", path).stderr)

    def test_no_leak(self):
        self.ok("run", "--leak-check", write(self.dir, "aligned", 128, 256))

    def test_a_file_that_is_cut_short(self):
        """While it is used: words and an exit code, no fault of the program."""
        path = write(self.dir, "aligned", 4096, 1024)
        p = self.start("run", "-n", 10000000, path)
        tidemark.until(lambda: is_mapped(p, path.name))
        os.truncate(path, 8192)
        _, err = p.communicate(timeout=60)
        self.assertEqual(p.returncode, 3, err)
        self.assertTrue(err.startswith("error: a file that is in use was cut short"), err)

    def test_a_file_that_is_replaced(self):
        """A new file of the same name changes nothing for a run that goes on."""
        path = write(self.dir, "aligned", 4096, 1024)
        p = self.start("run", "-n", 2000, path)
        tidemark.until(lambda: is_mapped(p, path.name))
        other = self.dir / "other"
        other.write_bytes(b"something else")
        other.rename(path)
        out, err = p.communicate(timeout=120)
        self.assertEqual((p.returncode, err), (0, ""))


if __name__ == "__main__":
    tidemark.main()
