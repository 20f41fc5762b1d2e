// The page of logs: gets what a job prints from REST, and stays at the end while it is followed.
"use strict";

const FOLLOW_SECONDS = 1;
const MOST_LINES = 5000; // more would slow the browser down; older ones leave at the top

const logBox = document.getElementById("log");
const logLines = logBox?.querySelector("ol");
const logFollow = document.getElementById("log-follow");

function withMarks(text, search) {
  const parts = document.createDocumentFragment();
  const small = text.toLowerCase();
  let from = 0;
  // Letters that change their length in small would be marked at the wrong place.
  const at = (i) => (search && small.length === text.length ? small.indexOf(search.toLowerCase(), i) : -1);
  for (let i = at(0); i >= 0; i = at(from)) {
    parts.append(text.slice(from, i));
    const mark = document.createElement("mark");
    mark.textContent = text.slice(i, i + search.length);
    parts.append(mark);
    from = i + search.length;
  }
  parts.append(text.slice(from));
  return parts;
}

function lineOf(line) {
  const made = document.createElement("li");
  made.className = line.level;
  made.dataset.at = line.at;
  if (line.level === "warn" || line.level === "error") {
    const said = document.createElement("span");
    said.className = "unseen";
    said.textContent = `${line.level}: `;
    made.append(said);
  }
  made.append(withMarks(line.text, logBox.dataset.search));
  if (line.cut) made.append(" … (cut)");
  return made;
}

function takeLines(part) {
  if (part.lines.length) {
    // A line whose end had not been written comes again.
    while (logLines.lastElementChild && Number(logLines.lastElementChild.dataset.at) >= part.lines[0].at) {
      logLines.lastElementChild.remove();
    }
    const atEnd = logBox.scrollTop + logBox.clientHeight >= logBox.scrollHeight - 4;
    const kept = logLines.lastElementChild && Number(logLines.lastElementChild.dataset.at);
    logLines.append(...part.lines.map(lineOf));
    while (logLines.childElementCount > MOST_LINES) logLines.firstElementChild.remove();
    if (atEnd || kept === null) logBox.scrollTop = logBox.scrollHeight;
    put(document.getElementById("log-note"), `${logLines.childElementCount} lines.`);
  }
  logBox.dataset.end = part.end;
}

async function followOnce() {
  if (document.hidden || !logFollow.checked) return;
  const query = new URLSearchParams({ after: logBox.dataset.end, limit: "1000" });
  for (const name of ["search", "level"]) {
    if (logBox.dataset[name]) query.set(name, logBox.dataset[name]);
  }
  try {
    const answer = await fetch(`${logBox.dataset.log}?${query}`);
    if (answer.ok) takeLines(await answer.json());
  } catch {
    // headgate.js tells that the server has gone
  }
}

function startFollowing() {
  document.getElementById("log-follow-label").hidden = false;
  logBox.scrollTop = logBox.scrollHeight;
  document.getElementById("log-level").addEventListener("change", (event) => event.target.form.requestSubmit());
  document.getElementById("log-file").addEventListener("change", (event) => event.target.form.requestSubmit());
  // Who comes back to the newest lines has left a page of older ones.
  const newest = document.querySelector("#log-older a[href]:last-of-type");
  logFollow.addEventListener("change", () => {
    if (logFollow.checked && newest?.textContent === "Newest lines") newest.click();
  });
  const next = () => followOnce().finally(() => setTimeout(next, FOLLOW_SECONDS * 1000));
  setTimeout(next, FOLLOW_SECONDS * 1000);
}

if (logBox) startFollowing();
