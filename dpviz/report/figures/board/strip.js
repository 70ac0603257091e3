// @ts-check
// Recovery against epsilon: a line a mechanism, named in the order of now, and dragged along.

import { apart, stepped } from "./axis.js";
import { clipped } from "./format.js";
import { make, scaled, stroke, surface } from "./sheet.js";

/** @typedef {import("./payload").Payload} Payload */
/** @typedef {import("./payload").Frame} Frame */
/** @typedef {import("./payload").BoardColumn} Column */
/** @typedef {import("./sheet.js").Look} Look */

/**
 * What the strip shows.
 *
 * @typedef {object} View
 * @property {Payload} payload
 * @property {Column[]} columns
 * @property {Map<number, Frame>} frames
 * @property {number} epsilon
 * @property {string} written
 * @property {number | null} pinned epsilon of the pinned setting
 * @property {string | null} hovered key of a column
 * @property {boolean} masked
 * @property {boolean} phone
 * @property {string | null} pair key of the column beside the truth
 * @property {Look} look
 * @property {(column: Column) => string} colour
 */

/**
 * What a reader does with it.
 *
 * @typedef {object} Acts
 * @property {(epsilon: number) => void} move
 * @property {() => void} commit
 * @property {(key: string | null) => void} hover
 */

const NEAR = 28; // pixels from which a line is meant
const SIDES = [110, 170]; // pixels beside the curves, as beside the slider in board.css

export class Strip {
  /** @param {Acts} acts */
  constructor(acts) {
    this.acts = acts;
    this.canvas = make("canvas", "dpv-strip", { role: "img" });
    this.box = make("div", "dpv-stripbox", {}, this.canvas);
    /** @type {View | null} */
    this.view = null;
    this.held = false;
    this.listen();
  }

  /**
   * Where epsilon and recovery lie on the canvas.
   *
   * @param {View} view
   */
  places({ payload, phone, look }) {
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    // The slider below has the same ends: its handle is where the curves are read.
    const [left, right] = phone ? [11, width - 11] : [SIDES[0], width - SIDES[1]];
    const top = scaled(look, phone ? 30 : 21);
    const bottom = height - 4;
    const axis = stepped(payload.epsilons, left, right);
    /** @param {number} share */
    const y = (share) => bottom - Math.max(-0.02, Math.min(1, share)) * (bottom - top);
    return { width, height, left, right, top, bottom, x: axis.at, epsilon: axis.from, y };
  }

  /** @param {View} view */
  draw(view) {
    this.view = view;
    const at = this.places(view);
    if (!at.width || !at.height) return;
    const pen = surface(this.canvas, at.width, at.height);
    const size = scaled(view.look, 15);
    pen.font = `${size}px ${view.look.font}`;
    drawAxes(pen, at, view);
    /** @type {{ column: Column, y: number, dim: boolean }[]} */
    const ends = [];
    for (const column of view.masked ? [] : view.columns) {
      const end = drawCurve(pen, at, column, view);
      if (end && (!view.pair || column.key === view.pair)) ends.push(end);
    }
    drawNow(pen, at, view, size);
    if (!view.phone) nameCurves(pen, at, ends, view, size);
    this.canvas.setAttribute("aria-label", `Recovery against epsilon, now ${view.written}`);
  }

  /** Draw nothing: what is here comes from the truth. */
  clear() {
    this.view = null;
    this.canvas.width = 0;
    this.canvas.removeAttribute("aria-label");
  }

  listen() {
    const { canvas, acts } = this;
    /** @type {(event: PointerEvent) => { x: number, y: number }} */
    const inside = (event) => {
      const box = canvas.getBoundingClientRect();
      return { x: event.clientX - box.left, y: event.clientY - box.top };
    };
    /** @param {PointerEvent} event */
    const drag = (event) => {
      if (this.view) acts.move(this.places(this.view).epsilon(inside(event).x));
    };
    canvas.addEventListener("pointerdown", (event) => {
      if (!this.view || inside(event).x > this.places(this.view).right + 8) return;
      canvas.setPointerCapture(event.pointerId);
      this.held = true;
      drag(event);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (this.held) drag(event);
      else acts.hover(this.nearestTo(inside(event)));
    });
    const end = () => {
      if (this.held) acts.commit();
      this.held = false;
    };
    canvas.addEventListener("pointerup", end);
    canvas.addEventListener("pointercancel", end);
    canvas.addEventListener("pointerleave", () => acts.hover(null));
  }

  /**
   * Return the key of the column whose line is nearest to a point, if one is near.
   *
   * @param {{ x: number, y: number }} point
   */
  nearestTo({ x, y }) {
    if (!this.view) return null;
    const { payload, columns, frames } = this.view;
    const at = this.places(this.view);
    let [best, least] = [/** @type {string | null} */ (null), NEAR];
    for (const { key } of columns) {
      for (const epsilon of payload.epsilons) {
        const recovery = frames.get(epsilon)?.cells[key]?.recovery;
        if (!recovery) continue;
        const far = Math.hypot(at.x(epsilon) - x, at.y(recovery[0]) - y);
        if (far < least) [best, least] = [key, far];
      }
    }
    return best;
  }
}

/** @typedef {ReturnType<Strip["places"]>} Places */

/**
 * Draw levels and title; epsilons stand below, at the slider.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Places} at
 * @param {View} view
 */
function drawAxes(pen, at, view) {
  const { payload, look } = view;
  pen.fillStyle = look.faint;
  pen.textBaseline = "middle";
  pen.textAlign = view.phone ? "left" : "right";
  pen.lineWidth = 1;
  for (const { share, text, dotted } of payload.levels) {
    const level = Math.round(at.y(share)) + 0.5;
    pen.strokeStyle = look.line;
    pen.globalAlpha = share === 0 ? 1 : 0.6;
    pen.setLineDash(dotted ? [2, 3] : []);
    stroke(pen, at.left, level, at.right, level);
    pen.globalAlpha = 1;
    if (share || !view.phone) pen.fillText(text, view.phone ? 0 : at.left - 6, level);
  }
  pen.setLineDash([]);
  pen.textAlign = "left";
  pen.textBaseline = "top";
  if (!view.phone) pen.fillText(titleOf(view)[0], 2, 0);
}

/**
 * Return what is drawn, and what the curves rest on where that is less than usual.
 *
 * @param {Pick<View, "payload" | "frames" | "epsilon">} view
 */
export function titleOf({ payload, frames, epsilon }) {
  const { table, steps, epsilons } = payload;
  const shown = Object.values(frames.get(epsilon)?.cells ?? {});
  const both = shown.some((cell) => cell.before !== null);
  const parts = [both ? "recovery, thin: as released" : "recovery"];
  if (steps && epsilons.length < steps) {
    parts.push(`${epsilons.length} of ${steps} steps, as ${table.d} features take long`);
  }
  const frame = frames.get(epsilon);
  if (frame && frame.draws && frame.draws < table.draws) {
    parts.push(`the first ${frame.draws} of ${table.draws} draws, all when let go`);
  }
  return parts;
}

/**
 * Draw one mechanism; return where its name belongs.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Places} at
 * @param {Column} column
 * @param {View} view
 */
function drawCurve(pen, at, column, view) {
  const { payload, frames, hovered, look } = view;
  const { key } = column;
  const dim = Boolean(hovered) && hovered !== key;
  const thick = hovered === key || view.pair === key;
  const own = view.colour(column);
  pen.globalAlpha = dim ? 0.2 : 1;
  pen.strokeStyle = own;
  const known = payload.epsilons.flatMap((epsilon) => {
    const cell = frames.get(epsilon)?.cells[key];
    if (!cell?.recovery) return [];
    const before = cell.before === null ? null : at.y(cell.before);
    return [{ x: at.x(epsilon), y: at.y(cell.recovery[0]), counts: cell.status.counts, before }];
  });
  const line = payload.predicted[key] ?? [];
  const expected = line.flatMap((told, place) => (
    told ? [{ x: at.x(payload.epsilons[place]), y: at.y(told[0]) }] : []));
  if (expected.length && known.length < payload.epsilons.length) {
    pen.lineWidth = 1;
    pen.setLineDash([1.5, 3]);
    pen.beginPath();
    expected.forEach(({ x, y }, place) => (place ? pen.lineTo(x, y) : pen.moveTo(x, y)));
    pen.stroke();
  }
  pen.lineWidth = thick ? 3.5 : view.pair ? 1.2 : 2;
  known.slice(1).forEach((to, place) => {
    const from = known[place];
    // Dashed where the claim fails: at either end of the step.
    pen.setLineDash(to.counts && from.counts ? [] : [5, 4]);
    stroke(pen, from.x, from.y, to.x, to.y);
  });
  pen.setLineDash([]);
  // Thin: as released, at the same epsilon, where the curve is after post-processing.
  pen.lineWidth = 1;
  known.slice(1).forEach((to, place) => {
    const from = known[place];
    if (from.before !== null && to.before !== null) stroke(pen, from.x, from.before, to.x, to.before);
  });
  const here = frames.get(view.epsilon)?.cells[key];
  if (here?.recovery) {
    pen.beginPath();
    pen.arc(at.x(view.epsilon), at.y(here.recovery[0]), 4, 0, 2 * Math.PI);
    pen.fillStyle = here.status.counts ? own : look.ground;
    pen.lineWidth = 2;
    pen.fill();
    pen.stroke();
  }
  pen.globalAlpha = 1;
  // Its name stands at its height now, where lines part, and not at the end, where they all meet.
  const tail = known[known.length - 1] ?? expected[expected.length - 1];
  const y = here?.recovery ? at.y(here.recovery[0]) : tail?.y;
  return y === undefined ? null : { column, y, dim };
}

/**
 * Draw where epsilon stands, and where the pinned setting does.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Places} at
 * @param {View} view
 * @param {number} size
 */
function drawNow(pen, at, { payload, look, epsilon, pinned }, size) {
  const now = Math.round(at.x(epsilon)) + 0.5;
  pen.strokeStyle = look.ink;
  pen.lineWidth = 1.5;
  stroke(pen, now, at.top - 4, now, at.height);
  if (pinned === null || pinned < payload.epsilons[0]) return;
  pen.strokeStyle = look.faint;
  pen.setLineDash([4, 3]);
  stroke(pen, at.x(pinned), at.top, at.x(pinned), at.height);
  pen.setLineDash([]);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Places} at
 * @param {{ column: Column, y: number, dim: boolean }[]} ends
 * @param {View} view
 * @param {number} size
 */
function nameCurves(pen, at, ends, { look, hovered, colour }, size) {
  pen.textAlign = "left";
  pen.textBaseline = "middle";
  const [top, bottom] = [size / 2, at.height - size / 2];
  const gap = Math.min(size + 2, (bottom - top) / Math.max(ends.length - 1, 1));
  for (const end of apart(ends, gap, top, bottom)) {
    pen.globalAlpha = end.dim ? 0.3 : 1;
    pen.fillStyle = colour(end.column);
    pen.fillRect(at.right + 6, end.at - 1.5, 9, 3);
    pen.fillStyle = look.ink;
    pen.font = `${hovered === end.column.key ? 600 : 400} ${size}px ${look.font}`;
    const name = clipped(pen, end.column.label, at.width - at.right - 20);
    pen.fillText(name, at.right + 18, end.at);
  }
  pen.globalAlpha = 1;
}
