// Opens a promise's evidence below its group, and reports button presses to the page.
export default function ({ parentElement, data, setTriggerValue }) {
  let mine = parentElement.dpvizShelves;
  if (!mine) {
    const root = document.createElement("div");
    parentElement.append(root);
    mine = parentElement.dpvizShelves = { root, open: null };
    root.addEventListener("click", ({ target }) => {
      const item = target.closest("[data-opens]");
      if (item) show(mine, mine.open === item.dataset.opens ? null : item.dataset.opens);
      const lead = target.closest(".dp-go");
      if (lead) mine.tell("open", { ...lead.dataset });
    });
  }
  mine.tell = setTriggerValue;
  if (mine.data !== data) {
    mine.data = data;
    mine.root.innerHTML = data;
    show(mine, mine.open); // The evidence stays open if a setting changes.
  }
}

function show(mine, key) {
  mine.open = key;
  for (const item of mine.root.querySelectorAll("[data-opens]")) {
    item.setAttribute("aria-expanded", String(item.dataset.opens === key));
  }
  for (const box of mine.root.querySelectorAll(".dp-evidence")) {
    box.hidden = box.id !== `claim-${key}`;
    if (!box.hidden) box.scrollIntoView({ block: "nearest" });
  }
}
