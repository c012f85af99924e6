// What is held at a moment, exactly, from the items: what is live, by kind, where it lies.

/// A tensor of a plan; false: a block of a trace.
const isTensor = (s, i) => s.axis === 'steps' || s.items.role[i] !== null;
/// The item that holds the bytes of an alias.
function rootOf(s, i) {
  for (let k = 0; k < 100 && s.items.lies_in[i] !== null; k++) i = s.items.lies_in[i];
  return i;
}
/// Parts of lists of [lo, hi] that meet are one.
function joined(list) {
  const out = [];
  for (const [lo, hi] of list.sort((a, b) => a[0] - b[0] || a[1] - b[1])) {
    const last = out[out.length - 1];
    if (last && lo <= last[1]) last[1] = Math.max(last[1], hi);
    else out.push([lo, hi]);
  }
  return out;
}
/// Where an item lies, and all that lies in the same one at the same moment: each byte once, under the name of the root,
/// and in whole multiples of its alignment.
function stretchOf(s, i) {
  const it = s.items, root = rootOf(s, i), base = it.place[root] ?? 0, of = it.multiple_bytes[root] ?? 1;
  const lo = it.place[i] ?? 0, hi = lo + it.reserved_bytes[i];
  return root === i ? [lo, hi] : [lo - (lo - base) % of, base + Math.ceil((hi - base) / of) * of];
}
function sizeOf(list) { return list.reduce((sum, [lo, hi]) => sum + hi - lo, 0); }

/// How `value` changes over time, from `events` [t, change]: after all that happens at one moment.
function sweepOf(events) {
  events.sort((a, b) => a[0] - b[0]);
  const t = [], bytes = [];
  let value = 0;
  for (const [at, change] of events) {
    value += change;
    if (t.length && t[t.length - 1] === at) bytes[bytes.length - 1] = value;
    else { t.push(at); bytes.push(value); }
  }
  return {t, bytes};
}
function valueAt(curve, t) { const k = upTo(curve.t, t); return k > 0 ? curve.bytes[k - 1] : 0; }
function endOf(s, x, i) { return (x.open[i] === 1 ? Infinity : x.end[i]); }
/// Events of the tensors of a plan, an alias together with what it lies in: [t, change, that one].
function tensorEvents(s, wants) {
  const it = s.items, groups = new Map(), events = [];
  for (let i = 0; i < s.n; i++) {
    if (!isTensor(s, i) || !wants(i) || it.reserved_bytes[i] === 0) continue;
    const root = rootOf(s, i);
    if (groups.has(root)) groups.get(root).push(i); else groups.set(root, [i]);
  }
  for (const [root, list] of groups) {
    const times = [...new Set(list.flatMap((i) => [it.begin[i], it.end[i]]))].sort((a, b) => a - b);
    let before = 0;
    for (const t of times) {
      const now = sizeOf(joined(list.filter((i) => it.begin[i] <= t && t < it.end[i]).map((i) => stretchOf(s, i))));
      if (now !== before) events.push([t, now - before, root]);
      before = now;
    }
  }
  return events;
}
/// Events of blocks of a trace, those behind tensors too; of a plan those of its tensors.
function liveEvents(s, kind) {
  const it = s.items, events = [], put = (begin, end, size) => { events.push([begin, size]); if (end !== Infinity) events.push([end, -size]); };
  if (s.axis === 'steps') return tensorEvents(s, (i) => kind === null || s.kindOf(i) === kind);
  for (let i = 0; i < s.n; i++) if (!isTensor(s, i) && (kind === null || s.kindOf(i) === kind)) put(it.begin[i], endOf(s, it, i), it.size_bytes[i]);
  for (const b of s.buffers) if (kind === null || b.kind === kind) put(b.begin, b.open ? Infinity : b.end, b.size_bytes);
  return events;
}
/// Live bytes of one kind over time, of all with null; made when it is first asked for.
function liveOf(s, kind) {
  const key = kind === null ? '' : kind;
  s.liveCurves = s.liveCurves || new Map();
  if (!s.liveCurves.has(key)) s.liveCurves.set(key, sweepOf(liveEvents(s, kind)));
  return s.liveCurves.get(key);
}
/// What tensors hold of the buffers that they lie in.
function usedOf(s) {
  if (!s.usedCurve) s.usedCurve = sweepOf(s.axis === 'steps' ? [] : tensorEvents(s, () => true));
  return s.usedCurve;
}
/// Where items are left out, only columns of the curve are known.
const isExact = (s) => s.items_left_out === 0;
function liveAt(s, t) { return isExact(s) && s.axis !== 'steps' ? valueAt(liveOf(s, null), t) : curveAt(s, t); }
/// The first moment of the most live bytes in [t0, t1]; of several the one with the most in plans' buffers.
function fullest(s, t0, t1) {
  const live = liveOf(s, null), used = usedOf(s);
  let best = {t: t0, live: valueAt(live, t0), used: valueAt(used, t0)};
  for (const list of [live.t, used.t]) {
    for (let k = upTo(list, t0); k < list.length && list[k] <= t1; k++) {
      const now = {t: list[k], live: valueAt(live, list[k]), used: valueAt(used, list[k])};
      if (now.live > best.live || now.live === best.live && (now.used > best.used || now.used === best.used && now.t < best.t)) best = now;
    }
  }
  return best;
}
