// Frames and what is expected, on their way to the board: kept by what they belong to.
const KEPT = 6; // boards whose frames the browser remembers

export default function (component) {
  const { token, part, ...told } = JSON.parse(new TextDecoder().decode(component.data));
  const store = (globalThis.dpvizFrames ??= new Map());
  const mine = store.get(token) ?? new Map();
  if (mine.has(part)) return;
  mine.set(part, told);
  store.delete(token);
  store.set(token, mine);
  while (store.size > KEPT) store.delete(store.keys().next().value);
  window.dispatchEvent(new Event("dpviz-frames"));
}
