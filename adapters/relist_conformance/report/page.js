"use strict";
// Filters rows, columns and findings. What is chosen stands in the address, so it can be passed on.
const form = document.querySelector("form");
const count = document.getElementById("count");
const all = (selector) => Array.from(document.querySelectorAll(selector));
const wanted = () => Object.fromEntries(new FormData(form));

function fits(element, want, names) {
  return names.every((name) => !want[name] || element.dataset[name] === want[name]);
}

function filter() {
  const want = wanted();
  const text = want.text.trim().toLowerCase();
  const holds = (element) => !text || element.textContent.toLowerCase().includes(text);
  for (const cell of all("[data-column]")) cell.hidden = !fits(cell, want, ["transport", "revision"]);
  for (const block of all("th[data-client]")) {
    const columns = all(`th[data-column="${block.dataset.client}"]`).filter((one) => !one.hidden);
    block.hidden = !columns.length;
    block.colSpan = Math.max(columns.length, 1);
  }
  for (const group of all("#matrix tbody")) {
    const whole = holds(group.rows[0]);
    let left = 0;
    for (const row of Array.from(group.rows).slice(1)) {
      const cells = Array.from(row.querySelectorAll("td[data-word]"));
      const word = cells.some((cell) => !cell.hidden && fits(cell, want, ["verdict"]));
      row.hidden = !(word && fits(group, want, ["rule"]) && (whole || holds(row)));
      left += row.hidden ? 0 : 1;
    }
    group.hidden = !left;
  }
  const found = all("article");
  for (const one of found)
    one.hidden = !(fits(one, want, ["verdict", "rule", "transport", "revision"]) && holds(one));
  const shown = found.filter((one) => !one.hidden);
  if (shown.length <= 10) shown.forEach(open);
  count.textContent = `${shown.length} of ${found.length} findings`;
}

function open(article) {
  article.hidden = false;
  article.querySelector("details").open = true;
}

function follow() {
  const target = document.getElementById(location.hash.slice(1));
  if (target?.matches("article")) open(target);
}

function remember() {
  const chosen = new URLSearchParams(Object.entries(wanted()).filter(([, value]) => value));
  history.replaceState(null, "", `#?${chosen}`);
  filter();
}

for (const [name, value] of new URLSearchParams(location.hash.replace(/^#\??/, "")))
  if (form.elements[name]) form.elements[name].value = value;
form.addEventListener("input", remember);
addEventListener("hashchange", follow);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(remember));
filter();
follow();
