// @ts-check
// Where values lie on the screen.

/** @typedef {import("./payload").Heights} Heights */

/**
 * Return the place of the value that is nearest on a logarithmic axis.
 *
 * @param {readonly number[]} values
 * @param {number} value
 */
export function nearest(values, value) {
  let best = 0;
  /** @param {number} other */
  const far = (other) => Math.abs(Math.log(other / value));
  values.forEach((other, place) => {
    if (far(other) < far(values[best])) best = place;
  });
  return best;
}

/**
 * Return a logarithmic axis between two pixels, there and back.
 *
 * @param {number} low
 * @param {number} high
 * @param {number} left
 * @param {number} right
 */
export function logarithmic(low, high, left, right) {
  const [from, to] = [Math.log(low), Math.log(high)];
  return {
    /** @param {number} value */
    at: (value) => left + ((Math.log(value) - from) / (to - from || 1)) * (right - left),
    /** @param {number} pixel */
    from: (pixel) => {
      const share = Math.max(0, Math.min(1, (pixel - left) / (right - left)));
      return Math.exp(from + share * (to - from));
    },
  };
}

/**
 * Return the height of a variance: linear up to a value and logarithmic beyond, cut at both ends.
 *
 * @param {Pick<Heights, "low" | "high" | "linear">} axis
 * @param {number} top
 * @param {number} bottom
 * @returns {(value: number) => number}
 */
export function heights({ low, high, linear }, top, bottom) {
  /** @param {number} value */
  const bent = (value) => (linear === null ? value : Math.asinh(value / linear));
  const [least, most] = [bent(low), bent(high)];
  return (value) => {
    const inside = bent(Math.max(low, Math.min(high, value)));
    return bottom - ((inside - least) / (most - least)) * (bottom - top);
  };
}

/**
 * Give names that would touch places of their own, in order, as near to their lines as they fit.
 *
 * @template {{ y: number }} End
 * @param {readonly End[]} ends
 * @param {number} gap
 * @param {number} top
 * @param {number} bottom
 * @returns {(End & { at: number })[]}
 */
export function apart(ends, gap, top, bottom) {
  const placed = [...ends].sort((one, other) => one.y - other.y).map((end) => ({ ...end, at: end.y }));
  let last = top - gap;
  for (const end of placed) {
    end.at = Math.max(end.y, last + gap);
    last = end.at;
  }
  let next = bottom + gap;
  for (const end of [...placed].reverse()) {
    end.at = Math.min(end.at, next - gap);
    next = end.at;
  }
  return placed;
}
