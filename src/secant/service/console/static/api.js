// The service's API as functions. The session is a cookie that scripts cannot read; what changes something also
// carries the mark of the session, which another site cannot know.

let mark = null;

export class Refused extends Error {
  constructor(error, status) {
    super(error.message);
    Object.assign(this, { code: error.code, hint: error.hint, details: error.details || [], span: error.span, status });
  }
}

async function send(method, path, body, headers = {}, seen = () => {}) {
  const sent = { method, headers: { accept: "application/json", ...headers }, credentials: "same-origin" };
  if (body !== undefined) {
    sent.headers["content-type"] = "application/json";
    sent.body = JSON.stringify(body);
  }
  if (method !== "GET" && mark) sent.headers["x-csrf-token"] = mark;
  let response;
  try {
    response = await fetch(path, sent);
  } catch {
    throw new Refused({ code: "", message: "the service does not answer", hint: "is it still running?" }, 0);
  }
  seen(response);
  const found = response.status === 204 ? null : await response.json().catch(() => null);
  if (!response.ok) {
    throw new Refused((found && found.error) || { code: "", message: `the service answered ${response.status}` }, response.status);
  }
  return found;
}

/** Say who is logged in, or null. */
export async function me() {
  try {
    const user = await send("GET", "/v1/me");
    mark = user.csrf;
    return user;
  } catch (error) {
    if (error.status === 401) return null;
    throw error;
  }
}

export async function login(user, password) {
  await send("POST", "/console/login", { user, password });
  return me();
}

export async function logout() {
  await send("POST", "/console/logout");
  mark = null;
}

/** Get a list, and whether more of it follows. */
export async function page(path) {
  let more = false;
  const found = await send("GET", path, undefined, {}, (response) => { more = (response.headers.get("link") || "").includes('rel="next"'); });
  return { found, more };
}

export const get = (path) => send("GET", path);
export const post = (path, body) => send("POST", path, body);
export const remove = (path) => send("DELETE", path);

/** Ask, with a key, so that a request that is sent twice is charged once. */
export function ask(question, key) {
  return send("POST", "/v1/query", question, { "idempotency-key": key });
}
