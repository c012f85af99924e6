# SPDX-License-Identifier: MIT
"""Bad input: a clear error with the right exit code, no crash, and no output file that is half there."""
import json
import os
import random
import struct
import unittest

import tidemark
from tidemark import SAMPLES, SHARED, Case


def field(number, payload):
    """A length-delimited protobuf field."""
    out, n = bytearray([number << 3 | 2]), len(payload)
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    return bytes(out) + bytes([n]) + payload


def varint(number, value):
    out = bytearray([number << 3])
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes(out) + bytes([value])


def tensor_type(elem, dims):
    shape = b"".join(field(1, varint(1, d)) for d in dims)
    return field(1, varint(1, elem) + field(2, shape))


def model(nodes, inputs=(), outputs=(), inits=()):
    """A small ONNX model, opset 13: nodes are (op, inputs, outputs, name)."""
    g = b""
    for op, ins, outs, name in nodes:
        g += field(1, b"".join(field(1, i.encode()) for i in ins) + b"".join(field(2, o.encode()) for o in outs)
                   + field(3, name.encode()) + field(4, op.encode()))
    g += field(2, b"g")
    for init in inits:
        g += field(5, init)
    for name, elem, dims in inputs:
        g += field(11, field(1, name.encode()) + field(2, tensor_type(elem, dims)))
    for name in outputs:
        g += field(12, field(1, name.encode()))
    return varint(1, 8) + field(7, g) + field(8, field(1, b"") + varint(2, 13))


def graph(**changes):
    doc = {"schema": "tidemark.graph", "version": 1, "name": "t", "opset": 13,
           "inputs": [{"name": "x", "dtype": "float32", "shape": [1, 4]}], "initializers": [],
           "nodes": [{"op": "Relu", "name": "r", "inputs": ["x"], "outputs": ["y"]}], "outputs": ["y"]}
    doc.update(changes)
    return json.dumps(doc)


class BadInput(Case):
    def bad(self, content, *says, args=("plan",)):
        path = self.dir / "bad.bin"
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        out = self.dir / "out.json"
        p = self.refused(3, *args, path, "-o", out, says=says)
        self.assertEqual(sorted(f.name for f in self.dir.iterdir()), ["bad.bin"], "an output file was left")
        return p

    def test_the_good_ones_are_good(self):
        """The makers of this file make valid input: what is refused below is refused for its fault alone."""
        path = self.dir / "m"
        path.write_bytes(model([("Relu", ["x"], ["y"], "r")], [("x", 1, [1, 4])], ["y"]))
        self.ok("compare", path)
        path.write_text(graph())
        self.ok("compare", path)

    def test_empty_random_truncated(self):
        self.bad(b"", "empty")
        self.bad(b"  \n ", "empty")
        rng = random.Random(7)
        for n in (1, 10, 1000, 100000):
            self.bad(bytes(rng.randrange(1, 256) for _ in range(n)))
        self.bad(graph()[:-40], "bad.bin")
        whole = model([("Relu", ["x"], ["y"], "r")], [("x", 1, [1, 4])], ["y"])
        for cut in range(1, len(whole)):
            self.bad(whole[:cut])

    def test_truncated_real_model(self):
        source = SHARED / "models" / "mnist-8" / "model.onnx"
        if not source.is_file():
            self.skipTest(f"{source} is not here")
        data = source.read_bytes()
        for k in range(1, 40):
            self.bad(data[:len(data) * k // 40], "bad.bin")

    def test_unknown_operator_and_dtype(self):
        self.bad(model([("Frobnicate", ["x"], ["y"], "node7")], [("x", 1, [1, 4])], ["y"]), "Frobnicate", "node7")
        self.bad(model([("Rleu", ["x"], ["y"], "node7")], [("x", 1, [1, 4])], ["y"]), "Rleu", "Relu")
        self.bad(model([("Relu", ["x"], ["y"], "r")], [("x", 99, [1, 4])], ["y"]), "x", "99")
        self.bad(graph(nodes=[{"op": "Frobnicate", "name": "node7", "inputs": ["x"], "outputs": ["y"]}]), "Frobnicate",
                 "node7")
        self.bad(graph(inputs=[{"name": "x", "dtype": "floaty", "shape": [1]}]), "floaty")

    def test_unknown_sizes_are_not_guessed(self):
        """S23-19: an open extent is an error that names the tensor; --shape settles it."""
        p = self.bad(graph(inputs=[{"name": "x", "dtype": "float32", "shape": ["batch", 4]}]), "x", "--shape")
        self.assertIn("batch", p.stderr)
        self.refused(3, "plan", SAMPLES / "dynamic_batch.json", says=["--shape"])
        self.ok("plan", SAMPLES / "dynamic_batch.json", "--shape", "x=8x64")
        self.refused(3, "plan", SAMPLES / "dynamic_batch.json", "--shape", "x=8x65")
        self.refused(3, "plan", SAMPLES / "dynamic_batch.json", "--shape", "nobody=8x64", says=["nobody", "x"])

    def test_inputs_without_a_size_are_named_up_to_four(self):
        for n in range(1, 7):
            names = [f"in{i}" for i in range(n)]
            p = self.bad(graph(inputs=[{"name": name, "dtype": "float32", "shape": ["N", 4]} for name in names],
                               nodes=[{"op": "Relu", "name": f"n{i}", "inputs": [name], "outputs": [f"y{i}"]}
                                      for i, name in enumerate(names)],
                               outputs=[f"y{i}" for i in range(n)]), "the size of graph input 'in0' is not known")
            (note,) = [line for line in p.stderr.split("\n") if line.startswith("note: ")]
            self.assertEqual([name for name in names if f"'{name}'" in note], names[:4], note)
            self.assertEqual(note.partition("; and ")[2], f"{n - 4} more" if n > 4 else "", note)
            self.assertEqual("(nor that of others)" in p.stderr, n > 1)

    def test_cycle_is_named(self):
        """S23-4: a cycle is refused and its nodes are named."""
        p = self.bad(graph(nodes=[{"op": "Add", "name": "first", "inputs": ["x", "b"], "outputs": ["a"]},
                                  {"op": "Relu", "name": "second", "inputs": ["a"], "outputs": ["b"]}], outputs=["b"]))
        self.assertIn("first", p.stderr)
        self.assertIn("second", p.stderr)

    def test_duplicates_and_dangling(self):
        relu = {"op": "Relu", "name": "r", "inputs": ["x"], "outputs": ["y"]}
        self.bad(graph(nodes=[relu, dict(relu, name="s")]), "y")
        self.bad(graph(outputs=["nowhere"]), "nowhere")
        self.bad(graph(nodes=[dict(relu, inputs=["ghost"])]), "ghost")
        self.bad(model([("Relu", ["x"], ["y"], "r"), ("Relu", ["x"], ["y"], "s")], [("x", 1, [4])], ["y"]), "y")

    def test_sizes_that_overflow_or_lie(self):
        """S28-22: byte counts are overflow-checked; a claim of 2 GB in a small file is found before memory is taken."""
        self.bad(graph(inputs=[{"name": "x", "dtype": "float32", "shape": [2**33, 2**33]}]), "x")
        init = varint(1, 2**29) + varint(2, 1) + field(8, b"w") + field(9, struct.pack("<4f", 1, 2, 3, 4))
        p = self.bad(model([("Add", ["x", "w"], ["y"], "a")], [("x", 1, [4])], ["y"], [init]), "w")
        self.assertIn("16", p.stderr)
        self.bad(graph(inputs=[{"name": "x", "dtype": "float32", "shape": [-3]}]), "x")

    def test_wrong_schema(self):
        self.bad(graph(schema="tidemark.other"), "tidemark.other")
        self.bad(graph(version=99), "99")
        self.bad(graph(nodez=[]), "nodez")
        self.bad('{"schema": "tidemark.plan", "version": 1}', "bad.bin")

    def test_bad_lists_of_lifetimes(self):
        """Line and column, or file and key; nothing of the file is taken and nothing is written."""
        head = "id,lower,upper,size"
        for text, *says in ((head, "lists no buffer"), (f"{head},colour\na,0,1,2,red\n", "bad.bin:1:21", "docs/lifetimes"),
                            (f"{head}\na,0,1\n", "bad.bin:2:1"), (f"{head}\na,0,1,x\n", "bad.bin:2:7", "'x'"),
                            (f"{head},gaps\na,0,9,8,3-\n", "bad.bin:2:11"), (f"{head},alias\na,0,9,8,b\n", "bad.bin:2:9"),
                            (f"{head},offset\na,0,9,8,64\nb,1,2,8,68\n", "'a'", "'b'"),
                            (f"{head}\na,0,1,9223372036854775807\nb,0,1,9223372036854775807\n", "2^63")):
            for args in (("plan",), ("export", "--to", "json", "--with-offsets")):
                self.bad(text, *says, args=args)
        doc = {"schema": "tidemark.lifetimes", "version": 1, "tensors": [
            {"name": "a", "size_bytes": 8, "begin": 0, "end": 4, "gaps": [{"begin": 1, "end": 2}]}]}
        self.bad(json.dumps(dict(doc, version=9)), "version 9")
        self.bad(json.dumps(doc)[:-9], "bad.bin:1:")
        for key, value, says in (("gaps", 3, "tensors[0].gaps"), ("gaps", [{"begin": 2, "end": 9}], "tensors[0]"),
                                 ("alias", {"of": "nobody"}, "nobody"), ("apart", -1, "tensors[0].apart"),
                                 ("fixed_offset", 1.5, "fraction"), ("point_bytes", [8], "tensors[0].point_bytes"),
                                 ("size_bytes", -8, "-8"), ("align_bytes", 3, "power of two"), ("kind", "Heap", "Heap")):
            with self.subTest(key=key):
                self.bad(json.dumps(dict(doc, tensors=[{**doc["tensors"][0], key: value}])), says)

    def test_trace_that_is_none(self):
        path = self.dir / "x.db"
        path.write_bytes(b"SQLite format 3\0" + b"\0" * 4096)
        self.refused(3, "tui", path, "--once", says=["x.db"])
        self.refused(3, "report", path, "-o", self.dir / "r.html", says=["x.db"])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["x.db"])

    def test_unwritable_trace(self):
        self.refused(8, "run", SAMPLES / "diamond.json", "-o", self.dir / "no" / "t.db", says=["t.db"])
        self.refused(3, "run", SAMPLES / "diamond.json", "--input-dir", self.dir / "nothing", says=["input_0.pb"])
        self.refused(3, "plan", self.dir / "missing.onnx", says=["missing.onnx"])

    def test_limits_and_allocators_that_are_none(self):
        graph_file = SAMPLES / "diamond.json"
        for command in ("run", "compare"):
            for limit in ("0", "-1", "much", "1e400", "99999999999999999999", ""):
                self.refused(2, command, graph_file, "--limit", limit, says=["--limit"])
            self.refused(2, command, graph_file, "--limit", says=["--limit"])
            for name in ("", "cpuu", "cpu:", "cpu:align=3", "cpu_caching:sizes=pow3", "arena", "pinned:x=1", "limit"):
                self.refused(2, command, graph_file, "--allocator", name, says=["--allocator", "cpu_caching"])
            p = self.refused(2, command, graph_file, "--allocator", "\x1b[31mred", says=["red"])
            self.assertNotIn("\x1b", p.stderr)
        p = self.refused(6, "run", graph_file, "--limit", "1", "-o", self.dir / "t.db", says=["1 B", "out of memory"])
        self.assertEqual(p.stdout, "")
        self.assertEqual([f.name for f in self.dir.iterdir()], ["t.db"], "what led to it was not kept")

    @unittest.skipIf(os.environ.get("TIDE_SANITIZERS"), "skipped: under sanitizers it is linked")
    def test_a_library_of_kernels_that_cannot_be_opened(self):
        """oneDNN is opened by the first kernel that wants it: without kernels nothing asks for it, with them words say
        what is wrong with it."""
        for major in range(10):
            (self.dir / f"libdnnl.so.{major}").touch()
        broken = {"LD_LIBRARY_PATH": str(self.dir)}
        self.refused(5, "run", SAMPLES / "lenet5.json", env=broken,
                     says=["oneDNN", "cannot be opened", "fc1", "file too short", "libdnnl"])
        (self.dir / "list.csv").write_text("id,lower,upper,size\na,0,1,64\n")
        p = tidemark.run("plan", self.dir / "list.csv", env={**broken, "LD_DEBUG": "files"})
        self.assertEqual(p.returncode, 0, p.stderr[-300:])
        self.assertIn("libsqlite3", p.stderr, "the loader does not tell")
        self.assertNotIn("dnnl", p.stderr)

    def test_failed_run_leaves_no_trace(self):
        """A run that fails half way removes what it had recorded."""
        path = self.dir / "g.json"
        path.write_text(graph(
            inputs=[{"name": "x", "dtype": "float32", "shape": [4]}, {"name": "i", "dtype": "int64", "shape": [1]}],
            initializers=[{"name": "five", "dtype": "int64", "shape": [1], "values": [5]}],
            nodes=[{"op": "Add", "name": "a", "inputs": ["i", "five"], "outputs": ["j"]},
                   {"op": "Gather", "name": "pick", "inputs": ["x", "j"], "outputs": ["y"]}]))
        self.refused(3, "run", path, "-o", self.dir / "t.db", says=["pick"])
        self.assertEqual([p.name for p in self.dir.iterdir()], ["g.json"])


if __name__ == "__main__":
    tidemark.main()
