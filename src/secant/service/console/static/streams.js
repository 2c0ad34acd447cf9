// Series that go on: what each is, what it costs, and what was released, drawn with its band.

import { h, show, shown } from "./dom.js";
import { get, post } from "./api.js";
import { series } from "./chart.js";
import { refusal } from "./refusal.js";

const EVERY = 30_000; // milliseconds between two looks at a stream that is followed

/** Give one line to draw for each group and each measure: a name, and points in the order of steps. */
export function lines(found) {
  const noisy = (found.error && found.error.noisy) || found.columns.map((_, column) => column > 0);
  const columns = found.columns.map((_, column) => column).slice(1);
  const [keys, measures] = [columns.filter((column) => !noisy[column]), columns.filter((column) => noisy[column])];
  const drawn = new Map();
  found.rows.forEach((row, at) => measures.forEach((column) => {
    if (typeof row[column] !== "number") return;
    const name = [found.columns[column], ...keys.map((key) => shown(row[key]))].join(", ");
    const end = (side) => (found.error && found.error[side] ? found.error[side][at][column] : null);
    if (!drawn.has(name)) drawn.set(name, []);
    drawn.get(name).push({ label: shown(row[0]), value: row[column], low: end("low"), high: end("high") });
  }));
  return [...drawn];
}

export async function streams(page, user, given, alive) {
  show(page, h("h1", {}, "Streams"));
  let list;
  try {
    list = await get("/v1/streams");
  } catch (error) {
    return page.append(refusal(error));
  }
  if (!list.length) {
    return page.append(h("p", { class: "quiet" }, "The policy declares no stream. An owner adds one as [streams.NAME]."));
  }
  return page.append(...list.map((stream) => card(stream, user.role !== "auditor", alive)));
}

function card(stream, may, alive) {
  const place = h("div");
  const follow = h("input", { type: "checkbox", disabled: !may });
  let timer = 0;

  async function release() {
    clearTimeout(timer);
    if (!alive()) return;
    try {
      const found = await post(`/v1/streams/${encodeURIComponent(stream.stream)}`, {});
      const drawn = lines(found).map(([name, points]) => series(name, points));
      show(place, drawn.length ? drawn : h("p", { class: "quiet" }, "no step is complete yet"));
    } catch (error) {
      show(place, refusal(error));
      follow.checked = false;
    }
    if (follow.checked) timer = setTimeout(release, EVERY);
  }

  follow.addEventListener("change", () => (follow.checked ? release() : clearTimeout(timer)));
  if (stream.paid && may) release(); // what is paid for shows at once; the first release is a decision
  return h("section", { class: "card" },
    h("h2", {}, stream.stream),
    h("pre", {}, stream.query),
    h("p", {}, `a step of ${stream.step} from ${shown(stream.start)}; protection ${stream.protection}, `,
      h("span", { class: "badge" }, `ε ${shown(stream.epsilon)} once`), stream.paid ? " paid" : " not paid yet"),
    h("div", { class: "row" },
      h("button", { type: "button", disabled: !may, onclick: release }, stream.paid ? "Look again" : "Begin and pay"),
      h("label", { class: "choice" }, follow, " follow")),
    place);
}
