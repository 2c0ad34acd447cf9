// For owners: users, shares, tokens and the log. For everybody: one's own password and tokens. What outlives a session
// needs the password of who is logged in: whoever has found an open session must not be able to stay.

import { field, h, list, say, show, shown, when } from "./dom.js";
import { get, post, remove } from "./api.js";
import { amount } from "./gauges.js";
import { refusal } from "./refusal.js";

function secret(name, text) {
  say(`${name} is shown once`);
  return h("p", { class: "secret" }, `${name}, shown this once: `, h("code", { tabindex: "0" }, text));
}

/** Give a field for the present password of who is logged in. */
function present(label = "Your password") {
  const input = h("input", { type: "password", autocomplete: "current-password", required: true });
  return { input, shown: field(label, input) };
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
    const own = present("Your password, to add or to reset");
    const at = (one) => `/v1/users/${encodeURIComponent(one.user)}`;
    const buttons = (one) => h("span", { class: "row" },
      h("button", { type: "button", onclick: act(async () => secret(`Password of ${one.user}`, (await post(`${at(one)}/password`, { current: own.input.value })).password)) }, "New password"),
      h("button", { type: "button", class: "danger", onclick: act(async () => {
        const { ended } = await remove(`${at(one)}/tokens`);
        return h("p", {}, `${ended} sessions and tokens of ${one.user} have ended.`);
      }) }, "Revoke all"),
      one.user !== self.user && h("button", { type: "button", class: "danger", onclick: act(() => remove(at(one))) }, "Remove"));
    return [
      list("Users", ["user", "role", "change"], found.map((one) => [one.user, one.role, owner ? buttons(one) : ""])),
      owner && h("form", { class: "row", onsubmit: act(async () => secret("Password", (await post("/v1/users", { user: name.value, role: role.value, current: own.input.value })).password)) },
        field("Name", name), field("Role", role), own.shown, h("button", { type: "submit" }, "Add")),
    ];
  });
}

function shares() {
  return card("Shares of the budget", async () => {
    const found = await get("/v1/budget");
    const rows = found.flatMap((one) => Object.entries(one.shares || {}).map(([who, account]) => [
      one.protection, who, amount(account.budget), amount(account.spent), amount(account.remaining)]));
    return list("Shares", ["protection", "who", "ε in all", "ε spent", "ε left"], rows,
      "The policy names no shares; whoever may ask spends from the whole budget. An owner adds them as analysts = { … } under a protection.");
  });
}

function tokens() {
  return card("Tokens for programs", async (act) => {
    const found = await get("/v1/tokens");
    const note = h("input", { maxlength: 100, autocomplete: "off" });
    const own = present();
    return [
      list("Tokens", ["whose", "kind", "note", "until", "change"], found.map((one) => [one.user, one.kind, one.note, when(one.expires),
        h("button", { type: "button", class: "danger", onclick: act(() => remove(`/v1/tokens/${one.id}`)) }, "Revoke")])),
      h("form", { class: "row", onsubmit: act(async () => secret("Token", (await post("/v1/tokens", { note: note.value, current: own.input.value })).token)) },
        field("What it is for", note), own.shown, h("button", { type: "submit" }, "Make a token")),
    ];
  });
}

function password(user) {
  return card("Your password", async (act) => {
    const fresh = h("input", { type: "password", autocomplete: "new-password", required: true });
    const own = present("Present password");
    return h("form", {
      class: "row",
      onsubmit: act(async () => {
        await post(`/v1/users/${encodeURIComponent(user.user)}/password`, { current: own.input.value, password: fresh.value });
        return h("p", {}, "Changed. All sessions and tokens have ended: log in again.");
      }),
    }, h("input", { class: "sr", value: user.user, autocomplete: "username", readonly: true, tabindex: "-1", "aria-label": "User" }),
    own.shown, field("New password", fresh), h("button", { type: "submit" }, "Change"));
  });
}

function log() {
  return card("Log", async () => {
    const found = await get("/v1/audit");
    const from = (one) => [one.address, one.way].filter(Boolean).join(", ");
    return list("Log", ["when", "what", "who", "by", "from", "token", "about"], found.slice(0, 200).map((one) => [
      when(one.time), one.kind, one.user, one.actor, from(one), one.token, shown(one.about)]));
  });
}

export function people(page, user) {
  const all = user.role !== "analyst";
  show(page, h("h1", {}, all ? "People" : "Account"), all && [users(user), shares()], tokens(), password(user), all && log());
}
