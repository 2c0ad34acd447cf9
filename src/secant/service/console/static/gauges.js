// What is left of each budget, as gauges; what the question in the editor would take is shown in them.

import { h, show, shown } from "./dom.js";
import { get } from "./api.js";

/** Give the epsilon of an amount, which the books write as exact decimal text. */
export const amount = (part) => Number(part.epsilon);

export function gauges(place) {
  let accounts = [];
  let asked = [];

  function gauge(account) {
    const own = account.share || account;
    const [total, left] = [amount(own.budget), amount(own.remaining)];
    const price = asked.find((part) => part.protection === account.protection);
    const takes = price ? Math.min(price.epsilon, left) : 0;
    const words = `${account.protection}: ${shown(left)} of ${shown(total)} left`
      + (price ? `, this question takes ${shown(price.epsilon)}` : "");
    const meter = h("div", {
      class: "meter", role: "meter", "aria-label": account.share ? `your share of ${account.protection}` : account.protection,
      "aria-valuemin": 0, "aria-valuemax": total, "aria-valuenow": left, "aria-valuetext": words,
    }, h("span", { class: "left" }), h("span", { class: price && price.epsilon > left ? "takes over" : "takes" }));
    // Sizes go through the object model: a style in the markup would need a weaker content policy.
    meter.firstChild.style.width = `${total ? (100 * (left - takes)) / total : 0}%`;
    meter.lastChild.style.width = `${total ? (100 * takes) / total : 0}%`;
    return h("div", { class: "gauge" },
      h("div", { class: "gauge-head" }, h("strong", {}, account.protection), " ", h("span", {}, `ε ${shown(left)} of ${shown(total)} left`)),
      meter,
      price && price.epsilon > left && h("p", { class: "bad" }, `this question takes ε ${shown(price.epsilon)}`));
  }

  const draw = () => show(place, h("h2", {}, "Budget"), accounts.map(gauge),
    !accounts.length && h("p", { class: "quiet" }, "no protection has a budget"));
  return {
    async refresh() {
      accounts = await get("/v1/budget");
      draw();
    },
    price(parts) {
      asked = parts;
      draw();
    },
  };
}
