// The state browser: gets rows of a step's state, or the difference of two snapshots, from REST.
// Reading state starts Spark in a process of its own, so the first answer takes some seconds.
"use strict";

const rowsPart = document.getElementById("rows");

function element(name, text, attributes = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

function cellText(value) {
  if (value === null || value === undefined) return "–";
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

function tableOf(caption, rows) {
  const names = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const table = element("table");
  table.append(element("caption", caption));
  const head = element("tr");
  for (const name of names) head.append(element("th", name, { scope: "col" }));
  table.append(element("thead"));
  table.tHead.append(head);
  const body = element("tbody");
  for (const row of rows) {
    const line = element("tr");
    for (const name of names) line.append(element("td", cellText(row[name]), { class: "mono text" }));
    body.append(line);
  }
  table.append(body);
  const box = element("div", undefined, { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
  box.append(table);
  return box;
}

function captionOf(found) {
  const more = found.truncated ? ", and there are more" : "";
  const rows = found.rows.length === 1 ? "1 row" : `${found.rows.length} rows`;
  const from = found.offset ? `, from row ${found.offset + 1} on` : "";
  if (!found.counts) return `${rows} of ${found.step} at ${found.snapshot}${from}${more}`;
  const changes = Object.entries(found.counts).filter(([, n]) => n > 0);
  const counted = changes.map(([word, n]) => `${n} ${word}`).join(", ");
  return `${found.step} from ${found.before} to ${found.after}: ${counted || "no difference"}`;
}

// Each step has its own states, and its own parts of a key.
function showFieldsOf(form) {
  const chosen = form.elements.step.selectedOptions[0];
  const names = JSON.parse(chosen.dataset.states);
  form.elements.state.replaceChildren(...names.map((name) => element("option", name)));
  if (names.includes("default")) form.elements.state.value = "default";
  const parts = form.querySelector("#key-parts");
  if (!parts) return;
  parts.replaceChildren(...JSON.parse(chosen.dataset.key).map((name) => {
    const label = element("label", `Key: ${name} `);
    label.append(element("input", undefined, { type: "text", maxlength: "180", "data-part": name }));
    return label;
  }));
}

// Buttons to the pages before and behind. They ask for the same snapshot: "latest" moves on.
function pagesOf(form, found, query) {
  const box = element("p", undefined, { class: "pages" });
  const to = (text, offset) => {
    const button = element("button", text, { type: "button" });
    button.addEventListener("click", () => {
      query.set("snapshot", found.snapshot);
      query.set("offset", offset);
      ask(form, found.step, query);
    });
    box.append(button);
  };
  const size = Number(query.get("limit"));
  if (found.offset) to("Previous rows", Math.max(0, found.offset - size));
  if (found.truncated) to("Next rows", found.offset + size);
  return box.childElementCount ? [box] : [];
}

function look(form) {
  const fields = new FormData(form);
  const step = fields.get("step");
  fields.delete("step");
  const query = new URLSearchParams([...fields].filter(([, value]) => value !== ""));
  for (const input of form.querySelectorAll("[data-part]")) {
    if (input.value !== "") query.append("key", `${input.dataset.part}=${input.value}`);
  }
  return ask(form, step, query);
}

async function ask(form, step, query) {
  const button = form.querySelector("button");
  button.disabled = true;
  rowsPart.replaceChildren(element("p", "Reading. The first time Spark has to start for it, which takes some seconds."));
  try {
    const response = await fetch(`${form.dataset.rows.replace("{step}", encodeURIComponent(step))}?${query}`);
    const found = await response.json();
    if (!response.ok) {
      const problem = [...(found.errors ?? []), found.remedy].filter(Boolean).join("; ");
      rowsPart.replaceChildren(element("p", problem, { class: "notice bad" }));
    } else if (found.rows.length === 0) {
      rowsPart.replaceChildren(element("p", `Nothing: ${captionOf(found)}.`, { class: "empty" }));
    } else {
      const pages = found.counts ? [] : pagesOf(form, found, query);
      rowsPart.replaceChildren(tableOf(captionOf(found), found.rows), ...pages);
    }
  } catch {
    rowsPart.replaceChildren(element("p", "No answer from headgate ui.", { class: "notice bad" }));
  }
  button.disabled = false;
}

for (const form of document.querySelectorAll("form[data-rows]")) {
  showFieldsOf(form);
  form.elements.step.addEventListener("change", () => showFieldsOf(form));
}

document.addEventListener("submit", (event) => {
  if (!event.target.dataset.rows) return;
  event.preventDefault();
  look(event.target);
});
