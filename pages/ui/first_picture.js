// The board before Streamlit has started, to be looked at. Follows board.js in one module; it goes
// when the page has drawn its own (pages/ui/board.js), or where Streamlit shows anything else.
const host = document.getElementById("first-picture");
const CALLS = ["Commit", "Beyond", "Pin", "Fresh", "Draws", "Open", "Link", "View", "Present"];
const path = location.pathname;
let ran = false;

// A theme that somebody chose is Streamlit's to apply: this picture has the system's.
function themed() {
  try {
    const chosen = Object.keys(localStorage).filter((key) => key.startsWith("stActiveTheme"));
    return chosen.some((key) => localStorage.getItem(key) !== '"System"');
  } catch {
    return true;
  }
}

if (themed()) host.remove();
else {
  const style = document.createElement("style");
  style.textContent = STYLE;
  const root = document.createElement("div");
  host.attachShadow({ mode: "open" }).append(style, root);
  const payload = JSON.parse(document.getElementById("first-picture-told").textContent);
  // what the page answers to has its buttons, so that nothing moves when the page is there
  const options = Object.fromEntries(CALLS.map((name) => [`on${name}`, () => {}]));
  const board = DpvizBoard.mount(root, payload, options);
  const watch = new MutationObserver(() => {
    const app = document.querySelector("[data-test-script-state]");
    const state = app?.dataset.testScriptState;
    ran ||= state === "running";
    const other = ran && state === "notRunning" && !document.querySelector(".st-key-board");
    if (other || location.pathname !== path) globalThis.dpvizFirst?.();
  });
  globalThis.dpvizFirst = () => {
    globalThis.dpvizFirst = undefined;
    watch.disconnect();
    board.destroy();
    host.remove();
  };
  watch.observe(document.getElementById("root"), {
    subtree: true, childList: true, attributeFilter: ["data-test-script-state"],
  });
}
