// The mapping as rows to edit by hand. Names and parameters of processors are those of the schema; faults are shown
// at the place that they name.

import { button, el } from "./editor-dom.js";

let schema = null;
let unique = 0;

export const useSchema = (loaded) => { schema = loaded.$defs; };

const processors = () => schema.processor.properties.type.oneOf;

/** The parameters of a processor: their schemas by name, and which are required. */
function parametersOf(type) {
  const found = schema.processor.allOf.find((one) => one.if.properties.type.const === type);
  const parameters = found?.then.properties?.parameters;
  return { properties: parameters?.properties ?? {}, required: parameters?.required ?? [] };
}

const CONTROLS = "input, select, textarea, button";

/** What a control of the form is called by: it is the same after the form is drawn again. */
function calledBy(control) {
  const path = control.closest("[data-path]")?.dataset.path ?? "";
  return [path, control.ariaLabel, control.labels?.[0]?.textContent, control.localName].join("|");
}

/** Draws the form again and keeps the focus: on the control that `target` selects, on the same one, or on the one in its place. */
function keepFocus(root, draw, target) {
  const before = [...root.querySelectorAll(CONTROLS)];
  const place = before.indexOf(document.activeElement);
  const name = place < 0 ? "" : calledBy(before[place]);
  draw();
  if (place < 0) return;
  const now = [...root.querySelectorAll(CONTROLS)];
  const control = (target && root.querySelector(target)) ?? now.find((one) => calledBy(one) === name) ?? now[Math.min(place, now.length - 1)];
  control?.focus({ preventScroll: true });
  control?.scrollIntoView({ block: "nearest" });
}

/** Selects the first input of what is at a path, and the button that adds to a list. */
const inputAt = (path) => `[data-path="${path}"]:is(input, select), [data-path="${path}"] :is(input, select)`;
const adderOf = (path) => `[data-add="${path}"]`;

/**
 * Fills `root` with the rows of a mapping. `changed(isStructure)` is called after each change, which is made in the mapping
 * itself; `renamed(before, now)` when a field has another name.
 */
export function edit(root, mapping, changed, renamed) {
  const redraw = (target) => { changed(true); keepFocus(root, draw, target); };
  const draw = () => root.replaceChildren(
    text(mapping, "name", "name", "Name", { required: true }),
    text(mapping, "description", "description", "Description"),
    list(mapping, "url_patterns", "URL patterns", "a pattern", () => ({ type: "prefix", pattern: "" }), pattern),
    list(mapping, "fields", "Fields", "a field", newField, (item, path, remove) => field(item, path, remove)),
    ...rowRules(),
    list(mapping, "url_parsers", "Links to follow", "links", () => ({ processors: [newStep()] }), parser));

  const newStep = () => ({ type: "css", parameters: { selector: "" } });
  const newField = () => ({ name: freeName(mapping.fields ?? []), processors: [newStep()] });

  function list(owner, key, title, one, make, row) {
    const items = owner[key] ?? [];
    const add = () => { owner[key] = [...items, make()]; redraw(inputAt(`${key}[${items.length}]`)); };
    const remove = (at) => () => { items.splice(at, 1); owner[key] = items; redraw(adderOf(key)); };
    return el("section", { className: "rows", "data-path": key },
      el("h3", {}, title),
      items.map((item, at) => row(item, `${key}[${at}]`, remove(at))),
      button(`Add ${one}`, add, { className: "plain add", "data-add": key }));
  }

  /** Rules are made by pointing, or in the file; here they are changed. */
  function rowRules() {
    const rules = [mapping.rows ?? []].flat();
    const remove = (at) => () => {
      if (rules.length > 1) mapping.rows = rules.filter((_, place) => place !== at); else delete mapping.rows;
      redraw();
    };
    return rules.map((rule, at) => rowRule(rule, Array.isArray(mapping.rows) ? `rows[${at}]` : "rows", remove(at)));
  }

  function rowRule(rule, path, remove) {
    const setKey = (event) => { rule.key = event.target.value.split(",").map((name) => name.trim()).filter(Boolean); changed(false); };
    const one = (item, at) => field(item, `${path}.fields[${at}]`, () => { rule.fields.splice(at, 1); redraw(); }, rule);
    return el("section", { className: "rows", "data-path": path },
      el("h3", {}, `Rows of ${rule.dataset ?? "the page"}`),
      el("div", { className: "row" },
        text(rule, "dataset", `${path}.dataset`, "Dataset", { required: true }),
        labelled("Key", (id) => el("input", { id, type: "text", value: (rule.key ?? []).join(", "), oninput: setKey, autocomplete: "off", spellcheck: false, "data-path": `${path}.key` })),
        button("Remove rows", remove, { className: "plain", ariaLabel: `Remove rows of ${rule.dataset}` })),
      el("fieldset", { className: "field" }, el("legend", {}, "Row selector"), steps(rule.select ?? [], `${path}.select`, "the rows")),
      (rule.fields ?? []).map(one));
  }

  function pattern(item, path, remove) {
    const types = schema.url_pattern.properties.type.oneOf;
    return el("div", { className: "row", role: "group", ariaLabel: path, "data-path": path },
      choice(item, "type", path, "How it is written", types), text(item, "pattern", `${path}.pattern`, "Pattern", { required: true }),
      button("Remove", remove, { className: "plain", ariaLabel: `Remove ${path}` }));
  }

  function field(item, path, remove, rule) {
    const chains = item.alternatives ?? [item.processors ?? []];
    const before = item.name;
    const prefix = rule ? "#rows." : "";
    const rename = () => {
      if (rule?.key) rule.key = rule.key.map((name) => (name === before ? item.name : name));
      renamed(prefix + before, prefix + item.name);
      changed(true);
      // The key that has ended the typing moves the focus first.
      const form = root.firstElementChild;
      setTimeout(() => root.firstElementChild === form && keepFocus(root, draw));
    };
    const addChain = () => {
      item.alternatives = [...chains, [newStep()]];
      delete item.processors;
      redraw(inputAt(`${path}.alternatives[${chains.length}]`));
    };
    const removeChain = (at) => () => {
      chains.splice(at, 1);
      if (chains.length === 1) { item.processors = chains[0]; delete item.alternatives; }
      redraw();
    };
    const of = (chain, at) => el("div", { className: "chain" },
      chains.length > 1 ? el("p", { className: "quiet" }, `Alternative ${at + 1} `,
        button("Remove", removeChain(at), { className: "plain", ariaLabel: `Remove alternative ${at + 1} of ${item.name}` })) : null,
      steps(chain, item.alternatives ? `${path}.alternatives[${at}]` : `${path}.processors`, item.name));
    return el("fieldset", { className: "field", "data-path": path },
      el("legend", {}, item.name || "field"),
      el("div", { className: "row" },
        text(item, "name", `${path}.name`, "Name", { required: true, onchange: rename }), flag(item, "multiple", "all values, as a list"),
        button("Remove field", remove, { className: "plain", ariaLabel: `Remove field ${item.name}` })),
      chains.map(of),
      button("Add an alternative", addChain, { className: "plain", ariaLabel: `Add an alternative for ${item.name}` }));
  }

  function parser(item, path, remove) {
    return el("fieldset", { className: "field", "data-path": path },
      el("legend", {}, item.description || path),
      el("div", { className: "row" }, text(item, "description", `${path}.description`, "Which links"),
        button("Remove", remove, { className: "plain", ariaLabel: `Remove ${path}` })),
      steps(item.processors, `${path}.processors`, item.description || path));
  }

  function steps(chain, path, of) {
    const move = (at, by) => () => { chain.splice(at + by, 0, ...chain.splice(at, 1)); redraw(inputAt(`${path}[${at + by}]`)); };
    const row = (step, at) => {
      const named = `step ${at + 1} of ${of}`;
      const { properties } = parametersOf(step.type);
      const about = processors().find((one) => one.const === step.type)?.description ?? "";
      const setType = (event) => { step.type = event.target.value; fitParameters(step); redraw(); };
      return el("li", { className: "step", "data-path": `${path}[${at}]` },
        el("div", { className: "row" },
          labelled("Processor", (id) => el("select", { id, title: about, ariaLabel: `Processor of ${named}`, onchange: setType, "data-path": `${path}[${at}].type` },
            options(processors(), step.type))),
          Object.entries(properties).map(([name, of]) => parameter(step, name, of, `${path}[${at}].parameters.${name}`)),
          at ? button("↑", move(at, -1), { className: "plain", ariaLabel: `Move ${named} up` }) : null,
          button("✕", () => { chain.splice(at, 1); redraw(adderOf(path)); }, { className: "plain", ariaLabel: `Remove ${named}` })));
    };
    const add = () => { chain.push({ type: "trim" }); redraw(inputAt(`${path}[${chain.length - 1}]`)); };
    return el("div", { "data-path": path }, el("ol", { className: "steps" }, chain.map(row)),
      button("Add a step", add, { className: "plain add", ariaLabel: `Add a step to ${of}`, "data-add": path }));
  }

  function fitParameters(step) {
    const { properties, required } = parametersOf(step.type);
    const kept = Object.entries(step.parameters ?? {}).filter(([name]) => name in properties);
    const missing = required.filter((name) => !(name in (step.parameters ?? {}))).map((name) => [name, empty(properties[name])]);
    const all = Object.fromEntries([...kept, ...missing]);
    if (Object.keys(all).length) step.parameters = all; else delete step.parameters;
  }

  function parameter(step, name, of, path) {
    const set = (value) => {
      step.parameters = { ...step.parameters, [name]: value };
      if (value === undefined) delete step.parameters[name];
      if (!Object.keys(step.parameters).length) delete step.parameters;
      changed(false);
    };
    const value = step.parameters?.[name];
    return labelled(name.replaceAll("_", " "), (id) => control(id, of, value, set, path), of.description);
  }

  function control(id, of, value, set, path) {
    const common = { id, title: of.description ?? "", "data-path": path, spellcheck: false, autocomplete: "off" };
    if (of.enum) {
      const all = [el("option", { value: "" }, `(${of.default ?? "none"})`), ...of.enum.map((one) => el("option", { value: one, selected: one === value }, one))];
      return el("select", { ...common, onchange: (event) => set(event.target.value || undefined) }, all);
    }
    if (of.type === "boolean")
      return el("input", { ...common, type: "checkbox", checked: value ?? of.default ?? false, onchange: (event) => set(event.target.checked || undefined) });
    if (of.type === "integer")
      return el("input", { ...common, type: "number", value: value ?? "", min: of.minimum, max: of.maximum,
        oninput: (event) => set(event.target.value === "" ? undefined : Number(event.target.value)) });
    if (of.type === "array")
      return el("textarea", { ...common, rows: 2, value: (value ?? []).join("\n"), placeholder: "one a line", oninput: (event) => set(lines(event.target.value)) });
    if (of.type === "object")
      return el("textarea", { ...common, rows: 2, value: Object.entries(value ?? {}).map((pair) => pair.join(" = ")).join("\n"), placeholder: "from = to, one a line",
        oninput: (event) => set(Object.fromEntries(lines(event.target.value).map(pair))) });
    const read = (typed) => (Array.isArray(of.type) && /^\d+$/.test(typed) ? Number(typed) : typed);
    const isOptional = of.default !== undefined || Array.isArray(of.type);
    return el("input", { ...common, type: "text", value: value ?? "", placeholder: of.default ?? "",
      oninput: (event) => set(event.target.value === "" && isOptional ? undefined : read(event.target.value)) });
  }

  function text(owner, key, path, label, properties = {}) {
    const set = (event) => {
      owner[key] = event.target.value;
      if (!event.target.value && !properties.required) delete owner[key];
      changed(false);
    };
    return labelled(label, (id) => el("input", { id, type: "text", value: owner[key] ?? "", oninput: set, autocomplete: "off",
      spellcheck: key === "description", "data-path": path, ...properties }));
  }

  function choice(owner, key, path, label, all) {
    const set = (event) => { owner[key] = event.target.value; redraw(); };
    const about = all.find((one) => one.const === owner[key])?.description ?? "";
    return labelled(label, (id) => el("select", { id, title: about, onchange: set, "data-path": `${path}.${key}` }, options(all, owner[key])));
  }

  function flag(owner, key, label) {
    const set = (event) => {
      if (event.target.checked) owner[key] = true; else delete owner[key];
      changed(false);
    };
    return el("label", {}, el("input", { type: "checkbox", checked: owner[key] ?? false, onchange: set }), ` ${label}`);
  }

  draw();
}

function labelled(label, make, about) {
  const id = `e${(unique += 1)}`;
  return el("span", { className: "labelled" }, el("label", { htmlFor: id, title: about ?? "" }, label), make(id));
}

const options = (all, chosen) => all.map((one) => el("option", { value: one.const, selected: one.const === chosen }, one.const));

const empty = (of) => (of.type === "array" ? [] : of.type === "object" ? {} : of.type === "integer" ? of.minimum ?? 0 : "");

const lines = (typed) => typed.split("\n").filter((line) => line !== "");

const pair = (line) => {
  const at = line.indexOf("=");
  return at < 0 ? [line.trim(), ""] : [line.slice(0, at).trim(), line.slice(at + 1).trim()];
};

/** A name that no field has. */
export function freeName(fields) {
  const taken = new Set(fields.map((field) => field.name));
  for (let number = fields.length + 1; ; number += 1) if (!taken.has(`field_${number}`)) return `field_${number}`;
}

/** Shows faults at their places; those without a place there go into `rest`. */
export function showFaults(root, rest, faults, warnings) {
  for (const old of root.querySelectorAll(".fault-message")) old.remove();
  for (const old of root.querySelectorAll("[aria-invalid]")) { old.removeAttribute("aria-invalid"); old.removeAttribute("aria-describedby"); }
  const others = [];
  const place = (one, kind) => {
    const at = one.file ? null : placeOf(root, one.path);
    if (!at) { others.push(el("li", { className: kind }, [one.file, one.path, one.message].filter(Boolean).join(": "))); return; }
    const id = `e${(unique += 1)}`;
    const message = el("p", { id, className: `fault-message ${kind}` }, one.message);
    if (at.matches("input, select, textarea")) {
      if (kind === "fault") at.setAttribute("aria-invalid", "true");
      at.setAttribute("aria-describedby", id);
      at.after(message);
    } else at.prepend(message);
  };
  faults.forEach((one) => place(one, "fault"));
  warnings.forEach((one) => place(one, "warning"));
  rest.replaceChildren(...others);
}

/** The control of a path in the mapping, or that of what it is part of. */
function placeOf(root, path) {
  for (let rest = path; rest; rest = rest.replace(/(\.[^.[\]]+|\[[^\]]*\])$|^[^.[\]]+$/, "")) {
    const found = root.querySelector(`[data-path="${CSS.escape(rest)}"]`);
    if (found) return found;
  }
  return null;
}
