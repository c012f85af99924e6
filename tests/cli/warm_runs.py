# SPDX-License-Identifier: MIT
"""A warm run asks the system for no memory, and neither does a library in it: every call that reaches the C library is
counted from outside, by a library that is preloaded. What some runs more add is what warm runs take: nothing.
TIDE_SOAK=1: 1,000 runs more (make soak)."""
import os
import re
import unittest

import tidemark
from process import models
from tidemark import SAMPLES, Case, share

SOAK = os.environ.get("TIDE_SOAK") == "1"
FEW, MORE = (10, 1000) if SOAK else (3, 12)
# While a model is loaded a library may ask a few times more or less, by the addresses that it gets: less than once a run.
NOISE = 9
PRELOAD = os.environ.get("TIDE_COUNT_PRELOAD", "")
# Nothing is compared here but one run with another: this processor's own kernels take half of the time of those that all
# processors have.
OWN_KERNELS = {"ONEDNN_MAX_CPU_ISA": None, "DNNL_MAX_CPU_ISA": None}


@unittest.skipIf(not PRELOAD, "skipped: sanitizers have a malloc of their own")
class WarmRuns(Case):
    kernels = OWN_KERNELS

    def counts(self, n, *args):
        p = tidemark.run("run", "-n", n, *args, env={"LD_PRELOAD": PRELOAD, **self.kernels})
        if p.returncode == 3:
            return None
        self.assertEqual(p.returncode, 0, p.stderr)
        if "sized while running take" in p.stdout:  # without a bound: these are allocated in each run, and counted
            self.assertNotIn("allocations in warm runs: 0", p.stdout)
            return None
        self.assertIn("allocations in warm runs: 0", p.stdout)
        found = re.findall(r"counted (.*)", p.stderr)[-1]
        return dict(zip(found.split()[::2], map(int, found.split()[1::2])))

    def assert_no_more(self, *args):
        few = self.counts(FEW, *args)
        if few is None:
            return False
        self.assertGreater(few["malloc"], 100, "nothing was counted")
        many = self.counts(FEW + MORE, *args)
        most = max(abs(many[call] - few[call]) for call in ("malloc", "calloc", "realloc"))
        if most > NOISE:  # of a hundred thousand; what a run takes comes again each time
            few, many = self.counts(FEW, *args), self.counts(FEW + MORE, *args)
        for call, n in many.items():
            self.assertLessEqual(abs(n - few[call]), NOISE if call in ("malloc", "calloc", "realloc") else 0, (call, args))
        return True

    def test_models(self):
        chosen = share(models(), 3)
        n = sum(self.assert_no_more(*options, path) for _, path, options in chosen)
        self.assertGreater(n, len(chosen) / 2)

    def test_other_kernels(self):
        """Those that all processors have, with the scratch that they ask for; in make soak, of every model."""
        self.kernels = {}
        if SOAK:
            self.test_models()
        for name in ("unet", "transformer_encoder", "lenet5"):
            few, many = (tidemark.run("run", "-n", n, SAMPLES / f"{name}.json", env={"LD_PRELOAD": PRELOAD})
                         for n in (FEW, FEW + MORE))
            self.assertEqual(re.findall("counted.*", few.stderr), re.findall("counted.*", many.stderr), name)

    def test_several_contexts(self):
        """Each thread has what its own first runs took. With kernels that all processors have: with this one's own two
        runs of one length differ by hundreds of calls at times, in the loading of several contexts."""
        self.kernels = {}
        few, many = (self.counts(n, "--contexts", 3, SAMPLES / "unet.json") for n in (FEW, FEW + MORE))
        for call, n in many.items():
            self.assertLess(abs(n - few[call]), 40, call)  # threads start and end in any order


if __name__ == "__main__":
    tidemark.main()
