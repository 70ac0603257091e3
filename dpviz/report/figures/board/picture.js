// @ts-check
// The rows in a released space, or the points of a picture that may be published.

import { unpack } from "./format.js";
import { ramp } from "./palette.js";
import { broken, question, scaled, sheet, stroke, surface, words } from "./sheet.js";

/** @typedef {import("./payload").Payload} Payload */
/** @typedef {import("./sheet.js").Scene} Scene */

const STEPS = 12; // colours of a ramp
const LEGIBLE = 110; // pixels of a picture from which marks are read

/**
 * Return where packed points lie in a box, x and y in turn, none outside.
 *
 * @param {string} packed
 * @param {Pick<Payload, "limits" | "table" | "truth">} payload
 * @param {number} width
 * @param {number} height
 */
export function places(packed, { limits, table, truth }, width, height) {
  const raw = unpack(packed, Int16Array);
  const [limitX, limitY] = limits.picture;
  const unit = limits.scale / 32767;
  const lanes = table.k === 1 && truth.heights ? unpack(truth.heights, Float32Array) : null;
  const count = lanes ? raw.length : raw.length / 2;
  const out = new Float32Array(2 * count);
  const [halfX, halfY] = [width / 2, height / 2];
  // A unit is as long across as up, whatever the box; the height in a strip means nothing.
  const [across, up] = [(halfX - 3) / limitX, (halfY - 3) / limitY];
  const [perX, perY] = lanes ? [across, up] : [Math.min(across, up), Math.min(across, up)];
  for (let i = 0; i < count; i += 1) {
    const x = (lanes ? raw[i] : raw[2 * i]) * unit;
    const y = lanes ? lanes[i] : raw[2 * i + 1] * unit;
    out[2 * i] = Math.max(2, Math.min(width - 2, halfX + x * perX));
    out[2 * i + 1] = Math.max(2, Math.min(height - 2, halfY - y * perY));
  }
  return out;
}

/**
 * Draw the picture of one column.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {Scene} scene
 */
export function drawPicture(canvas, scene) {
  const on = sheet(canvas);
  if (!on) return;
  const { pen, width, height } = on;
  const { payload, column, cell, look, ghost } = scene;
  drawCross(on, look.line);
  canvas.setAttribute("aria-label", `Picture of ${payload.table.name}: nothing to be shown here`);
  if (scene.hidden) {
    question(pen, look, width, height);
    return;
  }
  if (column && !cell) return;
  if (scene.publishable) {
    drawPublished(canvas, on, scene);
    return;
  }
  const size = dotSize(scene, width);
  const truth = payload.truth.picture;
  const now = scene.redraws ? scene.redraws[scene.redraw % scene.redraws.length] : cell?.picture;
  if (column && !ghost) {
    drawDots(pen, places(truth, payload, width, height), size * 0.55, look.faint, 0.4);
  }
  if (ghost?.same && !scene.redraws) {
    drawRings(pen, places(ghost.cell.picture, ghost.payload, width, height), size, look.faint);
  }
  const dots = places(now ?? truth, payload, width, height);
  drawLabelled(pen, scene, dots, size, width);
  if (payload.marked) drawMarked(on, payload.marked, dots, size, look);
  if (scene.line && !scene.redraws) drawStraight(on, payload, scene.line, look.ink);
  const about = column ? `${column.label} at epsilon ${scene.written}` : "exact PCA";
  canvas.setAttribute("aria-label", `Rows of ${payload.table.name} in the space of ${about}`);
  // In an image of the picture alone too.
  if (payload.ribbon) words(pen, look, ["real rows: internal,", "do not share"], width / 2, height - 6, 15);
}

/**
 * @param {Scene} scene
 * @param {number} width
 */
function dotSize(scene, width) {
  return Math.max(1.6, Math.min(3, width / 80)) * (scene.look.large ? 1.3 : 1);
}

/**
 * @param {{ pen: CanvasRenderingContext2D, width: number, height: number }} on
 * @param {string} colour
 */
function drawCross({ pen, width, height }, colour) {
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.6;
  pen.lineWidth = 1;
  const [x, y] = [Math.round(width / 2) + 0.5, Math.round(height / 2) + 0.5];
  stroke(pen, x, 0, x, height);
  stroke(pen, 0, y, width, y);
  pen.globalAlpha = 1;
}

/**
 * Return the two ends of a straight line Ax + By = C in a box, far outside of it.
 *
 * @param {number[]} line
 * @param {Pick<Payload, "limits">} payload
 * @param {number} width
 * @param {number} height
 */
export function ends([a, b, c], { limits }, width, height) {
  const [limitX, limitY] = limits.picture;
  const unit = Math.min((width / 2 - 3) / limitX, (height / 2 - 3) / limitY);
  const length = Math.hypot(a, b);
  const [x, y] = [width / 2 + (unit * c * a) / length ** 2, height / 2 - (unit * c * b) / length ** 2];
  const far = (width + height) / length;
  return [[x - far * b, y - far * a], [x + far * b, y + far * a]];
}

/**
 * @param {{ pen: CanvasRenderingContext2D, width: number, height: number }} on
 * @param {Payload} payload
 * @param {number[]} line
 * @param {string} colour
 */
function drawStraight({ pen, width, height }, payload, line, colour) {
  const [from, to] = ends(line, payload, width, height);
  pen.strokeStyle = colour;
  pen.lineWidth = 2.5;
  stroke(pen, from[0], from[1], to[0], to[1]);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Float32Array} points
 * @param {number} size
 * @param {string} colour
 * @param {number} opacity
 */
function drawDots(pen, points, size, colour, opacity) {
  pen.globalAlpha = opacity;
  drawKind(pen, points, undefined, colour, { size, room: 0, font: "" });
  pen.globalAlpha = 1;
}

/**
 * Ring the dots that are followed, and name the last of them.
 *
 * @param {{ pen: CanvasRenderingContext2D, width: number, height: number }} on
 * @param {number[]} marked
 * @param {Float32Array} points
 * @param {number} size
 * @param {import("./sheet.js").Look} look
 */
function drawMarked({ pen, width }, marked, points, size, look) {
  const of = (/** @type {number} */ place) => [points[2 * place], points[2 * place + 1]];
  const ring = Float32Array.from(marked.flatMap(of));
  drawRings(pen, ring, size + 2, look.ink, 1.4);
  const [x, y] = of(marked[marked.length - 1]);
  drawDots(pen, Float32Array.from([x, y]), size + 3, look.ink, 1);
  const text = look.says("her");
  pen.font = `600 ${scaled(look, 15)}px ${look.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  pen.lineWidth = 4;
  pen.strokeStyle = look.ground;
  const at = Math.min(Math.max(x, 20), width - 20);
  const up = y > 40 ? y - size - 7 : y + size + 18;
  pen.strokeText(text, at, up);
  pen.fillStyle = look.ink;
  pen.fillText(text, at, up);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {Float32Array} points
 * @param {number} size
 * @param {string} colour
 * @param {number} wide
 */
function drawRings(pen, points, size, colour, wide = 0.8) {
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.7;
  pen.lineWidth = wide;
  pen.beginPath();
  for (let i = 0; i < points.length; i += 2) {
    pen.moveTo(points[i] + size, points[i + 1]);
    pen.arc(points[i], points[i + 1], size, 0, 2 * Math.PI);
  }
  pen.stroke();
  pen.globalAlpha = 1;
}

/**
/**
 * What marks look like, kept until a typeface comes.
 *
 * @type {Map<string, HTMLCanvasElement>}
 */
export const glyphs = new Map(); // written once: a board draws each a thousand times a frame

/**
 * Return a mark written on a canvas of its own, as fine as the screen.
 *
 * @param {string} mark
 * @param {string} colour
 * @param {number} high pixels
 * @param {string} font
 */
function glyph(mark, colour, high, font) {
  const key = [mark, colour, high, font].join("|");
  let found = glyphs.get(key);
  if (!found) {
    if (glyphs.size > 400) glyphs.clear();
    found = document.createElement("canvas");
    const pen = surface(found, high * (0.4 + 0.8 * mark.length), high * 1.2);
    pen.font = `700 ${high}px ${font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = colour;
    pen.fillText(mark, (high * (0.4 + 0.8 * mark.length)) / 2, high * 0.65);
    glyphs.set(key, found);
  }
  return found;
}

/**
 * Draw points of one kind: by their mark where there is room to read it, or by dots.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {ArrayLike<number>} points x and y of each in turn
 * @param {string | undefined} mark
 * @param {string} colour
 * @param {{ size: number, room: number, font: string }} how
 */
function drawKind(pen, points, mark, colour, { size, room, font }) {
  if (!mark || room < LEGIBLE) {
    const path = new Path2D();
    for (let i = 0; i < points.length; i += 2) {
      path.moveTo(points[i] + size, points[i + 1]);
      path.arc(points[i], points[i + 1], size, 0, 2 * Math.PI);
    }
    pen.fillStyle = colour;
    pen.fill(path);
    return;
  }
  const high = Math.round(Math.max(10, Math.min(17, room / 17)));
  const drawn = glyph(mark, colour, high, font);
  const [wide, tall] = [high * (0.4 + 0.8 * mark.length), high * 1.2];
  for (let i = 0; i < points.length; i += 2) {
    pen.drawImage(drawn, points[i] - wide / 2, points[i + 1] - tall / 2, wide, tall);
  }
}

/**
 * Draw points by their labels: a mark a kind, a ramp of numbers, or one colour.
 *
 * Of more kinds than have marks all are grey but the one that is picked.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {Scene} scene
 * @param {Float32Array} points
 * @param {number} size
 * @param {number} room
 */
function drawLabelled(pen, { payload, column, look, own, kind: lit }, points, size, room) {
  const { labels, palette } = payload;
  if (!labels.codes) {
    drawDots(pen, points, size, column ? own : look.faint, 0.8);
    return;
  }
  const codes = unpack(labels.codes, Uint8Array);
  const { kinds, marks } = labels;
  /** @type {number[][]} */
  const places = Array.from({ length: kinds ? kinds.length : STEPS }, () => []);
  for (let i = 0; i < codes.length; i += 1) {
    places[kinds ? codes[i] : Math.min(STEPS - 1, Math.floor((codes[i] * STEPS) / 256))]
      .push(points[2 * i], points[2 * i + 1]);
  }
  const how = { size, room, font: look.font };
  places.forEach((some, which) => {
    pen.globalAlpha = !kinds || lit === null || lit === which ? 0.85 : 0.12;
    const colour = kinds ? kindColour(palette, marks, which, lit, look) : ramp(palette.ramp, which / (STEPS - 1));
    drawKind(pen, some, marks?.[which], colour, how);
  });
  pen.globalAlpha = 1;
}

/**
 * @param {Payload["palette"]} palette
 * @param {string[] | null} marks
 * @param {number} which
 * @param {number | null} lit
 * @param {import("./sheet.js").Look} look
 */
function kindColour(palette, marks, which, lit, look) {
  if (marks) return palette.labels[which % palette.labels.length];
  return lit === which ? palette.labels[0] : look.faint;
}

/**
 * @param {string} line
 * @param {import("./sheet.js").Look} look
 */
function inWords(line, { says }) {
  const [names, end] = line.split(" cannot be told apart");
  if (end === undefined) return says(line);
  const [count, several] = names.split(" labels");
  const apart = several === undefined ? count.split(" and ").join(` ${says("and")} `) : says("{count} labels", { count });
  return says("{names} cannot be told apart", { names: apart });
}

/**
 * Draw what may be published: no row, no true axis, nothing behind a broken claim.
 *
 * @param {HTMLCanvasElement} canvas
 * @param {{ pen: CanvasRenderingContext2D, width: number, height: number }} on
 * @param {Scene} scene
 */
function drawPublished(canvas, { pen, width, height }, scene) {
  const { payload, column, cell, look } = scene;
  const published = column && cell?.published;
  if (!published) {
    let said = ["no picture here: too few people,", "or an account that takes seconds"];
    if (!column || !cell) said = [look.says("the truth"), look.says("stays here")];
    else if (!cell.status.counts) said = ["no claim holds:", "nothing to publish"];
    words(pen, look, said, width / 2, height / 2 + 8 * said.length, scaled(look, 15));
    canvas.setAttribute("aria-label", said.join(" "));
    return;
  }
  const { labels, palette, table } = payload;
  const raw = unpack(published.places, Int16Array);
  const flat = table.k === 1;
  const count = flat ? raw.length : raw.length / 2;
  const [across, up] = published.reach;
  const said = broken(pen, look, published.said.map((line) => inWords(line, look)), width - 4, scaled(look, 15));
  const foot = said.length * scaled(look, 15) * 1.25;
  const high = height - foot - 4;
  const unit = flat ? (width / 2 - 3) / across : Math.min((width / 2 - 3) / across, (high / 2 - 3) / up);
  const codes = published.codes ? unpack(published.codes, Uint8Array) : null;
  const kinds = labels.kinds ?? [];
  /** @type {number[][]} */
  const places = Array.from({ length: kinds.length + 1 }, () => []); // the last without a label
  const size = dotSize(scene, width);
  for (let i = 0; i < count; i += 1) {
    const x = width / 2 + (((flat ? raw[i] : raw[2 * i]) * across) / 32767) * unit;
    // Along one component the height only keeps points apart.
    const y = flat ? high * (0.1 + 0.8 * ((i * 0.618034) % 1)) : high / 2 - ((raw[2 * i + 1] * up) / 32767) * unit;
    places[Math.min(codes ? codes[i] : kinds.length, kinds.length)].push(x, y);
  }
  const how = { size, room: width, font: look.font };
  places.forEach((some, which) => {
    const rest = which === kinds.length;
    pen.globalAlpha = scene.kind === null || scene.kind === which || (rest && !codes) ? 0.85 : 0.12;
    const colour = rest ? (codes ? look.faint : scene.own) : kindColour(palette, labels.marks, which, scene.kind, look);
    drawKind(pen, some, rest ? undefined : labels.marks?.[which], colour, how);
  });
  pen.globalAlpha = 1;
  words(pen, look, said, width / 2, height - 4, scaled(look, 15));
  const about = `${column.label} at epsilon ${scene.written}`;
  const kind = payload.publishable ? "Published picture" : "Noisy picture";
  canvas.setAttribute("aria-label", [kind, about, ...published.said].join(", "));
}
