// Runs in the frame, beside the copy of a foreign page. It reports to the outer page which element was pointed at: a
// number for a right one, a negative number for a wrong one, and a number beyond all elements for a key that the outer
// page answers. It hears which elements to mark, as lists of numbers.
"use strict";
(() => {
  const page = document.getElementById("page");
  const here = document.getElementById("here");
  const MARKS = ["right", "wrong", "found"];
  const isElement = (node) => node instanceof Element && /^n\d+$/.test(node.id);
  const numberOf = (element) => Number(element.id.slice(1));
  const numbered = (number) => document.getElementById("n" + number);
  /** The elements that were read, where nothing is pointed at. */
  const read = page.dataset.read === undefined ? null : page.dataset.read.split(" ").filter(Boolean).map(Number);
  let at = null;

  /** Keys that the outer page answers; `editor.js` has the same numbers. */
  const LEAVE = 10_000_001;
  const UNDO = 10_000_002;

  /** Letters typed within this time of each other are one search, as in lists. */
  const TYPING_MS = 1_000;
  let typed = "";
  let typedAt = 0;
  const isTyping = () => typed !== "" && Date.now() - typedAt < TYPING_MS;

  const closest = (node) => {
    while (node && node !== page && !isElement(node)) node = node.parentElement;
    return isElement(node) ? node : null;
  };

  const describe = (element) => {
    const text = element.textContent.trim().replace(/\s+/g, " ").slice(0, 120);
    const level = element.children.length ? ", holds " + element.children.length + " more" : "";
    return element.localName + ": " + (text || "no text") + level;
  };

  const stand = (element) => {
    if (!element) return;
    if (at) at.classList.remove("at");
    at = element;
    at.classList.add("at");
    at.scrollIntoView({ block: "nearest" });
    here.textContent = describe(at);
  };

  const textOf = (element) => element.textContent.replace(/\s+/g, " ").toLowerCase();

  /** The innermost elements with this text, in their order. */
  const holders = (element, text) => {
    const within = [...element.children].filter((child) => textOf(child).includes(text)).flatMap((child) => holders(child, text));
    return within.length || !isElement(element) ? within : [element];
  };

  /** Stands on the next element with the typed text, from the present one on; a new search begins behind that. */
  const search = (text) => {
    const isNew = !isTyping();
    typed = text;
    typedAt = Date.now();
    const all = holders(page, typed.toLowerCase());
    const isBehind = (element) => at.compareDocumentPosition(element) & Node.DOCUMENT_POSITION_FOLLOWING;
    const isNext = (element) => !at || isBehind(element) || (!isNew && element === at);
    stand(all.find(isNext) ?? all[0]);
    here.textContent = all.length ? `${typed} → ${describe(at)}` : `${typed} → not found`;
  };

  const point = (element, isWrong) => {
    if (element && !read) parent.postMessage(isWrong ? -numberOf(element) : numberOf(element), "*");
  };

  const sibling = (element, step) => {
    for (let next = element[step]; next; next = next[step]) if (isElement(next)) return next;
    return null;
  };

  const first = (element) => [...element.children].find(isElement) || null;

  const walks = {
    ArrowDown: () => sibling(at, "nextElementSibling") || closest(at.parentElement),
    ArrowUp: () => sibling(at, "previousElementSibling") || closest(at.parentElement),
    ArrowLeft: () => closest(at.parentElement),
    ArrowRight: () => first(at),
  };

  page.addEventListener("click", (event) => {
    event.preventDefault();
    const element = closest(event.target);
    stand(element);
    point(element, event.shiftKey || event.altKey);
  });

  page.addEventListener("mouseover", (event) => {
    for (const old of page.querySelectorAll(".over")) old.classList.remove("over");
    const element = closest(event.target);
    if (element) element.classList.add("over");
  });

  page.addEventListener("keydown", (event) => {
    const isUndo = event.key === "z" && (event.ctrlKey || event.metaKey);
    if (!read && (isUndo || event.key === "Escape")) {
      event.preventDefault();
      parent.postMessage(isUndo ? UNDO : LEAVE, "*");
    }
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const isText = event.key.length === 1 && (event.key !== " " || isTyping());
    if (isText || (event.key === "Backspace" && isTyping())) {
      event.preventDefault();
      const text = isText ? (isTyping() ? typed : "") + event.key : typed.slice(0, -1);
      if (text) search(text);
      else typed = "";
      return;
    }
    typed = "";
    if (walks[event.key]) {
      event.preventDefault();
      stand(at ? walks[event.key]() : first(page));
    } else if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      point(at, event.shiftKey);
    } else if (event.key === "Delete" || event.key === "Backspace") {
      event.preventDefault();
      point(at, true);
    }
  });

  const mark = (name, numbers) => {
    for (const old of page.querySelectorAll("." + name)) old.classList.remove(name);
    for (const number of numbers) {
      const element = Number.isInteger(number) && numbered(number);
      if (element) element.classList.add(name);
    }
  };

  addEventListener("message", (event) => {
    if (event.source !== parent || typeof event.data !== "object" || !event.data) return;
    for (const name of MARKS) if (Array.isArray(event.data[name])) mark(name, event.data[name]);
  });

  if (read) {
    mark("found", read);
    document.querySelector(".found")?.scrollIntoView({ block: "center" });
    return;
  }
  // Keys of the frame are those of the copy, as soon as it is there.
  const takeFocus = () => document.activeElement === document.body && page.focus({ preventScroll: true });
  addEventListener("focus", takeFocus);
  if (document.hasFocus()) takeFocus();
  // Ready to receive the elements to mark.
  parent.postMessage(0, "*");
})();
