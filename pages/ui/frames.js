// The server sends frames and predictions for the comparison figure; they are stored here by token.
const KEPT = 6; // The browser remembers the frames of six figures.

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
