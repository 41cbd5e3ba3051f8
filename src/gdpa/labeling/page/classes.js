// Buttons, keys and colours of the classes.

import { el } from "./dom.js";

const NUMBERS = "123456789";
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const KEYS = `0${NUMBERS}${LETTERS}`;
const COLOURS = 10;

export const colourOf = (place) => `var(--k${place % COLOURS})`;

// Keys chosen by the user, stored in this browser.
const STORE = `keys ${document.title}`;
const custom = () => JSON.parse(localStorage.getItem(STORE) || "{}");
export function setKey(value, key) {
  const kept = Object.entries(custom()).filter(([name, k]) => name !== String(value) && k !== key);
  if (KEYS.includes(key) && key) kept.push([String(value), key]);
  localStorage.setItem(STORE, JSON.stringify(Object.fromEntries(kept)));
}

// The key of a class is the one chosen by the user or, if its name is one digit or letter, its name.
// The other classes get the free numbers from 1 to 9, in order of appearance, and a free letter, if
// possible one of their name. A new class does not change the keys of others.
export function keysOf(classes) {
  const chosen = custom();
  const order = classes.map((_, i) => i).sort((a, b) => classes[a].since - classes[b].since);
  const names = classes.map((entry) => String(entry.value).toLowerCase());
  const own = classes.map((entry, i) => {
    if (chosen[entry.value]) return chosen[entry.value];
    const name = names[i];
    const free = name.length === 1 && KEYS.includes(name) && !Object.values(chosen).includes(name);
    return free ? name : "";
  });
  const taken = new Set(own);
  const claim = (wanted) => {
    const key = [...wanted].find((c) => KEYS.includes(c) && !taken.has(c)) || "";
    taken.add(key);
    return key;
  };
  const keys = classes.map(() => []);
  for (const place of order) {
    const letters = names[place].replaceAll(/[^a-z]/g, "") + LETTERS;
    keys[place] = own[place] ? [own[place]] : [claim(NUMBERS), claim(letters)].filter(Boolean);
  }
  return keys;
}

// Buttons: preset classes first, then sorted by name or number. Keys: in order of appearance.
export function arrange(state) {
  const { classes, preset } = state;
  classes.forEach((entry, place) => Object.assign(entry, { since: place }));
  const { compare } = new Intl.Collator("en", { numeric: true });
  const others = classes.slice(preset).sort((a, b) => compare(String(a.value), String(b.value)));
  state.classes = [...classes.slice(0, preset), ...others];
}

export function drawOptions(host, classes) {
  const before = host.value;
  host.replaceChildren(...classes.map((entry) => el("option", { textContent: String(entry.value) })));
  if (classes.some((entry) => String(entry.value) === before)) host.value = before;
}

function keycap(text) {
  const cap = document.createElement("kbd");
  cap.textContent = text;
  return cap;
}

export function drawButtons(host, classes, chosen, onChoose) {
  const keys = keysOf(classes);
  const focused = host.contains(document.activeElement) ? document.activeElement.dataset.value : null;
  host.replaceChildren(
    ...classes.map((entry, place) => {
      const button = document.createElement("button");
      button.type = "button";
      button.dataset.value = String(entry.value);
      button.style.setProperty("--colour", colourOf(entry.since));
      const label = document.createElement("span");
      label.textContent = String(entry.value);
      button.append(label);
      for (const key of keys[place]) button.append(keycap(key));
      if (keys[place].length) button.setAttribute("aria-keyshortcuts", keys[place].join(" "));
      button.setAttribute("aria-pressed", String(chosen !== null && chosen === entry.value));
      button.addEventListener("click", () => onChoose(entry.value));
      return button;
    }),
  );
  if (focused !== null) {
    const again = [...host.children].find((button) => button.dataset.value === focused);
    if (again) again.focus({ preventScroll: true });
  }
}

export function classForKey(classes, key) {
  const place = keysOf(classes).findIndex((keys) => keys.includes(key.toLowerCase()));
  return place < 0 ? null : classes[place].value;
}

export function drawCounts(host, classes) {
  const table = document.createElement("table");
  const head = table.createTHead().insertRow();
  for (const text of ["Class", "labelled", "predicted"]) {
    const cell = document.createElement("th");
    cell.scope = "col";
    cell.textContent = text;
    head.append(cell);
  }
  const body = table.createTBody();
  classes.forEach((entry, place) => {
    const row = body.insertRow();
    const name = document.createElement("th");
    name.scope = "row";
    const swatch = document.createElement("span");
    swatch.className = "swatch";
    swatch.style.setProperty("--colour", colourOf(entry.since));
    name.append(swatch, String(entry.value));
    row.append(name);
    row.insertCell().textContent = entry.count.toLocaleString("en");
    row.insertCell().textContent = entry.predicted.toLocaleString("en");
  });
  if (classes.length) host.replaceChildren(table);
  else {
    const none = document.createElement("p");
    none.className = "soft";
    none.textContent = "None yet: enter the first one under “New class”.";
    host.replaceChildren(none);
  }
}
