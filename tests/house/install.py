# SPDX-License-Identifier: MIT
"""`cmake --install` puts the program, its pages of the manual, completion for three shells, its plug-ins, the public headers,
examples and the libraries (where the build has them: not under sanitizers) under a prefix, and nothing else. What the
libraries are is looked at by library.py.
Usage: install.py CMAKE BUILD_DIR LIBDIR HAS_MPI HAS_CUDA HAS_LIBRARIES (0 or 1)"""
import pathlib
import re
import subprocess
import sys
import tempfile

from headers import HEADERS

EXAMPLES = ["serve.c", "toy_runtime.c", "compiler_pass.c", "read_trace.cpp", "plan.py"]


def main():
    cmake, build, libdir, has_mpi, has_cuda, has_libraries, has_symbols = sys.argv[1:8]
    program = pathlib.Path(build) / "cli" / "tidemark"
    listed = subprocess.run([program, "--help"], check=True, capture_output=True, text=True).stdout.split("\n\n")[2]
    commands = re.findall(r"(?m)^  (\w+) +\w", listed)
    wanted = {"bin/tidemark", "share/bash-completion/completions/tidemark", "share/zsh/site-functions/_tidemark",
              "share/fish/vendor_completions.d/tidemark.fish", "share/man/man1/tidemark.1",
              *(f"share/man/man1/tidemark-{name}.1" for name in commands), *(f"include/tidemark/{name}" for name in HEADERS)}
    wanted |= {"share/doc/tidemark/copyright", *(f"share/doc/tidemark/examples/{name}" for name in EXAMPLES)}
    if has_mpi == "1":
        wanted.add(f"{libdir}/tidemark/tidemark_mpi.so")
    if has_cuda == "1":
        wanted |= {f"{libdir}/tidemark/libtidemark-cuda.so", f"{libdir}/tidemark/libtidemark-cupti.so"}
    if has_symbols == "1":
        wanted.add(f"{libdir}/tidemark/libtidemark-symbols.so")
    if has_libraries == "1":
        wanted |= {f"{libdir}/tidemark/libtidemark-preload.so", f"{libdir}/tidemark/python/sitecustomize.py", f"{libdir}/tidemark/python/tidemark_torch.py"}
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
        package = root / "usr"  # what a package is made of
        subprocess.run([cmake, "--install", build, "--prefix", package], check=True, stdout=subprocess.DEVNULL)
        of_zsh = [p.parent.name for p in package.rglob("_tidemark")]
        said = subprocess.run([root / "bin/tidemark", "--version"], check=False, capture_output=True, text=True).stdout
    for name in sorted(wanted - found):
        print(f"{name} is not installed")
    for name in sorted(found - wanted):
        print(f"{name} is installed")
    if not said.startswith("tidemark "):
        print(f"the installed program says {said!r}")
    wanted_zsh = ["vendor-completions" if pathlib.Path("/etc/debian_version").exists() else "site-functions"]
    if of_zsh != wanted_zsh:
        print(f"below /usr the completion of zsh is in {of_zsh}, not in {wanted_zsh}")
    print(f"{len(found)} files")
    return 0 if found == wanted and of_zsh == wanted_zsh and said.startswith("tidemark ") else 1


if __name__ == "__main__":
    sys.exit(main())
