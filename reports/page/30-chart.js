// Canvases over one time axis: curve, and below it lifetimes or memory. Static pictures of the same stand in the page
// for print and for readers without scripts.
const left = 150, right = 12, rowHeight = 18, laneHeight = 15;
let colours = {};
function readColours() {
  const css = getComputedStyle(document.documentElement);
  for (const name of ['bg', 'fg', 'mute', 'line', 'card', 'accent', 'curve', 'soft', 'peak', 'bound', 'plan', 'other', 'f0', 'f1', 'f2', 'f3', 'f4', 'f5'])
    colours[name] = css.getPropertyValue('--' + name).trim();
}
/// All pictures are as wide as the one that scrolls, so that their columns stand above each other.
function canvasOf(id, height, within = 'live-rows') {
  const canvas = el(id), width = el(within).clientWidth, scale = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * scale) || canvas.height !== Math.round(height * scale)) {
    canvas.width = Math.round(width * scale);
    canvas.height = Math.round(height * scale);
    canvas.style.height = height + 'px';
    canvas.style.width = width + 'px';
  }
  const g = canvas.getContext('2d');
  g.setTransform(scale, 0, 0, scale, 0, 0);
  g.clearRect(0, 0, width, height);
  g.font = '12px system-ui, sans-serif';
  g.textBaseline = 'middle';
  return {g, width, height, plot: Math.max(width - left - right, 40)};
}
const xOf = (c, t) => left + (t - state.t0) / (state.t1 - state.t0) * c.plot;
const tOf = (c, x) => state.t0 + (x - left) / c.plot * (state.t1 - state.t0);

function ticks(lo, hi, want) {
  const raw = (hi - lo) / want, base = Math.pow(10, Math.floor(Math.log10(raw)));
  const step = Math.max(1, [1, 2, 5, 10].map((f) => f * base).find((f) => f >= raw)); // nothing is between two steps or nanoseconds
  const out = [];
  for (let t = Math.ceil(lo / step) * step; t <= hi; t += step) out.push(t);
  return out;
}
/// What stands at a tick: digits enough to tell it from the next one.
function tickWords(s, since, step) {
  if (s.axis === 'steps') return String(since);
  const [scale, unit] = scaleOfTime(s);
  return +(since / scale).toFixed(Math.min(12, Math.max(0, Math.ceil(-Math.log10(step / scale) - 1e-9)))) + ' ' + unit;
}
/// Ticks and their words, as many as have room beside each other, but one at least where there is any.
function labelledTicks(g, s, lo, hi, width) {
  let before = [];
  for (let want = Math.max(4, width / 90); ; want /= 1.5) {
    const all = ticks(lo, hi, want), step = all.length > 1 ? all[1] - all[0] : Math.max(hi - lo, 1), list = all.map((t) => [t, tickWords(s, t, step)]);
    const widest = list.reduce((most, [, words]) => Math.max(most, g.measureText(words).width), 0);
    if (!list.length) return before.slice(0, 1);
    if (list.length < 2 || widest + 10 <= width * step / (hi - lo)) return list;
    before = list;
  }
}
function cut(g, text, width) {
  if (g.measureText(text).width <= width) return text;
  let lo = 0, hi = text.length;
  while (lo < hi) {
    const keep = (lo + hi + 1) >> 1, head = Math.ceil(keep / 2);
    if (g.measureText(text.slice(0, head) + '\u2026' + text.slice(text.length - (keep - head))).width <= width) lo = keep; else hi = keep - 1;
  }
  const head = Math.ceil(lo / 2);
  return text.slice(0, head) + '\u2026' + (lo - head > 0 ? text.slice(text.length - (lo - head)) : '');
}
/// The longest of the texts that has room; none where none has: a number that is cut would be another one.
function fitting(g, texts, width) { return texts.find((text) => g.measureText(text).width <= width) || ''; }

// ---- curve ----

/// Smallest and largest value in each pixel column: from points, or from columns that were made for the whole axis.
function columnsOf(curve, side, n) {
  const min = new Float64Array(n), max = new Float64Array(n), span = state.t1 - state.t0;
  if (curve.t) {
    let at = 0, hi = curve.t.length;
    while (at < hi) { const m = (at + hi) >> 1; if (curve.t[m] <= state.t0) at = m + 1; else hi = m; }
    let value = at > 0 ? curve.bytes[at - 1] : 0;
    for (let x = 0; x < n; x++) {
      const end = state.t0 + (x + 1) * span / n;
      min[x] = max[x] = value;
      while (at < curve.t.length && curve.t[at] < end) {
        value = curve.bytes[at++];
        if (value < min[x]) min[x] = value;
        if (value > max[x]) max[x] = value;
      }
    }
  } else {
    const all = curve.max.length;
    for (let x = 0; x < n; x++) {
      const a = Math.floor((state.t0 + x * span / n) / side.span * all), b = Math.max(a + 1, Math.ceil((state.t0 + (x + 1) * span / n) / side.span * all));
      min[x] = Infinity;
      for (let i = Math.max(a, 0); i < Math.min(b, all); i++) { min[x] = Math.min(min[x], curve.min[i]); max[x] = Math.max(max[x], curve.max[i]); }
      if (min[x] === Infinity) min[x] = 0;
    }
  }
  return {min, max};
}
const plotHeight = 170, curveTop = 14, curveBottom = 22, weightsHeight = 16;
/// Below the axis stand executions, a line for each context, and the names of steps.
function lanesOf(s) { return Math.min(s.executions ? s.executions.lanes : 0, 8); }
function curveHeightOf(s) { return plotHeight + laneHeight * (lanesOf(s) + (s.stepT.length ? 1 : 0)); }
/// From bytes to a height. Folded weights are a strip at the foot, so that what stands on them has the rest.
function scaleOf(s, top, base, height) {
  const ground = state.fold && s.nWeights > 0 && s.weightBytes < top ? s.weightBytes : 0;
  const foot = ground ? weightsHeight : 0;
  const y = (v) => {
    if (v <= ground) return base - (ground ? v / ground * foot : 0);
    return base - foot - Math.min((v - ground) / (top - ground), 1.02) * (height - foot);
  };
  return {y, ground};
}
/// A level by its names, from the longest on. What lies below it is a part of its height and never left out.
function levelWords(s, names, size) {
  const short = (n) => bytes(n).replace(/ (\w)i?B?$/, '$1'), below = s.levels.below_bytes;
  if (!below) return names.map((name) => name + ' ' + bytes(size));
  const sum = (name, f) => name + ' ' + f(size) + ' + ' + f(below);
  return [sum(names[0], bytes) + ' ' + s.levels.below, ...names.flatMap((name) => [sum(name, bytes), sum(name, short)]), short(size) + '+' + short(below)];
}
function drawCurve() {
  const s = here(), c = canvasOf('live-curve', curveHeightOf(s)), g = c.g, n = Math.max(1, Math.floor(c.plot));
  const levels = [];
  if (s.levels) {
    const same = s.levels.plan_bytes === s.levels.bound_bytes;
    const n = s.levels.contexts, below = s.levels.below_bytes;
    const plans = n > 1 ? [`plans of ${n} contexts`, `${n} plans`] : ['plan'];
    const bounds = n > 1 ? [`lower bounds of ${n} contexts`, `${n} bounds`] : ['lower bound', 'bound'];
    const both = n > 1 ? [`plans of ${n} contexts = lower bounds`, `${n} plans = bounds`, `${n} plans`] : ['plan = lower bound', 'plan = bound', 'bound'];
    if (!same) levels.push([s.levels.plan_bytes, levelWords(s, plans, s.levels.plan_bytes - below), colours.plan, [2, 3], -7]);
    levels.push([s.levels.bound_bytes, levelWords(s, same ? both : bounds, s.levels.bound_bytes - below), colours.bound, [7, 4], same ? -7 : 8]);
  }
  if (s.fit && s.fit.left_bytes > 0) levels.push([s.fit.left_bytes, s.process ? ['capacity less the program', 'capacity'] : ['capacity'], colours.peak, [], -7]);
  const other = sides.length > 1 && sides[1 - state.side].axis === s.axis ? sides[1 - state.side] : null;
  if (s.reserved_curve) levels.push([s.reserved.bytes, ['reserved ' + bytes(s.reserved.bytes)], colours.other, null, 8]);
  let top = s.peak.bytes;
  for (const [v] of levels) if (v < 4 * s.peak.bytes) top = Math.max(top, v);
  if (other && other.peak.bytes < 4 * top) top = Math.max(top, other.peak.bytes);
  top = top || 1;
  const base = plotHeight - curveBottom, {y, ground} = scaleOf(s, top, base, base - curveTop);
  g.fillStyle = colours.mute;
  g.textAlign = 'right';
  for (const v of ground ? [0, ground, (ground + top) / 2, top] : [0, top / 2, top]) {
    g.fillText(v > 0 && v === ground ? 'weights ' + bytes(v) : bytes(v), left - 8, y(v) + (v === ground && ground ? -3 : v === 0 ? 3 : 0));
    g.fillStyle = colours.line; g.fillRect(left, Math.round(y(v)), c.plot, 1); g.fillStyle = colours.mute;
  }
  let reach = -Infinity; // up to where the words of the last tick reach
  g.textAlign = 'left';
  for (const [since, words] of labelledTicks(g, s, state.t0 + s.zero, state.t1 + s.zero, c.plot)) {
    const t = since - s.zero;
    g.fillStyle = colours.line; g.fillRect(Math.round(xOf(c, t)), curveTop, 1, base - curveTop);
    const wide = g.measureText(words).width, at = Math.min(xOf(c, t) - wide / 2, left + c.plot + 4 - wide);
    if (at < reach + 6) continue;
    reach = at + wide;
    g.fillStyle = colours.mute; g.fillText(words, at, plotHeight - 10);
  }
  const cols = columnsOf(s.curve, s, n), bands = hasBands(s);
  g.fillStyle = colours.soft;
  if (bands) drawCurveBands(c, s, y, base);
  else for (let x = 0; x < n; x++) g.fillRect(left + x, y(cols.max[x]), 1, base - y(cols.max[x]));
  if (ground && !bands) {
    g.fillStyle = hatch(g, s.items.fill[s.n]);
    for (let x = 0; x < n; x++) { const v = y(Math.min(cols.max[x], ground)); g.fillRect(left + x, v, 1, base - v); }
  }
  g.fillStyle = colours.curve;
  for (let x = 0; x < n; x++) {
    const a = y(cols.max[x]), b = y(cols.min[x]), before = x > 0 ? y(cols.max[x - 1]) : a;
    g.globalAlpha = 0.4; g.fillRect(left + x, a, 1, b - a); g.globalAlpha = 1;
    g.fillRect(left + x, Math.min(a, before), 1, Math.max(1.5, Math.abs(a - before)));
  }
  if (other) line(g, columnsOf(other.curve, other, n).max, y, colours.other, [4, 2]);
  if (s.reserved_curve) line(g, columnsOf(s.reserved_curve, s, n).max, y, colours.other, [1, 3]);
  if (s.predicted) line(g, columnsOf(s.predicted, s, n).max, y, colours.plan, [1, 2]);
  g.textAlign = 'left';
  const taken = [];
  for (let [v, words, colour, dash, shift] of levels) {
    if (v > top && dash) continue;
    if (v > top) words = words.map((text) => text + ' \u2191'); // above the picture
    let at = y(v) + shift;
    while (taken.some((t) => Math.abs(t - at) < 13)) at += 13;
    taken.push(at);
    if (dash) {
      g.strokeStyle = colour; g.setLineDash(dash);
      g.beginPath(); g.moveTo(left, y(v)); g.lineTo(left + c.plot, y(v)); g.stroke(); g.setLineDash([]);
    }
    g.fillStyle = colour; label(g, fitting(g, words, c.plot - 8), left + 4, at);
  }
  vertical(c, s.peak.t, colours.peak, [3, 3], curveTop, base);
  vertical(c, state.cursor, colours.accent, [], curveTop, base);
  drawExecutions(c, s);
  drawSteps(c, s);
}
/// A mark for each execution, with its name where there is room.
function drawExecutions(c, s) {
  const x = s.executions, g = c.g;
  if (!x) return;
  g.fillStyle = colours.mute; g.textAlign = 'right';
  g.fillText('execution', left - 8, plotHeight + laneHeight / 2);
  g.textAlign = 'left';
  for (let k = 0; k < x.begin.length; k++) {
    if (x.lane[k] >= lanesOf(s) || x.end[k] < state.t0 || x.begin[k] > state.t1) continue;
    const a = Math.max(xOf(c, x.begin[k]), left), b = Math.max(Math.min(xOf(c, x.end[k]), left + c.plot), a + 1), y = plotHeight + x.lane[k] * laneHeight;
    g.fillStyle = colours.card; g.fillRect(a, y, b - a, laneHeight - 2);
    g.fillStyle = colours.mute; g.fillRect(a, y, 1, laneHeight - 2); g.fillRect(b - 1, y, 1, laneHeight - 2);
    g.fillStyle = colours.fg;
    for (const words of ['execution ' + k, String(k)]) {
      if (g.measureText(words).width + 8 > b - a) continue;
      g.fillText(words, a + 4, y + laneHeight / 2);
      break;
    }
  }
}
/// Ticks of steps where they can be told apart, names where there is room.
function drawSteps(c, s) {
  const g = c.g, y = plotHeight + lanesOf(s) * laneHeight, from = Math.max(upTo(s.stepT, state.t0) - 1, 0);
  if (!s.stepT.length) return;
  let named = 0;
  g.textAlign = 'left';
  for (let k = from; k < s.stepT.length && s.stepT[k] < state.t1; k++) {
    const a = Math.max(xOf(c, s.stepT[k]), left), b = Math.min(xOf(c, k + 1 < s.stepT.length ? s.stepT[k + 1] : s.span), left + c.plot);
    if (s.stepI[k] < 0 || b - a < 4) continue;
    g.fillStyle = colours.mute; g.fillRect(a, y, 1, laneHeight - 4);
    const name = stepName(s, s.stepI[k]);
    if (b - a < 16 || !name || g.measureText(name).width + 6 > b - a) continue;
    g.fillStyle = colours.fg; g.fillText(name, a + 4, y + laneHeight / 2 - 1);
    named++;
  }
  g.fillStyle = colours.mute; g.textAlign = 'right';
  g.fillText(named ? 'step' : 'step (zoom in)', left - 8, y + laneHeight / 2 - 1);
}
/// Text on a ground of its own, so that lines under it do not cross it.
function label(g, text, x, y, back = 0) {
  const colour = g.fillStyle;
  g.fillStyle = colours.bg; g.globalAlpha = 0.75;
  g.fillRect(x - back - 2, y - 7, g.measureText(text).width + 4, 14);
  g.globalAlpha = 1; g.fillStyle = colour;
  g.fillText(text, x, y);
}
function line(g, values, y, colour, dash) {
  g.strokeStyle = colour; g.lineWidth = 1.5; g.setLineDash(dash);
  g.beginPath();
  values.forEach((v, x) => (x ? g.lineTo(left + x, y(v)) : g.moveTo(left + x, y(v))));
  g.stroke(); g.setLineDash([]); g.lineWidth = 1;
}
function vertical(c, t, colour, dash, top, bottom) {
  if (t < state.t0 || t > state.t1) return;
  const s = here(), at = s.axis === 'steps' ? t + 0.5 : t, x = Math.round(xOf(c, Math.min(at, state.t1))) + 0.5;
  c.g.strokeStyle = colour; c.g.setLineDash(dash);
  c.g.beginPath(); c.g.moveTo(x, top); c.g.lineTo(x, bottom); c.g.stroke(); c.g.setLineDash([]);
}
function curveAt(side, t) {
  const curve = side.curve;
  if (!curve.t) return curve.max[Math.min(curve.max.length - 1, Math.floor(t / side.span * curve.max.length))];
  let lo = 0, hi = curve.t.length;
  while (lo < hi) { const m = (lo + hi) >> 1; if (curve.t[m] <= t) lo = m + 1; else hi = m; }
  return lo > 0 ? curve.bytes[lo - 1] : 0;
}

// ---- minimap ----

function drawMini() {
  const c = canvasOf('live-mini', 26), s = here(), keep = [state.t0, state.t1];
  state.t0 = 0; state.t1 = s.span;
  const n = Math.floor(c.plot), cols = columnsOf(s.curve, s, n), top = s.peak.bytes || 1;
  c.g.fillStyle = colours.soft;
  for (let x = 0; x < n; x++) c.g.fillRect(left + x, 24 - cols.max[x] / top * 20, 1, cols.max[x] / top * 20);
  [state.t0, state.t1] = keep;
  const a = left + state.t0 / s.span * c.plot, b = left + state.t1 / s.span * c.plot;
  c.g.strokeStyle = colours.accent; c.g.lineWidth = 2; c.g.strokeRect(a, 2, Math.max(b - a, 3), 22); c.g.lineWidth = 1;
  c.g.fillStyle = colours.mute; c.g.textAlign = 'right'; c.g.fillText('overview', left - 8, 13);
}

// ---- lifetimes ----

const shown = {first: 0, count: 0};
function drawLifetimes() {
  const list = rows(), box = el('live-rows');
  el('live-height').style.height = list.length * rowHeight + 'px';
  const height = box.clientHeight, c = canvasOf('live-gantt', height), g = c.g, s = here(), it = s.items;
  shown.first = Math.floor(box.scrollTop / rowHeight);
  shown.count = Math.ceil(height / rowHeight) + 1;
  const shift = shown.first * rowHeight - box.scrollTop;
  for (let r = 0; r < shown.count && shown.first + r < list.length; r++) {
    const i = list[shown.first + r], y = r * rowHeight + shift;
    if (i === state.sel) { g.fillStyle = colours.card; g.fillRect(0, y, c.width, rowHeight); }
    g.fillStyle = i === state.sel ? colours.accent : colours.fg;
    g.textAlign = 'right';
    g.fillText(cut(g, (boundOf(s, i) ? '\u2264 ' : '') + (s.name(i) || '(no name)'), left - 14), left - 8, y + rowHeight / 2);
    bar(c, it.begin[i], it.end[i], it.fill[i], y + 3, rowHeight - 6, it.open[i] === 1, i === state.sel);
  }
  if (list.length === 0) {
    g.fillStyle = colours.mute; g.textAlign = 'left';
    g.fillText(s.n === 0 ? 'Nothing lives here.' : 'Nothing matches: change or clear the filter.', left, 20);
  }
  vertical(c, s.peak.t, colours.peak, [3, 3], 0, height);
  vertical(c, state.cursor, colours.accent, [], 0, height);
}
function bar(c, begin, end, fill, y, h, open, selected) {
  const g = c.g;
  let a = xOf(c, begin), b = xOf(c, end);
  if (b - a < 4) { a = (a + b) / 2 - 2; b = a + 4; } // it shows on both sides of the cursor's line
  if (b < left || a > left + c.plot) {
    g.fillStyle = colours.mute; g.textAlign = b < left ? 'left' : 'right';
    g.fillText(b < left ? '\u2039' : '\u203a', b < left ? left : left + c.plot, y + h / 2);
    return;
  }
  a = Math.max(a, left); b = Math.min(b, left + c.plot);
  g.fillStyle = hatch(g, fill);
  g.fillRect(a, y, b - a, h);
  if (open) { g.fillStyle = colours.peak; g.fillRect(b - 2, y - 2, 2, h + 4); }
  if (selected) { g.strokeStyle = colours.fg; g.lineWidth = 2; g.strokeRect(a, y, b - a, h); g.lineWidth = 1; }
}
const hatches = new Map();
/// Each fill has a hatch beside its colour: nothing is told by colour alone.
function hatch(g, fill) {
  const colour = colours['f' + fill], key = fill + colour;
  if (fill === 0) return colour;
  if (hatches.has(key)) return hatches.get(key);
  const tile = document.createElement('canvas');
  tile.width = tile.height = 8;
  const t = tile.getContext('2d');
  t.fillStyle = colours.bg; t.fillRect(0, 0, 8, 8);
  t.fillStyle = colour; t.globalAlpha = 0.3; t.fillRect(0, 0, 8, 8); t.globalAlpha = 1;
  t.strokeStyle = colour; t.lineWidth = fill === 2 || fill === 4 ? 4 : 2.8;
  t.beginPath();
  const rising = [[-2, 2, 2, -2], [-2, 10, 10, -2], [6, 10, 10, 6]], falling = rising.map(([a, b, c, d]) => [a, 8 - b, c, 8 - d]);
  const lines = {1: falling, 2: [[2, 0, 2, 8]], 4: [[0, 2, 8, 2]], 5: rising}[fill] || [];
  if (fill === 3) for (const [x, y] of [[2, 2], [6, 6]]) { t.moveTo(x, y); t.arc(x, y, 1.5, 0, 7); t.fill(); }
  for (const [x0, y0, x1, y1] of lines) { t.moveTo(x0, y0); t.lineTo(x1, y1); }
  t.stroke();
  hatches.set(key, g.createPattern(tile, 'repeat'));
  return hatches.get(key);
}

// ---- memory: time across, addresses upwards ----

/// Of a stretch of addresses that was only guessed to be a region, as much as the chosen items take.
function narrow(s, regions, chosen) {
  const it = s.items, ends = regions.map(() => [Infinity, 0]);
  for (const i of chosen) {
    const k = it.region[i];
    if (k === null || it.place[i] === null) continue;
    ends[k] = [Math.min(ends[k][0], it.place[i]), Math.max(ends[k][1], it.place[i] + it.reserved_bytes[i])];
  }
  regions.forEach((r, k) => { if (r.guessed && ends[k][1] > ends[k][0]) { r.base = ends[k][0]; r.bytes = ends[k][1] - ends[k][0]; } });
}
function drawMemory() {
  const height = el('live-rows').clientHeight, c = canvasOf('live-gantt', height), g = c.g, s = here(), it = s.items;
  el('live-height').style.height = '0';
  const chosen = new Set(rows()), drawn = new Set();
  for (const i of [...chosen]) if (i === s.n) for (const w of s.weights) chosen.add(w);
  for (const i of chosen) if (it.region[i] !== null) drawn.add(it.region[i]);
  const list = s.regions.map((r, k) => k).filter((k) => drawn.has(k) || !chosen.size);
  const regions = s.regions.map((r) => ({...r}));
  if (chosen.size < s.n) narrow(s, regions, chosen);
  const total = list.reduce((sum, k) => sum + regions[k].bytes, 0) || 1, gap = list.length > 20 ? 2 : 6;
  const least = Math.min(28, height / (2 * list.length + 1)), room = height - gap * (list.length - 1) - least * list.length;
  let at = height;
  const tops = [];
  for (const k of list) {
    const r = regions[k], h = least + r.bytes / total * room;
    tops[k] = {y: at, h, r};
    g.fillStyle = colours.card; g.fillRect(left, at - h, c.plot, h);
    g.strokeStyle = colours.line; g.strokeRect(left + 0.5, at - h + 0.5, c.plot - 1, h - 1);
    g.fillStyle = colours.mute; g.textAlign = 'right';
    if (h >= 26) {
      const middle = r.pools.length > 1 ? at - h + 14 : at - h / 2;
      g.fillText(cut(g, r.label, left - 14), left - 8, middle - 7);
      g.fillText(bytes(r.bytes), left - 8, middle + 7);
    } else if (h >= 12) {
      g.fillText(cut(g, r.label, left - 14), left - 8, at - h / 2);
    }
    at -= h + gap;
  }
  for (let i = 0; i < s.n; i++) {
    const k = it.region[i];
    if (k === null || it.place[i] === null || !tops[k] || (tops[k].r.guessed && !chosen.has(i))) continue;
    if (it.end[i] < state.t0 || it.begin[i] > state.t1) continue;
    const {y, h, r} = tops[k];
    const a = Math.max(xOf(c, it.begin[i]), left), b = Math.min(Math.max(xOf(c, it.end[i]), a + 1), left + c.plot);
    const lo = y - (it.place[i] - r.base) / r.bytes * h, hi = y - (it.place[i] - r.base + it.reserved_bytes[i]) / r.bytes * h;
    g.globalAlpha = chosen.has(i) ? 1 : 0.15;
    g.fillStyle = hatch(g, it.fill[i]);
    g.fillRect(a, hi, b - a, Math.max(lo - hi, 0.5));
    if (b - a > 3 && lo - hi > 3) { g.strokeStyle = colours.bg; g.strokeRect(a + 0.5, hi + 0.5, b - a - 1, lo - hi - 1); }
    if (b - a > 60 && lo - hi > 14) {
      g.fillStyle = colours.fg; g.textAlign = 'left'; label(g, cut(g, s.name(i), b - a - 12), a + 5, (lo + hi) / 2);
    }
    if (i === state.sel) { g.strokeStyle = colours.fg; g.lineWidth = 2; g.strokeRect(a, hi, b - a, lo - hi); g.lineWidth = 1; }
    g.globalAlpha = 1;
  }
  for (const k of list) {
    const {y, h, r} = tops[k];
    if (r.bytes) poolBorders(g, r, left, y, c.plot, h / r.bytes, 28);
    if (!r.bound_bytes) continue;
    const b = y - r.bound_bytes / r.bytes * h;
    g.strokeStyle = colours.bound; g.setLineDash([7, 4]); g.beginPath(); g.moveTo(left, b); g.lineTo(left + c.plot, b); g.stroke(); g.setLineDash([]);
  }
  vertical(c, s.peak.t, colours.peak, [3, 3], 0, height);
  vertical(c, state.cursor, colours.accent, [], 0, height);
  shown.memory = tops;
}
/// The item under a point of the lower picture; -1: none.
function itemAt(x, y) {
  const s = here(), it = s.items, c = {plot: el('live-gantt').clientWidth - left - right}, t = tOf(c, x);
  if (state.view === 'lifetimes') {
    const r = Math.floor((y + el('live-rows').scrollTop) / rowHeight), list = rows();
    return r >= 0 && r < list.length ? list[r] : -1;
  }
  let best = -1;
  for (let i = 0; i < s.n; i++) {
    if (it.region[i] === null || it.place[i] === null || it.begin[i] > t || it.end[i] <= t || !shown.memory[it.region[i]]) continue;
    const {y: base, h, r} = shown.memory[it.region[i]];
    const lo = base - (it.place[i] - r.base) / r.bytes * h, hi = base - (it.place[i] - r.base + it.reserved_bytes[i]) / r.bytes * h;
    if (y <= lo && y >= hi && (best < 0 || it.reserved_bytes[i] <= it.reserved_bytes[best])) best = i;
  }
  return best;
}
