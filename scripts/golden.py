#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What the program prints, all of it: recorded before a change and after, and held against each other.

    golden.py inputs IN --program build/test/cli/tidemark     traces and plans to look at: made once, for both records
    golden.py record OUT --program PROGRAM --inputs IN        the output of every command, a file each
    golden.py compare A B                                     first differing line of every output that differs; exit 1

Every command runs in a folder of its own that looks the same each time, so that no path varies. Traces are recorded once
and looked at by both programs. What varies still is masked as the tables below say."""
import argparse
import concurrent.futures
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SOURCE = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = sorted(p.stem for p in (SOURCE / "sample_graphs").glob("*.json"))
SIZES = ["80x24", "130x45"]
PANES = ["curve", "gantt", "map", "table", "operators", "pools", "explain", "compare", "whatif", "stacks", "details"]
STRATEGIES = ["naive", "greedy_color", "greedy_color_best", "greedy_color_given", "linear_scan", "greedy_by_breadth",
              "greedy_by_size", "greedy_by_size_best", "greedy_by_conflicts", "boxed", "sim:caching", "sim:bfc",
              "sim:arena", "search"]
PINNED = ["--node-limit", "2000", "--plan-threads", "1"]  # a search that is the same on every machine
EMPTY = "made"  # the folder for a command that writes into one
TRACES = ["lenet", "both", "scenario", "leak", "nothing", "one_event"]

# ---- what is masked: of which commands, what it is, and where it stands ----

MEASURED = [  # a command that runs a model or makes a trace: times, and what tidemark itself took
    ("times in ns", r'("(?:median|min|max|t_ns|since_begin_ns|age_ns|begin_ns|end_ns|blocked_ns|time_ns|plan_time_ns)": )\d+'),
    ("times for people", r"()(?<![\w.])\d+(?:\.\d+)? (?:ns|us|ms|s|min)\b"),
    ("tokens in a second", r"()(?<![\w.])\d+(?:\.\d+)? tokens/s"),
    ("tokens in a second", r'("tokens_per_s": )[\d.]+'),
    ("rates", r"()\d+(?:\.\d+)? (?:/s|per second)"),
    ("tidemark's own memory", r'("own_memory": \{\s*"peak_bytes": \d*)\d+(?=,)'),
    ("tidemark's own memory", r'("own_memory": \{\s*"peak_bytes": )\d+,\s*"allocations": \d+'),
]
PLANNED = [  # any command: how long planning took
    ("time of planning", r'("(?:plan_time_ns|time_ns)": )\d+'),
    ("times among figures of a check", r'("metric": "\w*time_ns",\s*"kind": null,\s*"unit": "ns",\s*"baseline": )(?:\d+|null)(?=,)'),
    ("times among figures of a check", r'("metric": "\w*time_ns",\s*"kind": null,\s*"unit": "ns",\s*"baseline": ~,\s*"current": )\d+'),
    ("times among figures of a check", r"(\w*time_ns\b.*?)\d+(?:\.\d+)? (?:ns|us|ms|s)\b.*"),
    ("their change", r'("metric": "\w*time_ns",\s*"kind": null,\s*"unit": "ns",\s*"baseline": ~,\s*"current": ~,\s*"change": )-?\d+'),
]
MASKED_COLUMNS = ["plan_time_ns", "time_ns"]  # of CSV


def masked_columns(text):
    """Lines of CSV below a head that names such columns."""
    at, lines = [], text.split("\n")
    for i, line in enumerate(lines):
        cells = line.rstrip("\r").split(",")
        if any(name in cells for name in MASKED_COLUMNS):
            at, width = [cells.index(name) for name in MASKED_COLUMNS if name in cells], len(cells)
        elif at and len(cells) == width:
            for k in at:
                cells[k] = "~" if cells[k] else ""
            lines[i] = ",".join(cells)
        else:
            at = []
    return "\n".join(lines)


def masked(text, measured):
    for _, pattern in (MEASURED if measured else []) + PLANNED:
        text = re.sub(pattern, r"\g<1>~", text)
    if measured:  # columns are as wide as what stands in them
        text = re.sub(r" +~", " ~", text)
        text = re.sub(r"~ +", "~ ", text)
    return masked_columns(text)


# ---- the commands ----

class Command:
    """One command: its name as a file, its words, what it reads, files that it writes (patterns of their names)."""

    def __init__(self, name, *words, stdin=None, files=(), measured=False, program=None):
        self.name, self.words, self.stdin, self.files = name, [str(w) for w in words], stdin, files
        self.measured, self.program = measured, program


def sample(name):
    return f"sample_graphs/{name}.json"


def model(name):
    return [sample(name), *(["--extent", "batch=2"] if name == "dynamic_batch" else [])]


def search(name):
    return [*PINNED, *model(name)]


def plans():
    for m in SAMPLES:
        for option in ["", "--json", "--all", "--full", "-v", "--no-passes", "--budget=1KiB", "--budget=8GiB"]:
            yield Command(f"plan/{m}{option}", "plan", *([option.split("=")[0]] if option else []),
                          *option.split("=")[1:], *search(m), measured=option == "--all")
        yield Command(f"plan/{m}--all--json", "plan", "--all", "--json", *search(m), measured=True)
        for stage in ["liveness", "graph", "colour", "plan"]:
            yield Command(f"plan/{m}-{stage}", "plan", "--dump-stage", stage, *search(m))
        for strategy in STRATEGIES:
            yield Command(f"plan/{m}-{strategy}", "plan", "--strategy", strategy, "--full", *search(m))
    yield Command("plan/profile", "plan", "--profile", "x=1x64:4x64:8x64", *PINNED, sample("dynamic_batch"))
    yield Command("plan/profile--json", "plan", "--json", "--profile", "x=1x64,4x64,8x64", *PINNED,
                  sample("dynamic_batch"))


def runs():
    for m in SAMPLES:
        for option in [[], ["--json"]]:
            yield Command(f"run/{m}{''.join(option)}", "run", "-n", "2", *option, *search(m), measured=True)
            yield Command(f"compare/{m}{''.join(option)}", "compare", "-n", "1", *option, *search(m), measured=True)
    for option in [[], ["--json"]]:
        last = "".join(option)
        yield Command(f"run/naive{last}", "run", "--naive", *option, *search("lenet5"), measured=True)
        yield Command(f"run/limit{last}", "run", "--limit", "10KiB", *option, *search("lenet5"), measured=True)
        yield Command(f"run/decode{last}", "run", "--decode", "4", *option, *search("decoder_kv"), measured=True)


def subjects():
    """Name, words, whether the name stands for two files."""
    for m in SAMPLES:
        yield m, [f"plans/{m}.json"], False
        yield f"{m}-pair", [f"plans/{m}.naive.json", f"plans/{m}.json"], True
    for t in TRACES:
        yield f"trace-{t}", [f"traces/{t}.db"], False
    yield "trace-pair", ["traces/scenario.db", "traces/leak.db"], True
    yield "trace-and-plan", ["traces/lenet.db", "plans/lenet5.json"], True
    yield "model", search("dynamic_batch"), False


def reports():
    tables = ["kinds", "peak_parts", "peak_by_operator", "peak_items", "without", "operators", "pools", "leaks", "items"]
    for name, words, is_pair in subjects():
        for end in ["html", "json", "md", "svg", "txt", "csv"]:
            yield Command(f"report/{name}.{end}", "report", *words, "-o", f"out.{end}", files=[f"out.{end}"])
        more = ["change_by_operator", "change_by_kind", "change_by_item", "b.kinds", "b.items"] if is_pair else []
        for table in tables + more:
            yield Command(f"report/{name}.{table}.csv", "report", *words, "--table", table, "-o", "out.csv",
                          files=["out.csv"])
        yield Command(f"report/{name}-all-rows.txt", "report", *words, "--rows", "1000", "-o", "out.txt", files=["out.txt"])


def frames():
    for name, words, is_pair in subjects():
        tui = ["tui", "--no-state", *words]
        for size in SIZES:
            for view in "12345":
                yield Command(f"tui/{name}-{view}-{size}", *tui, "--once", "--view", view, "--size", size)
            keys = "".join(f"key {k}\ndump\n" for k in ["?", "Esc", "Enter", "o", "Tab", "Down", "n"])
            yield Command(f"tui/{name}-script-{size}", *tui, "--script", "keys", "--size", size, stdin=keys)
        for pane in PANES:
            for form in ["--json", "--csv"]:
                yield Command(f"tui/{name}-{pane}{form}", *tui, "--pane", pane, form)
        said = "\n".join(["?", *[w for v in "12345" for w in (v, "list")], "quit"])
        yield Command(f"tui/{name}-linear", *tui, "--linear", stdin=said + "\n")
    for form in ["--keys", "--keys=troff"]:
        yield Command(f"tui/{form}", "tui", form)


def traces():
    for t in TRACES:
        path = f"traces/{t}.db"
        for option in [[], ["--json"]]:
            last = "".join(option)
            yield Command(f"trace/{t}{last}", "trace", path, *option)
            yield Command(f"trace/{t}-whole{last}", "trace", path, "--whole", *option)
            yield Command(f"trace/{t}-check{last}", "trace", path, "--check", *option)
            yield Command(f"trace/{t}-changes{last}", "trace", path, "--at", "10%", "--and", "90%", *option)
            yield Command(f"trace/{t}-compare{last}", "trace", path, "--compare", "traces/leak.db", *option)
            yield Command(f"trace/{t}-sql{last}", "trace", path, "--sql", "SELECT * FROM runs", *option)
            for at in ["begin", "peak", "50%", "end", "#17"]:
                yield Command(f"trace/{t}-{at}{last}", "trace", path, "--at", at, *option)
            for by in ["kind", "device", "scope", "name", "allocator", "size", "age", "thread", "run"]:
                yield Command(f"trace/{t}-by-{by}{last}", "trace", path, "--at", "peak", "--by", by, *option)
                yield Command(f"trace/{t}-changes-by-{by}{last}", "trace", path, "--at", "10%", "--and", "90%", "--by", by,
                              *option)


def diffs():
    pairs = [(n, w) for n, w, is_pair in subjects() if is_pair]
    pairs += [("two-models", [*search("resnet18"), sample("resnet50")]),
              ("moments", ["traces/scenario.db", "--at", "10%", "--and", "90%"]),
              ("steps", ["plans/unet.json", "--at", "3", "--and", "9"]), ("live", ["traces/scenario.db", "traces/leak.db",
                                                                                   "--live"]),
              ("same", ["plans/unet.json", "plans/unet.json"])]
    for name, words in pairs:
        for option in [[], ["--json"], ["--rows", "0"]]:
            yield Command(f"diff/{name}{''.join(option)}", "diff", *words, *option)
        for end in ["txt", "md", "json"]:
            yield Command(f"diff/{name}.{end}", "diff", *words, "-o", f"out.{end}", files=[f"out.{end}"])


def checks():
    written = [w for end in ["json", "markdown", "junit", "sarif"]
               for w in ["--write-json" if end == "json" else f"--{end}", f"out.{end}"]]
    files = ["out.json", "out.markdown", "out.junit", "out.sarif"]
    for m in SAMPLES:
        yield Command(f"check/{m}", "check", "-v", *model(m), "--baseline", f"plans/{m}.naive.json", "--annotations",
                      *written, files=files)
        yield Command(f"check/{m}-alone", "check", *model(m), "--no-baseline", *written, files=files)
    yield Command("check/models", "check", sample("resnet50"), "--baseline", sample("resnet18"), *written, files=files)
    yield Command("check/trace", "check", "traces/leak.db", "--baseline", "traces/scenario.db", *written, files=files)
    yield Command("check/project", "check", "-v", "--config", "tidemark.toml", *written, files=files, measured=True)
    for end in ["txt", "md", "xml", "commands", "json", "sarif"]:
        yield Command(f"check/by-hand-{end}", EMPTY, program="tests/cli/gate_samples", files=[f"{EMPTY}/*.{end}"])


def others():
    for option in ["csv", "json", "minimalloc"]:
        for m in SAMPLES:
            for offsets in [[], ["--with-offsets"]]:
                yield Command(f"export/{m}.{option}{''.join(offsets)}", "export", "--to", option, *offsets, *search(m))
    for end in ["html", "svg", "csv", "json", "md", "txt"]:
        swept = ["sweep", "--extent", "batch=1..8", "--strategy", "greedy_by_size,search", "--fits", "4MiB", "--fits",
                 "1KiB", "--jobs", "1", sample("dynamic_batch")]
        yield Command(f"sweep/dynamic.{end}", *swept, "-o", f"out.{end}", files=[f"out.{end}"])
        yield Command(f"sweep/all.{end}", "sweep", "--align", "64,256", "--strategy", "greedy_by_size,boxed,naive", "--jobs",
                      "1", *[sample(m) for m in SAMPLES if m != "dynamic_batch"], "-o", f"out.{end}", files=[f"out.{end}"])
    yield Command("sweep/dynamic--json", *swept, "--json")
    for word in ["plan", "run", "compare", "record", "trace", "tui", "report", "diff", "check", "sweep", "export",
                 "allocators", "devices", "collect"]:
        yield Command(f"help/{word}", word, "--help")
        yield Command(f"help/{word}-wrong", word, "--no-such-option")
        yield Command(f"help/{word}-absent", word, "no-such-file")
    for words in [["--help"], ["--version"], ["allocators"], ["allocators", "--json"], ["devices"], ["devices", "--json"]]:
        yield Command(f"help/of-{''.join(words)}", *words)


def commands():
    for group in [plans, runs, reports, frames, traces, diffs, checks, others]:
        yield from group()


# ---- running them ----

def environment():
    kept = {name: os.environ[name] for name in ["PATH", "LD_LIBRARY_PATH", "ASAN_OPTIONS"] if name in os.environ}
    return {**kept, "LC_ALL": "C.UTF-8", "USER": "tester", "HOME": "/nonexistent", "TERM": "xterm-256color",
            "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "OMP_NUM_THREADS": "1"}


def work_folder(inputs):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-golden-"))
    for name in ["sample_graphs", "tidemark.toml", "tidemark-baseline.json"]:
        (folder / name).symlink_to(SOURCE / name)
    for name in ["plans", "traces"]:
        (folder / name).symlink_to((inputs / name).resolve())
    (folder / EMPTY).mkdir()
    return folder


def output_of(command, program, inputs):
    folder = work_folder(inputs)
    words, stdin = command.words, command.stdin
    if "--script" in words:
        (folder / "keys").write_text(stdin)
        stdin = None
    try:
        at = program.parent.parent / command.program if command.program else program
        p = subprocess.run([at, *words], input=(stdin or "").encode(), capture_output=True, env=environment(),
                           cwd=folder, timeout=600)
        parts = [f"$ {' '.join(words)}\nexit {p.returncode}\n--- stdout\n", p.stdout.decode("utf-8", "backslashreplace"),
                 "\n--- stderr\n", p.stderr.decode("utf-8", "backslashreplace")]
        for name in command.files:
            paths = sorted(folder.glob(name))
            for path in paths:
                parts += [f"\n--- {path.relative_to(folder)}\n", path.read_text("utf-8", "backslashreplace")]
            if not paths:
                parts += [f"\n--- {name}\n", "(none)"]
        return masked("".join(parts).replace(str(folder), "FOLDER").replace(str(at), "PROGRAM"), command.measured)
    finally:
        shutil.rmtree(folder)


def file_of(command):
    return re.sub(r"[^\w./#%-]", "_", command.name)


def record(args):
    program, out = pathlib.Path(args.program).resolve(), pathlib.Path(args.folder)
    inputs = pathlib.Path(args.inputs)
    chosen = [c for c in commands() if re.search(args.only, c.name)]
    out.mkdir(parents=True, exist_ok=True)
    assert len({file_of(c) for c in commands()}) == len(list(commands())), "two commands with one name"

    def one(command):
        path = out / file_of(command)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(output_of(command, program, inputs))

    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(one, chosen))
    print(f"{len(chosen)} outputs in {out}")
    return 0


def make_inputs(args):
    program, out = pathlib.Path(args.program).resolve(), pathlib.Path(args.folder)
    helpers = program.parent.parent / "tests/cli"
    (out / "plans").mkdir(parents=True, exist_ok=True)
    (out / "traces").mkdir(exist_ok=True)

    def call(at, *words):
        subprocess.run([at, *map(str, words)], check=True, env=environment(), cwd=SOURCE, stdout=subprocess.DEVNULL)

    traces = (out / "traces").resolve()
    for m in SAMPLES:
        call(program, "plan", *search(m), "-o", (out / f"plans/{m}.json").resolve())
        call(program, "plan", "--strategy", "naive", *model(m), "-o", (out / f"plans/{m}.naive.json").resolve())
    call(program, "run", "-n", "3", *search("lenet5"), "-o", traces / "lenet.db")
    call(program, "compare", "-n", "1", *search("inception_block"), "-o", traces / "both.db")
    call(helpers / "scenario_trace", traces / "scenario.db")
    call(helpers / "gate_trace", traces / "leak.db", "leak", "steady")
    for few in ["nothing", "one_event"]:
        call(helpers / "scenario_trace", traces / f"{few}.db", few)
    return 0


# ---- comparing ----

def outputs_in(folder):
    return {str(p.relative_to(folder)): p.read_text() for p in pathlib.Path(folder).rglob("*") if p.is_file()}


def first_difference(a, b):
    left, right = a.split("\n"), b.split("\n")
    for i, (x, y) in enumerate(zip(left, right), 1):
        if x != y:
            at = next((j for j, (c, d) in enumerate(zip(x, y)) if c != d), min(len(x), len(y)))
            cut = slice(max(0, at - 60), at + 100)
            return f"line {i}:\n  - {x[cut]}\n  + {y[cut]}"
    return f"{len(left)} lines and {len(right)}"


def compare(args):
    a, b = outputs_in(args.folder), outputs_in(args.other)
    n = 0
    for name in sorted({*a, *b}):
        if a.get(name) == b.get(name):
            continue
        n += 1
        print(name, first_difference(a[name], b[name]) if name in a and name in b else "is in one of them alone")
    print(f"{n} of {len({*a, *b})} outputs differ")
    return 1 if n > 0 or not a else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("action", choices=["inputs", "record", "compare"])
    parser.add_argument("folder")
    parser.add_argument("other", nargs="?")
    parser.add_argument("--program", default="build/test/cli/tidemark")
    parser.add_argument("--inputs")
    parser.add_argument("--only", default="", help="commands whose name this expression finds")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if (args.action == "compare") != (args.other is not None) or (args.action == "record") != (args.inputs is not None):
        parser.error("inputs DIR | record DIR --inputs DIR | compare A B")
    return {"inputs": make_inputs, "record": record, "compare": compare}[args.action](args)


if __name__ == "__main__":
    sys.exit(main())
