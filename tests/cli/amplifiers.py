# SPDX-License-Identifier: MIT
"""A small file never costs much memory to plan: 64 MiB and 20 times the file, measured from outside, or it says what it
would need and stops.
"""
import json
import os
import subprocess
import sys
import unittest

import tidemark
from bad_input import field, model, tensor_type, varint
from tidemark import PROGRAM, SAMPLES, SHARED, Case

MIB = 1 << 20
GRAPH, NODE = 7, 1
KIND_INT, KIND_TENSOR, KIND_INTS = (b"\xa0\x01" + bytes([kind]) for kind in (2, 4, 7))  # field 20 of an attribute
UNSANITIZED = not os.environ.get("TIDE_SANITIZERS")


def node(op, ins, outs, attrs=b"", name=""):
    return field(NODE, b"".join(field(1, i.encode()) for i in ins) + b"".join(field(2, o.encode()) for o in outs) +
                 (field(3, name.encode()) if name else b"") + field(4, op.encode()) + attrs)


def ints(name, values):
    return field(5, field(1, name.encode()) + b"".join(varint(8, v) for v in values) + KIND_INTS)


def integer(name, value):
    return field(5, field(1, name.encode()) + varint(3, value) + KIND_INT)


def int64s(name, values):
    """An initializer."""
    return field(5, varint(1, len(values)) + varint(2, 7) + field(8, name.encode()) +
                 field(9, b"".join(v.to_bytes(8, "little") for v in values)))


def graph(body, outputs, elem=1):
    return varint(1, 7) + field(8, varint(2, 13)) + field(GRAPH, body + field(2, b"g") + b"".join(
        field(12, field(1, o.encode()) + field(2, field(1, varint(1, elem)))) for o in outputs))


def doubling(n):
    """The output of n Concats, each twice as long as the one before."""
    body = int64s("t0", list(range(16)))
    for i in range(n):
        body += node("Concat", [f"t{i}", f"t{i}"], [f"t{i + 1}"], integer("axis", 0))
    return graph(body, [f"t{n}"], 7)


def blown_up(op):
    """Some thousand times 64 MB of constants, out of 30 bytes each."""
    body = int64s("big", [4096, 4096]) + int64s("one", [1]) + int64s("zero", [0]) + int64s("many", [1 << 24])
    body += int64s("pair", [0, 1]) + int64s("square", [1, 1])
    outs = []
    for i in range(200):
        out = f"y{i}"
        outs.append(out)
        if op == "ConstantOfShape":
            body += node(op, ["big"], [out])
        elif op == "Expand":
            body += node(op, ["one", "big"], [out])
        elif op == "Tile":
            body += node(op, ["one", "many"], [out])
        elif op == "Range":
            for name, scalar in (("zero", "a"), ("many", "b"), ("one", "c")):
                body += node("Squeeze", [name], [f"{scalar}{i}"])
            body += node(op, [f"a{i}", f"b{i}", f"c{i}"], [out])
        elif op == "OneHot":
            body += node(op, ["zero", "many", "pair"], [out])
    return graph(body, outs, 1 if op == "ConstantOfShape" else 7)


def small_contents(n):
    """Each constant so small that its content would be made; all together are many."""
    body = int64s("k", [512])
    for i in range(n):
        body += node("ConstantOfShape", ["k"], [f"y{i}"])
    return graph(body, [f"y{i}" for i in range(n)])


def chain(n, name="{}", extra=b""):
    body = b"".join(node("Relu", [f"r{i}"], [f"r{i + 1}"], extra, name.format(i)) for i in range(n))
    body += field(11, field(1, b"r0") + field(2, tensor_type(1, (4, 4))))
    return graph(body, [f"r{n}"])


def wide(n):
    body = field(11, field(1, b"x") + field(2, tensor_type(1, (4, 4))))
    return graph(body + node("Concat", ["x"] * n, ["y"], integer("axis", 0)), ["y"])


HOSTILE = {
    "31 doublings": doubling(31),
    "200 times ConstantOfShape": blown_up("ConstantOfShape"),
    "200 times Expand": blown_up("Expand"),
    "200 times Tile": blown_up("Tile"),
    "200 times Range": blown_up("Range"),
    "200 times OneHot": blown_up("OneHot"),
    "20,000 small constants": small_contents(20000),
    "a million empty nodes": graph(field(NODE, b"") * 1_000_000, []),
    "10,000 attributes": chain(1, extra=b"".join(integer(f"a{i}", i) for i in range(10_000))),
    "a million integers in one": chain(1, extra=ints("pads", [1] * 1_000_000)),
    "10,000 inputs of one node": wide(10_000),
    "30,000 nodes": chain(30_000),
    "60,000 nodes": chain(60_000),
    "names of a megabyte": chain(4, name="n" * MIB + "{}"),
    "100,000 empty initializers": graph(field(5, b"") * 100_000, []),
    "100,000 empty outputs": graph(field(12, b"") * 100_000, []),
    "a million empty strings": graph(field(NODE, field(1, b"") * 1_000_000), []),
}


# Starts the program and waits: a process of its own, for the kernel counts into the peak of a program what the process
# was that it was started from.
STARTER = """
import os, sys
pid = os.fork()
if pid == 0:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
_, status, usage = os.wait4(pid, 0)
print(usage.ru_maxrss * 1024, os.waitstatus_to_exitcode(status), usage.ru_utime + usage.ru_stime)
"""


def peak_of(args):
    """(peak bytes as the kernel counted them, exit code, CPU seconds, what was said) of a run."""
    done = subprocess.run([sys.executable, "-S", "-E", "-c", STARTER, PROGRAM, *map(str, args)], capture_output=True,
                          text=True, errors="replace", env=tidemark.environment(), timeout=300)
    peak, code, cpu = done.stdout.split()
    return int(peak), int(code), float(cpu), done.stderr


class Amplifiers(Case):
    def hold(self, path, name):
        peak, code, cpu, said = peak_of(["plan", path])
        limit = 64 * MIB + 20 * os.path.getsize(path)
        told = f"{name}: {peak / MIB:.1f} of {limit / MIB:.1f} MiB, exit {code}, {cpu:.2f} CPU s: {said[:300]}"
        print(told.split(": ", 1)[0], told.split(": ", 1)[1][:70].replace("\n", " "), flush=True)
        self.assertIn(code, (0, 3, 6), told)
        self.assertLessEqual(peak, limit, told)
        if code == 6:
            self.assertRegex(said, r"(?m)^error: out of memory: .*\d", told)
            self.assertIn("--own-memory", said, told)
        return code

    @unittest.skipUnless(UNSANITIZED, "sanitizers take many times the memory")
    def test_hostile_files(self):
        for name, data in HOSTILE.items():
            with self.subTest(name):
                path = self.dir / "m.onnx"
                path.write_bytes(data)
                self.hold(path, name)

    @unittest.skipUnless(UNSANITIZED, "sanitizers take many times the memory")
    def test_graph_text(self):
        text = {"schema": "tidemark.graph", "version": 1, "name": "g", "inputs": [], "nodes": [
            {"name": f"n{i}", "op": "Add", "inputs": [f"w{i}", f"w{i}"], "outputs": [f"y{i}"]} for i in range(10)],
            "initializers": [{"name": f"w{i}", "dtype": "float32", "shape": [1 << 24], "fill": 1} for i in range(10)],
            "outputs": [f"y{i}" for i in range(10)]}
        path = self.dir / "g.json"
        path.write_text(json.dumps(text))
        self.hold(path, "640 MiB of fills")

    @unittest.skipUnless(UNSANITIZED, "sanitizers take many times the memory")
    def test_hostile_graph_texts(self):
        """Short words that become nodes, operands and entries of every order; what is within the limit is planned."""
        n = 200_000
        relu = lambda i, before: {"op": "Relu", "inputs": [before], "outputs": [f"a{i}"]}
        texts = {
            "a Concat of a million inputs": ([{"op": "Concat", "inputs": ["x"] * 1_000_000, "outputs": ["a0"],
                                               "attrs": {"axis": 0}}], 6),
            "wide": ([relu(i, "x") for i in range(1, n)] + [
                {"op": "Concat", "inputs": [f"a{i}" for i in range(1, n)], "outputs": ["a0"], "attrs": {"axis": 0}}], 6),
            "empty nodes": ([{}] * 300_000, 6),
            "numbers": ([{"op": "Relu", "inputs": ["x"], "outputs": ["a0"], "attrs": {"k": [1] * 1_000_000}}], None),
            "a chain": ([relu(0, "x")] + [relu(i, f"a{i - 1}") for i in range(1, n // 4)], 0),
        }
        for name, (nodes, code) in texts.items():
            with self.subTest(name):
                path = self.dir / "g.json"
                path.write_text(json.dumps({"schema": "tidemark.graph", "version": 1, "name": "g", "opset": 13,
                                            "inputs": [{"name": "x", "dtype": "float32", "shape": [4]}],
                                            "initializers": [], "nodes": nodes, "outputs": ["a0"]}, separators=(",", ":")))
                self.assertIn(self.hold(path, name), (code,) if code is not None else (0, 3, 6))

    @unittest.skipUnless(UNSANITIZED, "sanitizers take many times the memory")
    def test_real_models_are_planned(self):
        found = sorted(SAMPLES.glob("*.json")) + sorted(SHARED.glob("models/light-*/model.onnx"))
        for path in found:
            with self.subTest(path.name):
                self.assertIn(self.hold(path, f"{path.parent.name}/{path.name}"), (0, 3))

    def test_a_size_that_hangs_on_a_larger_constant_is_found(self):
        # 4000 ones, summed: the extent of what follows. Too large to be made at first.
        body = int64s("n", [4000]) + node("ConstantOfShape", ["n"], ["ones"], field(5, field(1, b"value") + field(
            5, varint(1, 1) + varint(2, 7) + field(9, (1).to_bytes(8, "little"))) + KIND_TENSOR))
        body += node("ReduceSum", ["ones"], ["sum"], integer("keepdims", 1)) + node("ConstantOfShape", ["sum"], ["y"])
        body += field(11, field(1, b"x") + field(2, tensor_type(1, (4000,)))) + node("Add", ["x", "y"], ["z"])
        path = self.dir / "m.onnx"
        path.write_bytes(graph(body, ["z"]))
        self.ok("plan", path)

    def test_the_limit_can_be_set(self):
        path = self.dir / "m.onnx"
        path.write_bytes(chain(2000))
        self.ok("plan", path)
        self.refused(6, "plan", path, "--own-memory", "1MiB", says=["out of memory", "MiB"])

    def test_a_plan_for_sizes_is_the_plan_of_a_run(self):
        for name in ("resnet18.json", "mobilenet_v2.json", "unet.json"):
            with self.subTest(name):
                plan = self.dir / "plan.json"
                self.ok("plan", SAMPLES / name, "-o", plan)
                self.ok("run", "-n", "1", "--plan", plan, SAMPLES / name)
                planned = self.json("plan", SAMPLES / name)["plans"][0]["bytes"]
                self.assertEqual(self.json("compare", SAMPLES / name)["bytes"], planned)


if __name__ == "__main__":
    tidemark.main()
