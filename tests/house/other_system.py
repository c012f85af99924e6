# SPDX-License-Identifier: MIT
"""scripts/deps.sh on a system without dpkg-query and apt-get: it says nothing when all is there, and otherwise names exactly
what is not, with what it looked for. Usage: other_system.py SOURCE_DIR"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

ROOT = pathlib.Path(sys.argv.pop(1))
DEPS = ROOT / "scripts/deps.sh"
# All that the script and a compiler call; of the machine's other programs none is seen.
PROGRAMS = ["sh", "dirname", "mktemp", "rm", "tr", "sed", "printf", "cc", "c++", "cmake", "ninja", "pkg-config", "protoc-c",
            "python3", "ld", "as"]


class OtherSystem(unittest.TestCase):
    def setUp(self):
        self.dir = pathlib.Path(tempfile.mkdtemp(prefix="tidemark-test-"))
        self.addCleanup(shutil.rmtree, self.dir, True)
        for name in PROGRAMS:
            found = shutil.which(name)
            self.assertIsNotNone(found, f"{name} is not here")
            (self.dir / name).symlink_to(found)
        self.env = {"PATH": str(self.dir), "HOME": os.environ.get("HOME", "/"), "TMPDIR": str(self.dir), "LC_ALL": "C"}

    def deps(self, what="build", before=()):
        return subprocess.run([*before, DEPS, what], env=self.env, capture_output=True, text=True, timeout=120, check=False)

    def missing(self, p):
        """Names of packages that it asks for."""
        self.assertEqual((p.returncode, p.stdout), (1, ""), p.stderr)
        lines = [line for line in p.stderr.splitlines() if "these are not here" not in line]
        self.assertIn("not a Debian-like system", lines[0])
        return [line.split()[0] for line in lines[1:]]

    def test_all_is_there(self):
        p = self.deps("test")
        self.assertEqual((p.returncode, p.stdout), (0, ""), p.stderr)
        self.assertEqual(p.stderr.count("\n"), 1, p.stderr)
        self.assertIn("these are not here", p.stderr)  # tmux, chromium and the like
        self.assertIn("tmux", p.stderr)

    def instead(self, name, script):
        (self.dir / name).unlink()
        (self.dir / name).write_text(f"#!/bin/sh\n{script}\n")
        (self.dir / name).chmod(0o755)

    def covered(self):
        """What hides the machine's own onnx.proto, where that can be done; and the package that is missed then."""
        (self.dir / "empty").mkdir()
        unshare, mount = shutil.which("unshare"), shutil.which("mount")
        cover = [unshare, "-r", "-m", "/bin/sh", "-c", f'{mount} --bind {self.dir / "empty"} /usr/include/onnx && exec "$0" "$@"']
        if unshare and mount and subprocess.run([*cover, "true"], capture_output=True, check=False).returncode == 0:
            return cover, ["libonnx-dev"]
        print("libonnx-dev is not tried: a folder cannot be covered here (unshare)")
        return [], []

    def test_some_are_missing(self):
        """Two programs; a CMake that is too old; the schema of ONNX; a compiler that does not find oneDNN."""
        cover, onnx = self.covered()
        (self.dir / "protoc-c").unlink()
        (self.dir / "ninja").unlink()
        self.instead("cmake", 'echo "cmake version 3.22.1"')
        self.instead("cc", f'case "$*" in *-ldnnl*) exit 1 ;; esac\nexec {shutil.which("cc")} "$@"')
        p = self.deps(before=cover)
        self.assertEqual(self.missing(p), ["cmake", "ninja-build", "protobuf-c-compiler", *onnx, "libdnnl-dev"])
        self.assertIn("3.22.1 is older than 3.25", p.stderr)
        self.assertIn("cc finds no <oneapi/dnnl/dnnl.h> with -ldnnl", p.stderr)

    def test_libraries_are_missing(self):
        """No compiler, and a pkg-config that knows nothing but one, in a version that is too old."""
        (self.dir / "cc").unlink()
        folder = self.dir / "pc"
        folder.mkdir()
        (folder / "jansson.pc").write_text("Name: jansson\nDescription: x\nVersion: 2.12\n")
        self.env["PKG_CONFIG_LIBDIR"] = str(folder)
        p = self.deps("test")
        self.assertEqual(self.missing(p), ["gcc", "libprotobuf-c-dev", "libjansson-dev", "libsqlite3-dev", "libdw-dev", "libzstd-dev",
                                           "liblz4-dev", "zlib1g-dev", "libncurses-dev", "libtomlplusplus-dev", "libcmocka-dev"])
        self.assertIn("pkg-config does not know jansson >= 2.13", p.stderr)

    def test_the_list_knows_what_is_probed(self):
        """Every package that is looked for is one of the list, and every one that building needs is looked for."""
        listed = subprocess.run([DEPS, "list"], capture_output=True, text=True, check=True).stdout.split()
        probes = (ROOT / "scripts/probes.sh").read_text()
        script = DEPS.read_text()
        build = script.split('build="')[1].split('"')[0].split()
        self.assertEqual([name for name in build if f" {name} " not in probes.replace("\n", " \n ")], [])
        probed = {line.split()[1] for line in probes.splitlines()
                  if line.strip().split(" ")[0] in ("program", "library", "file", "optional")}
        self.assertLessEqual(probed - {"valgrind", "clang"}, set(listed))


if __name__ == "__main__":
    unittest.main(verbosity=2)
