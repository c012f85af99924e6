# SPDX-License-Identifier: MIT
"""The options of tui and run --tui: what is looked at, what comes out, what is refused."""
import csv
import io
import json
import os
import re
import shlex
import subprocess
import unittest

import tidemark
from screen import Screen
from tidemark import PROGRAM, SAMPLES, Case, ask, environment, run

LENET, UNET, DYNAMIC = (SAMPLES / f"{name}.json" for name in ("lenet5", "unet", "dynamic_batch"))
PANES = ("curve", "gantt", "map", "table", "operators", "pools", "explain", "compare", "whatif", "stacks", "details")
VIEWS = ("lifetimes", "memory", "peak", "allocators", "comparison")


class Output(Case):
    def setUp(self):
        super().setUp()
        self.trace, self.plan, self.csv = self.dir / "t.db", self.dir / "p.json", self.dir / "l.csv"

    def once(self, *args, size="100x30", **kw):
        frame = self.ok("tui", "--once", "--size", size, *args, **kw).stdout
        width, height = map(int, size.split("x"))
        lines = frame.split("\n")
        self.assertEqual((len(lines), lines[-1]), (height + 1, ""))
        self.assertTrue(all(len(line) == width for line in lines[:-1]))
        return frame

    def test_every_input(self):
        self.ok("run", LENET, "-n", 3, "-o", self.trace)
        self.ok("plan", LENET, "-o", self.plan)
        self.ok("export", LENET, "--to", "csv", "-o", self.csv)
        for files in ([LENET], [self.plan], [self.csv], [self.trace], [self.plan, self.trace], [self.trace, LENET]):
            for view in VIEWS:
                with self.subTest(files=files, view=view):
                    frame = self.once(*files, "--view", view)
                    self.assertIn("peak", frame)
                    self.assertEqual(frame, self.once(*files, "--view", VIEWS.index(view) + 1))
        self.assertIn("lenet5", self.once("-", stdin=LENET.read_text()))

    def test_runs_of_a_trace(self):
        self.ok("compare", LENET, "-o", self.trace)
        one, two, last, whole = (self.once(self.trace, *args) for args in
                                 (["--run", 1], ["--run", 2], [], ["--run", "all"]))
        self.assertNotEqual(one, two)
        self.assertEqual(two, last)
        self.assertNotIn(whole, (one, two))
        self.refused(3, "tui", self.trace, "--once", "--run", 9, says=["9"])

    def test_panes_as_data(self):
        """Every pane as a document of its own and as a table whose lines are all as long as the first."""
        self.ok("run", LENET, "-n", 3, "-o", self.trace)
        for pane in PANES:
            for file in (LENET, self.trace):
                with self.subTest(pane=pane, file=file):
                    doc = self.json("tui", file, "--pane", pane)
                    self.assertEqual(list(doc)[:2], ["schema", "version"])
                    self.assertEqual((doc["schema"], doc["version"]), (f"tidemark.tui.{pane}", 1))
                    rows = list(csv.reader(io.StringIO(self.ok("tui", file, "--pane", pane, "--csv").stdout)))
                    self.assertGreater(len(rows[0]), 1)
                    self.assertEqual({len(row) for row in rows}, {len(rows[0])})

    def test_one_execution_alone(self):
        """:run N filters: what is listed, and written as data, is what SQL says lived in that execution."""
        for mode in ("--naive",), ():
            with self.subTest(mode=mode):
                self.ok("run", LENET, "-n", 4, "-o", self.trace, *mode)
                for n in range(4):
                    begin, end = ask(self.trace, "SELECT begin_ns, end_ns FROM executions WHERE execution = ?", n)[0]
                    blocks = ask(self.trace, "SELECT name FROM blocks WHERE alloc_ns < ? AND ifnull(free_ns, ?) > ? AND "
                                 "block_id NOT IN (SELECT block_id FROM buffers)", end, end, begin)
                    tensors = ask(self.trace, "SELECT max(name) FROM holders WHERE execution = ? AND idx IS NOT NULL GROUP BY idx", n)
                    doc = self.json("tui", self.trace, "--pane", "gantt", "--command", f"run {n}")
                    whole = self.json("tui", self.trace, "--pane", "gantt")
                    self.assertEqual(sorted(row["name"] for row in doc["rows"]), sorted(name for name, in blocks + tensors))
                    self.assertEqual(doc["hidden_items"], len(whole["rows"]) - len(doc["rows"]))
                    self.assertEqual(doc["window"], [begin, end])

    def test_several_contexts(self):
        """Each has a buffer: the line of the plan stands once for each, and pools go by the context's number."""
        self.ok("run", LENET, "-n", 2, "--contexts", 3, "-o", self.trace)
        plan = ask(self.trace, "SELECT plan_bytes FROM run")[0][0]
        frame = self.once(self.trace, "--view", "1", size="160x48")
        self.assertRegex(frame, rf"plans of 3 contexts(?: = lower bounds)? {3 * plan / 1024:.2f} KiB \+ |3 plans(?:=bounds)? ")
        self.assertIn("in 3 contexts", frame)
        frame = self.once(self.trace, "--view", "4", size="160x48")
        for words in ("buffer #1", "buffer #2", "buffer #3"):
            self.assertIn(words, frame)
        self.assertNotIn("wastes most", frame)  # they are alike
        self.ok("report", self.trace, "-o", self.dir / "r.json")
        levels = json.loads((self.dir / "r.json").read_text())["sides"][0]["levels"]
        self.assertEqual((levels["contexts"], levels["plan_bytes"] - levels["below_bytes"]), (3, 3 * plan))

    def test_the_table_is_the_plans(self):
        """Numbers of the table at the peak sum to the peak that `plan` prints."""
        doc = self.json("plan", UNET)
        shown = self.json("tui", UNET, "--pane", "table")
        buffers = sum(row["counts_bytes"] for row in shown["rows"] if row["kind"] == "Workspace")
        self.assertEqual(buffers, doc["plans"][0]["lower_bound_bytes"])

    def test_a_frame_that_is_too_small_for_one(self):
        for size in ("5x2", "39x10", "40x9", "1x1"):
            self.refused(2, "tui", LENET, "--once", "--size", size, says=["--size", "40x10", size])
        self.once(LENET, size="40x10")

    def test_commands_are_done_first(self):
        frame = self.once(LENET, "--command", "filter size>60KiB", "--command", ":sort size", "--command", "persistent")
        self.assertIn("filter size>60KiB", frame)
        self.assertIn("conv1.scratch", frame)
        self.assertNotIn("relu4.out", frame)
        p = self.refused(2, "tui", LENET, "--once", "--command", "filtre size>1", says=["filtre", "filter"])
        self.assertEqual(p.stdout, "")

    def test_scripts(self):
        script = self.dir / "s"
        script.write_text("expect lenet5\nkey 3\ndump\nresize 80x24\nkey 1\ndump\n")
        out = self.ok("tui", LENET, "--script", script, "--size", "100x30").stdout
        self.assertEqual(out, self.once(LENET, "--view", 3) + self.once(LENET, size="80x24"))
        self.assertEqual(out, self.ok("tui", LENET, "--script", "-", "--size", "100x30", stdin=script.read_text()).stdout)
        script.write_text("key 3\nexpect no such words\n")
        self.assertNotEqual(run("tui", LENET, "--script", script).returncode, 0)
        self.refused(3, "tui", LENET, "--script", self.dir / "missing", says=["missing"])

    def test_lines(self):
        p = self.ok("tui", LENET, "--linear", stdin="memory\nlist table 3\nnext-change\nnonsense\nquit\n")
        self.assertIn("lenet5", p.stdout)
        self.assertIn("relu1.out", p.stdout)
        self.assertIn("nonsense", p.stdout)
        self.assertNotRegex(p.stdout, "[\x1b\u2500-\u259f\u2800-\u28ff]")

    def test_glyphs(self):
        self.assertTrue(self.once(LENET, "--ascii").isascii())
        self.assertEqual(self.once(LENET, "--ascii"), self.once(LENET, "--glyphs", "ascii"))
        self.assertTrue(self.once(LENET, env={"LC_ALL": "C"}).isascii())
        self.assertRegex(self.once(LENET, "--glyphs", "braille"), "[\u2801-\u28ff]")
        self.assertRegex(self.once(LENET), "[\u2581-\u2588]")

    def test_the_map_says_what_is_where(self):
        """Regions by name at every width; without colours a letter means one name, however often that was allocated."""
        self.ok("run", "--naive", "--allocator", "stream_caching", "-n", 20, UNET, "-o", self.trace)
        for size in ("40x20", "80x24", "100x30", "120x40", "220x60"):
            for file in (UNET, self.trace):
                with self.subTest(size=size, file=file):
                    frame = self.once(file, "--view", "memory", size=size).split("\n")
                    first = next(i for i, line in enumerate(frame) if "MAP:" in line) + 1
                    lines = [line for line in frame[first:] if re.match(r"[^│┤]{10,40}[│┤]", line)]
                    labels = [re.split("[│┤]", line)[0].strip() for line in lines]
                    self.assertFalse([label for label in labels if label.startswith("…")])
                    self.assertRegex("\n".join(labels), "(?m)^(Workspace|stream_caching|segment 1)( |$)")
        frame = self.once(self.trace, "--view", "memory", size="220x60")
        # Below the map; the selection, @, is not there when something else has all of its cells.
        legend = re.search(r"(?s)MAP: .*[│┤][^\n]*\n(.*?)\n─ table", frame)[1]
        letters = re.findall(r" ([a-zA-Z]) (\S+)", legend)
        names = dict(letters)
        self.assertGreater(len(names), 15)
        self.assertEqual(len(letters), len(names), "a letter stands for two names")
        self.assertIn("concat3.out", names.values())

    def test_tensors_of_pools(self):
        """What passes through the pools of a colouring plan: the numbers of the plan file, and of the page's data."""
        self.ok("plan", UNET, "--strategy", "greedy_color", "-o", self.plan)
        doc = json.loads(self.plan.read_text())
        pools = doc["plans"][0]["pools"]
        tensors = {t["name"]: t for t in doc["tensors"]}

        def place(t):
            """Its root, and how far it lies in it."""
            at = 0
            while t.get("alias"):
                at += t["alias"]["offset"]
                t = tensors[t["alias"]["of"]]
            return t, at

        def held(root, step):
            """Bytes of those that lie in it, each once."""
            spans = sorted((place(t)[1], place(t)[1] + t["aligned_bytes"]) for t in doc["tensors"] if place(t)[0] is root and t["begin"] <= step < t["end"])
            at = total = 0
            for lo, hi in spans:
                total += max(hi - max(lo, at), 0)
                at = max(at, hi)
            return total

        want = set()
        for t in doc["tensors"]:
            root = place(t)[0]
            pool, size = root["places"][0]["pool"], t["size_bytes"] if t.get("alias") else t["aligned_bytes"]
            most = max(held(root, step) for step in range(t["begin"], t["end"]))
            if pool >= 0:
                want.add((pool, t["name"], t["begin"], t["end"], size, pools[pool]["size_bytes"] - most))
        self.assertTrue(any(t.get("alias") for t in doc["tensors"]))
        rows = self.json("tui", self.plan, "--pane", "pools")["tensors"]
        got = [(r["pool"], r["name"], r["begin_step"], r["end_step"], r["reserved_bytes"], r["left_over_bytes"]) for r in rows]
        self.assertEqual(set(got), want)
        self.assertEqual(len(got), len(want))
        self.assertEqual(got, sorted(got, key=lambda row: (row[0], -row[4], row[2])))
        page = self.dir / "p.html"
        self.ok("report", self.plan, "-o", page)
        self.assertIn("Left over", page.read_text())
        for size, says in (("80x24", "[up3.scratch 2.00M+0]"), ("120x40", "concat3.out 2.00M+0, [relu2.out 1.00M+0]"),
                           ("220x60", "relu13.out 1.00M (1.00M left over)")):
            self.assertIn(says, self.once(self.plan, "--view", 4, size=size))
        self.assertEqual(self.json("tui", UNET, "--pane", "pools")["tensors"], [])

    def test_pools_of_two(self):
        """A and B pool by pool: B's figures are those of B looked at alone, whatever the two are."""
        other = self.dir / "search.json"
        naive = self.dir / "naive.db"
        self.ok("plan", UNET, "--strategy", "greedy_color", "-o", self.plan)
        self.ok("plan", UNET, "-o", other)
        self.ok("run", UNET, "-n", 2, "-o", self.trace)
        self.ok("run", "--naive", "--allocator", "stream_caching", UNET, "-n", 2, "-o", naive)
        at = ["--command", "goto 5"]
        both = self.json("tui", self.plan, other, "--pane", "pools", *at)
        alone = self.json("tui", other, "--pane", "pools", *at)
        self.assertEqual(both["b_rows"], alone["rows"])
        self.assertEqual([row for row in both["rows"] if row["reserved_bytes"] > 0],
                         self.json("tui", self.plan, "--pane", "pools", *at)["rows"])
        self.assertNotIn("b_rows", alone)
        same = self.json("tui", naive, naive, "--pane", "pools")
        self.assertEqual(same["rows"], same["b_rows"])
        for files, says in (([self.plan, other], ["B - A: -1.29 MiB reserved", "  A pool 0", "> B buffer"]),
                            ([naive, self.trace], ["stream_caching / cpu Workspace", "> B cpu"]),
                            ([self.plan, self.trace], ["pool 0", "B at "]), ([naive, naive], ["B - A: 0 B reserved"])):
            for size in ("40x20", "80x24", "120x40", "220x60"):
                frame = self.once(*files, "--view", 4, size=size)
                if size == "120x40":
                    for words in says:
                        self.assertIn(words, frame, files)
        # another file as B in that view: it stays there
        frame = self.once(self.plan, "--view", 4, "--command", f"compare {other}", size="120x40")
        self.assertIn("POOLS: A and B at step", frame)
        self.assertIn("COMPARE: A at", self.once(self.plan, "--command", f"compare {other}", size="120x40"))

    def test_capacity(self):
        self.assertIn("400", self.once(LENET, "--capacity", "400KiB"))
        self.assertEqual(self.once(LENET, "--capacity", "400KiB"), self.once(LENET, "--budget", "400KiB"))

    def test_keys(self):
        text, troff = self.ok("tui", "--keys").stdout, self.ok("tui", "--keys=troff").stdout
        for name in re.findall(r"(?m)^.* :([a-z-]+)", text):
            self.assertIn(f":{name}".replace("-", "\\-"), troff)
        self.assertIn(".TP", troff)
        # a reader that has seen enough is no failure
        p = subprocess.run(["sh", "-c", f"{shlex.quote(PROGRAM)} tui --keys | head -n 1"], capture_output=True, text=True,
                           env=environment(), timeout=60)
        self.assertEqual((p.stderr, p.stdout.count("\n")), ("", 1))

    def test_refused(self):
        for args in (["--once", "--linear"], ["--once", "--script", "x"], ["--pane", "table"], ["--json"], ["--csv", "--once"],
                     ["--pane", "table", "--json", "--csv"], ["--pane", "tables", "--csv"], ["--view", "7", "--once"],
                     ["--view", "peaks", "--once"], ["--glyphs", "emoji", "--once"], ["--color", "red", "--once"],
                     ["--once", "--size", "100"], ["--once", "--size", "0x10"], ["--run", "0", "--once"],
                     ["--run", "x", "--once"], ["--capacity", "many", "--once"], ["--size", "80x24"],
                     ["--state", "s", "--no-state", "--once"], ["--keys"], ["--nonsense"]):
            with self.subTest(args=args):
                self.refused(2, "tui", LENET, *args)
        self.refused(2, "tui", "--once")
        self.refused(2, "tui", "--once", LENET, LENET, LENET)
        self.refused(2, "tui", "--keys=html")
        self.refused(3, "tui", "--once", self.dir / "missing.json", says=["missing.json"])

    def test_no_terminal(self):
        """What works instead is named before anything is read or planned."""
        for args in (["tui", LENET], ["tui", self.dir / "missing"]):
            p = self.refused(2, *args, says=["terminal", "--once", "--linear"])
            self.assertEqual(p.stdout, "")
        self.refused(2, "run", "--tui", LENET, says=["terminal", "-o"])
        self.assertEqual(list(self.dir.iterdir()), [])


class WhatIf(Case):
    def compare(self, *args):
        return self.json("tui", *args, "--pane", "compare", "--view", "comparison")

    def edited(self, file, edit, *args):
        out = self.dir / "edited.json"
        self.ok("tui", file, *args, "--once", "--command", f"edit {edit}", "--command", f"save-plan {out}")
        return out

    @staticmethod
    def bytes_of(doc):
        return doc["plans"][0]["bytes"]

    def test_the_model_is_made_again(self):
        """Batch, extents and passes give the plan that the options of `plan` give."""
        limit = ["--node-limit", 2000]
        plain = ["plan", DYNAMIC, *limit]
        cases = (("batch 8", ["--shape", "x=4x64"], ["--shape", "x=8x64"]),
                 ("extent x=16x64", ["--shape", "x=4x64"], ["--shape", "x=16x64"]))
        for edit, before, after in cases:
            with self.subTest(edit=edit):
                made = json.loads(self.edited(DYNAMIC, edit, *before, *limit).read_text())
                want = self.json(*plain, *after)
                self.assertEqual(self.bytes_of(made), self.bytes_of(want))
                self.assertEqual({t["name"]: t["size_bytes"] for t in made["tensors"]},
                                 {t["name"]: t["size_bytes"] for t in want["tensors"]})
        graph = SAMPLES / "inception_block.json"
        made = json.loads(self.edited(graph, "pass -parts", *limit).read_text())
        self.assertEqual(self.bytes_of(made), self.bytes_of(self.json("plan", graph, "--no-parts", *limit)))
        self.assertNotEqual(self.bytes_of(made), self.bytes_of(self.json("plan", graph, *limit)))

    def test_what_cannot_be_made_again(self):
        frame = self.ok("tui", LENET, "--once", "--size", "200x30", "--command", "edit batch 8").stdout
        self.assertIn("open", frame.rstrip("\n").rsplit("\n", 1)[-1])
        plan = self.dir / "p.json"
        self.ok("plan", LENET, "-o", plan)
        frame = self.ok("tui", plan, "--once", "--size", "200x30", "--command", "edit batch 8").stdout
        self.assertIn("needs the model", frame)

    def test_a_saved_plan_runs(self):
        graph = SAMPLES / "inception_block.json"
        out = self.edited(graph, "align 512")
        self.assertEqual(self.json("run", graph, "--plan", out, "-n", 2)["warm_allocations"], 0)


class Batch(Case):
    def test_the_command_line_prints_the_view(self):
        """What :batch says, run by a shell, is the frame that was on the screen."""
        script, graph = self.dir / "script", self.dir / "it's a model.json"
        graph.write_bytes(LENET.read_bytes())
        common = "do view memory\ndo filter size>1KiB\ndo sort size\ndo goto 3\n"
        script.write_text(common + "do batch\ndump\n")
        said = self.ok("tui", "--strategy", "greedy_by_size", graph, "--script", script, "--size", "200x40").stdout
        line = " ".join(part.strip() for part in said.split("\n")[2:] if part.strip() and "Esc" not in part)
        self.assertTrue(line.startswith("tidemark tui"), said)
        script.write_text(common + "dump\n")
        want = self.ok("tui", "--strategy", "greedy_by_size", graph, "--script", script, "--size", "200x40").stdout
        p = subprocess.run(["sh", "-c", line.replace("tidemark", shlex.quote(PROGRAM), 1)], capture_output=True, text=True,
                           env=environment(), timeout=60)
        self.assertEqual(p.stderr, "")
        self.assertEqual(p.stdout, want)


class OnATerminal(Screen):
    def shell(self, command, width=100, height=30):
        """Run a command line on a terminal of its own."""
        (self.dir / "tmux.conf").write_text('set -g default-terminal "tmux-256color"\nset -g status off\n')
        env = {"LC_ALL": "C.UTF-8", "HOME": str(self.dir), "XDG_STATE_HOME": str(self.dir / "state"),
               "TMPDIR": str(self.dir / "tmp")}
        (self.dir / "tmp").mkdir()
        words = " ".join(f"{k}={shlex.quote(v)}" for k, v in env.items())
        line = f"trap : INT; env {words} {command}; echo $? > {shlex.quote(str(self.code))}; exec cat"
        self.tmux("new-session", "-d", "-x", width, "-y", height, "sh", "-c", line)
        self.addCleanup(self.tmux, "kill-server")

    def ended_with(self, code):
        self.until(lambda s: self.code.exists() and self.code.read_text().strip() != "", "it has not ended")
        self.assertEqual(self.code.read_text().strip(), str(code))

    def test_state_is_kept_for_each_file(self):
        self.start(LENET)
        self.keys("3")
        self.tmux("send-keys", "q")
        self.ended(0)
        files = list((self.dir / "state" / "tidemark").iterdir())
        self.assertEqual(len(files), 1)
        self.assertRegex(files[0].name, "^tui-[0-9a-f]{16}$")

    def test_no_state_is_kept(self):
        self.start(LENET, "--no-state")
        self.keys("3")
        self.tmux("send-keys", "q")
        self.ended(0)
        self.assertFalse((self.dir / "state").exists())

    def run_tui(self, *args):
        self.shell(shlex.join([PROGRAM, "run", "--tui", *map(str, args)]))

    def test_a_run_is_looked_at(self):
        self.run_tui(LENET, "-n", 20000, "--limit", "400KiB")
        self.until(lambda s: "lenet5" in s and "400" in s, "the run was never seen")  # the limit, in any words
        self.tmux("send-keys", "q")
        self.until(lambda s: "the run goes on" in s or "together" in s)
        self.ended_with(0)
        self.until(lambda s: "allocations in warm runs: 0" in s, "the report was not printed")
        self.assertNotIn("trace:", self.screen())
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])

    def test_ctrl_c_ends_the_run_when_the_view_is_left(self):
        trace = self.dir / "t.db"
        self.run_tui(LENET, "-n", 100000000, "-o", trace)
        self.until(lambda s: "LIVE" in s and "lenet5" in s, "the run was never seen")
        self.tmux("send-keys", "q")
        self.until(lambda s: "the run goes on" in s)
        self.tmux("send-keys", "C-c")
        self.ended_with(128 + 2)
        tidemark.until(lambda: self.json("trace", trace)["state"] == "complete")

    def test_ctrl_c_in_the_view_ends_both(self):
        trace = self.dir / "t.db"
        self.run_tui(LENET, "-n", 100000000, "-o", trace)
        self.until(lambda s: "LIVE" in s and "lenet5" in s, "the run was never seen")
        self.tmux("send-keys", "C-c")
        self.ended_with(128 + 2)
        tidemark.until(lambda: self.json("trace", trace)["state"] == "complete")
        self.assertNotIn("LIVE", self.screen())

    def test_a_temporary_trace_goes_with_both(self):
        self.run_tui(LENET, "-n", 100000000)
        self.until(lambda s: "LIVE" in s and "lenet5" in s, "the run was never seen")
        self.tmux("send-keys", "C-c")
        self.ended_with(128 + 2)
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])

    def test_a_run_that_ends_at_once(self):
        """Short, or failed: the view opens on what there is, or the run's own words are all."""
        self.run_tui(LENET, "-n", 1, "-o", self.dir / "t.db")
        self.until(lambda s: "lenet5" in s and "GANTT" in s)
        self.tmux("send-keys", "q")
        self.ended_with(0)
        self.assertIn("1 run x 1 context", self.screen())
        self.assertTrue((self.dir / "t.db").exists())

    def test_a_run_that_cannot_begin(self):
        self.run_tui(self.dir / "missing.json")
        self.ended_with(3)
        self.until(lambda s: "missing.json" in s)
        self.assertEqual(list((self.dir / "tmp").iterdir()), [])


if __name__ == "__main__":
    tidemark.main()
