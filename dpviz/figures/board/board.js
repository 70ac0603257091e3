// The board: mechanisms as columns, measures as rows, scrubbed along epsilon.
//
// One plain script without dependencies; it defines DpvizBoard.mount(element, payload, options)
// and makes no request. The payload is documented in dpviz/tidy/board.py, the interface in
// dpviz/figures/board/__init__.py. Numbers are drawn as they come, and what is read comes as text:
// nothing is computed here but places on the screen, and no number is written.
const DpvizBoard = (() => {
  "use strict";

  const ROWS = ["picture", "spectrum", "distance", "recovery"];
  const CONTROLS = ["scrub", "play", "pin", "draws", "fresh", "drawn", "present"];
  const PLAY_MS = 8000; // from the least private end to the most
  const KEY_MS = 600; // after the last key press epsilon is committed
  const LEVELS = [[0, "0 %"], [0.5, "50 %"], [0.9, "90 %"], [1, ""]]; // of recovery
  const REDRAWS = 20; // draws that are shown one after the other, at most
  const DRAW_MS = 260; // one redraw of an animation of draws
  const MOST = 9; // columns side by side where they fit
  const NARROWEST = 142; // pixels of a column
  const PRESENTED = 4; // columns, the exact one among them
  const COUNTED = new Set(["holds", "loose", "approximate"]);
  const FALSE_CLAIMS = new Set(["refuted", "out_of_scope"]);
  const SHAPES = ["circle", "square", "triangle", "diamond", "cross", "down"]; // LABEL_SHAPES

  // ---- reading the payload ------------------------------------------------

  function bytes(text) {
    const raw = atob(text);
    const out = new Uint8Array(raw.length);
    for (let i = 0; i < raw.length; i += 1) out[i] = raw.charCodeAt(i);
    return out.buffer;
  }

  const unpacked = new Map(); // packed text -> typed array; frames are drawn again and again
  function unpack(text, Kind) {
    if (!text) return null;
    let found = unpacked.get(text);
    if (!found) {
      if (unpacked.size > 4000) unpacked.clear();
      found = new Kind(bytes(text));
      unpacked.set(text, found);
    }
    return found;
  }

  function listed(items) {
    if (items.length < 2) return items.join("");
    return `${items.slice(0, -1).join(", ")} and ${items[items.length - 1]}`;
  }

  // ---- small tools of the page -----------------------------------------------

  function make(kind, name, attributes = {}, ...children) {
    const node = document.createElement(kind);
    if (name) node.className = name;
    for (const [key, value] of Object.entries(attributes)) {
      if (value === null || value === undefined || value === false) continue;
      if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
      else node.setAttribute(key, value === true ? "" : value);
    }
    node.append(...children.filter((child) => child !== null && child !== undefined));
    return node;
  }

  function setText(node, text) {
    if (node && node.textContent !== text) node.textContent = text;
  }

  function surface(canvas, width, height) {
    // An enlarged page draws as finely as a screen of more pixels would.
    const ratio = Math.min((globalThis.devicePixelRatio || 1) * (canvas.currentCSSZoom || 1), 2);
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
      canvas.style.width = `${width}px`;
      canvas.style.height = `${height}px`;
    }
    const pen = canvas.getContext("2d");
    pen.setTransform(ratio, 0, 0, ratio, 0, 0);
    pen.clearRect(0, 0, width, height);
    return pen;
  }

  function shape(path, kind, x, y, r) {
    switch (SHAPES[kind % SHAPES.length]) {
      case "square":
        path.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
        break;
      case "triangle":
        path.moveTo(x, y - 1.2 * r);
        path.lineTo(x + 1.1 * r, y + 0.8 * r);
        path.lineTo(x - 1.1 * r, y + 0.8 * r);
        path.closePath();
        break;
      case "diamond":
        path.moveTo(x, y - 1.3 * r);
        path.lineTo(x + 1.3 * r, y);
        path.lineTo(x, y + 1.3 * r);
        path.lineTo(x - 1.3 * r, y);
        path.closePath();
        break;
      case "cross":
        path.rect(x - 1.2 * r, y - 0.45 * r, 2.4 * r, 0.9 * r);
        path.rect(x - 0.45 * r, y - 1.2 * r, 0.9 * r, 2.4 * r);
        break;
      case "down":
        path.moveTo(x, y + 1.2 * r);
        path.lineTo(x + 1.1 * r, y - 0.8 * r);
        path.lineTo(x - 1.1 * r, y - 0.8 * r);
        path.closePath();
        break;
      default:
        path.moveTo(x + r, y);
        path.arc(x, y, r, 0, 2 * Math.PI);
    }
  }

  const LABELS = ["#E76300", "#21796E", "#9A16F2", "#B08463", "#63638F",
    "#BB2C58", "#589A8F", "#BB63FF", "#8484B0", "#D10021"]; // theme.LABEL_COLOURS
  const RAMP = [[68, 1, 84], [49, 104, 142], [53, 183, 121], [253, 231, 37]];

  function ramp(share) {
    const place = share * (RAMP.length - 1);
    const low = Math.min(Math.floor(place), RAMP.length - 2);
    const mix = (c) => Math.round(RAMP[low][c] + (place - low) * (RAMP[low + 1][c] - RAMP[low][c]));
    return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
  }

  // ---- the board ----------------------------------------------------------------

  class Board {
    constructor(root, payload, options) {
      this.root = root;
      this.options = options;
      this.hovered = null;
      this.opened = null;
      this.presenting = false;
      this.drawn = false; // points drawn from each release, in place of the rows
      this.masked = Boolean(options.masked);
      this.pin = null;
      this.redraws = null;
      this.redrawAt = null;
      this.all = false; // every component of a spectrum, or the first ones
      this.cleanups = [];
      this.element = make("div", "dpv", { role: "group", "aria-label": options.label || "The board" });
      root.append(this.element);
      this.listen(globalThis, "keydown", (event) => this.onKey(event));
      const scheme = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
      if (scheme) this.listen(scheme, "change", () => this.restyle());
      // A canvas keeps the typeface it was written in: the page's own may come after that.
      if (document.fonts) this.listen(document.fonts, "loadingdone", () => this.schedule());
      this.resizer = new ResizeObserver(() => this.measure());
      this.setPayload(payload);
      this.resizer.observe(this.element);
    }

    listen(target, kind, act) {
      target.addEventListener(kind, act);
      this.cleanups.push(() => target.removeEventListener(kind, act));
    }

    // -- what a caller does --

    get epsilon() {
      return this.epsilons[this.index];
    }

    get written() {
      return this.payload.texts[this.index];
    }

    setPayload(payload) {
      const kept = this.payload ? this.epsilon : payload.now;
      this.stop();
      this.payload = payload;
      this.frames = new Map();
      this.epsilons = payload.epsilons;
      this.redraws = payload.draws || null;
      this.columns = payload.columns.filter(
        (column) => !this.options.keys || this.options.keys.includes(column.key),
      );
      if (!this.columns.some((column) => column.key === this.opened)) this.opened = null;
      this.keep(payload.frames);
      const start = payload.now ?? kept;
      this.index = this.nearest(start);
      this.build();
      this.measure();
      this.restyle();
    }

    // A frame with every draw is not replaced by one with the first of them.
    keep(frames) {
      for (const frame of frames) {
        const known = this.frames.get(frame.epsilon);
        if (!known || known.draws <= frame.draws) this.frames.set(frame.epsilon, frame);
      }
    }

    addFrames(frames) {
      this.keep(frames);
      this.reserved = false;
      this.schedule();
    }

    setEpsilon(epsilon) {
      this.move(this.nearest(epsilon), false);
    }

    setPin(payload) {
      this.pin = payload || null;
      this.element.toggleAttribute("data-pinned", Boolean(this.pin));
      this.dressPin();
      this.schedule();
    }

    setDraws(pictures) {
      this.redraws = pictures;
      this.startDraws();
    }

    reveal() {
      this.masked = false;
      this.schedule();
    }

    mask() {
      this.masked = true;
      this.schedule();
    }

    present(on) {
      if (this.payload.ribbon && this.presenting !== Boolean(on)) {
        // On a wall there are no real rows, unless somebody asks for them.
        if (on) this.drawnBefore = this.drawn;
        this.setDrawn(on ? true : this.drawnBefore);
      }
      this.presenting = Boolean(on);
      if (on) this.openColumn(null);
      this.element.toggleAttribute("data-present", this.presenting);
      // The browser's top layer lies above everything, whatever the page around has stacked.
      if (this.element.showPopover) {
        if (on) {
          this.element.setAttribute("popover", "manual");
          this.element.showPopover();
        } else if (this.element.hasAttribute("popover")) {
          this.element.hidePopover();
          this.element.removeAttribute("popover");
        }
      }
      this.buttons.present?.setAttribute("aria-pressed", String(this.presenting));
      if (this.buttons.present) setText(this.buttons.present, on ? "leave" : "present");
      this.hover(null);
      this.measure();
      (on ? this.scrubber : this.buttons.present)?.focus();
    }

    setDrawn(on) {
      this.drawn = Boolean(on);
      this.stopDraws();
      this.element.toggleAttribute("data-drawn", this.drawn);
      this.buttons.drawn?.setAttribute("aria-pressed", String(this.drawn));
      if (this.buttons.draws) this.buttons.draws.disabled = this.drawn;
      this.dressRibbon();
      this.dressPin();
      this.schedule();
    }

    dressRibbon() {
      const { ribbon } = this.payload;
      this.ribbon.hidden = !ribbon;
      const whose = "points are drawn from each release and are nobody's; all else compares with real rows and stays here";
      setText(this.ribbon, ribbon && this.drawn ? whose : ribbon || "");
    }

    open(key) {
      this.openColumn(key);
    }

    play() {
      if (this.timer) return;
      const top = this.epsilons.length - 1;
      // Played from the accurate end to the private one: what is seen is how structure drowns.
      const started = performance.now();
      this.buttons.play?.setAttribute("aria-pressed", "true");
      setText(this.buttons.play, "❚❚ stop");
      const from = Math.log(this.epsilons[top]);
      const to = Math.log(this.epsilons[0]);
      const step = (now) => {
        const share = Math.min((now - started) / PLAY_MS, 1);
        this.move(this.nearest(Math.exp(from + share * (to - from))), false);
        if (share < 1) this.timer = requestAnimationFrame(step);
        else {
          this.stop();
          this.commit();
        }
      };
      this.timer = requestAnimationFrame(step);
    }

    stop() {
      if (this.timer) cancelAnimationFrame(this.timer);
      this.timer = null;
      this.buttons?.play?.setAttribute("aria-pressed", "false");
      if (this.buttons?.play) setText(this.buttons.play, "▶ play");
    }

    destroy() {
      this.stop();
      clearTimeout(this.keyTimer);
      clearInterval(this.drawTimer);
      cancelAnimationFrame(this.pending);
      this.resizer.disconnect();
      for (const clean of this.cleanups) clean();
      this.element.remove();
    }

    // -- moving along epsilon --

    nearest(epsilon) {
      let best = 0;
      this.epsilons.forEach((other, place) => {
        const far = (value) => Math.abs(Math.log(value / epsilon));
        if (far(other) < far(this.epsilons[best])) best = place;
      });
      return best;
    }

    move(index, byUser) {
      const place = Math.max(0, Math.min(index, this.epsilons.length - 1));
      if (place === this.index) return;
      this.index = place;
      this.stopDraws();
      if (byUser) this.stop();
      this.options.onScrub?.(this.epsilon);
      this.schedule();
    }

    commit() {
      clearTimeout(this.keyTimer);
      this.say();
      if (this.committed === this.epsilon) return;
      this.committed = this.epsilon;
      this.options.onCommit?.(this.epsilon);
    }

    soon() {
      clearTimeout(this.keyTimer);
      this.keyTimer = setTimeout(() => this.commit(), KEY_MS);
    }

    onKey(event) {
      const inside = event.composedPath().includes(this.element);
      if (event.key === "Escape") {
        if (this.opened) this.openColumn(null);
        else if (this.presenting) this.present(false);
        return;
      }
      if (!(inside || this.presenting)) return;
      const target = event.composedPath()[0];
      if (target instanceof HTMLElement && target.matches("input, select, textarea")) return;
      const steps = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };
      if (event.key in steps && !event.ctrlKey && !event.metaKey && !event.altKey) {
        event.preventDefault();
        this.move(this.index + steps[event.key], true);
        this.soon();
      }
    }

    // -- one frame for a column, also while it is still being drawn --

    frameNow() {
      const here = this.frames.get(this.epsilon);
      if (here) return { frame: here, exact: true };
      let best = null;
      for (const [epsilon, frame] of this.frames) {
        const far = Math.abs(Math.log(epsilon / this.epsilon));
        if (!best || far < best.far) best = { far, frame };
      }
      return { frame: best ? best.frame : { cells: {}, skipped: {} }, exact: false };
    }

    expected(key) {
      const line = this.payload.predicted?.[key];
      if (!line) return null;
      return line[this.payload.epsilons.indexOf(this.epsilon)] ?? null;
    }

    // -- building --

    build() {
      const { payload, options } = this;
      const rows = options.rows || ROWS;
      const controls = options.controls || CONTROLS;
      this.rows = rows;
      this.buttons = {};
      this.element.replaceChildren();
      this.ribbon = make("p", "dpv-ribbon");
      this.element.append(this.ribbon);
      if (controls.length) this.element.append(this.buildBar(controls));
      if (options.answer !== false) {
        this.answer = make("p", "dpv-answer");
        this.element.append(this.answer);
      } else this.answer = null;
      this.grid = make("div", "dpv-grid");
      this.cols = [];
      if (options.exact !== false) this.cols.push(this.buildColumn(null, rows));
      for (const column of this.columns) this.cols.push(this.buildColumn(column, rows));
      this.grid.append(...this.cols.map((col) => col.node));
      this.element.append(this.grid);
      this.large = make("div", "dpv-large", { hidden: true, role: "dialog" });
      this.element.append(this.large);
      this.legend = this.buildLegend();
      if (this.legend) this.element.append(this.legend);
      if (options.strip !== false) {
        this.strip = make("canvas", "dpv-strip", { role: "img" });
        this.stripBox = make("div", "dpv-stripbox", {}, this.strip);
        this.element.append(this.stripBox);
        this.dragStrip();
      } else this.strip = null;
      this.spoken = make("div", "dpv-hidden", { "aria-live": "polite" });
      this.element.append(this.spoken);
      this.committed = payload.now;
      this.answered = null;
      if (this.opened) this.openColumn(this.opened, true);
      this.setDrawn(this.drawn);
    }

    buildBar(controls) {
      const bar = make("div", "dpv-bar");
      if (controls.includes("scrub")) {
        const top = this.epsilons.length - 1;
        this.scrubber = make("input", "dpv-scrub", {
          type: "range", min: 0, max: top, step: 1, "aria-label": "Epsilon",
        });
        this.scrubber.value = String(this.index);
        let held = false;
        this.scrubber.addEventListener("pointerdown", () => { held = true; });
        this.scrubber.addEventListener("input", () => {
          this.move(Number(this.scrubber.value), true);
          if (!held) this.soon();
        });
        // A range fires "change" when it is let go, but at each key press too.
        this.scrubber.addEventListener("change", () => (held ? this.commit() : this.soon()));
        for (const end of ["pointerup", "pointercancel"]) {
          this.listen(globalThis, end, () => { held = false; });
        }
        this.scrubber.addEventListener("blur", () => this.commit());
        const ticks = make("div", "dpv-ticks", { "aria-hidden": "true" });
        for (const [epsilon, text, decade] of this.payload.ticks) {
          const place = this.epsilons.indexOf(epsilon);
          if (place < 0) continue;
          const tick = make("span", "", {}, text);
          tick.style.left = `${(100 * place) / Math.max(top, 1)}%`;
          tick.toggleAttribute("data-decade", decade);
          ticks.append(tick);
        }
        this.shown = make("output", "dpv-epsilon");
        const track = make("div", "dpv-track", {}, this.scrubber, ticks);
        bar.append(
          make("span", "dpv-eps", {}, "ε ", this.shown),
          this.buildEnd("more private", this.payload.beyond[0]),
          track,
          this.buildEnd("more accurate", this.payload.beyond[1]),
        );
      }
      const button = (name, label, help, act) => {
        if (!controls.includes(name)) return;
        this.buttons[name] = make("button", `dpv-button dpv-do-${name}`, { type: "button", title: help, onclick: act }, label);
        bar.append(this.buttons[name]);
      };
      button("play", "▶ play", "From the accurate end to the private one in 8 seconds", () => {
        if (this.timer) {
          this.stop();
          this.commit();
        } else this.play();
      });
      button("pin", "pin", "Keep this whole setting as a ghost to compare with", () => {
        this.options.onPin?.(this.pin ? "unpin" : "pin");
        if (!this.options.onPin) this.setPin(this.pin ? null : this.snapshot());
      });
      if (controls.includes("pin")) {
        this.buttons.swap = make("button", "dpv-button", {
          type: "button", hidden: true, title: "Exchange the pinned setting and this one",
          onclick: () => this.swap(),
        }, "swap");
        bar.append(this.buttons.swap);
      }
      if (this.options.onFresh) {
        button("fresh", "fresh draw", "New noise at the same setting", () => this.options.onFresh());
      }
      if (this.options.onDraws || this.redraws) {
        button("draws", `${Math.min(this.payload.table.draws, REDRAWS)} draws`, "Every draw, one after the other", () => {
          if (this.drawTimer) this.stopDraws();
          else if (this.redraws) this.startDraws();
          else this.options.onDraws?.(this.epsilon);
        });
      }
      button("drawn", "drawn points", "Points drawn from each release, a normal law with the released covariance, in place of the rows", () => this.setDrawn(!this.drawn));
      button("present", "present", "Large, without anything else; Escape leaves", () => this.present(!this.presenting));
      return bar;
    }

    // The words at an end of the scrubber; where a page can go on beyond it, a button.
    buildEnd(words, beyond) {
      if (!this.options.onBeyond || !beyond) {
        return make("span", "dpv-end", { "aria-hidden": "true" }, words);
      }
      const [to, text] = beyond;
      return make("button", "dpv-end dpv-beyond", {
        type: "button", title: `Go on to ε ${text}`, onclick: () => this.options.onBeyond(to),
      }, words);
    }

    buildColumn(column, rows) {
      const col = { column, key: column ? column.key : "", canvases: {} };
      col.node = make("section", "dpv-col", { "data-key": col.key || "exact" });
      if (column) {
        col.swatch = make("i", "dpv-swatch", { "aria-hidden": "true" });
        col.status = make("span", "dpv-status");
        col.head = make("button", "dpv-head", {
          type: "button", title: column.summary, onclick: () => this.openColumn(col.key),
        }, make("span", "dpv-name", {}, col.swatch, column.label), col.status);
        // A mouse that moves, not one that lies where a column came to stand, nor a finger's swipe.
        col.node.addEventListener("pointermove", (event) => {
          if (event.pointerType === "mouse") this.hover(col.key);
        });
        col.node.addEventListener("pointerleave", () => this.hover(null));
        col.head.addEventListener("focus", () => this.hover(col.key));
        col.head.addEventListener("blur", () => this.hover(null));
      } else {
        col.head = make("div", "dpv-head dpv-exact", {},
          make("span", "dpv-name", {}, "Exact PCA"),
          make("span", "dpv-status", {}, "not private: the truth"));
      }
      col.node.append(col.head);
      for (const row of rows) {
        if (row === "recovery") {
          col.value = make("span", "dpv-value");
          col.ghost = make("span", "dpv-ghost", { title: "Recovery at the pinned setting" });
          col.words = make("span", "dpv-words");
          col.bar = make("span", "dpv-meter", { "aria-hidden": "true" }, make("b"), make("u"), make("s"));
          col.node.append(make("div", "dpv-recovery", {},
            make("div", "dpv-figure", {}, col.value, col.ghost), col.words, col.bar));
        } else {
          col.canvases[row] = make("canvas", `dpv-${row}`, { role: "img" });
          col.node.append(make("div", `dpv-box dpv-box-${row}`, {
            onclick: column ? () => this.openColumn(col.key) : null,
          }, col.canvases[row]));
        }
      }
      return col;
    }

    buildLegend() {
      const { labels } = this.payload;
      if (!(this.options.rows || ROWS).includes("picture")) return null;
      const box = make("div", "dpv-legend", { "aria-label": "Colours of the picture" });
      const name = `${labels.name || "label"}:`;
      if (labels.kinds?.length > 1) {
        box.append(make("span", "dpv-legend-name", {}, name));
        labels.kinds.slice(0, 24).forEach((kind, place) => {
          box.append(make("span", "dpv-kind", {}, this.mark(place, 4, this.labelColour(place)), kind));
        });
      } else if (labels.ends) {
        const bar = make("i", "dpv-ramp");
        bar.style.background = `linear-gradient(90deg, ${[0, 0.33, 0.67, 1].map(ramp).join(",")})`;
        box.append(make("span", "dpv-legend-name", {}, name), labels.ends[0], bar, labels.ends[1]);
      }
      this.ghosts = make("span", "dpv-kind");
      box.append(this.ghosts);
      return box;
    }

    mark(kind, size, colour) {
      const node = make("canvas", "dpv-mark", { "aria-hidden": "true" });
      const pen = surface(node, 12, 12);
      const path = new Path2D();
      shape(path, kind, 6, 6, size);
      pen.fillStyle = colour;
      pen.fill(path);
      return node;
    }

    labelColour(place) {
      return LABELS[place % LABELS.length];
    }

    dressPin() {
      const pinned = Boolean(this.pin);
      if (this.buttons.pin) {
        setText(this.buttons.pin, pinned ? `unpin ε ${this.pinText()}` : "pin");
        this.buttons.pin.setAttribute("aria-pressed", String(pinned));
      }
      if (this.buttons.swap) this.buttons.swap.hidden = !pinned;
      const rows = pinned ? "rings: pinned" : "grey dots: the truth";
      setText(this.ghosts, this.drawn ? "dots: drawn from the release, along its own axes" : rows);
    }

    pinText() {
      return this.pin.texts[this.pin.epsilons.indexOf(this.pin.now)];
    }

    snapshot() {
      const frame = this.frames.get(this.epsilon);
      if (!frame) return null;
      return { ...this.payload, now: this.epsilon, frames: [frame] };
    }

    swap() {
      if (this.options.onPin) {
        this.options.onPin("swap");
        return;
      }
      const now = this.snapshot();
      if (!now || !this.pin) return;
      const other = this.pin.now;
      this.setPin(now);
      this.setEpsilon(other);
      this.commit();
    }

    hover(key) {
      if (this.hovered === key) return;
      this.hovered = key;
      for (const col of this.cols) {
        col.node.classList.toggle("dpv-lit", Boolean(key) && col.key === key);
        col.node.classList.toggle("dpv-dim", Boolean(key) && col.key !== key && col.key !== "");
      }
      this.drawStrip();
    }

    // -- sizes and colours --

    measure() {
      const width = this.element.clientWidth;
      if (!width) return;
      const phone = width < (this.options.phoneBelow ?? 640);
      this.element.toggleAttribute("data-phone", phone);
      const count = this.cols.length;
      const room = Math.max(2, Math.floor(width / NARROWEST));
      let across = Math.min(count, this.presenting ? PRESENTED : MOST, room);
      // Rows of equal length rather than a lonely column below.
      if (across < count && !this.presenting) across = Math.ceil(count / Math.ceil(count / across));
      this.element.style.setProperty("--dpv-across", String(across));
      this.cols.forEach((col, place) => {
        col.node.hidden = this.presenting && place >= PRESENTED;
      });
      this.reserved = false;
      this.schedule();
    }

    restyle() {
      const style = getComputedStyle(this.element);
      const read = (name) => style.getPropertyValue(name).trim();
      this.ground = read("--dpv-ground") || "#ffffff";
      this.dark = luminance(this.ground) < 0.4;
      this.element.toggleAttribute("data-dark", this.dark); // the other colours follow it
      this.ink = read("--dpv-ink") || "#1c2530";
      this.faint = read("--dpv-faint") || "#55616d";
      this.line = read("--dpv-line") || "#c3ccd6";
      this.font = style.fontFamily;
      for (const col of this.cols) {
        if (col.column) col.node.style.setProperty("--dpv-own", this.colour(col.column));
      }
      this.schedule();
    }

    colour(column) {
      const pair = column.colour;
      return Array.isArray(pair) ? pair[this.dark ? 1 : 0] : pair || this.ink;
    }

    scale(text) {
      return this.presenting ? text * 1.5 : text;
    }

    schedule() {
      if (this.pending) return;
      this.pending = requestAnimationFrame(() => {
        this.pending = null;
        this.draw();
      });
    }

    // -- drawing --

    draw() {
      const { frame, exact } = this.frameNow();
      this.element.toggleAttribute("data-waiting", !exact);
      this.element.toggleAttribute("data-complete", this.epsilons.every((e) => this.frames.has(e)));
      if (this.scrubber) {
        this.scrubber.value = String(this.index);
        const top = Math.max(this.epsilons.length - 1, 1);
        this.scrubber.style.setProperty("--dpv-share", `${(100 * this.index) / top}%`);
        this.scrubber.setAttribute("aria-valuetext", `epsilon ${this.written}`);
      }
      setText(this.shown, this.written);
      for (const col of this.cols) {
        if (!col.node.hidden) this.drawColumn(col, frame, exact);
      }
      this.writeAnswer(frame, exact);
      this.drawStrip();
      if (this.opened) this.drawLarge(frame, exact);
    }

    verdictOf(cell) {
      if (!cell) return "absent";
      const { verdict } = cell.status;
      return FALSE_CLAIMS.has(verdict) ? "false" : verdict;
    }

    ghostOf(key) {
      if (!this.pin) return null;
      const cell = this.pin.frames[0]?.cells[key];
      if (!cell) return null;
      const same = this.pin.table.name === this.payload.table.name
        && this.pin.table.k === this.payload.table.k
        && this.pin.limits.scale === this.payload.limits.scale;
      return { cell, same };
    }

    drawColumn(col, frame, exact) {
      const cell = col.column ? frame.cells[col.key] : null;
      const hidden = this.masked && col.column;
      if (col.column) {
        const state = this.verdictOf(cell);
        if (col.node.dataset.state !== state) col.node.dataset.state = state;
        let said = cell ? `${cell.status.mark} ${cell.status.words}`.trim() : "cannot run here";
        if (hidden) said = " ";
        setText(col.status, said);
        col.status.title = cell ? cell.status.evidence : frame.skipped[col.key] || "";
      }
      if (col.canvases.picture) this.drawPicture(col.canvases.picture, col, cell, hidden);
      if (col.canvases.spectrum) {
        this.drawSpectrum(col.canvases.spectrum, col, cell, { hidden, axes: col === this.cols[0], every: false });
      }
      if (col.canvases.distance) this.drawDistance(col.canvases.distance, col, cell, hidden);
      if (col.value) this.writeRecovery(col, cell, exact, hidden);
    }

    question(pen, width, height) {
      pen.fillStyle = this.faint;
      pen.font = `600 ${Math.min(48, height * 0.5)}px ${this.font}`;
      pen.textAlign = "center";
      pen.textBaseline = "middle";
      pen.fillText("?", width / 2, height / 2);
    }

    box(canvas) {
      const parent = canvas.parentNode;
      return [parent.clientWidth, parent.clientHeight];
    }

    drawPicture(canvas, col, cell, hidden) {
      const [width, height] = this.box(canvas);
      if (!width || !height) return;
      const pen = surface(canvas, width, height);
      const { payload } = this;
      const { labels, limits, table } = payload;
      pen.strokeStyle = this.line;
      pen.globalAlpha = 0.6;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(Math.round(width / 2) + 0.5, 0);
      pen.lineTo(Math.round(width / 2) + 0.5, height);
      pen.moveTo(0, Math.round(height / 2) + 0.5);
      pen.lineTo(width, Math.round(height / 2) + 0.5);
      pen.stroke();
      pen.globalAlpha = 1;
      canvas.setAttribute("aria-label", `Picture of ${table.name}: nothing to be shown here`);
      if (hidden) {
        this.question(pen, width, height);
        return;
      }
      if (col.column && !cell) return;
      if (this.drawn) {
        this.drawPoints(pen, canvas, col, cell, width, height);
        return;
      }
      const redraw = this.redrawAt !== null && this.redraws?.[col.key];
      const text = col.column ? cell.picture : payload.truth.picture;
      const packed = redraw ? redraw[this.redrawAt % redraw.length] : text;
      const codes = unpack(labels.codes, Uint8Array);
      const size = Math.max(1.6, Math.min(3, width / 80)) * (this.presenting ? 1.3 : 1);
      const points = this.places(packed, payload, width, height);
      const ghost = col.column ? this.ghostOf(col.key) : null;
      if (col.column && !ghost) {
        const truth = this.places(payload.truth.picture, payload, width, height);
        const path = new Path2D();
        for (let i = 0; i < truth.length; i += 2) shape(path, 0, truth[i], truth[i + 1], size * 0.55);
        pen.fillStyle = this.faint;
        pen.globalAlpha = 0.4;
        pen.fill(path);
        pen.globalAlpha = 1;
      }
      if (ghost && ghost.same && !redraw) {
        const old = this.places(ghost.cell.picture, this.pin, width, height);
        pen.strokeStyle = this.faint;
        pen.globalAlpha = 0.7;
        pen.lineWidth = 0.8;
        pen.beginPath();
        for (let i = 0; i < old.length; i += 2) {
          pen.moveTo(old[i] + size, old[i + 1]);
          pen.arc(old[i], old[i + 1], size, 0, 2 * Math.PI);
        }
        pen.stroke();
      }
      pen.globalAlpha = 0.8;
      if (codes && labels.kinds) {
        const paths = labels.kinds.map(() => new Path2D());
        for (let i = 0; i < codes.length; i += 1) {
          shape(paths[codes[i]], codes[i], points[2 * i], points[2 * i + 1], size);
        }
        paths.forEach((path, kind) => {
          pen.fillStyle = this.labelColour(kind);
          pen.fill(path);
        });
      } else if (codes) {
        const steps = 12;
        const paths = Array.from({ length: steps }, () => new Path2D());
        for (let i = 0; i < codes.length; i += 1) {
          const step = Math.min(steps - 1, Math.floor((codes[i] * steps) / 256));
          shape(paths[step], 0, points[2 * i], points[2 * i + 1], size);
        }
        paths.forEach((path, step) => {
          pen.fillStyle = ramp(step / (steps - 1));
          pen.fill(path);
        });
      } else {
        const path = new Path2D();
        for (let i = 0; i < points.length; i += 2) shape(path, 0, points[i], points[i + 1], size);
        pen.fillStyle = col.column ? this.colour(col.column) : this.faint;
        pen.fill(path);
      }
      pen.globalAlpha = 1;
      const about = col.column ? `${col.column.label} at epsilon ${this.written}` : "exact PCA";
      canvas.setAttribute("aria-label", `Rows of ${table.name} in the space of ${about}`);
      // In an image of the picture alone too.
      if (payload.ribbon) this.words(pen, ["working view", "of real rows"], width / 2, height - 8, 11);
    }

    // What a release alone lets anybody draw: no row, no true axis, no label.
    drawPoints(pen, canvas, col, cell, width, height) {
      const { drawn, limits } = this.payload;
      const { verdict } = col.column ? cell.status : {};
      let said = null;
      if (!col.column) said = ["the truth", "is not drawn here"];
      else if (!COUNTED.has(verdict)) said = ["no claim holds:", "nothing to be drawn"];
      else if (!cell.drawn) said = ["directions alone:", "no variances are", "released to draw from"];
      if (said) {
        this.words(pen, said, width / 2, height / 2 + 8 * said.length, this.scale(13));
        canvas.setAttribute("aria-label", said.join(" "));
        return;
      }
      const [across, up] = limits.picture;
      const unit = Math.min((width / 2 - 3) / across, (height / 2 - 3) / up);
      const normals = unpack(drawn, Float32Array);
      const [first, second] = cell.drawn;
      const size = Math.max(1.6, Math.min(3, width / 80)) * (this.presenting ? 1.3 : 1);
      const inside = (value, most) => Math.max(2, Math.min(most - 2, value));
      const path = new Path2D();
      for (let i = 0; i < normals.length; i += 2) {
        // Along one component the height only keeps points apart.
        const y = second === undefined ? (normals[i + 1] / 8) * height : normals[i + 1] * second * unit;
        shape(path, 0, inside(width / 2 + normals[i] * first * unit, width), inside(height / 2 - y, height), size);
      }
      pen.globalAlpha = 0.8;
      pen.fillStyle = this.colour(col.column);
      pen.fill(path);
      pen.globalAlpha = 1;
      canvas.setAttribute("aria-label", `Points drawn from the release of ${col.column.label} at epsilon ${this.written}`);
    }

    words(pen, lines, x, bottom, size) {
      pen.font = `${size}px ${this.font}`;
      pen.fillStyle = this.faint;
      pen.textAlign = "center";
      pen.textBaseline = "alphabetic";
      lines.forEach((line, place) => pen.fillText(line, x, bottom - (lines.length - 1 - place) * size * 1.25));
    }

    places(packed, payload, width, height) {
      const { limits, table, truth } = payload;
      const raw = unpack(packed, Int16Array);
      const [limitX, limitY] = limits.picture;
      const unit = limits.scale / 32767;
      const heights = table.k === 1 ? unpack(truth.heights, Float32Array) : null;
      const count = heights ? raw.length : raw.length / 2;
      const out = new Float32Array(2 * count);
      const halfX = width / 2;
      const halfY = height / 2;
      // A unit is as long across as up, whatever the box; the height in a strip means nothing.
      const across = (halfX - 3) / limitX;
      const up = (halfY - 3) / limitY;
      const [perX, perY] = heights ? [across, up] : [Math.min(across, up), Math.min(across, up)];
      for (let i = 0; i < count; i += 1) {
        const x = (heights ? raw[i] : raw[2 * i]) * unit;
        const y = heights ? heights[i] : raw[2 * i + 1] * unit;
        out[2 * i] = Math.max(2, Math.min(width - 2, halfX + x * perX));
        out[2 * i + 1] = Math.max(2, Math.min(height - 2, halfY - y * perY));
      }
      return out;
    }

    drawSpectrum(canvas, col, cell, { hidden, axes, every }) {
      const [width, height] = this.box(canvas);
      if (!width || !height) return;
      const pen = surface(canvas, width, height);
      const { truth, limits } = this.payload;
      const { count, low, high, linear, marks } = every ? limits.spectrum.all : limits.spectrum.first;
      const size = this.scale(12);
      const left = axes ? this.scale(44) : 6;
      const bottom = height - (axes ? this.scale(17) : 6);
      const top = axes ? this.scale(18) : 6;
      const log = (value) => Math.asinh(value / linear);
      const clamp = (value) => Math.max(low, Math.min(high, value));
      const y = (value) => bottom - ((log(clamp(value)) - log(low)) / (log(high) - log(low))) * (bottom - top);
      const x = (place) => left + ((place + 0.5) / count) * (width - left - 6);
      pen.font = `${size}px ${this.font}`;
      pen.lineWidth = 1;
      let last = Infinity;
      for (const [mark, text] of marks) {
        const at = Math.round(y(mark)) + 0.5;
        pen.strokeStyle = this.line;
        pen.globalAlpha = mark === 0 ? 1 : 0.5;
        pen.beginPath();
        pen.moveTo(left, at);
        pen.lineTo(width - 4, at);
        pen.stroke();
        pen.globalAlpha = 1;
        if (axes && last - at > size) {
          pen.fillStyle = this.faint;
          pen.textAlign = "right";
          pen.textBaseline = "middle";
          pen.fillText(text, left - 4, at);
          last = at;
        }
      }
      if (axes) {
        pen.fillStyle = this.faint;
        pen.textAlign = "left";
        pen.textBaseline = "top";
        pen.fillText("variance", 2, 1);
        pen.textAlign = "right";
        pen.textBaseline = "bottom";
        pen.fillText(`component 1 to ${count}`, width - 4, height);
      }
      if (hidden) {
        this.question(pen, width, height);
        return;
      }
      const own = col.column ? this.colour(col.column) : this.ink;
      const curve = (values, from, to, move = true) => {
        for (let i = from; i < to; i += 1) {
          if (i === from && move) pen.moveTo(x(i), y(values[i]));
          else pen.lineTo(x(i), y(values[i]));
        }
      };
      const beyond = [];
      if (cell) {
        const { lines, count: sent, released } = cell.spectrum;
        const raw = unpack(lines, Float32Array);
        const shown = Math.min(count, sent);
        const median = raw.subarray(0, sent);
        const lower = raw.subarray(sent, 2 * sent);
        const upper = raw.subarray(2 * sent, 3 * sent);
        pen.fillStyle = own;
        pen.globalAlpha = 0.25;
        if (released) {
          pen.beginPath();
          curve(upper, 0, shown);
          for (let i = shown - 1; i >= 0; i -= 1) pen.lineTo(x(i), y(lower[i]));
          pen.closePath();
          pen.fill();
        } else {
          for (let i = 0; i < shown; i += 1) {
            pen.fillRect(x(i) - 3, y(upper[i]), 6, Math.max(1, y(lower[i]) - y(upper[i])));
          }
        }
        pen.globalAlpha = 1;
        if (median[0] > high) beyond.push("▲ beyond the scale");
        const ghost = this.ghostOf(col.key);
        if (ghost && ghost.same) {
          const old = unpack(ghost.cell.spectrum.lines, Float32Array);
          pen.strokeStyle = this.ink;
          pen.lineWidth = 1.3;
          pen.setLineDash([5, 4]);
          pen.beginPath();
          curve(old, 0, Math.min(count, ghost.cell.spectrum.count));
          pen.stroke();
          pen.setLineDash([]);
        }
        this.trueLine(pen, truth.eigenvalues, count, curve);
        pen.strokeStyle = own;
        pen.fillStyle = own;
        pen.lineWidth = 2;
        if (released) {
          pen.beginPath();
          curve(median, 0, shown);
          pen.stroke();
        }
        pen.beginPath();
        for (let i = 0; i < shown && shown <= 30; i += 1) {
          pen.moveTo(x(i) + 2.4, y(median[i]));
          pen.arc(x(i), y(median[i]), released ? 2.4 : 3.4, 0, 2 * Math.PI);
        }
        pen.fill();
        if (cell.edges) {
          const at = { y, left, size, right: width - 6, high, shown, step: x(1) - x(0), curves: [median, truth.eigenvalues] };
          this.drawLevel(pen, at, cell.edges[1], "noise edge", [2, 3], true);
          this.drawLevel(pen, at, cell.threshold, "threshold", [7, 4], false);
        }
        if (!released) beyond.push("kept along each direction");
        const about = `${col.column.label}: median of the draws from ${cell.spectrum.text} down; truth ${truth.text}`;
        canvas.setAttribute("aria-label", `Spectrum of ${about}`);
      } else {
        this.trueLine(pen, truth.eigenvalues, count, curve);
        canvas.setAttribute("aria-label", `True spectrum, largest variance ${truth.text}`);
      }
      if (beyond.length) {
        pen.textAlign = "left";
        pen.textBaseline = "bottom";
        this.haloed(pen, beyond.join(", "), left + 2, bottom - 2);
      }
    }

    // A line across a spectrum, named at its right end, or at the left one where less runs there.
    drawLevel(pen, { y, left, right, size, high, shown, step, curves }, value, name, dash, upper) {
      if (value >= high) return;
      const level = Math.round(y(value)) + 0.5;
      pen.strokeStyle = this.faint;
      pen.lineWidth = 1;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(left, level);
      pen.lineTo(right + 2, level);
      pen.stroke();
      pen.setLineDash([]);
      const above = upper && level > size + 2;
      const middle = level + (above ? -size : size) / 2;
      const long = Math.ceil(pen.measureText(name).width / step);
      const crossings = (from, to) => curves
        .flatMap((values) => [...values.slice(Math.max(0, from), Math.min(to, shown))])
        .filter((one) => Math.abs(y(one) - middle) < size * 0.75).length;
      const atLeft = crossings(0, long) < crossings(shown - long, shown);
      pen.textAlign = atLeft ? "left" : "right";
      pen.textBaseline = above ? "bottom" : "top";
      this.haloed(pen, name, atLeft ? left + 2 : right, level + (above ? -1 : 2));
    }

    haloed(pen, text, x, y) {
      pen.strokeStyle = this.ground;
      pen.lineWidth = 4;
      pen.lineJoin = "round";
      pen.strokeText(text, x, y);
      pen.fillStyle = this.faint;
      pen.fillText(text, x, y);
    }

    trueLine(pen, values, count, curve) {
      pen.strokeStyle = this.faint;
      pen.lineWidth = 2;
      pen.beginPath();
      curve(values, 0, count);
      pen.stroke();
    }

    drawDistance(canvas, col, cell, hidden) {
      const [width, height] = this.box(canvas);
      if (!width || !height) return;
      const pen = surface(canvas, width, height);
      const { limits, chance } = this.payload;
      const size = this.scale(12);
      const far = limits.distance || 1;
      const first = col === this.cols[0]; // it alone says what the axes are
      const x = (value) => 8 + (value / far) * (width - 16);
      const bottom = height - (first ? size + 4 : 5);
      pen.font = `${size}px ${this.font}`;
      pen.strokeStyle = this.line;
      pen.lineWidth = 1;
      pen.beginPath();
      pen.moveTo(8, bottom + 0.5);
      pen.lineTo(width - 8, bottom + 0.5);
      pen.stroke();
      const at = Math.round(x(chance.distance)) + 0.5;
      pen.strokeStyle = this.faint;
      pen.setLineDash([3, 3]);
      pen.beginPath();
      pen.moveTo(at, 3);
      pen.lineTo(at, bottom);
      pen.stroke();
      pen.setLineDash([]);
      if (first) {
        pen.fillStyle = this.faint;
        pen.textBaseline = "bottom";
        pen.textAlign = "left";
        pen.fillText("0 true space", 2, height);
        pen.textAlign = "right";
        pen.fillText("chance", Math.min(at + 22, width), height);
        pen.textBaseline = "top";
        pen.textAlign = "left";
        pen.fillText("distance", 2, 1);
      }
      if (hidden) {
        this.question(pen, width, height);
        return;
      }
      canvas.setAttribute("aria-label",
        `Distance to the true space: 0 is the same, ${chance.text} is chance`);
      if (!col.column || !cell) return;
      const own = this.colour(col.column);
      const dots = (values, hollow) => {
        pen.beginPath();
        values.forEach((value, place) => {
          const lane = ((place * 0.6180339887) % 1) * (bottom - 14) + 7;
          pen.moveTo(x(value) + 2.6, lane);
          pen.arc(x(value), lane, 2.6, 0, 2 * Math.PI);
        });
        if (hollow) pen.stroke();
        else pen.fill();
      };
      const ghost = this.ghostOf(col.key);
      if (ghost && this.pin.limits.distance === far) {
        pen.strokeStyle = this.ink;
        pen.globalAlpha = 0.6;
        pen.lineWidth = 0.9;
        dots(ghost.cell.distances, true);
      }
      pen.globalAlpha = 0.55;
      pen.fillStyle = own;
      dots(cell.distances, false);
      pen.globalAlpha = 1;
      if (this.redrawAt !== null && this.redraws?.[col.key]) {
        const place = this.redrawAt % cell.distances.length;
        const lane = ((place * 0.6180339887) % 1) * (bottom - 14) + 7;
        pen.strokeStyle = this.ink;
        pen.lineWidth = 2;
        pen.beginPath();
        pen.arc(x(cell.distances[place]), lane, 5, 0, 2 * Math.PI);
        pen.stroke();
      }
      pen.strokeStyle = this.ink;
      pen.lineWidth = 2.5;
      pen.beginPath();
      pen.moveTo(x(cell.distance[0]), 4);
      pen.lineTo(x(cell.distance[0]), bottom);
      pen.stroke();
      canvas.setAttribute("aria-label",
        `Distance of ${col.column.label}: median ${cell.texts.distance}, chance ${chance.text}`);
    }

    writeRecovery(col, cell, exact, hidden) {
      const meter = col.bar.children;
      if (!col.column) {
        setText(col.value, "100 %");
        setText(col.words, "recovered; chance: 0\u00a0%");
        col.words.title = `Chance captures a share of ${this.payload.chance.share}`;
        meter[0].style.width = "100%";
        return;
      }
      if (hidden || !cell) {
        setText(col.value, hidden ? "?" : "–");
        setText(col.words, hidden ? "" : "cannot run here");
        setText(col.ghost, "");
        meter[0].style.width = meter[1].style.width = "0";
        return;
      }
      if (!cell.recovery) {
        setText(col.value, "–");
        setText(col.words, "k = d: the whole space");
        return;
      }
      const [mean, low, high] = cell.recovery;
      const drawn = [mean, cell.texts.recovery, cell.texts.words];
      const shown = exact ? drawn : this.expected(col.key);
      const [value, text, words] = shown ?? [null, "…", "drawing"];
      setText(col.value, text);
      let said = words;
      if (!exact && shown) said = `${words}, predicted`;
      else if (!COUNTED.has(cell.status.verdict) && cell.status.verdict !== "baseline") said = `${words}, not counted`;
      if (cell.texts.best) said = `${said}; ${cell.texts.best}`;
      setText(col.words, said);
      col.words.title = cell.texts.aim;
      const held = this.ghostOf(col.key);
      const ghost = held?.cell.recovery ? held : null;
      setText(col.ghost, ghost && shown ? `pin ${ghost.cell.texts.recovery}` : "");
      const clip = (share) => Math.max(0, Math.min(1, share));
      meter[0].style.width = `${100 * clip(value ?? 0)}%`;
      meter[1].style.left = `${100 * clip(low)}%`;
      meter[1].style.width = exact ? `${100 * (clip(high) - clip(low))}%` : "0";
      meter[2].style.left = ghost ? `${100 * clip(ghost.cell.recovery[0])}%` : "-9px";
    }

    // The answer in one line: what is recovered, what it takes, what an attacker gains.
    writeAnswer(frame, exact) {
      if (!this.answer) return;
      if (!this.reserved) this.reserveAnswer();
      const parts = this.answerParts(frame, exact, this.written);
      const written = JSON.stringify(parts);
      if (written === this.answered) return;
      this.answered = written;
      this.fillAnswer(this.answer, parts);
    }

    // Room for the longest answer at any epsilon: what stands below holds still while it changes.
    reserveAnswer() {
      this.reserved = true;
      const trial = make("p", "dpv-answer dpv-trial", { "aria-hidden": "true" });
      trial.style.width = `${this.answer.clientWidth}px`;
      this.answer.before(trial);
      let most = 0;
      this.epsilons.forEach((epsilon, place) => {
        const frame = this.frames.get(epsilon);
        if (!frame) return;
        this.fillAnswer(trial, this.answerParts(frame, true, this.payload.texts[place]));
        most = Math.max(most, Math.ceil(trial.getBoundingClientRect().height));
      });
      trial.remove();
      this.answer.style.setProperty("--dpv-tallest", `${most}px`);
    }

    answerParts(frame, exact, epsilon) {
      const parts = [];
      if (this.payload.caution) parts.push([`⚠ ${this.payload.caution}`, null]);
      const label = Object.fromEntries(this.payload.columns.map((c) => [c.key, c.label]));
      const counted = Object.entries(frame.cells)
        .filter(([key, cell]) => label[key] && cell.recovery && COUNTED.has(cell.status.verdict))
        .sort((one, other) => other[1].recovery[0] - one[1].recovery[0]);
      if (this.masked) {
        parts.push([`At ε ${epsilon}: what is left?`, null]);
      } else if (!exact) {
        parts.push([`At ε ${epsilon}: predictions first, draws follow.`, null]);
      } else if (!counted.length) {
        parts.push([`At ε ${epsilon} no claim of these mechanisms holds.`, null]);
      } else {
        const [key, best] = counted[0];
        const tied = counted.slice(1).filter(([, cell]) => {
          const apart = Math.hypot(best.recovery[3] || 0, cell.recovery[3] || 0);
          return best.recovery[0] - cell.recovery[0] <= 3 * apart;
        });
        const rivals = tied.length > 2 ? `${tied.length} others` : listed(tied.map(([other]) => label[other]));
        const tie = tied.length ? `, tied with ${rivals}` : "";
        parts.push([`At ε ${epsilon}, ${label[key]} recovers ${best.texts.recovery}${tie}`, "recovery"]);
        if (this.payload.least) parts.push([this.payload.least, "least"]);
        const [out, within] = best.texts.risk;
        parts.push([`a guess that somebody is in: right ${within}, wrong ${out} of 100`, "risk"]);
      }
      return parts;
    }

    fillAnswer(node, parts) {
      node.replaceChildren(...parts.flatMap(([text, link], place) => {
        const node = link && this.options.onLink
          ? make("button", "dpv-link", { type: "button", onclick: () => this.options.onLink(link) }, text)
          : make("span", place ? "" : "dpv-strong", {}, text);
        return place ? [make("span", "dpv-dot", {}, " · "), node] : [node];
      }));
    }

    say() {
      const { frame, exact } = this.frameNow();
      if (!exact || this.masked) return;
      const said = this.columns.filter((column) => frame.cells[column.key]?.recovery).map((column) => {
        const cell = frame.cells[column.key];
        return `${column.label} ${cell.texts.recovery}, ${cell.status.words}`;
      });
      setText(this.spoken, `Epsilon ${this.written}. Recovered: ${said.join("; ")}.`);
    }

    // -- recovery against epsilon --

    stripFrame() {
      const width = this.stripBox.clientWidth;
      const height = this.stripBox.clientHeight;
      const phone = this.element.hasAttribute("data-phone");
      const left = this.scale(40);
      const right = width - (phone ? 12 : this.scale(150));
      const top = this.scale(18);
      const bottom = height - this.scale(20);
      const low = Math.log(this.epsilons[0]);
      const high = Math.log(this.epsilons[this.epsilons.length - 1]);
      const x = (epsilon) => left + ((Math.log(epsilon) - low) / (high - low || 1)) * (right - left);
      const y = (share) => bottom - Math.max(-0.02, Math.min(1, share)) * (bottom - top);
      return { width, height, left, right, top, bottom, x, y, phone };
    }

    drawStrip() {
      if (!this.strip) return;
      const at = this.stripFrame();
      if (!at.width || !at.height) return;
      const pen = surface(this.strip, at.width, at.height);
      const size = this.scale(12);
      pen.font = `${size}px ${this.font}`;
      pen.fillStyle = this.faint;
      pen.textBaseline = "middle";
      for (const [share, text] of LEVELS) {
        const level = Math.round(at.y(share)) + 0.5;
        pen.strokeStyle = this.line;
        pen.globalAlpha = share === 0 ? 1 : 0.6;
        pen.lineWidth = 1;
        pen.setLineDash(share === 0.9 ? [2, 3] : []);
        pen.beginPath();
        pen.moveTo(at.left, level);
        pen.lineTo(at.right, level);
        pen.stroke();
        pen.globalAlpha = 1;
        pen.textAlign = "right";
        pen.fillText(text, at.left - 5, level);
      }
      pen.setLineDash([]);
      pen.textBaseline = "bottom";
      pen.textAlign = "center";
      for (const [epsilon, text] of this.payload.ticks) {
        pen.fillText(text, at.x(epsilon), at.height - 1);
      }
      pen.textAlign = "left";
      pen.textBaseline = "top";
      const title = this.stripTitle();
      pen.fillText(title, 2, 0);
      const titled = pen.measureText(title).width + 8;
      const ends = [];
      if (!this.masked) {
        for (const column of this.columns) this.drawCurve(pen, at, column, ends);
      }
      const now = Math.round(at.x(this.epsilon)) + 0.5;
      pen.globalAlpha = 1;
      pen.strokeStyle = this.ink;
      pen.lineWidth = 1.5;
      pen.beginPath();
      pen.moveTo(now, at.top - 4);
      pen.lineTo(now, at.bottom);
      pen.stroke();
      pen.fillStyle = this.ink;
      pen.font = `600 ${size}px ${this.font}`;
      pen.textBaseline = "top";
      const tag = `now: ${this.written}`;
      const wide = pen.measureText(tag).width;
      pen.textAlign = now + wide + 8 > at.right ? "right" : "left";
      const clear = now - (pen.textAlign === "right" ? wide + 5 : 0) > titled;
      pen.fillText(tag, now + (pen.textAlign === "right" ? -5 : 5), clear ? 0 : at.top);
      if (this.pin && this.pin.now >= this.epsilons[0]) {
        pen.strokeStyle = this.faint;
        pen.setLineDash([4, 3]);
        pen.beginPath();
        pen.moveTo(at.x(this.pin.now), at.top);
        pen.lineTo(at.x(this.pin.now), at.bottom);
        pen.stroke();
        pen.setLineDash([]);
      }
      if (!at.phone) this.nameCurves(pen, at, ends, size);
      this.strip.setAttribute("aria-label", `Recovery against epsilon, now ${this.written}`);
    }

    // What the curves rest on, where that is less than usual.
    stripTitle() {
      const { table, steps, epsilons } = this.payload;
      const parts = ["recovery against ε"];
      if (this.element.hasAttribute("data-phone")) return parts[0];
      if (steps && epsilons.length < steps) parts.push(`${epsilons.length} of ${steps} steps, as ${table.d} features take long`);
      const frame = this.frames.get(this.epsilon);
      if (frame && frame.draws && frame.draws < table.draws) parts.push(`the first ${frame.draws} of ${table.draws} draws, all when let go`);
      return parts.join(" · ");
    }

    drawCurve(pen, at, column, ends) {
      const dim = this.hovered && this.hovered !== column.key;
      pen.globalAlpha = dim ? 0.2 : 1;
      pen.strokeStyle = this.colour(column);
      const known = [];
      for (const epsilon of this.epsilons) {
        const cell = this.frames.get(epsilon)?.cells[column.key];
        if (cell?.recovery) known.push([epsilon, cell.recovery[0], !COUNTED.has(cell.status.verdict)]);
      }
      const line = this.payload.predicted?.[column.key];
      if (line && known.length < this.epsilons.length) {
        pen.lineWidth = 1;
        pen.setLineDash([1.5, 3]);
        pen.beginPath();
        let going = false;
        this.epsilons.forEach((epsilon, place) => {
          if (line[place] === null) return;
          if (going) pen.lineTo(at.x(epsilon), at.y(line[place][0]));
          else pen.moveTo(at.x(epsilon), at.y(line[place][0]));
          going = true;
        });
        pen.stroke();
      }
      pen.lineWidth = this.hovered === column.key ? 3.5 : 2;
      for (let i = 1; i < known.length; i += 1) {
        // Dashed where the claim fails: at either end of the step.
        pen.setLineDash(known[i][2] || known[i - 1][2] ? [5, 4] : []);
        pen.beginPath();
        pen.moveTo(at.x(known[i - 1][0]), at.y(known[i - 1][1]));
        pen.lineTo(at.x(known[i][0]), at.y(known[i][1]));
        pen.stroke();
      }
      pen.setLineDash([]);
      const here = this.frames.get(this.epsilon)?.cells[column.key];
      if (here?.recovery) {
        const [x, y] = [at.x(this.epsilon), at.y(here.recovery[0])];
        pen.beginPath();
        pen.arc(x, y, 4, 0, 2 * Math.PI);
        const counted = COUNTED.has(here.status.verdict);
        pen.fillStyle = counted ? this.colour(column) : this.ground;
        pen.lineWidth = 2;
        pen.fill();
        pen.stroke();
      }
      const tail = known.length ? known[known.length - 1][1] : line?.filter((v) => v !== null).pop()?.[0];
      if (tail !== undefined) ends.push({ column, y: at.y(tail), dim });
      pen.globalAlpha = 1;
    }

    nameCurves(pen, at, ends, size) {
      const gap = size + 2;
      ends.sort((one, other) => one.y - other.y);
      let last = at.top - gap;
      for (const end of ends) {
        end.at = Math.max(end.y, last + gap);
        last = end.at;
      }
      let next = at.height - size / 2 + gap;
      for (const end of [...ends].reverse()) {
        end.at = Math.min(end.at, next - gap);
        next = end.at;
      }
      pen.textAlign = "left";
      pen.textBaseline = "middle";
      for (const end of ends) {
        pen.globalAlpha = end.dim ? 0.3 : 1;
        pen.strokeStyle = this.colour(end.column);
        pen.lineWidth = 1;
        pen.beginPath();
        pen.moveTo(at.right + 2, end.y);
        pen.lineTo(at.right + 14, end.at);
        pen.stroke();
        pen.fillStyle = this.ink;
        pen.font = `${this.hovered === end.column.key ? 600 : 400} ${size}px ${this.font}`;
        pen.fillText(clipped(pen, end.column.label, at.width - at.right - 20), at.right + 18, end.at);
      }
      pen.globalAlpha = 1;
    }

    dragStrip() {
      const to = (event) => {
        const at = this.stripFrame();
        const box = this.strip.getBoundingClientRect();
        const low = Math.log(this.epsilons[0]);
        const high = Math.log(this.epsilons[this.epsilons.length - 1]);
        const share = (event.clientX - box.left - at.left) / (at.right - at.left);
        this.move(this.nearest(Math.exp(low + Math.max(0, Math.min(1, share)) * (high - low))), true);
      };
      this.strip.addEventListener("pointerdown", (event) => {
        if (event.clientX - this.strip.getBoundingClientRect().left > this.stripFrame().right + 8) return;
        this.strip.setPointerCapture(event.pointerId);
        this.stripHeld = true;
        to(event);
      });
      this.strip.addEventListener("pointermove", (event) => {
        if (this.stripHeld) to(event);
        else this.hoverStrip(event);
      });
      const end = () => {
        if (this.stripHeld) this.commit();
        this.stripHeld = false;
      };
      this.strip.addEventListener("pointerup", end);
      this.strip.addEventListener("pointercancel", end);
      this.strip.addEventListener("pointerleave", () => this.hover(null));
    }

    hoverStrip(event) {
      const at = this.stripFrame();
      const box = this.strip.getBoundingClientRect();
      const [x, y] = [event.clientX - box.left, event.clientY - box.top];
      let best = null;
      for (const column of this.columns) {
        for (const epsilon of this.epsilons) {
          const cell = this.frames.get(epsilon)?.cells[column.key];
          if (!cell?.recovery) continue;
          const far = Math.hypot(at.x(epsilon) - x, at.y(cell.recovery[0]) - y);
          if (far < 28 && (!best || far < best.far)) best = { far, key: column.key };
        }
      }
      this.hover(best ? best.key : null);
    }

    // -- one column, large --

    openColumn(key, quiet = false) {
      const before = this.opened;
      this.opened = key;
      this.large.hidden = !key;
      this.grid.classList.toggle("dpv-behind", Boolean(key));
      if (!key) {
        this.large.replaceChildren();
        if (before && !quiet) {
          this.options.onOpen?.(null);
          this.cols.find((col) => col.key === before)?.head.focus();
        }
        this.schedule();
        return;
      }
      const column = this.columns.find((one) => one.key === key);
      const col = { column, key, canvases: {} };
      for (const row of ["picture", "spectrum", "distance"]) {
        col.canvases[row] = make("canvas", "", { role: "img" });
      }
      col.said = make("div", "dpv-said");
      const close = make("button", "dpv-button dpv-close", { type: "button", onclick: () => this.openColumn(null) }, "close");
      const all = make("label", "dpv-all", {},
        make("input", "", { type: "checkbox", onchange: (event) => { this.all = event.target.checked; this.schedule(); } }),
        "all components");
      all.firstChild.checked = this.all;
      this.large.setAttribute("aria-label", `${column.label}, large`);
      this.large.style.setProperty("--dpv-own", this.colour(column));
      this.large.replaceChildren(
        make("header", "", {}, make("h2", "", {}, column.label), make("span", "dpv-paper", {}, column.paper || ""), all, close),
        make("div", "dpv-large-body", {},
          make("div", "dpv-box dpv-box-large", {}, col.canvases.picture),
          make("div", "dpv-large-side", {},
            make("div", "dpv-box dpv-box-large-spectrum", {}, col.canvases.spectrum),
            make("div", "dpv-box dpv-box-large-distance", {}, col.canvases.distance),
            col.said)),
      );
      this.largeCol = col;
      if (!quiet) {
        this.options.onOpen?.(key);
        close.focus();
      }
      this.schedule();
    }

    drawLarge(frame, exact) {
      const col = this.largeCol;
      const cell = frame.cells[col.key];
      this.drawPicture(col.canvases.picture, col, cell, this.masked);
      this.drawSpectrum(col.canvases.spectrum, col, cell, { hidden: this.masked, axes: true, every: this.all });
      this.drawDistance(col.canvases.distance, col, cell, this.masked);
      const lines = [];
      if (!cell) lines.push(["Cannot run here", frame.skipped[col.key] || ""]);
      else {
        const { status, texts } = cell;
        lines.push([`${status.mark} ${status.words}`.trim(), status.evidence], ...texts.claim);
        if (!this.masked) lines.push(...texts.found);
        if (!this.masked && texts.aim) lines.push(["Its aim", texts.aim]);
        if (cell.edges) lines.push(["Both lines", this.payload.limits.lines]);
        if (col.column.redraws) lines.push(["Note", "draws afresh at each ε, so its points jump"]);
        if (!exact) lines.push(["Drawing", `the frame at ε ${this.written} is still being drawn`]);
      }
      const written = JSON.stringify(lines);
      if (col.written === written) return;
      col.written = written;
      col.said.replaceChildren(make("dl", "", {}, ...lines.flatMap(([name, text]) => [
        make("dt", "", {}, name), make("dd", "", {}, text)])));
    }

    // -- every draw, one after the other --

    startDraws() {
      if (!this.redraws) return;
      this.stopDraws();
      const most = Math.max(...Object.values(this.redraws).map((list) => list.length));
      this.redrawAt = 0;
      this.buttons.draws?.setAttribute("aria-pressed", "true");
      this.schedule();
      this.drawTimer = setInterval(() => {
        this.redrawAt += 1;
        if (this.redrawAt >= most) this.stopDraws();
        else this.schedule();
      }, DRAW_MS);
    }

    stopDraws() {
      clearInterval(this.drawTimer);
      this.drawTimer = null;
      if (this.redrawAt !== null) this.schedule();
      this.redrawAt = null;
      this.buttons?.draws?.setAttribute("aria-pressed", "false");
    }
  }

  function clipped(pen, text, room) {
    if (pen.measureText(text).width <= room) return text;
    let kept = text;
    while (kept.length > 3 && pen.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
    return `${kept}…`;
  }

  function luminance(colour) {
    const pen = document.createElement("canvas").getContext("2d");
    pen.fillStyle = colour;
    const hex = /^#(..)(..)(..)$/.exec(pen.fillStyle);
    if (!hex) return 1;
    const [r, g, b] = hex.slice(1).map((part) => parseInt(part, 16) / 255);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  }

  return { mount: (root, payload, options = {}) => new Board(root, payload, options) };
})();
