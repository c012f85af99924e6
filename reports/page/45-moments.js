// Moments by their names, as `tidemark trace --at` takes them, what each kind of memory holds at the cursor, and what
// differs between two moments.
const unitsOfMoment = {ns: 1, us: 1e3, '\u00b5s': 1e3, ms: 1e6, s: 1e9};

/// Where step `text` (its number or its name) of execution k begins; null: there is none of that name.
function stepMoment(s, k, text) {
  const x = s.executions, number = /^\d+$/.test(text) ? +text : s.steps.name.findIndex((n) => n !== null && s.words[n] === text);
  if (number < 0 || number >= s.steps.begin.length) return null;
  if (k === null) return s.steps.begin[number];
  if (!x.steps[k]) return null;
  let t = x.begin[k];
  for (let i = 0; i <= number; i++) t += x.steps[k][i];
  return t;
}
function executionMoment(s, number, part) {
  const x = s.executions, k = +number;
  if (!x || k >= x.begin.length) return null;
  if (part === undefined) return x.peak_at[k];
  if (part === 'begin') return x.begin[k];
  if (part === 'end') return x.end[k];
  return stepMoment(s, k, part);
}
/// peak, begin, end, 50%, 12.5ms (from the begin of the trace), exec:12, exec:12:conv1; of a plan also 7, step 7, conv1.
/// null: there is no such moment.
function momentOf(s, text) {
  const words = text.trim();
  if (words === 'peak') return s.peak.t;
  if (words === 'begin') return 0;
  if (words === 'end') return s.axis === 'steps' ? s.span - 1 : s.span;
  if (words === 'cursor') return state.cursor;
  let found = /^([\d.]+) ?%$/.exec(words);
  if (found) return Math.min(s.span, Math.floor(+found[1] / 100 * s.span));
  found = /^exec:(\d+)(?::(.+))?$/.exec(words);
  if (found) return executionMoment(s, found[1], found[2]);
  found = /^([\d.]+) ?([a-z\u00b5]+)$/.exec(words);
  if (found && s.axis !== 'steps' && unitsOfMoment[found[2]]) return inside(s, Math.round(+found[1] * unitsOfMoment[found[2]]) - s.zero);
  if (s.axis === 'steps') return stepMoment(s, null, words.replace(/^step +/, ''));
  return null;
}
function inside(s, t) { return t >= 0 && t <= s.span ? t : null; }
/// The cursor goes there, and what is alive then is listed. false: there is no such moment.
function goTo(text) {
  const t = momentOf(here(), text);
  if (t === null || !Number.isFinite(t)) return false;
  state.cursor = t;
  state.kind = 'cursor';
  state.page = 0;
  el('live-rows').scrollTop = 0;
  intoView();
  showControls();
  changed();
  return true;
}
function intoView() {
  if (state.cursor >= state.t0 && state.cursor < state.t1) return;
  const half = (state.t1 - state.t0) / 2;
  state.t0 = state.cursor - half;
  state.t1 = state.cursor + half;
}

// ---- tables that the script makes ----

/// A moment that can be gone to.
function momentButton(s, t) {
  const b = document.createElement('button');
  b.type = 'button';
  b.className = 'pick when';
  b.textContent = time(s, t);
  b.addEventListener('click', () => { state.cursor = t; intoView(); changed(); });
  return b;
}
function itemButton(i, name) {
  const b = document.createElement('button');
  b.type = 'button';
  b.className = 'pick';
  b.textContent = name || '(no name)';
  b.addEventListener('click', () => select(i));
  return b;
}
/// heads: words; rows: cells, each a text, a number of bytes as {bytes}, or an element. Sorts as all tables do.
function tableOf(heads, rows, label) {
  const box = document.createElement('div'), table = document.createElement('table'), head = table.createTHead().insertRow(), body = table.createTBody();
  box.className = 'scroll';
  box.tabIndex = 0;
  box.setAttribute('role', 'region');
  box.setAttribute('aria-label', label);
  for (const words of heads) {
    const th = document.createElement('th');
    th.scope = 'col';
    th.textContent = words;
    head.appendChild(th);
  }
  const isWords = (v) => typeof v === 'string' && !/^[\d.]+( \S+)?$/.test(v) || v instanceof Node && !v.classList.contains('when');
  for (const cells of rows) {
    const tr = body.insertRow();
    cells.forEach((v, k) => {
      const td = cell(tr, '', k === 0 ? 'head' : 'text');
      if (v instanceof Node) td.appendChild(v);
      else if (v !== null && typeof v === 'object') { td.textContent = bytes(v.bytes); td.title = v.bytes + ' B'; }
      else td.textContent = v === null ? '' : v;
      if (k === 0 && !td.title && !isWords(v)) td.title = td.textContent; // sorts as a number
    });
  }
  table.className = heads.map((h, k) => (k === 0 || rows.some((cells) => isWords(cells[k])) ? 'c' + k : '')).join(' ').trim();
  box.appendChild(table);
  sortable(table);
  return box;
}

// ---- kinds at the cursor ----

function drawKinds() {
  const s = here(), box = el('live-kinds');
  if (!isExact(s)) { box.textContent = ''; return; }
  if (['operator', 'pool', 'tensor'].includes(state.bands)) { box.textContent = bandText(s); return; }
  const kinds = [...new Set(s.items.kind.slice(0, s.n).filter((k) => k !== null).map((k) => s.words[k]).concat(s.buffers.map((b) => b.kind)))].sort();
  const parts = kinds.map((kind) => kind + ' ' + bytes(valueAt(liveOf(s, kind), state.cursor)));
  box.textContent = parts.length ? 'By kind: ' + parts.join(', ') + '.' : '';
}
/// Each kind's own peak and when it is.
function drawKindPeaks() {
  const s = here(), box = el('live-kind-peaks');
  if (box.dataset.side === String(state.side)) return;
  box.dataset.side = state.side;
  if (!isExact(s)) { box.textContent = 'Not known: this page has the largest items alone.'; return; }
  const kinds = [...new Set(s.items.kind.slice(0, s.n).filter((k) => k !== null).map((k) => s.words[k]).concat(s.buffers.map((b) => b.kind)))].sort();
  box.replaceChildren(tableOf(['Kind', 'Peak', 'First at', 'Until'], kinds.map((kind) => {
    const curve = liveOf(s, kind);
    let best = 0;
    curve.bytes.forEach((v, k) => { if (v > curve.bytes[best]) best = k; });
    const until = best + 1 < curve.t.length ? curve.t[best + 1] : s.span;
    return [kind, {bytes: curve.bytes[best] || 0}, momentButton(s, curve.t[best] || 0), time(s, until)];
  }), 'Peaks of the kinds'));
}

// ---- executions ----

function drawExecutionTable() {
  const s = here(), x = s.executions, box = el('live-executions');
  if (box.dataset.side === String(state.side)) return;
  box.dataset.side = state.side;
  el('live-executions-box').hidden = !x;
  if (!x) return;
  const several = x.lanes > 1, note = document.createElement('p');
  note.className = 'mute';
  note.textContent = 'Peak: the most that is live while it goes on, whoever made it' + (several ? ', other contexts too' : '') + '. Allocations and what was taken from the system: by its own thread' + (several ? ', so that each counts once' : '') + '.';
  box.replaceChildren(note, tableOf(['Execution', ...(several ? ['Context'] : []), 'Took', 'Peak', 'At', 'Step', 'Allocations', 'Taken from the system'], x.begin.map((begin, k) =>
    [String(k), ...(several ? [String(x.lane[k] + 1)] : []), timeSpan(x.end[k] - begin), {bytes: x.peak_bytes[k]}, momentButton(s, x.peak_at[k]), x.peak_step[k] === null ? '' : stepName(s, x.peak_step[k]),
      String(x.allocations[k]), x.taken_bytes[k] === null ? '' : {bytes: x.taken_bytes[k]}]), 'Executions'));
}
function timeSpan(ns) {
  const [f, unit] = [[1e9, 's'], [1e6, 'ms'], [1e3, '\u00b5s']].find(([by]) => ns >= by) || [1, 'ns'];
  return +(ns / f).toPrecision(4) + ' ' + unit;
}

// ---- two moments ----

/// What is alive at t by name: how many, and their bytes; of buffers what no tensor uses.
function namesAt(s, t) {
  const it = s.items, found = new Map();
  const add = (name, n, size) => { const e = found.get(name) || {n: 0, bytes: 0}; e.n += n; e.bytes += size; found.set(name, e); };
  const groups = new Map(); // tensors that lie in one another: each has what those before it have not
  for (let i = 0; i < s.n; i++) {
    if (!(it.begin[i] <= t && t < endOf(s, it, i))) continue;
    const root = rootOf(s, i);
    if (!isTensor(s, i)) add(s.name(i), 1, it.size_bytes[i]);
    else if (groups.has(root)) groups.get(root).push(i);
    else groups.set(root, [i]);
  }
  for (const [root, list] of groups) {
    let before = [];
    for (const i of list.sort((a, b) => (b === root) - (a === root) || a - b)) {
      const now = joined([...before.map((p) => [...p]), stretchOf(s, i)]);
      add(s.name(i), 1, sizeOf(now) - sizeOf(before));
      before = now;
    }
  }
  for (const b of s.buffers) if (b.begin <= t && (b.open || t < b.end)) add('unused in the buffer', 1, b.size_bytes - valueAt(usedOf(s), t));
  return found;
}
function compareMoments() {
  const s = here(), out = el('two-out'), from = el('two-a').value, to = el('two-b').value;
  const a = momentOf(s, from), b = momentOf(s, to);
  if (a === null || b === null) { out.textContent = 'There is no moment \u201c' + (a === null ? from : to) + '\u201d: ' + momentWords(s); return; }
  const then = namesAt(s, a), now = namesAt(s, b), rows = [];
  let same = 0;
  for (const name of new Set([...then.keys(), ...now.keys()])) {
    const x = then.get(name) || {n: 0, bytes: 0}, y = now.get(name) || {n: 0, bytes: 0};
    if (x.bytes === y.bytes && x.n === y.n) same++;
    else rows.push([name, x, y]);
  }
  rows.sort((p, q) => Math.abs(q[2].bytes - q[1].bytes) - Math.abs(p[2].bytes - p[1].bytes));
  const p = document.createElement('p');
  p.textContent = timeWords(s, a) + ': ' + inFull(liveAt(s, a)) + ' live; ' + timeWords(s, b) + ': ' + inFull(liveAt(s, b)) + ' live. ' +
    rows.length + (rows.length === 1 ? ' name differs, ' : ' names differ, ') + same + ' are the same.';
  const list = rows.slice(0, 200).map(([name, x, y]) => [name || '(no name)', String(x.n), String(y.n), {bytes: x.bytes}, {bytes: y.bytes}, {bytes: y.bytes - x.bytes}]);
  out.replaceChildren(p, ...(list.length ? [tableOf(['Name', 'Blocks', 'Blocks then', 'Bytes', 'Bytes then', 'Change'], list, 'What differs')] : []));
}
function momentWords(s) {
  return s.axis === 'steps' ? 'peak, end, 50%, a step\u2019s number or name' : 'peak, begin, end, 50%, 12.5ms' + (s.executions ? ', exec:0, exec:0:end, exec:0:3' : '');
}
function startMoments() {
  const go = () => { const ok = goTo(el('live-goto').value); el('live-goto').setAttribute('aria-invalid', String(!ok)); el('live-goto-note').textContent = ok ? '' : 'No such moment: ' + momentWords(here()); };
  el('live-goto').addEventListener('keydown', (e) => { if (e.key === 'Enter') { e.preventDefault(); go(); } });
  el('live-goto').addEventListener('change', go);
  for (const id of ['two-a', 'two-b']) el(id).addEventListener('keydown', (e) => { if (e.key === 'Enter') compareMoments(); });
  el('two-go').addEventListener('click', compareMoments);
  const lists = [['live-two-box', () => {}], ['live-kind-box', drawKindPeaks], ['live-executions-box', drawExecutionTable]];
  for (const [id, f] of lists) el(id).addEventListener('toggle', () => { if (el(id).open) f(); });
  onChange(() => { for (const [id, f] of lists) if (el(id).open) f(); });
  onChange(() => { el('live-executions-box').hidden = !here().executions; el('live-kind-box').hidden = !isExact(here()); });
}
