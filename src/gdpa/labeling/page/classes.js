// Buttons, keys and colours of the classes.

const NUMBERS = "123456789";
const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const KEYS = `0${NUMBERS}${LETTERS}`;
const COLOURS = 10;

export const colourOf = (place) => `var(--k${place % COLOURS})`;

// A class that is called by one digit or letter has that key. The others have the numbers that are
// left, 1 to 9, in their order, and a letter, one of their own name where that is free.
export function keysOf(classes) {
  const names = classes.map((entry) => String(entry.value).toLowerCase());
  const own = names.map((name) => (name.length === 1 && KEYS.includes(name) ? name : ""));
  const taken = new Set(own);
  const claim = (wanted) => {
    const key = [...wanted].find((c) => KEYS.includes(c) && !taken.has(c)) || "";
    taken.add(key);
    return key;
  };
  return names.map((name, place) => {
    if (own[place]) return [own[place]];
    const letters = name.replaceAll(/[^a-z]/g, "") + LETTERS;
    return [claim(NUMBERS), claim(letters)].filter(Boolean);
  });
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
      button.style.setProperty("--colour", colourOf(place));
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
    swatch.style.setProperty("--colour", colourOf(place));
    name.append(swatch, String(entry.value));
    row.append(name);
    row.insertCell().textContent = entry.count.toLocaleString("en");
    row.insertCell().textContent = entry.predicted.toLocaleString("en");
  });
  if (classes.length) host.replaceChildren(table);
  else {
    const none = document.createElement("p");
    none.className = "soft";
    none.textContent = "None yet: type the first one beside “New class”.";
    host.replaceChildren(none);
  }
}
