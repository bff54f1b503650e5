// Shows events as they come, on pages with a part that is live.
//
// Each event holds all that is shown. A page that nobody sees asks for nothing: browsers keep few connections to one
// host, and a laptop that wakes begins with what is true by then.

import { showTimes } from "./dashboard.js";
import { change } from "./change.js";

const snapshot = document.querySelector("[data-live]");
const live = document.getElementById("live");
const SILENT_MS = 30_000;
const AGAIN_MS = 5_000;

let events = null;
let heard = 0;
/** There is nothing more to be shown. */
let isGone = false;

function announce(text) {
  if (live.textContent !== text) live.textContent = text;
}

function listen() {
  if (isGone || events || document.hidden) return;
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
  events.addEventListener("gone", () => {
    isGone = true;
    fallSilent();
    announce("Not live: this is no longer stored.");
  });
  events.addEventListener("error", () => announce("Not live: the dashboard does not respond. The data shown is out of date."));
}

function fallSilent() {
  events?.close();
  events = null;
}

// An answer that is no stream ends an EventSource for good, and a connection may be dead without a word.
setInterval(() => {
  if (isGone || document.hidden) return;
  const isDead = !events || events.readyState === EventSource.CLOSED || Date.now() - heard > SILENT_MS;
  if (!isDead) return;
  fallSilent();
  listen();
}, AGAIN_MS);

document.addEventListener("visibilitychange", () => {
  fallSilent();
  listen();
});
addEventListener("pagehide", fallSilent);
addEventListener("pageshow", listen);
listen();
