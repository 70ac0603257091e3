// A page's keys go on working while one of our sliders has the focus.
//
// Streamlit leaves single keys to any input element. A slider needs arrows and the like; a letter
// or a digit means nothing to it and is said again where the page listens.
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
