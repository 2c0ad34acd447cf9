// An answer: table and chart with the ends beside each number, what it promises and what it cost.

import { h, shown, table } from "./dom.js";
import { bars } from "./chart.js";

const MOST_BARS = 60;

function noisy(answer, column) {
  return Boolean(answer.error && answer.error.noisy && answer.error.noisy[column]);
}

function end(answer, side, row, column) {
  const values = answer.error && answer.error[side];
  return values ? values[row][column] : null;
}

function cells(answer) {
  return answer.rows.map((row, at) => row.map((value, column) => {
    if (!noisy(answer, column)) return value;
    const [low, high] = [end(answer, "low", at, column), end(answer, "high", at, column)];
    return h("span", { class: "number" }, shown(value),
      low !== null && high !== null && h("small", { class: "ends" }, ` ${shown(low)} … ${shown(high)}`));
  }));
}

function charts(answer) {
  const measures = answer.columns.map((name, column) => [name, column])
    .filter(([, column]) => noisy(answer, column) && answer.rows.some((row) => typeof row[column] === "number"));
  if (!measures.length || answer.rows.length < 1 || answer.rows.length > MOST_BARS) return null;
  const keys = answer.columns.map((_, column) => column).filter((column) => !noisy(answer, column));
  return measures.map(([name, column]) => bars(name, answer.rows
    .map((row, at) => ({
      label: keys.length ? keys.map((key) => shown(row[key])).join(", ") : name,
      value: row[column], low: end(answer, "low", at, column), high: end(answer, "high", at, column),
    }))
    .filter((row) => typeof row.value === "number")));
}

function missing(answer) {
  const out = answer.error && answer.error.leaves_out;
  if (!out) return [];
  const lines = (out.measures || []).map((part) => part.units_cut_at_most === null
    ? `${part.measure}: at most ${shown(part.limit)} of one unit count, as declared`
    : `${part.measure}: at most ${shown(part.units_cut_at_most)} units were cut to ${shown(part.limit)}`);
  return [...lines, ...(out.ranges || []).map((part) => part.low === null
    ? `${part.measure}: only declared values count`
    : `${part.measure}: values are taken within ${shown(part.low)} and ${shown(part.high)}`)];
}

export function answered(answer) {
  const level = answer.error ? `${100 * answer.error.level} %` : "";
  const left = missing(answer);
  return h("div", { class: "answer" },
    answer.reused && h("p", { class: "badge" }, `stored answer of ${new Date(answer.released_at).toLocaleString()}: costs nothing`),
    (answer.warnings || []).map((warning) => h("p", { class: "warning" }, warning.text || warning.message)),
    h("h2", {}, "Answer"),
    table("Answer", answer.columns, cells(answer), "no rows"),
    answer.error && answer.error.low && h("p", { class: "quiet" }, `Between the small ends lies the true value, with ${level} confidence.`),
    charts(answer),
    left.length > 0 && h("details", {}, h("summary", {}, "What may be left out"), h("ul", {}, left.map((line) => h("li", {}, line)))),
    h("h3", {}, "Promise"),
    answer.guarantee.length === 0 && h("p", {}, "public data: exact, and free"),
    h("ul", {}, answer.guarantee.map((part) => h("li", {},
      h("strong", {}, part.protection), `: ε ${shown(part.epsilon)}, δ ${shown(part.delta)}; hides ${part.protects}`))),
    h("p", { class: "quiet" }, answer.release_id ? `release ${answer.release_id}` : ""));
}
