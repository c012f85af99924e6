# SPDX-License-Identifier: MIT
"""The project's own gate: `tidemark check` in the project's folder, as CI would run it, on whatever machine this is."""
import os

os.execve(os.environ["TIDEMARK"], ["tidemark", "check"], {**os.environ, "GITHUB_STEP_SUMMARY": ""})
