// Highlights one mechanism in every panel while the pointer is on it in any panel of a chart. All
// others fade. If the layout's meta has an opacity ("band"), the mechanism's range is filled.
//
// The layout's meta states how to identify the elements of a chart: "group" by a trace's legend
// group, "point" by the first datum of each point. The server gets no message and nothing is drawn
// again: Plotly stores a shape's data on its element, and only the style changes.
const FAINT = "0.12";
const CHART = ".js-plotly-plot";
const NAME = "name:"; // The name of a note beside a line is "name:" and the line's group.

const traceOf = (node) => node.__data__?.[0]?.trace;

// Calls a function with each chart element that belongs to a mechanism, and the mechanism's key.
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
    // Fill only the range around the line that is under the pointer.
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
  // A pointer on a name or a legend entry highlights the matching line as well.
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
    // Give names the page's background, so that lines behind them do not cross the letters.
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
