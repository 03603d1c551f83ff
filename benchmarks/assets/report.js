const summary = data.summary;
const PAGE = 100;
const percent = (value) => (value === null || value === undefined ? "–" : (100 * value).toFixed(1) + " %");
const limits = (interval) => (interval ? `[${(100 * interval[0]).toFixed(1)}, ${(100 * interval[1]).toFixed(1)}]` : "[–]");
const whole = (value) => Number(value).toLocaleString("en");

const episodes = data.episodes.map((row) => Object.fromEntries(data.columns.map((name, i) => [name, row[i]])));
const OUTCOMES = { solved: "solved", unsolved: "not solved", fault: "fault" };
const FAULTS = new Set(["retrieval_error", "timeout", "env_error", "policy_error"]);
for (const episode of episodes) {
  episode.outcome = FAULTS.has(episode.stop_reason) ? "fault" : episode.success ? "solved" : "unsolved";
  episode.haystack = `${episode.task_id} ${episode.goal} ${episode.error}`.toLowerCase();
}

// ---- numbers -------------------------------------------------------------------------------------------------

function card(label, value, detail) {
  return make("div", { class: "card" }, make("span", {}, label), make("b", {}, value), make("span", {}, detail));
}

function bar(rate, interval) {
  const ns = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(ns, "svg");
  const set = (node, props) => { for (const [k, v] of Object.entries(props)) node.setAttribute(k, v); return node; };
  set(svg, { class: "bar", width: 160, height: 14, viewBox: "0 0 160 14", role: "img" });
  const add = (name, props) => svg.append(set(document.createElementNS(ns, name), props));
  add("rect", { x: 0, y: 5, width: 160, height: 4, fill: "var(--soft)" });
  add("rect", { x: 0, y: 5, width: 160 * rate, height: 4, fill: "var(--accent)" });
  if (interval) {
    const [low, high] = interval.map((value) => 160 * value);
    for (const x of [low, high]) add("line", { x1: x, x2: x, y1: 2, y2: 12, stroke: "var(--fg)" });
    add("line", { x1: low, x2: high, y1: 7, y2: 7, stroke: "var(--fg)" });
  }
  return svg;
}

function numbers() {
  const { counts, success, macro, score, steps, tokens } = summary;
  const level = Math.round(100 * summary.confidence);
  $("title").textContent = `${summary.suite} · ${summary.agent}`;
  $("headline").textContent = `${whole(counts.scored)} of ${whole(counts.planned)} episodes scored on ${whole(counts.tasks)} tasks, `
    + `${whole(counts.failed)} ended by a fault, ${whole(counts.missing)} missing. Intervals cover ${level} %.`;
  $("cards").append(
    card("Success, micro (per episode)", percent(success.rate), `${limits(success.interval)} ${success.method}, n = ${whole(success.n)}`),
    card(`Success, macro (${macro.families} families)`, percent(macro.rate), `${limits(macro.interval)} ${macro.method}`),
    card("Score, micro", percent(score.mean), `${limits(score.interval)} ${score.method}`),
    card("Steps", steps.mean === null ? "–" : steps.mean.toFixed(1), `on average; ${percent(steps.invalid_format_share)} unreadable, ${percent(steps.invalid_share)} refused`),
  );
  const looking = summary.perception;
  if (looking) $("cards").append(card("Won by looking", percent(looking.difference),
    `${limits(looking.interval)} ${percent(looking.seen)} with pictures, ${percent(looking.blind)} blind (${looking.mode}); ${looking.interval_method}`));
  if (tokens.completion) $("cards").append(card("Tokens written", whole(tokens.completion), `${whole(tokens.prompt)} read, cost ${tokens.cost.toFixed(4)}`));
  const notes = [];
  if (counts.failed) notes.push(`Episodes ended by a fault enter no average; counted as failures, success would be ${percent(success.rate_if_errors_fail)}.`);
  if (summary.repeats.per_task > 1) notes.push(`Of ${summary.repeats.tasks} tasks with ${summary.repeats.per_task} repeats, ${percent(summary.repeats.solved_once)} were solved at least once and ${percent(summary.repeats.solved_always)} always.`);
  const needed = summary.power.tasks_needed["0.05"];
  if (needed) notes.push(`To tell apart another run that differs by 5 points (80 % power) takes about ${whole(needed)} tasks, unpaired.`);
  if (summary.data.warning) notes.push(`Warning: ${summary.data.warning}; a rate over so few tasks says little.`);
  if (data.left_out) notes.push(`${whole(data.left_out)} transcripts are not in this file to keep it small; all are in ${data.journal}.`);
  $("notes").textContent = notes.join(" ");

  groups("families", "family", summary.families, (family) =>
    make("button", { class: "link", type: "button", onclick: () => show({ type: family.name }) }, family.name || "(none)"));
  if (summary.lengths.length) groups("lengths", "optimal length", summary.lengths, (group) => group.name);
  $("stops").append(make("tbody", {}, ...Object.entries(summary.stop_reasons).map(([name, count]) => make("tr", {},
    make("td", {}, make("button", { class: "link", type: "button", onclick: () => show({ stop: name }) }, name)),
    make("td", { class: "num" }, whole(count))))));
  const of = (outcome) => episodes.filter((e) => e.outcome === outcome);
  const wrong = [...of("fault"), ...of("unsolved")];
  $("failures").append(...wrong.slice(0, 50).map((e) => make("li", {}, make("a", { href: `#episode-${e.index}`, class: e.outcome, onclick: () => { if (selected === e) follow(); } },
    e.repeat ? `${e.task_id} #${e.repeat}` : e.task_id), ` ${e.stop_reason}${e.error ? ": " + e.error : ""}`)));
  if (wrong.length > 50) {
    $("failures").append(...["fault", "unsolved"].filter((outcome) => of(outcome).length).map((outcome) => make("li", {}, make("button",
      { class: "link", type: "button", onclick: () => show({ outcome }) }, `all ${whole(of(outcome).length)} in the list below: ${OUTCOMES[outcome]}`))));
  }
  if (!wrong.length) $("failures").append(make("li", { class: "muted" }, "none"));
  facts();
}

// What each attempt was played with: attempts with the same software share a line.
function software() {
  const groups = new Map();
  for (const attempt of data.attempts) {
    const { seed_envs, python, packages, git } = attempt.software || {};
    const commit = git ? `, git ${git.commit}${git.dirty ? " (with local changes)" : ""}` : "";
    const text = `seed-envs ${seed_envs}, Python ${python}, ` + Object.entries(packages || {}).map(([k, v]) => `${k} ${v}`).join(", ") + commit;
    groups.set(text, [...(groups.get(text) || []), attempt.attempt]);
  }
  return [...groups].map(([text, numbers]) => [groups.size > 1 ? `software, attempt ${numbers.join(", ")}` : "software", text]);
}

function groups(target, label, rows, title) {
  $(target).append(make("thead", {}, make("tr", {}, ...[label, "tasks", "episodes", "success", "", "interval", "score", "steps"].map(
    (name, i) => make("th", { class: i === 0 || i === 4 ? "" : "num" }, name)))));
  $(target).append(make("tbody", {}, ...rows.map((row) => make("tr", {},
    make("td", {}, title(row)), make("td", { class: "num" }, whole(row.tasks)), make("td", { class: "num" }, whole(row.n)),
    make("td", { class: "num" }, percent(row.rate)), make("td", {}, bar(row.rate, row.interval)),
    make("td", { class: "num" }, limits(row.interval)), make("td", { class: "num" }, percent(row.score)),
    make("td", { class: "num" }, row.steps.toFixed(1))))));
}

function facts() {
  const last = data.attempts[data.attempts.length - 1] || {};
  const hardware = last.hardware || {};
  const replies = summary.replies || { total: 0, cut: 0, filtered: 0 };
  const rows = {
    "tasks": `${summary.manifest.name}, ${whole(summary.manifest.chosen)} of ${whole(summary.manifest.tasks)}, SHA-256 ${summary.manifest.sha256}`,
    "made of": summary.data.cards.map((c) => [`${c.kind} data`, c.goals && `${c.goals} goals`, c.split_size !== null && `split ${c.split} of ${whole(c.split_size)}`,
      ...Object.entries(c.files).map(([k, v]) => `${k} ${v.slice(0, 12)}`), ...Object.entries(c.skipped).map(([k, v]) => `left out, ${k}: ${v}`)].filter(Boolean).join("; ")).join(" | ") || "–",
    "prompt": `profile ${summary.prompt.profile}, SHA-256 ${summary.prompt.sha256}`,
    "environment": `${summary.run.suite.env_id} ${JSON.stringify({ ...summary.run.suite.env_kwargs, ...summary.run.env_kwargs })}`,
    "agent": JSON.stringify(summary.run.agent),
    "seed, repeats": `${summary.run.seed}, ${summary.run.repeats}`,
    "command": summary.command.join(" "),
    ...Object.fromEntries(software()),
    "replies": `${whole(replies.total)}, of them cut at the length limit ${whole(replies.cut)}, withheld by a content filter ${whole(replies.filtered)}`,
    "hardware": [hardware.processor, `${hardware.cores} cores`, `${hardware.memory_gb} GB`, ...(hardware.gpus || [])].filter(Boolean).join(", "),
    "wall time": `${summary.wall_seconds} s in ${data.attempts.length} attempt(s)`,
  };
  $("facts").append(make("tbody", {}, ...Object.entries(rows).map(([key, value]) => make("tr", {}, make("td", {}, key), make("td", {}, value)))));
}

// ---- list ----------------------------------------------------------------------------------------------------

const COLUMNS = [["index", "#"], ["task_id", "task"], ["outcome", "outcome"], ["score", "score"], ["steps", "steps"], ["stop_reason", "ended by"]];
let shown = episodes, page = 0, sortKey = "index", ascending = true, selected = null;

function options(select, values) {
  select.append(make("option", { value: "" }, "all"), ...values.map((value) => make("option", { value }, value || "(none)")));
}

function show(wanted) {
  $("filters").reset();
  for (const [key, value] of Object.entries(wanted)) $(`f-${key}`).value = value;
  filter();
  document.querySelector(".browser").scrollIntoView();
}

function filter() {
  const text = $("f-text").value.trim().toLowerCase(), type = $("f-type").value, outcome = $("f-outcome").value, stop = $("f-stop").value;
  shown = episodes.filter((e) => (!text || e.haystack.includes(text)) && (!type || e.task_type === type)
    && (!outcome || e.outcome === outcome) && (!stop || e.stop_reason === stop));
  sort();
}

function sort() {
  const order = ascending ? 1 : -1;
  shown = [...shown].sort((a, b) => (a[sortKey] < b[sortKey] ? -order : a[sortKey] > b[sortKey] ? order : a.index - b.index));
  page = 0;
  draw();
}

function draw() {
  const pages = Math.max(1, Math.ceil(shown.length / PAGE));
  $("count").textContent = `${whole(shown.length)} of ${whole(episodes.length)} episodes`;
  const body = $("episodes").tBodies[0];
  body.replaceChildren(...shown.slice(page * PAGE, (page + 1) * PAGE).map((e) => make("tr", { id: `row-${e.index}`, tabIndex: 0,
    "aria-selected": String(e === selected), onclick: () => go(e), onkeydown: (event) => { if (event.key === "Enter") go(e); } },
    make("td", { class: "num" }, whole(e.index)), make("td", { class: "task" }, e.repeat ? `${e.task_id} #${e.repeat}` : e.task_id),
    make("td", { class: e.outcome }, OUTCOMES[e.outcome]),
    make("td", { class: "num" }, e.outcome === "fault" ? "–" : e.score.toFixed(2)), make("td", { class: "num" }, whole(e.steps)),
    make("td", {}, e.stop_reason))));
  $("pages").replaceChildren(
    make("button", { type: "button", disabled: page === 0, onclick: () => { page -= 1; draw(); } }, "Previous"),
    make("span", {}, `page ${page + 1} of ${whole(pages)}`),
    make("button", { type: "button", id: "next-page", disabled: page >= pages - 1, onclick: () => { page += 1; draw(); } }, "Next"));
}

// ---- transcript ----------------------------------------------------------------------------------------------

function go(episode) {
  if (location.hash === `#episode-${episode.index}`) follow(); // a second click on the same link brings it back
  else location.hash = `episode-${episode.index}`;
}

async function read(episode) {
  selected = episode;
  const place = shown.indexOf(episode);
  if (place >= 0) page = Math.floor(place / PAGE);
  draw();
  const view = $("transcript");
  const head = [make("h2", {}, `${episode.task_id}${episode.repeat ? " #" + episode.repeat : ""}`),
    make("p", {}, episode.goal),
    make("p", { class: "muted" }, make("span", { class: episode.outcome }, `${OUTCOMES[episode.outcome]}, ${episode.stop_reason}`),
      ` · score ${episode.score} · ${episode.steps} steps · ${episode.seconds.toFixed(2)} s`)];
  if (!episode.place) {
    view.replaceChildren(...head, make("p", {}, `This transcript is not in the file; it is in ${data.journal}.`));
    return;
  }
  const transcript = (await unpack(episode.place[0]))[episode.place[1]];
  if (selected !== episode) return;
  const error = transcript.error, last = lastMessages(transcript.steps);
  view.replaceChildren(...head,
    error ? make("pre", { class: "fault" }, `${error.type}: ${error.message}`) : "",
    error && error.traceback ? make("details", {}, make("summary", {}, "traceback"), make("pre", {}, error.traceback)) : "",
    ...transcript.steps.map((step, number) => stepView(step, number, last[number])),
    make("div", { class: "step" }, make("div", { class: "head" }, make("b", {}, "End")), make("pre", {}, transcript.final_observation || "(nothing)"),
      make("details", {}, make("summary", {}, "extras"), make("pre", {}, JSON.stringify(transcript.extras, null, 1)))));
  view.scrollTop = 0;
}

// Beside the list the transcript sticks to the window; below it, or above the fold, it has to be brought there.
function bringIntoView() {
  const view = $("transcript"), box = view.getBoundingClientRect();
  if (box.top < 0 || box.top > 0.5 * innerHeight) view.scrollIntoView();
  view.focus({ preventScroll: true });
}

function follow() {
  const found = /^#episode-(\d+)$/.exec(location.hash);
  const episode = found && episodes.find((e) => e.index === Number(found[1]));
  if (episode) read(episode).then(bringIntoView);
}

function back() {
  const row = selected && $(`row-${selected.index}`);
  if (!row) return;
  row.scrollIntoView({ block: "center" });
  row.focus({ preventScroll: true });
}

function move(by) {
  const next = shown[(selected ? shown.indexOf(selected) : -1) + by];
  if (next) go(next);
}

numbers();
options($("f-type"), [...new Set(episodes.map((e) => e.task_type))].sort());
options($("f-stop"), [...new Set(episodes.map((e) => e.stop_reason))].sort());
$("episodes").tHead.rows[0].append(...COLUMNS.map(([key, label]) => make("th", { class: ["index", "score", "steps"].includes(key) ? "num" : "" },
  make("button", { type: "button", title: "sort", onclick: () => { ascending = sortKey === key ? !ascending : true; sortKey = key; sort(); } }, label))));
for (const id of ["f-text", "f-type", "f-outcome", "f-stop"]) $(id).addEventListener("input", filter);
$("filters").addEventListener("reset", () => setTimeout(filter));
$("filters").addEventListener("submit", (event) => event.preventDefault());
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (/^(INPUT|SELECT|TEXTAREA)$/.test(document.activeElement.tagName)) return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "j") move(1);
  if (event.key === "k") move(-1);
  if (event.key === "Escape") back();
});
filter();
follow();
document.documentElement.dataset.ready = "yes";
