// Start: the live part takes the place of the still pictures, which come back for print.
function draw() {
  readColours();
  drawCurve();
  drawMini();
  if (state.view === 'memory') drawMemory(); else drawLifetimes();
  drawMap();
  drawFold();
  drawDetails();
  drawKinds();
}
function start() {
  document.documentElement.classList.add('js');
  el('live').hidden = false;
  fromHash();
  showControls();
  startControls();
  startTable();
  startPointer();
  startBar();
  startSorting();
  startMoments();
  startExport();
  startPools();
  startStacks();
  onChange(draw);
  onChange(drawTable);
  if (state.sel >= 0) reveal(state.sel);
  changed();
  window.addEventListener('hashchange', () => { if (/^#[st]-/.test(location.hash)) return; fromHash(); showControls(); changed(); });
  new ResizeObserver(() => changed()).observe(el('live'));
  for (const query of ['(prefers-color-scheme: dark)', 'print'])
    matchMedia(query).addEventListener('change', () => { hatches.clear(); changed(); });
}
if (el('live') && el('items')) start(); // there is nothing to show otherwise
