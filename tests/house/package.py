# SPDX-License-Identifier: MIT
"""The Debian packages: their names, what they depend on, and which file is in which; the list of what is in them
(scripts/sbom.py) names every library that a file of theirs is linked with. With CPACK, packages of this build are made for
it, without what takes long (the libraries that each needs, stripping); `make deb` looks at those that it has made, and
`make deb-test` installs, uses and removes them. Usage: package.py SOURCE_DIR BUILD_DIR [CPACK]"""
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

faults = []


def check(good, what):
    if not good:
        faults.append(what)


def said(*command, cwd=None):
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, check=False, cwd=cwd)
    check(done.returncode == 0, f"{command[0]} ends with {done.returncode}: {done.stdout[-1500:]}{done.stderr[-1500:]}")
    return done.stdout


def belongs(path):
    """The package that a file under /usr is to be in, as the names of Debian's policy have it."""
    if path.endswith("tidemark_mpi.so"):
        return "tidemark-mpi"
    if re.search(r"/libtidemark[^/]*\.so\.[0-9.]+$", path):
        return "libtidemark0"
    if re.search(r"^/usr/include/|\.(a|pc|cmake)$|/libtidemark[^/]*\.so$|/examples/", path) and not re.search("/tidemark/lib", path):
        return "libtidemark-dev"
    return "tidemark"


def look(packages, is_quick):
    names = {}
    for file in packages:
        name = said("dpkg-deb", "-f", file, "Package").strip()
        if name.endswith("-dbgsym"):
            continue
        names[name] = {one.split()[0] for one in said("dpkg-deb", "-f", file, "Depends").strip().split(", ") if one}
        for line in said("dpkg-deb", "-c", file).splitlines():
            mode, path = line.split()[0], line.split()[5][1:]
            if not mode.startswith("d"):
                check(path.startswith("/usr/") and belongs(path) == name, f"{path} is in {name}")
    wanted = {"tidemark": {"libdnnl2"}, "libtidemark0": set(), "libtidemark-dev": {"libtidemark0"}}
    if "tidemark-mpi" in names:
        wanted["tidemark-mpi"] = {"tidemark"}
    if not is_quick:
        wanted["tidemark"] |= {"libsqlite3-0", "libc6", "libncursesw6", "libprotobuf-c1"}
        wanted["libtidemark0"] |= {"libsqlite3-0", "libc6"}
    check(set(names) == set(wanted), f"the packages are {sorted(names)}")
    for name, depends in wanted.items():
        check(depends <= names.get(name, set()), f"{name} depends on {sorted(names.get(name, ()))}, not on all of {sorted(depends)}")
    few = {"libc6", "libsqlite3-0", "libgcc-s1"}
    check(names.get("libtidemark0", set()) <= few, f"libtidemark0 depends on {sorted(names.get('libtidemark0', ()))}")
    check("libopenmpi3" not in names.get("tidemark", ()), "tidemark depends on Open MPI")


def look_at_list(root, build):
    files = [build / "cli/tidemark", *(build / "lib").glob("libtidemark-*.so")]
    made = json.loads(said(sys.executable, root / "scripts/sbom.py", "1.2.3", *files) or "{}")
    names = {one["name"] for one in made.get("packages", [])}
    check({"tidemark", "libc6", "libsqlite3-0", "libdnnl2", "libncursesw6"} <= names, f"the list has {sorted(names)}")
    check(all(one["versionInfo"] for one in made.get("packages", [])), "a package without a version")


def main():
    root, build = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve()
    for tool in ("dpkg-deb", "dpkg-query"):
        if shutil.which(tool) is None:
            print(f"skipped: {tool} is not installed")
            return 77
    with tempfile.TemporaryDirectory() as folder:
        if len(sys.argv) > 3: # debug symbols are those of the preset `deb`: this build has none
            quick = ["DEBIAN_DEBUGINFO_PACKAGE=OFF", "DEBIAN_PACKAGE_SHLIBDEPS=OFF", "DEBIAN_COMPRESSION_TYPE=gzip"]
            said(sys.argv[3], "-G", "DEB", "-B", folder, *(word for one in quick for word in ("-D", f"CPACK_{one}")), cwd=build)
        look(sorted((pathlib.Path(folder) if len(sys.argv) > 3 else build).glob("*.deb")), len(sys.argv) > 3)
        look_at_list(root, build)
    for fault in faults:
        print(fault)
    print(f"{len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
