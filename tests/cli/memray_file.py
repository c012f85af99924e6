# SPDX-License-Identifier: MIT
"""Captures of memray: a writer and a reader after its public source (github.com/bloomberg/memray, 1.7 to 1.20: record_writer.cpp,
record_reader.cpp, records.h), for memray.py. Neither knows anything of tidemark."""
import struct

NEW = ["", "pymalloc_free", "pymalloc_malloc", "pymalloc_calloc", "pymalloc_realloc", "free", "malloc", "realloc", "calloc", "posix_memalign",
       "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap", "munmap"]
OLD = ["", "malloc", "free", "calloc", "realloc", "posix_memalign", "aligned_alloc", "memalign", "valloc", "pvalloc", "mmap", "munmap",
       "pymalloc_malloc", "pymalloc_calloc", "pymalloc_realloc", "pymalloc_free"]
SIMPLE_FREES = ("free", "pymalloc_free")
BEGIN_MS = 1_700_000_000_000
MASK = (1 << 64) - 1
MAIN = 0x7F0000001000


def varint(v):
    out = bytearray()
    while v > 127:
        out.append(v & 127 | 128)
        v >>= 7
    return bytes(out + bytes([v]))


def signed(v):
    v = (v + (1 << 63) & MASK) - (1 << 63)  # as 64 bits have it
    return varint((v << 1 ^ v >> 63) & MASK)


class Writer:
    """Records are put by the methods; bytes() is the file."""

    def __init__(self, version=13, native=False, sums=False, skipped=0, python=0x030B07F0):
        self.version, self.native, self.sums, self.skipped, self.python = version, native, sums, skipped, python
        self.out, self.n_calls, self.calls = bytearray(), 0, None
        self.tid, self.recent, self.lines, self.line, self.frame = None, [0] * 15, {}, 0, 0
        self.address = self.ip = self.native_id = 0
        self.end_ms = BEGIN_MS + 1000

    def head(self):
        out = b"memray\0" + struct.pack("<i", self.version)
        if self.version >= 12:
            out += struct.pack("<I", self.python)
        out += struct.pack("<BBQQqq", self.native, self.sums, self.n_calls if self.calls is None else self.calls, 0, BEGIN_MS, self.end_ms)
        out += b"python3 prog.py\0" + struct.pack("<iQQB", 4711, MAIN, self.skipped, 1)
        out += bytes([1] if self.version >= 11 else []) + bytes([1] if self.version >= 12 else [])
        if self.version >= 13:
            out += b"/usr/lib/python3\0" + b"/site\0/more\0\0" + b"\0"
        return out

    def bytes(self, end=True, padding=0):
        last = bytes([15 if self.sums else 1 if self.version >= 12 else 0x10])
        return self.head() + bytes(self.out) + (last if end else b"") + bytes(padding)

    def delta(self, field, value):
        out = signed(value - getattr(self, field))
        setattr(self, field, value)
        return out

    def put(self, token, *more):
        self.out += bytes([token]) + b"".join(more)

    def thread(self, tid):
        if tid != self.tid:
            self.put(12, struct.pack("<Q", tid))
            self.tid = tid

    def thread_name(self, name):
        self.put(10, name.encode() + b"\0")

    def time(self, ms, resident=1 << 20):
        if self.sums:
            self.put(1, struct.pack("<QQQ", BEGIN_MS + ms, resident, 5))
        else:
            self.put(2 if self.version >= 12 else 11, varint(resident), varint(ms & MASK))

    def code(self, number, function, file, line, table=b""):
        """Of version 10 and 11: a line of a function."""
        texts = function.encode() + b"\0" + file.encode() + b"\0"
        if self.version >= 12:
            self.put(14, varint(number), texts, self.delta("line", line), varint(len(table)), table)
        elif self.sums:
            self.put(4, struct.pack("<Q", number), texts, struct.pack("<iB", line, 1))
        else:
            self.put(0x13, self.delta("frame", number), texts, self.delta("line", line))

    def push(self, number, offset=0, entry=True):
        if self.version >= 12:
            self.put(64 | entry, varint(number), signed(offset))
        else:
            self.put(4, self.delta("frame", number))

    def pop(self, n=1):
        while n > 0:
            k = min(n, 16)
            self.put(16 | (k - 1) if self.version >= 12 else 9 | (k - 1) << 4)
            n -= k

    def which(self, address):
        if address in self.recent:
            return self.recent.index(address), b""
        self.recent = [address] + self.recent[:-1]
        return 15, self.delta("address", address >> 3)

    def call(self, name, address, size=0, native_id=0):
        self.n_calls += 1
        if self.version >= 12:
            which, far = self.which(address)
            number = NEW.index(name)
            more = [far, bytes([number]) if number > 7 else b""]
            if name not in SIMPLE_FREES:
                more += [self.delta("native_id", native_id) if self.native else b"", varint(size)]
            self.put(128 | which << 3 | (number if number < 8 else 0), *more)
        else:
            with_native = self.native and name not in (*SIMPLE_FREES, "munmap")
            more = [self.delta("address", address)]
            if with_native or name not in SIMPLE_FREES:
                more.append(varint(size))
            if with_native:
                more.append(self.delta("native_id", native_id))
            self.put((2 if with_native else 1) | OLD.index(name) << 4, *more)

    def object(self, address, begins, native_id=0):
        which, far = self.which(address)
        self.put(32 | which << 1 | begins, far, self.delta("native_id", native_id) if self.native and begins else b"")

    def native_frame(self, ip, index):
        self.put(5, self.delta("ip", ip), self.delta("native_id", index))

    def loaded(self, file, segments):
        self.put(6)
        self.put(7, file.encode() + b"\0", varint(len(segments)), struct.pack("<Q", 0x400000))
        for vaddr, size in segments:
            self.put(8, struct.pack("<Q", vaddr), varint(size))

    # Of files of sums.

    def frame_index(self, number, code, offset=0):
        if self.version >= 12:
            self.put(4, varint(number), varint(code), signed(offset), b"\1")

    def stack(self, frame, below):
        self.put(3, *((varint(frame), varint(below)) if self.version >= 12 else (struct.pack("<QI", frame, below),)))

    def sum(self, tid, name, stack, n_peak, bytes_peak, n_end, bytes_end):
        number = (NEW if self.version >= 12 else OLD).index(name)
        self.put(2, struct.pack("<QB7sQQQQQQQ", tid, number, b"\xa5" * 7, 0, stack, 0, n_peak, n_end, bytes_peak, bytes_end))


# ---- lines of Python ----

def line_of(python, table, line, offset):
    """Objects/locations.md of CPython, and lnotab_notes.txt for those before 3.11. 0: none."""
    if offset < 0 or not table:
        return 0
    if python < 0x030A0000:
        at = 0
        for i in range(0, len(table) - 1, 2):
            at += table[i]
            if at > offset:
                break
            line += (table[i + 1] ^ 128) - 128
        return max(line, 0)
    if python < 0x030B0000:
        at = 0
        for i in range(0, len(table) - 1, 2):
            at += table[i]
            by = (table[i + 1] ^ 128) - 128
            line += by if by != -128 else 0
            if at > 2 * offset:
                return max(line, 0) if by != -128 else 0
        return 0
    it, unit, at = iter(table), offset // 2, 0

    def number():
        c = next(it)
        v, shift = c & 63, 0
        while c & 64:
            c, shift = next(it), shift + 6
            v |= (c & 63) << shift
        return v
    for first in it:
        code = first >> 3 & 15
        at += (first & 7) + 1
        if code in (13, 14):
            v = number()
            line += -(v >> 1) if v & 1 else v >> 1
            for _ in range(3 if code == 14 else 0):
                number()
        elif code < 13:
            line += max(code - 10, 0)
            for _ in range(2 if code >= 10 else 1):
                next(it)
        if at > unit:
            return max(line, 0) if code != 15 else 0
    return 0


# ---- reading ----

class Reader:
    """All events of an unpacked file: (op, address, bytes, allocator, thread, stack, ns), and counts of what they are made of."""

    def __init__(self, data):
        self.data, self.at = data, 11
        self.version = struct.unpack_from("<i", data, 7)[0]
        self.events, self.counts = [], dict.fromkeys(("calls", "unknown", "again", "objects", "native", "blocks"), 0)
        self.codes, self.places, self.threads, self.stacks, self.alive, self.ranges, self.rows = {}, {}, [], {}, {}, [], []
        self.read_head()
        self.ns = self.begin_ms * 1_000_000
        self.recent, self.address, self.line, self.frame = [0] * 15, 0, 0, 0
        if self.has_sums:
            self.sums()
        else:
            while self.record():
                pass

    def take(self, form):
        form = "<" + form
        values = struct.unpack_from(form, self.data, self.at)
        self.at += struct.calcsize(form)
        return values if len(values) != 1 else values[0]

    def text(self):
        end = self.data.index(b"\0", self.at)
        out, self.at = self.data[self.at:end].decode("utf-8", "surrogateescape"), end + 1
        return out

    def number(self):
        v = shift = 0
        while True:
            c = self.take("B")
            v |= (c & 127) << shift
            shift += 7
            if c < 128:
                return v

    def signed(self):
        v = self.number()
        return v >> 1 ^ -(v & 1)

    def read_head(self):
        self.python = self.take("I") if self.version >= 12 else 0
        self.native, self.has_sums, self.n_calls, _, self.begin_ms, self.end_ms = self.take("BBQQqq")
        self.text()
        self.pid, self.main, self.skipped, _ = self.take("iQQB")
        self.at += (self.version >= 11) + (self.version >= 12)
        if self.version >= 13:
            self.text()
            for _ in range(2):
                while self.text():
                    pass

    def place(self, code, offset):
        known = self.places.get((code, offset))
        if known is None:
            function, file, line, table = self.codes[code]
            if table is not None:
                line = line_of(self.python, table, line, offset)
            known = self.places[code, offset] = f"{function} @ {file}:{line}" if file else function
        return known

    def common(self, token):
        if token == 5:
            self.signed(), self.signed()
            self.counts["native"] += 1
        elif token == 7:
            self.text()
            n = self.number()
            self.take("Q")
            for _ in range(n):
                assert self.take("BQ")[0] == 8
                self.number()
        elif token == 10:
            self.text()
        elif token == 12:
            self.thread(self.take("Q"))
        else:
            assert token == 6, token

    def thread(self, tid):
        self.tid = tid
        if tid not in self.threads:
            self.threads.append(tid)

    def near(self, which):
        if which == 15:
            self.address = self.address + self.signed() & MASK
            self.recent = [self.address << 3 & MASK] + self.recent[:-1]
            which = 0
        return self.recent[which]

    def function(self):
        return self.text(), self.text()

    def record(self):
        token = self.take("B")
        if self.version < 12:
            return self.old_record(token)
        if token >= 128:
            address = self.near(token >> 3 & 15)
            name = NEW[token & 7 or self.take("B")]
            size = 0
            if name not in SIMPLE_FREES:
                self.native and self.signed()
                size = self.number()
            self.call(name, address, size)
        elif token >= 64:
            self.stack().append((self.number(), self.signed()))
        elif token >= 32:
            self.near(token >> 1 & 15)
            self.counts["objects"] += 1
            self.native and token & 1 and self.signed()
        elif token >= 16:
            del self.stack()[-((token & 15) + 1):]
        elif token == 2:
            self.time()
        elif token == 14:
            self.code()
        elif token == 1:
            return False
        else:
            self.common(token)
        return True

    def code(self):
        number, names = self.number(), self.function()
        self.line += self.signed()
        n = self.number()
        self.codes[number] = (*names, self.line, self.data[self.at:self.at + n])
        self.at += n

    def old_record(self, token):
        kind, more = token & 15, token >> 4
        if kind in (1, 2):
            self.address = self.address + self.signed() & MASK
            size = self.number() if kind == 2 or OLD[more] not in SIMPLE_FREES else 0
            kind == 2 and self.signed()
            self.call(OLD[more], self.address, size)
        elif kind == 3:
            self.frame += self.signed()
            names = self.function()
            self.line += self.signed()
            self.codes[self.frame] = (*names, self.line, None)
        elif kind == 4:
            self.frame += self.signed()
            self.stack().append((self.frame, 0))
        elif kind == 9:
            del self.stack()[-(more + 1):]
        elif kind == 11:
            self.time()
        elif kind == 0:
            return False
        else:
            self.common(kind)
        return True

    def stack(self):
        return self.stacks.setdefault(self.tid, [])

    def time(self):
        self.number()
        ms = self.number()
        if ms < 1 << 63:
            self.ns = max(self.ns, (self.begin_ms + ms) * 1_000_000)

    def call(self, name, address, size):
        self.counts["calls"] += 1
        thread = self.threads.index(self.tid) + 1
        frames = self.stack()[self.skipped if self.tid == self.main else 0:]
        stack = "" if name in (*SIMPLE_FREES, "munmap") else "\n".join(self.place(*f) for f in frames)
        if name in SIMPLE_FREES or name == "munmap":
            n = self.unmap(address, size, thread) if name == "munmap" else self.free(address, thread)
            self.counts["unknown"] += n == 0
        elif name == "mmap":
            self.counts["again"] += self.unmap(address, size, thread)
            self.counts["blocks"] += 1
            self.map(address, size, thread, stack)
        elif address == 0:
            self.put("oom", 0, size, name, thread, stack)
        else:
            self.counts["again"] += self.free(address, thread)
            self.counts["blocks"] += 1
            self.alive[address] = (size, name)
            self.put("alloc", address, size, name, thread, stack)

    def put(self, op, address, size, name, thread, stack=""):
        self.events.append((op, address, size, name, thread, stack, self.ns))

    def free(self, address, thread):
        if address not in self.alive:
            return 0
        self.put("free_completed", address, *self.alive.pop(address), thread)
        return 1

    def map(self, address, size, thread, stack):
        self.ranges.append((address, size, thread, stack))
        self.put("alloc", address, size, "mmap", thread, stack)

    def unmap(self, begin, size, thread):
        """The rest of a range is told behind its end."""
        end, hit = begin + size, sorted(r for r in self.ranges if size > 0 and r[0] < begin + size and begin < r[0] + r[1])
        for r in hit:
            self.ranges.remove(r)
            self.put("free_completed", r[0], r[1], "mmap", thread)
            for a, b in ((r[0], begin), (end, r[0] + r[1])):
                if a < b:
                    self.map(a, b - a, *r[2:])
        return len(hit)

    # ---- sums ----

    def sums(self):
        frames, stacks = {}, [()]
        while (token := self.take("B")) != 15:
            if token == 1:
                self.take("QQQ")
            elif token == 2:
                tid, number, _, _, stack, _, n_peak, n_end, peak, end = self.take("QB7sQQQQQQQ")
                self.thread(tid)
                places = stacks[stack][self.skipped if tid == self.main else 0:]
                name = (NEW if self.version >= 12 else OLD)[number]
                self.rows.append((self.threads.index(tid) + 1, name, "\n".join(places), n_peak, peak, n_end, end))
            elif token == 3:
                frame, below = (self.number(), self.number()) if self.version >= 12 else self.take("QI")
                place = self.place(*frames[frame]) if self.version >= 12 else self.place(frame, 0)
                stacks.append((*stacks[below], place))
            elif token == 4 and self.version >= 12:
                number, code, offset, _ = self.number(), self.number(), self.signed(), self.take("B")
                frames[number] = (code, offset)
            elif token == 4:
                number, names = self.take("Q"), self.function()
                self.codes[number] = (*names, self.take("iB")[0], None)
            elif token == 13:
                self.number()
                self.native and self.number()
                self.counts["objects"] += 1
            elif token == 14:
                self.code()
            else:
                self.common(token)
