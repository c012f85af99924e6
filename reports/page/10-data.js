// The data of the page: what the report embeds, with a few indices made once.
const doc = JSON.parse(document.getElementById('tidemark-data').textContent);
const el = (id) => document.getElementById(id);

function prepare(side) {
  const it = side.items, n = it.begin.length;
  const text = (column) => (i) => (it[column][i] === null ? '' : side.words[it[column][i]]);
  side.n = n;
  side.curve = spread(side.curve);
  side.predicted = spread(side.predicted);
  side.span = side.end - side.begin;
  // Times count from the origin; the pictures from the begin of the axis.
  side.zero = side.begin - side.origin;
  const shift = (list) => { for (let i = 0; i < list.length; i++) list[i] -= side.zero; };
  shift(it.begin); shift(it.end); shift(side.steps.begin);
  side.peak.t -= side.zero;
  side.name = text('name');
  side.owner = text('owner');
  side.kindOf = text('kind');
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
function time(side, t) {
  if (side.axis === 'steps') return String(Math.round(t));
  const scale = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s']].find(([f]) => side.span >= f * 2) || [1, 'ns'];
  const since = t + side.zero, v = since / scale[0];
  const more = Math.max(0, Math.ceil(Math.log10((since + 1) / (side.span + 1)))); // digits for the way to the axis
  return (scale[0] === 1 ? Math.round(v) : +v.toPrecision(Math.min(15, 6 + more))) + ' ' + scale[1];
}
function timeWords(side, t) { return side.axis === 'steps' ? 'step ' + time(side, t) : time(side, t); }
function stepAt(side, t) {
  const b = side.steps.begin;
  let lo = 0, hi = b.length;
  while (lo < hi) { const m = (lo + hi) >> 1; if (b[m] <= t) lo = m + 1; else hi = m; }
  return lo - 1;
}
