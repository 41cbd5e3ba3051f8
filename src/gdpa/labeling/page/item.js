// Display of one row: picture, text, and cells sorted by importance. Cells are inserted as text only.

export function drawItem(host, item, { first }) {
  const parts = [];
  if (item.picture) parts.push(picture(item));
  if (item.note && first) {
    const note = document.createElement("p");
    note.className = "soft";
    note.textContent = item.note;
    parts.push(note);
  }
  if (item.text !== null) {
    const text = document.createElement("div");
    text.className = "reading";
    text.tabIndex = 0;
    text.setAttribute("role", "region");
    text.setAttribute("aria-label", "Text");
    text.textContent = item.text || "(empty)";
    parts.push(text);
  }
  if (item.cells.length) parts.push(cells(item, item.picture || item.text !== null));
  if (item.more) {
    const more = document.createElement("p");
    more.className = "soft";
    more.textContent = `and ${item.more.toLocaleString("en")} more columns`;
    parts.push(more);
  }
  host.replaceChildren(...parts);
}

function picture(item) {
  const frame = document.createElement("div");
  frame.className = "picture";
  const image = document.createElement("img");
  image.alt = `Picture of ${item.name}`;
  image.addEventListener("load", () => image.classList.toggle("small", image.naturalWidth < 100));
  image.addEventListener("error", () => {
    const text = document.createElement("p");
    text.className = "soft";
    text.textContent = "This picture cannot be displayed.";
    frame.replaceChildren(text);
  });
  image.src = `picture/${item.row}`;
  frame.append(image);
  return frame;
}

function cells(item, besides) {
  const list = document.createElement("dl");
  item.cells.forEach((cell, place) => {
    const pair = document.createElement("div");
    if (!besides && place < 4) pair.className = "main";
    const name = document.createElement("dt");
    name.textContent = cell.name;
    const value = document.createElement("dd");
    value.textContent = cell.value || "empty";
    if (!cell.value) value.className = "empty";
    if (cell.value.length > 120) value.tabIndex = 0; // scrolls
    pair.append(name, value);
    list.append(pair);
  });
  return list;
}
