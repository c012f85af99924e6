# SPDX-License-Identifier: MIT
"""What a model has and the program does not serve is refused by name, with the node: attributes that an operator does not have,
sequences, optionals, maps, strings, sparse tensors, types of fewer than 8 bits."""
import onnx_file as onnx
from onnx_file import FLOAT, INT64, BOOL, Graph, message, node, number, tensor
from tidemark import Case, main

STRING, COMPLEX, F8, INT4 = 8, 14, 17, 22


def of_tensor(dtype, dims=(2,)):
    return message(1, number(1, dtype) + message(2, b"".join(message(1, number(1, d)) for d in dims)))


def sequence(of):
    return message(4, message(1, of))


def optional(of):
    return message(9, message(1, of))


MAP = message(5, number(1, INT64) + message(2, of_tensor(FLOAT)))
SPARSE = message(8, number(1, FLOAT) + message(2, message(1, number(1, 2))))
STRINGS = number(1, 1) + number(2, STRING) + message(6, "a") + message(8, "s")
ANY = of_tensor(FLOAT)


def graph(nodes, ins, outs, initializers=()):
    """Inputs and outputs: name to type."""
    of = [*(message(1, n) for n in nodes), message(2, "made"), *(message(5, t) for t in initializers)]
    for field, values in ((11, ins), (12, outs)):
        of += [message(field, message(1, name) + message(2, type)) for name, type in values.items()]
    return b"".join(of)


def model(nodes, ins, outs, initializers=(), opset=17):
    return number(1, 8) + message(7, graph(nodes, ins, outs, initializers)) + b"".join(
        message(8, message(1, d) + number(2, v)) for d, v in (("", opset), ("com.microsoft", 1)))


def one(op, attributes, opset=17, n_in=1, domain=""):
    names = [f"x{i}" for i in range(n_in)]
    return model([node(op, names, ["y"], name="n1", domain=domain, **attributes)], {n: of_tensor(FLOAT, (1, 1, 4, 4)) for n in names},
                 {"y": of_tensor(FLOAT, (1, 1, 4, 4))}, opset=opset)


class Refused(Case):
    def says(self, data, *words, commands=(("plan",),)):
        path = self.dir / "model.onnx"
        path.write_bytes(data)
        for command in commands:
            self.refused(3, *command, path, says=words)

    def test_attributes(self):
        """A mistyped attribute would give another result in silence."""
        self.says(one("MaxPool", {"kernel_shape": [2, 2], "stride": [2, 2]}), "MaxPool 'n1'", "no attribute 'stride'", "'strides'",
                  commands=(("plan",), ("run", "-n", "1"), ("compare",)))
        self.says(one("Softmax", {"axes": 1}), "Softmax 'n1'", "no attribute 'axes'", "'axis'")
        self.says(one("MaxPool", {"kernel_shape": [2, 2], "dilations": [1, 1]}, opset=9), "attribute 'dilations' is there from opset 10")
        self.says(one("Squeeze", {"axes": [0]}), "attribute 'axes' is there up to opset 12", "opset 17")
        self.says(one("QuickGelu", {"alph": 1.0}, domain="com.microsoft"), "QuickGelu 'n1'", "'alph'", "'alpha'")
        path = self.dir / "model.onnx"
        path.write_bytes(one("MaxPool", {"kernel_shape": [1, 1], "__note": "of an exporter"}))
        self.ok("plan", path)

    def test_attributes_of_bodies(self):
        """No graph that an attribute holds is left out in silence."""
        branch = Graph([node("Relu", ["x"], ["t"], name="in")], [], [("t",)])
        ins, outs = {"x": ANY, "c": of_tensor(BOOL, ())}, {"y": ANY}
        good = {"then_branch": branch, "else_branch": branch}
        self.says(model([node("If", ["c"], ["y"], name="n1", **good, thenbranch=branch)], ins, outs), "'n1'", "'thenbranch'")
        self.says(model([node("Relu", ["x"], ["y"], name="n1", body=branch)], ins, outs), "'n1'", "'body'")

    def test_values_that_are_no_tensors(self):
        ins, outs = {"s": sequence(ANY), "i": of_tensor(INT64, ())}, {"y": ANY}
        self.says(model([node("SequenceAt", ["s", "i"], ["y"], name="n1")], ins, outs), "'s' is a sequence", "'n1' (SequenceAt)")
        self.says(model([node("OptionalGetElement", ["s"], ["y"], name="n1")], {"s": optional(ANY)}, outs), "'s' is an optional", "'n1'")
        self.says(model([node("Identity", ["s"], ["y"], name="n1")], {"s": MAP}, outs), "'s' is a map", "'n1' (Identity)")
        self.says(model([node("Identity", ["s"], ["y"], name="n1")], {"s": SPARSE}, outs), "'s' is a sparse tensor", "'n1' (Identity)")
        self.says(model([node("Relu", ["x"], ["y"], name="n1")], {"x": ANY, "s": sequence(ANY)}, outs), "'s' is a sequence")
        made = model([node("Relu", ["x"], ["s"], name="n1")], {"x": ANY}, {"s": sequence(ANY)})
        self.says(made, "'s' is a sequence", "'n1' (Relu)")
        self.says(model([node("Optional", ["x"], ["s"], name="n1"), node("OptionalHasElement", ["s"], ["y"], name="n2")], {"x": ANY},
                        {"y": of_tensor(INT64, ())}), "operator 'Optional' of node 'n1'")

    def test_types(self):
        text = {"s": of_tensor(STRING)}
        for op in ("Identity", "StringNormalizer"):
            self.says(model([node(op, ["s"], ["y"], name="n1")], text, {"y": of_tensor(STRING)}), "'s' has the element type string", f"'n1' ({op})")
        self.says(model([node("Identity", ["s"], ["y"], name="n1")], {}, {"y": of_tensor(STRING)}, [STRINGS]), "'s' has the element type string")
        y = {"y": ANY}
        for attributes in ({"value_string": "a"}, {"value": STRINGS}):
            self.says(model([node("Constant", [], ["t"], name="n1", **attributes), node("Relu", ["x"], ["y"], name="n2")], {"x": ANY}, y),
                      "string", "'n1'")
        for to, name in ((STRING, "string"), (F8, "float8e4m3fn"), (INT4, "int4"), (99, "99")):
            self.says(model([node("Cast", ["x"], ["t"], name="n1", to=to), node("Cast", ["t"], ["y"], name="n2", to=FLOAT)], {"x": ANY}, y, opset=21),
                      "Cast 'n1'", name)
        self.says(model([node("Identity", ["s"], ["y"], name="n1")], {"s": of_tensor(COMPLEX)}, {"y": of_tensor(COMPLEX)}), "complex64", "'n1'")


if __name__ == "__main__":
    main()
