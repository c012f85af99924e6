# SPDX-License-Identifier: MIT
"""`tidemark operators` against the sources' own list of rows and against docs/operators.md, which TIDE_UPDATE_DOCS=1 writes
from it; what it says of a few operators, and what of a domain or a name that is not served."""
import os
import re
import unittest

import tidemark
from tidemark import SOURCE, Case

PAGE = SOURCE / "docs" / "operators.md"
HEAD = """# Operators

What `tidemark operators` prints: each operator that is served, by domain, with its opsets and the types that the operand has which
gives the operator its type (the first one, or the input that is named); *floats* are float32, float64, float16 and bfloat16,
*integers* those of 8 to 64 bits with and without a sign, *any* is both and bool. An operator that knows float32 alone takes
float16 and bfloat16 too: tensors stay as wide as they are, and its kernel converts them in its scratch, a tile at a time where it can
be cut ([quantised.md](quantised.md) has which), and rounds what it makes once. What else ONNX allows and a row refuses is
named beside it, and said again by the error that refuses a model. A node whose operator is not here is refused when a model is
loaded. [conformance.md](conformance.md) has the cases of ONNX that pass.

| domain | operator | opset | types | refused |
|---|---|---|---|---|
"""


def page_of(text):
    """The page, from the columns of the printed table."""
    head, *lines = text.rstrip("\n").split("\n")
    begins = [head.index(word) for word in ("domain", "operator", "opset", "types", "refused")] + [None]
    rows = [[line[a:b].strip() for a, b in zip(begins, begins[1:])] for line in lines]
    return HEAD + "".join("| " + " | ".join(row) + " |\n" for row in rows), rows


class Operators(Case):
    def test_every_row_of_the_table_once(self):
        listed = (SOURCE / "core" / "ops" / "op_list.h").read_text(encoding="utf-8")
        names = [n for block in re.findall(r"#define TIDE_OP_LIST_\w+\(XX\)((?:.*\\\n)*.*)", listed) for n in re.findall(r"XX\((\w+)\)", block)]
        rows = self.json("operators")["operators"]
        self.assertGreater(len(names), 170)
        self.assertEqual(len(rows), len(set(names) - {"merge", "next_iteration"}))  # these stand in no file
        self.assertEqual(len({(r["domain"], r["name"], r["since"]) for r in rows}), len(rows))
        self.assertEqual(rows, sorted(rows, key=lambda r: (r["domain"].replace("ai.onnx", "", 1), r["name"], r["since"])))

    def test_text_and_json_say_the_same(self):
        rows = self.json("operators")["operators"]
        _, printed = page_of(self.ok("operators").stdout)
        self.assertEqual(len(printed), len(rows))
        for row, (domain, name, opset, types, refused) in zip(rows, printed):
            self.assertEqual((domain, name, refused), (row["domain"], row["name"], row["refused"] or ""))
            self.assertEqual(opset, f"{row['since']} and later" if row["until"] is None else f"{row['since']} to {row['until']}")
            self.assertTrue(types and row["types"], row)

    def test_some_operators(self):
        pool, = self.json("operators", "Softmax", "Attention", "--domain", "com.microsoft")["operators"]
        self.assertEqual((pool["name"], pool["since"], pool["types"], pool["runs"]), ("Attention", 1, ["float32", "float16", "bfloat16"], True))
        soft = self.json("operators", "Softmax")["operators"]
        self.assertEqual([(r["since"], r["until"]) for r in soft], [(1, 12), (13, None)])
        where, = self.json("operators", "Where")["operators"]
        self.assertEqual(where["typed_input"], 1)
        self.assertIn("bool", where["types"])
        opaque, = self.json("operators", "Opaque")["operators"]
        self.assertEqual((opaque["domain"], opaque["runs"]), ("tidemark", False))

    def test_what_is_not_served(self):
        self.refused(1, "operators", "Zzyzx", says=["no operator"])
        self.refused(1, "operators", "--domain", "com.example", says=["no operator"])

    def test_the_page_is_what_is_printed(self):
        page, _ = page_of(self.ok("operators").stdout)
        if os.environ.get("TIDE_UPDATE_DOCS"):
            PAGE.write_text(page, encoding="utf-8")
        self.assertEqual(PAGE.read_text(encoding="utf-8"), page, "TIDE_UPDATE_DOCS=1 python3 tests/cli/operators.py rewrites it")


if __name__ == "__main__":
    tidemark.main()
