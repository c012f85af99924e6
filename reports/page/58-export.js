// What is seen, as a file: the rows of the table of items, all of its pages, folded weights one by one.
const savedColumns = ['name', 'owner', 'kind', 'role', 'size_bytes', 'reserved_bytes', 'begin', 'end', 'open_ended', 'place', 'lies_in'];
function savedRows() {
  const s = here(), it = s.items, orNull = (v) => (v === '' ? null : v);
  return rows().flatMap((i) => (i === s.n ? s.weights : [i])).map((i) => ({
    name: s.name(i), owner: orNull(s.owner(i)), kind: orNull(s.kindOf(i)), role: orNull(s.roleOf(i)), size_bytes: it.size_bytes[i],
    reserved_bytes: it.reserved_bytes[i], begin: it.begin[i] + s.zero, end: it.end[i] + s.zero, open_ended: it.open[i] >= 1 ? 1 : 0,
    place: it.place[i], lies_in: it.lies_in[i] === null ? null : s.name(it.lies_in[i])}));
}
/// Times have the unit of the axis in their names, as in the CSV of `report`.
function savedKey(s, column) { return column === 'begin' || column === 'end' ? column + (s.axis === 'steps' ? '_step' : '_ns') : column; }
/// What a spreadsheet would take for a formula gets a ' in front.
function csvCell(v) {
  if (v === null) return '';
  let text = String(v);
  if (typeof v === 'string' && /^[=+\-@\t]/.test(text)) text = "'" + text;
  return /[",\r\n]/.test(text) ? '"' + text.replace(/"/g, '""') + '"' : text;
}
function asCsv() {
  const s = here(), lines = [savedColumns.map((c) => savedKey(s, c)).join(',')];
  for (const row of savedRows()) lines.push(savedColumns.map((c) => csvCell(row[c])).join(','));
  return lines.join('\r\n') + '\r\n';
}
function asJson() {
  const s = here();
  return JSON.stringify({title: s.title, cursor: state.cursor + s.zero, link: location.hash, items: savedRows().map((row) =>
    Object.fromEntries(savedColumns.map((c) => [savedKey(s, c), row[c]])))}, null, 1) + '\n';
}
function save(ending, type, text) {
  const a = document.createElement('a');
  a.href = URL.createObjectURL(new Blob([text], {type}));
  a.download = (here().model || 'tidemark').replace(/[^\w.-]+/g, '_') + '.' + ending;
  a.click();
  setTimeout(() => URL.revokeObjectURL(a.href), 10000);
}
function startExport() {
  el('items-csv').addEventListener('click', () => save('csv', 'text/csv', asCsv()));
  el('items-json').addEventListener('click', () => save('json', 'application/json', asJson()));
  el('items-save').hidden = false;
}
