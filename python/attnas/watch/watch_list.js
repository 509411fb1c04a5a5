// The page of a list of runs: their rows, and their best values so far in one picture.

let shown = null;  // what nas-watch said last
let rows = [];     // of the table, in its order
let hot = null;    // number of the run that is pointed at
let clocks = [];   // [cell, row] of what runs
let picked = null; // the group that was chosen

const isLive = ({phase}) => phase === "running" || phase === "silent";

// --- Words ---

function elapsed(row) {
  const recorded = row.elapsed_seconds ?? 0;
  return isLive(row) && row.started ? Math.max(recorded, seconds(row.started)) : recorded;
}

/// How far the best is from the baseline; empty where that is unknown.
function difference({best, baseline, objective}) {
  if (!best || best.value === null || baseline === null) return "";
  const gain = objective.maximise ? best.value - baseline : baseline - best.value;
  if (gain === 0) return "equal";
  const word = gain > 0 ? "better" : "worse";
  const size = Math.abs(gain), percent = 100 * size / baseline;
  const short = (value) => value < 10 ? Number(value.toPrecision(2)) : number(value);
  if (objective.name === "accuracy") return `${short(100 * size)} points ${word}`;
  return baseline > 0 ? `${short(percent)} % ${word}` : `${number(size)} ${word}`;
}

// --- The table ---

function stateCell(row) {
  const made = element("td", {class: `left ${row.phase}`, title: row.error ?? row.ended_by},
                       element("span", {class: "dot"}), row.phase);
  if (row.error) made.append(element("span", {class: "warn"}, ", not readable now"));
  return made;
}

function valueCell(value, objective, oneObjective) {
  const made = cell(number(value));
  if (!oneObjective && value !== null && value !== undefined) made.append(element("span", {class: "note"}, ` ${objective.title}`));
  return made;
}

function rowOf(row, oneObjective) {
  const name = element("td", {class: "left"});
  const made = element("tr", {"data-run": row.number, class: row.number === hot ? "hot" : null}, name);
  if (!row.phase) {
    name.append(row.run);
    made.append(element("td", {class: "left warn reason", colspan: 7}, element("div", {}, row.error)));
    return made;
  }
  name.append(element("a", {href: `run/${row.number}/${location.search}`, title: row.title},
                      ...row.run.split(/(?<=[,/])/).flatMap((part) => [part, element("wbr")])));
  const progress = element("td", {class: "left"}, progressText(row.progress));
  if (row.progress.of) progress.append(bar(row.progress.done / row.progress.of));
  const time = cell(duration(elapsed(row)));
  if (isLive(row)) clocks.push([time, row]);
  const best = element("td", {class: "left"});
  if (row.best) best.append(mechanismOf(row.best.name, row.best.label));
  made.append(stateCell(row), progress, time, best, valueCell(row.best?.value, row.objective, oneObjective),
              cell(number(row.baseline)), cell(difference(row)));
  return made;
}

function showTable() {
  clocks = [];
  const titles = new Set(rows.filter(({best}) => best).map(({objective}) => objective.title));
  const table = byId("list").querySelector("table");
  byId("list").hidden = rows.length === 0;
  table.tHead.replaceChildren(headRow([["run", true], ["state", true], ["progress", true], ["time"], ["best mechanism", true],
    [titles.size === 1 ? [...titles][0] : "value"], ["baseline"], ["difference"]]));
  table.tBodies[0].replaceChildren(...rows.map((row) => rowOf(row, titles.size === 1)));
}

function showHead() {
  const folders = shown.folders.join(" · ");
  const counts = ["running", "silent", "stopped", "finished"].map((phase) => [phase, rows.filter((row) => row.phase === phase).length]);
  const told = counts.filter(([, count]) => count > 0).map(([phase, count]) => `${count.toLocaleString("en")} ${phase}`);
  const broken = rows.filter(({phase}) => !phase).length;
  if (broken > 0) told.push(`${broken} not readable`);
  byId("counts").textContent = `${plural(rows.length, "run")}: ${told.join(", ")}`
    + (shown.unread > 0 ? `; reading ${shown.unread.toLocaleString("en")} more ...` : "");
  byId("place").textContent = folders;
  document.title = `${told.join(", ")}: ${folders}`;
}

// --- The picture ---

/// Runs whose values can be compared: of one objective on the same data, by one count.
const groupOf = (row) => JSON.stringify([row.so_far.title, row.so_far.by, row.data, row.scale]);

function groups() {
  const found = new Map();
  for (const row of rows) {
    if (!row.so_far || row.so_far.points.length === 0) continue;
    const key = groupOf(row);
    found.set(key, [...found.get(key) ?? [], row]);
  }
  return new Map([...found].sort(([, a], [, b]) => b.length - a.length));
}

/// The runs of the group that is chosen, by default the largest.
function chosen() {
  const all = groups();
  const select = byId("group");
  const options = [...all].map(([key, runs]) => [key, [runs[0].so_far.title, runs[0].data].filter((text) => text).join(", ")
    + `: ${plural(runs.length, "run")}`]);
  if (options.some(([, text], i) => select.options[i]?.text !== text) || select.options.length !== options.length) {
    select.replaceChildren(...options.map(([key, text]) => element("option", {value: key}, text)));
    if (all.has(picked)) select.value = picked;
  }
  byId("groups").hidden = options.length < 2;
  return all.get(select.value) ?? [];
}

/// Its value on the picture; a hypervolume has none.
const baselineOf = ({several, baseline}) => several ? null : baseline;

let picture = {runs: []};  // what is drawn

/// The points of a run's line: its best value stays until there is a better one.
function stairs({points, last}) {
  const steps = [];
  for (const [x, y] of points) {
    if (steps.length > 0) steps.push([x, steps.at(-1)[1]]);
    steps.push([x, y]);
  }
  return [...steps, [last, steps.at(-1)[1]]];
}

function paint() {
  const {runs, styles, few} = picture;
  if (runs.length === 0) return;
  const [{so_far: {by, title}}] = runs;
  const baselines = runs.map(baselineOf).filter((value) => value !== null);
  const values = [...runs.flatMap(({so_far}) => so_far.points.map(([, value]) => value)), ...baselines];
  const planned = ({progress: {unit, of}}) => unit === by ? of ?? 0 : 0;
  const last = Math.max(...runs.map((row) => Math.max(row.so_far.last, planned(row))));
  const chart = frame(byId("lines"), axis([by === "ask" ? 1 : 0, last], {whole: true, plain: true}), axis(values), [`${by}s`, title]);
  const course = (row, {ink, dashes}, width) => {
    const steps = stairs(row.so_far);
    line(chart, steps, ink, width, dashes);
    if (isLive(row)) dot(chart, steps.at(-1), 4, ink, colour("ground"));
  };
  runs.forEach((row, i) => { if (row.number !== hot) course(row, styles[i], few ? 1.8 : 1); });
  const at = runs.findIndex((row) => row.number === hot);
  if (at >= 0) {
    const baseline = baselineOf(runs[at]);
    if (baseline !== null) line(chart, [[0, baseline], [last, baseline]], colour("baseline"), 1.5, [7, 5]);
    course(runs[at], few ? styles[at] : {ink: colour("best"), dashes: []}, 3.6);
  }
  picture.chart = chart;
}

function draw() {
  const runs = shown ? chosen() : [];
  const few = runs.length <= STYLES;
  picture = {runs, few, styles: runs.map((_, i) => few ? lineStyle(i) : {ink: colour("pale-edge"), dashes: []})};
  byId("together").hidden = runs.length === 0;
  if (runs.length === 0) return;
  const title = runs[0].several ? "Hypervolume so far" : `Best ${runs[0].objective.name} so far`;
  byId("together-title").textContent = title;
  byId("lines").setAttribute("aria-label", `${title} of ${plural(runs.length, "run")}`);
  byId("lines-legend").replaceChildren(...few ? runs.map((row, i) =>
    element("span", {"data-run": row.number, class: row.number === hot ? "hot" : null}, sample(picture.styles[i]), row.run)) : []);
  paint();
}

/// Shows what is pointed at in picture, table and legend.
function point(number) {
  if (number === hot) return;
  hot = number;
  for (const one of document.querySelectorAll("[data-run]")) one.classList.toggle("hot", Number(one.dataset.run) === hot);
  paint();
}

function pointAtLine(event) {
  const box = event.currentTarget.getBoundingClientRect();
  const [x, y] = [event.clientX - box.left, event.clientY - box.top];
  let found = null, least = 24;
  for (const row of picture.runs) {
    // The last value that begins at or left of the pointer, as it is drawn.
    const {chart: {across, up}} = picture;
    const value = across(row.so_far.last) < x - 8 ? undefined : row.so_far.points.findLast(([at]) => across(at) <= x + 8)?.[1];
    const distance = value === undefined ? Infinity : Math.abs(up(value) - y);
    if (distance < least) [found, least] = [{row, value}, distance];
  }
  point(found?.row.number ?? null);
  if (!found) {
    byId("tip").hidden = true;
    return;
  }
  const {row, value} = found;
  const baseline = baselineOf(row) === null ? "" : `\nbaseline: ${number(row.baseline)}`;
  placeTip(event, {title: row.run, text: `best so far: ${number(value)}${baseline}\n${row.phase}, ${progressText(row.progress)}`});
}

// --- The way of the list ---

function take(news) {
  shown = news;
  rows = news.runs.sort((a, b) => a.run.localeCompare(b.run, "en", {numeric: true}));
  showHead();
  showTable();
  draw();
  return news.unread > 0 ? .05 : 2;
}

byId("group").addEventListener("change", ({target}) => {
  picked = target.value;
  draw();
});
byId("lines").addEventListener("pointermove", pointAtLine);
byId("lines").addEventListener("pointerleave", () => {
  byId("tip").hidden = true;
  point(null);
});
for (const id of ["list", "lines-legend"]) {
  byId(id).addEventListener("pointerover", ({target}) => {
    const own = target.closest("[data-run]");
    point(own ? Number(own.dataset.run) : null);
  });
  byId(id).addEventListener("pointerleave", () => point(null));
}
new ResizeObserver(draw).observe(document.querySelector("main"));
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
setInterval(() => {
  if (lost || document.hidden) return;
  for (const [made, row] of clocks) made.textContent = duration(elapsed(row));
}, SECOND);
follow(() => `runs.json${location.search}`, take, () => {
  byId("problem").hidden = !lost;
  byId("problem").textContent = lost ? "nas-watch does not answer any more: this is what it said last" : "";
});
