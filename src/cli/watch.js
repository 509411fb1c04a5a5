"use strict";
// The page of nas-watch: asks for the state of a run again and again, and shows it. Every text of the run
// enters the page as text, never as markup.

const SECOND = 1000;
const SHOWN = 30;  // rows of the table of evaluations
const HELD_OUT = 1e6;  // the first replicate of a re-test: its seed 1
const seedOf = (replicate) => replicate < HELD_OUT ? replicate : replicate - HELD_OUT + 1;
const byId = (id) => document.getElementById(id);

let state = null;
let tag = null;
let lost = false;
let skew = 0;  // milliseconds that the other machine's clock is ahead
let all = false;
const candidates = new Map();
const evaluations = new Map();
let order = 0;

// --- Words ---

function number(value) {
  if (value === null || value === undefined) return "";
  const size = Math.abs(value);
  if (size >= 1e5) {
    const prefixes = [[1e15, "P"], [1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];
    const [unit, name] = prefixes.find(([least]) => size >= .9995 * least);
    if (size >= 999.5e15) return value.toExponential(2);
    return `${Number((value / unit).toPrecision(3))} ${name}`;
  }
  return size >= 1 || size === 0 ? String(Number(value.toFixed(2))) : String(Number(value.toPrecision(3)));
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
const seconds = (time) => (Date.now() + skew - Date.parse(time)) / SECOND;
const nameOf = (c) => candidates.get(c)?.name ?? "?";

// --- Elements ---

function element(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(name, value);
  }
  made.append(...children.filter((child) => child !== null));
  return made;
}

function mechanism(c) {
  const own = candidates.get(c);
  const made = element("span", {class: "mechanism", title: own?.label});
  nameOf(c).split("|").forEach((gene, i) => {
    if (i > 0) made.append("|", element("wbr"));
    made.append(gene);
  });
  return made;
}

const tile = (value, what, more = null) =>
  element("div", {}, element("b", {}, value), element("span", {}, what), more);

function bar(share) {
  const inside = element("div");
  inside.style.width = `${Math.min(100, 100 * share)}%`;
  return element("div", {class: "bar"}, inside);
}

// --- The state in words ---

function stateWords() {
  const {phase, progress, at_work: work} = state;
  const words = phase === "silent" ? "Running, but nothing has been written for a while" : phase;
  const done = progress.of !== null
    ? `${progress.done.toLocaleString("en")} of ${plural(progress.of, progress.unit)}`
    : plural(progress.done, progress.unit);
  const parts = [`: ${done}`];
  if (work && work.stage !== "search") parts.push(`; ${work.stage}`);
  if (work && work.batch !== null) parts.push(`, generation ${work.batch + 1}`);
  if (phase === "finished" && state.ended_by) parts.push(`; ended by: ${state.ended_by}`);
  if (phase === "stopped") parts.push("; the same command continues");
  return [element("span", {class: "dot"}), element("b", {}, words), parts.join("")];
}

function elapsed() {
  const recorded = state.elapsed_seconds ?? 0;
  const running = state.phase === "running" || state.phase === "silent";
  return running && state.started ? Math.max(recorded, seconds(state.started)) : recorded;
}

function showHead() {
  const {phase, progress, counts, at_work: work} = state;
  document.documentElement.className = `broad ${phase}${lost ? " lost" : ""}`;
  document.title = `${progress.of ? `${progress.done}/${progress.of} ` : ""}${state.name} ${phase}`;
  byId("name").textContent = state.name;
  byId("place").textContent =
    [state.folder, state.host, state.started.replace("T", " ").replace("Z", " UTC")].filter((text) => text).join(" · ");
  byId("state").replaceChildren(...stateWords());
  const problem = lost ? "nas-watch does not answer any more: this is what it said last" : state.error;
  byId("problem").textContent = problem ?? "";
  byId("problem").hidden = !problem;
  byId("bar").hidden = !progress.of;
  if (progress.of) {
    byId("bar").firstElementChild.style.width = `${Math.min(100, 100 * progress.done / progress.of)}%`;
    byId("bar").setAttribute("aria-valuemax", progress.of);
    byId("bar").setAttribute("aria-valuenow", progress.done);
  }
  const tiles = [tile(duration(elapsed()), "elapsed")];
  if (phase === "running") {
    tiles.push(tile(state.left ? range(state.left) : "unknown", work && work.stage !== "search"
      ? `left of the ${work.stage}` : "left"));
  }
  const trained = (counts.evaluated + counts.outside).toLocaleString("en");
  const planned = progress.of !== null && progress.unit === "training run" ? ` of ${progress.of.toLocaleString("en")}` : "";
  tiles.push(tile(trained + planned, "training runs done"));
  state.best.forEach(({c, value}, i) => {
    tiles.push(tile(number(value), `best ${state.objectives[i].title}`,
                    state.objectives.length === 1 ? mechanism(c) : null));
  });
  if (state.baseline && state.objectives.length === 1) {
    tiles.push(tile(number(state.baseline.values[0]), "baseline", mechanism(state.baseline.c)));
  }
  if (state.hypervolume !== null) {
    tiles.push(tile(state.hypervolume.toFixed(3), "hypervolume"),
               tile(String(state.front.length), "on the front"));
  }
  for (const [key, what] of [["reused", "asks answered by known ones"], ["rejected", "rejected"],
                             ["stopped_early", "stopped early"], ["failures", "failed"]]) {
    if (counts[key] > 0) tiles.push(tile(counts[key].toLocaleString("en"), what));
  }
  byId("tiles").replaceChildren(...tiles);
  byId("words").textContent = state.verdict;
  byId("words").hidden = !state.verdict;
}

function showWork() {
  const work = state.at_work;
  const arrays = work ? work.arrays : [];
  byId("work").hidden = !work || state.phase !== "running";
  byId("arrays").replaceChildren(...arrays.map((array) => {
    const [first, ...others] = array.trainings;
    const title = element("p", {}, mechanism(first.c));
    if (others.length > 0) {
      title.append(element("span", {class: "note", title: others.map(({c}) => nameOf(c)).join("\n")},
                           ` and ${plural(others.length, "other")}`));
    } else if (first.replicate > 0) {
      title.append(element("span", {class: "note"}, ` seed ${seedOf(first.replicate)}`));
    }
    const loss = array.curve.length > 0 ? `, loss ${number(array.curve.at(-1)[1])}` : "";
    const step = array.steps > 0
      ? `step ${array.step.toLocaleString("en")} of ${array.steps.toLocaleString("en")}${loss}, ` : "";
    return element("div", {}, title, bar(array.steps > 0 ? array.step / array.steps : 0),
                   element("p", {class: "note"}, `${step}for ${duration(seconds(array.started))}`));
  }));
  if (!work) return;
  const parts = [plural(work.workers, "worker")];
  if (arrays.length === 0) parts.push("nothing trains at the moment");
  if (work.waiting > 0) parts.push(`${plural(work.waiting, "training run")} waiting`);
  if (work.asking > 0) parts.push(`${plural(work.asking, "ask")} not answered yet`);
  byId("waiting").textContent = parts.join(" · ");
}

// --- Tables ---

const cell = (text, left = false) => element("td", left ? {class: "left"} : {}, text);
const newest = () => [...evaluations.values()].sort((a, b) => b.order - a.order);

function showTables() {
  const rows = newest();
  byId("latest").hidden = rows.length === 0;
  const heads = [["mechanism", true], ["ask"], ["seed"], ["status", true],
                 ...state.objectives.map(({title}) => [title]), ["seconds"]];
  const head = (columns) => element("tr", {}, ...columns.map(([text, left]) =>
    element("th", left ? {class: "left"} : {}, text)));
  const table = byId("latest").querySelector("table");
  table.tHead.replaceChildren(head(heads));
  table.tBodies[0].replaceChildren(...rows.slice(0, all ? rows.length : SHOWN).map((row) => {
    const status = row.baseline ? `${row.status}, baseline` : row.status;
    const made = element("tr", {}, element("td", {class: "left"}, mechanism(row.c)),
      cell(row.ask === null ? "" : String(row.ask + 1)), cell(String(seedOf(row.replicate))),
      cell(status, true), ...state.objectives.map((_, i) => cell(number(row.values[i]))),
      cell(row.seconds > 0 ? number(row.seconds) : ""));
    if (!row.usable) made.cells[3].className = "left warn";
    return made;
  }));
  byId("more").hidden = rows.length <= SHOWN;
  byId("more").textContent = all ? `the latest ${SHOWN}` : `all ${rows.length.toLocaleString("en")}`;
  const allFailures = rows.filter((row) => !row.usable && row.status !== "rejected");
  const failures = allFailures.slice(0, SHOWN);
  byId("failed").hidden = failures.length === 0;
  byId("failed-shown").hidden = failures.length === allFailures.length;
  byId("failed-shown").textContent = `the latest ${failures.length} of ${allFailures.length.toLocaleString("en")}`;
  const failed = byId("failed").querySelector("table");
  failed.tHead.replaceChildren(head([["mechanism", true], ["status", true], ["reason", true]]));
  failed.tBodies[0].replaceChildren(...failures.map((row) => element("tr", {},
    element("td", {class: "left"}, mechanism(row.c)), cell(row.status, true),
    element("td", {class: "reason"}, row.reason))));
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
  const left = 14 + Math.max(...marksUp.map((mark) => pen.measureText(number(mark)).width), 20);
  const [top, right, bottom] = [22, 12, 40];
  const across = (value) => left + x.place(value) * (width - left - right);
  const up = (value) => height - bottom - y.place(value) * (height - top - bottom);
  pen.fillStyle = colour("muted");
  pen.strokeStyle = colour("grid");
  pen.textBaseline = "middle";
  pen.textAlign = "right";
  for (const mark of marksUp) {
    pen.beginPath();
    pen.moveTo(left, up(mark));
    pen.lineTo(width - right, up(mark));
    pen.stroke();
    pen.fillText(number(mark), left - 6, up(mark));
  }
  pen.textAlign = "center";
  for (const mark of marksAcross) pen.fillText(number(mark), across(mark), height - bottom + 14);
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
  const tip = byId("tip");
  tip.hidden = found === null;
  if (found === null) return;
  tip.replaceChildren(element("b", {}, found.title), found.text);
  const size = tip.getBoundingClientRect();
  tip.style.left = `${Math.max(8, Math.min(innerWidth - size.width - 8, event.clientX + 14))}px`;
  tip.style.top = `${event.clientY + size.height + 20 < innerHeight ? event.clientY + 14 : event.clientY - size.height - 14}px`;
}

const usable = () => [...candidates.values()].filter((one) => one.values && one.values.every((v) => v !== null));

/// The objectives of the axes: the first two, unless others are chosen.
function chosenAxes() {
  const titles = state.objectives.map(({title}) => title);
  byId("axes").hidden = titles.length < 3;
  ["across", "up"].forEach((id, i) => {
    const select = byId(id);
    const shown = [...select.options].map((option) => option.text);
    if (shown.length === titles.length && shown.every((title, j) => title === titles[j])) return;
    select.replaceChildren(...titles.map((title, j) => element("option", {value: j}, title)));
    select.value = String(i);
  });
  return [Number(byId("across").value), Number(byId("up").value)];
}

function drawFront(points) {
  const [i, j] = chosenAxes();
  const at = (values) => [values[i], values[j]];
  const baseline = state.baseline?.values;
  const everything = points.map((one) => at(one.values)).concat(baseline ? [at(baseline)] : []);
  const chart = frame(byId("found"), axis(everything.map(([x]) => x)), axis(everything.map(([, y]) => y)),
                      [state.objectives[i].title, state.objectives[j].title]);
  const front = new Set(state.front);
  const off = points.filter((one) => !front.has(one.c)), on = points.filter((one) => front.has(one.c));
  for (const one of off) dot(chart, at(one.values), points.length > 1000 ? 2.5 : 4, colour("pale"), colour("pale-edge"));
  if (state.objectives.length === 2) {
    line(chart, on.map((one) => at(one.values)).sort(([a], [b]) => a - b), colour("best"), 1, [3, 3]);
  }
  for (const one of on) dot(chart, at(one.values), 6, colour("best"), colour("ground"));
  if (baseline) dot(chart, at(baseline), 8, null, colour("baseline"));
  const text = (values) => state.objectives.map(({title}, k) => `${title}: ${number(values[k])}`).join("\n");
  marks.set("found", points.map((one) => {
    const [x, y] = at(one.values);
    return {x: chart.across(x), y: chart.up(y), title: one.name,
            text: `${text(one.values)}\n${plural(one.n, "seed")}${front.has(one.c) ? ", on the front" : ""}`};
  }).concat(baseline ? [{x: chart.across(at(baseline)[0]), y: chart.up(at(baseline)[1]),
                         title: nameOf(state.baseline.c), text: `${text(baseline)}\nbaseline`}] : []));
  byId("search-title").textContent = `Front: ${plural(on.length, "mechanism")} of ${points.length.toLocaleString("en")}`;
  legend("found-legend", [["round c-best", "on the front"], ["round c-pale", "others"],
                          ...(baseline ? [["ring", "baseline"]] : [])]);
}

function drawProgress(points) {
  const [objective] = state.objectives;
  const sorted = points.sort((a, b) => a.ask - b.ask);
  const baseline = state.baseline?.values[0];
  const values = sorted.map((one) => one.values[0]).concat(baseline ?? []);
  const last = Math.max(state.progress.unit === "ask" ? state.progress.of ?? 0 : 0, ...sorted.map((one) => one.ask + 1));
  const chart = frame(byId("found"), axis([1, last], {whole: true, plain: true}), axis(values), ["asks", objective.title]);
  const better = (a, b) => objective.maximise ? a > b : a < b;
  const steps = [];
  for (const one of sorted) {
    dot(chart, [one.ask + 1, one.values[0]], 3.5, colour("pale"), colour("pale-edge"));
    if (one.stopped) continue;
    const best = steps.at(-1)?.[1];
    if (best !== undefined && !better(one.values[0], best)) continue;
    if (best !== undefined) steps.push([one.ask + 1, best]);
    steps.push([one.ask + 1, one.values[0]]);
  }
  if (steps.length > 0) {
    steps.push([sorted.at(-1).ask + 1, steps.at(-1)[1]]);
    line(chart, steps, colour("best"), 2.2);
  }
  if (baseline !== undefined) line(chart, [[1, baseline], [last, baseline]], colour("baseline"), 1.5, [7, 5]);
  marks.set("found", sorted.map((one) => ({x: chart.across(one.ask + 1), y: chart.up(one.values[0]), title: one.name,
    text: `${objective.title}: ${number(one.values[0])}\nask ${one.ask + 1}, ${plural(one.n, "seed")}`})));
  byId("search-title").textContent = "Best so far";
  legend("found-legend", [["c-best", "best so far"], ["round c-pale", "mechanisms"],
                          ...(baseline !== undefined ? [["dashed c-baseline", "baseline"]] : [])]);
}

function drawFound() {
  const points = usable();
  byId("search").hidden = points.length === 0;
  if (points.length === 0) return;
  if (state.objectives.length > 1) drawFront(points);
  else drawProgress(points.filter((one) => one.ask >= 0));
  byId("found").setAttribute("aria-label", byId("search-title").textContent);
}

/// A learning curve, or the dot that a single validation is.
function course(chart, curve, ink, width) {
  if (curve.length > 1) line(chart, curve, ink, width);
  else dot(chart, curve[0], 2 + width, ink);
}

function drawCurves() {
  const done = [...evaluations.values()].filter((one) => one.curve.length > 0);
  const running = state.phase === "running" && state.at_work
    ? state.at_work.arrays.filter((array) => array.curve.length > 1) : [];
  byId("learning").hidden = done.length + running.length === 0;
  if (done.length + running.length === 0) return;
  const losses = [...done, ...running].flatMap(({curve}) => curve.map(([, loss]) => loss));
  losses.sort((a, b) => a - b);
  const low = losses[0];
  const high = Math.max(losses[Math.floor(.98 * (losses.length - 1))], ...running.map(({curve}) => curve.at(-1)[1]));
  const last = (curves) => curves.reduce((most, {curve}) => Math.max(most, curve.at(-1)[0]), 1);
  const steps = Math.max(last(done), last(running), ...running.map(({steps}) => steps));
  const chart = frame(byId("curves"), axis([0, steps], {whole: true, plain: true}), axis([low, high], {plain: true}),
                      ["step", "loss (nats per token)"]);
  const top = new Set(state.top);
  const best = [], ofBaseline = [], found = [];
  for (const one of done) {
    if (one.c === state.baseline?.c) ofBaseline.push(one);
    else if (top.has(one.c)) best.push(one);
    else course(chart, one.curve, colour("pale-edge"), .6);
  }
  for (const one of best) course(chart, one.curve, colour("best"), 1.8);
  for (const one of ofBaseline) course(chart, one.curve, colour("baseline"), 1.8);
  for (const array of running) line(chart, array.curve, colour("hot"), 2.6, [8, 3]);
  for (const one of [...best, ...ofBaseline, ...done.length <= 500 ? done : []]) {
    if (found.length > 4000) break;
    for (const [step, loss] of one.curve) {
      found.push({x: chart.across(step), y: chart.up(loss), title: nameOf(one.c),
                  text: `step ${step}: validation loss ${loss.toFixed(3)}`});
    }
  }
  for (const array of running) {
    const [step, loss] = array.curve.at(-1);
    found.push({x: chart.across(step), y: chart.up(loss), title: nameOf(array.trainings[0].c),
                text: `step ${step}: training loss ${loss.toFixed(3)}`});
  }
  marks.set("curves", found);
  byId("curves").setAttribute("aria-label", `Learning curves of ${plural(done.length, "training run")}`);
  legend("curves-legend", [["c-best", "the best, validation"],
    ...(ofBaseline.length > 0 ? [["c-baseline", "baseline, validation"]] : []), ["c-pale", "others"],
    ...(running.length > 0 ? [["dashed c-hot", "running, training loss"]] : [])]);
}

function draw() {
  if (!state) return;
  drawFound();
  drawCurves();
}

// --- The way of the state ---

function take(news) {
  if (news.whole) {
    candidates.clear();
    evaluations.clear();
  }
  for (const one of news.candidates) candidates.set(one.c, one);
  // The baseline comes before the search, a re-test after it.
  const turn = ({ask, replicate}) => ask ?? (replicate >= HELD_OUT ? Infinity : -1);
  news.evaluations.sort((a, b) => turn(a) === turn(b) ? a.replicate - b.replicate : turn(a) - turn(b));
  for (const one of news.evaluations) {
    one.order = evaluations.get(one.id)?.order ?? ++order;
    evaluations.set(one.id, one);
  }
  const changed = news.whole || news.candidates.length + news.evaluations.length > 0;
  state = news;
  showHead();
  showWork();
  if (changed) showTables();
  draw();
}

async function ask() {
  const since = state ? `&since=${state.version}` : "";
  try {
    const answer = await fetch(`state.json${location.search}${since}`,
                               {cache: "no-store", headers: tag ? {"If-None-Match": tag} : {}});
    if (!answer.ok && answer.status !== 304) throw new Error(`status ${answer.status}`);
    const date = Date.parse(answer.headers.get("Date") ?? "");
    if (!Number.isNaN(date)) skew = Math.abs(date - Date.now()) > 2 * SECOND ? date - Date.now() : 0;
    const was = lost;
    lost = false;
    if (answer.status !== 304) {
      tag = answer.headers.get("ETag");
      take(await answer.json());
    } else if (was) {
      showHead();
    }
  } catch (error) {
    lost = true;
    if (state) showHead();
    else byId("state").textContent = "nas-watch does not answer";
  }
  const live = state && (state.phase === "running" || state.phase === "silent");
  setTimeout(ask, (document.hidden ? 10 : live || !state ? 2 : 5) * SECOND);
}

byId("more").addEventListener("click", () => {
  all = !all;
  showTables();
});
for (const id of ["across", "up"]) byId(id).addEventListener("change", draw);
for (const id of ["found", "curves"]) {
  byId(id).addEventListener("pointermove", showTip);
  byId(id).addEventListener("pointerleave", () => { byId("tip").hidden = true; });
}
new ResizeObserver(draw).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
setInterval(() => {
  if (state && state.phase === "running" && !lost && !document.hidden) {
    showHead();
    showWork();
  }
}, SECOND);
ask();
