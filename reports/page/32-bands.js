// Stacked bands of the curve: in each column what lives in the moment in which most does, by kind, operator or tensor.

const mostInCurve = 8, kindOrder = ['Default', 'Workspace', 'KVCache', 'HostPinned', 'HostPageable'];
const bandWords = {kind: 'kinds', operator: 'operators', pool: 'pools', tensor: 'tensors', none: 'none'};
/// The name of the band that an item is in. Weights have one of their own, whatever is asked for.
function bandOf(s, i) {
  if (s.kindOf(i) === 'Persistent') return 'weights';
  if (state.bands === 'kind') return s.kindOf(i);
  if (state.bands === 'pool') return poolOf(s, i);
  if (state.bands === 'tensor') return s.name(i) || '(no name)';
  const name = s.name(i), role = s.ends[0].includes(name) ? 'input' : s.ends[1].includes(name) ? 'output' : s.roleOf(i);
  return s.owner(i) || (role === 'input' || role === 'output' || role === 'weight' ? '(' + role + 's)' : '(no operator)');
}
/// The pool that an item lies in: of a plan, of an allocator that tells its segments, or the allocator that has its kind.
function poolOf(s, i) {
  const kind = s.kindOf(i), named = (p) => p.name + (p.name.startsWith('pool ') ? '' : ' ' + p.kind);
  if (!s.poolOf) {
    settleRooms(s);
    s.poolOf = new Map();
    for (const r of s.rooms) {
      const p = s.pools[r.pool];
      for (const k of p.planned ? tensorsOf(s, r) : r.blocks.map((b) => b.item)) s.poolOf.set(k, named(p));
    }
  }
  const other = s.pools.find((p) => !p.planned && !p.tells_segments && p.kind === kind);
  return s.poolOf.get(i) || (other ? named(other) : kind);
}
/// [name, an item of it, its events] of all groups; of buffers what no tensor uses of them.
function bandGroups(s) {
  const groups = new Map(), unused = [];
  const put = (i, t, by) => {
    const name = bandOf(s, i);
    if (!groups.has(name)) groups.set(name, {name, item: i, events: []});
    groups.get(name).events.push([t, by]);
  };
  for (const [t, by, i] of tensorEvents(s, () => true)) { put(i, t, by); if (s.axis !== 'steps') unused.push([t, -by]); }
  if (s.axis === 'steps') return {list: [...groups.values()], unused};
  for (let i = 0; i < s.n; i++) {
    if (isTensor(s, i)) continue;
    put(i, s.items.begin[i], s.items.size_bytes[i]);
    if (s.items.open[i] !== 1) put(i, s.items.end[i], -s.items.size_bytes[i]);
  }
  for (const b of s.buffers) { unused.push([b.begin, b.size_bytes]); if (!b.open && b.end !== Infinity) unused.push([b.end, -b.size_bytes]); }
  return {list: [...groups.values()], unused};
}
/// From below: weights, the largest groups, the others as one, what is unused. Each with its curve. Of the largest what
/// is there most is lower, so that what stands on it is even; kinds are in their order, those of a buffer next to what is
/// unused of it.
function bandsOf(s) {
  s.bands = s.bands || {};
  if (s.bands[state.bands]) return s.bands[state.bands];
  const {list, unused} = bandGroups(s), isWeights = (b) => b.name === 'weights';
  const inBuffer = (b) => (s.buffers.some((buffer) => buffer.kind === b.name) ? 10 : 0);
  const place = (b) => (isWeights(b) ? -1 : state.bands === 'kind' ? (kindOrder.indexOf(b.name) + 9) % 9 + inBuffer(b) : 0), named = (a, b) => (a.name < b.name ? -1 : 1);
  for (const b of list) {
    const {t, bytes} = b.curve = sweepOf(b.events.slice());
    b.most = bytes.reduce((max, v) => Math.max(max, v), 0);
    b.area = bytes.reduce((sum, v, k) => sum + v * ((k + 1 < t.length ? t[k + 1] : s.span) - t[k]), 0);
  }
  list.sort((a, b) => isWeights(b) - isWeights(a) || b.most - a.most || named(a, b));
  const out = list.splice(0, mostInCurve).sort((a, b) => place(a) - place(b) || b.area - a.area || named(a, b));
  out.forEach((b, k) => { b.fill = state.bands === 'kind' || isWeights(b) ? s.items.fill[b.item] : [0, 1, 4, 5, 2][k % 5]; });
  if (list.length) out.push({name: list.length + ' others', fill: 3, curve: sweepOf(list.flatMap((b) => b.events))});
  if (unused.length) out.push({name: 'unused in the buffer', fill: -1, curve: sweepOf(unused)});
  s.bands[state.bands] = out;
  return out;
}
const hasBands = (s) => state.bands !== 'none' && isExact(s);
/// What each band has in each of n columns.
function bandColumns(s, n) {
  const span = state.t1 - state.t0, bands = bandsOf(s).map((b) => ({...b, bytes: new Float64Array(n)}));
  for (let x = 0; x < n; x++) {
    const from = state.t0 + x * span / n, at = fullest(s, from, Math.max(from, Math.ceil(from + span / n) - 1)).t;
    for (const b of bands) b.bytes[x] = Math.max(valueAt(b.curve, at), 0);
  }
  return bands;
}
function drawCurveBands(c, s, y, base) {
  const n = Math.max(1, Math.floor(c.plot)), g = c.g, foot = new Float64Array(n), labels = [];
  for (const b of bandColumns(s, n)) {
    let run = 0, longest = [0, 0]; // columns in which a name has room, one behind the other
    const middle = [];
    g.fillStyle = b.fill < 0 ? colours.soft : hatch(g, b.fill);
    for (let x = 0; x < n; x++) {
      const below = y(foot[x]), above = y(foot[x] += b.bytes[x]);
      if (below > above) g.fillRect(left + x, above, 1, below - above);
      middle.push((above + below) / 2);
      run = below - above >= 13 ? run + 1 : 0;
      if (run >= longest[0]) longest = [run, x];
    }
    labels.push([b.name, ...longest, middle]);
  }
  g.textAlign = 'left'; g.fillStyle = colours.fg;
  for (const [name, run, end, middle] of labels) {
    const text = cut(g, name, 160), w = Math.ceil(g.measureText(text).width) + 8;
    if (run >= w) label(g, text, left + end - w + 6, middle[end - (w >> 1)]);
  }
}
/// The same as words, at the cursor.
function bandText(s) {
  return 'By ' + state.bands + ': ' + bandsOf(s).map((b) => [b.name, valueAt(b.curve, state.cursor)]).filter(([, v]) => v > 0)
    .map(([name, v]) => isolated(name) + ' ' + bytes(v)).join(', ') + '.';
}
