// The charts of a job over time, drawn by uPlot: one crosshair and one range for all of them, marks
// where the job was started or failed, gaps where it did not run. Numbers come from REST.
"use strict";
{
  const HEIGHT = 180;
  const COLORS = 6;
  const box = document.getElementById("charts");
  const moment = document.getElementById("moment");
  const help = moment?.textContent;
  const charts = new Map();
  let shown = null;

  // ---- numbers as people read them ----
  const UNITS = ["KB", "MB", "GB", "TB", "PB"];

  function count(n) {
    if (n >= 1e9) return `${short(n / 1e9)} G`;
    if (n >= 1e6) return `${short(n / 1e6)} M`;
    if (n >= 1e4) return `${short(n / 1e3)} k`;
    return n >= 100 ? Math.round(n).toLocaleString("en") : short(n);
  }

  function short(n) {
    return String(Number(n.toPrecision(3)));
  }

  function size(n) {
    let power = -1;
    for (; n >= 1024 && power < UNITS.length - 1; power += 1) n /= 1024;
    return power < 0 ? `${Math.round(n)} B` : `${short(n)} ${UNITS[power]}`;
  }

  function duration(ms) {
    if (ms < 0) return `-${duration(-ms)}`;
    if (ms < 1000) return `${short(ms)} ms`;
    if (ms < 60e3) return `${short(ms / 1e3)} s`;
    if (ms < 3600e3) return `${short(ms / 60e3)} min`;
    return ms < 86400e3 ? `${short(ms / 3600e3)} h` : `${short(ms / 86400e3)} d`;
  }

  const percent = (n) => `${short(n / 10)} %`;

  const DECIMAL = [];
  for (let power = -3; power < 16; power += 1) {
    for (const m of [1, 2, 5]) DECIMAL.push(m * 10 ** power);
  }
  const BINARY = [];
  for (let power = 0; power < 50; power += 1) BINARY.push(2 ** power);
  const TIME = [1, 2, 5, 10, 20, 50, 100, 200, 500];
  for (const unit of [1e3, 60e3]) for (const m of [1, 2, 5, 10, 20, 30]) TIME.push(m * unit);
  for (const m of [1, 2, 4, 6, 12, 24, 48, 120, 240, 720, 2400, 8760, 43800, 438000]) TIME.push(m * 3600e3);

  // ---- what each chart shows ----
  // A line: its name, its numbers, its color, and whether it is dashed.
  const line = (name, numbers, color = 0, dashed = false) => ({ name, numbers, color, dashed });
  const CHARTS = {
    throughput: {
      words: count, incrs: DECIMAL,
      lines: (data) => [line("in", data.numRecordsInPerSecond), line("out", data.numRecordsOutPerSecond, 1, true)],
    },
    latency: {
      words: duration, incrs: TIME,
      lines: (data) => sinks(data.latency).slice(0, COLORS).flatMap((of, n) => [
        line(`${of.name} 99 %`, of.p99_ms, n),
        line(`${of.name} 50 %`, of.p50_ms, n, true),
      ]),
    },
    pending: {
      words: count, incrs: DECIMAL,
      lines: (data) => [line("average", data.pendingRecords), line("most", data.pending_max, 1, true)],
    },
    batch: {
      words: duration, incrs: TIME,
      lines: (data) => [line("average", data.batch_ms), line("longest", data.batch_ms_max, 1, true)],
    },
    watermark: {
      words: duration, incrs: TIME,
      lines: (data) => [line("average", data.watermarkLag), line("most", data.watermark_lag_max, 1, true)],
    },
    bytes: { words: size, incrs: BINARY, lines: (data) => [line("size", data.state_bytes)] },
    rows: { words: count, incrs: DECIMAL, lines: (data) => [line("rows", data.state_rows)] },
    busy: { words: percent, incrs: DECIMAL, top: 1000, lines: (data) => [line("busy", data.busyTimeMsPerSecond)] },
  };

  // Sinks behind the same sources have the same latencies, and one line.
  function sinks(latency) {
    const groups = new Map();
    for (const of of latency) {
      const key = JSON.stringify([of.p50_ms, of.p99_ms]);
      groups.set(key, [...(groups.get(key) ?? []), of]);
    }
    return [...groups.values()].map((same) => {
      const names = same.slice(0, 3).map((of) => of.sink).join(", ");
      return { ...same[0], name: same.length > 3 ? `${names} and ${same.length - 3} more` : names };
    });
  }

  const BAD = ["failed", "crashed"];
  const GOOD = ["started", "restarted"];

  // ---- colors ----
  // Canvases know no variables, so an element resolves them.
  const probe = document.createElement("span");
  probe.hidden = true;

  function color(name) {
    probe.style.color = `var(--${name})`;
    return getComputedStyle(probe).color;
  }

  // ---- axes ----
  function clock(seconds) {
    const text = timeText(new Date(seconds * 1000).toISOString(), timesInUtc());
    return { day: text.slice(5, 10), minute: text.slice(11, 16), second: text.slice(11) };
  }

  function times(u, splits, axis, space, incr) {
    let day = null;
    return splits.map((at) => {
      const text = clock(at);
      const first = text.day !== day;
      day = text.day;
      if (incr >= 86400) return text.day;
      return (incr < 60 ? text.second : text.minute) + (first ? `\n${text.day}` : "");
    });
  }

  function axes(chart) {
    const soft = () => color("soft");
    const grid = { stroke: () => color("rule"), width: 1 };
    const font = "12px system-ui, sans-serif";
    const ticks = { show: false };
    return [
      { stroke: soft, grid: { show: false }, ticks: { ...grid, size: 4 }, font, size: 44, space: 64, values: times },
      {
        stroke: soft, grid, ticks, font, size: 66, space: 26, incrs: chart.incrs,
        values: (u, splits) => splits.map(chart.words),
      },
    ];
  }

  // ---- what is drawn beside the lines ----
  function drawGaps(u) {
    const { timestamps, running, live } = shown;
    const step = shown.step;
    const first = running.indexOf(true);
    const last = live ? running.lastIndexOf(true) : running.length - 1;
    if (first < 0) return;
    u.ctx.save();
    u.ctx.fillStyle = color("gap");
    for (let n = first; n <= last; n += 1) {
      if (running[n]) continue;
      const from = n;
      while (n < last && !running[n + 1]) n += 1;
      const left = u.valToPos(timestamps[from] / 1000, "x", true);
      const right = u.valToPos(timestamps[n] / 1000 + step, "x", true);
      u.ctx.fillRect(left, u.bbox.top, Math.min(right, u.bbox.left + u.bbox.width) - left, u.bbox.height);
    }
    u.ctx.restore();
  }

  function tone(events) {
    const kinds = Object.keys(events);
    if (kinds.some((kind) => BAD.includes(kind))) return "bad";
    return kinds.some((kind) => GOOD.includes(kind)) ? "good" : "calm";
  }

  function drawMarks(u) {
    const { ctx, bbox } = u;
    const px = devicePixelRatio;
    ctx.save();
    for (const mark of shown.marks) {
      const x = u.valToPos(mark.timestamp / 1000, "x", true);
      if (x < bbox.left || x > bbox.left + bbox.width) continue;
      const kind = tone(mark.events);
      ctx.strokeStyle = ctx.fillStyle = color(kind);
      ctx.lineWidth = px;
      ctx.setLineDash(kind === "bad" ? [] : [2 * px, 3 * px]);
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      ctx.beginPath();
      ctx.moveTo(x - 4 * px, bbox.top);
      ctx.lineTo(x + 4 * px, bbox.top);
      ctx.lineTo(x, bbox.top + 7 * px);
      ctx.fill();
    }
    ctx.restore();
  }

  // ---- the crosshair ----
  function eventsAt(at) {
    const step = shown.step * 1000;
    const mark = shown.marks.find((one) => one.timestamp >= at && one.timestamp < at + step);
    return Object.entries(mark?.events ?? {}).map(([kind, n]) => (n > 1 ? `${kind} ${n} times` : kind));
  }

  function momentText(n) {
    const at = shown.timestamps[n];
    const parts = [timeText(new Date(at).toISOString(), timesInUtc()), `${duration(shown.step * 1000)} a point`];
    if (!shown.running[n]) parts.push("did not run");
    return [...parts, ...eventsAt(at)].join(" · ");
  }

  // Between two batches a number is that of the batch before.
  function known(numbers, n) {
    for (let at = n; at >= 0 && shown.running[at]; at -= 1) {
      if (numbers[at] !== null) return numbers[at];
    }
    return null;
  }

  function legend(chart, n) {
    for (const [i, of] of chart.lines.entries()) {
      const value = known(of.numbers, n);
      put(chart.values[i], value === null ? "–" : chart.words(value));
    }
  }

  function newest() {
    return Math.max(shown.running.lastIndexOf(true), 0);
  }

  function pointed(u) {
    const chart = [...charts.values()].find((one) => one.plot === u);
    if (!chart) return;
    const away = u.cursor.left < 0 || u.cursor.idx == null;
    legend(chart, away ? newest() : u.cursor.idx);
    put(moment, away ? help : momentText(u.cursor.idx));
  }

  function move(chart, to) {
    const u = chart.plot;
    const n = Math.min(Math.max(to, 0), shown.timestamps.length - 1);
    u.setCursor({ left: u.valToPos(u.data[0][n], "x"), top: u.over.clientHeight / 2 });
    const values = chart.lines.map((of, i) => `${of.name} ${chart.values[i].textContent}`);
    say(`${momentText(n)}: ${values.join(", ")}`);
  }

  function pressed(event, chart) {
    const at = chart.plot.cursor.idx ?? newest();
    const far = event.shiftKey ? 10 : 1;
    const [low, high] = [shown.timestamps[0], shown.timestamps.at(-1) + shown.step * 1000];
    const middle = chart.plot.cursor.idx == null ? (low + high) / 2 : shown.timestamps[at];
    const keys = {
      ArrowLeft: () => move(chart, at - far),
      ArrowRight: () => move(chart, at + far),
      Home: () => move(chart, 0),
      End: () => move(chart, newest()),
      Escape: () => chart.plot.setCursor({ left: -10, top: -10 }),
      "+": () => zoom(middle - (high - low) / 4, middle + (high - low) / 4),
      "-": () => zoom(low - (high - low) / 2, high + (high - low) / 2),
    };
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  }

  // ---- the range ----
  function zoom(from, to) {
    if (to - from < 4000) return;
    const start = Math.max(0, Math.round(from));
    const end = Math.min(Math.round(to), Date.now());
    if (start >= end) return;
    history.pushState(null, "", `?start=${start}&end=${end}`);
    again();
  }

  function selected(u) {
    const { left, width } = u.select;
    if (width > 0) zoom(1000 * u.posToVal(left, "x"), 1000 * u.posToVal(left + width, "x"));
    u.setSelect({ left: 0, width: 0, top: 0, height: 0 }, false);
  }

  function again() {
    refresh();
    load();
  }

  // ---- charts ----
  function make(chart) {
    const style = (of) => ({
      stroke: () => color(`line-${of.color + 1}`), width: of.dashed ? 1.25 : 1.75,
      dash: of.dashed ? [5, 4] : undefined, points: { size: 5 },
    });
    const top = (u, low, high) => chart.top ?? (high > 0 ? high * 1.08 : 1);
    return new uPlot(
      {
        width: chart.box.clientWidth, height: HEIGHT,
        series: [{}, ...chart.lines.map(style)],
        axes: axes(chart),
        scales: {
          x: { time: true, range: () => [shown.timestamps[0] / 1000, shown.timestamps.at(-1) / 1000 + shown.step] },
          y: { range: (u, low, high) => [Math.min(0, low ?? 0), top(u, low, high)] },
        },
        tzDate: (at) => (timesInUtc() ? uPlot.tzDate(new Date(at * 1000), "Etc/UTC") : new Date(at * 1000)),
        legend: { show: false },
        cursor: {
          y: false,
          points: { size: 7 },
          drag: { x: true, y: false, setScale: false, dist: 5 },
          sync: { key: "metrics", setSeries: false, scales: ["x", null], filters: { pub: (type) => /^mouse(move|leave)$/.test(type) } },
          bind: { dblclick: () => null },
        },
        hooks: { drawClear: [drawGaps], draw: [drawMarks], setCursor: [pointed], setSelect: [selected] },
      },
      dataOf(chart),
      chart.box,
    );
  }

  // A number that is not known breaks the line where the job did not run, and else does not.
  function dataOf(chart) {
    const numbers = chart.lines.map((of) =>
      of.numbers.map((n, i) => (n !== null ? n : shown.running[i] ? undefined : null)));
    return [shown.timestamps.map((at) => at / 1000), ...numbers];
  }

  function writeLegend(chart) {
    chart.values = [];
    const list = chart.card.querySelector(".legend");
    list.replaceChildren(...chart.lines.map((of) => {
      const item = document.createElement("li");
      const swatch = document.createElement("span");
      const value = document.createElement("b");
      swatch.className = `swatch line-${of.color + 1}${of.dashed ? " dashed" : ""}`;
      item.append(swatch, of.name, " ", value);
      chart.values.push(value);
      return item;
    }));
  }

  function show() {
    for (const card of box.querySelectorAll("[data-chart]")) {
      const kind = CHARTS[card.dataset.chart];
      const lines = kind.lines(shown);
      card.hidden = !lines.some((of) => of.numbers.some((n) => n !== null));
      if (card.hidden) continue;
      const names = JSON.stringify(lines.map((of) => of.name));
      let chart = charts.get(card);
      if (chart?.names !== names) {
        chart?.plot.destroy();
        chart = { ...kind, card, lines, names, box: card.querySelector(".plot") };
        charts.set(card, chart);
        writeLegend(chart);
        chart.plot = make(chart);
      } else {
        chart.lines = lines;
        chart.plot.setData(dataOf(chart));
      }
      legend(chart, chart.plot.cursor.idx ?? newest());
    }
  }

  // As many as a chart has room for: more would only be noise.
  function points() {
    const width = charts.size ? [...charts.values()][0].box.clientWidth : document.body.clientWidth / 2;
    return Math.min(Math.max(Math.round(width / 2), 120), 720);
  }

  let asked = 0;

  async function load() {
    const mine = (asked += 1);
    const query = new URLSearchParams(location.search);
    const wanted = query.has("start") || query.has("end") || query.has("range") ? query : new URLSearchParams("range=1h");
    const path = box.dataset.metrics.split("?")[0];
    let data;
    try {
      wanted.set("points", points());
      const answer = await fetch(`${path}?${wanted}`, { redirect: "error" });
      if (!answer.ok) throw new Error(String(answer.status));
      data = await answer.json();
    } catch {
      return; // the page itself says when the server does not answer
    }
    if (mine !== asked || !data.timestamps.length) return;
    shown = data;
    box.hidden = false;
    show();
  }

  function redraw() {
    for (const { plot } of charts.values()) plot.redraw(false, true);
  }

  function fit() {
    for (const chart of charts.values()) {
      const width = chart.box.clientWidth;
      if (width > 0 && width !== chart.plot.width) chart.plot.setSize({ width, height: HEIGHT });
    }
  }

  function follow() {
    const seconds = !shown ? 2 : shown.step <= 5 ? 2 : shown.step <= 60 ? 10 : 60;
    setTimeout(async () => {
      if (!document.hidden && (!shown || shown.live)) await load();
      follow();
    }, 1000 * seconds);
  }

  if (box) {
    document.body.append(probe);
    new ResizeObserver(fit).observe(box);
    new MutationObserver(redraw).observe(document.documentElement, { attributeFilter: ["data-theme"] });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    document.getElementById("times").addEventListener("click", redraw);
    addEventListener("popstate", again);
    box.addEventListener("keydown", (event) => {
      const chart = charts.get(event.target.closest("[data-chart]"));
      if (chart && shown) pressed(event, chart);
    });
    load().finally(follow);
  }
}
