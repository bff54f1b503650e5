// A table that is dropped, or chosen, is sent as it is: the dashboard saves it while it arrives.

const form = document.getElementById("drop");
const input = document.getElementById("file");
const status = document.getElementById("drop-status");

function say(text, isFault) {
  status.textContent = text;
  status.className = isFault ? "message fault" : "quiet";
}

async function send(file) {
  const asked = new URLSearchParams({ name: file.name });
  const contact = document.getElementById("contact").value.trim();
  if (contact) asked.set("contact", contact);
  form.setAttribute("aria-busy", "true");
  say(`Sending ${file.name}…`);
  try {
    const answer = await fetch(`${form.dataset.action}?${asked}`, {
      method: "POST",
      headers: { "x-webfill-token": form.dataset.token, "content-type": "application/octet-stream" },
      body: file,
    });
    if (answer.ok) {
      const { to } = await answer.json();
      return location.assign(to);
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    say(page.querySelector("main p")?.textContent ?? "The file was not taken.", true);
  } catch {
    say("The file could not be sent. Try again.", true);
  } finally {
    form.removeAttribute("aria-busy");
  }
}

form.addEventListener("submit", (event) => {
  event.preventDefault();
  if (input.files[0]) send(input.files[0]);
});

for (const name of ["dragenter", "dragover"]) {
  form.addEventListener(name, (event) => {
    event.preventDefault();
    form.classList.add("over");
  });
}
form.addEventListener("dragleave", (event) => {
  if (!form.contains(event.relatedTarget)) form.classList.remove("over");
});
form.addEventListener("drop", (event) => {
  event.preventDefault();
  form.classList.remove("over");
  if (!event.dataTransfer.files.length) return;
  // The contact page is asked for before anything starts.
  input.files = event.dataTransfer.files;
  say(`${input.files[0].name} is ready.`);
  document.getElementById("contact").focus();
});
