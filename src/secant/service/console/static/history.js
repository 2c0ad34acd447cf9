// Who asked what, when, and at which price: one's own questions, or all of them for owners and auditors.

import { h, list, show, shown, when } from "./dom.js";
import { get, page as pageOf, remove } from "./api.js";
import { refusal } from "./refusal.js";

const PAGE = 50;

export async function history(page, user) {
  const [now, before] = [h("div"), h("div")];
  show(page, h("h1", {}, "History"), now, before);
  let rows = [];

  async function running() {
    const found = await get("/v1/running");
    show(now, found.length > 0 && h("div", { class: "card" }, h("h2", {}, "Waiting or running"), list("Waiting or running", ["since", "who", "question", "state", "change"],
      found.map((one) => [when(one.since), one.user, one.text || "", one.state,
        h("button", { type: "button", onclick: () => remove(`/v1/running/${one.id}`).then(running) }, "Cancel")]))));
  }

  async function more() {
    const oldest = rows.length ? `&before=${encodeURIComponent(rows[rows.length - 1].time)}` : "";
    const { found, more: older } = await pageOf(`/v1/history?limit=${PAGE}${oldest}`);
    rows = rows.concat(found);
    const price = (one) => (one.charged || []).map((part) => `${part.protection} ε ${shown(part.epsilon)}`).join(", ");
    // What was cut cannot be asked again.
    const question = (one) => (one.cut ? `${one.text} … (${shown(one.cut.characters)} characters)`
      : h("a", { href: `#/ask?${new URLSearchParams({ sql: one.text || "" })}` }, one.text || ""));
    const title = user.role === "analyst" ? "Your questions" : "All questions";
    show(before, h("div", { class: "card" }, h("h2", {}, title),
      list(title, ["when", "who", "question", "outcome", "price"],
        rows.map((one) => [when(one.time), one.user, question(one), one.outcome, price(one)])),
      older && h("button", { type: "button", onclick: more }, "Older")));
  }

  try {
    await Promise.all([running(), more()]);
  } catch (error) {
    show(before, refusal(error));
  }
}
