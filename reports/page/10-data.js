// The data of the page: what the report embeds, with a few indices made once.
const doc = JSON.parse(document.getElementById('tidemark-data').textContent);
const el = (id) => document.getElementById(id);

function prepare(side) {
  repeat(side);
  const it = side.items, n = it.begin.length;
  const text = (column) => (i) => (it[column][i] === null ? '' : side.words[it[column][i]]);
  side.n = n;
  side.curve = spread(side.curve);
  side.predicted = spread(side.predicted);
  side.reserved_curve = spread(side.reserved_curve);
  side.span = side.end - side.begin;
  // Times count from the origin; the pictures from the begin of the axis.
  side.zero = side.begin - side.origin;
  const shift = (list) => { for (let i = 0; i < list.length; i++) list[i] -= side.zero; };
  shift(it.begin); shift(it.end); shift(side.steps.begin);
  side.peak.t -= side.zero;
  for (const p of side.pools) if (p.worst) p.worst.t -= side.zero;
  for (const r of [...side.rooms, ...side.buffers]) { r.begin -= side.zero; r.end = r.end === null ? Infinity : r.end - side.zero; }
  addWeights(side);
  addSteps(side);
  const named = text('name');
  side.name = (i) => (i === n ? 'weights (' + side.weights.length.toLocaleString('en') + ')' : named(i));
  side.owner = text('owner');
  side.kindOf = (i) => (i === n ? 'Persistent' : text('kind')(i));
  side.roleOf = text('role');
  side.haystack = new Array(n);
  for (let i = 0; i < n; i++) side.haystack[i] = (side.name(i) + '\n' + side.owner(i)).toLowerCase();
  side.byName = new Map(); // all that have a name, in their order: the first, the second …
  for (let i = 0; i < n; i++) {
    const same = side.byName.get(side.name(i));
    if (same) same.push(i); else side.byName.set(side.name(i), [i]);
  }
  return side;
}
/// The tensors of a planned run are written once: each execution that has them has them from step to step. With these
/// the items are all there are, in their order: by begin, then the largest first, then by execution and number.
function repeat(side) {
  for (const columns of [side.items, side.tensors]) {
    if (!columns) continue;
    const n = columns.n;
    delete columns.n;
    for (const column of Object.keys(columns)) {
      const is = columns[column];
      let sum = 0;
      if (is.period) { while (is.first.length < n) is.first.push(is.first[is.first.length - is.period]); columns[column] = is.first; } // as some rows before
      else if (is.steps) columns[column] = is.steps.map((by) => (sum += by)); // what each adds to the one before
      else if (typeof is === 'string') columns[column] = columns[is].slice(); // another column once more
      else if (is.length < n) columns[column] = new Array(n).fill(is[0]); // what is the same in all rows stands once
    }
  }
  const it = side.items, t = side.tensors, x = side.executions;
  const made = it.begin.map((begin, i) => ({begin, end: it.end[i], size: it.size_bytes[i], execution: -1, at: i, number: i}));
  if (t) x.idle.forEach((idle, k) => {
    if (idle === null) return;
    let now = x.begin[k];
    const times = x.steps[k].map((by) => (now += by));
    times.push(idle);
    t.from.forEach((from, at) => made.push({begin: times[from], end: times[t.to[at]], size: t.size_bytes[at], execution: k, at, number: t.number[at]}));
  });
  if (t) made.sort((a, b) => a.begin - b.begin || b.size - a.size || a.execution - b.execution || a.number - b.number);
  const sizes = new Map(); // what came out of tensors that are sized while running, in each execution
  if (side.sizes) side.sizes.tensor.forEach((number, i) => sizes.set(side.sizes.execution[i] + ' ' + number, i));
  const sized = (m, column) => { const i = sizes.get(m.execution + ' ' + m.number); return i === undefined ? null : side.sizes[column][i]; };
  // Each context has a buffer of its own: where an execution has what is written in the first one's region.
  const regions = x ? x.regions.map((pairs) => new Map(pairs || [])) : [];
  const place = new Map(); // where each tensor of each execution stands
  made.forEach((m, i) => { if (m.execution >= 0) place.set(m.execution * t.from.length + m.at, i); });
  const all = {execution: made.map((m) => (m.execution < 0 ? null : m.execution))};
  for (const column of Object.keys(it)) {
    const other = {begin: (m) => m.begin, end: (m) => m.end, id: () => null, open: () => 0,
      extents: (m) => sized(m, 'extents'), actual_bytes: (m) => sized(m, 'actual_bytes'),
      region: (m) => regions[m.execution].get(t.region[m.at]) ?? t.region[m.at],
      lies_in: (m) => (t.lies_in[m.at] === null ? null : place.get(m.execution * t.from.length + t.lies_in[m.at]))}[column];
    all[column] = made.map((m) => (m.execution < 0 ? it[column][m.at] : other ? other(m) : t[column][m.at]));
  }
  side.items = all;
}
/// Item n, behind all others, stands for the weights while they are folded; `weights` are those that it stands for now.
function addWeights(side) {
  const it = side.items, weight = side.words.indexOf('Persistent');
  for (const column of Object.keys(it)) it[column].push(null);
  it.begin[side.n] = it.end[side.n] = it.open[side.n] = it.size_bytes[side.n] = it.reserved_bytes[side.n] = 0;
  side.isWeight = (i) => it.kind[i] === weight && weight >= 0;
  side.counts = (i) => (it.lies_in[i] !== null ? 0 : side.axis === 'steps' ? it.reserved_bytes[i] : it.size_bytes[i]);
  side.weights = [];
  side.weightBytes = side.nWeights = 0; // that are alive at the peak
  for (let i = 0; i < side.n; i++) {
    if (!side.isWeight(i)) continue;
    it.fill[side.n] = it.fill[i];
    if (!(it.begin[i] <= side.peak.t && (side.peak.t < it.end[i] || it.open[i] === 1))) continue;
    side.weightBytes += side.counts(i);
    side.nWeights++;
  }
}
/// The row of the weights stands for these.
function standFor(side, weights) {
  const it = side.items, n = side.n;
  side.weights = weights;
  it.begin[n] = Infinity;
  it.end[n] = it.size_bytes[n] = it.reserved_bytes[n] = 0;
  for (const i of weights) {
    it.begin[n] = Math.min(it.begin[n], it.begin[i]);
    it.end[n] = Math.max(it.end[n], it.end[i]);
    it.size_bytes[n] += it.size_bytes[i];
    it.reserved_bytes[n] += it.reserved_bytes[i];
  }
}
/// When steps began, in all executions that tell it: `stepT` rising, `stepI` which; -1: none from there on.
function addSteps(side) {
  const x = side.executions, found = [];
  if (x) {
    for (const list of [x.begin, x.end, x.peak_at]) for (let k = 0; k < list.length; k++) list[k] -= side.zero;
    x.begin.forEach((begin, k) => {
      let t = begin;
      if (x.steps[k]) x.steps[k].forEach((by, i) => found.push([t += by, i]));
      else if (k === 0) side.steps.begin.forEach((at, i) => found.push([at, i]));
      found.push([x.end[k], -1]);
    });
    found.sort((a, b) => a[0] - b[0]);
  } else {
    side.steps.begin.forEach((at, i) => found.push([at, i]));
  }
  side.stepT = found.map((f) => f[0]);
  side.stepI = found.map((f) => f[1]);
}
/// Columns that differ from the one before, as all columns.
function spread(curve) {
  if (!curve || curve.t) return curve;
  const out = {min: new Array(curve.columns), max: new Array(curve.columns)};
  let k = -1;
  for (let i = 0; i < curve.columns; i++) {
    if (curve.at[k + 1] === i) k++;
    out.max[i] = curve.max[k];
    out.min[i] = curve.min ? curve.min[k] : curve.max[k];
  }
  return out;
}
/// Of an item that is sized while running the most that it can be; '' of any other one.
function boundOf(s, i) { return s.items.bound && s.items.bound[i] !== null ? s.words[s.items.bound[i]] : ''; }
/// What came out of it: "[12x6], 288 B (4 % of its place)"; '' where nothing is known.
function cameOut(s, i) {
  const it = s.items, actual = boundOf(s, i) ? it.actual_bytes[i] : null;
  if (actual === null || actual === undefined) return '';
  const extents = it.extents[i] === null ? '' : s.words[it.extents[i]] + ', ';
  return extents + inFull(actual) + (it.size_bytes[i] > 0 ? ' (' + (100 * actual / it.size_bytes[i]).toFixed(1) + ' % of its place)' : '');
}
/// A name within a line: one that is written from right to left does not turn round what stands beside it.
function isolated(name) { return '\u2066' + name + '\u2069'; }
const sides = doc.sides.map(prepare);

// ---- numbers for people ----

const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];
function bytes(n) {
  if (n === null || n === undefined) return 'not known';
  let u = 0, v = Math.abs(n);
  while (v >= 1024 && u < units.length - 1) { v /= 1024; u++; }
  const digits = u === 0 ? 0 : v >= 100 ? 0 : v >= 10 ? 1 : 2;
  return (n < 0 ? '\u2212' : '') + v.toFixed(digits) + ' ' + units[u];
}
function exact(n) { return n.toLocaleString('en') + ' B'; }
function scaleOfTime(side) { return [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s']].find(([f]) => side.span >= f * 2) || [1, 'ns']; }
function time(side, t) {
  if (side.axis === 'steps') return String(Math.round(t));
  const scale = scaleOfTime(side);
  const since = t + side.zero, v = since / scale[0];
  const more = Math.max(0, Math.ceil(Math.log10((since + 1) / (side.span + 1)))); // digits for the way to the axis
  return (scale[0] === 1 ? Math.round(v) : +v.toPrecision(Math.min(15, 6 + more))) + ' ' + scale[1];
}
function timeWords(side, t) { return side.axis === 'steps' ? 'step ' + time(side, t) : time(side, t); }
/// How many of a rising list are no more than t.
function upTo(list, t) {
  let lo = 0, hi = list.length;
  while (lo < hi) { const m = (lo + hi) >> 1; if (list[m] <= t) lo = m + 1; else hi = m; }
  return lo;
}
/// The step that runs at t; -1: none, or not known.
function stepAt(side, t) {
  const at = upTo(side.stepT, t) - 1;
  return at >= 0 ? side.stepI[at] : -1;
}
function bodyOf(side, step) { return step < 0 || !side.steps.body || side.steps.body[step] === null ? '' : side.words[side.steps.body[step]]; }
function stepName(side, step) { return step < 0 || side.steps.name[step] === null ? '' : side.words[side.steps.name[step]]; }
/// The execution that goes on at t, of several the one that began last; -1: none.
function executionAt(side, t) {
  const x = side.executions;
  for (let k = x ? upTo(x.begin, t) - 1 : -1; k >= 0; k--) if (t < x.end[k]) return k;
  return -1;
}
