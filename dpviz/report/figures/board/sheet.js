// @ts-check
// Functions for all charts: they make elements, sharp canvases, and texts on canvases.

/** @typedef {import("./payload").Payload} Payload */
/** @typedef {import("./payload").BoardColumn} Column */
/** @typedef {import("./payload").BoardCell} Cell */

/**
 * A text in the reader's language, with its values.
 *
 * @typedef {(text: string, values?: Record<string, string | number>) => string} Says
 */

/**
 * What a theme gives a canvas.
 *
 * @typedef {object} Look
 * @property {string} ground
 * @property {string} ink
 * @property {string} faint
 * @property {string} line
 * @property {string} font
 * @property {boolean} large whether it is seen from the back of a hall
 * @property {Says} says
 */

/**
 * What one column shows of one frame.
 *
 * @typedef {object} Scene
 * @property {Payload} payload
 * @property {Column | null} column null for the exact one
 * @property {Cell | null} cell null where the mechanism cannot run
 * @property {boolean} hidden whether a bet comes first
 * @property {Look} look
 * @property {string} own the column's colour
 * @property {string} written epsilon
 * @property {{ cell: Cell, payload: Payload, same: boolean } | null} ghost the pinned setting
 * @property {string[] | null} redraws pictures of every draw, while they are shown
 * @property {number} redraw which of them
 * @property {number | null} kind the label that is lit
 * @property {boolean} publishable what may be published in place of the rows
 * @property {boolean} first whether this column says what the axes are
 * @property {number[] | null} line A, B and C of a straight line Ax + By = C through the picture
 * @property {number[] | null} counted components found, and variances above the threshold
 * @property {number} most the share of the variance that the scree of every column reaches up to
 */

/**
 * Make an element; attributes that start with "on" are listened to.
 *
 * @template {keyof HTMLElementTagNameMap} Kind
 * @param {Kind} kind
 * @param {string} name
 * @param {Record<string, any>} attributes
 * @param {(Node | string | null)[]} children
 * @returns {HTMLElementTagNameMap[Kind]}
 */
export function make(kind, name = "", attributes = {}, ...children) {
  const node = document.createElement(kind);
  if (name) node.className = name;
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : value);
  }
  for (const child of children) if (child !== null) node.append(child);
  return node;
}

/**
 * Append an element with a class, a text and attributes, and return it.
 *
 * @template {keyof HTMLElementTagNameMap} Kind
 * @param {Kind} kind
 * @param {string} [name]
 * @param {Element | null} [parent]
 * @param {string | null} [text]
 * @param {Record<string, any>} [attributes]
 * @returns {HTMLElementTagNameMap[Kind]}
 */
export function add(kind, name = "", parent = null, text = null, attributes = {}) {
  const node = make(kind, name, attributes, text);
  if (parent) parent.append(node);
  return node;
}

/**
 * Return what says texts in a language, given its words for the English ones.
 *
 * @type {(known?: Record<string, string>) => Says}
 */
export function saying(known = {}) {
  return (text, values = {}) => (known[text] ?? text)
    .replace(/\{(\w+)\}/g, (all, name) => String(values[name] ?? all));
}

export const inEnglish = saying();

/**
 * Which way a key of a slider goes.
 *
 * @type {Record<string, number>}
 */
export const ARROWS = { ArrowLeft: -1, ArrowDown: -1, ArrowRight: 1, ArrowUp: 1 };

/** Return whether the reader asked for less motion. */
export const still = () => globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Return a place on the way between two values, even on a logarithm.
 *
 * @param {number} from
 * @param {number} to
 * @param {number} share from 0 to 1
 */
export const between = (from, to, share) => from * (to / from) ** share;

/**
 * Call back while something is dragged, from where it is grabbed until it is dropped.
 *
 * @param {HTMLElement} node
 * @param {(event: PointerEvent) => boolean | void} grab false where it is not to be moved
 * @param {(event: PointerEvent) => void} move
 * @param {(event: PointerEvent) => void} drop
 */
export function dragged(node, grab, move, drop = () => {}) {
  let held = false;
  node.addEventListener("pointerdown", (event) => {
    if (grab(event) === false) return;
    held = true;
    node.setPointerCapture(event.pointerId);
  });
  node.addEventListener("pointermove", (event) => { if (held) move(event); });
  for (const end of /** @type {const} */ (["pointerup", "pointercancel"])) {
    node.addEventListener(end, (event) => {
      if (held) drop(event);
      held = false;
    });
  }
}

/**
 * Draw discs of one size, or rings, given x and y of each in turn.
 *
 * @type {(pen: CanvasRenderingContext2D, points: ArrayLike<number>, r: number, how?: "fill" | "stroke") => void}
 */
export function discs(pen, points, r, how = "fill") {
  pen.beginPath();
  for (let i = 0; i < points.length; i += 2) {
    pen.moveTo(points[i] + r, points[i + 1]);
    pen.arc(points[i], points[i + 1], r, 0, 2 * Math.PI);
  }
  pen[how]();
}

/** @type {(pen: CanvasRenderingContext2D, x: number, y: number, r: number, how?: "fill" | "stroke") => void} */
export function disc(pen, x, y, r, how = "fill") {
  discs(pen, [x, y], r, how);
}

/**
 * Return a small square picture of a canvas.
 *
 * @param {HTMLCanvasElement} from
 * @param {number} size pixels
 * @param {boolean} whole or as much of its middle as fills the square
 */
export function thumbnail(from, size, whole) {
  const small = make("canvas", "", { width: size, height: size });
  const scale = Math[whole ? "min" : "max"](size / from.width, size / from.height);
  const [wide, tall] = [from.width * scale, from.height * scale];
  if (from.width && from.height) small.getContext("2d")?.drawImage(from, (size - wide) / 2, (size - tall) / 2, wide, tall);
  return small;
}

/** @type {(node: Node | null | undefined, text: string) => void} */
export function setText(node, text) {
  if (node && node.textContent !== text) node.textContent = text;
}

/** @type {CanvasRenderingContext2D | null} */
let probe = null;

/**
 * Return a colour as #rrggbb, whatever a style calls it.
 *
 * @param {string} colour
 */
export function plain(colour) {
  probe ??= document.createElement("canvas").getContext("2d");
  if (!probe) return colour;
  probe.fillStyle = colour;
  return String(probe.fillStyle);
}

/**
 * Return the pen of a canvas of so many pixels, wiped.
 *
 * @type {(canvas: HTMLCanvasElement, width: number, height: number) => CanvasRenderingContext2D}
 */
export function surface(canvas, width, height) {
  // The number of pixels includes the zoom of the page, so that an enlarged canvas stays sharp.
  const zoom = /** @type {{ currentCSSZoom?: number }} */ (canvas).currentCSSZoom || 1;
  const ratio = Math.min((globalThis.devicePixelRatio || 1) * zoom, 2);
  const [across, down] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== across || canvas.height !== down) {
    canvas.width = across;
    canvas.height = down;
    canvas.style.width = `${width}px`;
    canvas.style.height = `${height}px`;
  }
  const pen = /** @type {CanvasRenderingContext2D} */ (canvas.getContext("2d"));
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.lineJoin = "round"; // Earlier drawing may have changed the line joins, so they are reset.
  return pen;
}

/**
 * Return the pen of a canvas that fills its box, or null where the box has no size yet.
 *
 * @param {HTMLCanvasElement} canvas
 */
export function sheet(canvas) {
  const box = /** @type {HTMLElement} */ (canvas.parentNode);
  const [width, height] = [box.clientWidth, box.clientHeight];
  return width && height ? { pen: surface(canvas, width, height), width, height } : null;
}

/**
 * Return a length of a text or margin, larger on a wall.
 *
 * @type {(look: Look, pixels: number) => number}
 */
export function scaled(look, pixels) {
  return look.large ? pixels * 1.25 : pixels;
}

/** @type {(pen: CanvasRenderingContext2D, look: Look, width: number, height: number) => void} */
export function question(pen, look, width, height) {
  pen.fillStyle = look.faint;
  pen.font = `600 ${Math.min(48, height * 0.5)}px ${look.font}`;
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.fillText("?", width / 2, height / 2);
}

/**
 * Write lines, the last of them at the bottom.
 *
 * @type {(pen: CanvasRenderingContext2D, look: Look, lines: string[], x: number, bottom: number, size: number) => void}
 */
export function words(pen, look, lines, x, bottom, size) {
  pen.font = `${size}px ${look.font}`;
  pen.fillStyle = look.faint;
  pen.textAlign = "center";
  pen.textBaseline = "alphabetic";
  lines.forEach((line, place) => pen.fillText(line, x, bottom - (lines.length - 1 - place) * size * 1.25));
}

/**
 * Return texts in lines that have room, broken between words.
 *
 * @type {(pen: CanvasRenderingContext2D, look: Look, texts: string[], room: number, size: number) => string[]}
 */
export function broken(pen, look, texts, room, size) {
  pen.font = `${size}px ${look.font}`;
  return texts.flatMap((text) => {
    /** @type {string[]} */
    const lines = [];
    for (const word of text.split(" ")) {
      const longer = lines.length ? `${lines[lines.length - 1]} ${word}` : word;
      if (lines.length && pen.measureText(longer).width <= room) lines[lines.length - 1] = longer;
      else lines.push(word);
    }
    return lines;
  });
}

/**
 * Write a text that stays readable over lines.
 *
 * @type {(pen: CanvasRenderingContext2D, look: Pick<Look, "ground" | "faint">, text: string, x: number, y: number) => void}
 */
export function haloed(pen, look, text, x, y) {
  pen.strokeStyle = look.ground;
  pen.lineWidth = 4;
  pen.strokeText(text, x, y);
  pen.fillStyle = look.faint;
  pen.fillText(text, x, y);
}

/**
 * Draw a line through points, given by their coordinates.
 *
 * @param {CanvasRenderingContext2D} pen
 * @param {number[]} places x and y of each in turn
 */
export function stroke(pen, ...places) {
  pen.beginPath();
  for (let i = 0; i < places.length; i += 2) pen.lineTo(places[i], places[i + 1]);
  pen.stroke();
}

/** @type {(pen: CanvasRenderingContext2D, colour: string, width: number, dash: number[], ...places: number[]) => void} */
export function ruled(pen, colour, width, dash, ...places) {
  pen.strokeStyle = colour;
  pen.lineWidth = width;
  pen.setLineDash(dash);
  stroke(pen, ...places);
  pen.setLineDash([]);
}
