# SPDX-License-Identifier: MIT
"""Sequences of tensors that are known when a file is read: random chains of their operators beside lists of this file's own, and
what is refused."""
import random
import unittest

import onnx_file as onnx
import tidemark
from onnx_file import INT64, Graph, node, tensor
from tidemark import Case


class Sequences(Case):
    def chain(self, seed):
        """(nodes, constants, what `out` is): sequences of rows of two numbers, of which every step knows the list."""
        rng = random.Random(seed)
        rows = {"a": [1, 2], "b": [3, 4], "c": [5, 6]}
        nodes, constants, n = [], [], 0
        lists = [("s0", list(rng.choices("abc", k=rng.randint(0, 3))))]
        nodes.append(node("SequenceConstruct", lists[0][1], ["s0"]) if lists[0][1] else node("SequenceEmpty", [], ["s0"]))
        for step in range(rng.randint(1, 6)):
            name, items = rng.choice(lists)
            made, new = f"s{step + 1}", list(items)
            last = rng.random() < 0.3
            place = rng.randrange(-len(items), len(items)) if items else 0
            constants.append(tensor(f"p{step}", INT64, [], [place]))
            if items and rng.random() < 0.4:
                new.pop(-1 if last else place)
                nodes.append(node("SequenceErase", [name] + ([] if last else [f"p{step}"]), [made]))
            else:
                what = rng.choice("abc")
                new.insert(len(new) if last else place, what)
                nodes.append(node("SequenceInsert", [name, what] + ([] if last else [f"p{step}"]), [made]))
            lists.append((made, new))
        name, items = lists[-1]
        outputs = [("n", INT64, [], [len(items)])]
        nodes.append(node("SequenceLength", [name], ["n"]))
        if items:
            at = rng.randrange(-len(items), len(items))
            constants.append(tensor("at", INT64, [], [at]))
            nodes += [node("SequenceAt", [name, "at"], ["one"]), node("ConcatFromSequence", [name], ["flat"], axis=0),
                      node("ConcatFromSequence", [name], ["stack"], axis=rng.choice((0, -2)), new_axis=1)]
            flat = [v for i in items for v in rows[i]]
            outputs += [("one", INT64, [2], rows[items[at]]), ("flat", INT64, [len(flat)], flat), ("stack", INT64, [len(items), 2], flat)]
        return nodes, constants, rows, outputs

    def test_beside_lists(self):
        for seed in range(25):
            with self.subTest(seed=seed):
                nodes, constants, rows, outputs = self.chain(seed)
                graph = Graph(nodes, [(k, INT64, [2]) for k in rows], [(o[0],) for o in outputs], constants)
                path, data = onnx.write_case(self.dir / f"c{seed}", graph, [(INT64, [2], v) for v in rows.values()], [o[1:] for o in outputs])
                done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2)
                self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
                self.assertEqual({k["difference_bytes"] for k in done["kinds"] + done["naive_kinds"]}, {0})

    def test_splits(self):
        """In ones, with the axis and without; in equal parts, the last one smaller; in parts that are given, and fed."""
        x = list(range(10))
        for attrs, more, at, want in (({}, [], 3, ([1, 2], [6, 7])), ({"keepdims": 0}, [], -1, ([2], [8, 9])), ({"axis": 1}, [], 1, ([5, 1], [1, 3, 5, 7, 9])),
                                      ({}, [2], 2, ([1, 2], [8, 9])), ({}, [[1, 4]], 1, ([4, 2], x[2:]))):
            split = [tensor("parts", INT64, [len(more[0])] if isinstance(more[0], list) else [], more[0] if isinstance(more[0], list) else more)] if more else []
            graph = Graph([node("SplitToSequence", ["x"] + (["parts"] if more else []), ["s"], **attrs), node("SequenceAt", ["s", "at"], ["y"])],
                          [("x", INT64, [5, 2])], [("y",)], [tensor("at", INT64, [], [at]), *split])
            path, data = onnx.write_case(self.dir / f"s{at}{len(more)}{len(attrs)}", graph, [(INT64, [5, 2], x)], [(INT64, *want)])
            with self.subTest(attrs=attrs, more=more):
                self.ok("compare", path, "--reference", data, "--fill", "poison")
        graph = Graph([node("SplitToSequence", ["x", "parts"], ["s"]), node("SequenceAt", ["s", "at"], ["y"])],
                      [("x", INT64, [5, 2]), ("parts", INT64, [2])], [("y",)], [tensor("at", INT64, [], [1])])
        path, data = onnx.write_case(self.dir / "fed", graph, [(INT64, [5, 2], x), (INT64, [2], [2, 3])], [(INT64, [3, 2], x[4:])])
        self.ok("compare", path, "--reference", data, "--fill", "poison")

    def test_what_is_refused(self):
        zero, far = tensor("z", INT64, [], [0]), tensor("far", INT64, [], [3])
        make, x = node("SequenceConstruct", ["x", "x"], ["s"]), ("x", INT64, [2])
        for nodes, inputs, says in (([make, node("SequenceAt", ["s", "p"], ["y"])], [x, ("p", INT64, [])], "the place is no constant"),
                                    ([make, node("SequenceAt", ["s", "far"], ["y"])], [x], "no such place in a sequence of 2"),
                                    ([node("SequenceEmpty", [], ["s"]), node("SequenceErase", ["s"], ["t"]), node("SequenceLength", ["t"], ["y"])], [x], "no such place in a sequence of 0"),
                                    ([node("SequenceAt", ["s", "z"], ["y"]), make], [x], "which no node before it makes a sequence"),
                                    ([make, make, node("SequenceAt", ["s", "z"], ["y"])], [x], "which is no new sequence"),
                                    ([node("SequenceEmpty", [], ["s"]), node("ConcatFromSequence", ["s"], ["y"], axis=0)], [x], "cannot be joined"),
                                    ([make, node("Neg", ["s"], ["y"])], [x], "'s', which nothing produces"),
                                    ([node("SplitToSequence", ["x"], ["s"]), node("SequenceLength", ["s"], ["y"])], [("x", INT64, ["n"])], "known only while running"),
                                    ([node("SplitToSequence", ["x"], ["s"]), node("SequenceLength", ["s"], ["y"])], [("x", INT64, [1 << 40])], "too many parts"),
                                    ([node("If", ["c"], ["y"], then_branch=Graph([make, node("SequenceAt", ["s", "z"], ["a"])], [], [("a",)]),
                                           else_branch=Graph([node("Neg", ["x"], ["b"])], [], [("b",)]))], [x, ("c", onnx.BOOL, [])], "outside of bodies and functions")):
            with self.subTest(says=says):
                path = self.dir / "bad.onnx"
                path.write_bytes(onnx.model(Graph(nodes, inputs, [("y",)], [zero, far])))
                self.refused(3, "plan", path, says=[says])


if __name__ == "__main__":
    tidemark.main()
