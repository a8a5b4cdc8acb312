// The edits that a reader has made in this page, with undo and redo. The browser keeps them, if it
// can, until they are discarded.

import { model, useEdits } from "./corpus.js";
import { section } from "./data.js";
import { NO_EDITS, editsOfFile, fileOfEdits, numberOfEdits } from "./edits.js";

/** @typedef {import("./edits.js").Edits} Edits */

let states = [NO_EDITS];
let place = 0;
let isKept = true; // whether the browser keeps them
let isSaved = true; // whether they are in a file

/** @type {() => Promise<unknown>} */
let showEdited = async () => {};

/**
 * Returns the edits.
 *
 * @returns {Edits}
 */
export const currentEdits = () => states[place];

/** Returns what can be done with the edits, and whether the browser keeps them. */
export function editState() {
  return {
    size: numberOfEdits(states[place]),
    canUndo: place > 0,
    canRedo: place < states.length - 1,
    isKept,
  };
}

const key = () => `polyseme edits ${model.editing.topics}`;

/**
 * Takes up the edits that the browser has kept for these topics; `show` shows the page after each
 * change.
 *
 * @param {() => Promise<unknown>} show
 */
export async function takeUpEdits(show) {
  showEdited = show;
  if (!model.editing) return;
  addEventListener("beforeunload", (event) => {
    if (!isKept && !isSaved) event.preventDefault();
  });
  let text = null;
  try {
    text = localStorage.getItem(key());
  } catch {
    isKept = false; // a frame of its own origin
  }
  const found = text === null ? null : editsOfFile(text, await section("core"));
  if (!found) return;
  states = [NO_EDITS, found];
  place = 1;
  await useEdits(found);
}

/**
 * Makes an edit.
 *
 * @param {Edits} edits
 */
export function edit(edits) {
  states = [...states.slice(0, place + 1), edits];
  return turnTo(place + 1);
}

export const undo = () => turnTo(Math.max(0, place - 1));
export const redo = () => turnTo(Math.min(states.length - 1, place + 1));

async function turnTo(state) {
  place = state;
  isSaved = numberOfEdits(states[place]) === 0;
  try {
    if (isSaved) localStorage.removeItem(key());
    else localStorage.setItem(key(), editFile());
    isKept = true;
  } catch {
    isKept = false;
  }
  await useEdits(states[place]);
  await showEdited();
}

/** Returns the content of a file of the edits. */
export const editFile = () => fileOfEdits(states[place], model.editing);

/** Notes that the edits are in a file. */
export function editsAreSaved() {
  isSaved = true;
}
