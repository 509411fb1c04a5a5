// The page of a run: asks for its state again and again, and shows it.

const SHOWN = 30;  // rows of the table of evaluations
const HELD_OUT = 1e6;  // the first replicate of a re-test
/// Seeds are numbered from 1, those of the search and the fresh ones of a re-test alike.
const seedOf = (replicate) => replicate < HELD_OUT ? replicate + 1 : replicate - HELD_OUT + 1;
const seedText = (replicate) =>
  `${seedOf(replicate)}${replicate >= HELD_OUT && !state.listed ? " of the re-test" : ""}`;

let state = null;
const page = {offset: 0, sort: "newest", down: true};  // of the table of evaluations
const candidates = new Map();
const evaluations = new Map();

// --- Words ---

const nameOf = (c) => candidates.get(c)?.name ?? "?";

// --- Elements ---

const mechanism = (c) => mechanismOf(nameOf(c), candidates.get(c)?.label);

// --- The state in words ---

function stateWords() {
  const {phase, progress, at_work: work} = state;
  const words = phase === "silent" ? "Running, but nothing has been written for a while" : phase;
  const parts = [`: ${progressText(progress)}`];
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

/// What is compared where mechanisms were named, else the name of the run.
function title() {
  if (!state.listed) return state.name;
  const against = state.baseline ? ` against ${nameOf(state.baseline.c)}` : "";
  const names = state.listed.map(nameOf).join(", ");
  return (names.length > 60 ? plural(state.listed.length, "mechanism") : names) + against;
}

function showHead() {
  const {phase, progress, counts, at_work: work} = state;
  document.documentElement.className = `broad ${phase}${lost ? " lost" : ""}`;
  document.title = `${progress.of ? `${progress.done}/${progress.of} ` : ""}${title()} ${phase}`;
  byId("name").textContent = title();
  byId("place").textContent =
    [state.listed ? state.name : "", state.folder, state.host, state.started.replace("T", " ").replace("Z", " UTC")].filter((text) => text).join(" · ");
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
    tiles.push(tile(state.left ? range(state.left) : "unknown", progress.at_most ? "left at most"
      : work && work.stage !== "search" && !state.listed ? `left of the ${work.stage}` : "left"));
  }
  const trained = counts.evaluated + counts.outside;
  tiles.push(tile(trained.toLocaleString("en"), "training runs done"));
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
      title.append(element("span", {class: "note"}, ` seed ${seedText(first.replicate)}`));
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

/// Asks for another page of the table.
function turn(changes) {
  Object.assign(page, changes);
  askNow();
}

/// The head of a column, which sorts by it; a second time the other way, and then by age again.
function sortable([text, left, key]) {
  const own = page.sort === key;
  const button = element("button", {class: "sort"}, own ? `${text} ${page.down ? "↓" : "↑"}` : text);
  button.addEventListener("click", () => turn(own && page.down ? {offset: 0, sort: "newest", down: true}
                                                               : {offset: 0, sort: key, down: own}));
  return element("th", {class: left ? "left" : null, "aria-sort": own ? (page.down ? "descending" : "ascending") : null}, button);
}

function showTables() {
  const {of} = state, rows = state.rows.map((id) => evaluations.get(id));
  byId("latest").hidden = of.evaluations === 0;
  byId("latest").firstElementChild.textContent = page.sort === "newest" ? "Latest evaluations" : "Evaluations";
  const asked = !state.listed;
  const heads = [["mechanism", true, "mechanism"], ...(asked ? [["ask", false, "ask"]] : []), ["seed", false, "seed"],
                 ["status", true, "status"], ...state.objectives.map(({title}, i) => [title, false, String(i)]),
                 ["seconds", false, "seconds"]];
  const table = byId("latest").querySelector("table");
  table.tHead.replaceChildren(element("tr", {}, ...heads.map(sortable)));
  table.tBodies[0].replaceChildren(...rows.map((row) => {
    const status = row.baseline ? `${row.status}, baseline` : row.status;
    const made = element("tr", {}, element("td", {class: "left"}, mechanism(row.c)),
      ...(asked ? [cell(row.ask === null ? "" : String(row.ask + 1))] : []), cell(seedText(row.replicate)),
      cell(status, true), ...state.objectives.map((_, i) => cell(number(row.values[i]))),
      cell(row.seconds > 0 ? number(row.seconds) : ""));
    if (!row.usable) made.cells[asked ? 3 : 2].className = "left warn";
    return made;
  }));
  byId("pager").hidden = of.evaluations <= SHOWN;
  byId("before").disabled = page.offset === 0;
  byId("next").disabled = page.offset + rows.length >= of.evaluations;
  byId("which").textContent = `${(page.offset + 1).toLocaleString("en")} to ${
    (page.offset + rows.length).toLocaleString("en")} of ${of.evaluations.toLocaleString("en")}`;
  const failures = state.failed.map((id) => evaluations.get(id));
  byId("failed").hidden = failures.length === 0;
  byId("failed-shown").hidden = failures.length === of.failures;
  byId("failed-shown").textContent = `the latest ${failures.length} of ${of.failures.toLocaleString("en")}`;
  const failed = byId("failed").querySelector("table");
  failed.tHead.replaceChildren(headRow([["mechanism", true], ["status", true], ["reason", true]]));
  failed.tBodies[0].replaceChildren(...failures.map((row) => element("tr", {},
    element("td", {class: "left"}, mechanism(row.c)), cell(row.status, true),
    element("td", {class: "reason"}, row.reason))));
}

// --- Pictures ---

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

const others = (shown) => shown.length < state.of.candidates - state.of.front ? "some of the others" : "others";

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
  byId("search-title").textContent = `Front: ${plural(state.of.front, "mechanism")} of ${state.of.candidates.toLocaleString("en")}`;
  legend("found-legend", [["round c-best", "on the front"], ["round c-pale", others(off)],
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
  legend("found-legend", [["c-best", "best so far"], ["round c-pale", points.length < state.of.candidates ? "some of the mechanisms" : "mechanisms"],
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
function course(chart, curve, ink, width, dashes = []) {
  if (curve.length > 1) line(chart, curve, ink, width, dashes);
  else dot(chart, curve[0], 2 + width, ink);
}

/// The highest loss that is shown: that of most, where a few are far beyond the others.
function highest(losses) {
  const [low, most, high] = [losses[0], losses[Math.floor(.98 * (losses.length - 1))], losses.at(-1)];
  return high - low <= 2 * (most - low) || losses.length < 50 ? high : most;
}

/// How the curves of finished training runs are drawn, by candidate: listed mechanisms each in its own way, else the best ones.
function curveStyles(done) {
  const styles = new Map();
  if (state.listed) {
    const others = [...new Set(done.map(({c}) => c))].filter((c) => c !== state.baseline?.c && !state.listed.includes(c));
    [...state.listed, ...others].forEach((c, i) => styles.set(c, {...lineStyle(i), width: 1.5, name: nameOf(c)}));
  } else {
    for (const c of state.top) styles.set(c, {ink: colour("best"), width: 1.8, dashes: [], name: "the best, validation"});
  }
  if (state.baseline) {
    styles.set(state.baseline.c, {ink: colour("baseline"), width: 1.8, dashes: [],
                                  name: state.listed ? `${nameOf(state.baseline.c)} (baseline)` : "baseline, validation"});
  }
  return styles;
}

function drawCurves() {
  const done = [...evaluations.values()].filter((one) => one.curve.length > 0);
  const running = state.phase === "running" && state.at_work
    ? state.at_work.arrays.filter((array) => array.curve.length > 1) : [];
  byId("learning").hidden = done.length + running.length === 0;
  if (done.length + running.length === 0) return;
  const losses = [...done, ...running].flatMap(({curve}) => curve.map(([, loss]) => loss));
  losses.sort((a, b) => a - b);
  const high = Math.max(highest(losses), ...running.map(({curve}) => curve.at(-1)[1]));
  const last = (curves) => curves.reduce((most, {curve}) => Math.max(most, curve.at(-1)[0]), 1);
  const steps = Math.max(last(done), last(running), ...running.map(({steps}) => steps));
  const chart = frame(byId("curves"), axis([0, steps], {whole: true, plain: true}), axis([losses[0], high], {plain: true}),
                      ["step", "loss (nats per token)"]);
  const styles = curveStyles(done);
  const others = done.filter(({c}) => !styles.has(c));
  for (const one of others) course(chart, one.curve, colour("pale-edge"), .9);
  const shown = [], names = new Map(), found = [];
  for (const [c, style] of styles) {
    const own = done.filter((one) => one.c === c);
    for (const one of own) course(chart, one.curve, style.ink, style.width, style.dashes);
    shown.push(...own);
    if (own.length > 0) names.set(style.name, style);
  }
  for (const array of running) line(chart, array.curve, colour("hot"), 2.6, [8, 3]);
  for (const one of [...shown, ...done.length <= 500 ? others : []]) {
    if (found.length > 4000) break;
    for (const [step, loss] of one.curve) {
      found.push({x: chart.across(step), y: chart.up(loss), title: nameOf(one.c),
                  text: `seed ${seedText(one.replicate)}, step ${step}: validation loss ${loss.toFixed(3)}`});
    }
  }
  for (const array of running) {
    const [step, loss] = array.curve.at(-1);
    found.push({x: chart.across(step), y: chart.up(loss), title: nameOf(array.trainings[0].c),
                text: `step ${step}: training loss ${loss.toFixed(3)}`});
  }
  marks.set("curves", found);
  byId("curves").setAttribute("aria-label", `Learning curves of ${plural(done.length, "training run")}`);
  byId("curves-legend").className = state.listed ? "note runs" : "note legend";
  byId("curves-legend").replaceChildren(...[
    ...[...names].map(([name, style]) => [style, name]),
    ...(others.length > 0 ? [[{ink: colour("pale-edge"), dashes: []}, "others"]] : []),
    ...(running.length > 0 ? [[{ink: colour("hot"), dashes: DASHES[1]}, "running, training loss"]] : []),
  ].map(([style, name]) => element("span", {}, sample(style), name)));
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
  for (const one of news.evaluations) evaluations.set(one.id, one);
  state = news;
  showHead();
  showWork();
  showTables();
  draw();
  return state.phase === "running" || state.phase === "silent" ? 2 : 5;
}

byId("before").addEventListener("click", () => turn({offset: Math.max(0, page.offset - SHOWN)}));
byId("next").addEventListener("click", () => turn({offset: page.offset + SHOWN}));
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
if (/\/run\/\d+\/$/.test(location.pathname)) {
  byId("back").hidden = false;
  byId("back").firstElementChild.href = `../../${location.search}`;
}
const askNow = follow(() => `state.json${location.search}&page=${page.offset}&sort=${page.sort}&down=${Number(page.down)}${state ? `&since=${state.version}` : ""}`, take, () => {
  if (state) showHead();
  else byId("state").textContent = lost ? "nas-watch does not answer" : "reading ...";
});
