// @ts-check
// This script computes what a released direction reveals about one row with two features.
//
// A direction is an angle modulo half a turn. Distributions and noise come from the payload of
// dpviz.lessons.directions. The guesser says "in" if the released direction lies near the person's.
// Her row adds only u'(vv')u to the exponent of a Bingham law, so no guesser does better.

import { ruled } from "../board/sheet.js";

const GRID = 720; // This is the number of angles in half a turn.
const BARS = 18; // The histogram has bins of 5 degrees, from her direction to a right angle.
const TICKS = [[1, "0°"], [30, "30°"], [60, "60°"], [89, "90°"]];

export function moment(rows, extra) {
  let [p, q, r] = [0, 0, 0];
  for (const [x, y] of extra ? [...rows, extra] : rows) {
    p += x * x;
    q += x * y;
    r += y * y;
  }
  return [p, q, r];
}

// Return the direction of largest variance, and by how much its variance exceeds the smallest one.
const axis = ([p, q, r]) => Math.atan2(2 * q, p - r) / 2;
const gap = ([p, q, r]) => Math.hypot(p - r, 2 * q);

// Compute a Bingham distribution on a grid. Its doubled angles have a von Mises distribution.
const angleAt = (i, start) => start + (Math.PI * (i + 0.5)) / GRID;
function shares(sums, weight, start) {
  const kappa = (weight * gap(sums)) / 2, middle = axis(sums);
  const found = new Float64Array(GRID);
  let total = 0;
  for (let i = 0; i < GRID; i += 1) {
    found[i] = Math.exp(kappa * (Math.cos(2 * (angleAt(i, start) - middle)) - 1));
    total += found[i];
  }
  return found.map((share) => share / total);
}

function binghamDraws(sums, weight, uniforms) {
  const start = axis(sums) - Math.PI / 2; // Centring on the mode makes moves smooth.
  const found = shares(sums, weight, start);
  const below = new Float64Array(GRID + 1);
  for (let i = 0; i < GRID; i += 1) below[i + 1] = below[i] + found[i];
  return uniforms.map((level) => {
    let low = 0, high = GRID;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (below[middle] <= level) low = middle; else high = middle;
    }
    return start + (Math.PI * (low + (level - below[low]) / (found[low] || 1))) / GRID;
  });
}

// Each step of the power method computes Y = A q + noise. Here q is the direction of the Y before.
function powerDraw([p, q, r], { std, steps, flat }, normals) {
  let size = Math.hypot(normals[0], normals[1]);
  let x = normals[0] / size, y = normals[1] / size;
  for (let step = 1; step <= steps; step += 1) {
    const spread = std * (flat ? 1 : Math.max(Math.abs(x), Math.abs(y)));
    const u = p * x + q * y + spread * normals[2 * step];
    const v = q * x + r * y + spread * normals[2 * step + 1];
    size = Math.hypot(u, v);
    [x, y] = [u / size, v / size];
  }
  return Math.atan2(y, x);
}

// A power step from the whole plane as frame gives the first left singular vector of A + noise.
function frameDraw([p, q, r], { std }, [a, b, c, d]) {
  const k = p + std * a, l = q + std * b, m = q + std * c, n = r + std * d;
  return Math.atan2(2 * (k * m + l * n), k * k + l * l - m * m - n * n) / 2;
}

export function draws(mechanism, now, sums) {
  const { law, noise, grain } = mechanism;
  if (law === "bingham") {
    return binghamDraws(sums, now.weight, noise.map(([level]) => level / grain));
  }
  const one = law === "power" ? powerDraw : frameDraw;
  return noise.map((normals) => one(sums, now, normals.map((value) => value / grain)));
}

// Choose the threshold at which misses are as frequent as false alarms. Return how often the
// guesser says "in" without her row, the threshold angle, and its distribution in both cases.
export function guess(mechanism, now, rows, row, turn) {
  const without = moment(rows, null), within = moment(rows, row);
  const close = (angle) => Math.min(1, Math.abs(Math.cos(angle - turn)));
  let seen; // Each entry has closeness to her direction, and shares without and with her row.
  if (mechanism.law === "bingham") {
    const out = shares(without, now.weight, 0), inside = shares(within, now.weight, 0);
    seen = Array.from(out, (share, i) => [close(angleAt(i, 0)), share, inside[i]]);
  } else {
    // Use the same noise with and without her row, so that a row with no effect changes no rate.
    const one = 1 / mechanism.noise.length;
    seen = [
      ...draws(mechanism, now, without).map((angle) => [close(angle), one, 0]),
      ...draws(mechanism, now, within).map((angle) => [close(angle), 0, one]),
    ];
  }
  seen.sort((one, other) => other[0] - one[0]);
  let said = 0, missed = 1;
  for (const [near, out, inside] of seen) {
    const left = missed - said;
    if (left <= out + inside) {
      const alarm = Math.min(0.5, said + (out * left) / (out + inside));
      return { alarm, threshold: Math.acos(near), seen };
    }
    said += out;
    missed -= inside;
  }
  return { alarm: 0.5, threshold: Math.PI / 4, seen };
}

export const alarm = (...given) => guess(...given).alarm;

// Compute the shares of releases by their angle from her direction, with and without her row.
export function histogram(seen) {
  const bars = Array.from({ length: BARS }, () => ({ within: 0, out: 0 }));
  for (const [near, out, inside] of seen) {
    const bar = bars[Math.min(BARS - 1, Math.floor((Math.acos(near) / (Math.PI / 2)) * BARS))];
    bar.out += out;
    bar.within += inside;
  }
  return bars;
}

// Draw releases with and without her on one axis, because one threshold must distinguish them.
export function drawAngles(pen, width, height, { seen, threshold }, colours, says) {
  const pad = { left: 12, right: 12, top: 20, bottom: 40 };
  const long = width - pad.left - pad.right, tall = height - pad.top - pad.bottom;
  const middle = pad.top + tall / 2;
  const bars = histogram(seen);
  const most = Math.max(...bars.flatMap(({ within, out }) => [within, out]));
  const x = (degrees) => pad.left + (degrees / 90) * long;
  const cut = x((threshold * 180) / Math.PI);
  pen.fillStyle = colours.soft;
  pen.fillRect(pad.left, pad.top, cut - pad.left, tall);
  const wide = long / BARS - 3;
  pen.lineWidth = 1.5;
  bars.forEach(({ within, out }, i) => {
    const at = x((90 * i) / BARS) + 1.5;
    pen.fillStyle = colours.in;
    const up = (within / most) * (tall / 2 - 2), down = (out / most) * (tall / 2 - 2);
    pen.fillRect(at, middle - up, wide, up);
    pen.strokeStyle = colours.out;
    pen.strokeRect(at, middle, wide, down);
  });
  ruled(pen, colours.text, 1, [], pad.left, middle, pad.left + long, middle);
  ruled(pen, colours.text, 2, [5, 4], cut, pad.top, cut, pad.top + tall);
  pen.fillStyle = colours.text;
  pen.textAlign = "right";
  pen.fillText(says("with her"), width - pad.right, pad.top + 12);
  pen.fillText(says("without her"), width - pad.right, pad.top + tall - 4);
  pen.textAlign = cut < width / 2 ? "left" : "right";
  pen.fillText(says("the guesser says “in” up to here"), cut, pad.top - 6);
  pen.textAlign = "center";
  for (const [degrees, text] of TICKS) pen.fillText(text, x(degrees), pad.top + tall + 15);
  const whole = says("angle between the released direction and her direction");
  const fits = pen.measureText(whole).width < width ? whole : says("angle from her direction");
  pen.fillText(fits, width / 2, height - 6);
  pen.textAlign = "left";
}
