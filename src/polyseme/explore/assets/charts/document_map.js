// The map of documents: every document is a dot, and regions have the names of topics. It can be
// moved, enlarged and searched with a pointer, with fingers and with keys.

import { makeDots, glow } from "./dots.js";
import { placeNames } from "./region_names.js";
import { h, later } from "../dom.js";
import { PointGrid } from "../model/map.js";

/**
 * @typedef {import("../model/map.js").DocumentMap} DocumentMap
 *
 * @typedef {object} MapEvents
 * @property {(point: number, x: number, y: number) => void} hover point is -1 over no document
 * @property {(point: number) => void} open
 * @property {(points: number[] | null) => void} select null clears the selection
 * @property {(frame: number[] | null) => void} moved middle and scale; null shows all
 * @property {(name: import("../model/map.js").RegionName) => {href: string, classes: string}} link
 */

const GLOW_SIDE = 192; // cells of the image below the dots
const GLOW_EDGE = 0.06; // how far the image reaches beyond the dots
const MARGIN = 28;
const NEAR = 9; // pixels around a dot that belong to it
const CLICK = 5; // pixels that a pointer may move in a click
const FADED = 18; // opacity of dots, of 255
const CLEAR = 225;
const SLOW = 45; // milliseconds of a frame after which fewer dots are drawn while the map moves
const STEP = 70; // pixels that an arrow key moves the map

/** A map of documents that draws itself again when it moves. */
export class MapChart {
  /** @param {DocumentMap} map */
  constructor(map) {
    this.map = map;
    /** @type {MapEvents} */
    this.events = null;
    /**
     * What `moved` has given, to be shown when the map is put into the page; null shows all.
     *
     * @type {number[] | null}
     */
    this.wanted = null;
    this.order = shuffled(map.size);
    this.places = new Float32Array(2 * map.size);
    this.order.forEach((point, i) => {
      this.places[2 * i] = map.places[2 * point];
      this.places[2 * i + 1] = map.places[2 * point + 1];
    });
    this.grid = new PointGrid(map.places);
    // smallest and largest x and y
    this.spans = [0, 1].map((i) => {
      let [low, high] = [Infinity, -Infinity];
      for (let at = i; at < this.map.places.length; at += 2) {
        low = Math.min(low, this.map.places[at]);
        high = Math.max(high, this.map.places[at]);
      }
      return this.map.size ? [low, high] : [0, 1];
    });
    this.below = h("canvas", { "aria-hidden": "true" });
    this.dots = makeDots(this.places);
    this.above = h("canvas", { "aria-hidden": "true" });
    this.names = h("div.region-names");
    this.element = h(
      "div.document-map",
      {
        tabindex: 0,
        role: "group",
        "aria-label":
          "Map of documents. Arrow keys move it, plus and minus change its size, 0 shows all. " +
          "The names of topics are links.",
      },
      this.below,
      this.dots.surface,
      this.above,
      this.names,
    );
    this.lit = null;
    this.isPainted = false;
    this.chosen = -1;
    this.tool = "move";
    this.pointers = new Map();
    this.lasso = null;
    this.elements = new Map();
    this.regions = map.names;
    this.widths = new Map();
    this.lasted = 0; // milliseconds of the last frame
    this.moving = false;
    this.settle = later(() => {
      this.moving = false;
      if (!this.element.isConnected) return;
      this.redraw();
      const { x, y, scale } = this.whole();
      const far = Math.hypot(this.x - x, this.y - y) * scale;
      const isWhole = far < 0.5 && Math.abs(this.scale / scale - 1) < 1e-6;
      this.events.moved(isWhole ? null : [this.x, this.y, this.scale / scale]);
    }, 160);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.element);
  }

  /**
   * Sets the map, with the same places, and the names of regions.
   *
   * @param {DocumentMap} map
   * @param {import("../model/map.js").RegionName[]} names
   */
  use(map, names) {
    this.map = map;
    this.regions = names;
    this.elements.forEach((element) => element.remove());
    this.elements.clear();
    this.redraw();
  }

  /**
   * Sets the color of each point.
   *
   * @param {Uint8Array} colors red, green and blue
   */
  color(colors) {
    this.colors = colors;
    const image = glow(this.map.places, colors, GLOW_SIDE, GLOW_EDGE);
    this.glow = new OffscreenCanvas(GLOW_SIDE, GLOW_SIDE);
    this.glow.getContext("2d").putImageData(image, 0, 0);
    this.isPainted = false;
    this.redraw();
  }

  /**
   * Lights up points by weights between 0 and 1; null lights up all.
   *
   * @param {Float32Array | null} weights
   */
  light(weights) {
    if (weights === this.lit) return;
    this.lit = weights;
    this.element.classList.toggle("faded", weights !== null);
    this.isPainted = false;
    this.redraw();
  }

  // Gives the dots their colors and opacity, once before they are drawn.
  paint() {
    if (this.isPainted) return;
    this.isPainted = true;
    const { order, colors, lit } = this;
    const paints = new Uint8Array(4 * order.length);
    for (let i = 0; i < order.length; i++) {
      const point = order[i];
      for (let c = 0; c < 3; c++) paints[4 * i + c] = colors[3 * point + c];
      const weight = lit ? lit[point] : 1;
      paints[4 * i + 3] = weight > 0 ? FADED + (CLEAR - FADED) * weight : FADED;
    }
    this.dots.paint(paints);
  }

  // scale and middle that show all points beside the panels
  whole() {
    const [left, right] = this.free();
    const spans = this.spans;
    const room = [right - left, this.height].map((size) => Math.max(40, size - 2 * MARGIN));
    const scale = Math.min(
      ...spans.map(([low, high], i) => room[i] / Math.max(high - low, 1e-3)),
      6 * Math.min(...room),
    );
    const middle = spans.map(([low, high]) => (low + high) / 2);
    const aside = (left + right) / 2 - this.width / 2;
    return { x: middle[0] - aside / scale, y: middle[1], scale };
  }

  // left and right end of the area without panels
  free() {
    let right = this.width;
    for (const [left, , end] of this.obstacles())
      if (end > this.width - 60 && left > this.width / 2) right = Math.min(right, left);
    return [0, right];
  }

  // boxes of the elements that lie on the map
  obstacles() {
    const own = this.element.getBoundingClientRect();
    return Array.from(this.element.parentElement?.querySelectorAll(".on-map") ?? [], (element) => {
      const box = element.getBoundingClientRect();
      return [box.left - own.left, box.top - own.top, box.right - own.left, box.bottom - own.top];
    });
  }

  /** Shows all points. */
  fit() {
    Object.assign(this, this.whole());
    this.move();
  }

  useWanted() {
    if (this.wanted) {
      [this.x, this.y] = this.wanted;
      this.scale = this.wanted[2] * this.whole().scale;
      this.wanted = null;
      this.redraw();
    } else this.fit();
  }

  resize() {
    const before = this.width;
    this.width = this.element.clientWidth;
    this.height = this.element.clientHeight;
    if (!this.width || !this.height) return;
    const ratio = Math.min(2, devicePixelRatio || 1);
    for (const surface of [this.below, this.dots.surface, this.above]) {
      surface.width = Math.round(this.width * ratio);
      surface.height = Math.round(this.height * ratio);
    }
    this.ratio = ratio;
    if (!before) this.useWanted();
    this.redraw();
  }

  /**
   * Changes the scale and keeps the place below a pixel.
   *
   * @param {number} factor
   * @param {number} [px]
   * @param {number} [py]
   */
  zoom(factor, px = this.width / 2, py = this.height / 2) {
    const { scale } = this.whole();
    const after = Math.min(60 * scale, Math.max(0.5 * scale, this.scale * factor));
    const [x, y] = this.placeAt(px, py);
    this.scale = after;
    this.x = x - (px - this.width / 2) / after;
    this.y = y - (py - this.height / 2) / after;
    this.move();
  }

  move() {
    this.moving = true;
    this.redraw();
    this.settle();
  }

  /** @returns {[number, number]} */
  placeAt(px, py) {
    return [
      this.x + (px - this.width / 2) / this.scale,
      this.y + (py - this.height / 2) / this.scale,
    ];
  }

  /** @returns {[number, number]} */
  pixelOf(x, y) {
    return [
      (x - this.x) * this.scale + this.width / 2,
      (y - this.y) * this.scale + this.height / 2,
    ];
  }

  redraw() {
    if (this.frame) return;
    this.frame = requestAnimationFrame(() => {
      this.frame = 0;
      if (this.element.isConnected && this.width && this.colors && this.scale) this.draw();
    });
  }

  draw() {
    const started = performance.now();
    this.paint();
    const [x, y] = this.pixelOf(0, 0);
    const r = this.ratio;
    const camera = { x: x * r, y: y * r, scale: this.scale * r };
    const most = this.moving && this.lasted > SLOW ? Math.ceil(this.map.size / 4) : this.map.size;
    this.dots.draw(camera, this.radius() * r, most);
    const back = this.below.getContext("2d");
    back.clearRect(0, 0, this.below.width, this.below.height);
    back.imageSmoothingEnabled = true;
    const edge = GLOW_EDGE * camera.scale;
    const size = camera.scale + 2 * edge;
    back.drawImage(this.glow, camera.x - edge, camera.y - edge, size, size);
    this.drawAbove();
    this.drawNames();
    this.lasted = performance.now() - started;
    this.element.dataset.drawn = String(most);
  }

  radius() {
    const usual = (0.27 * this.scale) / Math.sqrt(this.map.size);
    return Math.min(6, this.lit ? Math.max(1.9, 1.4 * usual) : Math.max(0.95, usual));
  }

  drawAbove() {
    const front = this.above.getContext("2d");
    front.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    front.clearRect(0, 0, this.width, this.height);
    const style = getComputedStyle(this.element);
    front.strokeStyle = style.color;
    if (this.lasso) {
      front.beginPath();
      for (const [x, y] of this.lasso) front.lineTo(...this.pixelOf(x, y));
      front.closePath();
      front.globalAlpha = 0.07;
      front.fillStyle = style.color;
      front.fill();
      front.globalAlpha = 1;
      front.setLineDash([5, 4]);
      front.lineWidth = 1.4;
      front.stroke();
      front.setLineDash([]);
    }
    if (this.chosen >= 0) {
      const [x, y] = this.pixelOf(
        this.map.places[2 * this.chosen],
        this.map.places[2 * this.chosen + 1],
      );
      front.beginPath();
      front.arc(x, y, this.radius() + 3.5, 0, 2 * Math.PI);
      front.lineWidth = 2;
      front.stroke();
    }
  }

  /**
   * Returns a picture of what is shown, dark on white, for a page that is printed.
   *
   * @param {number} width
   * @param {number} height
   * @param {number} ratio pixels per unit of width
   */
  picture(width, height, ratio) {
    const whole = this.whole().scale;
    const rooms = [width, height].map((size) => size - 2 * MARGIN);
    const spans = this.spans.map(([low, high]) => Math.max(high - low, 1e-3));
    const scale = (Math.min(rooms[0] / spans[0], rooms[1] / spans[1]) * this.scale) / whole;
    const isWhole = Math.abs(this.scale / whole - 1) < 1e-6;
    const middle = isWhole ? this.spans.map(([low, high]) => (low + high) / 2) : [this.x, this.y];
    const at = (x, y) => [
      (x - middle[0]) * scale + width / 2,
      (y - middle[1]) * scale + height / 2,
    ];
    const canvas = h("canvas.map-picture.print-only", {
      width: width * ratio,
      height: height * ratio,
      role: "img",
      "aria-label": "Map of documents",
    });
    const front = canvas.getContext("2d");
    front.scale(ratio, ratio);
    const [left, top] = at(-GLOW_EDGE, -GLOW_EDGE);
    const side = (1 + 2 * GLOW_EDGE) * scale;
    front.globalAlpha = 0.3;
    front.drawImage(this.glow, left, top, side, side);
    const radius = Math.min(4, Math.max(0.7, (0.2 * scale) / Math.sqrt(this.map.size)));
    this.order.forEach((point, i) => {
      const [x, y] = at(this.places[2 * i], this.places[2 * i + 1]);
      front.globalAlpha = this.lit && !(this.lit[point] > 0) ? 0.1 : 0.9;
      front.fillStyle = `rgb(${this.colors.subarray(3 * point, 3 * point + 3).join()})`;
      front.beginPath();
      front.arc(x, y, radius, 0, 2 * Math.PI);
      front.fill();
    });
    front.globalAlpha = 1;
    front.textAlign = "center";
    front.textBaseline = "middle";
    front.lineJoin = "round";
    const placed = placeNames(
      this.map.names,
      ({ x, y, radius }) => {
        const [px, py] = at(x, y);
        return { x: px, y: py, radius: radius * scale };
      },
      (text, fontSize) => this.widthOf(text, fontSize),
      { width, height, obstacles: [] },
    );
    for (const { lines, rank, x, y, height: tall, size: fontSize } of placed) {
      front.font = `${rank ? 600 : 700} ${fontSize}px ${getComputedStyle(this.element).fontFamily}`;
      lines.forEach((line, i) => {
        const down = y - tall / 2 + ((i + 0.5) * tall) / lines.length;
        front.strokeStyle = "white";
        front.lineWidth = 4;
        front.strokeText(line, x, down);
        front.fillStyle = "#222";
        front.fillText(line, x, down);
      });
    }
    return canvas;
  }

  drawNames() {
    const placed = placeNames(
      this.regions,
      ({ x, y, radius }) => {
        const [px, py] = this.pixelOf(x, y);
        return { x: px, y: py, radius: radius * this.scale };
      },
      (text, size) => this.widthOf(text, size),
      { width: this.width, height: this.height, obstacles: this.obstacles() },
    );
    const shown = new Set();
    for (const { name, lines, rank, x, y, width, height, size } of placed) {
      const key = `${name.level}.${name.topic} ${lines.join("\n")}`;
      shown.add(key);
      let element = this.elements.get(key);
      if (!element) {
        const { href, classes } = this.events.link(name);
        element = h(
          "a.region",
          { href, classes: `${classes} rank${rank}`, "aria-label": name.name },
          lines.map((line) => h("span", {}, line)),
        );
        this.elements.set(key, element);
      }
      const style = element.style;
      style.setProperty("font-size", `${size}px`);
      style.setProperty("width", `${Math.ceil(width) + 2}px`);
      style.setProperty("transform", `translate(${x - width / 2 - 1}px, ${y - height / 2}px)`);
      if (!element.isConnected) this.names.append(element);
    }
    for (const [key, element] of this.elements) if (!shown.has(key)) element.remove();
  }

  widthOf(text, size) {
    if (!this.widths.has(text)) {
      const ruler = this.above.getContext("2d");
      ruler.save();
      ruler.font = `700 100px ${getComputedStyle(this.element).fontFamily}`;
      this.widths.set(text, ruler.measureText(text).width / 100);
      ruler.restore();
    }
    return this.widths.get(text) * size;
  }

  // events

  listen() {
    const { element } = this;
    element.addEventListener("wheel", (event) => this.wheel(event), { passive: false });
    element.addEventListener("pointerdown", (event) => this.down(event));
    element.addEventListener("pointermove", (event) => this.moved(event));
    element.addEventListener("pointerup", (event) => this.up(event));
    element.addEventListener("pointercancel", (event) => this.up(event));
    element.addEventListener("pointerleave", (event) => {
      // a finger leaves whenever it is lifted
      if (event.pointerType !== "touch") this.pointAt(-1, 0, 0);
    });
    element.addEventListener("keydown", (event) => this.key(event));
    element.addEventListener("dragstart", (event) => event.preventDefault());
  }

  at(event) {
    const box = this.element.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  }

  wheel(event) {
    event.preventDefault();
    const unit = event.deltaMode === 1 ? 30 : 1;
    const amount = Math.max(-240, Math.min(240, event.deltaY * unit));
    this.zoom(Math.exp(-amount / (event.ctrlKey ? 120 : 420)), ...this.at(event));
  }

  down(event) {
    if (event.button > 0) return;
    const at = this.at(event);
    this.pointers.set(event.pointerId, at);
    this.start = at;
    this.far = 0;
    const tool = event.shiftKey ? "lasso" : this.tool;
    this.drawing = this.pointers.size === 1 && tool !== "move" ? tool : null;
    if (this.drawing) this.lasso = [this.placeAt(...at)];
    else if (this.pointers.size > 1) this.lasso = null;
  }

  moved(event) {
    const at = this.at(event);
    const before = this.pointers.get(event.pointerId);
    if (!before) {
      const onName = event.target.closest?.("a");
      if (event.pointerType !== "touch") this.pointAt(onName ? -1 : this.pointNear(...at), ...at);
      return;
    }
    this.far = Math.max(this.far, Math.hypot(at[0] - this.start[0], at[1] - this.start[1]));
    if (this.far > CLICK && !this.element.hasPointerCapture(event.pointerId))
      this.element.setPointerCapture(event.pointerId);
    this.pointers.set(event.pointerId, at);
    if (this.drawing) return this.drawLasso(at);
    if (this.pointers.size === 2) {
      const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
      const apart = (place) => Math.hypot(place[0] - other[0], place[1] - other[1]);
      const middle = [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
      this.zoom(apart(at) / Math.max(1, apart(before)), middle[0], middle[1]);
    }
    if (this.far <= CLICK) return;
    const share = 1 / this.pointers.size;
    this.x -= ((at[0] - before[0]) * share) / this.scale;
    this.y -= ((at[1] - before[1]) * share) / this.scale;
    this.pointAt(-1, 0, 0);
    this.move();
  }

  drawLasso(at) {
    const place = this.placeAt(...at);
    if (this.drawing === "box") {
      const [x, y] = this.placeAt(...this.start);
      this.lasso = [[x, y], [place[0], y], place, [x, place[1]]];
    } else this.lasso.push(place);
    this.redraw();
  }

  up(event) {
    if (!this.pointers.delete(event.pointerId)) return;
    const drawn = this.drawing;
    this.drawing = null;
    if (event.type === "pointercancel") return;
    if (drawn && this.far > CLICK) {
      this.events.select(this.grid.inside(this.lasso));
      return this.redraw();
    }
    if (drawn) this.lasso = null;
    if (this.far > CLICK || event.target.closest?.("a")) return;
    const at = this.at(event);
    const point = this.pointNear(...at);
    if (point < 0) return this.pointAt(-1, 0, 0);
    if (event.pointerType === "touch" && point !== this.chosen) this.pointAt(point, ...at);
    else this.events.open(point);
  }

  pointNear(px, py) {
    const allowed = this.lit ? (point) => this.lit[point] > 0 : undefined;
    return this.grid.nearest(...this.placeAt(px, py), (NEAR + this.radius()) / this.scale, allowed);
  }

  pointAt(point, px, py) {
    if (point === this.chosen && point < 0) return;
    this.chosen = point;
    this.element.classList.toggle("pointing", point >= 0);
    this.events.hover(point, px, py);
    this.drawAbove();
  }

  /** Removes the outline of a selection. */
  clear() {
    this.lasso = null;
    this.redraw();
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    const step = steps[event.key];
    if (step) {
      this.x += (step[0] * STEP) / this.scale;
      this.y += (step[1] * STEP) / this.scale;
      this.move();
    } else if (event.key === "+" || event.key === "=") this.zoom(1.4);
    else if (event.key === "-") this.zoom(1 / 1.4);
    else if (event.key === "0") this.fit();
    else if (event.key === "Escape") this.events.select(null);
    else return;
    event.preventDefault();
  }
}

// Returns the numbers below `size` in an order that looks random and is always the same, so that
// the first dots are a sample of all.
function shuffled(size) {
  const order = Uint32Array.from({ length: size }, (_, i) => i);
  let state = 1;
  for (let i = size - 1; i > 0; i--) {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((state / 2 ** 32) * (i + 1));
    [order[i], order[j]] = [order[j], order[i]];
  }
  return order;
}
