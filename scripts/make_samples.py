#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write sample_graphs/*.json: graph texts of well-known networks and of tiny graphs that each show one thing.

The structures follow the published papers; the text is generated so that a wrong stride is wrong in one place only.
Weights are seeded random initialisers (a few bytes in the file each). Usage: scripts/make_samples.py [OUT_DIR]
"""
import json
import math
import os
import sys


class Graph:
    """Builds one graph text; methods return the name of the value they make."""

    def __init__(self, name, comment, opset=13):
        self.doc = {"schema": "tidemark.graph", "version": 1, "name": name, "comment": comment, "opset": opset}
        self.inputs, self.inits, self.nodes, self.outputs = [], [], [], []
        self.shape_of = {}  # of weights, for channel counts
        self.count = {}

    def input(self, name, shape, dtype="float32"):
        self.inputs.append({"name": name, "dtype": dtype, "shape": shape})
        return name

    def weight(self, name, shape, low=None, high=None):
        fan_in = math.prod(shape[1:]) if len(shape) > 1 else max(shape[0] if shape else 1, 1)
        bound = round(math.sqrt(3.0 / fan_in), 4)
        low, high = (-bound, bound) if low is None else (low, high)
        self.inits.append({"name": name, "dtype": "float32", "shape": shape, "random": {"low": low, "high": high}})
        return name

    def const(self, name, values, dtype="int64", shape=None):
        shape = [len(values)] if shape is None else shape
        self.inits.append({"name": name, "dtype": dtype, "shape": shape, "values": values})
        return name

    def unique(self, stem):
        self.count[stem] = self.count.get(stem, 0) + 1
        return f"{stem}{self.count[stem]}"

    def node(self, op, inputs, name=None, n_out=1, outputs=None, **attrs):
        name = name or self.unique(op.lower())
        outputs = outputs or ([name + ".out"] if n_out == 1 else [f"{name}.out{i}" for i in range(n_out)])
        node = {"op": op, "name": name, "inputs": inputs, "outputs": outputs}
        if attrs:
            node["attrs"] = attrs
        self.nodes.append(node)
        return outputs[0] if len(outputs) == 1 else outputs

    def conv(self, x, cin, cout, kernel, stride=1, pad=0, group=1, bias=True, name=None):
        name = name or self.unique("conv")
        k = kernel if isinstance(kernel, list) else [kernel, kernel]
        p = pad if isinstance(pad, list) else [pad, pad]
        ins = [x, self.weight(name + ".w", [cout, cin // group] + k)]
        if bias:
            ins.append(self.weight(name + ".b", [cout], -0.1, 0.1))
        attrs = {"kernel_shape": k, "strides": [stride, stride], "pads": p + p}
        if group != 1:
            attrs["group"] = group
        return self.node("Conv", ins, name, **attrs)

    def bn(self, x, c, name=None):
        name = name or self.unique("bn")
        return self.node("BatchNormalization",
                         [x, self.weight(name + ".scale", [c], 0.5, 1.0), self.weight(name + ".bias", [c], -0.1, 0.1),
                          self.weight(name + ".mean", [c], -0.1, 0.1), self.weight(name + ".var", [c], 0.8, 1.2)],
                         name, epsilon=1e-5)

    def relu(self, x):
        return self.node("Relu", [x])

    def conv_bn(self, x, cin, cout, kernel, stride=1, pad=0, group=1, act=True):
        y = self.bn(self.conv(x, cin, cout, kernel, stride, pad, group, bias=False), cout)
        return self.relu(y) if act else y

    def linear(self, x, cin, cout, name=None):
        name = name or self.unique("fc")
        return self.node("Gemm", [x, self.weight(name + ".w", [cout, cin]), self.weight(name + ".b", [cout], -0.1, 0.1)],
                         name, transB=1)

    def matmul_bias(self, x, cin, cout, name):
        bound = round(math.sqrt(3.0 / cin), 4)
        y = self.node("MatMul", [x, self.weight(name + ".w", [cin, cout], -bound, bound)], name)
        return self.node("Add", [y, self.weight(name + ".b", [cout], -0.1, 0.1)], name + "_bias")

    def maxpool(self, x, kernel, stride, pad=0):
        return self.node("MaxPool", [x], kernel_shape=[kernel, kernel], strides=[stride, stride], pads=[pad] * 4)

    def concat(self, xs, axis=1):
        return self.node("Concat", xs, axis=axis)

    def output(self, *names):
        self.outputs += names

    def write(self, folder):
        lines = lambda items: "[\n" + ",\n".join("    " + json.dumps(i) for i in items) + "\n  ]" if items else "[]"
        head = ",\n".join(f"  {json.dumps(k)}: {json.dumps(v, ensure_ascii=False)}" for k, v in self.doc.items())
        text = ("{\n" + head + ",\n  \"inputs\": " + lines(self.inputs) + ",\n  \"initializers\": " + lines(self.inits)
                + ",\n  \"nodes\": " + lines(self.nodes) + ",\n  \"outputs\": " + json.dumps(self.outputs) + "\n}\n")
        with open(os.path.join(folder, self.doc["name"] + ".json"), "w", encoding="utf-8") as f:
            f.write(text)


# ---- published networks ----

def lenet5():
    g = Graph("lenet5", "LeNet-5 (LeCun et al. 1998): the smallest real network; two conv/pool pairs, three dense layers.")
    x = g.input("image", [1, 1, 28, 28])
    x = g.maxpool(g.relu(g.conv(x, 1, 6, 5, 1, 2)), 2, 2)
    x = g.maxpool(g.relu(g.conv(x, 6, 16, 5)), 2, 2)
    x = g.node("Flatten", [x], axis=1)
    x = g.relu(g.linear(x, 400, 120))
    x = g.relu(g.linear(x, 120, 84))
    x = g.linear(x, 84, 10)
    g.output(g.node("Softmax", [x], axis=1, outputs=["probabilities"]))
    return g


def squeezenet1_1():
    g = Graph("squeezenet1_1", "SqueezeNet 1.1 (Iandola et al. 2016): fire modules; the peak is early, in the first wide "
              "activations.")

    def fire(x, cin, squeeze, expand):
        s = g.relu(g.conv(x, cin, squeeze, 1))
        a = g.relu(g.conv(s, squeeze, expand, 1))
        b = g.relu(g.conv(s, squeeze, expand, 3, 1, 1))
        return g.concat([a, b])

    x = g.relu(g.conv(g.input("image", [1, 3, 224, 224]), 3, 64, 3, 2))
    x = g.maxpool(x, 3, 2)
    x = fire(fire(x, 64, 16, 64), 128, 16, 64)
    x = g.maxpool(x, 3, 2)
    x = fire(fire(x, 128, 32, 128), 256, 32, 128)
    x = g.maxpool(x, 3, 2)
    x = fire(fire(x, 256, 48, 192), 384, 48, 192)
    x = fire(fire(x, 384, 64, 256), 512, 64, 256)
    x = g.relu(g.conv(x, 512, 1000, 1))
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], axis=1)
    g.output(g.node("Softmax", [x], axis=1, outputs=["probabilities"]))
    return g


def resnet(depth):
    blocks = {18: [2, 2, 2, 2], 50: [3, 4, 6, 3]}[depth]
    what = ("residual connections keep a block's input alive beside its output" if depth == 18 else
            "bottleneck blocks: wide tensors meet at every addition")
    g = Graph(f"resnet{depth}", f"ResNet-{depth} (He et al. 2015): {what}.")
    x = g.maxpool(g.conv_bn(g.input("image", [1, 3, 224, 224]), 3, 64, 7, 2, 3), 3, 2, 1)
    cin = 64
    for stage, n in enumerate(blocks):
        width = 64 << stage
        cout = width if depth == 18 else 4 * width
        for i in range(n):
            stride = 2 if stage > 0 and i == 0 else 1
            if depth == 18:
                y = g.conv_bn(g.conv_bn(x, cin, width, 3, stride, 1), width, width, 3, 1, 1, act=False)
            else:
                y = g.conv_bn(x, cin, width, 1)
                y = g.conv_bn(y, width, width, 3, stride, 1)
                y = g.conv_bn(y, width, cout, 1, act=False)
            skip = x if stride == 1 and cin == cout else g.conv_bn(x, cin, cout, 1, stride, act=False)
            x = g.relu(g.node("Add", [y, skip]))
            cin = cout
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], axis=1)
    x = g.linear(x, cin, 1000)
    g.output(g.node("Softmax", [x], axis=1, outputs=["probabilities"]))
    return g


def mobilenet_v2():
    g = Graph("mobilenet_v2", "MobileNetV2 (Sandler et al. 2018): inverted residuals; the expanded middle of a block is the "
              "peak, the ends are narrow.")
    g.const("zero", [0.0], "float32", [])
    g.const("six", [6.0], "float32", [])

    def relu6(x):
        return g.node("Clip", [x, "zero", "six"])

    x = relu6(g.conv_bn(g.input("image", [1, 3, 224, 224]), 3, 32, 3, 2, 1, act=False))
    cin = 32
    for t, c, n, s in [(1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)]:
        for i in range(n):
            stride, mid = (s if i == 0 else 1), cin * t
            y = relu6(g.conv_bn(x, cin, mid, 1, act=False)) if t != 1 else x
            y = relu6(g.conv_bn(y, mid, mid, 3, stride, 1, group=mid, act=False))
            y = g.conv_bn(y, mid, c, 1, act=False)
            x = g.node("Add", [x, y]) if stride == 1 and cin == c else y
            cin = c
    x = relu6(g.conv_bn(x, 320, 1280, 1, act=False))
    x = g.node("Flatten", [g.node("GlobalAveragePool", [x])], axis=1)
    g.output(g.node("Softmax", [g.linear(x, 1280, 1000)], axis=1, outputs=["probabilities"]))
    return g


def inception_block():
    g = Graph("inception_block", "An Inception block (Szegedy et al. 2014): four branches that all stay alive until one "
              "concatenation.")
    x = g.input("x", [1, 192, 28, 28])
    a = g.relu(g.conv(x, 192, 64, 1))
    b = g.relu(g.conv(g.relu(g.conv(x, 192, 96, 1)), 96, 128, 3, 1, 1))
    c = g.relu(g.conv(g.relu(g.conv(x, 192, 16, 1)), 16, 32, 5, 1, 2))
    d = g.relu(g.conv(g.maxpool(x, 3, 1, 1), 192, 32, 1))
    g.output(g.relu(g.conv(g.concat([a, b, c, d]), 256, 64, 1)))
    return g


def densenet_block():
    g = Graph("densenet_block", "A DenseNet block (Huang et al. 2016): each layer reads all before it, so the "
              "concatenations grow and the naive sum is quadratic.")
    x, c, growth = g.input("x", [1, 64, 56, 56]), 64, 32
    for _ in range(6):
        y = g.relu(g.bn(x, c))
        y = g.relu(g.bn(g.conv(y, c, 4 * growth, 1, bias=False), 4 * growth))
        x = g.concat([x, g.conv(y, 4 * growth, growth, 3, 1, 1, bias=False)])
        c += growth
    y = g.conv(g.relu(g.bn(x, c)), c, c // 2, 1, bias=False)
    g.output(g.node("AveragePool", [y], kernel_shape=[2, 2], strides=[2, 2]))
    return g


def unet():
    g = Graph("unet", "A U-Net (Ronneberger et al. 2015), three levels: long skips from encoder to decoder hold early, "
              "large tensors alive.")

    def double(x, cin, cout):
        return g.relu(g.conv(g.relu(g.conv(x, cin, cout, 3, 1, 1)), cout, cout, 3, 1, 1))

    x, c, skips = double(g.input("image", [1, 3, 128, 128]), 3, 16), 16, []
    for _ in range(3):
        skips.append((x, c))
        x, c = double(g.maxpool(x, 2, 2), c, 2 * c), 2 * c
    for skip, cs in reversed(skips):
        name = g.unique("up")
        up = g.node("ConvTranspose", [x, g.weight(name + ".w", [c, cs, 2, 2]), g.weight(name + ".b", [cs], -0.1, 0.1)],
                    name, kernel_shape=[2, 2], strides=[2, 2])
        x, c = double(g.concat([skip, up]), 2 * cs, cs), cs
    g.output(g.node("Sigmoid", [g.conv(x, 16, 1, 1)], outputs=["mask"]))
    return g


# ---- transformers ----

def layer_norm(g, x, d):
    name = g.unique("norm")
    return g.node("LayerNormalization", [x, g.weight(name + ".scale", [d], 0.9, 1.1), g.weight(name + ".bias", [d], -0.1, 0.1)],
                  name, axis=-1, epsilon=1e-5)


def heads(g, x, shape, perm=(0, 2, 1, 3)):
    return g.node("Transpose", [g.node("Reshape", [x, shape])], perm=list(perm))


def transformer_encoder():
    d, h, t = 256, 4, 128
    g = Graph("transformer_encoder", "A transformer encoder block (Vaswani et al. 2017), pre-norm: the attention scores grow "
              "with the square of the sequence.", 20)
    x = g.input("tokens", [1, t, d])
    g.const("split_shape", [0, 0, h, d // h])
    g.const("merge_shape", [0, 0, d])
    g.const("scale", [round(1 / math.sqrt(d // h), 6)], "float32", [])
    n = layer_norm(g, x, d)
    q = heads(g, g.matmul_bias(n, d, d, "query"), "split_shape")
    k = heads(g, g.matmul_bias(n, d, d, "key"), "split_shape", (0, 2, 3, 1))
    v = heads(g, g.matmul_bias(n, d, d, "value"), "split_shape")
    scores = g.node("Softmax", [g.node("Mul", [g.node("MatMul", [q, k], "scores"), "scale"])], axis=-1)
    mixed = g.node("Transpose", [g.node("MatMul", [scores, v], "mix")], perm=[0, 2, 1, 3])
    y = g.node("Add", [x, g.matmul_bias(g.node("Reshape", [mixed, "merge_shape"]), d, d, "project")])
    f = g.node("Gelu", [g.matmul_bias(layer_norm(g, y, d), d, 4 * d, "widen")])
    g.output(g.node("Add", [y, g.matmul_bias(f, 4 * d, d, "narrow")], outputs=["encoded"]))
    return g


def decoder_kv():
    d, h, past = 256, 4, 63
    g = Graph("decoder_kv", "One decode step with a KV cache: past keys and values come in, one token is added, present ones "
              "go out.", 20)
    x = g.input("token", [1, 1, d])
    past_k = g.input("past_key", [1, h, past, d // h])
    past_v = g.input("past_value", [1, h, past, d // h])
    g.const("split_shape", [0, 0, h, d // h])
    g.const("merge_shape", [0, 0, d])
    g.const("scale", [round(1 / math.sqrt(d // h), 6)], "float32", [])
    n = layer_norm(g, x, d)
    q = heads(g, g.matmul_bias(n, d, d, "query"), "split_shape")
    k = g.node("Concat", [past_k, heads(g, g.matmul_bias(n, d, d, "key"), "split_shape")], "grow_key", axis=2,
               outputs=["present_key"])
    v = g.node("Concat", [past_v, heads(g, g.matmul_bias(n, d, d, "value"), "split_shape")], "grow_value", axis=2,
               outputs=["present_value"])
    kt = g.node("Transpose", [k], perm=[0, 1, 3, 2])
    scores = g.node("Softmax", [g.node("Mul", [g.node("MatMul", [q, kt], "scores"), "scale"])], axis=-1)
    mixed = g.node("Transpose", [g.node("MatMul", [scores, v], "mix")], perm=[0, 2, 1, 3])
    y = g.node("Add", [x, g.matmul_bias(g.node("Reshape", [mixed, "merge_shape"]), d, d, "project")])
    f = g.node("Gelu", [g.matmul_bias(layer_norm(g, y, d), d, 4 * d, "widen")])
    g.output(g.node("Add", [y, g.matmul_bias(f, 4 * d, d, "narrow")], outputs=["next"]), "present_key", "present_value")
    return g


def decoder_step():
    vocab, d, h, t, layers = 96, 32, 2, 64, 2
    dh = d // h
    g = Graph("decoder_step", "One step of a two-layer decoder over a cache of at most 64 tokens: made for `run --decode N` "
              "(docs/graph-text.md).", 20)
    token, position = g.input("token", [1], "int64"), g.input("position", [1], "int64")
    g.const("split_shape", [1, 1, h, dh])
    g.const("merge_shape", [1, 1, d])
    g.const("flat_shape", [1, d])
    g.const("scale", [round(1 / math.sqrt(dh), 6)], "float32", [])
    # Places of the cache, and -1 for the new token, which comes last: what lies before `position` is there.
    g.const("slots", list(range(t)) + [-1])
    g.const("open", [0], "float32", [])
    g.const("shut", [-1e9], "float32", [])
    mask = g.node("Where", [g.node("Less", ["slots", position], "is_there"), "open", "shut"], "mask")
    x = g.node("Add", [g.node("Gather", [g.weight("words", [vocab, d], -1, 1), token], "word"),
                       g.node("Gather", [g.weight("places", [t, d], -1, 1), position], "place")], "embed")
    x = g.node("Reshape", [x, "merge_shape"], "tokens")
    new = []
    for i in range(1, layers + 1):
        n = layer_norm(g, x, d)
        q = heads(g, g.matmul_bias(n, d, d, f"query{i}"), "split_shape")
        kv = []
        for word in ("key", "value"):
            cache = g.input(f"cache.{word}{i}", [1, h, t, dh])
            one = g.node("Reshape", [g.matmul_bias(n, d, d, f"{word}{i}"), "split_shape"])
            new.append(g.node("Transpose", [one], perm=[0, 2, 1, 3], outputs=[f"new.{word}{i}"]))
            kv.append(g.node("Concat", [cache, new[-1]], f"all_{word}s{i}", axis=2))
        scores = g.node("MatMul", [q, g.node("Transpose", [kv[0]], perm=[0, 1, 3, 2])], f"scores{i}")
        scores = g.node("Add", [g.node("Mul", [scores, "scale"]), mask])
        mixed = g.node("MatMul", [g.node("Softmax", [scores], axis=-1), kv[1]], f"mix{i}")
        mixed = g.node("Reshape", [g.node("Transpose", [mixed], perm=[0, 2, 1, 3]), "merge_shape"])
        y = g.node("Add", [x, g.matmul_bias(mixed, d, d, f"project{i}")])
        f = g.node("Gelu", [g.matmul_bias(layer_norm(g, y, d), d, 4 * d, f"widen{i}")])
        x = g.node("Add", [y, g.matmul_bias(f, 4 * d, d, f"narrow{i}")])
    x = g.node("Reshape", [layer_norm(g, x, d), "flat_shape"])
    logits = g.node("MatMul", [x, g.weight("head.w", [d, vocab], -0.3, 0.3)], "head", outputs=["logits"])
    g.output(g.node("ArgMax", [logits], "choose", axis=1, keepdims=0, outputs=["next"]), logits, *new)
    return g


# ---- teaching graphs ----

def diamond():
    g = Graph("diamond", "One value read by two branches: it must live until the second has read it.")
    x = g.node("Relu", [g.input("x", [1, 16, 32, 32])], "top")
    a = g.node("Sigmoid", [x], "left")
    b = g.node("Tanh", [x], "right")
    g.output(g.node("Mul", [a, b], "bottom"))
    return g


def long_skip():
    g = Graph("long_skip", "A skip connection used ten steps later: one tensor outlives the whole chain beside it.")
    first = g.node("Relu", [g.input("x", [1, 8, 64, 64])], "first")
    x = first
    for i in range(9):
        x = g.node(["Tanh", "Sigmoid", "Abs"][i % 3], [x], f"chain{i + 1}")
    g.output(g.node("Mul", [x, first], "join"))
    return g


def split_two_outputs():
    g = Graph("split_two_outputs", "A node with two outputs that both stay alive: each needs a place of its own.")
    x = g.node("Sigmoid", [g.input("x", [1, 32, 16, 16])], "before")
    a, b = g.node("Split", [x, g.const("sizes", [8, 24])], "split", n_out=2, axis=1)
    a = g.node("Tanh", [a], "small")
    b = g.node("Abs", [b], "large")
    g.output(g.concat([b, a]))
    return g


def view_chain():
    g = Graph("view_chain", "Reshape, Squeeze, Flatten, Identity: four names for the same bytes.")
    x = g.node("Sigmoid", [g.input("x", [1, 4, 16, 16])], "source")
    x = g.node("Reshape", [x, g.const("shape", [1, 1, 32, 32])], "reshape")
    x = g.node("Squeeze", [x, g.const("axes", [0])], "squeeze")
    x = g.node("Flatten", [x], "flatten", axis=1)
    x = g.node("Identity", [x], "identity")
    g.output(g.node("Tanh", [x], "sink"))
    return g


def early_output():
    g = Graph("early_output", "A graph output made at the first step and read again at the last: its bytes must never be "
              "reused.")
    early = g.node("Sigmoid", [g.input("x", [1, 8, 32, 32])], "early", outputs=["early"])
    x = early
    for i in range(5):
        x = g.node("Tanh" if i % 2 else "Abs", [x], f"later{i + 1}")
    g.output("early", g.node("Mul", [x, early], "last", outputs=["late"]))
    return g


def dynamic_batch():
    g = Graph("dynamic_batch", "An open batch extent: sizes are unknown until --shape x=8x64 says them; never guessed.")
    x = g.input("x", ["batch", 64])
    x = g.relu(g.linear(x, 64, 256))
    x = g.relu(g.linear(x, 256, 256))
    g.output(g.linear(x, 256, 10))
    return g


def main():
    folder = sys.argv[1] if len(sys.argv) > 1 else os.path.join(os.path.dirname(__file__), "..", "sample_graphs")
    for g in [lenet5(), squeezenet1_1(), resnet(18), resnet(50), mobilenet_v2(), inception_block(), densenet_block(), unet(),
              transformer_encoder(), decoder_kv(), decoder_step(), diamond(), long_skip(), split_two_outputs(),
              view_chain(), early_output(), dynamic_batch()]:
        g.write(folder)


if __name__ == "__main__":
    main()
