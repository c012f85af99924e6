# SPDX-License-Identifier: MIT
"""`cmake --install` puts the program, its man page, its plug-ins, the public headers and the libraries (where the build has
them: not under sanitizers) under a prefix, and nothing else. What the libraries are is looked at by library.py.
Usage: install.py CMAKE BUILD_DIR LIBDIR HAS_MPI HAS_CUDA HAS_LIBRARIES (0 or 1)"""
import pathlib
import re
import subprocess
import sys
import tempfile

from headers import HEADERS

EXAMPLES = ["serve.c", "toy_runtime.c", "compiler_pass.c", "read_trace.cpp", "plan.py"]


def main():
    cmake, build, libdir, has_mpi, has_cuda, has_libraries = sys.argv[1:7]
    wanted = {"bin/tidemark", "share/man/man1/tidemark-tui.1", *(f"include/tidemark/{name}" for name in HEADERS)}
    wanted |= {"share/doc/tidemark/copyright", *(f"share/doc/tidemark/examples/{name}" for name in EXAMPLES)}
    if has_mpi == "1":
        wanted.add(f"{libdir}/tidemark/tidemark_mpi.so")
    if has_cuda == "1":
        wanted |= {f"{libdir}/tidemark/libtidemark-cuda.so", f"{libdir}/tidemark/libtidemark-cupti.so"}
    if has_libraries == "1":
        version = pathlib.Path(__file__).parents[2].joinpath("include/tidemark/version.h").read_text()
        (abi,), (full,) = re.findall(r"^#define TIDE_ABI (\d+)", version, re.M), re.findall(r'TIDE_VERSION "(.*)"', version)
        parts = ["tidemark-record", "tidemark-plan", "tidemark-trace"]
        wanted |= {f"{libdir}/lib{part}.so{end}" for part in [*parts, "tidemark"] for end in ("", f".{abi}", f".{full}")}
        wanted |= {f"{libdir}/pkgconfig/{part}.pc" for part in [*parts, "tidemark"]} | {f"{libdir}/libtidemark.a"}
        wanted |= {f"{libdir}/cmake/tidemark/tidemark-{end}.cmake"
                   for end in ("config", "config-version", "targets", "targets-release")}
    with tempfile.TemporaryDirectory() as prefix:
        subprocess.run([cmake, "--install", build, "--prefix", prefix], check=True, stdout=subprocess.DEVNULL)
        root = pathlib.Path(prefix)
        found = {p.relative_to(root).as_posix() for p in root.rglob("*") if not p.is_dir()}
        said = subprocess.run([root / "bin/tidemark", "--version"], check=False, capture_output=True, text=True).stdout
    for name in sorted(wanted - found):
        print(f"{name} is not installed")
    for name in sorted(found - wanted):
        print(f"{name} is installed")
    if not said.startswith("tidemark "):
        print(f"the installed program says {said!r}")
    print(f"{len(found)} files")
    return 0 if found == wanted and said.startswith("tidemark ") else 1


if __name__ == "__main__":
    sys.exit(main())
