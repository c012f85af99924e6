# SPDX-License-Identifier: MIT
"""Contexts in memory that the caller owns: `run --buffer-file`. What lies in the file is read from outside, and what the
process takes is asked of the system: calls for memory are counted by a library that is preloaded and by strace, pages by
/proc."""
import fcntl
import os
import pathlib
import re
import resource
import shutil
import struct
import subprocess
import unittest

import tidemark
from degenerate import graph
from process import models
from tidemark import PROGRAM, SAMPLES, SHARED, Case, ask, environment, settle, share
from weights import MIB, write

LENET, UNET, TWO = SAMPLES / "lenet5.json", SAMPLES / "unet.json", SAMPLES / "early_output.json"
PRELOAD = os.environ.get("TIDE_COUNT_PRELOAD", "")
SANITIZED = bool(os.environ.get("TIDE_SANITIZERS"))
ROOT = os.geteuid() == 0


def floats_of(pb):
    """The numbers of a tensor file: its raw bytes are the last field of that number that reaches to the end."""
    data = pb.read_bytes()
    for at in range(len(data)):
        if data[at] != 0x4A:
            continue
        n, shift, k = 0, 0, at + 1
        while k < len(data) and shift < 63:
            n |= (data[k] & 127) << shift
            shift, k = shift + 7, k + 1
            if data[k - 1] < 128:
                break
        if n > 0 and n % 4 == 0 and k + n == len(data):
            return struct.unpack(f"<{n // 4}f", data[k:])
    return None


class CallerMemory(Case):
    def setUp(self):
        super().setUp()
        self.file = self.dir / "buffer"

    def run_in_file(self, *args, file=None):
        """@return the document of the run, and what the file holds afterwards"""
        file = file or self.file
        doc = self.json("run", "-n", 2, "--buffer-file", file, *args)
        return doc, file.read_bytes()

    # ---- figures and numbers ----

    def test_the_file_is_as_large_as_plan_says(self):
        """To the byte, for every model and for alignments on both sides of a page."""
        n_models, chosen = 0, share(models(), 3)
        for name, path, options in chosen:
            small = path.stat().st_size < 3 * MIB and name not in ("resnet50", "resnet18")
            for more in ((), ("--align", "4"), ("--align", "64"), ("--align", "16384")) if path == LENET else ((),) if small else ():
                self.file.unlink(missing_ok=True)
                plan = tidemark.run("plan", "--json", *options, *more, path)
                p = tidemark.run("run", "-n", 1, "--json", "--contexts", 2, "--buffer-file", self.file, *options, *more, path)
                if p.returncode == 3:  # an operator without a kernel: nothing can run
                    continue
                self.assertEqual(p.returncode, 0, (name, p.stderr))
                doc = tidemark.json.loads(p.stdout)
                use = doc["buffer_file"]
                self.assertEqual(use["context_bytes"], doc["process"]["context_bytes"], name)
                if "--input-dir" not in options:
                    self.assertEqual(use["context_bytes"], tidemark.json.loads(plan.stdout)["process"]["context_bytes"], name)
                part = -(-use["context_bytes"] // 64) * 64  # what kernels want at the least
                self.assertEqual(use["bytes"], 2 * part, name)
                self.assertEqual((use["contexts"], use["created"], use["file_bytes"]), (2, True, use["bytes"]), name)
                self.assertEqual(self.file.stat().st_size, use["bytes"], name)
                kinds = {k["kind"]: k for k in doc["kinds"]}
                self.assertEqual(kinds["Workspace"]["peak_bytes"] if "Workspace" in kinds else 0,
                                 doc["process"]["buffer_bytes"], name)
                n_models += 1
        self.assertGreater(n_models, len(chosen) / 2)

    def test_the_same_numbers_in_every_part(self):
        """Outputs lie behind the buffer: the same bytes under every fill and in every context; nothing else is like them."""
        for path in (LENET, TWO, UNET):
            outputs = set()
            for fill in ("zero", "none", "poison"):
                self.file.unlink(missing_ok=True)
                doc, data = self.run_in_file("--contexts", 4, "--fill", fill, path)
                part = doc["buffer_file"]["context_bytes"]
                buffer = doc["process"]["buffer_bytes"] // 4
                self.assertEqual(len(data), 4 * part)
                for k in range(4):
                    # Behind an output of fewer bytes than its block lies what `fill` says.
                    kept = data[k * part + buffer:(k + 1) * part].rstrip(b"\xff" if fill == "poison" else b"\0")
                    outputs.add(kept)
                    between = data[k * part:k * part + buffer]
                    self.assertEqual(between == b"\xff" * buffer, fill == "poison", "between runs no tensor owns the buffer")
            self.assertEqual(len(outputs), 1, path)
            self.assertGreater(len(set(outputs.pop())), 20)

    @unittest.skipUnless((SHARED / "models").is_dir(), "skipped: ../shared is not here")
    def test_what_the_model_should_answer(self):
        """The file's bytes beside the reference that came with the model."""
        n = 0
        for name in ("mnist-8", "ultraface-rfb-320", "selfie-segmentation"):
            path = SHARED / "models" / name / "model.onnx"
            wants = [floats_of(p) for p in sorted((path.parent / "test_data_set_0").glob("output_*.pb"))]
            if not path.exists() or not wants or None in wants:
                continue
            self.file.unlink(missing_ok=True)
            doc, data = self.run_in_file("--input-dir", path.parent / "test_data_set_0", path)
            behind = data[doc["process"]["buffer_bytes"]:]
            numbers = struct.unpack(f"<{len(behind) // 4}f", behind)
            blocks, at = [-(-len(w) * 4 // 256) * 64 for w in wants], 0
            starts = [sum(blocks[:k]) for k in range(len(blocks))]
            for want in wants:  # blocks stand in the order in which steps make them
                found = [s for s in starts
                         if all(abs(a - b) <= 1e-3 + 1e-3 * abs(b) for a, b in zip(numbers[s:s + len(want)], want))]
                self.assertTrue(found, name)
                n += 1
        if n == 0:
            self.skipTest("skipped: no model with a reference of plain floats")

    # ---- who holds what ----

    def test_who_holds_the_blocks(self):
        """In the trace: buffers and outputs of an allocator of their own, side by side; of the others inputs and weights."""
        trace = self.dir / "t.db"
        for path, contexts, n_outputs in ((TWO, 1, 2), (UNET, 3, 1)):
            trace.unlink(missing_ok=True)
            self.file.unlink(missing_ok=True)
            doc, _ = self.run_in_file("--contexts", contexts, "-o", trace, path)
            inputs = {name for name, in ask(trace, "SELECT name FROM plan_tensors WHERE role = 'input'")}
            rows = ask(trace, "SELECT kind, allocator, name, address, requested_bytes, reserved_bytes FROM blocks")
            mine = [r for r in rows if r[1] == "caller"]
            others = [r for r in rows if r[1] != "caller" and r[0] in ("Workspace", "Default")]
            self.assertEqual({r[2] for r in others}, inputs)
            self.assertEqual({r[0] for r in others}, {"Default"})
            self.assertEqual(sorted(r[0] for r in mine), ["Default"] * contexts * n_outputs + ["Workspace"] * contexts)
            self.assertEqual({r[2] for r in mine if r[0] == "Workspace"}, {"plan buffer"})
            self.assertEqual(sum(r[4] for r in mine), doc["buffer_file"]["bytes"])
            mine.sort(key=lambda r: r[3])
            for before, after in zip(mine, mine[1:]):
                self.assertEqual(before[3] + before[5], after[3])
                self.assertEqual(before[4], before[5])
            self.ok("trace", trace, "--check")
            self.assertEqual(doc["leaks"], [])
            self.assertEqual(doc["warm_allocations"], 0)
            # Views that look into buffers find their tensors there, in every context.
            buffers = {block for block, in ask(trace, "SELECT block_id FROM blocks WHERE kind = 'Workspace'")}
            for table, column in (("buffers", "block_id"), ("executions", "buffer"), ("tensors", "block_id")):
                self.assertEqual({block for block, in ask(trace, f"SELECT {column} FROM {table}")}, buffers, table)

    # ---- nothing else is allocated ----

    def counts(self, *args):
        p = self.ok("run", *args, env={"LD_PRELOAD": PRELOAD})
        words = re.findall(r"counted (.*)", p.stderr)[-1].split()
        return dict(zip(words[::2], map(int, words[1::2])))

    @unittest.skipIf(not PRELOAD, "skipped: sanitizers have a malloc of their own")
    def test_no_call_for_memory_in_its_place(self):
        """With the file the process makes one aligned allocation less for each block that lies there, and maps one file
        more; none is as large as the buffer. Warm runs add nothing."""
        for path, n_blocks in ((UNET, 2), (TWO, 3)):
            bytes_ = self.json("plan", path)["process"]["buffer_bytes"]
            with_file, without = self.counts("-n", 3, "--buffer-file", self.file, path), self.counts("-n", 3, path)
            again = self.counts("-n", 3, "--buffer-file", self.file, path)
            self.assertEqual(without["aligned"] - with_file["aligned"], n_blocks)
            self.assertEqual(with_file["mmap"] - without["mmap"], 1)
            self.assertEqual(self.counts("-n", 8, "--buffer-file", self.file, path), again)
            if path == UNET:
                self.assertGreaterEqual(without["largest"], bytes_)
                self.assertLess(with_file["largest"], bytes_)
            self.file.unlink()

    @unittest.skipIf(SANITIZED, "skipped: sanitizers map memory of their own")
    @unittest.skipIf(shutil.which("strace") is None, "skipped: there is no strace")
    def test_no_mapping_in_its_place(self):
        """What the kernel is asked for: pages of the file, shared, and no anonymous memory as large as the buffer."""
        bytes_ = self.json("plan", UNET)["process"]["context_bytes"]
        largest = {}
        for file in (self.file, None):
            options = ["--buffer-file", file] if file else []
            log = self.dir / "calls"
            traced = ["strace", "-f", "-o", log, "-e", "trace=mmap,brk,fallocate"]
            p = subprocess.run([*traced, PROGRAM, "run", "-n", "2", *map(str, options), UNET],
                               capture_output=True, text=True, env=environment({"OMP_NUM_THREADS": "1"}), check=False)
            if "ptrace" in p.stderr and p.returncode != 0:
                self.skipTest("skipped: strace may not trace here")
            self.assertEqual(p.returncode, 0, p.stderr)
            calls = [line for line in log.read_text().splitlines() if "mmap(" in line]
            sizes = [int(re.search(r"mmap\(\S+, (\d+)", c).group(1)) for c in calls
                     if "MAP_ANONYMOUS" in c and "NORESERVE" not in c]
            largest[file is not None] = max(sizes)
            shared = [c for c in calls if "MAP_SHARED" in c and "PROT_WRITE" in c]
            self.assertEqual(len(shared), 1 if file else 0, shared)
            if file:
                self.assertIn(f", {bytes_}, PROT_READ|PROT_WRITE, MAP_SHARED,", shared[0])
                self.assertRegex(log.read_text(), rf"fallocate\(\d+, 0, 0, {bytes_}\)")  # a full disk is found before
        self.assertLess(largest[True], bytes_ // 2)
        self.assertGreaterEqual(largest[False], bytes_ * 9 // 10)  # it is this test that would see it

    @unittest.skipIf(SANITIZED, "skipped: sanitizers have pages of their own")
    def test_its_pages_are_the_file_s(self):
        """While it runs: the mapping is shared, and the process has so much less memory of its own."""
        anonymous = {}
        for file in (self.file, None):
            p = self.start("run", "-n", 100000000, "--contexts", 4, *(["--buffer-file", file] if file else []), UNET,
                           env={"OMP_NUM_THREADS": "1"})
            status = pathlib.Path(f"/proc/{p.pid}/status")
            own = lambda _pid, s=status: int(re.search(r"RssAnon:\s+(\d+)", s.read_text()).group(1)) >> 8  # quarters of a MiB
            # All contexts have run once where this does not grow any more.
            (quarters,) = settle([p.pid], own, 1)
            anonymous[file is not None] = quarters << 18
            maps = pathlib.Path(f"/proc/{p.pid}/maps").read_text()
            if file:
                line = next(line for line in maps.splitlines() if line.endswith(str(file.resolve())))
                begin, end = (int(x, 16) for x in line.split()[0].split("-"))
                self.assertIn(" rw-s ", line)
                self.assertEqual(end - begin, -(-file.stat().st_size // 4096) * 4096)
            p.kill()
            p.wait()
        self.assertGreater(anonymous[False] - anonymous[True], 0.9 * self.file.stat().st_size)

    # ---- files ----

    def test_a_larger_file_keeps_what_is_behind(self):
        self.file.write_bytes(b"\xa5" * (8 * MIB))
        doc, data = self.run_in_file("--fill", "zero", UNET)
        use = doc["buffer_file"]
        self.assertEqual((use["created"], use["file_bytes"], len(data)), (False, 8 * MIB, 8 * MIB))
        self.assertEqual(data[use["bytes"]:], b"\xa5" * (8 * MIB - use["bytes"]))
        self.assertNotIn(b"\xa5" * 64, data[:use["bytes"]])
        said = self.ok("run", "-n", 1, "--buffer-file", self.file, UNET).stdout
        self.assertRegex(said, r"buffer file: 4\.\d\d MiB of '.*buffer' \(8\.00 MiB\), 1 context of 4\.\d\d MiB")

    def test_one_that_is_too_small_is_left_alone(self):
        need = self.json("plan", LENET)["process"]["context_bytes"]
        for n in (0, 1, need - 1):
            self.file.write_bytes(b"mine" * need)
            os.truncate(self.file, n)
            before = self.file.read_bytes()
            p = self.refused(6, "run", "-n", 1, "--buffer-file", self.file, LENET,
                             says=[f" {need} B ", "for 1 context", f"it has {n} B", f"truncate -s {need}"])
            self.assertNotIn("out of memory", p.stderr)
            self.assertEqual(self.file.read_bytes(), before)
        os.truncate(self.file, need)
        self.ok("run", "-n", 1, "--buffer-file", self.file, LENET)
        self.refused(6, "run", "-n", 1, "--contexts", 3, "--buffer-file", self.file, LENET, says=[f" {3 * need} B ", "3 contexts"])

    def test_files_of_the_run_itself(self):
        """The model, its weights, its plan, its inputs, its trace: none of them is written over, in any spelling."""
        model, link, plan, trace = self.dir / "m.json", self.dir / "link", self.dir / "plan.json", self.dir / "t.db"
        model.write_bytes(LENET.read_bytes() + b" " * 4 * MIB)
        link.symlink_to("m.json")
        for file in (model, link, self.dir / "." / "m.json"):
            self.refused(2, "run", "--buffer-file", file, model, says=["is the input"])
        self.ok("plan", model, "-o", plan)
        self.refused(2, "run", "--plan", plan, "--buffer-file", plan, model, says=["is the plan"])
        self.refused(2, "run", "-o", trace, "--buffer-file", f"{self.dir}/./t.db", model, says=["is the trace"])
        self.assertFalse(trace.exists())
        weights = write(self.dir, "external", 512, 256)
        before = (self.dir / "w.bin").read_bytes()
        (self.dir / "w.link").symlink_to("w.bin")
        for options in ((), ("--weights", "copy")):  # mapped, or read and closed again
            for file in ("w.bin", "w.link"):
                self.refused(8, "run", "--buffer-file", self.dir / file, *options, weights, says=["in use by this run"])
        self.assertEqual((self.dir / "w.bin").read_bytes(), before)
        for ending in ("-wal", "-shm", "-journal"):
            self.refused(2, "run", "-o", trace, "--buffer-file", f"{trace}{ending}", model, says=["is the trace"])
        ahead = self.dir / "ahead"  # a link to what is not there yet
        ahead.symlink_to("t.db")
        self.refused(2, "run", "-o", trace, "--buffer-file", ahead, model, says=["is the trace"])
        self.refused(2, "run", "-o", ahead, "--buffer-file", trace, model, says=["is the trace"])
        self.assertFalse(trace.exists())
        data = self.dir / "data"
        data.mkdir()
        (data / "input_0.pb").write_bytes(b"\0" * MIB)
        self.refused(2, "run", "--input-dir", data, "--buffer-file", data / "input_0.pb", model, says=["is an input"])
        self.assertEqual(model.read_bytes(), LENET.read_bytes() + b" " * 4 * MIB)

    def test_what_is_no_plain_file(self):
        os.mkfifo(self.dir / "pipe")
        for file in (self.dir, self.dir / "pipe", "/dev/null", "/dev/zero", self.dir / "no" / "file"):
            self.refused(8, "run", "--buffer-file", file, LENET, says=[str(file)])
        for file in ("", "-"):
            self.refused(2, "run", "--buffer-file", file, LENET, says=["is no file"])
        self.assertFalse(pathlib.Path("-").exists())
        link = self.dir / "link"  # what it leads to is made
        link.symlink_to("target")
        self.assertTrue(self.json("run", "-n", 1, "--buffer-file", link, LENET)["buffer_file"]["created"])
        self.assertTrue(link.is_symlink() and (self.dir / "target").stat().st_size > 0)
        if not ROOT:
            self.file.write_bytes(b"\0" * MIB)
            self.file.chmod(0o400)
            self.refused(8, "run", "--buffer-file", self.file, LENET, says=["Permission denied"])

    def test_a_disk_that_is_full(self):
        """An error before anything runs, and no file that is too short is left."""
        small = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
        self.refused(8, "run", "--buffer-file", self.file, LENET, preexec_fn=small, says=["buffer"])
        self.assertFalse(self.file.exists())

    def test_one_run_at_a_time(self):
        self.file.write_bytes(b"\xa5" * 8 * MIB)
        with open(self.file, "rb") as held:
            fcntl.flock(held, fcntl.LOCK_EX)
            self.refused(8, "run", "--buffer-file", self.file, LENET, says=["in use by another run"])
        self.assertEqual(self.file.read_bytes(), b"\xa5" * 8 * MIB)
        self.ok("run", "-n", 1, "--buffer-file", self.file, LENET)

    def test_options_that_make_no_sense_with_it(self):
        for more, words in ((("--naive",), "--naive"), (("--decode", 3), "leave --buffer-file out"), (("--limit", "1GiB"), "--limit")):
            self.refused(2, "run", *more, "--buffer-file", self.file, LENET, says=[words])
            self.assertFalse(self.file.exists())

    def test_hardly_anything(self):
        """No buffer, no bytes at all, outputs that no step makes."""
        cases = {
            "one": (graph([("Relu", ["x"], ["y"])], [("x", [4])], ["y"]), 256),
            "nothing": (graph([("Relu", ["x"], ["a"]), ("Tanh", ["a"], ["y"])], [("x", [0, 4])], ["y"]), 0),
            "handed": (graph([("Relu", ["x"], ["y"])], [("x", [4])], ["x", "w", "y"], [("w", [4])]), 768),
        }
        for name, (text, need) in cases.items():
            path = self.dir / f"{name}.json"
            path.write_text(text)
            for fill in ("zero", "none", "poison"):
                self.file.unlink(missing_ok=True)
                doc, data = self.run_in_file("--contexts", 2, "--fill", fill, path)
                self.assertEqual(doc["buffer_file"]["context_bytes"], need, name)
                self.assertEqual(len(data), 2 * need, name)
                self.assertEqual(self.json("plan", path)["process"]["context_bytes"], need, name)


if __name__ == "__main__":
    tidemark.main()
