# SPDX-License-Identifier: MIT
"""ONNX's own operator tests through the real runtime, as a user types it: `tidemark compare MODEL --reference DATA`. Inputs
are fed, nothing of them is folded; a naive and a planned run in poisoned memory have the same bits; outputs are within
ONNX's tolerance of the reference, and the prediction is right to the byte. A case may be refused, in words that name what is
missing; anything else fails the test. docs/conformance.md has the tally: TIDE_UPDATE_DOCS=1 writes it, TIDE_VERBOSE=1 lists
each case that is refused."""
import collections
import concurrent.futures
import os
import pathlib
import re
import sys
import unittest

import tidemark

DATA = pathlib.Path(os.environ.get("TIDE_CONFORMANCE_DIR", "/usr/lib/python3/dist-packages/onnx/backend/test/data"))
SUITES = ("node", "simple", "pytorch-operator", "pytorch-converted")
PAGE = tidemark.SOURCE / "docs" / "conformance.md"
# Of ONNX's backend tests (onnx/backend/test/loader, ONNX 1.12).
TOLERANCE = ("--rtol", "1e-3", "--atol", "1e-7")
N_CASES = 1072
# Cases whose reference contradicts the operator's text, or cannot be read as what it is; ONNX Runtime differs from them in the
# same places, or has no such operator. They count as refused. Adam's case with several tensors calculates with an epsilon of 1e-2,
# which its model does not say (1e-6 without). align_corners divides by the length of the resized axis less 1, where the reference takes
# scale * length, which is no whole number there; the data files of ONNX 1.12 have the bits of bfloat16 under the name uint16.
DISPUTED = {"test_resize_downsample_scales_cubic_align_corners", "test_resize_downsample_scales_linear_align_corners",
            "test_adam_multiple", "test_cast_FLOAT_to_BFLOAT16", "test_castlike_FLOAT_to_BFLOAT16", "test_castlike_FLOAT_to_BFLOAT16_expanded"}
# Why a case is refused, by its message; the first that fits.
REASONS = (
    (r"operator '([\w.]+)' of node '[^']*' is not implemented for opset (\d+)", "operator", lambda m: f"{m[1]} (opset {m[2]})"),
    (r"operator '(Sequence\w+|SplitToSequence|ConcatFromSequence)' of node '[^']*' is not served", "sequences and optionals", lambda m: ""),
    (r"infer shapes: (\w+) '[^']*': the output size depends on the content of (\w+)", "a size that is known only while running",
     lambda m: f"{m[1]}: {m[2]}"),
    (r"' is an? (sequence|optional|map)", "sequences and optionals", lambda m: ""),
    (r"has the element type string", "strings", lambda m: ""),
    (r"attribute 'type' of node '[^']*' is a type", "sequences and optionals", lambda m: ""),
    (r"(Dropout) '[^']*': training_mode is", "training", lambda m: m[1]),
    (r"wants bfloat16, got uint16|bfloat16\S* is not comparable with uint16|input 'like' is given as \[1\]",
     "data files that say uint16 or [1]", lambda m: ""),
)


def run_case(case):
    """(exit code, what it said) of the worst data set."""
    worst = (0, "")
    for data in sorted(case.glob("test_data_set_*")):
        done = tidemark.run("compare", case / "model.onnx", "--reference", data, "-n", 1, "--fill", "poison", *TOLERANCE)
        worst = max(worst, (done.returncode, done.stderr + done.stdout))
    return worst


def reason_of(said):
    for pattern, sort, what in REASONS:
        found = re.search(pattern, said)
        if found:
            return sort, what(found)
    return None


@unittest.skipUnless(DATA.is_dir(), f"{DATA} is not there (package libonnx-testdata)")
class Conformance(tidemark.Case):
    def tally(self, passed, refused):
        """The lines of the page below its second heading."""
        sorts = collections.Counter(sort for sort, _ in refused.values())
        lines = [f"{passed} of {passed + len(refused)} cases pass, none is wrong.", "", "| refused for | cases | what is missing |", "|---|---|---|"]
        for sort, n in sorts.most_common():
            whats = collections.Counter(what for s, what in refused.values() if s == sort and what)
            lines.append(f"| {sort} | {n} | {', '.join(f'{w} {k}' if k > 1 else w for w, k in sorted(whats.items(), key=lambda i: (-i[1], i[0])))} |")
        return lines

    def test_every_case_passes_or_is_refused_in_words(self):
        cases = [c for suite in SUITES for c in sorted((DATA / suite).iterdir()) if (c / "model.onnx").exists()]
        self.assertGreaterEqual(len(cases), N_CASES if "TIDE_CONFORMANCE_DIR" not in os.environ else 1)
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            done = dict(zip(cases, pool.map(run_case, cases)))
        wrong, refused = [], {}
        for case, (code, said) in done.items():
            if code == 0:
                continue
            reason = reason_of(said) if code in (3, 4) else None
            if reason is None and case.name in DISPUTED:
                reason = ("disputed references", case.name.removeprefix("test_"))
            if reason is None:
                wrong.append(f"{case.name}: exit {code}: {said[:400]}")
            else:
                refused[case] = reason
        self.assertEqual(wrong, [], "\n".join(wrong))
        if os.environ.get("TIDE_VERBOSE"):
            for case, (sort, what) in refused.items():
                print(f"{case.parent.name}/{case.name}: {sort} {what}")
        lines = self.tally(len(done) - len(refused), refused)
        print(lines[0])
        if "TIDE_CONFORMANCE_DIR" in os.environ:
            return
        head, _, _ = PAGE.read_text(encoding="utf-8").partition("\n## The tally\n")
        page = f"{head}\n## The tally\n\n" + "\n".join(lines) + "\n"
        if os.environ.get("TIDE_UPDATE_DOCS"):
            PAGE.write_text(page, encoding="utf-8")
        self.assertEqual(PAGE.read_text(encoding="utf-8"), page, "TIDE_UPDATE_DOCS=1 python3 tests/cli/conformance.py rewrites it")


if __name__ == "__main__":
    tidemark.main()
