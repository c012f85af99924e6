# SPDX-License-Identifier: MIT
"""Quantised models: operators read and write quantised tensors, and the literal reading (--no-qdq), with float tensors between
them, is what they are held against. tests/runtime/test_quantised.c does so operator by operator and bit by bit."""
import os
import re
import unittest

import onnx_file as onnx
import tidemark
from models import APART
from onnx_file import BOOL, FLOAT, INT64, Graph, node, tensor
from tidemark import SHARED, Case

UINT8, INT8 = 2, 3
onnx.SIZES.update({UINT8: "B", INT8: "b"})
MODELS = ["kws-m-qdq", "mobilenetv2-qdq", "qdq-conv-external"]
SHAPE = ("--shape", "image=1x3x244x244")


def pair(x, out, scale="s", zero="z"):
    """x quantised and dequantised again."""
    return [node("QuantizeLinear", [x, scale, zero], [out + ".q"]), node("DequantizeLinear", [out + ".q", scale, zero], [out])]


def scales(dtype=INT8):
    return [tensor("s", FLOAT, [], [0.125]), tensor("z", dtype, [], [3])]


def kinds(doc, key="kinds"):
    return {k["kind"]: k["measured_bytes"] for k in doc[key]}


class Qdq(Case):
    def compare(self, model, data, *args):
        doc = self.json("compare", model, "--reference", data, "-n", 2, "--fill", "poison", *args)
        self.assertTrue(doc["verified"] and doc["outputs"]["bitwise_equal"])
        for kind in doc["kinds"] + doc["naive_kinds"]:
            self.assertIn(kind["difference_bytes"], (0, None), (model, args))
        return doc

    def both(self, model, data, *args):
        """Documents with and without the pass."""
        return self.compare(model, data, *args), self.compare(model, data, *args, "--no-qdq")

    @unittest.skipUnless((SHARED / "models").is_dir(), f"skipped: {SHARED / 'models'} is not here")
    def test_real_models_take_a_part_of_the_memory(self):
        for name in MODELS:
            folder = SHARED / "models" / name
            for data in sorted(folder.glob("test_data_set_*"))[:None if "TIDE_SOAK" in os.environ else 1]:
                atol = ("--atol", APART[name]) if name in APART else ()
                doc, literal = self.both(folder / "model.onnx", data, *atol)
                now, was = kinds(doc), kinds(literal)
                with self.subTest(name, data=data.name, now=now, was=was):
                    self.assertLess(now["Persistent"], 0.6 * was["Persistent"])
                    self.assertLess(now["Workspace"], 0.75 * was["Workspace"])
                    self.assertLess(kinds(doc, "naive_kinds")["Workspace"], 0.75 * kinds(literal, "naive_kinds")["Workspace"])
                    self.assertEqual(now["Default"], was["Default"])
                    for one in doc["outputs"]["reference"] + literal["outputs"]["reference"]:
                        self.assertTrue(one["pass"], one)

    @unittest.skipUnless((SHARED / "models").is_dir(), f"skipped: {SHARED / 'models'} is not here")
    def test_a_plan_says_what_was_gained(self):
        model = SHARED / "models" / "mobilenetv2-qdq" / "model.onnx"
        plan, literal = (self.json("plan", model, *SHAPE, *args) for args in ((), ("--no-qdq",)))
        self.assertNotIn("quantised", literal)
        gain = plan["quantised"]
        self.assertEqual(gain["left"], 2)  # the ends: of the input, and of the scores
        self.assertGreater(gain["before_bytes"], 8 * gain["after_bytes"])
        # Between steps there are tensors of 8 bits, less scratch of kernels; float ones are the input and the result.
        for t in plan["tensors"]:
            if t["role"] == "intermediate":
                self.assertLessEqual(t["size_bytes"], 1 << 21, t)
        weights = [sum(t["size_bytes"] for t in doc["tensors"] if t["role"] == "weight") for doc in (plan, literal)]
        self.assertLess(3 * weights[0], weights[1])
        self.assertGreaterEqual(gain["weights_saved_bytes"], weights[1] - weights[0])
        text = self.ok("plan", model, *SHAPE).stdout
        said = re.search(r"Quantised tensors: read and written by (\d+) operators", text)
        self.assertEqual(int(said[1]), gain["operators"])
        self.assertNotIn("Quantised tensors", self.ok("plan", model, *SHAPE, "--no-qdq").stdout)

    def case(self, name, nodes, shape, x, want, initializers, others=(), dims=None, **kw):
        graph = Graph(nodes, [("x", FLOAT, shape)], [("y", FLOAT, dims)], list(initializers) + list(others))
        return onnx.write_case(self.dir / name, graph, [(FLOAT, shape, x)], [(FLOAT, list(want[0]), want[1])], **kw)

    def test_plan_files_belong_to_one_reading(self):
        nodes = [*pair("x", "a"), node("Relu", ["a"], ["b"]), *pair("b", "c"), node("Neg", ["c"], ["y"])]
        model, _ = self.case("relu", nodes, [8], [0.0] * 8, ([8], [0.0] * 8), scales(), dims=[8])
        for own, other in (((), ("--no-qdq",)), (("--no-qdq",), ())):
            plan = self.dir / "plan.json"
            self.ok("plan", model, *own, "-o", plan)
            self.ok("run", model, "-n", 1, "--plan", plan, *own)
            self.refused(4, "run", model, "-n", 1, "--plan", plan, *other, says=["node"])

    def test_bodies(self):
        """In the body of a Loop: what it carries is quantised, and so is what it reads from outside."""
        trips, x = 3, [1.0, -2.0, 0.5, 100.0]
        body = Graph([node("DequantizeLinear", ["v", "s", "z"], ["vf"]), node("Add", ["vf", "c"], ["sum"]),
                      node("QuantizeLinear", ["sum", "s", "z"], ["next"]), node("Identity", ["on"], ["go"])],
                     [("i", INT64, []), ("on", BOOL, []), ("v", INT8, [4])], [("go", BOOL, []), ("next", INT8, [4])])
        nodes = [*pair("x", "c"), node("Loop", ["n", "", "c.q"], ["last"], body=body), node("DequantizeLinear", ["last", "s", "z"], ["y"])]
        quantised = [max(-128, min(127, round(v * 8) + 3)) for v in x]
        want = list(quantised)
        for _ in range(trips):
            want = [max(-128, min(127, (w - 3) + (q - 3) + 3)) for w, q in zip(want, quantised)]
        model, data = self.case("loop", nodes, [4], x, ([4], [(w - 3) / 8 for w in want]), scales(),
                                [tensor("n", INT64, [], [trips])], dims=[4])
        doc, literal = self.both(model, data)
        self.assertLess(self.n_steps(model), self.n_steps(model, "--no-qdq"))
        for one in doc["outputs"]["reference"] + literal["outputs"]["reference"]:
            self.assertEqual(one["max_abs_diff"], 0)

    def n_steps(self, model, *args):
        return self.json("plan", model, *args)["n_steps"]

    def test_what_is_sized_while_running_stays_as_it_is(self):
        nodes = [*pair("x", "a"), node("NonZero", ["a"], ["at"]), node("Transpose", ["at"], ["rows"], perm=[1, 0]),
                 node("GatherND", ["a", "rows"], ["some"]), node("Add", ["some", "some"], ["twice"]), *pair("twice", "y")]
        model, data = self.case("dynamic", nodes, [6], [0.0, 1.0, 0.0, -2.0, 4.0, 0.0], ([3], [2.0, -4.0, 8.0]), scales(), dims=["n"])
        for doc in self.both(model, data):
            self.assertEqual([o["max_abs_diff"] for o in doc["outputs"]["reference"]], [0])

    @unittest.skipUnless((SHARED / "models").is_dir(), f"skipped: {SHARED / 'models'} is not here")
    def test_nodes_that_run_twice(self):
        folder = SHARED / "models" / "kws-m-qdq"
        doc = self.compare(folder / "model.onnx", folder / "test_data_set_0", "--atol", APART["kws-m-qdq"], "--allow-recompute", "60%")
        self.assertTrue(all(o["pass"] for o in doc["outputs"]["reference"]))

    def test_the_gate_can_ask_for_the_literal_reading(self):
        nodes = [*pair("x", "a"), node("Relu", ["a"], ["b"]), *pair("b", "c"), node("Add", ["c", "c"], ["y"])]
        self.case("gate", nodes, [4000], [0.0] * 4000, ([4000], [0.0] * 4000), scales(), dims=[4000])
        for qdq in ("true", "false"):
            (self.dir / f"{qdq}.toml").write_text(f'version = 1\n[defaults]\nqdq = {qdq}\n[[model]]\npath = "gate/model.onnx"\n')
        self.ok("check", "--config", "true.toml", "--update-baseline", "--reason", "first", cwd=self.dir)
        self.ok("check", "--config", "true.toml", cwd=self.dir)
        worse = self.json("check", "--config", "false.toml", cwd=self.dir, code=1)
        causes = worse["cases"][0]["causes"]
        self.assertIn(["qdq", None, "off"], [[c["name"], c["baseline"], c["current"]] for c in causes if c["kind"] == "setting"])


if __name__ == "__main__":
    tidemark.main()
