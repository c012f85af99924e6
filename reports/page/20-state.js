// The state of the view, and its twin behind # in the address: a link shows the same selection.
const state = {side: 0, t0: 0, t1: 0, sel: -1, q: '', kind: 'peak', bands: 'kind', fold: false, sort: 'size', down: true, view: 'lifetimes', cursor: 0, page: 0};
const listeners = [];
let drawAsked = false;

const here = () => sides[state.side];
function settle() {
  const s = here();
  const least = s.axis === 'steps' ? 1 : Math.max(1, s.span / 1e9);
  let span = Math.min(Math.max(state.t1 - state.t0, least), s.span);
  if (!(span > 0)) span = s.span;
  state.t0 = Math.min(Math.max(state.t0, 0), s.span - span);
  state.t1 = state.t0 + span;
  state.cursor = Math.min(Math.max(state.cursor, 0), Math.max(s.span - (s.axis === 'steps' ? 1 : 0), 0));
  if (state.sel > s.n || state.sel === s.n && !state.fold) state.sel = -1;
}
function whole() { state.t0 = 0; state.t1 = here().span; }

function toHash() {
  const s = here(), parts = [];
  const put = (key, value) => parts.push(key + '=' + encodeURIComponent(value));
  if (state.side > 0) put('side', 'b');
  if (state.view !== 'lifetimes') put('view', state.view);
  if (state.t0 > 0 || state.t1 < s.span) put('t', +state.t0.toFixed(3) + '-' + +state.t1.toFixed(3));
  if (state.q) put('q', state.q);
  if (state.kind !== 'peak') put('kind', state.kind);
  if (state.bands !== 'kind') put('bands', state.bands);
  if (state.fold !== s.folds_weights) put('weights', state.fold ? 'folded' : 'unfolded');
  const turned = state.down !== sorts[state.sort].down;
  if (state.sort !== 'size' || turned) put('sort', (turned ? '-' : '') + state.sort);
  if (state.sel >= 0 && state.sel < s.n) {
    const same = s.byName.get(s.name(state.sel));
    put('sel', s.name(state.sel));
    if (same.length > 1) put('nth', same.indexOf(state.sel) + 1);
  }
  return parts.length ? '#' + parts.join('&') : '';
}
/// The nth item of that name, the last where there are fewer; -1: none. Links of older pages end in '@' and a number,
/// which was another item's as soon as something changed: the name decides, the number only among items of that name.
function named(s, name, nth) {
  const same = s.byName.get(name);
  if (same) return same[Math.min(Math.max(Math.trunc(nth), 1), same.length) - 1];
  const old = /^([^]*)@(\d+)$/.exec(name), those = old ? s.byName.get(old[1]) : undefined;
  return those ? those.find((i) => s.items.id[i] === +old[2]) ?? those[0] : -1;
}
function fromHash() {
  const given = new Map(location.hash.slice(1).split('&').filter(Boolean).map((p) => {
    const at = p.indexOf('=');
    let value = '';
    try { value = decodeURIComponent(p.slice(at + 1)); } catch (e) { value = ''; }
    return [p.slice(0, at), value];
  }));
  state.side = given.get('side') === 'b' && sides.length > 1 ? 1 : 0;
  const s = here();
  state.view = given.get('view') === 'memory' && s.regions.length ? 'memory' : 'lifetimes';
  whole();
  const t = /^([\d.]+)-([\d.]+)$/.exec(given.get('t') || '');
  if (t && +t[2] > +t[1]) { state.t0 = +t[1]; state.t1 = +t[2]; }
  state.q = given.get('q') || '';
  state.kind = given.get('kind') || (state.q ? 'all' : 'peak');
  state.bands = Object.hasOwn(bandWords, given.get('bands')) ? given.get('bands') : 'kind';
  state.fold = given.has('weights') ? given.get('weights') === 'folded' : s.folds_weights;
  const [, turned, sort] = /^(-?)(.*)$/.exec(given.get('sort') || 'size');
  state.sort = Object.hasOwn(sorts, sort) ? sort : 'size';
  state.down = sorts[state.sort].down !== (turned === '-');
  state.sel = given.has('sel') ? named(s, given.get('sel'), +given.get('nth') || 1) : -1;
  state.cursor = s.peak.t;
  state.page = 0;
  settle();
  show(state.sel);
}
/// What hides an item gives way: it was asked for by name.
function show(i) {
  const s = here();
  if (i < 0 || i >= s.n) return;
  if (state.fold && s.isWeight(i)) state.fold = false;
  if (!passes(s, i)) state.kind = 'all';
  if (state.q && !matches(s, i, state.q.toLowerCase())) state.q = '';
}

/// After a change: the address is brought up to date and everything is drawn once, in the next frame.
function changed() {
  settle();
  const hash = toHash();
  if (hash !== location.hash) {
    try { history.replaceState(null, '', hash || location.pathname + location.search); } catch (e) { /* file: without history */ }
  }
  if (drawAsked) return;
  drawAsked = true;
  requestAnimationFrame(() => { drawAsked = false; for (const f of listeners) f(); });
}
function onChange(f) { listeners.push(f); }

// ---- rows: filtered and sorted ----

/// What is sorted by, and whether the largest comes first unless it is turned round.
const sorts = {
  name: {of: (s, i) => s.name(i), down: false},
  owner: {of: (s, i) => s.owner(i) || null, down: false},
  kind: {of: (s, i) => s.kindOf(i) || null, down: false},
  role: {of: (s, i) => s.roleOf(i) || null, down: false},
  size: {of: (s, i) => s.items.size_bytes[i], down: true},
  takes: {of: (s, i) => s.items.reserved_bytes[i], down: true},
  begin: {of: (s, i) => s.items.begin[i], down: false},
  end: {of: (s, i) => (s.items.open[i] === 1 ? null : s.items.end[i]), down: false},
  life: {of: (s, i) => s.items.end[i] - s.items.begin[i], down: true},
  place: {of: (s, i) => s.items.place[i], down: false},
};
function sortBy(sort) {
  state.down = sort === state.sort ? !state.down : sorts[sort].down;
  state.sort = sort;
}
/// What the field 'show' lets through: what is alive at the peak or the cursor, everything, what comes and goes, one kind.
function passes(s, i) {
  if (state.kind === 'all') return true;
  if (state.kind === 'peak') return aliveAt(s, i, s.peak.t);
  if (state.kind === 'cursor') return aliveAt(s, i, state.cursor);
  if (state.kind === 'changing') return s.items.begin[i] > 0 || s.items.end[i] < s.span;
  return s.kindOf(i) === state.kind;
}
/// By name or operator, or by the number in the column of places; 0x7f12 and @4096: what lies at that address, of a plan
/// at that place, at any time.
function matches(s, i, want) {
  const found = /^(0x[\da-f]+|@(?:0x[\da-f]+|\d+))$/.exec(want), it = s.items;
  if (!found) return s.haystack[i].includes(want) || it.place[i] !== null && String(it.place[i]) === want;
  const address = +found[1].replace('@', ''), lies = (at) => it.place[i] <= at && at < it.place[i] + it.reserved_bytes[i];
  if (it.place[i] === null) return false;
  if (s.axis === 'steps' || it.role[i] === null) return lies(address);
  return lies(address) || s.buffers.some((b) => b.place <= address && address < b.place + b.size_bytes && lies(address - b.place));
}
/// Who searches, or asks for weights alone, gets them one by one.
function foldsRows() { return state.fold && !state.q && state.kind !== 'Persistent'; }
const rowsMade = {key: '', rows: []};
/// Filtered and sorted; folded weights are one row.
function rows() {
  const key = [state.side, state.q, state.kind, state.sort, state.down, state.fold, state.kind === 'cursor' ? state.cursor : ''].join('\n');
  if (rowsMade.key === key) return rowsMade.rows;
  const s = here(), want = state.q.toLowerCase(), weights = [];
  let out = [];
  for (let i = 0; i < s.n; i++) {
    if (want && !matches(s, i, want)) continue;
    if (!passes(s, i)) continue;
    if (foldsRows() && s.isWeight(i)) weights.push(i);
    else out.push(i);
  }
  standFor(s, weights);
  if (weights.length) out.push(s.n);
  const by = sorts[state.sort];
  const values = new Map(out.map((i) => [i, by.of(s, i)]));
  out.sort((a, b) => compare(values.get(a), values.get(b), state.down) || a - b);
  rowsMade.key = key;
  rowsMade.rows = out;
  return out;
}
function aliveAt(s, i, t) { return s.items.begin[i] <= t && (t < s.items.end[i] || s.items.open[i] === 1 && t <= s.items.end[i]); }
