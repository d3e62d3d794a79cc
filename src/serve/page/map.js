// The map of the cluster. All GPUs are pixels of one picture, kept current node by node; a frame is that picture, drawn
// once, enlarged. So a frame costs the same whatever has changed, and a change costs what has changed.

import { layout } from "./layout.js";

// What a GPU can be, in the order in which the bar of a node shows them.
export const CELLS = [
  ["full", "busy, and so is all of the node"],
  ["gang", "busy on a partial node: instances of 2 GPUs or more"],
  ["single", "busy on a partial node: instances of 1 GPU"],
  ["shared", "shared by several instances"],
  ["free", "free"],
  ["closed", "free, but the node takes no job"],
  ["broken", "broken"],
];
const [FULL, GANG, SINGLE, SHARED, FREE, CLOSED, BROKEN] = CELLS.keys();

// Below so many pixels a cell, GPUs are too small to be told apart: a node becomes a bar.
const SMALLEST_GPU = 4;
const LARGEST_CELL = 48;

export class NodeMap {
  constructor(canvas, onHover) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.picture = document.createElement("canvas");
    this.onHover = onHover;
    this.frames = 0;
    new ResizeObserver(() => this.fit()).observe(canvas);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.repaint());
    this.listen();
  }

  // Another cluster. Its rows follow.
  setTopology(topology) {
    const n = topology.nodes.length;
    this.found = undefined;
    this.topology = topology;
    this.rows = { busy: new Uint16Array(n), anchors: new Uint16Array(n), shared: new Uint16Array(n), closed: new Uint8Array(n) };
    this.fit();
  }

  // New rows of some nodes, or of all.
  setRows({ at, ...columns }) {
    for (const [name, values] of Object.entries(columns)) {
      if (at) at.forEach((node, i) => { this.rows[name][node] = values[i]; });
      else this.rows[name].set(values);
    }
    if (!at || at.length > 500) return this.repaint();
    for (const node of at) {
      this.paint(node);
      this.flush(this.plan.x[node], this.plan.y[node], this.topology.devices[node], 1);
    }
    if (at.length) this.draw();
  }

  // How many GPUs are what.
  counts() {
    const counts = new Array(CELLS.length).fill(0);
    for (let node = 0; node < this.topology.nodes.length; node++) {
      for (let gpu = 0; gpu < this.topology.devices[node]; gpu++) counts[this.cell(node, gpu)]++;
    }
    return counts;
  }

  cell(node, gpu) {
    const { busy, anchors, shared, closed } = this.rows;
    const usable = this.topology.usable[node];
    const bit = 1 << gpu;
    if (!(usable & bit)) return BROKEN;
    if (shared[node] & bit) return SHARED;
    if (!(busy[node] & bit)) return closed[node] ? CLOSED : FREE;
    if (!(usable & ~busy[node])) return FULL;
    return anchors[node] & bit ? GANG : SINGLE;
  }

  // Shows all of it, as large as there is room.
  fit() {
    const ratio = window.devicePixelRatio || 1;
    const [width, height] = [Math.round(this.canvas.clientWidth * ratio), Math.round(this.canvas.clientHeight * ratio)];
    if (!this.topology || !width || !height) return;
    [this.canvas.width, this.canvas.height] = [width, height];
    this.plan = layout(this.topology, width, height, Math.round(40 * ratio));
    this.scale = this.plan.cell;
    [this.left, this.top] = [0, 0];
    [this.picture.width, this.picture.height] = [this.plan.width, this.plan.height];
    this.image = new ImageData(this.plan.width, this.plan.height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.nodeAt = new Int32Array(this.pixels.length).fill(-1);
    for (let node = 0; node < this.topology.nodes.length; node++) {
      const first = this.plan.y[node] * this.plan.width + this.plan.x[node];
      this.nodeAt.fill(node, first, first + this.topology.devices[node]);
    }
    this.clamp();
    this.repaint();
  }

  // Paints every node anew: their colours or what a cell means may be others.
  repaint() {
    if (!this.plan) return;
    const style = getComputedStyle(this.canvas);
    const colour = (name) => style.getPropertyValue(name).trim();
    this.colours = CELLS.map(([name]) => {
      const rgb = parseInt(colour(`--cell-${name}`).slice(1), 16);
      return (0xff000000 | (rgb & 0xff) << 16 | (rgb & 0xff00) | rgb >> 16) >>> 0;
    });
    [this.lines, this.soft, this.ink] = [colour("--card"), colour("--soft"), colour("--ink")];
    this.bars = this.scale < SMALLEST_GPU;
    for (let node = 0; node < this.topology.nodes.length; node++) this.paint(node);
    this.flush(0, 0, this.plan.width, this.plan.height);
    this.draw();
  }

  paint(node) {
    const devices = this.topology.devices[node];
    const first = this.plan.y[node] * this.plan.width + this.plan.x[node];
    if (!this.bars) {
      for (let gpu = 0; gpu < devices; gpu++) this.pixels[first + gpu] = this.colours[this.cell(node, gpu)];
      return;
    }
    const counts = new Uint8Array(CELLS.length);
    for (let gpu = 0; gpu < devices; gpu++) counts[this.cell(node, gpu)]++;
    let at = first;
    counts.forEach((n, cell) => { this.pixels.fill(this.colours[cell], at, at += n); });
  }

  flush(x, y, width, height) {
    this.picture.getContext("2d").putImageData(this.image, 0, 0, x, y, width, height);
  }

  // Draws with the next frame.
  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      const start = performance.now();
      this.frame();
      this.canvas.dataset.drawMs = (performance.now() - start).toFixed(3);
      this.canvas.dataset.frames = ++this.frames;
    });
  }

  frame() {
    const { context, canvas, picture, scale, left, top } = this;
    context.clearRect(0, 0, canvas.width, canvas.height);
    context.imageSmoothingEnabled = false;
    context.drawImage(picture, -left, -top, picture.width * scale, picture.height * scale);
    if (scale >= SMALLEST_GPU) this.details();
    if (this.found === undefined) return;
    context.strokeStyle = this.ink;
    context.lineWidth = 3;
    const [x, y] = [this.plan.x[this.found], this.plan.y[this.found]];
    context.strokeRect(x * scale - left - 2, y * scale - top - 2, this.topology.devices[this.found] * scale + 4, scale + 4);
  }

  // Lines between GPUs, and the names of racks, where they can be seen.
  details() {
    const { context, canvas, scale, left, top } = this;
    const seen = this.plan.blocks.filter(({ x, y, width, height }) =>
      (x + width) * scale > left && x * scale < left + canvas.width
      && (y + height) * scale > top && (y - 2) * scale < top + canvas.height);
    context.fillStyle = this.lines;
    const line = scale >= 12 ? 2 : 1;
    for (const { x, y, width, height } of seen) {
      const [x0, y0] = [x * scale - left, y * scale - top];
      for (let i = 1; i < width; i++) context.fillRect(x0 + i * scale, y0, 1, height * scale);
      for (let i = 1; i < height; i++) context.fillRect(x0, y0 + i * scale, width * scale, line);
    }
    if (scale < 6) return;
    context.fillStyle = this.soft;
    context.font = `${Math.min(2 * scale - 3, 13 * (window.devicePixelRatio || 1))}px system-ui, sans-serif`;
    context.textBaseline = "bottom";
    for (const { rack, x, y, width } of seen) {
      const name = rack < 0 ? "no rack" : this.topology.racks[rack];
      context.fillText(name, x * scale - left, y * scale - top - 1, width * scale);
    }
  }

  // Zooms by a step around a point of the canvas, in its pixels.
  zoom(steps, x = this.canvas.width / 2, y = this.canvas.height / 2) {
    if (!this.plan) return;
    const scale = Math.max(this.plan.cell, Math.min(this.scale * 2 ** steps, Math.max(LARGEST_CELL, this.plan.cell)));
    this.left = (this.left + x) * scale / this.scale - x;
    this.top = (this.top + y) * scale / this.scale - y;
    this.scale = scale;
    this.clamp();
    if (this.bars === scale < SMALLEST_GPU) this.draw();
    else this.repaint();
  }

  // Shows a node, large; whether there is one of the name.
  find(name) {
    const node = this.topology ? this.topology.nodes.indexOf(name) : -1;
    if (node < 0) return false;
    this.found = node;
    this.scale = Math.max(this.plan.cell, LARGEST_CELL / 2);
    this.left = (this.plan.x[node] + 4) * this.scale - this.canvas.width / 2;
    this.top = this.plan.y[node] * this.scale - this.canvas.height / 2;
    this.clamp();
    this.repaint();
    const ratio = this.canvas.width / this.canvas.clientWidth;
    const [x, y] = [this.plan.x[node] * this.scale - this.left, (this.plan.y[node] + 1) * this.scale - this.top];
    this.onHover(node, x / ratio, y / ratio);
    return true;
  }

  clamp() {
    const within = (at, all, seen) => Math.round(all <= seen ? (all - seen) / 2 : Math.min(Math.max(at, 0), all - seen));
    this.left = within(this.left, this.plan.width * this.scale, this.canvas.width);
    this.top = within(this.top, this.plan.height * this.scale, this.canvas.height);
  }

  listen() {
    const { canvas } = this;
    const point = (event) => {
      const [box, ratio] = [canvas.getBoundingClientRect(), canvas.width / canvas.clientWidth];
      return [(event.clientX - box.left) * ratio, (event.clientY - box.top) * ratio, ratio];
    };
    canvas.addEventListener("wheel", (event) => {
      if (!this.plan || !event.deltaY) return;
      event.preventDefault();
      const [x, y] = point(event);
      this.zoom(event.deltaY < 0 ? 1 : -1, x, y);
    }, { passive: false });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.plan) return;
      const [x, y, ratio] = point(event);
      if (event.buttons) {
        this.left -= event.movementX * ratio;
        this.top -= event.movementY * ratio;
        this.clamp();
        return this.draw();
      }
      const [column, row] = [Math.floor((x + this.left) / this.scale), Math.floor((y + this.top) / this.scale)];
      const inside = column >= 0 && column < this.plan.width && row >= 0 && row < this.plan.height;
      const node = inside ? this.nodeAt[row * this.plan.width + column] : -1;
      this.onHover(node, x / ratio, y / ratio);
    });
    canvas.addEventListener("pointerdown", (event) => canvas.setPointerCapture(event.pointerId));
    canvas.addEventListener("pointerleave", () => this.onHover(-1));
    canvas.addEventListener("keydown", (event) => {
      const pan = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
      if (!this.plan || !pan) return;
      event.preventDefault();
      this.left += pan[0] * canvas.width / 8;
      this.top += pan[1] * canvas.height / 8;
      this.clamp();
      this.draw();
    });
  }
}
