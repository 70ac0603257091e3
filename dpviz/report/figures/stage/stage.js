// @ts-check
// This script runs one animation page: a chart, a sentence and a control. Readers bet, the chart
// moves to the answer, waits for a second and shows whether the bet was right.
//
// All data comes with the payload of dpviz.lessons.scene. This script reports the bet and how far
// the answer is revealed. A server reply with the same values changes nothing here.

import { nearest } from "../board/axis.js";
import { add, ARROWS, between, disc, discs, dragged, haloed, saying, still, stroke, surface, thumbnail } from "../board/sheet.js";

const RUNS = 2400; // The chart moves for this many milliseconds.
const RESTS = 1000; // The chart rests this many milliseconds after a move.
const FACTOR = 1.12; // Each arrow key press changes epsilon by this factor.

const said = (value) => DpvizNumbers.numeral(value, 2);
// Never break a line between epsilon and its number.
const whole = (text) => text.replace(/(epsilon|ε) (?=\d)/gi, "$1\u00a0");
const button = (name, parent, text, onclick, more = {}) =>
  add("button", name, parent, text, { type: "button", onclick, ...more });
const wait = (time) => new Promise((done) => setTimeout(done, time));
const frame = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));

// While the page changes, a chart may have no space. In this case it must not draw.
const roomy = (canvas) => canvas.clientHeight > 64;

const painted = (canvas) => {
  const [width, height] = [canvas.clientWidth, canvas.clientHeight];
  const pen = surface(canvas, width, height);
  canvas.style.width = canvas.style.height = ""; // Empty values let the layout set the size.
  const style = getComputedStyle(canvas);
  const tone = (name) => style.getPropertyValue(name).trim() || style.color;
  const [accent, ground] = [tone("--st-primary-color"), tone("--dps-ground")];
  return { pen, width, height, ink: style.color, font: style.fontFamily, accent, ground };
};

// Enlarge texts with the chart on a large screen, so that a lecture hall's last row can read.
const enlarged = (place, node) => {
  const zoom = place.clientWidth > 1300 ? 1.25 : 1;
  node.style.zoom = String(zoom);
  return [place.clientWidth / zoom, place.clientHeight / zoom];
};

// Methods of a chart: `at(stop)` shows a step of the animation, `between(from, to, share)` a state
// between two, `canvas()` returns what the filmstrip copies, `fit()` follows the window size.

function boardView(place, scene, says) {
  const roots = scene.boards.map(({ payload, options, publishable, draws }) => {
    const root = add("div", "", place);
    const board = DpvizBoard.mount(root, payload, {
      ...options, controls: [], strip: false, answer: false, phoneBelow: 0, says,
      range: (options.rows ?? []).includes("distance"),
      large: place.clientWidth > 500,
    });
    board.setPublishable(publishable);
    return { root, board, draws, columns: payload.columns.length + 1, rows: options.rows };
  });
  const fit = () => {
    for (const { root, board, columns, rows } of roots) {
      const [width, height] = enlarged(place, root);
      const column = Math.min((width - 10) / columns - 8, 1.15 * height);
      root.style.width = `${columns * (column + 8)}px`;
      const small = width < 500;
      const ranged = rows.includes("distance"); // The text below the distance row has two lines.
      // Subtract the height of the title and of the recovery number in a column.
      const room = height - (small ? (ranged ? 142 : 120) : 150);
      const distance = ranged ? Math.max(small ? 32 : 40, 0.14 * room) : 0;
      const shares = { picture: 1, spectrum: 0.75 };
      const whole = rows.reduce((sum, row) => sum + (shares[row] ?? 0), 0);
      board.element.style.setProperty("--dpv-distance", `${distance}px`);
      for (const [row, share] of Object.entries(shares)) {
        const high = Math.max(40, ((room - distance) * share) / whole);
        board.element.style.setProperty(`--dpv-${row}`, `${high}px`);
      }
      board.restyle();
    }
  };
  // Hidden figures remain laid out and drawn, so that they appear without delay.
  const show = (which) => roots.forEach(({ root }, place) => { root.toggleAttribute("data-waits", place !== which); });
  let current = -1;
  return {
    fit,
    at(stop) {
      const { board, epsilon } = scene.stops[stop];
      if (current !== board && roots[board].draws) roots[board].board.setDraws(roots[board].draws);
      current = board;
      show(board);
      roots[board].board.setEpsilon(epsilon);
    },
    between(from, to, share) {
      const [a, b] = [scene.stops[from], scene.stops[to]];
      if (a.board !== b.board) return b.epsilon;
      const now = between(a.epsilon, b.epsilon, share);
      roots[a.board].board.setEpsilon(now);
      return now;
    },
    canvas: () => [...roots[Math.max(current, 0)].board.element.querySelectorAll(".dpv-col")]
      .filter((column) => column.dataset.key !== "exact")[0]?.querySelector("canvas"),
    stop: () => roots.forEach(({ board }) => board.destroy()),
  };
}

function personView(place, scene, says) {
  const root = add("div", "dps-person", place);
  let person = null;
  let which = -1;
  const show = (stop) => {
    if (stop.person !== which) {
      const row = person?.row();
      person?.stop();
      which = stop.person;
      const data = scene.persons[which];
      person = dpvizPerson(root, { ...data, row: row ?? data.row }, null, says);
    }
    person.at(stop.at);
  };
  return {
    fit() {
      const [width, height] = enlarged(place, root);
      root.style.width = `${Math.min(width, 1.5 * height)}px`;
    },
    at: (stop) => show(scene.stops[stop]),
    between(from, to, share) {
      const [a, b] = [scene.stops[from], scene.stops[to]];
      if (a.person !== b.person) return b.epsilon;
      person.at(a.at + share * (b.at - a.at));
      return between(a.epsilon, b.epsilon, share);
    },
    canvas: () => root.querySelector(".dp-right canvas"),
    stop: () => person?.stop(),
  };
}

function canvasView(place, draw) {
  const canvas = add("canvas", "", place, null, { role: "img" });
  let now = 0;
  const paint = () => { if (roomy(canvas)) canvas.setAttribute("aria-label", draw(painted(canvas), now)); };
  return {
    fit: paint,
    at(stop) { now = stop; paint(); },
    between: (from, to) => to,
    canvas: () => canvas,
    stop() {},
  };
}

// Show points with three features, then rotate them to their widest side, the PCA projection.
function cloudView(place, scene, says) {
  const about = says("A cloud of {count} people", { count: scene.rows.length });
  const canvas = add("canvas", "dps-cloud", place, null, { role: "img", "aria-label": about });
  const TURNS = 16_000; // The cloud rotates once in this many milliseconds.
  const longest = Math.max(...scene.rows.map((row) => Math.hypot(...row)));
  const reach = 1.1 * longest;
  const dot = (a, b) => a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
  let turn = 0.7;
  let widest = 0; // The value 1 means that the cloud is seen from its widest side.
  let stopped = false;
  let held = null;
  let before = null;

  // Compute the axes of the view. Between two views, interpolate them and keep right angles.
  const axes = () => {
    const [c, s, tilt] = [Math.cos(turn), Math.sin(turn), -0.35];
    const from = [[c, s, 0], [Math.sin(tilt) * s, -Math.sin(tilt) * c, Math.cos(tilt)]];
    if (widest === 0) return from;
    // The sign of a component is arbitrary, so use the orientation nearer to the view.
    const to = from.map((own, at) => scene.components[at].map((one) => one * (dot(own, scene.components[at]) < 0 ? -1 : 1)));
    const mixed = from.map((own, at) => own.map((one, i) => (1 - widest) * one + widest * to[at][i]));
    const unit = (one) => one.map((value) => value / Math.hypot(...one));
    const across = unit(mixed[0]);
    const part = dot(across, mixed[1]);
    return [across, unit(mixed[1].map((value, i) => value - part * across[i]))];
  };
  const paint = () => {
    const { pen, width, height, ink, accent, font } = painted(canvas);
    const [across, up] = axes();
    const deep = [
      across[1] * up[2] - across[2] * up[1],
      across[2] * up[0] - across[0] * up[2],
      across[0] * up[1] - across[1] * up[0],
    ];
    const unit = (Math.min(width, height) / 2 - 28) / longest; // Leave space above for names.
    const at = (row) => [width / 2 + unit * dot(row, across), height / 2 - unit * dot(row, up)];
    const small = width < 500;
    pen.textAlign = "center";
    pen.font = `${small ? 15 : 16}px ${font}`;
    scene.features.forEach((name, place) => {
      const end = [0, 0, 0];
      end[place] = 0.55 * reach;
      const [x, y] = at(end);
      pen.globalAlpha = 0.45;
      pen.strokeStyle = pen.fillStyle = ink;
      pen.lineWidth = 1.5;
      stroke(pen, width / 2, height / 2, x, y);
      pen.globalAlpha = 0.85;
      const [wide, tall] = [x - width / 2, y - height / 2];
      const far = Math.hypot(wide, tall);
      if (far > 30) { // Place the name beyond the end of its line, not on the line.
        const beside = pen.measureText(says(name)).width / 2 + 8;
        pen.fillText(says(name), x + (beside * wide) / far, y + (18 * tall) / far + 5);
      }
    });
    const last = scene.rows.length - 1;
    const far = scene.rows.map((row, place) => [dot(row, deep), place]).sort((a, b) => a[0] - b[0]);
    if (widest === 1) {
      pen.globalAlpha = 1;
      pen.fillStyle = ink;
      pen.font = `600 ${small ? 15 : 18}px ${font}`;
      pen.fillText(says("{share} of the differences are kept", { share: scene.keptText }), width / 2, height - 12);
    }
    for (const [depth, place] of far) {
      const [x, y] = at(scene.rows[place]);
      const near = 0.55 + 0.4 * Math.min(1, Math.max(0, 0.5 + depth / (2 * reach)));
      pen.globalAlpha = place === last ? 1 : near;
      pen.fillStyle = place === last ? accent : "#818d99";
      disc(pen, x, y, (small ? 5 : 9) * (1 + (0.35 * depth) / reach));
      if (place !== last) continue;
      pen.globalAlpha = 1;
      pen.fillStyle = ink;
      pen.font = `600 ${small ? 15 : 18}px ${font}`;
      pen.fillText(says("her"), Math.min(Math.max(x, 30), width - 30), y - (small ? 11 : 16));
    }
    pen.globalAlpha = 1;
  };
  const spin = (time) => {
    if (stopped) return;
    if (before !== null && held === null && widest === 0 && !document.hidden) {
      turn += ((time - before) * 2 * Math.PI) / TURNS;
      paint();
    }
    before = time;
    requestAnimationFrame(spin);
  };
  if (!still()) requestAnimationFrame(spin);
  const grab = (event) => {
    if (widest) return false;
    held = event.clientX;
    return true;
  };
  const roll = (event) => {
    turn += (event.clientX - held) / 120;
    held = event.clientX;
    paint();
  };
  dragged(canvas, grab, roll, () => { held = null; });
  return {
    glides: true,
    fit: paint,
    at(stop) { widest = scene.stops[stop].widest ? 1 : 0; paint(); },
    between(from, to, share) {
      const [a, b] = [from, to].map((stop) => (scene.stops[stop].widest ? 1 : 0));
      const eased = share * share * (3 - 2 * share);
      widest = a + (b - a) * eased;
      paint();
    },
    canvas: () => canvas,
    stop() { stopped = true; },
  };
}

// Draw a hundred people under equal suspicion. Filled faces show how many may be members.
function facesView(place, scene, says) {
  const canvas = add("canvas", "", place, null, { role: "img" });
  let now = scene.stops[0].epsilon;
  const epsilons = scene.frames.map(({ epsilon }) => epsilon);
  const paint = () => {
    if (!roomy(canvas)) return;
    const { pen, width, height, ink, accent, font } = painted(canvas);
    const { count, text } = scene.frames[nearest(epsilons, now)];
    const step = Math.min(width / 10, (height - 64) / 10);
    const [left, size] = [(width - 10 * step) / 2, 0.4 * step];
    pen.lineWidth = Math.max(1.5, step / 26);
    for (let place = 0; place < 100; place += 1) {
      const [x, y] = [left + ((place % 10) + 0.5) * step, (Math.floor(place / 10) + 0.5) * step];
      const filled = Math.min(1, Math.max(0, count - place));
      if (filled) {
        pen.save();
        pen.beginPath();
        pen.rect(x - size, y - size, 2 * size * filled, 2 * size);
        pen.clip();
        pen.fillStyle = accent;
        disc(pen, x, y, size);
        pen.restore();
      }
      pen.globalAlpha = filled ? 1 : 0.4;
      pen.strokeStyle = pen.fillStyle = ink;
      pen.beginPath();
      pen.arc(x, y, size, 0, 2 * Math.PI);
      pen.moveTo(x + 0.5 * size, y + 0.25 * size);
      pen.arc(x, y + 0.25 * size, 0.5 * size, 0, Math.PI);
      pen.stroke();
      for (const eye of [-0.35, 0.35]) disc(pen, x + eye * size, y - 0.25 * size, 0.11 * size);
    }
    pen.globalAlpha = 1;
    pen.strokeStyle = "#e76300";
    for (let place = 0; place < scene.before; place += 1) {
      pen.lineWidth = Math.max(2, step / 14);
      disc(pen, left + ((place % 10) + 0.5) * step, (Math.floor(place / 10) + 0.5) * step, 1.14 * size, "stroke");
    }
    const words = says("{count} of 100", { count: text });
    pen.fillStyle = ink;
    pen.font = `${width < 500 ? 15 : 18}px ${font}`;
    pen.textAlign = "right";
    pen.fillText(says("ringed: {count} of 100 before the release", { count: scene.beforeText }), width - (width < 500 ? 4 : left), height - 14);
    pen.textAlign = "left";
    pen.font = `600 ${width < 500 ? 22 : 40}px ${font}`;
    pen.fillText(words, width < 500 ? 4 : left, height - 12);
    canvas.setAttribute("aria-label", words);
  };
  return {
    fit: paint,
    at(stop) { now = scene.stops[stop].epsilon; paint(); },
    between(from, to, share) {
      const [a, b] = [scene.stops[from].epsilon, scene.stops[to].epsilon];
      now = between(a, b, share);
      paint();
      return now;
    },
    canvas: () => canvas,
    stop() {},
  };
}

// Draw one crowd for each epsilon, with one dot for each person needed.
function crowds(scene, says) {
  return ({ pen, width, height, ink, accent, font }, stop) => {
    const most = Math.max(...scene.crowds.map((crowd) => crowd.people));
    const gap = 48;
    const wide = (width + gap) / scene.crowds.length - gap;
    const step = Math.sqrt((wide * (height - 70)) / most);
    const across = Math.max(1, Math.floor(wide / step));
    const words = scene.crowds.map(({ people, epsilon }, place) => {
      const left = place * (wide + gap);
      pen.fillStyle = pen.strokeStyle = place ? accent : ink;
      const places = Array.from({ length: people }, (_, i) => (
        [left + ((i % across) + 0.5) * step, 8 + (Math.floor(i / across) + 0.5) * step]));
      pen.lineWidth = Math.max(1, step / 8);
      // Discs are the people of her school. Rings are the people needed beyond her school.
      discs(pen, places.slice(0, scene.own).flat(), 0.34 * step);
      discs(pen, places.slice(scene.own).flat(), 0.34 * step, "stroke");
      pen.fillStyle = ink;
      pen.font = `600 ${width < 500 ? 15 : 22}px ${font}`;
      const known = place <= stop;
      const text = says("{count} pupils, ε {epsilon}", {
        count: scene.texts[place], epsilon: known ? said(epsilon) : "?",
      });
      const lines = pen.measureText(text).width > wide ? text.split(", ") : [text];
      lines.forEach((line, at) => {
        const from = Math.min(left, width - pen.measureText(line).width);
        pen.fillText(line, from, height - 14 - (lines.length - 1 - at) * (width < 500 ? 18 : 26));
      });
      return text;
    });
    return words.join("; ");
  };
}

// Draw a small table as points, its mean and its row-norm bound, with and without the last row.
function leak(scene, says) {
  return ({ pen, width, height, ink, accent, ground, font }, at) => {
    const { shown, declared } = scene.stops[at];
    const pad = { left: 44, bottom: 40, top: 6, right: 10 };
    const reach = 1.08 * (declared ? scene.declared : scene.within);
    const unit = Math.min((width - pad.left - pad.right) / reach, (height - pad.bottom - pad.top) / (0.62 * reach));
    const X = (x) => pad.left + x * unit;
    const Y = (y) => height - pad.bottom - y * unit;
    pen.font = `15px ${font}`;
    pen.fillStyle = pen.strokeStyle = ink;
    pen.lineWidth = 1;
    stroke(pen, X(0), pad.top, X(0), Y(0), width - pad.right, Y(0));
    pen.fillText(says(scene.features[0]), X(0) + 4, height - 14);
    pen.save();
    pen.translate(20, Y(0) - 4);
    pen.rotate(-Math.PI / 2);
    pen.fillText(says(scene.features[1]), 0, 0);
    pen.restore();
    const large = width < 500 ? 0.6 : 1;
    const dot = (row, size, tone) => {
      pen.fillStyle = tone;
      disc(pen, X(row[0]), Y(row[1]), size * large);
    };
    const name = (text, row, up) => {
      pen.font = `600 ${width < 500 ? 15 : 18}px ${font}`;
      const from = Math.min(X(row[0]) + 16, width - pen.measureText(text).width - 4);
      haloed(pen, { ground, faint: ink }, text, from, Y(row[1]) + up);
    };
    const last = scene.rows.length - 1;
    scene.rows.forEach((row, place) => dot(row, place === last ? 12 : 10, place === last ? accent : "#818d99"));
    const hers = shown === "mean" ? says("her: {row}", { row: scene.lastText }) : says("her");
    name(hers, scene.rows[last], shown === "mean" ? (width < 500 ? -37 : -54) : 6);
    const words = [says("{count} people", { count: scene.rows.length })];
    pen.fillStyle = ink;
    pen.font = `${width < 500 ? 15 : 18}px ${font}`;
    pen.textAlign = "right";
    pen.fillText(words[0], width - pad.right, pad.top + 18);
    pen.textAlign = "left";
    if (shown === "mean") {
      const [x, y] = [X(scene.mean[0]), Y(scene.mean[1])];
      pen.strokeStyle = "#e76300";
      pen.lineWidth = 5;
      stroke(pen, x - 11, y, x + 11, y);
      stroke(pen, x, y - 11, x, y + 11);
      name(says("printed mean"), scene.mean, 6);
      pen.strokeStyle = "#e76300";
      pen.lineWidth = 4;
      disc(pen, X(scene.recovered[0]), Y(scene.recovered[1]), 22 * large, "stroke");
      const computed = says("computed: {row}", { row: scene.recoveredText });
      name(computed, scene.recovered, width < 500 ? -19 : -32);
      words.push(says("the mean"), computed);
    }
    if (shown === "bound") {
      const bounds = declared
        ? [[scene.declared, says("declared {bound}", { bound: scene.declaredText }), []]]
        : [
          [scene.within, says("with her {bound}", { bound: scene.withinText }), []],
          [scene.without, says("without {bound}", { bound: scene.withoutText }), [9, 7]],
        ];
      for (const [bound, text, dash] of bounds) {
        pen.strokeStyle = "#e76300";
        pen.lineWidth = 3;
        pen.setLineDash(dash);
        pen.beginPath();
        pen.arc(X(0), Y(0), bound * unit, -Math.asin(Math.min(1, (0.6 * reach) / bound)), 0);
        pen.stroke();
        pen.setLineDash([]);
        const tilt = dash.length ? 0.8 : 0.52; // This angle keeps the text above the dots.
        pen.textAlign = "right";
        pen.fillStyle = ink;
        pen.font = `600 ${width < 500 ? 15 : 18}px ${font}`;
        pen.fillText(text, X(bound * Math.cos(tilt)) - 10, Y(bound * Math.sin(tilt)));
        pen.textAlign = "left";
        words.push(text);
      }
    }
    return words.join(", ");
  };
}

const VIEWS = {
  board: boardView,
  person: personView,
  faces: facesView,
  people: (place, scene, says) => canvasView(place, crowds(scene, says)),
  cloud: cloudView,
  leak: (place, scene, says) => canvasView(place, leak(scene, says)),
};

class Stage {
  constructor(root, data, tell) {
    this.root = root;
    this.send = tell;
    this.data = data;
    this.says = data.saying;
    this.bet = data.bet;
    this.made = data.made;
    this.stop = data.made;
    this.flag = data.bet;
    this.moving = false;
    this.wall = { count: 0, bets: null };
    this.build();
    this.restore();
    if (data.room) this.listen();
    this.watcher = new ResizeObserver(() => this.fit());
    this.watcher.observe(this.pic);
    this.listener = (event) => this.onKey(event);
    document.addEventListener("keydown", this.listener);
    // A canvas keeps the colours in which it was drawn, so a change of theme draws it again.
    this.stage.addEventListener("transitionend", (event) => {
      if (event.target === this.stage && !this.moving) this.restore();
    });
  }

  // A busy server reads only the last waiting message, so each message repeats its whole step.
  tell(word, value) {
    const { id, room } = this.data;
    if (this.bet !== null && !room) this.send("bet", [id, this.bet]);
    if (this.made) this.send("made", [id, this.made]);
    if (word) this.send(word, value);
  }

  // Read the bets made on phones. The server sends only their number until the bets are shown.
  listen() {
    const { name, key } = this.data.room;
    this.stream = new EventSource(`/c/${name}/events?key=${encodeURIComponent(key)}`);
    this.stream.onmessage = (event) => {
      const told = JSON.parse(event.data);
      if (told.step !== this.data.id) return;
      this.wall = told;
      this.pile();
      this.write();
    };
  }

  // Draw the QR code dark on light in every theme, because cameras need this contrast.
  drawCode(parent, code) {
    const [width, about] = [8 * code.length, this.says("QR code of {address}", this.data.room)];
    const canvas = add("canvas", "dps-code", parent, null, { role: "img", "aria-label": about, width, height: width });
    const pen = canvas.getContext("2d");
    pen.fillStyle = "#fff";
    pen.fillRect(0, 0, canvas.width, canvas.height);
    pen.fillStyle = "#000";
    code.forEach((row, y) => [...row].forEach((dark, x) => {
      if (dark === "1") pen.fillRect(8 * x, 8 * y, 8, 8);
    }));
  }

  // Open the page for a lecture room, in which each phone gets its own release.
  inOrOut() {
    const { name, key } = this.data.room;
    location.assign(`/c/${name}/wall?key=${encodeURIComponent(key)}&language=${this.data.language}`);
  }

  showBets() {
    const { name, key } = this.data.room;
    fetch(`/c/${name}/show`, { method: "POST", headers: { "x-room-key": key } });
  }

  // Draw bets as piles of dots on the epsilon axis, in bins of a twelfth of a decade.
  pile() {
    this.piles?.remove();
    if (!this.wall.bets || !this.line) return;
    this.piles = add("div", "dps-piles", this.line);
    const bins = new Map();
    for (const bet of this.wall.bets) {
      const bin = Math.round(12 * Math.log10(bet));
      bins.set(bin, [...(bins.get(bin) ?? []), bet]);
    }
    const tallest = Math.max(1, ...[...bins.values()].map((held) => held.length));
    const size = Math.max(4, Math.min(16, (this.rail.clientHeight - 58) / tallest));
    for (const [bin, held] of bins) {
      held.forEach((bet, place) => {
        const dot = add("i", "", this.piles);
        dot.style.cssText = `left:${this.left(10 ** (bin / 12))};bottom:${place * size}px;width:${size - 1}px;height:${size - 1}px;animation-delay:${30 * place}ms`;
        dot.dataset.near = String(Math.abs(Math.log(bet / this.data.right)) <= Math.log(this.data.near) + 1e-9);
      });
    }
  }

  destroy() {
    this.gone = true;
    this.stream?.close();
    this.watcher.disconnect();
    document.removeEventListener("keydown", this.listener);
    this.view.stop();
  }

  build() {
    const { data, says } = this;
    this.root.replaceChildren();
    const stage = this.stage = add("div", "dps", this.root);
    stage.lang = data.language;
    stage.toggleAttribute("data-present", data.present);
    const axis = this.axis = data.axis;
    stage.toggleAttribute("data-still", !axis);
    stage.toggleAttribute("data-room", Boolean(data.room));
    this.pic = add("section", "dps-pic", stage, null, { "aria-label": says("Picture") });
    this.place = add("div", "dps-view", this.pic);
    this.view = VIEWS[data.scene.kind](this.place, data.scene, says);
    this.eps = add("p", "dps-eps", this.pic);
    const words = this.words = add("section", "dps-words", stage, null, { "aria-label": says("Lesson") });
    const where = add("p", "dps-where", words);
    const go = () => this.tell("go", [Number(select.value), 1]);
    const select = add("select", "", where, null, { "aria-label": says("Lesson"), onchange: go });
    let experts = null;
    data.course.forEach(({ title, experts: hard }, place) => {
      if (hard) experts ??= add("optgroup", "", select, null, { label: says("for experts") });
      const [value, selected] = [place + 1, place + 1 === data.lesson];
      add("option", "", hard ? experts : select, `${value} ${title}`, { value, selected });
    });
    add("span", "", where, `${data.step} ${data.words.of} ${data.steps}`);
    const known = Object.keys(data.languages);
    const next = known[(known.indexOf(data.language) + 1) % known.length];
    button("", where, data.languages[next], () => this.tell("language", next), { lang: next });
    this.say = add("h1", "", words);
    this.hundred = add("div", "dps-hundred", words);
    this.aside = add("p", "dps-aside", words);
    if (data.hundred.length) this.buildHundred();
    this.options = add("div", "dps-options", words);
    this.buttons = data.options.map((text, place) => button("", this.options, text, () => this.place_bet(place)));
    const told = add("div", "dps-told", words, null, { "aria-live": "polite" });
    this.then = add("p", "dps-then", told);
    this.why = add("p", "dps-why", told);
    this.score = add("p", "dps-score", told);
    this.act = button("dps-do", words, null, () => this.onward());
    if (data.room) {
      const join = this.join = add("div", "dps-join", words);
      const line = add("p", "", join, `${data.words.join} `);
      add("b", "", line, data.room.name);
      add("p", "", join, data.room.address);
      button("", join, says("In or out"), () => this.inOrOut());
      this.drawCode(join, data.room.code);
      this.bets = add("p", "dps-count", words);
      words.insertBefore(this.bets, this.options);
    }
    this.film = add("ol", "dps-film", words, null, { "aria-label": says("Seen so far") });
    const foot = add("div", "dps-foot", words);
    const small = (text, name, value, more = {}) => button("", foot, text, () => this.tell(name, value), more);
    small(says("Back"), "go", data.before, { disabled: !data.before });
    small(data.leaves, "leave", this.data.id);
    small(says("Present"), "present", true);
    small("\u2193", "save", data.id, { title: says("Save"), "aria-label": says("Save") });
    this.rail = add("section", "dps-rail", stage, null, { "aria-label": says("Epsilon") });
    if (axis) this.buildAxis();
  }

  buildHundred() {
    const line = add("p", "", this.hundred);
    this.count = add("b", "", line);
    line.append(` ${this.data.words.hundred}`);
    const dots = add("div", "dps-dots", this.hundred, null, { "aria-hidden": "true" });
    this.dots = Array.from({ length: 100 }, () => add("i", "", dots));
    if (!this.data.ringed.length) return;
    this.beside = add("p", "dps-ringed", this.hundred);
    for (const { text, name } of this.data.ringed) add("span", "", this.beside, `${text} ${name}`);
  }

  writeHundred(stop) {
    if (!this.count) return;
    const { count, text } = this.data.hundred[stop];
    this.count.textContent = text;
    const told = this.data.ask !== "" && this.waits ? [] : this.data.ringed;
    this.dots.forEach((dot, place) => {
      dot.toggleAttribute("data-on", place < count);
      dot.toggleAttribute("data-ringed", told.some((one) => one.count === place + 1));
    });
    if (this.beside) this.beside.hidden = told.length === 0;
  }

  buildAxis() {
    const { low, high } = this.axis;
    const axis = this.line = add("div", "dps-axis", this.rail);
    add("div", "dps-base", axis);
    for (const tick of this.axis.ticks) {
      add("span", "dps-tick", axis, tick.text).style.left = this.left(tick.value);
    }
    this.knob = add("span", "dps-mark dps-now", axis);
    this.knobText = add("span", "", this.knob);
    if (!this.data.asksAxis) return;
    this.line.append(this.knob); // The flag must lie above the piles of bets, so add it last.
    this.rightMark = add("span", "dps-mark dps-right", axis);
    this.rightMark.style.left = this.left(this.data.right);
    add("span", "", this.rightMark, this.data.rightText);
    this.rightMark.style.visibility = "hidden";
    if (this.data.room) return; // In a room with phones, only phones bet.
    const flag = this.flagNode = add("div", "dps-mark dps-flag", axis, null, {
      tabindex: 0, role: "slider", "aria-label": this.says("Your flag on the axis of epsilon"),
      "aria-valuemin": low, "aria-valuemax": high,
    });
    add("i", "", flag);
    this.flagText = add("b", "", flag);
    add("em", "", flag, this.says("drag onto the axis"));
    const at = (event) => {
      const box = axis.getBoundingClientRect();
      const share = (event.clientX - box.left) / box.width;
      this.put(between(low, high, share));
    };
    const grab = (event) => {
      if (this.bet !== null) return false;
      event.preventDefault();
      flag.focus({ preventScroll: true });
      return true;
    };
    dragged(flag, grab, at);
    axis.addEventListener("click", (event) => { if (this.bet === null && event.target !== flag) at(event); });
    flag.addEventListener("keydown", (event) => {
      const ends = { Home: low, End: high };
      if (this.bet !== null || !(event.key in ARROWS || event.key in ends)) return;
      event.preventDefault();
      this.put(ends[event.key] ?? (this.flag ?? Math.sqrt(low * high)) * FACTOR ** ARROWS[event.key]);
    });
  }

  left(value) {
    const { low, high } = this.axis;
    return `${(100 * Math.log(value / low)) / Math.log(high / low)}%`;
  }

  put(value) {
    const { low, high } = this.axis;
    this.flag = Number(DpvizNumbers.parseable(Math.min(Math.max(value, low), high)));
    this.write();
  }

  fit() {
    const main = document.querySelector('[data-testid="stMain"]');
    if (main && !this.data.present) {
      const box = main.getBoundingClientRect();
      const bar = document.querySelector('[data-testid="stHeader"]')?.getBoundingClientRect();
      this.stage.style.left = `${box.left}px`;
      this.stage.style.top = `${bar ? bar.bottom : box.top}px`;
    }
    this.view.fit();
  }

  async restore() {
    this.fit();
    this.film.replaceChildren();
    for (let stop = 0; stop <= this.made; stop += 1) {
      this.view.at(stop);
      await frame();
      if (stop === 0) await wait(150); // Wait until the figure has its layout.
      if (this.gone) return;
      this.capture(stop);
    }
    this.stop = this.made;
    this.write();
    this.stage.dataset.ready = "yes";
  }

  capture(stop) {
    const from = this.view.canvas();
    if (!from || this.film.children[stop]) return;
    const back = () => {
      if (this.moving) return;
      this.stop = stop;
      this.view.at(stop);
      this.write();
    };
    const shown = button("", add("li", "", this.film), null, back);
    shown.append(thumbnail(from, 160, true), this.data.stops[stop].text);
  }

  // One reader may bet once. With a projector, bets are open until the whole answer is shown.
  get waits() {
    if (!this.data.room) return this.bet === null;
    return this.made === 0 && !(this.wall.bets && this.data.stops.length === 1);
  }

  get revealed() {
    if (this.data.room) return this.made > 0 || (this.wall.bets !== null && this.data.stops.length === 1);
    return this.made > 0 || (this.bet !== null && this.data.stops.length === 1);
  }

  write() {
    const { data } = this;
    const asked = data.ask !== "";
    const open = asked && this.waits;
    const told = asked && !open && this.revealed;
    const verdict = () => (data.room ? data.hall(this.wall.bets ?? []) : data.verdict(this.bet));
    if (told && this.count && !this.stage.hasAttribute("data-told")) {
      this.say.style.minHeight = `${this.say.offsetHeight}px`;
    }
    this.say.textContent = whole(told ? verdict() : asked ? data.ask : data.say);
    this.stage.toggleAttribute("data-told", told);
    if (this.bets) {
      const { count } = this.wall;
      this.bets.textContent = asked ? `${count} ${data.words[count === 1 ? "bet_one" : "bets"]}` : "";
      this.join.hidden = told;
    }
    this.aside.textContent = asked && !told ? whole(data.say) : "";
    this.then.textContent = told ? whole(data.thenOf(data.room && !data.asksAxis ? data.right : this.bet)) : "";
    this.why.textContent = told || !asked ? whole(data.why) : "";
    this.buttons.forEach((button, place) => {
      button.disabled = !open || Boolean(data.room);
      if (data.room && this.wall.bets) {
        button.dataset.count = String(this.wall.bets.filter((bet) => bet === place).length);
      }
      button.toggleAttribute("data-bet", this.bet === place);
      button.toggleAttribute("data-right", told && place === data.right);
    });
    this.writeHundred(this.stop);
    const done = this.made + 1 >= data.stops.length;
    this.score.textContent = !data.room && !open && done && !this.moving ? data.score(this.bet) : "";
    const label = this.label(open, done);
    this.act.hidden = label === "" || this.moving;
    this.act.textContent = label;
    [...this.film.children].forEach((item, place) => {
      item.firstElementChild.setAttribute("aria-current", String(place === this.stop));
    });
    if (!this.moving) this.writeEpsilon(data.stops[this.stop].epsilon);
    if (this.rightMark) this.rightMark.style.visibility = told ? "visible" : "hidden";
    if (this.flagNode) {
      const placed = this.flag !== null;
      this.flagNode.toggleAttribute("data-docked", !placed);
      this.flagNode.setAttribute("aria-disabled", String(!open));
      this.flagNode.setAttribute("aria-valuenow", String(this.flag ?? Math.sqrt(this.axis.low * this.axis.high)));
      this.flagNode.setAttribute("aria-valuetext", placed ? `epsilon ${said(this.flag)}` : this.says("not placed"));
      if (placed) this.flagNode.style.left = this.left(this.flag);
      // Labels of the bet and the right value point apart, so that neither covers the other.
      const before = told && this.flag < data.right;
      this.flagNode.dataset.side = before ? "left" : "right";
      this.rightMark.dataset.side = before ? "right" : "left";
      this.flagText.textContent = placed ? said(this.flag) : "?";
    }
  }

  writeEpsilon(value) {
    this.eps.textContent = this.data.hidesEpsilon ? "" : `ε ${said(value)}`;
    if (!this.knob) return;
    this.knob.style.left = this.left(Math.min(Math.max(value, this.axis.low), this.axis.high));
    this.knobText.textContent = said(value);
    this.knobText.style.visibility = this.revealed && !this.moving ? "hidden" : "visible";
  }

  label(open, done) {
    const { data } = this;
    if (open && data.room) return this.wall.bets ? data.words.move : data.words.show;
    if (open) return data.asksAxis && this.flag !== null ? this.says("Bet on {epsilon}", { epsilon: said(this.flag) }) : "";
    if (!done) return this.made === 0 ? data.moved : this.says("On to {stop}", { stop: data.stops[this.made + 1].text });
    return data.next;
  }

  place_bet(bet) {
    if (this.bet !== null || this.data.room) return;
    this.bet = bet;
    this.tell();
    if (this.data.stops.length > 1) this.move();
    else this.write();
  }

  onward() {
    if (this.moving) return;
    if (this.data.room && this.data.ask !== "" && this.made === 0 && !this.wall.bets) this.showBets();
    else if (!this.data.room && this.data.ask !== "" && this.bet === null) {
      if (this.data.asksAxis && this.flag !== null) this.place_bet(this.flag);
    } else if (this.made + 1 < this.data.stops.length) this.move();
    else if (this.data.after) this.tell("go", this.data.after);
  }

  async move() {
    const [from, to] = [this.made, this.made + 1];
    this.moving = true;
    this.view.at(from);
    this.write();
    const began = performance.now();
    const same = !this.view.glides && this.data.stops[from].epsilon === this.data.stops[to].epsilon;
    while (!same && !still()) {
      const share = Math.min((performance.now() - began) / RUNS, 1);
      this.view.between(from, to, share);
      const [a, b] = [this.data.stops[from].epsilon, this.data.stops[to].epsilon];
      this.writeEpsilon(between(a, b, share));
      if (share >= 1) break;
      await new Promise((done) => requestAnimationFrame(done));
      if (this.gone) return;
    }
    this.view.at(to);
    this.writeEpsilon(this.data.stops[to].epsilon);
    this.writeHundred(to); // The count in the text must match the chart.
    this.stage.dataset.arrived = String(to); // The chart has arrived; the text waits.
    await wait(RESTS);
    if (this.gone) return;
    await frame();
    this.capture(to);
    this.made = this.stop = to;
    this.moving = false;
    this.write();
    this.tell();
  }

  onKey(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const from = event.composedPath()[0];
    if (from.matches?.("input, textarea, select, [contenteditable]")) return;
    const key = event.key.toLowerCase();
    const place = Number(key) - 1;
    if (key === "n" && this.data.after) this.tell("go", this.data.after);
    else if (key === "b" && this.data.before) this.tell("go", this.data.before);
    else if (key === "e") this.tell("leave", this.data.id);
    else if (key === "p" || (key === "escape" && this.data.present)) this.tell("present", !this.data.present);
    else if (key === "r" && this.data.room) this.showBets();
    else if (key === "i" && this.data.room) this.inOrOut();
    else if (key === "m") this.onward();
    else if ((key === " " || key === "enter") && !from.matches?.("button, .dp-handle")) {
      event.preventDefault();
      this.onward();
    } else if (this.buttons[place] && this.bet === null) this.place_bet(place);
    else if (this.flagNode && this.bet === null && (key === "arrowleft" || key === "arrowright") && from === document.body) this.flagNode.focus();
  }
}

// These functions compose the texts about a bet from the plain values of the payload.
function spoken(data) {
  const says = saying(data.says);
  const won = (bet) => (data.asksAxis
    ? Math.abs(Math.log(bet / data.right)) <= Math.log(data.near) + 1e-9
    : bet === data.right);
  return {
    ...data,
    saying: says,
    verdict: (bet) => {
      const word = won(bet) ? data.words.right : data.words.wrong;
      return data.asksAxis ? `${word}: ${data.rightText}. ${data.words.said} ${said(bet)}.` : `${word}.`;
    },
    hall: (bets) => (bets.length === 0 ? says("Nobody has bet.") : `${bets.filter(won).length} ${data.words.of} ${bets.length} ${data.words[data.asksAxis ? "came" : "were"]}.`),
    thenOf: (bet) => {
      const text = data.then[data.asksAxis ? 0 : bet];
      return text[0].toUpperCase() + text.slice(1);
    },
    score: (bet) => {
      if (!data.tally) return "";
      const own = bet !== null && data.ask !== "";
      const right = data.tally.right + (own && won(bet) ? 1 : 0);
      const asked = data.tally.asked + (own ? 1 : 0);
      return asked ? `${data.tally.before} ${right} ${data.tally.of} ${asked}. ${data.tally.read}`.trim() : "";
    },
  };
}

export function mount(root, data, tell) {
  const held = root.dpvizStage;
  const key = JSON.stringify([data.id, data.present, data.language]);
  if (held && held.key === key && held.stage.moving) return;
  if (held && held.key === key && held.stage.bet === data.bet && held.stage.made === data.made) return;
  held?.stage.destroy();
  const stage = new Stage(root, spoken(data), tell);
  root.dpvizStage = { key, stage };
}
