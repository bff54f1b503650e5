// Elements for the editor. Whatever comes from a page or a mapping becomes text, never markup.

/** An element with properties and children; strings are texts, null is nothing. */
export function el(name, properties = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else if (key in element && key !== "list" && typeof value !== "object") element[key] = value;
    else element.setAttribute(key, value);
  }
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

/** The text of a value, for people. */
export function shown(value) {
  if (value === null || value === undefined) return "";
  if (Array.isArray(value)) return value.map(shown).join(" · ");
  return typeof value === "string" ? value : JSON.stringify(value);
}

export const button = (text, onclick, properties = {}) =>
  el("button", { type: "button", onclick, ...properties }, text);

/** A table whose first cell of each row is its head. */
export function table(caption, heads, rows) {
  const head = el("tr", {}, heads.map((text) => el("th", { scope: "col" }, text)));
  const body = rows.map(({ className = "", cells }) =>
    el("tr", { className }, cells.map((cell, at) => el(at ? "td" : "th", at ? {} : { scope: "row" }, cell))));
  // On a narrow screen it is scrolled to the side, by keys as well.
  return el("div", { className: "wide", tabIndex: 0, role: "group", ariaLabel: caption },
    el("table", {}, el("caption", {}, caption), el("thead", {}, head), el("tbody", {}, body)));
}
