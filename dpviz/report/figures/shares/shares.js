// @ts-check
// This script draws shares of the precision as bars with locks, moved by dragging or arrow keys.
// The page receives the shares only after the reader releases a bar.

import { ARROWS, dragged, make } from "../board/sheet.js";

const held = new WeakMap(); // This maps each parent element to its set of bars.
const OPEN = "M5 7V5a3 3 0 0 1 5.8-1M3.5 7h9v6.5h-9z";
const SHUT = "M5 7V5a3 3 0 0 1 6 0v2M3.5 7h9v6.5h-9z";
const REST = 400; // Wait this many milliseconds after the last key press before sending.

export default function (component) {
  const { data, parentElement, setTriggerValue } = component;
  let mine = held.get(parentElement);
  if (!mine) {
    mine = { send: null };
    mine.bars = new Bars(parentElement, (sent) => mine.send(sent));
    held.set(parentElement, mine);
  }
  mine.send = (sent) => setTriggerValue("moved", sent);
  mine.bars.take(data);
  return () => {
    mine.bars.leave();
    held.delete(parentElement);
  };
}

/** What the unlocked shares become when one is at its place: as the core's `rebalance`. */
export function rebalanced(shares, stays, least) {
  const free = shares.map((_, i) => i).filter((i) => !stays[i]);
  if (!free.length) return shares;
  const fixed = shares.reduce((sum, share, i) => (stays[i] ? sum + share : sum), 0);
  const left = 1 - fixed;
  const total = free.reduce((sum, i) => sum + shares[i], 0);
  const found = shares.slice();
  for (const i of free) {
    const weight = total > 0 ? shares[i] / total : 1 / free.length;
    found[i] = least + (left - free.length * least) * weight;
  }
  return found;
}

const percent = DpvizNumbers.percent;

const LOCK = `<svg viewBox="0 0 16 16" fill="none" stroke="currentColor" stroke-width="1.5" aria-hidden="true"><path/></svg>`;

class Bars {
  constructor(parent, send) {
    this.send = send;
    this.title = make("strong");
    this.said = make("span", "sh-said");
    this.noise = make("div", "", { role: "img" });
    this.colours = make("p");
    this.flow = make("div", "sh-flow", {}, make("span", "", {}, "Noise"), this.noise, this.colours);
    this.list = make("div", "sh-list", { role: "group" });
    this.note = make("p", "sh-note", { role: "status" });
    const head = make("div", "sh-head", {}, this.title, this.said);
    this.root = make("div", "sh", {}, head, this.flow, this.list, this.note);
    parent.append(this.root);
    this.rows = [];
  }

  leave() {
    clearTimeout(this.timer);
    this.root.remove();
  }

  take(data) {
    this.data = data;
    if (this.token !== data.token) {
      clearTimeout(this.timer);
      this.token = data.token;
      this.shares = data.shares.slice();
      this.locked = data.locked.slice();
      this.note.textContent = "";
    }
    if (this.named !== JSON.stringify(data.names)) {
      this.named = JSON.stringify(data.names);
      this.build();
    }
    this.title.textContent = data.title;
    this.list.setAttribute("aria-label", data.title);
    this.show();
  }

  build() {
    this.parts = this.data.names.map(() => make("i"));
    this.noise.replaceChildren(...this.parts);
    this.rows = this.data.names.map((name, i) => {
      const [fill, equal, value] = [make("div", "sh-fill"), make("div", "sh-equal"), make("span", "sh-value")];
      const track = make("div", "sh-track", {
        role: "slider", tabindex: 0, "aria-valuemin": 0, "aria-valuemax": 100,
        "aria-label": `Share of ${name}`, onkeydown: (event) => this.key(event, i),
      }, fill, equal);
      const lock = make("button", "sh-lock", { type: "button", onclick: () => this.turn(i) });
      lock.innerHTML = LOCK;
      const row = make("div", "sh-row", {}, make("span", "sh-name", { title: name }, name), track, value, lock);
      this.drag(track, i);
      return { row, track, fill, equal, value, lock, path: lock.querySelector("path") };
    });
    this.list.replaceChildren(...this.rows.map(({ row }) => row));
  }

  show() {
    const { names, chosen } = this.data;
    this.rows.forEach((one, i) => {
      const share = this.shares[i];
      one.row.toggleAttribute("data-locked", this.locked[i]);
      one.row.toggleAttribute("data-chosen", chosen.includes(i + 1));
      one.fill.style.width = `${100 * share}%`;
      one.equal.style.left = `${100 / names.length}%`;
      one.value.textContent = percent(share);
      one.track.setAttribute("aria-valuenow", 100 * share);
      one.track.setAttribute("aria-valuetext", percent(share));
      one.track.setAttribute("aria-disabled", String(this.locked[i] || this.room(i) === 0));
      one.lock.setAttribute("aria-pressed", String(this.locked[i]));
      one.lock.setAttribute("aria-label", `Lock ${names[i]}`);
      one.lock.title = this.locked[i] ? "Locked: this share stays fixed" : "Lock this share";
      one.path.setAttribute("d", this.locked[i] ? SHUT : OPEN);
    });
    const sum = this.shares.reduce((total, share) => total + share, 0);
    this.said.textContent = `together ${percent(sum)}`;
    this.showNoise();
  }

  /** One bar of all the noise: on a direction it is in proportion to 1 / share. */
  showNoise() {
    const { names, chosen, flows } = this.data;
    this.flow.hidden = !flows;
    const noise = this.shares.map((share) => 1 / share);
    const all = noise.reduce((sum, one) => sum + one, 0);
    this.parts.forEach((part, i) => {
      part.style.flexGrow = String(noise[i] / all);
      part.toggleAttribute("data-chosen", chosen.includes(i + 1));
      part.title = `${names[i]}: ${percent(noise[i] / all)} of the noise`;
    });
    // Name the two colours, and how much of the noise each colour stands for.
    const of = (on) => noise.reduce((sum, one, i) => sum + (chosen.includes(i + 1) === on ? one : 0), 0);
    this.colours.replaceChildren(...[["favoured", true], ["the others", false]]
      .filter(([, on]) => of(on) > 0)
      .map(([word, on]) => {
        const said = `${chosen.length ? word : "all alike"} ${percent(of(on) / all)}`;
        return make("span", "", { "data-chosen": on }, said);
      }));
    const most = noise.indexOf(Math.max(...noise));
    this.noise.setAttribute("aria-label", `Noise: most on ${this.parts[most].title}`);
  }

  /** Most that a share can have: what is not locked, but for the least of each other one. */
  most(i) {
    const { least } = this.data;
    let fixed = 0;
    let others = 0;
    this.shares.forEach((share, j) => {
      if (j !== i && this.locked[j]) fixed += share;
      else if (j !== i) others += 1;
    });
    return others ? 1 - fixed - others * least : this.shares[i];
  }

  /** Number of other shares that can give or take. */
  room(i) {
    return this.locked.filter((lock, j) => j !== i && !lock).length;
  }

  /** Put a share at its place; the unlocked others give or take in proportion. */
  move(i, share) {
    if (this.locked[i]) {
      this.note.textContent = `${this.data.names[i]} is locked.`;
      return false;
    }
    if (!this.room(i)) {
      this.note.textContent = "All other shares are locked, so this share cannot change.";
      return false;
    }
    const stays = this.locked.slice();
    stays[i] = true;
    const shares = this.shares.slice();
    shares[i] = Math.min(Math.max(share, this.data.least), this.most(i));
    this.shares = rebalanced(shares, stays, this.data.least);
    this.last = i;
    this.note.textContent = "";
    this.show();
    return true;
  }

  drag(track, i) {
    let start = 0, touch = false, moved = false;
    const follow = ({ clientX }) => {
      const box = track.getBoundingClientRect();
      moved = this.move(i, Math.min(Math.max((clientX - box.left) / box.width, 0), 1)) || moved;
    };
    const grab = (event) => {
      if (event.button) return false;
      [start, touch, moved] = [event.clientX, event.pointerType === "touch", false];
      this.root.toggleAttribute("data-dragging", true);
      if (!touch) follow(event);
    };
    const drop = (event) => {
      this.root.removeAttribute("data-dragging");
      if (event.type === "pointerup" && touch && !moved) follow(event);
      if (moved) this.tell();
    };
    // Ignore small finger moves, because they may be the start of scrolling.
    const go = (event) => { if (moved || !touch || Math.abs(event.clientX - start) >= 6) follow(event); };
    dragged(track, grab, go, drop);
  }

  key(event, i) {
    const page = { PageDown: -0.1, PageUp: 0.1 }[event.key];
    const step = page ?? (event.key in ARROWS ? 0.01 * ARROWS[event.key] : undefined);
    const end = { Home: 0, End: 1 }[event.key];
    if (step === undefined && end === undefined) return;
    event.preventDefault();
    const rounded = Math.round(100 * (this.shares[i] + (step ?? 0))) / 100;
    if (!this.move(i, end ?? rounded)) return;
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.tell(), REST);
  }

  turn(i) {
    this.locked[i] = !this.locked[i];
    this.note.textContent = "";
    this.show();
  }

  tell() {
    clearTimeout(this.timer);
    this.send({ shares: this.shares, locked: this.locked, moved: this.last });
  }
}
