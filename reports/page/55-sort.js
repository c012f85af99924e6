// Every table but that of the items: a click on a heading, or Enter on it, sorts by that column; again, the other way
// round. It is the whole script of the page of `check --report`.
/// Stable, numbers as numbers; what is not known comes last either way.
function compare(a, b, down) {
  if (a === b) return 0;
  if (a === null || b === null) return a === null ? 1 : -1;
  return (a < b) === down ? 1 : -1;
}
/// The words of a heading, in a button.
function headButton(th) {
  const b = document.createElement('button');
  b.type = 'button';
  b.textContent = th.textContent;
  th.textContent = '';
  th.appendChild(b);
  return b;
}
const units1024 = {B: 1, KiB: 2 ** 10, MiB: 2 ** 20, GiB: 2 ** 30, TiB: 2 ** 40, PiB: 2 ** 50, EiB: 2 ** 60};
const unitsOfTime = {ns: 1, '\u00b5s': 1e3, us: 1e3, ms: 1e6, s: 1e9};
/// What a cell is sorted by: a number where it says one, exactly where its title does; null: it is empty.
function valueOf(td) {
  const text = (td.title || td.textContent).trim().replace('\u2212', '-');
  if (text === '') return null;
  const found = /^([+-]?[\d.]+(?:e[+-]?\d+)?) ?([^\d.\s]+)?$/.exec(text);
  if (!found || td.tagName === 'TH' && !td.title) return text;
  const factor = found[2] === undefined || found[2] === '%' ? 1 : units1024[found[2]] || unitsOfTime[found[2]];
  return factor ? +found[1] * factor : text;
}
function isNumbers(rowsOf, column) {
  return rowsOf.every((tr) => { const v = valueOf(tr.cells[column]); return v === null || typeof v === 'number'; });
}
function sortTable(table, column, head) {
  const body = table.tBodies[0], all = [...body.rows], heads = [...table.tHead.rows[0].cells], numbers = isNumbers(all, column);
  const before = head.getAttribute('aria-sort'), down = before ? before === 'ascending' : numbers && all.some((tr) => valueOf(tr.cells[column]) !== null) && !/^(At|Begin|Step|Lives|First|Last)/.test(head.textContent);
  const keyed = all.map((tr, k) => [numbers ? valueOf(tr.cells[column]) : tr.cells[column].textContent.trim() || null, k, tr]);
  keyed.sort((a, b) => compare(a[0], b[0], down) || +a[2].dataset.at - +b[2].dataset.at);
  body.replaceChildren(...keyed.map((k) => k[2]));
  for (const th of heads) th.removeAttribute('aria-sort');
  head.setAttribute('aria-sort', down ? 'descending' : 'ascending');
}
function startSorting() {
  for (const table of document.querySelectorAll('table')) {
    if (table.id !== 'items' && table.tHead) sortable(table);
  }
}
function sortable(table) {
  [...table.tBodies[0].rows].forEach((tr, k) => { tr.dataset.at = k; }); // equal ones stay as they were written
  [...table.tHead.rows[0].cells].forEach((th, column) => headButton(th).addEventListener('click', () => sortTable(table, column, th)));
}
if (!document.getElementById('tidemark-data')) startSorting(); // a page without data has nothing else
