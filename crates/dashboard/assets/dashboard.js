// For every page of the dashboard, when scripts run: shows times in the reader's zone.

const zone = Intl.DateTimeFormat().resolvedOptions().timeZone;
const near = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit", second: "2-digit" });
const far = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
const DAY_MS = 86_400_000;

/** Shows the times below an element in the reader's zone, and without the date if they are near. */
export function showTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const isNear = Math.abs(Date.now() - at) < DAY_MS && at.getDate() === new Date().getDate();
    // A clock stands in a sentence whose reader knows the day.
    const isClock = time.classList.contains("clock");
    time.textContent = (isNear || isClock ? near : far).format(at);
    time.title = time.dateTime;
  }
}

showTimes(document);
const shownZone = document.getElementById("zone");
if (shownZone) shownZone.textContent = `in ${zone}`;

// Actions that cannot be undone need a confirmation.
document.addEventListener("submit", (event) => {
  const sure = event.submitter?.dataset.sure;
  if (sure && !confirm(sure)) event.preventDefault();
});
