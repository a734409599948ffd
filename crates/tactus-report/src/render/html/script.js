"use strict";
// Values under the pointer: the data of each figure stands beside it.
for (const plot of document.querySelectorAll("figure.plot")) {
  const data = plot.querySelector("script.hover-data");
  if (!data) continue;
  const hover = JSON.parse(data.textContent);
  const canvas = plot.querySelector(".canvas");
  const svg = canvas.querySelector("svg");
  if (!hover.spots.length || !svg) continue;
  const line = document.createElementNS("http://www.w3.org/2000/svg", "line");
  line.setAttribute("class", "cursor");
  line.setAttribute("y1", hover.top);
  line.setAttribute("y2", hover.bottom);
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  canvas.append(tip);
  const show = (event) => {
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    const x = (event.clientX - box.left) * scale;
    let low = 0, high = hover.spots.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (hover.spots[middle].x < x) low = middle + 1; else high = middle;
    }
    if (low > 0 && x - hover.spots[low - 1].x < hover.spots[low].x - x) low -= 1;
    const spot = hover.spots[low];
    line.setAttribute("x1", spot.x);
    line.setAttribute("x2", spot.x);
    svg.append(line);
    tip.replaceChildren(...spot.text.map((text, n) => {
      const row = document.createElement(n ? "div" : "strong");
      row.textContent = text;
      return row;
    }));
    tip.hidden = false;
    const at = spot.x / scale;
    const left = at + 14 + tip.offsetWidth > box.width ? at - 14 - tip.offsetWidth : at + 14;
    tip.style.left = Math.max(0, left) + "px";
    tip.style.top = hover.top / scale + 6 + "px";
  };
  const hide = () => { tip.hidden = true; line.remove(); };
  canvas.addEventListener("pointermove", show);
  canvas.addEventListener("pointerdown", show);
  canvas.addEventListener("pointerleave", hide);
}
// Find in the readings of all environments.
const filter = document.getElementById("filter");
if (filter) {
  filter.closest(".filter").hidden = false;
  filter.addEventListener("input", () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    for (const group of document.querySelectorAll(".readings")) {
      let found = 0;
      for (const row of group.querySelectorAll("tr")) {
        const text = row.textContent.toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        found += row.hidden ? 0 : 1;
      }
      group.open = words.length > 0 && found > 0;
    }
  });
}
// What is folded is printed as well.
const unfolded = [];
addEventListener("beforeprint", () => {
  for (const part of document.querySelectorAll("details.section:not([open]), details.row:not([open]), details.folded:not([open])")) {
    part.open = true;
    unfolded.push(part);
  }
});
addEventListener("afterprint", () => {
  for (const part of unfolded.splice(0)) part.open = false;
});
// A link leads to what it names, also where that is folded.
const unfold = () => {
  const target = document.getElementById(location.hash.slice(1));
  for (let part = target; part; part = part.parentElement)
    if (part instanceof HTMLDetailsElement) part.open = true;
  target?.scrollIntoView();
};
addEventListener("hashchange", unfold);
unfold();
