// The board's modules, one at a time and without a browser; run by tests/unit/test_board_script.py,
// or by hand: DPVIZ_BOARD=dpviz/report/figures/board node --test tests/script
import assert from "node:assert/strict";
import path from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";

const folder = path.resolve(process.env.DPVIZ_BOARD);
const load = (name) => import(pathToFileURL(path.join(folder, name)));
const { apart, heights, nearest, stepped } = await load("axis.js");
const { clipped, unpack } = await load("format.js");
const { luminance, ramp } = await load("palette.js");
const { nameAxis } = await load("distance.js");
const { ends, places } = await load("picture.js");
const { titleOf } = await load("strip.js");
const { between, disc, discs, dragged, saying, still, stroke } = await load("sheet.js");
const { alarm, draws, moment } = await load("../person/directions.js");

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

test("the axis of the slider goes there and back: each epsilon is one step further", () => {
  const axis = stepped([0.1, 0.2, 1, 10], 40, 340);
  assert.deepEqual([0.1, 0.2, 1, 10].map(axis.at), [40, 140, 240, 340]);
  assert.ok(Math.abs(axis.at(Math.sqrt(10)) - 290) < 1e-9); // a pinned one between two steps
  assert.deepEqual([axis.at(0.01), axis.at(99)], [40, 340]);
  assert.deepEqual([-500, 150, 199, 900].map(axis.from), [0.1, 0.2, 1, 10]);
  assert.equal(stepped([1], 40, 340).at(1), 40); // one epsilon alone
});

test("what is beyond an axis stands behind a break in it, and is no flat line", () => {
  const axis = { low: 0, high: 10, linear: null };
  const y = heights(axis, 20, 200, [-5, 1000], 20);
  assert.deepEqual([y(0), y(10)], [200, 20]); // what is on it keeps its place
  assert.ok(y(11) < 20 && y(100) < y(11) && y(1000) < y(100) && y(1000) >= 0);
  assert.ok(y(-1) > 200 && y(-5) > y(-1) && y(-5) <= 210);
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
  const view = (payload, draws) => ({
    payload: { table, steps: 24, epsilons: [0.1, 1], ...payload }, frames: new Map([[1, { draws }]]), epsilon: 1,
  });
  assert.deepEqual(titleOf(view({ steps: null }, 20)), ["recovery"]);
  assert.match(titleOf(view({}, 20))[1], /2 of 24 steps, because 61 features take long/);
  assert.match(titleOf(view({}, 5))[2], /the first 5 of 20 releases/);
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

test("a text is said in another language, with its values", () => {
  const says = saying({ "{count} of 100": "{count} von 100" });
  assert.equal(says("{count} of 100", { count: 3 }), "3 von 100");
  assert.equal(says("{count} people", { count: 3 }), "3 people");
  assert.equal(saying()("{count} people"), "{count} people");
});

test("a place on the way is even on a logarithm", () => {
  assert.ok(Math.abs(between(0.1, 10, 0.5) - 1) < 1e-12);
  assert.deepEqual([between(2, 8, 0), between(2, 8, 1)], [2, 8]);
});

test("what asks for less motion is asked of the reader's system", () => {
  globalThis.matchMedia = (asked) => ({ matches: asked.includes("reduce") });
  assert.equal(still(), true);
  globalThis.matchMedia = () => ({ matches: false });
  assert.equal(still(), false);
});

test("a drag goes from where it is grabbed until it is dropped", () => {
  const heard = {}, told = [];
  const node = {
    addEventListener: (name, act) => { heard[name] = act; },
    setPointerCapture: (id) => told.push(`capture ${id}`),
  };
  dragged(node, ({ free }) => free, ({ x }) => told.push(`move ${x}`), () => told.push("drop"));
  heard.pointermove({ x: 1 });
  heard.pointerdown({ free: false, pointerId: 7 });
  heard.pointermove({ x: 2 });
  heard.pointerup({});
  assert.deepEqual(told, []);
  heard.pointerdown({ free: true, pointerId: 7 });
  heard.pointermove({ x: 3 });
  heard.pointercancel({});
  heard.pointermove({ x: 4 });
  assert.deepEqual(told, ["capture 7", "move 3", "drop"]);
});

test("a line goes through all of its points, and a disc may be a ring", () => {
  const drawn = [];
  const on = Object.fromEntries(["beginPath", "moveTo", "lineTo", "arc", "fill", "stroke"]
    .map((name) => [name, (...given) => drawn.push([name, ...given.slice(0, 3)])]));
  stroke(on, 1, 2, 3, 4, 5, 6);
  assert.deepEqual(drawn.splice(0), [["beginPath"], ["lineTo", 1, 2], ["lineTo", 3, 4], ["lineTo", 5, 6], ["stroke"]]);
  disc(on, 1, 2, 3);
  assert.deepEqual(drawn.splice(0), [["beginPath"], ["moveTo", 4, 2], ["arc", 1, 2, 3], ["fill"]]);
  discs(on, [1, 2, 7, 8], 3, "stroke"); // one path, and no line from one to the next
  assert.deepEqual(drawn.map(([name]) => name), ["beginPath", "moveTo", "arc", "moveTo", "arc", "stroke"]);
});

test("a direction that her row does not turn tells nothing of her", () => {
  const rows = [[1, 0], [0, 1]];
  assert.deepEqual(moment(rows, null), [1, 0, 1]);
  moment(rows, [0.5, 0.5]).forEach((sum, place) => assert.equal(sum, [1.25, 0.25, 1.25][place]));
  const law = { law: "bingham", noise: [[50]], grain: 100 };
  assert.ok(Math.abs(alarm(law, { weight: 0 }, rows, [1, 0], 0) - 0.5) < 1e-9);
  assert.ok(alarm(law, { weight: 50 }, rows, [1, 0], 0) < 0.25);
  // the middle of the draws is the direction of largest variance
  const [middle] = draws(law, { weight: 50 }, moment([[1, 0]], null));
  assert.ok(Math.abs(middle) < 0.02);
});
