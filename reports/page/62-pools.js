// Pools at the cursor: what each used and kept over the window of the pictures above, what a request would find, where a
// pool grew and when it could have shrunk, and whose blocks split its free memory at the worst moment.
const bandHeight = 40, bandGap = 14, mostBands = 24;

// ---- who lies in a room ----

/// Blocks of each segment, and of a plan's pool the events of its tensors; made once.
function settleRooms(s) {
  if (s.roomsSettled) return;
  s.roomsSettled = true;
  const it = s.items, list = s.rooms.filter((r) => !s.pools[r.pool].planned).sort((a, b) => a.base - b.base);
  const widest = list.reduce((most, r) => Math.max(most, r.bytes), 0);
  const bases = list.map((r) => r.base);
  for (const r of s.rooms) r.blocks = [];
  const put = (b) => {
    for (let k = upTo(bases, b.place) - 1; k >= 0 && list[k].base + widest > b.place; k--) {
      const r = list[k];
      if (b.place < r.base + r.bytes && b.end > r.begin && b.begin < r.end) r.blocks.push(b);
    }
  };
  for (let i = 0; i < s.n; i++) {
    if (isTensor(s, i) || it.place[i] === null || it.reserved_bytes[i] === 0) continue;
    put({place: it.place[i], bytes: it.reserved_bytes[i], begin: it.begin[i], end: endOf(s, it, i), name: s.name(i), item: i});
  }
  for (const b of s.buffers) put({place: b.place, bytes: b.reserved_bytes, begin: b.begin, end: b.open ? Infinity : b.end, name: b.name, item: -1});
}
/// Whether a tensor lies in a plan's pool.
function isIn(s, room, i) {
  const p = s.pools[room.pool], it = s.items, root = rootOf(s, i), at = it.place[root];
  if (at === null || at < room.base || at >= room.base + room.bytes || s.kindOf(i) !== p.kind) return false;
  if (it.region[root] !== null && s.regions[it.region[root]].device !== p.device) return false;
  return p.context === 0 || it.execution[i] !== null && s.executions.lane[it.execution[i]] === p.context - 1;
}
/// What lies in a room at t, by address: [{lo, hi, name, item}], from the room's begin.
function liesIn(s, room, t) {
  const it = s.items, out = [];
  if (!s.pools[room.pool].planned) {
    for (const b of room.blocks) if (b.begin <= t && t < b.end) out.push({lo: b.place - room.base, hi: Math.min(b.place - room.base + b.bytes, room.bytes), bytes: b.bytes, name: b.name, item: b.item});
  } else {
    return tensorsIn(s, room, tensorsOf(s, room).filter((i) => it.begin[i] <= t && t < endOf(s, it, i)));
  }
  return out.sort((a, b) => a.lo - b.lo || a.hi - b.hi);
}
/// All that ever lie in a pool of a plan.
function tensorsOf(s, room) {
  if (room.tensors) return room.tensors;
  room.tensors = [];
  for (let i = 0; i < s.n; i++) if (isTensor(s, i) && s.items.reserved_bytes[i] > 0 && isIn(s, room, i)) room.tensors.push(i);
  return room.tensors;
}
/// Where these lie, by address, each byte once: what lies in another one goes by its name.
function tensorsIn(s, room, list) {
  const groups = new Map(), out = [];
  for (const i of list) {
    const root = rootOf(s, i);
    if (groups.has(root)) groups.get(root).push(stretchOf(s, i)); else groups.set(root, [stretchOf(s, i)]);
  }
  for (const [root, parts] of groups) for (const [lo, hi] of joined(parts)) out.push({lo: lo - room.base, hi: hi - room.base, bytes: hi - lo, name: s.name(root), item: root});
  return out.sort((a, b) => a.lo - b.lo || a.hi - b.hi);
}
const roomsOf = (s, pool) => s.rooms.filter((r) => r.pool === pool);
const isThere = (r, t) => r.begin <= t && t < r.end;
/// Stretches without a block, by address.
function freeIn(room, list) {
  const out = [];
  let at = 0;
  for (const b of list) { if (b.lo > at) out.push([at, b.lo]); at = Math.max(at, b.hi); }
  if (at < room.bytes) out.push([at, room.bytes]);
  return out;
}
function largestOf(free) { return free.reduce((most, [lo, hi]) => Math.max(most, hi - lo), 0); }

/// Goes through the events of a room from the first on: look(t, list) with what lies there then. false ends it.
function walkRoom(s, room, look) {
  const events = [];
  if (s.pools[room.pool].planned) {
    const changes = tensorsOf(s, room).flatMap((i) => [[s.items.begin[i], 1, i], [s.items.end[i], 0, i]]).sort((a, b) => a[0] - b[0] || a[1] - b[1]), alive = new Set();
    for (let k = 0; k < changes.length; k++) {
      const [t, comes, i] = changes[k];
      if (comes) alive.add(i); else alive.delete(i);
      if ((k + 1 === changes.length || changes[k + 1][0] !== t) && look(t, tensorsIn(s, room, [...alive])) === false) return;
    }
    return;
  }
  for (const b of room.blocks) {
    const e = {lo: b.place - room.base, hi: Math.min(b.place - room.base + b.bytes, room.bytes), bytes: b.bytes, name: b.name, item: b.item};
    events.push([Math.max(b.begin, room.begin), 1, e]);
    if (b.end !== Infinity) events.push([b.end, 0, e]);
  }
  events.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  const list = [];
  const from = (lo) => { let a = 0, z = list.length; while (a < z) { const m = (a + z) >> 1; if (list[m].lo < lo) a = m + 1; else z = m; } return a; };
  if (look(room.begin, list) === false) return;
  for (let k = 0; k < events.length; k++) {
    const [t, comes, e] = events[k];
    if (t >= room.end) return;
    if (comes) list.splice(from(e.lo), 0, e);
    else { const at = list.indexOf(e, from(e.lo)); if (at >= 0) list.splice(at, 1); }
    if (k + 1 < events.length && events[k + 1][0] === t) continue;
    if (look(t, list) === false) return;
  }
}

// ---- a request ----

/// Where `size` bytes would fit in a pool at t; else the place where the fewest bytes are in the way, and when it would
/// fit first. Any place can be moved down to the end of a block: only these are tried.
function requestOf(s, pool, t, size) {
  let best = null;
  for (const room of roomsOf(s, pool)) {
    if (!isThere(room, t) || room.bytes < size) continue;
    const list = liesIn(s, room, t);
    for (const at of [0, ...list.map((b) => b.hi)].sort((a, b) => a - b)) {
      if (at + size > room.bytes) break;
      const those = list.filter((b) => b.lo < at + size && b.hi > at), sum = those.reduce((all, b) => all + b.bytes, 0);
      if (!best || sum < best.blocked || sum === best.blocked && (those.length < best.blockers.length || those.length === best.blockers.length && room.base + at < best.address))
        best = {blocked: sum, blockers: those, address: room.base + at, room};
      if (sum === 0) break;
    }
  }
  const fit = !best ? 'grow' : best.blockers.length ? 'blocked' : 'free';
  return {fit, ...(best || {blocked: 0, blockers: []}), next: fit === 'free' ? null : nextFit(s, pool, t, size)};
}
function nextFit(s, pool, t, size) {
  let next = null;
  for (const room of roomsOf(s, pool)) {
    if (room.bytes < size || room.end <= t) continue;
    walkRoom(s, room, (at, list) => {
      if (next !== null && at >= next) return false;
      if (at <= t || at >= s.span || largestOf(freeIn(room, list)) < size) return true;
      next = at;
      return false;
    });
  }
  return next;
}
function sizeFrom(text) {
  const found = /^([\d.]+) ?([kmgt]?)(i?b?)$/i.exec(text.trim());
  return found ? Math.round(+found[1] * 1024 ** ' kmgt'.indexOf(found[2].toLowerCase() || ' ')) : NaN;
}
function poolName(s, k) {
  const p = s.pools[k];
  return p.name + (p.context ? ' #' + p.context : '') + ', ' + p.kind + (p.device !== 'cpu' ? ' on ' + p.device : '');
}
function requestWords(s, k, size) {
  const r = requestOf(s, k, state.cursor, size), head = bytes(size) + ' ', line = document.createElement('p'), strong = document.createElement('b');
  const later = r.next === null ? 'It never would be later.' : 'It would be served at ';
  strong.textContent = poolName(s, k) + ': ';
  line.append(strong, head + (r.fit === 'free' ? 'fits now, at ' + placeWords(s, k, r) + '.' : r.fit === 'grow'
    ? 'would not be served now: nothing there is that large, it would have to grow. ' : 'would not be served now. At ' + placeWords(s, k, r) + ' the least is in the way, ' + inFull(r.blocked) + ': '));
  r.blockers.slice(0, 20).forEach((b, n) => line.append(n ? ', ' : '', b.item >= 0 ? itemButton(b.item, b.name) : b.name, ' ' + bytes(b.bytes)));
  if (r.fit === 'blocked') line.append('. ');
  if (r.fit !== 'free') line.append(later, r.next === null ? '' : momentButton(s, r.next));
  return line;
}
function placeWords(s, k, r) { return s.pools[k].planned ? exact(r.address - r.room.base) : '0x' + r.address.toString(16); }
function drawRequest() {
  const s = here(), box = el('pools-answer'), text = el('pools-request').value, size = sizeFrom(text);
  box.textContent = '';
  if (!text.trim()) return;
  if (!(size > 0)) { box.textContent = 'No size: ' + text + '. 64 MiB, 1.5G and 4096 are.'; return; }
  const p = document.createElement('p');
  p.className = 'mute';
  p.textContent = 'At ' + timeWords(s, state.cursor) + ', of any alignment:';
  box.append(p, ...s.pools.map((pool, k) => k).filter((k) => s.rooms.some((r) => r.pool === k)).map((k) => requestWords(s, k, size)));
}

// ---- over time ----

/// What blocks hold of an allocator that records no segments: those of its kind that lie in no other allocator's. Some take each block
/// from the system by itself; of the others it is not known what they keep.
const takesEach = ['cpu', 'caller', 'mapped', 'device'];
function blockCurves(s, k) {
  const p = s.pools[k], it = s.items, events = [], like = s.pools.filter((q) => !q.planned && !q.tells_segments && q.kind === p.kind);
  if (p.planned || p.tells_segments || like.length > 1) return null; // of several it is not known whose a block is
  const inRooms = new Set(s.rooms.flatMap((r) => (s.pools[r.pool].planned ? [] : r.blocks)).map((b) => b.item + ' ' + b.place));
  const put = (item, place, begin, end, size) => {
    if (size === 0 || inRooms.has(item + ' ' + place)) return;
    events.push([begin, size]);
    if (end !== Infinity) events.push([end, -size]);
  };
  for (let i = 0; i < s.n; i++) if (!isTensor(s, i) && s.kindOf(i) === p.kind) put(i, it.place[i], it.begin[i], endOf(s, it, i), it.reserved_bytes[i]);
  for (const b of s.buffers) if (b.kind === p.kind) put(-1, b.place, b.begin, b.open ? Infinity : b.end, b.reserved_bytes);
  const used = sweepOf(events);
  return {had: takesEach.includes(p.name) ? used : null, used};
}
/// What a pool has and what is used of it, as curves; had null: it is not known; null: its blocks are not known.
function poolCurves(s, k) {
  const p = s.pools[k], rooms = roomsOf(s, k);
  settleRooms(s);
  if (p.curves === undefined) p.curves = (() => {
    if (!rooms.length) return s.axis === 'steps' ? null : blockCurves(s, k);
    const had = sweepOf(rooms.flatMap((r) => [[r.begin, r.bytes], ...(r.end === Infinity ? [] : [[r.end, -r.bytes]])]));
    if (p.planned) return {had, used: sweepOf(rooms.flatMap((r) => tensorEvents(s, (i) => isIn(s, r, i))))};
    const events = rooms.flatMap((r) => r.blocks.flatMap((b) => [[Math.max(b.begin, r.begin), b.bytes], ...(Math.min(b.end, r.end) === Infinity ? [] : [[Math.min(b.end, r.end), -b.bytes]])]));
    return {had, used: sweepOf(events)};
  })();
  return p.curves;
}
function drawBands() {
  const s = here(), it = s.items, list = s.pools.map((p, k) => k).filter((k) => poolCurves(s, k)).slice(0, mostBands);
  const c = canvasOf('live-bands', list.length * (bandHeight + bandGap)), g = c.g, n = Math.max(1, Math.floor(c.plot));
  list.forEach((k, row) => {
    const {had, used} = poolCurves(s, k), top = (had || used).bytes.reduce((most, v) => Math.max(most, v), 1), base = row * (bandHeight + bandGap) + bandHeight + 8;
    const y = (v) => base - v / top * bandHeight, a = columnsOf(had || used, s, n).max, b = columnsOf(used, s, n).max, free = hatch(g, 1);
    for (let x = 0; x < n; x++) {
      g.fillStyle = free; g.fillRect(left + x, y(a[x]), 1, base - y(a[x]));
      g.fillStyle = colours.curve; g.fillRect(left + x, y(b[x]), 1, base - y(b[x]));
    }
    g.fillStyle = colours.mute; g.fillRect(left, base, c.plot, 1);
    const p = s.pools[k], lines = [p.name + (p.context ? ' #' + p.context : ''), p.kind, bytes(valueAt(used, state.cursor)) + (had ? ' of ' + bytes(valueAt(had, state.cursor)) : ' used')];
    g.textAlign = 'right';
    lines.forEach((words, n) => { g.fillStyle = n ? colours.mute : colours.fg; g.fillText(cut(g, words, left - 14), left - 8, base - bandHeight + 6 + 14 * n); });
    const named = s.axis === 'steps' ? throughPool(s, k) : [], begins = named.map((i) => it.begin[i]).sort((a, b) => a - b);
    for (const i of named) { // up to where the next one begins, which may lie in it
      const until = Math.min(it.end[i], begins[upTo(begins, it.begin[i])] ?? Infinity);
      const a = Math.max(xOf(c, it.begin[i]), left), room = Math.min(xOf(c, until), left + c.plot) - a;
      if (room < 30) continue;
      g.textAlign = 'left'; g.fillStyle = colours.fg; label(g, cut(g, s.name(i), room - 8), a + 4, base - 8);
    }
    g.fillStyle = colours.peak;
    if (!s.pools[k].planned) for (const r of roomsOf(s, k)) for (const [t, up] of [[r.begin, 1], [r.end, -1]]) {
      if (t < state.t0 || t > state.t1) continue;
      const x = xOf(c, t), tip = base - bandHeight - 4;
      g.beginPath(); g.moveTo(x, tip - 3 * up); g.lineTo(x - 4, tip + 3 * up); g.lineTo(x + 4, tip + 3 * up); g.fill();
    }
  });
  vertical(c, s.peak.t, colours.peak, [3, 3], 0, c.height);
  vertical(c, state.cursor, colours.accent, [], 0, c.height);
}

// ---- growth ----

/// From when on, until it was given back or to the end, the pool never used as much as without this segment it would
/// have had: so long it was not needed. null: it was needed to the end.
function spareSince(s, room) {
  const {had, used} = poolCurves(s, room.pool), end = Math.min(room.end, s.span);
  let since = room.begin;
  const needed = (t) => valueAt(had, t) - valueAt(used, t) < room.bytes;
  const times = [...new Set([...had.t, ...used.t])].filter((t) => t >= room.begin && t < end).sort((a, b) => a - b);
  for (let k = times.length - 1; k >= 0; k--) if (needed(times[k])) { since = k + 1 < times.length ? times[k + 1] : null; break; }
  return since;
}
function emptySince(s, room) {
  const last = room.blocks.reduce((most, b) => Math.max(most, Math.min(b.end, room.end)), room.begin);
  return last < Math.min(room.end, s.span) ? last : null;
}
/// Segments of a pool that were there when the axis begins, where there are several, are one: {pool, bytes, n}. The others follow.
function growthOf(s) {
  const list = s.rooms.filter((r) => !s.pools[r.pool].planned).sort((a, b) => a.begin - b.begin), before = new Map();
  for (const r of list) if (r.begin <= 0) before.set(r.pool, [...(before.get(r.pool) || []), r]);
  const isFolded = (r) => r.begin <= 0 && before.get(r.pool).length > 1;
  const folded = [...before].filter(([, rooms]) => rooms.length > 1).map(([pool, rooms]) => ({pool, bytes: rooms.reduce((sum, r) => sum + r.bytes, 0), n: rooms.length}));
  return [...folded, ...list.filter((r) => !isFolded(r))];
}
function drawGrowth() {
  const s = here(), list = growthOf(s), when = (t) => (t === null || t === Infinity ? '' : momentButton(s, t));
  const cells = (r) => (r.n ? [momentButton(s, 0), poolName(s, r.pool), {bytes: r.bytes}, r.n.toLocaleString('en') + ' segments that were there from the begin', '', '', '']
    : [momentButton(s, r.begin), poolName(s, r.pool), {bytes: r.bytes}, r.why || '', when(r.end), when(emptySince(s, r)), when(spareSince(s, r))]);
  el('pools-growth').replaceChildren(...(list.length ? [heading('Where pools grew'), tableOf(['Taken at', 'Pool', 'Bytes', 'For', 'Given back', 'Empty since', 'So much spare since'],
    list.slice(0, 500).map(cells), 'Where pools grew')] : []));
}
function heading(words) { const h = document.createElement('h4'); h.textContent = words; return h; }

// ---- fragmentation ----

/// The item that a block is, or a tensor of that name that is alive then; -1: none.
function itemOfSplit(s, p, id, name) {
  if (!p.planned) return s.items.id.indexOf(id);
  const alive = (i) => s.items.begin[i] <= p.worst.t && p.worst.t <= endOf(s, s.items, i), lane = (i) => p.context === 0 || s.items.execution[i] !== null && s.executions.lane[s.items.execution[i]] === p.context - 1;
  return (s.byName.get(name) || []).find((i) => isTensor(s, i) && alive(i) && lane(i)) ?? -1;
}
/// After which event each pool was fragmented most, as `goto fragmented` of the terminal view says it.
function drawWorst() {
  const s = here(), rows = [];
  s.pools.forEach((p, k) => {
    const w = p.worst, names = document.createElement('span');
    if (!w) return;
    w.splits.forEach(([id, name, size], n) => { const item = itemOfSplit(s, p, id, name); names.append(n ? ', ' : '', item >= 0 ? itemButton(item, name) : name, ' ' + bytes(size)); });
    if (!w.n_splits) names.append(w.share > 0 ? 'no block: it lies in several segments' : '');
    if (w.n_splits > w.splits.length) names.append(' and ' + (w.n_splits - w.splits.length) + ' more');
    rows.push([poolName(s, k), (100 * w.share).toFixed(1) + ' %', momentButton(s, w.t), {bytes: w.free_bytes}, {bytes: w.largest_free_bytes}, names]);
  });
  el('pools-worst').replaceChildren(...(rows.length ? [heading('Most fragmented'), tableOf(['Pool', 'Fragmented', 'At', 'Free', 'Largest free', 'Split by'], rows, 'Most fragmented')] : []));
}

// ---- tensors of a plan's pools ----

/// The tensors whose bytes lie in a pool of a colouring plan; a result in place or a view in that of what it lies in.
const isColoured = (s) => s.axis === 'steps' && s.pools.length > 0 && /^pool /.test(s.pools[0].name);
function throughPool(s, k) {
  const it = s.items, p = s.pools[k];
  if (!isColoured(s)) return [];
  p.tensors = p.tensors || roomsOf(s, k).flatMap((room) => {
    const out = [];
    for (let i = 0; i < s.n; i++) if (it.reserved_bytes[i] > 0 && isIn(s, room, i)) out.push(i);
    return out.sort((a, b) => it.reserved_bytes[b] - it.reserved_bytes[a] || it.begin[a] - it.begin[b]);
  });
  return p.tensors;
}
/// The least that is free of the pool while a tensor is there: what shares its bytes counts, each byte once.
function leftOver(s, room, i) {
  const {used} = poolCurves(s, room.pool), end = s.items.end[i];
  let most = valueAt(used, s.items.begin[i]);
  for (let k = upTo(used.t, s.items.begin[i]); k < used.t.length && used.t[k] < end; k++) most = Math.max(most, used.bytes[k]);
  return Math.max(0, room.bytes - most);
}
/// What each tensor leaves of its pool, while it is in it.
function drawWaste() {
  const s = here(), it = s.items, box = el('pools-waste');
  box.textContent = '';
  if (!isColoured(s)) return;
  const rows = s.rooms.flatMap((room) => throughPool(s, room.pool).map((i) => [room, i]));
  box.replaceChildren(heading('Tensors that pass through the pools'), tableOf(['Tensor', 'Pool', 'From', 'To', 'Bytes', 'Left over'], rows.slice(0, 2000).map(([room, i]) =>
    [itemButton(i, s.name(i)), s.pools[room.pool].name, momentButton(s, it.begin[i]), momentButton(s, it.end[i]), {bytes: it.reserved_bytes[i]}, {bytes: leftOver(s, room, i)}]), 'Tensors of the pools'));
}

function drawPools() {
  const s = here(), box = el('live-pools');
  const hasPools = (side) => side.rooms.length > 0 && isExact(side);
  box.hidden = !hasPools(s);
  for (const still of document.querySelectorAll('.pools')) still.classList.toggle('still', sides.every(hasPools));
  if (box.hidden) return;
  settleRooms(s);
  drawBands();
  if (el('pools-request').dataset.at !== state.side + '\n' + state.cursor) drawRequest();
  el('pools-request').dataset.at = state.side + '\n' + state.cursor;
  if (box.dataset.side === String(state.side)) return;
  box.dataset.side = state.side;
  drawGrowth();
  drawWorst();
  drawWaste();
}
function startPools() {
  el('pools-request').addEventListener('input', drawRequest);
  onChange(drawPools);
}
