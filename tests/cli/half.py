# SPDX-License-Identifier: MIT
"""Models on 16-bit floats whose operators know float32 alone: tensors stay as wide as the file has them, kernels convert. What is
calculated here is exact in both types, so that one element that is off is wrong."""
import random
import struct
import unittest

import onnx_file as onnx
import tidemark
from onnx_file import FLOAT, Graph, node
from tidemark import Case

HALF, BRAIN, DOUBLE = 10, 16, 11
onnx.SIZES.update({HALF: "e", BRAIN: "H", DOUBLE: "d"})


def narrow(dtype, values):
    """As onnx_file.tensor wants them: of bfloat16 the upper half of a float32, which the numbers here fit exactly."""
    return list(values) if dtype != BRAIN else [struct.unpack("<I", struct.pack("<f", v))[0] >> 16 for v in values]


def matmul(a, b, m, k, n):
    return [sum(a[i * k + x] * b[x * n + j] for x in range(k)) for i in range(m) for j in range(n)]


class Half(Case):
    def check(self, dtype, nodes, inputs, weights, outputs, **more):
        """`inputs`, `weights` and `outputs`: name, extents, numbers."""
        tensors = [onnx.tensor(name, dtype, dims, narrow(dtype, values)) for name, dims, values in weights]
        g = Graph(nodes, [(name, dtype, dims) for name, dims, _ in inputs], [(name, dtype, dims) for name, dims, _ in outputs], tensors)
        path, data = self.dir / "half.onnx", self.dir / "data"
        path.write_bytes(onnx.number(1, 9) + onnx.message(8, onnx.number(2, more.pop("opset", 17))) + onnx.message(7, g.encode()))
        data.mkdir(exist_ok=True)
        for kind, all_ in (("input", inputs), ("output", outputs)):
            for i, (name, dims, values) in enumerate(all_):
                (data / f"{kind}_{i}.pb").write_bytes(onnx.tensor(name, dtype, dims, narrow(dtype, values)))
        done = self.json("compare", path, "--reference", data, "-n", 2, "--fill", "poison", "--rtol", 0, "--atol", 0)
        self.assertTrue(done["outputs"]["bitwise_equal"])
        self.assertEqual({k["difference_bytes"] for k in done["kinds"] + done["naive_kinds"]}, {0})
        return path, done

    def test_products(self):
        rng = random.Random(3)
        draw = lambda n: [float(rng.randint(-1, 1)) for _ in range(n)]
        for dtype in (HALF, BRAIN):
            for m, k, n in ((1, 1, 1), (3, 5, 4), (7, 60, 200)):
                with self.subTest(dtype=dtype, size=(m, k, n)):
                    a, b, c = draw(m * k), draw(k * n), draw(n)
                    y = matmul(a, b, m, k, n)
                    self.check(dtype, [node("MatMul", ["a", "b"], ["y"], name="product")], [("a", [m, k], a)], [("b", [k, n], b)], [("y", [m, n], y)])
                    z = [max(0.0, v + c[i % n]) for i, v in enumerate(y)]
                    self.check(dtype, [node("Gemm", ["a", "b", "c"], ["g"], name="gemm"), node("Relu", ["g"], ["y"], name="relu")],
                               [("a", [m, k], a)], [("b", [k, n], b), ("c", [n], c)], [("y", [m, n], z)])

    def test_results_are_rounded_once_to_nearest(self):
        """2048 and 3 are, their sum is not: the even neighbour of the two that are as near, as Python's own packing has it."""
        for a, y in (([2048.0, 3.0], 2052.0), ([2048.0, 1.0], 2048.0), ([65504.0, 15.0], 65504.0)):
            self.assertEqual(struct.pack("<e", sum(a)), struct.pack("<e", y))
            self.check(HALF, [node("MatMul", ["a", "b"], ["y"], name="product")], [("a", [1, 2], a)], [("b", [2, 1], [1.0, 1.0])], [("y", [1, 1], [y])])

    def test_windows(self):
        """A convolution with its bias, and both pools, counted here."""
        rng = random.Random(4)
        x = [float(rng.randint(-2, 2)) for _ in range(2 * 36)]
        w = [float(rng.randint(-1, 1)) for _ in range(3 * 2 * 9)]
        b = [1.0, -2.0, 3.0]
        y = [b[o] + sum(x[c * 36 + (i + p) * 6 + j + q] * w[(o * 2 + c) * 9 + p * 3 + q] for c in range(2) for p in range(3) for q in range(3))
             for o in range(3) for i in range(4) for j in range(4)]
        best = [max(y[o * 16 + (2 * i + p) * 4 + 2 * j + q] for p in range(2) for q in range(2)) for o in range(3) for i in range(2) for j in range(2)]
        for dtype in (HALF, BRAIN):
            nodes = [node("Conv", ["x", "w", "b"], ["y"], name="conv"), node("MaxPool", ["y"], ["best"], name="best", kernel_shape=[2, 2], strides=[2, 2])]
            self.check(dtype, nodes, [("x", [1, 2, 6, 6], x)], [("w", [3, 2, 3, 3], w), ("b", [3], b)],
                       [("y", [1, 3, 4, 4], y), ("best", [1, 3, 2, 2], best)])

    def test_what_is_not_cut(self):
        """As a whole in the scratch: an RNN of one gate that adds, and a norm whose moments stay float32."""
        x = [1.0, 2.0, 4.0]
        relu = onnx.message(5, onnx.message(1, "activations") + onnx.message(9, "Relu") + onnx.number(20, 8))
        self.check(HALF, [node("RNN", ["x", "w", "r"], ["", "h"], name="rnn", hidden_size=1) + relu], [("x", [3, 1, 1], x)], [("w", [1, 1, 1], [1.0]), ("r", [1, 1, 1], [1.0])], [("h", [1, 1, 1], [7.0])])
        nodes = [node("LayerNormalization", ["x", "s"], ["y"], name="norm", epsilon=0.0)]
        self.check(HALF, nodes, [("x", [1, 2], [-1.0, 1.0])], [("s", [2], [2.0, 2.0])], [("y", [1, 2], [-2.0, 2.0])])

    def test_tensors_stay_narrow_and_scratch_is_of_tiles(self):
        rng = random.Random(5)
        m, k, n = 64, 512, 512
        a = [float(rng.randint(-1, 1)) for _ in range(m * k)]
        b = [0.0] * (k * n)
        for j in range(n):
            b[rng.randrange(k) * n + j] = 1.0
        where = [next(x for x in range(k) if b[x * n + j]) for j in range(n)]
        y = [a[i * k + where[j]] for i in range(m) for j in range(n)]
        path, _ = self.check(HALF, [node("MatMul", ["a", "b"], ["y"], name="product")], [("a", [m, k], a)], [("b", [k, n], b)], [("y", [m, n], y)])
        sizes = {t["name"]: t["size_bytes"] for t in self.json("plan", path)["tensors"]}
        self.assertEqual({t: sizes[t] for t in "aby"}, {"a": 2 * m * k, "b": 2 * k * n, "y": 2 * m * n})
        self.assertLess(sizes["product.scratch"], 4 * k * n)

    def test_what_is_refused(self):
        a, b = onnx.tensor("b", FLOAT, [2, 2], [1.0] * 4), onnx.tensor("b", DOUBLE, [2, 2], [1.0] * 4)
        for weight, says in ((a, "input 1 is float32 beside inputs of float16"), (b, "input 1 is float64 beside inputs of float16")):
            g = Graph([node("MatMul", ["a", "b"], ["y"], name="product")], [("a", HALF, [2, 2])], [("y", HALF, [2, 2])], [weight])
            path = self.dir / "mixed.onnx"
            path.write_bytes(onnx.number(1, 9) + onnx.message(8, onnx.number(2, 17)) + onnx.message(7, g.encode()))
            self.refused(3, "plan", path, says=["MatMul 'product'", says])


if __name__ == "__main__":
    tidemark.main()
