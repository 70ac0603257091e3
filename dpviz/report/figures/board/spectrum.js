// @ts-check
// This module draws the noisy eigenvalues of one mechanism beside the true eigenvalues.

import { heights } from "./axis.js";
import { unpack } from "./format.js";
import { broken, discs, haloed, question, ruled, scaled, sheet, words } from "./sheet.js";

/** @typedef {import("./payload").Spectrum} Spectrum */
/** @typedef {import("./sheet.js").Look} Look */
/** @typedef {import("./sheet.js").Scene} Scene */
/** @typedef {ArrayLike<number>} Values */

const BAND = 8; // Pixels above an axis, for values that exceed it.
const FEWEST = 5; // Least number of bars for which a scree plot has space.

/**
 * Where things lie on the canvas of a spectrum.
 *
 * @typedef {object} Frame
 * @property {CanvasRenderingContext2D} pen
 * @property {Look} look
 * @property {number} count components on the axis
 * @property {number} low
 * @property {number} high
 * @property {number} size of texts
 * @property {number} left
 * @property {number} right
 * @property {number} bottom
 * @property {(place: number) => number} x
 * @property {(value: number) => number} y
 */

/**
 * Draw the spectrum of one column.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Scene} scene
 * @param {boolean} every all components, or the first ones
 */
export function drawSpectrum(canvas, scene, every) {
  const on = sheet(canvas);
  if (!on) return;
  const { payload, column, cell, look, hidden, first } = scene;
  const axis = every ? payload.limits.spectrum.all : payload.limits.spectrum.first;
  const left = first ? scaled(look, 48) : 6;
  // All columns have the height of the first, so that lines of named levels continue across.
  const bottom = on.height - scaled(look, 20);
  const top = scaled(look, 18) + BAND;
  const lines = column && cell && !hidden ? unpack(cell.spectrum.lines, Float32Array) : [];
  const reach = /** @type {[number, number]} */ ([Math.min(axis.low, ...lines), Math.max(axis.high, ...lines)]);
  /** @type {Frame} */
  const frame = {
    pen: on.pen, look, count: axis.count, low: axis.low, high: axis.high, size: scaled(look, 15),
    left, right: on.width - 6, bottom,
    x: (place) => left + ((place + 0.5) / axis.count) * (on.width - left - 6),
    y: heights(axis, top, bottom, reach, BAND + scaled(look, 18) - 6),
  };
  drawMarks(frame, axis.marks, on, first);
  if (hidden) {
    question(on.pen, look, on.width, on.height);
    return;
  }
  const { truth } = payload;
  if (!column || !cell) {
    drawTruth(frame, truth.eigenvalues);
    canvas.setAttribute("aria-label", `True spectrum, largest variance ${truth.text}`);
    return;
  }
  const noted = drawReleased(frame, scene, cell.spectrum);
  const about = [`${column.label}: median of simulated releases from ${cell.spectrum.text} down`, ...noted].join(", ");
  canvas.setAttribute("aria-label", `Spectrum of ${about}; truth ${truth.text}`);
}

/**
 * Return the share of the variance of each component, and half its bar.
 *
 * @type {(published: import("./payload").Published) => [number, number][]}
 */
export function bars({ scree: [packed] }) {
  const raw = unpack(packed, Int16Array);
  return Array.from({ length: raw.length / 2 }, (_, i) => [raw[2 * i] / 32767, raw[2 * i + 1] / 32767]);
}

/**
 * Draw what may be published of the spectrum of one column: shares of the variance with their bars.
 *
 * @type {(canvas: HTMLCanvasElement, scene: Scene) => void}
 */
export function drawScree(canvas, scene) {
  const on = sheet(canvas);
  if (!on) return;
  canvas.removeAttribute("aria-label");
  const { column, cell, look, own } = scene;
  const published = column && !scene.hidden ? cell?.published : null;
  if (!published) return;
  const scree = bars(published);
  const { pen, width, height } = on;
  const said = scree.length ? "share of variance, 95 % error bars" : "noise hides the variances";
  const texts = published.scree[1];
  const size = scaled(look, 15);
  const lines = broken(pen, look, [said], width - 8, size);
  const [top, bottom] = [scaled(look, 18), height - scaled(look, 19 * lines.length)];
  words(pen, look, lines, width / 2, height - 3, size);
  const kind = scene.payload.publishable ? "Published" : "Noisy";
  canvas.setAttribute("aria-label", `${kind} scree, ${column?.label} at epsilon ${scene.written}: ${[said, ...texts].join(", ")}`);
  if (!scree.length) return;
  // The scale of shares is the same in every column and at every epsilon.
  const slot = (width - 12) / Math.max(scree.length, FEWEST);
  const y = (/** @type {number} */ share) => bottom - Math.max(0, Math.min(share / scene.most, 1)) * (bottom - top);
  for (const share of [0, scene.most / 2, scene.most]) {
    pen.globalAlpha = share === 0 ? 1 : 0.5;
    ruled(pen, look.line, 1, [], 4, Math.round(y(share)) + 0.5, width - 4, Math.round(y(share)) + 0.5);
  }
  pen.font = `${size}px ${look.font}`;
  const room = texts.every((text) => pen.measureText(text).width < slot - 2);
  scree.forEach(([share, error], place) => {
    const middle = 6 + (place + 0.5) * slot;
    pen.globalAlpha = 0.75;
    pen.fillStyle = own;
    pen.fillRect(middle - slot * 0.36, y(share), slot * 0.72, bottom - y(share));
    pen.globalAlpha = 1;
    ruled(pen, look.ink, 1.3, [], middle, y(share - error), middle, y(share + error));
    const text = texts[place];
    if (!text || (!room && place)) return;
    pen.fillStyle = look.ink;
    pen.textAlign = "center";
    pen.textBaseline = "bottom";
    haloed(pen, look, text, Math.max(middle, size), Math.max(y(share + error) - 1, size));
  });
}

/**
 * Draw the levels of the axis; the first column says what they are.
 *
 * @type {(frame: Frame, marks: [number, string][], box: { width: number, height: number }, first: boolean) => void}
 */
function drawMarks({ pen, look, count, size, left, y }, marks, { width, height }, first) {
  pen.font = `${size}px ${look.font}`;
  let last = Infinity;
  for (const [mark, text] of marks) {
    const at = Math.round(y(mark)) + 0.5;
    pen.globalAlpha = mark === 0 ? 1 : 0.5;
    ruled(pen, look.line, 1, [], left, at, width - 4, at);
    pen.globalAlpha = 1;
    if (first && last - at > size) {
      pen.fillStyle = look.faint;
      pen.textAlign = "right";
      pen.textBaseline = "middle";
      pen.fillText(text, left - 4, at);
      last = at;
    }
  }
  if (!first) return;
  pen.fillStyle = look.faint;
  pen.textAlign = "left";
  pen.textBaseline = "top";
  pen.fillText(look.says("variance"), 2, 1);
  pen.textAlign = "right";
  pen.textBaseline = "bottom";
  pen.fillText(look.says("component 1 to {count}", { count }), width - 4, height);
}

/**
 * Draw range, pinned line, truth, median, levels and notes; return the notes.
 *
 * @type {(frame: Frame, scene: Scene, spectrum: Spectrum) => string[]}
 */
function drawReleased(frame, { payload, cell, look, own, ghost, counted }, spectrum) {
  const { pen, count, high } = frame;
  const { released, count: sent } = spectrum;
  const raw = unpack(spectrum.lines, Float32Array);
  const shown = Math.min(count, sent);
  const [median, lower, upper] = [0, 1, 2].map((row) => raw.subarray(row * sent, (row + 1) * sent));
  drawRange(frame, own, lower, upper, shown, released);
  if (ghost?.same) {
    const old = unpack(ghost.cell.spectrum.lines, Float32Array);
    drawLine(frame, old, Math.min(count, ghost.cell.spectrum.count), look.ink, 1.3, [5, 4]);
  }
  const truth = payload.truth.eigenvalues;
  drawTruth(frame, truth);
  if (cell?.predicted) drawLine(frame, unpack(cell.predicted, Float32Array), count, look.ink, 1.3, [1.5, 3]);
  if (released) drawLine(frame, median, shown, own, 2);
  drawKnots(frame, own, median, shown, released ? 2.4 : 3.4);
  if (counted) drawFound(frame, median, counted[0]);
  const levels = [];
  if (cell?.edges && cell.threshold !== null) {
    const [edge, threshold] = [cell.edges[1], cell.threshold];
    levels.push(edge, threshold);
    const curves = [median, lower, upper, truth].map((one) => Array.from(one).slice(0, count));
    drawLevel(frame, curves, edge, look.says("noise edge"), [2, 3], threshold);
    drawLevel(frame, curves, threshold, counted ? look.says("threshold: {count} above", { count: counted[1] }) : look.says("threshold"), [7, 4], edge);
  }
  const noted = [];
  if (counted) noted.push(look.says("ringed: {count} found", { count: counted[0] }));
  if (median.subarray(0, shown).some((value) => value < frame.low)) drawBreak(frame, frame.low, "");
  if (median[0] > high) {
    drawBreak(frame, high, spectrum.text);
    noted.push(`beyond the scale: up to ${spectrum.text}`);
  }
  if (!released) noted.push("variance kept");
  drawNotes(frame, [median, lower, upper, truth], levels, noted.filter((text) => !text.startsWith("beyond")));
  return noted;
}

/**
 * Break the axis: what is above the two strokes is not to scale, and its largest is written.
 *
 * @param {Frame} frame
 * @param {number} end of the axis
 * @param {string} text
 */
function drawBreak({ pen, look, high, size, left, right, x, y }, end, text) {
  const level = y(end) + (end === high ? -BAND : BAND) / 2;
  ruled(pen, look.ground, 4, [], left, level, right, level);
  for (const at of [left + 4, right - 6]) {
    for (const step of [-3, 2]) ruled(pen, look.ink, 1.3, [], at - 4, level + step + 3, at + 4, level + step - 3);
  }
  pen.font = `600 ${size}px ${look.font}`;
  pen.textAlign = "right";
  pen.textBaseline = "top";
  haloed(pen, look, text, Math.max(x(0) + pen.measureText(text).width + 8, right - 12), 0);
  pen.font = `${size}px ${look.font}`;
}

/**
 * Draw notes one above the other where no curve and no level runs; elsewhere they are left out.
 *
 * @param {Frame} frame
 * @param {Values[]} curves
 * @param {number[]} levels
 * @param {string[]} noted
 */
function drawNotes(frame, curves, levels, noted) {
  const { pen, look, size, left, right, bottom, y } = frame;
  /** @type {(from: number, to: number, top: number) => boolean} */
  const free = (from, to, top) => {
    // The name of a level needs some space above or below the line of the level.
    const [high, low] = [top - 4 - size, top + 2 * size + 4];
    if (levels.some((one) => y(one) > high && y(one) < low)) return false;
    return clear(frame, curves, { from, to, top, low: top + size });
  };
  pen.textBaseline = "top";
  pen.textAlign = "left";
  let above = 0;
  for (const text of noted) {
    const wide = pen.measureText(text).width;
    const low = bottom - 3 - size - above;
    const places = [[left + 2, low], [right - wide, low], [right - wide, 2 + above]];
    const place = places.find(([from, top]) => from >= left && from + wide <= right && free(from, from + wide, top));
    if (!place) continue;
    haloed(pen, look, text, place[0], place[1]);
    above += size + 3;
  }
}

/**
 * @param {Frame} frame
 * @param {Values} values
 * @param {number} count of components that are found
 */
function drawFound({ pen, look, x, y }, values, count) {
  pen.strokeStyle = look.ink;
  pen.lineWidth = 2;
  discs(pen, points(values, Math.min(count, values.length), x, y), 8, "stroke");
}

/**
 * Return whether a text is inside of the picture and no curve runs through it.
 *
 * @type {(frame: Frame, curves: Values[], text: { from: number, to: number, top: number, low: number }) => boolean}
 */
function clear({ bottom, x, y }, curves, { from, to, top, low }) {
  if (top < 4 || low > bottom) return false;
  return curves.every((values) => {
    for (let i = 1; i < values.length; i += 1) {
      if (x(i) < from - 4 || x(i - 1) > to + 4) continue;
      const [a, b] = [y(values[i - 1]), y(values[i])];
      if (Math.max(a, b) >= top - 4 && Math.min(a, b) <= low + 4) return false;
    }
    return true;
  });
}

/** @type {(frame: Frame, values: Values, count: number, colour: string, width: number, dash?: number[]) => void} */
function drawLine({ pen, x, y }, values, count, colour, width, dash = []) {
  ruled(pen, colour, width, dash, ...points(values, count, x, y));
}

/** @type {(frame: Frame, values: Values) => void} */
function drawTruth(frame, values) {
  drawLine(frame, values, frame.count, frame.look.faint, 2);
}

/**
 * @param {Frame} frame
 * @param {string} colour
 * @param {Values} lower
 * @param {Values} upper
 * @param {number} shown
 * @param {boolean} released a spectrum, or one variance a direction
 */
function drawRange({ pen, x, y }, colour, lower, upper, shown, released) {
  pen.fillStyle = colour;
  pen.globalAlpha = 0.25;
  if (released) {
    pen.beginPath();
    for (let i = 0; i < shown; i += 1) pen.lineTo(x(i), y(upper[i]));
    for (let i = shown - 1; i >= 0; i -= 1) pen.lineTo(x(i), y(lower[i]));
    pen.closePath();
    pen.fill();
  } else {
    for (let i = 0; i < shown; i += 1) {
      pen.fillRect(x(i) - 3, y(upper[i]), 6, Math.max(1, y(lower[i]) - y(upper[i])));
    }
  }
  pen.globalAlpha = 1;
}

/** @type {(frame: Frame, colour: string, values: Values, shown: number, size: number) => void} */
function drawKnots({ pen, x, y }, colour, values, shown, size) {
  pen.fillStyle = colour;
  if (shown <= 30) discs(pen, points(values, shown, x, y), size);
}

/** @type {(values: Values, count: number, x: Frame["x"], y: Frame["y"]) => number[]} */
function points(values, count, x, y) {
  return Array.from({ length: count }, (_, i) => [x(i), y(values[i])]).flat();
}

/**
 * Draw a line across, named above or below it where no curve runs, as far to the right as can be;
 * without a name where there is no such place.
 *
 * @param {Frame} frame
 * @param {Values[]} curves
 * @param {number} value
 * @param {string} name
 * @param {number[]} dash
 * @param {number} other the level that the name must not stand on
 */
function drawLevel(frame, curves, value, name, dash, other) {
  const { pen, look, high, size, left, right, y } = frame;
  if (value >= high) return;
  const level = Math.round(y(value)) + 0.5;
  ruled(pen, look.faint, 1, dash, left, level, right + 2, level);
  const wide = pen.measureText(name).width;
  const tops = value > other ? [level - 1 - size, level + 2] : [level + 2, level - 1 - size];
  pen.textAlign = "left";
  pen.textBaseline = "top";
  for (let from = right - wide; from >= left + 2; from -= size / 2) {
    const top = tops.find((one) => (y(other) < one - 2 || y(other) > one + size + 2)
      && clear(frame, curves, { from, to: from + wide, top: one, low: one + size }));
    if (top !== undefined) {
      haloed(pen, look, name, from, top);
      return;
    }
  }
}
