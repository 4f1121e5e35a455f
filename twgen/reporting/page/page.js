"use strict";
const input = document.getElementById("filter");
const fleet = document.getElementById("fleet");

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const workers = [...fleet.querySelectorAll("details.worker")];
  let shown = 0;
  for (const worker of workers) {
    const text = worker.firstElementChild.textContent.toLowerCase();
    worker.hidden = !words.every((word) => text.includes(word));
    shown += !worker.hidden;
  }
  unfold(words.length > 0);
  document.getElementById("found").textContent = words.length ? `${shown} of ${workers.length}` : "";
}

// the filter opens the line of settled workers, and closes it only if it opened it
function unfold(isFiltered) {
  const fold = fleet.querySelector("details.fold");
  if (!fold || isFiltered === "byFilter" in fold.dataset) return;
  if (isFiltered && !fold.open) {
    fold.open = true;
    fold.dataset.byFilter = "";
  } else if (!isFiltered) {
    fold.open = false;
    delete fold.dataset.byFilter;
  }
}

// if only the age of a row has changed, only the age is replaced: the reader keeps their position in the row
function withoutAge(row) {
  const copy = row.cloneNode(true);
  copy.removeAttribute("open");
  copy.querySelector(".since").textContent = "";
  return copy.outerHTML;
}

function show(html) {
  const next = document.createElement("div");
  next.innerHTML = html;
  const before = new Map([...fleet.querySelectorAll("details.worker")].map((row) => [row.id, row]));
  const focused = document.activeElement.closest("details.worker")?.id;
  for (const row of next.querySelectorAll("details.worker")) {
    const old = before.get(row.id);
    if (old && withoutAge(old) === withoutAge(row)) {
      old.querySelector(".since").replaceWith(row.querySelector(".since"));
      row.replaceWith(old);
    } else if (old) {
      row.open = old.open;
    }
  }
  const [fold, oldFold] = [next, fleet].map((parent) => parent.querySelector("details.fold"));
  if (fold && oldFold) {
    fold.open = oldFold.open;
    Object.assign(fold.dataset, oldFold.dataset);
  }
  const isOnFold = oldFold?.firstElementChild === document.activeElement;
  fleet.replaceChildren(...next.childNodes);
  if (isOnFold) fold?.firstElementChild.focus();
  if (focused && !document.activeElement.closest("details.worker")) {
    document.getElementById(focused)?.firstElementChild.focus();
  }
}

async function refresh() {
  const stale = document.getElementById("stale");
  const selection = getSelection();
  if (!selection.isCollapsed && fleet.contains(selection.anchorNode)) return;
  try {
    const headers = { Accept: "application/json", ...(refresh.tag && { "If-None-Match": refresh.tag }) };
    const answer = await fetch(location.href, { headers, cache: "no-store" });
    if (!answer.ok && answer.status !== 304) throw new Error(`the server answered ${answer.status}`);
    if (answer.ok) {
      const news = await answer.json();
      if (news.fleet !== refresh.last) {
        show(news.fleet);
        refresh.last = news.fleet;
        filter();
      }
      refresh.failure = news.failure;
      refresh.tag = answer.headers.get("ETag");
    }
    document.getElementById("as-of").textContent = answer.headers.get("As-Of");
    stale.textContent = refresh.failure ? `not refreshed: ${refresh.failure}` : "";
  } catch (error) {
    stale.textContent = `not refreshed: ${error.message}`;
  }
}

async function press(button) {
  const { verb, worker, target, reason, meaning } = button.dataset;
  if (!confirm(`${verb} ${worker}: ${meaning}?`)) return;
  const answered = document.getElementById("answered");
  answered.textContent = `${verb} of ${worker} is being requested`;
  try {
    const answer = await fetch(location.href, {
      method: "POST",
      headers: { "Content-Type": "application/json" },
      body: JSON.stringify({ verb, worker, target, reason }),
    });
    answered.textContent = await answer.text();
    await refresh();
  } catch (error) {
    answered.textContent = `${verb} of ${worker} was not requested: ${error.message}`;
  }
}

// without TLS, a page may have no access to the clipboard: then it selects the text, for the reader to copy
async function copy(button) {
  const command = button.previousElementSibling;
  const answered = document.getElementById("answered");
  try {
    await navigator.clipboard.writeText(command.textContent);
    answered.textContent = `copied: ${command.textContent}`;
  } catch {
    getSelection().selectAllChildren(command);
    answered.textContent = "the command is selected: copy it with your keyboard";
  }
}

// open the row that the URL names, as in the links of Argo CD
function openNamed() {
  const row = document.getElementById(location.hash.slice(1));
  if (!row?.matches("details.worker")) return;
  const fold = row.closest("details.fold");
  if (fold) fold.open = true;
  row.open = true;
  row.scrollIntoView();
}

if (fleet) {
  fleet.addEventListener("click", (event) => {
    if (event.target.matches("button[data-verb]")) press(event.target);
    if (event.target.matches("button.copy")) {
      event.preventDefault(); // do not open or close the row
      copy(event.target);
    }
  });
  input.addEventListener("input", filter);
  document.addEventListener("keydown", (event) => {
    if (event.key === "/" && document.activeElement !== input) {
      event.preventDefault();
      input.focus();
    } else if (event.key === "Escape" && document.activeElement === input) {
      input.value = "";
      filter();
    }
  });
  const seconds = Number(document.body.dataset.refreshedEvery);
  if (seconds) setInterval(() => document.hidden || refresh(), seconds * 1000);
  filter();
  addEventListener("hashchange", openNamed);
  openNamed();
}
