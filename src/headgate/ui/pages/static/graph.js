// The graph: drag to move it, buttons, keys and Ctrl with the wheel to zoom. Its scale is a property
// of the document and not of the picture, which is taken over anew with every refresh.
"use strict";

const SMALLEST = 0.1;
const LARGEST = 2.5;
const READABLE = 0.6; // a page opens as wide as its graph, but no smaller than this
const STEP = 1.25;

const graphBox = document.getElementById("graph-box");
let scale = 1;
let again = openWide; // what a new size of the page or of the picture asks for

function pictureSize() {
  const { width, height } = graphBox.querySelector("svg").viewBox.baseVal;
  return { width, height };
}

// The point of the picture at (x, y) of the box stays where it is.
function zoomTo(wanted, x = graphBox.clientWidth / 2, y = graphBox.clientHeight / 2) {
  const next = Math.min(LARGEST, Math.max(SMALLEST, wanted));
  const left = ((graphBox.scrollLeft + x) * next) / scale - x;
  const top = ((graphBox.scrollTop + y) * next) / scale - y;
  scale = next;
  document.documentElement.style.setProperty("--graph-zoom", String(scale));
  graphBox.scrollTo(left, top);
}

function fit() {
  const { width, height } = pictureSize();
  const most = parseFloat(getComputedStyle(graphBox).maxHeight);
  zoomTo(Math.min(1, graphBox.clientWidth / width, most / height), 0, 0);
}

function openWide() {
  zoomTo(Math.max(READABLE, Math.min(1, graphBox.clientWidth / pictureSize().width)), 0, 0);
}

const GRAPH_ACTIONS = {
  fit: () => fit(),
  whole: () => zoomTo(1),
  in: () => zoomTo(scale * STEP),
  out: () => zoomTo(scale / STEP),
};
const GRAPH_KEYS = { "+": "in", "=": "in", "-": "out", 0: "fit", 1: "whole" };

function act(name) {
  again = name === "fit" ? fit : null;
  GRAPH_ACTIONS[name]();
}

// A press that moves the picture is not a click on the step that it began on.
function startDragging() {
  let from = null;
  let moved = false;
  graphBox.addEventListener("dragstart", (event) => event.preventDefault());
  graphBox.addEventListener("pointerdown", (event) => {
    if (event.pointerType !== "mouse" || event.button !== 0) return; // fingers scroll by themselves
    from = { x: event.clientX, y: event.clientY, left: graphBox.scrollLeft, top: graphBox.scrollTop };
    moved = false;
  });
  addEventListener("pointermove", (event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    moved ||= Math.hypot(dx, dy) > 4;
    if (!moved) return;
    document.documentElement.classList.add("moving-graph");
    graphBox.scrollTo(from.left - dx, from.top - dy);
  });
  addEventListener("pointerup", () => {
    from = null;
    document.documentElement.classList.remove("moving-graph");
  });
  graphBox.addEventListener("click", (event) => {
    if (moved) event.preventDefault();
    moved = false;
  }, true);
}

function startGraph() {
  openWide();
  startDragging();
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[data-zoom]");
    if (button) act(button.dataset.zoom);
  });
  graphBox.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || !GRAPH_KEYS[event.key]) return;
    event.preventDefault();
    act(GRAPH_KEYS[event.key]);
  });
  graphBox.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return; // the wheel alone scrolls the page
    event.preventDefault();
    again = null;
    const box = graphBox.getBoundingClientRect();
    zoomTo(scale * Math.exp(-event.deltaY / 300), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  const changed = () => again?.();
  new ResizeObserver(changed).observe(document.querySelector("main"));
  new MutationObserver(changed).observe(graphBox, { subtree: true, attributeFilter: ["viewBox"] });
}

if (graphBox) startGraph();
