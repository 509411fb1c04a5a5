// The page of a list of runs.

let shown = null;  // what nas-watch said last
let rows = [];     // of the table, in its order
let clocks = [];   // [cell, row] of what runs

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
  const made = element("tr", {}, name);
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

// --- The way of the list ---

function take(news) {
  shown = news;
  rows = news.runs.sort((a, b) => a.run.localeCompare(b.run, "en", {numeric: true}));
  showHead();
  showTable();
  return news.unread > 0 ? .05 : 2;
}

setInterval(() => {
  if (lost || document.hidden) return;
  for (const [made, row] of clocks) made.textContent = duration(elapsed(row));
}, SECOND);
follow(() => `runs.json${location.search}`, take, () => {
  byId("problem").hidden = !lost;
  byId("problem").textContent = lost ? "nas-watch does not answer any more: this is what it said last" : "";
});
