# SPDX-License-Identifier: MIT
"""`run --decode N`: a decoder token by token over a paged KV cache (LT-40), held against attention written out anew."""
import copy
import json
import math
import sqlite3
import struct

import tidemark
from tidemark import SAMPLES, Case

STEP = SAMPLES / "decoder_step.json"
HEADS, HEAD_BYTES, LAYERS, MAX_TOKENS = 2, 16 * 4, 2, 64
TOKEN_BYTES = LAYERS * 2 * HEADS * HEAD_BYTES


# ---- the model once more: no cache, no pages, no masks, doubles instead of floats ----

def random_weights(doc):
    """The generator of docs/graph-text.md."""
    bits = (1 << 64) - 1
    weights = {}
    for init in doc["initializers"]:
        if "random" not in init:
            continue
        state = 0xCBF29CE484222325
        for byte in init["name"].encode():
            state = (state ^ byte) * 0x100000001B3 & bits
        low, high, numbers = init["random"]["low"], init["random"]["high"], []
        for _ in range(math.prod(init["shape"])):
            state = state + 0x9E3779B97F4A7C15 & bits
            z = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & bits
            z = (z ^ z >> 27) * 0x94D049BB133111EB & bits
            z ^= z >> 31
            numbers.append(struct.unpack("f", struct.pack("f", low + (high - low) * (z >> 11) / 2**53))[0])
        width = init["shape"][-1]
        rows = [numbers[i:i + width] for i in range(0, len(numbers), width)]
        weights[init["name"]] = rows if len(init["shape"]) > 1 else rows[0]
    return weights


def times(x, matrix):
    out = [0.0] * len(matrix[0])
    for a, row in zip(x, matrix):
        for j, b in enumerate(row):
            out[j] += a * b
    return out


def add(x, y):
    return [a + b for a, b in zip(x, y)]


def norm(x, scale, bias):
    mean = sum(x) / len(x)
    deviation = math.sqrt(sum((a - mean) ** 2 for a in x) / len(x) + 1e-5)
    return [(a - mean) / deviation * s + b for a, s, b in zip(x, scale, bias)]


def attend(query, keys, values):
    """One query over all keys, head by head."""
    out, width = [], len(query) // HEADS
    for h in range(0, len(query), width):
        scores = [sum(a * b for a, b in zip(query[h:h + width], k[h:h + width])) * 0.25 for k in keys]
        most = max(scores)
        parts = [math.exp(s - most) for s in scores]
        total = sum(parts)
        out += [sum(p * v[h + i] for p, v in zip(parts, values)) / total for i in range(width)]
    return out


def full_attention(w, tokens):
    """Logits of the last token and, per layer, keys and values of all: everything computed again from the tokens."""
    xs = [add(w["words"][t], w["places"][i]) for i, t in enumerate(tokens)]
    state, n_norm = [], 0
    for layer in range(1, LAYERS + 1):
        dense = lambda x, name: add(times(x, w[f"{name}{layer}.w"]), w[f"{name}{layer}.b"])
        n_norm += 1
        ns = [norm(x, w[f"norm{n_norm}.scale"], w[f"norm{n_norm}.bias"]) for x in xs]
        keys, values = [dense(n, "key") for n in ns], [dense(n, "value") for n in ns]
        state += [keys, values]
        n_norm += 1
        ys = []
        for i, (x, n) in enumerate(zip(xs, ns)):
            y = add(x, dense(attend(dense(n, "query"), keys[:i + 1], values[:i + 1]), "project"))
            f = dense(norm(y, w[f"norm{n_norm}.scale"], w[f"norm{n_norm}.bias"]), "widen")
            f = [0.5 * a * (1 + math.erf(a / math.sqrt(2))) for a in f]
            ys.append(add(y, dense(f, "narrow")))
        xs = ys
    last = norm(xs[-1], w["norm5.scale"], w["norm5.bias"])
    return times(last, w["head.w"]), state


def tensor_pb(path, dims, numbers, fmt):
    """An ONNX TensorProto by hand: dims, data_type (1 float32, 7 int64), raw_data."""
    def varint(n):
        out = b""
        while n > 127:
            out += bytes([n & 127 | 128])
            n >>= 7
        return out + bytes([n])
    raw = struct.pack(f"<{len(numbers)}{fmt}", *numbers)
    head = b"".join(b"\x08" + varint(d) for d in dims) + b"\x10" + varint(1 if fmt == "f" else 7)
    path.write_bytes(head + b"\x4a" + varint(len(raw)) + raw)


class Decode(Case):
    def decode(self, n, *args, file=STEP):
        return self.json("run", file, "--decode", n, *args)

    def peaks(self, doc):
        return {k["kind"]: k["peak_bytes"] for k in doc["kinds"]}

    # ---- memory ----

    def test_five_kinds_LT_40(self):
        """LT-40: weights, activations, cache, staging, inputs and outputs: each in a kind of its own."""
        doc = self.decode(40)
        plain = self.peaks(self.json("run", STEP, "-n", 1))
        got = self.peaks(doc)
        self.assertEqual(set(got), {"Default", "Persistent", "Workspace", "KVCache", "HostPinned"})
        for kind in ("Default", "Persistent", "Workspace"):
            self.assertEqual(got[kind], plain[kind])
        self.assertEqual(got["KVCache"], 3 * 16 * TOKEN_BYTES)
        self.assertEqual(got["HostPinned"], MAX_TOKENS * TOKEN_BYTES)
        self.assertEqual(doc["warm_allocations"], 0)
        self.assertEqual(doc["leaks"], [])
        text = self.ok("run", STEP, "--decode", 40, "--leak-check").stdout
        for word in ("KVCache", "HostPinned", "a page is 16 tokens", "leaks: none"):
            self.assertIn(word, text)
        lines = [line.split() for line in text.splitlines()]
        table = lines[[line[:1] for line in lines].index(["kind"]) + 1:][:6]  # five kinds, and together
        self.assertEqual({line[0] for line in table}, set(got) | {"together"})
        printed = {line[0]: float(line[1]) * {"B": 1, "KiB": 1024}[line[2]] for line in table}
        for kind, bytes_ in {**got, "together": sum(got.values())}.items():
            self.assertAlmostEqual(printed[kind], bytes_, delta=0.005 * 1024)
        rows = [line.split() for line in text.splitlines() if line.strip()[:1].isdigit()]
        self.assertEqual([row[:2] for row in rows[:4]], [["1", "1"], ["17", "2"], ["33", "3"], ["40", "3"]])

    def test_growth_by_whole_pages_LT_40(self):
        """LT-40: the cache grows by whole pages; what is unused is the end of the last one."""
        for page_tokens in (1, 3, 16, 64, 100):
            with self.subTest(page_tokens=page_tokens):
                decode = self.decode(MAX_TOKENS, "--page-tokens", page_tokens)["decode"]
                page_bytes = page_tokens * TOKEN_BYTES
                self.assertEqual(decode["page_bytes"], page_bytes)
                self.assertEqual(decode["token_bytes"], TOKEN_BYTES)
                self.assertEqual(len(decode["steps"]), MAX_TOKENS)
                for n, step in enumerate(decode["steps"], 1):
                    pages = -(-n // page_tokens)
                    want = {"tokens": n, "pages": pages, "taken_bytes": pages * page_bytes,
                            "used_bytes": n * TOKEN_BYTES, "waste_bytes": pages * page_bytes - n * TOKEN_BYTES}
                    self.assertEqual({k: step[k] for k in want}, want)

    def test_trace_has_it_all_LT_40(self):
        trace = self.dir / "decode.db"
        doc = self.decode(33, "-o", trace)
        db = sqlite3.connect(trace)
        self.addCleanup(db.close)
        pages = db.execute("SELECT requested_bytes FROM blocks WHERE kind = 'KVCache' AND name = 'kv page'").fetchall()
        self.assertEqual(pages, [(16 * TOKEN_BYTES,)] * 3)
        self.assertEqual(db.execute("SELECT name FROM blocks WHERE kind = 'HostPinned'").fetchall(), [("kv staging",)])
        self.assertEqual(db.execute("SELECT count(*) FROM leaks").fetchone(), (0,))
        self.assertEqual(db.execute("SELECT count(*) FROM run").fetchone(), (1,))
        self.ok("report", trace, "-o", self.dir / "decode.html")
        report = self.ok("report", trace, "-o", self.dir / "decode.json")
        self.assertEqual(report.stderr, "")
        kinds = {k["kind"]: k for k in json.loads((self.dir / "decode.json").read_text())["sides"][0]["kinds"]}
        for kind, peak in self.peaks(doc).items():
            self.assertEqual(kinds[kind]["measured_bytes"], peak)
        # No plan knows pages and staging; predicted - measured is the same sign in every view.
        differences = dict(db.execute("SELECT kind, difference_bytes FROM predicted_vs_measured").fetchall())
        self.assertEqual(differences, {k: kinds[k]["difference_bytes"] for k in kinds})
        self.assertEqual(differences["KVCache"], -3 * 16 * TOKEN_BYTES)
        self.assertTrue(f'<td title="{differences["KVCache"]} B">' in (self.dir / "decode.html").read_text())

    # ---- numbers ----

    def test_paging_changes_no_bit(self):
        """Every output of every step is the same, however the cache is paged and the memory planned."""
        want = self.decode(50)["decode"]
        tokens = [s["token"] for s in want["steps"]]
        self.assertGreater(len(set(tokens)), 5)
        for args in (["--page-tokens", 1], ["--page-tokens", 7], ["--page-tokens", 64], ["--naive"], ["--fill", "poison"],
                     ["--naive", "--fill", "poison"], ["--fill", "none"], ["--strategy", "greedy_color"],
                     ["--allocator", "cpu_caching"]):
            with self.subTest(args=args):
                got = self.decode(50, *args)["decode"]
                self.assertEqual(got["outputs_hash"], want["outputs_hash"])
                self.assertEqual([s["token"] for s in got["steps"]], tokens)
        self.assertNotEqual(self.decode(49)["decode"]["outputs_hash"], want["outputs_hash"])

    def test_same_as_without_a_cache(self):
        """Each token is the one that full attention over the prefix chooses; and one step's numbers agree."""
        w = random_weights(json.loads(STEP.read_text()))
        n_tokens = 20
        got = [s["token"] for s in self.decode(n_tokens)["decode"]["steps"]]
        tokens = [0]
        for n in range(n_tokens):
            logits, state = full_attention(w, tokens)
            first, second = sorted(logits)[-1:-3:-1]
            self.assertGreater(first - second, 1e-4, f"token {n} hangs on rounding: another sample is needed")
            self.assertEqual(got[n], logits.index(first), f"token {n} after {tokens}")
            tokens.append(logits.index(first))
        self.check_one_step(tokens[n_tokens - 1], n_tokens - 1, logits, state)

    def check_one_step(self, token, position, logits, state):
        data = self.dir / "step"
        data.mkdir()
        tensor_pb(data / "input_0.pb", [1], [token], "q")
        tensor_pb(data / "input_1.pb", [1], [position], "q")
        width = len(state[0][0]) // HEADS
        for i, rows in enumerate(state):
            cache = [rows[t][h * width + k] if t < position else 0.0
                     for h in range(HEADS) for t in range(MAX_TOKENS) for k in range(width)]
            tensor_pb(data / f"input_{2 + i}.pb", [1, HEADS, MAX_TOKENS, width], cache, "f")
            tensor_pb(data / f"output_{2 + i}.pb", [1, HEADS, 1, width], rows[position], "f")
        tensor_pb(data / "output_0.pb", [1], [logits.index(max(logits))], "q")
        tensor_pb(data / "output_1.pb", [1, len(logits)], logits, "f")
        doc = self.json("compare", STEP, "--reference", data, "-n", 1)
        self.assertEqual([o["name"] for o in doc["outputs"]["reference"]][:2], ["next", "logits"])
        self.assertEqual([o["pass"] for o in doc["outputs"]["reference"]], [True] * (2 + len(state)))

    # ---- refusals ----

    def write(self, change):
        doc = copy.deepcopy(json.loads(STEP.read_text()))
        change(doc)
        path = self.dir / "changed.json"
        path.write_text(json.dumps(doc))
        return path

    def test_no_decoder_step_is_refused(self):
        """What is missing is named."""
        def rename(old, new):
            return lambda doc: doc.update(json.loads(json.dumps(doc).replace(f'"{old}"', f'"{new}"')))

        def shape(name, dims):
            def change(doc):
                next(i for i in doc["inputs"] if i["name"] == name)["shape"] = dims
            return change

        cases = [
            (rename("token", "word"), "no input 'token'"),
            (rename("position", "at"), "no input 'position'"),
            (rename("next", "then"), "no output 'next'"),
            (rename("new.key2", "fresh.key2"), "no output 'new.key2'"),
            (rename("cache.value1", "value1"), "nothing feeds its input 'value1'"),
            (rename("new.key1", "new.keys1"), "no output 'new.key1'"),
            (rename("next", "new.token"), "no output 'next'"),
            (lambda doc: doc["outputs"].append("new.more") or doc["nodes"].append(
                {"op": "Identity", "inputs": ["logits"], "outputs": ["new.more"]}), "has no input 'cache.more'"),
            (lambda doc: doc["outputs"].remove("next"), "no output 'next'"),
        ]
        for change, says in cases:
            with self.subTest(says=says):
                self.refused(3, "run", self.write(change), "--decode", 2, says=["is no decoder step", says])
        self.refused(3, "run", SAMPLES / "lenet5.json", "--decode", 2, says=["'lenet5' is no decoder step", "docs/graph-text.md"])
        # A pair that does not fit together: built around a graph that ignores its cache.
        for dims, says in (([1, 4], "may differ in one extent only"), ([4, 2], "may differ in one extent only"),
                           ([3, 4], None), ([1, 5, 4], "may differ in one extent only")):
            doc = {"schema": "tidemark.graph", "version": 1, "name": "tiny", "opset": 13,
                   "inputs": [{"name": "token", "dtype": "int64", "shape": [1]},
                              {"name": "position", "dtype": "int64", "shape": [1]},
                              {"name": "cache.a", "dtype": "float32", "shape": dims}],
                   "initializers": [{"name": "four", "dtype": "int64", "shape": [2], "values": [1, 4]},
                                    {"name": "table", "dtype": "float32", "shape": [1, 4], "fill": 2}],
                   "nodes": [{"op": "Identity", "inputs": ["token"], "outputs": ["next"]},
                             {"op": "ReduceSum", "inputs": ["cache.a"], "outputs": ["sum"], "attrs": {"keepdims": 0}},
                             {"op": "Expand", "inputs": ["sum", "four"], "outputs": ["wide"]},
                             {"op": "Add", "inputs": ["wide", "table"], "outputs": ["new.a"]}],
                   "outputs": ["next", "new.a"]}
            path = self.dir / "tiny.json"
            path.write_text(json.dumps(doc))
            with self.subTest(dims=dims):
                if says is None:
                    steps = self.decode(3, "--page-tokens", 2, file=path)["decode"]["steps"]
                    self.assertEqual([s["pages"] for s in steps], [1, 1, 2])
                else:
                    self.refused(3, "run", path, "--decode", 1, says=[says, "cache.a"])
        doc["inputs"][1]["dtype"] = "float32"
        doc["inputs"][2]["shape"] = [3, 4]
        path.write_text(json.dumps(doc))
        self.refused(3, "run", path, "--decode", 1, says=["'position' is float32 [1], want one int64"])

    def test_numbers_out_of_range(self):
        self.refused(3, "run", STEP, "--decode", MAX_TOKENS + 1, says=["65 tokens do not fit its cache of 64", "--decode 64"])
        self.refused(2, "run", STEP, "--decode", 0, says=["at least 1"])
        self.refused(2, "run", STEP, "--decode", "many", says=["--decode"])
        self.refused(2, "run", STEP, "--page-tokens", 4, says=["with --decode only"])
        self.refused(2, "run", STEP, "--decode", 4, "--page-tokens", 0, says=["at least 1"])
        for option in (["-n", 3], ["--contexts", 2], ["--input-dir", self.dir]):
            self.refused(2, "run", STEP, "--decode", 4, *option, says=[option[0]])

    def test_budget(self):
        """A page that does not fit the budget ends the run: the token, the page and the numbers are in the message."""
        whole = sum(self.peaks(self.decode(40)).values())
        self.assertEqual(self.decode(40, "--limit", whole)["limit_bytes"], whole)
        p = self.refused(6, "run", STEP, "--decode", 40, "--limit", whole - 1,
                         says=["token 33 of 40", "kv page", "KVCache", "would have fit  nothing"])  # no half pages
        self.assertNotIn("leak", p.stderr)
        self.assertIn("1 token more for sequence 0 of 32", p.stderr)

    def test_budget_counts_what_pages_are_cut_from(self):
        """Will it fit: pages of 1536 B take 2048 B each of an allocator that rounds up to powers of two."""
        args = ["--page-tokens", 3, "--allocator", "cpu_caching"]
        held = sum(k["reserved_peak_bytes"] for k in self.decode(30, *args)["kinds"])  # its pages as the cache has them
        whole = held + 10 * (2048 - 1536)
        self.decode(30, *args, "--limit", whole)
        p = self.refused(6, "run", STEP, "--decode", 30, *args, "--limit", whole - 1, "--json",
                         says=["token 28 of 30", "kv page", "takes 2048 B", "not known: there is room, but rounding"])
        oom = json.loads(p.stdout)["oom"]
        self.assertEqual((oom["allocator"], oom["would_fit_bytes"]), ("paged", None))
        self.assertEqual((oom["active_bytes"], oom["reserved_bytes"]), (9 * 1536, 9 * 2048))


if __name__ == "__main__":
    tidemark.main()
