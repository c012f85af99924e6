#!/bin/sh
# What is needed and is not here, on a system without Debian's packages: programs are looked for in PATH, libraries by
# pkg-config, the rest by the C compiler ($CC, else cc), as CMakeLists.txt looks for them. Usage: probes.sh build|test|bench|valgrind|fuzz.
# Prints a line for each that is missing and returns 1 if there is one; what only some tests want is told on stderr.
set -eu
what=${1:-build}
cc=${CC:-cc}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
missing=0

# is_missing PACKAGE WORDS: Debian's name of it, and what was looked for.
is_missing() {
    printf '    %-24s %s\n' "$1" "$2"
    missing=1
}
program() { # PACKAGE NAME…: one of the names
    package=$1
    shift
    for name in "$@"; do
        if command -v "$name" >/dev/null 2>&1; then return 0; fi
    done
    is_missing "$package" "no program $* in PATH"
}
library() { # PACKAGE MODULE [VERSION]
    if ! command -v pkg-config >/dev/null 2>&1; then return 0; fi # is told by itself
    if [ $# -gt 2 ]; then set -- "$1" "$2 >= $3"; fi
    pkg-config --exists "$2" 2>/dev/null || is_missing "$1" "pkg-config does not know $2"
}
# Folders that CMake looks into: $CMAKE_PREFIX_PATH and the system's.
prefixes=$(printf '%s:/usr/local:/usr' "${CMAKE_PREFIX_PATH:-}" | tr ':' ' ')
file() { # PACKAGE NAME: below the include folder of a prefix
    for prefix in $prefixes; do
        if [ -e "$prefix/include/$2" ]; then return 0; fi
    done
    is_missing "$1" "no $2 in an include folder of: $prefixes"
}
linked() { # PACKAGE HEADER LIBRARY: a program of nothing but the two
    printf '#include <%s>\nint main(void) { return 0; }\n' "$2" >"$work/probe.c"
    flags=""
    for prefix in $prefixes; do flags="$flags -I$prefix/include -L$prefix/lib"; done
    # shellcheck disable=SC2086 # the list is meant to be split
    $cc $flags "$work/probe.c" -l"$3" -o "$work/probe" >/dev/null 2>&1 || is_missing "$1" "$cc finds no <$2> with -l$3"
}
optional() { # PACKAGE PROGRAM
    command -v "$2" >/dev/null 2>&1 || unseen="${unseen:-}${unseen:+ }$1"
}

program gcc "$cc"
program g++ "${CXX:-c++}"
if command -v "$cc" >/dev/null 2>&1; then
    printf '#include <stdio.h>\nint main(void) { return 0; }\n' >"$work/libc.c"
    "$cc" "$work/libc.c" -o "$work/libc" >/dev/null 2>&1 || is_missing libc6-dev "$cc makes no program of <stdio.h>"
fi
program cmake cmake
if command -v cmake >/dev/null 2>&1; then
    version=$(cmake --version | sed -n '1s/[^0-9]*\([0-9]*\)\.\([0-9]*\).*/\1 \2/p')
    if [ "${version% *}" -lt 3 ] || { [ "${version% *}" -eq 3 ] && [ "${version#* }" -lt 25 ]; }; then
        is_missing cmake "$(cmake --version | sed -n 1p) is older than 3.25"
    fi
fi
program ninja-build ninja
program pkg-config pkg-config
program protobuf-c-compiler protoc-c
library libprotobuf-c-dev libprotobuf-c
file libonnx-dev onnx/onnx.proto
if command -v "$cc" >/dev/null 2>&1; then linked libdnnl-dev oneapi/dnnl/dnnl.h dnnl; fi
library libjansson-dev jansson 2.13
library libsqlite3-dev sqlite3 3.37
library libdw-dev libdw 0.180
library libzstd-dev libzstd
library liblz4-dev liblz4
library zlib1g-dev zlib
library libncurses-dev ncursesw
library libtomlplusplus-dev tomlplusplus
case $what in
test | valgrind | fuzz)
    library libcmocka-dev cmocka
    program python3 python3
    optional sqlite3 sqlite3
    optional zstd zstd
    optional lz4 lz4
    optional tmux tmux
    optional chromium chromium
    optional chromium-driver chromedriver
    optional libxml2-utils xmllint
    optional openmpi-bin mpirun
    optional qemu-user qemu-x86_64
    optional man-db man
    optional mandoc mandoc
    optional fish fish
    ;;
bench) optional heaptrack heaptrack ;;
esac
if [ "$what" = valgrind ]; then program valgrind valgrind; fi
if [ "$what" = fuzz ]; then program clang clang; fi
if [ -n "${unseen:-}" ]; then
    echo "tidemark: these are not here, and what wants them is left out: $unseen" >&2
fi
exit "$missing"
