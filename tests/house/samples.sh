#!/bin/sh
# sample_graphs/ holds what scripts/make_samples.py writes, no more and no less. Usage: samples.sh SOURCE_DIR
set -eu
fresh=$(mktemp -d)
trap 'rm -rf "$fresh"' EXIT
python3 "$1/scripts/make_samples.py" "$fresh"
status=0
for file in "$fresh"/*.json; do
    cmp "$file" "$1/sample_graphs/$(basename "$file")" || status=1
    grep -q "$(basename "$file")" "$1/sample_graphs/README.md" || { echo "README.md does not list $file"; status=1; }
done
[ "$(ls "$fresh"/*.json | wc -l)" -eq "$(ls "$1"/sample_graphs/*.json | wc -l)" ] || { echo "other files are there"; status=1; }
exit $status
