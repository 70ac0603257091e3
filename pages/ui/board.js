// Between Streamlit and the board: data in, triggers out. Follows board.js in one module.
const held = new WeakMap(); // the board of each place in the page

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
      // What the page says around the board follows; of a public table it says all of it always.
      // Real rows are sent where they are asked for: until they are here the view stays.
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
    // what was moved while the server was away has no answer
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
    // Another table or setting, or other epsilons: everything is built anew.
    const whole = { ...payload, frames: [...payload.frames, ...framesOf(token)] };
    if (mine.board) mine.board.setPayload(whole);
    else mine.board = DpvizBoard.mount(mine.root, whole, mine.options);
    globalThis.dpvizFirst?.(); // the picture that stood here until now
    mine.sent = [];
    take(mine.board, token);
  } else {
    mine.board.addFrames(payload.frames);
    take(mine.board, token);
    // An answer to a move of our own arrives after further moves: it is not a new order.
    const place = mine.sent.indexOf(payload.now);
    if (place >= 0) mine.sent.splice(0, place + 1);
    else if (payload.now !== mine.now) {
      mine.board.setEpsilon(payload.now);
      mine.board.committed = payload.now;
    }
  }
  // An answer to an older question changes nothing: a view is taken where it is a new one.
  if (payload.ribbon && mine.working !== data.working) {
    if (mine.asked === "working" && data.working) {
      mine.board.setPublishable(false);
      mine.board.buttons.working?.focus(); // the button that asked was made anew
    } else mine.board.takeView(!data.working);
    mine.asked = null;
  }
  mine.working = data.working;
  mine.shape = shape;
  mine.token = token;
  mine.now = payload.now;
  if (!data.wanted) mine.trigger("want", true); // the first frame is there: now the others
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

// What is known of a board beside its payload: frames, and what is expected at its epsilons.
function take(board, token) {
  const { payload } = board;
  const same = (told) => told.epsilons?.join() === payload.epsilons.join();
  const expected = toldOf(token).findLast(same);
  if (expected) Object.assign(payload, { predicted: expected.predicted, least: expected.least });
  board.addFrames(framesOf(token));
}
