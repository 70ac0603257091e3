// @ts-check
// Colours and shapes, from the payload's palette and the page's own ground.

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

/**
 * Add a point of some shape to a path.
 *
 * @param {Pick<Path2D, "rect" | "moveTo" | "lineTo" | "closePath" | "arc">} path
 * @param {string} kind
 * @param {number} x
 * @param {number} y
 * @param {number} r
 */
export function shape(path, kind, x, y, r) {
  /** @param {number[][]} corners */
  const polygon = (corners) => {
    corners.forEach(([across, down], place) => {
      if (place) path.lineTo(x + across * r, y + down * r);
      else path.moveTo(x + across * r, y + down * r);
    });
    path.closePath();
  };
  switch (kind) {
    case "square":
      path.rect(x - r * 0.9, y - r * 0.9, 1.8 * r, 1.8 * r);
      break;
    case "triangle":
      polygon([[0, -1.2], [1.1, 0.8], [-1.1, 0.8]]);
      break;
    case "diamond":
      polygon([[0, -1.3], [1.3, 0], [0, 1.3], [-1.3, 0]]);
      break;
    case "cross":
      path.rect(x - 1.2 * r, y - 0.45 * r, 2.4 * r, 0.9 * r);
      path.rect(x - 0.45 * r, y - 1.2 * r, 0.9 * r, 2.4 * r);
      break;
    case "down":
      polygon([[0, 1.2], [1.1, -0.8], [-1.1, -0.8]]);
      break;
    default:
      path.moveTo(x + r, y);
      path.arc(x, y, r, 0, 2 * Math.PI);
  }
}
