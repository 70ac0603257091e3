// The board's modules, one at a time and without a browser; run by tests/unit/test_board_script.py,
// or by hand: DPVIZ_BOARD=dpviz/report/figures/board node --test tests/script
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.env.DPVIZ_BOARD);
const load = (name) => import(pathToFileURL(path.join(folder, name)));
const { apart, heights, logarithmic, nearest } = await load("axis.js");
const { clipped, unpack } = await load("format.js");
const { luminance, ramp, shape } = await load("palette.js");
const { nameAxis } = await load("distance.js");
const { ends, places } = await load("picture.js");
const { titleOf } = await load("strip.js");

const packed = (numbers) => Buffer.from(numbers.buffer).toString("base64");
const pen = { measureText: (text) => ({ width: 10 * text.length }) };

test("packed numbers come back, and each text is unpacked once", () => {
  const text = packed(new Float32Array([1.5, -2, 0]));
  assert.deepEqual([...unpack(text, Float32Array)], [1.5, -2, 0]);
  assert.equal(unpack(text, Float32Array), unpack(text, Float32Array));
  const bytes = packed(new Uint8Array([1, 2]));
  assert.deepEqual([...unpack(bytes, Uint8Array)], [1, 2]);
  assert.deepEqual([...unpack(bytes, Int16Array)], [513]); // the same bytes in another type
});

test("a text keeps what there is room for", () => {
  assert.equal(clipped(pen, "Gaussian", 80), "Gaussian");
  assert.equal(clipped(pen, "Gaussian", 70), "Gaussi…");
  assert.equal(clipped(pen, "Gaussian", 0), "Gau…"); // three letters say more than none
});

test("chance is named where its name has room beside the true space's", () => {
  const named = (chance) => {
    const texts = [];
    const on = { ...pen, fillText: (text) => texts.push(text) };
    nameAxis({ pen: on, width: 300, height: 40 }, { faint: "", says: (text) => text }, chance);
    return texts;
  };
  assert.deepEqual(named(290), ["0 true space", "chance", "distance"]);
  assert.deepEqual(named(180), ["0 true space", "chance", "distance"]);
  assert.deepEqual(named(160), ["0 true space", "distance"]);
  assert.deepEqual(named(8), ["0 true space", "distance"]); // k = d
});

test("the nearest epsilon is nearest by ratio", () => {
  assert.equal(nearest([0.1, 1, 10], 3), 1);
  assert.equal(nearest([0.1, 1, 10], 3.2), 2); // beyond the root of 10
  assert.equal(nearest([0.1, 1, 10], 1e-9), 0);
});

test("a logarithmic axis goes there and back, and ends at its ends", () => {
  const axis = logarithmic(0.1, 10, 40, 240);
  assert.equal(axis.at(0.1), 40);
  assert.ok(Math.abs(axis.at(1) - 140) < 1e-9);
  assert.ok(Math.abs(axis.from(axis.at(0.37)) - 0.37) < 1e-12);
  assert.ok(Math.abs(axis.from(-500) - 0.1) < 1e-12);
  assert.ok(Math.abs(axis.from(500) - 10) < 1e-12);
  assert.equal(logarithmic(1, 1, 40, 240).at(1), 40); // one epsilon alone
});

test("a height is linear near zero, logarithmic beyond, and cut at both ends", () => {
  const y = heights({ low: -1, high: 100, linear: 0.1 }, 0, 200);
  assert.equal(y(-1), 200);
  assert.equal(y(100), 0);
  assert.equal(y(1e9), 0);
  assert.equal(y(-1e9), 200);
  assert.ok(Math.abs((y(1) - y(10)) - (y(10) - y(100))) < 0.5); // decades are alike
  const plain = heights({ low: 0, high: 4, linear: null }, 0, 200);
  assert.equal(plain(1), 150);
  assert.equal(plain(3), 50);
});

test("names that would touch move apart, in order and inside", () => {
  const ends = [{ y: 50, name: "b" }, { y: 49, name: "a" }, { y: 199, name: "d" }, { y: 198, name: "c" }];
  const placed = apart(ends, 14, 0, 200);
  assert.deepEqual(placed.map((one) => one.name), ["a", "b", "c", "d"]);
  placed.slice(1).forEach((one, place) => assert.ok(one.at - placed[place].at >= 14));
  assert.ok(placed.every((one) => one.at >= 0 && one.at <= 200));
  assert.deepEqual(ends.map((one) => one.y), [50, 49, 199, 198]); // what was given is untouched
  assert.equal(apart([{ y: 30 }, { y: 90 }], 14, 0, 200)[1].at, 90); // nobody moves without need
});

test("a ramp runs from end to end", () => {
  const stops = [[0, 0, 0], [100, 50, 0], [200, 0, 10]];
  assert.equal(ramp(stops, 0), "rgb(0,0,0)");
  assert.equal(ramp(stops, 0.25), "rgb(50,25,0)");
  assert.equal(ramp(stops, 1), "rgb(200,0,10)");
});

test("a ground is light or dark", () => {
  assert.equal(luminance("#000000"), 0);
  assert.ok(luminance("#ffffff") > 0.999);
  assert.ok(luminance("#00ff00") > luminance("#ff0000"));
  assert.equal(luminance("rgba(0, 0, 0, 0.5)"), 1);
});

test("every shape is drawn round its point, and no two alike", () => {
  const traced = (kind) => {
    const calls = [];
    const take = (name) => (...given) => calls.push([name, ...given.map((n) => Math.round(100 * n))]);
    const path = Object.fromEntries(["rect", "moveTo", "lineTo", "closePath", "arc"].map((n) => [n, take(n)]));
    shape(path, kind, 10, 20, 2);
    return JSON.stringify(calls);
  };
  const kinds = ["circle", "square", "triangle", "diamond", "cross", "down"];
  assert.equal(new Set(kinds.map(traced)).size, kinds.length);
  assert.equal(traced("unheard of"), traced("circle"));
});

test("a picture has one scale across and up, and nothing leaves it", () => {
  const raw = packed(new Int16Array([32767, 0, 0, 16384, -32767, -32767]));
  const payload = { limits: { picture: [2, 1], scale: 1 }, table: { k: 2 }, truth: { heights: null } };
  const at = places(raw, payload, 206, 206);
  assert.ok(Math.abs(at[0] - (103 + 50)) < 0.01); // 1 of 2 units to the right
  assert.equal(at[1], 103);
  assert.ok(Math.abs((103 - at[3]) - 25) < 0.01); // half a unit up is half as long
  assert.ok([...at].every((one) => one >= 2 && one <= 204));
  const far = places(raw, { ...payload, limits: { picture: [0.1, 0.1], scale: 1 } }, 206, 206);
  assert.deepEqual([far[0], far[5]], [204, 204]);
});

test("along one component the height only keeps points apart", () => {
  const raw = packed(new Int16Array([32767, -32767]));
  const truth = { heights: packed(new Float32Array([0.5, -0.5])) };
  const at = places(raw, { limits: { picture: [1, 1], scale: 1 }, table: { k: 1 }, truth }, 206, 106);
  assert.deepEqual([...at], [203, 28, 3, 78]);
});

test("the strip says what its curves rest on", () => {
  const table = { d: 61, draws: 20 };
  const view = (payload, draws, phone = false) => ({
    payload: { table, steps: 24, epsilons: [0.1, 1], ...payload },
    frames: new Map([[1, { draws }]]), epsilon: 1, phone,
  });
  assert.equal(titleOf(view({ steps: null }, 20)), "recovery against ε");
  assert.match(titleOf(view({}, 20)), /2 of 24 steps, as 61 features take long/);
  assert.match(titleOf(view({}, 5)), /the first 5 of 20 draws/);
  assert.equal(titleOf(view({}, 5, true)), "recovery against ε");
});

test("a straight line goes where its equation says, whatever the box", () => {
  const payload = { limits: { picture: [2, 1] } };
  // x = 1, of a box where 2 lies at the right and 1 would lie at the top: 100 pixels are a unit
  const [from, to] = ends([1, 0, 1], payload, 406, 206);
  assert.deepEqual([Math.round(from[0]), Math.round(to[0])], [303, 303]);
  assert.ok(Math.min(from[1], to[1]) < 0 && Math.max(from[1], to[1]) > 206);
  // y = -x / 2 through the middle, down to the right as on paper
  const [left, right] = ends([1, 2, 0], payload, 406, 206);
  assert.ok(Math.abs((right[1] - left[1]) / (right[0] - left[0]) - 0.5) < 1e-9);
  assert.deepEqual(ends([10, 0, 10], payload, 406, 206).map((end) => Math.round(end[0])), [303, 303]);
});
