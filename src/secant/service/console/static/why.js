// Why an answer is private: the derivation as a tree, each rule with its claim and proof.

import { h, show } from "./dom.js";
import { get } from "./api.js";

/** Take a line of a derivation apart: its number, its rule, what it says and what it rests on. */
export function step(line) {
  const parts = /^\s*(\d+)\.\s+(\S+)\s+(.*?)(?:\s+\(from ([\d, ]+)\))?$/.exec(line);
  if (!parts) return null;
  const from = parts[4] ? parts[4].split(",").map((number) => Number(number)) : [];
  return { number: Number(parts[1]), rule: parts[2], says: parts[3], from };
}

function rule(name) {
  const place = h("div", { class: "proof" });
  const button = h("button", {
    type: "button", class: "rule", "aria-expanded": "false",
    onclick: async () => {
      const open = button.getAttribute("aria-expanded") === "true";
      button.setAttribute("aria-expanded", open ? "false" : "true");
      if (open) return show(place);
      try {
        const found = await get(`/v1/rules/${encodeURIComponent(name)}`);
        const part = (title, text) => text && [h("dt", {}, title), h("dd", {}, text)];
        return show(place, h("dl", {}, part("Claim", found.claim), part("Needs", found.needs), part("Proof", found.proof),
          part("Numerics", found.numerics), part("Attacked by", found.tests.join("\n"))));
      } catch (error) {
        return show(place, h("p", { class: "bad" }, error.message));
      }
    },
  }, name);
  return [button, place];
}

function tree(lines) {
  const steps = lines.map(step);
  if (steps.includes(null)) return h("pre", {}, lines.join("\n"));
  const byNumber = new Map(steps.map((one) => [one.number, one]));
  const used = new Set(steps.flatMap((one) => one.from));
  const seen = new Set();
  function branch(one) {
    const again = seen.has(one.number);
    seen.add(one.number);
    const below = again ? [] : one.from.map((number) => byNumber.get(number)).filter(Boolean);
    return h("li", {}, h("div", { class: "step" }, rule(one.rule), h("span", {}, one.says, again && " (as above)")),
      below.length > 0 && h("ul", {}, below.map(branch)));
  }
  return h("ul", { class: "tree" }, steps.filter((one) => !used.has(one.number)).map(branch));
}

/** Show an explanation as `/v1/explain` gives it. */
export function why(explained) {
  if (explained.exact) {
    return h("p", {}, "Only public tables are read: the answer is exact and costs nothing.");
  }
  const releases = explained.releases || [];
  return h("div", { class: "why" },
    releases.map((release, place) => h("section", {},
      releases.length > 1 && h("h3", {}, `Release ${place + 1}`),
      release.enforced.length > 0 && [h("h4", {}, "Enforced"), h("ul", {}, release.enforced.map((line) => h("li", {}, line)))],
      release.certificates.map((proof) => [
        h("h4", {}, `${proof.protection}, proved by ${proof.analysis}`),
        tree(proof.derivation),
      ]),
      release.refusals.length > 0 && h("details", {}, h("summary", {}, "Analyses that were not used"),
        h("ul", {}, release.refusals.map((line) => h("li", {}, line)))))),
    h("details", {}, h("summary", {}, "As text"), h("pre", {}, explained.text || "")),
    (explained.statements || []).length > 0 && h("details", {}, h("summary", {}, "Statements that run"),
      explained.statements.map((text) => h("pre", { class: "wrap" }, text))));
}
