// @ts-check
// This module draws the distance of each simulated release's subspace from the true subspace.

import { disc, discs, question, ruled, scaled, sheet } from "./sheet.js";

/** @typedef {import("./sheet.js").Scene} Scene */

const GOLDEN = 0.6180339887; // The fractional parts of its multiples are spread evenly.

/**
 * Draw the distances of one column.
 *
 * @type {(canvas: HTMLCanvasElement, scene: Scene) => void}
 */
export function drawDistance(canvas, scene) {
  const on = sheet(canvas);
  if (!on) return;
  const { pen, width, height } = on;
  const { payload, column, cell, look, first, ghost } = scene;
  const { limits, chance } = payload;
  const size = scaled(look, 15);
  const far = limits.distance || 1;
  const bottom = height - (first ? size + 4 : 5);
  /** @param {number} value */
  const x = (value) => 8 + (value / far) * (width - 16);
  /** @param {number} place */
  const lane = (place) => ((place * GOLDEN) % 1) * (bottom - 14) + 7;
  pen.font = `${size}px ${look.font}`;
  ruled(pen, look.line, 1, [], 8, bottom + 0.5, width - 8, bottom + 0.5);
  const at = Math.round(x(chance.distance)) + 0.5;
  // If k = d, every subspace is the true one, so chance has distance 0 and no line is drawn.
  if (chance.distance > 0) ruled(pen, look.faint, 1, [3, 3], at, 3, at, bottom);
  if (first) nameAxis(on, look, at);
  if (scene.hidden) {
    question(pen, look, width, height);
    return;
  }
  canvas.setAttribute("aria-label",
    `Distance to the true subspace: 0 is the true subspace, ${chance.text} is a random subspace`);
  if (!column || !cell) return;
  /** @type {(values: number[], hollow: boolean) => void} */
  const dots = (values, hollow) => {
    discs(pen, values.flatMap((value, place) => [x(value), lane(place)]), 2.6, hollow ? "stroke" : "fill");
  };
  if (ghost && ghost.payload.limits.distance === far) {
    pen.strokeStyle = look.ink;
    pen.globalAlpha = 0.6;
    pen.lineWidth = 0.9;
    dots(ghost.cell.distances, true);
  }
  pen.globalAlpha = 0.55;
  pen.fillStyle = scene.own;
  dots(cell.distances, false);
  pen.globalAlpha = 1;
  pen.strokeStyle = look.ink;
  if (scene.redraws) {
    const place = scene.redraw % cell.distances.length;
    pen.lineWidth = 2;
    disc(pen, x(cell.distances[place]), lane(place), 5, "stroke");
  }
  ruled(pen, look.ink, 2.5, [], x(cell.distance[0]), 4, x(cell.distance[0]), bottom);
  canvas.setAttribute("aria-label",
    `Distance of ${column.label}: median ${cell.texts.distance}, chance ${chance.text}`);
}

/**
 * Name the ends; chance goes without where it lies too near the true space.
 *
 * @param {{ pen: CanvasRenderingContext2D, width: number, height: number }} on
 * @param {import("./sheet.js").Look} look
 * @param {number} chance
 */
export function nameAxis({ pen, width, height }, { faint, says }, chance) {
  pen.fillStyle = faint;
  pen.textBaseline = "bottom";
  pen.textAlign = "left";
  pen.fillText(says("0 true space"), 2, height);
  pen.textAlign = "right";
  const end = Math.min(chance + 22, width);
  const taken = pen.measureText(`${says("0 true space")} ${says("chance")}`).width + 2;
  if (taken <= end) pen.fillText(says("chance"), end, height);
  pen.textBaseline = "top";
  pen.textAlign = "left";
  pen.fillText(says("distance"), 2, 1);
}
