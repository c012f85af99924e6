#!/bin/sh
# Each floor knows only those below it: no file includes a header of a higher floor, and the two views of one floor do
# not know each other. Usage: includes.sh SOURCE_DIR
set -eu
cd "$1"
rank() {
    case "$1" in
    core/base/*) echo 0 ;; core/device/*) echo 1 ;; core/memory/*) echo 2 ;; core/tensor/*) echo 3 ;;
    core/graph/*) echo 4 ;; core/ops/*) echo 5 ;; core/runtime/*) echo 6 ;; planner/*) echo 7 ;;
    profiler/*) echo 8 ;; tui/* | reports/*) echo 9 ;; cli/*) echo 10 ;; *) echo 99 ;;
    esac
}
files=$(find core planner profiler tui reports cli -name '*.[ch]' | sort)
bad=0 checked=0
for file in $files; do
    mine=$(rank "$file")
    for header in $(sed -n 's/^#include "\([a-z]*\/[^"]*\)".*/\1/p' "$file"); do
        theirs=$(rank "$header")
        checked=$((checked + 1))
        if [ "$theirs" -gt "$mine" ]; then
            echo "$file includes $header, which is a higher floor"
            bad=1
        fi
        case "$file:$header" in
        tui/*:reports/* | reports/*:tui/*)
            echo "$file includes $header: the two views do not know each other"
            bad=1
            ;;
        esac
    done
    # SQL is written below the query API only; bare malloc would hide from host_alloc.
    case "$file" in
    profiler/*) ;;
    *) if grep -nE '#include <sqlite3\.h>' "$file"; then echo "$file: SQLite is profiler/'s alone" && bad=1; fi ;;
    esac
    if grep -nE '\b(sprintf|strcpy|strcat|gets|atoi|strtok)\(' "$file"; then
        echo "$file calls a banned function"
        bad=1
    fi
done
echo "$checked includes checked"
[ "$checked" -gt 100 ] || { echo "too few: is this the source folder?"; exit 1; }
exit $bad
