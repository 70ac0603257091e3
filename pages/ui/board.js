// This adapter between Streamlit and the comparison figure passes data in and events out. The
// server joins board.js and this file in one module.
const held = new WeakMap(); // This maps each parent element to its figure.

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let mine = held.get(parentElement);
  if (!mine) {
    mine = { sent: [], frames: null, draws: null, opened: null, asked: null };
    mine.root = parentElement.appendChild(document.createElement("div"));
    const send = (name, value) => mine.trigger(name, value);
    mine.options = {
      onCommit: (epsilon) => {
        mine.sent.push(epsilon);
        send("commit", epsilon);
      },
      onBeyond: (epsilon) => {
        mine.sent.push(epsilon);
        send("commit", epsilon);
      },
      onPin: (action) => send("pin", { action, epsilon: mine.board.epsilon }),
      onFresh: () => send("fresh", mine.board.epsilon),
      onDraws: (epsilon) => send("draws", epsilon),
      onOpen: (key) => send("open", key ?? ""),
      onLink: (name) => send("link", name),
      // Texts around the figure depend on the view; a public table has only one view. Real rows are
      // sent only on request, and the view changes only after they arrive.
      onView: (name) => {
        const { ribbon, truth } = mine.board.payload;
        if (!ribbon) return false;
        mine.asked = name;
        send("view", name);
        return !truth.picture;
      },
      onPresent: (on) => send("present", on ? "yes" : "no"),
    };
    mine.arrived = () => {
      if (mine.board && mine.token) take(mine.board, mine.token);
    };
    // If the server was away, the latest moves got no answer, so send the last move again.
    mine.back = () => {
      if (mine.sent.length) send("commit", mine.sent.at(-1));
    };
    window.addEventListener("dpviz-frames", mine.arrived);
    window.addEventListener("dpviz-back", mine.back);
    held.set(parentElement, mine);
  }
  mine.trigger = setTriggerValue;

  const { payload, token, shape, pin, draws } = data;
  if (mine.shape !== shape) {
    // If the table, the setting or the list of epsilons changes, build the whole figure again.
    const whole = { ...payload, frames: [...payload.frames, ...framesOf(token)] };
    if (mine.board) mine.board.setPayload(whole);
    else mine.board = DpvizBoard.mount(mine.root, whole, mine.options);
    globalThis.dpvizFirst?.(); // This removes the figure shown until now.
    mine.sent = [];
    take(mine.board, token);
  } else {
    mine.board.addFrames(payload.frames);
    take(mine.board, token);
    // If the server answers our own move after further moves, do not take it as a request to move.
    const place = mine.sent.indexOf(payload.now);
    if (place >= 0) mine.sent.splice(0, place + 1);
    else if (payload.now !== mine.now) {
      mine.board.setEpsilon(payload.now);
      mine.board.committed = payload.now;
    }
  }
  // Change the view only if the answer belongs to the latest request.
  if (payload.ribbon && mine.working !== data.working) {
    if (mine.asked === "working" && data.working) {
      mine.board.setPublishable(false);
      mine.board.buttons.working?.focus(); // The pressed button was replaced, so focus it again.
    } else mine.board.takeView(!data.working);
    mine.asked = null;
  }
  mine.working = data.working;
  mine.shape = shape;
  mine.token = token;
  mine.now = payload.now;
  if (!data.wanted) mine.trigger("want", true); // After the first snapshot, request others.
  if (data.present !== mine.present && data.present !== mine.board.presenting) mine.board.present(data.present);
  mine.present = data.present;
  mine.board.setPin(pin);
  mine.board.restyle();
  if (draws && draws.id !== mine.draws) {
    mine.draws = draws.id;
    mine.board.setDraws(draws.pictures);
  }
  return () => {
    window.removeEventListener("dpviz-frames", mine.arrived);
    window.removeEventListener("dpviz-back", mine.back);
    mine.board.destroy();
    held.delete(parentElement);
  };
}

function toldOf(token) {
  const parts = globalThis.dpvizFrames?.get(token);
  return parts ? [...parts.values()] : [];
}

function framesOf(token) {
  return toldOf(token).flatMap((told) => told.frames ?? []);
}

// Add snapshots to a payload, and predictions if they are for the figure's epsilons.
function take(board, token) {
  const { payload } = board;
  const same = (told) => told.epsilons?.join() === payload.epsilons.join();
  const expected = toldOf(token).findLast(same);
  if (expected) Object.assign(payload, { predicted: expected.predicted, least: expected.least });
  board.addFrames(framesOf(token));
}
