# SPDX-License-Identifier: MIT
"""The project's own gate: `tidemark check` in the project's folder, as CI would run it."""
import os
import pathlib
import sys

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "cli"))
import scratch  # noqa: E402

if scratch.why_other():
    print(scratch.why_other())
    sys.exit(77)
os.execve(os.environ["TIDEMARK"], ["tidemark", "check"], {**os.environ, **scratch.PINNED})
