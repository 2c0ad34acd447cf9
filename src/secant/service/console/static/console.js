// The console: which address shows which page, and who is logged in.

import { h, say, show } from "./dom.js";
import { logout, me } from "./api.js";
import { ask } from "./ask.js";
import { history } from "./history.js";
import { login } from "./login.js";
import { people } from "./people.js";
import { refusal } from "./refusal.js";
import { streams } from "./streams.js";
import { tables } from "./tables.js";

const PAGES = [["ask", "Ask", ask], ["history", "History", history], ["streams", "Streams", streams],
  ["tables", "Tables", tables], ["people", "People", people]];
const THEMES = { "": "system", light: "light", dark: "dark" };
const page = document.getElementById("page");
let user = null;
let visit = 0;

function theme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("theme", name); } catch { /* a browser may keep nothing */ }
}

function kept() {
  try { return localStorage.getItem("theme") || ""; } catch { return ""; }
}

function bar(at) {
  show(document.getElementById("places"), user && PAGES.map(([name, title]) => h("a", {
    href: `#/${name}`, "aria-current": name === at ? "page" : null,
  }, name === "people" && user.role === "analyst" ? "Account" : title)));
  const looks = h("select", { "aria-label": "Colors", onchange: () => theme(looks.value) },
    Object.entries(THEMES).map(([value, name]) => h("option", { value, selected: value === kept() }, name)));
  show(document.getElementById("who"), user && h("span", {}, `${user.user} (${user.role})`), looks,
    user && h("button", { type: "button", onclick: async () => { await logout().catch(() => {}); user = null; route(); } }, "Log out"));
}

async function route() {
  visit += 1;
  const mine = visit;
  const [at, query] = location.hash.replace(/^#\//, "").split("?");
  const [name, title, draw] = PAGES.find(([known]) => known === at) || PAGES[0];
  bar(name);
  document.title = user ? `${title} · Secant` : "Secant";
  if (!user) return login(page, (entered) => { user = entered; route(); });
  const given = new URLSearchParams(query || "").get("sql") || undefined;
  try {
    await draw(page, user, given, () => mine === visit);
  } catch (error) {
    show(page, refusal(error));
  }
  say(title);
  return undefined;
}

theme(kept());
window.addEventListener("hashchange", route);
me().then((found) => { user = found; return route(); }).catch((error) => show(page, refusal(error)));
