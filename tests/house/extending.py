# SPDX-License-Identifier: MIT
"""docs/extending.md works as written: its files are taken out of the page, built with its commands, and print its output.

Shows LT-38 (an eighth memory kind), PT-25 (a device added by registering it), and an operator of a program's own.
Usage: extending.py SOURCE_DIR BUILD_DIR SANITIZERS
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


WANT = ["c", "c", "c", "c", "c", "sh", "text", "c", "c", "sh", "text", "c", "sh", "text"]


def main():
    root, build, sanitizers = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
    blocks = BLOCK.findall((root / "docs" / "extending.md").read_text(encoding="utf-8"))
    if [kind for kind, _, _ in blocks] != WANT or not all(name for kind, name, _ in blocks if kind == "c"):
        print(f"docs/extending.md has the blocks {[kind for kind, _, _ in blocks]}; want {WANT}, each file with its name")
        return 1
    environment = dict(os.environ, TIDEMARK=str(root), BUILD=str(build), CFLAGS=f"-fsanitize={sanitizers}" if sanitizers else "")
    with tempfile.TemporaryDirectory() as folder:
        done = None
        for kind, name, text in blocks:
            if kind == "c":
                (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
            elif kind == "sh":
                done = subprocess.run(["sh", "-euc", text], cwd=folder, capture_output=True, text=True, check=False, env=environment)
                print(done.stderr, end="")
            elif done.returncode != 0 or done.stdout != text:
                print(f"exit {done.returncode}; got:\n{done.stdout}want:\n{text}")
                return 1
    print(f"{WANT.count('c')} files built and ran as the page says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
