# SPDX-License-Identifier: MIT
"""Files in which there is hardly anything: every command that takes one, in every format, ends with an answer or with an
error in words, and what it prints is well formed. A table: the files, the commands, and what each exit code must be."""
import concurrent.futures
import csv
import html.parser
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import unittest
import xml.etree.ElementTree

import tidemark
from bad_input import model
from tidemark import run

TRACER = os.path.abspath(os.environ.get("TIDE_SCENARIO_TRACE", "build/test/tests/cli/scenario_trace"))
TRACES = ("nothing", "one_event", "no_bytes", "one_tick", "frees", "scopes")
VIEWS = ("lifetimes", "memory", "peak", "allocators", "comparison")
PANES = ("curve", "gantt", "map", "table", "operators", "pools", "explain", "compare", "whatif", "stacks", "details")
FORMATS = ("html", "csv", "json", "md", "svg", "txt")

# Every key of the view's table, each twice, in every view; prompts are left with Esc.
KEYS = ("k j h l PgUp PgDn Home End [ ] , . p P ^ + - S-Left S-Right 0 f Z z Tab S-Tab n N * | @ i o O t Enter v v m a A B "
        "! u y Space F F M ^L K").split()
SCRIPT = "".join(f"key {view}\nkey {' '.join(KEYS)} Esc\nkey {' '.join(KEYS)} Esc\nresize 40x10\nresize 100x30\n"
                 "key / x Enter Esc\nkey \\ x Enter Esc\nkey g 0 Enter Esc\nkey ? Esc\nkey F2 Esc\n"
                 "key Q Esc\nkey X Esc\ndump\n" for view in "12345")
LINES = "".join(f"{view}\nlist\n" + "".join(f"list {pane}\n" for pane in PANES) + "next-change\npeak\nhighest\nfit\n"
                for view in VIEWS) + "quit\n"


# ---- the files ----

def graph(nodes, inputs, outputs, initializers=()):
    of = lambda name, shape, dtype="float32": {"name": name, "dtype": dtype, "shape": shape}
    return json.dumps({"schema": "tidemark.graph", "version": 1, "name": "few", "opset": 13,
                       "inputs": [of(*i) for i in inputs],
                       "initializers": [{**of(*i), "fill": 1} for i in initializers],
                       "nodes": [{"op": op, "name": f"n{k}", "inputs": i, "outputs": o} for k, (op, i, o) in enumerate(nodes)],
                       "outputs": outputs})


def lifetimes(*lines, columns="id,lower,upper,size,kind,role,persistent"):
    return "\n".join((columns, *lines)) + "\n"


GRAPHS = {
    "one_node": graph([("Relu", ["x"], ["y"])], [("x", [4])], ["y"]),
    "all_outputs": graph([("Relu", ["x"], ["a"]), ("Tanh", ["a"], ["b"]), ("Abs", ["b"], ["c"])], [("x", [4])], ["a", "b", "c"]),
    "zero_bytes": graph([("Relu", ["x"], ["a"]), ("Tanh", ["a"], ["y"])], [("x", [0, 4])], ["y"]),
    "one_byte": graph([("Not", ["x"], ["a"]), ("Not", ["a"], ["b"]), ("Not", ["b"], ["y"])], [("x", [], "bool")], ["y"]),
    "inputs_unused": graph([("Relu", ["w"], ["y"])], [("x", [4]), ("z", [2])], ["y"], [("w", [4])]),
    "one_of_many_used": graph([("Relu", ["x"], ["a"]), ("Abs", ["a"], ["y"])], [("x", [4])] + [(f"u{i}", [4]) for i in range(9)], ["y"]),
    "twice_the_same": graph([("Add", ["x", "x"], ["y"]), ("Add", ["x", "x"], ["z"])], [("x", [1])], ["y", "z"]),
    "not_used_at_all": graph([("Relu", ["x"], ["a"]), ("Abs", ["x"], ["y"])], [("x", [4])], ["y"]),
}
REFUSED = {
    "no_node": graph([], [("x", [4])], ["x"]),
    "no_output": graph([("Relu", ["x"], ["y"])], [("x", [4])], []),
    "onnx_no_node": model([], [("x", 1, [4])], ["x"]),
    "onnx_nothing": model([]),
    "list_of_nothing": lifetimes(),
    "list_no_columns": "\n",
    "plan_of_nothing": json.dumps({"schema": "tidemark.plan", "version": 1, "tensors": [], "plans": []}),
    "json_object": "{}",
    "json_list": "[]",
    "empty": "",
}
LISTS = {
    "list_empty_json": json.dumps({"schema": "tidemark.lifetimes", "version": 1, "tensors": []}),
    "list_single": lifetimes("a,0,1,64,,,"),
    "list_one_byte": lifetimes("a,0,3,1,,,", "b,2,4,1,,,"),
    "list_zero_bytes": lifetimes("a,0,3,0,,,", "b,2,4,0,,,"),
    "list_one_of_zero": lifetimes("a,0,3,0,,,", "b,2,4,8,,,"),
    "list_persistent": lifetimes("a,0,2,64,Persistent,weight,1", "b,0,2,64,Persistent,weight,1"),
    "list_outputs": lifetimes("a,0,2,64,Default,output,1", "b,1,2,64,Default,output,1"),
    "list_one_step": lifetimes(*(f"t{i},7,8,{i},,," for i in range(1, 6))),
    "list_far": lifetimes("a,4000000000000,4000000000001,64,,,"),
    "list_other_kind": lifetimes("a,0,1,64,KVCache,,"),
}


# ---- the commands ----

def commands(path, out, group, some):
    """[(words, standard input)] of all that looks at one file; what is written lies below `out`. `some` chooses among
    words that differ in a format alone: each file takes its share of them."""
    size = ["--once", "--no-state", "--size", "100x30"]
    table = [["plan", path], ["plan", path, "--json"], ["plan", path, "--all"], ["run", path, "-n", 1],
             ["compare", path, "-n", 1, "--json"], ["export", path, "--to", "csv"], ["tui", path, *size],
             ["diff", path, path], ["check", path, "--no-baseline", "--no-summary"],
             ["check", path, "--baseline", path, "--json", "--no-summary"], ["sweep", path, "--align", "64,256"],
             ["trace", path], ["report", path, "-o", out / "r.html"], ["report", path, "-o", out / "r.json"]]
    if group == "refused":
        return [(words, None) for words in table]
    table += [["report", path, "-o", out / f"r.{ending}"] for ending in ("csv", "md", "svg", "txt")]
    table += [["report", path, path, "-o", out / f"d.{ending}"] for ending in some(FORMATS, 2)]
    table += [["report", path, "-o", out / "s.html", "--split-script", "--capacity", "1KiB", "--whole"]]
    table += [["tui", path, *size, "--view", view] for view in VIEWS[1:]]
    table += [["tui", path, "--no-state", "--pane", pane, form]
              for pane, form in some([(pane, form) for form in ("--json", "--csv") for pane in PANES], 2)]
    table += some([["tui", path, "--once", "--size", "40x10", "--ascii"], ["tui", path, "--once", "--run", "all"]], 2)
    table += some([["diff", path, path, "--json"], ["diff", path, path, "-o", out / "d.md"],
                   ["diff", path, "--at", "begin", "--and", "end", "--json"], ["diff", path, "--at", "peak", "--and", "peak"]], 2)
    table += [["check", path, "--baseline", path, "-v", "--no-summary", "--sarif", out / "c.sarif", "--junit", out / "c.xml",
               "--markdown", out / "c.md", "--write-json", out / "c.json"]]
    if group == "trace":
        table += [["trace", path, *more] for more in (
            ["--json"], ["--check"], ["--check", "--json"], ["--compare", path], ["--compare", path, "--json"], ["--run", 1],
            ["--sql", "SELECT count(*) FROM event"], ["--at", "begin", "--and", "end"], ["--at", "#1"], ["--at", "warm"])]
        table += [["export", path, "--to", form, *more] for form in ("chrome-trace", "pytorch") for more in ([], ["--whole"])]
        table += [["trace", path, "--at", when, *some([[], ["--json"]], 2)[0]] for when in ("begin", "50%", "peak", "end", "0s")]
        table += some([["trace", path, "--at", "peak", "--by", key] for key in
                       ("kind", "device", "scope", "name", "allocator", "size", "age", "thread", "run")], 3)
    else:
        table += [["export", path, "--to", form] for form in ("json", "minimalloc", "c-header", "tflm", "chrome-trace")]
        table += some([["plan", path, "--all", "--json"], ["plan", path, "-v"], ["plan", path, "-o", out / "plan.json"],
                       ["plan", path, "--budget", "1GiB"], ["plan", path, "--capacity", "1GiB", "--json"],
                       ["plan", path, "--budget", "1B"], ["plan", path, "--capacity", "1B"],
                       ["plan", path, "--no-passes", "--align", "1"], ["plan", path, "--allow-recompute", "10"],
                       ["export", path, "--to", "csv", "--with-offsets"], ["sweep", path, "--align", "64", "--json"],
                       *(["plan", path, "--dump-stage", stage] for stage in ("liveness", "graph", "colour", "plan"))], 3)
        table += some([["sweep", path, "--align", "64,256", "-o", out / f"sw.{ending}"] for ending in FORMATS], 3)
    if group == "graph":
        table += [["run", path, "-n", 1, "--json", "--leak-check"], ["run", path, "-n", 2, "-o", out / "run.db"]]
        table += some([["run", path, "-n", 1, "--naive"], ["compare", path, "-n", 1],
                       ["run", path, "-n", 1, "--fill", "poison", "--allocator", "cpu_caching"]], 3)
    return [(words, None) for words in table] + [
        (["tui", path, "--no-state", "--linear"], LINES),
        (["tui", path, "--no-state", "--size", "100x30", "--script", path.parent / "keys.script"], None)]


def expected(group, words):
    """The exit codes that may be."""
    command, small = words[0], "1B" in words
    if group == "refused":
        return {"check": {1, 4}, "sweep": {1, 3}}.get(command, {3})
    if command == "trace" and group != "trace" or command in ("run", "compare") and group != "graph":
        return {3}
    if group == "trace" and {"chrome-trace", "pytorch"} & set(words):
        return {0}
    if group == "trace" and command in ("plan", "export", "sweep"):
        return {0, 3} if command == "export" else {3}  # one without runs is a list of its blocks
    if "--pane" in words and words[words.index("--pane") + 1] in ("map", "whatif"):
        return {0, 3}  # there may be nothing to show
    if command == "check" and group == "trace":
        return {0, 1, 4}
    if small:
        return {0, 1, 6}
    if command == "trace":
        rare = {"--check": {0, 1}, "--run": {3}, "#1": {0, 3}, "warm": {2, 3}}
        return next((codes for word, codes in rare.items() if word in words), {0})
    return {0}


# ---- what is wrong with an answer ----

class Page(html.parser.HTMLParser):
    """Every element is closed in the order in which it was opened, and each id is there once."""
    VOID = {"meta", "link", "input", "br", "hr", "img", "col", "wbr"}

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.faults, self.data = [], set(), [], ""
        self.feed(text)
        self.close()
        self.faults += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag, attrs):
        for name, value in attrs:
            if name == "id" and value in self.ids:
                self.faults.append(f"id {value} is there twice")
            if name == "id":
                self.ids.add(value)
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> closes something else")

    def handle_data(self, data):
        if self.open and self.open[-1] == "script" and data.lstrip().startswith("{"):
            strict(data)  # the page's own data


def strict(text):
    def refuse(word):
        raise ValueError(f"{word} is no JSON")
    return json.loads(text, parse_constant=refuse)


def fault_of_text(text, ending):
    """What is wrong with a document of that sort; None: nothing."""
    try:
        if ending in ("json", "sarif"):
            strict(text)
        elif ending == "html":
            faults = Page(text).faults
            if faults:
                return faults[0]
        elif ending in ("svg", "xml"):
            xml.etree.ElementTree.fromstring(text)
        elif ending == "csv":
            rows = list(csv.reader(io.StringIO(text)))
            if not rows or len({len(row) for row in rows}) != 1:
                return "lines of a CSV that differ in length, or none"
    except (ValueError, xml.etree.ElementTree.ParseError) as e:
        return f"no {ending}: {e}"
    if ending in ("html", "js", "css"):
        text = re.sub(r"(?s)<script>.*?</script>", "", text) if ending == "html" else ""
    found = re.search(r"(?i)(?<![\w./-])[-+]?(nan|inf(inity)?)(?![\w/-])", text)
    return f"'{found[0]}' where a number belongs: …{text[max(0, found.start() - 60):found.end() + 20]!r}" if found else None


def form_of(words):
    """What is printed on standard output."""
    if "--json" in words:
        return "json"
    if words[0] == "export":
        return {"json": "json", "chrome-trace": "json", "c-header": "h", "tflm": "bin", "pytorch": "bin"}.get(words[words.index("--to") + 1], "csv")
    return "csv" if "--csv" in words else "txt"


def faults(p, words, out, expected):
    """All that is wrong with a process that ended."""
    found = []
    if p.returncode not in expected:
        found.append(f"exit code {p.returncode}, not {' or '.join(map(str, sorted(expected)))}")
    if "Sanitizer" in p.stderr or "runtime error:" in p.stderr:
        found.append("a sanitizer speaks")
    if p.returncode not in (0, 1, 6, 7):
        if not re.search(r"(?m)^error: \S", p.stderr):
            found.append("it fails without a word")
    elif p.stdout.strip() == "" and not any(w in words for w in ("-o", "--to", "--sql")):
        found.append("it says nothing")
    if p.returncode in (0, 1, 6, 7):
        said = fault_of_text(p.stdout, form_of(words))
        if said and not (p.returncode != 0 and p.stdout == ""):
            found.append(said)
    for file in sorted(out.iterdir()):
        if file.suffix not in (".db",) and p.returncode == 0:
            said = fault_of_text(file.read_text(), file.suffix[1:])
            if said:
                found.append(f"{file.name}: {said}")
        if file.stat().st_size == 0:
            found.append(f"{file.name} is empty")
    return found


class Degenerate(tidemark.Case):
    def setUp(self):
        super().setUp()
        # "all"; 3: a third of the commands of each file, which differ from file to file
        wanted = os.environ.get("TIDE_DEGENERATE", "all" if os.environ.get("TIDE_SOAK") else "3")
        self.whole, self.share = wanted == "all", int(wanted) if wanted.isdigit() else 1
        (self.dir / "keys.script").write_text(SCRIPT)
        self.files = []
        for group, table in (("graph", GRAPHS), ("refused", REFUSED), ("list", LISTS)):
            for name, content in table.items():
                (self.dir / name).write_bytes(content if isinstance(content, bytes) else content.encode())
                self.files.append((group, self.dir / name))
        for name in TRACES:
            subprocess.run([TRACER, self.dir / name, name], check=True)
            self.files.append(("trace", self.dir / name))
        for name in ("one_node", "list_empty_json", "list_persistent", "zero_bytes"):
            self.ok("plan", self.dir / name, "-o", self.dir / f"plan_{name}")
            self.files.append(("plan", self.dir / f"plan_{name}"))

    def jobs(self):
        for k, (group, path) in enumerate(self.files):
            some = lambda items, n, k=k: list(items) if self.whole else list(items)[k % n::n]
            out = self.dir / f"out_{path.name}"
            for n, (words, stdin) in list(enumerate(commands(path, out, group, some)))[k % self.share::self.share]:
                yield group, [str(w).replace(str(out), f"{out}{n}") for w in words], stdin, pathlib.Path(f"{out}{n}")
        paths = [path for group, path in self.files if group != "refused"]
        for a, b in zip(paths, paths[1:] + paths[:1]):
            for k, words in enumerate((["diff", a, b, "--json"], ["report", a, b, "-o", "d.html"], ["tui", a, b, "--once"])):
                yield "pair", list(map(str, words)), None, self.dir / f"pair_{a.name}{k}"

    def one(self, job):
        group, words, stdin, out = job
        out.mkdir()
        p = run(*words, stdin=stdin, cwd=out)
        found = faults(p, words, out, {0} if group == "pair" else expected(group, words))
        shutil.rmtree(out)
        short = " ".join(word.replace(f"{self.dir}/", "") for word in words)
        return [f"{short}: {fault}\n    {p.stderr[:300].strip()}" for fault in found]

    def test_every_file_through_every_command(self):
        with concurrent.futures.ThreadPoolExecutor(max(2, min(os.cpu_count() or 2, 8))) as pool:
            jobs = list(self.jobs())
            found = [line for lines in pool.map(self.one, jobs) for line in lines]
        print(f"{len(self.files)} files, {len(jobs)} commands" + ("" if self.whole else " (TIDE_DEGENERATE=all: every one)"))
        self.assertGreater(len(jobs), 1000 // self.share)
        self.assertEqual(found, [], "\n".join([f"{len(found)} faults", *found[:40]]))

    def test_that_the_checks_can_fail(self):
        """What is looked for is found when it is there."""
        for ending, text in (("json", '{"a": NaN}'), ("json", "{"), ("html", "<p><b></p></b>"), ("html", '<p id="a"></p><p id="a">'),
                             ("svg", "<svg><g></svg>"), ("csv", "a,b\n1\n"), ("csv", ""), ("txt", "peak -nan MiB"), ("md", "| inf |"),
                             ("html", '<script type="application/json">{"a": Infinity}</script>')):
            self.assertIsNotNone(fault_of_text(text, ending), text)
        for ending, text in (("json", "{}"), ("html", "<p><br>info, nano</p>"), ("csv", "a,b\n1,2\n"), ("txt", "infer nan-o")):
            self.assertIsNone(fault_of_text(text, ending), text)


if __name__ == "__main__":
    tidemark.main()
