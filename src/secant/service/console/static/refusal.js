// A refusal as it is read: what is wrong, where it stands in the text, and what to do now.

import { h, say } from "./dom.js";

export function refusal(error, text = "") {
  say(`refused: ${error.message}`);
  const span = error.span && text ? error.span : null;
  return h("div", { class: "refusal", role: "alert" },
    h("p", {}, error.code && h("code", { class: "code" }, error.code), " ", h("strong", {}, error.message)),
    span && h("pre", {}, text.slice(0, span[0]), h("mark", {}, text.slice(span[0], span[1])), text.slice(span[1])),
    error.details && error.details.length > 0 && h("ul", {}, error.details.map((line) => h("li", {}, line))),
    error.hint && h("p", { class: "now" }, h("strong", {}, "Now: "), error.hint));
}
