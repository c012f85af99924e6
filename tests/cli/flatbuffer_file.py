# SPDX-License-Identifier: MIT
"""Flatbuffers, written from Python: what tests need of the wire format (flatbuffers.dev, "Internals"), and on it models of
TensorFlow Lite and programs of ExecuTorch by the field numbers of their schemas.

A table is a dict of {field: value}; a value is one of the functions below. Parents come before children, each table behind
a vtable of its own, numbers at their natural alignment."""
import struct


def u8(n):
    return ("B", n)


def i32(n):
    return ("i", n)


def u32(n):
    return ("I", n)


def u64(n):
    return ("Q", n)


def text(s):
    return ("text", s.encode() if isinstance(s, str) else s)


def numbers(values, kind="i"):
    return ("numbers", (kind, list(values)))


def blob(data):
    return ("numbers", ("B", list(data)))


def table(fields):
    return ("table", fields)


def tables(list_of_fields):
    return ("tables", list(list_of_fields))


class Writer:
    def __init__(self):
        self.out = bytearray()

    def align(self, n, behind=0):
        """So that what stands `behind` bytes from here is aligned."""
        self.out += bytes(-(len(self.out) + behind) % n)

    def point(self, at):
        """The offset at `at` leads to the end of what there is."""
        struct.pack_into("<I", self.out, at, len(self.out) - at)

    def vector(self, at, kind, values):
        size = struct.calcsize(kind)
        self.align(max(4, size), 4)
        self.point(at)
        self.out += struct.pack(f"<I{len(values)}{kind}", len(values), *values)

    def value(self, at, kind, value):
        if kind == "text":
            self.align(4)
            self.point(at)
            self.out += struct.pack("<I", len(value)) + value + b"\0"
        elif kind == "numbers":
            self.vector(at, *value)
        elif kind == "table":
            self.table(at, value)
        else:
            self.align(4)
            self.point(at)
            self.out += struct.pack("<I", len(value)) + bytes(4 * len(value))
            first = len(self.out) - 4 * len(value)
            for i, fields in enumerate(value):
                self.table(first + 4 * i, fields)

    def table(self, at, fields):
        sizes = {slot: struct.calcsize(kind) if len(kind) == 1 else 4 for slot, (kind, _) in fields.items()}
        offsets, end = {}, 4
        for slot in sorted(fields, key=lambda s: -sizes[s]):
            end += -(end + 4) % sizes[slot] if sizes[slot] == 8 else -end % sizes[slot]
            offsets[slot], end = end, end + sizes[slot]
        n = 4 + 2 * (max(fields, default=-1) + 1)
        self.align(8, n + 4)
        vtable = len(self.out)
        self.out += struct.pack("<HH", n, end) + b"".join(struct.pack("<H", offsets.get(s, 0)) for s in range((n - 4) // 2))
        begin = len(self.out)
        self.point(at)
        self.out += struct.pack("<i", begin - vtable) + bytes(end - 4)
        for slot, (kind, value) in fields.items():
            if len(kind) == 1:
                struct.pack_into("<" + kind, self.out, begin + offsets[slot], value)
        for slot, (kind, value) in fields.items():
            if len(kind) > 1:
                self.value(begin + offsets[slot], kind, value)


def encode(root, identifier, head=b""):
    """A whole file; `head` stands behind the identifier."""
    w = Writer()
    w.out += bytes(4) + identifier + head
    w.table(0, root)
    w.align(8)
    return bytes(w.out)


# ---- TensorFlow Lite (tensorflow/compiler/mlir/lite/schema/schema.fbs, 3d) ----

FLOAT32, INT32, UINT8, INT64, STRING, BOOL, INT8, INT4, INT2 = 0, 2, 3, 4, 5, 6, 9, 17, 19
ADD, CONV_2D, RELU, CALL, CUSTOM, IF, WHILE, CALL_ONCE = 0, 3, 19, 31, 32, 118, 119, 129
STABLEHLO_WHILE, STABLEHLO_COMPOSITE, STABLEHLO_CASE = 200, 206, 209


def lite_tensor(name, shape, type=FLOAT32, buffer=0, variable=False, signature=None, **more):
    fields = {0: numbers(shape), 1: u8(type), 2: u32(buffer), 3: text(name)}
    if variable:
        fields[5] = u8(1)
    if signature is not None:
        fields[7] = numbers(signature)
    return {**fields, **{int(k[1:]): v for k, v in more.items()}}


def lite_op(code, inputs, outputs, intermediates=None, bodies=None, second=False):
    """`code` is the index of the operator's code. `bodies`: {field of its options: subgraph}."""
    fields = {0: u32(code), 1: numbers(inputs), 2: numbers(outputs)}
    if intermediates is not None:
        fields[8] = numbers(intermediates)
    if bodies is not None:
        kind, options = (11, 12) if second else (3, 4)
        fields[kind] = u8(1)
        fields[options] = table({slot: i32(k) for slot, k in bodies.items()})
    return fields


def lite_graph(tensors, inputs, outputs, ops, name=None):
    fields = {0: tables(tensors), 1: numbers(inputs), 2: numbers(outputs), 3: tables(ops)}
    return {**fields, 4: text(name)} if name is not None else fields


def lite_code(builtin, custom=None):
    fields = {0: u8(min(builtin, 127)), 3: i32(builtin)}
    return {**fields, 1: text(custom)} if custom is not None else fields


def lite_model(codes, graphs, buffers=(b"",), metadata=()):
    """`codes`: numbers of operators or lite_code; `buffers`: bytes, or fields; `metadata`: (name, buffer)."""
    return encode({0: u32(3), 1: tables(c if isinstance(c, dict) else lite_code(c) for c in codes), 2: tables(graphs),
                   3: text("made by a test"),
                   4: tables(b if isinstance(b, dict) else {0: blob(b)} if b else {} for b in buffers),
                   6: tables({0: text(name), 1: u32(b)} for name, b in metadata)}, b"TFL3")


# ---- ExecuTorch (schema/program.fbs, ET12) ----

BYTE, CHAR, INT, LONG, HALF, FLOAT, TORCH_BOOL = 0, 1, 3, 4, 5, 6, 11


def torch_tensor(sizes, place=None, type=FLOAT, data=0, dynamism=0, name=None, external=False):
    """`place`: (memory, offset)."""
    fields = {0: u8(type), 2: numbers(sizes), 5: u32(data), 8: u8(dynamism)}
    if place is not None:
        fields[6] = table({0: u32(place[0]), 1: u32(place[1] & 0xffffffff), 2: u32(place[1] >> 32)})
    if name is not None or external:
        fields[9] = table({1: text(name or ""), 2: u8(external)})
    return {0: u8(5), 1: table(fields)}


def torch_int(n=1):
    return {0: u8(2), 1: table({0: u64(n)})}


def torch_list(items, optional=False):
    return {0: u8(11 if optional else 10), 1: table({0: numbers(items)})}


def torch_kernel(op, args):
    return {0: u8(1), 1: table({0: i32(op), 1: numbers(args)})}


def torch_delegate(delegate, args):
    return {0: u8(2), 1: table({0: i32(delegate), 1: numbers(args)})}


def torch_move(source, target):
    return {0: u8(3), 1: table({0: i32(source), 1: i32(target)})}


def torch_jump(condition, to):
    return {0: u8(4), 1: table({0: i32(condition), 1: i32(to)})}


def torch_free(value):
    return {0: u8(5), 1: table({0: i32(value)})}


def torch_method(values, inputs, outputs, instructions, operators=(("aten::add", "out"),), sizes=(0, 0), delegates=(), devices=(),
                 name="forward"):
    """`devices`: (memory, type, index)."""
    return {0: text(name), 2: tables(values), 3: numbers(inputs), 4: numbers(outputs),
            5: tables([{2: tables(instructions)}]), 6: tables({0: text(a), 1: text(b)} for a, b in operators),
            7: tables({0: text(d)} for d in delegates), 8: numbers(sizes, "q"),
            9: tables({0: i32(m), 1: u8(t), 2: u8(i)} for m, t, i in devices)}


def torch_program(methods, constants=1, segment=b"", identifier=b"ET12", header=True):
    """Constants lie in one segment behind the program; `constants` is how many numbers of them there are."""
    root = {0: u32(0), 1: tables(methods), 4: tables([{0: u64(0), 1: u64(len(segment))}] if segment else []),
            5: table({0: u32(0), 1: numbers([0] * constants, "Q")})}
    head = struct.pack("<4sIQQQ", b"eh00", 32, 0, 0, 0) if header else b""
    out = bytearray(encode(root, identifier, head))
    if header:
        out += bytes(-len(out) % 16)
        struct.pack_into("<QQQ", out, 16, len(out), len(out), len(segment))
    return bytes(out) + segment
