#!/bin/sh
# The main job, on a graph of sample_graphs/. Usage: scripts/demo.sh PATH_TO_TIDEMARK [GRAPH]
set -eu
tidemark=$1
graph=${2:-sample_graphs/squeezenet1_1.json}
out=demo-out
name=$(basename "$graph" .json)
mkdir -p "$out"

echo
echo "== tidemark plan --all: every strategy on $graph"
"$tidemark" plan --all "$graph"
echo
echo "== tidemark compare: naive and planned, both run under instrumented allocators"
"$tidemark" compare "$graph" -o "$out/$name.db"
"$tidemark" report "$out/$name.db" -o "$out/$name.html"
"$tidemark" report "$out/$name.db" -o "$out/$name.csv"
echo
echo "trace   $out/$name.db"
echo "report  $out/$name.html"
echo "table   $out/$name.csv"
echo "look    $tidemark tui $out/$name.db"
