// Logs of several ranks or steps side by side, as they are written.

const panes = document.getElementById("logs");
const follow = document.getElementById("follow");
const find = document.getElementById("find");
const state = document.getElementById("live");
const MOST = 5000; // lines of a pane; of more the oldest go

let events = null;

function listen() {
  if (events || document.hidden) return;
  for (const pre of panes.querySelectorAll("pre")) pre.textContent = "";
  const { section, namespace, name, ranks } = panes.dataset;
  events = new EventSource("/-/logs?" + new URLSearchParams({ section, namespace, name, ranks }));
  events.onopen = () => show("on", state.dataset.on);
  events.addEventListener("lines", (event) => add(JSON.parse(event.data)));
  events.addEventListener("ended", () => { stop(); panes.dataset.state = "ended"; show("", panes.dataset.ended); });
  events.addEventListener("failed", () => { stop(); show("lost", state.dataset.lost); setTimeout(listen, 3000); });
  events.onerror = () => { stop(); show("lost", state.dataset.lost); setTimeout(listen, 3000); };
}

function stop() {
  if (events) events.close();
  events = null;
}

function show(how, text) {
  state.className = "live " + how;
  state.textContent = text;
}

function pane(rank) {
  let found = [...panes.children].find((one) => one.dataset.rank === rank);
  if (!found) {
    found = document.createElement("section");
    found.className = "pane";
    found.dataset.rank = rank;
    const heading = document.createElement("h2");
    heading.textContent = rank;
    const pre = document.createElement("pre");
    pre.tabIndex = 0;
    found.append(heading, pre);
    panes.querySelector("p")?.remove();
    panes.append(found);
  }
  return found.querySelector("pre");
}

function add(lines) {
  const touched = new Set();
  for (const { rank, time, text } of lines) {
    const pre = pane(rank);
    const line = document.createElement("div");
    line.textContent = text || "\u00a0"; // never as HTML: programs print anything
    line.title = time;
    line.hidden = !matches(text);
    pre.append(line);
    touched.add(pre);
  }
  for (const pre of touched) {
    while (pre.childElementCount > MOST) pre.firstChild.remove();
    if (follow.checked) pre.scrollTop = pre.scrollHeight;
  }
}

function matches(text) {
  return !find.value || text.toLowerCase().includes(find.value.toLowerCase());
}

find.addEventListener("input", () => {
  for (const line of panes.querySelectorAll("pre > div")) line.hidden = !matches(line.textContent);
});
document.addEventListener("visibilitychange", () => { if (document.hidden) stop(); else if (panes.dataset.state !== "ended") listen(); });
addEventListener("pagehide", stop);
listen();
