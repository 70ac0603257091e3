// @ts-check
// Scatter plots of the rows in a released subspace, or of points that may be published.

import { unpack } from "./format.js";
import { ramp } from "./palette.js";
import { broken, discs, haloed, make, question, ruled, scaled, sheet, words } from "./sheet.js";

/** @typedef {import("./payload").Payload} Payload */
/** @typedef {import("./sheet.js").Scene} Scene */

const STEPS = 12; // Number of colours in a colour ramp.
const WARNINGS = ["real rows: internal, do not share", "internal, do not share", "do not share", "internal"];
const LEGIBLE = 110; // Least size in pixels of a plot whose marks are legible.

/** @type {WeakMap<Payload, Map<string, HTMLCanvasElement>>} */
const behind = new WeakMap(); // A cache of the grey dots of exact PCA, by size and colour.

/**
 * Return where packed points lie in a box, x and y in turn, none nearer to a side than its edge.
 *
 * @type {(packed: string, payload: Pick<Payload, "limits" | "table" | "truth">, width: number, height: number, edge?: number) => Float32Array}
 */
export function places(packed, { limits, table, truth }, width, height, edge = 2) {
  const raw = unpack(packed, Int16Array);
  const [limitX, limitY] = limits.picture;
  const unit = limits.scale / 32767;
  const lanes = table.k === 1 && truth.heights ? unpack(truth.heights, Float32Array) : null;
  const count = lanes ? raw.length : raw.length / 2;
  const out = new Float32Array(2 * count);
  const [halfX, halfY] = [width / 2, height / 2];
  // Both axes have the same scale, whatever the box. With k = 1, the height has no meaning.
  const [across, up] = [(halfX - 3) / limitX, (halfY - 3) / limitY];
  const [perX, perY] = lanes ? [across, up] : [Math.min(across, up), Math.min(across, up)];
  for (let i = 0; i < count; i += 1) {
    const x = (lanes ? raw[i] : raw[2 * i]) * unit;
    const y = lanes ? lanes[i] : raw[2 * i + 1] * unit;
    out[2 * i] = Math.max(edge, Math.min(width - edge, halfX + x * perX));
    out[2 * i + 1] = Math.max(edge, Math.min(height - edge, halfY - y * perY));
  }
  return out;
}

/**
 * Draw the picture of one column.
 *
 * @type {(canvas: HTMLCanvasElement, scene: Scene) => void}
 */
export function drawPicture(canvas, scene) {
  const whole = sheet(canvas);
  if (!whole) return;
  const { pen, width } = whole;
  const { payload, column, cell, look, ghost } = scene;
  const rows = (!column || cell) && !scene.hidden && !scene.publishable;
  const warned = payload.ribbon && rows ? warning(pen, look, width) : "";
  // The warning has its own strip below the points.
  const height = whole.height - (warned ? 22 : 0);
  const on = { pen, width, height };
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
    drawBehind(on, payload, size * 0.55, look.faint);
  }
  if (ghost?.same && !scene.redraws) {
    drawRings(pen, places(ghost.cell.picture, ghost.payload, width, height), size, look.faint);
  }
  const marked = payload.labels.marks && width >= LEGIBLE;
  const dots = places(now ?? truth, payload, width, height, marked ? high(width) / 2 + 1 : 2);
  drawLabelled(pen, scene, dots, size, width);
  if (payload.marked) drawMarked(on, payload.marked, dots, size, look);
  if (scene.line && !scene.redraws) drawStraight(on, payload, scene.line, look.ink);
  const about = column ? `${column.label} at epsilon ${scene.written}` : "exact PCA";
  canvas.setAttribute("aria-label", `Rows of ${payload.table.name} in the space of ${about}`);
  words(pen, look, [warned], width / 2, whole.height - 6, 15);
}

/**
 * Return as much of the warning as one line has room for; the whole stands above the columns.
 *
 * The warning is part of the canvas, so that a saved image has it too.
 *
 * @type {(pen: CanvasRenderingContext2D, look: import("./sheet.js").Look, width: number) => string}
 */
function warning(pen, look, width) {
  pen.font = `15px ${look.font}`;
  return WARNINGS.find((text) => pen.measureText(text).width <= width - 6) ?? "";
}

/** @type {(room: number) => number} */
function high(room) {
  return Math.round(Math.max(12, Math.min(17, room / 16)));
}

/** @type {(scene: Scene, width: number) => number} */
function dotSize(scene, width) {
  return Math.max(1.6, Math.min(3, width / 80)) * (scene.look.large ? 1.3 : 1);
}

/** @type {(on: { pen: CanvasRenderingContext2D, width: number, height: number }, colour: string) => void} */
function drawCross({ pen, width, height }, colour) {
  pen.globalAlpha = 0.6;
  const [x, y] = [Math.round(width / 2) + 0.5, Math.round(height / 2) + 0.5];
  ruled(pen, colour, 1, [], x, 0, x, height);
  ruled(pen, colour, 1, [], 0, y, width, y);
  pen.globalAlpha = 1;
}

/**
 * Return the two ends of a straight line Ax + By = C in a box, far outside of it.
 *
 * @type {(line: number[], payload: Pick<Payload, "limits">, width: number, height: number) => number[][]}
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
  ruled(pen, colour, 2.5, [], from[0], from[1], to[0], to[1]);
}

/** @type {(pen: CanvasRenderingContext2D, points: ArrayLike<number>, size: number, colour: string, opacity: number) => void} */
function drawDots(pen, points, size, colour, opacity) {
  pen.globalAlpha = opacity;
  pen.fillStyle = colour;
  discs(pen, points, size);
  pen.globalAlpha = 1;
}

/**
 * Draw the dots of the truth, which stay while epsilon moves.
 *
 * @type {(on: { pen: CanvasRenderingContext2D, width: number, height: number }, payload: Payload, size: number, colour: string) => void}
 */
function drawBehind({ pen, width, height }, payload, size, colour) {
  const [ratio, { width: across, height: down }] = [pen.getTransform().a, pen.canvas];
  const kept = behind.get(payload) ?? new Map();
  behind.set(payload, kept);
  const key = [width, height, across, down, size, colour].join("|");
  if (kept.size > 8) kept.clear();
  if (!kept.has(key)) {
    const own = blank(across, down, ratio);
    drawDots(own, places(payload.truth.picture, payload, width, height), size, colour, 0.4);
    kept.set(key, own.canvas);
  }
  pen.drawImage(kept.get(key), 0, 0, across / ratio, down / ratio);
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
  const up = y > 40 ? y - size - 7 : y + size + 18;
  haloed(pen, { ...look, faint: look.ink }, text, Math.min(Math.max(x, 20), width - 20), up);
}

/** @type {(pen: CanvasRenderingContext2D, points: Float32Array, size: number, colour: string, wide?: number) => void} */
function drawRings(pen, points, size, colour, wide = 0.8) {
  pen.strokeStyle = colour;
  pen.globalAlpha = 0.7;
  pen.lineWidth = wide;
  discs(pen, points, size, "stroke");
  pen.globalAlpha = 1;
}

/**
 * A mark as pixels: where each lies after the first, and its colour, as much as covers.
 *
 * @typedef {{ wide: number, tall: number, places: Int32Array, colours: Int32Array }} Glyph
 */

/**
 * What marks look like, kept until a typeface comes.
 *
 * @type {Map<string, Glyph>}
 */
export const glyphs = new Map(); // A cache, because each mark is drawn a thousand times.

/**
 * Return a mark for pixels in rows of so many.
 *
 * @type {(mark: string, colour: string, opacity: number, high: number, font: string, row: number) => Glyph}
 */
function glyph(mark, colour, opacity, high, font, row) {
  const key = [mark, colour, opacity, high, font, row].join("|");
  let found = glyphs.get(key);
  if (!found) {
    if (glyphs.size > 400) glyphs.clear();
    const [wide, tall] = [Math.ceil(high * (0.4 + 0.8 * mark.length)), Math.ceil(high * 1.2)];
    const pen = blank(wide, tall);
    pen.font = `700 ${high}px ${font}`;
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    pen.fillStyle = colour;
    pen.globalAlpha = opacity;
    pen.fillText(mark, wide / 2, tall / 2 + high * 0.05);
    const { data } = pen.getImageData(0, 0, wide, tall);
    const inked = Array.from({ length: wide * tall }, (_, i) => i).filter((i) => data[4 * i + 3]);
    const colours = inked.map((i) => {
      const [r, g, b, a] = data.subarray(4 * i, 4 * i + 4);
      const [red, green, blue] = [r, g, b].map((part) => Math.round((part * a) / 255));
      return (a << 24) | (blue << 16) | (green << 8) | red;
    });
    const places = inked.map((i) => Math.floor(i / wide) * row + (i % wide));
    found = { wide, tall, places: Int32Array.from(places), colours: Int32Array.from(colours) };
    glyphs.set(key, found);
  }
  return found;
}

/** @type {(across: number, down: number, ratio?: number) => CanvasRenderingContext2D} */
function blank(across, down, ratio = 1) {
  const canvas = make("canvas", "", { width: across, height: down });
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return pen;
}

/**
 * What marks are stamped on before they are laid on a canvas.
 *
 * @type {{ pen: CanvasRenderingContext2D, image: ImageData, pixels: Int32Array } | null}
 */
let layer = null;

/**
 * Stamp marks on each other, pixel by pixel: the canvas itself takes ten times as long for each.
 *
 * @type {(pen: CanvasRenderingContext2D, kinds: Kind[], high: number, font: string) => void}
 */
function stamp(pen, kinds, high, font) {
  const ratio = pen.getTransform().a;
  const longest = Math.max(...kinds.map(({ mark }) => mark.length));
  const edge = Math.ceil(high * ratio * (0.4 + 0.8 * longest)); // Marks may lie beyond each side.
  const [row, rows] = [pen.canvas.width + 2 * edge, pen.canvas.height + 2 * edge];
  if (layer?.image.width !== row || layer.image.height !== rows) {
    const image = new ImageData(row, rows);
    layer = { pen: blank(row, rows), image, pixels: new Int32Array(image.data.buffer) };
  }
  const { pixels, image } = layer;
  pixels.fill(0);
  for (const { points, mark, colour, opacity } of kinds) {
    const { wide, tall, places, colours } = glyph(mark, colour, opacity, high * ratio, font, row);
    for (let i = 0; i < points.length; i += 2) {
      const corner = Math.round(points[i + 1] * ratio - tall / 2 + edge) * row
        + Math.round(points[i] * ratio - wide / 2 + edge);
      for (let j = 0; j < places.length; j += 1) {
        const at = corner + places[j];
        const over = colours[j];
        const under = pixels[at];
        const through = 256 - (over >>> 24);
        // Two of the four parts of a colour are computed at a time.
        pixels[at] = over + ((((under & 0xff00ff) * through) >>> 8) & 0xff00ff)
          + ((((under >>> 8) & 0xff00ff) * through) & 0xff00ff00);
      }
    }
  }
  for (let i = 0; i < pixels.length; i += 1) {
    if (!pixels[i]) continue;
    const full = 255 / (pixels[i] >>> 24); // Colours in an image are not multiplied by opacity.
    for (let part = 4 * i; part < 4 * i + 3; part += 1) image.data[part] *= full;
  }
  layer.pen.putImageData(image, 0, 0);
  pen.drawImage(layer.pen.canvas, -edge / ratio, -edge / ratio, row / ratio, rows / ratio);
}

/** @typedef {{ points: number[], mark: string, colour: string, opacity: number }} Kind */

/**
 * Draw points kind by kind: by their mark where there is room to read it, or by dots.
 *
 * @type {(pen: CanvasRenderingContext2D, kinds: Kind[], how: { size: number, room: number, font: string }) => void}
 */
function drawKinds(pen, kinds, { size, room, font }) {
  const marked = room < LEGIBLE ? [] : kinds.filter(({ mark }) => mark);
  if (marked.length) stamp(pen, marked, high(room), font);
  for (const kind of kinds) {
    if (!marked.includes(kind)) drawDots(pen, kind.points, size, kind.colour, kind.opacity);
  }
}

/**
 * Draw points by their labels: a mark a kind, a ramp of numbers, or one colour.
 *
 * Of more kinds than have marks all are grey but the one that is picked.
 *
 * @type {(pen: CanvasRenderingContext2D, scene: Scene, points: Float32Array, size: number, room: number) => void}
 */
function drawLabelled(pen, { payload, column, look, own, kind: lit }, points, size, room) {
  const { labels, palette } = payload;
  if (!labels.codes) {
    drawDots(pen, points, size, column ? own : look.faint, 0.8);
    return;
  }
  const codes = unpack(labels.codes, Uint8Array);
  const { kinds, marks } = labels;
  /** @type {Kind[]} */
  const drawn = Array.from({ length: kinds ? kinds.length : STEPS }, (_, which) => ({
    points: [],
    mark: marks?.[which] ?? "",
    colour: kinds ? kindColour(palette, marks, which, lit, look) : ramp(palette.ramp, which / (STEPS - 1)),
    opacity: !kinds || lit === null || lit === which ? 0.85 : 0.12,
  }));
  for (let i = 0; i < codes.length; i += 1) {
    drawn[kinds ? codes[i] : Math.min(STEPS - 1, Math.floor((codes[i] * STEPS) / 256))].points
      .push(points[2 * i], points[2 * i + 1]);
  }
  drawKinds(pen, drawn, { size, room, font: look.font });
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

/** @type {(line: string, look: import("./sheet.js").Look) => string} */
function inWords(line, { says }) {
  const [names, end] = line.split(" cannot be distinguished");
  if (end === undefined) return says(line);
  const [count, several] = names.split(" labels");
  const apart = several === undefined ? count.split(" and ").join(` ${says("and")} `) : says("{count} labels", { count });
  return says("{names} cannot be distinguished", { names: apart });
}

/**
 * Draw what may be published: no row, no true axis, nothing behind a broken claim.
 *
 * @type {(canvas: HTMLCanvasElement, on: { pen: CanvasRenderingContext2D, width: number, height: number }, scene: Scene) => void}
 */
function drawPublished(canvas, { pen, width, height }, scene) {
  const { payload, column, cell, look } = scene;
  const published = column && cell?.published;
  if (!published) {
    let said = ["no chart: too few people, or", "slow privacy accounting"];
    if (!column || !cell) said = [look.says("the truth"), look.says("stays here")];
    else if (!cell.status.counts) said = ["no privacy claim holds:", "publish no chart"];
    const lines = broken(pen, look, said, width - 8, scaled(look, 15));
    if (width >= LEGIBLE) words(pen, look, lines, width / 2, height / 2 + 8 * lines.length, scaled(look, 15));
    canvas.setAttribute("aria-label", said.join(" "));
    return;
  }
  const { labels, palette, table } = payload;
  const raw = unpack(published.places, Int16Array);
  const flat = table.k === 1;
  const count = flat ? raw.length : raw.length / 2;
  const [across, up] = published.reach;
  const texts = width < LEGIBLE ? [] : published.said.map((line) => inWords(line, look));
  const said = broken(pen, look, texts, width - 4, scaled(look, 15));
  const foot = said.length * scaled(look, 15) * 1.25;
  const high = height - foot - 4;
  const unit = flat ? (width / 2 - 3) / across : Math.min((width / 2 - 3) / across, (high / 2 - 3) / up);
  const codes = published.codes ? unpack(published.codes, Uint8Array) : null;
  const kinds = labels.kinds ?? [];
  /** @type {Kind[]} */
  const drawn = Array.from({ length: kinds.length + 1 }, (_, which) => {
    const rest = which === kinds.length; // The last group of points has no label.
    return {
      points: [],
      mark: rest ? "" : labels.marks?.[which] ?? "",
      colour: rest ? (codes ? look.faint : scene.own) : kindColour(palette, labels.marks, which, scene.kind, look),
      opacity: scene.kind === null || scene.kind === which || (rest && !codes) ? 0.85 : 0.12,
    };
  });
  const size = dotSize(scene, width);
  for (let i = 0; i < count; i += 1) {
    const x = width / 2 + (((flat ? raw[i] : raw[2 * i]) * across) / 32767) * unit;
    // With one component, the height has no meaning: it only separates the points.
    const y = flat ? high * (0.1 + 0.8 * ((i * 0.618034) % 1)) : high / 2 - ((raw[2 * i + 1] * up) / 32767) * unit;
    drawn[Math.min(codes ? codes[i] : kinds.length, kinds.length)].points.push(x, y);
  }
  drawKinds(pen, drawn, { size, room: width, font: look.font });
  words(pen, look, said, width / 2, height - 4, scaled(look, 15));
  const about = `${column.label} at epsilon ${scene.written}`;
  const kind = payload.publishable ? "Published picture" : "Noisy picture";
  canvas.setAttribute("aria-label", [kind, about, ...published.said].join(", "));
}
