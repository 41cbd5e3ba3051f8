// The map of the rows. The colour is the predicted class, its strength the confidence; labelled rows
// have a ring. The wheel and the buttons zoom, dragging moves the map, dragging with Shift selects a
// rectangle, and a click or Enter opens a row.

const COLOURS = 10;

export class RowMap {
  constructor(canvas, { onOpen, onSay, onSelect }) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.onOpen = onOpen;
    this.onSay = onSay;
    this.onSelect = onSelect;
    this.points = null;
    this.colours = null;
    this.names = [];
    this.current = -1;
    this.cursor = -1;
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.drag = null;
    this.touches = new Map();
    canvas.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    canvas.addEventListener("pointerdown", (event) => this.down(event));
    canvas.addEventListener("pointermove", (event) => this.move(event));
    canvas.addEventListener("pointerup", (event) => this.up(event));
    canvas.addEventListener("pointercancel", (event) => this.touches.delete(event.pointerId));
    canvas.addEventListener("keydown", (event) => this.key(event));
    canvas.addEventListener("blur", () => this.draw());
    new ResizeObserver(() => this.draw()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.draw());
  }

  setPoints(points) {
    this.points = points;
    this.place = new Map(points.rows.map((row, i) => [row, i]));
    this.draw();
  }

  setColours(colours, classes) {
    this.colours = colours;
    this.names = [];
    for (const entry of classes) this.names[entry.since] = String(entry.value);
    this.draw();
  }

  setCurrent(row) {
    this.current = this.place && this.place.has(row) ? this.place.get(row) : -1;
    this.wanted = row;
    this.draw();
  }

  zoom(factor, x = this.view.x, y = this.view.y) {
    const zoom = Math.min(40, Math.max(1, this.view.zoom * factor));
    const share = this.view.zoom / zoom;
    this.view = { zoom, x: x + (this.view.x - x) * share, y: y + (this.view.y - y) * share };
    if (zoom === 1) this.view = { zoom, x: 0.5, y: 0.5 };
    this.draw();
  }

  all() {
    this.view = { x: 0.5, y: 0.5, zoom: 1 };
    this.draw();
  }

  scale() {
    const size = Math.min(this.canvas.clientWidth, this.canvas.clientHeight) - 24;
    const wide = this.canvas.clientWidth - 24;
    const high = this.canvas.clientHeight - 24;
    return { sx: Math.max(wide, size) * this.view.zoom, sy: Math.max(high, size) * this.view.zoom };
  }

  toScreen(i) {
    const { sx, sy } = this.scale();
    return [
      (this.points.x[i] - this.view.x) * sx + this.canvas.clientWidth / 2,
      (this.points.y[i] - this.view.y) * sy + this.canvas.clientHeight / 2,
    ];
  }

  toData(px, py) {
    const { sx, sy } = this.scale();
    return [
      (px - this.canvas.clientWidth / 2) / sx + this.view.x,
      (py - this.canvas.clientHeight / 2) / sy + this.view.y,
    ];
  }

  nearest(px, py, most) {
    let best = -1;
    let least = most * most;
    for (let i = 0; i < this.points.rows.length; i += 1) {
      const [x, y] = this.toScreen(i);
      const square = (x - px) ** 2 + (y - py) ** 2;
      if (square < least) [best, least] = [i, square];
    }
    return best;
  }

  wheel(event) {
    if (!this.points) return;
    event.preventDefault();
    const [x, y] = this.toData(event.offsetX, event.offsetY);
    this.zoom(Math.exp(-event.deltaY / 300), x, y);
  }

  down(event) {
    this.canvas.setPointerCapture(event.pointerId);
    this.touches.set(event.pointerId, [event.offsetX, event.offsetY]);
    const select = event.shiftKey && this.touches.size === 1;
    this.drag = { x: event.offsetX, y: event.offsetY, moved: this.touches.size > 1, select };
  }

  move(event) {
    if (!this.points || !this.touches.has(event.pointerId)) return;
    const before = [...this.touches.values()];
    const [lastX, lastY] = this.touches.get(event.pointerId);
    this.touches.set(event.pointerId, [event.offsetX, event.offsetY]);
    if (this.touches.size === 2) {
      const after = [...this.touches.values()];
      const gap = ([a, b]) => Math.hypot(a[0] - b[0], a[1] - b[1]) || 1;
      const [x, y] = this.toData((after[0][0] + after[1][0]) / 2, (after[0][1] + after[1][1]) / 2);
      this.drag.moved = true;
      this.zoom(gap(after) / gap(before), x, y);
      return;
    }
    if (Math.hypot(event.offsetX - this.drag.x, event.offsetY - this.drag.y) > 4) this.drag.moved = true;
    if (!this.drag.moved) return;
    if (this.drag.select) {
      this.drag.to = [event.offsetX, event.offsetY];
      this.draw();
      return;
    }
    const { sx, sy } = this.scale();
    this.view.x -= (event.offsetX - lastX) / sx;
    this.view.y -= (event.offsetY - lastY) / sy;
    this.draw();
  }

  up(event) {
    this.touches.delete(event.pointerId);
    const { drag } = this;
    if (this.points && drag?.select && drag.to) {
      this.drag = null;
      this.select(drag.x, drag.y, ...drag.to);
      this.draw();
      return;
    }
    if (!this.points || !drag || drag.moved) return;
    const near = this.nearest(event.offsetX, event.offsetY, 24);
    if (near >= 0) this.onOpen(this.points.rows[near]);
  }

  // Rows in a rectangle of the screen; by default, all visible ones.
  select(x0 = 0, y0 = 0, x1 = this.canvas.clientWidth, y1 = this.canvas.clientHeight) {
    if (!this.points) return;
    const between = (a, b, c) => Math.min(a, b) <= c && c <= Math.max(a, b);
    const inside = this.points.rows.filter((_, i) => {
      const [x, y] = this.toScreen(i);
      return between(x0, x1, x) && between(y0, y1, y);
    });
    this.onSelect(inside);
  }

  unlabelled(rows) {
    return rows.filter((row) => !this.colours?.known[this.place.get(row)]);
  }

  key(event) {
    if (!this.points || event.ctrlKey || event.metaKey || event.altKey) return;
    const ways = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    if (event.key in ways) this.step(...ways[event.key]);
    else if (event.key === "+") this.zoom(1.5);
    else if (event.key === "-") this.zoom(1 / 1.5);
    else if (event.key === "Enter" && this.cursor >= 0) this.onOpen(this.points.rows[this.cursor]);
    else return;
    event.preventDefault();
    event.stopPropagation();
  }

  // The nearest row in a direction; distances across the direction count more.
  step(dx, dy) {
    const from = this.cursor >= 0 ? this.cursor : Math.max(this.current, 0);
    const [x, y] = this.toScreen(from);
    let best = -1;
    let least = Infinity;
    for (let i = 0; i < this.points.rows.length; i += 1) {
      const [px, py] = this.toScreen(i);
      const along = (px - x) * dx + (py - y) * dy;
      const across = Math.abs((px - x) * dy - (py - y) * dx);
      if (i === from || along <= 0.5) continue;
      const cost = along + 2 * across;
      if (cost < least) [best, least] = [i, cost];
    }
    if (best < 0) return;
    this.cursor = best;
    this.view = { ...this.view, ...this.inSight(best) };
    this.onSay(this.describe(best));
    this.draw();
  }

  inSight(i) {
    const [x, y] = this.toScreen(i);
    const inside = x > 0 && y > 0 && x < this.canvas.clientWidth && y < this.canvas.clientHeight;
    return inside ? {} : { x: this.points.x[i], y: this.points.y[i] };
  }

  describe(i) {
    const name = `row ${this.points.rows[i] + 1}`;
    if (!this.colours || this.colours.classes[i] < 0) return `${name}, no prediction yet`;
    const said = this.names[this.colours.classes[i]];
    if (this.colours.known[i]) return `${name}, labelled ${said}`;
    return `${name}, predicted ${said}, ${this.colours.sure[i]} % confident`;
  }

  draw() {
    const { canvas, context } = this;
    const ratio = devicePixelRatio || 1;
    const [wide, high] = [canvas.clientWidth, canvas.clientHeight];
    if (canvas.width !== Math.round(wide * ratio) || canvas.height !== Math.round(high * ratio)) {
      canvas.width = Math.round(wide * ratio);
      canvas.height = Math.round(high * ratio);
    }
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, wide, high);
    if (!this.points || !wide) return;
    if (this.wanted !== undefined && this.place.has(this.wanted)) this.current = this.place.get(this.wanted);
    const style = getComputedStyle(document.documentElement);
    const named = (name) => style.getPropertyValue(name).trim();
    const colours = Array.from({ length: COLOURS }, (_, i) => named(`--k${i}`));
    const [ink, paper, none] = [named("--ink"), named("--paper"), named("--none")];
    const at = this.points.rows.map((_, i) => this.toScreen(i));
    context.strokeStyle = none;
    context.globalAlpha = 0.25;
    context.lineWidth = 0.6;
    context.beginPath();
    const { edges } = this.points;
    for (let e = 0; e < edges.length; e += 2) {
      context.moveTo(...at[edges[e]]);
      context.lineTo(...at[edges[e + 1]]);
    }
    context.stroke();
    const size = Math.min(7, (at.length > 600 ? 2.6 : 3.6) * this.view.zoom ** 0.3);
    const paint = (i) => {
      const kind = this.colours ? this.colours.classes[i] : -1;
      const known = this.colours && this.colours.known[i];
      context.globalAlpha = kind < 0 ? 0.8 : known ? 1 : 0.25 + 0.6 * (this.colours.sure[i] / 100) ** 2;
      context.fillStyle = kind < 0 ? none : colours[kind % COLOURS];
      context.beginPath();
      context.arc(...at[i], known ? size + 1.6 : size, 0, 7);
      context.fill();
      if (!known) return;
      context.lineWidth = 1.6;
      context.strokeStyle = ink;
      context.stroke();
    };
    for (let i = 0; i < at.length; i += 1) if (!this.colours || !this.colours.known[i]) paint(i);
    if (this.colours) for (let i = 0; i < at.length; i += 1) if (this.colours.known[i]) paint(i);
    context.globalAlpha = 1;
    const ring = (i, radius, dash) => {
      if (i < 0) return;
      context.setLineDash(dash);
      for (const [colour, width] of [[paper, 5], [ink, 2.2]]) {
        context.lineWidth = width;
        context.strokeStyle = colour;
        context.beginPath();
        context.arc(...at[i], radius, 0, 7);
        context.stroke();
      }
      context.setLineDash([]);
    };
    if (this.drag?.to) {
      const { x, y, to } = this.drag;
      context.lineWidth = 1.5;
      context.strokeStyle = ink;
      context.strokeRect(x, y, to[0] - x, to[1] - y);
    }
    ring(this.current, size + 7, []);
    if (document.activeElement === canvas) ring(this.cursor, size + 11, [4, 3]);
  }
}
