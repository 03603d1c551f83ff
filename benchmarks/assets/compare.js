const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %");
const limits = (interval) => (interval ? `[${(100 * interval[0]).toFixed(1)}, ${(100 * interval[1]).toFixed(1)}]` : "[–]");
const points = (value) => (value === null || value === undefined ? "–" : (value > 0 ? "+" : "") + (100 * value).toFixed(1));
const chance = (value) => (value === null || value === undefined ? "–" : value < 0.0001 ? "< 0.0001" : value.toFixed(4));
const letter = (number) => String.fromCharCode(65 + (number % 26)) + (number < 26 ? "" : Math.floor(number / 26));
const name = (number) => `${letter(number)}: ${data.runs[number].agent}`;
const cells = (kinds, values) => values.map((value, i) => make("td", { class: kinds[i] || "" }, value));
const heads = (kinds, names) => make("thead", {}, make("tr", {}, ...names.map((text, i) => make("th", { class: kinds[i] || "" }, text))));

function tables() {
  $("title").textContent = `${data.suite} · ${data.runs.length} runs`;
  $("headline").textContent = `Paired by task. Intervals cover ${Math.round(100 * data.confidence)} %; p-values of success are corrected `
    + `for ${data.pairs.length} pair(s) (Holm). Manifest ${data.manifest.slice(0, 12)}.`;
  const right = ["", "num", "num", "num", ""];
  $("runs").append(heads(right, ["run", "episodes", "success", "interval", "profile and folder"]), make("tbody", {},
    ...data.runs.map((run, i) => make("tr", {}, ...cells(right,
      [name(i), run.episodes.toLocaleString("en"), percent(run.rate), limits(run.interval), `${run.profile}, ${run.folder}`])))));
  const kinds = ["", "num", "num", "num", "num", "num"];
  $("pairs").append(heads(kinds, ["pair", "difference (points)", "interval", "p", "p, corrected", "better on tasks"]), make("tbody", {},
    ...data.pairs.map((pair) => {
      const s = pair.measures.success;
      return make("tr", {}, ...cells(kinds, [`${letter(pair.second)} − ${letter(pair.first)}`, points(s.difference), limits(s.interval),
        chance(s.p_value), chance(pair.p_corrected), `${s.only_second} / ${s.only_first}`]));
    })));
  const notes = new Set(data.pairs.flatMap((pair) => pair.notes.map((note) => `${letter(pair.first)}, ${letter(pair.second)}: ${note}`)));
  $("notes").textContent = [...notes].join(". ");
}

// ---- forest plot: one row per run and family, a dot at the difference, a line over its interval -------------------

const NS = "http://www.w3.org/2000/svg";
function draw(tag, props, text) {
  const node = document.createElementNS(NS, tag);
  for (const [key, value] of Object.entries(props)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function forest() {
  const rows = [];
  data.runs.slice(1).forEach((run, i) => {
    const whole = data.pairs.find((pair) => pair.first === 0 && pair.second === i + 1).measures.success;
    rows.push({ label: name(i + 1), part: whole, strong: true });
    for (const family of data.families) rows.push({ label: family.name || "(none)", part: family.against_first[i] });
  });
  const ends = rows.flatMap(({ part }) => [part.difference || 0, ...(part.interval || [])]);
  const reach = Math.max(0.05, ...ends.map(Math.abs));
  const left = 260, width = 420, high = 24, x = (value) => left + width * (0.5 + value / (2.1 * reach));
  const svg = draw("svg", { class: "forest", width: left + width + 190, height: high * rows.length + 34, role: "img",
    "aria-label": "Differences of success to run A with intervals; the table below holds the same numbers" });
  svg.append(draw("line", { x1: x(0), x2: x(0), y1: 6, y2: high * rows.length + 8, stroke: "var(--muted)", "stroke-dasharray": "3 3" }));
  rows.forEach(({ label, part, strong }, i) => {
    const y = 20 + high * i;
    const short = label.length > 34 ? label.slice(0, 33) + "…" : label;
    svg.append(draw("text", { x: strong ? 0 : 16, y: y + 4, fill: "var(--fg)", "font-weight": strong ? 600 : 400 }, short));
    if (part.difference === null) return;
    if (part.interval) svg.append(draw("line", { x1: x(part.interval[0]), x2: x(part.interval[1]), y1: y, y2: y, stroke: "var(--accent)", "stroke-width": strong ? 3 : 1.5 }));
    svg.append(draw("circle", { cx: x(part.difference), cy: y, r: strong ? 5 : 3.5, fill: "var(--accent)" }));
    svg.append(draw("text", { x: left + width + 12, y: y + 4, fill: "var(--fg)" }, `${points(part.difference)} ${limits(part.interval)}`));
  });
  for (const value of [-reach, 0, reach]) svg.append(draw("text", { x: x(value), y: high * rows.length + 28, fill: "var(--muted)", "text-anchor": "middle" }, points(value)));
  $("forest").append(svg);
}

// ---- disagreements -----------------------------------------------------------------------------------------------

let chosen = null;

function list() {
  const text = $("f-text").value.trim().toLowerCase(), a = Number($("f-left").value), b = Number($("f-right").value);
  const rows = data.disagreements.filter((row) => row.shares[a] !== row.shares[b] && (!text || `${row.task_id} ${row.goal}`.toLowerCase().includes(text)));
  $("count").textContent = `${rows.length.toLocaleString("en")} tasks on which ${letter(a)} and ${letter(b)} differ, of ${data.disagreements.length.toLocaleString("en")} on which any runs do`;
  const kinds = ["task", "", ...data.runs.map(() => "num")];
  $("tasks").tHead.replaceChildren(heads(kinds, ["task", "family", ...data.runs.map((_, i) => letter(i))]).rows[0]);
  $("tasks").tBodies[0].replaceChildren(...rows.map((row) => {
    const open = () => read(row);
    const line = make("tr", { tabIndex: 0, "aria-selected": String(row === chosen), onclick: open, onkeydown: (event) => { if (event.key === "Enter") open(); } },
      ...cells(kinds, [row.task_id, row.task_type, ...row.shares.map((share) => percent(share))]));
    row.shares.forEach((share, i) => { line.cells[2 + i].classList.add(share === 1 ? "solved" : share === 0 ? "unsolved" : "fault"); });
    return line;
  }));
}

async function side(id, row, number) {
  const place = row.places[number], head = [make("h3", {}, name(number)), make("p", {}, row.goal)];
  if (!place) return $(id).replaceChildren(...head, make("p", {}, "This transcript is not in the page; it is in the run's folder."));
  const transcript = (await unpack(place[0]))[place[1]], last = lastMessages(transcript.steps);
  return $(id).replaceChildren(...head, ...transcript.steps.map((step, i) => stepView(step, i, last[i])),
    make("div", { class: "step" }, make("div", { class: "head" }, make("b", {}, "End")), make("pre", {}, transcript.final_observation || "(nothing)")));
}

async function read(row) {
  chosen = row;
  list();
  await Promise.all([side("left", row, Number($("f-left").value)), side("right", row, Number($("f-right").value))]);
  $("pair").scrollIntoView();
  $("pair").focus({ preventScroll: true });
}

tables();
forest();
for (const [id, start] of [["f-left", 0], ["f-right", 1]]) {
  $(id).append(...data.runs.map((_, i) => make("option", { value: i, selected: i === start }, name(i))));
  $(id).addEventListener("input", () => { if (chosen) read(chosen); else list(); });
}
$("f-text").addEventListener("input", list);
$("filters").addEventListener("submit", (event) => event.preventDefault());
list();
document.documentElement.dataset.ready = "yes";
