# SPDX-License-Identifier: MIT
"""What the tables of a trace say, added up once more for sums.py: docs/trace-format.md and plain SQL, nothing of the program's."""
import collections
import functools
import sqlite3

ALLOC, FREE, SEGMENT_ALLOC, SEGMENT_FREE, DISCARD, ENTER, LEAVE = 1, 3, 4, 5, 7, 16, 17
UNUSED = "unused in the buffer"

Event = collections.namedtuple("Event", "id run t op block kind device requested reserved address thread allocator name scope")
Part = collections.namedtuple("Part", "name begin end bytes kind device step scope size")
Step = collections.namedtuple("Step", "step begin end begin_ns")
Execution = collections.namedtuple("Execution", "run thread buffer first last steps")
# Whoever holds memory: a block, a tensor in a plan's buffer (`tensor` is its row of the plan), or what is unused of one.
Holder = collections.namedtuple("Holder", "block name scope step kind device allocator thread run requested reserved tensor")


def discarded(live, e):
    """Blocks that a pool_discard ends: of its device, in its range of addresses."""
    return [b for b, a in live.items() if a.device == e.device and e.address <= a.address < e.address + e.reserved]


class Ledger:
    def __init__(self, path):
        self.db = sqlite3.connect(path)
        self.events = [Event(*row) for row in self.db.execute("""
            SELECT e.id, e.run_id, e.t_ns, e.op, e.block_id, k.name, d.name, e.requested_bytes, e.reserved_bytes, e.address,
                   e.thread, a.text, t.text, e.scope_id
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
        self.steps, self.parts_of, self.buffers = {}, {}, {}
        for run_id, step, name in self.db.execute("SELECT run_id, step, name FROM plan_step"):
            self.steps[run_id, step] = name
        for run_id, *buffer in self.db.execute(
                "SELECT p.run_id, k.name, p.device, p.bytes FROM plan_buffer p JOIN kind k ON k.id = p.kind"):
            self.buffers.setdefault(run_id, []).append(tuple(buffer))
        for run_id, name, begin, end, size, kind, device, born, own in self.db.execute("""
                SELECT p.run_id, t.name, p.begin_step, p.end_step, p.bytes, k.name, t.device, t.begin_step, t.size_bytes
                FROM plan_part p JOIN plan_tensor t ON t.run_id = p.run_id AND t.idx = p.idx JOIN kind k ON k.id = t.kind"""):
            part = Part(name, begin, end, size, kind, device, born, self.steps.get((run_id, born)), own)
            self.parts_of.setdefault(run_id, []).append(part)

    def find_executions(self):
        """From entering a scope of kind `run` to leaving it; a step lasts until the next one of its thread begins, the last one
        until it is left."""
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
            if block is None or self.modes[x.run] == "naive":
                continue
            if (block.kind, block.device, block.requested) not in self.buffers.get(x.run, []):
                continue
            mine = out.setdefault(x.buffer, [])
            for s in x.steps:
                if s.begin <= event and (s.end is None or event < s.end):
                    mine += [p for p in self.parts_of[x.run]
                             if p.begin <= s.step < p.end and (p.kind, p.device) == (block.kind, block.device)]
        return out

    # ---- one moment ----

    @functools.lru_cache(None)
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
                for b in discarded(live, e):
                    del live[b]
        return live

    def holders(self, event):
        live = self.live(event)
        in_buffers = self.buffer_parts(event, live)
        out = []
        for block, a in live.items():
            kind, step, _, scope = self.scopes.get(a.scope, (None, None, None, None))
            of = Holder(block, a.name, scope, step, a.kind, a.device, a.allocator, a.thread, a.run, a.requested, a.reserved, None)
            if block not in in_buffers:
                out.append(of)
                continue
            for p in in_buffers[block]:
                out.append(of._replace(name=p.name, scope=p.scope, step=p.step, requested=p.bytes, reserved=p.bytes, tensor=p))
            rest = a.requested - sum(p.bytes for p in in_buffers[block])
            out.append(of._replace(name=UNUSED, scope=None, step=None, requested=rest, reserved=rest))
        return out

    @functools.lru_cache(None)
    def used(self, event):
        """What tensors use of plans' buffers then."""
        return sum(p.bytes for parts in self.buffer_parts(event, self.live(event)).values() for p in parts)

    def parts(self, event):
        """What is held then, in the parts of `explain`: each byte in one of them."""
        holders, live = self.holders(event), self.live(event)
        out = dict.fromkeys(("live", "rounding", "holes", "slack", "idle segments", UNUSED), 0)
        for h in holders:
            out[UNUSED if h.name == UNUSED else "live"] += h.requested
        out["rounding"] = sum(a.reserved - a.requested for a in live.values())
        for address, s in self.segments(event).items():
            inside = [a.reserved for a in live.values() if a.device == s.device and address <= a.address < address + s.reserved]
            out["holes" if inside else "idle segments"] += s.reserved - sum(inside)
        return out

    def pools(self, event):
        """{(allocator, device, kind): [reserved, active, requested, blocks]}: of an allocator that records no segments what its
        blocks hold."""
        tells = {(e.allocator, e.device, e.kind) for e in self.events if e.op == SEGMENT_ALLOC}
        out = collections.defaultdict(lambda: [0, 0, 0, 0])
        for a in self.live(event).values():
            key = (a.allocator, a.device, a.kind)
            out[key] = [x + y for x, y in zip(out[key], (0 if key in tells else a.reserved, a.reserved, a.requested, 1))]
        for s in self.segments(event).values():
            out[s.allocator, s.device, s.kind][0] += s.reserved
        return {key: sums for key, sums in out.items() if any(sums)}

    @functools.lru_cache(None)
    def peak_reserved(self, run_id):
        """The highest of what allocators hold, together and of each pool."""
        first, last, _, _ = self.span(run_id)
        now = collections.Counter({key: sums[0] for key, sums in self.pools(first - 1).items()})
        tells = {(e.allocator, e.device, e.kind) for e in self.events if e.op == SEGMENT_ALLOC}
        live, top, tops = dict(self.live(first - 1)), sum(now.values()), collections.Counter(now)
        for e in self.events[first - 1:last]:
            key = (e.allocator, e.device, e.kind)
            if e.op in (SEGMENT_ALLOC, SEGMENT_FREE):
                now[key] += e.reserved if e.op == SEGMENT_ALLOC else -e.reserved
            elif e.op == ALLOC:
                live[e.block] = e
                now[key] += 0 if key in tells else e.reserved
            elif e.op == FREE and e.block in live:
                a = live.pop(e.block)
                key = (a.allocator, a.device, a.kind)
                now[key] -= 0 if key in tells else a.reserved
            tops[key] = max(tops[key], now[key])
            top = max(top, sum(now.values()))
        return top, dict(tops)

    def leaked(self, run_id):
        """Blocks of the run that were never freed. What persists is no leak where the trace does not go to the end."""
        state, = self.one("SELECT value FROM meta WHERE key = 'state'")
        return self.one("""SELECT coalesce(sum(requested_bytes), 0) FROM blocks WHERE free_event IS NULL AND (run_id = ?1 OR ?1 = 0)
            AND (?2 = 'complete' OR kind <> 'Persistent' AND (run_id, name) NOT IN
                 (SELECT run_id, name FROM plan_tensor WHERE persistent AND run_id = ?1))""", run_id, state)[0]

    def plan_used(self, run_id, kind):
        """Of the buffer of that kind: at each step what tensors use of it."""
        n_steps, = self.one("SELECT n_steps FROM plan WHERE run_id = ?", run_id)
        return [sum(p.bytes for p in self.parts_of[run_id] if p.kind == kind and p.begin <= s < p.end) for s in range(n_steps)]

    @functools.lru_cache(None)
    def step_totals(self, run_id):
        """{step: [made, freed]} in the first execution: blocks by their events, weights aside; of a plan's buffer what storages
        take of it by their places: a tensor and all that lie in it, in whole multiples of its alignment."""
        steps = {step: (begin, end) for step, begin, end in self.db.execute(
            "SELECT step, begin_ns, end_ns FROM step WHERE run_id = ?", (run_id,))}
        out = {step: [0, 0] for step in steps}
        live = {}
        for e in self.events:
            if e.op == ALLOC:
                live[e.block] = e
            if e.op not in (ALLOC, FREE) or live[e.block].kind == "Persistent":
                continue
            for step, (begin, end) in steps.items():
                if end is not None and begin <= e.t < end:
                    out[step][e.op == FREE] += live[e.block].requested
        if self.modes.get(run_id) == "planned":
            before = {}
            for step in [*range(self.one("SELECT n_steps FROM plan WHERE run_id = ?", run_id)[0]), None]:
                now = self.storages(run_id, step)
                for root in before.keys() | now.keys():
                    change = now.get(root, 0) - before.get(root, 0)
                    at = (step if change > 0 else last) if change else None
                    if at in out:
                        out[at][change < 0] += abs(change)
                before, last = now, step
        return {step: tuple(sums) for step, sums in out.items()}

    def storages(self, run_id, step):
        """{tensor that lies in no other: bytes that it and all in it take of the buffer at the step}"""
        rows = {row[0]: row for row in self.db.execute("""
            SELECT idx, alias_of, offset_bytes, size_bytes, aligned_bytes, align_bytes, begin_step, end_step, unrounded
            FROM plan_tensor WHERE run_id = ? AND NOT persistent AND offset_bytes IS NOT NULL""", (run_id,))}
        places = {}
        for idx, of, place, size, aligned, _, begin, end, _ in rows.values():
            if step is None or not begin <= step < end:
                continue
            root = idx
            while rows[root][1] is not None:
                root = rows[root][1]
            base, unit = rows[root][2], 1 if rows[root][8] else rows[root][5]
            lo, hi = place - base, place - base + (aligned if root == idx else size)
            places.setdefault(root, []).append((lo // unit * unit, -(-hi // unit) * unit))
        out = {}
        for root, list_ in places.items():
            at = 0
            for lo, hi in sorted(list_):
                out[root] = out.get(root, 0) + max(0, hi - max(lo, at))
                at = max(at, hi)
        return out

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
                ended = discarded(live, e)
            for b in ended:
                a = live.pop(b)
                requested, reserved = requested - a.requested, reserved - a.reserved
            out.append((e.id, e.t, requested, reserved))
        return out

    @functools.lru_cache(None)
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

    @functools.lru_cache(None)
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
