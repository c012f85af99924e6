# SPDX-License-Identifier: MIT
"""Real programs under tidemark record: what the trace says of their malloc, held against a library that counts by itself
(tests/preload/shadow.c). `make peers` installs them and runs this; TIDE_UPDATE_DOCS=1 writes the table of docs/recording.md."""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).parents[1] / "cli"))
import any_program # noqa: E402
import tidemark # noqa: E402
from any_program import Recorded, SHADOW, VICTIM, ask, jemalloc_of, sums # noqa: E402

HERE = pathlib.Path(__file__).parent
ROOT = HERE.parents[1]
DOCS = ROOT / "docs/recording.md"
BEGIN, END = "<!-- tests/peers/programs.py -->\n", "<!-- end -->\n"
ORT = ROOT / "build/npm/node_modules/onnxruntime-node"
MODELS = [ROOT / "../shared/models" / name / "model.onnx" for name in ("crepe-tiny", "light-shufflenet")]
PYTHON = "/usr/bin/python3"
rows = {}


class Programs(Recorded):
    """Of each process the shadow's last words are compared; one that is killed has none."""

    def count(self, name, *command, env=None, code=0, exact=True, options=(), most=None):
        """`exact`: one thread at a time allocates, so that the peak can be compared too."""
        if shutil.which(str(command[0])) is None:
            self.skipTest(f"{command[0]} is not installed")
        said = self.dir / "shadow.txt"
        said.unlink(missing_ok=True)
        done = self.record(*command, env={"LD_PRELOAD": str(SHADOW.resolve()), "SHADOW_FILE": str(said), **(env or {})}, cwd=self.dir, code=code,
                           options=options)
        shadows = {}
        for line in said.read_text().splitlines():
            pid, *rest, strange = map(int, line.split())
            shadows.setdefault(pid, []).append((rest, strange))
        total, n_compared, differ = [0] * 4, 0, []
        processes = ask(self.path, "SELECT id, pid, command FROM process ORDER BY id")
        n_processes, last = len(processes), {pid: number for number, pid, _ in processes}
        for number, pid, words in processes:
            ours = sums(self.path, number)
            total = [a + b for a, b in zip(total, ours)]
            # An image that becomes another one by exec has no last words.
            if number != last[pid] or pid not in shadows:
                continue
            rest, strange = shadows[pid][-1]
            n_compared += 1
            if not self.agree(ours, rest, exact) or strange:
                differ.append((words, ours, rest, strange))
        self.assertEqual(differ, [])
        self.assertGreater(n_compared, 0)
        peak = ours[4] if n_processes == 1 and ours[4] == rest[4] else None # else of threads that run at once
        rows[name] = f"| {name} | {n_processes} | {n_compared} | " + " | ".join(f"{n:,}" for n in total) + f" | {peak:,} |" if peak else \
                     f"| {name} | {n_processes} | {n_compared} | " + " | ".join(f"{n:,}" for n in total) + " | |"
        # What processes counted themselves is there of those that were not killed: of all, or it is not compared.
        self.assertIn(ask(self.path, "SELECT value FROM meta WHERE key = 'totals'"), ([("equal",)], []))
        self.ok("trace", self.path, "--check")
        return done

    @staticmethod
    def agree(ours, theirs, exact):
        """To the byte; but what a program of many libraries does behind the shadow's last words is in the trace alone: it
        frees, and hardly takes any more."""
        if exact:
            return ours == theirs
        more = [a - b for a, b in zip(ours, theirs)]
        return 0 <= more[0] <= 2 and 0 <= more[2] <= 64 and 0 <= more[1] <= 1000 and 0 <= more[3]

    def test_sqlite3(self):
        self.count("`sqlite3`, a table of 3,000 rows", "sqlite3", ":memory:", "CREATE TABLE t(a); WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL "
                   "SELECT x + 1 FROM c WHERE x < 3000) INSERT INTO t SELECT hex(x) FROM c; SELECT count(*), max(a) FROM t;")

    def test_a_compiler(self):
        (self.dir / "f.c").write_text("int f(int x) { return x + 1; }\n")
        self.count("`gcc -O2 -c`: gcc, cc1, as", "gcc", "-O2", "-c", "f.c")

    def test_mpirun(self):
        root = ["--allow-run-as-root"] if any_program.AS_ROOT else []
        self.count("`mpirun -n 4` of four threads each", "mpirun", *root, "--oversubscribe", "-n", "4", VICTIM.resolve(), "threads", "4", "2000", exact=False)

    def test_torch(self):
        if subprocess.run([PYTHON, "-c", "import torch"], capture_output=True).returncode != 0:
            self.skipTest("torch is not installed for /usr/bin/python3")
        done = self.count("`python3` with torch: a network is trained, `--torch`", PYTHON, HERE / "model.py", exact=False, options=["--torch"],
                          env={"OMP_NUM_THREADS": "1"})
        self.assertEqual(len(done.stdout.split()), 3)
        groups = self.json("trace", self.path, "--whole", "--at", "peak", "--by", "module", "--json")["groups"]
        names = {g["key"] for g in groups}
        self.assertLessEqual({"stem, forward", "layer1.0.conv1, forward", "layer2.0.bn1, forward", "optimizer step"}, names)
        page = self.dir / "page.html"
        self.ok("report", self.path, "-o", page)
        self.assertIn("layer1.0.conv1, forward", page.read_text())

    def test_onnxruntime(self):
        model = next((m for m in MODELS if m.exists()), None)
        if not ORT.exists() or model is None:
            self.skipTest("onnxruntime-node is not in build/npm, or no model is there")
        for arena in ("on", "off"):
            self.count(f"`node` with ONNX Runtime, arena {arena}", "node", HERE / "model.js", ORT, model.resolve(), arena, exact=False)

    def test_chromium(self):
        self.count("`chromium --headless`", "chromium", "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom", "about:blank", exact=False)

    def test_jemalloc(self):
        """Behind jemalloc no shadow counts: what the program says that it did stands beside it."""
        library = jemalloc_of(any_program.BUILT / "preload_jemalloc")
        if library is None:
            self.skipTest("jemalloc is not installed")
        self.record(VICTIM, "threads", "4", "5000", env={"LD_PRELOAD": library})
        ours = sums(self.path, 1)
        self.assertGreaterEqual(ours[0], 20000)
        rows["4 threads under jemalloc"] = "| 4 threads under jemalloc | 1 | 0 | " + " | ".join(f"{n:,}" for n in ours[:4]) + " | |"
        self.is_whole()


def update():
    text = DOCS.read_text()
    begin, end = text.index(BEGIN) + len(BEGIN), text.index(END)
    head = "| program | processes | compared | allocs | frees | bytes requested | bytes freed | peak of live bytes |\n|---|---|---|---|---|---|---|---|\n"
    DOCS.write_text(text[:begin] + head + "".join(row + "\n" for row in rows.values()) + text[end:])


if __name__ == "__main__":
    result = unittest.main(exit=False, verbosity=2).result
    if os.environ.get("TIDE_UPDATE_DOCS") and result.wasSuccessful() and not result.skipped:
        update()
    for row in rows.values():
        print(row)
    sys.exit(not result.wasSuccessful())
