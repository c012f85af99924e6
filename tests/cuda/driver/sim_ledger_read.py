# SPDX-License-Identifier: MIT
"""Reads a ledger of the simulated driver (tidesim.h), also that of a process that was killed.

    sim_ledger_read.py FILE            live bytes of each kind at the end
    sim_ledger_read.py FILE T_NS...    one line per moment: T_NS, then kind=bytes of device kinds
"""
import collections
import struct
import sys

KINDS = ["device", "managed", "pool", "pool_block", "physical", "reserved", "mapped", "pinned", "registered", "context", "graph"]
HEAD = struct.Struct("<8sIIQQQQ2Q")
RECORD = struct.Struct("<QQQQIiIIQQ")

Record = collections.namedtuple("Record", "seq t_ns address bytes kind device op tid pool context")


def records(path):
    """Whole records, in order. One that was being written when the process died is left out."""
    with open(path, "rb") as f:
        magic, version, size, capacity, n, lost, *_ = HEAD.unpack(f.read(HEAD.size))
        assert magic == b"TIDESIM\0" and version == 1 and size == RECORD.size, "no ledger of this version"
        assert lost == 0, f"{lost} records did not fit"
        for i in range(min(n, capacity)):
            record = Record(*RECORD.unpack(f.read(RECORD.size)))
            if record.seq != i + 1:
                return
            yield record


def live(path, t_ns=None):
    """{(kind, device): bytes} after the last record at or before t_ns. A free without its allocation is an error."""
    held, total = {}, collections.Counter()
    for r in records(path):
        if t_ns is not None and r.t_ns > t_ns:
            break
        key = (r.kind, r.device, r.address)
        if r.op == 1:
            assert key not in held, f"given twice: {r}"
            held[key] = r.bytes
            total[KINDS[r.kind], r.device] += r.bytes
        else:
            assert held.pop(key) == r.bytes, f"freed with other bytes: {r}"
            total[KINDS[r.kind], r.device] -= r.bytes
    return {key: n for key, n in total.items() if n}


def main():
    path, times = sys.argv[1], [int(t) for t in sys.argv[2:]]
    for t in times or [None]:
        sums = " ".join(f"{kind}:{device}={n}" for (kind, device), n in sorted(live(path, t).items()))
        print(f"{t if t is not None else 'end'} {sums}")


if __name__ == "__main__":
    main()
