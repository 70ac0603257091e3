// @ts-check
// Functions that turn values into positions on the screen.

/** @typedef {import("./payload").Heights} Heights */

/**
 * Return the place of the value that is nearest on a logarithmic axis.
 *
 * @type {(values: readonly number[], value: number) => number}
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
 * Return the axis of a slider between two pixels, there and back: each value is one step further.
 *
 * @param {readonly number[]} values ascending
 * @param {number} left
 * @param {number} right
 */
export function stepped(values, left, right) {
  const last = values.length - 1;
  return {
    /** @param {number} value between steps where it is none of them */
    at: (value) => {
      const after = values.findIndex((other) => other >= value);
      const high = after < 0 ? last : after;
      const low = Math.max(high - 1, 0);
      const way = high > low ? Math.log(value / values[low]) / Math.log(values[high] / values[low]) : 0;
      return left + ((low + Math.max(0, Math.min(1, way))) / (last || 1)) * (right - left);
    },
    /** @param {number} pixel */
    from: (pixel) => {
      const share = Math.max(0, Math.min(1, (pixel - left) / (right - left)));
      return values[Math.round(share * last)];
    },
  };
}

/**
 * Return the height of a variance: linear up to a value and logarithmic beyond. What is above the
 * axis or below it stands behind a break, in a band that reaches to the most that is drawn.
 *
 * @param {Pick<Heights, "low" | "high" | "linear">} axis
 * @param {number} top
 * @param {number} bottom
 * @param {[number, number]} reach the least and the most that is drawn
 * @param {number} band pixels above the top, and half of it below the bottom
 * @returns {(value: number) => number}
 */
export function heights({ low, high, linear }, top, bottom, reach = [low, high], band = 0) {
  /** @param {number} value */
  const bent = (value) => (linear === null ? value : Math.asinh(value / linear));
  const [from, to] = [bent(low), bent(high)];
  return (value) => {
    const [least, most] = reach;
    if (value > high && most > high) {
      return top - band * (0.4 + 0.6 * Math.min(1, Math.log(value / high) / Math.log(most / high)));
    }
    if (value < low && least < low) {
      return bottom + (band / 2) * (0.5 + 0.5 * Math.min(1, (low - value) / (low - least)));
    }
    const inside = bent(Math.max(low, Math.min(high, value)));
    return bottom - ((inside - from) / (to - from)) * (bottom - top);
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
