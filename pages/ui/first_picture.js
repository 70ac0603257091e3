// Draws a comparison figure before Streamlit has started; board.js precedes this code in one
// module. The figure is removed when the page draws its own figure, or if anything else appears.
const host = document.getElementById("first-picture");
const CALLS = ["Commit", "Beyond", "Pin", "Fresh", "Draws", "Open", "Link", "View", "Present"];
const path = location.pathname;
let ran = false;

// Only Streamlit applies a chosen theme, so this figure uses the system's theme.
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
  // Show the buttons of all callbacks, so that no element moves when the page arrives.
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
