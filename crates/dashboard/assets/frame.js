// Runs in the frame, beside the copy of a foreign page. It reports to the outer page which element was pointed at: a
// number for a right one, a negative number for a wrong one. It hears which elements to mark, as lists of numbers.
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
    if (event.ctrlKey || event.metaKey) return;
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
  // Ready to receive the elements to mark.
  parent.postMessage(0, "*");
})();
