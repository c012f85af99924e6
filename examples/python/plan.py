#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Memory plans from Python: arrays of lifetimes in, offsets out, by the C library alone (ctypes).

    python3 plan.py            plans a small list and prints it
    import plan; plan.offsets([4096, 8192], [0, 1], [2, 3])

Any sequence of whole numbers will do for the arrays; where NumPy is installed its arrays are taken too, and the offsets
come as one. The library is libtidemark.so.N, found as every library is, or where $TIDEMARK_LIBRARY says.
"""
from __future__ import annotations

import ctypes
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

ABI = 0  # TIDE_ABI of tidemark/version.h
NO_OFFSET = 2**64 - 1


class PlanError(Exception):
    """What the library says: .status is the number of tidemark/status.h, .hint what to do."""

    def __init__(self, status: int, message: str, hint: str) -> None:
        super().__init__(message)
        self.status = status
        self.hint = hint


@dataclass(frozen=True)
class Plan:
    """Where each lifetime lies, and how good that is. Sizes are in bytes."""
    offsets: Sequence[int]
    bytes: int
    proved_bytes: int  #: no plan of these lifetimes is smaller
    naive_bytes: int   #: every one in memory of its own

    @property
    def proven(self) -> bool:
        """Whether no plan is smaller."""
        return self.bytes == self.proved_bytes


class _Error(ctypes.Structure):
    _fields_ = [("status", ctypes.c_int), ("line", ctypes.c_int), ("file", ctypes.c_char_p),
                ("msg", ctypes.c_char * 512), ("where", ctypes.c_char * 384), ("note", ctypes.c_char * 384),
                ("hint", ctypes.c_char * 256)]


class _Result(ctypes.Structure):
    """tide_plan_result of tidemark/plan.h."""
    _fields_ = [("bytes", ctypes.c_uint64), ("proved_bytes", ctypes.c_uint64), ("naive_bytes", ctypes.c_uint64)]


def _open() -> ctypes.CDLL:
    library = ctypes.CDLL(os.environ.get("TIDEMARK_LIBRARY", f"libtidemark.so.{ABI}"))
    library.tide_plan_arrays.restype = ctypes.c_int
    library.tide_plan_arrays.argtypes = [ctypes.c_size_t, *[ctypes.c_void_p] * 4, ctypes.c_uint64, ctypes.c_void_p,
                                         ctypes.POINTER(_Result), ctypes.POINTER(_Error)]
    return library


_library = _open()


def _array(kind: type, values: Iterable[int]) -> ctypes.Array:
    values = [int(v) for v in values]
    return (kind * len(values))(*values)


def plan(sizes: Iterable[int], begins: Iterable[int], ends: Iterable[int], aligns: Iterable[int] | None = None,
         seconds: float = 0) -> Plan:
    """Plan lifetimes: number i needs sizes[i] bytes in the steps begins[i] to ends[i] - 1, at a multiple of aligns[i]
    (64 where none are given). With seconds > 0 the search ends then at the latest; without, it ends by itself and gives
    the same plan on every machine. Raises PlanError, and ValueError for arrays of different lengths."""
    size, begin, end = _array(ctypes.c_uint64, sizes), _array(ctypes.c_int64, begins), _array(ctypes.c_int64, ends)
    align = _array(ctypes.c_uint64, [64] * len(size) if aligns is None else aligns)
    if not len(size) == len(begin) == len(end) == len(align):
        raise ValueError(f"{len(size)} sizes, {len(begin)} begins, {len(end)} ends, {len(align)} alignments")
    offsets, result, error = (ctypes.c_uint64 * len(size))(), _Result(), _Error()
    status = _library.tide_plan_arrays(len(size), size, align, begin, end, int(seconds * 1e9), offsets, result, error)
    if status != 0:
        raise PlanError(status, error.msg.decode(), error.hint.decode())
    try:
        import numpy
        found: Sequence[int] = numpy.array(offsets, dtype=numpy.uint64)
    except ImportError:
        found = list(offsets)
    return Plan(found, result.bytes, result.proved_bytes, result.naive_bytes)


def offsets(sizes: Iterable[int], begins: Iterable[int], ends: Iterable[int]) -> Sequence[int]:
    """The offsets alone."""
    return plan(sizes, begins, ends).offsets


def main() -> None:
    sizes, begins, ends = [1000, 2000, 3000, 4096, 1000], [0, 1, 2, 3, 4], [2, 3, 4, 5, 6]
    made = plan(sizes, begins, ends)
    for i, offset in enumerate(made.offsets):
        print(f"{i}: {sizes[i]:5} bytes in steps {begins[i]} to {ends[i] - 1} at {int(offset)}")
    print(f"{made.bytes} bytes, no plan needs less than {made.proved_bytes}; {made.naive_bytes} without a plan")


if __name__ == "__main__":
    main()
