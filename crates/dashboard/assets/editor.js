// The editor: a page in its frame, and the mapping beside it. All that is typed and pointed at is kept on the server as it
// comes; all that reads pages happens there.

import { el } from "./editor-dom.js";
import { edit, freeName, showFaults, useSchema } from "./editor-form.js";
import { kindOf, nameFor } from "./editor-names.js";
import * as results from "./editor-results.js";

const bench = document.getElementById("bench");
const at = (id) => document.getElementById(id);
const base = `/dashboard/editor/draft/${bench.dataset.id}`;
const frame = at("frame");

let draft = null;
/** What the last answer of the learner was about. */
let offered = null;
/** By field, the elements that the last trace has read from. */
let found = {};

/** Keys that the copy of a page leaves to the editor; `frame.js` has the same numbers. */
const LEAVE = 10_000_001;
const UNDO = 10_000_002;

/** Under this name the draft has what was pointed at as rows, and with `.NAME` after it, what was pointed at in each row. */
const ROWS = "#rows";
const isOfRows = (name) => name.startsWith(ROWS);
/** The rule that is pointed at; a mapping may have several. */
const rule = () => [draft.mapping.rows ?? []].flat()[0];

const page = () => Number(at("page-choice").value);
const field = () => at("field-choice").value;
const urlOf = (number) => draft.pages.find((one) => one.number === number)?.url ?? "";
const say = (text, isFault = false) => {
  at("status").textContent = text;
  at("status").classList.toggle("fault", isFault);
};

async function ask(action, body, raw) {
  const answer = await fetch(`${base}/${action}`, {
    method: "POST",
    headers: { "x-webfill-token": bench.dataset.token, "content-type": raw ? "application/octet-stream" : "application/json" },
    body: raw ?? JSON.stringify(body),
  });
  const reply = await answer.json().catch(() => ({ error: `the dashboard has answered ${answer.status}: load this page again` }));
  if (reply.error) throw new Error(reply.error);
  return reply;
}

/** Does something that takes a while, and says how it went. */
async function doing(text, work) {
  say(`${text} …`);
  bench.setAttribute("aria-busy", "true");
  try {
    say((await work()) ?? "");
  } catch (error) {
    say(error.message, true);
  } finally {
    bench.removeAttribute("aria-busy");
  }
}

const typed = () => ({ mapping: draft.mapping, said: draft.said, ...(draft.edited.version ? {} : { file: at("file-name").value }) });

// Editing.

let timer = 0;
function changed(isStructure) {
  if (isStructure) showFields();
  clearTimeout(timer);
  timer = setTimeout(check, 400);
}

/** What was pointed at stays the field's. */
function renamed(before, now) {
  if (before === now || !draft.said[before] || draft.said[now]) return;
  draft.said[now] = draft.said[before];
  delete draft.said[before];
  const option = [...at("field-choice").options].find((one) => one.value === before);
  if (option) option.value = now;
}

async function check() {
  try {
    take(await ask("check", typed()), false);
    if (at("results").dataset.of === "trial") tryAll();
  } catch (error) {
    say(error.message, true);
  }
}

/** Takes over what the server has; the editor keeps what is being typed. */
function take(reply, isNew = true) {
  // What was pointed at since the request is not lost by its reply.
  const { mapping, said } = isNew || !draft ? reply.draft : draft;
  draft = { ...reply.draft, mapping, said: ofPages(said, reply.draft.pages) };
  if (isNew) edit(at("editor"), draft.mapping, changed, renamed);
  showFaults(at("editor"), at("faults"), reply.faults, reply.warnings);
  showPages();
  showFields();
  remember();
  const count = reply.faults.length;
  at("save").disabled = count > 0;
  at("save").title = count ? "Fix the errors first" : "";
  at("file-name").readOnly = Boolean(draft.edited.version);
  // Messages about other things stay.
  const isOfChecks = / to fix$|^Checked|^$/.test(at("status").textContent);
  if (!isNew && (count || isOfChecks)) say(count ? `${count} to fix` : "No errors found", count > 0);
  return count;
}

/** Clicks on pages that were removed are gone with them. */
function ofPages(said, pages) {
  const numbers = new Set(pages.map((one) => one.number));
  return Object.fromEntries(Object.entries(said).map(([name, all]) => [name, all.filter((one) => numbers.has(one.page))]));
}

// Undo: the states that the server has taken, the present one last.

const past = [];
const MOST_PAST = 50;

function remember() {
  // The server sorts the fields that were pointed at.
  const said = Object.fromEntries(Object.entries(draft.said).sort(([one], [other]) => (one < other ? -1 : 1)));
  const now = JSON.stringify({ mapping: draft.mapping, said });
  if (past.at(-1) !== now) past.push(now);
  if (past.length > MOST_PAST) past.shift();
  at("undo").disabled = past.length < 2;
}

function undo() {
  if (past.length < 2) return;
  past.pop();
  const { mapping, said } = JSON.parse(past.at(-1));
  // A value whose field was not made yet begins one when it is pointed at again.
  const isMade = (name) => isOfRows(name) || (mapping.fields ?? []).some((one) => one.name === name);
  draft.said = Object.fromEntries(Object.entries(said).filter(([name]) => isMade(name)));
  forgetOffer();
  replaceMapping(mapping, "Undone").then(mark).then(tryAll);
}

at("undo").addEventListener("click", undo);
addEventListener("keydown", (event) => {
  if (!(event.ctrlKey || event.metaKey) || event.altKey || event.shiftKey) return;
  const isTyping = event.target.matches?.("input:not([type=checkbox], [type=radio]), textarea, select");
  if (event.key === "z" && !isTyping) {
    event.preventDefault();
    undo();
  } else if (event.key === "s") {
    event.preventDefault();
    if (at("save").disabled) say(at("save").title, true);
    else at("saving").requestSubmit();
  }
});

function showFields() {
  const before = field();
  const names = (draft.mapping.fields ?? []).map((one) => one.name);
  const unread = Object.keys(draft.said).filter((name) => isUnread(name) && hasClicks(name));
  const fresh = nextName();
  const ofRows = [[ROWS, "the rows of the page"]];
  if (rule() || draft.said[ROWS]) {
    const fields = rule()?.fields ?? [];
    ofRows.push(...fields.map(({ name }) => [`${ROWS}.${name}`, `${name}, in each row`]));
    ofRows.push([`${ROWS}.${freeName(fields)}`, `a new field of each row (${freeName(fields)})`]);
  }
  const options = [...names.map((name) => [name, name]), ...unread.map((name) => [name, `${name}, not read yet`]), [fresh, "a new field"], ...ofRows];
  at("field-choice").replaceChildren(...options.map(([value, text]) => el("option", { value }, text)));
  const isThere = options.some(([value]) => value === before);
  at("field-choice").value = isThere ? before : fresh;
  if (!isThere) mark();
}

// Pages.

function showPages() {
  const choice = at("page-choice");
  const before = choice.value;
  const title = (one) => `${one.is_former ? "before: " : ""}${one.url}`;
  choice.replaceChildren(...draft.pages.map((one) => el("option", { value: one.number }, title(one))));
  if (draft.pages.some((one) => String(one.number) === before)) choice.value = before;
  if (choice.value !== before || !frame.src) showPage();
}

function showPage() {
  // A page may be chosen before the draft is here. It is shown when the draft arrives.
  if (!draft) return;
  const one = draft.pages.find((one) => one.number === page());
  at("take-away").disabled = !one;
  frame.hidden = !one;
  if (!one) {
    at("page-info").textContent = "No pages yet. Add some below.";
    at("adding").open = true;
    at("url").focus();
    return;
  }
  const known = Object.entries(one.known).map(([name, values]) => `${name}: ${values.join(" · ")}`);
  at("page-info").textContent = `${one.from}${known.length ? `; known: ${known.join("; ")}` : "; nothing is known of it"}`;
  found = {};
  frame.src = `${base}/copy/${one.number}`;
}

function show(number) {
  at("page-choice").value = String(number);
  showPage();
  at("page-choice").focus();
}

// Pointing.

function saidHere() {
  const all = (draft.said[field()] ??= []);
  let here = all.find((one) => one.page === page());
  if (!here) all.push((here = { page: page(), right: [], wrong: [], absent: false }));
  return here;
}

const peek = () => (draft.said[field()] ?? []).find((one) => one.page === page()) ?? { right: [], wrong: [], absent: false };

/** All values on this page that were pointed at. */
const pointedHere = () => Object.entries(draft.said).filter(([name]) => !isOfRows(name)).flatMap(([, all]) => all.filter((one) => one.page === page()).flatMap((one) => one.right));

function mark() {
  if (!draft || !frame.contentWindow) return;
  const { right, wrong, absent } = peek();
  at("absent").checked = absent;
  // Before a new value is pointed at, those that fields have already are marked.
  const taken = isUnread(field()) && !hasClicks(field()) ? pointedHere() : undefined;
  const read = taken ?? found[field()] ?? (isOfRows(field()) ? found[ROWS] : undefined) ?? [];
  frame.contentWindow.postMessage({ right, wrong, found: read.filter((one) => !right.includes(one) && !wrong.includes(one)) }, "*");
}

addEventListener("message", (event) => {
  if (event.source !== frame.contentWindow || !Number.isInteger(event.data)) return;
  if (event.data === 0) return mark();
  if (event.data === LEAVE) return leaveCopy();
  if (event.data === UNDO) return undo();
  const number = Math.abs(event.data);
  if (number > 10_000_000 || !draft.pages.length) return;
  const isWrong = event.data < 0 || document.querySelector("input[name=sense]:checked").value === "wrong";
  point(number, isWrong ? "wrong" : "right");
});

/** From the copy of a page to what its last click has led to. */
function leaveCopy() {
  (at("candidates").hidden ? at("field-choice") : at("candidates-head")).focus();
}

/** Chooses a field and leads into a copy of a page on which it is read wrongly or not at all. */
function pointAt(name) {
  choose(name);
  const present = draft.pages.find((one) => !one.is_former);
  if (present && draft.pages.some((one) => one.number === page() && one.is_former)) {
    at("page-choice").value = String(present.number);
    showPage();
  }
  mark();
  frame.focus();
  say(`Point at ${name} in the copy of the page`);
}

/** A field that no chain reads yet. */
const isUnread = (name) => !isOfRows(name) && !(draft.mapping.fields ?? []).some((one) => one.name === name);

const hasClicks = (name) => (draft.said[name] ?? []).some((one) => one.right.length || one.wrong.length || one.absent);

/** The name of the next new field, until it gets one from its label. */
const nextName = () => freeName([...(draft.mapping.fields ?? []), ...Object.keys(draft.said).filter(hasClicks).map((name) => ({ name }))]);

/** The field that this element of the page belongs to already. */
const fieldOf = (number) => Object.keys(draft.said).find((name) => !isOfRows(name) && draft.said[name]?.some((one) => one.page === page() && one.right.includes(number)));

function choose(name) {
  showFields();
  at("field-choice").value = name;
}

/** Each new value begins a new field, unless a field was chosen before. */
function point(number, sense) {
  const owner = fieldOf(number);
  if (isUnread(field()) && owner) choose(owner);
  const name = field();
  const isNew = isUnread(name) && !hasClicks(name);
  const here = saidHere();
  const had = here[sense].includes(number);
  for (const list of ["right", "wrong"]) here[list] = here[list].filter((one) => one !== number);
  if (!had) here[sense].push(number);
  here.absent = false;
  // The next click need not wait for the answer to this one.
  if (isNew) choose(nextName());
  mark();
  if (isUnread(name) && sense === "right" && !had) inTurn(() => findNew(name));
  else inTurn(() => findCandidates(name));
}

let turn = Promise.resolve();

/** Clicks are answered one after the other, in their order. */
const inTurn = (work) => (turn = turn.then(work));

/** All rows of the pages, by those that were pointed at, and their fields. */
function findRows() {
  at("candidates").hidden = true;
  return doing("Finding rows", async () => {
    const reply = await ask("rows", typed());
    const place = reply.of_pages.indexOf(page());
    found[ROWS] = reply.elements?.[place] ?? [];
    mark();
    if (!reply.rule) {
      showFields();
      return reply.select ? `${reply.why}; choose a new field of each row, and point at its value in one of them` : reply.why;
    }
    useRule(reply);
    showResults("Rows of all pages", results.rowsOfPages(reply.of_pages.map((page, at) => ({ page, rows: reply.pages[at] })), urlOf));
    await replaceMapping(draft.mapping, reply.why);
    return at("status").textContent;
  });
}

/** Takes the rule over; fields that were not pointed at stay. */
function useRule(reply) {
  const { mapping } = draft;
  const before = rule();
  const names = reply.rule.fields.map((one) => one.name);
  const kept = (before?.fields ?? []).filter((one) => !names.includes(one.name));
  const isKept = before?.key?.some((name) => kept.some((one) => one.name === name));
  const next = { ...before, ...reply.rule, fields: [...reply.rule.fields, ...kept], key: isKept ? before.key : reply.rule.key };
  if (Array.isArray(mapping.rows)) mapping.rows[0] = next;
  else mapping.rows = next;
  if ((mapping.url_patterns ?? []).every((pattern) => !pattern.pattern) && reply.url_patterns?.length) mapping.url_patterns = reply.url_patterns;
  if (!mapping.url_parsers?.length && reply.url_parsers?.length) mapping.url_parsers = reply.url_parsers;
}

/** A new field gets its name, and the first candidate. */
function findNew(name) {
  // Meanwhile it was read, or its click was taken back.
  if (!isUnread(name) || !hasClicks(name)) return null;
  return doing("Finding candidates", async () => {
    const reply = await ask("candidates", { ...typed(), field: name });
    if (!hasClicks(name)) return "Clicks cleared";
    if (!reply.candidates.length) {
      choose(name);
      offer({ field: name, reply });
      mark();
      return reply.why;
    }
    const isChosen = field() === name;
    const named = nameAnew(name, reply);
    if (isChosen) choose(named);
    offer({ field: named, reply });
    return useCandidate(reply.candidates[0]);
  });
}

/** Candidates for a field that was chosen. */
function findCandidates(name = field()) {
  if (isOfRows(name)) return findRows();
  if (!hasClicks(name)) {
    at("candidates").hidden = true;
    return doing("Keeping", async () => { await ask("check", typed()); remember(); return "Clicks cleared"; });
  }
  return doing("Finding candidates", async () => {
    const reply = await ask("candidates", { ...typed(), field: name });
    offer({ field: name, reply });
    remember();
    return reply.candidates.length ? `${reply.candidates.length} candidates for ${name}` : reply.why;
  });
}

/** What was pointed at as a new field is that of one with a name. */
function nameAnew(before, reply) {
  const known = reply.of_pages.map((number) => draft.pages.find((one) => one.number === number)?.known);
  const taken = new Set((draft.mapping.fields ?? []).map((one) => one.name));
  const proposed = nameFor(reply, known) || before;
  let name = proposed;
  for (let number = 2; taken.has(name); number += 1) name = `${proposed}_${number}`;
  if (name !== before && draft.said[before]) {
    draft.said[name] = draft.said[before];
    delete draft.said[before];
  }
  return name;
}

const OFFER = `webfill-offer-${bench.dataset.id}`;

function forgetOffer() {
  offered = null;
  at("candidates").hidden = true;
  sessionStorage.removeItem(OFFER);
}

/** Shows candidates. They are there again when the page is loaded again. */
function offer(what) {
  offered = what;
  try {
    sessionStorage.setItem(OFFER, JSON.stringify(what));
  } catch {
    // Too large to be kept: they can be asked for again.
  }
  const { field: name, reply } = what;
  at("candidates").hidden = false;
  at("candidates-head").textContent = `Candidates for ${name}`;
  at("candidate-list").replaceChildren(...results.candidates(reply, urlOf, useCandidate, markCandidate).flat(3).filter(Boolean));
  markCandidate(0);
}

function restoreOffer() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(OFFER) ?? "null");
    const pages = draft.pages.map((one) => one.number);
    if (kept && kept.reply.of_pages.every((number) => pages.includes(number))) offer(kept);
  } catch {
    forgetOffer();
  }
}

/** The kind that the values of a field look like, unless it is read so already. */
function kindFor(name, values) {
  const one = draft.mapping.fields?.find((one) => one.name === name);
  const kind = kindOf(values);
  const steps = (one?.alternatives ?? [one?.processors ?? []]).flat();
  return one && kind && !(kind.isMultiple && one.multiple) && !steps.some((step) => step.type === kind.steps[0].type) ? kind : null;
}

function readAs(name, kind) {
  const one = draft.mapping.fields.find((one) => one.name === name);
  for (const chain of one.alternatives ?? [one.processors]) chain.push(...structuredClone(kind.steps));
  if (kind.isMultiple) one.multiple = true;
  replaceMapping(draft.mapping, `${name} is read as ${kind.title} now`).then(tryAll);
}

/** Marks what a candidate reads on this page. */
function markCandidate(number) {
  const place = offered.reply.of_pages.indexOf(page());
  const value = offered.reply.candidates[number]?.values[place];
  if (value && offered.field === field()) found[offered.field] = value.elements ?? [];
  mark();
}

function useCandidate(candidate) {
  const { field: name, reply } = offered;
  const { mapping } = draft;
  mapping.fields ??= [];
  let one = mapping.fields.find((one) => one.name === name);
  if (!one) mapping.fields.push((one = { name }));
  delete one.alternatives;
  one.processors = structuredClone(candidate.processors);
  if (reply.multiple) one.multiple = true;
  const isPlaceholder = (pattern) => !pattern.pattern;
  if ((mapping.url_patterns ?? []).every(isPlaceholder) && reply.url_patterns?.length) mapping.url_patterns = reply.url_patterns;
  return replaceMapping(mapping, `${name} is read by ${candidate.anchor} now`).then(() => {
    tryAll();
    return at("status").textContent;
  });
}

function replaceMapping(mapping, text) {
  draft.mapping = mapping;
  edit(at("editor"), mapping, changed, renamed);
  return doing("Checking", async () => {
    const count = take(await ask("check", typed()), false);
    return count ? `${text}; ${count} to fix` : text;
  });
}

// Results.

function showResults(title, parts, isAsked = true, of = "") {
  at("results").hidden = false;
  at("results").dataset.of = of;
  at("results-head").textContent = title;
  // The button that has led here may be gone.
  const isWithin = at("result-details").contains(document.activeElement);
  at("result-details").replaceChildren(...parts.flat(5).filter(Boolean));
  if (isAsked || isWithin) at("results-head").focus();
}

let trials = 0;

/** The values on all pages after a change, unless the draft has faults. */
async function tryAll() {
  const number = (trials += 1);
  if (at("save").disabled) return;
  try {
    const reply = await ask("trial", typed());
    if (number !== trials) return;
    showResults("Values on all pages", results.trial(reply, urlOf, show, kindFor, readAs, pointAt), false, "trial");
  } catch {
    // The button says why.
  }
}

const onclick = (id, work) => at(id)?.addEventListener("click", work);

onclick("try", () => doing("Trying on all pages", async () => {
  const reply = await ask("trial", typed());
  showResults("Values on all pages", results.trial(reply, urlOf, show, kindFor, readAs, pointAt), true, "trial");
  const bad = reply.rows.filter((row) => row.verdict === "differs" || row.verdict === "not_read").length;
  return bad ? `Mismatches with known values: ${bad}` : "All known values match";
}));

onclick("trace", () => doing("Tracing", async () => {
  const reply = await ask("trace", { ...typed(), page: page() });
  found = reply.elements;
  mark();
  showResults("Each step on this page", results.trace(reply));
  return "Traced. Extracted values are marked on the page";
}));

const propose = (action, title) => () => doing(title, async () => {
  const reply = await ask(action, typed());
  const apply = (mapping) => replaceMapping(mapping, "Applied. Review the draft, then save it").then(tryAll);
  const applyAndSave = async (mapping) => {
    await replaceMapping(mapping, "Applied");
    if (!at("save").disabled) save();
  };
  showResults(title, results.proposal(reply, apply, bench.dataset.repairs ? applyAndSave : null, pointAt));
  return "Draft not changed yet";
});
onclick("learn", propose("learn", "Proposed mapping"));
onclick("repair", propose("repair", "Proposed repair"));

function save() {
  const golden = at("with-golden").checked ? draft.pages.filter((one) => !one.is_former).map((one) => one.number) : [];
  return doing("Saving", async () => {
    const reply = await ask("save", { ...typed(), golden });
    draft.edited.version = reply.version;
    at("file-name").readOnly = true;
    const former = reply.former ? `, the former version is ${reply.former}` : "";
    if (at("reload")) at("reload").hidden = false;
    const problems = reply.problems.length ? `; not kept: ${reply.problems.join("; ")}` : "";
    return `Saved ${reply.path}${former}; ${reply.cases.length} golden cases kept${problems}`;
  });
}

/** Who opens a repair wants its proposal. It is made once: what was applied since is not replaced. */
function proposeOnce() {
  const key = `webfill-proposed-${bench.dataset.id}`;
  const isNew = bench.dataset.repairs && draft.pages.some((one) => !one.is_former) && !sessionStorage.getItem(key);
  if (!isNew) return;
  sessionStorage.setItem(key, "yes");
  propose("repair", "Proposed repair")();
}

at("saving").addEventListener("submit", (event) => {
  event.preventDefault();
  save();
});

onclick("reload", () => doing("Reloading in the fleet", async () => {
  await ask("reload", {});
  return "The fleet has loaded the mappings";
}));

// Adding and taking away.

const onsubmit = (id, work) => at(id)?.addEventListener("submit", (event) => {
  event.preventDefault();
  doing("Adding", work);
});
const adding = (what) => async () => {
  const reply = await ask("add", { ...typed(), add: what() });
  take(reply, false);
  if (at("results").dataset.of === "trial") tryAll();
  return reply.note;
};
onsubmit("add-url", async () => {
  const urls = at("url").value.split(/\s+/).filter(Boolean);
  const notes = [];
  for (const url of urls) notes.push(await adding(() => ({ url }))());
  at("url").value = "";
  return notes.length > 1 ? `${notes.length} pages added` : notes[0];
});
onsubmit("add-golden", adding(() => ({ golden: at("golden").value })));
onsubmit("add-crawl", adding(() => ({
  crawl: { app: at("app").value, crawl: at("crawl").value, url: at("crawl-url").value, mapping: at("crawl-mapping").value, count: Number(at("crawl-count").value) },
})));
onsubmit("add-file", async () => {
  const [file] = at("file").files;
  const path = [file.name, at("file-url").value].map(encodeURIComponent).join("/").replace(/\/$/, "");
  take(await ask(`upload/${path}`, null, file), false);
  return `${file.name} was added`;
});
onclick("take-away", () => doing("Removing", async () => {
  take(await ask("take_away", { ...typed(), page: page() }), false);
  return "Page removed";
}));

at("page-choice").addEventListener("change", showPage);
at("field-choice").addEventListener("change", () => { if (offered?.field !== field()) at("candidates").hidden = true; mark(); });
at("absent").addEventListener("change", (event) => {
  const here = saidHere();
  here.absent = event.target.checked;
  if (here.absent) here.right = [];
  mark();
  inTurn(() => findCandidates());
});
onclick("clear", () => {
  draft.said[field()] = (draft.said[field()] ?? []).filter((one) => one.page !== page());
  mark();
  inTurn(() => findCandidates());
});


const [schema, reply] = await Promise.all([fetch("/dashboard/editor/schema"), fetch(`${base}/state`)].map(async (one) => (await one).json()));
useSchema(schema);
take(reply);
restoreOffer();
say(reply.faults.length ? `${reply.faults.length} to fix` : "");
proposeOnce();
