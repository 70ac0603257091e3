// Adds a small "i" beside the first occurrence of each glossary term on the page.
//
// A mark is a button without text (the style sheet draws its letter), so programs that read or copy
// the page do not see it. Place the mark at the end of an element and never inside a text: the
// page's renderer changes that text later, and would leave a fragment.
const MARK = "dp-term";
const BLOCKS = "h1, h2, h3, h4, p, li, td, th, dd, dt, figcaption, label";
const LEFT_OUT = [
  "button", "a", "code", "pre", "input", "textarea", "select", "svg", "summary", "nav",
  "[role=dialog]", "[role=radio]", "[role=tab]", "[role=option]", "[role=listbox]", "[role=alert]",
  "[role=tooltip]", "[data-testid=stHeader]", "[data-testid=stMetric]", ".st-key-unseen",
  ".st-key-bar", // These settings have their own help, and no space for a mark.
].join(", ");
const STYLE = `
.${MARK} {
  all: unset; cursor: help; display: inline-block; box-sizing: border-box; width: 1.05em;
  height: 1.05em; margin: 0 .1em 0 .25em; border: 1px solid currentColor; border-radius: 50%;
  font: italic 600 .68rem/.95 Georgia, serif; text-align: center; vertical-align: .3em; opacity: .5;
}
.${MARK}::before { content: "i"; }
.${MARK}:hover, .${MARK}:focus-visible { opacity: 1; }
.${MARK}:focus-visible { outline: 2px solid currentColor; outline-offset: 2px; }
@media print { .${MARK} { display: none; } }
`;

export default function (component) {
  const { data, setTriggerValue, parentElement } = component;
  const state = (parentElement.dpvizTerms ??= {});
  state.send = (key) => setTriggerValue("asked", key);
  if (state.watcher) return undefined;

  const words = data.terms.flatMap(({ key, word, spelled }) =>
    spelled.map((text) => ({ key, word, text })));
  words.sort((one, other) => other.text.length - one.text.length);
  const all = new RegExp(`(?<![\\p{L}\\p{N}])(?:${words.map(({ text }) => text).join("|")})(?![\\p{L}\\p{N}])`, "giu");
  const meant = new Map(words.map((entry) => [entry.text.toLowerCase(), entry]));
  const style = document.createElement("style");
  style.textContent = STYLE;
  document.head.append(style);

  const seen = (node) => node.checkVisibility?.({ visibilityProperty: true }) ?? true;

  function mark(node, { key, word }) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = MARK;
    button.dataset.term = key;
    button.title = `What is ${word}?`;
    button.setAttribute("aria-label", button.title);
    button.addEventListener("click", (event) => {
      event.preventDefault();
      event.stopPropagation();
      state.send(key);
    });
    node.parentElement.append(button);
  }

  function look() {
    state.due = null;
    const marked = new Set();
    for (const old of document.querySelectorAll(`.${MARK}`)) {
      const text = old.parentElement.textContent.matchAll(all);
      const said = [...text].some(([hit]) => meant.get(hit.toLowerCase()).key === old.dataset.term);
      if (!said || marked.has(old.dataset.term)) old.remove();
      else marked.add(old.dataset.term);
    }
    const roots = ["stMain", "stSidebar"].map((id) => document.querySelector(`[data-testid="${id}"]`));
    const later = []; // Labels have their own help; mark one only if no other text has the term.
    for (const root of roots) {
      if (!root) continue;
      const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
      const found = [];
      while (walker.nextNode()) found.push(walker.currentNode);
      for (const node of found) place(node, marked, later);
    }
    for (const node of later) if (node.isConnected) place(node, marked, null);
  }

  function place(node, marked, later) {
    const parent = node.parentElement;
    if (!parent || !parent.closest(BLOCKS) || parent.closest(LEFT_OUT)) return;
    all.lastIndex = 0;
    for (let hit = all.exec(node.data); hit; hit = all.exec(node.data)) {
      const entry = meant.get(hit[0].toLowerCase());
      if (marked.has(entry.key) || !seen(parent)) continue;
      if (later && parent.closest("label")) {
        later.push(node);
        return;
      }
      marked.add(entry.key);
      mark(node, entry);
    }
  }

  const soon = () => {
    if (state.due === undefined || state.due === null) state.due = setTimeout(look, 150);
  };
  state.watcher = new MutationObserver((changes) => {
    const own = (nodes) => [...nodes].every((node) => node.classList?.contains(MARK));
    if (changes.some(({ addedNodes, removedNodes, type }) =>
      type === "characterData" || !own(addedNodes) || !own(removedNodes))) soon();
  });
  state.watcher.observe(document.body, { childList: true, subtree: true, characterData: true });
  soon();
  return () => {
    state.watcher.disconnect();
    clearTimeout(state.due);
    style.remove();
    for (const old of document.querySelectorAll(`.${MARK}`)) old.remove();
    delete parentElement.dpvizTerms;
  };
}
