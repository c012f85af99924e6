#!/bin/sh
# Readers of foreign files under libFuzzer (clang), one after the other. Usage: scripts/fuzz.sh RUNS [READER…]
#
# The corpus is the project's own: what the tests of these readers give to the program, good files and bad ones, is kept
# as it is given (tests/fuzz/collect.sh). What libFuzzer finds to reach new code stays in build/fuzz/corpus, so that the
# next run begins there. Ends with a fault's file and code 1, and goes on with other readers first.
set -eu
here=$(cd "$(dirname "$0")/.." && pwd)
runs=$1
shift
[ $# -gt 0 ] || set -- torch torch_sqlite nsight memray heaptrack rmm tflm unpack tflite pte xla somas csv list plan onnx graph
corpus=$here/build/fuzz/corpus
program=$here/build/fuzz/tests/fuzz/fuzz_reader

if [ ! -d "$corpus/seeds" ]; then
    mkdir -p "$corpus/seeds.new"
    for suite in imports memray lists list_texts planning bad_input regions; do
        TIDE_CORPUS=$corpus/seeds.new TIDE_COLLECT_FOR=$here/build/test/cli/tidemark TIDE_SOURCE_DIR=$here \
            TIDEMARK=$here/tests/fuzz/collect.sh python3 "$here/tests/cli/$suite.py" >"$corpus/$suite.log" 2>&1 ||
            echo "note: tests/cli/$suite.py did not pass ($corpus/$suite.log): its files are taken all the same"
    done
    mv "$corpus/seeds.new" "$corpus/seeds"
fi
echo "$(ls "$corpus/seeds" | wc -l) files to begin with"

failed=
for reader; do
    mkdir -p "$corpus/$reader" "$corpus/faults"
    case $reader in
    torch_sqlite | nsight) most=65536 ;; # a database of a few tables
    *) most=8192 ;;
    esac
    if TIDE_FUZZ=$reader "$program" -runs="$runs" -max_len="$most" -timeout=60 -rss_limit_mb=4096 -print_final_stats=1 \
        -artifact_prefix="$corpus/faults/$reader-" "$corpus/$reader" "$corpus/seeds" >"$corpus/$reader.log" 2>&1; then
        echo "$reader: $(sed -n 's/^stat::number_of_executed_units: *//p' "$corpus/$reader.log") files," \
            "$(ls "$corpus/$reader" | wc -l) of them for new code; no fault"
    else
        echo "$reader: a fault, see $corpus/$reader.log and $corpus/faults"
        failed=1
    fi
done
[ -z "$failed" ]
