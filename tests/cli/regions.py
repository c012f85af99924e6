# SPDX-License-Identifier: MIT
"""If, Loop and Scan: random programs beside an interpreter of this file's own, and files that are wrong."""
import json
import os
import random

import onnx_file as onnx
from onnx_file import BOOL, INT64, Graph, Ref, node, tensor
from tidemark import Case

N_RANDOM = 40 if "TIDE_SOAK" not in os.environ else 4000


# ---- an interpreter: values are lists of whole numbers, conditions lists of one bool ----

class Maker:
    """Builds a program and calculates what it gives, at once: each call adds one node and its result."""

    def __init__(self, rng, prefix="", outer=None, depth=0):
        self.rng, self.prefix, self.outer, self.depth = rng, prefix, outer, depth
        self.code = []         # functions of an environment, to be run again for each iteration
        self.nodes, self.names = [], []
        self.n = 0

    def fresh(self, stem="v"):
        self.n += 1
        return f"{self.prefix}{stem}{self.n}"

    def visible(self):
        return self.names + (self.outer.visible() if self.outer else [])

    def pick(self):
        # What was made here last is taken more often: chains, not stars.
        if self.names and self.rng.random() < 0.6:
            return self.rng.choice(self.names[-3:])
        return self.rng.choice(self.visible())

    def add(self, op, inputs, calculate, stem="v", **attributes):
        out = self.fresh(stem)
        self.nodes.append(node(op, inputs, [out], name=f"{self.prefix}{op}{self.n}", **attributes))
        self.code.append(lambda env: env.__setitem__(out, calculate(*(env[i] for i in inputs))))
        return out

    def sum_of(self, name):
        return self.add("ReduceSum", [name], lambda a: [wrap(sum(a))], stem="s", keepdims=1)

    def statement(self):
        kinds = ["sum", "join", "arith", "arith", "arith"] + (["if", "loop", "scan"] if self.depth < 3 else [])
        getattr(self, "make_" + self.rng.choice(kinds))()

    def make_sum(self):
        self.names.append(self.sum_of(self.pick()))

    def make_join(self):
        a, b = self.pick(), self.pick()
        joined = self.add("Concat", [a, b], lambda a, b: a + b, axis=0)
        self.names.append(self.add("Slice", [joined, "zero", "five"], lambda a, *_: a[0:5]))

    def make_arith(self):
        a, b = self.pick(), self.sum_of(self.pick())
        op, calculate = self.rng.choice([("Add", lambda x, y: x + y), ("Sub", lambda x, y: x - y), ("Mul", lambda x, y: x * y)])
        made = self.add(op, [a, b], lambda a, b: [wrap(calculate(x, b[0])) for x in a])
        self.names.append(self.add("Mod", [made, "prime"], lambda a, p: [x % p[0] for x in a]))

    def condition(self, a, b):
        return self.add("Less", [self.sum_of(a), self.sum_of(b)], lambda a, b: [a[0] < b[0]], stem="c")

    def body(self):
        self.n += 1
        return Maker(self.rng, f"{self.prefix}b{self.n}_", self, self.depth + 1)

    def fill(self, inner):
        for _ in range(self.rng.randint(1, 4)):
            inner.statement()

    def make_if(self):
        condition = self.condition(self.pick(), self.pick())
        branches, n_out = [], self.rng.randint(1, 2)
        for _ in range(2):
            inner = self.body()
            self.fill(inner)
            # Sometimes what comes out is from outside.
            results = [inner.pick() for _ in range(n_out)]
            branches.append((inner, results))
        outs = [self.fresh() for _ in range(n_out)]
        graphs = [Graph(i.nodes, [], [(r,) for r in results]) for i, results in branches]
        self.nodes.append(node("If", [condition], outs, name=f"{self.prefix}If{self.n}", then_branch=graphs[0], else_branch=graphs[1]))

        def run(env):
            inner, results = branches[0 if env[condition][0] else 1]
            scope = dict(env)
            for step in inner.code:
                step(scope)
            for out, result in zip(outs, results):
                env[out] = scope[result]
        self.code.append(run)
        self.names += outs

    def make_loop(self):
        inner, n_carried = self.body(), self.rng.randint(0, 3)
        given = [inner.fresh("i") for _ in range(n_carried)]
        number, going = inner.fresh("n"), inner.fresh("g")
        inits = [self.pick() for _ in range(n_carried)]
        inner.names += given
        trips = self.rng.choice(["", "two", "trips", "zero_trips"])
        if not inner.names:
            inner.names.append(inner.add("Add", [self.pick(), "prime"], lambda a, p: [x + p[0] for x in a]))
        self.fill(inner)
        nexts = [inner.pick() if self.rng.random() < 0.8 else self.rng.choice(given) for _ in given]
        collected = [inner.sum_of(inner.pick()) for _ in range(self.rng.randint(0, 2))]
        if trips == "" or self.rng.random() < 0.4:  # ends by itself
            reached = inner.add("Unsqueeze", [number, "zero"], lambda n, _: n, stem="r")
            goes = inner.add("Less", [reached, self.rng.choice(["two", "zero"])], lambda a, b: [a[0] < b[0]], stem="g")
            goes = inner.add("Squeeze", [goes, "zero"], lambda g, _: g, stem="g")
        else:
            goes = self.rng.choice([going, "yes"])
        outs = [self.fresh() for _ in range(n_carried + len(collected))]
        body = Graph(inner.nodes, [(number, INT64, []), (going, BOOL, []), *((g, INT64) for g in given)],
                     [(goes,), *((r,) for r in nexts), *((r, INT64, [1]) for r in collected)])
        limit = {"": "", "two": "two_trips", "trips": "fed_trips", "zero_trips": "no_trips"}[trips]
        if not outs:
            return
        self.nodes.append(node("Loop", [limit, self.rng.choice(["", "yes"]), *inits], outs, name=f"{self.prefix}Loop{self.n}", body=body))

        def run(env):
            carried, rows, i = [env[x] for x in inits], [[] for _ in collected], 0
            most = env[limit][0] if limit else None
            go = True
            while go and (most is None or i < most):
                scope = dict(env) | dict(zip(given, carried)) | {number: [i], going: [True]}
                for step in inner.code:
                    step(scope)
                go = scope[goes][0]
                for row, c in zip(rows, collected):
                    row += scope[c]
                carried = [scope[x] for x in nexts]
                i += 1
            env.update(zip(outs, carried + rows))
        self.code.append(run)
        self.names += outs[:n_carried]
        for row in outs[n_carried:]:
            self.names.append(self.add("Reshape", [row, "flat"], lambda a, _: a))

    def make_scan(self):
        inner, source = self.body(), self.pick()
        rows = self.add("Unsqueeze", [source, "one"], lambda a, _: a, stem="q")
        backward = self.rng.randint(0, 1)
        state, item = inner.fresh("i"), inner.fresh("x")
        init = self.sum_of(self.pick())
        inner.names += [state, item]
        self.fill(inner)
        after, part = inner.sum_of(inner.pick()), inner.sum_of(inner.pick())
        outs = [self.fresh(), self.fresh()]
        self.nodes.append(node("Scan", [init, rows], outs, name=f"{self.prefix}Scan{self.n}", num_scan_inputs=1,
                               scan_input_directions=[backward], scan_output_directions=[1 - backward],
                               body=Graph(inner.nodes, [(state, INT64), (item, INT64)], [(after, INT64, [1]), (part, INT64, [1])])))

        def run(env):
            now, made = env[init], []
            for x in (reversed(env[rows]) if backward else env[rows]):
                scope = dict(env) | {state: now, item: [x]}
                for step in inner.code:
                    step(scope)
                now = scope[after]
                made += scope[part]
            env[outs[0]], env[outs[1]] = now, made if backward else made[::-1]
        self.code.append(run)
        self.names.append(outs[0])
        self.names.append(self.add("Reshape", [outs[1], "flat"], lambda a, _: a))


def wrap(n):
    return (n + (1 << 63)) % (1 << 64) - (1 << 63)


CONSTANTS = {"prime": [97], "zero": [0], "one": [1], "two": [2], "five": [5], "flat": [-1]}
SCALARS = {"two_trips": [2], "no_trips": [0]}


def initializers():
    return [*(tensor(k, INT64, [1], v) for k, v in CONSTANTS.items()), *(tensor(k, INT64, [], v) for k, v in SCALARS.items()),
            tensor("yes", BOOL, [], [True])]


class Random(Case):
    def test_beside_an_interpreter(self):
        """Naive and planned, in poisoned memory: equal to the interpreter, with nothing predicted wrong."""
        for seed in range(N_RANDOM):
            with self.subTest(seed=seed):
                self.check(seed)

    def check(self, seed):
        rng = random.Random(seed)
        m = Maker(rng)
        fed = {"a": [rng.randint(-50, 50) for _ in range(rng.randint(1, 5))], "b": [rng.randint(-50, 50) for _ in range(3)]}
        env = fed | CONSTANTS | SCALARS | {"yes": [True], "fed_trips": [rng.randint(0, 4)]}
        m.names += list(fed)
        for _ in range(rng.randint(2, 7)):
            m.statement()
        results = [n for n in dict.fromkeys(m.names[-3:]) if n not in fed] or [m.sum_of("a")]
        for step in m.code:
            step(env)
        rng.shuffle(m.nodes)  # files may have any order
        graph = Graph(m.nodes, [("a", INT64, [len(fed["a"])]), ("b", INT64, [3]), ("fed_trips", INT64, [])],
                      [(r, INT64, [f"n_{r}"]) for r in results], initializers())
        case = self.dir / str(seed)
        path, data = onnx.write_case(case, graph, [(INT64, [len(fed["a"])], fed["a"]), (INT64, [3], fed["b"]), (INT64, [], env["fed_trips"])],
                                     [(INT64, [len(env[r])], env[r]) for r in results])
        done = self.json("compare", path, "--reference", data, "-n", 2, "--fill", "poison", "--atol", "0", "--rtol", "0")
        self.assertTrue(done["outputs"]["bitwise_equal"])
        self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
        for key in ("kinds", "naive_kinds"):
            self.assertEqual({k["difference_bytes"] for k in done[key]} - {None}, {0})


class Files(Case):
    """Files that are wrong are refused in words; files that are odd and right are not."""

    def case(self, nodes, outputs, inputs=(("x", INT64, [3]),), **kw):
        graph = Graph(nodes, list(inputs), [(o,) for o in outputs], initializers())
        return onnx.write_case(self.dir / "case", graph, [], [], **kw)[0]

    def loop(self, body_nodes, results, *, given=("i", "go", "s"), inits=("x",), limit="two_trips", going="yes", outs=("y",), **kw):
        types = [INT64, BOOL, *([INT64] * (len(given) - 2))]
        body = Graph(body_nodes, [(g, t, []) if k < 2 else (g, t) for k, (g, t) in enumerate(zip(given, types))], results)
        return self.case([node("Loop", [limit, going, *inits], list(outs), name="L", body=body)], outs, **kw)

    def branches(self, then, other, results=("t", "e"), condition="yes", outs=("y",), **kw):
        return self.case([node("If", [condition], list(outs), name="I", then_branch=Graph(then, [], [(results[0],)]),
                               else_branch=Graph(other, [], [(results[1],)]))], outs, **kw)

    def no(self, path, *says, code=3):
        for command in ("plan", "compare"):
            self.refused(code, command, path, says=says)

    def test_bodies_that_are_wrong(self):
        keep, double = node("Identity", ["s"], ["k"]), node("Add", ["s", "s"], ["k"])
        go = node("Identity", ["go"], ["g"])
        self.no(self.case([node("If", ["yes"], ["y"], name="I")], ["y"]), "then_branch")
        self.no(self.case([node("Loop", ["", "", "x"], ["y"], name="L")], ["y"]), "body")
        self.no(self.loop([double, go], [("g",), ("k",)], given=("i", "go")), "'L'", "2 inputs", "3")
        self.no(self.loop([double, go], [("g",)]), "'L'")
        self.no(self.loop([double, go], [("g",), ("k",)], outs=("y", "z")), "Loop")
        self.no(self.loop([node("Add", ["s", "nowhere"], ["k"]), go], [("g",), ("k",)]), "nowhere", "nothing produces")
        self.no(self.loop([double, go], [("g",), ("lost",)]), "lost")
        self.no(self.loop([double, go], [("g",), ("k",)], limit="yes"), "'L'", "the number of trips 'yes' is bool")
        self.no(self.loop([double, go], [("g",), ("k",)], going="two"), "'L'", "the condition 'two' is int64")
        self.no(self.loop([node("Cast", ["s"], ["k"], to=1), go], [("g",), ("k",)]), "'L'", "int64", "float32")
        self.no(self.loop([keep, go], [("g",), ("k", INT64, [7])]), "'k'", "the file says")
        self.no(self.branches([node("Identity", ["x"], ["t"])], [node("Cast", ["x"], ["e"], to=1)], condition="c",
                              inputs=(("x", INT64, [3]), ("c", BOOL, []))), "'I'", "one branch")
        self.no(self.branches([node("Identity", ["x"], ["t"])], [node("Identity", ["x"], ["e"])], condition="x"), "'I'", "the condition 'x' is int64")
        self.no(self.branches([node("Identity", ["x"], ["t"])], [node("Identity", ["x"], ["e"])], condition="c",
                              inputs=(("x", INT64, [3]), ("c", BOOL, [2]))), "not one element")
        self.no(self.branches([node("Identity", ["x"], ["t"])], [], results=("t", "t")), "'t'")  # of the other branch
        self.no(self.case([node("Merge", ["x"], ["y"], name="M", domain="tidemark.region")], ["y"], domains=("tidemark.region",)), "tidemark.region")

    def test_scans_that_are_wrong(self):
        def scan(inputs=("one", "x"), outs=("y", "z"), n=1, **kw):
            body = Graph([node("Add", ["s", "e"], ["t"]), node("Identity", ["e"], ["p"])], [("s", INT64), ("e", INT64)], [("t",), ("p",)])
            return self.case([node("Scan", list(inputs), list(outs), name="S", num_scan_inputs=n, body=body, **kw)], outs,
                             inputs=(("x", INT64, [3, 1]), ("w", INT64, [2, 1])))
        self.ok("compare", scan())
        self.no(scan(n=0), "num_scan_inputs 0")
        self.no(scan(n=7), "num_scan_inputs 7")
        self.no(scan(inputs=("x", "w"), n=2), "Scan")
        self.no(scan(scan_input_axes=[2]), "'S'", "axis 2 of 'x'")
        self.no(scan(scan_output_axes=[5]), "'S'", "axis 5 of 'z'")
        body = Graph([node("Add", ["e", "f"], ["p"])], [("e", INT64), ("f", INT64)], [("p",)])
        self.no(self.case([node("Scan", ["x", "w"], ["y"], name="S", num_scan_inputs=2, body=body)], ["y"],
                          inputs=(("x", INT64, [3, 1]), ("w", INT64, [2, 1]))), "'S'", "'w' has 2 items, the first sequence 3")

    def test_cycles(self):
        go = node("Identity", ["go"], ["g"])
        body = Graph([node("Add", ["s", "y"], ["k"]), go], [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",)])
        self.no(self.case([node("Loop", ["two_trips", "yes", "x"], ["y"], name="L", body=body)], ["y"]), "cycle", "L")
        self.no(self.case([node("Loop", ["two_trips", "yes", "x"], ["y"], name="L",
                                body=Graph([node("Add", ["s", "b"], ["k"]), go], [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",)])),
                           node("Add", ["y", "x"], ["b"], name="B")], ["y"]), "cycle", "L -> B -> L")
        inner = Graph([node("Add", ["p", "x"], ["q"], name="P"), node("Add", ["q", "x"], ["p"], name="Q")], [], [("q",)])
        self.no(self.case([node("If", ["c"], ["y"], name="I", then_branch=inner, else_branch=Graph([], [], [("x",)]))], ["y"],
                          inputs=(("x", INT64, [3]), ("c", BOOL, []))), "cycle", "P -> Q -> P")

    def test_too_often_and_too_deep(self):
        double, go = node("Add", ["s", "s"], ["k"]), node("Identity", ["go"], ["g"])
        many = [tensor("many", INT64, [], [1 << 62])]
        nodes = [node("Loop", ["many", "", "x"], ["y"], name="L",
                      body=Graph([double, go], [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",)]))]
        graph = Graph(nodes, [("x", INT64, [3])], [("y",)], many)
        self.no(onnx.write_case(self.dir / "many", graph, [], [])[0], "'L'", "4611686018427387904 times")
        graph = Graph(nodes, [("x", INT64, [3]), ("many", INT64, [])], [("y",)])
        path, data = onnx.write_case(self.dir / "fed", graph, [(INT64, [3], [1, 2, 3]), (INT64, [], [1 << 62])], [])
        self.refused(3, "run", path, "--input-dir", data, says=["'L'", "4611686018427387904 times"])
        collected = Graph([double, go], [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",), ("k",)])
        graph = Graph([node("Loop", ["many", "", "x"], ["y", "z"], name="L", body=collected)], [("x", INT64, [3])], [("z",)], many)
        self.refused(3, "plan", onnx.write_case(self.dir / "all", graph, [], [])[0], says=["'L'"])
        for depth in (30, 1000):
            inner = Graph([], [], [("x",)])
            for k in range(depth):
                inner = Graph([node("If", ["c"], [f"y{k}"], name=f"I{k}", then_branch=inner, else_branch=Graph([], [], [("x",)]))], [], [(f"y{k}",)])
            inner.inputs = [("x", INT64, [3]), ("c", BOOL, [])]
            path = onnx.write_case(self.dir / f"deep{depth}", inner, [], [])[0]
            if depth == 30:
                self.assertTrue(self.json("compare", path, "--fill", "poison")["outputs"]["bitwise_equal"])
            else:
                self.no(path, "nested too deep")

    def test_names(self):
        """The same names in both branches and outside; values from outside that come later in the file."""
        nodes = [node("If", ["c"], ["y"], name="I", then_branch=Graph([node("Add", ["late", "x"], ["t"])], [], [("t",)]),
                      else_branch=Graph([node("Sub", ["late", "x"], ["t"])], [], [("t",)])),
                 node("Mul", ["x", "x"], ["late"]), node("Add", ["y", "x"], ["t"])]
        graph = Graph(nodes, [("x", INT64, [3]), ("c", BOOL, [])], [("t",), ("y",)])
        for holds, y in ((True, [2, 6, 12]), (False, [0, 2, 6])):
            path, data = onnx.write_case(self.dir / f"names{holds}", graph, [(INT64, [3], [1, 2, 3]), (BOOL, [], [holds])],
                                         [(INT64, [3], [a + b for a, b in zip(y, [1, 2, 3])]), (INT64, [3], y)])
            done = self.json("compare", path, "--reference", data, "--fill", "poison")
            self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})

    def test_carried_values_that_change_places(self):
        body = Graph([node("Add", ["a", "b"], ["sum"]), node("Identity", ["go"], ["g"])],
                     [("i", INT64, []), ("go", BOOL, []), ("a", INT64), ("b", INT64)], [("g",), ("b",), ("sum",), ("a",)])
        graph = Graph([node("Loop", ["n", "", "zero", "one"], ["y", "", "all"], name="Fibonacci", body=body)], [("n", INT64, [])],
                      [("y", INT64, [1]), ("all", INT64, ["n", 1])], initializers())
        path, data = onnx.write_case(self.dir / "fib", graph, [(INT64, [], [10])],
                                     [(INT64, [1], [55]), (INT64, [10, 1], [0, 1, 1, 2, 3, 5, 8, 13, 21, 34])])
        done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 3)
        self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
        self.assertTrue(done["outputs"]["bitwise_equal"])

    def test_what_is_carried_on_takes_the_place_of_what_came(self):
        """Nothing is copied from one iteration to the next, or out of a branch, where the lifetimes allow it."""
        body = Graph([node("Mul", ["s", "x"], ["m"]), node("Add", ["m", "x"], ["k"]), node("Add", ["t", "x"], ["u"]),
                      node("Sub", ["u", "t"], ["t2"]), node("Identity", ["go"], ["g"])],
                     [("i", INT64, []), ("go", BOOL, []), ("s", INT64), ("t", INT64)], [("g",), ("k",), ("t2",)])
        branch = Graph([node("Mul", ["y", "z"], ["a"]), node("Add", ["a", "x"], ["b"])], [], [("b",)])
        graph = Graph([node("Loop", ["n", "", "x", "x"], ["y", "z"], name="L", body=body),
                       node("If", ["c"], ["q"], name="I", then_branch=branch, else_branch=Graph([node("Neg", ["y"], ["d"])], [], [("d",)])),
                       node("Sub", ["q", "y"], ["p"]), node("Sub", ["p", "z"], ["w"])],
                      [("x", INT64, [300]), ("n", INT64, []), ("c", BOOL, [])], [("w",)], initializers())
        s, t = list(range(300)), list(range(300))
        for _ in range(3):
            s, t = [wrap(a * x + x) for a, x in zip(s, range(300))], list(range(300))
        for holds, q in ((True, [wrap(a * b + x) for a, b, x in zip(s, t, range(300))]), (False, [wrap(-a) for a in s])):
            path, data = onnx.write_case(self.dir / f"places{holds}", graph, [(INT64, [300], list(range(300))), (INT64, [], [3]), (BOOL, [], [holds])],
                                         [(INT64, [300], [wrap(a - b - c) for a, b, c in zip(q, s, t)])])
            done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2)
            self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
            self.assertTrue(done["outputs"]["bitwise_equal"])
        lies_in = {t["name"]: (t.get("alias") or {}).get("of") for t in self.json("plan", path)["tensors"]}

        def root(name):
            return root(lies_in[name]) if lies_in[name] else name
        self.assertEqual([root(name) for name in ("m", "k", "t2", "d", "b")], ["y", "y", "z", "q", "q"])

    def test_steps_of_a_body_are_run_in_another_order(self):
        """Of four rows that are made and then added up one is there at a time: in the body, in front of it and behind it."""
        def rows(prefix, of):
            made = [node("Mul", [of, c], [f"{prefix}m{k}"], name=f"{prefix}Mul{k}") for k, c in enumerate(("one", "two", "five", "prime"))]
            sums = [node("ReduceSum", [f"{prefix}m{k}"], [f"{prefix}s{k}"], name=f"{prefix}ReduceSum{k}", keepdims=1) for k in range(4)]
            return [*made, *sums, node("Concat", [f"{prefix}s{k}" for k in range(4)], [f"{prefix}all"], name=f"{prefix}Concat", axis=0),
                    node("ReduceSum", [f"{prefix}all"], [f"{prefix}sum"], name=f"{prefix}Sum", keepdims=1)]

        types = [("i", INT64, []), ("go", BOOL, []), ("s", INT64, [1])]
        body = Graph([*rows("b", "x"), node("Add", ["s", "bsum"], ["s2"]), node("Identity", ["go"], ["g"])], types, [("g",), ("s2",)])
        after = [node("Mul", ["x", "y"], ["xy"], name="between"), *rows("c", "xy"), node("Add", ["asum", "csum"], ["z"], name="last")]
        graph = Graph([*rows("a", "x"), node("Loop", ["n", "", "asum"], ["y"], name="L", body=body), *after],
                      [("x", INT64, [300]), ("n", INT64, [])], [("z",)], initializers())
        once = 105 * sum(range(300))  # 1 + 2 + 5 + 97
        path, data = onnx.write_case(self.dir / "order", graph, [(INT64, [300], list(range(300))), (INT64, [], [3])],
                                     [(INT64, [1], [once + once * (4 * once)])])
        plan = self.dir / "plan.json"
        self.ok("plan", path, "-o", plan)
        doc = json.loads(plan.read_text())
        peak, given = (d["plans"][0]["lower_bound_bytes"] for d in (doc, self.json("plan", path, "--no-order")))
        self.assertLess(peak, given - 2 * 2400)
        for more in ((), ("--no-order",)):
            done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2, *more)
            self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
            self.assertTrue(done["outputs"]["bitwise_equal"])
            self.assertEqual({k["difference_bytes"] for k in done["kinds"]}, {0})
        self.ok("run", path, "--plan", plan, "--input-dir", data)
        self.assertIn("Nothing is made twice: the model has bodies", self.ok("plan", path, "--allow-recompute", 30).stdout)
        order = doc["order"]
        for a, b in (("bMul0", "L"), ("aMul0", "bMul0"), ("bMul3", "cMul3")):
            i, k = order.index(a), order.index(b)
            changed = list(order)
            changed[i], changed[k] = order[k], order[i]
            bad = self.dir / "bad.json"
            bad.write_text(json.dumps(doc | {"order": changed}))
            with self.subTest(a=a, b=b):
                self.refused(4, "run", path, "--plan", bad, says=["would stand in another body, or beyond one"])

    def test_a_branch_that_is_known(self):
        """Nothing is left of the If, and the branch that no run takes may be wrong."""
        path = self.branches([node("Add", ["x", "x"], ["t"])], [node("Reshape", ["x", "five"], ["e"])])
        plan = self.json("plan", path)
        self.assertNotIn("regions", plan)
        self.assertEqual([t["name"] for t in plan["tensors"] if not t.get("persistent")], [])
        self.assertTrue(self.json("compare", path, "--fill", "poison")["outputs"]["bitwise_equal"])
        # Where it is not known the other branch is looked at when it runs.
        graph = Graph([node("If", ["c"], ["y"], name="I", then_branch=Graph([node("Add", ["x", "x"], ["t"])], [], [("t",)]),
                            else_branch=Graph([node("Reshape", ["x", "five"], ["e"], name="R")], [], [("e",)]))],
                      [("x", INT64, [3]), ("c", BOOL, [])], [("y",)], initializers())
        for holds in (True, False):
            path, data = onnx.write_case(self.dir / f"late{holds}", graph, [(INT64, [3], [1, 2, 3]), (BOOL, [], [holds])], [(INT64, [3], [2, 4, 6])])
            if holds:
                self.ok("compare", path, "--reference", data)
            else:
                self.refused(3, "run", path, "--input-dir", data, says=["'R'"])

    def test_functions(self):
        """Called twice, with attributes of the call, with what is left out, from a body, and from each other."""
        shift = onnx.function("Shift", ["v", "by"], ["w"], [node("Constant", [], ["k"], value_ints=Ref("k", 7)),
                                                            node("Add", ["v", "k"], ["m"], name="add"), node("Add", ["m", "by"], ["w"])], ["k"])
        twice = onnx.function("Twice", ["v"], ["w"], [node("Shift", ["v", "v"], ["h"], domain="local", k=[5]), node("Shift", ["h", "v"], ["w"], domain="local", k=Ref("n", 7))], ["n"])
        body = Graph([node("Twice", ["s"], ["k"], name="call", domain="local", n=[7]), node("Identity", ["go"], ["g"])],
                     [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",)])
        graph = Graph([node("Loop", ["two_trips", "", "x"], ["y"], name="L", body=body)], [("x", INT64, [2])], [("y",)], initializers())
        path, data = onnx.write_case(self.dir / "f", graph, [(INT64, [2], [1, 2])], [(INT64, [2], [57, 66])], functions=[shift, twice])
        done = self.json("compare", path, "--reference", data, "--fill", "poison")
        self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
        self.assertIn("call/", " ".join(self.json("plan", path)["order"]))
        again = onnx.function("Twice", ["v"], ["w"], [node("Twice", ["v"], ["w"], domain="local")])
        self.no(onnx.write_case(self.dir / "r", graph, [], [], functions=[again])[0], "function 'Twice' calls itself")
        lost = onnx.function("Twice", ["v"], ["w"], [node("Add", ["v", "x"], ["w"])])
        self.no(onnx.write_case(self.dir / "l", graph, [], [], functions=[lost])[0], "function 'Twice' reads 'x'")
        many = [onnx.function("Twice" if k == 0 else f"F{k}", ["v"], ["w"], [node(f"F{k + 1}", ["v"], ["h"], domain="local"), node(f"F{k + 1}", ["h"], ["w"], domain="local")]) for k in range(40)]
        many.append(onnx.function("F40", ["v"], ["w"], [node("Neg", ["v"], ["w"])]))
        self.no(onnx.write_case(self.dir / "m", graph, [], [], functions=many)[0], "calls of functions come to more than")

    def test_defaults_of_functions(self):
        """What the call leaves out the function has: numbers, a tensor, a body; what the call has is taken."""
        shift = onnx.function("Shift", ["v"], ["w"], [node("Constant", [], ["k"], value_ints=Ref("k", 7)), node("Constant", [], ["t"], value=Ref("t", 4)),
                                                      node("Add", ["v", "k"], ["m"]), node("Mul", ["m", "t"], ["w"])],
                              defaults=[onnx.attribute("k", [10]), onnx.attribute("t", tensor("", INT64, [2], [2, 3]))])
        calls = [node("Shift", ["x"], ["a"], name="plain", domain="local"), node("Shift", ["a"], ["y"], name="given", domain="local", k=[1])]
        path, data = onnx.write_case(self.dir / "d", Graph(calls, [("x", INT64, [2])], [("y",)]), [(INT64, [2], [1, 2])],
                                     [(INT64, [2], [46, 111])], functions=[shift])
        self.ok("compare", path, "--reference", data, "--fill", "poison")
        deep = onnx.attribute("k", [1])
        for _ in range(60):
            deep = onnx.attribute("k", Graph([onnx.message(5, deep)], [], []))
        for default, says in ((onnx.number(8, 1), "without a name or a value"), (onnx.message(1, "k") + b"\x0a\x7f", "truncated"), (deep, "nested too deep")):
            bad = onnx.function("Shift", ["v"], ["w"], [node("Neg", ["v"], ["w"])], defaults=[default])
            self.no(onnx.write_case(self.dir / "b", Graph(calls, [("x", INT64, [2])], [("y",)]), [], [], functions=[bad])[0], says)

    def test_scan_of_opset_8(self):
        """Each item of the batch for itself, one sequence backwards; lengths of their own are refused."""
        body = Graph([node("Add", ["s", "a"], ["k"]), node("Mul", ["k", "b"], ["m"])], [("s", INT64, [1]), ("a", INT64, [1]), ("b", INT64, [1])], [("k",), ("m",)])
        scan = lambda first: node("Scan", [first, "s0", "xs", "zs"], ["last", "all"], name="old", body=body, num_scan_inputs=2, directions=[0, 1])
        ends = [("s0", INT64, [2, 1]), ("xs", INT64, [2, 3, 1]), ("zs", INT64, [2, 3, 1])], [("last",), ("all",)]
        fed = [(INT64, [2, 1], [10, 20]), (INT64, [2, 3, 1], [1, 2, 3, 4, 5, 6]), (INT64, [2, 3, 1], [1, 10, 100, 2, 3, 4])]
        want, last = [], []
        for b in range(2):
            s = fed[0][2][b]
            for i in range(3):
                s += fed[1][2][3 * b + i]
                want.append(s * fed[2][2][3 * b + 2 - i])
            last.append(s)
        path, data = onnx.write_case(self.dir / "old", Graph([scan("")], *ends), fed, [(INT64, [2, 1], last), (INT64, [2, 3, 1], want)], opset=8)
        done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2)
        self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
        self.assertEqual({k["difference_bytes"] for k in done["kinds"]}, {0})
        self.no(onnx.write_case(self.dir / "lens", Graph([scan("lens")], ends[0] + [("lens", INT64, [2])], ends[1]), [], [], opset=8)[0], "sequences of several lengths")

    def test_none_of_them(self):
        """No element, no trip, nothing carried, nothing that comes out."""
        go = node("Identity", ["go"], ["g"])
        for trips in ([0], [3]):
            body = Graph([node("Concat", ["s", "x"], ["k"], axis=0), go], [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",), ("i", INT64, [])])
            graph = Graph([node("Loop", ["n", "", "x"], ["y", "all"], name="L", body=body)], [("x", INT64, [0]), ("n", INT64, [])], [("y",), ("all",)])
            path, data = onnx.write_case(self.dir / f"none{trips[0]}", graph, [(INT64, [0], []), (INT64, [], trips)],
                                         [(INT64, [0], []), (INT64, trips, list(range(trips[0])))])
            done = self.json("compare", path, "--reference", data, "--fill", "poison", "-n", 2)
            self.assertEqual({r["pass"] for r in done["outputs"]["reference"]}, {True})
        self.ok("compare", self.case([node("Loop", ["two_trips", ""], ["all"], name="L", body=Graph([go], [("i", INT64, []), ("go", BOOL, [])], [("g",), ("i",)]))], ["all"]))
        self.ok("compare", self.case([node("If", ["yes"], [], name="I", then_branch=Graph([], [], []), else_branch=Graph([], [], [])), node("Neg", ["x"], ["y"])], ["y"]))

    def test_a_run_that_fails_in_a_body(self):
        """The second iteration is wrong."""
        body = Graph([node("Concat", ["s", "one"], ["k"], axis=0), node("Add", ["s", "x"], ["w"], name="W"), node("Identity", ["go"], ["g"])],
                     [("i", INT64, []), ("go", BOOL, []), ("s", INT64)], [("g",), ("k",), ("w", INT64, [3])])
        path = self.case([node("Loop", ["two_trips", "", "one"], ["y", "all"], name="L", body=body)], ["all"])
        for mode in ([], ["--naive"], ["--fill", "poison"]):
            self.refused(3, "run", path, *mode, says=["'W'", "[2] and [3] do not broadcast"])


if __name__ == "__main__":
    import tidemark
    tidemark.main()
