// The picture of call stacks: boxes that zoom to one of them and all that it led to, and a search that says what the matching
// ones hold. A box is a call; its width is bytes, below it stands what it called.
const flameRow = 20, flameChar = 6.5, flameLeast = 1;

/// The tree of a side: {name, bytes, list of calls by bytes, caller, depth}.
function flameTree(stacks) {
  const call = (name, caller) => ({name, bytes: 0, calls: new Map(), list: [], caller, depth: caller ? caller.depth + 1 : 0});
  const root = call('all that has a call stack', null), all = [root];
  for (const [lines, held] of stacks) {
    let at = root;
    root.bytes += held;
    for (const name of lines.split('; ')) {
      if (!at.calls.has(name)) { at.calls.set(name, call(name, at)); all.push(at.calls.get(name)); }
      at = at.calls.get(name);
      at.bytes += held;
    }
  }
  for (const c of all) c.list = [...c.calls.values()].sort((a, b) => b.bytes - a.bytes || (a.name < b.name ? -1 : 1));
  return root;
}
function flameCallers(call) {
  const out = [];
  for (let c = call; c; c = c.caller) out.unshift(c);
  return out;
}
/// Boxes from left to right and down: the callers of what is zoomed to are as wide as it.
function flameBoxes(f, width) {
  const out = [], scale = width / f.zoom.bytes;
  const put = (c, x) => {
    if (c.bytes * scale < flameLeast) return;
    out.push({call: c, x, w: c.bytes * scale});
    for (const next of c.list) { put(next, x); x += next.bytes * scale; }
  };
  for (const c of flameCallers(f.zoom).slice(0, -1)) out.push({call: c, x: 0, w: width});
  put(f.zoom, 0);
  return out;
}

// ---- search ----

const flameHit = (f, c) => f.want !== '' && c.caller !== null && c.name.toLowerCase().includes(f.want);
/// Bytes of the outermost calls that match, so that each byte counts once, and the names that match.
function flameFound(f, c, names) {
  const is = flameHit(f, c);
  if (is) names.add(c.name);
  const below = c.list.reduce((sum, next) => sum + flameFound(f, next, names), 0);
  return is ? c.bytes : below;
}
function sayFlame(f) {
  const names = new Set(), held = flameFound(f, f.root, names), share = (n) => (100 * n / f.root.bytes).toFixed(1) + ' %';
  const zoomed = f.zoom.name + ': ' + bytes(f.zoom.bytes) + ', ' + share(f.zoom.bytes);
  f.said.textContent = f.want === '' ? zoomed : names.size === 0 ? 'No line matches.'
    : names.size.toLocaleString('en') + (names.size === 1 ? ' line matches' : ' lines match') + ' and hold' + (names.size === 1 ? 's ' : ' ') + bytes(held) + ', ' + share(held) + ', with all that they called.';
}

// ---- drawing ----

function flameBox(f, box) {
  const svg = (name, attributes) => { const e = document.createElementNS('http://www.w3.org/2000/svg', name); for (const [k, v] of Object.entries(attributes)) e.setAttribute(k, v); return e; };
  const c = box.call, y = c.depth * flameRow, label = c.name + ', ' + bytes(c.bytes) + ', ' + (100 * c.bytes / f.root.bytes).toFixed(1) + ' %';
  const g = svg('g', {role: 'treeitem', tabindex: c === f.at ? 0 : -1, 'aria-label': label, 'aria-level': c.depth + 1, 'aria-selected': c === f.zoom});
  const title = svg('title', {}), hit = flameHit(f, c);
  title.textContent = label;
  const isLine = /:\d/.test(c.name) && !c.name.includes('::');
  g.append(title, svg('rect', {class: (isLine ? 'k0' : 'region') + (hit ? ' hit' : ''), x: box.x.toFixed(1), y, width: Math.max(box.w - 1, 0.5).toFixed(1), height: flameRow - 1}));
  const room = Math.floor((box.w - 8) / flameChar);
  if (room >= 3) {
    const text = svg('text', {class: hit ? 'on hit' : 'on', x: (box.x + 4).toFixed(1), y: y + flameRow - 6});
    text.textContent = c.name.length > room ? c.name.slice(0, room - 1) + '…' : c.name;
    g.append(text);
  }
  g.call = c;
  c.box = g;
  return g;
}
function drawFlame(f) {
  const width = Math.max(f.room.clientWidth - 2, 200), boxes = flameBoxes(f, width), had = f.svg.contains(document.activeElement);
  if (!boxes.some((b) => b.call === f.at)) f.at = f.zoom;
  f.svg.setAttribute('width', width);
  f.svg.setAttribute('height', (boxes.reduce((most, b) => Math.max(most, b.call.depth), 0) + 1) * flameRow);
  f.svg.replaceChildren(...boxes.map((b) => flameBox(f, b)));
  if (had) f.at.box.focus();
  f.crumbs.replaceChildren(...flameCallers(f.zoom).map((c) => {
    const b = document.createElement('button');
    b.type = 'button';
    b.textContent = c.caller ? c.name : 'all';
    b.disabled = c === f.zoom;
    b.addEventListener('click', () => zoomFlame(f, c));
    return b;
  }));
  sayFlame(f);
}
function zoomFlame(f, call) {
  f.zoom = f.at = call;
  drawFlame(f);
  f.at.box.focus();
}

// ---- keys ----

function flameNext(f, key) {
  const c = f.at, beside = c.caller ? c.caller.list : [c], at = beside.indexOf(c);
  const to = {ArrowUp: c.caller, ArrowDown: c.list[0], ArrowLeft: beside[at - 1], ArrowRight: beside[at + 1], Home: f.root}[key];
  return to && f.svg.contains(to.box || null) ? to : null;
}
function flameKey(f, e) {
  if (e.altKey || e.ctrlKey || e.metaKey) return;
  const to = flameNext(f, e.key);
  if (e.key === 'Enter' || e.key === ' ') zoomFlame(f, f.at);
  else if (e.key === 'Escape') zoomFlame(f, f.zoom.caller || f.zoom);
  else if (to) { f.at.box.setAttribute('tabindex', -1); f.at = to; to.box.setAttribute('tabindex', 0); to.box.focus(); }
  else if (!/^(Arrow|Home)/.test(e.key)) return;
  e.preventDefault();
  e.stopPropagation();
}

function startFlame(place, side) {
  const get = (name) => place.querySelector(name), root = flameTree(side.stacks);
  const f = {root, zoom: root, at: root, want: '', svg: get('svg'), room: get('.scroll'), crumbs: get('.crumbs'), said: get('[role=status]')};
  place.hidden = false;
  f.svg.addEventListener('click', (e) => { const g = e.target.closest('g'); if (g) zoomFlame(f, g.call); });
  f.svg.addEventListener('keydown', (e) => flameKey(f, e));
  get('input').addEventListener('input', (e) => { f.want = e.target.value.trim().toLowerCase(); drawFlame(f); });
  let width = -1;
  new ResizeObserver(() => { if (f.room.clientWidth !== width) { width = f.room.clientWidth; drawFlame(f); } }).observe(f.room);
  drawFlame(f);
}
function startStacks() {
  for (const place of document.querySelectorAll('.flame')) {
    const side = sides[+place.dataset.side];
    if (side.stacks.length) startFlame(place, side);
  }
}
