// Lists of rows, and the estimated accuracy.

import { el } from "./dom.js";

const percent = (share) => `${Math.round(100 * share)}\u00a0%`;
const unbroken = (text) => text.replaceAll(" %", "\u00a0%");
const about = (entry) => [entry.name, entry.about].filter(Boolean).join(" · ");

// A list of rows; when it is redrawn, pictures are not loaded again, and the focus stays where it was.
function redraw(host, lines) {
  const loaded = new Map(Array.from(host.querySelectorAll("img"), (image) => [image.src, image]));
  for (const line of lines) for (const image of line.querySelectorAll("img")) image.replaceWith(loaded.get(image.src) ?? image);
  const held = host.contains(document.activeElement) ? document.activeElement : null;
  host.replaceChildren(...lines);
  if (held === null) return;
  const again = host.querySelector(`.${held.className}[data-row="${Number(held.dataset.row)}"]`);
  if (again) again.focus({ preventScroll: true });
}

function opener(entry, title, onOpen) {
  const text = el("span", { className: "soft", textContent: about(entry) });
  const picture = entry.picture ? el("img", { loading: "lazy", alt: "", src: `picture/${entry.row}` }) : null;
  const words = el("span", {}, el("strong", {}, title), text);
  const button = el("button", { type: "button", className: "open", dataset: { row: entry.row } }, picture, words);
  button.addEventListener("click", () => onOpen(entry.row));
  return button;
}

export function drawLabels(host, none, labels, onOpen, onRemove) {
  none.hidden = labels.length > 0;
  const lines = labels.map((entry) => {
    const title = entry.value === null ? "can’t tell" : String(entry.value);
    const remove = el("button", {
      type: "button", className: "remove", dataset: { row: entry.row }, textContent: "×",
      "aria-label": `Remove the label of ${entry.name}`,
    });
    remove.addEventListener("click", () => onRemove(entry.row));
    return el("li", {}, opener(entry, title, onOpen), remove);
  });
  redraw(host, lines);
}

// Disagreements first, then labels that look wrong.
export function drawReview(found, onOpen) {
  const host = document.getElementById("doubts");
  const agreed = found.agreement;
  document.getElementById("review").hidden =
    !agreed && !found.disagreements.length && !found.suspicious.length;
  document.getElementById("agreement").textContent = agreed
    ? `Two annotators agreed on ${agreed.agreed} of ${agreed.rows} rows. Agreement beyond chance ` +
      `(Fleiss’ kappa): ${agreed.kappa.toFixed(2)} of 1, 90 % interval ${agreed.low.toFixed(2)} to ${agreed.high.toFixed(2)}.`
    : "";
  const named = (value) => (value === null ? "can’t tell" : String(value));
  redraw(host, [
    ...found.disagreements.map((entry) =>
      el("li", {}, opener(entry, `Resolve: ${entry.values.map(named).join(" or ")}`, onOpen))),
    ...found.suspicious.map((entry) => {
      const title = `${entry.value}: is it ${entry.predicted} (${percent(entry.probability)})?`;
      return el("li", {}, opener(entry, title, onOpen));
    }),
  ]);
}

// Rows as small cards: a picture or a few words, and the label if there is one.
export function drawPreview(host, rows, onOpen) {
  host.replaceChildren(
    ...rows.map((entry) => {
      const shown = entry.picture
        ? el("img", { src: `picture/${entry.row}`, alt: "" })
        : el("span", { className: "soft", textContent: entry.about });
      const label = entry.value === undefined ? null : el("strong", {}, String(entry.value));
      const name = el("span", { className: "soft", textContent: entry.name });
      if (!onOpen) return el("li", {}, shown, label, name);
      const button = el("button", { type: "button" }, shown, label, name);
      button.addEventListener("click", () => onOpen(entry.row));
      return el("li", {}, button);
    }),
  );
}

// What is proved comes first; what the model expects is a second, clearly named number.
export function drawAccuracy(state) {
  drawProof(state.proof, state.labelled);
  drawGuesses(state.guesses);
  const found = state.estimate;
  const badge = document.getElementById("accuracy-state");
  const text = document.getElementById("accuracy-text");
  const late = state.labelled - state.trained;
  badge.hidden = !state.following || state.labelled === 0 || state.proof.holds;
  badge.textContent = late > 0
    ? `Updating with ${late} new answer${late > 1 ? "s" : ""} …`
    : "Updating …";
  if (found === null) {
    text.textContent =
      "After about ten answers in at least two classes, the accuracy that the model expects is " +
      "displayed here. Each row has one label.";
    return;
  }
  const words = [
    `The model expects ${percent(found.low)} to ${percent(found.high)} right ` +
      `(an estimate, based on ${found.answers} answers that it had not seen).`,
  ];
  if (found.settled) words.push("The predictions are stable: more labels change little.");
  else if (found.changed !== null && !state.proof.holds) {
    const labels = state.trained - found.since;
    words.push(`The last ${labels} labels changed ${percent(found.changed)} of the predictions.`);
  }
  text.textContent = words.join(" ");
}

// How good the columns of guesses turned out to be.
function drawGuesses(guesses) {
  const host = document.getElementById("guess-reports");
  const lines = guesses.map((column) =>
    el("p", {}, el("strong", {}, `Guesses in ${column.name}: `), unbroken(column.text)));
  if (host.textContent !== lines.map((line) => line.textContent).join("")) host.replaceChildren(...lines);
}

function drawProof(proof, labelled) {
  const figure = document.getElementById("proved");
  const bar = document.getElementById("proof-bar");
  const goal = document.getElementById("proof-goal");
  const shown = proof.proved > 0 ? `At least ${proof.proved}\u00a0%` : "Nothing proved yet";
  const words = labelled ? shown : "Give the first label";
  if (figure.textContent !== words) figure.textContent = words;
  figure.classList.toggle("reached", proof.reached);
  bar.hidden = proof.goal === null && proof.proved <= 0;
  bar.setAttribute(
    "aria-label",
    `Proved: ${proof.proved} %` + (proof.goal === null ? "" : `; goal: ${proof.goal} %`),
  );
  document.getElementById("proof-done").style.width = `${proof.proved}%`;
  goal.hidden = proof.goal === null;
  goal.style.left = `${proof.goal ?? 0}%`;
  document.getElementById("proof-text").textContent = unbroken(proof.checks ? proof.text : proof.effort);
  const more = [proof.forecast];
  if (proof.checks) {
    const right = proof.checks - proof.wrong;
    more.push(`${right} of ${proof.checks} random checks were predicted correctly.`);
  }
  if (proof.holds && !proof.reached) more.push("The predictions stay as they are while they are checked.");
  document.getElementById("proof-forecast").textContent = unbroken(more.filter(Boolean).join(" "));
  const field = document.getElementById("goal-percent");
  if (document.activeElement !== field && proof.goal !== null) field.value = proof.goal;
}
