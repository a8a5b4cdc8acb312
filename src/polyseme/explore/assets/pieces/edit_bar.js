// The bar that says how many edits there are, with undo, redo and the file of edits.

import { address } from "../addresses.js";
import { h, say } from "../dom.js";
import { download } from "../export.js";
import { count } from "../format.js";
import { edit, editFile, editState, editsAreSaved, redo, undo } from "../model/editing.js";
import { NO_EDITS } from "../model/edits.js";

export const EDITS_FILE = "edits.json";

/** Shows the bar, or removes it if there is nothing to undo or redo. */
export function showEditBar() {
  const { size, canUndo, canRedo } = editState();
  const bar = document.getElementById("edits");
  bar.hidden = !canUndo && !canRedo;
  bar.replaceChildren(
    h("a", { href: address("edits") }, count(size, "edit")),
    h("span.quiet", {}, "only in this page"),
    editButtons(),
  );
}

/** Returns the buttons that undo and redo edits and save them. */
export function editButtons() {
  const { size, canUndo, canRedo } = editState();
  const button = (id, label, isUsable, act) =>
    h("button.small", { type: "button", id, disabled: !isUsable, onclick: act }, label);
  return h(
    "span.edit-buttons",
    {},
    button("edit-undo", "Undo", canUndo, () => undo().then(tell("Undone"))),
    button("edit-redo", "Redo", canRedo, () => redo().then(tell("Redone"))),
    button("edit-export", "Export …", size > 0, () => {
      download(EDITS_FILE, editFile(), "application/json");
      editsAreSaved();
    }),
  );
}

/** Discards all edits; they can be undone. */
export function discardEdits() {
  return edit(NO_EDITS).then(tell("Discarded"));
}

const tell = (what) => () => say(`${what}: ${count(editState().size, "edit")}.`);
