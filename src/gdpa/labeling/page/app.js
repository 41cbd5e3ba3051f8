// The labelling page: display a row, send the answer, and display the next row once it is saved.

import { Refused, annotator, get, post, rename, whenTrouble } from "./api.js";
import { arrange, classForKey, drawButtons, drawCounts, drawOptions, keysOf, setKey } from "./classes.js";
import { el } from "./dom.js";
import { drawItem } from "./item.js";
import { drawAccuracy, drawLabels, drawPreview, drawReview } from "./lists.js";
import { RowMap } from "./map.js";

const AHEAD = 2; // this row and the next, which can then be displayed immediately
const POLL = 1500;
const $ = (id) => document.getElementById(id);

let state = null;
let item = null; // the displayed row
let waiting = []; // the next rows
let trail = []; // rows answered in this tab, for “back”
let place = 0; // position in the trail; trail.length is the current question
let queue = Promise.resolve(); // actions run one at a time, in order
let listed = -1;
let coloured = "";
let reviewed = "";
let selected = []; // rows to label at once

const map = new RowMap($("map"), {
  onOpen: (row) => act(() => open(row)),
  onSay: say,
  onSelect: (rows) => act(() => chooseOnMap(rows)),
});

function say(text) {
  $("announcer").textContent = text;
}

function trouble(text) {
  $("trouble").textContent = text;
  $("trouble").hidden = !text;
}

function act(work) {
  queue = queue.then(work).catch((error) => {
    if (!(error instanceof Refused)) throw error;
    trouble(error.message);
    say(error.message);
  });
  return queue;
}

// An answer belongs to the row displayed when the key was pressed: pressing a key twice does not
// label the next row.
function reply(what, value) {
  const row = item === null ? null : item.row;
  return act(async () => {
    if (item !== null && item.row === row) await answer(what, value);
  });
}

function show(next) {
  item = next;
  closeBulk();
  $("near-panel").hidden = true;
  $("guess-text").textContent = "";
  $("guess").setAttribute("aria-pressed", "false");
  $("item").classList.remove("leaving");
  if (item === null) {
    $("ask").textContent = "All rows have been answered";
    $("row-name").textContent = "";
    $("item").replaceChildren();
  } else {
    $("ask").textContent = `Which ${state.target} is this?`;
    $("row-name").textContent = item.name;
    drawItem($("item"), item, { first: trail.length === 0 });
    map.setCurrent(item.row);
    if (item.label !== null) drawNear(item.row); // before the answer, they are a part of the hint
  }
  drawAnswer();
}

// Loaded separately, so that the question does not have to wait.
async function drawNear(row) {
  const rows = await get(`api/near/${row}`).catch(() => []);
  if (item === null || item.row !== row || !rows.length) return;
  drawPreview($("near"), rows, (near) => act(() => open(near)));
  $("near-panel").hidden = false;
}

async function choose(rows, what, value) {
  if (!rows.length) {
    say(`No rows without a label ${what}.`);
    return;
  }
  selected = rows;
  // Preview twelve rows at equal steps, including the least similar one.
  const last = Math.min(12, rows.length) - 1;
  const some = Array.from({ length: last + 1 }, (_, i) => rows[Math.round((i * (rows.length - 1)) / (last || 1))]);
  const preview = await post("api/preview", { rows: some });
  const many = `${rows.length.toLocaleString("en")} row${rows.length > 1 ? "s" : ""}`;
  $("bulk-title").textContent = `Label ${many} ${what}`;
  $("bulk-apply").textContent = `Label ${many}`;
  drawPreview($("bulk-preview"), preview, null);
  drawOptions($("bulk-class"), state.classes);
  if (value !== undefined) $("bulk-class").value = String(value);
  $("bulk").hidden = false;
  $("bulk-title").focus();
}

// Labels may have changed since the map was drawn.
async function chooseOnMap(rows) {
  await update();
  await updateMap();
  await choose(map.unlabelled(rows), "in this part of the map");
}

function closeBulk() {
  $("bulk").hidden = true;
  selected = [];
}

async function applyBulk() {
  const rows = selected;
  if (!rows.length || !$("bulk-class").value) return;
  await post("api/bulk", { rows, value: $("bulk-class").value });
  closeBulk();
  waiting = [];
  await update();
  await present();
  say(`${rows.length} rows labelled. Undo reverts this.`);
}

async function alike() {
  if (item === null) return;
  const { rows, value } = await get(`api/alike/${item.row}`);
  await choose(rows, `like ${item.name}`, value);
}

async function renameClass(to) {
  const value = $("edit-class").value;
  if (!value || to === "") return;
  await post("api/rename", { value, to });
  $("edit-name").value = "";
  await update();
  say(to === null ? `Class ${value} deleted.` : `Class ${value} is now ${to}.`);
}

function drawAnswer() {
  const none = item === null;
  const chosen = none || item.skipped ? null : item.label;
  drawButtons($("classes"), state.classes, chosen, (value) => reply("label", value));
  for (const button of $("classes").children) button.disabled = none;
  $("skip").disabled = $("guess").disabled = none;
  $("alike").disabled = none || state.model < 0;
  $("edit").hidden = !state.classes.length;
  $("undo").disabled = state.undo === 0 && trail.length === 0;
  $("back").disabled = place === 0;
  $("forward").disabled = place >= trail.length && (none || waiting[0]?.row === item.row);
}

async function fill() {
  const rows = await post("api/next", { n: AHEAD });
  // Skip rows that were answered in the meantime.
  waiting = rows.filter((next) => !trail.includes(next.row));
}

async function present() {
  place = trail.length;
  if (!waiting.length) await fill();
  show(waiting.length ? waiting[0] : null);
}

async function open(row) {
  const at = trail.indexOf(row);
  place = at < 0 ? trail.length : at;
  show(await get(`api/item/${row}`));
  say(`${item.name}. ${item.label === null ? "No label." : `Labelled ${item.label}.`}`);
  $("question").scrollIntoView({ block: "nearest" });
}

async function answer(what, value) {
  if (item === null) return;
  const { row, name } = item;
  $("item").classList.add("leaving");
  try {
    await post(`api/${what}`, what === "skip" ? { row } : { row, value });
  } finally {
    $("item").classList.remove("leaving");
  }
  trouble("");
  trail = [...trail.filter((r) => r !== row), row];
  waiting = waiting.filter((next) => next.row !== row);
  const said = what === "skip" ? "skipped" : `labelled ${value}`;
  const ready = waiting.length > 0;
  await present();
  say(`${name} ${said}. ${item === null ? "No row is left." : `Next: ${item.name}.`}`);
  if (ready) follow(); // load the next rows in the background
  else await update();
}

async function undo() {
  const several = state.undo > 1;
  const { row } = await post("api/undo", { key: crypto.getRandomValues(new Uint32Array(4)).join("-") });
  trouble("");
  if (row === null) {
    waiting = [];
    await update();
    await present();
    say(several ? "Undone." : "Nothing to undo.");
    return;
  }
  trail = trail.filter((r) => r !== row);
  await fill();
  await update();
  await open(row);
  place = trail.length;
  drawAnswer();
  say(`Undone: ${item.name}.`);
}

async function back() {
  if (place === 0) return;
  const target = place - 1;
  await open(trail[target]);
  place = target;
  drawAnswer();
}

async function forward() {
  if (place < trail.length - 1) {
    const target = place + 1;
    await open(trail[target]);
    place = target;
    drawAnswer();
  } else await present();
}

async function remove(row) {
  await post("api/remove", { row });
  trail = trail.filter((r) => r !== row);
  await update();
  if (item !== null && item.row === row) await open(row);
  say("Label removed.");
}

// The prediction and the labels of similar rows are shown on request only: they influence the answer.
async function guess() {
  if (item === null) return;
  const found = await get(`api/guess/${item.row}`);
  const sure = (p) => (p > 0.995 ? "over 99" : p < 0.005 ? "under 1" : Math.round(100 * p));
  const words = found.map((g) => `${g.value} (${sure(g.probability)} %)`);
  $("guess").setAttribute("aria-pressed", "true");
  $("guess-text").textContent = words.length
    ? `Prediction: ${words.join(", ")}`
    : "No prediction yet: the model needs labels of two classes.";
  await drawNear(item.row);
}

// Changes by other annotators and by the background work.
let asked = 0;
let drawn = 0;
async function update() {
  const number = ++asked;
  const found = await get(`api/state?by=${encodeURIComponent(annotator)}`);
  // Counts and list are updated together.
  const labels = listed === found.version ? null : await get("api/labels");
  if (number < drawn) return; // a newer response is already displayed
  drawn = number;
  const before = state;
  state = found;
  arrange(state);
  document.title = `${state.title} · labelling`;
  $("title").textContent = state.title;
  const done = state.labelled + state.skipped;
  $("progress").max = state.rows;
  $("progress").value = done;
  const words = [`${state.labelled.toLocaleString("en")} of ${state.rows.toLocaleString("en")} labelled`];
  if (state.skipped) words.push(`${state.skipped.toLocaleString("en")} skipped`);
  if (state.others) words.push(`${state.others} other${state.others > 1 ? "s" : ""} labelling`);
  $("progress-text").textContent = words.join(" · ");
  if (state.trouble) trouble(state.trouble);
  drawAccuracy(state);
  if (before === null || state.version !== before.version || state.model !== before.model) {
    drawCounts($("counts"), state.classes);
    drawOptions($("edit-class"), state.classes);
    drawAnswer();
  } else if (state.undo !== before.undo) drawAnswer();
  if (labels !== null) {
    listed = state.version;
    const again = (row) => act(() => open(row));
    drawLabels($("labels"), $("labels-none"), labels, again, (row) => act(() => remove(row)));
    const answered = new Set(labels.map((entry) => entry.row));
    waiting = waiting.filter((next) => !answered.has(next.row));
  }
  const now = `${state.model} ${state.disagreements}`;
  if (reviewed !== now) {
    reviewed = now;
    drawReview(await get("api/review"), (row) => act(() => open(row)));
  }
  if (waiting.length < AHEAD && state.labelled + state.skipped < state.rows) await fill();
  await updateMap();
}

// Outside the queue, so that keys do not have to wait.
let following = null;
function follow() {
  following ??= update().finally(() => {
    following = null;
  });
  return following.catch(() => {});
}

// One request at a time: an older response must not replace a newer one.
let colouring = Promise.resolve();
function updateMap() {
  colouring = colouring.catch(() => {}).then(drawMap);
  return colouring;
}

async function drawMap() {
  if (!map.points) {
    const points = await get("api/map");
    if (!points.ready) return;
    map.setPoints(points);
    $("map-text").textContent =
      (points.all ? "" : `A random sample of ${points.rows.length.toLocaleString("en")} rows. `) +
      "The colour is the predicted class, pale if uncertain. Labelled rows have a ring. Click a row to " +
      "label it. Drag with Shift to label all rows in a rectangle, or zoom in and press Select.";
  }
  const now = `${state.model} ${state.version}`;
  if (coloured === now) return;
  map.setColours(await get("api/colours"), state.classes);
  coloured = now;
}

function newClass(event) {
  event.preventDefault();
  const name = $("new-name").value.trim();
  if (!name || item === null) return;
  $("new-name").value = "";
  $("ask").focus({ preventScroll: true });
  reply("label", name);
}

function key(event) {
  const typing = event.target.matches("input, textarea, select");
  if (event.key === "Escape") {
    closeBulk();
    if (typing) event.target.blur();
    return;
  }
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "z" && !typing) {
    event.preventDefault();
    act(undo);
    return;
  }
  if (typing || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const tools = { Backspace: undo, ArrowLeft: back, ArrowRight: forward, "?": guess, "=": alike };
  if (event.key in tools) act(tools[event.key]);
  else if (event.key === "-") reply("skip");
  else if (event.key === "+") $("new-name").focus();
  else {
    const value = state === null || event.key.length > 1 ? null : classForKey(state.classes, event.key);
    if (value === null) return;
    reply("label", value);
  }
  event.preventDefault();
}

function showKey() {
  const place = state.classes.findIndex((entry) => String(entry.value) === $("edit-class").value);
  $("edit-key").value = place < 0 ? "" : keysOf(state.classes)[place][0] || "";
}

$("goal-form").addEventListener("submit", async (event) => {
  event.preventDefault();
  try {
    await post("api/goal", { percent: Number($("goal-percent").value) });
    $("goal-note").textContent = "The goal is set.";
    await update();
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    $("goal-note").textContent = error.message;
  }
});

let formats = [];
const NAMES = { parquet: "Parquet", jsonl: "JSON lines", labelstudio: "Label Studio", folders: "Folders (ZIP)", certificate: "Certificate" };
function drawFormats() {
  const query = $("who").checked ? "?who=1" : "";
  const link = (kind) => el("a", { href: `export/${kind}${query}`, download: "", textContent: NAMES[kind] });
  $("formats").replaceChildren(...formats.filter((kind) => kind in NAMES).map(link));
  document.querySelector("nav a[href^='export/table']").href = `export/table${query}`;
}

async function poll() {
  try {
    if (!document.hidden) await follow();
  } finally {
    setTimeout(() => poll().catch(() => {}), POLL);
  }
}

whenTrouble(trouble);
$("new-class").addEventListener("submit", newClass);
$("skip").addEventListener("click", () => reply("skip"));
$("undo").addEventListener("click", () => act(undo));
$("back").addEventListener("click", () => act(back));
$("forward").addEventListener("click", () => act(forward));
$("guess").addEventListener("click", () => act(guess));
$("alike").addEventListener("click", () => act(alike));
$("bulk-apply").addEventListener("click", () => act(applyBulk));
$("bulk-cancel").addEventListener("click", closeBulk);
$("map-select").addEventListener("click", () => map.select());
$("edit-form").addEventListener("submit", (event) => {
  event.preventDefault();
  act(() => renameClass($("edit-name").value.trim()));
});
$("edit-delete").addEventListener("click", () => act(() => renameClass(null)));
$("edit-class").addEventListener("change", showKey);
$("edit").addEventListener("toggle", showKey);
$("edit-key").addEventListener("input", () => {
  setKey($("edit-class").value, $("edit-key").value.toLowerCase());
  drawAnswer();
});
$("my-name").addEventListener("change", () => {
  rename($("my-name").value.trim());
  waiting = [];
  trail = []; // the answers of the earlier name
  place = 0;
  act(update).then(drawAnswer);
});
$("who").addEventListener("change", drawFormats);
$("zoom-in").addEventListener("click", () => map.zoom(1.5));
$("zoom-out").addEventListener("click", () => map.zoom(1 / 1.5));
$("zoom-all").addEventListener("click", () => map.all());
document.addEventListener("keydown", key);

act(async () => {
  await update();
  await present();
  formats = await get("api/formats");
  drawFormats();
}).then(() => setTimeout(() => poll().catch(() => {}), POLL));
