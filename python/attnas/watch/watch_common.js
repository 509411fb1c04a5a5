"use strict";
// What the pages of nas-watch share: words, elements, pictures, and the way of what is shown. Every text of a run enters a page as
// text, never as markup.

const SECOND = 1000;
const byId = (id) => document.getElementById(id);

let lost = false;  // nobody answers any more
let skew = 0;  // milliseconds that the other machine's clock is ahead

// --- Words ---

/// @param more  digits, above the usual ones.
function number(value, more = 0) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1e5) {
    const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const [unit, name] = prefixes.find(([least]) => size >= .9995 * least);
    if (size >= 999.5e15) return value.toExponential(2 + more);
    return `${Number((value / unit).toPrecision(3 + more))} ${name}`;
  }
  return size >= 1 || size === 0 ? String(Number(value.toFixed(2 + more))) : String(Number(value.toPrecision(3 + more)));
}

function duration(seconds) {
  const s = Math.max(0, Math.round(seconds));
  if (s < 60) return `${s} s`;
  const two = (n) => String(n).padStart(2, "0");
  if (s < 3600) return `${Math.floor(s / 60)} min ${two(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${two(Math.floor(s % 3600 / 60))} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor(s % 86400 / 3600)} h`;
}

function range([low, high]) {
  const units = [["d", 86400, 172800], ["h", 3600, 5400], ["min", 60, 90], ["s", 1, 0]];
  const [name, size] = units.find((unit) => high >= unit[2]) ?? units.at(-1);
  const rough = (x) => x < 9.5 ? Math.round(2 * x) / 2 : Math.round(x);
  const [a, b] = [rough(low / size), rough(high / size)];
  return `${a === b ? b : `${a} to ${b}`} ${name}`;
}

const plural = (count, what) => `${count.toLocaleString("en")} ${what}${count === 1 ? "" : "s"}`;

/// "7 of at most 60 training runs".
function progressText({done, of, unit, at_most: most}) {
  return of === null ? plural(done, unit) : `${done.toLocaleString("en")} of ${most ? "at most " : ""}${plural(of, unit)}`;
}
const seconds = (time) => (Date.now() + skew - Date.parse(time)) / SECOND;

// --- Elements ---

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

const tile = (value, what, more = null) =>
  element("div", {}, element("b", {}, value), element("span", {}, what), more);

function bar(share) {
  const inside = element("div");
  inside.style.width = `${Math.min(100, 100 * share)}%`;
  return element("div", {class: "bar"}, inside);
}

const cell = (text, left = false) => element("td", left ? {class: "left"} : {}, text);
const headRow = (columns) => element("tr", {}, ...columns.map(([text, left]) =>
  element("th", left ? {class: "left"} : {}, text)));

/// A name of a mechanism, which breaks between genes.
function mechanismOf(name, label = null) {
  const made = element("span", {class: "mechanism", title: label ?? name});
  name.split("|").forEach((gene, i) => {
    if (i > 0) made.append("|", element("wbr"));
    made.append(gene);
  });
  return made;
}

// --- Pictures ---

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/// Round numbers within two ends, about as many as asked for.
function ticks(low, high, count) {
  const raw = (high - low) / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].find((factor) => factor * power >= raw) * power;
  const found = [];
  for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; ++i) found.push(i * step);
  return found;
}

/// Texts of ticks, with as many digits as tell them apart and round none of them.
function tickTexts(values) {
  const texts = (more) => values.map((value) => number(value, more));
  let more = 0;
  while (more < 12 && (new Set(texts(more)).size < values.length || texts(more).join() !== texts(more + 1).join())) ++more;
  return texts(more);
}

function logTicks(low, high) {
  const found = [];
  for (let power = Math.floor(Math.log10(low)); power <= Math.log10(high); ++power) {
    for (const factor of [1, 2, 5]) {
      const value = factor * 10 ** power;
      if (value >= low && value <= high) found.push(value);
    }
  }
  return found;
}

/// An axis over values: logarithmic where they are of several magnitudes.
function axis(values, {whole = false, plain = false} = {}) {
  let low = Math.min(...values), high = Math.max(...values);
  const log = !plain && low > 0 && high / low > 20;
  if (low === high) [low, high] = whole ? [low - 1, high + 1] : [low - Math.abs(low) * .05 - 1e-9, high + Math.abs(high) * .05 + 1e-9];
  const map = log ? Math.log : (x) => x;
  const pad = whole ? 0 : .05 * (map(high) - map(low));
  const [from, to] = [map(low) - pad, map(high) + pad];
  const ends = log ? [Math.exp(from), Math.exp(to)] : [from, to];
  const marks = (count) => {
    const found = log ? logTicks(...ends) : ticks(...ends, count);
    const kept = found.filter((x) => !whole || Number.isInteger(x));
    const every = Math.ceil(kept.length / (count + 2));
    return kept.filter((_, i) => i % every === 0);
  };
  return {place: (x) => Math.min(1.02, Math.max(-.02, (map(x) - from) / (to - from))), marks};
}

/// A canvas with axes. @return what maps data to it.
function frame(canvas, x, y, titles) {
  const {clientWidth: width, clientHeight: height} = canvas;
  const ratio = window.devicePixelRatio || 1;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const pen = canvas.getContext("2d");
  pen.scale(ratio, ratio);
  pen.font = "12px system-ui, Helvetica, Arial, sans-serif";
  const marksUp = y.marks(5), marksAcross = x.marks(width < 420 ? 4 : 7);
  const [textsUp, textsAcross] = [tickTexts(marksUp), tickTexts(marksAcross)];
  const left = 14 + Math.max(...textsUp.map((text) => pen.measureText(text).width), 20);
  const [top, right, bottom] = [22, 12, 40];
  const across = (value) => left + x.place(value) * (width - left - right);
  const up = (value) => height - bottom - y.place(value) * (height - top - bottom);
  pen.fillStyle = colour("muted");
  pen.strokeStyle = colour("grid");
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const [i, mark] of marksUp.entries()) {
    pen.beginPath();
    pen.moveTo(left, up(mark));
    pen.lineTo(width - right, up(mark));
    pen.stroke();
    pen.fillText(textsUp[i], left - 6, up(mark));
  }
  pen.textAlign = "center";
  for (const [i, mark] of marksAcross.entries()) {
    const half = pen.measureText(textsAcross[i]).width / 2;
    pen.fillText(textsAcross[i], Math.min(across(mark), width - half), height - bottom + 14);
  }
  pen.fillText(titles[0], (left + width - right) / 2, height - 10);
  pen.textAlign = "left";
  pen.fillText(titles[1], 2, 9);
  pen.beginPath();
  pen.rect(left - 4, top - 4, width - left - right + 8, height - top - bottom + 8);
  pen.clip();
  return {pen, across, up};
}

function dot({pen, across, up}, [x, y], radius, fill, edge = null) {
  pen.beginPath();
  pen.arc(across(x), up(y), radius, 0, 2 * Math.PI);
  if (fill) {
    pen.fillStyle = fill;
    pen.fill();
  }
  if (edge) {
    pen.strokeStyle = edge;
    pen.lineWidth = fill ? 1.5 : 2;
    pen.stroke();
  }
}

function line({pen, across, up}, points, ink, width, dashes = []) {
  pen.beginPath();
  pen.strokeStyle = ink;
  pen.lineWidth = width;
  pen.setLineDash(dashes);
  points.forEach(([x, y], i) => i === 0 ? pen.moveTo(across(x), up(y)) : pen.lineTo(across(x), up(y)));
  pen.stroke();
  pen.setLineDash([]);
}

function legend(id, entries) {
  byId(id).replaceChildren(...entries.map(([mark, text]) =>
    element("span", {}, element("i", {class: mark}), text)));
}

/// Marks of a canvas, to be found under the pointer: {x, y, text} in its pixels.
const marks = new Map();

function showTip(event) {
  const canvas = event.currentTarget;
  const box = canvas.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let found = null, best = 24;
  for (const mark of marks.get(canvas.id) ?? []) {
    const distance = Math.hypot(mark.x - x, mark.y - y);
    if (distance < best) [found, best] = [mark, distance];
  }
  if (found === null) byId("tip").hidden = true;
  else placeTip(event, found);
}

function placeTip(event, {title, text}) {
  const tip = byId("tip");
  tip.hidden = false;
  tip.replaceChildren(element("b", {}, title), text);
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(innerWidth - size.width - 8, event.clientX + 14))}px`;
  tip.style.top = `${event.clientY + size.height + 20 < innerHeight ? event.clientY + 14 : event.clientY - size.height - 14}px`;
}

/// Lines of up to 20 things that are told apart by colour and, every five, by dashes: colour-blind readers tell them apart, too.
const DASHES = [[], [7, 3], [2, 2.5], [9, 3, 2, 3]];
const lineStyle = (i) => ({ink: colour(`c${i % 5}`), dashes: DASHES[Math.floor(i / 5) % DASHES.length]});

/// A line of a legend with its dashes.
function sample({ink, dashes}) {
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  const stroke = document.createElementNS("http://www.w3.org/2000/svg", "path");
  for (const [made, attributes] of [[svg, {viewBox: "0 0 34 8", class: "sample"}],
                                    [stroke, {d: "M0 4H34", stroke: ink, "stroke-width": 2.6, "stroke-dasharray": dashes.join(" ")}]]) {
    for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  }
  svg.append(stroke);
  return svg;
}

// --- The way of what is shown ---

/// Asks for what is new again and again.
/// @param target   what to ask for, made anew each time.
/// @param take     takes it; what it returns are the seconds until it is asked for again.
/// @param changed  after it became known whether anybody answers.
/// @return what asks at once.
function follow(target, take, changed) {
  let tag = null, pause = 2, timer = null, asked = 0;
  const ask = async () => {
    const turn = ++asked;  // an earlier answer that comes later is dropped
    clearTimeout(timer);
    try {
      const answer = await fetch(target(), {cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}});
      if (!answer.ok && answer.status !== 304) throw new Error(`status ${answer.status}`);
      if (turn !== asked) return;
      const date = Date.parse(answer.headers.get("Date") ?? "");
      if (!Number.isNaN(date)) skew = Math.abs(date - Date.now()) > 2 * SECOND ? date - Date.now() : 0;
      const was = lost;
      lost = false;
      if (answer.status !== 304) {
        tag = answer.headers.get("ETag");
        const news = await answer.json();
        if (turn !== asked) return;
        pause = take(news);
      } else if (was) {
        changed();
      }
    } catch (error) {
      if (turn !== asked) return;
      lost = true;
      changed();
    }
    timer = setTimeout(ask, (document.hidden ? 10 : pause) * SECOND);
  };
  ask();
  return ask;
}
