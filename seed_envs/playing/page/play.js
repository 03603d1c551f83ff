let game = null;
let stored = null;
let at = 0;

async function ask(name, body = {}) {
  document.body.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(`/api/${name}`, {
      method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
    });
    const found = await answer.json();
    $("note").textContent = found.error || found.note || "";
    return answer.ok ? found : null;
  } catch (error) {
    $("note").textContent = `seed-play does not answer (${error.message}); is it still running?`;
    return null;
  } finally {
    document.body.removeAttribute("aria-busy");
    document.documentElement.dataset.asked = Number(document.documentElement.dataset.asked || 0) + 1;
  }
}

function picture(source) {
  $("picture").hidden = !source;
  if (source) $("picture").src = source;
  $("picture").alt = source ? "what the environment shows" : "";
}

function scene(goal, where, observation, source, refusal) {
  $("goal").textContent = goal;
  $("where").textContent = where;
  $("observation").textContent = observation;
  $("observation").hidden = !observation;
  $("refusal").textContent = refusal && !observation.includes(refusal) ? `refused: ${refusal}` : "";
  picture(source);
}

function showGame() {
  stored = null;
  $("playing").hidden = false;
  $("replaying").hidden = true;
  scene(game.goal, `${game.env}, ${game.task_id}`, game.observation, game.picture, game.refusal);
  $("actions").replaceChildren(...game.actions.map((action) =>
    make("button", { type: "button", class: action === game.hint ? "hinted" : "", onclick: () => choose(action) }, action)));
  $("more").textContent = game.more ? `${game.more} more actions can be typed` : "";
  $("typed").hidden = game.ended;
  $("hint").disabled = game.ended;
  $("undo").disabled = !game.past.length;
  if (game.hint) {
    $("note").textContent = `hint: ${game.hint}`;
    if (!game.actions.includes(game.hint)) $("action").value = game.hint;
  }
  past(game.past.map((step) => [step.action, step.reward, step.refusal]));
  $("end").textContent = game.ended ? `${game.success ? "Solved" : "Not solved"} (${game.stop_reason || "step limit"}), score ${Number(game.score || 0).toFixed(2)}, reward ${game.total.toFixed(2)}` : "";
  $("end").className = game.success ? "solved" : "unsolved";
}

// An action with a blank, such as search[<your query>], is filled in by the person.
function choose(action) {
  const blank = /<[^<>]+>/.exec(action);
  if (!blank) return play("act", { action });
  $("action").value = action;
  $("action").focus();
  $("action").setSelectionRange(blank.index, blank.index + blank[0].length);
}

function past(steps, current = -1) {
  $("past").replaceChildren(...steps.map(([action, reward, refusal], number) =>
    make("li", number === current ? { "aria-current": "step" } : {}, action || "(nothing readable)",
      reward ? make("span", { class: "muted" }, ` ${reward > 0 ? "+" : ""}${Number(reward.toFixed(3))}`) : null,
      refusal ? make("span", { class: "unsolved" }, " refused") : null)));
}

async function play(name, body = {}) {
  const found = await ask(name, { turn: game ? game.turn : 0, ...body });
  if (!found) return;
  game = found;
  if (name === "act") $("action").value = "";
  showGame();
}

function token(part) {
  const node = make("span", { class: part.sampled ? (part.colour ? "gated" : "") : "env", title: part.tip }, part.text || "\u00b7");
  node.style.backgroundColor = part.colour;
  return node;
}

function showTurn() {
  $("playing").hidden = true;
  $("replaying").hidden = false;
  const turn = stored.turns[at];
  scene(stored.goal, stored.task_id, turn.observation, turn.picture, turn.refusal);
  $("at").textContent = `turn ${at + 1} of ${stored.turns.length}`;
  $("back").disabled = at === 0;
  $("next").disabled = at === stored.turns.length - 1;
  const perTurn = stored.tokens.length > 1;
  const rows = perTurn ? stored.tokens.slice(at, at + 1) : stored.tokens;
  $("answer").replaceChildren(...[
    turn.reply ? make("div", { class: "tag" }, "reply") : null, turn.reply ? make("pre", { class: "reply" }, turn.reply) : null,
    turn.reply ? make("div", { class: "tag" }, "action") : null,
    turn.reply ? make("div", { class: "shot" }, make("pre", {}, turn.action || "(none)"), arrow(turn.action)) : null,
    ...rows.flatMap((row) => [
      make("div", { class: "tag" }, `tokens of ${perTurn ? "the reply" : "the episode"}: blue where the skill makes one likelier, orange where less likely`),
      make("p", { class: "tokens" }, ...row.map(token))]),
    stored.skill ? make("div", { class: "tag" }, "skill") : null, stored.skill ? make("pre", { id: "skill" }, stored.skill) : null,
  ].filter(Boolean));
  past(stored.turns.filter((one) => one.reply).map((one) => [one.action, one.reward, one.refusal]), at);
  $("end").textContent = stored.success ? "Solved" : "Not solved";
  $("end").className = stored.success ? "solved" : "unsolved";
}

async function replay(number) {
  const found = await ask("episode", { number });
  if (!found) return;
  [stored, at] = [found, 0];
  showTurn();
}

function move(by) {
  at = Math.max(0, Math.min(stored.turns.length - 1, at + by));
  showTurn();
}

$("start").addEventListener("submit", (event) => {
  event.preventDefault();
  play("new", { env: $("env").value, seed: Number($("seed").value), task_id: $("task").value.trim() });
});
$("typed").addEventListener("submit", (event) => {
  event.preventDefault();
  play("act", { action: $("action").value });
});
$("episode").addEventListener("change", () => replay(Number($("episode").value)));
$("hint").addEventListener("click", () => play("hint"));
$("undo").addEventListener("click", () => play("undo"));
$("back").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
document.addEventListener("keydown", (event) => {
  if (event.target.matches("input, select, textarea") || event.ctrlKey || event.altKey || event.metaKey) return;
  const name = event.key.replace("Arrow", "").toLowerCase();
  if (stored && (name === "left" || name === "right")) move(name === "left" ? -1 : 1);
  else if (!stored && game && event.key.startsWith("Arrow") && game.actions.includes(name)) play("act", { action: name });
  else return;
  event.preventDefault();
});

ask("offer").then((offer) => {
  if (!offer) return;
  $("env").append(...offer.envs.map((name) => make("option", { value: name }, name)));
  $("stored").hidden = !offer.episodes.length;
  $("episode").append(...offer.episodes.map((title, number) => make("option", { value: String(number) }, `${number}: ${title}`)));
  if (offer.game) { game = offer.game; $("env").value = game.env; showGame(); }
  else if (offer.episodes.length) replay(0);
  else $("note").textContent = "Choose an environment and begin.";
  document.documentElement.dataset.ready = "yes";
});
