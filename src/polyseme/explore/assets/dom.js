// Elements. Text is inserted only as text nodes, never as markup; styles are set by properties,
// which a strict policy allows.

/**
 * @typedef {Node | string | number | boolean | null | undefined | Child[]} Child
 *
 * @typedef {Record<string, any>} Properties
 *
 * @typedef {HTMLElementTagNameMap} Elements
 */

/**
 * The element of a tag with classes.
 *
 * @template {string} T
 * @typedef {T extends `${infer N}.${string}` ? ElementOf<N> :
 *   T extends keyof Elements ? Elements[T] : HTMLElement} ElementOf
 */

export const SVG = "http://www.w3.org/2000/svg";

/**
 * Returns an element: h("a.class", {href, onclick, style: {width}, data: {word}}, children...).
 *
 * @template {string} T
 * @param {T} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {ElementOf<T>}
 */
export function h(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElement(name);
  return filled(element, classes, properties, children);
}

/**
 * Returns an SVG element, as h does.
 *
 * @param {string} tag
 * @param {Properties} [properties]
 * @param {...Child} children
 * @returns {SVGElement}
 */
export function s(tag, properties = {}, ...children) {
  const [name, ...classes] = tag.split(".");
  const element = document.createElementNS(SVG, name);
  return filled(element, classes, properties, children);
}

function filled(element, classes, properties, children) {
  element.classList.add(...classes);
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "style")
      for (const [key, setting] of Object.entries(value)) element.style.setProperty(key, setting);
    else if (name === "data") Object.assign(element.dataset, value);
    else if (name === "classes") element.classList.add(...value.split(" ").filter(Boolean));
    else if (name === "value") element.value = value;
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(
    ...children
      .flat(Infinity)
      .filter((child) => child !== null && child !== undefined && child !== false),
  );
  return element;
}

/** Milliseconds without a letter after which a typed text is used. */
export const PAUSE = 30;

/**
 * Returns a function that calls `action` when `wait` milliseconds have passed without another call.
 *
 * @template {unknown[]} T
 * @param {(...given: T) => void} action
 * @param {number} wait
 * @returns {(...given: T) => void}
 */
export function later(action, wait) {
  let timer = 0;
  return (...given) => {
    clearTimeout(timer);
    timer = setTimeout(() => action(...given), wait);
  };
}

/**
 * Tells screen readers a message.
 *
 * @param {string} message
 */
export function say(message) {
  document.getElementById("status").textContent = message;
}

/**
 * Returns the message for a view or card without content.
 *
 * @param {...Child} message
 */
export function empty(...message) {
  return h("p.empty", {}, ...message);
}
