// Shares of the precision as bars: dragged, or moved by arrow keys, with locks. All of it happens
// here until a bar is let go; then the page is told what the shares are.
const held = new WeakMap(); // the bars of each place in the page
const OPEN = "M5 7V5a3 3 0 0 1 5.8-1M3.5 7h9v6.5h-9z";
const SHUT = "M5 7V5a3 3 0 0 1 6 0v2M3.5 7h9v6.5h-9z";
const REST = 400; // milliseconds without a key before the page is told

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

const percent = DpvizNumbers.percent; // number_text.js, before this in one module

class Bars {
  constructor(parent, send) {
    this.send = send;
    this.root = document.createElement("div");
    this.root.className = "sh";
    this.root.innerHTML = `<div class="sh-head"><strong></strong><span class="sh-said"></span></div>
      <div class="sh-flow"><span>Noise</span><div role="img"></div><p></p></div>
      <div class="sh-list" role="group"></div><p class="sh-note" role="status"></p>`;
    this.title = this.root.querySelector("strong");
    this.said = this.root.querySelector(".sh-said");
    this.list = this.root.querySelector(".sh-list");
    this.note = this.root.querySelector(".sh-note");
    this.flow = this.root.querySelector(".sh-flow");
    [, this.noise, this.colours] = this.flow.children;
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
    this.list.replaceChildren();
    this.noise.replaceChildren(...this.data.names.map(() => document.createElement("i")));
    this.rows = this.data.names.map((name, i) => {
      const row = document.createElement("div");
      row.className = "sh-row";
      row.innerHTML = `<span class="sh-name"></span>
        <div class="sh-track" role="slider" tabindex="0" aria-valuemin="0" aria-valuemax="100">
          <div class="sh-fill"></div><div class="sh-equal"></div></div>
        <span class="sh-value"></span>
        <button class="sh-lock" type="button"><svg viewBox="0 0 16 16" fill="none"
          stroke="currentColor" stroke-width="1.5" aria-hidden="true"><path/></svg></button>`;
      const part = (kind) => row.querySelector(kind);
      const found = {
        row, track: part(".sh-track"), fill: part(".sh-fill"), equal: part(".sh-equal"),
        value: part(".sh-value"), lock: part(".sh-lock"), path: part("path"),
      };
      part(".sh-name").textContent = name;
      part(".sh-name").title = name;
      found.track.setAttribute("aria-label", `Share of ${name}`);
      found.track.addEventListener("pointerdown", (event) => this.grab(event, i));
      found.track.addEventListener("keydown", (event) => this.key(event, i));
      found.lock.addEventListener("click", () => this.turn(i));
      this.list.append(row);
      return found;
    });
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
      one.lock.title = this.locked[i] ? "Locked: it stays" : "Lock: let it stay";
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
    [...this.noise.children].forEach((part, i) => {
      part.style.flexGrow = noise[i] / all;
      part.toggleAttribute("data-chosen", chosen.includes(i + 1));
      part.title = `${names[i]}: ${percent(noise[i] / all)} of the noise`;
    });
    // what the two colours are, and how much of the noise each has
    const of = (on) => noise.reduce((sum, one, i) => sum + (chosen.includes(i + 1) === on ? one : 0), 0);
    this.colours.replaceChildren(...[["favoured", true], ["the others", false]]
      .filter(([, on]) => of(on) > 0)
      .map(([word, on]) => {
        const said = document.createElement("span");
        said.toggleAttribute("data-chosen", on);
        said.textContent = `${chosen.length ? word : "all alike"} ${percent(of(on) / all)}`;
        return said;
      }));
    const most = noise.indexOf(Math.max(...noise));
    this.noise.setAttribute("aria-label", `Noise: most on ${this.noise.children[most].title}`);
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
      this.note.textContent = "All others are locked: none can give or take.";
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

  grab(event, i) {
    if (event.button) return;
    const { track } = this.rows[i];
    const start = event.clientX;
    const at = (x) => {
      const box = track.getBoundingClientRect();
      return Math.min(Math.max((x - box.left) / box.width, 0), 1);
    };
    let moved = false;
    const follow = (next) => {
      // A finger that means to scroll has not moved a bar yet.
      if (!moved && event.pointerType === "touch" && Math.abs(next.clientX - start) < 6) return;
      moved = this.move(i, at(next.clientX)) || moved;
    };
    const stop = (next) => {
      track.removeEventListener("pointermove", follow);
      track.removeEventListener("pointerup", stop);
      track.removeEventListener("pointercancel", stop);
      this.root.removeAttribute("data-dragging");
      if (next.type === "pointerup" && event.pointerType === "touch" && !moved) {
        moved = this.move(i, at(next.clientX));
      }
      if (moved) this.tell();
    };
    track.setPointerCapture(event.pointerId);
    this.root.toggleAttribute("data-dragging", true);
    track.addEventListener("pointermove", follow);
    track.addEventListener("pointerup", stop);
    track.addEventListener("pointercancel", stop);
    if (event.pointerType !== "touch") moved = this.move(i, at(event.clientX));
  }

  key(event, i) {
    const step = { ArrowLeft: -0.01, ArrowDown: -0.01, ArrowRight: 0.01, ArrowUp: 0.01,
                   PageDown: -0.1, PageUp: 0.1 }[event.key];
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
