# SPDX-License-Identifier: MIT
"""What stands under include/tidemark is all that another program may use, and enough to use it.

The headers are those of HEADERS and no other. Each compiles alone, as C17 and as C++17, without a warning; includes only
standard headers and others of them; every function that one declares has a comment of its own, is defined in our libraries
under its C name, and is declared in no other header of ours. Programs of examples/ need nothing else.
Usage: headers.py SOURCE_DIR CC CXX LIBRARY...
"""
import pathlib
import re
import subprocess
import sys
import tempfile

HEADERS = ["memory.h", "plan.h", "record.h", "status.h", "tidemark.h", "trace.h", "version.h"]
FLOORS = ("core", "planner", "profiler", "analysis", "gate", "tui", "reports", "cli", "mpi", "symbols")
STANDARD = {"assert.h", "complex.h", "ctype.h", "errno.h", "fenv.h", "float.h", "inttypes.h", "limits.h", "locale.h", "math.h",
            "setjmp.h", "signal.h", "stdalign.h", "stdarg.h", "stdatomic.h", "stdbool.h", "stddef.h", "stdint.h", "stdio.h",
            "stdlib.h", "stdnoreturn.h", "string.h", "tgmath.h", "threads.h", "time.h", "uchar.h", "wchar.h", "wctype.h"}
# A kind more is a header of the user's own, which the build of both names (docs/extending.md).
USERS_OWN = "TIDE_EXTRA_MEMORY_KINDS_H"
INCLUDE = re.compile(r"^[ \t]*#[ \t]*include[ \t]+(.*?)[ \t]*$", re.M)
COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.S)
CALL = re.compile(r"\b(tide_\w+)[ \t]*\(")
STRICT = ["-Wall", "-Wextra", "-pedantic", "-Werror"]


def bare(text):
    """The text without comments and preprocessor lines, all else at its place."""
    blank = lambda m: re.sub(r"[^\n]", " ", m.group())
    return re.sub(r"^[ \t]*#(?:\\\n|[^\n])*", blank, COMMENT.sub(blank, text), flags=re.M)


def functions(text):
    """Every function that the header declares, and whether the line before the declaration ends a comment about it."""
    code, lines = bare(text), text.split("\n")
    for m in CALL.finditer(code):
        start = max(code.rfind(end, 0, m.start()) for end in ";{}") + 1
        begin = start + re.match(r"\s*", code[start:]).end()
        before = lines[code[:begin].count("\n") - 1].strip()
        yield m.group(1), before.startswith("///") or before.endswith("*/")


def foreign_includes(text, is_cxx=False):
    for what in INCLUDE.findall(text):
        if is_cxx and re.fullmatch(r"<[a-z_]+>", what): # C++'s own have no ending
            continue
        name = re.fullmatch(r'<([^>]*)>|"tidemark/([^"]*)"', what)
        if what != USERS_OWN and not (name and (name.group(1) in STANDARD or name.group(2) in HEADERS)):
            yield what


def compiled(command, text):
    """What the compiler says; empty: nothing."""
    done = subprocess.run([*command, "-"], input=text, capture_output=True, text=True, check=False)
    return done.stderr if done.returncode != 0 else ""


def compile_faults(include, cc, cxx):
    for header in HEADERS:
        for language, command in (("C17", [cc, "-std=c17", "-x", "c"]), ("C++17", [cxx, "-std=c++17", "-x", "c++"])):
            said = compiled([*command, *STRICT, "-fsyntax-only", f"-I{include}"], f'#include "tidemark/{header}"\n')
            if said:
                yield f"{header} does not compile alone as {language}:\n{said}"


def names_in_libraries(libraries):
    out = subprocess.run(["nm", "-g", "--defined-only", *libraries], check=True, capture_output=True, text=True).stdout
    return {fields[2] for fields in map(str.split, out.splitlines()) if len(fields) == 3 and fields[1] == "T"}


def names_for_cxx(include, cxx, names):
    """The symbols that a C++ program asks for when it uses all these functions."""
    with tempfile.TemporaryDirectory() as folder:
        out = f"{folder}/all.o"
        uses = ", ".join(f"reinterpret_cast<void *>({name})" for name in sorted(names))
        said = compiled([cxx, "-std=c++17", "-x", "c++", "-c", f"-I{include}", "-o", out],
                        f'#include "tidemark/tidemark.h"\nvoid *all[] = {{{uses}}};\n')
        if said:
            print(said)
            return set()
        listed = subprocess.run(["nm", "-u", out], check=True, capture_output=True, text=True).stdout
    return {line.split()[-1] for line in listed.splitlines()}


def second_declarations(root, names):
    for floor in FLOORS:
        for path in sorted((root / floor).rglob("*.h")):
            for m in re.finditer(r"^\w[\w *]*?\b(tide_\w+)\(", bare(path.read_text(encoding="utf-8")), re.M):
                if m.group(1) in names:
                    yield f"{path.relative_to(root)} declares {m.group(1)}, which is public"


def example_faults(root, cc, cxx):
    for path in sorted((root / "examples").glob("*.c*")):
        text = path.read_text(encoding="utf-8")
        yield from (f"examples/{path.name} includes {what}" for what in foreign_includes(text, path.suffix == ".cpp"))
        language = ["-std=c++17", "-x", "c++"] if path.suffix == ".cpp" else ["-std=c17", "-x", "c"]
        said = compiled([cxx if path.suffix == ".cpp" else cc, *language, "-fsyntax-only", f"-I{root / 'include'}"], text)
        if said:
            yield f"examples/{path.name} does not compile with the public headers alone:\n{said}"


def header_faults(root, cc, cxx, libraries):
    include = root / "include"
    found = sorted(p.relative_to(include).as_posix() for p in include.rglob("*") if p.is_file())
    if found != [f"tidemark/{name}" for name in HEADERS]:
        yield f"include/ has {found}"
        return
    yield from compile_faults(include, cc, cxx)
    names, defined = set(), names_in_libraries(libraries)
    for header in HEADERS:
        text = (include / "tidemark" / header).read_text(encoding="utf-8")
        yield from (f"{header} includes {what}" for what in foreign_includes(text))
        for name, has_comment in functions(text):
            names.add(name)
            if not has_comment:
                yield f"{header}: {name} has no comment of its own"
            if name not in defined:
                yield f"{header}: {name} is defined in no library"
    yield from (f"C++ finds no {name}" for name in sorted(names - names_for_cxx(include, cxx, names)))
    yield from second_declarations(root, names)
    print(f"{len(HEADERS)} headers, {len(names)} functions")
    # A check that reads nothing must not pass.
    if len(names) < 40:
        yield "too few functions were found"


def main():
    root, cc, cxx, libraries = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3], sys.argv[4:]
    faults = [*header_faults(root, cc, cxx, libraries), *example_faults(root, cc, cxx)]
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
