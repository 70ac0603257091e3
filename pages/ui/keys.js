// Keeps a page's keys working while a slider of dpviz has the focus.
//
// Streamlit ignores single-key shortcuts in any input element. A slider needs arrows and similar
// keys, but no letters or digits. So send letters and digits again to the page's key listener.
function passKeys(root) {
  if (root.dpvizPassed) return;
  root.dpvizPassed = true;
  for (const kind of ["keydown", "keyup"]) {
    root.addEventListener(kind, (event) => {
      const from = event.composedPath()[0];
      if (!from.matches?.('input[type="range"], input[type="radio"]')) return;
      if (event.ctrlKey || event.metaKey || event.altKey || !/^[a-z0-9]$/i.test(event.key)) return;
      const { key, code, keyCode } = event;
      document.body.dispatchEvent(new KeyboardEvent(kind, { key, code, keyCode, bubbles: true }));
    });
  }
}
