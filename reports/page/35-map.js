// Memory at the cursor, beside the lifetimes: a box for each region that holds something then, addresses upwards.
// Regions of nothing but folded weights are one box.
const mapLeft = 104, leastBox = 15, boxGap = 6;
const mapTiles = []; // [x, y, width, height, item]
function drawMap() {
  const s = here(), it = s.items, space = el('live-space');
  space.hidden = !s.regions.length;
  if (space.hidden) return;
  const step = stepAt(s, state.cursor);
  el('live-space-title').textContent = 'Memory at ' + timeWords(s, state.cursor) + where(s, step) + (state.cursor === s.peak.t ? ', the peak' : '');
  const c = canvasOf('live-map', space.clientHeight - el('live-space-title').offsetHeight - 8, 'live-space'), g = c.g, width = c.width - mapLeft - 8;
  const held = s.regions.map(() => []), boxes = [];
  let weightBytes = 0, nWeights = 0;
  for (let i = 0; i < s.n; i++) if (it.region[i] !== null && it.place[i] !== null && aliveAt(s, i, state.cursor)) held[it.region[i]].push(i);
  held.forEach((list, k) => {
    if (!list.length) return;
    const folded = state.fold ? list.filter((i) => s.isWeight(i)) : [], others = folded.length ? list.filter((i) => !s.isWeight(i)) : list;
    if (s.regions[k].guessed || !others.length) for (const i of folded) { weightBytes += s.counts(i); nWeights++; }
    if (others.length) boxes.push({r: folded.length && s.regions[k].guessed ? around(s, s.regions[k], others) : s.regions[k], list});
  });
  mapTiles.length = 0;
  g.textAlign = 'left'; g.fillStyle = colours.mute;
  if (!boxes.length && !nWeights) return g.fillText('Nothing lies here at this moment.', 8, 20);
  const total = boxes.reduce((sum, b) => sum + b.r.bytes, 0) || 1, n = boxes.length + (nWeights ? 1 : 0);
  const gap = n > 20 ? 2 : boxGap, least = Math.min(leastBox, (c.height - gap * n) / n), room = c.height - 2 - (gap + least) * n;
  let at = c.height - 2;
  if (nWeights) {
    g.fillStyle = hatch(g, it.fill[s.n]); g.fillRect(mapLeft, at - least, width, least);
    mapTiles.push([mapLeft, at - least, width, least, s.n]);
    mapLabel(g, least, at - least / 2, 'weights (' + nWeights.toLocaleString('en') + ')', bytes(weightBytes));
    at -= least + gap;
  }
  for (const {r, list} of boxes) {
    const h = least + r.bytes / total * room, scale = h / (r.bytes || 1), low = at;
    g.fillStyle = colours.card; g.fillRect(mapLeft, at - h, width, h);
    g.strokeStyle = colours.line; g.strokeRect(mapLeft + 0.5, at - h + 0.5, width - 1, h - 1);
    mapLabel(g, h, r.pools.length > 1 && h > 28 ? at - h + 14 : at - h / 2, r.label, bytes(r.bytes));
    list.sort((a, b) => it.reserved_bytes[b] - it.reserved_bytes[a] || a - b);
    g.save();
    g.beginPath(); g.rect(mapLeft, low - h, width, h); g.clip();
    for (const i of list) drawTile(g, s, i, mapLeft, low - (it.place[i] - r.base + it.reserved_bytes[i]) * scale, width, it.reserved_bytes[i] * scale);
    g.restore();
    poolBorders(g, r, mapLeft, low, width, scale, 28);
    if (r.bound_bytes) {
      g.strokeStyle = colours.bound; g.setLineDash([7, 4]); g.beginPath();
      g.moveTo(mapLeft, low - r.bound_bytes * scale); g.lineTo(mapLeft + width, low - r.bound_bytes * scale); g.stroke(); g.setLineDash([]);
    }
    at -= h + gap;
  }
}
/// Borders of the pools of a colouring plan in the picture of its buffer, and beside it their numbers where they have room
/// below the buffer's own name, which takes `taken` at the top.
function poolBorders(g, r, x, low, width, scale, taken) {
  let free = low - r.bytes * scale + taken;
  g.fillStyle = colours.fg;
  for (const [, offset] of r.pools) if (offset) g.fillRect(x, Math.round(low - offset * scale), width, 1);
  g.fillStyle = colours.mute; g.textAlign = 'right';
  for (const [number, offset, size] of r.pools.slice().reverse()) {
    const middle = low - (offset + size / 2) * scale, forms = ['pool ' + number + ', ' + bytes(size), 'pool ' + number];
    if (middle - 6 < free) continue;
    g.fillText(fitting(g, forms, x - 12) || forms[1], x - 8, middle);
    free = middle + 6;
  }
}
/// Of a stretch of addresses that was only guessed to be a region, as much as these take.
function around(s, r, list) {
  const it = s.items, base = Math.min(...list.map((i) => it.place[i]));
  return {...r, base, bytes: Math.max(...list.map((i) => it.place[i] + it.reserved_bytes[i])) - base};
}
function drawTile(g, s, i, x, y, width, height) {
  const folded = state.fold && s.isWeight(i);
  g.fillStyle = hatch(g, s.items.fill[i]);
  g.fillRect(x, y, width, Math.max(height, 0.5));
  if (height > 3 && !folded) { g.strokeStyle = colours.bg; g.strokeRect(x + 0.5, y + 0.5, width - 1, height - 1); }
  if (height > 14 && !folded) {
    const size = bytes(s.items.size_bytes[i]);
    g.fillStyle = colours.fg; g.textAlign = 'left';
    label(g, cut(g, s.name(i) || '(no name)', width - g.measureText(size).width - 24), x + 5, y + height / 2);
    g.textAlign = 'right'; label(g, size, x + width - 5, y + height / 2, g.measureText(size).width);
  }
  if (i === state.sel) { g.strokeStyle = colours.fg; g.lineWidth = 2; g.strokeRect(x + 1, y, width - 2, Math.max(height, 2)); g.lineWidth = 1; }
  if (!folded) mapTiles.push([x, y, width, height, i]);
}
function mapLabel(g, height, y, words, size) {
  g.fillStyle = colours.mute; g.textAlign = 'right';
  const two = height >= 28;
  // "stream_caching segment 3", "Workspace on cpu, buffer 2": what tells it from the others is its end; "Workspace on cpu":
  // its begin
  const forms = [words, words.replace(/^.* (segment|addresses|buffer) /, '$1 '), words.replace(/ on .*$/, '')];
  if (height >= 11) g.fillText(fitting(g, forms, mapLeft - 12) || cut(g, words, mapLeft - 12), mapLeft - 8, two ? y - 7 : y);
  if (two) g.fillText(size, mapLeft - 8, y + 7);
}
/// The item under a point of the map; -1: none. Of aliases the smallest, which was drawn last.
function tileAt(x, y) {
  for (let k = mapTiles.length - 1; k >= 0; k--) {
    const [a, b, width, height, i] = mapTiles[k];
    if (x >= a && x <= a + width && y >= b && y <= b + Math.max(height, 1)) return i;
  }
  return -1;
}
