// What the pages do by themselves: times in local or UTC, light or dark, and new numbers without a
// reload. Without it pages still open: times are in UTC then, and one reloads by hand.
"use strict";

const REFRESH_SECONDS = 2;

// ---- times ----
const two = (n) => String(n).padStart(2, "0");

function timesInUtc() {
  return localStorage.getItem("headgate-times") === "utc";
}

function timeText(iso, utc) {
  const at = new Date(iso);
  if (Number.isNaN(at.getTime())) return iso;
  const part = (name) => at[(utc ? "getUTC" : "get") + name]();
  const day = `${part("FullYear")}-${two(part("Month") + 1)}-${two(part("Date"))}`;
  return `${day} ${two(part("Hours"))}:${two(part("Minutes"))}:${two(part("Seconds"))}`;
}

function ageText(iso) {
  const seconds = Math.max(0, Math.round((Date.now() - new Date(iso).getTime()) / 1000));
  if (seconds < 60) return `${seconds} s ago`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return `${Math.floor(seconds / 86400)} d ago`;
}

function put(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function showTimes(root) {
  const utc = timesInUtc();
  for (const element of root.querySelectorAll("[data-time]")) {
    put(element, timeText(element.dataset.time, utc));
  }
  for (const element of root.querySelectorAll("[data-age]")) {
    put(element, ageText(element.dataset.age));
  }
}

// ---- new numbers without a reload ----
// The page itself is fetched again, and what differs in its live parts is taken over, element by
// element: focus, open details and scrolled tables stay as they are.
function takeOver(old, fresh) {
  // Another id is another thing: what was open in one must not be open in the other.
  if (old.nodeName !== fresh.nodeName || (old.id ?? "") !== (fresh.id ?? "")) {
    old.replaceWith(document.importNode(fresh, true));
    return;
  }
  if (old.nodeType === Node.TEXT_NODE) {
    if (old.data !== fresh.data) old.data = fresh.data;
    return;
  }
  if (old.nodeType !== Node.ELEMENT_NODE) return;
  const keepsOpen = old.nodeName === "DETAILS" ? "open" : null;
  for (const { name } of [...old.attributes]) {
    if (name !== keepsOpen && !fresh.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of fresh.attributes) {
    if (name !== keepsOpen && old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  const before = [...old.childNodes];
  const after = [...fresh.childNodes];
  before.slice(after.length).forEach((node) => node.remove());
  after.forEach((node, i) => {
    if (i < before.length) takeOver(before[i], node);
    else old.append(document.importNode(node, true));
  });
}

let misses = 0;

function say(text) {
  put(document.getElementById("said"), text);
}

async function refresh() {
  if (document.hidden || !document.querySelector("[data-live]")) return;
  let page;
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" }, redirect: "error" });
    if (!answer.ok) throw new Error(String(answer.status));
    page = new DOMParser().parseFromString(await answer.text(), "text/html");
  } catch {
    misses += 1;
    if (misses === 2) say("No answer from headgate ui. The page shows what was known before.");
    return;
  }
  if (misses >= 2) say("headgate ui answers again.");
  misses = 0;
  showTimes(page);
  const state = document.querySelector("[data-state]")?.dataset.state;
  for (const part of document.querySelectorAll("[data-live]")) {
    const fresh = page.getElementById(part.id);
    if (fresh && !part.isEqualNode(fresh)) takeOver(part, fresh);
  }
  const now = document.querySelector("[data-state]")?.dataset.state;
  if (state !== undefined && now !== state) say(`The job is now ${now}.`);
}

// ---- forms that send requests to REST ----
// A form with data-post sends data-body and its own fields as JSON, then opens data-then, where
// "{id}" is the answer's. A label that was typed is not in the plan, so it is sent without its mark.
function bodyOf(form) {
  const body = JSON.parse(form.dataset.body ?? "{}");
  for (const input of form.elements) {
    if (!input.name || input.value === "") continue;
    body[input.name] = input.value;
    delete body.confirm;
  }
  return body;
}

async function send(form) {
  const button = form.querySelector("button");
  const answer = form.querySelector(".answer");
  button.disabled = true;
  answer.textContent = "";
  try {
    const response = await fetch(form.dataset.post, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify(bodyOf(form)),
    });
    const body = await response.json();
    if (response.ok) {
      location.assign(form.dataset.then.replace("{id}", encodeURIComponent(body.id ?? "")));
      return;
    }
    answer.textContent = [...(body.errors ?? []), body.remedy].filter(Boolean).join("; ");
  } catch {
    answer.textContent = "No answer from headgate ui. Is it still running?";
  }
  button.disabled = false;
}

// headgate ui prints an address with the token behind #, which browsers do not send anywhere.
function signInByFragment() {
  const form = document.querySelector("form[data-post='/login']");
  const token = new URLSearchParams(location.hash.slice(1)).get("token");
  if (!form || !token) return;
  history.replaceState(null, "", location.pathname);
  form.elements.token.value = token;
  send(form);
}

// ---- switches ----
function darkNow() {
  const chosen = document.documentElement.dataset.theme;
  return chosen ? chosen === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
}

function showSwitches() {
  const times = document.getElementById("times");
  const theme = document.getElementById("theme");
  times.textContent = timesInUtc() ? "Times: UTC" : "Times: local";
  theme.textContent = darkNow() ? "Dark" : "Light";
  times.hidden = theme.hidden = false;
}

function start() {
  showTimes(document);
  showSwitches();
  document.getElementById("times").addEventListener("click", () => {
    localStorage.setItem("headgate-times", timesInUtc() ? "local" : "utc");
    showTimes(document);
    showSwitches();
  });
  document.getElementById("theme").addEventListener("click", () => {
    const theme = darkNow() ? "light" : "dark";
    localStorage.setItem("headgate-theme", theme);
    document.documentElement.dataset.theme = theme;
    showSwitches();
  });
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-copy]");
    if (!button) return;
    navigator.clipboard?.writeText(document.getElementById(button.dataset.copy).textContent)
      .then(() => say("Copied."), () => say("The browser does not let the page copy."));
  });
  // A choice in a form with data-submit is sent at once, as its button would do.
  document.addEventListener("change", (event) => {
    const form = event.target.closest("form[data-submit]");
    if (form) form.requestSubmit();
  });
  document.addEventListener("submit", (event) => {
    if (!event.target.dataset.post) return;
    event.preventDefault();
    send(event.target);
  });
  signInByFragment();
  setInterval(() => showTimes(document), 10000);
  // A page that is costly to make says how often it may be loaded.
  const every = 1000 * (document.querySelector("[data-every]")?.dataset.every ?? REFRESH_SECONDS);
  const next = () => refresh().finally(() => setTimeout(next, every));
  setTimeout(next, every);
}

start();
