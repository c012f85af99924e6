# SPDX-License-Identifier: MIT
"""Models and plans of other compilers as lists of lifetimes: files that are written here by the rules of their formats, and
every figure of them reckoned anew in Python."""
import random
import struct
import unittest

import flatbuffer_file as fb
import tidemark
from tidemark import Case

LITE_BITS = {fb.FLOAT32: 32, fb.INT32: 32, fb.UINT8: 8, fb.INT64: 64, fb.INT8: 8, fb.INT4: 4, fb.INT2: 2}


def product(extents):
    n = 1
    for extent in extents:
        n *= extent
    return n


def up(n, align):
    return -(-n // align) * align


def live_sum(rows, align=16):
    """The most bytes that are alive at one step, of (begin, end, bytes)."""
    steps = {begin for begin, _, _ in rows}
    return max((sum(up(size, align) for begin, end, size in rows if begin <= step < end) for step in steps), default=0)


class Lists(Case):
    def write(self, name, data):
        path = self.dir / name
        path.write_bytes(data)
        return path

    def table(self, path, *args):
        """(document of the list, notes)"""
        p = self.ok("export", path, "--to", "json", *args)
        return tidemark.json.loads(p.stdout), p.stderr

    def rows(self, doc):
        """{name: (begin, end, bytes)} of what is planned."""
        return {t["name"]: (t["begin"], t["end"], t["size_bytes"]) for t in doc["tensors"] if not t["persistent"]}

    def kept(self, doc):
        """{name: (kind, role, bytes)} of what is not."""
        return {t["name"]: (t["kind"], t["role"], t["size_bytes"]) for t in doc["tensors"] if t["persistent"]}

    def inside(self, doc):
        return {t["name"]: (t["alias"]["of"], t["alias"]["offset"]) for t in doc["tensors"] if "alias" in t}

    def every_cut(self, data, ending, stride=1):
        """A file that ends early is refused, and nothing worse, unless what is missing is of no matter."""
        whole = self.table(self.write("whole" + ending, data))[0]
        for n in range(0, len(data), stride):
            p = tidemark.run("export", self.write("cut" + ending, data[:n]), "--to", "json")
            if p.returncode == 0:
                self.assertEqual({**tidemark.json.loads(p.stdout), "model": ""}, {**whole, "model": ""}, n)
            else:
                self.assertEqual(p.returncode, 3, p.stderr)


class Tflite(Lists):
    """TensorFlow Lite."""

    def a_model(self):
        t = fb.lite_tensor
        tensors = [t("in", [1, 4, 4, 2], fb.UINT8), t("w", [2, 2], buffer=1), t("same w", [2, 2], buffer=1),
                   t("b", [3], fb.INT32, buffer=2), t("state", [5], fb.INT8, variable=True), t("a", [7, 3], fb.INT4, signature=[-1, 3]),
                   t("mid", [9], fb.INT8), t("", [10], fb.INT64), t("a", [2, 5], fb.INT2), t("text", [1], fb.STRING),
                   t("unused", [1000]), t("none", [0, 3]), t("out", [], fb.FLOAT32)]
        ops = [fb.lite_op(0, [0, 1, 3], [5], intermediates=[6]), fb.lite_op(1, [5, 2, -1, 4], [7, 8, 9]), fb.lite_op(2, [7, 9, 11], [12]),
               fb.lite_op(2, [8], [11])]
        return fb.lite_model([fb.CONV_2D, fb.lite_code(fb.CUSTOM, "My Op"), fb.RELU], [fb.lite_graph(tensors, [0], [12], ops)],
                             [b"", bytes(16), bytes(12)])

    def test_one_of_each(self):
        doc, notes = self.table(self.write("a model.tflite", self.a_model()))
        self.assertEqual(doc["model"], "a model")
        self.assertEqual(doc["order"], ["CONV_2D.0", "My Op.1", "RELU.2", "RELU.3"])
        self.assertEqual(self.rows(doc), {"in": (0, 1, 32), "a": (0, 2, 11), "mid": (0, 1, 9), "tensor 7": (1, 3, 80), "a.2": (1, 4, 3),
                                          "out": (2, 4, 4)})
        self.assertEqual(self.kept(doc), {"w": ("Persistent", "weight", 16), "same w": ("Persistent", "weight", 0),
                                          "b": ("Persistent", "weight", 12), "state": ("Persistent", "intermediate", 5),
                                          "unused": ("Persistent", "intermediate", 0), "none": ("Persistent", "intermediate", 0)})
        self.assertEqual(doc["dynamic"], ["text"])
        roles = {t["name"]: t["role"] for t in doc["tensors"]}
        self.assertEqual((roles["in"], roles["out"], roles["a"]), ("input", "output", "intermediate"))
        # In the order of the file, each of them but what is sized while running.
        self.assertEqual([t["name"] for t in doc["tensors"]], ["in", "w", "same w", "b", "state", "a", "mid", "tensor 7", "a.2", "unused",
                                                               "none", "out"])
        self.assertEqual({t["align_bytes"] for t in doc["tensors"]}, {16})
        self.assertNotIn("given_plan_bytes", doc)
        self.assertIn("1 tensors have an open extent", notes)
        self.assertIn("1 weights have the bytes of another one", notes)
        plan = self.json("plan", self.dir / "a model.tflite")["plans"][0]
        self.assertEqual(plan["lower_bound_bytes"], live_sum(self.rows(doc).values()))
        self.assertEqual(plan["naive_bytes"], sum(up(size, 16) for _, _, size in self.rows(doc).values()))

    def test_random_models(self):
        for seed in range(40):
            rng = random.Random(seed)
            n = rng.randrange(1, 40)
            types = rng.choices(list(LITE_BITS), k=n)
            shapes = [[rng.randrange(0 if rng.random() < 0.05 else 1, 9) for _ in range(rng.randrange(4))] for _ in range(n)]
            made, ops, first, last = [0], [], {0: 0}, {0: 0}
            outputs = rng.sample(range(n), rng.randrange(1, n + 1))
            step = 0
            left = list(range(1, n))
            while left:
                n_out = rng.randrange(1, 4)
                out, left = left[:n_out], left[n_out:]
                reads = rng.choices(made, k=rng.randrange(1, 4))
                ops.append(fb.lite_op(0, reads, out))
                for k in out:
                    first[k] = last[k] = step
                for k in reads:
                    last[k] = step
                made += out
                step += 1
            n_steps = max(step, 1)
            for k in outputs:
                last[k] = n_steps - 1
            path = self.write("m.tflite", fb.lite_model([fb.ADD], [fb.lite_graph(
                [fb.lite_tensor(f"t{k}", shapes[k], types[k]) for k in range(n)], [0], outputs, ops)]))
            doc, _ = self.table(path)
            bytes_of = {k: (product(shapes[k]) * LITE_BITS[types[k]] + 7) // 8 for k in range(n)}
            want = {f"t{k}": (first[k], last[k] + 1, bytes_of[k]) for k in range(n) if bytes_of[k] > 0}
            self.assertEqual(self.rows(doc), want, seed)
            self.assertEqual(doc["n_steps"], n_steps)
            plan = self.json("plan", path)["plans"][0]
            self.assertEqual(plan["lower_bound_bytes"], live_sum(want.values()), seed)

    def bodies(self, caller, bodies, second=False, more=()):
        """A model whose second operator calls two subgraphs: of two operators and of one."""
        def t(*names):
            return [fb.lite_tensor(name, [16], fb.INT8) for name in names]
        main = fb.lite_graph(t("x", "y", "z", "out"), [0], [3],
                             [fb.lite_op(0, [0], [1]), fb.lite_op(1, [1, 0], [2], bodies=bodies, second=second), fb.lite_op(0, [2], [3]),
                              *more])
        one = fb.lite_graph(t("p", "q", "r"), [0], [2], [fb.lite_op(0, [0], [1]), fb.lite_op(0, [1], [2])], name="one")
        two = fb.lite_graph(t("p", "q"), [0], [1], [fb.lite_op(0, [0], [1])])
        return fb.lite_model([fb.RELU, caller], [main, one, two])

    def test_if(self):
        doc, notes = self.table(self.write("if.tflite", self.bodies(fb.IF, {0: 1, 1: 2})))
        self.assertEqual(doc["order"], ["RELU.0", "IF.1", "one/RELU.0", "one/RELU.1", "subgraph 2/RELU.0", "RELU.2"])
        self.assertEqual(self.rows(doc), {"x": (0, 5, 16), "y": (0, 5, 16), "z": (1, 6, 16), "out": (5, 6, 16),
                                          "one/p": (2, 3, 16), "one/q": (2, 4, 16), "one/r": (3, 4, 16),
                                          "subgraph 2/p": (4, 5, 16), "subgraph 2/q": (4, 5, 16)})
        self.assertEqual(doc["regions"], [{"kind": "then", "open": 1, "begin": 2, "end": 4}, {"kind": "else", "open": 1, "begin": 4, "end": 5}])
        self.assertNotIn("left out", notes)

    def test_if_in_if(self):
        t = [fb.lite_tensor("t", [1])]
        def call(then, other):
            return fb.lite_op(0, [0], [0], bodies={0: then, 1: other})
        add = fb.lite_op(1, [0], [0])
        graphs = [fb.lite_graph(t, [0], [0], ops) for ops in ([call(1, 2)], [add, call(3, 2)], [add, add], [add])]
        doc, _ = self.table(self.write("m.tflite", fb.lite_model([fb.IF, fb.ADD], graphs)))
        self.assertEqual([(r["kind"], r["open"], r["begin"], r["end"]) for r in doc["regions"]],
                         [("then", 0, 1, 6), ("else", 0, 6, 8), ("then", 2, 3, 4), ("else", 2, 4, 6)])
        # Read back as a list: the regions hold.
        self.ok("plan", self.write("l.json", tidemark.json.dumps(doc).encode()))

    def test_while(self):
        for caller, second in ((fb.WHILE, False), (fb.STABLEHLO_WHILE, True)):
            doc, _ = self.table(self.write("while.tflite", self.bodies(caller, {0: 1, 1: 2}, second)))
            self.assertEqual(self.rows(doc)["z"], (1, 6, 16))
            self.assertEqual(doc["regions"], [{"kind": "loop", "open": 1, "begin": 2, "end": 5}])

    def test_call(self):
        for caller, slots, second in ((fb.CALL, {0: 1}, False), (fb.CALL_ONCE, {0: 1}, False), (fb.STABLEHLO_COMPOSITE, {1: 1}, True)):
            # Called twice: what lies in the subgraph stays from the first call to the last.
            again = fb.lite_op(1, [3], [3], bodies=slots, second=second)
            doc, notes = self.table(self.write("call.tflite", self.bodies(caller, slots, second, [again])))
            self.assertEqual(len(doc["order"]), 8)
            self.assertEqual(self.rows(doc), {"x": (0, 4, 16), "y": (0, 4, 16), "z": (1, 5, 16), "out": (4, 8, 16),
                                              "one/p": (2, 7, 16), "one/q": (2, 8, 16), "one/r": (3, 8, 16)})
            self.assertNotIn("regions", doc)
            self.assertIn("1 of 3 subgraphs are not called", notes)

    def test_bodies_without_steps(self):
        empty = fb.lite_graph([fb.lite_tensor("p", [3])], [0], [0], [])
        main = fb.lite_graph([fb.lite_tensor("x", [1]), fb.lite_tensor("y", [1])], [0], [1], [fb.lite_op(0, [0], [1], bodies={0: 1, 1: 1})])
        for caller in (fb.IF, fb.WHILE):
            doc, _ = self.table(self.write("m.tflite", fb.lite_model([caller], [main, empty])))
            self.assertEqual(self.rows(doc), {"x": (0, 1, 4), "y": (0, 1, 4), "subgraph 1/p": (0, 1, 12)})
            self.assertNotIn("regions", doc)
        doc, _ = self.table(self.write("m.tflite", fb.lite_model([], [empty])))
        self.assertEqual((self.rows(doc), doc["n_steps"], doc["order"]), ({"p": (0, 1, 12)}, 1, []))
        doc, _ = self.table(self.write("m.tflite", fb.lite_model([], [fb.lite_graph([], [], [], [])], [])))
        self.assertEqual((doc["tensors"], doc["n_steps"]), ([], 1))

    def test_subgraphs_of_subgraphs(self):
        """Each calls the next one twice; a circle, and what would never end, are refused."""
        def chain(n, last, operands=(0,)):
            tensors = [fb.lite_tensor("t", [1])]
            call = [fb.lite_op(0, operands, operands, bodies={0: k}) for k in range(n)]
            return fb.lite_model([fb.CALL, fb.ADD], [fb.lite_graph(tensors, [0], [0], [call[k + 1]] * 2) for k in range(n - 1)]
                                 + [fb.lite_graph(tensors, [0], [0], last)])
        doc, _ = self.table(self.write("m.tflite", chain(5, [fb.lite_op(1, [0], [0])])))
        self.assertEqual(doc["n_steps"], 2 + 4 + 8 + 16 + 16)
        self.refused(3, "plan", self.write("m.tflite", chain(3, [fb.lite_op(0, [0], [0], bodies={0: 1})])), says=["calls itself"])
        self.refused(3, "plan", self.write("m.tflite", chain(60, [fb.lite_op(1, [0], [0])])), says=["again and again"])
        self.refused(3, "plan", self.write("m.tflite", chain(60, [], ())), says=["1048576 steps"])
        self.refused(3, "plan", self.write("m.tflite", chain(100, [])), says=["more than 64 subgraphs"])

    def test_own_plan(self):
        """What `export --to tflm` writes, put into the model: its own plan is then ours."""
        tensors = [fb.lite_tensor(f"t{k}", [10 * k + 8], fb.INT8, variable=k == 5) for k in range(6)]
        graph = fb.lite_graph(tensors, [0], [4], [fb.lite_op(0, [k], [k + 1]) for k in range(4)])
        path = self.write("m.tflite", fb.lite_model([fb.RELU], [graph]))
        self.ok("export", path, "--to", "tflm", "-o", self.dir / "plan.bin")
        offsets = (self.dir / "plan.bin").read_bytes()
        self.assertEqual(struct.unpack_from("<3i", offsets), (1, 0, 6))
        plan = self.json("plan", path)["plans"][0]["bytes"]

        def with_offsets(data):
            return self.write("m.tflite", fb.lite_model([fb.RELU], [graph], [b"", data], [("other", 0), ("OfflineMemoryAllocation", 1)]))
        doc, notes = self.table(with_offsets(offsets))
        self.assertEqual((doc["given_plan_bytes"], self.inside(doc), notes), (plan, {}, ""))
        # A worse one: 16 bytes above all.
        worse = list(struct.unpack("<9i", offsets))
        worse[3:8] = [x + 16 for x in worse[3:8]]
        path = with_offsets(struct.pack("<9i", *worse))
        out = self.ok("plan", path).stdout
        self.assertIn(f"Plan in the File: {(plan + 16) / 1024:.2f} KiB (this one: {100 * (plan / (plan + 16) - 1):.2f}%)", out)
        self.assertIn(f"The plan in the file takes {plan + 16} bytes.", self.ok("plan", "--all", path).stdout)
        self.assertEqual(self.json("plan", path)["given_plan_bytes"], plan + 16)
        # It is in a plan's file and in a list's, and is read back.
        for form, args in (("plan.json", ["plan", path, "-o"]), ("list.json", ["export", path, "--to", "json", "-o"])):
            self.ok(*args, self.dir / form)
            self.assertIn("Plan in the File", self.ok("plan", self.dir / form).stdout)
        # One is placed when the model starts: what the whole needs is not known.
        doc, notes = self.table(with_offsets(struct.pack("<9i", 1, 0, 6, 0, 32, -1, 64, 128, -1)))
        self.assertNotIn("given_plan_bytes", doc)
        self.assertIn("no place for 1 of 5 tensors", notes)
        # A variable with a place is planned like the others, for all steps.
        doc, _ = self.table(with_offsets(struct.pack("<9i", 1, 0, 6, 0, 32, 0, 32, 0, 256)))
        self.assertEqual((self.rows(doc)["t5"], doc["given_plan_bytes"]), ((0, 4, 58), up(256 + 58, 16)))
        for data, says in ((struct.pack("<8i", 1, 0, 5, 0, 0, 0, 0, 0), "for 6 tensors"), (b"", "for 6 tensors"), (bytes(12), "for 6 tensors"),
                           (struct.pack("<9i", 1, 0, 6, 0, -2, 0, 0, 0, 0), "the offset -2"), (offsets[:-4], "for 6 tensors")):
            self.refused(3, "plan", with_offsets(data), says=[says])

    def test_tensors_in_each_other(self):
        """As models for Ethos-U have them: one scratch tensor, in which the others lie by their offsets."""
        tensors = [fb.lite_tensor(name, [size], fb.INT8) for name, size in (("in", 100), ("scratch", 1000), ("out", 50), ("beside", 64),
                                                                            ("half in", 200))]
        graph = fb.lite_graph(tensors, [0], [2], [fb.lite_op(0, [0, 1], [2, 3, 4])])
        offsets = struct.pack("<8i", 1, 0, 5, 0, 0, 512, 1008, 900)
        doc, notes = self.table(self.write("m.tflite", fb.lite_model([fb.lite_code(fb.CUSTOM, "ethos-u")], [graph], [b"", offsets],
                                                                     [("OfflineMemoryAllocation", 1)])))
        self.assertEqual(self.inside(doc), {"in": ("scratch", 0), "out": ("scratch", 512)})
        self.assertIn("1 tensors overlap another one in part", notes)
        self.assertIn("1 tensors are read and made by no step before", notes)
        self.assertEqual(doc["given_plan_bytes"], up(900 + 200, 16))
        self.assertEqual(self.json("plan", self.dir / "m.tflite")["plans"][0]["bytes"], 1008 + 64 + 208)

    def test_data_outside(self):
        """Of a file of more than 2 GiB the bytes of buffers lie behind the flatbuffer, or in another file."""
        def model(offset, size):
            return fb.lite_model([fb.ADD], [fb.lite_graph([fb.lite_tensor("w", [4], buffer=1), fb.lite_tensor("e", [6], f10=fb.u32(3)),
                                                           fb.lite_tensor("out", [1])], [], [2], [fb.lite_op(0, [0, 1], [2])])],
                                 [b"", {1: fb.u64(offset), 2: fb.u64(size)}])
        data = model(1000, 24)
        self.assertLess(len(data), 1000)
        doc, _ = self.table(self.write("m.tflite", data + bytes(1024 - len(data))))
        self.assertEqual(self.kept(doc), {"w": ("Persistent", "weight", 24), "e": ("Persistent", "weight", 24)})
        for offset, size in ((1000, 25), (1025, 0), (1 << 63, 1 << 63), ((1 << 64) - 1, 2)):
            self.refused(3, "plan", self.write("m.tflite", model(offset, size).ljust(1024, b"\0")), says=["cut or damaged"])

    def test_refused(self):
        t, op, graph = fb.lite_tensor, fb.lite_op, fb.lite_graph

        def model(tensors=None, ops=None, codes=(fb.ADD,), ends=((0,), (1,)), buffers=(b"",), graphs=None):
            tensors = tensors or [t("x", [4]), t("y", [4])]
            return fb.lite_model(codes, graphs if graphs is not None else [graph(tensors, *ends, ops or [op(0, [0], [1])])], buffers)
        huge = [1 << 30] * 3
        for data, says in (
                (model(graphs=[]), "no subgraph"), (model([t("x", [-1]), t("y", [4])]), "extent -1"), (model([t("x", huge), t("y", [4])]), "'x' is too"),
                (model([t("x", [1 << 30, 1 << 29], fb.INT8), t("y", [4])]), None), (model([t("x", [1], 23), t("y", [4])]), "type 23"),
                (model([t("x", [1], buffer=1), t("y", [4])]), "buffer 1 of 1"), (model(ops=[op(1, [0], [1])]), "code 1 of 1"),
                (model(ops=[op(0, [2], [1])]), "tensor 2 of 2"), (model(ops=[op(0, [-2], [1])]), "tensor -2"), (model(ends=((0,), (-1,))), "tensor -1"),
                (model(ends=((5,), ())), "tensor 5 of 2"), (model(codes=[210]), "no such operator"), (model(codes=[fb.STABLEHLO_CASE]), "STABLEHLO_CASE"),
                (model(codes=[fb.IF], ops=[op(0, [0], [1], bodies={0: 1, 1: 1})]), "subgraph 1 of 1"), (model(codes=[fb.CALL]), "calls itself")):
            path = self.write("m.tflite", data)
            if says is None:
                self.ok("plan", path)
            else:
                self.refused(3, "plan", path, says=[says, "m.tflite"])

    def test_again_and_again(self):
        """A small file that refers to the same bytes so often that it would take for ever."""
        data = bytearray(fb.lite_model([fb.ADD], [fb.lite_graph([fb.lite_tensor("x", [1])] * 2, [], [], [fb.lite_op(0, [0] * 5000, [1])] * 2)]))
        self.ok("plan", self.write("m.tflite", data))
        many = fb.lite_model([fb.ADD], [fb.lite_graph([fb.lite_tensor("x", [1])] * 2, [], [], [fb.lite_op(0, [0] * 50000, [1])] + [{}] * 50000)])
        data = bytearray(many)
        marker = struct.pack("<I", 50001)
        at = data.index(marker) + 4
        first = at + struct.unpack_from("<I", data, at)[0]
        for k in range(50001):
            struct.pack_into("<I", data, at + 4 * k, first - at - 4 * k)
        self.refused(3, "plan", self.write("m.tflite", data), says=["again and again"])

    def test_cut(self):
        self.every_cut(self.a_model(), ".tflite", 7)

    def test_commands(self):
        """Every command that takes a list takes the file, from standard input too; one that runs does not."""
        path = self.write("m.tflite", self.a_model())
        bound = self.json("plan", path)["plans"][0]["lower_bound_bytes"]
        self.assertEqual(self.json("plan", path, "--align", "64")["plans"][0]["lower_bound_bytes"],
                         live_sum(self.rows(self.table(path)[0]).values(), 64))
        self.ok("plan", path, "--capacity", bound, code=7)  # what is sized while running comes on top
        self.ok("plan", path, "--capacity", bound - 1, code=6)
        with open(path, "rb") as file:
            p = tidemark.subprocess.run([tidemark.PROGRAM, "plan", "--json", "-"], stdin=file, capture_output=True, check=True)
        self.assertEqual(tidemark.json.loads(p.stdout)["plans"][0]["lower_bound_bytes"], bound)
        self.ok("export", path, "--to", "csv", "-o", self.dir / "list.csv")
        self.assertEqual(self.json("plan", self.dir / "list.csv")["plans"][0]["lower_bound_bytes"], bound)
        self.ok("report", path, "-o", self.dir / "r.html")
        self.ok("report", path, path, "-o", self.dir / "d.html")
        self.assertIn("m: plan", self.ok("tui", "--once", path).stdout)
        self.assertEqual(self.json("diff", path, path)["differs"], False)
        self.assertEqual(self.json("sweep", path)["points"][0]["lower_bound_bytes"], bound)
        self.ok("plan", path, "-o", self.dir / "p.json")
        self.ok("check", path, "--baseline", self.dir / "p.json")
        self.refused(3, "run", path, says=["a TensorFlow Lite model"])
        self.refused(3, "sweep", path, "--batch", "1,2", says=["a TensorFlow Lite model"])

    def test_first_byte(self):
        """The first byte is a number: it may look like a blank or like the begin of JSON."""
        data = self.a_model()
        root = struct.unpack_from("<I", data)[0]
        for first in (0x20, 0x7b, 0x0a, 0x08):
            pad = (first - root) % 256
            moved = struct.pack("<I", root + pad) + data[4:8] + bytes(pad) + data[8:]
            self.assertEqual(moved[0], first)
            self.assertEqual(self.table(self.write("m.tflite", moved))[0]["order"][0], "CONV_2D.0")
        # An ONNX model whose producer is called so stays one: what would be the root lies outside of the file.
        self.refused(3, "plan", self.write("m.onnx", b"\x08\x07\x12\x04TFL3\x1a\x02xy"), says=["no graph"])


class Executorch(Lists):
    """ExecuTorch."""

    def program(self, *args, constants=1, segment=b"", **kw):
        return self.write("p.pte", fb.torch_program([fb.torch_method(*args, **kw)], constants, segment))

    def test_one_of_each(self):
        t = fb.torch_tensor
        values = [t([3, 5], (1, 0)), t([4], data=1), t([4], data=1), t([2], type=fb.HALF, external=True, name="far"), fb.torch_int(),
                  t([3, 5], (1, 64)), t([15], (1, 0)), t([0]), t([9], dynamism=2), t([7], (1, 256), data=2, name="state"),
                  t([2], (1, 320), type=fb.LONG, name="cache"), t([100], (1, 400)), t([6]), t([2, 2])]
        calls = [fb.torch_kernel(0, [0, 1, 4, 5, 5]), fb.torch_kernel(0, [5, 2, 3, 6, 6]), fb.torch_kernel(0, [6, 7, 8, 8]),
                 fb.torch_free(8), fb.torch_kernel(0, [9, 10, 12, 13, 13])]
        path = self.program(values, [0, 12], [6, 13], calls, sizes=(0, 1000), constants=3, segment=bytes(64))
        doc, notes = self.table(path)
        self.assertEqual(doc["order"], ["aten::add.out.0", "aten::add.out.1", "aten::add.out.2", "free.3", "aten::add.out.4"])
        self.assertEqual(self.rows(doc), {"value 0": (0, 1, 60), "value 5": (0, 2, 60), "value 6": (1, 5, 60), "state": (0, 5, 28),
                                          "cache": (0, 5, 16)})
        self.assertEqual(self.kept(doc), {"value 1": ("Persistent", "weight", 16), "value 2": ("Persistent", "weight", 0),
                                          "far": ("Persistent", "weight", 4), "value 12": ("Default", "input", 24),
                                          "value 13": ("Default", "output", 16)})
        self.assertEqual(doc["dynamic"], ["value 8"])
        self.assertEqual(doc["given_plan_bytes"], 1000)
        self.assertIn("1 planned tensors that no instruction names are left out", notes)
        self.assertIn("1 weights have the bytes of another one", notes)
        self.assertEqual(self.inside(doc), {})
        plan = self.json("plan", path)["plans"][0]
        self.assertEqual(plan["lower_bound_bytes"], live_sum(self.rows(doc).values()))
        self.assertIn("Plan in the File: 0.98 KiB", self.ok("plan", path).stdout)

    def test_random_programs(self):
        """Chains of calls whose own plan is one place for each tensor."""
        for seed in range(30):
            rng = random.Random(seed)
            n_inputs = rng.randrange(1, 4)
            sizes = [[rng.randrange(1, 9) for _ in range(rng.randrange(4))] for _ in range(n_inputs)]
            first, last, calls = [0] * n_inputs, [0] * n_inputs, []
            for step in range(rng.randrange(30)):
                reads = rng.choices(range(len(sizes)), k=rng.randrange(1, 4))
                out = len(sizes)
                sizes.append([rng.randrange(1, 9) for _ in range(rng.randrange(4))])
                calls.append(fb.torch_kernel(0, [*reads, out, out]))
                first.append(step)
                last.append(step)
                for k in reads:
                    last[k] = step
            outputs = rng.sample(range(len(sizes)), rng.randrange(len(sizes)))
            for k in outputs:
                last[k] = max(len(calls) - 1, 0)
            values, end = [], 0
            for extents in sizes:
                values.append(fb.torch_tensor(extents, (1, end)))
                end += up(4 * product(extents), 16)
            path = self.program(values, list(range(n_inputs)), outputs, calls, sizes=(0, end))
            doc, _ = self.table(path)
            want = {f"value {k}": (first[k], last[k] + 1, 4 * product(sizes[k])) for k in range(len(sizes))}
            self.assertEqual((self.rows(doc), doc["given_plan_bytes"], self.inside(doc)), (want, end, {}), seed)
            self.assertEqual(self.json("plan", path)["plans"][0]["lower_bound_bytes"], live_sum(want.values()), seed)

    def test_views(self):
        """A view that the program leaves out lies where its base does, and keeps it; so does one that et_view makes."""
        t = fb.torch_tensor
        ops = [("aten::add", "out"), ("executorch_prim::et_view", "default"), ("aten::relu_", "")]
        values = [t([16], (1, 0)), t([16], (1, 64)), t([4, 4], (1, 64)), t([16], (1, 128)), t([2, 8]), t([16], (1, 0)), fb.torch_list([4]),
                  t([8], (1, 32)), fb.torch_int()]
        calls = [fb.torch_kernel(0, [0, 8, 1, 1]), fb.torch_kernel(0, [0, 8, 7, 7]), fb.torch_kernel(0, [2, 8, 3, 3]),
                 fb.torch_kernel(1, [3, 8, 4]), fb.torch_kernel(0, [8, 5, 5]), fb.torch_kernel(0, [4, 5, 5]), fb.torch_kernel(2, [5, 5])]
        doc, _ = self.table(self.program(values, [0], [5], calls, ops, sizes=(0, 256)))
        # value 1 until its view is read; value 3 as long as et_view's output is; value 7 was put into value 0, which lives.
        self.assertEqual(self.rows(doc), {"value 0": (0, 2, 64), "value 1": (0, 3, 64), "value 2": (2, 3, 64), "value 3": (2, 6, 64),
                                          "value 5": (4, 7, 64), "value 7": (1, 2, 32)})
        self.assertEqual(self.inside(doc), {"value 2": ("value 1", 0), "value 7": ("value 0", 32)})
        # A list of tensors stands for its members, and None is none.
        values = [t([4], (1, 0)), t([4], (1, 16)), fb.torch_list([0, -1], optional=True), fb.torch_list([1, 3]), t([4], (1, 32))]
        values[3], values[4] = fb.torch_list([1, 4]), t([4], (1, 32))
        doc, _ = self.table(self.program(values, [0], [], [fb.torch_kernel(0, [2, 3]), fb.torch_kernel(0, [1, 4])], sizes=(0, 48)))
        self.assertEqual(self.rows(doc), {"value 0": (0, 1, 16), "value 1": (0, 2, 16), "value 4": (0, 2, 16)})

    def test_state_without_a_name(self):
        """Read by a kernel before anything wrote it, where nothing lay: it is from the run before."""
        t = fb.torch_tensor
        values = [t([4], (1, 0)), t([4], (1, 16)), t([4], (1, 32))]
        doc, _ = self.table(self.program(values, [0], [2], [fb.torch_kernel(0, [0, 1, 2, 2]), fb.torch_kernel(0, [0, 2, 2])], sizes=(0, 48)))
        self.assertEqual(self.rows(doc), {"value 0": (0, 2, 16), "value 1": (0, 2, 16), "value 2": (0, 2, 16)})

    def test_scratch(self):
        """Named by one kernel, made by none, where another tensor lies at other times: no state can be there."""
        t = fb.torch_tensor
        values = [t([4], (1, 0)), t([16], (1, 32), type=fb.BYTE), t([4], (1, 16)), t([4], (1, 32)), t([0], (1, 32)), t([8], (1, 48))]
        calls = [fb.torch_kernel(0, [0, 2, 2]), fb.torch_kernel(0, [2, 4, 3, 3]), fb.torch_kernel(0, [3, 0, 0]), fb.torch_kernel(0, [0, 1, 2, 2]),
                 fb.torch_kernel(0, [2, 5, 0, 0])]
        doc, _ = self.table(self.program(values, [0], [], calls, sizes=(0, 80)))
        self.assertEqual(self.rows(doc), {"value 0": (0, 5, 16), "value 1": (3, 4, 16), "value 2": (0, 5, 16), "value 3": (1, 3, 16),
                                          "value 4": (1, 2, 0), "value 5": (0, 5, 32)})
        self.assertEqual(self.inside(doc), {})

    def test_delegates(self):
        """Which of a delegate's values it makes is not in the file: two outputs, the first where something as large lay."""
        t = fb.torch_tensor
        values = [t([4], (1, 0)), t([4], (1, 16)), t([4], (1, 0)), t([4], (1, 32)), t([4], (1, 64))]
        calls = [fb.torch_kernel(0, [0, 1, 1]), fb.torch_kernel(0, [1, 1]), fb.torch_delegate(0, [1, 2, 3, 4])]
        doc, _ = self.table(self.program(values, [0], [4], calls, sizes=(0, 80), delegates=["XnnpackBackend"]))
        self.assertEqual(doc["order"][2], "XnnpackBackend.2")
        self.assertEqual(self.rows(doc), {"value 0": (0, 3, 16), "value 1": (0, 3, 16), "value 2": (2, 3, 16), "value 3": (2, 3, 16),
                                          "value 4": (2, 3, 16)})
        self.assertEqual(self.inside(doc), {"value 2": ("value 0", 0)})

    def test_branches_and_loops(self):
        t = fb.torch_tensor
        flag = {0: fb.u8(3), 1: fb.table({0: fb.u8(1)})}
        # if: value 1 or value 2 is moved to value 3, which is read at the end.
        values = [t([4], (1, 0)), t([4], (1, 16)), t([4], (1, 32)), t([4]), t([4], (1, 48)), flag]
        calls = [fb.torch_jump(5, 4), fb.torch_kernel(0, [0, 1, 1]), fb.torch_move(1, 3), fb.torch_jump(5, 6), fb.torch_kernel(0, [0, 2, 2]),
                 fb.torch_move(2, 3), fb.torch_kernel(0, [3, 4, 4])]
        doc, _ = self.table(self.program(values, [0], [4], calls, sizes=(0, 64)))
        self.assertEqual(doc["order"], ["jump.0", "aten::add.out.1", "move.2", "jump.3", "aten::add.out.4", "move.5", "aten::add.out.6"])
        self.assertEqual(self.rows(doc), {"value 0": (0, 5, 16), "value 1": (1, 7, 16), "value 2": (4, 7, 16), "value 4": (6, 7, 16)})
        # A loop from step 1 to 3: value 0 comes from outside, value 1 is made anew in each round, value 2 is only written to.
        calls = [fb.torch_kernel(0, [0, 4, 4]), fb.torch_kernel(0, [0, 1, 1]), fb.torch_kernel(0, [2, 1, 5]), fb.torch_jump(5, 1),
                 fb.torch_kernel(0, [2, 4, 4])]
        doc, _ = self.table(self.program(values, [0], [4], calls, sizes=(0, 64)))
        self.assertEqual(self.rows(doc), {"value 0": (0, 4, 16), "value 1": (1, 3, 16), "value 2": (0, 5, 16), "value 4": (0, 5, 16)})

    def test_memories(self):
        t = fb.torch_tensor
        values = [t([4], (1, 0)), t([8], (3, 16))]
        calls = [fb.torch_kernel(0, [0, 1, 1])]
        doc, _ = self.table(self.program(values, [0], [1], calls, sizes=(0, 32, 999, 64), devices=[(3, 1, 2)]))
        self.assertEqual({t["name"]: t["device"] for t in doc["tensors"]}, {"value 0": "cpu", "value 1": "cuda:2"})
        self.assertEqual(doc["given_plan_bytes"], 96)
        self.assertEqual(len(self.json("plan", self.dir / "p.pte")["plans"][0]["buffers"]), 2)
        self.refused(3, "plan", self.program(values, [0], [1], calls, sizes=(0, 32, 0, 64)), says=["memories 1 and 3", "on cpu"])
        # An offset of more than 32 bits.
        values = [t([4], (1, 5 << 32)), t([4], (1, 0))]
        doc, _ = self.table(self.program(values, [0, 1], [], calls[:0], sizes=(0, (5 << 32) + 16)))
        self.assertEqual((doc["given_plan_bytes"], self.inside(doc)), ((5 << 32) + 16, {}))

    def test_methods(self):
        def method(name, size):
            return fb.torch_method([fb.torch_tensor([size], (1, 0))], [0], [], [], sizes=(0, 64), name=name)
        for names, wanted in ((["a", "forward", "b"], 1), (["a", "b"], 0), (["forward"], 0)):
            doc, notes = self.table(self.write("p.pte", fb.torch_program([method(n, k + 1) for k, n in enumerate(names)])))
            self.assertEqual(self.rows(doc), {"value 0": (0, 1, 4 * wanted + 4)})
            self.assertEqual(f"method '{names[wanted]}' of {len(names)} is planned" in notes, len(names) > 1)

    def test_refused(self):
        t, kernel, method = fb.torch_tensor, fb.torch_kernel, fb.torch_method

        def one(values=None, calls=(), ends=((), ()), sizes=(0, 64), **kw):
            return fb.torch_program([method(values or [t([4], (1, 0))], *ends, calls, sizes=sizes, **kw)])
        whole = one()
        for data, says in (
                (fb.torch_program([]), "no method"), (fb.torch_program([], identifier=b"ET99"), "ET99"), (one([t([17], (1, 0))]), "68 bytes at 0"),
                (one([t([1], (2, 0))]), "memory 2"), (one([t([1], (0, 0))]), "memory 0"), (one([t([-1], (1, 0))]), "extent -1"),
                (one([t([1], type=8)]), "type 8"), (one([t([1], type=200)]), "type 200"), (one([t([1 << 30] * 3)]), "too large"),
                (one([t([1], data=1)]), "constant 1 of 1"), (one(calls=[kernel(0, [1])]), "value 1 of 1"), (one(calls=[kernel(1, [0])]), "operator 1 of 1"),
                (one(calls=[fb.torch_delegate(0, [0])]), "delegate 0 of 0"), (one(calls=[fb.torch_jump(0, 5)]), "instruction 5 of 1"),
                (one(calls=[{0: fb.u8(6), 1: fb.table({})}]), "type 6"), (one(ends=((4,), ())), "value 4"), (one(devices=[(2, 0, 0)]), "memory 2"),
                (one(devices=[(1, 7, 0)]), "type 7"), (one([t([1], (1, (1 << 64) - 2))]), "4 bytes at"),
                (one([t([4], (1, 0)), fb.torch_list([7])], [kernel(0, [1])]), "value 7 of 2"), (whole[:-16], "cut or damaged")):
            self.refused(3, "plan", self.write("p.pte", data), says=[says, "p.pte"])

    def test_cut(self):
        t = fb.torch_tensor
        data = fb.torch_program([fb.torch_method([t([3], (1, 0)), t([4], data=1), t([3], (1, 16))], [0], [2], [fb.torch_kernel(0, [0, 1, 2, 2])],
                                                 sizes=(0, 32))], 2, bytes(16))
        self.every_cut(data, ".pte", 3)

    def test_commands(self):
        path = self.program([fb.torch_tensor([4], (1, 0)), fb.torch_tensor([4], (1, 16))], [0], [1], [fb.torch_kernel(0, [0, 1, 1])], sizes=(0, 32))
        for args in (["plan", path, "--all"], ["report", path, "-o", self.dir / "r.html"], ["tui", "--once", path], ["diff", path, path],
                     ["export", path, "--to", "csv"], ["export", path, "--to", "c-header"], ["sweep", path]):
            self.ok(*args)
        self.refused(3, "run", path, says=["an ExecuTorch program"])


if __name__ == "__main__":
    tidemark.main()
