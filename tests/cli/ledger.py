# SPDX-License-Identifier: MIT
"""What the tables of a trace say, added up once more: docs/trace-format.md and plain SQL, nothing of the program's own. For sums.py."""
import collections
import sqlite3

ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, DISCARD, ENTER, LEAVE = 1, 3, 4, 5, 7, 16, 17
UNUSED = "unused in the buffer"

Event = collections.namedtuple("Event", "id run t op block kind device requested reserved address thread allocator name scope")
Part = collections.namedtuple("Part", "name begin end bytes kind device step scope size")
Step = collections.namedtuple("Step", "step begin end begin_ns")
Execution = collections.namedtuple("Execution", "run thread buffer first last steps")
# Whoever holds memory: a block, a tensor in a plan's buffer (`tensor` is its row of the plan), or what is unused of one.
Holder = collections.namedtuple("Holder", "block name scope step kind device allocator thread run requested reserved tensor alloc")


class Ledger:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.events = [Event(*row) for row in self.db.execute("""
            SELECT e.id, e.run_id, e.t_ns, e.op, e.block_id, k.name, d.name, e.requested_bytes, e.reserved_bytes, e.address, e.thread,
                   a.text, t.text, e.scope_id
            FROM event e LEFT JOIN kind k ON k.id = e.kind LEFT JOIN device d ON d.id = e.device
            LEFT JOIN name a ON a.id = e.allocator_id LEFT JOIN name t ON t.id = e.tag_id ORDER BY e.id""")]
        self.scopes = {i: (kind, step, parent, name) for i, kind, step, parent, name in self.db.execute(
            "SELECT s.id, s.kind, s.step, s.parent_id, n.text FROM scope s LEFT JOIN name n ON n.id = s.name_id")}
        self.modes = dict(self.db.execute("SELECT id, mode FROM run"))
        self.read_plans()
        self.executions = list(self.find_executions())

    def one(self, query, *values):
        return self.db.execute(query, values).fetchone()

    # ---- plans and executions ----

    def read_plans(self):
        self.steps, self.parts, self.buffers = {}, {}, {}
        for run_id, step, name in self.db.execute("SELECT run_id, step, name FROM plan_step"):
            self.steps[run_id, step] = name
        for run_id, *buffer in self.db.execute("SELECT p.run_id, k.name, p.device, p.bytes FROM plan_buffer p JOIN kind k ON k.id = p.kind"):
            self.buffers.setdefault(run_id, []).append(tuple(buffer))
        for run_id, name, begin, end, size, kind, device, born, own in self.db.execute("""
                SELECT p.run_id, t.name, p.begin_step, p.end_step, p.bytes, k.name, t.device, t.begin_step, t.size_bytes
                FROM plan_part p JOIN plan_tensor t ON t.run_id = p.run_id AND t.idx = p.idx JOIN kind k ON k.id = t.kind"""):
            self.parts.setdefault(run_id, []).append(Part(name, begin, end, size, kind, device, born, self.steps.get((run_id, born)), own))

    def find_executions(self):
        """From entering a scope of kind `run` to leaving it; a step lasts until the next one of its thread begins, the last one until
        it is left."""
        open_ = {}
        for e in self.events:
            if e.op not in (ENTER, LEAVE) or e.run is None:
                continue
            kind, step, parent, _ = self.scopes[e.scope]
            if kind == "run" and e.op == ENTER:
                open_[e.thread] = [e, []]
            elif kind == "run" and e.thread in open_:
                first, entered = open_.pop(e.thread)
                yield self.execution(first, entered, e)
            elif kind == "operator" and step is not None and e.thread in open_ and self.scopes[parent][0] == "run":
                open_[e.thread][1].append((e, step))
        for first, entered in open_.values():
            yield self.execution(first, entered, None)

    def execution(self, first, entered, last):
        begun = [(e, step) for e, step in entered if e.op == ENTER]
        left = [e.id for e, _ in entered if e.op == LEAVE]
        steps = []
        for i, (e, step) in enumerate(begun):
            if i + 1 < len(begun):
                end = begun[i + 1][0].id
            else:
                end = max(left) if left and max(left) > e.id else last.id if last else None
            steps.append(Step(step, e.id, end, e.t))
        return Execution(first.run, first.thread, first.block, first.id, last.id if last else None, steps)

    def buffer_parts(self, event, live):
        """{block: [parts]} of the plans' buffers after an event; an empty list where no step runs."""
        out = {}
        for x in self.executions:
            block = live.get(x.buffer)
            if block is None or self.modes[x.run] == "naive" or (block.kind, block.device, block.requested) not in self.buffers.get(x.run, []):
                continue
            mine = out.setdefault(x.buffer, [])
            for s in x.steps:
                if s.begin <= event and (s.end is None or event < s.end):
                    mine += [p for p in self.parts[x.run]
                             if p.begin <= s.step < p.end and (p.kind, p.device) == (block.kind, block.device)]
        return out

    # ---- one moment ----

    def live(self, event):
        """Blocks that live after an event, by the events alone: {block: its alloc}."""
        live = {}
        for e in self.events:
            if e.id > event:
                break
            if e.op == ALLOC:
                live[e.block] = e
            elif e.op == FREE:
                live.pop(e.block, None)
            elif e.op == DISCARD:
                for b in [b for b, a in live.items() if a.device == e.device and e.address <= a.address < e.address + e.reserved]:
                    del live[b]
        return live

    def holders(self, event):
        live = self.live(event)
        in_buffers = self.buffer_parts(event, live)
        out = []
        for block, a in live.items():
            kind, step, _, scope = self.scopes.get(a.scope, (None, None, None, None))
            of = Holder(block, a.name, scope, step, a.kind, a.device, a.allocator, a.thread, a.run, a.requested, a.reserved, None, a.id)
            if block not in in_buffers:
                out.append(of)
                continue
            for p in in_buffers[block]:
                out.append(of._replace(name=p.name, scope=p.scope, step=p.step, requested=p.bytes, reserved=p.bytes, tensor=p))
            rest = a.requested - sum(p.bytes for p in in_buffers[block])
            out.append(of._replace(name=UNUSED, scope=None, step=None, requested=rest, reserved=rest))
        return out

    def used(self, event):
        """What tensors use of plans' buffers then."""
        return sum(p.bytes for parts in self.buffer_parts(event, self.live(event)).values() for p in parts)

    def segments(self, event):
        """What allocators have taken from the system: {address: its event}."""
        out = {}
        for e in self.events:
            if e.id > event:
                break
            if e.op == SEGMENT_ALLOC:
                out[e.address] = e
            elif e.op == SEGMENT_FREE:
                out.pop(e.address, None)
        return out

    # ---- a span of events: a run, or 0, the whole trace ----

    def span(self, run_id):
        if run_id == 0:
            t = [e.t for e in self.events] + [t for t, in self.db.execute("SELECT begin_ns FROM run")]
            return 1, self.events[-1].id if self.events else 0, min(t, default=0), max((e.t for e in self.events), default=0)
        first, last, begin, end = self.one("SELECT first_event, last_event, begin_ns, end_ns FROM run WHERE id = ?", run_id)
        if last is None:
            last, end = self.events[-1].id, self.events[-1].t
        return first, last, begin, end

    def curve(self, run_id, key=lambda e: True):
        """After each event of the span, and before the first: (event, t, live requested bytes, live reserved bytes)."""
        first, last, begin, _ = self.span(run_id)
        live = {b: a for b, a in self.live(first - 1).items() if key(a)}
        requested, reserved = sum(a.requested for a in live.values()), sum(a.reserved for a in live.values())
        out = [(first - 1, begin, requested, reserved)]
        for e in self.events[first - self.events[0].id:] if self.events else []:
            if e.id > last:
                break
            ended = []
            if e.op == ALLOC and key(e):
                live[e.block] = e
                requested, reserved = requested + e.requested, reserved + e.reserved
            elif e.op == FREE and e.block in live:
                ended = [e.block]
            elif e.op == DISCARD:
                ended = [b for b, a in live.items() if a.device == e.device and e.address <= a.address < e.address + e.reserved]
            for b in ended:
                a = live.pop(b)
                requested, reserved = requested - a.requested, reserved - a.reserved
            out.append((e.id, e.t, requested, reserved))
        return out

    def peak(self, run_id):
        """Bytes and the event: of moments as high the first with the most tensor bytes in plans' buffers."""
        curve = self.curve(run_id)
        top = max(c[2] for c in curve)
        as_high = [c[0] for c in curve if c[2] == top]
        if not any(mode == "planned" for mode in self.modes.values()):
            return top, as_high[0]
        steps = {s.begin for x in self.executions for s in x.steps} | {as_high[0]}
        used = {e: self.used(e) for e in as_high if e in steps}
        return top, min(used, key=lambda e: (-used[e], e))

    def kinds(self, run_id):
        """{(kind, device): allocations, frees, requested, peak, peak reserved, live at the end}"""
        first, last, _, _ = self.span(run_id)
        out = {}
        before = self.live(first - 1)
        keys = {(a.kind, a.device) for a in before.values()}
        keys |= {(e.kind, e.device) for e in self.events if e.op == ALLOC and first <= e.id <= last}
        for key in keys:
            curve = self.curve(run_id, lambda e, key=key: (e.kind, e.device) == key)
            made = [e for e in self.events if e.op == ALLOC and first <= e.id <= last and (e.kind, e.device) == key]
            # Each block is freed once: what there was, less what is left.
            n = sum((a.kind, a.device) == key for a in before.values())
            left = sum((a.kind, a.device) == key for a in self.live(last).values())
            out[key] = (len(made), n + len(made) - left, sum(e.requested for e in made), max(c[2] for c in curve),
                        max(c[3] for c in curve), curve[-1][2])
        return out
