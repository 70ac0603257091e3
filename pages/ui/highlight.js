// Shows one mechanism in every panel of a chart while the pointer is on it in any: the others fade,
// and where the layout's meta says how strongly ("band") its range is filled.
//
// A chart says in its layout's meta how its parts are told apart: "group" by the legend group of
// a trace, "point" by the first of the data of each point. Nothing is sent to the server, and
// nothing is drawn anew: Plotly keeps what a shape stands for on its element, and its style is all
// that changes.
const FAINT = "0.12";
const CHART = ".js-plotly-plot";
const NAME = "name:"; // what notes that stand beside a line are called, before its group

const traceOf = (node) => node.__data__?.[0]?.trace;

// Calls back with each element of a chart that stands for a mechanism, and its key.
function parts(chart, act) {
  const how = chart.layout?.meta?.highlight;
  for (const node of chart.querySelectorAll(".scatterlayer > .trace")) {
    const trace = traceOf(node);
    if (!trace) continue;
    if (how === "group") {
      if (trace.legendgroup) act(node, trace.legendgroup);
      continue;
    }
    for (const mark of node.querySelectorAll("path.point, g.errorbar")) {
      const key = trace.customdata?.[mark.__data__?.i]?.[0];
      if (key) act(mark, key);
    }
  }
  for (const node of chart.querySelectorAll(".annotation")) {
    const key = nameOf(chart, node);
    if (key) act(node, key);
  }
}

function nameOf(chart, node) {
  const name = chart.layout?.annotations?.[Number(node.dataset.index)]?.name ?? "";
  return name.startsWith(NAME) ? name.slice(NAME.length) : null;
}

function show(chart, wanted) {
  if (chart.dpvizShown === wanted) return;
  chart.dpvizShown = wanted;
  parts(chart, (node, key) => {
    node.dpvizOpacity ??= node.style.opacity;
    node.style.opacity = wanted === null || key === wanted ? node.dpvizOpacity : FAINT;
    if (wanted === null) delete node.dpvizOpacity;
    // The range of the line under the pointer alone is filled.
    const { band } = chart.layout.meta;
    const range = band && traceOf(node)?.fill === "toself" && node.querySelector(".js-fill");
    if (range) range.style.fillOpacity = key === wanted ? band : 0;
  });
}

function follow(chart) {
  if (chart.dpvizFollowed || !chart.on || !chart.layout?.meta?.highlight) return;
  chart.dpvizFollowed = true;
  const grouped = chart.layout.meta.highlight === "group";
  chart.on("plotly_hover", ({ points: [point] }) => {
    const key = grouped ? point.fullData.legendgroup : point.customdata?.[0];
    if (key) show(chart, key);
  });
  chart.on("plotly_unhover", () => show(chart, null));
  // Names and entries of the legend stand for their lines.
  chart.addEventListener("mouseover", ({ target }) => {
    const name = target.closest(".annotation");
    const entry = target.closest(".legend .traces");
    if (name) show(chart, nameOf(chart, name));
    else if (entry) show(chart, traceOf(entry)?.legendgroup || null);
  });
  chart.addEventListener("mouseout", ({ target }) => {
    if (target.closest(".annotation, .legend .traces")) show(chart, null);
  });
}

export default function (component) {
  const state = (component.parentElement.dpvizHighlight ??= {});
  if (state.watcher) return undefined;
  let due = null;
  const look = () => {
    due = null;
    // Names keep clear of what they lie on: pages/ui/looks.py has the style.
    const ground = getComputedStyle(document.querySelector(".stApp")).backgroundColor;
    const { style } = document.documentElement, dark = parseInt(ground.match(/\d+/)?.[0] ?? 255) < 128;
    style.setProperty("--dpviz-ground", ground);
    style.setProperty("--dpviz-lift", dark ? "1.6" : "1");
    document.querySelectorAll(CHART).forEach(follow);
  };
  const soon = () => { due ??= setTimeout(look, 100); };
  state.watcher = new MutationObserver(soon);
  state.watcher.observe(document.body, { childList: true, subtree: true });
  soon();
  return () => {
    state.watcher.disconnect();
    clearTimeout(due);
    delete component.parentElement.dpvizHighlight;
  };
}
