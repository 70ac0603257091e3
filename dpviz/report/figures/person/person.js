// @ts-check
// This chart has one movable person. It shows two clouds of releases: with her row, and without it.
//
// Every number comes from the payload of dpviz.lessons.person: noise in units of one row, its scale
// at each epsilon, and the axis limits. Moving the person or epsilon only moves these numbers.

import { alarm, drawAngles, guess } from "./directions.js";
import { add, ARROWS, disc, dragged, inEnglish, ruled, stroke, surface } from "../board/sheet.js";

export function dpvizPerson(root, data, report, says = inEnglish) {
  const SHOWN = 260;
  const state = {
    which: 0,
    at: data.start,
    between: data.start, // During a move, texts describe `at`, the nearest computed epsilon.
    row: data.row.slice(),
    turn: Math.atan2(data.row[1], data.row[0]),
  };
  root.replaceChildren();
  const frame = add("div", "dp-person", root);
  frame.dataset.highlight = data.highlight || "";
  const bar = add("div", "dp-bar", frame);
  const tabs = add("div", "dp-tabs", bar, null, { role: "radiogroup", "aria-label": says("Mechanism") });
  const name = `dp-mechanism-${Math.random().toString(36).slice(2)}`;
  const radios = data.mechanisms.map((mechanism, index) => {
    const label = add("label", "", tabs);
    const onchange = () => { state.which = index; draw(); tell(); };
    const radio = add("input", "", label, null, {
      type: "radio", name, checked: index === 0, disabled: Boolean(data.locked), onchange,
    });
    add("span", "", label, mechanism.label);
    return radio;
  });
  if (data.mechanisms.length < 2) tabs.hidden = true;
  const dial = add("label", "dp-dial", bar);
  const dialWord = add("span", "", dial);
  const slider = add("input", "", dial, null, {
    type: "range", min: 0, max: data.epsilons.length - 1, step: 1, "aria-label": says("Epsilon"),
    disabled: Boolean(data.locked), oninput: () => { at(Number(slider.value)); tell(); },
  });
  const status = add("span", "dp-status", bar);

  const panels = add("div", "dp-panels", frame);
  const left = add("figure", "dp-left", panels);
  const disk = add("div", "dp-disk", left);
  const diskCanvas = add("canvas", "", disk);
  const handle = add("button", "dp-handle", disk, null, { type: "button" });
  add("figcaption", "", left, says("Her row among the others: drag it, or press the arrow keys."));
  const right = add("figure", "dp-right", panels);
  const cloud = add("canvas", "", right, null, { role: "img" });
  const key = add("figcaption", "dp-key", right);

  const sentence = add("p", "dp-sentence", frame, null, { "aria-live": "polite" });
  const arrays = add("div", "dp-worlds", frame);
  const worlds = ["out", "within"].map((world) => {
    const figure = add("figure", "", arrays);
    const circles = Array.from({ length: 100 }, (_, index) =>
      `<circle cx="${5 + 10 * (index % 10)}" cy="${5 + 10 * Math.floor(index / 10)}" r="3.6"></circle>`);
    figure.innerHTML = `<svg viewBox="0 0 100 100" role="img">${circles.join("")}</svg>`;
    const picture = figure.firstElementChild, cells = [...picture.children];
    return { picture, cells, words: add("figcaption", "", figure), world };
  });

  const mechanism = () => data.mechanisms[state.which];
  const setting = () => mechanism().at[state.at];
  const colour = (which) => getComputedStyle(frame).getPropertyValue(which).trim();

  // Return the noise matrix in her axes: along her direction, across it, and between the two.
  const turned = (draw, unit) => {
    const c = Math.cos(state.turn), s = Math.sin(state.turn);
    const [p, q, r] = draw;
    return [
      unit * (c * c * p + 2 * c * s * q + s * s * r),
      unit * (s * s * p - 2 * c * s * q + c * c * r),
      unit * (-c * s * p + (c * c - s * s) * q + c * s * r),
    ];
  };

  // Return how often noise along her direction exceeds a value. Noise with one law in all
  // directions has quantiles. Otherwise count simulated noise, which is as likely with either sign.
  const tail = (value, unit) => {
    const { quantiles, noise, grain } = mechanism();
    if (quantiles) {
      const x = value * grain / unit;
      let low = 0, high = quantiles.length - 1;
      if (x >= quantiles[high]) return 0;
      while (high - low > 1) {
        const middle = (low + high) >> 1;
        if (quantiles[middle] <= x) low = middle; else high = middle;
      }
      const width = quantiles[high] - quantiles[low];
      const place = low + (width > 0 ? Math.max(0, (x - quantiles[low]) / width) : 0);
      return 0.5 * (1 - place / (quantiles.length - 1));
    }
    let count = 0;
    for (const draw of noise) {
      const along = turned(draw, unit / grain)[0];
      count += Number(along > value) + Number(-along > value);
    }
    return count / (2 * noise.length);
  };

  const impossible = (along, across, between, squared) => {
    const left = along - squared;
    return left < 0 || across < 0 || left * across - between * between < 0;
  };

  function found() {
    const now = setting();
    if (!now) return null;
    const squared = state.row[0] ** 2 + state.row[1] ** 2;
    if (mechanism().oneSided) {
      const outside = -Math.expm1(Math.log1p(-Math.min(now.betrayed, 1 - 1e-16)) * squared);
      return { certain: true, out: outside, within: 0, squared };
    }
    const out = mechanism().kind === "direction"
      ? alarm(mechanism(), now, data.others, state.row, state.turn)
      : tail(squared / 2, now.scale);
    return { certain: false, out, within: 1 - out, squared };
  }

  // Interpolate the noise scale between two epsilons, so that the chart zooms without jumps.
  function gliding(scale) {
    const share = state.between - state.at;
    const other = share && mechanism().at[state.at + Math.sign(share)];
    return other ? scale * (other.scale / scale) ** Math.abs(share) : scale;
  }

  function sized(canvas, ratio) {
    const width = Math.max(1, canvas.clientWidth);
    const height = Math.round(width * ratio);
    const pen = surface(canvas, width, height);
    canvas.style.width = ""; // An empty value lets the page layout set the width.
    return { pen, width, height };
  }

  function drawDisk() {
    if (diskCanvas.clientWidth < 60) return; // Without a layout, wait for the observer's call.
    const { pen, width } = sized(diskCanvas, 1);
    const half = width / 2, reach = half - 12;
    pen.strokeStyle = colour("--dp-line");
    pen.fillStyle = colour("--dp-soft");
    disc(pen, half, half, reach);
    pen.stroke();
    pen.fillStyle = colour("--dp-faint");
    for (const [x, y] of data.others) disc(pen, half + reach * x, half - reach * y, 3);
    ruled(pen, colour("--dp-in"), 2, [], half, half, half + reach * state.row[0], half - reach * state.row[1]);
    handle.style.left = `${half + reach * state.row[0]}px`;
    handle.style.top = `${half - reach * state.row[1]}px`;
  }

  function drawCloud() {
    if (cloud.clientWidth < 60) return;
    // Keep the chart low on a page enlarged for a lecture hall, because the text below it must fit.
    const narrow = (cloud.currentCSSZoom || 1) > 1 ? 0.5 : 0.8;
    const ratio = cloud.clientWidth < 420 ? narrow : 0.55;
    const { pen, width, height } = sized(cloud, ratio);
    const now = setting();
    pen.font = `15px system-ui, sans-serif`;
    pen.fillStyle = colour("--dp-text");
    if (!now) {
      pen.fillText(says("This mechanism cannot run at this epsilon."), 12, 30);
      return;
    }
    if (mechanism().kind === "direction") {
      const colours = {
        in: colour("--dp-in"), out: colour("--dp-out"), text: colour("--dp-text"), soft: colour("--dp-soft"),
      };
      const seen = guess(mechanism(), now, data.others, state.row, state.turn);
      drawAngles(pen, width, height, seen, colours, says);
      return;
    }
    const { noise, grain, oneSided } = mechanism();
    const scale = gliding(now.scale);
    const unit = scale / grain;
    const cone = data.view === "cone";
    const squared = state.row[0] ** 2 + state.row[1] ** 2;
    const sorted = mechanism().sizes;
    const reach = 1.15 * Math.max(1.4, sorted * scale * (cone ? 0.7 : 1) + 1);
    const pad = { left: 44, right: 10, top: 22, bottom: 42 };
    const wide = width - pad.left - pad.right, tall = height - pad.top - pad.bottom;
    const low = oneSided || cone ? -0.08 * reach : -reach;
    const left0 = oneSided ? -0.12 * reach : -reach;
    // Both axes have the same scale. The axis with more pixels shows a longer interval.
    const unitPixels = Math.min(wide / (reach - left0), tall / (reach - low));
    const moreX = wide / unitPixels - (reach - left0), moreY = tall / unitPixels - (reach - low);
    const left = oneSided ? left0 : left0 - moreX / 2;
    const bottom = oneSided || cone ? low : low - moreY / 2;
    const farX = left + wide / unitPixels, farY = bottom + tall / unitPixels;
    const X = (x) => pad.left + (x - left) * unitPixels;
    const Y = (y) => height - pad.bottom - (y - bottom) * unitPixels;
    pen.save();
    pen.beginPath();
    pen.rect(pad.left, pad.top, width - pad.left - pad.right, height - pad.top - pad.bottom);
    pen.clip();
    if (cone) {
      pen.fillStyle = colour("--dp-soft");
      pen.beginPath();
      pen.moveTo(X(0), Y(0));
      pen.lineTo(X(2 * farX), Y(2 * farX));
      pen.lineTo(X(2 * farX), Y(0));
      pen.fill();
    } else if (oneSided) {
      pen.fillStyle = colour("--dp-soft");
      pen.fillRect(X(squared), 0, width, Y(0));
    } else {
      ruled(pen, colour("--dp-line"), 1, [5, 4], X(squared / 2), 0, X(squared / 2), height);
    }
    const shown = Math.min(SHOWN, noise.length >> 1);
    const point = (along, across, between) => cone
      ? [(along + across) / 2, Math.hypot((along - across) / 2, between)] : [along, across];
    // Without her row, use different noise than with it, because this shows another release.
    const without = (index) => {
      const [along, across, between] = turned(noise[noise.length - 1 - index], unit);
      const shift = cone ? squared : 0;
      const betrays = oneSided && impossible(along, across, between, squared);
      const [x, y] = point(along - shift, across, between);
      const px = X(x), py = Y(y);
      pen.strokeStyle = colour(betrays ? "--dp-sure" : "--dp-out");
      pen.lineWidth = betrays ? 2 : 1.3;
      if (betrays) {
        stroke(pen, px - 4, py - 4, px + 4, py + 4);
        stroke(pen, px - 4, py + 4, px + 4, py - 4);
      } else disc(pen, px, py, 3, "stroke");
    };
    const within = (index) => {
      const [along, across, between] = turned(noise[index], unit);
      const [x, y] = point(along + (cone ? 0 : squared), across, between);
      pen.fillStyle = colour("--dp-in");
      disc(pen, X(x), Y(y), 2.6);
    };
    // Alternate between the points of the two clouds, so that neither cloud covers the other.
    for (let index = 0; index < shown; index += 1) {
      without(index);
      within(index);
    }
    pen.restore();
    pen.strokeStyle = colour("--dp-line");
    pen.lineWidth = 1;
    pen.strokeRect(pad.left, pad.top, width - pad.left - pad.right, height - pad.top - pad.bottom);
    drawBar(pen, unitPixels, width - pad.right - 10, pad.top + 8);
    pen.fillStyle = colour("--dp-text");
    pen.textAlign = "center";
    const axis = cone ? [says("half the trace, in units of one row"), says("half the trace")]
      : [says("sum of squares along her direction, in units of one row"), says("along her direction, in rows")];
    const fits = axis.find((words) => pen.measureText(words).width < width - pad.left) ?? axis[1];
    pen.fillText(fits, (pad.left + width) / 2, height - 6);
    for (const tick of ticks(left, farX)) pen.fillText(label(tick), X(tick), height - 25);
    pen.textAlign = "right";
    for (const tick of ticks(bottom, farY)) pen.fillText(label(tick), pad.left - 6, Y(tick) + 4);
    if (!cone && !oneSided) {
      pen.textAlign = "center";
      const from = width < 300 ? says("says “in” →") : says("the guesser says “in” from here →");
      pen.fillText(from, X(squared / 2), pad.top - 7);
    }
    pen.save();
    pen.translate(12, height / 2);
    pen.rotate(-Math.PI / 2);
    pen.textAlign = "center";
    pen.fillText(cone ? says("radius") : says("across it"), 0, 0);
    pen.restore();
    pen.textAlign = "left";
  }

  // Draw a scale bar, because the chart zooms as the noise changes.
  function drawBar(pen, unitPixels, right, top) {
    const SHORTEST = 20; // pixels
    const enough = data.bars.find(([rows]) => rows * unitPixels >= SHORTEST);
    const [rows, wording, count] = enough ?? data.bars[data.bars.length - 1];
    const text = says(wording, { count });
    const long = rows * unitPixels;
    const size = parseFloat(pen.font);
    const wide = Math.max(long, pen.measureText(text).width);
    pen.fillStyle = colour("--dp-ground");
    pen.globalAlpha = 0.85; // Dim the dots below the scale bar, so that it is legible.
    pen.fillRect(right - wide - 6, top - 2, wide + 12, size + 20);
    pen.globalAlpha = 1;
    pen.fillStyle = pen.strokeStyle = colour("--dp-text");
    pen.textAlign = "right";
    pen.fillText(text, right, top + size);
    const y = top + size + 10;
    pen.lineWidth = 2;
    stroke(pen, right - long, y, right, y);
    for (const end of [right - long, right]) stroke(pen, end, y - 4, end, y + 4);
  }

  const label = (value) => DpvizNumbers.numeral(value, 3);
  // Round a length up to a number of the series 1, 2, 5, 10, ...
  function rounded(raw) {
    const power = 10 ** Math.floor(Math.log10(raw));
    return [1, 2, 5, 10].map((m) => m * power).find((value) => value >= raw);
  }
  function ticks(low, high) {
    const step = rounded((high - low) / 4);
    const all = [];
    for (let tick = Math.ceil(low / step) * step; tick <= high; tick += step) all.push(tick);
    return all.map((tick) => (Math.abs(tick) < step / 1e6 ? 0 : tick));
  }

  function words(seen) {
    const now = setting(), epsilon = label(data.epsilons[state.at]);
    const where = says("{mechanism} at epsilon {epsilon}", { mechanism: mechanism().label, epsilon });
    if (!seen) return `${where}: ${says("cannot run here")}.`;
    const out = DpvizNumbers.ofHundred(seen.out), within = DpvizNumbers.ofHundred(seen.within);
    if (seen.certain) {
      return `${where}: ${says("of 100 releases without her, {out} cannot have come from the table with her: anyone who sees one of these is certain.", { out })}`;
    }
    const limit = now.limit
      ? `; ${says("at most {most} right, wherever her row lies", { most: Math.ceil(100 * now.limit[1] - 1e-9) })}` : "";
    const told = says("of 100 guesses who is in, after {mechanism}: {within} right, {out} wrong", {
      mechanism: where, out, within,
    });
    return `${told[0].toUpperCase()}${told.slice(1)}${limit}.`;
  }

  function draw() {
    const now = setting(), seen = found();
    dialWord.textContent = `${says("Epsilon")} ${label(data.epsilons[state.at])}`;
    slider.value = String(state.at);
    slider.setAttribute("aria-valuetext", label(data.epsilons[state.at]));
    radios.forEach((radio, index) => { radio.checked = index === state.which; });
    status.textContent = now ? now.status.replace(/[a-z].*$/i, (text) => says(text)) : says("cannot run here");
    status.dataset.verdict = now ? now.verdict : "";
    drawDisk();
    drawCloud();
    const text = words(seen);
    sentence.textContent = text;
    cloud.setAttribute("aria-label", text);
    const { oneSided, kind } = mechanism();
    key.replaceChildren();
    add("span", "dp-mark dp-in", key, says("with her"));
    add("span", "dp-mark dp-out", key, says("without her"));
    if (kind === "direction") {
      add("span", "", key, says("How far one released direction lies from her direction: bars up with her, bars down without her, at one scale."));
    }
    if (oneSided) add("span", "dp-mark dp-sure", key, says("release without her, impossible with her"));
    worlds.forEach(({ picture, cells, words: caption, world }) => {
      const count = seen ? Math.round(100 * seen[world]) : 0;
      cells.forEach((cell, index) => {
        const on = index < count;
        cell.setAttribute("class", on ? (seen.certain ? "sure" : "on") : "off");
      });
      const here = world === "out" ? says("She is not in the table") : says("She is in the table");
      const text = seen ? DpvizNumbers.ofHundred(seen[world]) : says("none");
      const told = seen && seen.certain ? says("{count} of 100 releases reveal the table for certain", { count: text })
        : says("{count} of 100 releases make the guesser say “in”", { count: text });
      caption.textContent = `${here}: ${told}.`;
      picture.setAttribute("aria-label", caption.textContent);
    });
    handle.setAttribute(
      "aria-label",
      says("Her row: {x} and {y}. Arrow keys move her row.", { x: label(state.row[0]), y: label(state.row[1]) }),
    );
  }

  function tell() {
    if (report) {
      report({
        mechanism: mechanism().key, epsilon: data.epsilons[state.at], row: state.row.slice(),
      });
    }
  }

  function place(x, y) {
    const length = Math.hypot(x, y);
    state.row = length > 1 ? [x / length, y / length] : [x, y];
    if (length > 1e-9) state.turn = Math.atan2(y, x);
    draw();
  }

  const move = (event) => {
    const box = diskCanvas.getBoundingClientRect();
    const reach = box.width / 2 - 12;
    place((event.clientX - box.left - box.width / 2) / reach,
      (box.top + box.height / 2 - event.clientY) / reach);
  };
  const grab = (event) => {
    handle.focus({ preventScroll: true });
    move(event);
    event.preventDefault();
  };
  dragged(disk, grab, move, tell);
  handle.addEventListener("keydown", (event) => {
    if (!(event.key in ARROWS)) return;
    const step = ARROWS[event.key] * (event.shiftKey ? 0.2 : 0.05);
    const across = event.key === "ArrowLeft" || event.key === "ArrowRight";
    event.preventDefault();
    place(state.row[0] + (across ? step : 0), state.row[1] + (across ? 0 : step));
    tell();
  });

  const watcher = new ResizeObserver(() => draw());
  watcher.observe(frame);
  draw();
  function at(place) {
    state.at = Math.round(place);
    state.between = place;
    draw();
  }
  return { stop: () => watcher.disconnect(), row: () => state.row, at };
}
