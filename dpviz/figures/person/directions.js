// What a released direction says of one row of a table with two features.
//
// A direction is an angle, the same turned by half a turn. Laws and draws come from the payload of
// dpviz.guide.directions. The guesser says "in" where the direction lies near hers: u'(vv')u is all
// that her row adds to the exponent of a Bingham law, so no guesser does better against that one.
const DpvizDirections = (() => {
  "use strict";
  const GRID = 720; // angles of half a turn

  function moment(rows, extra) {
    let [p, q, r] = [0, 0, 0];
    for (const [x, y] of extra ? [...rows, extra] : rows) {
      p += x * x;
      q += x * y;
      r += y * y;
    }
    return [p, q, r];
  }

  // The direction of largest variance, and how much the largest exceeds the smallest.
  const axis = ([p, q, r]) => Math.atan2(2 * q, p - r) / 2;
  const gap = ([p, q, r]) => Math.hypot(p - r, 2 * q);

  // Shares of a Bingham law on a grid; doubled angles have a von Mises law.
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
    const start = axis(sums) - Math.PI / 2; // the mode in the middle: draws move smoothly with it
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

  // Y = A q + noise, q the direction of the last Y.
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

  // The same with the whole plane as its frame: the first left singular vector of A + noise.
  function frameDraw([p, q, r], { std }, [a, b, c, d]) {
    const k = p + std * a, l = q + std * b, m = q + std * c, n = r + std * d;
    return Math.atan2(2 * (k * m + l * n), k * k + l * l - m * m - n * n) / 2;
  }

  function draws(mechanism, now, sums) {
    const { law, noise, grain } = mechanism;
    if (law === "bingham") {
      return binghamDraws(sums, now.weight, noise.map(([level]) => level / grain));
    }
    const one = law === "power" ? powerDraw : frameDraw;
    return noise.map((normals) => one(sums, now, normals.map((value) => value / grain)));
  }

  // How often the guesser says "in" without her, at the threshold where misses are as frequent.
  function alarm(mechanism, now, rows, row, turn) {
    const without = moment(rows, null), within = moment(rows, row);
    const close = (angle) => Math.abs(Math.cos(angle - turn));
    let seen; // how near to hers, and the share of releases there without her and with her
    if (mechanism.law === "bingham") {
      const out = shares(without, now.weight, 0), inside = shares(within, now.weight, 0);
      seen = Array.from(out, (share, i) => [close(angleAt(i, 0)), share, inside[i]]);
    } else {
      // The same draws in both worlds: where her row changes nothing, neither do the rates.
      const one = 1 / mechanism.noise.length;
      seen = [
        ...draws(mechanism, now, without).map((angle) => [close(angle), one, 0]),
        ...draws(mechanism, now, within).map((angle) => [close(angle), 0, one]),
      ];
    }
    seen.sort((one, other) => other[0] - one[0]);
    let said = 0, missed = 1;
    for (const [, out, inside] of seen) {
      const left = missed - said;
      if (left <= out + inside) return Math.min(0.5, said + (out * left) / (out + inside));
      said += out;
      missed -= inside;
    }
    return 0.5;
  }

  // Two rings of directions about the centre of a canvas, each line with both of its ends.
  function drawRings(pen, width, height, mechanism, now, rows, row, colours, shown) {
    const x = width / 2, y = height / 2, reach = Math.min(width, height) / 2 - 8;
    const line = (angle, long, colour, dash) => {
      pen.strokeStyle = colour;
      pen.lineWidth = 2;
      pen.setLineDash(dash);
      pen.beginPath();
      pen.moveTo(x - long * Math.cos(angle), y + long * Math.sin(angle));
      pen.lineTo(x + long * Math.cos(angle), y - long * Math.sin(angle));
      pen.stroke();
      pen.setLineDash([]);
    };
    const worlds = [[null, 0.5, 0.72, colours.out, false], [row, 0.78, 1, colours.in, true]];
    for (const [extra, inner, outer, colour, filled] of worlds) {
      const sums = moment(rows, extra);
      line(axis(sums), inner * reach, colour, filled ? [] : [6, 5]);
      const all = draws(mechanism, now, sums);
      // Without her: other draws than with her, as another release would be.
      const some = filled ? all.slice(0, shown) : all.slice(-shown);
      some.forEach((angle, index) => {
        const far = reach * (inner + (outer - inner) * ((index * 0.618034) % 1));
        for (const end of [0, Math.PI]) {
          pen.beginPath();
          pen.arc(x + far * Math.cos(angle + end), y - far * Math.sin(angle + end), 2.2, 0, 2 * Math.PI);
          pen.strokeStyle = pen.fillStyle = colour;
          pen.lineWidth = 1.2;
          if (filled) pen.fill(); else pen.stroke();
        }
      });
    }
    line(Math.atan2(row[1], row[0]), 0.3 * reach, colours.text, []);
  }

  return { alarm, draws, drawRings, moment };
})();
