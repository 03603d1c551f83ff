"use strict";
// What every page of this package shares. Everything shown is set as text, never as markup: models and environments
// wrote it.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);

function make(tag, props = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(props)) {
    if (key === "class") node.className = value;
    else if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (key in node) node[key] = value;
    else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

const unpacked = new Map();

async function unpack(number) {
  if (!unpacked.has(number)) {
    const bytes = Uint8Array.from(atob($(`block-${number}`).textContent), (c) => c.charCodeAt(0));
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    unpacked.set(number, await new Response(stream).json());
  }
  return unpacked.get(number);
}

function content(value) {
  if (typeof value === "string") return [make("pre", {}, value)];
  return value.map((part) => {
    if (part.type !== "image") return make("pre", {}, part.text);
    const source = data.images[part.file];
    return source ? make("img", { src: source, alt: "picture shown to the agent", width: 2 * part.size[0] }) : make("p", { class: "muted" }, `picture ${part.file}`);
  });
}

// The journal stores of each prompt only what the turn added; the last message is what the agent was shown now.
function lastMessages(steps) {
  let before = [];
  return steps.map((step) => {
    const messages = [...before.slice(0, step.kept), ...step.messages];
    before = [...messages, { role: "assistant", content: step.reply }];
    return messages[messages.length - 1];
  });
}

// An action that is a direction points the way beside the picture that it was chosen on.
const ARROWS = { up: "\u2191", down: "\u2193", left: "\u2190", right: "\u2192" };

function arrow(action) {
  const direction = /\b(up|down|left|right)\s*$/i.exec(action || "");
  return direction ? make("span", { class: "arrow", title: action }, ARROWS[direction[1].toLowerCase()]) : null;
}

function stepView(step, number, last) {
  const facts = [`reward ${step.reward}`, ...Object.entries(step.seconds).map(([k, v]) => `${k} ${(1000 * v).toFixed(1)} ms`)];
  const usage = step.meta && step.meta.usage;
  if (usage) facts.push(`${usage.prompt_tokens} + ${usage.completion_tokens} tokens`);
  const added = step.messages.length ? step.messages : last ? [last] : [];
  const kept = step.messages.length && step.kept ? ` (after ${step.kept} earlier messages)` : "";
  const pictures = (last && Array.isArray(last.content) ? last.content : []).filter((part) => part.type === "image");
  return make("div", { class: "step" },
    make("div", { class: "head" }, make("b", {}, `Step ${number + 1}`), ...facts.map((fact) => make("span", {}, fact)),
      step.invalid_reason ? make("span", { class: "unsolved" }, `invalid: ${step.invalid_reason}`) : null),
    pictures.length ? make("div", { class: "shot" }, ...content(pictures), arrow(step.action)) : null,
    step.observation ? make("div", { class: "tag" }, "observation") : null, step.observation ? make("pre", {}, step.observation) : null,
    make("details", {}, make("summary", {}, `whole prompt${kept}`),
      ...added.flatMap((m) => [make("div", { class: "tag" }, m.role), ...content(m.content)])),
    make("div", { class: "tag" }, "reply"), make("pre", { class: "reply" }, step.reply),
    make("div", { class: "tag" }, "action"), make("pre", {}, step.action || "(none)"));
}
