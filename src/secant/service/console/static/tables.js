// What may be asked about, and what the policy says of it. What is public is red: everybody sees it as it is.

import { h, show, shown, table } from "./dom.js";
import { get } from "./api.js";
import { amount } from "./gauges.js";
import { refusal } from "./refusal.js";

function facts(column) {
  const told = [];
  if (column.range) told.push(`between ${shown(column.range[0])} and ${shown(column.range[1])}`);
  if (column.step) told.push(`in steps of ${shown(column.step)}`);
  if (column.values) told.push(`one of ${column.values.map(shown).join(", ")}`);
  return told.join("; ") || "nothing declared";
}

export async function tables(page) {
  show(page, h("h1", {}, "Tables and policy"));
  try {
    const [found, budget] = await Promise.all([get("/v1/tables"), get("/v1/budget")]);
    page.append(
      h("div", { class: "card" }, h("h2", {}, "Protections"), table("Protections", ["protection", "ε in all", "ε left", "guarantee"], budget.map((one) => [
        one.protection, amount(one.budget), amount(one.remaining), one.statement]))),
      ...found.map((one) => h("section", { class: one.public ? "card public" : "card" },
        h("h2", {}, one.table, " ", one.public
          ? h("span", { class: "badge bad" }, "public: shown as it is")
          : h("span", { class: "badge good" }, `protected by ${one.protections.join(", ")}`)),
        one.key.length > 0 && h("p", { class: "quiet" }, `key ${one.key.join(", ")}`),
        table(`Columns of ${one.table}`, ["column", "type", "declared", "refers to"], one.columns.map((column) => [
          column.column, column.type, facts(column), one.references[column.column] || ""])))));
  } catch (error) {
    page.append(refusal(error));
  }
}
