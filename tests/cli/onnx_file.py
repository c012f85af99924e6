# SPDX-License-Identifier: MIT
"""ONNX files, written from Python: the protobuf wire format of what tests need of them."""
import struct

FLOAT, INT64, BOOL = 1, 7, 9
SIZES = {FLOAT: "f", INT64: "q", BOOL: "?"}


def varint(n):
    n &= (1 << 64) - 1
    out = bytearray()
    while n > 127:
        out.append(n & 127 | 128)
        n >>= 7
    out.append(n)
    return bytes(out)


def number(field, n):
    return varint(field << 3) + varint(n)


def message(field, data):
    data = data.encode() if isinstance(data, str) else data
    return varint(field << 3 | 2) + varint(len(data)) + data


def tensor(name, dtype, dims, values):
    raw = struct.pack(f"<{len(values)}{SIZES[dtype]}", *values)
    return b"".join(number(1, d) for d in dims) + number(2, dtype) + message(8, name) + message(9, raw)


def attribute(name, value):
    """A number, a list of numbers, a text, a Graph, or the bytes of a tensor; Ref: one of the function around it."""
    out = message(1, name)
    if isinstance(value, Ref):
        return out + message(21, value.name) + number(20, value.type)
    if isinstance(value, bytes):
        return out + message(5, value) + number(20, 4)
    if isinstance(value, Graph):
        return out + message(6, value.encode()) + number(20, 5)
    if isinstance(value, str):
        return out + message(4, value) + number(20, 3)
    if isinstance(value, float):
        return out + varint(2 << 3 | 5) + struct.pack("<f", value) + number(20, 1)
    if isinstance(value, list):
        return out + b"".join(number(8, v) for v in value) + number(20, 7)
    return out + number(3, value) + number(20, 2)


class Ref:
    def __init__(self, name, type):
        self.name, self.type = name, type


def node(op, inputs, outputs, name="", domain="", **attributes):
    return b"".join([*(message(1, i) for i in inputs), *(message(2, o) for o in outputs), message(3, name), message(4, op),
                     *(message(5, attribute(k, v)) for k, v in attributes.items()), message(7, domain)])


def value(name, dtype=None, dims=None):
    """dims: numbers, names of open extents; None: not even the rank is known."""
    if dtype is None:
        return message(1, name)
    shape = b"" if dims is None else message(2, b"".join(
        message(1, number(1, d) if isinstance(d, int) else message(2, d)) for d in dims))
    return message(1, name) + message(2, message(1, number(1, dtype) + shape))


class Graph:
    """Inputs and outputs are what value() takes."""

    def __init__(self, nodes, inputs, outputs, initializers=(), name="made"):
        self.nodes, self.inputs, self.outputs, self.initializers, self.name = nodes, inputs, outputs, initializers, name

    def encode(self):
        return b"".join([*(message(1, n) for n in self.nodes), message(2, self.name), *(message(5, t) for t in self.initializers),
                         *(message(11, value(*i)) for i in self.inputs), *(message(12, value(*o)) for o in self.outputs)])


def function(name, inputs, outputs, nodes, attributes=(), domain="local", opset=16, defaults=()):
    return b"".join([message(1, name), *(message(4, i) for i in inputs), *(message(5, o) for o in outputs),
                     *(message(6, a) for a in attributes), *(message(7, n) for n in nodes), *(message(11, a) for a in defaults),
                     message(9, number(2, opset)), message(9, message(1, domain) + number(2, 1)), message(10, domain)])


def model(graph, functions=(), opset=16, domains=("local",)):
    return b"".join([number(1, 8), message(7, graph.encode()), message(8, number(2, opset)),
                     *(message(8, message(1, d) + number(2, 1)) for d in domains), *(message(25, f) for f in functions)])


def write_case(folder, graph, inputs, outputs, **kw):
    """A model and one data set: (dtype, dims, values) of each input and output. @return the model's path and the set's"""
    data = folder / "test_data_set_0"
    data.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(model(graph, **kw))
    for kind, tensors in (("input", inputs), ("output", outputs)):
        for i, t in enumerate(tensors):
            (data / f"{kind}_{i}.pb").write_bytes(tensor("", *t))
    return folder / "model.onnx", data
