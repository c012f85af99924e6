// The line under the pictures: what the cursor and the selection are, in words that a screen reader is told too.
function inFull(n) { return n < 1024 ? exact(n) : bytes(n) + ' (' + exact(n) + ')'; }
function describe(s, i) {
  const it = s.items, parts = [];
  if (i === s.n) return [['Name', s.name(i)], ['Kind', 'Persistent'], ['Size', inFull(it.size_bytes[i])], ['Folded', 'w or Unfold shows them one by one']];
  const put = (key, value) => { if (value !== '' && value !== null && value !== undefined) parts.push([key, value]); };
  put('Name', s.name(i) || '(no name)');
  put(s.axis === 'steps' ? 'Operator' : 'Scope', s.owner(i));
  put('Made in', it.owner[i] === null ? '' : bodyOf(s, s.steps.name.indexOf(it.owner[i])));
  put('Kind', s.kindOf(i));
  put('Role', s.roleOf(i));
  put('Size', inFull(it.size_bytes[i]));
  put('At most', boundOf(s, i));
  put('Came out as', cameOut(s, i));
  if (it.reserved_bytes[i] !== it.size_bytes[i]) put('Takes', inFull(it.reserved_bytes[i]));
  put('Lives', 'from ' + timeWords(s, it.begin[i]) + (it.open[i] === 1 ? ', never freed' : ' up to ' + timeWords(s, it.end[i]) + (it.open[i] === 2 ? ', never freed: its process ended' : '')));
  if (it.place[i] !== null) put('Place', exact(it.place[i]) + (it.region[i] !== null ? ' in ' + s.regions[it.region[i]].label : ''));
  if (it.lies_in[i] !== null) put('Lies in', s.name(it.lies_in[i]));
  put('At the peak', aliveAt(s, i, s.peak.t) ? 'alive' : 'not alive');
  return parts;
}
/// " (execution 3, conv1)", of a plan " (conv1)".
function where(s, step) {
  const k = executionAt(s, state.cursor), parts = [];
  if (k >= 0) parts.push('execution ' + k);
  if (stepName(s, step)) parts.push(isolated(stepName(s, step)));
  if (bodyOf(s, step)) parts.push(isolated(bodyOf(s, step)));
  return parts.length ? ' (' + parts.join(', ') + ')' : '';
}
function drawDetails() {
  const s = here(), step = stepAt(s, state.cursor), box = el('live-details');
  const live = liveAt(s, state.cursor);
  el('live-cursor').textContent = 'Cursor at ' + timeWords(s, state.cursor) + where(s, step) + ': ' +
    inFull(live) + ' live' + (s.peak.bytes ? ', ' + (100 * live / s.peak.bytes).toFixed(0) + ' % of the peak' : '') + '.';
  box.textContent = '';
  if (state.sel < 0) {
    const p = document.createElement('p');
    p.className = 'mute';
    p.textContent = 'Nothing is selected: click a bar, or use the arrow keys.';
    box.appendChild(p);
    return;
  }
  const list = document.createElement('dl');
  for (const [key, value] of describe(s, state.sel)) {
    const dt = document.createElement('dt'), dd = document.createElement('dd'), row = document.createElement('div');
    dt.textContent = key;
    dd.textContent = value;
    dd.dir = 'auto';
    row.append(dt, dd);
    list.appendChild(row);
  }
  box.appendChild(list);
}

// ---- the note at the pointer ----

function showNote(event, lines) {
  const note = el('live-note');
  note.textContent = '';
  for (const line of lines) {
    const p = document.createElement('div');
    p.textContent = line;
    p.dir = 'ltr';
    note.appendChild(p);
  }
  note.hidden = lines.length === 0;
  const box = note.parentNode.getBoundingClientRect();
  const x = event.clientX - box.left + 14, y = event.clientY - box.top + 14;
  note.style.left = Math.max(0, Math.min(x, box.width - note.offsetWidth - 4)) + 'px';
  note.style.top = Math.max(0, y + note.offsetHeight > box.height ? y - note.offsetHeight - 24 : y) + 'px';
}
function hideNote() { el('live-note').hidden = true; }
