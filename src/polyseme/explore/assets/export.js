// Files of what is shown: tables as CSV, charts as SVG or PNG.

import { SVG, h, s, say } from "./dom.js";

/** @typedef {() => unknown[][] | Promise<unknown[][]>} Rows */

/**
 * Saves a file.
 *
 * @param {string} name
 * @param {Blob | string} content
 * @param {string} [type]
 */
export function download(name, content, type) {
  const address = URL.createObjectURL(
    content instanceof Blob ? content : new Blob([content], { type }),
  );
  const link = h("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
  say(`Saved ${name}`);
}

// Returns a cell that no spreadsheet reads as a formula, quoted if needed.
function cell(value) {
  if (typeof value === "number") return Number.isFinite(value) ? String(value) : "";
  let text = String(value ?? "");
  // the same characters as in the tables of a run
  if (/^[=+\-@\t\r\n＝＋－＠]/.test(text)) text = "'" + text;
  return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

function csv(rows) {
  return rows.map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

const KEPT_STYLES = [
  "fill",
  "stroke",
  "stroke-width",
  "stroke-dasharray",
  "opacity",
  "fill-opacity",
  "font-family",
  "font-size",
  "font-weight",
  "text-anchor",
];

const plainColors = new Map();

// Returns a color in a notation that all programs read; browsers return mixed colors in a newer
// notation.
function plainColor(value) {
  if (value === "none" || !value.includes("(") || value.startsWith("rgb")) return value;
  if (!plainColors.has(value)) {
    const pixel = h("canvas", { width: 1, height: 1 }).getContext("2d");
    pixel.fillStyle = value;
    pixel.fillRect(0, 0, 1, 1);
    plainColors.set(
      value,
      `rgb(${[...pixel.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", ")})`,
    );
  }
  return plainColors.get(value);
}

// Returns the content of a file with a chart: styles as attributes, and a background in the color
// of the page.
function standalone(svg) {
  const copy = svg.cloneNode(true);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    for (const name of KEPT_STYLES)
      element.setAttribute(name, plainColor(style.getPropertyValue(name)));
    element.removeAttribute("class");
    element.removeAttribute("style");
    element.removeAttribute("href");
    element.removeAttribute("tabindex");
  });
  const { width, height } = svg.getBoundingClientRect();
  copy.setAttribute("xmlns", SVG);
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  copy.setAttribute("viewBox", `0 0 ${width} ${height}`);
  const ground = s("rect", {
    width: "100%",
    height: "100%",
    fill: getComputedStyle(document.body).backgroundColor,
  });
  copy.prepend(ground);
  return new XMLSerializer().serializeToString(copy);
}

async function picture(svg, scale = 2) {
  const image = new Image();
  const { width, height } = svg.getBoundingClientRect();
  image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(standalone(svg));
  await image.decode();
  const canvas = h("canvas", {
    width: Math.round(width * scale),
    height: Math.round(height * scale),
  });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/**
 * Returns buttons that save a table (rows() with a header first, or a promise of them) and the
 * chart within `holder`, if there is one.
 *
 * @param {string} name
 * @param {Rows} [rows]
 * @param {Element} [holder]
 */
export function saveButtons(name, rows, holder) {
  const button = (kind, action) =>
    h(
      "button.save",
      { type: "button", "aria-label": `Save ${name} as ${kind}`, onclick: action },
      kind,
    );
  const file =
    name
      .replace(/[^\p{L}\p{N}]+/gu, "-")
      .slice(0, 60)
      .replace(/^-|-$/g, "")
      .toLowerCase() || "table";
  const chart = () => holder.querySelector("svg.chart");
  return h(
    "span.saves",
    {},
    rows &&
      button("CSV", async () =>
        download(`${file}.csv`, csv(await rows()), "text/csv;charset=utf-8"),
      ),
    holder && button("SVG", () => download(`${file}.svg`, standalone(chart()), "image/svg+xml")),
    holder &&
      button("PNG", async () => download(`${file}.png`, await picture(chart()), "image/png")),
  );
}
