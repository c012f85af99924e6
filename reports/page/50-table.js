// The table of all items, a page of them at a time; the same filter and order as the picture.
const pageRows = 100;
function cell(row, text, kind) {
  const td = document.createElement(kind === 'head' ? 'th' : 'td');
  if (kind === 'head') td.scope = 'row';
  td.textContent = text;
  row.appendChild(td);
  return td;
}
function drawTable() {
  const s = here(), it = s.items, list = rows(), body = el('items').tBodies[0];
  const pages = Math.max(1, Math.ceil(list.length / pageRows));
  state.page = Math.min(Math.max(state.page, 0), pages - 1);
  const from = state.page * pageRows, fresh = document.createDocumentFragment();
  for (const i of list.slice(from, from + pageRows)) {
    const tr = document.createElement('tr');
    tr.dataset.item = i;
    if (i === state.sel) { tr.className = 'sel'; tr.setAttribute('aria-current', 'true'); }
    const name = cell(tr, '', 'head'), pick = document.createElement('button');
    pick.type = 'button';
    pick.className = 'pick';
    pick.textContent = s.name(i) || '(no name)';
    name.appendChild(pick);
    cell(tr, s.owner(i), 'text');
    cell(tr, s.kindOf(i), 'text');
    cell(tr, s.roleOf(i), 'text');
    cell(tr, (boundOf(s, i) ? '\u2264 ' : '') + it.size_bytes[i]);
    cell(tr, it.reserved_bytes[i]);
    cell(tr, it.begin[i] + s.zero);
    cell(tr, it.open[i] === 1 ? '' : it.end[i] + s.zero);
    cell(tr, it.place[i] === null ? '' : it.place[i]);
    fresh.appendChild(tr);
  }
  body.replaceChildren(fresh);
  const n = list.length + (list.includes(s.n) ? s.weights.length - 1 : 0);
  el('items-count').textContent = n === s.n ? s.n.toLocaleString('en') + ' in all' : n.toLocaleString('en') + ' of ' + s.n.toLocaleString('en') + (state.kind === 'peak' && !state.q ? ', alive at the peak' : '');
  if (n > list.length) el('items-count').textContent += '; ' + s.weights.length.toLocaleString('en') + ' weights are one row';
  if (s.items_left_out > 0) el('items-count').textContent += '; ' + s.items_left_out.toLocaleString('en') + ' smaller ones, ' + bytes(s.left_out_bytes) + ' in sum, are in the CSV and JSON reports';
  el('items-page').textContent = 'page ' + (state.page + 1) + ' of ' + pages;
  el('items-back').disabled = state.page === 0;
  el('items-on').disabled = state.page === pages - 1;
  for (const th of el('items').tHead.rows[0].cells) {
    const by = th.dataset.sort;
    if (by === state.sort) th.setAttribute('aria-sort', state.down ? 'descending' : 'ascending');
    else th.removeAttribute('aria-sort');
  }
}
function startTable() {
  el('items-rest').hidden = true;
  for (const th of el('items').tHead.rows[0].cells) {
    if (!th.dataset.sort) continue;
    headButton(th).addEventListener('click', () => { sortBy(th.dataset.sort); state.page = 0; el('live-sort').value = state.sort; changed(); });
  }
  el('items').tBodies[0].addEventListener('click', (e) => {
    const tr = e.target.closest('tr');
    if (tr && tr.dataset.item !== undefined) select(+tr.dataset.item);
  });
  el('items-back').addEventListener('click', () => { state.page--; changed(); });
  el('items-on').addEventListener('click', () => { state.page++; changed(); });
  el('items-pages').hidden = false;
}
