// Charts of metrics over time: of one span for all of them, with a cursor that they share. A brush over one zooms into
// all.

const charts = document.getElementById("charts");
const noCharts = document.getElementById("no-charts");
const choice = document.getElementById("span");
const unzoom = document.getElementById("unzoom");
const AGAIN_MS = 30_000;
const SOON_MS = 5_000;
/** So long a run is young: what it does is asked for more often. */
const YOUNG_S = 600;
const HEIGHT = 190;

/** The groups of outcomes: each has one colour on all pages, and one pattern, because not everybody sees colours. */
const GROUPS = {
  ok: ["ok", "--o-ok", []],
  unchanged: ["unchanged, redirected", "--o-unchanged", [8, 4]],
  error: ["HTTP error", "--o-error", [3, 3]],
  blocked: ["blocked", "--o-blocked", [10, 3, 2, 3]],
  unreachable: ["unreachable", "--o-unreachable", [6, 6]],
  refused: ["refused, ended", "--o-refused", [1, 4]],
  fault: ["failed", "--o-fault", [12, 3]],
};

/** The lines of each other chart: the figure, its label, its colour, its pattern. */
const LINES = {
  records: [["resolved", "Resolved", "--o-ok", []], ["open", "Open", "--o-unchanged", [8, 4]], ["exhausted", "Exhausted", "--o-error", [3, 3]]],
  resolved: [["resolved", "Resolved", "--o-ok", []]],
  pages: [["pages_per_second", "Per second", "--accent", []]],
  queue: [["queued", "Queued", "--accent", []], ["leased", "Being fetched", "--warn", [6, 4]]],
  waiting: [["queued", "Queued", "--accent", []]],
  oldest: [["oldest", "Seconds", "--warn", []]],
};

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const seconds = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const days = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short" });
const DAY_S = 86_400;
/** Large numbers beside a chart are short: its axis is narrow. */
const short = new Intl.NumberFormat(undefined, { notation: "compact", maximumSignificantDigits: 3 });

/** The room that a time needs below a chart, and how far the last one may reach beyond the end of its axis. */
const TIME_WIDTH = 84;
const TIME_OVERHANG = 32;

const drawn = new Map();
let span = [0, 0];
let zoom = null;
let timer = 0;

const widthOf = (place) => Math.max(place.clientWidth, 200);
/** Charts become as wide as their places, in a zoomed view as well. */
const fitting = new ResizeObserver((places) => {
  for (const { target } of places) drawn.get(target)?.setSize({ width: widthOf(target), height: HEIGHT });
});

function linesOf(name, metrics) {
  if (name !== "ended") return LINES[name].map(([key, label, colour, dash]) => ({ values: metrics[key], label, colour, dash }));
  return Object.keys(GROUPS).filter((group) => metrics.ended[group]).map((group) => {
    const [label, colour, dash] = GROUPS[group];
    return { values: metrics.ended[group], label, colour, dash };
  });
}

function zoomTo(range) {
  zoom = range;
  unzoom.hidden = !zoom;
  charts.dataset.shown = (zoom ?? span).map(Math.round).join(" ");
  for (const chart of drawn.values()) chart.setScale("x", { min: (zoom ?? span)[0], max: (zoom ?? span)[1] });
}

function brushed(chart) {
  const { left, width } = chart.select;
  if (width < 8) return;
  const range = [chart.posToVal(left, "x"), chart.posToVal(left + width, "x")];
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
  zoomTo(range);
}

/** The times below a chart, in the reader's way of writing them. The day stands below the first time of it. */
function timesOf(_chart, times, _axis, _space, step) {
  let before = "";
  return times.map((time) => {
    const at = new Date(time * 1_000);
    const day = days.format(at);
    if (step >= DAY_S) return day;
    const isFirst = day !== before;
    before = day;
    const text = (step < 60 ? seconds : clock).format(at);
    return isFirst ? `${text}\n${day}` : text;
  });
}

function drawOne(place, metrics) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const lines = linesOf(place.dataset.chart, metrics);
  drawn.get(place)?.destroy();
  drawn.delete(place);
  const isEmpty = place.dataset.empty && !lines.some((line) => line.values.some((value) => value > 0));
  place.replaceChildren();
  if (isEmpty) {
    const text = document.createElement("p");
    text.className = "empty";
    text.textContent = place.dataset.empty;
    place.append(text);
    return;
  }
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const hasPoints = metrics.at.length < 40;
  const options = {
    width: widthOf(place),
    height: HEIGHT,
    padding: [null, TIME_OVERHANG, null, null],
    cursor: { y: false, sync: { key: "dashboard" }, drag: { x: true, y: false, setScale: false }, bind: { dblclick: () => () => zoomTo(null) } },
    hooks: { setSelect: [brushed] },
    axes: [{ ...axis, space: TIME_WIDTH, values: timesOf }, { ...axis, size: 56, values: (_chart, numbers) => numbers.map((number) => short.format(number)) }],
    scales: { x: { range: () => zoom ?? span }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.05)] } },
    series: [{}, ...lines.map((line) => ({ label: line.label, stroke: colour(line.colour), width: 2, dash: line.dash, spanGaps: false, points: { show: hasPoints } }))],
  };
  drawn.set(place, new uPlot(options, [metrics.at, ...lines.map((line) => line.values)], place));
  fitting.observe(place);
}

async function draw() {
  clearTimeout(timer);
  if (document.hidden || typeof uPlot === "undefined") return;
  const source = new URL(charts.dataset.source, location.href);
  source.searchParams.set("span", choice.value);
  const answer = await fetch(source).catch(() => null);
  timer = setTimeout(draw, AGAIN_MS);
  // Who looks closely is not disturbed.
  if (!answer?.ok || zoom) return;
  const metrics = await answer.json();
  span = [metrics.from, metrics.to];
  charts.dataset.shown = span.join(" ");
  if (metrics.to - metrics.from < YOUNG_S) {
    clearTimeout(timer);
    timer = setTimeout(draw, SOON_MS);
  }
  const isEmpty = metrics.at.length === 0;
  charts.hidden = isEmpty;
  noCharts.hidden = !isEmpty;
  if (isEmpty) {
    clearTimeout(timer);
    timer = setTimeout(draw, SOON_MS);
    return;
  }
  for (const place of charts.querySelectorAll("[data-chart]")) drawOne(place, metrics);
}

if (charts) {
  document.documentElement.classList.add("scripted");
  choice.addEventListener("change", () => {
    zoomTo(null);
    const here = new URL(location.href);
    here.searchParams.set("span", choice.value);
    history.replaceState(null, "", here);
    draw();
  });
  unzoom.addEventListener("click", () => {
    choice.focus();
    zoomTo(null);
    draw();
  });
  document.addEventListener("visibilitychange", draw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
  draw();
}
