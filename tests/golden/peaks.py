# SPDX-License-Identifier: MIT
"""Every sample graph under every strategy, held against peaks.csv: bytes, lower bound, proven, exactly.

TIDE_UPDATE_GOLDEN=1 records the file anew. Kernels' scratch is in the plans and depends on the instructions that oneDNN
may use: they are held to SSE4.1, so that every machine with such caches finds the same figures (scratch.py). Search is held to a number of nodes, not
to a clock, for the same reason.
"""
import csv
import io
import json
import os
import pathlib
import subprocess
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import scratch  # noqa: E402

PROGRAM = os.environ.get("TIDEMARK", "build/test/cli/tidemark")
SOURCE = pathlib.Path(os.environ.get("TIDE_SOURCE_DIR", "."))
GOLDEN = SOURCE / "tests/golden/peaks.csv"
COLUMNS = ["graph", "passes", "strategy", "form", "bytes", "naive_bytes", "lower_bound_bytes", "proved_bytes", "proven"]
ENVIRONMENT = {**os.environ, "DNNL_MAX_CPU_ISA": "SSE41", "ONEDNN_MAX_CPU_ISA": "SSE41", "OMP_NUM_THREADS": "1"}
PASSES = {"on": [], "off": ["--no-passes"]}
SHAPES = {"dynamic_batch": ["--shape", "x=8x64"]}
SHAPES = {"dynamic_batch": ["--shape", "x=8x64"]}  # graphs that leave an extent open


def rows_of(graph, passes):
    args = [PROGRAM, "plan", "--all", "--json", "--node-limit", "200000", *PASSES[passes],
            *SHAPES.get(graph.stem, []), str(graph)]
    done = subprocess.run(args, capture_output=True, text=True, env=ENVIRONMENT, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{' '.join(args)}: exit {done.returncode}\n{done.stderr}")
    for plan in json.loads(done.stdout)["plans"]:
        if not plan["verified"]:
            sys.exit(f"{graph.name}: the plan of {plan['strategy']} is not verified")
        yield [graph.stem, passes, plan["strategy"], plan["form"], plan["bytes"], plan["naive_bytes"],
               plan["lower_bound_bytes"], plan["proved_bytes"], "yes" if plan["proven"] else "no"]


def main():
    if scratch.why_other():
        print(scratch.why_other())
        sys.exit(77)
    graphs = sorted((SOURCE / "sample_graphs").glob("*.json"))
    if not graphs:
        sys.exit("no sample graphs")
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for graph in graphs:
        for passes in PASSES:
            out.writerows(rows_of(graph, passes))
    if os.environ.get("TIDE_UPDATE_GOLDEN"):
        GOLDEN.write_text(text.getvalue())
        print(f"recorded {GOLDEN}")
        return
    want, got = GOLDEN.read_text().splitlines(), text.getvalue().splitlines()
    gone, new = sorted(set(want) - set(got)), sorted(set(got) - set(want))
    for line in gone:
        print("-", line)
    for line in new:
        print("+", line)
    if want != got:
        sys.exit(f"{GOLDEN.name}: {len(gone)} lines are no longer so, {len(new)} are new (columns: {','.join(COLUMNS)})")
    print(f"{len(got) - 1} plans of {len(graphs)} graphs are as recorded")


main()
