// @ts-check
// Functions that compute colours from the payload's palette and the background of the page.

/** @typedef {import("./payload").Palette} Palette */

/**
 * Return the colour of a share of a ramp.
 *
 * @param {Palette["ramp"]} stops red, green and blue of each
 * @param {number} share from 0 to 1
 */
export function ramp(stops, share) {
  const place = share * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  /** @param {number} c */
  const mix = (c) => Math.round(stops[low][c] + (place - low) * (stops[low + 1][c] - stops[low][c]));
  return `rgb(${mix(0)},${mix(1)},${mix(2)})`;
}

/**
 * Return how light a colour is, from 0 to 1; what is no plain colour counts as white.
 *
 * @param {string} colour as #rrggbb
 */
export function luminance(colour) {
  const hex = /^#(..)(..)(..)$/.exec(colour);
  if (!hex) return 1;
  const [r, g, b] = hex.slice(1).map((part) => parseInt(part, 16) / 255);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
