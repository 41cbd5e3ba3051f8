// The labels given so far, and how sure we are.

const percent = (share) => `${Math.round(100 * share)} %`;

export function drawLabels(host, none, labels, onOpen, onRemove) {
  none.hidden = labels.length > 0;
  const held = host.contains(document.activeElement) ? document.activeElement : null;
  host.replaceChildren(
    ...labels.map((entry) => {
      const line = document.createElement("li");
      const button = document.createElement("button");
      button.type = "button";
      button.className = "open";
      button.dataset.row = entry.row;
      const value = document.createElement("strong");
      value.textContent = entry.value === null ? "can’t tell" : String(entry.value);
      const about = document.createElement("span");
      about.className = "soft";
      about.textContent = [entry.name, entry.about].filter(Boolean).join(" · ");
      button.append(value, about);
      button.addEventListener("click", () => onOpen(entry.row));
      const remove = document.createElement("button");
      remove.type = "button";
      remove.className = "remove";
      remove.dataset.row = entry.row;
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove the label of ${entry.name}`);
      remove.addEventListener("click", () => onRemove(entry.row));
      line.append(button, remove);
      return line;
    }),
  );
  if (held !== null) {
    // Whoever stands on a button stays on it, also on a cross.
    const again = host.querySelector(`.${held.className}[data-row="${Number(held.dataset.row)}"]`);
    if (again) again.focus({ preventScroll: true });
  }
}

export function drawAccuracy(state) {
  const found = state.estimate;
  const figure = document.getElementById("accuracy");
  const text = document.getElementById("accuracy-text");
  const range = document.getElementById("gauge-range");
  const point = document.getElementById("gauge-point");
  document.getElementById("gauge").hidden = found === null;
  if (found === null) {
    figure.textContent = "–";
    text.textContent =
      "One question in five is drawn at random. After four of them the accuracy on the rows " +
      `without a label can be told (${state.checks} so far).`;
    return;
  }
  figure.textContent = `${percent(found.low)} to ${percent(found.high)}`;
  range.style.left = `${100 * found.low}%`;
  range.style.width = `${100 * (found.high - found.low)}%`;
  point.style.left = `${100 * found.accuracy}%`;
  const words = [
    `accuracy on the rows without a label, with 90 % confidence: ${found.right} of ` +
      `${found.checks} random checks were right.`,
  ];
  if (found.settled) words.push("The predictions have settled: more labels change little.");
  else if (found.changed !== null)
    words.push(`The latest labels changed ${percent(found.changed)} of the predictions.`);
  text.textContent = words.join(" ");
}
