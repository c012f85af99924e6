// What people do: buttons, fields, keys, pointer.
function select(i) {
  const kind = state.kind;
  state.sel = i;
  if (i >= 0) {
    const it = here().items;
    if (state.cursor < it.begin[i] || state.cursor >= it.end[i]) state.cursor = it.begin[i];
    show(i);
    if (kind !== state.kind) showControls();
    reveal(i);
  }
  changed();
}
/// Folded and unfolded in the pictures, the list and the bar of the peak.
function fold() {
  if (!here().nWeights) return;
  state.fold = !state.fold;
  state.page = 0;
  el('live-rows').scrollTop = 0;
  changed();
}
function drawFold() {
  const s = here(), b = el('live-fold'), those = s.nWeights.toLocaleString('en') + (s.nWeights === 1 ? ' weight (' : ' weights (') + bytes(s.weightBytes) + ')';
  b.hidden = s.nWeights < 2;
  b.textContent = (state.fold ? 'Unfold ' : 'Fold ') + those;
  b.setAttribute('aria-expanded', String(!state.fold));
  for (const bar of document.querySelectorAll('.peakbar')) {
    const side = +bar.dataset.side;
    if (sides[side].nWeights < 2) continue;
    bar.hidden = (bar.dataset.folded === '1') !== (side === state.side ? state.fold : sides[side].folds_weights);
    for (const a of bar.querySelectorAll('[data-item]')) a.classList.toggle('sel', side === state.side && itemOf(a) === state.sel);
  }
}
/// The item that a part of the bar is; the row of the weights for all of them.
function itemOf(a) { return a.dataset.item === '-2' ? here().n : +a.dataset.item; }
function startBar() {
  for (const bar of document.querySelectorAll('.peakbar')) bar.addEventListener('click', (e) => {
    const a = e.target.closest('[data-item]');
    if (!a) return;
    e.preventDefault();
    if (+bar.dataset.side !== state.side) turnTo(+bar.dataset.side);
    state.cursor = here().peak.t;
    select(itemOf(a));
  });
}
/// Scroll the picture, and turn to the page of the table, so that the item is in view.
function reveal(i) {
  const at = rows().indexOf(i), box = el('live-rows');
  if (at < 0) return;
  state.page = Math.floor(at / pageRows);
  if (state.view !== 'lifetimes') return;
  if (at * rowHeight < box.scrollTop) box.scrollTop = at * rowHeight;
  if ((at + 1) * rowHeight > box.scrollTop + box.clientHeight) box.scrollTop = (at + 1) * rowHeight - box.clientHeight;
}
function zoom(factor, at) {
  const span = state.t1 - state.t0;
  const s = here(), least = s.axis === 'steps' ? 1 : Math.max(1, s.span / 1e9), fresh = Math.min(Math.max(span * factor, least), s.span);
  state.t0 = at - (at - state.t0) / span * fresh;
  state.t1 = state.t0 + fresh;
  changed();
}
function pan(share) {
  const by = (state.t1 - state.t0) * share;
  state.t0 += by;
  state.t1 += by;
  changed();
}
function fit() {
  if (state.sel < 0) return;
  const s = here(), it = s.items, life = Math.max(it.end[state.sel] - it.begin[state.sel], s.axis === 'steps' ? 1 : 1);
  state.t0 = it.begin[state.sel] - life / 8;
  state.t1 = state.t0 + life * 1.25;
  changed();
}
function toPeak() {
  const s = here();
  state.cursor = s.peak.t;
  if (state.cursor < state.t0 || state.cursor >= state.t1) {
    const half = (state.t1 - state.t0) / 2;
    state.t0 = state.cursor - half;
    state.t1 = state.cursor + half;
  }
  changed();
}
function move(rowsBy) {
  const list = rows();
  if (!list.length) return;
  const at = list.indexOf(state.sel);
  const from = at < 0 ? (rowsBy > 0 ? -1 : list.length) : at;
  select(list[Math.min(Math.max(from + rowsBy, 0), list.length - 1)]);
}
function moveCursor(by) {
  const s = here(), least = s.axis === 'steps' ? 1 : (state.t1 - state.t0) / 200;
  state.cursor = Math.min(Math.max(state.cursor + by * least, 0), s.span - (s.axis === 'steps' ? 1 : 0));
  if (state.cursor < state.t0) { state.t1 -= state.t0 - state.cursor; state.t0 = state.cursor; }
  if (state.cursor >= state.t1) { const d = state.cursor - state.t1 + least; state.t0 += d; state.t1 += d; }
  changed();
}
const keys = {
  ArrowUp: () => move(-1), ArrowDown: () => move(1), PageUp: () => move(-10), PageDown: () => move(10),
  Home: () => move(-1e9), End: () => move(1e9),
  ArrowLeft: (e) => (e.shiftKey ? pan(-0.5) : moveCursor(-1)), ArrowRight: (e) => (e.shiftKey ? pan(0.5) : moveCursor(1)),
  '+': () => zoom(0.5, state.cursor), '=': () => zoom(0.5, state.cursor), '-': () => zoom(2, state.cursor),
  0: () => { whole(); changed(); }, f: fit, p: toPeak,
  m: () => setView(state.view === 'memory' ? 'lifetimes' : 'memory'),
  w: fold,
  g: () => el('live-goto').focus(),
  '/': () => el('live-search').focus(),
  Escape: () => { state.sel = -1; changed(); },
};
function setView(view) {
  if (view === 'memory' && !here().regions.length) return;
  state.view = view;
  el('live-view').value = view;
  changed();
}
function fill(select, options, value) {
  select.replaceChildren(...options.map(([v, text]) => { const o = document.createElement('option'); o.value = v; o.textContent = text; return o; }));
  select.value = value;
}
function showControls() {
  const s = here(), kinds = [...new Set(s.items.kind)].filter((k) => k !== null).map((k) => s.words[k]).sort();
  fill(el('live-kind'), [['peak', 'alive at the peak'], ['cursor', 'alive at the cursor'], ['all', 'everything'], ['changing', 'what comes and goes'], ...kinds.map((k) => [k, k])], state.kind);
  if (el('live-kind').value !== state.kind) { state.kind = 'peak'; el('live-kind').value = 'peak'; }
  fill(el('live-view'), s.regions.length ? [['lifetimes', 'lifetimes'], ['memory', 'memory over time']] : [['lifetimes', 'lifetimes']], state.view);
  fill(el('live-by'), Object.entries(bandWords), state.bands);
  el('live-by').disabled = !isExact(s);
  el('live-sort').value = state.sort;
  el('live-search').value = state.q;
  if (sides.length > 1) el('live-side').value = String(state.side);
}
function turnTo(side) {
  state.side = side;
  state.sel = -1; state.kind = 'peak'; state.fold = here().folds_weights; state.page = 0; state.cursor = here().peak.t;
  if (!here().regions.length) state.view = 'lifetimes';
  whole(); showControls(); changed();
}
let widened = false; // a search goes through everything, and back when it is over
function searchFor(q) {
  if (q && !state.q && state.kind === 'peak') { widened = true; state.kind = 'all'; }
  if (!q && widened && state.kind === 'all') state.kind = 'peak';
  if (!q) widened = false;
  state.q = q;
  el('live-kind').value = state.kind;
}
function startControls() {
  const on = (id, what, f) => el(id).addEventListener(what, f);
  on('live-in', 'click', () => zoom(0.5, state.cursor >= state.t0 && state.cursor < state.t1 ? state.cursor : (state.t0 + state.t1) / 2));
  on('live-out', 'click', () => zoom(2, (state.t0 + state.t1) / 2));
  on('live-whole', 'click', () => { whole(); changed(); });
  on('live-fit', 'click', fit);
  on('live-peak', 'click', toPeak);
  on('live-fold', 'click', fold);
  on('live-search', 'input', () => { searchFor(el('live-search').value); state.page = 0; el('live-rows').scrollTop = 0; changed(); });
  on('live-search', 'keydown', (e) => { if (e.key === 'Enter') { e.preventDefault(); move(1); } });
  on('live-kind', 'change', () => { state.kind = el('live-kind').value; state.page = 0; el('live-rows').scrollTop = 0; changed(); });
  on('live-by', 'change', () => { state.bands = el('live-by').value; changed(); });
  on('live-sort', 'change', () => { state.sort = el('live-sort').value; state.down = sorts[state.sort].down; state.page = 0; el('live-rows').scrollTop = 0; changed(); });
  on('live-view', 'change', () => setView(el('live-view').value));
  if (sides.length > 1) on('live-side', 'change', () => turnTo(+el('live-side').value));
  on('live', 'keydown', (e) => {
    if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|BUTTON)$/.test(e.target.tagName)) return;
    const f = keys[e.key];
    if (!f) return;
    e.preventDefault();
    f(e);
  });
}

// ---- pointer ----

function startPointer() {
  let drag = null;
  const local = (e, id) => { const r = el(id).getBoundingClientRect(); return [e.clientX - r.left, e.clientY - r.top]; };
  const plot = (id) => ({plot: el(id).clientWidth - left - right});
  const inside = (x, id) => x >= left && x <= left + plot(id).plot;
  for (const id of ['live-curve', 'live-gantt']) {
    const canvas = el(id);
    canvas.addEventListener('pointerdown', (e) => {
      if (e.button !== 0) return;
      drag = {id, x: e.clientX, t0: state.t0, t1: state.t1, moved: false};
      canvas.setPointerCapture(e.pointerId);
    });
    canvas.addEventListener('pointermove', (e) => {
      const [x, y] = local(e, id), s = here();
      if (drag && drag.id === id) {
        if (Math.abs(e.clientX - drag.x) > 3) drag.moved = true;
        if (!drag.moved) return;
        const by = (e.clientX - drag.x) / plot(id).plot * (drag.t1 - drag.t0);
        state.t0 = drag.t0 - by; state.t1 = drag.t1 - by;
        hideNote();
        changed();
        return;
      }
      const t = s.axis === 'steps' ? Math.floor(tOf(plot(id), x)) : tOf(plot(id), x);
      if (id === 'live-curve') return inside(x, id) ? showNote(e, [timeWords(s, t), bytes(curveAt(s, t)) + ' live']) : hideNote();
      const i = x < left && state.view !== 'lifetimes' ? -1 : itemAt(x, y);
      if (i < 0) return hideNote();
      showNote(e, describe(s, i).map(([k, v]) => (k === 'Name' ? v : k + ': ' + isolated(v))));
    });
    canvas.addEventListener('pointerleave', hideNote);
    canvas.addEventListener('pointerup', (e) => {
      const [x, y] = local(e, id), was = drag;
      drag = null;
      if (!was || was.moved) return;
      const s = here();
      if (inside(x, id)) state.cursor = s.axis === 'steps' ? Math.floor(tOf(plot(id), x)) : Math.round(tOf(plot(id), x));
      if (id === 'live-gantt') { const i = itemAt(x, y); state.sel = i; if (i >= 0) state.page = Math.max(0, Math.floor(rows().indexOf(i) / pageRows)); }
      changed();
    });
    canvas.addEventListener('dblclick', fit);
    canvas.addEventListener('wheel', (e) => {
      if (!(e.ctrlKey || e.metaKey || id === 'live-curve' || e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY))) return;
      e.preventDefault();
      const [x] = local(e, id);
      if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) return pan((e.deltaX || e.deltaY) / 500);
      zoom(Math.exp(Math.max(-1, Math.min(1, e.deltaY / 200))), tOf(plot(id), x));
    }, {passive: false});
  }
  const map = el('live-map');
  map.addEventListener('pointermove', (e) => {
    const [x, y] = local(e, 'live-map'), i = tileAt(x, y);
    if (i < 0) return hideNote();
    showNote(e, describe(here(), i).map(([k, v]) => (k === 'Name' ? v : k + ': ' + isolated(v))));
  });
  map.addEventListener('pointerleave', hideNote);
  map.addEventListener('click', (e) => { const [x, y] = local(e, 'live-map'); select(tileAt(x, y)); });
  el('live-rows').addEventListener('scroll', () => changed());
  const mini = el('live-mini');
  const jump = (e) => {
    const [x] = local(e, 'live-mini'), t = (x - left) / plot('live-mini').plot * here().span, half = (state.t1 - state.t0) / 2;
    state.t0 = t - half; state.t1 = t + half;
    changed();
  };
  mini.addEventListener('pointerdown', (e) => { mini.setPointerCapture(e.pointerId); jump(e); });
  mini.addEventListener('pointermove', (e) => { if (e.buttons & 1) jump(e); });
}
