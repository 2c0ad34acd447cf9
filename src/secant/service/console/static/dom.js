// Elements made from values. Text is only ever set as text, so that a name or a value is never read as markup.

const SVG = "http://www.w3.org/2000/svg";

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") node[name] = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return node;
}

export function h(tag, attributes = {}, ...children) {
  return put(document.createElement(tag), attributes, children);
}

export function svg(tag, attributes = {}, ...children) {
  return put(document.createElementNS(SVG, tag), attributes, children);
}

export function show(place, ...children) {
  place.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/** Tell somebody who does not see the screen what has happened. */
export function say(text) {
  document.getElementById("status").textContent = text;
}

let last = 0;

/** Give an id that no other element has, to tie labels to what they name. */
export function id(stem) {
  last += 1;
  return `${stem}-${last}`;
}

/** Give a control with its label above it. */
export function field(label, control, hint = null) {
  control.id ||= id("field");
  const told = hint && h("span", { class: "hint", id: `${control.id}-hint` }, hint);
  if (told) control.setAttribute("aria-describedby", told.id);
  return h("div", { class: "field" }, h("label", { for: control.id }, label), control, told);
}

/** Give a table; numbers, and what is marked as one, stand to the right. The caption is for who does not see the heading. */
export function table(caption, columns, rows, empty = "nothing yet", kind = null) {
  if (!rows.length) return h("p", { class: "quiet" }, empty);
  const numeric = (value) => typeof value === "number" || (value instanceof Element && value.classList.contains("number"));
  const side = (column) => (rows.every((row) => row[column] === null || numeric(row[column])) ? "number" : null);
  const sides = columns.map((_, column) => side(column));
  const cell = (value, column) => h("td", { class: sides[column], role: "cell", "data-column": columns[column] }, value instanceof Node ? value : shown(value));
  return h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": caption },
    // Roles in words: browsers forget them where a table is laid out as something else.
    h("table", { class: kind, role: "table" },
      h("caption", { class: "sr" }, caption),
      h("thead", { role: "rowgroup" }, h("tr", { role: "row" }, columns.map((name, column) => h("th", { scope: "col", role: "columnheader", class: sides[column] }, name)))),
      h("tbody", { role: "rowgroup" }, rows.map((row) => h("tr", { role: "row" }, row.map(cell))))));
}

/** Give a table whose rows become cards on a phone, so that nothing has to be scrolled sideways. */
export function list(caption, columns, rows, empty) {
  return table(caption, columns, rows, empty, "stacks");
}

/** Write a value as people read it. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return value.toLocaleString("en-US");
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-3 || size >= 1e9)) return value.toExponential(3);
  return value.toLocaleString("en-US", { maximumSignificantDigits: Math.max(4, Math.ceil(Math.log10(size + 1)) + 2) });
}

export function when(text) {
  return h("time", { datetime: text }, new Date(text).toLocaleString());
}
