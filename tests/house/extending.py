# SPDX-License-Identifier: MIT
"""docs/extending.md works as written: its files are taken out of the page, built with its commands, and print its output.

Shows LT-38 (an eighth memory kind) and PT-25 (a device added by registering it). Usage: extending.py SOURCE_DIR [CC]
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

BLOCK = re.compile(r"^```(\w+)(?: (\S+))?\n(.*?)^```$", re.M | re.S)


def main():
    root = pathlib.Path(sys.argv[1]).resolve()
    blocks = BLOCK.findall((root / "docs" / "extending.md").read_text(encoding="utf-8"))
    files = [(name, text) for kind, name, text in blocks if kind == "c"]
    commands = [text for kind, _, text in blocks if kind == "sh"]
    wanted = [text for kind, _, text in blocks if kind == "text"]
    if len(files) != 5 or len(commands) != 1 or len(wanted) != 1 or not all(name for name, _ in files):
        print(f"docs/extending.md has {len(files)} files, {len(commands)} commands, {len(wanted)} outputs; want 5, 1, 1")
        return 1
    with tempfile.TemporaryDirectory() as folder:
        for name, text in files:
            (pathlib.Path(folder) / name).write_text(text, encoding="utf-8")
        done = subprocess.run(["sh", "-euc", commands[0]], cwd=folder, capture_output=True, text=True, check=False,
                              env=dict(os.environ, TIDEMARK=str(root)))
    print(done.stderr, end="")
    if done.returncode != 0 or done.stdout != wanted[0]:
        print(f"exit {done.returncode}; got:\n{done.stdout}want:\n{wanted[0]}")
        return 1
    print(f"{len(files)} files built and ran as the page says")
    return 0


if __name__ == "__main__":
    sys.exit(main())
