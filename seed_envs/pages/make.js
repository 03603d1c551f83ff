"use strict";
// Everything shown is set as text, never as markup: models and environments wrote it.
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

// An action that is a direction points the way beside the picture that it was chosen on.
const ARROWS = { up: "\u2191", down: "\u2193", left: "\u2190", right: "\u2192" };

function arrow(action) {
  const direction = /\b(up|down|left|right)\s*$/i.exec(action || "");
  return direction ? make("span", { class: "arrow", title: action }, ARROWS[direction[1].toLowerCase()]) : null;
}
