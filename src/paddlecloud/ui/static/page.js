// What every page has: live parts, keys, ages that go on, and copying. Reading works without it.

import { morph } from "./morph.js";

document.documentElement.classList.add("scripts");

// Live parts: the server sends those that changed. A hidden page listens to nothing: browsers allow six connections to a
// server, and pages that nobody sees would take them from the one that is looked at.

const state = document.getElementById("live");
let events = null;

function listen() {
  if (events || document.hidden || !state || !document.querySelector("[id^=live_]")) return;
  events = new EventSource("/-/live?path=" + encodeURIComponent(location.pathname + location.search));
  events.addEventListener("parts", (event) => {
    for (const [id, html] of Object.entries(JSON.parse(event.data))) {
      const element = document.getElementById(id);
      if (element) morph(element, html);
    }
    reveal();
    show("on");
  });
  events.addEventListener("failed", (event) => {
    const status = JSON.parse(event.data).status;
    stop();
    if (status === 401 || status === 404) location.reload();
    else { show("lost"); setTimeout(listen, 3000); }
  });
  events.onopen = () => show("on");
  events.onerror = () => {
    show("lost");
    if (events && events.readyState === EventSource.CLOSED) { stop(); look(); }
  };
}

// A stream that is refused does not say why; the page itself does: who is not signed in any more is shown how to.

async function look() {
  try {
    const answer = await fetch(location.href, { headers: { Accept: "text/html" } });
    if (answer.status === 401 || answer.status === 404) return location.reload();
  } catch { /* still out of reach */ }
  setTimeout(listen, 3000);
}

function stop() {
  if (events) events.close();
  events = null;
}

function show(how) {
  state.className = "live " + how;
  state.textContent = how === "on" ? state.dataset.on : state.dataset.lost;
}

document.addEventListener("visibilitychange", () => (document.hidden ? stop() : listen()));
addEventListener("pagehide", stop);
addEventListener("pageshow", listen);
listen();

// Ages go on between two changes.

const units = [[2 * 31536000, 31536000, "y"], [2 * 86400, 86400, "d"], [3 * 3600, 3600, "h"], [120, 60, "m"], [0, 1, "s"]];

function age(seconds) {
  const [, unit, sign] = units.find(([least]) => seconds >= least);
  return Math.floor(seconds / unit) + sign;
}

setInterval(() => {
  for (const element of document.querySelectorAll("time[datetime]")) {
    const seconds = (Date.now() - Date.parse(element.dateTime)) / 1000;
    if (seconds >= 0 && seconds < 120) element.textContent = age(seconds);
  }
}, 1000);

// The switch of colours: without a choice of the viewer they are those of the system, which only the browser knows.

const theme = document.querySelector("button[name=theme]");
if (theme && !document.documentElement.dataset.theme && matchMedia("(prefers-color-scheme: dark)").matches) {
  theme.value = "light";
  theme.textContent = theme.dataset.light;
}

// Copying.

function reveal() {
  for (const button of document.querySelectorAll(".copy[hidden]")) button.hidden = false;
}

document.addEventListener("click", async (event) => {
  const button = event.target.closest(".copy");
  if (!button) return;
  const source = button.dataset.copyFrom;
  await copy(source ? document.getElementById(source).textContent : button.dataset.copy);
  const before = button.textContent;
  button.textContent = button.dataset.done;
  setTimeout(() => { button.textContent = before; }, 1500);
});

async function copy(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  const area = document.createElement("textarea");
  area.value = text;
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

reveal();

// Keys: / searches, g and a letter goes to a page, ? shows the keys.

let going = 0;

document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, select, textarea, [contenteditable]");
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (typing) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (event.key === "/") {
    const search = document.getElementById("search");
    if (search) { event.preventDefault(); search.focus(); }
  } else if (event.key === "?") {
    const keys = document.getElementById("keys");
    if (keys && !keys.open) keys.showModal();
  } else if (event.key === "g") {
    going = Date.now();
  } else if (Date.now() - going < 1500) {
    going = 0;
    const link = document.querySelector(`.side a[data-key="${CSS.escape(event.key)}"]`);
    if (link) link.click();
  }
});
