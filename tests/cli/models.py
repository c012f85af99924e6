# SPDX-License-Identifier: MIT
"""Real models through the whole house: outputs naive = planned = reference, predicted = measured to the byte. docs/models.md
has what came of each of them and each data set: TIDE_UPDATE_DOCS=1 writes it."""
import functools
import json
import os
import pathlib
import re
import unittest

import tidemark
from tidemark import SAMPLES, SHARED, Case

MODELS = ["mnist-8", "ultraface-rfb-320", "fastestdet", "yunet-n-dynamic", "superres-espcn", "crepe-tiny", "basic-pitch",
          "selfie-segmentation", "vit-pgd-2-3-16", "bert-toy", "light-bvlc-alexnet", "light-densenet121",
          "light-inception-v1", "light-resnet50", "light-shufflenet", "light-squeezenet", "kws-m-qdq", "mobilenetv2-qdq",
          "qdq-conv-external", "bidi-lstm-bytes", "g2p-lstm-it", "gtcrn-stream", "gpt2-contrib-past"]
# Where the last bit of a sum decides which way a number is quantised: as far as ONNX Runtime's own answers are apart with its
# optimisations and without (the shared README).
APART = {"mobilenetv2-qdq": 0.46, "kws-m-qdq": 1.6e-2}
CPU = pathlib.Path("/proc/cpuinfo").read_text() if pathlib.Path("/proc/cpuinfo").exists() else ""
# 1e-3 relative and 1e-4 absolute are the program's defaults.
# Its last softmax is over a thousand equal numbers near 9.5e9: see tide_rounding_decides.
ROUNDING_DECIDES = {"light-squeezenet"} if "avx512f" not in CPU else set()
PAGE = tidemark.SOURCE / "docs" / "models.md"
HEAD = """# Models

Real models of the shared folder (`TIDE_SHARED_DIR`; its README says what each is and where it is from), with each of their data
sets:

    tidemark compare MODEL/model.onnx --reference MODEL/test_data_set_K -n 2 --fill poison

A naive and a planned run in memory that is full of poison wherever no tensor lives have the same bits; *differs* is how far the
worst element of all outputs is from the reference of ONNX Runtime, without optimisations, by itself and as a share of the
reference (elements near 0 have large shares). The last column has, for each kind of memory, the bytes that were predicted less
those that were measured, of the planned run; *dynamic* tensors are sized while running and no part of a prediction. kws-m-qdq
and mobilenetv2-qdq may differ by as much as ONNX Runtime's own two answers do; what quantised models take, and what they take as
the file says it, is on a page of its own ([quantised.md](quantised.md)). The table is written by tests/cli/models.py, which holds
it against what runs.

"""


# With bodies, dynamic tensors, or values that share bytes: what their steps make is compared as well.
STEP_BY_STEP = ("loop-crop-resize", "scan-lstm-cntk", "silero-vad", "nms-fastestdet", "gpt2-contrib-past", "yunet-n-dynamic")


@functools.lru_cache(maxsize=None)
def compare(name, data):
    """(exit code, the document or None, what was said) of a model and one of its data sets."""
    atol = ("--atol", APART[name]) if name in APART else ()
    verify = ("--verify",) if name in STEP_BY_STEP else ()
    done = tidemark.run("compare", SHARED / "models" / name / "model.onnx", "--reference", data, "-n", 2, "--fill", "poison", *atol, *verify,
                        "--json")
    return done.returncode, json.loads(done.stdout) if done.stdout.startswith("{") else None, done.stderr


def page_row(name, data):
    """The cells of one line of the page."""
    code, doc, said = compare(name, data)
    if doc is None or "outputs" not in doc:
        return [name, data.name[-1], "no: " + said.split("\n")[0].removeprefix("error: ").replace("|", "\\|"), "", "", ""]
    outputs = doc["outputs"]["reference"]
    kinds = [f"{k['kind']} {k['difference_bytes']}" for k in doc["kinds"] if k["difference_bytes"] is not None]
    if any(k["difference_bytes"] is None for k in doc["kinds"]):
        kinds.append("dynamic")
    return [name, data.name[-1], "yes" if code == 0 else "differs", *(f"{max(o[f'max_{w}_diff'] for o in outputs):.1e}" for w in ("abs", "rel")),
            ", ".join(kinds)]


def data_sets():
    """Every model with each of its data sets."""
    for model in sorted((SHARED / "models").glob("*/model.onnx")):
        for data in sorted(model.parent.glob("test_data_set_*")):
            yield model.parent.name, data


class Models(Case):
    def check(self, doc, n_reference, may_exceed_naive=False):
        self.assertTrue(doc["verified"])
        self.assertTrue(doc["outputs"]["bitwise_equal"])
        self.assertEqual(len(doc["outputs"]["reference"]), n_reference)
        for out in doc["outputs"]["reference"]:
            self.assertTrue(out["pass"], out)
        for kinds in (doc["kinds"], doc["naive_kinds"]):
            self.assertIn("Workspace", [k["kind"] for k in kinds])
            for kind in kinds:
                self.assertEqual(kind["difference_bytes"], 0, kind)
        planned = doc["modes"][1]
        self.assertEqual(planned["mode"], "planned")
        self.assertEqual(planned["warm_allocations"], 0)
        self.assertGreaterEqual(doc["bytes"], doc["lower_bound_bytes"])
        if not may_exceed_naive:
            self.assertLessEqual(doc["bytes"], doc["naive_bytes"])

    def row(self, name, doc):
        worst = max([o["max_abs_diff"] for o in doc["outputs"]["reference"]], default=0.0)
        print(f"{name:24} naive {doc['naive_bytes']:>11} planned {doc['bytes']:>10} bound {doc['lower_bound_bytes']:>10} "
              f"saving {100 * doc['saving']:6.2f} %  max abs {worst:.2g}", flush=True)

    def test_shared_models_every_data_set(self):
        """X-7, S23-22: prediction equals measurement per kind; every model and data set that is here."""
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        for name, data in data_sets():
            if name not in MODELS:
                continue
            with self.subTest(model=name, data=data.name):
                if name in ROUNDING_DECIDES:
                    print(f"{name:24} skipped: rounding decides its output on a CPU without AVX-512")
                    self.check(self.json("compare", SHARED / "models" / name / "model.onnx", "-n", 2), 0)
                    continue
                code, doc, said = compare(name, data)
                self.assertEqual(code, 0, said)
                self.check(doc, len(list(data.glob("output_*.pb"))))
                self.row(f"{name} {data.name[-1]}", doc)

    def test_the_page_says_what_runs(self):
        """docs/models.md: every model and data set once. How far outputs differ is the processor's: it is not compared."""
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        rows = [page_row(*one) for one in data_sets()]
        n_models = len({row[0] for row in rows})
        running = {row[0] for row in rows} - {row[0] for row in rows if row[2] != "yes"}
        page = HEAD + f"{len(running)} of {n_models} models run, with {sum(row[2] == 'yes' for row in rows)} of {len(rows)} data sets.\n\n"
        page += "| model | set | runs | differs | of it | predicted - measured, in bytes |\n|---|---|---|---|---|---|\n"
        page += "".join("| " + " | ".join(row) + " |\n" for row in rows)
        if os.environ.get("TIDE_UPDATE_DOCS"):
            PAGE.write_text(page, encoding="utf-8")
        if not ROUNDING_DECIDES:
            def without_numbers(text):
                return re.sub(r"\| [-+.\de]+ \| [-+.\de]+ \| (?=\w)", "| | | ", text)
            self.assertEqual(without_numbers(PAGE.read_text(encoding="utf-8")), without_numbers(page),
                             "TIDE_UPDATE_DOCS=1 python3 tests/cli/models.py Models.test_the_page_says_what_runs rewrites it")

    def test_both_plan_forms_run(self):
        """X-4, X-5, S23-20: a pool plan laid end to end and an offset plan run, of every strategy, with the passes and
        without; an output that is made early, and two live outputs of one node, are right at the end in all of them."""
        for graph in ("early_output", "split_two_outputs"):
            path = SAMPLES / f"{graph}.json"
            plans = self.json("plan", path, "--all")["plans"]
            self.assertEqual({p["form"] for p in plans}, {"pools", "offsets"})
            for strategy in (p["strategy"] for p in plans):
                for passes in ([], ["--no-passes"]):
                    with self.subTest(graph=graph, strategy=strategy, passes=passes):
                        reserves = strategy.startswith("sim:")  # as much as an allocator would, which may be more
                        self.check(self.json("compare", path, "-n", 2, "--strategy", strategy, *passes), 0, reserves)

    def test_sample_graphs(self):
        """X-7: prediction equals measurement for every sample, with the passes and without; S23-20, X-5: the samples that
        have two live outputs, an output made early."""
        for path in sorted(SAMPLES.glob("*.json")):
            shape = ["--shape", "x=8x64"] if path.stem == "dynamic_batch" else []
            for passes in ([], ["--no-passes"]):
                with self.subTest(graph=path.stem, passes=passes):
                    doc = self.json("compare", path, "-n", 1 if passes else 2, "--verify", *shape, *passes)
                    self.check(doc, 0)
                    self.assertGreaterEqual(doc["tensors"]["compared"], 3)
                    self.assertTrue(doc["tensors"]["bitwise_equal"])
                    if not passes:
                        self.row(path.stem, doc)

    def test_the_seeds_claim_S23_18(self):
        """S23-18: that usual networks save 50 to 80 % of their intermediate memory, marked met or not: as the seed plans
        (pools, no passes) and as we do, with the kernels' scratch, which is ours to plan, and without."""
        for name in ("lenet5", "resnet18", "resnet50", "mobilenet_v2", "squeezenet1_1"):
            for strategy, passes in (("greedy_color", ["--no-passes"]), ("search", [])):
                listed = self.dir / "l.json"
                self.ok("export", SAMPLES / f"{name}.json", *passes, "--to", "json", "-o", listed)
                for scratch in ("with", "without"):
                    doc = self.json("plan", listed, "--strategy", strategy, "--node-limit", 20000)
                    plan = doc["plans"][0]
                    self.assertTrue(plan["verified"])
                    self.assertEqual(plan["naive_bytes"],
                                     sum(t["aligned_bytes"] for t in doc["tensors"] if not t["persistent"]))
                    saving = 1 - plan["bytes"] / plan["naive_bytes"]
                    self.assertAlmostEqual(saving, plan["saving"], places=6)
                    mark = "not met" if saving < 0.5 else "met" if saving <= 0.8 else "met, and more"
                    print(f"{name:14} {strategy:12} {scratch:7} scratch: original {plan['naive_bytes']:>9} planned "
                          f"{plan['bytes']:>8} bound {plan['lower_bound_bytes']:>8} saving {100 * saving:5.2f} %: "
                          f"50-80 % {mark}", flush=True)
                    # LeNet-5 has little but its first two tensors once activations are fused: there it is not met.
                    if name != "lenet5":
                        self.assertNotEqual(mark, "not met")
                    lists = json.loads(listed.read_text())
                    lists["tensors"] = [t for t in lists["tensors"] if t["role"] != "scratch"]
                    self.assertTrue(all(isinstance(t["alias"]["of"], str) for t in lists["tensors"] if "alias" in t))
                    listed.write_text(json.dumps(lists))

    def test_pools_offsets_and_the_bound_S23_21(self):
        """S23-21: on every sample the offsets found are never larger than any strategy's pools, nor below the bound."""
        for path in sorted(SAMPLES.glob("*.json")):
            shape = ["--shape", "x=8x64"] if path.stem == "dynamic_batch" else []
            with self.subTest(graph=path.stem):
                plans = self.json("plan", path, "--all", "--node-limit", 3000, *shape)["plans"]
                pools = min(p["bytes"] for p in plans if p["form"] == "pools")
                offsets = next(p for p in plans if p["strategy"] == "search")
                print(f"{path.stem:20} pools {pools:>9} offsets {offsets['bytes']:>9} bound "
                      f"{offsets['lower_bound_bytes']:>9}", flush=True)
                self.assertLessEqual(offsets["bytes"], pools)
                self.assertGreaterEqual(offsets["bytes"], offsets["lower_bound_bytes"])

    def test_fusion_keeps_the_outputs(self):
        """S23-22: fewer operators after fusion, outputs within the tolerance of the reference either way."""
        if not (SHARED / "models").is_dir():
            self.skipTest(f"{SHARED / 'models'} is not here")
        model = SHARED / "models" / "crepe-tiny"
        fused = self.json("plan", model / "model.onnx", "--shape", "input=8x1024")
        plain = self.json("plan", model / "model.onnx", "--shape", "input=8x1024", "--no-fuse")
        self.assertLess(len(fused["order"]), len(plain["order"]))
        doc = self.json("compare", model / "model.onnx", "--reference", model / "test_data_set_0", "--no-fuse")
        self.check(doc, 1)


if __name__ == "__main__":
    tidemark.main()
