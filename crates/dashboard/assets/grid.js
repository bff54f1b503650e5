// The grid by keys. One cell is in the order of tabulators; arrows move from cell to cell. The pane shows the page of
// the cell's link, and its forms are sent in place. An answer is only taken for a cell whose evidence is shown.

import { showTimes } from "./dashboard.js";

const preparing = document.getElementById("preparing-rows");
const AGAIN_MS = 2_000;

/** Says how far the index is, and shows the whole grid once that is made. */
async function watchIndex() {
  const answer = await fetch(preparing.dataset.again).catch(() => null);
  const page = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html");
  const still = page && page.getElementById("preparing-rows");
  if (page && !still) return location.replace(preparing.dataset.again);
  if (still) preparing.replaceChildren(...still.childNodes);
  setTimeout(watchIndex, AGAIN_MS);
}

if (preparing) setTimeout(watchIndex, AGAIN_MS);

const grid = document.querySelector("[role=grid]");
const pane = document.getElementById("pane");
let at = null;
/** The number of the last request: only its answer is shown. */
let latest = 0;
/** Breaks off the reading of evidence that goes on. */
let asking = null;
/** The cells with answers on their way. */
const sending = new Set();

const rows = () => [...grid.tBodies[0].rows];
const cellsOf = (row) => [...row.cells].filter((cell) => cell.getAttribute("role") === "gridcell");
const linkOf = (cell) => cell?.querySelector("a");

function stand(cell, isFocused = true) {
  if (!cell) return;
  if (at) at.tabIndex = -1;
  at = cell;
  at.tabIndex = 0;
  if (isFocused) {
    at.focus({ preventScroll: true });
    at.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
}

function neighbour(down, right) {
  const all = rows();
  const row = all.indexOf(at.parentElement);
  const place = cellsOf(at.parentElement).indexOf(at);
  const target = all[Math.max(0, Math.min(all.length - 1, row + down))];
  const cells = cellsOf(target);
  return cells[Math.max(0, Math.min(cells.length - 1, place + right))];
}

/** The next cell behind this one that waits for an answer. */
function nextOpen() {
  const open = [...grid.querySelectorAll(".c-contradicted, .c-conflicting, .c-below-precision")];
  const waits = open.filter((cell) => linkOf(cell) && !/\ba-/.test(cell.className));
  const behind = (cell) => at.compareDocumentPosition(cell) & Node.DOCUMENT_POSITION_FOLLOWING;
  return waits.find(behind) ?? waits[0];
}

/** Breaks off the reading of evidence. An answer on its way is never broken off. */
function stop() {
  asking?.abort();
  asking = null;
}

function fail(text) {
  stop();
  pane.cell = null;
  show(document.createTextNode(text));
}

/** Shows the evidence of a cell, unless another is asked for meanwhile; with a body, an answer is sent first. */
async function load(cell, address, body) {
  stop();
  latest += 1;
  const number = latest;
  const own = body ? null : new AbortController();
  asking = own;
  pane.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(address, body ? { method: "POST", body } : { signal: own.signal });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const part = page.getElementById("evidence");
    const said = page.querySelector("main .message");
    const message = part?.contains(said) ? null : said;
    if (number !== latest && !body) return;
    if (!part || (message && number !== latest)) {
      // A login that has ended, a fault: its own page says it best.
      const text = message?.textContent ?? page.querySelector("main")?.textContent ?? "The page cannot be shown.";
      fail(text.trim());
      return;
    }
    mark(cell, part);
    if (number !== latest) return;
    if (message) part.prepend(document.adoptNode(message));
    show(document.adoptNode(part));
    pane.cell = cell;
  } catch {
    if (body || (number === latest && !own.signal.aborted)) fail("The dashboard does not answer. Try again.");
  } finally {
    if (asking === own) asking = null;
    if (number === latest) pane.removeAttribute("aria-busy");
  }
}

function show(content) {
  const close = document.createElement("button");
  close.className = "plain close";
  close.type = "button";
  close.append("Close", Object.assign(document.createElement("kbd"), { textContent: "Esc" }));
  close.addEventListener("click", hide);
  pane.replaceChildren(close, content);
  pane.hidden = false;
  pane.scrollTop = 0;
  showTimes(pane);
  at.scrollIntoView({ block: "nearest", inline: "nearest" });
}

/** Shows the answer of the pane in the grid; without a typed value, what stood there before one. What has its answers
 * applied at once says how the cell is now. */
function mark(cell, part) {
  if (part.dataset.current !== undefined) renew(cell, part.dataset);
  for (const old of ["accepted", "rejected", "edited"]) cell.classList.remove(`a-${old}`);
  const { answer, value } = part.dataset;
  const link = linkOf(cell);
  link.querySelector(".answered")?.remove();
  if (part.dataset.current === undefined) write(link, answer ? value : "");
  if (!answer) return;
  cell.classList.add(`a-${answer}`);
  link.append(Object.assign(document.createElement("span"), { className: "answered", textContent: answer }));
}

function renew(cell, { state, sign, current }) {
  const former = [...cell.classList].find((name) => name.startsWith("c-"));
  const link = linkOf(cell);
  link.querySelector(".sign").textContent = sign;
  link.querySelector("bdi")?.remove();
  if (current) link.insertBefore(textOf(current), link.children[1]);
  if (former === `c-${state}`) return;
  cell.classList.replace(former, `c-${state}`);
  link.querySelector(".unseen").textContent = ` ${state.replaceAll("-", " ")}`;
}

function textOf(value) {
  const text = document.createElement("bdi");
  text.textContent = value.length > 90 ? `${value.slice(0, 90)}…` : value;
  return text;
}

function write(link, value) {
  if (!value && link.dataset.was === undefined) return;
  const text = link.querySelector("bdi");
  link.dataset.was ??= text?.textContent ?? "";
  const now = value || link.dataset.was;
  if (!value) delete link.dataset.was;
  if (!now) return text?.remove();
  text?.remove();
  link.insertBefore(textOf(now), link.children[1]);
}

function open(cell) {
  const link = linkOf(cell);
  if (!link) return hide();
  for (const old of grid.querySelectorAll("[aria-selected]")) old.removeAttribute("aria-selected");
  cell.setAttribute("aria-selected", "true");
  return load(cell, link.href);
}

function hide() {
  stop();
  pane.cell = null;
  pane.hidden = true;
  pane.replaceChildren();
  for (const old of grid.querySelectorAll("[aria-selected]")) old.removeAttribute("aria-selected");
  stand(at);
}

/** Sends an answer about the cell that the pane shows, one at a time for each cell. */
async function send(form) {
  const { cell } = pane;
  if (!cell || sending.has(cell)) return;
  sending.add(cell);
  await load(cell, form.action, new URLSearchParams(new FormData(form)));
  sending.delete(cell);
  if (at === cell) stand(cell);
}

/** The pane follows while it is open, once the reader rests on a cell. */
let following = 0;
function follow() {
  clearTimeout(following);
  if (pane.hidden) return;
  stop();
  following = setTimeout(() => !pane.hidden && pane.cell !== at && open(at), 120);
}

const moves = {
  ArrowUp: () => neighbour(-1, 0),
  ArrowDown: () => neighbour(1, 0),
  ArrowLeft: () => neighbour(0, -1),
  ArrowRight: () => neighbour(0, 1),
  Home: () => neighbour(0, -Infinity),
  End: () => neighbour(0, Infinity),
  PageUp: () => neighbour(-10, 0),
  PageDown: () => neighbour(10, 0),
  n: nextOpen,
};

function onKey(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const isTyping = event.target.closest("input, select, textarea");
  if (event.key === "Escape" && !pane.hidden) {
    event.preventDefault();
    return hide();
  }
  if (isTyping) return;
  const isInGrid = grid.contains(event.target);
  if (isInGrid && event.target.closest("[role=gridcell]") && moves[event.key]) {
    event.preventDefault();
    stand(moves[event.key]());
    return follow();
  }
  if (isInGrid && event.key === "Enter" && event.target.getAttribute("role") === "gridcell") {
    event.preventDefault();
    return open(at);
  }
  if (event.repeat || !/^[areu]$/.test(event.key) || !(isInGrid || pane.contains(event.target))) return;
  event.preventDefault();
  if (pane.cell !== at) return open(at);
  const target = pane.querySelector(`[data-key="${event.key}"]`);
  if (!target) return;
  if (event.key !== "e") return send(target.form);
  target.focus();
  target.select();
}

if (grid) {
  for (const link of grid.querySelectorAll("[role=gridcell] a")) link.tabIndex = -1;
  for (const cell of grid.querySelectorAll("[role=gridcell]")) cell.tabIndex = -1;
  const asked = new URLSearchParams(location.search).get("cell");
  const linked = asked && document.getElementById(asked);
  stand(linked ?? grid.querySelector("[role=gridcell]"), Boolean(linked));
  if (linked) open(linked);
  document.addEventListener("keydown", onKey);
  grid.addEventListener("click", (event) => {
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.button) return;
    const cell = event.target.closest("[role=gridcell]");
    if (!cell) return;
    event.preventDefault();
    stand(cell);
    open(cell);
  });
  grid.addEventListener("focusin", (event) => {
    const cell = event.target.closest("[role=gridcell]");
    if (cell && cell !== at) stand(cell, false);
  });
  pane.addEventListener("submit", (event) => {
    event.preventDefault();
    send(event.target);
  });
}
