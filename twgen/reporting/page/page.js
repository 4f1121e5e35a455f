"use strict";
const input = document.getElementById("filter");
const fleet = document.getElementById("fleet");

function filter() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  const workers = [...fleet.querySelectorAll(".worker")];
  let shown = 0;
  for (const worker of workers) {
    const text = worker.firstElementChild.textContent.toLowerCase();
    worker.hidden = !words.every((word) => text.includes(word));
    shown += !worker.hidden;
  }
  document.getElementById("found").textContent = words.length ? `${shown} of ${workers.length}` : "";
}

async function refresh() {
  const stale = document.getElementById("stale");
  try {
    const answer = await fetch(location.href, { headers: { Accept: "application/json" }, cache: "no-store" });
    if (!answer.ok) throw new Error(`the server answers ${answer.status}`);
    const open = new Set([...fleet.querySelectorAll(".worker[open]")].map((worker) => worker.id));
    const focused = document.activeElement.closest && document.activeElement.closest(".worker");
    const told = await answer.json();
    if (told.fleet !== refresh.last) {
      fleet.innerHTML = told.fleet;
      for (const worker of fleet.querySelectorAll(".worker")) worker.open = open.has(worker.id);
      if (focused) document.getElementById(focused.id)?.firstElementChild.focus();
      refresh.last = told.fleet;
      filter();
    }
    document.getElementById("as-of").textContent = told.asOf;
    stale.textContent = told.failure ? `not refreshed: ${told.failure}` : "";
  } catch (error) {
    stale.textContent = `not refreshed: ${error.message}`;
  }
}

if (fleet) {
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
}
