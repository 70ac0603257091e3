// @ts-check
// The figure that compares mechanisms: each column is a mechanism and each row a measure. A slider
// sets epsilon.
//
// These modules have no dependencies and make no requests. payload.d.ts documents the payload, and
// __init__.py the interface. All numbers and texts on the screen come with the payload. This code
// computes only their positions and formats no number.

import { nearest } from "./axis.js";
import { drawDistance } from "./distance.js";
import { luminance, ramp } from "./palette.js";
import { drawPicture, glyphs } from "./picture.js";
import { ARROWS, inEnglish, make, plain, setText, thumbnail } from "./sheet.js";
import { bars, drawScree, drawSpectrum } from "./spectrum.js";
import { Strip, titleOf } from "./strip.js";

/** @typedef {import("./payload").Payload} Payload */
/** @typedef {import("./payload").Frame} Frame */
/** @typedef {import("./payload").BoardColumn} Column */
/** @typedef {import("./payload").BoardCell} Cell */
/** @typedef {import("./sheet.js").Look} Look */
/** @typedef {import("./sheet.js").Scene} Scene */
/** @typedef {Record<string, string[]>} Redraws */

/**
 * @typedef {object} Options
 * @property {string[]} [rows]
 * @property {string[]} [keys]
 * @property {string[]} [controls]
 * @property {boolean} [strip]
 * @property {boolean} [answer]
 * @property {boolean} [exact]
 * @property {boolean} [every]
 * @property {string} [label]
 * @property {import("./sheet.js").Says} [says]
 * @property {boolean} [masked]
 * @property {boolean} [large] whether it is seen from the back of a hall, presented or not
 * @property {number} [phoneBelow]
 * @property {boolean} [range] whether the least and the most of the draws are written
 * @property {(epsilon: number) => void} [onScrub]
 * @property {(epsilon: number) => void} [onCommit]
 * @property {(epsilon: number) => void} [onBeyond]
 * @property {(key: string | null) => void} [onOpen]
 * @property {(action: "pin" | "unpin" | "swap") => void} [onPin]
 * @property {() => void} [onFresh]
 * @property {(epsilon: number) => void} [onDraws]
 * @property {(name: string) => void} [onLink]
 * @property {(name: "working" | "publishable") => boolean} [onView] the reader chose a view; true
 *   where it is shown later, when what it shows is there
 * @property {boolean} [present]
 * @property {(on: boolean) => void} [onPresent]
 */

/**
 * One column on the page.
 *
 * @typedef {object} Col
 * @property {Column | null} column null for the exact one
 * @property {string} key
 * @property {HTMLElement} node
 * @property {HTMLElement} head
 * @property {HTMLElement | null} status
 * @property {Record<string, HTMLCanvasElement>} canvases
 * @property {Recovery | null} recovery
 */

/**
 * Where a column's recovery is written.
 *
 * @typedef {object} Recovery
 * @property {HTMLElement} node
 * @property {HTMLElement} value
 * @property {HTMLElement} ghost
 * @property {HTMLElement} words
 * @property {[HTMLElement, HTMLElement, HTMLElement]} meter
 */

const WHOLE = "all components: the whole space";
const UNDECLARED = "Do not publish this chart: no schema says how the file is read. Publish a release instead.";
const ROWS = ["picture", "spectrum", "distance", "recovery"];
const CONTROLS = ["scrub", "play", "pin", "draws", "fresh", "view", "present"];
const PLAY_MS = 8000; // Milliseconds to play all epsilons, from largest to smallest.
const KEY_MS = 600; // Milliseconds from the last key press to the choice of its epsilon.
const REDRAWS = 20; // Maximum number of simulated releases in an animation.
const DRAW_MS = 260; // Milliseconds for which an animation shows one release.
const MOST = 9; // Maximum number of columns side by side.
const NARROWEST = 132; // Minimum width of a column in pixels.
const GAP = 8; // Pixels between two columns, as in board.css.
const ASKS = "How small can epsilon be before the structure disappears?";
const HEIGHTS = [0.25, 0.5, 1]; // Possible upper ends of a scree plot's axis, as shares.
/** Most and least height of each row, in pixels: side by side, and of a pair. */
/** @type {Record<"side" | "pair", [string, number, number][]>} */
const ROOM = {
  side: [["picture", 180, 100], ["spectrum", 120, 60], ["distance", 50, 34], ["strip", 118, 84]],
  pair: [["picture", 330, 150], ["spectrum", 120, 76], ["strip", 118, 84]],
};
const FOOT = 6; // Pixels that stay free below the buttons.
const SMALL = 1000; // Width in pixels up to which a stage writes no larger, as in board.css.
const NAMED = 1100; // Least width in pixels at which the least epsilons name their mechanisms.
const MOST_KINDS = 24; // Maximum number of labels in the legend.
const [BESIDE_STOPS, A_STOP] = [930, 112]; // Pixels for question and exit, and for one thumbnail.

class Board {
  /**
   * @param {HTMLElement} root
   * @param {Payload} payload
   * @param {Options} options
   */
  constructor(root, payload, options) {
    this.root = root;
    this.options = options;
    this.says = options.says ?? inEnglish;
    this.payload = payload;
    /** @type {Map<number, Frame>} */
    this.frames = new Map();
    /** @type {Column[]} */
    this.columns = [];
    /** @type {Col[]} */
    this.cols = [];
    /** @type {string[]} */
    this.rows = [];
    /** @type {Record<string, HTMLButtonElement>} */
    this.buttons = {};
    this.index = 0;
    /** @type {number | undefined} */
    this.committed = undefined;
    /** @type {string | null} */
    this.hovered = null;
    /** @type {number | null} */
    this.kind = null; // The label under the mouse pointer.
    /** @type {number | null} */
    this.picked = null; // The label that a click has chosen.
    /** @type {string | null} */
    this.opened = null; // The column that the reader opened beside exact PCA.
    /** @type {string | null} */
    this.best = null; // The column to show if the reader has not chosen one.
    this.presenting = false;
    this.publishable = Boolean(payload.ribbon); // True shows only what may be published.
    this.publishableBefore = this.publishable;
    this.masked = Boolean(options.masked);
    /** @type {Payload | null} */
    this.pin = null;
    /** @type {Redraws | null} */
    this.redraws = null;
    /** @type {number | null} */
    this.redrawAt = null;
    this.all = Boolean(options.every); // True shows all components, not only the first.
    this.most = 1; // Upper end of the axes of all scree plots.
    this.reserved = false;
    this.fitted = ""; // Screen and place for which the rows have their heights.
    /** @type {string | null} */
    this.answered = null;
    this.saidOf = "";
    /** @type {number | null} */
    this.timer = null;
    /** @type {number | null} */
    this.pending = null;
    /** @type {ReturnType<typeof setTimeout> | undefined} */
    this.keyTimer = undefined;
    /** @type {ReturnType<typeof setInterval> | undefined} */
    this.drawTimer = undefined;
    /** @type {Look} */
    this.look = { ground: "#ffffff", ink: "#1c2530", faint: "#55616d", line: "#c3ccd6", font: "", large: false, says: this.says };
    this.dark = false;
    /** @type {(() => void)[]} */
    this.cleanups = [];
    this.element = make("div", "dpv", { role: "group", "aria-label": options.label || this.says("The board") });
    // Each payload makes these elements again, so all of them are declared in one place.
    this.ribbon = make("p", "dpv-ribbon");
    this.grid = make("div", "dpv-grid");
    this.said = make("div", "dpv-said");
    this.tools = make("div", "dpv-tools");
    this.ghosts = make("span", "dpv-kind");
    this.legend = make("span", "dpv-labels");
    this.spoken = make("div", "dpv-hidden", { "aria-live": "polite" });
    this.film = make("ol", "dpv-film", { "aria-label": this.says("Seen so far") });
    this.filmed = ""; // Table and columns to which the thumbnails belong.
    this.least = make("button");
    this.shown = make("output", "dpv-epsilon");
    /** @type {HTMLElement | null} */
    this.answer = null;
    /** @type {HTMLInputElement | null} */
    this.scrubber = null;
    /** @type {Strip | null} */
    this.strip = null;
    root.append(this.element);
    this.listen(globalThis, "keydown", (event) => this.onKey(/** @type {KeyboardEvent} */ (event)));
    this.listen(globalThis, "resize", () => this.measure());
    const scheme = globalThis.matchMedia?.("(prefers-color-scheme: dark)");
    if (scheme) this.listen(scheme, "change", () => this.restyle());
    // A canvas keeps the font in which it was drawn, so it is drawn again when fonts have loaded.
    if (document.fonts) {
      this.listen(document.fonts, "loadingdone", () => {
        glyphs.clear();
        this.schedule();
      });
    }
    this.resizer = new ResizeObserver(() => this.measure());
    this.setPayload(payload);
    this.resizer.observe(this.element);
    if (options.present && this.element.clientWidth >= (options.phoneBelow ?? 640)) this.present(true);
  }

  /** @type {(target: EventTarget, kind: string, act: (event: Event) => void) => void} */
  listen(target, kind, act) {
    target.addEventListener(kind, act);
    this.cleanups.push(() => target.removeEventListener(kind, act));
  }

  // -- Public interface: methods that the page calls --

  get epsilons() {
    return this.payload.epsilons;
  }

  get epsilon() {
    return this.epsilons[this.index];
  }

  get written() {
    return this.payload.texts[this.index];
  }

  /** @param {Payload} payload */
  setPayload(payload) {
    this.stop();
    if (Boolean(payload.ribbon) !== Boolean(this.payload.ribbon)) this.publishable = Boolean(payload.ribbon);
    this.payload = payload;
    this.frames = new Map();
    this.redraws = payload.draws || null;
    this.columns = payload.columns.filter(
      (column) => !this.options.keys || this.options.keys.includes(column.key),
    );
    if (!this.columns.some((column) => column.key === this.opened)) this.opened = null;
    this.keep(payload.frames);
    this.index = nearest(this.epsilons, payload.now);
    this.build();
    this.measure();
    this.restyle();
  }

  /**
   * Keep frames: one with every draw is not replaced by one with the first of them.
   *
   * @param {Frame[]} frames
   */
  keep(frames) {
    for (const frame of frames) {
      const known = this.frames.get(frame.epsilon);
      if (!known || known.draws <= frame.draws) this.frames.set(frame.epsilon, frame);
    }
  }

  /** @param {Frame[]} frames */
  addFrames(frames) {
    this.keep(frames);
    this.reserved = false;
    this.schedule();
  }

  /** @param {number} epsilon */
  setEpsilon(epsilon) {
    this.move(nearest(this.epsilons, epsilon), false);
  }

  /** @param {Payload | null} payload */
  setPin(payload) {
    this.pin = payload || null;
    this.element.toggleAttribute("data-pinned", Boolean(this.pin));
    this.dressPin();
    this.schedule();
  }

  /** @param {Redraws | null} pictures */
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

  /** @param {boolean} on */
  present(on) {
    if (this.payload.ribbon && this.presenting !== Boolean(on)) {
      // A projector shows no real rows unless somebody asks for them.
      if (on) this.publishableBefore = this.publishable;
      this.setPublishable(on ? true : this.publishableBefore);
    }
    const turned = this.presenting !== Boolean(on);
    if (turned) this.best = on ? this.opened : null;
    this.presenting = Boolean(on);
    this.element.toggleAttribute("data-present", this.presenting);
    // A popover lies in the browser's top layer, above all other elements of the page.
    if ("showPopover" in this.element) {
      if (on) {
        this.element.setAttribute("popover", "manual");
        this.element.showPopover();
      } else if (this.element.hasAttribute("popover")) {
        this.element.hidePopover();
        this.element.removeAttribute("popover");
      }
    }
    this.buttons.present?.setAttribute("aria-pressed", String(this.presenting));
    setText(this.buttons.present, on ? "leave" : "present");
    this.hover(null);
    this.measure();
    (on ? this.scrubber : this.buttons.present)?.focus();
    if (turned) this.options.onPresent?.(this.presenting);
  }

  /**
   * Return the key of the column that stands large beside the truth: on a stage, on a phone and
   * where one is opened. Null: all stand side by side.
   *
   * @returns {string | null}
   */
  get pair() {
    if (!this.strip || !this.columns.length) return null;
    if (this.opened && !this.presenting) return this.opened;
    if (!this.presenting && !this.element.hasAttribute("data-phone")) return null;
    // The best column is chosen only once, so that it does not change while epsilon moves.
    if (!this.columns.some(({ key }) => key === this.best)) this.best = this.theBest();
    return this.best;
  }

  /** The best that holds; where only the truth tells which that is, the first that is published. */
  theBest() {
    const { frame } = this.frameNow();
    const cell = (/** @type {Col} */ col) => frame?.cells[col.key];
    const hides = this.publishable && this.payload.ribbon;
    const shown = this.cols.filter((col) => col.column);
    const first = shown.find((col) => (hides ? cell(col)?.published : cell(col)?.status.counts));
    return (first ?? shown[0]).key;
  }

  /**
   * Take the view that the page around asks for; on a wall it waits.
   *
   * @param {boolean} on
   */
  takeView(on) {
    if (this.presenting) this.publishableBefore = on;
    else this.setPublishable(on);
  }

  /** @param {boolean} on */
  setPublishable(on) {
    if (this.publishable !== Boolean(on)) this.best = null;
    this.publishable = Boolean(on);
    this.stopDraws();
    if (on && this.opened && !this.presenting) this.openColumn(null);
    this.element.toggleAttribute("data-publishable", this.publishable);
    this.buttons.working?.setAttribute("aria-pressed", String(!this.publishable));
    this.buttons.publishable?.setAttribute("aria-pressed", String(this.publishable));
    for (const name of ["draws", "pin"]) {
      if (this.buttons[name]) this.buttons[name].disabled = this.publishable;
    }
    this.arrange();
    this.dressRibbon();
    this.dressLegend();
    this.dressPin();
    setText(this.spoken, "");
    this.measure();
    this.schedule();
  }

  /** Order the columns: what holds by recovery here, or by name where that is not published, then what fails. */
  arrange() {
    const { frame } = this.frameNow();
    /** @param {Col} col */
    const rank = ({ key }) => {
      const cell = frame?.cells[key];
      if (!cell) return 1;
      return (cell.status.counts ? -2 : 2) - (cell.recovery ? cell.recovery[0] : 0) / 4;
    };
    /** @type {(a: Col, b: Col) => number} */
    const byRank = (a, b) => rank(a) - rank(b);
    /** @type {(a: Col, b: Col) => number} */
    const byLabel = (a, b) => Math.sign(rank(a)) - Math.sign(rank(b)) || byName(a.column, b.column);
    const [exact, before] = [this.cols.filter((col) => !col.column), this.cols];
    const order = this.publishable && this.payload.ribbon ? byLabel : byRank;
    this.cols = [...exact, ...before.filter((col) => col.column).sort(order)];
    if (this.cols.every((col, index) => col === before[index])) return;
    const root = /** @type {Document | ShadowRoot} */ (this.grid.getRootNode());
    const focused = root.activeElement;
    this.grid.append(...this.cols.map((col) => col.node));
    if (focused instanceof HTMLElement && this.grid.contains(focused)) focused.focus();
  }

  dressRibbon() {
    const { ribbon } = this.payload;
    this.element.toggleAttribute("data-real", Boolean(ribbon)); // The rows are not public.
    // Without a warning, the privacy cost takes the answer's place, so that no element moves.
    this.ribbon.hidden = !ribbon && !(this.publishable && !this.answer);
    setText(this.ribbon, this.publishable ? this.cost : ribbon || "");
  }

  get cost() {
    const cost = this.says("This chart uses epsilon {epsilon} in total for axes and points.", { epsilon: this.written });
    return this.payload.publishable ? cost : `${cost} ${UNDECLARED}`;
  }

  /** @param {string | null} key */
  open(key) {
    this.openColumn(key);
  }

  play() {
    if (this.timer) return;
    const top = this.epsilons.length - 1;
    // The animation starts at the largest epsilon, so that viewers see noise hide the structure.
    const started = performance.now();
    this.buttons.play?.setAttribute("aria-pressed", "true");
    setText(this.buttons.play, "❚❚ stop");
    const from = Math.log(this.epsilons[top]);
    const to = Math.log(this.epsilons[0]);
    /** @param {number} now */
    const step = (now) => {
      const share = Math.min((now - started) / PLAY_MS, 1);
      this.setEpsilon(Math.exp(from + share * (to - from)));
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
    this.buttons.play?.setAttribute("aria-pressed", "false");
    setText(this.buttons.play, "▶ play");
  }

  destroy() {
    this.stop();
    clearTimeout(this.keyTimer);
    clearInterval(this.drawTimer);
    if (this.pending) cancelAnimationFrame(this.pending);
    this.resizer.disconnect();
    for (const clean of this.cleanups) clean();
    this.element.remove();
  }

  // -- Methods that change epsilon --

  /** @type {(index: number, byUser: boolean) => void} */
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
    this.settle();
    this.options.onCommit?.(this.epsilon);
    this.schedule();
  }

  /** Take the order of here, once epsilon rests: what is dragged keeps its place. */
  settle() {
    const { options, masked } = this;
    if (!this.strip || masked || options.rows) return;
    const key = this.pair;
    this.arrange();
    if (this.pair !== key || key) this.measure();
  }

  soon() {
    clearTimeout(this.keyTimer);
    this.keyTimer = setTimeout(() => this.commit(), KEY_MS);
  }

  /** @param {KeyboardEvent} event */
  onKey(event) {
    const inside = event.composedPath().includes(this.element);
    if (event.key === "Escape") {
      if (this.presenting) this.present(false);
      else if (this.opened) this.openColumn(null);
      return;
    }
    if (!(inside || this.presenting)) return;
    const target = event.composedPath()[0];
    if (target instanceof HTMLElement && target.matches("input, select, textarea")) return;
    const step = ARROWS[event.key];
    if (step && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      this.move(this.index + step, true);
      this.soon();
    }
  }

  // -- The charts at the current epsilon, or at the nearest epsilon that was computed --

  /** @returns {{ frame: Frame | null, exact: boolean }} */
  frameNow() {
    const here = this.frames.get(this.epsilon);
    if (here) return { frame: here, exact: true };
    const known = [...this.frames.keys()];
    const frame = known.length ? this.frames.get(known[nearest(known, this.epsilon)]) : null;
    return { frame: frame ?? null, exact: false };
  }

  // -- Methods that create the elements of the figure --

  build() {
    const { payload, options } = this;
    this.rows = options.rows || ROWS;
    const controls = options.controls || CONTROLS;
    this.buttons = {};
    this.scrubber = null;
    this.element.replaceChildren();
    this.ribbon = make("p", "dpv-ribbon");
    this.element.append(this.ribbon);
    const head = make("div", "dpv-top", {}, make("p", "dpv-ask", { "data-page": Boolean(options.onCommit) }, ASKS));
    this.element.append(head);
    const { table } = payload;
    const filmed = JSON.stringify([table.name, table.n, table.k, this.columns.map(({ key }) => key)]);
    if (this.filmed !== filmed) this.film.replaceChildren();
    this.filmed = filmed;
    this.element.append(this.film);
    this.answer = options.answer === false ? null : make("p", "dpv-answer");
    if (this.answer) this.element.append(this.answer);
    this.grid = make("div", "dpv-grid");
    this.cols = [];
    if (options.exact !== false) this.cols.push(this.buildColumn(null));
    for (const column of this.columns) this.cols.push(this.buildColumn(column));
    this.grid.append(...this.cols.map((col) => col.node));
    this.element.append(this.grid);
    this.strip = options.strip === false ? null : this.buildStrip();
    this.least = make("button", "dpv-least", { type: "button", onclick: () => options.onLink?.("least") });
    const axis = make("div", "dpv-axis", {}, this.strip?.box ?? null, this.strip && this.least);
    const tools = make("div", "dpv-tools");
    this.tools = tools;
    if (this.rows.includes("picture")) tools.append(this.buildLegend());
    if (controls.includes("scrub")) axis.append(this.buildBar());
    if (controls.length) tools.append(this.buildButtons(controls, head));
    this.said = make("div", "dpv-said");
    this.element.append(axis, tools, this.said);
    this.spoken = make("div", "dpv-hidden", { "aria-live": "polite" });
    this.element.append(this.spoken);
    this.committed = payload.now;
    this.answered = null;
    this.saidOf = "";
    this.setPublishable(this.publishable);
  }

  buildStrip() {
    return new Strip({
      move: (epsilon) => this.move(nearest(this.epsilons, epsilon), true),
      commit: () => this.commit(),
      hover: (key) => this.hover(key),
    });
  }

  /** The slider, under the curves that are its track: both have the same ends. */
  buildBar() {
    this.shown = make("output", "dpv-epsilon");
    const [before, after] = this.payload.beyond;
    return make("div", "dpv-bar", {},
      make("span", "dpv-eps", {}, "ε ", this.shown),
      this.buildEnd("more private", before),
      this.buildTrack(),
      this.buildEnd("more accurate", after));
  }

  /**
   * Build the buttons below the columns; those that lead to another view stand beside the question.
   *
   * @param {string[]} controls
   * @param {HTMLElement} head
   */
  buildButtons(controls, head) {
    const bar = make("div", "dpv-buttons");
    /** @type {(name: string, label: string, help: string, act: () => void) => void} */
    const button = (name, label, help, act) => {
      if (!(controls.includes(name) || name === "aside" || name === "every")) return;
      this.buttons[name] = make("button", `dpv-button dpv-do-${name}`, {
        type: "button", title: help, onclick: act,
      }, label);
      bar.append(this.buttons[name]);
    };
    button("play", "▶ play", "Move epsilon from the accurate end to the private end in 8 seconds", () => {
      if (this.timer) {
        this.stop();
        this.commit();
      } else this.play();
    });
    button("pin", "pin", "Keep this setting in the charts for comparison", () => {
      this.options.onPin?.(this.pin ? "unpin" : "pin");
      if (!this.options.onPin) this.setPin(this.pin ? null : this.snapshot());
    });
    if (controls.includes("pin")) {
      this.buttons.swap = make("button", "dpv-button", {
        type: "button", disabled: true, title: "Exchange the pinned setting and the current setting",
        onclick: () => this.swap(),
      }, "swap");
      bar.append(this.buttons.swap);
    }
    if (this.options.onFresh) {
      button("fresh", "fresh draw", "New noise at the same setting", () => this.options.onFresh?.());
    }
    if (this.options.onDraws || this.redraws) {
      const most = Math.min(this.payload.table.draws, REDRAWS);
      button("draws", `${most} draws`, "Show every simulated release, one after the other", () => {
        if (this.drawTimer) this.stopDraws();
        else if (this.redraws) this.startDraws();
        else this.options.onDraws?.(this.epsilon);
      });
    }
    if (this.strip) {
      button("aside", "all side by side", "Show all mechanisms, each with its spectrum and distance", () => this.openColumn(null));
      button("every", "all components", "Show the whole spectrum, or only the first components", () => {
        this.all = !this.all;
        this.schedule();
      });
    }
    if (controls.includes("view") && this.rows.includes("picture")) bar.append(this.buildSwitch());
    button("present", this.presenting ? "leave" : "present", "Show the charts large and alone; Escape ends this view", () => this.present(!this.presenting));
    for (const name of ["aside", "present"]) if (this.buttons[name]) head.append(this.buttons[name]);
    this.buttons.present?.setAttribute("aria-pressed", String(this.presenting));
    return bar;
  }

  buildSwitch() {
    const group = make("div", "dpv-switch", { role: "group", "aria-label": "View" });
    /** @type {(name: string, label: string, help: string, on: boolean) => void} */
    const side = (name, label, help, on) => {
      this.buttons[name] = make("button", "dpv-button", {
        type: "button", title: help,
        onclick: () => {
          if (!this.options.onView?.(on ? "publishable" : "working")) this.setPublishable(on);
        },
      }, label);
      group.append(this.buttons[name]);
    };
    side("working", "working view", "Show real rows, compared with the exact result: internal, do not share", false);
    const open = this.payload.publishable;
    const help = "Show only what the budget covers: noisy counts, drawn as points";
    side("publishable", open ? "publishable" : "noise only", open ? help : `${help}. ${UNDECLARED}`, true);
    return group;
  }

  buildTrack() {
    const top = this.epsilons.length - 1;
    const scrubber = make("input", "dpv-scrub", {
      type: "range", min: 0, max: top, step: 1, "aria-label": "Epsilon",
    });
    scrubber.value = String(this.index);
    let held = false;
    scrubber.addEventListener("pointerdown", () => { held = true; });
    scrubber.addEventListener("input", () => {
      this.move(Number(scrubber.value), true);
      if (!held) this.soon();
    });
    // A range input fires "change" when the pointer is released, but also at each key press.
    scrubber.addEventListener("change", () => (held ? this.commit() : this.soon()));
    for (const end of ["pointerup", "pointercancel"]) {
      this.listen(globalThis, end, () => { held = false; });
    }
    scrubber.addEventListener("blur", () => this.commit());
    this.scrubber = scrubber;
    const ticks = make("div", "dpv-ticks", { "aria-hidden": "true" });
    for (const [epsilon, text, decade] of this.payload.ticks) {
      const place = this.epsilons.indexOf(epsilon);
      if (place < 0) continue;
      const tick = make("span", "", {}, text);
      tick.style.left = `${(100 * place) / Math.max(top, 1)}%`;
      tick.toggleAttribute("data-decade", decade);
      ticks.append(tick);
    }
    return make("div", "dpv-track", {}, scrubber, ticks);
  }

  /**
   * The words at an end of the scrubber; where a page can go on beyond it, a button.
   *
   * @param {string} words
   * @param {[number, string] | null} beyond
   */
  buildEnd(words, beyond) {
    if (!this.options.onBeyond || !beyond) {
      return make("span", "dpv-end", { "aria-hidden": "true" }, words);
    }
    const [to, text] = beyond;
    return make("button", "dpv-end dpv-beyond", {
      type: "button", title: `Go on to ε ${text}`, onclick: () => this.options.onBeyond?.(to),
    }, words);
  }

  /** @type {(column: Column | null) => Col} */
  buildColumn(column) {
    const key = column ? column.key : "";
    const node = make("section", "dpv-col", { "data-key": key || "exact" });
    const open = column ? () => this.openColumn(key) : null;
    const status = column ? make("span", "dpv-status") : null;
    const head = column
      ? make("button", "dpv-head", { type: "button", title: column.summary, onclick: open },
        make("span", "dpv-name", {}, make("i", "dpv-swatch", { "aria-hidden": "true" }), column.label), status)
      : make("div", "dpv-head dpv-exact", {},
        make("span", "dpv-name", {}, this.says("Exact PCA")),
        make("span", "dpv-status", {}, this.says("not private")));
    if (column) {
      // Only a mouse that moves counts, not a column that moves under the mouse, and not a swipe.
      node.addEventListener("pointermove", (event) => {
        if (event.pointerType === "mouse") this.hover(key);
      });
      node.addEventListener("pointerleave", () => this.hover(null));
      head.addEventListener("focus", () => this.hover(key));
      head.addEventListener("blur", () => this.hover(null));
    }
    node.append(head);
    /** @type {Col} */
    const col = { column, key, node, head, status, canvases: {}, recovery: null };
    for (const row of this.rows) {
      if (row === "recovery") {
        col.recovery = buildRecovery();
        node.append(col.recovery.node);
      } else {
        col.canvases[row] = make("canvas", `dpv-${row}`, { role: "img" });
        node.append(make("div", `dpv-box dpv-box-${row}`, { onclick: open }, col.canvases[row]));
      }
    }
    return col;
  }

  buildLegend() {
    const box = make("div", "dpv-legend", { "aria-label": this.says("Colours of the chart") });
    this.ghosts = make("span", "dpv-kind");
    this.legend = make("span", "dpv-labels");
    box.append(this.legend, this.ghosts);
    return box;
  }

  dressLegend() {
    const { labels, palette } = this.payload;
    const box = this.legend;
    box.replaceChildren();
    box.hidden = this.publishable && !labels.public;
    if (box.hidden) return; // The names of the labels are not public.
    const name = make("span", "dpv-legend-name", {}, `${this.says(labels.name || "label")}:`);
    if (labels.kinds && labels.kinds.length > 1) {
      box.append(name);
      labels.kinds.slice(0, MOST_KINDS).forEach((kind, place) => {
        const mark = labels.marks?.[place];
        const glyph = make("b", "dpv-mark", { "aria-hidden": "true" }, mark ?? "●");
        if (mark) glyph.style.color = palette.labels[place % palette.labels.length];
        const said = this.says(kind);
        box.append(make("button", "dpv-kind", {
          type: "button", "data-kind": place, title: "Show this label alone", "aria-label": said, "aria-pressed": "false",
          onpointerenter: () => this.light(place),
          onpointerleave: () => this.light(this.picked),
          onclick: () => this.pick(place),
        }, glyph, said === mark ? "" : said));
      });
    } else if (labels.ends) {
      const bar = make("i", "dpv-ramp");
      const stops = [0, 0.33, 0.67, 1].map((share) => ramp(palette.ramp, share));
      bar.style.background = `linear-gradient(90deg, ${stops.join(",")})`;
      box.append(name, labels.ends[0], bar, labels.ends[1]);
    }
  }

  /**
   * Light one kind of label in every picture.
   *
   * @param {number | null} kind
   */
  light(kind) {
    this.kind = kind;
    this.schedule();
  }

  /**
   * Keep one kind of label lit, or none.
   *
   * @param {number} kind
   */
  pick(kind) {
    this.picked = this.picked === kind ? null : kind;
    for (const one of this.legend.querySelectorAll("[data-kind]")) {
      one.setAttribute("aria-pressed", String(one.getAttribute("data-kind") === String(this.picked)));
    }
    this.light(this.picked ?? kind);
  }

  dressPin() {
    const { pin } = this;
    if (this.buttons.pin) {
      const text = pin ? pin.texts[pin.epsilons.indexOf(pin.now)] : "";
      setText(this.buttons.pin, pin ? `unpin ε ${text}` : "pin");
      this.buttons.pin.setAttribute("aria-pressed", String(Boolean(pin)));
    }
    if (this.buttons.swap) this.buttons.swap.disabled = !pin;
    const rows = pin ? "rings: pinned" : this.says("grey dots: the exact result");
    const { kinds, public: known } = this.payload.labels;
    const hidden = kinds && known ? `; ${this.says("grey: labels that noise hides")}` : "";
    // The seed is known, and readers move epsilon. The stated cost holds for a single chart only.
    const once = this.buttons.working ? "; viewing these charts is not a release" : "";
    setText(this.ghosts, this.publishable ? `${this.says("points stand for people, no point is a person")}${once}${hidden}` : rows);
  }

  snapshot() {
    const frame = this.frames.get(this.epsilon);
    return frame ? { ...this.payload, now: this.epsilon, frames: [frame] } : null;
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

  /** @param {string | null} key */
  hover(key) {
    if (this.hovered === key) return;
    this.hovered = key;
    for (const col of this.cols) {
      col.node.classList.toggle("dpv-lit", Boolean(key) && col.key === key);
      col.node.classList.toggle("dpv-dim", Boolean(key) && col.key !== key && col.key !== "");
    }
    this.drawStrip();
  }

  // -- Methods that measure sizes and read colours --

  measure() {
    const width = this.element.clientWidth;
    if (!width) return;
    this.element.toggleAttribute("data-phone", width < (this.options.phoneBelow ?? 640));
    this.element.toggleAttribute("data-small", width < NAMED);
    this.look.large = this.large;
    const count = this.cols.length;
    const room = Math.max(2, Math.floor((width + GAP) / (NARROWEST + GAP)));
    let across = Math.min(count, MOST, room);
    // All rows of columns get about the same length, so that no column stands alone in the last
    // row.
    if (across < count) across = Math.ceil(count / Math.ceil(count / across));
    const { pair } = this;
    this.element.toggleAttribute("data-pair", pair !== null);
    for (const { column, key, node } of this.cols) {
      node.dataset.place = column === null ? "truth" : key === pair ? "chosen" : pair ? "thumb" : "";
    }
    this.element.style.setProperty("--dpv-thumbs", String(Math.max(this.columns.length - 1, 1)));
    // On a phone two columns are the only view.
    if (this.buttons.aside) this.buttons.aside.hidden = !this.opened || this.element.hasAttribute("data-phone");
    if (this.buttons.every) this.buttons.every.hidden = !pair;
    if (pair) across = 2;
    this.element.style.setProperty("--dpv-across", String(across));
    this.element.toggleAttribute("data-narrow", !pair && (width + GAP) / across - GAP < 160);
    this.reserved = false;
    this.schedule();
  }

  /** Reserve room for the longest answer, and give the rows what the screen leaves. */
  reserve() {
    this.reserved = true;
    if (this.answer) this.reserveAnswer(this.answer);
    this.fit();
  }

  /**
   * Shrink the rows, none below its least height, until slider and buttons are on the screen.
   *
   * A change of the view, whose buttons and legend differ in length, moves nothing.
   */
  fit() {
    const { style, clientWidth } = this.element;
    const pair = this.pair !== null;
    const rows = new Set(this.cols.map(({ node }) => node.offsetTop)).size;
    const free = this.presenting || this.element.hasAttribute("data-phone") || (rows > 1 && !pair);
    let scrolled = 0;
    for (let at = /** @type {Element | null} */ (this.element); at;) {
      scrolled += at.scrollTop;
      const root = at.getRootNode();
      at = at.parentElement ?? (root instanceof ShadowRoot ? root.host : null);
    }
    const top = Math.round(this.grid.getBoundingClientRect().top + scrolled);
    const fitted = !this.strip || free ? "" : [innerHeight, clientWidth, top, pair].join(" ");
    if (this.fitted === fitted) return;
    this.fitted = fitted;
    for (const [name] of ROOM.side) style.removeProperty(`--dpv-${name}`);
    this.element.toggleAttribute("data-tight", false);
    if (!fitted) return;
    const room = ROOM[pair ? "pair" : "side"];
    for (const [name, most] of room) style.setProperty(`--dpv-${name}`, `${most}px`);
    const over = () => this.tools.getBoundingClientRect().bottom + scrolled + FOOT - innerHeight;
    this.element.toggleAttribute("data-tight", over() > 0);
    const gives = room.reduce((sum, [, most, least]) => sum + most - least, 0);
    const share = Math.max(0, Math.min(1, over() / gives));
    for (const [name, most, least] of room) {
      style.setProperty(`--dpv-${name}`, `${Math.floor(most - share * (most - least))}px`);
    }
  }

  // A small window is a phone, or a page that its reader has enlarged already.
  get large() {
    return Boolean(this.options.large) || (this.presenting && this.element.clientWidth > SMALL);
  }

  restyle() {
    const style = getComputedStyle(this.element);
    /** @type {(name: string, other: string) => string} */
    const read = (name, other) => style.getPropertyValue(name).trim() || other;
    const ground = read("--dpv-ground", "#ffffff");
    this.dark = luminance(plain(ground)) < 0.4;
    this.element.toggleAttribute("data-dark", this.dark); // The colours depend on this attribute.
    this.look = {
      ground,
      ink: read("--dpv-ink", "#1c2530"),
      faint: read("--dpv-faint", "#55616d"),
      line: read("--dpv-line", "#c3ccd6"),
      font: style.fontFamily,
      large: this.large,
      says: this.says,
    };
    for (const { column, node } of this.cols) {
      if (column) node.style.setProperty("--dpv-own", this.colour(column));
    }
    this.schedule();
  }

  /** @param {Column} column */
  colour(column) {
    const pair = column.colour;
    return Array.isArray(pair) ? pair[this.dark ? 1 : 0] : pair;
  }

  schedule() {
    if (this.pending) return;
    this.pending = requestAnimationFrame(() => {
      this.pending = null;
      this.draw();
    });
  }

  // -- Methods that draw the charts --

  draw() {
    if (!this.reserved) this.reserve();
    const { frame, exact } = this.frameNow();
    this.most = this.highest();
    // Canvases are drawn before texts are written, because each new text changes the layout.
    const scenes = this.cols.map((col) => this.sceneOf(col.column, frame, col === this.cols[0]));
    this.cols.forEach(({ canvases }, place) => this.drawCanvases(canvases, scenes[place], this.all));
    this.drawStrip();
    this.element.toggleAttribute("data-waiting", !exact);
    this.element.toggleAttribute("data-complete", this.epsilons.every((e) => this.frames.has(e)));
    if (this.scrubber) {
      this.scrubber.value = String(this.index);
      const top = Math.max(this.epsilons.length - 1, 1);
      this.scrubber.style.setProperty("--dpv-share", `${(100 * this.index) / top}%`);
      this.scrubber.setAttribute("aria-valuetext", `epsilon ${this.written}`);
    }
    setText(this.shown, this.written);
    this.dressRibbon();
    this.cols.forEach((col, place) => this.writeColumn(col, scenes[place], frame, exact));
    this.writeAnswer(frame, exact);
    if (this.presenting && exact && this.committed === this.epsilon) this.keepStop();
    this.writeSaid(frame, exact);
  }

  // A projector stores a thumbnail of each epsilon shown. A click on it returns to that epsilon.
  keepStop() {
    const shown = this.cols.find(({ key }) => key === this.pair);
    const from = shown?.canvases.picture;
    if (!from?.width) return;
    const stops = [...this.film.children];
    let stop = stops.find((one) => one.getAttribute("data-epsilon") === this.written);
    if (!stop) {
      const { epsilon } = this;
      const back = () => {
        this.setEpsilon(epsilon);
        this.commit();
      };
      stop = make("li", "", { "data-epsilon": this.written },
        make("button", "", { type: "button", onclick: back }, thumbnail(from, 96, false), `\u03b5 ${this.written}`));
      this.film.append(stop);
      const room = Math.floor((this.element.clientWidth - BESIDE_STOPS) / A_STOP);
      for (const old of stops.slice(0, Math.max(0, stops.length + 1 - Math.max(2, room)))) old.remove();
    }
    for (const one of this.film.children) {
      one.firstElementChild?.setAttribute("aria-current", String(one === stop));
    }
  }

  // All epsilons share one axis height. The largest epsilon shows the variances' shares best.
  highest() {
    const last = this.frames.get(Math.max(...this.frames.keys()));
    const known = Object.values(last?.cells ?? {}).flatMap(({ published }) => (published ? bars(published) : []));
    return HEIGHTS.find((height) => known.every(([share]) => share < 0.85 * height)) ?? 1;
  }

  /** @param {string} key */
  ghostOf(key) {
    const { pin, payload } = this;
    const cell = pin?.frames[0]?.cells[key];
    if (!pin || !cell) return null;
    const same = pin.table.name === payload.table.name
      && pin.table.k === payload.table.k
      && pin.limits.scale === payload.limits.scale;
    return { cell, payload: pin, same };
  }

  /**
   * Return what a column shows.
   *
   * @type {(column: Column | null, frame: Frame | null, first: boolean) => Scene}
   */
  sceneOf(column, frame, first) {
    const cell = column && frame ? frame.cells[column.key] ?? null : null;
    return {
      payload: this.payload,
      column,
      cell,
      hidden: this.masked && column !== null,
      look: this.look,
      own: column ? this.colour(column) : this.look.ink,
      written: this.written,
      ghost: column ? this.ghostOf(column.key) : null,
      redraws: (column && this.redrawAt !== null && this.redraws?.[column.key]) || null,
      redraw: this.redrawAt ?? 0,
      kind: this.kind,
      publishable: this.publishable,
      first,
      counted: (column && frame?.counted?.[column.key]) || null,
      line: frame?.lines?.[column ? column.key : "exact"] ?? null,
      most: this.most,
    };
  }

  /** @type {(canvases: Record<string, HTMLCanvasElement>, scene: Scene, every: boolean) => void} */
  drawCanvases(canvases, scene, every) {
    if (canvases.picture) drawPicture(canvases.picture, scene);
    if (scene.publishable) {
      if (canvases.spectrum) drawScree(canvases.spectrum, scene);
      // The chart hides distances, so the old label of their canvas is removed.
      canvases.distance?.removeAttribute("aria-label");
      return;
    }
    if (canvases.spectrum) drawSpectrum(canvases.spectrum, scene, every);
    if (canvases.distance) drawDistance(canvases.distance, scene);
  }

  /** @type {(col: Col, scene: Scene, frame: Frame | null, exact: boolean) => void} */
  writeColumn(col, scene, frame, exact) {
    const { cell } = scene;
    if (col.status) {
      const state = cell ? cell.status.state : "absent";
      if (col.node.dataset.state !== state) col.node.dataset.state = state;
      const said = cell ? `${cell.status.mark} ${this.says(cell.status.words)}`.trim() : this.says("cannot run here");
      setText(col.status, scene.hidden ? "\u00a0" : said);
      col.status.title = cell ? cell.status.evidence : frame?.skipped[col.key] || "";
    }
    if (col.recovery) this.writeRecovery(col.recovery, scene, exact);
  }

  /** @type {(at: Recovery, scene: Scene, exact: boolean) => void} */
  writeRecovery({ value, ghost, words, meter }, { column, cell, hidden, ghost: held }, exact) {
    const [bar, range, pinned] = meter;
    if (this.publishable) {
      for (const part of [value, ghost, words]) setText(part, "");
      words.title = "";
      for (const part of meter) part.removeAttribute("style");
      return;
    }
    if (!column) {
      const nothing = this.payload.chance.distance === 0;
      setText(value, nothing ? "–" : "100\u00a0%");
      setText(words, nothing ? WHOLE : this.says("chance: 0\u00a0%"));
      words.title = `Chance captures a share of ${this.payload.chance.share}`;
      bar.style.width = nothing ? "0" : "100%";
      return;
    }
    if (hidden || !cell) {
      setText(value, hidden ? "?" : "–");
      setText(words, hidden ? "" : this.says("cannot run here"));
      setText(ghost, "");
      bar.style.width = range.style.width = "0";
      return;
    }
    if (!cell.recovery) {
      setText(value, "–");
      setText(words, this.payload.chance.distance === 0 ? WHOLE : "nothing to recover");
      return;
    }
    const [mean, low, high] = cell.recovery;
    const line = this.payload.predicted[column.key];
    const told = line ? line[this.index] : null;
    /** @type {[number, string, string]} */
    let shown = [mean, cell.texts.recovery, cell.texts.said];
    if (!exact) shown = told ? [told[0], told[1], `${told[2]}, predicted`] : [0, "…", "drawing"];
    setText(value, shown[1]);
    const [least, most] = this.options.range && exact ? cell.texts.range : [];
    const count = cell.distances.length;
    const ends = most === undefined || count < 2 ? ""
      : `; ${this.says("{count} releases from {least} to {most}", { count, least, most })}`;
    setText(words, this.says(shown[2]) + ends);
    words.title = cell.texts.aim;
    const before = held?.cell.recovery ? held.cell : null;
    const asReleased = exact && !before ? cell.before : null;
    const pin = before && (exact || told) ? `pin ${before.texts.recovery}` : "";
    setText(ghost, asReleased === null ? pin : cell.texts.before);
    /** @param {number} share */
    const clip = (share) => 100 * Math.max(0, Math.min(1, share));
    bar.style.width = `${clip(shown[0])}%`;
    range.style.left = `${clip(low)}%`;
    range.style.width = exact ? `${clip(high) - clip(low)}%` : "0";
    const mark = before?.recovery ? before.recovery[0] : asReleased;
    pinned.style.left = mark === null ? "-9px" : `${clip(mark)}%`;
  }

  /**
   * The answer in one line: what is recovered, what it takes, what an attacker gains.
   *
   * @type {(frame: Frame | null, exact: boolean) => void}
   */
  writeAnswer(frame, exact) {
    if (!this.answer) return;
    const parts = this.publishable ? this.priceParts(frame, this.written) : this.answerParts(frame, exact, this.written);
    const written = JSON.stringify(parts);
    if (written === this.answered) return;
    this.answered = written;
    this.fillAnswer(this.answer, parts);
  }

  /**
   * Room for the longest answer at any epsilon: what stands below holds still while it changes.
   *
   * @param {HTMLElement} answer
   */
  reserveAnswer(answer) {
    const trial = make("p", "dpv-answer dpv-trial", { "aria-hidden": "true" });
    trial.style.width = `${answer.clientWidth}px`;
    answer.before(trial);
    let most = 0;
    this.epsilons.forEach((epsilon, place) => {
      const frame = this.frames.get(epsilon);
      if (!frame) return;
      const written = this.payload.texts[place];
      for (const parts of [this.answerParts(frame, true, written), this.priceParts(frame, written)]) {
        this.fillAnswer(trial, parts);
        most = Math.max(most, Math.ceil(trial.getBoundingClientRect().height));
      }
    });
    trial.remove();
    answer.style.setProperty("--dpv-tallest", `${most}px`);
  }

  /**
   * @param {Frame | null} frame
   * @param {boolean} exact
   * @param {string} written
   * @returns {[string, string | null][]} texts, and the name of what each links to
   */
  answerParts(frame, exact, written) {
    const { caution } = this.payload;
    /** @type {[string, string | null][]} */
    const parts = caution ? [[`⚠ ${caution}`, null]] : [];
    if (this.masked) return [...parts, [`At ε ${written}: what is left?`, null]];
    if (!exact || !frame) return [...parts, [`At ε ${written}: predictions appear first, then simulated releases.`, null]];
    const chosen = this.presenting ? this.pair : this.opened;
    if (chosen) return [...parts, ...this.pairParts(chosen, frame, written)];
    const { recovery, risk } = frame.answer;
    if (risk === null) return [...parts, [recovery, null]];
    parts.push([recovery, "recovery"]);
    return [...parts, [risk, "risk"]];
  }

  /**
   * What the column beside the truth keeps, and what a guesser gains from it.
   *
   * @param {string} key
   * @param {Frame} frame
   * @param {string} written
   * @returns {[string, string | null][]}
   */
  pairParts(key, { cells: { [key]: cell } }, written) {
    const label = this.columns.find((one) => one.key === key)?.label;
    if (!cell) return [[`At epsilon ${written}, ${label} cannot run here.`, null]];
    const keeps = cell.recovery
      ? `${label} keeps ${cell.texts.recovery} of the structure.`
      : "there is nothing to recover: all directions keep as much as the exact directions.";
    return [
      [`At epsilon ${written}, ${keeps}`, "recovery"],
      [cell.status.counts ? cell.texts.risk : "No privacy claim that holds limits what a guesser learns.", "risk"],
    ];
  }

  /**
   * What stands there in the publishable view: who is best only the truth tells.
   *
   * @param {Frame | null} frame
   * @param {string} written
   * @returns {[string, string | null][]}
   */
  priceParts(frame, written) {
    const { caution, ribbon } = this.payload;
    /** @type {[string, string | null][]} */
    const parts = caution ? [[`⚠ ${caution}`, null]] : [];
    if (!ribbon) return [...parts, [this.cost, null]];
    const key = this.pair ?? (this.columns.length ? this.theBest() : "");
    const [cell, column] = [frame?.cells[key], this.columns.find((one) => one.key === key)];
    if (!cell?.published || !column) return [...parts, [`At epsilon ${written}, no picture can be drawn.`, null]];
    const shown = `At epsilon ${written}, the chart of ${column.label} shows the structure that survives its noise.`;
    return [...parts, [shown, null], [cell.texts.risk, "risk"]];
  }

  /**
   * @param {HTMLElement} answer
   * @param {[string, string | null][]} parts
   */
  fillAnswer(answer, parts) {
    answer.replaceChildren(...parts.flatMap(([text, link], place) => {
      const node = link && this.options.onLink
        ? make("button", "dpv-link", { type: "button", onclick: () => this.options.onLink?.(link) }, text)
        : make("span", place ? "" : "dpv-strong", {}, text);
      return place ? [" ", node] : [node];
    }));
  }

  say() {
    const { frame, exact } = this.frameNow();
    if (!exact || !frame || this.masked) return;
    if (this.publishable) {
      setText(this.spoken, this.cost);
      return;
    }
    const said = this.columns.filter((column) => frame.cells[column.key]?.recovery).map((column) => {
      const cell = frame.cells[column.key];
      return `${column.label} ${cell.texts.recovery}, ${cell.status.words}`;
    });
    setText(this.spoken, `Epsilon ${this.written}. Recovered: ${said.join("; ")}.`);
  }

  drawStrip() {
    if (this.publishable) {
      this.strip?.clear();
      return;
    }
    const { payload, frames, epsilon } = this;
    this.strip?.draw({
      payload: this.payload,
      columns: this.columns,
      frames: this.frames,
      epsilon: this.epsilon,
      written: this.written,
      pinned: this.pin ? this.pin.now : null,
      hovered: this.hovered,
      masked: this.masked,
      phone: this.element.hasAttribute("data-phone"),
      pair: this.pair,
      look: this.look,
      colour: (column) => this.colour(column),
    });
    const notes = titleOf({ payload, frames, epsilon }).slice(1).join(" · ");
    const least = [payload.least, notes].filter(Boolean).join(" · ");
    if (this.least.title !== least) this.least.title = least;
    const short = least.replace(/ \((?:[^()]|\([^()]*\))*\)/g, ""); // A variant's name has brackets of its own.
    setText(this.least, this.element.hasAttribute("data-small") ? short : least);
  }

  // -- Methods that show one column beside exact PCA --

  /** @type {(key: string | null) => void} */
  openColumn(key) {
    if (this.presenting) {
      this.best = key;
      this.measure();
      return;
    }
    if (this.publishable) key = null; // An opened column stands beside exact PCA.
    const before = this.opened;
    if (before === key) return;
    this.opened = key;
    this.measure();
    this.options.onOpen?.(key);
    this.cols.find((col) => col.key === (key ?? before))?.head.focus();
  }

  /** @type {(frame: Frame | null, exact: boolean) => void} */
  writeSaid(frame, exact) {
    this.buttons.every?.setAttribute("aria-pressed", String(this.all));
    const column = this.columns.find(({ key }) => key === this.pair);
    const shown = column && !this.presenting && !this.publishable;
    const lines = shown ? this.linesOf(column, frame?.cells[column.key] ?? null, frame, exact) : [];
    const written = JSON.stringify(lines);
    if (this.saidOf === written) return;
    this.saidOf = written;
    this.said.replaceChildren(make("dl", "", {}, ...lines.flatMap(([name, text]) => [
      make("dt", "", {}, name), make("dd", "", {}, text)])));
  }

  /**
   * Return what is said of a column beside its pictures: name and text.
   *
   * @type {(column: Column, cell: Cell | null, frame: Frame | null, exact: boolean) => [string, string][]}
   */
  linesOf(column, cell, frame, exact) {
    if (!cell) return [["Cannot run here", frame?.skipped[column.key] || ""]];
    const { status, texts } = cell;
    /** @type {[string, string][]} */
    const lines = [[`${status.mark} ${status.words}`.trim(), status.evidence], ...texts.claim];
    if (!this.masked) lines.push(...texts.found);
    if (!this.masked && texts.aim) lines.push(["Its aim", texts.aim]);
    if (cell.edges) lines.push(["Both lines", this.payload.limits.lines]);
    if (column.redraws) lines.push(["Note", "this mechanism takes new noise at each ε, so its points jump"]);
    if (!exact) lines.push(["Drawing", `the frame at ε ${this.written} is still being drawn`]);
    return lines;
  }

  // -- Methods that show simulated releases one by one --

  startDraws() {
    if (!this.redraws) return;
    this.stopDraws();
    const most = Math.max(...Object.values(this.redraws).map((list) => list.length));
    let place = 0;
    this.redrawAt = place;
    this.buttons.draws?.setAttribute("aria-pressed", "true");
    this.schedule();
    this.drawTimer = setInterval(() => {
      place += 1;
      if (place >= most) this.stopDraws();
      else {
        this.redrawAt = place;
        this.schedule();
      }
    }, DRAW_MS);
  }

  stopDraws() {
    clearInterval(this.drawTimer);
    this.drawTimer = undefined;
    if (this.redrawAt !== null) this.schedule();
    this.redrawAt = null;
    this.buttons.draws?.setAttribute("aria-pressed", "false");
  }
}

/** @type {(a: Column | null, b: Column | null) => number} */
function byName(a, b) {
  return (a?.label ?? "").localeCompare(b?.label ?? "", "en");
}

/** @returns {Recovery} */
function buildRecovery() {
  const value = make("span", "dpv-value");
  const ghost = make("span", "dpv-ghost", { title: "Recovery at the pinned setting" });
  const words = make("span", "dpv-words");
  /** @type {[HTMLElement, HTMLElement, HTMLElement]} */
  const meter = [make("b"), make("u"), make("s")];
  const node = make("div", "dpv-recovery", {},
    make("div", "dpv-figure", {}, value, ghost), words,
    make("span", "dpv-meter", { "aria-hidden": "true" }, ...meter));
  return { node, value, ghost, words, meter };
}

/**
 * Draw a board into an element.
 *
 * @param {HTMLElement} root
 * @param {Payload} payload
 * @param {Options} options
 */
export function mount(root, payload, options = {}) {
  return new Board(root, payload, options);
}
