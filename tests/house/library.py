# SPDX-License-Identifier: MIT
"""The installed libraries: what each part exports is what its headers declare and no more, it needs no library but those
that are named here, and programs of examples/ are built from an installation alone, by pkg-config, by CMake and without
shared libraries, and do what docs/embedding.md shows of them. A program that links the recorder and opens no trace has no
thread, file or library more.
Usage: library.py SOURCE_DIR BUILD_DIR CMAKE CC CXX TIDEMARK"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

import headers

# Part -> headers whose functions are in it, further functions, libraries that it may need.
NAMES = {"tide_device_format", "tide_memory_kind_name"}
PARTS = {"record": (["status.h", "version.h", "memory.h", "record.h"], set(), {"libc", "ld-linux"}),
         "plan": (["status.h", "version.h", "plan.h"], NAMES, {"libc", "libm", "ld-linux"}),
         "trace": (["status.h", "version.h", "trace.h"], NAMES | {"tide_recorder_engine"},
                   {"libc", "libm", "ld-linux", "libtidemark-record", "libsqlite3"})}
RECORD_BYTES = 200_000
# One copy of each in a process: threads and scopes are counted in the recorder's part.
ONCE = ["tide_thread_id", "tide_scope_enter", "tide_scope_current", "tide_block_new_id"]
faults = []


def check(good, what):
    if not good:
        faults.append(what)


def run(*command, env=None, cwd=None):
    return subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, env=env, cwd=cwd)


def said(*command, **more):
    """What a command prints; one that fails is a fault."""
    done = run(*command, **more)
    check(done.returncode == 0, f"{' '.join(map(str, command))} ends with {done.returncode}: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    return done.stdout


def symbols(library, *options):
    return {line.split()[-1].split("@")[0] for line in said("nm", *options, library).splitlines()
            if len(line.split()) == 3 and line.split()[1] in "TtDdBb"}


def look_at_part(root, lib, part):
    names, more, may_need = PARTS[part]
    library = (lib / f"libtidemark-{part}.so").resolve()
    declared = set(more).union(*({name for name, _ in headers.functions((root / "include/tidemark" / h).read_text())}
                                 for h in names))
    listed = set(re.findall(r"^    (tide_\w+);$", (root / "lib" / f"{part}.map").read_text(), re.M))
    exported = symbols(library, "-D", "--defined-only")
    exported = {name for name in exported if name != "TIDEMARK_0"}
    for what, found in (("its map", listed), ("the library", exported)):
        check(found == declared, f"{part}: {what} has {sorted(found - declared)} too much, {sorted(declared - found)} too little")
    needs = set(re.findall(r"\(NEEDED\).*\[(.+?)\]", said("readelf", "-d", library)))
    check({re.split(r"\.so|-x86", name)[0] for name in needs} <= may_need, f"{part} needs {sorted(needs)}")
    if part == "trace":
        check(not set(ONCE) & symbols(library), f"trace has {sorted(set(ONCE) & symbols(library))} of its own")
    return len(exported)


def look_at_size(lib, folder):
    small = folder / "stripped.so"
    said("strip", "-o", small, (lib / "libtidemark-record.so").resolve())
    check(small.stat().st_size <= RECORD_BYTES, f"the recorder's part is {small.stat().st_size} bytes, {RECORD_BYTES} wanted")
    return small.stat().st_size


class Installed:
    """An installation in a folder, and programs that are built from nothing else."""

    def __init__(self, prefix, folder, cc, cxx):
        self.prefix, self.folder, self.cc, self.cxx = prefix, folder, cc, cxx
        (config,) = prefix.rglob("tidemark.pc")
        self.lib = config.parent.parent
        self.env = {**os.environ, "PKG_CONFIG_PATH": str(config.parent), "LD_LIBRARY_PATH": str(self.lib)}

    def flags(self, package, *options):
        return said("pkg-config", "--cflags", "--libs", *options, package, env=self.env).split()

    def build(self, source, package, *options, static=False):
        """The program, built in one command as docs/embedding.md has it."""
        is_cxx = source.suffix == ".cpp"
        out = self.folder / (source.stem + ("-static" if static else ""))
        compiler = [self.cxx, "-std=c++17"] if is_cxx else [self.cc, "-std=c17"]
        said(*compiler, "-Wall", "-Wextra", "-pedantic", "-Werror", "-O2", *options, "-o", out, source,
             *self.flags(package, *(["--static"] if static else [])), env=self.env)
        return out

    def runs(self, *command):
        return said(*command, env=self.env, cwd=self.folder)


def needed(program):
    return re.findall(r"\(NEEDED\).*\[(.+?)\]", said("readelf", "-d", program))


def read_along(root, here):
    """Every command of docs/embedding.md, typed in a folder with the installed examples; `…` in its output is any text."""
    text = (root / "docs/embedding.md").read_text(encoding="utf-8")
    folder = here.folder / "reader"
    folder.mkdir()
    for example in here.prefix.glob("share/doc/tidemark/examples/*"):
        shutil.copy(example, folder)
    env = {**here.env, "PATH": f"{here.prefix / 'bin'}:{os.environ['PATH']}"}
    blocks, n = re.findall(r"^```console\n(.*?)^```$", text, re.M | re.S), 0
    for command, expected in re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", "".join(blocks), re.M):
        done = subprocess.run(command, shell=True, executable="/bin/sh", cwd=folder, env=env, capture_output=True, text=True,
                              check=False)
        pattern = "".join(".*" if part == "…" else re.escape(part) for part in re.split("(…)", expected))
        check(done.returncode == 0 and re.fullmatch(pattern, done.stdout),
              f"docs/embedding.md: {command}\nends with {done.returncode} and says\n{done.stdout}{done.stderr}")
        n += 1
    check(n >= 10, f"docs/embedding.md has {n} commands")


def use_record(root, here, tidemark):
    toy = here.build(root / "examples/toy_runtime.c", "tidemark-record")
    check({name.split(".so")[0] for name in needed(toy)} == {"libtidemark-record", "libc"}, f"toy_runtime needs {needed(toy)}")
    here.runs(toy)
    here.runs(toy, "toy.db")
    told = said(tidemark, "trace", here.folder / "toy.db")
    check("22, 1 never freed" in told and "problems   0" in told, f"the trace of toy_runtime says {told}")
    for view in "123456":
        frame = said(tidemark, "tui", "--once", "--view", view, here.folder / "toy.db")
        check("toy.db" in frame, f"view {view} of the trace of toy_runtime shows {frame}")
    said(tidemark, "report", here.folder / "toy.db", "-o", here.folder / "toy.html")
    reader = here.build(root / "examples/read_trace.cpp", "tidemark-trace")
    groups = here.runs(reader, "toy.db")
    check(re.match(r"peak: \d+ bytes at event \d+\n +\d+ bytes in \d+ blocks  ", groups), f"read_trace says {groups}")
    for what, options in (("a comparison in the program", []), ("a call", ["-DTIDE_RECORD_NO_INLINE"])):
        idle = here.build(root / "tests/house/idle_use.c", "tidemark-record", *options)
        print(f"{what}: {here.runs(idle).splitlines()[0]}")
    # Everything by one name, in the order that the linker chooses; and the recorder in the program itself.
    everything = here.build(root / "tests/house/public_use.c", "tidemark")
    check("0 faults" in here.runs(everything, "all.db"), "public_use with -ltidemark")
    check(len(needed(everything)) == 4, f"public_use needs {needed(everything)}")
    alone = here.build(root / "tests/house/public_use.c", "tidemark", "-static", static=True)
    check("0 faults" in here.runs(alone, "alone.db") and not needed(alone), "public_use without shared libraries")


def use_plan(root, here):
    compiler_pass = here.build(root / "examples/compiler_pass.c", "tidemark-plan")
    check({name.split(".so")[0] for name in needed(compiler_pass)} == {"libtidemark-plan", "libc"},
          f"compiler_pass needs {needed(compiler_pass)}")
    plans = here.runs(compiler_pass, "1")
    check(plans.startswith("arena ") and "%42 lies at byte" in plans, f"compiler_pass says {plans}")
    python = here.runs(sys.executable, root / "examples/python/plan.py")
    check("no plan needs less than" in python, f"plan.py says {python}")
    wrong = run(sys.executable, "-c", "import plan\ntry: plan.plan([1], [3], [2])\nexcept plan.PlanError as e: print(e.status, e)",
                env={**here.env, "PYTHONPATH": str(root / "examples/python")}).stdout
    check(wrong.startswith("1 ") and "'0'" in wrong, f"a lifetime that ends before it begins: {wrong}")


def use_cmake(root, here, cmake):
    """The components as targets, all of them as one, and a component that is not there."""
    project = here.folder / "project"
    project.mkdir()
    shutil.copy(root / "examples/toy_runtime.c", project)
    shutil.copy(root / "examples/compiler_pass.c", project)
    (project / "CMakeLists.txt").write_text("""cmake_minimum_required(VERSION 3.25)
project(p C)
find_package(tidemark 0.1 REQUIRED COMPONENTS record plan OPTIONAL_COMPONENTS trace paint)
message(STATUS "trace ${tidemark_trace_FOUND}, paint ${tidemark_paint_FOUND}")
find_package(tidemark COMPONENTS paint)
message(STATUS "with paint: ${tidemark_FOUND}")
add_executable(toy toy_runtime.c)
target_link_libraries(toy PRIVATE tidemark::record)
add_executable(pass compiler_pass.c)
target_link_libraries(pass PRIVATE tidemark::tidemark)
""")
    done = run(cmake, "-S", project, "-B", project / "build", f"-DCMAKE_PREFIX_PATH={here.prefix}",
               f"-DCMAKE_C_COMPILER={here.cc}", env=here.env)
    said_all = done.stdout + done.stderr
    check(done.returncode == 0 and "trace TRUE, paint FALSE" in said_all and "with paint: 0" in said_all and
          "no component 'paint'" in said_all, f"find_package says {said_all}")
    said(cmake, "--build", project / "build")
    said(project / "build/toy", project / "toy.db")
    said(project / "build/pass", "1")


def read_headers(root, folder):
    """Doxygen has no complaint about the public headers."""
    if shutil.which("doxygen") is None:
        print("skipped: doxygen is not installed, what it says of the headers was not looked at")
        return
    text = (root / "docs/Doxyfile").read_text().replace("build/docs", str(folder / "pages"))
    (folder / "pages").mkdir()
    (folder / "Doxyfile").write_text(text)
    done = run("doxygen", folder / "Doxyfile", cwd=root)
    page = folder / "pages/html/record_8h.html"
    check(done.returncode == 0 and not done.stderr and page.exists() and "tide_recorder_alloc" in page.read_text(),
          f"doxygen says {done.stderr[:2000]}")


def lose_the_engine(root, here, tidemark):
    """The recorder's part alone, without the part that it opens: a program runs, records where a collector writes, and
    opening a trace of its own says what is missing."""
    bare = here.folder / "bare"
    bare.mkdir()
    for file in here.lib.glob("libtidemark-record.so*"):
        shutil.copy(file, bare, follow_symlinks=True)
    env = {**here.env, "LD_LIBRARY_PATH": str(bare)}
    toy = here.folder / "toy_runtime"
    check(run(toy, env=env).returncode == 0, "toy_runtime without libtidemark-trace.so does not run")
    done = run(toy, here.folder / "none.db", env=env)
    check(done.returncode == 1 and "libtidemark-trace.so.0 cannot be opened" in done.stderr and
          not (here.folder / "none.db").exists(), f"recording without libtidemark-trace.so: {done}")
    told = here.build(root / "tests/profiler/register_victim.c", "tidemark-record", "-D_GNU_SOURCE")
    trace = here.folder / "collected.db"
    for command in ([tidemark, "record", "-o", trace, "--", told, here.folder / "ledger1", "3"],
                    [told, here.folder / "ledger2", "3", trace, tidemark]):
        done = run(*command, env={**env, "TIDE_NO_DATABASE": "1"})
        check(done.returncode == 0, f"recording into a collector without libtidemark-trace.so: {done}")
        rows = said("sqlite3", trace, "SELECT count(*), max(model), count(first_event) FROM run; SELECT count(*) FROM plan_tensor")
        check(rows == "3|3|3\n900\n", f"a collected trace has {rows}")


def main():
    root, build, cmake, cc, cxx, tidemark = pathlib.Path(sys.argv[1]).resolve(), *sys.argv[2:7]
    with tempfile.TemporaryDirectory() as temporary:
        folder = pathlib.Path(temporary)
        said(cmake, "--install", build, "--prefix", folder / "prefix")
        here = Installed(folder / "prefix", folder, cc, cxx)
        n = sum(look_at_part(root, here.lib, part) for part in PARTS)
        print(f"{n} exported functions, the recorder's part has {look_at_size(here.lib, folder)} bytes")
        read_along(root, here)
        use_record(root, here, pathlib.Path(tidemark))
        use_plan(root, here)
        use_cmake(root, here, cmake)
        lose_the_engine(root, here, pathlib.Path(tidemark))
        read_headers(root, folder)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults or n < 80 else 0


if __name__ == "__main__":
    sys.exit(main())
