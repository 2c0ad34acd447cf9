// Pictures of answers: bars with the ends that hold the true value, and series with their band.

import { h, svg, shown } from "./dom.js";

const WIDTH = 640;

/** Give round numbers between two ends, about so many. */
function ticks(low, high, about = 5) {
  const span = high - low || 1;
  const rough = span / about;
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((times) => times * power).find((size) => size >= rough);
  const found = [];
  for (let at = Math.ceil(low / step) * step; at <= high + step / 1e6; at += step) found.push(at);
  return found;
}

const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 3 });

function scale(low, high, from, to) {
  const span = high - low || 1;
  return (value) => from + ((value - low) / span) * (to - from);
}

/** Draw bars with their ends: rows of { label, value, low, high }. */
export function bars(name, rows) {
  const [height, left, right] = [26, 150, 24];
  const ends = rows.flatMap((row) => [row.value, row.low ?? row.value, row.high ?? row.value, 0]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const x = scale(low, high, left, WIDTH - right);
  const tall = rows.length * height + 30;
  const words = rows.map((row) => `${row.label}: ${shown(row.value)}, between ${shown(row.low)} and ${shown(row.high)}`);
  const drawn = rows.map((row, place) => {
    const top = place * height + 4;
    const middle = top + (height - 8) / 2;
    const [from, to] = [Math.min(x(0), x(row.value)), Math.max(x(0), x(row.value))];
    const whisker = row.low === null || row.high === null ? null : [
      svg("line", { class: "whisker", x1: x(row.low), x2: x(row.high), y1: middle, y2: middle }),
      svg("line", { class: "whisker", x1: x(row.low), x2: x(row.low), y1: middle - 5, y2: middle + 5 }),
      svg("line", { class: "whisker", x1: x(row.high), x2: x(row.high), y1: middle - 5, y2: middle + 5 }),
    ];
    return svg("g", {},
      svg("title", {}, words[place]),
      svg("text", { class: "label", x: left - 8, y: middle + 4, "text-anchor": "end" }, short(row.label, 20)),
      svg("rect", { class: "bar-of", x: from, y: top, width: Math.max(1, to - from), height: height - 8 }),
      whisker);
  });
  const axis = ticks(low, high).map((at) => svg("g", {},
    svg("line", { class: "grid", x1: x(at), x2: x(at), y1: 0, y2: tall - 26 }),
    svg("text", { class: "tick", x: x(at), y: tall - 8, "text-anchor": "middle" }, compact.format(at))));
  return h("figure", {},
    svg("svg", { viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": `${name}. ${words.join(". ")}`, class: "chart" }, axis, drawn),
    h("figcaption", {}, `${name}, with the ends that hold the true value`));
}

/** Draw a series with its band: points of { label, value, low, high }. */
export function series(name, points) {
  const [left, right, top, bottom, tall] = [60, 12, 10, 28, 260];
  const ends = points.flatMap((point) => [point.value, point.low ?? point.value, point.high ?? point.value]);
  const [low, high] = [Math.min(...ends), Math.max(...ends)];
  const x = scale(0, Math.max(1, points.length - 1), left, WIDTH - right);
  const y = scale(low, high, tall - bottom, top);
  const path = (pick) => points.map((point, place) => `${x(place)},${y(pick(point))}`);
  const upper = path((point) => point.high ?? point.value);
  const lower = path((point) => point.low ?? point.value).reverse();
  const [first, last] = [points[0], points[points.length - 1]];
  const words = `${name}: ${points.length} steps from ${first.label} (${shown(first.value)}) to ${last.label} (${shown(last.value)})`;
  return h("figure", {},
    svg("svg", { viewBox: `0 0 ${WIDTH} ${tall}`, role: "img", "aria-label": words, class: "chart" },
      ticks(low, high).map((at) => svg("g", {},
        svg("line", { class: "grid", x1: left, x2: WIDTH - right, y1: y(at), y2: y(at) }),
        svg("text", { class: "tick", x: left - 8, y: y(at) + 4, "text-anchor": "end" }, compact.format(at)))),
      svg("polygon", { class: "band", points: [...upper, ...lower].join(" ") }),
      svg("polyline", { class: "line", points: path((point) => point.value).join(" ") }),
      svg("text", { class: "tick", x: left, y: tall - 8 }, short(first.label, 24)),
      svg("text", { class: "tick", x: WIDTH - right, y: tall - 8, "text-anchor": "end" }, short(last.label, 24))),
    h("figcaption", {}, `${name}, with the band that holds the true values`));
}
