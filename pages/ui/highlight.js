// Highlights one mechanism in every panel while the pointer is on it in any panel of a chart. All
// others fade, and the mechanism's line is twice as thick. If the layout's meta has an opacity
// ("band"), the mechanism's range is filled.
//
// The layout's meta states how to identify the elements of a chart: "group" by a trace's legend
// group, "point" by the first datum of each point. The server gets no message and nothing is drawn
// again: Plotly stores a shape's data on its element, and only the style changes.
const FAINT = "0.12";
const REACH = 14; // A pointer this many pixels from a line is on the line.
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

// Returns the mechanism of the line nearest to the pointer, also between two points of the line.
function nearest(chart, { clientX, clientY }) {
  let found = null;
  let least = REACH;
  parts(chart, (node, key) => {
    if (traceOf(node)?.fill === "toself") return;
    for (const path of node.querySelectorAll("path.js-line")) {
      const { x, y } = new DOMPoint(clientX, clientY).matrixTransform(path.getScreenCTM().inverse());
      const corners = path.getAttribute("d")?.match(/-?[\d.]+/g)?.map(Number) ?? [];
      for (let at = 0; at + 3 < corners.length; at += 2) {
        const [x0, y0, x1, y1] = corners.slice(at, at + 4);
        const [dx, dy] = [x1 - x0, y1 - y0];
        const along = ((x - x0) * dx + (y - y0) * dy) / (dx * dx + dy * dy || 1);
        const part = Math.min(1, Math.max(0, along));
        const apart = Math.hypot(x - x0 - part * dx, y - y0 - part * dy);
        if (apart < least) [found, least] = [key, apart];
      }
    }
  });
  return found;
}

function show(chart, wanted) {
  if (chart.dpvizShown === wanted) return;
  chart.dpvizShown = wanted;
  parts(chart, (node, key) => {
    node.dpvizOpacity ??= node.style.opacity;
    node.style.opacity = wanted === null || key === wanted ? node.dpvizOpacity : FAINT;
    if (wanted === null) delete node.dpvizOpacity;
    for (const line of node.querySelectorAll("path.js-line")) {
      line.dpvizWidth ??= line.style.strokeWidth;
      line.style.strokeWidth = key === wanted ? `calc(2 * ${line.dpvizWidth})` : line.dpvizWidth;
    }
    // Fill only the range around the line that is under the pointer.
    const { band } = chart.layout.meta;
    const range = band && traceOf(node)?.fill === "toself" && node.querySelector(".js-fill");
    if (range) range.style.fillOpacity = key === wanted ? band : 0;
  });
}

function follow(chart) {
  if (chart.dpvizFollowed || !chart.on || !chart.layout?.meta?.highlight) return;
  chart.dpvizFollowed = true;
  if (chart.layout.meta.highlight === "group") {
    chart.addEventListener("mousemove", (event) => {
      if (!event.target.closest(".annotation, .legend")) show(chart, nearest(chart, event));
    });
    chart.addEventListener("mouseleave", () => show(chart, null));
  } else {
    chart.on("plotly_hover", ({ points: [point] }) => {
      if (point.customdata?.[0]) show(chart, point.customdata[0]);
    });
    chart.on("plotly_unhover", () => show(chart, null));
  }
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
