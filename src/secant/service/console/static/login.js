// The first page of who is not logged in.

import { field, h, show } from "./dom.js";
import { login as send } from "./api.js";
import { refusal } from "./refusal.js";

export function login(page, entered) {
  const user = h("input", { autocomplete: "username", required: true, autocapitalize: "off" });
  const password = h("input", { type: "password", autocomplete: "current-password", required: true });
  const told = h("div");
  show(page, h("form", {
    class: "card narrow",
    onsubmit: async (event) => {
      event.preventDefault();
      try {
        entered(await send(user.value, password.value));
      } catch (error) {
        password.value = "";
        show(told, refusal(error));
        password.focus();
      }
    },
  },
    h("h1", {}, "Secant"),
    h("p", {}, "Ask about data that nobody here ever shows you: every answer hides single people, and says how exact it is."),
    field("User", user), field("Password", password),
    h("button", { type: "submit", class: "main" }, "Log in"), told));
  user.focus();
}
