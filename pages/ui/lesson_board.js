// Mounts the board in a lesson: what the step shows, and a move that is played when it is made.
export default function (component) {
  const { parentElement, data, setTriggerValue } = component;
  const root = parentElement.querySelector(".dp-lesson");
  passKeys(root);
  const shape = JSON.stringify([data.shape, data.options]);
  if (root.dpvizShape !== shape) {
    root.dpvizBoard?.destroy();
    root.replaceChildren();
    const element = document.createElement("div");
    root.append(element);
    root.dpvizBoard = DpvizBoard.mount(element, data.payload, {
      ...data.options,
      phoneBelow: 450, // enlarged for a lecture hall, both columns still stand side by side
      onCommit: (epsilon) => setTriggerValue("commit", epsilon),
    });
    if (!data.options.rows.includes("picture")) {
      root.dpvizBoard.element.style.setProperty("--dpv-spectrum", "240px");
    }
    root.dpvizBoard.setEpsilon(data.from);
    root.dpvizShape = shape;
    root.dpvizMoved = null;
  }
  root.toggleAttribute("data-highlight", Boolean(data.highlight));
  const move = JSON.stringify([data.to, Boolean(data.draws)]);
  if (root.dpvizMoved === move) return;
  root.dpvizMoved = move;
  if (data.draws) root.dpvizBoard.setDraws(data.draws);
  if (data.to === null) return;
  const board = root.dpvizBoard;
  const still = window.matchMedia("(prefers-reduced-motion: reduce)").matches;
  const from = Math.log(board.epsilon), to = Math.log(data.to), began = performance.now();
  if (still || from === to) {
    board.setEpsilon(data.to);
    return;
  }
  const step = (now) => {
    const share = Math.min((now - began) / 2500, 1);
    board.setEpsilon(Math.exp(from + share * (to - from)));
    if (share < 1 && root.dpvizMoved === move) requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
}
