// @ts-check
// Functions that unpack arrays of numbers and shorten texts to the space they have. They format no
// number, because all texts come with the payload.

/** @type {Map<string, Uint8Array | Int16Array | Float32Array>} */
const unpacked = new Map(); // This cache is useful, because frames are drawn repeatedly.
const MOST_UNPACKED = 4000;

/**
 * Return the numbers that a packed text holds: little-endian bytes in base64.
 *
 * @template {Uint8Array | Int16Array | Float32Array} Numbers
 * @param {string} text
 * @param {new (buffer: ArrayBuffer) => Numbers} Kind
 * @returns {Numbers}
 */
export function unpack(text, Kind) {
  const known = unpacked.get(text);
  if (known instanceof Kind) return known;
  if (unpacked.size > MOST_UNPACKED) unpacked.clear();
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i += 1) bytes[i] = raw.charCodeAt(i);
  const found = new Kind(bytes.buffer);
  unpacked.set(text, found);
  return found;
}

/**
 * Return as much of a text as there is room for.
 *
 * @param {{ measureText(text: string): { width: number } }} pen
 * @param {string} text
 * @param {number} room in pixels
 */
export function clipped(pen, text, room) {
  if (pen.measureText(text).width <= room) return text;
  let kept = text;
  while (kept.length > 3 && pen.measureText(`${kept}…`).width > room) kept = kept.slice(0, -1);
  return `${kept}…`;
}
