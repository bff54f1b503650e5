// The results of trials, traces and proposals.

import { button, el, shown, table } from "./editor-dom.js";

const VERDICTS = {
  differs: "something else is known",
  not_read: "known, and not read",
  empty: "nothing known, nothing read",
  new: "read, nothing known",
  same: "as known",
};

/** A trial: disagreements first; `show(page)` shows a page. */
export function trial(reply, urlOf, show) {
  const counts = reply.fields.map((one) => ({
    className: one.differs || one.not_read ? "bad" : "",
    cells: [one.field, ...["differs", "not_read", "empty", "new", "same"].map((verdict) => String(one[verdict]))],
  }));
  const isBad = (row) => row.verdict === "differs" || row.verdict === "not_read";
  const rows = (all) => all.map((row) => ({
    className: row.verdict,
    cells: [row.field, VERDICTS[row.verdict], shown(row.read), row.known.join(" · "), pageLink(row.page, urlOf, show)],
  }));
  const heads = ["Field", "Verdict", "Read", "Known", "Page"];
  const bad = reply.rows.filter(isBad);
  const good = reply.rows.filter((row) => !isBad(row));
  return [
    table("Fields, on all pages of the draft", ["Field", "differs", "not read", "empty", "new", "as known"], counts),
    bad.length ? table(`Mismatches: ${bad.length}`, heads, rows(bad)) : el("p", {}, "All known values match."),
    good.length ? el("details", { open: !bad.length }, el("summary", {}, `Other values: ${good.length}`), table("Matching or unknown values", heads, rows(good))) : null,
    rowsOfPages(reply.pages, urlOf),
    pages(reply.pages, urlOf, show),
  ];
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

const pageLink = (page, urlOf, show) => button(urlOf(page), () => show(page), { className: "plain address", ariaLabel: `Show ${urlOf(page)}` });

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

/** A proposal, which is applied only when it is asked for. */
export function proposal(reply, apply) {
  const fields = (reply.fields ?? []).map((one) => ({
    className: one.broken && !one.accepted ? "bad" : "",
    cells: [one.field, one.broken === undefined ? "" : one.accepted ? "repaired" : one.broken ? "broken, not repaired" : "sound", one.why],
  }));
  const changes = reply.difference.some(([sign]) => sign !== " ");
  const line = ([sign, text]) => el(sign === "+" ? "ins" : sign === "-" ? "del" : "span", {}, `${sign} ${text}\n`);
  return [
    table("Fields", ["Field", "State", "Why"], fields),
    changes ? el("pre", { className: "difference", tabIndex: 0, ariaLabel: "Changes to the draft" }, reply.difference.map(line)) : el("p", {}, "No changes proposed."),
    changes ? button("Apply to draft", () => apply(reply.mapping), { className: "main" }) : null,
  ];
}

/** Candidates for a field, the likeliest first. */
export function candidates(reply, urlOf, use, mark) {
  const card = (one, at) => {
    const rows = reply.of_pages.map((page, place) => ({ cells: [urlOf(page), shown(one.values[place].value) || "nothing"] }));
    return el("li", { className: "candidate" },
      el("p", {}, el("strong", {}, one.anchor), `, right on ${one.right} known, reads the same as the first on ${Math.round(one.agreement * 100)} % of the pages`),
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
