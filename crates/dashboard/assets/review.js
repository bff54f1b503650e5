// The review by keys. A key does what the button or link with its name does, without a whole new page. While an answer
// is on its way, further keys are not taken: they would answer a doubt that nobody has seen. Keys work while the focus
// is in the review (WCAG 2.1.4), where it is at first: a word that is dictated elsewhere on the page answers nothing.

import { change } from "./change.js";
import { showTimes } from "./dashboard.js";

let review = document.getElementById("review");
let isBusy = false;

/** Shows the review of the page that an answer leads to, or the page's message. */
async function follow(request, options) {
  if (isBusy) return;
  isBusy = true;
  review?.setAttribute("aria-busy", "true");
  try {
    const answer = await fetch(request, options);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const next = page.getElementById("review");
    if (answer.ok && next && review && !page.querySelector("main .message")) {
      change(review, next.innerHTML);
      showTimes(review);
      history.pushState(null, "", answer.url);
      announce();
    } else {
      showWhole(page);
      if (answer.ok) history.pushState(null, "", answer.url);
    }
  } catch {
    location.reload();
  } finally {
    isBusy = false;
    review?.removeAttribute("aria-busy");
  }
}

/** Shows a refusal, a fault or the end of the review: its page is shown once, so it cannot be loaded again. */
function showWhole(page) {
  const main = page.querySelector("main");
  if (!main) throw new Error("no page");
  document.querySelector("main").replaceWith(document.adoptNode(main));
  review = document.getElementById("review");
  showTimes(main);
  const message = main.querySelector(".message") ?? main.querySelector("h1");
  if (!message) return;
  message.tabIndex = -1;
  message.focus({ preventScroll: false });
}

/** Where the reader is, for those who do not see it. */
function announce(preventScroll = false) {
  const heading = review.querySelector("h2");
  if (!heading) return;
  // A click on any text of the review keeps the focus in it.
  review.tabIndex = -1;
  heading.tabIndex = -1;
  heading.focus({ preventScroll });
}

function send(form) {
  follow(form.action, { method: "POST", body: new URLSearchParams(new FormData(form)) });
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  if (!review?.contains(event.target) || event.target.closest("input, select, textarea")) return;
  const target = review.querySelector(`[data-key="${CSS.escape(event.key.toLowerCase())}"]`);
  if (!target) return;
  event.preventDefault();
  if (target.form) send(target.form);
  else follow(target.href);
});

document.addEventListener("submit", (event) => {
  if (!event.target.closest("#review")) return;
  event.preventDefault();
  send(event.target);
});

addEventListener("popstate", () => location.reload());

if (review && document.activeElement === document.body) announce(true);
