// Elements. Text is inserted only as text nodes, never as markup; styles are set by properties, which a strict policy
// allows.

const SVG = "http://www.w3.org/2000/svg";

// h("a.class", {href, onclick, style: {width}, data: {word}}, children...); children: nodes, texts, lists, null.
function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  return filled(element, classes, properties, children);
}

// The same for SVG.
function s(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG, name);
  return filled(element, classes, properties, children);
}

function filled(element, classes, properties, children) {
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "classes") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

const wholeNumber = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

function count(n, one, many = one + "s") {
  return `${wholeNumber.format(n)} ${n === 1 ? one : many}`;
}

function percent(share) {
  if (share === 0) return "0%";
  if (share < 0.0005) return "<0.1%";
  return `${(100 * share).toFixed(share < 0.0995 ? 1 : 0)}%`;
}

function decimal(value, digits = 3) {
  return Number.isFinite(value) ? value.toFixed(digits) : "–";
}

// A number with three or four significant digits.
function figureOf(value) {
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value !== "number") return String(value);
  if (Number.isInteger(value)) return wholeNumber.format(value);
  return Math.abs(value) >= 100 ? value.toFixed(1) : value.toPrecision(4);
}

// Calls `action` when `wait` milliseconds have passed without another call.
function later(action, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

function say(message) {
  document.getElementById("status").textContent = message;
}

// The message for a view or card without content.
function empty(...message) {
  return h("p.empty", {}, ...message);
}
