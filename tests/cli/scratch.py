# SPDX-License-Identifier: MIT
"""Whether kernels' scratch is what it was where the figures of these tests were taken.

oneDNN sizes the scratch of a convolution by the caches of the processor, which nothing but the processor says: plans of
models with convolutions are others elsewhere. What compares such figures is skipped there, and says why.
"""
import functools
import json
import os
import pathlib
import subprocess
import tempfile

KNOWN_BYTES = 310784  # of the first convolution of resnet18, at multiples of 256
PINNED = {"ONEDNN_MAX_CPU_ISA": "SSE41", "DNNL_MAX_CPU_ISA": "SSE41", "OMP_NUM_THREADS": "1"}


@functools.lru_cache
def why_other():
    """The reason to skip; None: it is the same."""
    program = os.path.abspath(os.environ.get("TIDEMARK", "build/test/cli/tidemark"))
    graph = pathlib.Path(os.environ.get("TIDE_SOURCE_DIR", ".")) / "sample_graphs/resnet18.json"
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder) / "plan.json"
        subprocess.run([program, "plan", str(graph), "-o", str(plan)], check=True, stdout=subprocess.DEVNULL,
                       env={**os.environ, **PINNED}, timeout=300)
        tensors = json.loads(plan.read_text())["tensors"]
    found = next(t["aligned_bytes"] for t in tensors if t["name"] == "conv1.scratch")
    if found == KNOWN_BYTES:
        return None
    return f"skipped: for this processor's caches oneDNN asks for {found} bytes of scratch, not {KNOWN_BYTES}"
