// For owners: users, shares, tokens and the log. For everybody: one's own password and tokens.

import { field, h, say, show, shown, table, when } from "./dom.js";
import { get, post, remove } from "./api.js";
import { amount } from "./gauges.js";
import { refusal } from "./refusal.js";

function secret(name, text) {
  say(`${name} is shown once`);
  return h("p", { class: "secret" }, `${name}, shown this once: `, h("code", { tabindex: "0" }, text));
}

/** Give a card whose buttons tell below what came of them, and draw it again. */
function card(title, draw) {
  const [place, told] = [h("div"), h("div")];
  const act = (work) => async (event) => {
    if (event) event.preventDefault();
    try {
      show(told, await work());
      show(place, await draw(act));
    } catch (error) {
      show(told, refusal(error));
    }
  };
  draw(act).then((drawn) => show(place, drawn)).catch((error) => show(place, refusal(error)));
  return h("section", { class: "card" }, h("h2", {}, title), place, told);
}

function users(self) {
  const owner = self.role === "owner";
  return card("Users", async (act) => {
    const found = await get("/v1/users");
    const [name, role] = [h("input", { required: true, autocomplete: "off" }), h("select", {}, ["analyst", "auditor", "owner"].map((one) => h("option", {}, one)))];
    const buttons = (one) => h("span", { class: "row" },
      h("button", { type: "button", onclick: act(async () => secret(`Password of ${one.user}`, (await post(`/v1/users/${encodeURIComponent(one.user)}/password`, {})).password)) }, "New password"),
      one.user !== self.user && h("button", { type: "button", class: "danger", onclick: act(() => remove(`/v1/users/${encodeURIComponent(one.user)}`)) }, "Remove"));
    return [
      table("Users", ["user", "role", "change"], found.map((one) => [one.user, one.role, owner ? buttons(one) : ""])),
      owner && h("form", { class: "row", onsubmit: act(async () => secret("Password", (await post("/v1/users", { user: name.value, role: role.value })).password)) },
        field("Name", name), field("Role", role), h("button", { type: "submit" }, "Add")),
    ];
  });
}

function shares() {
  return card("Shares of the budget", async () => {
    const found = await get("/v1/budget");
    const rows = found.flatMap((one) => Object.entries(one.shares || {}).map(([who, account]) => [
      one.protection, who, amount(account.budget), amount(account.spent), amount(account.remaining)]));
    return table("Shares", ["protection", "who", "ε in all", "ε spent", "ε left"], rows,
      "The policy names no shares; whoever may ask spends from the whole budget. An owner adds them as analysts = { … } under a protection.");
  });
}

function tokens() {
  return card("Tokens for programs", async (act) => {
    const found = await get("/v1/tokens");
    const note = h("input", { maxlength: 100, autocomplete: "off" });
    return [
      table("Tokens", ["whose", "kind", "note", "until", "change"], found.map((one) => [one.user, one.kind, one.note, when(one.expires),
        h("button", { type: "button", class: "danger", onclick: act(() => remove(`/v1/tokens/${one.id}`)) }, "Revoke")])),
      h("form", { class: "row", onsubmit: act(async () => secret("Token", (await post("/v1/tokens", { note: note.value })).token)) },
        field("What it is for", note), h("button", { type: "submit" }, "Make a token")),
    ];
  });
}

function password(user) {
  return card("Your password", async (act) => {
    const fresh = h("input", { type: "password", autocomplete: "new-password", required: true });
    return h("form", {
      class: "row",
      onsubmit: act(async () => {
        await post(`/v1/users/${encodeURIComponent(user.user)}/password`, { password: fresh.value });
        return h("p", {}, "Changed. Sessions have ended: log in again.");
      }),
    }, h("input", { class: "sr", value: user.user, autocomplete: "username", readonly: true, tabindex: "-1", "aria-label": "User" }),
    field("New password", fresh), h("button", { type: "submit" }, "Change"));
  });
}

function log() {
  return card("Log", async () => {
    const found = await get("/v1/audit");
    return table("Log", ["when", "what", "who", "about"], found.slice(0, 200).map((one) => [when(one.time), one.kind, one.user, shown(one.about)]));
  });
}

export function people(page, user) {
  const all = user.role !== "analyst";
  show(page, h("h1", {}, all ? "People" : "Account"), all && [users(user), shares()], tokens(), password(user), all && log());
}
