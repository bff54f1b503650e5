// The results of trials, traces and proposals.

import { button, el, shown, table } from "./editor-dom.js";

/** How a value compares with the known one: a sign, and words for those who hear the table. */
const VERDICTS = {
  differs: ["≠", "something else is known"],
  not_read: ["∅", "known, and not read"],
  empty: ["–", "nothing read, nothing known"],
  new: ["", ""],
  same: ["✓", "as known"],
};

const isBad = (row) => row.verdict === "differs" || row.verdict === "not_read";

/**
 * A trial: a row for each page, a column for each field, disagreements first. `show(page)` shows a page, `kindFor(field,
 * values)` names the kind that values look like, `readAs(field, kind)` reads them so, and `pointAt(field)` has its value
 * pointed at.
 */
export function trial(reply, urlOf, show, kindFor, readAs, pointAt) {
  const names = reply.fields.map((one) => one.field);
  const of = (page) => reply.rows.filter((row) => row.page === page);
  const count = (rows, is) => rows.filter(is).length;
  const isEmpty = (row) => row.verdict === "empty";
  const shared = sharedOf(reply.pages.map((one) => urlOf(one.page)));
  const rank = (one) => [one.error ? 1 : 0, count(of(one.page), isBad), count(of(one.page), isEmpty)];
  const ranked = reply.pages.map((one) => ({ one, rank: rank(one) }));
  ranked.sort((one, other) => other.rank.map((value, at) => value - one.rank[at]).find((by) => by) ?? 0);
  const rows = ranked.map(({ one }) => {
    const cells = names.map((name) => cell(of(one.page).find((row) => row.field === name)));
    return { cells: [pageLink(one.page, urlOf, show, shortOf(urlOf(one.page), shared)), ...(one.error ? [el("span", { className: "fault" }, one.error)] : cells)] };
  });
  const heads = names.map((name) => [name, kindOffer(name, reply, kindFor, readAs), pointOffer(name, reply, pointAt)]);
  const bad = count(reply.rows, isBad);
  const isKnown = reply.rows.some((row) => row.known.length);
  const caption = bad ? `${bad} ${bad === 1 ? "value disagrees" : "values disagree"} with known ones: those pages come first` : isKnown ? "All known values match" : "Nothing is known to compare with";
  return [
    names.length ? table(caption, ["Page", ...heads], rows) : null,
    rowsOfPages(reply.pages, urlOf),
    pages(reply.pages, urlOf, show),
  ];
}

function cell(row) {
  if (!row) return "";
  const [sign, words] = VERDICTS[row.verdict];
  const read = shown(row.read);
  return el("span", { className: `verdict ${row.verdict}`, title: words },
    sign ? `${sign} ` : null, words ? el("span", { className: "unseen" }, `${words}: `) : null, read,
    isBad(row) ? el("span", { className: "known" }, `known: ${row.known.join(" · ")}`) : null);
}

/** Offers to read the values of a field as what they look like. */
function kindOffer(name, reply, kindFor, readAs) {
  const values = reply.rows.filter((row) => row.field === name).map((row) => row.read);
  const kind = kindFor(name, values);
  return kind && button(`Read as ${kind.name}`, () => readAs(name, kind), { className: "plain kind", title: `Each value looks like ${kind.title}.`, ariaLabel: `Read ${name} as ${kind.name}` });
}

const pointButton = (name, pointAt) => button("Point at it", () => pointAt(name), { className: "plain kind", ariaLabel: `Point at ${name}` });

/** Offers to point at the value of a field that is read wrongly, or nowhere. */
function pointOffer(name, reply, pointAt) {
  const rows = reply.rows.filter((row) => row.field === name);
  const isWrong = rows.some(isBad) || (rows.length && rows.every((row) => row.verdict === "empty"));
  return isWrong ? pointButton(name, pointAt) : null;
}

/** The rows of pages, a table for each rule of each page. */
export function rowsOfPages(pages, urlOf) {
  const of = (page) => (page.rows ?? []).map((rule) => {
    const names = [...new Set(rule.rows.flatMap(Object.keys))];
    const rows = rule.rows.map((row, at) => ({ cells: [String(at + 1), ...names.map((name) => (row[name] === null ? "-" : shown(row[name])))] }));
    return table(`${rule.count ?? rows.length} rows of ${rule.dataset} on ${urlOf(page.page)}`, ["Row", ...names], rows);
  });
  return pages.flatMap(of);
}

function pages(all, urlOf, show) {
  const reply = (page) => el("details", {},
    el("summary", {}, `${urlOf(page.page)}: ${page.error ? "failed" : `${page.link_count} links would be followed`}`),
    page.error ? el("p", { className: "fault" }, page.error) : null,
    el("p", { className: "quiet" }, page.used ? `A crawl would use mapping ${page.used} here.` : "No url_pattern matches this page: a crawl would not use the mapping here."),
    (page.warnings ?? []).map((warning) => el("p", { className: "warning" }, warning)),
    page.truncated ? el("p", { className: "warning" }, page.truncated) : null,
    el("ul", { className: "links" }, (page.links ?? []).map((link) =>
      el("li", {}, el("span", { className: "address" }, link.url), link.mapping ? ` is read by ${link.mapping}` : " is read by no mapping"))),
    pageLink(page.page, urlOf, show));
  return el("section", {}, el("h3", {}, "Pages and their links"), all.map(reply));
}

const pageLink = (page, urlOf, show, text = urlOf(page)) => button(text, () => show(page), { className: "plain address", title: urlOf(page), ariaLabel: `Show ${urlOf(page)}` });

/** The folder that all addresses share. */
function sharedOf(urls) {
  let shared = urls[0] ?? "";
  for (const url of urls) while (!url.startsWith(shared)) shared = shared.slice(0, -1);
  return shared.slice(0, shared.lastIndexOf("/") + 1);
}

/** What distinguishes a page from the others. */
function shortOf(url, shared) {
  const own = url.slice(shared.length) || url;
  return own.length > 24 ? `${own.slice(0, 23)}…` : own;
}

/** A trace: each step with what it reads, finds and gives. */
export function trace(reply) {
  const values = (of) => (of.count ? `${of.shown.map((one) => JSON.stringify(one)).slice(0, 5).join(", ")}${of.count > 5 ? ` … (${of.count})` : ""}` : "nothing");
  const step = (one) => el("li", {},
    el("code", {}, `${one.processor} ${Object.keys(one.parameters).length ? JSON.stringify(one.parameters) : ""}`),
    el("dl", {},
      el("dt", {}, "reads"), el("dd", {}, values(one.input)),
      (one.nodes ?? []).flatMap((node) => [el("dt", {}, "finds"), el("dd", {}, el("code", {}, node.path), ` ${node.text}`)]),
      (one.matches ?? []).flatMap((match) => [el("dt", {}, "finds"), el("dd", {}, match.text)]),
      el("dt", {}, "gives"), el("dd", {}, values(one.output))),
    one.hint ? el("p", { className: "warning" }, one.hint) : null);
  const chain = (steps, at, all) => [all.length > 1 ? el("h4", {}, `Alternative ${at + 1}`) : null, el("ol", { className: "trace" }, steps.map(step))];
  const field = (one) => el("details", { open: one.value === null },
    el("summary", {}, `${one.name}: ${one.value === null ? "empty" : shown(one.value)}`),
    one.empty_because.map((why) => el("p", { className: "fault" }, `empty because ${why}`)),
    one.alternatives.flatMap(chain));
  const parser = (one) => el("details", {},
    el("summary", {}, `${one.description ?? "links"}: ${one.links.length}`),
    one.empty_because ? el("p", { className: "fault" }, `empty because ${one.empty_because}`) : null,
    chain(one.steps, 0, [one.steps]));
  return [
    el("p", {}, `Mapping ${reply.mapping} on `, el("span", { className: "address" }, reply.url)),
    reply.fields.map(field),
    reply.url_parsers.map(parser),
    reply.warnings.map((warning) => el("p", { className: "warning" }, warning)),
  ];
}

/** A proposal, which is applied only when it is asked for. What it cannot repair is pointed at. */
export function proposal(reply, apply, applyAndSave, pointAt) {
  const state = (one) => {
    if (one.broken === undefined) return "";
    if (one.accepted) return "repaired";
    return one.broken ? el("span", {}, "broken, not repaired ", pointButton(one.field, pointAt)) : "sound";
  };
  const fields = (reply.fields ?? []).map((one) => ({
    className: one.broken && !one.accepted ? "bad" : "",
    cells: [one.field, state(one), one.why],
  }));
  const changes = reply.difference.some(([sign]) => sign !== " ");
  const line = ([sign, text]) => el(sign === "+" ? "ins" : sign === "-" ? "del" : "span", {}, `${sign} ${text}\n`);
  return [
    changes && applyAndSave ? el("p", { className: "actions" }, button("Apply and save", () => applyAndSave(reply.mapping), { className: "main" })) : null,
    table("Fields", ["Field", "State", "Why"], fields),
    changes ? el("pre", { className: "difference", tabIndex: 0, ariaLabel: "Changes to the draft" }, reply.difference.map(line)) : el("p", {}, "No changes proposed."),
    changes ? button("Apply to draft", () => apply(reply.mapping), { className: applyAndSave ? "plain" : "main" }) : null,
  ];
}

/** Candidates for a field, the likeliest first. */
export function candidates(reply, urlOf, use, mark) {
  const text = (one, place) => JSON.stringify(one.values[place].value);
  const alike = (one) => reply.of_pages.filter((_, place) => text(one, place) === text(reply.candidates[0], place)).length;
  const card = (one, at) => {
    const rows = reply.of_pages.map((page, place) => ({ cells: [urlOf(page), shown(one.values[place].value) || "nothing"] }));
    return el("li", { className: "candidate" },
      el("p", {}, el("strong", {}, one.anchor), `, right on ${one.right} known${at ? `, reads the same as the first on ${alike(one)} of ${reply.of_pages.length} pages` : ""}`),
      el("code", {}, one.processors.map((step) => `${step.type} ${Object.values(step.parameters ?? {}).map((value) => JSON.stringify(value)).join(" ")}`).join(" → ")),
      el("details", { open: at === 0, ontoggle: () => mark(at) }, el("summary", {}, "Extracted values"), table("Values on all pages", ["Page", "Value"], rows)),
      button("Use this one", () => use(one), { className: at === 0 ? "main" : "plain", ariaLabel: `Use candidate ${at + 1}, ${one.anchor}` }));
  };
  return [
    el("p", {}, reply.why),
    (reply.notes ?? []).map((note) => el("p", { className: "warning" }, note)),
    reply.candidates.length ? el("ol", { className: "candidates" }, reply.candidates.map(card)) : null,
  ];
}
