// @ts-check
// This module draws recovery against epsilon, one named line per mechanism. A drag sets epsilon.

import { apart, stepped } from "./axis.js";
import { clipped } from "./format.js";
import { disc, dragged, make, ruled, scaled, surface } from "./sheet.js";

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

const NEAR = 28; // Largest distance in pixels at which the pointer selects a line.
const SIDES = [110, 170]; // Pixels left and right of the chart, as at the slider in board.css.

export class Strip {
  /** @param {Acts} acts */
  constructor(acts) {
    this.acts = acts;
    this.canvas = make("canvas", "dpv-strip", { role: "img" });
    this.box = make("div", "dpv-stripbox", {}, this.canvas);
    /** @type {View | null} */
    this.view = null;
    this.listen();
  }

  /**
   * Where epsilon and recovery lie on the canvas.
   *
   * @param {View} view
   */
  places({ payload, phone, look }) {
    const [width, height] = [this.box.clientWidth, this.box.clientHeight];
    // The slider below has the same ends as this axis, so its handle is below the epsilon to read.
    const [left, right] = phone ? [11, width - 11] : [SIDES[0], width - SIDES[1]];
    const top = scaled(look, phone ? 30 : 21);
    const bottom = height - scaled(look, look.large ? 6 : 4);
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
    /** @type {End[]} */
    const ends = [];
    for (const column of view.masked ? [] : view.columns) {
      const end = drawCurve(pen, at, column, view);
      if (end && (!view.pair || column.key === view.pair)) ends.push(end);
    }
    drawNow(pen, at, view);
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
    dragged(canvas, (event) => {
      if (!this.view || inside(event).x > this.places(this.view).right + 8) return false;
      drag(event);
      return true;
    }, drag, acts.commit);
    canvas.addEventListener("pointermove", (event) => {
      if (!event.buttons) acts.hover(this.nearestTo(inside(event)));
    });
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
/** @typedef {{ column: Column, y: number, dim: boolean }} End */

/**
 * Draw levels and title; epsilons stand below, at the slider.
 *
 * @type {(pen: CanvasRenderingContext2D, at: Places, view: View) => void}
 */
function drawAxes(pen, at, view) {
  const { payload, look } = view;
  pen.fillStyle = look.faint;
  pen.textBaseline = "middle";
  pen.textAlign = view.phone ? "left" : "right";
  for (const { share, text, dotted } of payload.levels) {
    const level = Math.round(at.y(share)) + 0.5;
    pen.globalAlpha = share === 0 ? 1 : 0.6;
    ruled(pen, look.line, 1, dotted ? [2, 3] : [], at.left, level, at.right, level);
    pen.globalAlpha = 1;
    if (share || !view.phone) pen.fillText(text, view.phone ? 0 : at.left - 6, level);
  }
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
  const parts = [both ? "recovery, thin line: as released" : "recovery"];
  if (steps && epsilons.length < steps) {
    parts.push(`${epsilons.length} of ${steps} steps, because ${table.d} features take long`);
  }
  const frame = frames.get(epsilon);
  if (frame && frame.draws && frame.draws < table.draws) {
    parts.push(`the first ${frame.draws} of ${table.draws} releases, and all of them when you let go`);
  }
  return parts;
}

/**
 * Draw one mechanism; return where its name belongs.
 *
 * @type {(pen: CanvasRenderingContext2D, at: Places, column: Column, view: View) => End | null}
 */
function drawCurve(pen, at, column, view) {
  const { payload, frames, hovered, look } = view;
  const { key } = column;
  const dim = Boolean(hovered) && hovered !== key;
  const thick = hovered === key || view.pair === key;
  const own = view.colour(column);
  pen.globalAlpha = dim ? 0.2 : 1;
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
    ruled(pen, own, 1, [1.5, 3], ...expected.flatMap(({ x, y }) => [x, y]));
  }
  known.slice(1).forEach((to, place) => {
    const from = known[place];
    // A segment is dashed if the privacy claim fails at one of its ends.
    const dash = to.counts && from.counts ? [] : [5, 4];
    ruled(pen, own, thick ? 3.5 : view.pair ? 1.2 : 2, dash, from.x, from.y, to.x, to.y);
    // If a mechanism's curve shows recovery after post-processing, a thin line shows it as
    // released.
    if (from.before !== null && to.before !== null) ruled(pen, own, 1, [], from.x, from.before, to.x, to.before);
  });
  const here = frames.get(view.epsilon)?.cells[key];
  if (here?.recovery) {
    pen.fillStyle = here.status.counts ? own : look.ground;
    pen.strokeStyle = own;
    pen.lineWidth = 2;
    disc(pen, at.x(view.epsilon), at.y(here.recovery[0]), 4);
    pen.stroke();
  }
  pen.globalAlpha = 1;
  // A mechanism's name is at its curve's height for this epsilon, because curves meet at the end.
  const tail = known[known.length - 1] ?? expected[expected.length - 1];
  const y = here?.recovery ? at.y(here.recovery[0]) : tail?.y;
  return y === undefined ? null : { column, y, dim };
}

/**
 * Draw where epsilon stands, and where the pinned setting does.
 *
 * @type {(pen: CanvasRenderingContext2D, at: Places, view: View) => void}
 */
function drawNow(pen, at, { payload, look, epsilon, pinned }) {
  const now = Math.round(at.x(epsilon)) + 0.5;
  ruled(pen, look.ink, 1.5, [], now, at.top - 4, now, at.height);
  if (pinned === null || pinned < payload.epsilons[0]) return;
  ruled(pen, look.faint, 1.5, [4, 3], at.x(pinned), at.top, at.x(pinned), at.height);
}

/** @type {(pen: CanvasRenderingContext2D, at: Places, ends: End[], view: View, size: number) => void} */
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
