// Changes a part of the page into another one and touches only what differs, so that focus, selection and the place
// of a screen reader stay where they are.

/** Makes the content of an element what the markup says. The markup is the dashboard's own, with all texts escaped. */
export function change(element, markup) {
  const wanted = document.createElement("template");
  wanted.innerHTML = markup;
  changeChildren(element, wanted.content);
}

function changeChildren(from, to) {
  const wanted = [...to.childNodes];
  const there = [...from.childNodes];
  wanted.forEach((node, place) => {
    const old = there[place];
    if (!old) from.append(node);
    else if (isAlike(old, node)) changeNode(old, node);
    else old.replaceWith(node);
  });
  for (const surplus of there.slice(wanted.length)) surplus.remove();
}

function isAlike(one, other) {
  return one.nodeType === other.nodeType && one.nodeName === other.nodeName && (one.id ?? "") === (other.id ?? "");
}

function changeNode(old, wanted) {
  if (old.nodeType !== Node.ELEMENT_NODE) {
    if (old.nodeValue !== wanted.nodeValue) old.nodeValue = wanted.nodeValue;
    return;
  }
  // Scripts write a time in the reader's zone: only another time is another text.
  if (old.nodeName === "TIME" && old.dateTime === wanted.dateTime) return;
  for (const { name, value } of [...wanted.attributes]) {
    if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  }
  for (const { name } of [...old.attributes]) {
    // What a reader has opened stays open.
    if (name === "open" && old.nodeName === "DETAILS") continue;
    if (!wanted.hasAttribute(name)) old.removeAttribute(name);
  }
  changeChildren(old, wanted);
}
