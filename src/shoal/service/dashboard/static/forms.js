// Checks the form of a new campaign while one types.

const DRAFT = "draft"; // the values of a form that was sent and not accepted yet

const form = document.querySelector("form[data-check]");
restoreDraft(form);
checkWhileTyping(form);

function checkWhileTyping(form) {
  const errorPlace = (input) => document.getElementById(`${input.name}-error`);
  // People may have typed before this script came, or have been refused once.
  const names = (test) => [...form.elements].filter(test).map((input) => input.name);
  const typed = names((input) => "defaultValue" in input && input.value !== input.defaultValue);
  const touched = new Set([...typed, ...names((input) => errorPlace(input)?.textContent)]);
  let timer = 0;
  let asked = 0;
  if (typed.length) ask();
  form.addEventListener("input", (event) => {
    touched.add(event.target.name);
    clearTimeout(timer);
    timer = setTimeout(ask, 250);
  });

  async function ask() {
    const attempt = ++asked;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(form.dataset.check, { method: "POST", body }).catch(() => null);
    if (!answer?.ok || answer.redirected) return; // sending the form says the same
    const errors = await answer.json();
    if (attempt !== asked) return; // a newer answer is on its way
    document.getElementById("expected").textContent = errors.expected;
    for (const input of form.elements) {
      const message = errorPlace(input);
      if (!message || input.type === "checkbox") continue;
      // What nobody has filled in yet may be filled in still.
      const error = touched.has(input.name) || input.value ? errors[input.name] ?? "" : "";
      if (message.textContent !== error) message.textContent = error;
      if (error) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    }
  }
}

// If the session has ended meanwhile, what was sent is there again after logging in.
function restoreDraft(form) {
  const draft = JSON.parse(sessionStorage.getItem(DRAFT) ?? "{}");
  for (const [name, value] of Object.entries(draft)) {
    const input = form.elements[name];
    if (input.type === "checkbox") input.checked = true;
    else input.value = value;
  }
  sessionStorage.removeItem(DRAFT);
  form.addEventListener("submit", () => {
    const { csrf, sure, ...sent } = Object.fromEntries(new FormData(form));
    sessionStorage.setItem(DRAFT, JSON.stringify(sent));
  });
}
