// The overview: shows events as they come, and draws the charts.
//
// Each event holds all that is shown. A page that nobody sees asks for nothing: browsers keep few connections to one
// host, and a laptop that wakes begins with what is true by then.

import { showTimes } from "./dashboard.js";
import { change } from "./change.js";

const snapshot = document.getElementById("snapshot");
const live = document.getElementById("live");
const SILENT_MS = 30_000;
const AGAIN_MS = 5_000;

let events = null;
let heard = 0;

function announce(text) {
  if (live.textContent !== text) live.textContent = text;
}

function listen() {
  if (events || document.hidden) return;
  heard = Date.now();
  events = new EventSource(snapshot.dataset.live);
  events.addEventListener("snapshot", (event) => {
    heard = Date.now();
    change(snapshot, JSON.parse(event.data).html);
    showTimes(snapshot);
    announce("Live.");
  });
  events.addEventListener("beat", () => {
    heard = Date.now();
    announce("Live.");
  });
  events.addEventListener("error", () => announce("Not live: the dashboard does not respond. The data shown is out of date."));
}

function fallSilent() {
  events?.close();
  events = null;
}

// An answer that is no stream ends an EventSource for good, and a connection may be dead without a word.
setInterval(() => {
  if (document.hidden) return;
  const isDead = !events || events.readyState === EventSource.CLOSED || Date.now() - heard > SILENT_MS;
  if (!isDead) return;
  fallSilent();
  listen();
}, AGAIN_MS);

document.addEventListener("visibilitychange", () => {
  fallSilent();
  if (document.hidden) return;
  listen();
  draw();
});
addEventListener("pagehide", fallSilent);
addEventListener("pageshow", listen);
listen();

// Charts.

const charts = document.getElementById("charts");
const drawn = new Map();
const MINUTE_MS = 60_000;
const SOON_MS = 5_000;

/** The lines of each chart: the figure, its label, its colour. */
const LINES = {
  records: [["resolved", "Resolved", "--good"], ["open", "Open", "--accent"], ["exhausted", "Exhausted", "--bad"]],
  pages: [["pages_per_second", "Pages per second", "--accent"]],
  queue: [["queued", "Queued", "--accent"], ["leased", "Being fetched", "--warn"]],
  oldest: [["oldest", "Oldest task", "--warn"]],
};

/** Outcomes differ in colour and in name; those that are fine are green. */
const COLOURS = ["--bad", "--warn", "--accent", "--quiet", "--focus"];
const FINE = ["ok", "not_modified", "redirected"];

function linesOf(name, metrics) {
  if (name !== "ended") return LINES[name].map(([key, label, colour]) => ({ values: metrics[key], label, colour }));
  let others = 0;
  return Object.entries(metrics.ended).map(([outcome, values]) => {
    const colour = FINE.includes(outcome) ? "--good" : COLOURS[others++ % COLOURS.length];
    return { values, label: outcome.replaceAll("_", " "), colour };
  });
}

function drawOne(place, metrics) {
  const style = getComputedStyle(document.documentElement);
  const colour = (name) => style.getPropertyValue(name).trim();
  const lines = linesOf(place.dataset.chart, metrics);
  const now = Date.now() / 1_000;
  const axis = { stroke: colour("--quiet"), grid: { stroke: colour("--line"), width: 1 }, ticks: { stroke: colour("--line"), width: 1 } };
  const options = {
    width: Math.max(place.clientWidth, 200),
    height: 200,
    cursor: { y: false },
    axes: [axis, { ...axis, size: 64 }],
    scales: { x: { range: () => [now - charts.dataset.hours * 3_600, now] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.05)] } },
    series: [{}, ...lines.map((line) => ({ label: line.label, stroke: colour(line.colour), width: 2, spanGaps: false }))],
  };
  drawn.get(place)?.destroy();
  drawn.set(place, new uPlot(options, [metrics.at, ...lines.map((line) => line.values)], place));
}

async function draw() {
  if (!charts || document.hidden || typeof uPlot === "undefined") return;
  const answer = await fetch(charts.dataset.source).catch(() => null);
  if (!answer?.ok) return;
  const metrics = await answer.json();
  const isEmpty = metrics.at.length === 0;
  charts.hidden = isEmpty;
  document.getElementById("no-charts").hidden = !isEmpty;
  if (isEmpty) {
    setTimeout(draw, SOON_MS);
    return;
  }
  for (const place of charts.querySelectorAll("[data-chart]")) drawOne(place, metrics);
}

function drawWhenIdle() {
  clearTimeout(drawWhenIdle.timer);
  drawWhenIdle.timer = setTimeout(draw, 200);
}

if (charts) {
  draw();
  setInterval(draw, MINUTE_MS);
  addEventListener("resize", drawWhenIdle);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", draw);
}
