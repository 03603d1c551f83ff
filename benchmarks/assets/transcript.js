// What the pages of this package share.
const data = JSON.parse(document.getElementById("data").textContent);

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
