// The page where questions are written: price and expected error first, then the answer.

import { field, h, say, show, shown } from "./dom.js";
import { ask as send, get, post } from "./api.js";
import { answered } from "./answer.js";
import { editor } from "./editor.js";
import { gauges } from "./gauges.js";
import { refusal } from "./refusal.js";
import { why } from "./why.js";

const FIRST = "SELECT ward, count(*) AS visits, avg(cost) AS cost\nFROM visits\nGROUP BY ward";
const PAUSE = 400; // milliseconds without a key before the price is asked for
const draft = { text: null, way: "epsilon", epsilon: -0.7, error: "5%" };

const epsilonOf = (power) => Number((10 ** power).toPrecision(2));

export function ask(page, user, given) {
  const may = user.role !== "auditor";
  draft.text = given ?? draft.text ?? FIRST;
  let [timer, turn] = [0, 0];
  const price = h("section", { class: "card", "aria-label": "Price" });
  const result = h("div", { "aria-live": "off" });
  const budget = h("aside", { class: "card" });
  const meters = gauges(budget);

  const slider = h("input", { type: "range", min: -2, max: 1, step: 0.05, value: draft.epsilon });
  const epsilon = h("output", {}, shown(epsilonOf(draft.epsilon)));
  const wanted = h("input", { type: "text", value: draft.error, size: 10 });
  const ways = ["epsilon", "error"].map((name) => h("label", { class: "choice" },
    h("input", { type: "radio", name: "way", value: name, checked: draft.way === name, onchange: () => { draft.way = name; controls(); change(); } }),
    name === "epsilon" ? " by privacy (ε)" : " by accuracy"));
  const control = h("div");
  slider.addEventListener("input", () => {
    draft.epsilon = Number(slider.value);
    epsilon.textContent = shown(epsilonOf(draft.epsilon));
    slider.setAttribute("aria-valuetext", `epsilon ${epsilon.textContent}`);
    change();
  });
  wanted.addEventListener("input", () => { draft.error = wanted.value; change(); });
  const button = h("button", { type: "submit", class: "main", disabled: !may }, "Ask");
  const writing = editor({ label: "Question in SQL", value: draft.text, onchange: (text) => { draft.text = text; change(); }, onask: () => form.requestSubmit() });
  const form = h("form", {
    class: "card",
    onsubmit: (event) => { event.preventDefault(); submit(); },
  },
    writing.node,
    h("fieldset", { class: "ways" }, h("legend", {}, "How exact"), ways, control),
    h("div", { class: "row" }, button, h("span", { class: "hint" }, may ? "Ctrl+Enter asks; Ctrl+Space names tables and columns" : "an auditor sees prices, and asks nothing")));

  function controls() {
    show(control, draft.way === "epsilon"
      ? h("div", { class: "row" }, field("Epsilon", slider), epsilon)
      : field("Error", wanted, "an amount such as 20, or a share such as 5%"));
  }

  function question() {
    const how = draft.way === "epsilon" ? { epsilon: String(epsilonOf(draft.epsilon)) } : { error: draft.error };
    return { sql: draft.text, ...how };
  }

  function change() {
    clearTimeout(timer);
    timer = setTimeout(look, PAUSE);
  }

  async function look() {
    turn += 1;
    const mine = turn;
    if (!draft.text.trim()) return show(price);
    const asked = question();
    try {
      const found = await post("/v1/explain", asked);
      if (mine !== turn) return undefined; // a newer text is being looked at
      meters.price(found.guarantee || []);
      const lines = (found.releases || []).flatMap((release) => release.noise || []);
      say("price updated");
      return show(price, h("h2", {}, "Before you ask"),
        found.exact ? h("p", {}, "free: public data only") : h("p", {}, "Price ", found.guarantee.map((part) => h("span", { class: "badge" },
          `${part.protection} ε ${shown(part.epsilon)}${part.delta ? `, δ ${shown(part.delta)}` : ""}`))),
        lines.length > 0 && [h("h3", {}, "Expected error"), h("ul", { class: "errors" }, lines.map((line) => h("li", {}, line)))],
        (found.warnings || []).map((warning) => h("p", { class: "warning" }, warning.text || warning.message)),
        h("details", {}, h("summary", {}, "Why this is private"), why(found)));
    } catch (error) {
      if (mine !== turn) return undefined;
      meters.price([]);
      return show(price, refusal(error, asked.sql));
    }
  }

  async function submit() {
    if (!may) return;
    const asked = question();
    clearTimeout(timer); // the answer tells its price: an estimate that comes later would talk over it
    turn += 1;
    button.disabled = true;
    say("asking");
    show(result, h("p", { class: "quiet" }, h("span", { class: "spinner" }), " asking"));
    try {
      const answer = await send(asked, crypto.randomUUID());
      show(result, h("div", { class: "card" }, answered(answer)));
      say(`answered with ${answer.rows.length} rows`);
    } catch (error) {
      show(result, refusal(error, asked.sql));
    } finally {
      button.disabled = false;
      meters.refresh();
    }
  }

  controls();
  show(page, h("h1", {}, "Ask"),
    h("div", { class: "columns" }, h("div", {}, form, price, result), budget));
  Promise.all([get("/v1/tables"), get("/v1/functions")]).then(([tables, functions]) => writing.know(tables, functions)).catch(() => {});
  meters.refresh().catch((error) => show(budget, refusal(error)));
  look();
  writing.area.focus();
}
