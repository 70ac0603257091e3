// The board before Streamlit has started. Follows board.js in one module; the component takes the
// board over (pages/ui/board.js), and it goes where Streamlit shows anything else.
const host = document.getElementById("first-picture");
const { told, followed } = document.getElementById("first-picture-script").dataset;
const CALLS = ["Commit", "Beyond", "Pin", "Fresh", "Draws", "Open", "Link", "View", "Present"];
const path = location.pathname;
const asked = []; // what is asked of the page before it is there
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

function end() {
  watch.disconnect();
  globalThis.dpvizFirst = undefined;
  host.remove();
}

const watch = new MutationObserver(() => {
  const app = document.querySelector("[data-test-script-state]");
  const state = app?.dataset.testScriptState;
  ran ||= state === "running";
  const other = ran && state === "notRunning" && !document.querySelector(".st-key-board");
  if (other || location.pathname !== path) end();
});

function draw(data) {
  const style = document.createElement("style");
  style.textContent = STYLE;
  const root = document.createElement("div");
  root.style.pointerEvents = "auto";
  const inside = host.attachShadow({ mode: "open" });
  inside.append(style, root);
  const options = Object.fromEntries(
    CALLS.map((name) => [`on${name}`, (...values) => void asked.push([`on${name}`, values])]),
  );
  const board = DpvizBoard.mount(root, data.payload, options);
  globalThis.dpvizFirst = {
    taken: { root, board, now: data.payload.now },
    // Put the board into its place in the page and return true, if it is what is asked for.
    take(shape, place) {
      const same = shape === data.shape;
      if (same) {
        const focused = inside.activeElement;
        root.style.pointerEvents = "";
        place.append(root);
        focused?.focus({ preventScroll: true });
      } else board.destroy();
      end();
      return same;
    },
    // From now on the page is there to answer.
    answer(calls) {
      Object.assign(options, calls);
      for (const [name, values] of asked) options[name](...values);
    },
  };
  return board;
}

async function json(address) {
  const answer = await fetch(address);
  if (!answer.ok) throw new Error(address);
  return answer.json();
}

// As the page sends them (pages/ui/frames.js), which then has nothing new to tell.
function keep(board, token, parts) {
  if (!board.element.isConnected) return;
  const store = (globalThis.dpvizFrames ??= new Map());
  store.set(token, new Map([...parts, ...(store.get(token) ?? [])]));
  for (const [, { predicted, least }] of parts) {
    if (predicted) Object.assign(board.payload, { predicted, least });
  }
  board.addFrames(parts.flatMap(([, { frames }]) => frames ?? []));
}

if (themed()) end();
else {
  watch.observe(document.getElementById("root"), {
    subtree: true, childList: true, attributeFilter: ["data-test-script-state"],
  });
  json(told)
    .then(async (data) => {
      if (!host.isConnected) return;
      const board = draw(data);
      const { token, parts } = await json(followed);
      keep(board, token, Object.entries(parts));
    })
    .catch(end);
}
