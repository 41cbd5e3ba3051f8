// Buttons, keys and colours of the classes.

const LETTERS = "abcdefghijklmnopqrstuvwxyz";
const COLOURS = 10;

export const colourOf = (place) => `var(--k${place % COLOURS})`;

// Numbers for the first nine, and a letter for each: one of its own name where that is free.
export function keysOf(classes) {
  const taken = new Set();
  return classes.map((entry, place) => {
    const name = String(entry.value).toLowerCase();
    const letter = [...name, ...LETTERS].find((c) => LETTERS.includes(c) && !taken.has(c)) || "";
    if (letter) taken.add(letter);
    return { number: place < 9 ? String(place + 1) : "", letter };
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
      const { number, letter } = keys[place];
      for (const key of [number, letter]) if (key) button.append(keycap(key));
      button.setAttribute("aria-keyshortcuts", [number, letter].filter(Boolean).join(" "));
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
  const place = keysOf(classes).findIndex((k) => k.number === key || k.letter === key.toLowerCase());
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
