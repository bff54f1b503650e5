// What the editor proposes for a field that was pointed at: its name, and its kind.

/** A label as the name of a field: small letters, digits and underscores. */
export function nameOf(label) {
  const plain = label.toLowerCase().replaceAll("ä", "ae").replaceAll("ö", "oe").replaceAll("ü", "ue").replaceAll("ß", "ss").normalize("NFD").replace(/[\u0300-\u036f]/g, "");
  const name = plain.replace(/[^a-z0-9]+/g, "_").replace(/^[_0-9]+|_+$/g, "").slice(0, 40);
  return name.replace(/_+$/, "");
}

/** The text that an expression compares with. */
const LITERAL = /(?:=\s*|contains\([^,]+,\s*|starts-with\([^,]+,\s*)(?:'([^']+)'|"([^"]+)")/g;

/** The label that a chain relies on: the header of a column, the text beside the value, the name of a meta element. */
function labelOf(processors) {
  for (const { type, parameters = {} } of processors) {
    if (type === "cell" && parameters.header) return parameters.header;
    if (type === "meta") return parameters.name.split(":").pop();
    if (type === "jsonpath" || type === "json_ld") {
      const last = /([A-Za-z_][A-Za-z0-9_]*)[^A-Za-z]*$/.exec(parameters.expression ?? "");
      if (last) return last[1];
    }
    if (type !== "xpath") continue;
    const { expression } = parameters;
    const labels = [...expression.matchAll(LITERAL)].filter((found) => !/@(class|id)\b[^=]*$/.test(expression.slice(0, found.index)));
    if (labels.length) return labels.at(-1)[1] ?? labels.at(-1)[2];
  }
  return "";
}

/** Known values of a page's record, as one compares them. */
const same = (one, other) => one.trim().replace(/\s+/g, " ").toLowerCase() === other.trim().replace(/\s+/g, " ").toLowerCase();

/**
 * A name for what was pointed at: the column of the table that has this value, or the label beside it. `values` are those of
 * the best candidate by page, `known` the values of records by page.
 */
export function nameFor(reply, known) {
  const first = reply.candidates[0];
  const columns = {};
  first?.values.forEach(({ value }, place) => {
    const read = [value].flat().filter((one) => typeof one === "string");
    for (const [name, texts] of Object.entries(known[place] ?? {}))
      if (texts.some((text) => read.some((one) => same(one, text)))) columns[name] = (columns[name] ?? 0) + 1;
  });
  const [column] = Object.entries(columns).sort((one, other) => other[1] - one[1])[0] ?? [];
  if (column && nameOf(column)) return nameOf(column);
  // The heading of a page is its name, whatever is written beside it.
  const isHeading = ({ processors }) => /\bh1\b/.test(processors[0]?.parameters?.expression ?? processors[0]?.parameters?.selector ?? "");
  if (first && isHeading(first)) return "name";
  for (const { processors } of reply.candidates) {
    const name = nameOf(labelOf(processors));
    if (name) return name;
  }
  return reply.candidates.some(isHeading) ? "name" : "";
}

/** Kinds of values: how they look, and the steps that read them so. */
const MONTH = "jan|feb|mär|mar|apr|ma[iy]|jun|jul|aug|sep|o[ck]t|nov|de[cz]";
const KINDS = [
  { name: "date", title: "a date", looks: new RegExp(`^(\\d{4}-\\d{2}-\\d{2}|\\d{1,2}[./]\\d{1,2}[./]\\d{2,4}|.{0,14}\\b(${MONTH})[\\p{L}.]*\\b.{0,14}\\d{4}.{0,16})$`, "iu"), steps: [{ type: "date" }] },
  { name: "number", title: "a number", looks: /^[^\d\p{L}]{0,3}[-−]?\d[\d.,  ]*\s?(\p{Sc}|%|km|m|kg|g|cm|mm)?$/u, steps: [{ type: "number" }] },
  { name: "link", title: "a link", looks: /^(https?:\/\/|www\.)\S+$/i, steps: [{ type: "url" }] },
  { name: "list", title: "a list", looks: /^[^,;]{1,40}([,;]\s*[^,;]{1,40}){1,}$/u, steps: [{ type: "split", parameters: { separator: "," } }, { type: "trim" }], isMultiple: true },
];

/** The kind that all values look like; null for text. */
export function kindOf(values) {
  const texts = values.flat().filter((value) => typeof value === "string" && value);
  return texts.length ? (KINDS.find((kind) => texts.every((text) => kind.looks.test(text.trim()))) ?? null) : null;
}
