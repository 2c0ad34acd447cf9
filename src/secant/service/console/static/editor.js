// A text area that completes names of tables, columns and functions, by keyboard alone if wanted.

import { h, id, say, show } from "./dom.js";

const WORDS = ["SELECT", "FROM", "WHERE", "GROUP BY", "ORDER BY", "HAVING", "JOIN", "LEFT JOIN", "ON", "AND", "OR", "NOT",
  "AS", "CASE", "WHEN", "THEN", "ELSE", "END", "BETWEEN", "IN", "IS NULL", "LIKE", "LIMIT", "DISTINCT", "WITH", "DATE"];
const MOST = 8;

/** Give what may follow at a place of a text: pairs of a word and what it is. */
export function proposals(text, at, tables, functions) {
  const before = text.slice(0, at);
  const started = /(?:([A-Za-z_]\w*)\.)?([A-Za-z_]\w*)?$/.exec(before);
  const [, qualifier, stem = ""] = started;
  if (!qualifier && !stem) return { stem, found: [] };
  const named = (name) => name.toLowerCase().startsWith(stem.toLowerCase()) && name.toLowerCase() !== stem.toLowerCase();
  if (qualifier) {
    const of = tables.find((table) => table.table.toLowerCase() === qualifier.toLowerCase()) || aliased(text, qualifier, tables);
    const columns = of ? of.columns : tables.flatMap((table) => table.columns);
    return { stem, found: columns.filter((c) => !stem || named(c.column)).map((c) => [c.column, c.type]).slice(0, MOST) };
  }
  const inText = tables.filter((table) => new RegExp(`\\b${table.table}\\b`, "i").test(text));
  const found = [
    ...inText.flatMap((table) => table.columns.map((c) => [c.column, `${table.table}, ${c.type}`])),
    ...tables.map((table) => [table.table, table.public ? "public table" : "table"]),
    ...functions.map((name) => [`${name}(`, "function"]),
    ...WORDS.map((word) => [word, "keyword"]),
  ].filter(([name]) => named(name));
  const seen = new Set();
  return { stem, found: found.filter(([name]) => !seen.has(name) && seen.add(name)).slice(0, MOST) };
}

function aliased(text, alias, tables) {
  const match = new RegExp(`\\b([A-Za-z_]\\w*)\\s+(?:as\\s+)?${alias}\\b`, "i").exec(text);
  return match && tables.find((table) => table.table.toLowerCase() === match[1].toLowerCase());
}

export function editor({ label, value, onchange, onask }) {
  const listId = id("names");
  const area = h("textarea", {
    class: "sql", rows: 6, spellcheck: "false", autocomplete: "off", autocapitalize: "off", value,
    "aria-haspopup": "listbox", "aria-autocomplete": "list", "aria-label": label,
  });
  const list = h("ul", { class: "names", role: "listbox", id: listId, "aria-label": "Names", hidden: true });
  let [tables, functions, found, stem, chosen] = [[], [], [], "", 0];

  function close() {
    found = [];
    list.hidden = true;
    area.removeAttribute("aria-controls");
    area.removeAttribute("aria-activedescendant");
  }

  function draw() {
    show(list, found.map(([name, kind], place) => h("li", {
      role: "option", id: `${listId}-${place}`, "aria-selected": place === chosen ? "true" : "false",
      // Before the area loses the focus.
      onmousedown: (event) => { event.preventDefault(); take(place); },
    }, h("span", {}, name), h("small", {}, kind))));
    list.hidden = false;
    area.setAttribute("aria-controls", listId);
    area.setAttribute("aria-activedescendant", `${listId}-${chosen}`);
  }

  function propose() {
    ({ stem, found } = proposals(area.value, area.selectionStart, tables, functions));
    chosen = 0;
    if (!found.length) return close();
    say(`${found.length} names, Tab takes ${found[0][0]}`);
    return draw();
  }

  function take(place) {
    const at = area.selectionStart;
    area.setRangeText(found[place][0], at - stem.length, at, "end");
    close();
    area.focus();
    onchange(area.value);
  }

  area.addEventListener("input", () => { propose(); onchange(area.value); });
  area.addEventListener("blur", close);
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      close();
      onask();
    } else if (event.key === " " && event.ctrlKey) {
      event.preventDefault();
      propose();
    } else if (found.length && ["ArrowDown", "ArrowUp"].includes(event.key)) {
      event.preventDefault();
      chosen = (chosen + (event.key === "ArrowDown" ? 1 : found.length - 1)) % found.length;
      draw();
    } else if (found.length && event.key === "Tab") {
      event.preventDefault();
      take(chosen);
    } else if (event.key === "Escape") {
      close();
    }
  });
  return {
    area,
    node: h("div", { class: "editor" }, area, list),
    know(ofTables, ofFunctions) { [tables, functions] = [ofTables, ofFunctions]; },
  };
}
