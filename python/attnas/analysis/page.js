"use strict";
// Tips for marks, a table to sort and filter, texts to copy. Without this script the page still
// shows everything, with the browser's own tips.
window.addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
});

const tip = document.getElementById("tip");
const reach = 28; // pixels from which a mark is found

function lightUp(number) {
  for (const element of document.querySelectorAll(".hot")) element.classList.remove("hot");
  if (number === undefined) return;
  for (const element of document.querySelectorAll(`[data-m="${CSS.escape(number)}"]`)) {
    element.classList.add("hot");
  }
}

function hide() {
  tip.hidden = true;
  lightUp(undefined);
}

function show(mark) {
  const [name, ...lines] = mark.dataset.tip.split("\n");
  const bold = document.createElement("b");
  bold.textContent = name;
  tip.replaceChildren(bold, lines.join("\n"));
  tip.hidden = false;
  const box = mark.getBoundingClientRect();
  const own = tip.getBoundingClientRect();
  const left = box.left + box.width / 2 - own.width / 2;
  const above = box.top - own.height - 8;
  tip.style.left = `${Math.max(8, Math.min(left, innerWidth - own.width - 8))}px`;
  tip.style.top = `${above > 50 ? above : box.bottom + 8}px`;
  lightUp(mark.dataset.m);
}

function middle(mark) {
  const box = mark.getBoundingClientRect();
  return [box.left + box.width / 2, box.top + box.height / 2];
}

// The mark under the pointer, or the one whose middle is nearest to it.
function nearest(marks, event) {
  const under = event.target.closest(".mark");
  if (under) return under;
  let found = null;
  let least = reach;
  for (const mark of marks) {
    const [x, y] = middle(mark);
    const distance = Math.hypot(x - event.clientX, y - event.clientY);
    if (distance < least) [found, least] = [mark, distance];
  }
  return found;
}

let numMarks = 0;
for (const svg of document.querySelectorAll("svg")) {
  const marks = [...svg.querySelectorAll(".mark")];
  numMarks += marks.length;
  for (const mark of marks) {
    const title = mark.querySelector("title");
    mark.dataset.tip = title.textContent;
    title.remove();
  }
  const point = (event) => {
    const mark = nearest(marks, event);
    if (mark) show(mark);
    else hide();
  };
  svg.addEventListener("pointermove", point);
  svg.addEventListener("pointerdown", point);
  svg.addEventListener("pointerleave", (event) => {
    if (event.pointerType === "mouse") hide();
  });
  svg.addEventListener("blur", hide);
  let at = -1;
  svg.addEventListener("keydown", (event) => {
    if (event.key === "Escape") return hide();
    const step = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1 }[event.key];
    if (!step || marks.length === 0) return;
    event.preventDefault();
    at = at < 0 && step < 0 ? marks.length - 1 : (at + step + marks.length) % marks.length;
    show(marks[at]);
  });
}
addEventListener("scroll", hide, { passive: true });
for (const row of document.querySelectorAll("tr[data-m]")) {
  row.addEventListener("pointerenter", () => lightUp(row.dataset.m));
  row.addEventListener("pointerleave", () => lightUp(undefined));
}

for (const table of document.querySelectorAll("table.sortable")) {
  const body = table.tBodies[0];
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, column) => {
    const button = head.querySelector("button");
    if (!button) return;
    button.addEventListener("click", () => {
      const up = head.getAttribute("aria-sort") !== "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", up ? "ascending" : "descending");
      const key = (row) => row.cells[column].dataset.v;
      const compare = (a, b) => {
        if (a === undefined || b === undefined) return (a === undefined) - (b === undefined);
        const numbers = a - b;
        const order = Number.isNaN(numbers) ? a.localeCompare(b) : numbers;
        return up ? order : -order;
      };
      body.append(...[...body.rows].sort((a, b) => compare(key(a), key(b))));
    });
  });
}

for (const input of document.querySelectorAll("input[type=search]")) {
  const rows = [...document.querySelectorAll(`#${input.dataset.filters} tbody tr`)];
  const left = document.getElementById(input.dataset.counts);
  input.addEventListener("input", () => {
    const words = input.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of rows) {
      const text = row.textContent.toLowerCase();
      row.hidden = !words.every((word) => text.includes(word));
      shown += row.hidden ? 0 : 1;
    }
    left.textContent = `${shown} of ${rows.length}`;
  });
}

for (const button of document.querySelectorAll(".copy")) {
  button.addEventListener("click", async () => {
    const text = button.nextElementSibling;
    try {
      await navigator.clipboard.writeText(text.textContent);
    } catch {
      getSelection().selectAllChildren(text); // a page from a file may not write: copy by hand
      document.execCommand("copy");
    }
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });
}

// Maps of sentences: one sentence and one head at a time, with tokens on both axes.
function drawMap(space, sentence, head) {
  const make = (name, attributes, text) => {
    const made = document.createElementNS(space, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const words = sentence.tokens.map((token) => (token.length > 14 ? `${token.slice(0, 13)}\u2026` : token));
  const side = words.length > 48 ? 12 : 18;
  const longest = Math.max(...words.map((word) => word.length));
  const left = 12 + 7.4 * longest;
  const top = 12 + 7.4 * longest * 0.8;
  const width = left + side * words.length + 7 * longest;
  const svg = make("svg", { viewBox: `0 0 ${width} ${top + side * words.length + 6}`, class: "tokens",
    role: "img", "aria-label": "weights of each token on those before it" });
  svg.style.width = `${width}px`;
  words.forEach((word, i) => {
    const middle = side * (i + 0.5);
    svg.append(make("text", { x: left - 5, y: top + middle + 4, "text-anchor": "end", class: "code" }, word));
    svg.append(make("text", { transform: `translate(${left + middle + 3} ${top - 5}) rotate(-52)`, class: "code" }, word));
    head.rows[i].forEach((weight, j) => {
      const cell = make("rect", { x: left + side * j, y: top + side * i, width: side - 1, height: side - 1,
        class: weight < 0 ? "fill c1" : "fill c0", "fill-opacity": Math.sqrt(Math.min(1, Math.abs(weight))).toFixed(3) });
      cell.append(make("title", {}, `${word} looks at ${words[j]}: ${weight}`));
      svg.append(cell);
    });
  });
  svg.append(make("path", { class: "axis", fill: "none",
    d: `M${left} ${top}V${top + side * words.length}H${left + side * words.length}` }));
  return svg;
}

for (const box of document.querySelectorAll(".sentences")) {
  const sentences = JSON.parse(box.querySelector("script").textContent);
  const [which, head] = box.querySelectorAll("select");
  const space = box.querySelector("svg").namespaceURI;
  const draw = () => {
    const sentence = sentences[which.value];
    box.querySelector(".map").replaceChildren(drawMap(space, sentence, sentence.heads[head.value]));
  };
  which.addEventListener("change", draw);
  head.addEventListener("change", draw);
  box.querySelector(".choices").hidden = false;
  draw();
}

const links = new Map([...document.querySelectorAll("nav a")].map((a) => [a.hash.slice(1), a]));
const watcher = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    links.get(entry.target.id)?.classList.toggle("here", entry.isIntersecting);
  }
}, { rootMargin: "-15% 0px -75% 0px" });
for (const section of document.querySelectorAll("section")) watcher.observe(section);

document.documentElement.dataset.marks = String(numMarks);
