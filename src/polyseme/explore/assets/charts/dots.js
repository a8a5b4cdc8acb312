// Dots on a canvas: with WebGL, and without it pixel by pixel.

import { h } from "../dom.js";

/**
 * @typedef {{x: number, y: number, scale: number}} Camera the pixel of the place (0, 0), and
 *   pixels per unit
 *
 * @typedef {object} Dots
 * @property {HTMLCanvasElement} surface
 * @property {(colors: Uint8Array) => void} paint red, green, blue and opacity of each dot
 * @property {(camera: Camera, radius: number, most: number) => void} draw draws the first dots
 */

const VERTEX_SHADER = [
  "attribute vec2 place; attribute vec4 color;",
  "uniform vec3 camera; uniform vec2 frame; uniform mediump float size; varying vec4 paint;",
  "void main() {",
  "  vec2 at = (place * camera.z + camera.xy) / frame * 2.0 - 1.0;",
  "  gl_Position = vec4(at.x, -at.y, 0.0, 1.0); gl_PointSize = size; paint = color;",
  "}",
].join("\n");
const FRAGMENT_SHADER = [
  "precision mediump float; varying vec4 paint; uniform mediump float size;",
  "void main() {",
  "  float edge = (0.5 - length(gl_PointCoord - 0.5)) * size;",
  "  float alpha = paint.a * clamp(edge, 0.0, 1.0);",
  "  gl_FragColor = vec4(paint.rgb * alpha, alpha);",
  "}",
].join("\n");

/**
 * Returns the dots of places, in the order in which they are drawn.
 *
 * @param {Float32Array} places
 * @returns {Dots}
 */
export function makeDots(places) {
  const settings = { alpha: true, antialias: false, preserveDrawingBuffer: true };
  const gl = newCanvas().getContext("webgl", settings);
  return (gl && glDots(gl, places)) ?? pixelDots(newCanvas().getContext("2d"), places);
}

const newCanvas = () => h("canvas", { "aria-hidden": "true" });

// Returns null if the shaders do not work.
function glDots(gl, places) {
  const program = gl.createProgram();
  for (const [type, source] of [
    [gl.VERTEX_SHADER, VERTEX_SHADER],
    [gl.FRAGMENT_SHADER, FRAGMENT_SHADER],
  ]) {
    const shader = gl.createShader(type);
    gl.shaderSource(shader, source);
    gl.compileShader(shader);
    gl.attachShader(program, shader);
  }
  gl.linkProgram(program);
  if (!gl.getProgramParameter(program, gl.LINK_STATUS)) return null;
  gl.useProgram(program);
  const buffer = (name, size, type, normalized) => {
    const made = gl.createBuffer();
    const at = gl.getAttribLocation(program, name);
    gl.bindBuffer(gl.ARRAY_BUFFER, made);
    gl.enableVertexAttribArray(at);
    gl.vertexAttribPointer(at, size, type, normalized, 0, 0);
    return made;
  };
  buffer("place", 2, gl.FLOAT, false);
  gl.bufferData(gl.ARRAY_BUFFER, places, gl.STATIC_DRAW);
  const paints = buffer("color", 4, gl.UNSIGNED_BYTE, true);
  const uniform = (name) => gl.getUniformLocation(program, name);
  const [camera, frame, size] = ["camera", "frame", "size"].map(uniform);
  gl.enable(gl.BLEND);
  gl.blendFunc(gl.ONE, gl.ONE_MINUS_SRC_ALPHA);
  return {
    surface: gl.canvas,
    paint(colors) {
      gl.bindBuffer(gl.ARRAY_BUFFER, paints);
      gl.bufferData(gl.ARRAY_BUFFER, colors, gl.DYNAMIC_DRAW);
    },
    draw({ x, y, scale }, radius, most) {
      const { width, height } = gl.canvas;
      gl.viewport(0, 0, width, height);
      gl.clear(gl.COLOR_BUFFER_BIT);
      gl.uniform3f(camera, x, y, scale);
      gl.uniform2f(frame, width, height);
      gl.uniform1f(size, 2 * radius);
      gl.drawArrays(gl.POINTS, 0, most);
    },
  };
}

/**
 * Returns dots that are written into the pixels of a canvas.
 *
 * @param {CanvasRenderingContext2D} context
 * @param {Float32Array} places
 * @returns {Dots}
 */
export function pixelDots(context, places) {
  /** @type {Uint8Array} */
  let paints = new Uint8Array(0);
  return {
    surface: context.canvas,
    paint(colors) {
      paints = colors;
    },
    draw({ x, y, scale }, radius, most) {
      const { width, height } = context.canvas;
      const image = context.createImageData(width, height);
      const pixels = image.data;
      const reach = Math.max(0, Math.round(radius - 0.5));
      for (let point = 0; point < most; point++) {
        const [px, py] = [places[2 * point] * scale + x, places[2 * point + 1] * scale + y];
        if (px < 0 || py < 0 || px >= width || py >= height) continue;
        const alpha = paints[4 * point + 3] / 255;
        for (let dy = -reach; dy <= reach; dy++) {
          for (let dx = -reach; dx <= reach; dx++) {
            if (dx * dx + dy * dy > reach * reach + 1) continue;
            const [cx, cy] = [Math.floor(px) + dx, Math.floor(py) + dy];
            if (cx < 0 || cy < 0 || cx >= width || cy >= height) continue;
            const at = 4 * (cx + width * cy);
            const under = (pixels[at + 3] / 255) * (1 - alpha);
            const both = alpha + under;
            for (let c = 0; c < 3; c++)
              pixels[at + c] =
                (paints[4 * point + c] * alpha + pixels[at + c] * under) / (both || 1);
            pixels[at + 3] = 255 * both;
          }
        }
      }
      context.putImageData(image, 0, 0);
    },
  };
}

/**
 * Returns an image of the density of the dots in their colors, to lie below them.
 *
 * @param {Float32Array} places
 * @param {Uint8Array} colors red, green and blue of each dot
 * @param {number} side
 * @param {number} edge how far the image reaches beyond the places
 * @returns {ImageData}
 */
export function glow(places, colors, side, edge) {
  const cell = (place) => Math.floor(((place + edge) / (1 + 2 * edge)) * (side - 1));
  const fields = [0, 1, 2, 3].map(() => new Float32Array(side * side));
  for (let point = 0; 2 * point < places.length; point++) {
    const at = cell(places[2 * point]) + side * cell(places[2 * point + 1]);
    fields[3][at] += 1;
    for (let c = 0; c < 3; c++) fields[c][at] += colors[3 * point + c];
  }
  for (const field of fields) for (let round = 0; round < 6; round++) blur(field, side, 2);
  // opacity rises quickly from nothing and reaches most of its range where dots are few
  const positive = fields[3].filter((value) => value > 1e-4).sort();
  const usual = positive.length ? positive[Math.floor(positive.length / 2)] : 1;
  const image = new ImageData(side, side);
  for (let at = 0; at < side * side; at++) {
    const density = fields[3][at];
    if (density <= 1e-4) continue;
    for (let c = 0; c < 3; c++) image.data[4 * at + c] = fields[c][at] / density;
    image.data[4 * at + 3] = 255 * (density / (density + 0.6 * usual));
  }
  return image;
}

// Mean over 2 reach + 1 cells in both directions.
function blur(field, side, reach) {
  const row = new Float32Array(side);
  for (const [step, across] of [
    [1, side],
    [side, 1],
  ]) {
    for (let line = 0; line < side; line++) {
      const first = line * across;
      let sum = 0;
      for (let i = 0; i < reach; i++) sum += field[first + i * step];
      for (let i = 0; i < side; i++) {
        if (i + reach < side) sum += field[first + (i + reach) * step];
        if (i - reach - 1 >= 0) sum -= field[first + (i - reach - 1) * step];
        row[i] = sum / (2 * reach + 1);
      }
      for (let i = 0; i < side; i++) field[first + i * step] = Math.max(0, row[i]);
    }
  }
}
